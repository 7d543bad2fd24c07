/* GLM likelihoods on the host: one pass over X in blocks of rows that stay in the cache between the
 * linear predictor and the gradient. */
#include "scl_host.h"

#include <math.h>
#include <string.h>

#include "scl_glm.h"

enum {
  BLOCK_BYTES = 256 * 1024, /* of X: about a second-level cache */
  BLOCK_ROWS = 1024,        /* at most */
  LEAST_ROWS = 16           /* for any number of columns: products need some length */
};

static size_t rows_of_block(size_t p) {
  size_t rows = BLOCK_BYTES / sizeof(double) / (p > 0 ? p : 1);
  if (rows > BLOCK_ROWS) return BLOCK_ROWS;
  return rows < LEAST_ROWS ? LEAST_ROWS : rows;
}

/* A sum with the rounding errors of its additions beside it (Neumaier's form of Kahan's sum). */
typedef struct {
  double sum, error;
} exact_sum;

static void add(exact_sum *s, double term) {
  double sum = s->sum + term;
  s->error += fabs(s->sum) >= fabs(term) ? (s->sum - sum) + term : (term - sum) + s->sum;
  s->sum = sum;
}

/* An infinite sum has no error to speak of: infinity - infinity is NaN. */
static double total(exact_sum s) {
  return isfinite(s.sum) ? s.sum + s.error : s.sum;
}

/* eta becomes the residual: the derivative of the log density by the linear predictor. */
static void link_rows(scl_glm_family family, const double *y, double *eta, size_t rows,
                      exact_sum *value, exact_sum *d_alpha) {
  for (size_t i = 0; i < rows; i++) {
    glm_term term = glm_family_term(family, y[i], eta[i]);
    add(value, term.value);
    add(d_alpha, term.d_eta);
    eta[i] = term.d_eta;
  }
}

/* d_x = residual beta', for the rows of a block. */
static void outer_product(const double *residual, const double *beta, size_t rows, size_t p,
                          double *d_x, size_t ld) {
  for (size_t j = 0; j < p; j++) {
    for (size_t i = 0; i < rows; i++) d_x[i + j * ld] = residual[i] * beta[j];
  }
}

scl_status scl_host_glm(scl_context *ctx, const scl_glm_pass *pass) {
  (void)ctx;
  size_t n = pass->x.nrow, p = pass->x.ncol, ld = pass->x.ld, step = rows_of_block(p);
  const double *x = scl_host_at(pass->x), *y = scl_host_at(pass->y);
  const double *beta = pass->parameters, *alpha = beta + p;
  double *d_beta = pass->results + 1, *d_alpha = d_beta + p, *d_x = scl_host_at(pass->d_x);
  exact_sum value = {0}, d_alpha_sum = {0};
  double block[BLOCK_ROWS];
  for (size_t j = 0; j < p; j++) d_beta[j] = 0.0;

  for (size_t i = 0; i < n; i += step) {
    size_t rows = n - i < step ? n - i : step;
    for (size_t k = 0; k < rows; k++) block[k] = alpha[pass->rowwise ? i + k : 0];
    if (p > 0) {
      scl_host_lib.gemv('N', (int)rows, (int)p, 1.0, x + i, (int)ld, beta, 1, 1.0, block, 1);
    }
    link_rows(pass->family, y + i, block, rows, &value, &d_alpha_sum);
    if (p > 0 && pass->wanted & SCL_GLM_BETA) {
      scl_host_lib.gemv('T', (int)rows, (int)p, 1.0, x + i, (int)ld, block, 1, 1.0, d_beta, 1);
    }
    if (p > 0 && pass->wanted & SCL_GLM_X)
      outer_product(block, beta, rows, p, d_x + i, pass->d_x.ld);
    if (pass->rowwise) memcpy(d_alpha + i, block, rows * sizeof *block);
    SCL_TRY(scl_poll());
  }
  pass->results[0] = total(value);
  if (!pass->rowwise) d_alpha[0] = total(d_alpha_sum);
  return SCL_OK;
}
