/* Log densities that a sampler draws from. */
#ifndef SCL_SAMPLE_TARGET_H
#define SCL_SAMPLE_TARGET_H

#include "ops/glm.h"
#include "program/program.h"

/* Points of leapfrog trajectories, one of each of `vectors` chains: the first is given with the
 * momentum half a step before it, the others are steps apart, but from number `turn` on they
 * continue from a second start. Steps are those of `metric` (ops/glm.h), whose rows are in the
 * order of the vector. `record` gets for each point, and in it for each chain, 2 d + 1 numbers: log
 * density, gradient, and the next point, except for the last. */
typedef struct {
  size_t points, vectors;
  const double *start; /* d x vectors: position, momentum, step; and those of the second start */
  const size_t *turn;  /* of each chain; `points`: there is no second start */
  const scl_glm_walk_metric *metric; /* of each chain; NULL: L = I of all */
  double *record;
} scl_walk;

typedef struct {
  size_t dimension;
  /* For each of `vectors` columns of x (unconstrained) a column of `to`: the log density, with the
   * Jacobian, and its gradient behind it. */
  scl_status (*run)(void *self, const double *x, size_t vectors, double *to);
  void *self;       /* borrowed */
  bool any_vectors; /* run() takes any number of vectors; false: always the same number */
  /* NULL; or `run` in two calls, of which end() waits and gets the same points: requests of two
   * slots may run at once. Faster from this number of vectors on. */
  scl_status (*begin)(void *self, int slot, const double *x, size_t vectors);
  scl_status (*end)(void *self, int slot, const double *x, size_t vectors, double *to);
  size_t overlaps_from;
  /* NULL; or evaluate, in two calls like these, up to `most` points of trajectories with one
   * request to a device, which takes as long as wait() evaluations of so many vectors. valid[v]: of
   * how many points of chain v, from the first on, the record holds. The points may differ in
   * rounding from those that the chain computes. */
  scl_status (*begin_walk)(void *self, int slot, const scl_walk *w);
  scl_status (*end_walk)(void *self, int slot, const scl_walk *w, size_t *valid);
  size_t most;
  double (*wait)(void *self, size_t vectors);
} scl_target;

/* A compiled function of the whole vector; with memory of its own. */
scl_target scl_target_program(scl_program *p);
scl_target scl_target_evaluator(scl_evaluator *e, size_t dimension);

/* A likelihood whose coefficients are untransformed parts of the vector, plus a program of the
 * whole vector: priors and Jacobians. All vectors are evaluated in one pass over the likelihood's
 * data. */
enum { SCL_TARGET_ALPHA, SCL_TARGET_BETA, SCL_TARGET_AUX, SCL_TARGET_PARTS };
typedef struct {
  scl_glm *glm;         /* of a family with one linear predictor; borrowed, as the program */
  scl_program *program; /* NULL: nothing is added */
  size_t dimension;
  size_t at[SCL_TARGET_PARTS], count[SCL_TARGET_PARTS]; /* numbers in the vector; 0: none */
  bool log_aux;                                         /* the vector has its logarithm */
  /* NULL; or dimension x 3: m, a and b of ops/glm.h, if the program is a sum of such priors of
   * alpha and beta. Trajectories follow them; values and gradients are those of the program, and a
   * point counts only if it agrees. Borrowed. */
  const double *priors;
} scl_likelihood_target;
scl_target scl_target_likelihood(scl_likelihood_target *l);

#endif
