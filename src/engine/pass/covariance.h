/* Covariance matrices and their reverse mode (ops/covariance.h) as an engine sees them. */
#ifndef SCL_ENGINE_PASS_COVARIANCE_H
#define SCL_ENGINE_PASS_COVARIANCE_H

#include "base/engine.h"
#include "kernels/include/port.h"
#include "kernels/include/covariance_functions.h"

typedef struct {
  scl_covariance_type type;
  int entries;  /* its input columns; 0 for constant and white only */
  double sd;    /* > 0 */
  double extra; /* > 0: alpha, period; 1 for types that have none */
} scl_covariance_term;

/* Borrowed arrays; entries are ordered by term. */
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

/* The arguments of the engines' functions. */
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
   * ones (u v' + v u') / 2). Without buffers their part is zero; u may be v. covariance_adjoint:
   * out (scl_covariance_count() x 1) = sum_ij w_ij dk_ij / d log parameters. covariance_inputs: out
   * (as x1) = sum_j w_ij dk_ij / d x1_ic; of symmetric ones x2 changes with x1, so that the result
   * is the derivative with respect to x. */
  scl_block weights, u, v;
  double outer, inner;
  scl_block out;
};

static inline int scl_covariance_count(const scl_covariance *kernel) {
  return 2 * kernel->terms + kernel->entries + 1;
}

/* The parts of a covariance function, as covariance_has() of covariance_functions.h reads them: its
 * types, and whether there are products of several terms. */
unsigned scl_covariance_kinds(const scl_covariance *kernel);
/* The same and more: one of the four sets of basic types; basic and short types; all but those with
 * Bessel functions; everything. */
unsigned scl_covariance_kinds_rounded(const scl_covariance *kernel);

#endif
