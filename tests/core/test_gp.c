#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gp_process.h"
#include "test.h"

static void check_evaluate(scl_context *ctx, problem *p, scl_gp_objective objective) {
  scl_gp *gp = NULL;
  REQUIRE_OK(scl_gp_create(ctx, &p->data, &gp));
  CHECK(scl_gp_shape_of(gp).n == p->data.n && scl_gp_context(gp) == ctx);
  double value, alone, b[MOST_BASIS * MOST_OUTPUTS], gradient[MOST_PARAMETERS];
  long_double want = process_value(p, objective);
  CHECK_OK(scl_gp_evaluate(gp, &p->k.kernel, objective, p->trend, &alone, b, NULL));
  CHECK_NEAR(alone, (double)want, 1e-11);
  CHECK_OK(scl_gp_evaluate(gp, &p->k.kernel, objective, p->trend, &value, b, gradient));
  CHECK_NEAR(value, (double)want, 1e-11);
  reference r;
  process_new(&r, p, p->data.n);
  for (size_t i = 0; i < r.q * r.outputs; i++) CHECK_NEAR(b[i], (double)r.b[i], 1e-10);
  process_free(&r);
  for (int i = 0; i < scl_covariance_count(&p->k.kernel); i++) {
    double *parameter = test_kernel_parameter(&p->k, i), keep = *parameter, h = 0x1p-20;
    double up = keep * exp(h), down = keep * exp(-h);
    *parameter = up;
    long_double high = process_value(p, objective);
    *parameter = down;
    long_double low = process_value(p, objective);
    *parameter = keep;
    CHECK_NEAR(gradient[i], (double)((high - low) / (logl(up) - logl(down))), 1e-8);
  }
  scl_gp_release(gp);
}

/* The same results from C itself, and from covariances with the points. */
static void check_given(scl_context *ctx, problem *p, scl_gp_objective objective) {
  if (p->data.spread != NULL) return;
  size_t n = p->data.n, q = p->data.basis_columns, outputs = p->data.outputs, m = n + 2;
  double *at = test_alloc(m * p->data.p * sizeof *at), *h = test_alloc((m * q + 1) * sizeof *h);
  double *found = test_alloc(2 * (m * outputs + m + m * m) * sizeof *found);
  double *weights = test_alloc(n * outputs * sizeof *weights);
  double value[2], b[2][MOST_BASIS * MOST_OUTPUTS], gradient[2][MOST_PARAMETERS];
  double a_inverse[MOST_BASIS * MOST_BASIS];
  double *mean[2], *variance[2], *both[2];
  scl_gp *gp = NULL;
  scl_mat *x = NULL, *points = NULL, *c = NULL, *slope = NULL, *cross = NULL, *within = NULL;
  for (int i = 0; i < 2; i++) {
    mean[i] = found + (size_t)i * (m * outputs + m + m * m);
    variance[i] = mean[i] + m * outputs;
    both[i] = variance[i] + m;
  }
  test_fill(at, m * p->data.p);
  test_fill(h, m * q);
  REQUIRE_OK(scl_gp_create(ctx, &p->data, &gp));
  REQUIRE_OK(scl_mat_from_host(ctx, p->data.x, n, p->data.p, SCL_GENERAL, &x));
  REQUIRE_OK(scl_mat_from_host(ctx, at, m, p->data.p, SCL_GENERAL, &points));
  REQUIRE_OK(scl_covariance_matrix(&p->k.kernel, x, NULL, &c));
  REQUIRE_OK(scl_covariance_matrix(&p->k.kernel, x, points, &cross));
  REQUIRE_OK(scl_covariance_matrix(&p->k.kernel, points, points, &within));
  CHECK_OK(scl_gp_evaluate(gp, &p->k.kernel, objective, p->trend, value, b[0], gradient[0]));
  CHECK_OK(scl_gp_evaluate_given(gp, c, objective, p->trend, value + 1, b[1], NULL));
  CHECK_NEAR(value[1], value[0], 1e-12);
  REQUIRE_OK(scl_gp_evaluate_given(gp, c, objective, p->trend, value + 1, b[1], &slope));
  CHECK_NEAR(value[1], value[0], 1e-12);
  for (size_t i = 0; i < q * outputs; i++) CHECK_NEAR(b[1][i], b[0][i], 1e-10);
  CHECK_OK(scl_covariance_adjoint(&p->k.kernel, x, NULL, slope, gradient[1]));
  for (int i = 0; i < scl_covariance_count(&p->k.kernel); i++) {
    CHECK_NEAR(gradient[1][i], gradient[0][i], 1e-9);
  }
  CHECK_OK(scl_gp_condition(gp, &p->k.kernel, p->trend, value, b[0], a_inverse, weights));
  CHECK_OK(scl_gp_predict(gp, &p->k.kernel, at, h, m, mean[0], variance[0], both[0]));
  scl_gp_release(gp);
  REQUIRE_OK(scl_gp_create(ctx, &p->data, &gp));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_gp_predict_given(gp, cross, within, h, mean[1], NULL, both[1]));
  CHECK_OK(scl_gp_condition_given(gp, c, p->trend, value + 1, b[1], a_inverse, weights));
  CHECK_NEAR(value[1], value[0], 1e-12);
  scl_covariance_variances(&p->k.kernel, at, m, m, variance[1]);
  CHECK_OK(scl_gp_predict_given(gp, cross, within, h, mean[1], variance[1], both[1]));
  for (size_t i = 0; i < m * outputs + m + m * m; i++) CHECK_NEAR(mean[1][i], mean[0][i], 1e-9);
  CHECK_STATUS(SCL_E_ARGUMENT, scl_gp_predict_given(gp, cross, NULL, h, mean[1], NULL, both[1]));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_gp_predict_given(gp, within, within, h, mean[1], NULL, NULL));
  CHECK_STATUS(SCL_E_ARGUMENT,
               scl_gp_evaluate_given(gp, within, objective, p->trend, value, b[0], NULL));
  scl_mat *all[] = {x, points, c, slope, cross, within};
  for (size_t i = 0; i < LENGTH(all); i++) scl_mat_release(all[i]);
  scl_gp_release(gp);
  FREE(at, h, found, weights);
}

