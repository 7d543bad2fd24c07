#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gp_reference.h"
#include "test.h"

static void check_matrix(scl_context *ctx, size_t m, size_t n, size_t p) {
  test_kernel k;
  test_kernel_mixed(&k, p);
  double *x1 = test_alloc(m * p * sizeof *x1), *x2 = test_alloc(n * p * sizeof *x2);
  double *got = test_alloc((m > n ? m : n) * m * sizeof *got);
  test_fill(x1, m * p);
  test_fill(x2, n * p);
  scl_mat *a = NULL, *b = NULL, *between = NULL, *within = NULL;
  CHECK_OK(scl_mat_from_host(ctx, x1, m, p, SCL_GENERAL, &a));
  CHECK_OK(scl_mat_from_host(ctx, x2, n, p, SCL_GENERAL, &b));

  REQUIRE_OK(scl_covariance_matrix(&k.kernel, a, b, &between));
  CHECK(scl_mat_nrow(between) == m && scl_mat_ncol(between) == n);
  CHECK_OK(scl_mat_to_host(between, got));
  double worst = 0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      long double want = test_covariance_value(&k.kernel, x1, m, i, x2, n, j);
      worst = fmax(worst, fabs(got[i + j * m] - (double)want));
    }
  }
  CHECK(worst < 1e-14);

  REQUIRE_OK(scl_covariance_matrix(&k.kernel, a, NULL, &within));
  CHECK(scl_mat_view(within) == SCL_SYMMETRIC);
  CHECK_OK(scl_mat_to_host(within, got));
  worst = 0;
  bool symmetric = true;
  for (size_t j = 0; j < m; j++) {
    for (size_t i = 0; i < m; i++) {
      long double want = test_covariance_value(&k.kernel, x1, m, i, x1, m, j);
      if (i == j) want += (long double)k.kernel.noise * k.kernel.noise;
      worst = fmax(worst, fabs(got[i + j * m] - (double)want));
      symmetric = symmetric && got[i + j * m] == got[j + i * m];
    }
  }
  CHECK(worst < 1e-14);
  CHECK(symmetric);
  scl_mat_release(a);
  scl_mat_release(b);
  scl_mat_release(between);
  scl_mat_release(within);
  free(x1);
  free(x2);
  free(got);
}

/* sum(w * K), K as the operation has it. */
static long double weighted_sum(const scl_covariance *kernel, const double *x1, size_t m,
                                const double *x2, size_t n, bool symmetric, const double *w) {
  long double sum = 0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      long double k = test_covariance_value(kernel, x1, m, i, x2, n, j);
      if (symmetric && i == j) k += (long double)kernel->noise * kernel->noise;
      sum += w[i + j * m] * k;
    }
  }
  return sum;
}

/* Against central differences in long double, which know nothing of the formulas' derivatives. */
static void check_adjoint(scl_context *ctx, size_t m, size_t n, size_t p) {
  bool symmetric = n == 0;
  if (symmetric) n = m;
  test_kernel k;
  test_kernel_mixed(&k, p);
  double *x1 = test_alloc(m * p * sizeof *x1), *x2 = test_alloc(n * p * sizeof *x2);
  double *w = test_alloc(m * n * sizeof *w), got[MOST_TERMS + MOST_ENTRIES + 1];
  test_fill(x1, m * p);
  test_fill(x2, n * p);
  test_fill(w, m * n);
  if (symmetric) {
    memcpy(x2, x1, m * p * sizeof *x1);
    for (size_t j = 0; j < m; j++) {
      for (size_t i = 0; i < j; i++) w[i + j * m] = w[j + i * m];
    }
  }
  scl_mat *a = NULL, *b = NULL, *c = NULL;
  CHECK_OK(scl_mat_from_host(ctx, x1, m, p, SCL_GENERAL, &a));
  CHECK_OK(scl_mat_from_host(ctx, x2, n, p, SCL_GENERAL, &b));
  CHECK_OK(scl_mat_from_host(ctx, w, m, n, SCL_GENERAL, &c));
  CHECK_OK(scl_covariance_adjoint(&k.kernel, a, symmetric ? NULL : b, c, got));
  double again[MOST_TERMS + MOST_ENTRIES + 1];
  CHECK_OK(scl_covariance_adjoint(&k.kernel, a, symmetric ? NULL : b, c, again));
  int count = scl_covariance_count(&k.kernel);
  CHECK(memcmp(got, again, (size_t)count * sizeof *got) == 0);
  for (int q = 0; q < count; q++) {
    double *parameter = test_kernel_parameter(&k, q), keep = *parameter;
    double h = 0x1p-20, up = keep * exp(h), down = keep * exp(-h);
    *parameter = up;
    long double high = weighted_sum(&k.kernel, x1, m, x2, n, symmetric, w);
    *parameter = down;
    long double low = weighted_sum(&k.kernel, x1, m, x2, n, symmetric, w);
    *parameter = keep;
    CHECK_NEAR(got[q], (double)((high - low) / (logl(up) - logl(down))), 1e-9);
  }
  scl_mat_release(a);
  scl_mat_release(b);
  scl_mat_release(c);
  free(x1);
  free(x2);
  free(w);
}

