#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/glm.h"
#include "engine/cl/runtime/cl.h"
#include "matrices.h"

/* A problem with its reference in long double, by other formulas than the kernels'. */
typedef struct {
  size_t n, p, n_alpha;
  double *x, *y, *alpha, *beta;
  double value, *residual, *d_beta;
  double d_alpha, sum_abs; /* sum_abs: of the terms */
} problem;

static void reference(problem *q) {
  long double value = 0, d_alpha = 0, sum_abs = 0;
  for (size_t i = 0; i < q->n; i++) {
    long double eta = q->alpha[q->n_alpha == 1 ? 0 : i];
    for (size_t j = 0; j < q->p; j++) eta += (long double)q->x[i + j * q->n] * q->beta[j];
    long double t = q->y[i] == 1.0 ? -eta : eta;
    long double term = t > 0 ? -(t + log1pl(expl(-t))) : -log1pl(expl(t));
    long double size = t > 0 ? 1 / (1 + expl(-t)) : expl(t) / (1 + expl(t));
    q->residual[i] = (double)(q->y[i] == 1.0 ? size : -size);
    value += term;
    sum_abs += fabsl(term);
    d_alpha += q->residual[i];
  }
  for (size_t j = 0; j < q->p; j++) {
    long double sum = 0;
    for (size_t i = 0; i < q->n; i++) sum += (long double)q->x[i + j * q->n] * q->residual[i];
    q->d_beta[j] = (double)sum;
  }
  q->value = (double)value;
  q->d_alpha = (double)d_alpha;
  q->sum_abs = (double)sum_abs;
}

static problem make_problem(size_t n, size_t p, bool rowwise) {
  problem q = {.n = n, .p = p, .n_alpha = rowwise ? n : 1};
  q.x = test_alloc(n * p * sizeof(double));
  q.y = test_alloc(n * sizeof(double));
  q.alpha = test_alloc((n + 1) * sizeof(double));
  q.beta = test_alloc(p * sizeof(double));
  q.residual = test_alloc(n * sizeof(double));
  q.d_beta = test_alloc(p * sizeof(double));
  test_fill(q.x, n * p);
  test_fill(q.alpha, q.n_alpha);
  test_fill(q.beta, p);
  for (size_t i = 0; i < n; i++) q.y[i] = test_random() > 0.2;
  for (size_t j = 0; j < p; j++) q.beta[j] *= 4 / sqrt((double)p);
  reference(&q);
  return q;
}

static void free_problem(problem *q) {
  FREE(q->x, q->y, q->alpha, q->beta, q->residual, q->d_beta);
}

/* A likelihood without trials. */
static scl_status create(scl_glm_family family, const double *y, size_t n_y, scl_mat *x,
                         scl_glm **out) {
  return scl_glm_create(family, &(scl_glm_data){.y = y, .n_y = n_y}, x, out);
}

/* One parameter vector without an auxiliary parameter; more alphas than one are by row. */
static scl_glm_parameters plain(const double *alpha, size_t n_alpha, const double *beta, size_t p) {
  return (scl_glm_parameters){
      .alpha = alpha, .beta = beta, .n_alpha = n_alpha, .n_beta = p, .row_alpha = n_alpha != 1};
}

static void check_gradient_by_x(const problem *q, const scl_mat *d_x, double tol) {
  double *got = test_alloc(q->n * q->p * sizeof *got),
         *want = test_alloc(q->n * q->p * sizeof *want);
  for (size_t j = 0; j < q->p; j++) {
    for (size_t i = 0; i < q->n; i++) want[i + j * q->n] = q->residual[i] * q->beta[j];
  }
  CHECK_OK(scl_mat_to_host(d_x, got));
  CHECK(mat_largest_difference(got, want, q->n * q->p) <= tol);
  FREE(got, want);
}