/* Conditions and predicts at m points; with `extended` the last third of the data comes later. */
static void check_predict(scl_context *ctx, problem *p, size_t m, bool extended) {
  size_t n = p->data.n, q = p->data.basis_columns, outputs = p->data.outputs, cols = p->data.p;
  double *at = test_alloc(m * cols * sizeof *at), *h = test_alloc((m * q + 1) * sizeof *h);
  double *mean = test_alloc(m * outputs * sizeof *mean), *variance = test_alloc(m * sizeof *at);
  double *both = test_alloc(m * m * sizeof *both), *weights = test_alloc(n * outputs * sizeof *at);
  double *diagonal = test_alloc(n * sizeof *diagonal);
  double value, b[MOST_BASIS * MOST_OUTPUTS], a_inverse[MOST_BASIS * MOST_BASIS];
  test_fill(at, m * cols);
  test_fill(h, m * q);
  scl_gp *gp = NULL;
  reference r;
  process_new(&r, p, n);
  if (extended) {
    problem some = *p;
    size_t few = n - n / 3;
    double *parts[] = {test_alloc(n * cols * sizeof *at), test_alloc(n * outputs * sizeof *at),
                       test_alloc((n * q + 1) * sizeof *at), test_alloc(2 * n * sizeof *at)};
    const double *whole[] = {p->x, p->y, p->basis, p->spread};
    const size_t columns[] = {cols, outputs, q, 2};
    for (size_t i = 0; i < 4; i++) {
      for (size_t c = 0; c < columns[i]; c++) {
        memcpy(parts[i] + c * few, whole[i] + c * n, few * sizeof *at);
      }
    }
    some.data.n = few;
    some.data.x = parts[0];
    some.data.y = parts[1];
    some.data.basis = parts[2];
    if (p->data.spread != NULL) some.data.spread = parts[3];
    scl_gp *old = NULL;
    REQUIRE_OK(scl_gp_create(ctx, &some.data, &old));
    CHECK_STATUS(SCL_E_ARGUMENT, scl_gp_extend(old, &p->data, &p->k.kernel, p->trend, &value, b,
                                               a_inverse, weights, &gp));
    CHECK_OK(scl_gp_condition(old, &p->k.kernel, p->trend, &value, b, a_inverse, weights));
    REQUIRE_OK(
        scl_gp_extend(old, &p->data, &p->k.kernel, p->trend, &value, b, a_inverse, weights, &gp));
    scl_gp_release(old);
    for (size_t i = 0; i < 4; i++) free(parts[i]);
  } else {
    REQUIRE_OK(scl_gp_create(ctx, &p->data, &gp));
    CHECK_STATUS(SCL_E_ARGUMENT, scl_gp_predict(gp, &p->k.kernel, at, h, m, mean, NULL, NULL));
    CHECK_OK(scl_gp_condition(gp, &p->k.kernel, p->trend, &value, b, a_inverse, weights));
  }
  CHECK_NEAR(value, (double)r.value, 1e-11);
  CHECK_NEAR(weights[n - 1], (double)r.a[n - 1], 1e-10);
  CHECK_OK(scl_gp_predict(gp, &p->k.kernel, at, h, m, mean, variance, both));

  long_double *v = test_alloc(m * n * sizeof *v), *u = test_alloc((m * q + 1) * sizeof *u);
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < q; j++) u[j + i * q] = h[i + j * m];
    for (size_t j = 0; j < n; j++) {
      v[i * n + j] = test_covariance_value(&p->k.kernel, at, m, i, p->x, n, j);
    }
    for (size_t k = 0; k < outputs; k++) {
      CHECK_NEAR(mean[i + k * m], (double)process_mean(&r, v + i * n, u + i * q, k), 1e-10);
    }
    process_spread(&r, v + i * n, u + i * q);
  }
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j <= i; j++) {
      long_double want = test_covariance_value(&p->k.kernel, at, m, i, at, m, j);
      want += process_dot(u + i * q, u + j * q, q) - process_dot(v + i * n, v + j * n, n);
      CHECK_NEAR(both[i + j * m], (double)want, 1e-10);
      CHECK(both[i + j * m] == both[j + i * m]);
      if (i == j) CHECK_NEAR(variance[i], (double)want, 1e-10);
    }
  }
  CHECK_OK(scl_gp_precisions(gp, diagonal));
  reference one;
  process_new(&one, p, n - 1);
  for (size_t j = 0; j < one.n; j++) v[j] = process_covariance(p, n - 1, one.row[j]);
  for (size_t j = 0; j < q; j++) u[j] = p->basis[n - 1 + j * n];
  process_spread(&one, v, u);
  long_double left =
      process_covariance(p, n - 1, n - 1) - process_dot(v, v, one.n) + process_dot(u, u, q);
  CHECK_NEAR(diagonal[n - 1] * (double)left, 1.0, 1e-10);
  process_free(&one);
  process_free(&r);
  scl_gp_release(gp);
  FREE(at, h, mean, variance, both, weights, diagonal, v, u);
}

