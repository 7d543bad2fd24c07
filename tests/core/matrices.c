#include "matrices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

scl_mat *mat_make(scl_context *ctx, const double *data, size_t m, size_t n, scl_view view) {
  scl_mat *a = NULL;
  if (scl_mat_from_host(ctx, data, m, n, view, &a) != SCL_OK) {
    printf("cannot make a matrix: %s\n", scl_fault_last()->message);
    exit(2);
  }
  return a;
}

scl_mat *mat_random(scl_context *ctx, size_t m, size_t n, scl_view view) {
  double *data = test_alloc(m * n * sizeof *data);
  test_fill(data, m * n);
  scl_mat *a = mat_make(ctx, data, m, n, view);
  free(data);
  return a;
}

double *mat_stored(const scl_mat *a) {
  double *data = test_alloc(a->nrow * a->ncol * sizeof *data);
  if (a->nrow == 0 || a->ncol == 0) return data;
  if (a->ctx->engine->download(a->ctx, SCL_GENERAL, scl_mat_block(a), SCL_WAIT_WRITES, data,
                               a->nrow) != SCL_OK) {
    printf("cannot read a matrix: %s\n", scl_fault_last()->message);
    exit(2);
  }
  return data;
}

/* a = H a H with the reflection H = I - 2 v v' / v'v. */
static void reflect(double *a, size_t n, const double *v) {
  double *w = test_alloc(n * sizeof *w), vv = 0.0, vw = 0.0;
  for (size_t i = 0; i < n; i++) {
    w[i] = 0.0;
    vv += v[i] * v[i];
    for (size_t j = 0; j < n; j++) w[i] += a[i + j * n] * v[j];
  }
  for (size_t i = 0; i < n; i++) vw += v[i] * w[i];
  for (size_t i = 0; i < n; i++) w[i] = 2.0 / vv * (w[i] - vw / vv * v[i]);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      a[i + j * n] -= v[i] * w[j] + w[i] * v[j];
      a[j + i * n] = a[i + j * n];
    }
  }
  free(w);
}

void mat_spd(double *a, size_t n, double condition, double scale) {
  for (size_t i = 0; i < n * n; i++) a[i] = 0.0;
  for (size_t i = 0; i < n; i++) {
    double share = n > 1 ? (double)i / (double)(n - 1) : 0.0;
    a[i * (n + 1)] = pow(condition, -share);
  }
  double *v = test_alloc(n * sizeof *v);
  for (int k = 0; k < 3; k++) {
    test_fill(v, n);
    reflect(a, n, v);
  }
  for (size_t i = 0; i < n * n; i++) a[i] *= scale;
  free(v);
}

bool mat_is_canonical(const double *stored, size_t m, size_t n, scl_view view) {
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      double x = stored[i + j * m];
      if (view == SCL_LOWER && i < j && x != 0.0) return false;
      if (view == SCL_UPPER && i > j && x != 0.0) return false;
      if (view == SCL_SYMMETRIC) {
        double y = stored[j + i * m];
        if (x != y && !(isnan(x) && isnan(y))) return false;
      }
    }
  }
  return true;
}

double mat_distance(const double *got, const double *want, size_t count) {
  double worst = 0.0;
  for (size_t i = 0; i < count; i++) {
    if (got[i] == want[i] || (isnan(got[i]) && isnan(want[i]))) continue;
    double d = fabs(got[i] - want[i]) / fmax(1.0, fabs(want[i]));
    if (!isfinite(got[i]) || !isfinite(want[i])) d = INFINITY;
    if (d > worst) worst = d;
  }
  return worst;
}

double mat_largest_difference(const double *a, const double *b, size_t count) {
  double largest = 0.0;
  for (size_t i = 0; i < count; i++) {
    const double d = fabs(a[i] - b[i]);
    if (!(d <= largest)) largest = d; /* a NaN stays */
  }
  return largest;
}

double test_copied(scl_copy kind, const double *x, size_t m, size_t i, size_t j) {
  switch (kind) {
  case SCL_COPY_TRANSPOSED:
    return x[j + i * m];
  case SCL_COPY_LOWER:
    return i >= j ? x[i + j * m] : 0.0;
  case SCL_COPY_UPPER:
    return i <= j ? x[i + j * m] : 0.0;
  case SCL_COPY_MIRROR_LOWER:
    return i >= j ? x[i + j * m] : x[j + i * m];
  case SCL_COPY_MIRROR_UPPER:
    return i <= j ? x[i + j * m] : x[j + i * m];
  default:
    return x[i + j * m];
  }
}
