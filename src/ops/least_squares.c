#include "ops/least_squares.h"

#include <math.h>
#include <stdlib.h>

/* A sum and the rounding errors of its additions (Dekker; Ogita, Rump and Oishi: Dot2). */
typedef struct {
  double sum, lost;
} twofold;

static inline void add_term(twofold *s, double term) {
  double sum = s->sum + term, back = sum - s->sum;
  s->lost += (s->sum - (sum - back)) + (term - back);
  s->sum = sum;
}

static inline void add_product(twofold *s, double a, double b) {
  volatile double product = a * b; /* no compiler may join it with the addition */
  double rounded = product;
  add_term(s, rounded);
  s->lost += fma(a, b, -rounded);
}

scl_status scl_least_squares_gaps(const double *x, size_t n, size_t p, const double *y,
                                  const double *beta, const double *rest, double *gap,
                                  double *slope) {
  twofold *row = malloc((n > 0 ? n : 1) * sizeof *row);
  if (row == NULL) return scl_fail_memory(n * sizeof *row, 0, "residuals");
  scl_status status = SCL_OK;
  for (size_t i = 0; i < n; i++) {
    row[i] = (twofold){y[i], 0.0};
    add_term(&row[i], -rest[i]);
  }
  for (size_t j = 0; j < p && status == SCL_OK; j++) {
    const double *column = x + j * n;
    twofold sum = {0.0, 0.0};
    for (size_t i = 0; i < n; i++) {
      add_product(&row[i], column[i], -beta[j]);
      add_product(&sum, column[i], rest[i]);
    }
    slope[j] = sum.sum + sum.lost;
    status = scl_poll();
  }
  for (size_t i = 0; i < n; i++) gap[i] = row[i].sum + row[i].lost;
  free(row);
  return status;
}

void scl_solve_right(double *x, size_t n, size_t p, const double *root) {
  for (size_t j = 0; j < p; j++) {
    double *to = x + j * n;
    for (size_t k = 0; k < j; k++) {
      const double factor = root[j * p + k], *from = x + k * n;
      for (size_t i = 0; i < n; i++) to[i] -= factor * from[i];
    }
    for (size_t i = 0; i < n; i++) to[i] /= root[j * p + j];
  }
}