/* The slope of the mean against central differences of it. */
static void check_slope(scl_context *ctx, kernel_maker *make) {
  problem p;
  process_problem(&p, make, 20, 2, 2, 0, false, SCL_GP_PROFILE);
  double at[6] = {0.1, -0.3, 0.7, 0.2, 0.5, -0.6}, slope[6], moved[6];
  double value, high[6], low[6], weights[40], h = 0x1p-16;
  scl_gp *gp = NULL;
  REQUIRE_OK(scl_gp_create(ctx, &p.data, &gp));
  CHECK_OK(scl_gp_condition(gp, &p.k.kernel, p.trend, &value, NULL, NULL, weights));
  CHECK_OK(scl_gp_slope(gp, &p.k.kernel, at, 3, 1, slope));
  for (size_t i = 0; i < 6; i++) {
    memcpy(moved, at, sizeof at);
    moved[i] = at[i] + h;
    CHECK_OK(scl_gp_predict(gp, &p.k.kernel, moved, NULL, 3, high, NULL, NULL));
    moved[i] = at[i] - h;
    CHECK_OK(scl_gp_predict(gp, &p.k.kernel, moved, NULL, 3, low, NULL, NULL));
    CHECK_NEAR(slope[i], (high[3 + i % 3] - low[3 + i % 3]) / (2 * h), 1e-7);
  }
  CHECK_STATUS(SCL_E_ARGUMENT, scl_gp_slope(gp, &p.k.kernel, at, 3, 2, slope));
  scl_gp_release(gp);
  process_problem_free(&p);
}

static void check_refusals(scl_context *ctx) {
  test_kernel k;
  double x[4] = {0.1, 0.1, 0.5, 0.9}, y[4] = {1, 2, 3, 4}, basis[8] = {1, 1, 1, 1};
  double value = 7, gradient[MOST_PARAMETERS];
  scl_gp_data data = {.n = 4, .p = 1, .outputs = 1, .x = x, .y = y};
  scl_gp *gp = NULL;
  data.n = 0;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_gp_create(ctx, &data, &gp));
  data.n = 4;
  data.p = 0;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_gp_create(ctx, &data, &gp));
  data.p = 1;
  y[2] = NAN;
  CHECK_STATUS(SCL_E_NONFINITE, scl_gp_create(ctx, &data, &gp));
  CHECK(strcmp(scl_fault_last()->argument, "y") == 0 && scl_fault_last()->index == 3);
  y[2] = 3;
  CHECK(gp == NULL);
  REQUIRE_OK(scl_gp_create(ctx, &data, &gp));
  test_kernel_mixed(&k, 1);
  k.kernel.noise = 0; /* rows 1 and 2 are the same: singular, and exactly so with these numbers */
  k.kernel.terms = k.kernel.entries = 1;
  k.term[0].sd = 1;
  CHECK_STATUS(SCL_E_NOT_PD,
               scl_gp_evaluate(gp, &k.kernel, SCL_GP_MARGINAL, SCL_GP_PROFILE, &value, NULL, NULL));
  CHECK(scl_fault_last()->index == 2);
  for (int i = 0; i < 2; i++) {
    CHECK_STATUS(SCL_E_NOT_PD, scl_gp_evaluate(gp, &k.kernel, (scl_gp_objective)i, SCL_GP_PROFILE,
                                               &value, NULL, gradient));
  }
  CHECK(value == 7);
  k.kernel.noise = 0.1;
  CHECK_OK(scl_gp_evaluate(gp, &k.kernel, SCL_GP_MARGINAL, SCL_GP_PROFILE, &value, NULL, gradient));
  CHECK(isfinite(value));
  scl_gp_release(gp);
  data.basis = basis;
  data.basis_columns = 2;
  gp = NULL;
  REQUIRE_OK(scl_gp_create(ctx, &data, &gp));
  double b[2];
  CHECK_STATUS(SCL_E_SINGULAR,
               scl_gp_evaluate(gp, &k.kernel, SCL_GP_MARGINAL, SCL_GP_PROFILE, &value, b, NULL));
  scl_gp_release(gp);
}

