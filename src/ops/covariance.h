/* Covariance matrices of Gaussian processes, and their reverse mode.
 *
 * A kernel has terms, each a covariance function of some columns of x
 * (inst/kernels/include/covariance_functions.h), and is a sum of products of them:
 *   k(x, x') = sum_g prod_{t in g} k_t(x, x'),  plus noise where x and x' are the same observation
 * (the diagonal of a symmetric matrix): noise^2, or noise^2 s_i + v_i for given s and v.
 *
 * Derivatives are with respect to the logarithms of the parameters, in this order: the terms' sd,
 * the entries' lengthscales, the terms' extra parameters (0 for types that have none), the noise:
 * scl_covariance_count() of them. */
#ifndef SCL_OPS_COVARIANCE_H
#define SCL_OPS_COVARIANCE_H

#include "engine/pass/covariance.h"

/* The type called `name`; SCL_E_ARGUMENT naming "kernel". */
scl_status scl_covariance_find(const char *name, scl_covariance_type *out);

/* SCL_E_ARGUMENT naming "kernel" unless the kernel is valid for inputs of p columns. */
scl_status scl_covariance_check(const scl_covariance *kernel, size_t p);

/* out[i] = k(x_i, x_i) for the n rows of x (host memory, leading dimension ld), without noise and
 * white terms. */
void scl_covariance_variances(const scl_covariance *kernel, const double *x, size_t n, size_t ld,
                              double *out);

/* Covariances of the rows of x1 (m x p) and x2 (n x p): a new m x n matrix. x2 == NULL is x1, with
 * noise, and a symmetric result. SCL_E_ARGUMENT. */
scl_status scl_covariance_matrix(const scl_covariance *kernel, const scl_mat *x1, const scl_mat *x2,
                                 scl_mat **out);

/* Reverse mode: from weights = dF/dK (m x n; when x2 is NULL symmetric, and its lower triangle is
 * read) the derivatives of F, scl_covariance_count() numbers. Waits. */
scl_status scl_covariance_adjoint(const scl_covariance *kernel, const scl_mat *x1,
                                  const scl_mat *x2, const scl_mat *weights, double *out);

/* The same with respect to the points: a new matrix of the shape of x1. */
scl_status scl_covariance_inputs(const scl_covariance *kernel, const scl_mat *x1, const scl_mat *x2,
                                 const scl_mat *weights, scl_mat **out);

#endif
