/* Cholesky factor, inverse from the factor and the adjoint's leaf of the engine table. Factors must
 * keep LAPACK's residual ratio ||A - L L'||_1 / (n ||A||_1 eps) < 30, inverses to ||A X - I|| / (n
 * ||A|| ||X|| eps) < 30; the strict upper triangle of the input holds NaN. */
#include <stdio.h>

#include "linalg.h"

typedef enum { TAME, ILL, PROCESS, KINDS } kind;

static double worst_ratio;

/* Symmetric positive definite of order n. ILL: condition 1e12 by reflections of a graded diagonal;
 * PROCESS: smooth Gaussian process with noise 1e-12 of the variance. */
static double *definite(kind what, size_t n, double scale) {
  double *a = test_alloc(n * n * sizeof *a), *v = test_alloc(n * sizeof *v);
  long double *w = test_alloc(n * sizeof *w);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) {
      double d = ((double)i - (double)j) / 20;
      a[i + j * n] = i == j ? 1 : 0;
      if (what == PROCESS) a[i + j * n] = exp(-d * d) + (i == j ? 1e-12 : 0);
      if (what == ILL && i == j) a[i + j * n] = pow(1e-12, (double)i / (double)(n > 1 ? n - 1 : 1));
    }
  }
  for (int round = 0; round < 3 && what != PROCESS && n > 0; round++) {
    long double norm = 0, dot = 0; /* A = H A H, H = I - 2 v v' / v'v; TAME: A += v v' */
    for (size_t i = 0; i < n; i++) v[i] = test_random();
    for (size_t i = 0; i < n; i++) norm += (long double)v[i] * v[i];
    for (size_t i = 0; i < n; i++) {
      w[i] = 0;
      for (size_t l = 0; l < n; l++) w[i] += (long double)a[i + l * n] * v[l];
      w[i] *= 2 / norm;
    }
    for (size_t i = 0; i < n; i++) dot += w[i] * v[i] / norm;
    for (size_t i = 0; i < n; i++) w[i] -= dot * v[i];
    for (size_t j = 0; j < n; j++)
      for (size_t i = 0; i < n; i++)
        a[i + j * n] = (double)(what == TAME ? a[i + j * n] + (long double)v[i] * v[j]
                                             : a[i + j * n] - w[i] * v[j] - v[i] * w[j]);
  }
  for (size_t j = 0; j < n; j++)
    for (size_t i = 0; i <= j; i++) a[i + j * n] = a[j + i * n] *= scale;
  FREE(v, w);
  return a;
}

/* L from potrf, zeros above the diagonal; the order that info gives. In place and to a new matrix
 * the result is the same. */
static double factor(scl_context *ctx, const double *a, size_t n, double *l) {
  double order = -1, new_order = -1, *new_l = test_alloc(n * n * sizeof *l);
  memcpy(l, a, n * n * sizeof *l);
  test_set_triangle(l, n, n, true, NAN);
  memcpy(new_l, l, n * n * sizeof *l);
  test_framed da = test_put(ctx, n, n, l), info = test_put(ctx, 1, 1, NULL);
  test_framed dl = test_put(ctx, n, n, NULL), new_info = test_put(ctx, 1, 1, NULL);
  CHECK_OK(ctx->engine->potrf_copy(ctx, da.block, dl.block, new_info.block));
  CHECK_OK(ctx->engine->potrf(ctx, da.block, info.block));
  test_get(da, l);
  test_get(dl, new_l);
  test_get(info, &order);
  test_get(new_info, &new_order);
  test_set_triangle(l, n, n, true, 0.0);
  CHECK(order == new_order);
  if (order == 0) CHECK(memcmp(l, new_l, n * n * sizeof *l) == 0);
  free(new_l);
  return order;
}

static double factor_residual(const double *a, const double *l, size_t n) {
  double norm = 0;
  long double *column = test_alloc(n * sizeof *column);
  for (size_t j = 0; j < n; j = test_next_column(j, n)) {
    for (size_t i = 0; i < n; i++) column[i] = a[i + j * n];
    for (size_t k = 0; k <= j; k++)
      for (size_t i = k; i < n; i++) column[i] -= (long double)l[i + k * n] * l[j + k * n];
    long double sum = 0;
    for (size_t i = 0; i < n; i++) sum += fabsl(column[i]);
    if (!(sum <= norm)) norm = (double)sum;
  }
  free(column);
  return norm;
}