/* More than the context may hold: an error before any work, with the largest possible number. */
static void check_memory(scl_context *ctx) {
  problem p;
  process_problem(&p, test_kernel_mixed, 200, 1, 1, 0, false, SCL_GP_PROFILE);
  uint64_t limit = ctx->memory.limit, live = ctx->memory.live;
  double value, gradient[MOST_PARAMETERS];
  scl_gp *gp = NULL;
  ctx->memory.limit = live + 200000;
  CHECK_STATUS(SCL_E_MEMORY, scl_gp_create(ctx, &p.data, &gp));
  size_t most = scl_gp_largest(ctx, 1);
  CHECK(most > 100 && most < 200);
  CHECK(strstr(scl_fault_last()->message, "200 observations need 1 matrix") != NULL);
  CHECK(ctx->memory.live == live);
  ctx->memory.limit = live + 500000;
  REQUIRE_OK(scl_gp_create(ctx, &p.data, &gp));
  if (!scl_context_is_host(ctx)) {
    CHECK_STATUS(SCL_E_MEMORY, scl_gp_evaluate(gp, &p.k.kernel, SCL_GP_MARGINAL, SCL_GP_PROFILE,
                                               &value, NULL, gradient));
    CHECK(strstr(scl_fault_last()->message, "need 2 matrices") != NULL);
  }
  ctx->memory.limit = limit;
  CHECK_OK(
      scl_gp_evaluate(gp, &p.k.kernel, SCL_GP_MARGINAL, SCL_GP_PROFILE, &value, NULL, gradient));
  scl_gp_release(gp);
  CHECK(ctx->memory.live == live);
  process_problem_free(&p);
}

static void check_all(scl_context *ctx, kernel_maker *make, size_t n, size_t i) {
  for (int trend = 0; trend < 2; trend++) {
    size_t q = n > 4 ? (i + 1) % 4 : 0;
    problem p;
    process_problem(&p, make, n, 1 + i % 3, 1 + i % 2, q, i % 3 == 1, (scl_gp_trend)trend);
    check_evaluate(ctx, &p, SCL_GP_MARGINAL);
    check_given(ctx, &p, SCL_GP_MARGINAL);
    if (n <= 17) {
      check_evaluate(ctx, &p, SCL_GP_LEAVE_ONE_OUT);
      check_given(ctx, &p, SCL_GP_LEAVE_ONE_OUT);
    }
    if (n > 1) check_predict(ctx, &p, 1 + (n * 7) % 40, false);
    if (n > 4) check_predict(ctx, &p, 1 + (n * 5) % 40, true);
    process_problem_free(&p);
    if (q == 0) return;
  }
}

void test_gp(scl_context *ctx) {
  static const size_t sizes[] = {1, 2, 7, 17, 31, 33, 64, 65};
  size_t count = test_small() ? 5 : LENGTH(sizes);
  for (size_t i = 0; i < count; i++) {
    check_all(ctx, test_kernel_mixed, sizes[i], i);
    if (i < 6) check_all(ctx, test_kernel_composed, sizes[i], i + 1);
  }
  if (!test_small()) {
    problem p;
    process_problem(&p, test_kernel_mixed, 130, 2, 1, 2, true, SCL_GP_INTEGRATE);
    check_predict(ctx, &p, 65, false);
    check_predict(ctx, &p, 65, true);
    process_problem_free(&p);
  }
  check_slope(ctx, test_kernel_mixed);
  check_slope(ctx, test_kernel_composed);
  check_refusals(ctx);
  check_memory(ctx);
}
