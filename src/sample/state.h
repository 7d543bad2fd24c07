/* The state of a chain; between the files of src/sample. */
#ifndef SCL_SAMPLE_STATE_H
#define SCL_SAMPLE_STATE_H

#include "sample/adapt.h"
#include "sample/chain.h"
#include "sample/lowrank.h"
#include "sample/metric.h"
#include "sample/sums.h"

typedef enum { SCL_STAGE_FIRST, SCL_STAGE_SEARCH, SCL_STAGE_LEAF, SCL_STAGE_STATIC } scl_stage;

typedef struct {
  double *q, *p, *g;
} scl_phase_point;

/* A finished subtree: momenta at its ends, sum of its momenta. */
typedef struct {
  double *first, *last, *rho;
} scl_subtree;

struct scl_chain {
  scl_chain_options options; /* inverse_metric is NULL */
  scl_random stream;
  scl_adaptation adapt;
  scl_stage stage;
  scl_chain_stop stop;
  double *memory; /* all vectors */

  double *q, *g, lp; /* the position of the chain, its gradient and log density */
  double *at, *p;    /* the point to be evaluated, and the momentum on the way there */
  double *answer;    /* value and gradient */
  /* Of the momentum: square roots of the inverse metric; or its factor (sample/metric.h), or one
   * of low rank; and a vector times it. */
  double *scale, *factor, *product;
  /* With a sparse precision gradients are kept as W' g. `white`: of the answer; a product with W,
   * or its inverse, and room for it. */
  double *white, *moved, *room_of_half;
  scl_lowrank lowrank;
  double *work;                /* of scl_lowrank_fit() */
  double step_size, direction; /* 1 or -1 */
  double energy0, energy1;     /* at the start of the transition, and of its result */
  double metropolis;
  bool divergent, failed; /* at a point that could not be evaluated */
  int doubling;           /* search: -1 not known yet, 1 doubling, 0 halving */
  bool off;               /* the device rounds otherwise: no points in advance */

  scl_phase_point end[2]; /* of the trajectory */
  double *rho;            /* sum of its momenta */
  double log_weight;
  int depth, leapfrog;
  /* the doubling in progress */
  int side, size, leaf;
  double tree_weight;
  const double *u; /* its uniform numbers */
  scl_phase_point proposal;
  double proposal_lp, proposal_energy;
  scl_subtree *node;  /* finished ones on the left, one for each level */
  double *sum, *room; /* momenta of the subtree that ends here; and a temporary one */

  int iteration, done, rejections;
  int failures, warmup_failures, failed_iterations; /* as in scl_chain_view */
  double *lost;                                     /* the last point that failed */
  double evaluations, elapsed, warmup_seconds, run_started;
  double *draws, *figures;
};

/* The number of doubles in `memory`; the vectors in it. */
size_t scl_chain_vectors(const scl_chain_options *o);
void scl_chain_divide(scl_chain *c);

static inline double scl_kinetic(const scl_chain *c, const double *p) {
  return 0.5 * scl_sum_of_products(c->options.dimension, p, p);
}

static inline void scl_assign(const scl_chain *c, double *to, const double *from) {
  for (size_t k = 0; k < c->options.dimension; k++) to[k] = from[k];
}

static inline bool scl_is_diagonal(const scl_chain *c) {
  const scl_chain_options *o = &c->options;
  return c->factor == NULL && (o->rank == 0 || (o->chooses && *c->lowrank.rank == 0.0));
}

/* c->product <- L x, or L' x, of a metric that is not diagonal; false: it is. */
static inline bool scl_multiply(const scl_chain *c, bool transposed, const double *x) {
  if (scl_is_diagonal(c)) return false;
  if (c->factor != NULL) {
    scl_metric_times(c->options.dimension, c->factor, transposed, x, c->product);
  } else {
    scl_lowrank_times(&c->lowrank, transposed, x, c->product);
  }
  return true;
}

/* p <- p + half a step along g; `again`: after the same, when c->product has the same product. The
 * step is size * scale, in this order, for equal bits. */
