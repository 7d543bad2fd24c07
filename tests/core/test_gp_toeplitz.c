#include "ops/gp_toeplitz.h"

#include <math.h>

#include "base/context.h"
#include "gp_process.h"
#include "test.h"

/* Points in equal steps, with a periodic term next to those of test_kernel_mixed(). */
static void make_series(problem *p, size_t n, size_t q, scl_gp_trend trend) {
  process_problem(p, test_kernel_mixed, n, 1, 1, q, false, trend);
  for (size_t i = 0; i < n; i++) p->x[i] = 0.5 + (double)i / 8;
  p->k.term[3].type = SCL_COVARIANCE_PERIODIC;
  p->k.term[3].extra = 1.3;
}

static void check_series(scl_context *host, size_t n, size_t q, scl_gp_trend trend) {
  problem p;
  make_series(&p, n, q, trend);
  double alone, value, b[MOST_BASIS], gradient[MOST_PARAMETERS];
  bool usable = false;
  reference r;
  process_new(&r, &p, n);
  REQUIRE_OK(scl_gp_toeplitz(host, &p.data, &p.k.kernel, trend, &usable, &alone, NULL, NULL));
  CHECK(usable);
  CHECK_NEAR(alone, (double)process_value(&p, SCL_GP_MARGINAL), 1e-10);
  REQUIRE_OK(scl_gp_toeplitz(host, &p.data, &p.k.kernel, trend, &usable, &value, b, gradient));
  CHECK(usable && value == alone);
  for (size_t i = 0; i < q; i++) CHECK_NEAR(b[i], (double)r.b[i], 1e-8);
  process_free(&r);
  for (int i = 0; i < scl_covariance_count(&p.k.kernel); i++) {
    double *parameter = test_kernel_parameter(&p.k, i), keep = *parameter, h = 0x1p-20;
    double up = keep * exp(h), down = keep * exp(-h);
    *parameter = up;
    long_double high = process_value(&p, SCL_GP_MARGINAL);
    *parameter = down;
    long_double low = process_value(&p, SCL_GP_MARGINAL);
    *parameter = keep;
    CHECK_NEAR(gradient[i], (double)((high - low) / (logl(up) - logl(down))), 1e-7);
  }
  process_problem_free(&p);
}

/* Nearly singular: not usable, and nothing is written. More than one output: an error. */
static void check_refused(scl_context *host) {
  problem p;
  double value = 7, b[MOST_BASIS] = {7}, gradient[MOST_PARAMETERS] = {7};
  bool usable = true;
  make_series(&p, 65, 1, SCL_GP_PROFILE);
  p.k.kernel.terms = p.k.kernel.entries = 1; /* one smooth term */
  p.k.lengthscale[0] = 20;
  p.k.kernel.noise = 1e-9;
  CHECK_OK(scl_gp_toeplitz(host, &p.data, &p.k.kernel, p.trend, &usable, &value, b, gradient));
  CHECK(!usable && value == 7 && b[0] == 7);
  p.data.outputs = 2;
  CHECK_STATUS(SCL_E_ARGUMENT,
               scl_gp_toeplitz(host, &p.data, &p.k.kernel, p.trend, &usable, &value, NULL, NULL));
  p.data.outputs = 1;
  process_problem_free(&p);
}

void test_gp_toeplitz(scl_context *ctx) {
  static const size_t sizes[] = {1, 2, 7, 17, 33, 64, 129};
  if (!scl_context_is_host(ctx)) return;
  for (size_t i = 0; i < LENGTH(sizes); i++) {
    size_t q = sizes[i] > 4 ? i % 4 : 0;
    check_series(ctx, sizes[i], q, SCL_GP_PROFILE);
    if (q > 0) check_series(ctx, sizes[i], q, SCL_GP_INTEGRATE);
  }
  check_refused(ctx);
}
