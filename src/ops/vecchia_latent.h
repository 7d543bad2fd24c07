/* A latent Gaussian process by Vecchia's approximation, for observations that are not normal: the
 * precision matrix of the process at the observations is Q = W W' with the weights of
 * engine/pass/vecchia.h, without noise and white terms; given the data it is nearly normal with P =
 * Q + D, D diagonal, positive for log-concave densities (Zilber and Katzfuss, 2021). P has an
 * incomplete factor V V' in the pattern of W, from the last point to the first: exact with n - 1
 * neighbours, and for D = 0.
 * On the host. Vectors and columns have n numbers in the order of the rows of x. W and V are (m +
 * 1) x n matrices: a column for each point of the order, its neighbours first. */
#ifndef SCL_OPS_VECCHIA_LATENT_H
#define SCL_OPS_VECCHIA_LATENT_H

#include "ops/vecchia.h"

scl_status scl_vecchia_latent_weights(scl_vecchia *v, const scl_covariance *kernel,
                                      double *weights);
/* g' Q g */
scl_status scl_vecchia_latent_square(const scl_vecchia *v, const double *weights, const double *g,
                                     double *out);
/* x := P^-1 x for `count` columns, by conjugate gradients with the factor, which is written;
 * `half`: half of log|P| - log|Q| by it. SCL_E_NOT_PD where D has negative elements and P, or its
 * incomplete factor, is not positive definite. */
scl_status scl_vecchia_latent_solve(const scl_vecchia *v, const double *weights, const double *d,
                                    size_t count, double *x, double *factor, double *half);
/* At points x (count x p): b' columns for the coefficients b that a point has for its neighbours
 * (count x columns), and the variances given the data. */
scl_status scl_vecchia_latent_predict(scl_vecchia *v, const scl_covariance *kernel, const double *x,
                                      size_t count, const double *given, size_t columns,
                                      const double *factor, double *mean, double *variance);

#endif