static void check_problem(scl_context *ctx, const problem *q, unsigned wanted) {
  double tol = 1e-14 * (10 + (double)q->p), value = NAN;
  double *d_alpha = test_alloc(q->n_alpha * sizeof *d_alpha);
  double *d_beta = test_alloc(q->p * sizeof *d_beta);
  scl_mat *x = NULL, *d_x = NULL;
  scl_glm *glm = NULL;
  CHECK_OK(scl_mat_from_host(ctx, q->x, q->n, q->p, SCL_GENERAL, &x));
  CHECK_OK(create(SCL_GLM_BERNOULLI_LOGIT, q->y, q->n, x, &glm));
  scl_mat_release(x);
  if (glm == NULL) return;
  const scl_glm_parameters at = plain(q->alpha, q->n_alpha, q->beta, q->p);
  const scl_glm_results out = {&value, d_alpha, d_beta, NULL, &d_x, NULL};
  scl_status status = scl_glm_evaluate(glm, &at, wanted, &out);
  CHECK_OK(status);
  if (status == SCL_OK) {
    CHECK(fabs(value - q->value) <= tol * (1 + q->sum_abs));
    double first = value;
    const scl_glm_results no_gradient = {&value, NULL, NULL, NULL, NULL, NULL};
    CHECK_OK(scl_glm_evaluate(glm, &at, 0, &no_gradient));
    CHECK(value == first || scl_context_is_host(ctx) ||
          fabs(value - first) <= tol * (1 + q->sum_abs));
    double scale = tol * (1 + sqrt((double)q->n));
    if (wanted & SCL_GLM_BETA) CHECK(mat_largest_difference(d_beta, q->d_beta, q->p) <= scale);
    if (wanted & SCL_GLM_ALPHA) {
      CHECK(mat_largest_difference(d_alpha, q->n_alpha == 1 ? &q->d_alpha : q->residual,
                                   q->n_alpha) <= scale);
    }
    if (wanted & SCL_GLM_X) check_gradient_by_x(q, d_x, tol);
    if (wanted & SCL_GLM_BETA && !(wanted & SCL_GLM_X)) { /* parameters may come otherwise now */
      double *again = test_alloc(q->p * sizeof *again);
      const scl_glm_results second = {&first, d_alpha, again, NULL, NULL, NULL};
      CHECK_OK(scl_glm_evaluate(glm, &at, wanted, &second));
      CHECK(memcmp(again, d_beta, q->p * sizeof *again) == 0);
      CHECK(fabs(first - value) <= tol * (1 + q->sum_abs));
      free(again);
    }
  }
  scl_mat_release(d_x);
  scl_glm_release(glm);
  FREE(d_alpha, d_beta);
}

static void check_shapes(scl_context *ctx) {
  const size_t columns[] = {0, 1, 2, 7, 16, 17, 64, 100, 131, 257, 1000, 1100};
  const size_t rows[] = {0, 1, 2, 15, 16, 31, 32, 33, 63, 65, 127, 129, 300};
  const unsigned all = SCL_GLM_ALPHA | SCL_GLM_BETA | SCL_GLM_X;
  for (size_t c = 0; c < LENGTH(columns); c++) {
    for (size_t r = 0; r < LENGTH(rows); r++) {
      if (columns[c] > 300 && rows[r] > 65 && rows[r] != 129) continue;
      for (int rowwise = 0; rowwise < 2; rowwise++) {
        problem q = make_problem(rows[r], columns[c], rowwise);
        check_problem(ctx, &q, all);
        if (r % 3 == 0) {
          check_problem(ctx, &q, 0);
          check_problem(ctx, &q, SCL_GLM_ALPHA);
          check_problem(ctx, &q, SCL_GLM_BETA);
          check_problem(ctx, &q, SCL_GLM_X);
        }
        free_problem(&q);
      }
    }
  }
}

/* More tiles than groups of any layout, and sums of many terms. */
static void check_many_rows(scl_context *ctx) {
  const size_t columns[] = {3, 20, 150};
  for (size_t c = 0; c < 3; c++) {
    problem q = make_problem(c < 2 ? 50001 : 5003, columns[c], c == 1);
    check_problem(ctx, &q, SCL_GLM_ALPHA | SCL_GLM_BETA);
    free_problem(&q);
  }
}

/* Single terms in the tails. The derivative of log(1 / (1 + exp(-t))) by t is exp(-t) / (1 +
 * exp(-t)): small where t is large, but of the right sign and size. */
