/* Covariance matrices of Gaussian processes, and their reverse mode.
 *
 * A kernel has terms, each a covariance function of some columns of x
 * (inst/kernels/include/covariance_functions.h), and is a sum of products of them:
 *   k(x, x') = sum_g prod_{t in g} k_t(x, x'),  plus noise where x and x' are the same observation
 * (the diagonal of a symmetric matrix): noise^2, or noise^2 s_i + v_i for given s and v.
 *
 * Derivatives are by the logarithms of the parameters, in this order: the terms' sd, the entries'
 * lengthscales, the terms' extra parameters (0 for types that have none), the noise:
 * scl_covariance_count() of them. */
#ifndef SCL_OPS_COVARIANCE_H
#define SCL_OPS_COVARIANCE_H

#include "kernels/include/port.h"
#include "kernels/include/covariance_functions.h"
#include "base/engine.h"

typedef struct {
  scl_covariance_type type;
  int entries;  /* columns that it looks at; 0 for constant and white only */
  double sd;    /* > 0 */
  double extra; /* > 0: alpha, period; 1 for types that have none */
} scl_covariance_term;

/* Borrowed arrays; entries stand term after term. */
typedef struct {
  int terms, entries;
  const scl_covariance_term *term;
  const int *column;         /* of each entry, 0-based */
  const double *lengthscale; /* > 0 */
  const double *center;      /* finite; NULL: all 0 */
  /* The products, one after another: how many factors, then their terms, 0-based. NULL: the sum of
   * all terms. */
  const int *factors;
  int products;
  double noise; /* standard deviation of the noise, >= 0 */
} scl_covariance;

enum { SCL_COVARIANCE_MOST_FACTORS = 16 }; /* of one product */

/* What the engines' functions work on. */
struct scl_covariance_pass {
  const scl_covariance *kernel;
  scl_block x1, x2; /* observations in rows; x2 is x1 when symmetric */
  bool symmetric;   /* only the lower triangle is computed or read; white terms and the noise are on
                       the diagonal, unless: */
  bool quiet;       /* without both */
  scl_block spread; /* n x 2: s and v (see above); no buffer: 1 and 0 */
  /* covariance: k (rows of x1 by rows of x2) in this region (SCL_ALL unless symmetric) */
  scl_region region;
  scl_block k;
  /* Reverse: w = inner weights + outer u v', with rows of x1 in u, rows of x2 in v (for symmetric
   * ones (u v' + v u') / 2). Without buffers their part is zero; u may be v.
   * covariance_adjoint: out (scl_covariance_count() x 1) = sum_ij w_ij dk_ij / d log parameters.
   * covariance_inputs: out (as x1) = sum_j w_ij dk_ij / d x1_ic; of symmetric ones with x2 moving
   * along, so that the result is the derivative by x. */
  scl_block weights, u, v;
  double outer, inner;
  scl_block out;
};

static inline int scl_covariance_count(const scl_covariance *kernel) {
  return 2 * kernel->terms + kernel->entries + 1;
}

/* The type called `name`; SCL_E_ARGUMENT naming "kernel". */
scl_status scl_covariance_find(const char *name, scl_covariance_type *out);

/* SCL_E_ARGUMENT naming "kernel" unless the kernel is sound for inputs of p columns. */
scl_status scl_covariance_check(const scl_covariance *kernel, size_t p);

/* Whether it is a sum of basic types (covariance_functions.h). */
bool scl_covariance_is_basic(const scl_covariance *kernel);

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

/* The same by the points: a new matrix of the shape of x1. */
scl_status scl_covariance_inputs(const scl_covariance *kernel, const scl_mat *x1, const scl_mat *x2,
                                 const scl_mat *weights, scl_mat **out);

#endif
