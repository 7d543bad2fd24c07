#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/scl_gp.h"
#include "gp_reference.h"
#include "test.h"

typedef long double real;
typedef void kernel_maker(test_kernel *k, size_t p);

/* ---- the textbook in long double ------------------------------------------------------------ */

enum { MOST_BASIS = 3, MOST_OUTPUTS = 2 };

/* A problem; the arrays of data are its own. */
typedef struct {
  scl_gp_data data;
  double *x, *y, *basis, *spread;
  test_kernel k;
  scl_gp_trend trend;
} problem;

static void problem_new(problem *r, kernel_maker *make, size_t n, size_t p, size_t outputs,
                        size_t q, bool spread, scl_gp_trend trend) {
  r->trend = trend;
  make(&r->k, p);
  r->x = test_alloc(n * p * sizeof *r->x);
  r->y = test_alloc(n * outputs * sizeof *r->y);
  r->basis = test_alloc((n * q + 1) * sizeof *r->basis);
  r->spread = test_alloc(2 * n * sizeof *r->spread);
  test_fill(r->x, n * p);
  test_fill(r->y, n * outputs);
  test_fill(r->basis, n * q);
  for (size_t i = 0; i < n && q > 0; i++) r->basis[i] = 1;
  for (size_t i = 0; i < 2 * n; i++) r->spread[i] = 0.3 + fabs(test_random());
  r->data = (scl_gp_data){n, p, outputs, q, r->x, r->y, r->basis, spread ? r->spread : NULL};
}

static void problem_free(problem *r) {
  free(r->x);
  free(r->y);
  free(r->basis);
  free(r->spread);
}

/* C_ij as the process has it. */
static real covariance(const problem *r, size_t i, size_t j) {
  size_t n = r->data.n;
  real value = test_covariance_within(&r->k.kernel, r->x, n, i, j);
  if (i != j || r->data.spread == NULL) return value;
  real noise2 = (real)r->k.kernel.noise * r->k.kernel.noise;
  return value - noise2 + noise2 * r->spread[i] + r->spread[i + n];
}

/* The process given its data, all of it but row `without` (n: none). */
typedef struct {
  size_t n, q, outputs;
  size_t *row;
  real *l, *s, *z, *a; /* L, L^-1 H, L^-1 (y - H b), C^-1 (y - H b) */
  real m[MOST_BASIS * MOST_BASIS], b[MOST_BASIS * MOST_OUTPUTS], value;
} reference;

static void factor(real *l, size_t n) {
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      for (size_t k = 0; k < j; k++) l[i + j * n] -= l[i + k * n] * l[j + k * n];
      l[i + j * n] = i == j ? sqrtl(l[i + j * n]) : l[i + j * n] / l[j + j * n];
    }
  }
}

static void solve_lower(const real *l, size_t n, real *b) {
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < i; k++) b[i] -= l[i + k * n] * b[k];
    b[i] /= l[i + i * n];
  }
}

static void solve_upper(const real *l, size_t n, real *b) {
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; k++) b[i] -= l[k + i * n] * b[k];
    b[i] /= l[i + i * n];
  }
}

static real dot(const real *a, const real *b, size_t n) {
  real sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

static void solve_trend(reference *r) {
  size_t n = r->n, q = r->q;
  for (size_t i = 0; i < q; i++) {
    for (size_t j = 0; j < q; j++) r->m[i + j * q] = dot(r->s + i * n, r->s + j * n, n);
    for (size_t k = 0; k < r->outputs; k++) {
      r->b[i + k * q] = dot(r->s + i * n, r->z + k * n, n);
    }
  }
  factor(r->m, q);
  for (size_t k = 0; k < r->outputs; k++) {
    solve_lower(r->m, q, r->b + k * q);
    solve_upper(r->m, q, r->b + k * q);
    for (size_t j = 0; j < q; j++) {
      for (size_t i = 0; i < n; i++) r->z[i + k * n] -= r->s[i + j * n] * r->b[j + k * q];
    }
  }
}

static void reference_new(reference *r, const problem *p, size_t without) {
  size_t all = p->data.n, n = 0;
  *r = (reference){.q = p->data.basis_columns, .outputs = p->data.outputs};
  r->row = test_alloc(all * sizeof *r->row);
  for (size_t i = 0; i < all; i++) {
    if (i != without) r->row[n++] = i;
  }
  r->n = n;
  r->l = test_alloc(n * n * sizeof *r->l);
  r->s = test_alloc((n * r->q + 1) * sizeof *r->s);
  r->z = test_alloc(n * r->outputs * sizeof *r->z);
  r->a = test_alloc(n * r->outputs * sizeof *r->a);
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < n; j++) r->l[i + j * n] = covariance(p, r->row[i], r->row[j]);
    for (size_t k = 0; k < r->q; k++) r->s[i + k * n] = p->basis[r->row[i] + k * all];
    for (size_t k = 0; k < r->outputs; k++) r->z[i + k * n] = p->y[r->row[i] + k * all];
  }
  factor(r->l, n);
  for (size_t k = 0; k < r->q; k++) solve_lower(r->l, n, r->s + k * n);
  for (size_t k = 0; k < r->outputs; k++) solve_lower(r->l, n, r->z + k * n);
  solve_trend(r);
  real log_det = 0, rows = n;
  for (size_t i = 0; i < n; i++) log_det += logl(r->l[i + i * n]);
  if (p->trend == SCL_GP_INTEGRATE) {
    for (size_t i = 0; i < r->q; i++) log_det += logl(r->m[i + i * r->q]);
    rows -= r->q;
  }
  for (size_t k = 0; k < r->outputs; k++) {
    real *z = r->z + k * n, *a = r->a + k * n;
    r->value -= dot(z, z, n) / 2 + log_det + rows * logl(2 * acosl(-1)) / 2;
    memcpy(a, z, n * sizeof *a);
    solve_upper(r->l, n, a);
  }
}

