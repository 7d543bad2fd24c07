/* Likelihoods of generalised linear models: log density of y given the linear predictor
 * eta = alpha + X beta, summed over the observations, with its gradients.
 *
 * Shapes: y has n values, X is n x p, alpha is one number or n numbers, beta has p. n and p may be
 * 0. All constants of the density are kept. */
#ifndef SCL_GLM_H
#define SCL_GLM_H

#include "../inst/kernels/port.h"
#include "../inst/kernels/glm_families.h" /* scl_glm_family */
#include "scl_matrix.h"

/* Name as the user knows it ("bernoulli_logit"), and back: SCL_E_ARGUMENT naming `family`, with the
 * known names in the message. */
const char *scl_glm_family_name(scl_glm_family family);
scl_status scl_glm_family_find(const char *name, scl_glm_family *out);

/* Gradients that can be asked for. */
enum { SCL_GLM_ALPHA = 1, SCL_GLM_BETA = 2, SCL_GLM_X = 4 };

/* ---- a likelihood: data on one context with the workspaces that evaluations use again -------- */
typedef struct scl_glm scl_glm;

/* Keeps a reference to x (whose memory must not change) and a copy of y, of which there are n or
 * one for all rows. SCL_E_ARGUMENT naming `y`, with the place of the first value outside the
 * family's support. */
scl_status scl_glm_create(scl_glm_family family, const double *y, size_t n_y, scl_mat *x,
                          scl_glm **out);
void scl_glm_release(scl_glm *glm); /* accepts NULL */

scl_glm_family scl_glm_family_of(const scl_glm *glm);
scl_context *scl_glm_context(const scl_glm *glm); /* borrowed */
size_t scl_glm_nrow(const scl_glm *glm);
size_t scl_glm_ncol(const scl_glm *glm);
uint64_t scl_glm_bytes(const scl_glm *glm); /* data and workspaces */

/* Parameters in host memory. */
typedef struct {
  const double *alpha, *beta;
  size_t n_alpha, n_beta; /* 1 or n; p */
} scl_glm_parameters;

/* Results; the pointers of gradients that are not wanted are not used. */
typedef struct {
  double *value;
  double *d_alpha; /* n_alpha numbers */
  double *d_beta;  /* p numbers */
  scl_mat **d_x;   /* a new n x p matrix */
} scl_glm_results;

/* One evaluation, in one pass over X; waits. `wanted` is a sum of SCL_GLM_ALPHA, ...
 * SCL_E_ARGUMENT for wrong lengths; SCL_E_NONFINITE, naming the argument, when alpha, beta or x
 * holds a NaN or an infinity, or a finite input overflows. X is looked at only after the result
 * has turned out not to be finite. */
scl_status scl_glm_evaluate(scl_glm *glm, const scl_glm_parameters *parameters, unsigned wanted,
                            const scl_glm_results *results);

/* ---- the same as an engine sees it (scl_engine.h: glm; waits) -------------------------------- */
typedef struct scl_glm_pass {
  scl_glm_family family;
  scl_block x, y;           /* n x p, n x 1 */
  const double *parameters; /* in host memory: beta (p), then alpha (1, or n if rowwise) */
  double *results;          /* in host memory: value, d_beta (p), d_alpha (1, or n if rowwise);
                               what is not wanted is undefined */
  bool rowwise;             /* one alpha for each row */
  unsigned wanted;
  scl_block d_x;   /* n x p; used if SCL_GLM_X is wanted */
  scl_block *work; /* the engine's workspace between calls: made by it when it has no buffer or is
                      too small, released by the caller */
  bool *abandoned; /* set when, after a fault, a device may still use parameters and results: their
                      memory must never be freed */
} scl_glm_pass;

#endif
