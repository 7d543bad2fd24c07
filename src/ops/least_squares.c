#include "ops/least_squares.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

scl_status scl_least_squares_slope(const double *x, size_t n, size_t p, const double *y,
                                   const double *beta, double *sum, double *lost) {
  twofold *row = malloc((n > 0 ? n : 1) * sizeof *row), total = {sum[p], lost[p]};
  if (row == NULL) return scl_fail_memory(n * sizeof *row, 0, "residuals");
  scl_status status = SCL_OK;
  for (size_t i = 0; i < n; i++) row[i] = (twofold){y[i], 0.0};
  for (size_t j = 0; j < p && status == SCL_OK; j++) {
    for (size_t i = 0; i < n; i++) add_product(&row[i], x[j * n + i], -beta[j]);
    status = scl_poll();
  }
  for (size_t i = 0; i < n; i++) {
    const double rest = row[i].sum + row[i].lost;
    row[i] = (twofold){rest, (row[i].sum - rest) + row[i].lost};
    add_product(&total, rest, rest + 2 * row[i].lost);
  }
  for (size_t j = 0; j < p && status == SCL_OK; j++) {
    twofold slope = {sum[j], lost[j]};
    for (size_t i = 0; i < n; i++) {
      add_product(&slope, x[j * n + i], row[i].sum);
      slope.lost += x[j * n + i] * row[i].lost;
    }
    sum[j] = slope.sum;
    lost[j] = slope.lost;
    status = scl_poll();
  }
  sum[p] = total.sum;
  lost[p] = total.lost;
  free(row);
  return status;
}

/* v = H v, for reflection j. */
static void reflect(const scl_reflections *q, size_t j, double *v) {
  const double *u = q->qr + j * q->n, head = q->aux[j];
  if (head == 0.0) return;
  double sum = head * v[j];
  for (size_t i = j + 1; i < q->n; i++) sum += u[i] * v[i];
  const double factor = -sum / head;
  v[j] += factor * head;
  for (size_t i = j + 1; i < q->n; i++) v[i] += factor * u[i];
}

/* One step of the refinement, in which v is gap and then the change of the residuals; its size. */
static double refine(const scl_reflections *q, double *v, const double *slope, double *half,
                     double *step) {
  const size_t p = q->p, reflections = q->n > 0 && p > q->n - 1 ? q->n - 1 : p;
  double square = 0.0;
  for (size_t j = 0; j < reflections; j++) reflect(q, j, v);
  for (size_t i = 0; i < p; i++) { /* root' half = -slope */
    double sum = -slope[i];
    for (size_t k = 0; k < i; k++) sum -= q->root[i * p + k] * half[k];
    half[i] = sum / q->root[i * p + i];
  }
  for (size_t i = p; i-- > 0;) { /* root step = v - half */
    double sum = v[i] - half[i];
    for (size_t k = i + 1; k < p; k++) sum -= q->root[k * p + i] * step[k];
    step[i] = sum / q->root[i * p + i];
    square += (v[i] - half[i]) * (v[i] - half[i]);
  }
  memcpy(v, half, p * sizeof *v);
  for (size_t j = reflections; j-- > 0;) reflect(q, j, v);
  return sqrt(square);
}

/* Whether no column is nearly collinear, so that one correction gives all digits. */
static bool is_easy(const scl_reflections *q) {
  for (size_t j = 0; j < q->p; j++) {
    double square = 0.0;
    for (size_t i = 0; i <= j; i++) square += q->root[j * q->p + i] * q->root[j * q->p + i];
    if (!(fabs(q->root[j * q->p + j]) > 1e-3 * sqrt(square))) return false;
  }
  return true;
}

scl_status scl_least_squares(const scl_reflections *q, const double *y, double *beta,
                             double *rest) {
  const size_t n = q->n, p = q->p, numbers = n + 3 * p;
  double *v = calloc(numbers > 0 ? numbers : 1, sizeof *v), last = INFINITY;
  if (v == NULL) return scl_fail_memory(numbers * sizeof *v, 0, "residuals");
  double *slope = v + n, *half = slope + p, *step = half + p;
  scl_status status = SCL_OK;
  memset(beta, 0, p * sizeof *beta);
  for (size_t i = 0; i < n; i++) rest[i] = p > 0 ? 0.0 : y[i];
  const bool easy = is_easy(q);
  for (int round = 0; round < 10 && p > 0; round++) {
    if (round == 0) {
      memcpy(v, y, n * sizeof *v); /* `slope` is 0 */
    } else {
      status = scl_least_squares_gaps(q->x, n, p, y, beta, rest, v, slope);
    }
    if (status != SCL_OK) break;
    const double change = refine(q, v, slope, half, step);
    if (!isfinite(change) || change > last / 2) break;
    const bool enough = easy && change < 1e-10 * last && round > 0;
    last = change;
    for (size_t j = 0; j < p; j++) beta[j] += step[j];
    for (size_t i = 0; i < n; i++) rest[i] += v[i];
    if (change == 0.0 || enough) break;
  }
  free(v);
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
