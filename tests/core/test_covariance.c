#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gp_reference.h"
#include "test.h"

typedef void kernel_maker(test_kernel *k, size_t p);

static void check_matrix(scl_context *ctx, kernel_maker *make, size_t m, size_t n, size_t p) {
  test_kernel k;
  make(&k, p);
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
  CHECK(worst < 2e-14);

  REQUIRE_OK(scl_covariance_matrix(&k.kernel, a, NULL, &within));
  CHECK(scl_mat_view(within) == SCL_SYMMETRIC);
  CHECK_OK(scl_mat_to_host(within, got));
  worst = 0;
  bool symmetric = true;
  for (size_t j = 0; j < m; j++) {
    for (size_t i = 0; i < m; i++) {
      long double want = test_covariance_within(&k.kernel, x1, m, i, j);
      worst = fmax(worst, fabs(got[i + j * m] - (double)want));
      symmetric = symmetric && got[i + j * m] == got[j + i * m];
    }
  }
  CHECK(worst < 2e-14);
  CHECK(symmetric);
  double *variance = test_alloc(m * sizeof *variance);
  scl_covariance_variances(&k.kernel, x1, m, m, variance);
  CHECK_NEAR(variance[m - 1], (double)test_covariance_value(&k.kernel, x1, m, m - 1, x1, m, m - 1),
             1e-14);
  RELEASE(a, b, between, within);
  FREE(x1, x2, got, variance);
}

/* A problem for the reverse mode; n == 0: x2 is x1, w symmetric. */
typedef struct {
  test_kernel k;
  size_t m, n, p;
  bool symmetric;
  double *x1, *x2, *w;
  scl_mat *a, *b, *c;
} problem;

static scl_status problem_new(problem *q, scl_context *ctx, kernel_maker *make, size_t m, size_t n,
                              size_t p) {
  *q = (problem){.m = m, .n = n == 0 ? m : n, .p = p, .symmetric = n == 0};
  make(&q->k, p);
  q->x1 = test_alloc(m * p * sizeof *q->x1);
  q->x2 = test_alloc(q->n * p * sizeof *q->x2);
  q->w = test_alloc(m * q->n * sizeof *q->w);
  test_fill(q->x1, m * p);
  test_fill(q->x2, q->n * p);
  test_fill(q->w, m * q->n);
  if (q->symmetric) {
    memcpy(q->x2, q->x1, m * p * sizeof *q->x1);
    for (size_t j = 0; j < m; j++) {
      for (size_t i = 0; i < j; i++) q->w[i + j * m] = q->w[j + i * m];
    }
  }
  SCL_TRY(scl_mat_from_host(ctx, q->x1, m, p, SCL_GENERAL, &q->a));
  if (!q->symmetric) SCL_TRY(scl_mat_from_host(ctx, q->x2, q->n, p, SCL_GENERAL, &q->b));
  return scl_mat_from_host(ctx, q->w, m, q->n, SCL_GENERAL, &q->c);
}

static void problem_free(problem *q) {
  RELEASE(q->a, q->b, q->c);
  FREE(q->x1, q->x2, q->w);
}

/* sum(w * K), K as the operation has it; rows before `from` and columns likewise are left out,
 * unless `from` is m: all. */
static long double weighted_sum(const problem *q) {
  long double sum = 0;
  for (size_t j = 0; j < q->n; j++) {
    for (size_t i = 0; i < q->m; i++) {
      const scl_covariance *kernel = &q->k.kernel;
      long double k = q->symmetric ? test_covariance_within(kernel, q->x1, q->m, i, j)
                                   : test_covariance_value(kernel, q->x1, q->m, i, q->x2, q->n, j);
      sum += q->w[i + j * q->m] * k;
    }
  }
  return sum;
}

/* Against central differences in long double, which are independent of the formulas'
 * derivatives. */
static void check_adjoint(scl_context *ctx, kernel_maker *make, size_t m, size_t n, size_t p) {
  problem q;
  double got[MOST_PARAMETERS], again[MOST_PARAMETERS];
  REQUIRE_OK(problem_new(&q, ctx, make, m, n, p));
  CHECK_OK(scl_covariance_adjoint(&q.k.kernel, q.a, q.b, q.c, got));
  CHECK_OK(scl_covariance_adjoint(&q.k.kernel, q.a, q.b, q.c, again));
  int count = scl_covariance_count(&q.k.kernel);
  CHECK(memcmp(got, again, (size_t)count * sizeof *got) == 0);
  for (int i = 0; i < count; i++) {
    double *parameter = test_kernel_parameter(&q.k, i), keep = *parameter;
    double h = 0x1p-20, up = keep * exp(h), down = keep * exp(-h);
    *parameter = up;
    long double high = weighted_sum(&q);
    *parameter = down;
    long double low = weighted_sum(&q);
    *parameter = keep;
    CHECK_NEAR(got[i], (double)((high - low) / (logl(up) - logl(down))), 1e-9);
  }
  problem_free(&q);
}

