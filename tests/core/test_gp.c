#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/scl_gp.h"
#include "gp_reference.h"
#include "test.h"

typedef long double real;

/* The textbook in long double: the factor of C and what is solved with it. */
typedef struct {
  size_t n;
  real *l, *a, mean, ones, value;
} reference;

static void solve_lower(const reference *r, real *b) {
  for (size_t i = 0; i < r->n; i++) {
    for (size_t k = 0; k < i; k++) b[i] -= r->l[i + k * r->n] * b[k];
    b[i] /= r->l[i + i * r->n];
  }
}

static real dot(const real *a, const real *b, size_t n) {
  real sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

static void reference_new(reference *r, const scl_covariance *kernel, const double *x,
                          const double *y, size_t n, scl_gp_mean mean) {
  *r = (reference){.n = n, .mean = mean.value};
  r->l = test_alloc(n * n * sizeof *r->l);
  r->a = test_alloc(n * sizeof *r->a);
  real *z = test_alloc(n * sizeof *z), *o = test_alloc(n * sizeof *o), log_det = 0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      real sum = test_covariance_value(kernel, x, n, i, x, n, j);
      if (i == j) sum += (real)kernel->noise * kernel->noise;
      for (size_t k = 0; k < j; k++) sum -= r->l[i + k * n] * r->l[j + k * n];
      r->l[i + j * n] = i == j ? sqrtl(sum) : sum / r->l[j + j * n];
    }
    log_det += logl(r->l[j + j * n]);
  }
  for (size_t i = 0; i < n; i++) {
    z[i] = y[i];
    o[i] = 1;
  }
  solve_lower(r, z);
  solve_lower(r, o);
  r->ones = dot(o, o, n);
  if (mean.estimated) r->mean = dot(o, z, n) / r->ones;
  for (size_t i = 0; i < n; i++) z[i] -= r->mean * o[i];
  r->value = -dot(z, z, n) / 2 - log_det - n * logl(2 * acosl(-1)) / 2;
  for (size_t i = n; i-- > 0;) {
    real sum = z[i];
    for (size_t k = i + 1; k < n; k++) sum -= r->l[k + i * n] * r->a[k];
    r->a[i] = sum / r->l[i + i * n];
  }
  free(z);
  free(o);
}

static void reference_free(reference *r) {
  free(r->l);
  free(r->a);
}

static real reference_value(const scl_covariance *kernel, const double *x, const double *y,
                            size_t n, scl_gp_mean mean) {
  reference r;
  reference_new(&r, kernel, x, y, n, mean);
  real value = r.value;
  reference_free(&r);
  return value;
}

static void check_evaluate(scl_context *ctx, size_t n, size_t p, scl_gp_mean mean) {
  test_kernel k;
  test_kernel_mixed(&k, p);
  double *x = test_alloc(n * p * sizeof *x), *y = test_alloc(n * sizeof *y);
  test_fill(x, n * p);
  test_fill(y, n);
  scl_gp *gp = NULL;
  REQUIRE_OK(scl_gp_create(ctx, x, y, n, p, &gp));
  CHECK(scl_gp_rows(gp) == n && scl_gp_context(gp) == ctx);
  double value, found, gradient[MOST_TERMS + MOST_ENTRIES + 1];
  reference r;
  reference_new(&r, &k.kernel, x, y, n, mean);
  CHECK_OK(scl_gp_evaluate(gp, &k.kernel, mean, &value, &found, NULL));
  CHECK_NEAR(value, (double)r.value, 1e-11);
  CHECK_NEAR(found, (double)r.mean, 1e-11);
  reference_free(&r);
  CHECK_OK(scl_gp_evaluate(gp, &k.kernel, mean, &value, &found, gradient));
  for (int q = 0; q < scl_covariance_count(&k.kernel); q++) {
    double *parameter = test_kernel_parameter(&k, q), keep = *parameter, h = 0x1p-17;
    double up = keep * exp(h), down = keep * exp(-h);
    *parameter = up;
    real high = reference_value(&k.kernel, x, y, n, mean);
    *parameter = down;
    real low = reference_value(&k.kernel, x, y, n, mean);
    *parameter = keep;
    CHECK_NEAR(gradient[q], (double)((high - low) / (logl(up) - logl(down))), 1e-8);
  }
  scl_gp_release(gp);
  free(x);
  free(y);
}

