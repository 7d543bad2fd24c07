/* Likelihoods of GLMs with weights. */
#include <math.h>
#include <string.h>

#include "ops/glm.h"
#include "engine/cl/runtime/cl.h"
#include "matrices.h"

enum { WEIGHT_ROWS = 203, WEIGHT_COLUMNS = 5, WEIGHT_VECTORS = 2, WEIGHT_CLASSES = 3 };

static double response_of(scl_glm_family family, size_t i) {
  if (family == SCL_GLM_BERNOULLI_LOGIT) return (double)(i % 3 == 0);
  if (family == SCL_GLM_NORMAL_ID) return (double)(i % 11) / 4 - 1;
  if (family == SCL_GLM_POISSON_LOG || family == SCL_GLM_NEG_BINOMIAL_2_LOG)
    return i % 50 == 7 ? 70000.0 + (double)(i % 100) : (double)(i % 6);
  return (double)(1 + i % WEIGHT_CLASSES);
}

/* Rows of `x`, each repeated `times` times; their values and all gradients except that with respect
 * to x. */
static void evaluate_repeated(scl_mat *x, scl_glm_family family, const double *weight,
                              const size_t *row, const scl_glm_parameters *at, double *out) {
  static double y[3 * WEIGHT_ROWS], trials[3 * WEIGHT_ROWS];
  size_t n = scl_mat_nrow(x);
  scl_glm *glm = NULL;
  for (size_t i = 0; i < n; i++) {
    y[i] = response_of(family, row[i]);
    trials[i] = 5 + (double)(row[i] % 4);
  }
  const scl_glm_data data = {.y = y,
                             .n_y = n,
                             .datum = family == SCL_GLM_BINOMIAL_LOGIT ? trials : NULL,
                             .n_datum = n,
                             .weight = weight};
  REQUIRE_OK(scl_glm_create(family, &data, x, &glm));
  const scl_glm_results results = {out, out + 10, out + 20, out + 70, NULL, NULL};
  CHECK_OK(scl_glm_evaluate(glm, at, 15 - SCL_GLM_X, &results));
  scl_glm_release(glm);
}

/* Integer weights are equivalent to repeated rows. */
static void check_weighted_family(scl_context *ctx, scl_glm_family family) {
  static double x[WEIGHT_ROWS * WEIGHT_COLUMNS], all[3 * WEIGHT_ROWS * WEIGHT_COLUMNS];
  static double beta[WEIGHT_COLUMNS * 6];
  double weight[WEIGHT_ROWS], alpha[6], aux[4] = {0.5, 1.5, 0.25, 2}, got[80] = {0}, want[80] = {0};
  size_t plain_row[WEIGHT_ROWS], row[3 * WEIGHT_ROWS], rows = 0;
  size_t classes = GLM_FAMILY_COUPLED(family) ? WEIGHT_CLASSES : 1, vectors = WEIGHT_VECTORS;
  size_t predictors = classes * vectors;
  test_fill(x, WEIGHT_ROWS * WEIGHT_COLUMNS);
  test_fill(beta, WEIGHT_COLUMNS * predictors);
  test_fill(alpha, predictors);
  for (size_t i = 0; i < WEIGHT_ROWS; i++) {
    plain_row[i] = i;
    weight[i] = (double)(1 + i % 3);
    for (size_t k = 0; k <= i % 3; k++) row[rows++] = i;
  }
  for (size_t j = 0; j < WEIGHT_COLUMNS; j++) {
    for (size_t i = 0; i < rows; i++) all[i + j * rows] = x[row[i] + j * WEIGHT_ROWS];
  }
  const scl_glm_aux kind = GLM_FAMILY_AUX(family);
  const scl_glm_parameters at = {.vectors = vectors,
                                 .classes = classes,
                                 .alpha = alpha,
                                 .beta = beta,
                                 .aux = aux,
                                 .n_alpha = predictors,
                                 .n_beta = WEIGHT_COLUMNS * predictors,
                                 .n_aux = kind == SCL_GLM_NONE   ? 0
                                          : kind == SCL_GLM_CUTS ? 4
                                                                 : 2};
  scl_mat *weighted = NULL, *repeated = NULL;
  REQUIRE_OK(scl_mat_from_host(ctx, x, WEIGHT_ROWS, WEIGHT_COLUMNS, SCL_GENERAL, &weighted));
  REQUIRE_OK(scl_mat_from_host(ctx, all, rows, WEIGHT_COLUMNS, SCL_GENERAL, &repeated));
  evaluate_repeated(weighted, family, weight, plain_row, &at, got);
  evaluate_repeated(repeated, family, NULL, row, &at, want);
  double scale = 1;
  for (size_t i = 0; i < 80; i++) scale = fmax(scale, fabs(want[i]));
  CHECK(want[0] != 0 && mat_largest_difference(got, want, 80) <= 1e-14 * scale);
  RELEASE(weighted, repeated);
}

void test_glm_weights(scl_context *ctx) {
  double x[3] = {1, 2, 3}, y[3] = {0, 1, 0}, share[3] = {0.25, 1, 0}, one = 1;
  double weight[3] = {1, 0.5, 2}, bad[3] = {1, 0, NAN};
  scl_mat *m = NULL;
  scl_glm *glm = NULL;
  for (int f = 0; f < SCL_GLM_FAMILY_COUNT; f++) check_weighted_family(ctx, (scl_glm_family)f);
  if (!scl_context_is_host(ctx)) {
    scl_cl_glm_force("split"); /* what no layout takes */
    for (int f = 0; f < SCL_GLM_FAMILY_COUNT; f++) check_weighted_family(ctx, (scl_glm_family)f);
    scl_cl_glm_force(NULL);
  }
  REQUIRE_OK(scl_mat_from_host(ctx, x, 3, 1, SCL_GENERAL, &m));
  scl_glm_data data = {.y = y, .n_y = 3, .weight = bad};
  CHECK_STATUS(SCL_E_ARGUMENT, scl_glm_create(SCL_GLM_POISSON_LOG, &data, m, &glm));
  CHECK(strcmp(scl_fault_last()->argument, "weights") == 0 && scl_fault_last()->index == 2);
  data = (scl_glm_data){.y = share, .n_y = 3, .datum = &one, .n_datum = 1};
  CHECK_STATUS(SCL_E_ARGUMENT, scl_glm_create(SCL_GLM_BINOMIAL_LOGIT, &data, m, &glm));
  CHECK(strcmp(scl_fault_last()->argument, "y") == 0 && scl_fault_last()->index == 1);
  data.weight = weight;
  CHECK_OK(scl_glm_create(SCL_GLM_BINOMIAL_LOGIT, &data, m, &glm));
  scl_glm_release(glm);
  scl_mat_release(m);
}