static void check_tails(scl_context *ctx) {
  const double etas[] = {0, 1e-300, 5, 20, 36, 40, 88, 300, 700, 745, 800, 1e4, 1e300};
  for (size_t k = 0; k < LENGTH(etas); k++) {
    for (int y = 0; y < 2; y++) {
      for (int sign = -1; sign <= 1; sign += 2) {
        double eta = sign * etas[k], response = y, x = 1, zero = 0, value, d_alpha, d_beta;
        long double t = y ? eta : -eta;
        long double term = t > 0 ? -log1pl(expl(-t)) : t - log1pl(expl(t));
        long double slope = (t > 0 ? expl(-t) / (1 + expl(-t)) : 1 / (1 + expl(t))) * (y ? 1 : -1);
        scl_mat *m = NULL;
        scl_glm *glm = NULL;
        REQUIRE_OK(scl_mat_from_host(ctx, &x, 1, 1, SCL_GENERAL, &m));
        CHECK_OK(create(SCL_GLM_BERNOULLI_LOGIT, &response, 1, m, &glm));
        scl_mat_release(m);
        const scl_glm_parameters at = plain(&zero, 1, &eta, 1);
        const scl_glm_results out = {&value, &d_alpha, &d_beta, NULL, NULL, NULL};
        CHECK_OK(scl_glm_evaluate(glm, &at, SCL_GLM_ALPHA | SCL_GLM_BETA, &out));
        /* Below the normal range a device may lose digits, or all of them. */
        const double least = 0x1p-1022;
        CHECK(fabs(value - (double)term) <= 4e-16 * fabs((double)term) + least);
        CHECK(fabs(d_beta - (double)slope) <= 6e-16 * fabs((double)slope) + least);
        CHECK(fabs((double)slope) < least || (d_beta > 0) == (y == 1));
        CHECK(d_alpha == d_beta);
        scl_glm_release(glm);
      }
    }
  }
}

static void check_response(scl_context *ctx) {
  double x[3] = {1, 2, 3}, bad[3] = {0, 1, 2}, missing[3] = {NAN, 1, 0}, one = 1, value, zero = 0;
  scl_mat *m = NULL;
  scl_glm *glm = NULL;
  REQUIRE_OK(scl_mat_from_host(ctx, x, 3, 1, SCL_GENERAL, &m));
  CHECK_STATUS(SCL_E_ARGUMENT, create(SCL_GLM_BERNOULLI_LOGIT, bad, 3, m, &glm));
  CHECK(strcmp(scl_fault_last()->argument, "y") == 0 && scl_fault_last()->index == 3);
  CHECK_STATUS(SCL_E_ARGUMENT, create(SCL_GLM_BERNOULLI_LOGIT, missing, 3, m, &glm));
  CHECK(scl_fault_last()->index == 1);
  CHECK_STATUS(SCL_E_ARGUMENT, create(SCL_GLM_BERNOULLI_LOGIT, bad, 2, m, &glm));
  CHECK(strcmp(scl_fault_last()->argument, "y") == 0 && glm == NULL);
  CHECK_OK(create(SCL_GLM_BERNOULLI_LOGIT, &one, 1, m, &glm));
  const scl_glm_parameters at = plain(&zero, 1, &zero, 1);
  const scl_glm_results out = {&value, NULL, NULL, NULL, NULL, NULL};
  CHECK_OK(scl_glm_evaluate(glm, &at, 0, &out));
  CHECK_NEAR(value, -3 * log(2), 1e-15);
  CHECK(scl_glm_nrow(glm) == 3 && scl_glm_ncol(glm) == 1 && scl_glm_context(glm) == ctx);
  scl_glm_release(glm);
  scl_mat_release(m);
  scl_glm_release(NULL);
}

static void check_families(void) {
  scl_glm_family family = SCL_GLM_FAMILY_COUNT;
  CHECK_OK(scl_glm_family_find("bernoulli_logit", &family));
  CHECK(family == SCL_GLM_BERNOULLI_LOGIT);
  CHECK(strcmp(scl_glm_family_name(family), "bernoulli_logit") == 0);
  CHECK_FAULT(SCL_E_ARGUMENT, "family", scl_glm_family_find("probit", &family));
  CHECK(strstr(scl_fault_last()->message, "bernoulli_logit") != NULL);
}

/* An error of the evaluation names the argument, and results and object stay unchanged. */
static void expect_fault(scl_glm *glm, scl_glm_parameters at, scl_status status,
                         const char *argument, int64_t index) {
  double value = 7, d_alpha = 7, d_beta[2] = {7, 7};
  const scl_glm_results out = {&value, &d_alpha, d_beta, NULL, NULL, NULL};
  CHECK_STATUS(status, scl_glm_evaluate(glm, &at, SCL_GLM_ALPHA | SCL_GLM_BETA, &out));
  CHECK(strcmp(scl_fault_last()->argument, argument) == 0);
  CHECK(scl_fault_last()->index == index);
  CHECK(value == 7 && d_alpha == 7 && d_beta[0] == 7 && d_beta[1] == 7);
}

