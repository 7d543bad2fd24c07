/* Iteratively reweighted least squares on the host for the links and variance functions of R. */
#ifndef SCL_ENGINE_HOST_IRLS_H
#define SCL_ENGINE_HOST_IRLS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* In the order of known_links of R/glm-irls.R. */
typedef enum {
  SCL_LINK_LOGIT,
  SCL_LINK_PROBIT,
  SCL_LINK_CAUCHIT,
  SCL_LINK_CLOGLOG,
  SCL_LINK_LOG,
  SCL_LINK_IDENTITY,
  SCL_LINK_SQRT,
  SCL_LINK_INVERSE,
  SCL_LINK_INVERSE_SQUARE,
  SCL_LINKS
} scl_link;

/* In the order of known_variances there: mu (1 - mu), mu, mu^2, mu^3, 1, mu + mu^2 / theta. */
typedef enum {
  SCL_VARIANCE_BINOMIAL,
  SCL_VARIANCE_MU,
  SCL_VARIANCE_MU2,
  SCL_VARIANCE_MU3,
  SCL_VARIANCE_ONE,
  SCL_VARIANCE_THETA,
  SCL_VARIANCES
} scl_variance;

/* The search ends as described in R/glm-irls.R; it makes at most `most` steps. */
typedef struct {
  size_t n, p;
  const double *x, *y, *eta;     /* x: n x p, without gaps; eta: linear predictors at the start */
  const double *weight, *offset; /* n, or NULL */
  scl_link link;
  scl_variance variance;
  double theta;
  bool known_dispersion;
  double tolerance, skew; /* no pivot of the factor, scaled to a diagonal of 1, is below skew */
  int most;
  /* results: coefficients (p), X' W X (p x p) before the last step; there the deviance and the
   * length of that step in standard errors */
  double *beta, *information;
  double deviance, decrement;
  int steps;
} scl_irls;

/* *found: whether the search converged. It does not in difficult cases, which R's solver handles:
 * invalid means at the start, steps that must become small, columns that are collinear or nearly
 * so. Results are then undefined. SCL_E_MEMORY, SCL_E_INTERRUPT. */
scl_status scl_host_irls(scl_irls *at, bool *found);

#endif