static void check_predict(scl_context *ctx, size_t n, size_t m, size_t p, scl_gp_mean mean) {
  test_kernel k;
  test_kernel_mixed(&k, p);
  double *x = test_alloc(n * p * sizeof *x), *y = test_alloc(n * sizeof *y);
  double *at = test_alloc(m * p * sizeof *at), *fit = test_alloc(m * sizeof *fit);
  double *variance = test_alloc(m * sizeof *variance), *weights = test_alloc(n * sizeof *weights);
  double *covariance = test_alloc(m * m * sizeof *covariance), found;
  test_fill(x, n * p);
  test_fill(y, n);
  test_fill(at, m * p);
  scl_gp *gp = NULL;
  reference r;
  reference_new(&r, &k.kernel, x, y, n, mean);
  REQUIRE_OK(scl_gp_create(ctx, x, y, n, p, &gp));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_gp_predict(gp, &k.kernel, at, m, fit, NULL, NULL));
  CHECK_OK(scl_gp_condition(gp, &k.kernel, mean, &found, weights));
  CHECK_OK(scl_gp_predict(gp, &k.kernel, at, m, fit, variance, covariance));
  CHECK_NEAR(found, (double)r.mean, 1e-11);
  CHECK_NEAR(weights[n - 1], (double)r.a[n - 1], 1e-10);
  real *v = test_alloc(m * n * sizeof *v), *o = test_alloc(n * sizeof *o);
  for (size_t i = 0; i < n; i++) o[i] = 1;
  solve_lower(&r, o);
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < n; j++) {
      v[i * n + j] = test_covariance_value(&k.kernel, at, m, i, x, n, j);
    }
    CHECK_NEAR(fit[i], (double)(r.mean + dot(v + i * n, r.a, n)), 1e-10);
    solve_lower(&r, v + i * n);
  }
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j <= i; j++) {
      real want = test_covariance_value(&k.kernel, at, m, i, at, m, j);
      want -= dot(v + i * n, v + j * n, n);
      if (mean.estimated) {
        want += (1 - dot(v + i * n, o, n)) * (1 - dot(v + j * n, o, n)) / r.ones;
      }
      CHECK_NEAR(covariance[i + j * m], (double)want, 1e-10);
      CHECK(covariance[i + j * m] == covariance[j + i * m]);
      if (i == j) CHECK_NEAR(variance[i], (double)want, 1e-10);
    }
  }
  reference_free(&r);
  scl_gp_release(gp);
  free(x);
  free(y);
  free(at);
  free(fit);
  free(variance);
  free(weights);
  free(covariance);
  free(v);
  free(o);
}

static void check_refusals(scl_context *ctx) {
  test_kernel k;
  double x[4] = {0.1, 0.1, 0.5, 0.9}, y[4] = {1, 2, 3, 4}, value = 7, mean = 7;
  scl_gp *gp = NULL;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_gp_create(ctx, x, y, 0, 1, &gp));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_gp_create(ctx, x, y, 4, 0, &gp));
  y[2] = NAN;
  CHECK_STATUS(SCL_E_NONFINITE, scl_gp_create(ctx, x, y, 4, 1, &gp));
  CHECK(strcmp(scl_fault_last()->argument, "y") == 0 && scl_fault_last()->index == 3);
  y[2] = 3;
  CHECK(gp == NULL);
  REQUIRE_OK(scl_gp_create(ctx, x, y, 4, 1, &gp));
  test_kernel_mixed(&k, 1);
  k.kernel.noise = 0; /* rows 1 and 2 are the same: singular, and exactly so with these numbers */
  k.kernel.terms = k.kernel.entries = 1;
  k.term[0].sd = 1;
  scl_gp_mean zero = {false, 0};
  CHECK_STATUS(SCL_E_NOT_PD, scl_gp_evaluate(gp, &k.kernel, zero, &value, &mean, NULL));
  CHECK(scl_fault_last()->index == 2);
  double gradient[MOST_TERMS + MOST_ENTRIES + 1];
  CHECK_STATUS(SCL_E_NOT_PD, scl_gp_evaluate(gp, &k.kernel, zero, &value, &mean, gradient));
  CHECK(value == 7 && mean == 7);
  k.kernel.noise = 0.1;
  CHECK_OK(scl_gp_evaluate(gp, &k.kernel, zero, &value, &mean, gradient));
  CHECK(isfinite(value) && mean == 0);
  scl_gp_release(gp);
}

void test_gp(scl_context *ctx) {
  static const size_t sizes[] = {1, 2, 7, 31, 33, 64, 65};
  scl_gp_mean known = {false, 0.25}, estimated = {true, 0};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t n = sizes[i];
    check_evaluate(ctx, n, 1 + i % 3, known);
    if (n > 1) check_evaluate(ctx, n, 1 + i % 3, estimated);
    check_predict(ctx, n, 1 + (n * 7) % 40, 1 + i % 3, known);
    if (n > 1) check_predict(ctx, n, 1 + (n * 5) % 40, 1 + i % 3, estimated);
  }
  check_predict(ctx, 130, 65, 2, estimated);
  check_refusals(ctx);
}