static void reference_free(reference *r) {
  free(r->row);
  free(r->l);
  free(r->s);
  free(r->z);
  free(r->a);
}

/* At one point, from its covariances v with the data, which become L^-1 v, and its basis h, which
 * becomes r = M^-1 (h - S' v): v' a + h' b. */
static real reference_mean(const reference *r, real *v, real *h, size_t output) {
  real mean = dot(v, r->a + output * r->n, r->n);
  for (size_t j = 0; j < r->q; j++) mean += h[j] * r->b[j + output * r->q];
  return mean;
}

static void reference_spread(const reference *r, real *v, real *h) {
  solve_lower(r->l, r->n, v);
  for (size_t j = 0; j < r->q; j++) h[j] -= dot(r->s + j * r->n, v, r->n);
  solve_lower(r->m, r->q, h);
}

/* The sum of log p(y_i | the others), each from a factor of its own. */
static real leave_one_out(const problem *p) {
  size_t n = p->data.n;
  real sum = 0, *v = test_alloc(n * sizeof *v);
  for (size_t i = 0; i < n; i++) {
    reference r;
    reference_new(&r, p, i);
    real h[MOST_BASIS], mean[MOST_OUTPUTS];
    for (size_t j = 0; j < r.q; j++) h[j] = p->basis[i + j * n];
    for (size_t j = 0; j < r.n; j++) v[j] = covariance(p, i, r.row[j]);
    for (size_t k = 0; k < r.outputs; k++) mean[k] = reference_mean(&r, v, h, k);
    reference_spread(&r, v, h);
    real variance = covariance(p, i, i) - dot(v, v, r.n) + dot(h, h, r.q);
    for (size_t k = 0; k < r.outputs; k++) {
      real e = p->y[i + k * n] - mean[k];
      sum -= e * e / variance / 2 + logl(2 * acosl(-1) * variance) / 2;
    }
    reference_free(&r);
  }
  free(v);
  return sum;
}

static real reference_value(const problem *p, scl_gp_objective objective) {
  if (objective == SCL_GP_LEAVE_ONE_OUT) return leave_one_out(p);
  reference r;
  reference_new(&r, p, p->data.n);
  reference_free(&r);
  return r.value;
}

/* ---- checks --------------------------------------------------------------------------------- */