static void check_faults(scl_context *ctx) {
  double x[6] = {1, 2, 3, 1e200, 0, 0}, y[3] = {0, 1, 0}, alpha[3] = {0, INFINITY, 0};
  double beta[2] = {1, 1}, bad[2] = {1, NAN}, huge[2] = {1, 1e200};
  scl_mat *m = NULL;
  scl_glm *glm = NULL;
  REQUIRE_OK(scl_mat_from_host(ctx, x, 3, 2, SCL_GENERAL, &m));
  REQUIRE_OK(create(SCL_GLM_BERNOULLI_LOGIT, y, 3, m, &glm));
  scl_mat_release(m);
  expect_fault(glm, plain(alpha, 1, beta, 1), SCL_E_ARGUMENT, "beta", 0);
  expect_fault(glm, plain(alpha, 2, beta, 2), SCL_E_ARGUMENT, "alpha", 0);
  expect_fault(glm, plain(alpha, 1, bad, 2), SCL_E_NONFINITE, "beta", 2);
  expect_fault(glm, plain(alpha, 3, beta, 2), SCL_E_NONFINITE, "alpha", 2);
  expect_fault(glm, plain(alpha, 1, huge, 2), SCL_E_NONFINITE, "beta", 0);
  scl_buffer_fail_after(1);
  const scl_glm_parameters at = plain(alpha, 1, beta, 2);
  scl_mat *d_x = NULL;
  double value = 0;
  const scl_glm_results out = {&value, NULL, NULL, NULL, &d_x, NULL};
  CHECK_STATUS(SCL_E_MEMORY, scl_glm_evaluate(glm, &at, SCL_GLM_X, &out));
  scl_buffer_fail_after(-1);
  CHECK(d_x == NULL);
  CHECK_OK(scl_glm_evaluate(glm, &at, 0, &out));
  scl_glm_release(glm);

  const double special[] = {NAN, INFINITY, -INFINITY};
  for (int k = 0; k < 3; k++) {
    x[4] = special[k];
    REQUIRE_OK(scl_mat_from_host(ctx, x, 3, 2, SCL_GENERAL, &m));
    REQUIRE_OK(create(SCL_GLM_BERNOULLI_LOGIT, y, 3, m, &glm));
    scl_mat_release(m);
    expect_fault(glm, at, SCL_E_NONFINITE, "x", 5);
    CHECK_STATUS(SCL_E_NONFINITE, scl_glm_evaluate(glm, &at, 0, &out));
    scl_glm_release(glm);
  }
}

/* ---- several predictors of a row, next to the host engine --------------------------------------
 */

enum { MOST_ROWS = 1031, MOST_COLUMNS = 104, MOST_PREDICTORS = 8, MOST_CUTS = 3 };

static size_t cuts = MOST_CUTS; /* of the ordered family */

/* Values, then derivatives by alpha, beta and the auxiliary parameter; false after an error. */
static bool evaluate_on(scl_mat *x, scl_glm_family family, const scl_glm_parameters *at,
                        double *out) {
  static double y[MOST_ROWS];
  size_t n = scl_mat_nrow(x), predictors = at->vectors * at->classes;
  scl_glm *glm = NULL;
  for (size_t i = 0; i < n; i++) {
    size_t most = family == SCL_GLM_CATEGORICAL_LOGIT ? at->classes : cuts + 1;
    y[i] = family == SCL_GLM_BERNOULLI_LOGIT ? (double)(i % 3 == 0) : (double)(1 + i * 7 % most);
  }
  scl_status status = create(family, y, n, x, &glm);
  if (status == SCL_OK) {
    const scl_glm_results results = {out,
                                     out + MOST_PREDICTORS,
                                     out + 2 * MOST_PREDICTORS,
                                     out + 2 * MOST_PREDICTORS + at->n_beta,
                                     NULL,
                                     NULL};
    status = scl_glm_evaluate(glm, at, 15 - SCL_GLM_X, &results);
    if (status == SCL_OK) { /* parameters may come otherwise now */
      double again[MOST_PREDICTORS] = {0};
      const scl_glm_results second = {again, NULL, NULL, NULL, NULL, NULL};
      CHECK_OK(scl_glm_evaluate(glm, at, 0, &second));
      status = scl_glm_evaluate(glm, at, 15 - SCL_GLM_X, &results);
      CHECK(mat_largest_difference(again, out, at->vectors) <= 1e-12 * fabs(out[0]));
    }
  }
  CHECK_OK(status);
  CHECK(at->n_alpha == predictors);
  scl_glm_release(glm);
  return status == SCL_OK;
}

