/* Newton's method for small likelihoods: maxima that are known, and when none is found. */
#include <math.h>

#include "ops/glm_newton.h"
#include "test.h"

enum { N = 8 };

/* The mode of a likelihood of `p` columns; false if none is found. */
static bool search(scl_context *ctx, scl_glm_family family, const double *y, const double *trials,
                   double *x, size_t p, const double *weight, int most, double *beta) {
  double gradient[2], information[4];
  bool found = false;
  scl_mat *matrix = NULL;
  scl_glm *glm = NULL;
  const scl_glm_data data = {
      .y = y, .datum = trials, .n_y = N, .n_datum = trials ? N : 0, .weight = weight};
  CHECK_OK(scl_mat_from_host(ctx, x, N, p, SCL_GENERAL, &matrix));
  CHECK_OK(scl_glm_create(family, &data, matrix, &glm));
  scl_glm_search at = {.x = x,
                       .y = y,
                       .datum = trials,
                       .weight = weight,
                       .tolerance = 1e-10,
                       .most = most,
                       .beta = beta,
                       .gradient = gradient,
                       .information = information};
  CHECK_OK(scl_glm_newton(glm, &at, &found));
  if (found) {
    CHECK(at.decrement <= 1e-10 && at.least > 0 && at.least <= 1);
    for (size_t j = 0; j < p; j++) CHECK(fabs(gradient[j]) < 1e-8);
  }
  scl_glm_release(glm);
  scl_mat_release(matrix);
  return found;
}

static bool is_near(double a, double b) {
  return fabs(a - b) <= 1e-12 * (1 + fabs(b));
}

void test_glm_newton(scl_context *ctx) {
  double x[2 * N], y[N], trials[N], weight[N], beta[2];
  if (!scl_context_is_host(ctx)) return;
  for (int i = 0; i < N; i++) {
    x[i] = 1;
    x[N + i] = i % 2;
    y[i] = i == 0 || i == 2 || i == 5;
    trials[i] = 4;
    weight[i] = 1 + i % 2;
  }
  CHECK(!scl_glm_searches(SCL_GLM_NORMAL_ID) && scl_glm_searches(SCL_GLM_POISSON_LOG));
  /* shares of even and odd rows: 2/4 and 1/4 */
  CHECK(search(ctx, SCL_GLM_BERNOULLI_LOGIT, y, NULL, x, 2, NULL, 50, beta));
  CHECK(is_near(beta[0], 0) && is_near(beta[1], log(1.0 / 3)));
  CHECK(!search(ctx, SCL_GLM_BERNOULLI_LOGIT, y, NULL, x, 2, NULL, 0, beta));
  CHECK(search(ctx, SCL_GLM_BERNOULLI_LOGIT, y, NULL, x, 1, weight, 50, beta));
  CHECK(is_near(beta[0], log(4.0 / 8)));
  CHECK(search(ctx, SCL_GLM_POISSON_LOG, y, NULL, x, 2, NULL, 50, beta));
  CHECK(is_near(beta[0], log(0.5)) && is_near(beta[1], log(0.5)));
  CHECK(search(ctx, SCL_GLM_BINOMIAL_LOGIT, y, trials, x, 2, NULL, 50, beta));
  CHECK(is_near(beta[0], log(2.0 / 14)) && is_near(beta[0] + beta[1], log(1.0 / 15)));
  for (int i = 0; i < N; i++) y[i] = i % 2; /* separated: no maximum */
  CHECK(!search(ctx, SCL_GLM_BERNOULLI_LOGIT, y, NULL, x, 2, NULL, 50, beta));
  for (int i = 0; i < N; i++) x[N + i] = 2; /* dependent columns */
  CHECK(!search(ctx, SCL_GLM_POISSON_LOG, y, NULL, x, 2, NULL, 50, beta));
}
