/* Likelihoods by matrix instructions (glm_mma.cl), at the edges of their layouts, where test_mma.c
 * says. Results are compared with those of the host. */
#include <string.h>

#include "linalg.h"
#include "matrices.h"
#include "ops/glm.h"
#include "engine/cl/linalg/linalg.h"

/* PARTS: more vectors than a pass takes at once, the last part not whole. */
enum { ROWS = 65, COLUMNS = 104, PREDICTORS = 8, PARTS = 19, CUTS = 3 };

/* Values and gradients, one after another: by alpha, by beta, by the auxiliary parameter. */
static void likelihood(scl_context *ctx, scl_glm_family family, const scl_glm_parameters *at,
                       size_t n, size_t p, const double *x, double *out) {
  double y[ROWS], trials[ROWS];
  scl_mat *m = mat_make(ctx, x, n, p, SCL_GENERAL);
  scl_glm *glm = NULL;
  bool classes = family == SCL_GLM_ORDERED_LOGISTIC || family == SCL_GLM_CATEGORICAL_LOGIT;
  for (size_t i = 0; i < n; i++) {
    y[i] = (double)(classes ? 1 + i % (family == SCL_GLM_ORDERED_LOGISTIC ? CUTS + 1 : at->classes)
                            : i % 2);
    trials[i] = 3;
  }
  scl_glm_data data = {.y = y, .n_y = n};
  if (family == SCL_GLM_BINOMIAL_LOGIT) data.datum = trials, data.n_datum = n;
  scl_status status = scl_glm_create(family, &data, m, &glm);
  if (status == SCL_OK) {
    double *d_alpha = out + PARTS, *d_beta = d_alpha + at->n_alpha;
    const scl_glm_results results = {out, d_alpha, d_beta, d_beta + at->n_beta, NULL, NULL};
    status = scl_glm_evaluate(glm, at, 15 - SCL_GLM_X, &results);
  }
  CHECK_OK(status);
  scl_glm_release(glm);
  scl_mat_release(m);
}

/* `by_row`: alpha, and sigma or phi where the family has one, are one for each row. */
static void check_likelihood(scl_context *ctx, scl_glm_family family, size_t n, size_t p,
                             size_t predictors, bool by_row) {
  enum { NUMBERS = (1 + COLUMNS + 2 * ROWS) * PARTS };
  static double x[ROWS * COLUMNS], alpha[ROWS * PARTS], beta[COLUMNS * PARTS], aux[ROWS * PARTS],
      got[NUMBERS], want[NUMBERS];
  bool coupled = family == SCL_GLM_CATEGORICAL_LOGIT;
  size_t vectors = coupled ? 1 : predictors, aux_count = 0;
  if (family == SCL_GLM_NORMAL_ID || family == SCL_GLM_NEG_BINOMIAL_2_LOG) aux_count = 1;
  if (family == SCL_GLM_ORDERED_LOGISTIC) aux_count = CUTS;
  const bool row_aux = by_row && family == SCL_GLM_NORMAL_ID;
  const size_t n_alpha = predictors * (by_row ? n : 1);
  const size_t n_aux = vectors * (row_aux ? n : aux_count);
  test_fill(x, n * p), test_fill(alpha, n_alpha), test_fill(beta, p * predictors);
  for (size_t i = 0; i < p * predictors; i++) beta[i] /= 4;
  for (size_t i = 0; i < n_aux; i++) aux[i] = (double)(aux_count > 0 ? i % aux_count : 0) + 0.5;
  for (size_t i = 0; i < n_aux && aux_count == 1; i++) aux[i] += (double)(i % 7) / 8;
  memset(got, 0, sizeof got), memset(want, 0, sizeof want);
  const scl_glm_parameters at = {.vectors = vectors,
                                 .classes = coupled ? predictors : 1,
                                 .row_alpha = by_row,
                                 .row_aux = row_aux,
                                 .alpha = alpha,
                                 .beta = beta,
                                 .aux = aux,
                                 .n_alpha = n_alpha,
                                 .n_beta = p * predictors,
                                 .n_aux = n_aux};
  likelihood(ctx, family, &at, n, p, x, got);
  likelihood(scl_context_host(), family, &at, n, p, x, want);
  CHECK(mat_distance(got, want, NUMBERS) <= 1e-11);
}

static void check_likelihoods(scl_context *ctx) {
  static const struct {
    const char *name;
    size_t most, columns;
  } layouts[] = {{"16m4", 4, 16}, {"40m4", 4, 40},   {"16m8", 8, 16},
                 {"40m8", 8, 40}, {"104m4", 4, 104}, {"104m8", 8, 104}};
  for (size_t l = 0; l < LENGTH(layouts); l++) {
    scl_cl_glm_force(layouts[l].name);
    size_t most = layouts[l].most, columns = layouts[l].columns;
    for (int family = 0; family < SCL_GLM_FAMILY_COUNT; family++) {
      const scl_glm_family f = (scl_glm_family)family;
      check_likelihood(ctx, f, 18, test_small() ? 5 : columns - 1, most - 1, false);
      if (columns == 16 && most == 8 && f != SCL_GLM_CATEGORICAL_LOGIT) {
        check_likelihood(ctx, f, 35, 5, PARTS, false);
        check_likelihood(ctx, f, 18, 3, PARTS, true);
      }
      if (test_small()) continue;
      check_likelihood(ctx, f, 2, 3, 2, false);
      check_likelihood(ctx, f, ROWS, columns, most, false);
    }
  }
  scl_cl_glm_force(NULL);
}

void test_mma_glm(scl_context *ctx) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  if (scl_context_is_host(ctx) || !scl_cl_may_try_mma(cl) || cl->small_mma) return;
  check_likelihoods(ctx);
  /* If a trial refuses a program, the portable kernels are used without notice. */
  for (int p = 0; p < SCL_CL_PROGRAMS; p++) CHECK(!scl_cl_is_refused(cl, (scl_cl_program)p));
}
