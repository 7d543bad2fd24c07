/* Covariance matrices of Gaussian processes, and their reverse mode.
 *
 * A kernel is a sum of terms. A term has a type (inst/kernels/covariance_functions.h), a standard
 * deviation, and an entry for each column of x that it looks at, with that column's lengthscale:
 *   k(x, x') = sum_t sd_t^2 f_t(sum_e ((x_e - x'_e) / l_e)^2),  plus noise^2 where x and x' are the
 * same observation (the diagonal of a symmetric matrix).
 *
 * Derivatives are by the logarithms of the parameters, in this order: the terms' sd, the entries'
 * lengthscales, the noise: scl_covariance_count() of them. A lengthscale that several entries share
 * has the sum of theirs. */
#ifndef SCL_COVARIANCE_H
#define SCL_COVARIANCE_H

#include "../inst/kernels/port.h"
#include "../inst/kernels/covariance_functions.h"
#include "scl_engine.h"

typedef struct {
  scl_covariance_type type;
  int entries; /* >= 1 */
  double sd;   /* > 0 */
} scl_covariance_term;

/* Borrowed arrays; entries stand term after term. */
typedef struct {
  int terms, entries;
  const scl_covariance_term *term;
  const int *column;         /* 0-based */
  const double *lengthscale; /* > 0 */
  double noise;              /* standard deviation of the noise, >= 0 */
} scl_covariance;

/* What the engines' covariance and covariance_adjoint work on. */
struct scl_covariance_pass {
  const scl_covariance *kernel;
  scl_block x1, x2; /* observations in rows; x2 is x1 when symmetric */
  bool symmetric;   /* noise^2 on the diagonal; only the lower triangle is computed or read */
  /* covariance: k (rows of x1 by rows of x2) in this region (SCL_ALL unless symmetric) */
  scl_region region;
  scl_block k;
  /* covariance_adjoint: out (scl_covariance_count() x 1) = sum_ij w_ij dk_ij / d log parameters for
   * w = outer a a' + inner weights. Without `a` (no buffer) its part is zero. */
  scl_block weights, a;
  double outer, inner;
  scl_block out;
};

static inline int scl_covariance_count(const scl_covariance *kernel) {
  return kernel->terms + kernel->entries + 1;
}

/* The type called `name`; SCL_E_ARGUMENT naming "kernel". */
scl_status scl_covariance_find(const char *name, scl_covariance_type *out);

/* SCL_E_ARGUMENT naming "kernel" unless the kernel is sound for inputs of p columns. */
scl_status scl_covariance_check(const scl_covariance *kernel, size_t p);

/* Variance at distance zero, without noise. */
double scl_covariance_variance(const scl_covariance *kernel);

/* Covariances of the rows of x1 (m x p) and x2 (n x p): a new m x n matrix. x2 == NULL is x1, with
 * noise, and a symmetric result. SCL_E_ARGUMENT. */
scl_status scl_covariance_matrix(const scl_covariance *kernel, const scl_mat *x1, const scl_mat *x2,
                                 scl_mat **out);

/* Reverse mode: from weights = dF/dK (m x n; when x2 is NULL symmetric, and its lower triangle is
 * read) the derivatives of F, scl_covariance_count() numbers. Waits. */
scl_status scl_covariance_adjoint(const scl_covariance *kernel, const scl_mat *x1,
                                  const scl_mat *x2, const scl_mat *weights, double *out);

#endif