static void check_refusals(scl_context *ctx) {
  test_kernel k;
  double x[6] = {1, 2, 3, 4, 5, 6};
  scl_mat *a = NULL, *b = NULL, *out = NULL;
  CHECK_OK(scl_mat_from_host(ctx, x, 3, 2, SCL_GENERAL, &a));
  CHECK_OK(scl_mat_from_host(ctx, x, 2, 3, SCL_GENERAL, &b));
  test_kernel_mixed(&k, 2);
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_matrix(&k.kernel, a, b, &out));
  k.column[0] = 2;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_matrix(&k.kernel, a, NULL, &out));
  test_kernel_mixed(&k, 2);
  k.lengthscale[1] = 0;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_matrix(&k.kernel, a, NULL, &out));
  test_kernel_mixed(&k, 2);
  k.term[1].sd = NAN;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_matrix(&k.kernel, a, NULL, &out));
  CHECK(strcmp(scl_fault_last()->argument, "kernel") == 0);
  CHECK(out == NULL);
  scl_covariance_type type;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_find("exp_cubic", &type));
  CHECK_OK(scl_covariance_find("matern52", &type));
  CHECK(type == SCL_COVARIANCE_MATERN52);
  scl_mat_release(a);
  scl_mat_release(b);
}

static void check_empty(scl_context *ctx) {
  test_kernel k;
  test_kernel_mixed(&k, 2);
  double got[MOST_TERMS + MOST_ENTRIES + 1];
  scl_mat *a = NULL, *out = NULL;
  CHECK_OK(scl_mat_create(ctx, 0, 2, SCL_GENERAL, &a));
  CHECK_OK(scl_covariance_matrix(&k.kernel, a, NULL, &out));
  CHECK(scl_mat_nrow(out) == 0 && scl_mat_ncol(out) == 0);
  CHECK_OK(scl_covariance_adjoint(&k.kernel, a, NULL, out, got));
  CHECK(got[0] == 0);
  scl_mat_release(a);
  scl_mat_release(out);
}

void test_covariance(scl_context *ctx) {
  static const size_t shapes[][2] = {{1, 1},   {2, 3},   {15, 17}, {16, 16}, {31, 1},  {33, 64},
                                     {63, 65}, {65, 63}, {64, 2},  {1, 130}, {129, 70}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    check_matrix(ctx, shapes[i][0], shapes[i][1], 1 + i % 4);
    check_adjoint(ctx, shapes[i][0], shapes[i][1], 1 + i % 4);
    check_adjoint(ctx, shapes[i][0], 0, 1 + i % 4);
  }
  check_matrix(ctx, 300, 20, 70);
  check_adjoint(ctx, 40, 0, 70); /* more derivatives than one launch has */
  check_adjoint(ctx, 500, 0, 1); /* more tiles than groups on a CPU device */
  check_refusals(ctx);
  check_empty(ctx);
}
