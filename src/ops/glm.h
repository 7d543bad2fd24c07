/* Likelihoods of generalised linear models: log density of y given the linear predictor
 * eta = alpha + X beta, summed over the observations, with its gradients, for one parameter vector
 * or several in one read of X.
 *
 * Shapes, for M parameter vectors: y has n values, X is n x p (n and p may be 0). Of the coupled
 * family categorical_logit with C classes, alpha is C x M and beta p x C x M; of the others alpha
 * is M numbers or n x M, and beta p x M. The auxiliary parameter: sigma and phi M numbers or n x M,
 * cuts (C - 1) x M. All constants of the density are kept. */
#ifndef SCL_OPS_GLM_H
#define SCL_OPS_GLM_H

#include "engine/pass/glm.h"

/* Name as the user knows it ("bernoulli_logit"), and back: SCL_E_ARGUMENT naming `family`, with the
 * known names in the message. */
const char *scl_glm_family_name(scl_glm_family family);
scl_status scl_glm_family_find(const char *name, scl_glm_family *out);

/* Gradients that can be requested; AUX: with respect to sigma, phi or cuts; Y: of normal_id only.
 */
enum { SCL_GLM_ALPHA = 1, SCL_GLM_BETA = 2, SCL_GLM_X = 4, SCL_GLM_AUX = 8, SCL_GLM_Y = 16 };

/* ---- a likelihood: data on one context with the workspaces that evaluations use again -------- */
typedef struct scl_glm scl_glm;

/* Observations in host memory: of y, and of the trials of binomial_logit (else NULL), there are n
 * or one for all rows. `weight` multiplies the log density of each observation: n positive numbers,
 * or NULL. With weights, counts of binomial_logit need not be integers: they may be proportions of
 * one trial that represents several. */
typedef struct {
  const double *y, *datum;
  size_t n_y, n_datum;
  const double *weight;
} scl_glm_data;

/* Keeps a reference to x (whose memory must not change) and a copy of the data. SCL_E_ARGUMENT
 * naming `y`, `trials` or `weights`, with the index of the first value outside the family's
 * support. */
scl_status scl_glm_create(scl_glm_family family, const scl_glm_data *data, scl_mat *x,
                          scl_glm **out);
void scl_glm_release(scl_glm *glm); /* accepts NULL */

scl_glm_family scl_glm_family_of(const scl_glm *glm);
scl_context *scl_glm_context(const scl_glm *glm); /* borrowed */
size_t scl_glm_nrow(const scl_glm *glm);
size_t scl_glm_ncol(const scl_glm *glm);
uint64_t scl_glm_bytes(const scl_glm *glm); /* of data and workspaces */

/* Parameters in host memory. */
typedef struct {
  size_t vectors;          /* M; 0 counts as 1 */
  size_t classes;          /* C of a coupled family; else 0 or 1 */
  bool row_alpha, row_aux; /* alpha, sigma or phi: n for each vector */
  const double *alpha, *beta, *aux;
  size_t n_alpha, n_beta, n_aux; /* numbers given */
} scl_glm_parameters;

/* Results; the pointers of gradients that are not wanted are not used. */
typedef struct {
  double *value;                    /* M */
  double *d_alpha, *d_beta, *d_aux; /* as the parameters */
  scl_mat **d_x;                    /* a new n x p matrix; only for one vector */
  double *d_y;                      /* n x M */
} scl_glm_results;

/* One evaluation, in one pass over X; waits. `wanted` is a sum of SCL_GLM_ALPHA, ... A density too
 * small for a double gives -infinity, and gradients that are not numbers. SCL_E_ARGUMENT for wrong
 * lengths, auxiliary parameters out of range and classes that y exceeds; SCL_E_NONFINITE, naming
 * the argument, when a parameter or x holds a NaN or an infinity, or the linear predictor
 * overflows. X is checked only if the result is not a number. */
scl_status scl_glm_evaluate(scl_glm *glm, const scl_glm_parameters *parameters, unsigned wanted,
                            const scl_glm_results *results);

/* The same in two calls, without a gradient by x or y and without parameters by row: evaluations of
 * two slots may run at once on a device, and the caller works meanwhile. Only if
 * scl_glm_overlaps(). scl_glm_end() waits; it gets the same arguments, and comes after each
 * scl_glm_begin() that succeeded, before any other use of the likelihood. */
enum { SCL_GLM_SLOTS = 2 };
bool scl_glm_overlaps(const scl_glm *glm);
scl_status scl_glm_begin(scl_glm *glm, int slot, const scl_glm_parameters *parameters,
                         unsigned wanted);
scl_status scl_glm_end(scl_glm *glm, int slot, const scl_glm_parameters *parameters,
                       unsigned wanted, const scl_glm_results *results);

/* ---- leapfrog trajectories ------------------------------------------------------------------- */
/* The largest sensible number of points of a walk: fewer where an evaluation takes long,
 * since the caller may not need the later ones; 1 if walks are not possible: they need an engine
 * that is not synchronous and a family with one predictor and no auxiliary parameter. */
size_t scl_glm_walk_most(const scl_glm *glm);
/* Roughly the number of evaluations of so many vectors that take as long as a request and its
 * answer. */
double scl_glm_walk_wait(const scl_glm *glm, size_t vectors);

/* One trajectory for each of `vectors` chains, d = 1 + p numbers each: alpha and beta. Of `points`
 * positions the first is given, and each further one is one step on, except where a chain turns:
 * there it continues from a second start, the other end of its trajectory. A momentum is that of
 * half a step before its position. For each point, and in it for each chain, `record` gets 2 d + 1
 * numbers: the log density, its gradient, and (not for the last point) the next position.
 *
 * A prior of each parameter x may change the steps, if its derivative is (m - x) / (a + b (x -
 * m)^2), as of a normal (b = 0) or Student's t density. Then it is in all gradients but the last
 * point's, and in no density.
 *
 * A step moves along L p, and the momentum along L' gradient. L of each chain is D (I + A w A'); if
 * it is dense, the lower triangle of A, which has L' in the upper one. Rows are in the order of the
 * chain's own parameters, as its sums over them: beta, with alpha before it, behind it, or without
 * alpha. */
typedef struct {
  bool dense;
  size_t columns;      /* of A */
  const double *scale; /* D; NULL: the identity, and all there is to do is in the steps */
  const double *weight, *matrix;
} scl_glm_walk_metric;
typedef enum { SCL_GLM_ALPHA_FIRST, SCL_GLM_ALPHA_LAST, SCL_GLM_ALPHA_ABSENT } scl_glm_walk_order;
typedef struct {
  size_t points, vectors; /* points: 2 to scl_glm_walk_most() */
  const double *start;    /* d x vectors: position, momentum, step; and those of the second start */
  const size_t *turn;     /* of each chain: the point of the second start; `points`: none */
  const double *priors;   /* d x 3: m, a (infinite: a flat prior) and b; NULL: all are flat */
  double *record;
  const scl_glm_walk_metric *metric; /* of each chain; NULL: L = I of all */
  scl_glm_walk_order order;          /* of the metrics' rows */
} scl_glm_walk_task;
/* In two calls, as an evaluation above; only if scl_glm_walk_most() is above 1. valid[v]: of how
 * many points of chain v, from the first on, value and gradient are what scl_glm_evaluate() gives,
 * to rounding; at the next one it would fail. Without a record scl_glm_walk_end() only waits. */
scl_status scl_glm_walk_begin(scl_glm *glm, int slot, const scl_glm_walk_task *w);
scl_status scl_glm_walk_end(scl_glm *glm, int slot, const scl_glm_walk_task *w, size_t *valid);

#endif
