/* Products and Cholesky factors by 8-bit integers on the matrices with which LAPACK tests its
 * Cholesky factor (types 1 to 9 of DLATB4: diagonal, of condition 2, with a row and column of
 * zeros, ill-conditioned, near underflow and overflow), as they are and with rows and columns
 * multiplied by powers of two from 1e-150 to 1e150, so that elements go from 1e-300 to 1e300.
 * Against long double: the worst error of an element is at most 4 times the native one. */
#include <stdio.h>

#include "linalg.h"
#include "engine/cl/linalg/linalg.h"

enum { TYPES = 9, SPREAD = 498 };

/* The power of two of row i. */
static int power_of(size_t i, size_t n) {
  return (int)(i * 7 % n * 2 * SPREAD / n) - SPREAD;
}

/* x = H x H, with the reflection H along a random vector. */
static void reflect(long double *x, size_t n) {
  double *v = test_alloc(n * sizeof *v);
  long double *w = test_alloc(n * sizeof *w), norm = 0, dot = 0;
  for (size_t i = 0; i < n; i++) {
    v[i] = test_random();
    norm += (long double)v[i] * v[i];
  }
  for (size_t i = 0; i < n; i++) {
    w[i] = 0;
    for (size_t k = 0; k < n; k++) w[i] += x[i + k * n] * v[k];
    w[i] *= 2 / norm;
  }
  for (size_t i = 0; i < n; i++) dot += w[i] * v[i] / norm;
  for (size_t i = 0; i < n; i++) w[i] -= dot * v[i];
  for (size_t j = 0; j < n; j++)
    for (size_t i = 0; i < n; i++) x[i + j * n] -= w[i] * v[j] + v[i] * w[j];
  FREE(v, w);
}

static double *matrix_of(int type, size_t n, bool spread) {
  const long double worst = 0.1L / 0x1p-52L, size = type == 8 ? 0x1p-972L : 0x1p972L;
  const long double condition = type == 6 ? sqrtl(worst) : type == 7 ? worst : 2;
  const size_t zero = type == 3 ? 0 : type == 4 ? n - 1 : type == 5 ? n / 2 : n;
  long double *x = test_alloc(n * n * sizeof *x);
  double *a = test_alloc(n * n * sizeof *a);
  for (size_t e = 0; e < n * n; e++) x[e] = 0;
  for (size_t i = 0; i < n; i++)
    x[i + i * n] = powl(condition, -(long double)i / (long double)(n - 1));
  for (int round = 0; round < 3 && type != 1; round++) reflect(x, n);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) {
      const long double of = i >= j ? x[i + j * n] : x[j + i * n];
      const int power = spread ? power_of(i, n) + power_of(j, n) : 0;
      a[i + j * n] =
          i == zero || j == zero ? 0 : (double)(type < 8 ? ldexpl(of, power) : of * size);
    }
  }
  free(x);
  return a;
}

/* The worst error of an element of A B', in units of rounding of the product of norms. */
static double product_error(const double *a, const double *b, const double *c, size_t n) {
  double worst = 0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) {
      long double sum = 0, x = 0, y = 0;
      for (size_t k = 0; k < n; k++) {
        const long double p = a[i + k * n], q = b[j + k * n];
        sum += p * q;
        x += p * p;
        y += q * q;
      }
      const long double error = fabsl(c[i + j * n] - sum) - 0x1p-1074L;
      if (!(error <= 0)) worst = fmax(worst, (double)(error / (sqrtl(x * y) * TEST_EPS)));
      if (isnan(c[i + j * n])) return INFINITY;
    }
  }
  return worst;
}

static void check_product(scl_context *ctx, int type, bool spread) {
  enum { N = 70 };
  double *a = matrix_of(type, N, false), *b = test_alloc(N * N * sizeof *b);
  double *c = test_alloc(N * N * sizeof *c), error[2];
  test_fill(b, N * N);
  for (size_t e = 0; e < N * N && spread; e++) {
    if (type < 8) a[e] = ldexp(a[e], power_of(e % N, N));
    b[e] = ldexp(b[e], type < 8 ? power_of(e % N, N) : type == 8 ? 400 : -400);
  }
  for (int integers = 0; integers < 2; integers++) {
    test_framed da = test_put(ctx, N, N, a), db = test_put(ctx, N, N, b);
    test_framed dc = test_put(ctx, N, N, NULL);
    scl_device_emulate(integers);
    CHECK_OK(ctx->engine->gemm(ctx, 1, SCL_NO_TRANS, da.block, SCL_GENERAL, SCL_TRANS, db.block,
                               SCL_GENERAL, 0, dc.block, SCL_ALL));
    scl_device_emulate(-1);
    test_get(dc, c);
    test_drop(da), test_drop(db);
    error[integers] = product_error(a, b, c, N);
  }
  CHECK(error[1] <= 4 * fmax(error[0], 0.5));
  if (!(error[1] <= 4 * fmax(error[0], 0.5)))
    printf("       type %d%s: %g, native %g\n", type, spread ? ", spread" : "", error[1], error[0]);
  FREE(a, b, c);
}

/* The worst residual of an element, in units of rounding of what its diagonal elements make it. */
static double factor_error(const double *a, const double *l, size_t n) {
  double worst = 0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      long double rest = a[i + j * n];
      for (size_t k = 0; k <= j; k++) rest -= (long double)l[i + k * n] * l[j + k * n];
      const long double size = sqrtl((long double)a[i + i * n] * a[j + j * n]);
      if (!(fabsl(rest) == 0)) worst = fmax(worst, (double)(fabsl(rest) / (size * TEST_EPS)));
      if (isnan(l[i + j * n])) return INFINITY;
    }
  }
  return worst;
}

static void check_factor(scl_context *ctx, int type, bool spread, size_t n) {
  double *a = matrix_of(type, n, spread), *l[2], order[2], error[2] = {0, 0};
  for (int integers = 0; integers < 2; integers++) {
    l[integers] = test_alloc(n * n * sizeof *l[integers]);
    test_framed da = test_put(ctx, n, n, a), info = test_put(ctx, 1, 1, NULL);
    scl_device_emulate(integers);
    CHECK_OK(ctx->engine->potrf(ctx, da.block, info.block));
    scl_device_emulate(-1);
    test_get(da, l[integers]);
    test_get(info, &order[integers]);
    if (order[integers] == 0) error[integers] = factor_error(a, l[integers], n);
  }
  CHECK(order[0] == order[1]);
  CHECK((order[1] == 0) == (type < 3 || type > 5));
  CHECK(error[1] <= 4 * fmax(error[0], 0.5));
  if (!(error[1] <= 4 * fmax(error[0], 0.5)))
    printf("       type %d%s: %g, native %g\n", type, spread ? ", spread" : "", error[1], error[0]);
  if (type == 2) CHECK(memcmp(l[0], l[1], n * n * sizeof *l[0]) != 0); /* integers were used */
  free(a), free(l[0]), free(l[1]);
}

void test_integers_accuracy(scl_context *ctx) {
  if (scl_context_is_host(ctx) || ((scl_cl_context *)ctx)->emulated_mma) return;
  for (int type = 1; type <= TYPES; type++) {
    for (int spread = 0; spread < 2; spread++) {
      check_product(ctx, type, spread);
      if (spread == 0 || type < 8) check_factor(ctx, type, spread, test_small() ? 150 : 300);
    }
  }
}
