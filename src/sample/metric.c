#include "sample/metric.h"

#include <math.h>

bool scl_metric_factor(size_t n, double *a) {
  for (size_t k = 0; k < n; k++) {
    double *column = a + k * n;
    if (!(column[k] > 0.0)) return false;
    column[k] = sqrt(column[k]);
    for (size_t i = k + 1; i < n; i++) column[i] /= column[k];
    for (size_t j = k + 1; j < n; j++) {
      const double factor = column[j];
      for (size_t i = j; i < n; i++) a[j * n + i] -= factor * column[i];
    }
  }
  for (size_t k = 0; k < n; k++) {
    for (size_t i = k + 1; i < n; i++) a[i * n + k] = a[k * n + i];
  }
  return true;
}

void scl_metric_times(size_t n, const double *factor, bool transposed, const double *restrict x,
                      double *restrict to) {
  for (size_t i = 0; i < n; i++) to[i] = 0.0;
  for (size_t k = 0; k < n; k++) {
    const double *column = factor + k * n;
    const size_t first = transposed ? 0 : k, last = transposed ? k + 1 : n;
    for (size_t i = first; i < last; i++) to[i] += column[i] * x[k];
  }
}
