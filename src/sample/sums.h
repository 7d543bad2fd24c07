/* Sums that are rounded once, as R's are. */
#ifndef SCL_SAMPLE_SUMS_H
#define SCL_SAMPLE_SUMS_H

#include <stddef.h>

static inline double scl_sum_of_products(size_t n, const double *a, const double *b) {
  long double sum = 0.0L;
  for (size_t k = 0; k < n; k++) {
    const double product = a[k] * b[k];
    sum += product;
  }
  return (double)sum;
}

#endif