static void check_evaluate(scl_context *ctx, problem *p, scl_gp_objective objective) {
  scl_gp *gp = NULL;
  REQUIRE_OK(scl_gp_create(ctx, &p->data, &gp));
  CHECK(scl_gp_rows(gp) == p->data.n && scl_gp_context(gp) == ctx);
  double value, alone, b[MOST_BASIS * MOST_OUTPUTS], gradient[MOST_PARAMETERS];
  real want = reference_value(p, objective);
  CHECK_OK(scl_gp_evaluate(gp, &p->k.kernel, objective, p->trend, &alone, b, NULL));
  CHECK_NEAR(alone, (double)want, 1e-11);
  CHECK_OK(scl_gp_evaluate(gp, &p->k.kernel, objective, p->trend, &value, b, gradient));
  CHECK_NEAR(value, (double)want, 1e-11);
  reference r;
  reference_new(&r, p, p->data.n);
  for (size_t i = 0; i < r.q * r.outputs; i++) CHECK_NEAR(b[i], (double)r.b[i], 1e-10);
  reference_free(&r);
  for (int i = 0; i < scl_covariance_count(&p->k.kernel); i++) {
    double *parameter = test_kernel_parameter(&p->k, i), keep = *parameter, h = 0x1p-20;
    double up = keep * exp(h), down = keep * exp(-h);
    *parameter = up;
    real high = reference_value(p, objective);
    *parameter = down;
    real low = reference_value(p, objective);
    *parameter = keep;
    CHECK_NEAR(gradient[i], (double)((high - low) / (logl(up) - logl(down))), 1e-8);
  }
  scl_gp_release(gp);
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
  reference_new(&r, p, n);
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

  real *v = test_alloc(m * n * sizeof *v), *u = test_alloc((m * q + 1) * sizeof *u);
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < q; j++) u[j + i * q] = h[i + j * m];
    for (size_t j = 0; j < n; j++) {
      v[i * n + j] = test_covariance_value(&p->k.kernel, at, m, i, p->x, n, j);
    }
    for (size_t k = 0; k < outputs; k++) {
      CHECK_NEAR(mean[i + k * m], (double)reference_mean(&r, v + i * n, u + i * q, k), 1e-10);
    }
    reference_spread(&r, v + i * n, u + i * q);
  }
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j <= i; j++) {
      real want = test_covariance_value(&p->k.kernel, at, m, i, at, m, j);
      want += dot(u + i * q, u + j * q, q) - dot(v + i * n, v + j * n, n);
      CHECK_NEAR(both[i + j * m], (double)want, 1e-10);
      CHECK(both[i + j * m] == both[j + i * m]);
      if (i == j) CHECK_NEAR(variance[i], (double)want, 1e-10);
    }
  }
  CHECK_OK(scl_gp_precisions(gp, diagonal));
  reference one;
  reference_new(&one, p, n - 1);
  for (size_t j = 0; j < one.n; j++) v[j] = covariance(p, n - 1, one.row[j]);
  for (size_t j = 0; j < q; j++) u[j] = p->basis[n - 1 + j * n];
  reference_spread(&one, v, u);
  real left = covariance(p, n - 1, n - 1) - dot(v, v, one.n) + dot(u, u, q);
  CHECK_NEAR(diagonal[n - 1] * (double)left, 1.0, 1e-10);
  reference_free(&one);
  reference_free(&r);
  scl_gp_release(gp);
  free(at);
  free(h);
  free(mean);
  free(variance);
  free(both);
  free(weights);
  free(diagonal);
  free(v);
  free(u);
}

/* The slope of the mean against central differences of it. */
static void check_slope(scl_context *ctx, kernel_maker *make) {
  problem p;
  problem_new(&p, make, 20, 2, 2, 0, false, SCL_GP_PROFILE);
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
  problem_free(&p);
}

static void check_refusals(scl_context *ctx) {
  test_kernel k;
  double x[4] = {0.1, 0.1, 0.5, 0.9}, y[4] = {1, 2, 3, 4}, basis[8] = {1, 1, 1, 1, 2, 2, 2, 2};
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
  scl_status status =
      scl_gp_evaluate(gp, &k.kernel, SCL_GP_MARGINAL, SCL_GP_PROFILE, &value, b, NULL);
  CHECK(status == SCL_E_SINGULAR || !isfinite(b[0]) || fabs(b[0]) > 1e3);
  scl_gp_release(gp);
}

/* More than the context may hold: told before any work, with the number that there is room for. */
static void check_memory(scl_context *ctx) {
  problem p;
  problem_new(&p, test_kernel_mixed, 200, 1, 1, 0, false, SCL_GP_PROFILE);
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
  problem_free(&p);
}

static void check_all(scl_context *ctx, kernel_maker *make, size_t n, size_t i) {
  for (int trend = 0; trend < 2; trend++) {
    size_t q = n > 4 ? (i + 1) % 4 : 0;
    problem p;
    problem_new(&p, make, n, 1 + i % 3, 1 + i % 2, q, i % 3 == 1, (scl_gp_trend)trend);
    check_evaluate(ctx, &p, SCL_GP_MARGINAL);
    if (n <= 17) check_evaluate(ctx, &p, SCL_GP_LEAVE_ONE_OUT);
    if (n > 1) check_predict(ctx, &p, 1 + (n * 7) % 40, false);
    if (n > 4) check_predict(ctx, &p, 1 + (n * 5) % 40, true);
    problem_free(&p);
    if (q == 0) return;
  }
}

void test_gp(scl_context *ctx) {
  static const size_t sizes[] = {1, 2, 7, 17, 31, 33, 64, 65};
  size_t count = test_small() ? 5 : sizeof sizes / sizeof *sizes;
  for (size_t i = 0; i < count; i++) {
    check_all(ctx, test_kernel_mixed, sizes[i], i);
    if (i < 6) check_all(ctx, test_kernel_composed, sizes[i], i + 1);
  }
  if (!test_small()) {
    problem p;
    problem_new(&p, test_kernel_mixed, 130, 2, 1, 2, true, SCL_GP_INTEGRATE);
    check_predict(ctx, &p, 65, false);
    check_predict(ctx, &p, 65, true);
    problem_free(&p);
  }
  check_slope(ctx, test_kernel_mixed);
  check_slope(ctx, test_kernel_composed);
  check_refusals(ctx);
  check_memory(ctx);
}
