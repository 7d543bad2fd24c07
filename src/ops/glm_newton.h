/* Newton's method for small likelihoods of generalised linear models in host memory. */
#ifndef SCL_OPS_GLM_NEWTON_H
#define SCL_OPS_GLM_NEWTON_H

#include "ops/glm.h"

/* The search stops when the Newton decrement, the distance to the mode in standard errors, is at
 * most `tolerance`; it makes at most `most` steps. */
typedef struct {
  const double *x;      /* n x p, without gaps: the predictors of the likelihood */
  const double *y;      /* n */
  const double *datum;  /* n, of families that have one */
  const double *weight; /* n, or NULL */
  double tolerance;
  int most;
  /* results: the mode, p; there the value, the gradient (p), and minus the second derivatives (p x
   * p) of the last step's start; the smallest diagonal element of its factor, scaled to a diagonal
   * of 1 */
  double *beta, *gradient, *information;
  double value, decrement, least;
  int steps;
} scl_glm_search;

/* Whether the search knows the family: no auxiliary parameter, one linear predictor with the
 * canonical link. */
bool scl_glm_searches(scl_glm_family family);

/* *found: whether the mode was found. It is not found in difficult cases, which R's search handles:
 * a matrix of second derivatives that is not positive definite or nearly zero in some direction,
 * tiny steps, too many steps. Results are then undefined. SCL_E_MEMORY; the statuses of
 * scl_glm_evaluate() but SCL_E_NONFINITE. */
scl_status scl_glm_newton(scl_glm *glm, scl_glm_search *search, bool *found);

#endif
