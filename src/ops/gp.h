/* Gaussian-process regression: y ~ N(H b, C) with C = K + noise, for each column of y.
 *
 * An object keeps its data and workspaces in one context, so that an evaluation uploads parameters
 * and downloads a few numbers. It holds one n x n matrix and, on a device from the first gradient
 * on, a second one; none of these is transferred. The host needs the second one for leave-one-out
 * gradients only.
 *
 * Formulas (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and
 * 5), with C = L L', A = H' C^-1 H, P = C^-1 - C^-1 H A^-1 H' C^-1 (C^-1 without a basis), a = P y:
 *   log marginal likelihood = -y' a / 2 - sum log L_ii - n log(2 pi) / 2
 *   its derivatives         = sum_ij (a a' - C^-1)_ij dC_ij / 2
 *   predictions at x*       : h*' b + k*' a, with variance k** - k*' C^-1 k* + r' A^-1 r, where
 *                             r = h* - H' C^-1 k*
 * b = A^-1 H' C^-1 y is the generalised least squares estimate, which maximises the likelihood for
 * given parameters (SCL_GP_PROFILE: the derivatives are those of the profile likelihood). With b
 * integrated out under a flat prior (SCL_GP_INTEGRATE) the likelihood has the terms - log|A| / 2 +
 * q log(2 pi) / 2 more, and P in place of C^-1 in its derivatives.
 * Leave-one-out: y_i given the others is normal with mean y_i - a_i / P_ii and variance 1 / P_ii;
 * b is estimated without y_i too. */
#ifndef SCL_OPS_GP_H
#define SCL_OPS_GP_H

#include "ops/covariance.h"

typedef struct scl_gp scl_gp;

/* Borrowed, host memory, dense columns of n numbers. */
typedef struct {
  size_t n, p, outputs, basis_columns;
  const double *x;     /* n x p, p >= 1 */
  const double *y;     /* n x outputs, outputs >= 1 */
  const double *basis; /* n x basis_columns: H, of full rank; columns best of about the same size */
  const double *spread; /* n x 2: s and v of noise^2 s_i + v_i; NULL: 1 and 0 */
} scl_gp_data;

/* Observations, columns of x, of y, of the basis. */
typedef struct {
  size_t n, p, outputs, q;
} scl_gp_shape;

typedef enum { SCL_GP_PROFILE = 0, SCL_GP_INTEGRATE } scl_gp_trend;
typedef enum { SCL_GP_MARGINAL = 0, SCL_GP_LEAVE_ONE_OUT } scl_gp_objective;

/* Copies the data to `ctx`. SCL_E_ARGUMENT, SCL_E_NONFINITE naming x, y, mean or variance,
 * SCL_E_MEMORY naming the largest n. */
scl_status scl_gp_create(scl_context *ctx, const scl_gp_data *data, scl_gp **out);
void scl_gp_release(scl_gp *gp); /* accepts NULL */

scl_context *scl_gp_context(const scl_gp *gp); /* borrowed */
scl_gp_shape scl_gp_shape_of(const scl_gp *gp);
uint64_t scl_gp_bytes(const scl_gp *gp); /* what it holds now */

/* The largest n for which `ctx` has room for this number of n x n matrices now; 0: unknown. */
size_t scl_gp_largest(const scl_context *ctx, int matrices);

/* The objective, summed over the columns of y; b (basis_columns x outputs), unless NULL; and,
 * unless `gradient` is NULL, the derivatives with respect to the logarithms of the parameters
 * (scl_covariance_count() numbers). One wait, at the end. SCL_E_NOT_PD with the order of the
 * failing leading minor, SCL_E_SINGULAR for a basis without full rank, SCL_E_ARGUMENT, SCL_E_MEMORY
 * before any work. */
scl_status scl_gp_evaluate(scl_gp *gp, const scl_covariance *kernel, scl_gp_objective objective,
                           scl_gp_trend trend, double *value, double *b, double *gradient);

/* The same for a given C instead of a kernel (n x n, its lower triangle is read): `weights`, unless
 * NULL, is a new symmetric matrix, the derivatives with respect to C. */
scl_status scl_gp_evaluate_given(scl_gp *gp, const scl_mat *c, scl_gp_objective objective,
                                 scl_gp_trend trend, double *value, double *b, scl_mat **weights);

/* Conditions on the data: keeps the factor for the functions below, until the next evaluation.
 * Results: the marginal likelihood, b, A^-1 (basis_columns squared) and the weights a (n x
 * outputs). Errors as above. */
scl_status scl_gp_condition(scl_gp *gp, const scl_covariance *kernel, scl_gp_trend trend,
                            double *value, double *b, double *a_inverse, double *weights);

scl_status scl_gp_condition_given(scl_gp *gp, const scl_mat *c, scl_gp_trend trend, double *value,
                                  double *b, double *a_inverse, double *weights);

/* A new object for more observations, conditioned likewise, from a conditioned one whose n
 * observations are the first ones of `data`; takes O(n^2) for each new one. */
scl_status scl_gp_extend(const scl_gp *gp, const scl_gp_data *data, const scl_covariance *kernel,
                         scl_gp_trend trend, double *value, double *b, double *a_inverse,
                         double *weights, scl_gp **out);

/* For a conditioned object, at m points (host memory: x m x p, basis m x basis_columns), with the
 * kernel that it was conditioned with: mean (m x outputs), and unless NULL variance (m) and
 * covariance (m x m) of the function, without noise and white terms. Rounding may leave a variance
 * slightly below zero. */
scl_status scl_gp_predict(scl_gp *gp, const scl_covariance *kernel, const double *x,
                          const double *basis, size_t m, double *mean, double *variance,
                          double *covariance);

/* The same for given covariances: `cross` (n x m) with the observations; `within` (m x m) of the
 * points, if `covariance` is not NULL; `variance` contains the variances before the observations.
 */
scl_status scl_gp_predict_given(scl_gp *gp, const scl_mat *cross, const scl_mat *within,
                                const double *basis, double *mean, double *variance,
                                double *covariance);

/* Likewise the derivatives of k*' a with respect to the points, for one column of y: m x p. */
scl_status scl_gp_slope(scl_gp *gp, const scl_covariance *kernel, const double *x, size_t m,
                        size_t output, double *slope);

/* Leave-one-out: 1 / variance is P_ii; diagonal (n). */
scl_status scl_gp_precisions(scl_gp *gp, double *diagonal);

#endif
