/* GLM likelihoods on the host: one pass over X in blocks of rows that stay in the cache between the
 * linear predictors and the gradients. */
#include "scl_host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scl_glm.h"

enum {
  BLOCK_BYTES = 256 * 1024, /* of X: about a second-level cache */
  BLOCK_ROWS = 1024,        /* at most */
  LEAST_ROWS = 16,          /* for any number of columns: products need some length */
  CHUNK = 64                /* rows whose terms are added before their sum is added exactly */
};

static size_t rows_of_block(size_t p, size_t predictors) {
  size_t rows = BLOCK_BYTES / sizeof(double) / (p + predictors);
  if (rows > BLOCK_ROWS) return BLOCK_ROWS;
  return rows < LEAST_ROWS ? LEAST_ROWS : rows;
}

/* A sum with the rounding errors of its additions beside it (Neumaier's form of Kahan's sum). An
 * infinite sum has no error to speak of: infinity - infinity is NaN. */
typedef struct {
  double sum, error;
} exact_sum;

static void add(exact_sum *s, double term) {
  double sum = s->sum + term;
  s->error += fabs(s->sum) >= fabs(term) ? (s->sum - sum) + term : (term - sum) + s->sum;
  s->sum = sum;
}

static double total(exact_sum s) {
  return isfinite(s.sum) ? s.sum + s.error : s.sum;
}

/* What a pass works with: eta holds the predictors of a block, then the residuals, a column of
 * `step` rows for each predictor; sums are those of the results without beta's. */
typedef struct {
  const scl_glm_pass *pass;
  size_t n, p, predictors, step;
  const double *x, *y, *owns, *alpha, *beta, *row_own;
  double *eta, *d_beta;
  exact_sum *sums;
} worker;

/* The derivatives by the cuts on both sides of a class. */
static void add_cuts(worker *w, size_t m, double y, glm_term term) {
  exact_sum *own = w->sums + w->pass->vectors + m * w->pass->own_sums;
  size_t above = (size_t)y - 1;
  if (above < w->pass->own_sums) add(own + above, term.d_own);
  if (above > 0) add(own + above - 1, term.d_low);
}

/* Predictors of vector m become residuals, for `rows` rows, at most CHUNK, from row `first` of X,
 * which is row `at` of the block. */
static void link_rows(worker *w, size_t m, size_t first, size_t at, size_t rows) {
  const scl_glm_pass *pass = w->pass;
  const double *own_at = w->owns + m * pass->owns;
  double *eta = w->eta + m * pass->classes * w->step + at, value = 0.0, d_own = 0.0;
  scl_glm_own kind = GLM_FAMILY_OWN(pass->family);
  bool coupled = GLM_FAMILY_COUPLED(pass->family), has_datum = GLM_FAMILY_DATUM(pass->family);
  glm_own own = glm_own_none();
  if (kind != SCL_GLM_NONE && kind != SCL_GLM_CUTS && !pass->row_own) own = glm_own_given(own_at);
  for (size_t i = 0; i < rows; i++) {
    double y = w->y[first + i];
    if (coupled) {
      value += glm_classes(y, eta + i, (scl_long)w->step, (int)pass->classes);
      continue;
    }
    if (kind == SCL_GLM_CUTS) own = glm_own_cuts(own_at, (int)pass->owns, y);
    if (pass->row_own) own = glm_own_number(w->row_own[m * w->n + first + i]);
    double datum = has_datum ? w->y[pass->y.ld + first + i] : 0.0;
    glm_term term = glm_family_term((int)pass->family, y, datum, eta[i], own);
    value += glm_term_value((int)pass->family, term);
    eta[i] = term.d_eta;
    d_own += term.d_own;
    if (kind == SCL_GLM_CUTS && pass->own_sums > 0) add_cuts(w, m, y, term);
    if (pass->d_own_rows != NULL) pass->d_own_rows[m * w->n + first + i] = term.d_own;
  }
  add(w->sums + m, value);
  if (kind != SCL_GLM_CUTS && pass->own_sums > 0) add(w->sums + pass->vectors + m, d_own);
}

