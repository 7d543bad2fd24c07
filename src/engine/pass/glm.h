/* One evaluation of a likelihood (ops/glm.h) as an engine sees it; the engine's function waits.
 *
 * Of M parameter vectors each has C predictors a row (C classes of a coupled family, else 1): there
 * are P = M C predictors, the columns of alpha and beta, C after C. */
#ifndef SCL_ENGINE_PASS_GLM_H
#define SCL_ENGINE_PASS_GLM_H

#include "base/matrix.h"
#include "kernels/include/port.h"
#include "kernels/include/glm_families.h" /* scl_glm_family */

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