static inline void scl_half_step(const scl_chain *c, const double *g, double *p, bool again) {
  if (again ? !scl_is_diagonal(c) : scl_multiply(c, true, g)) {
    const double half = 0.5 * (c->direction * c->step_size);
    for (size_t k = 0; k < c->options.dimension; k++) p[k] += half * c->product[k];
    return;
  }
  for (size_t k = 0; k < c->options.dimension; k++) {
    const double step = c->step_size * c->scale[k];
    p[k] += 0.5 * (c->direction * step) * g[k];
  }
}

/* The same with W, which multiplies what the other parts of the metric give. */
static inline void scl_sparse_step(const scl_chain *c, const double *from) {
  const size_t d = c->options.dimension;
  const double step = c->direction * c->step_size;
  if (!scl_multiply(c, false, c->p)) {
    for (size_t k = 0; k < d; k++) c->product[k] = c->scale[k] * c->p[k];
  }
  scl_sparse_apply_half(c->options.sparse, SCL_SPARSE_BACKWARD, c->product, c->moved,
                        c->room_of_half);
  for (size_t k = 0; k < d; k++) c->at[k] = from[k] + step * c->moved[k];
}

/* at <- from + step * p */
static inline void scl_full_step(const scl_chain *c, const double *from) {
  if (c->options.sparse != NULL) {
    scl_sparse_step(c, from);
    return;
  }
  if (scl_multiply(c, false, c->p)) {
    const double step = c->direction * c->step_size;
    for (size_t k = 0; k < c->options.dimension; k++) c->at[k] = from[k] + step * c->product[k];
    return;
  }
  for (size_t k = 0; k < c->options.dimension; k++) {
    const double step = c->step_size * c->scale[k];
    c->at[k] = from[k] + c->direction * step * c->p[k];
  }
}

enum { SCL_LARGEST_ERROR = 1000 }; /* of the energy, above which a trajectory is divergent */

enum { SCL_LOOK_AT_CLOCK = 4 }; /* evaluations, or requests, between looks */

/* Sets the metric (sample/chain_metric.c): as given; false: it is not positive definite. */
bool scl_chain_set_metric(scl_chain *c, const double *inverse);
/* From the positions of the window. If rounding makes the matrix indefinite, only its diagonal is
 * used. */
void scl_chain_take_metric(scl_chain *c);
/* That of a chain with the same options. */
void scl_chain_copy_metric(scl_chain *c, const scl_chain *from);

/* Takes value and gradient in c->answer (sample/chain.c). */
scl_status scl_chain_take(scl_chain *c);

/* ---- points evaluated in advance (sample/walk.c) --------------------------------------------- */
/* Points of the trajectories in progress, by walks of the target, of chains that are evaluated
 * together. A chain does not depend on them: it takes a point if that is, bit for bit, the one that
 * it asks for. If the device rounds differently, which is noticed at once, no more are
 * evaluated. */
typedef struct scl_ahead scl_ahead;
/* For `count` chains like this one. *out is NULL without memory, or if there is nothing to gain. */
void scl_ahead_begin(const scl_chain *like, size_t vectors, const scl_target *target,
                     scl_ahead **out);
void scl_ahead_end(scl_ahead *a); /* accepts NULL */
/* Asks for the points that `count` chains will need next, the first of each in any case; or for
 * none (scl_ahead_asked()), and the caller is to evaluate the points that the chains ask for. A
 * NULL asks for none. */
scl_status scl_ahead_ask(scl_ahead *a, int slot, scl_chain *const *chain, size_t count);
bool scl_ahead_asked(const scl_ahead *a);
/* Waits for them. The chains are the same, and have taken nothing since. */
scl_status scl_ahead_receive(scl_ahead *a, int slot, scl_chain *const *chain, size_t count);
/* Both. */
scl_status scl_ahead_fill(scl_ahead *a, scl_chain *const *chain, size_t count);
/* Whether each chain has got a point since it was last asked. */
bool scl_ahead_filled(const scl_ahead *a);
/* Value and gradient at the point of the chain in this lane into c->answer, if they are there. */
bool scl_ahead_take(scl_ahead *a, size_t lane, scl_chain *c);

/* ---- the no-U-turn sampler (sample/tree.c) -------------------------------------------------- */
/* Begins a transition with momentum c->p; the next point is in c->at. */
scl_status scl_tree_begin(scl_chain *c);
/* Takes value and gradient at it; *more: there is a next one. */
scl_status scl_tree_receive(scl_chain *c, double value, const double *gradient, bool *more);

#endif