/* The same with respect to some coordinates of the points. */
static void check_inputs(scl_context *ctx, kernel_maker *make, size_t m, size_t n, size_t p) {
  problem q;
  REQUIRE_OK(problem_new(&q, ctx, make, m, n, p));
  scl_mat *out = NULL;
  double *got = test_alloc(m * p * sizeof *got);
  REQUIRE_OK(scl_covariance_inputs(&q.k.kernel, q.a, q.b, q.c, &out));
  CHECK_OK(scl_mat_to_host(out, got));
  for (size_t at = 0; at < m * p; at += 1 + m * p / 9) {
    double keep = q.x1[at], h = 0x1p-20;
    q.x1[at] = keep + h;
    long double high = weighted_sum(&q);
    q.x1[at] = keep - h;
    long double low = weighted_sum(&q);
    q.x1[at] = keep;
    CHECK_NEAR(got[at], (double)((high - low) / (2 * (long double)h)), 1e-9);
  }
  scl_mat_release(out);
  free(got);
  problem_free(&q);
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
  k.term[2].sd = NAN;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_matrix(&k.kernel, a, NULL, &out));
  test_kernel_mixed(&k, 2);
  k.kernel.noise = -1;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_matrix(&k.kernel, a, NULL, &out));
  test_kernel_composed(&k, 2);
  k.term[2].extra = 0;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_matrix(&k.kernel, a, NULL, &out));
  test_kernel_composed(&k, 2);
  k.center[0] = INFINITY;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_matrix(&k.kernel, a, NULL, &out));
  static const int lacking[] = {1, 11}, many[] = {SCL_COVARIANCE_MOST_FACTORS + 1, 0}, none[] = {0};
  const int *const wrong[] = {lacking, many, none};
  for (size_t i = 0; i < 3; i++) {
    test_kernel_composed(&k, 2);
    k.kernel.factors = wrong[i];
    k.kernel.products = 1;
    CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_matrix(&k.kernel, a, NULL, &out));
  }
  test_kernel_mixed(&k, 2);
  double sums[MOST_PARAMETERS];
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_adjoint(&k.kernel, a, NULL, a, sums));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_inputs(&k.kernel, a, NULL, a, &out));
  CHECK(out == NULL);
  scl_covariance_type type = SCL_COVARIANCE_EXP_QUAD;
  CHECK_OK(scl_covariance_find("matern52", &type));
  CHECK(type == SCL_COVARIANCE_MATERN52);
  CHECK_STATUS(SCL_E_ARGUMENT, scl_covariance_find("cubic", &type));
  RELEASE(a, b);
}

static void check_empty(scl_context *ctx) {
  test_kernel k;
  test_kernel_mixed(&k, 2);
  double got[MOST_PARAMETERS];
  scl_mat *a = NULL, *out = NULL, *by_x = NULL;
  CHECK_OK(scl_mat_create(ctx, 0, 2, SCL_GENERAL, &a));
  CHECK_OK(scl_covariance_matrix(&k.kernel, a, NULL, &out));
  CHECK(scl_mat_nrow(out) == 0 && scl_mat_ncol(out) == 0);
  CHECK_OK(scl_covariance_adjoint(&k.kernel, a, NULL, out, got));
  CHECK(got[0] == 0);
  CHECK_OK(scl_covariance_inputs(&k.kernel, a, NULL, out, &by_x));
  CHECK(scl_mat_nrow(by_x) == 0 && scl_mat_ncol(by_x) == 2);
  RELEASE(a, out, by_x);
}

void test_covariance(scl_context *ctx) {
  static const size_t shapes[][2] = {{1, 1},   {2, 3},   {15, 17}, {16, 16}, {31, 1},  {33, 64},
                                     {63, 65}, {65, 63}, {64, 2},  {1, 130}, {129, 70}};
  static kernel_maker *const makers[] = {test_kernel_mixed, test_kernel_composed};
  size_t count = test_small() ? 7 : LENGTH(shapes);
  for (size_t i = 0; i < count; i++) {
    if (!test_turn(ctx, i, 2)) continue;
    for (size_t j = 0; j < 2; j++) {
      check_matrix(ctx, makers[j], shapes[i][0], shapes[i][1], 1 + i % 4);
      check_adjoint(ctx, makers[j], shapes[i][0], shapes[i][1], 1 + i % 4);
      check_adjoint(ctx, makers[j], shapes[i][0], 0, 1 + i % 4);
      check_inputs(ctx, makers[j], shapes[i][0], shapes[i][1], 1 + i % 4);
      check_inputs(ctx, makers[j], shapes[i][0], 0, 1 + i % 4);
    }
  }
  test_seed(1);
  check_matrix(ctx, test_kernel_mixed, test_small() ? 20 : 300, 20, 35);
  check_adjoint(ctx, test_kernel_mixed, 40, 0, 35); /* more derivatives than one launch has */
  check_adjoint(ctx, test_kernel_composed, 20, 0, 15);
  if (!test_small()) check_adjoint(ctx, test_kernel_mixed, 400, 0, 1); /* more tiles than groups */
  check_refusals(ctx);
  check_empty(ctx);
}