/* eta += X beta, or d_beta += X' eta, for `rows` rows from `first`. */
static void multiply(worker *w, bool transposed, size_t first, size_t rows) {
  int ld = (int)w->pass->x.ld, m = (int)rows, p = (int)w->p, step = (int)w->step;
  int predictors = (int)w->predictors;
  if (w->p == 0) return;
  if (predictors == 1) {
    scl_host_lib.gemv(transposed ? 'T' : 'N', m, p, 1.0, w->x + first, ld,
                      transposed ? w->eta : w->beta, 1, 1.0, transposed ? w->d_beta : w->eta, 1);
  } else if (transposed) {
    scl_host_lib.gemm('T', 'N', p, predictors, m, 1.0, w->x + first, ld, w->eta, step, 1.0,
                      w->d_beta, p);
  } else {
    scl_host_lib.gemm('N', 'N', m, predictors, p, 1.0, w->x + first, ld, w->beta, p, 1.0, w->eta,
                      step);
  }
}

/* d_x = residuals beta', for the rows of a block. */
static void outer_product(const worker *w, size_t first, size_t rows) {
  scl_block d_x = w->pass->d_x;
  if (d_x.buffer == NULL) return;
  for (size_t j = 0; j < w->p; j++) {
    double *column = scl_host_at(d_x) + first + j * d_x.ld;
    for (size_t i = 0; i < rows; i++) column[i] = w->eta[i] * w->beta[j];
    for (size_t v = 1; v < w->predictors; v++) {
      for (size_t i = 0; i < rows; i++)
        column[i] += w->eta[v * w->step + i] * w->beta[v * w->p + j];
    }
  }
}

static void pass_block(worker *w, size_t first, size_t rows) {
  const scl_glm_pass *pass = w->pass;
  exact_sum *d_alpha = w->sums + pass->vectors * (1 + pass->own_sums);
  for (size_t v = 0; v < w->predictors; v++) {
    for (size_t i = 0; i < rows; i++)
      w->eta[v * w->step + i] = w->alpha[pass->row_alpha ? v * w->n + first + i : v];
  }
  multiply(w, false, first, rows);
  for (size_t m = 0; m < pass->vectors; m++) {
    for (size_t i = 0; i < rows; i += CHUNK)
      link_rows(w, m, first + i, i, rows - i < CHUNK ? rows - i : CHUNK);
  }
  for (size_t v = 0; v < w->predictors; v++) {
    const double *residual = w->eta + v * w->step;
    for (size_t i = 0; i < rows; i += CHUNK) {
      double sum = 0.0;
      for (size_t j = i; j < rows && j < i + CHUNK; j++) sum += residual[j];
      add(d_alpha + v, sum);
    }
    if (pass->d_alpha_rows != NULL)
      memcpy(pass->d_alpha_rows + v * w->n + first, residual, rows * sizeof *residual);
  }
  if (pass->gradient) multiply(w, true, first, rows);
  outer_product(w, first, rows);
}

static scl_status pass_all(worker *w) {
  for (size_t first = 0; first < w->n; first += w->step) {
    pass_block(w, first, w->n - first < w->step ? w->n - first : w->step);
    SCL_TRY(scl_poll());
  }
  return SCL_OK;
}

scl_status scl_host_glm(scl_context *ctx, const scl_glm_pass *pass) {
  (void)ctx;
  size_t predictors = pass->vectors * pass->classes, p = pass->x.ncol;
  size_t sums = pass->vectors * (1 + pass->own_sums) + predictors;
  worker w = {.pass = pass,
              .n = pass->x.nrow,
              .p = p,
              .predictors = predictors,
              .step = rows_of_block(p, predictors),
              .x = scl_host_at(pass->x),
              .y = scl_host_at(pass->y),
              .owns = pass->parameters + 1,
              .d_beta = pass->results + sums};
  w.alpha = w.owns + pass->owns * pass->vectors;
  w.beta = w.alpha + (pass->row_alpha ? w.n : 1) * predictors;
  w.row_own = w.beta + p * predictors;
  size_t bytes = w.step * predictors * sizeof *w.eta;
  w.eta = malloc(bytes);
  w.sums = calloc(sums, sizeof *w.sums);
  scl_status status = SCL_OK;
  if (w.eta == NULL || w.sums == NULL) status = scl_fail_memory(bytes, 0, "a likelihood");
  for (size_t j = 0; j < p * predictors; j++) w.d_beta[j] = 0.0;
  if (status == SCL_OK) status = pass_all(&w);
  for (size_t i = 0; i < sums && status == SCL_OK; i++) pass->results[i] = total(w.sums[i]);
  free(w.eta);
  free(w.sums);
  return status;
}
