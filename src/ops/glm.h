/* Likelihoods of generalised linear models: log density of y given the linear predictor
 * eta = alpha + X beta, summed over the observations, with its gradients, for one parameter vector
 * or several in one read of X.
 *
 * Shapes, for M parameter vectors: y has n values, X is n x p (n and p may be 0). Of the coupled
 * family categorical_logit with C classes, alpha is C x M and beta p x C x M; of the others alpha
 * is M numbers or n x M, and beta p x M. The own parameter: sigma M numbers or n x M, phi M
 * numbers, cuts (C - 1) x M. All constants of the density are kept. */
#ifndef SCL_OPS_GLM_H
#define SCL_OPS_GLM_H

#include "kernels/include/port.h"
#include "kernels/include/glm_families.h" /* scl_glm_family */
#include "base/matrix.h"

/* Name as the user knows it ("bernoulli_logit"), and back: SCL_E_ARGUMENT naming `family`, with the
 * known names in the message. */
const char *scl_glm_family_name(scl_glm_family family);
scl_status scl_glm_family_find(const char *name, scl_glm_family *out);

/* Gradients that can be asked for; OWN: by sigma, phi or cuts. */
enum { SCL_GLM_ALPHA = 1, SCL_GLM_BETA = 2, SCL_GLM_X = 4, SCL_GLM_OWN = 8 };

/* ---- a likelihood: data on one context with the workspaces that evaluations use again -------- */
typedef struct scl_glm scl_glm;

/* Observations in host memory: of y, and of the trials of binomial_logit (else NULL), there are n
 * or one for all rows. `weight` multiplies the log density of each observation: n numbers above 0,
 * or NULL. With weights counts of binomial_logit need not be whole: shares of one trial that stands
 * for many are such. */
typedef struct {
  const double *y, *datum;
  size_t n_y, n_datum;
  const double *weight;
} scl_glm_data;

/* Keeps a reference to x (whose memory must not change) and a copy of the data. SCL_E_ARGUMENT
 * naming `y`, `trials` or `weights`, with the place of the first value outside the family's
 * support. */
scl_status scl_glm_create(scl_glm_family family, const scl_glm_data *data, scl_mat *x,
                          scl_glm **out);
void scl_glm_release(scl_glm *glm); /* accepts NULL */

scl_glm_family scl_glm_family_of(const scl_glm *glm);
scl_context *scl_glm_context(const scl_glm *glm); /* borrowed */
size_t scl_glm_nrow(const scl_glm *glm);
size_t scl_glm_ncol(const scl_glm *glm);
uint64_t scl_glm_bytes(const scl_glm *glm); /* data and workspaces */

/* Parameters in host memory. */
typedef struct {
  size_t vectors;          /* M; 0 counts as 1 */
  size_t classes;          /* C of a coupled family; else 0 or 1 */
  bool row_alpha, row_own; /* alpha, sigma: n for each vector */
  const double *alpha, *beta, *own;
  size_t n_alpha, n_beta, n_own; /* numbers given */
} scl_glm_parameters;

/* Results; the pointers of gradients that are not wanted are not used. */
typedef struct {
  double *value;                    /* M */
  double *d_alpha, *d_beta, *d_own; /* as the parameters */
  scl_mat **d_x;                    /* a new n x p matrix; only for one vector */
} scl_glm_results;

/* One evaluation, in one pass over X; waits. `wanted` is a sum of SCL_GLM_ALPHA, ...
 * A density too small for a double gives -infinity, and gradients that are not numbers.
 * SCL_E_ARGUMENT for wrong lengths, own parameters out of range and classes that y exceeds;
 * SCL_E_NONFINITE, naming the argument, when a parameter or x holds a NaN or an infinity, or the
 * linear predictor overflows. X is looked at only after the result has turned out not to be a
 * number. */
scl_status scl_glm_evaluate(scl_glm *glm, const scl_glm_parameters *parameters, unsigned wanted,
                            const scl_glm_results *results);

/* ---- the same as an engine sees it (base/engine.h: glm; waits) --------------------------------
 *
 * Of M parameter vectors each has C predictors a row (C classes of a coupled family, else 1): there
 * are P = M C predictors, the columns of alpha and beta, C after C. */
typedef struct scl_glm_pass {
  scl_glm_family family;
  scl_block x, y; /* n x p; y, the datum where the family has one, the weight if weighted */
  size_t vectors, classes; /* M, C >= 1 */
  size_t owns, own_sums;   /* numbers of the own parameter, and of sums of its derivatives, each for
                              one vector */
  bool row_alpha, row_own; /* one for each row and predictor, or row and vector */
  bool gradient;           /* the derivatives by beta are wanted */
  bool weighted;           /* each observation's terms are multiplied by its weight */
  const double *parameters; /* in host memory: 0; owns * M; alpha, P or n P; beta, p P; row_own, n M
                               (then owns is 0) */
  size_t parameter_count;
  double *results;      /* in host memory: values, M; own_sums * M; d_alpha, P (sums also where
                           alpha is by row); d_beta, p P, undefined unless wanted */
  double *d_alpha_rows; /* NULL, or n P */
  double *d_own_rows;   /* NULL, or n M; only with row_own */
  scl_block d_x;        /* n x p, or no buffer: not wanted */
  scl_block *work;      /* the engine's workspace between calls: made by it when it has no
                           buffer or is too small, released by the caller */
  bool *abandoned;      /* set when, after a fault, a device may still use the host memory
                           above: it must never be freed */
} scl_glm_pass;

#endif