static void check_factor(scl_context *ctx, kind what, size_t n, double scale) {
  double *a = definite(what, n, scale), *l = test_alloc(n * n * sizeof *l);
  CHECK(factor(ctx, a, n, l) == 0);
  double ratio =
      n == 0 ? 0 : factor_residual(a, l, n) / ((double)n * test_norm1(a, n, n) * TEST_EPS);
  CHECK(ratio < 30);
  if (!(ratio < 30)) printf("       kind %d n %zu scale %g: %g\n", what, n, scale, ratio);
  if (ratio > worst_ratio) worst_ratio = ratio;
  FREE(a, l);
}

static void check_factors(scl_context *ctx) {
  static const size_t edges[] = {255, 256, 257, 511, 512, 513};
  static const size_t large[] = {1023, 1024, 1025, 1537, 2049};
  static const double scales[] = {1, 1e-150, 1e150};
  for (size_t n = 0; n <= 130; n++)
    for (int what = TAME; what < KINDS; what++) check_factor(ctx, (kind)what, n, scales[n % 3]);
  for (size_t e = 0; e < 6; e++)
    for (int what = TAME; what < KINDS; what++) check_factor(ctx, (kind)what, edges[e], 1);
  for (size_t e = 0; e < 5; e++) {
    if (!test_few(ctx) || large[e] == 1025) check_factor(ctx, (kind)(e % KINDS), large[e], 1);
  }
}

/* Matrices that stop being definite at order k, by a pivot below zero, zero or not a number; later
 * pivots may fail too. */
static void check_failures(scl_context *ctx) {
  static const size_t orders[] = {1, 2, 5, 64, 65, 130, 257};
  for (size_t o = 0; o < 7; o++) {
    size_t n = orders[o], places[] = {1, (n + 1) / 2, n > 1 ? n - 1 : n, n};
    double *l = test_alloc(n * n * sizeof *l);
    for (int p = 0; p < 12; p++) {
      size_t k = places[p % 4];
      double *a = definite(TAME, n, 1);
      for (size_t i = 0; i < n && p / 4 == 1; i++) a[i + (k - 1) * n] = a[k - 1 + i * n] = 0;
      a[(k - 1) * (n + 1)] = p / 4 == 0 ? -1 : p / 4 == 1 ? 0 : NAN;
      if (k < n) a[n * n - 1] = -1;
      CHECK(factor(ctx, a, n, l) == (double)k);
      free(a);
    }
    free(l);
  }
}

static void check_inverse(scl_context *ctx, kind what, size_t n, double scale) {
  double *a = definite(what, n, scale), *l = test_alloc(n * n * sizeof *l);
  double *x = test_alloc(n * n * sizeof *x), residual = 0;
  size_t skew = 0;
  CHECK(factor(ctx, a, n, l) == 0);
  test_set_triangle(l, n, n, true, NAN);
  test_framed dl = test_put(ctx, n, n, l), dx = test_put(ctx, n, n, NULL);
  CHECK_OK(ctx->engine->potri(ctx, dl.block, dx.block));
  test_get(dx, x);
  test_drop(dl);
  for (size_t j = 0; j < n; j++) {
    long double sum = 0;
    for (size_t i = 0; i < n; i++) {
      skew += x[i + j * n] != x[j + i * n];
      if (n > 300 && j % 100 != 0) continue;
      long double e = i == j ? -1 : 0;
      for (size_t k = 0; k < n; k++) e += (long double)a[k + i * n] * x[k + j * n];
      sum += fabsl(e);
    }
    if (!(sum <= residual)) residual = (double)sum;
  }
  CHECK(skew == 0);
  double ratio =
      n == 0 ? 0 : residual / ((double)n * test_norm1(a, n, n) * test_norm1(x, n, n) * TEST_EPS);
  CHECK(ratio < 30);
  if (!(ratio < 30)) printf("       inverse: kind %d n %zu: %g\n", what, n, ratio);
  FREE(a, l, x);
}

