/* Sums that are rounded once, as R's are. */
#ifndef SCL_SAMPLE_SUMS_H
#define SCL_SAMPLE_SUMS_H

#include <stdbool.h>
#include <stddef.h>

static inline double scl_sum_of_products(size_t n, const double *a, const double *b) {
  long double sum = 0.0L;
  for (size_t k = 0; k < n; k++) {
    const double product = a[k] * b[k];
    sum += product;
  }
  return (double)sum;
}

/* Whether both of a and b have a positive product with c; two interleaved sums hide the latency of
 * an addition. */
static inline bool scl_both_positive(size_t n, const double *a, const double *b, const double *c) {
  long double first = 0.0L, second = 0.0L;
  for (size_t k = 0; k < n; k++) {
    const double one = a[k] * c[k], other = b[k] * c[k];
    first += one;
    second += other;
  }
  return (double)first > 0.0 && (double)second > 0.0;
}

#endif
