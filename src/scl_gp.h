/* Gaussian-process regression with Gaussian noise: y ~ N(mean, K + noise^2 I).
 *
 * An object keeps x, y and the workspaces in one context, so that an evaluation sends parameters
 * and reads a handful of numbers. It holds one n x n matrix, and a second one from the first
 * gradient on (besides what the engine's potri needs while it runs).
 *
 * Formulas (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006), with
 * C = K + noise^2 I = L L' and a = C^-1 (y - mean):
 *   log marginal likelihood = -(y - mean)' a / 2 - sum log L_ii - n log(2 pi) / 2
 *   its derivatives         = sum_ij (a a' - C^-1)_ij dC_ij / 2
 *   predictions at x*       : mean + k*' a, with variance k** - k*' C^-1 k*
 * An estimated mean is the generalised least squares one, b = 1' C^-1 y / 1' C^-1 1, which
 * maximises the likelihood for given parameters; the derivatives are those of this profile
 * likelihood, and the variance of a prediction has the term (1 - 1' C^-1 k*)^2 / 1' C^-1 1 for its
 * uncertainty. */
#ifndef SCL_GP_H
#define SCL_GP_H

#include "scl_covariance.h"

typedef struct scl_gp scl_gp;

typedef struct {
  bool estimated;
  double value; /* when not estimated */
} scl_gp_mean;

/* Copies x (n x p) and y (n) to `ctx`; both finite, n >= 1, p >= 1. SCL_E_ARGUMENT,
 * SCL_E_NONFINITE, SCL_E_MEMORY. */
scl_status scl_gp_create(scl_context *ctx, const double *x, const double *y, size_t n, size_t p,
                         scl_gp **out);
void scl_gp_release(scl_gp *gp); /* accepts NULL */

scl_context *scl_gp_context(const scl_gp *gp); /* borrowed */
size_t scl_gp_rows(const scl_gp *gp);
uint64_t scl_gp_bytes(const scl_gp *gp); /* what it holds now */

/* The log marginal likelihood, the mean, and, unless `gradient` is NULL, the derivatives by the
 * logarithms of the parameters (scl_covariance_count() numbers). One wait, at the end.
 * SCL_E_NOT_PD with the order of the failing leading minor, SCL_E_ARGUMENT. */
scl_status scl_gp_evaluate(scl_gp *gp, const scl_covariance *kernel, scl_gp_mean mean,
                           double *value, double *mean_out, double *gradient);

/* Conditions on the data: keeps the factor and the weights for scl_gp_predict(), until the next
 * evaluation. Gives the mean and the n weights a = C^-1 (y - mean). SCL_E_NOT_PD. */
scl_status scl_gp_condition(scl_gp *gp, const scl_covariance *kernel, scl_gp_mean mean,
                            double *mean_out, double *weights);

/* Mean (m), and where not NULL variance (m) and covariance (m x m) of the function, without noise,
 * at the rows of x (m x p, host memory), for the kernel that scl_gp_condition() was given. Rounding
 * may leave a variance slightly below zero. */
scl_status scl_gp_predict(scl_gp *gp, const scl_covariance *kernel, const double *x, size_t m,
                          double *mean, double *variance, double *covariance);

#endif