static void check_together(scl_context *ctx, scl_glm_family family, size_t n, size_t p,
                           size_t vectors, size_t classes) {
  enum { NUMBERS = 2 * MOST_PREDICTORS + (MOST_COLUMNS + MOST_CUTS) * MOST_PREDICTORS };
  static double x[MOST_ROWS * MOST_COLUMNS], beta[MOST_COLUMNS * MOST_PREDICTORS];
  double alpha[MOST_PREDICTORS], aux[MOST_CUTS * MOST_PREDICTORS];
  double got[NUMBERS] = {0}, want[NUMBERS] = {0};
  scl_mat *there = NULL, *here = NULL;
  size_t predictors = vectors * classes, aux_count = family == SCL_GLM_ORDERED_LOGISTIC ? cuts : 1;
  test_fill(x, n * p);
  test_fill(alpha, predictors);
  test_fill(beta, p * predictors);
  for (size_t i = 0; i < vectors * aux_count; i++) aux[i] = (double)(i % aux_count) + 0.5;
  const scl_glm_parameters at = {.vectors = vectors,
                                 .classes = classes,
                                 .alpha = alpha,
                                 .beta = beta,
                                 .aux = aux,
                                 .n_alpha = predictors,
                                 .n_beta = p * predictors,
                                 .n_aux = vectors * aux_count};
  REQUIRE_OK(scl_mat_from_host(ctx, x, n, p, SCL_GENERAL, &there));
  REQUIRE_OK(scl_mat_wrap(scl_context_host(), x, n, p, SCL_GENERAL, &here));
  if (evaluate_on(here, family, &at, want) && evaluate_on(there, family, &at, got)) {
    double scale = 1;
    for (size_t i = 0; i < NUMBERS; i++) scale = fmax(scale, fabs(want[i]));
    CHECK(mat_largest_difference(got, want, NUMBERS) <= 1e-13 * scale);
  }
  RELEASE(there, here);
}

static uint64_t launches_of(const scl_cl_context *cl, const char *kernel) {
  for (int k = 0; k < SCL_CL_KERNELS; k++) {
    if (strcmp(scl_cl_kernel_name((scl_cl_kernel)k), kernel) == 0) return cl->launches[k];
  }
  return 0;
}

/* The most cuts whose sums fit into local memory, on a device with 48 KiB of it. */
static void check_cuts(scl_context *ctx) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  const uint64_t local = cl->info.local_memory;
  cl->info.local_memory = 48 << 10;
  for (cuts = 1; cuts <= 2; cuts++) {
    for (int four = 0; four < 2; four++) {
      const char *kernel = four ? "glm_10x4f_ordered_logistic" : "glm_10f_ordered_logistic";
      const uint64_t before = launches_of(cl, kernel);
      scl_cl_glm_force(four ? "10x4f" : "10f");
      check_together(ctx, SCL_GLM_ORDERED_LOGISTIC, 1030, 10, four ? 4 : 1, 1);
      CHECK(launches_of(cl, kernel) == before + 3);
    }
  }
  cuts = MOST_CUTS;
  cl->info.local_memory = local;
  scl_cl_glm_force(NULL);
}

/* Several vectors in one launch, whose last group adds the groups' sums. */
static void check_few(scl_context *ctx) {
  const size_t columns[] = {0, 1, 9, 10}, rows[] = {1, 129, 1031};
  if (scl_context_is_host(ctx)) return;
  check_cuts(ctx);
  scl_cl_glm_force("10x4f");
  for (size_t c = 0; c < 4; c++) {
    for (size_t r = 0; r < 3; r++) {
      check_together(ctx, SCL_GLM_CATEGORICAL_LOGIT, rows[r], columns[c], 1, 2 + r);
      check_together(ctx, SCL_GLM_BERNOULLI_LOGIT, rows[r], columns[c], 2 + r, 1);
      check_together(ctx, SCL_GLM_NORMAL_ID, rows[r], columns[c], 4 - r, 1);
      if (c == r) check_together(ctx, SCL_GLM_ORDERED_LOGISTIC, rows[r], columns[c], 4, 1);
    }
  }
  scl_cl_glm_force(NULL);
}

