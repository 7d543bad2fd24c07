#include "sample/adapt.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 256 }; /* draws of a window that are kept: of 5,000 parameters 10 MB */

void scl_adapt_windows(scl_adaptation *a, int warmup) {
  int first = 75, last = 50, size = 25;
  a->windows = 0;
  if (warmup < 20) return;
  if (first + size + last > warmup) {
    first = (int)floor(0.15 * warmup);
    last = (int)floor(0.1 * warmup);
    size = warmup - first - last;
  }
  a->first = first + 1;
  a->end[a->windows++] = first + size;
  while (a->end[a->windows - 1] < warmup - last) {
    size *= 2;
    const int end = a->end[a->windows - 1] + size;
    a->end[a->windows++] = (double)end + 2.0 * size > warmup - last ? warmup - last : end;
  }
}

size_t scl_adapt_rows(int warmup) {
  scl_adaptation a = {.first = 0};
  int most = 0;
  scl_adapt_windows(&a, warmup);
  for (int k = 0; k < a.windows; k++) {
    const int size = a.end[k] - (k > 0 ? a.end[k - 1] : a.first - 1);
    if (size > most) most = size;
  }
  return (size_t)(most < MOST_ROWS ? most : MOST_ROWS);
}

static size_t moments(const scl_adaptation *a) {
  return a->dense ? a->dimension * a->dimension : a->dimension;
}

void scl_adapt_clear(scl_adaptation *a) {
  a->n = a->kept = 0.0;
  memset(a->mean, 0, a->dimension * sizeof *a->mean);
  memset(a->squares, 0, moments(a) * sizeof *a->squares);
}

/* Shrunk towards ten times the size, because larger steps are cheaper to try; with few iterations
 * left, towards the size itself. */
void scl_adapt_restart(scl_adaptation *a, double step_size, double left) {
  a->step_size = step_size;
  a->mu = log(left < 25.0 ? step_size : 10.0 * step_size);
  a->count = a->error = a->average = 0.0;
}

double scl_adapt_step(scl_adaptation *a, double accept) {
  const double count = a->count += 1.0, share = 1.0 / (count + 10.0);
  a->error = (1.0 - share) * a->error + share * (a->target - (accept < 1.0 ? accept : 1.0));
  const double x = a->mu - a->error * sqrt(count) / 0.05;
  const double weight = pow(count, -0.75);
  a->average = (1.0 - weight) * a->average + weight * x;
  return a->step_size = exp(x);
}

double scl_adapt_final(const scl_adaptation *a) {
  return a->count > 0.0 ? exp(a->average) : a->step_size;
}

static bool ends_at(const scl_adaptation *a, int i) {
  for (int k = 0; k < a->windows; k++) {
    if (a->end[k] == i) return true;
  }
  return false;
}

/* The last of each `step` iterations of a window is kept, so that `rows` columns hold it. */
static bool is_kept(const scl_adaptation *a, int i) {
  int first = a->first, k = 0;
  while (a->end[k] < i) first = a->end[k++] + 1;
  const size_t size = (size_t)(a->end[k] - first + 1), step = (size + a->rows - 1) / a->rows;
  return (size_t)(a->end[k] - i) % step == 0;
}

bool scl_adapt_consistent(const scl_adaptation *a, int done, bool waits) {
  int first = a->first, k = 0;
  double n = 0.0, kept = 0.0;
  while (k < a->windows && a->end[k] < done) first = a->end[k++] + 1;
  for (int i = first; k < a->windows && i <= done; i++) {
    n += 1.0;
    kept += a->rows > 0 && is_kept(a, i);
  }
  if (waits && !ends_at(a, done)) return false;
  return (a->n == n && a->kept == kept) ||
         (a->n == 0.0 && a->kept == 0.0 && !waits && ends_at(a, done));
}

static void keep(scl_adaptation *a, const double *q, const double *g) {
  const size_t d = a->dimension, at = (size_t)a->kept * d;
  memcpy(a->positions + at, q, d * sizeof *q);
  memcpy(a->gradients + at, g, d * sizeof *g);
  a->kept += 1.0;
}

static void add_dense(scl_adaptation *a, const double *q, double n) {
  const size_t d = a->dimension;
  const double share = (n - 1.0) / n;
  for (size_t k = 0; k < d; k++) {
    const double off = share * (q[k] - a->mean[k]);
    double *column = a->squares + k * d;
    for (size_t i = k; i < d; i++) column[i] += off * (q[i] - a->mean[i]);
  }
  for (size_t k = 0; k < d; k++) a->mean[k] += (q[k] - a->mean[k]) / n;
}

static void add_diagonal(scl_adaptation *a, const double *q, double n) {
  for (size_t k = 0; k < a->dimension; k++) {
    const double off = q[k] - a->mean[k];
    a->mean[k] += off / n;
    a->squares[k] += off * (q[k] - a->mean[k]);
  }
}

bool scl_adapt_observe(scl_adaptation *a, int i, const double *q, const double *g) {
  if (a->windows == 0 || i < a->first || i > a->end[a->windows - 1]) return false;
  if (a->rows > 0 && is_kept(a, i)) keep(a, q, g);
  a->n += 1.0;
  if (a->dense) {
    add_dense(a, q, a->n);
  } else {
    add_diagonal(a, q, a->n);
  }
  return ends_at(a, i);
}

void scl_adapt_merge(scl_adaptation *a, const scl_adaptation *other, int part, int parts) {
  const size_t d = a->dimension, step = a->dense ? d : 1;
  for (size_t k = (size_t)part; k < (size_t)a->kept; k += (size_t)parts) {
    memcpy(a->positions + k * d, other->positions + k * d, d * sizeof *a->positions);
    memcpy(a->gradients + k * d, other->gradients + k * d, d * sizeof *a->gradients);
  }
  const double n = a->n + other->n, share = other->n / n, weight = a->n * share;
  for (size_t k = 0; k < d; k++) {
    const double off = weight * (other->mean[k] - a->mean[k]);
    const size_t last = a->dense ? d : k + 1;
    for (size_t i = k; i < last; i++) {
      const size_t at = a->dense ? k * step + i : k;
      a->squares[at] += other->squares[at] + off * (other->mean[i] - a->mean[i]);
    }
  }
  for (size_t k = 0; k < d; k++) a->mean[k] += share * (other->mean[k] - a->mean[k]);
  a->n = n;
}

/* Shrunk slightly towards 1e-3, so that a window without movement does no harm. */
void scl_adapt_inverse(const scl_adaptation *a, double *inverse) {
  const size_t d = a->dimension;
  const double n = a->n;
  for (size_t k = 0; k < moments(a); k++) {
    const double ridge = !a->dense || k % (d + 1) == 0 ? 5e-3 : 0.0;
    const double value = n > 1.0 ? a->squares[k] / (n - 1.0) : a->squares[k] + (ridge > 0.0);
    inverse[k] = (n * value + ridge) / (n + 5.0);
  }
}