/* X = L^-1 of a lower triangular matrix, in long double. */
static void invert_plain(const double *l, size_t n, long double *x) {
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) {
      long double sum = i == j;
      for (size_t k = j; k < i; k++) sum -= l[i + k * n] * x[k + j * n];
      x[i + j * n] = i < j ? 0 : sum / l[i + i * n];
    }
  }
}

/* S = 1/2 inv(L)' (P + P') inv(L), P = lower triangle of L' Lbar with its diagonal halved. */
static void adjoint_plain(const double *l, const double *adjoint, size_t n, long double *s) {
  long double *x = test_alloc(n * n * sizeof *x), *q = test_alloc(n * n * sizeof *q);
  long double *y = test_alloc(n * n * sizeof *y);
  invert_plain(l, n, x);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      long double sum = 0;
      for (size_t k = i; k < n; k++) sum += (long double)l[k + i * n] * adjoint[k + j * n];
      q[i + j * n] = q[j + i * n] = sum;
    }
  }
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) {
      y[i + j * n] = 0;
      for (size_t k = j; k < n; k++) y[i + j * n] += q[i + k * n] * x[k + j * n];
    }
  }
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) {
      s[i + j * n] = 0;
      for (size_t k = i; k < n; k++) s[i + j * n] += x[k + i * n] * y[k + j * n] / 2;
    }
  }
  FREE(x, q, y);
}

/* `condition` bounds that of A = L L'. */
static void check_leaf(scl_context *ctx, kind what, size_t n, double condition) {
  double *a = definite(what, n, 1), *l = test_alloc(n * n * sizeof *l);
  double *adjoint = test_alloc(n * n * sizeof *adjoint), *s = test_alloc(n * n * sizeof *s);
  long double *want = test_alloc(n * n * sizeof *want), error = 0, size = 0;
  size_t skew = 0;
  CHECK(factor(ctx, a, n, l) == 0);
  test_fill(adjoint, n * n);
  adjoint_plain(l, adjoint, n, want);
  test_set_triangle(l, n, n, true, NAN);
  test_set_triangle(adjoint, n, n, true, NAN);
  test_framed dl = test_put(ctx, n, n, l), ds = test_put(ctx, n, n, adjoint);
  CHECK_OK(ctx->engine->potrf_adjoint_leaf(ctx, dl.block, ds.block));
  test_get(ds, s);
  test_drop(dl);
  for (size_t e = 0; e < n * n; e++) {
    long double d = s[e] - want[e];
    error += d * d;
    size += want[e] * want[e];
    skew += s[e] != s[e / n + e % n * n];
  }
  CHECK(skew == 0);
  CHECK(sqrtl(error) <= 10 * (long double)n * TEST_EPS * condition * sqrtl(size));
  FREE(a, l, adjoint, s, want);
}

static void check_inverses(scl_context *ctx) {
  static const size_t sizes[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 100, 128, 129, 256, 257};
  for (size_t i = 0; i < 14; i++)
    for (int what = TAME; what < KINDS; what++) check_inverse(ctx, (kind)what, sizes[i], 1);
  check_inverse(ctx, TAME, 100, 1e-150);
  check_inverse(ctx, ILL, 100, 1e150);
  check_inverse(ctx, TAME, test_few(ctx) ? 513 : 1025, 1);
}

static void check_leaves(scl_context *ctx) {
  static const size_t sizes[] = {0, 31, 32, 33, 63, 64, 65, 100, 128, 129, 200, 256};
  for (size_t n = 1; n <= 40; n++) check_leaf(ctx, TAME, n, 10 + (double)n);
  for (size_t i = 0; i < 12 && sizes[i] <= ctx->engine->traits.adjoint_leaf; i++) {
    check_leaf(ctx, TAME, sizes[i], 10 + (double)sizes[i]);
    check_leaf(ctx, ILL, sizes[i], 1e12);
    check_leaf(ctx, PROCESS, sizes[i], 1e12);
  }
}

void test_cholesky(scl_context *ctx) {
  worst_ratio = 0;
  for (test_frame = 1; test_frame <= test_frames(ctx); test_frame++) {
    check_factors(ctx);
    check_failures(ctx);
    check_inverses(ctx);
    check_leaves(ctx);
  }
  printf("%-12s worst residual ratio %.3g\n", "cholesky", worst_ratio);
}