static void check_predictors(scl_context *ctx) {
  const size_t columns[] = {0, 1, 10, 37, 104}, rows[] = {1, 47, 1031};
  for (size_t c = 0; c < 5; c++) {
    if (!test_turn(ctx, c, 2)) continue;
    for (size_t r = 0; r < 3; r++) {
      for (size_t v = 2; v <= MOST_PREDICTORS; v += v == 4 ? 4 : 1) {
        check_together(ctx, SCL_GLM_CATEGORICAL_LOGIT, rows[r], columns[c], 1, v);
        if ((c + r + v) % 2 == 0)
          check_together(ctx, SCL_GLM_BERNOULLI_LOGIT, rows[r], columns[c], v, 1);
        if (c == r) check_together(ctx, SCL_GLM_NORMAL_ID, rows[r], columns[c], v, 1);
        if (c == 4) check_together(ctx, SCL_GLM_ORDERED_LOGISTIC, rows[r], columns[c], v, 1);
      }
    }
  }
}

/* Values alone, with more cuts than have their sums in local memory. */
static void check_many_cuts(scl_context *ctx) {
  enum { ROWS = 40, COLUMNS = 12, VECTORS = 5, CUTS = 600 };
  static double x[ROWS * COLUMNS], y[ROWS], beta[COLUMNS * VECTORS], aux[CUTS * VECTORS];
  double alpha[VECTORS], value[2][VECTORS] = {{0}};
  test_fill(x, ROWS * COLUMNS);
  test_fill(alpha, VECTORS);
  test_fill(beta, COLUMNS * VECTORS);
  for (size_t i = 0; i < CUTS * VECTORS; i++) aux[i] = (double)(i % CUTS) / 100 - 3;
  for (size_t i = 0; i < ROWS; i++) y[i] = (double)(1 + i * 15);
  const scl_glm_parameters at = {.vectors = VECTORS,
                                 .classes = 1,
                                 .alpha = alpha,
                                 .beta = beta,
                                 .aux = aux,
                                 .n_alpha = VECTORS,
                                 .n_beta = COLUMNS * VECTORS,
                                 .n_aux = CUTS * VECTORS};
  for (int host = 0; host < 2; host++) {
    scl_mat *m = NULL;
    scl_glm *glm = NULL;
    REQUIRE_OK(host ? scl_mat_wrap(scl_context_host(), x, ROWS, COLUMNS, SCL_GENERAL, &m)
                    : scl_mat_from_host(ctx, x, ROWS, COLUMNS, SCL_GENERAL, &m));
    REQUIRE_OK(create(SCL_GLM_ORDERED_LOGISTIC, y, ROWS, m, &glm));
    const scl_glm_results out = {value[host], NULL, NULL, NULL, NULL, NULL};
    CHECK_OK(scl_glm_evaluate(glm, &at, 0, &out));
    scl_glm_release(glm);
    scl_mat_release(m);
  }
  CHECK(value[1][0] < -ROWS &&
        mat_largest_difference(value[0], value[1], VECTORS) <= 1e-13 * -value[1][0]);
}

/* Every layout of the device's pass, whatever the device, at its edges; and likelihoods that no
 * layout can compute. */
static void check_layouts(scl_context *ctx) {
  const size_t columns[] = {0, 1, 9, 10, 32, 103, 104, 223, 225, 527, 1023, 1025};
  const size_t rows[] = {1, 66, 259, 1031};
  const char *name;
  if (scl_context_is_host(ctx)) return;
  for (size_t l = 0; (name = scl_cl_glm_layout(l)) != NULL; l++) {
    size_t slots = (size_t)strtoul(name, NULL, 10);
    if (!test_turn(ctx, l, 3)) continue;
    scl_cl_glm_force(name);
    for (size_t c = 0; c < LENGTH(columns); c++) {
      for (size_t r = 0; r < LENGTH(rows); r++) {
        /* Beyond the layout's columns all are computed alike: once is enough. */
        if ((columns[c] > slots && l > 0) || (columns[c] > 300 && rows[r] > 66)) continue;
        problem q = make_problem(rows[r], columns[c], (r + c) % 3 == 0);
        check_problem(ctx, &q, (r + c) % 2 == 0 ? 15 - SCL_GLM_AUX : SCL_GLM_BETA);
        free_problem(&q);
      }
    }
  }
  scl_cl_glm_force(NULL);
}

void test_glm(scl_context *ctx) {
  check_few(ctx);
  check_layouts(ctx);
  check_predictors(ctx);
  test_seed(1);
  check_many_cuts(ctx);
  check_families();
  check_response(ctx);
  check_tails(ctx);
  check_faults(ctx);
  check_shapes(ctx);
  check_many_rows(ctx);
}
