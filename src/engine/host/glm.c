/* GLM likelihoods on the host: one pass over X in blocks of rows that stay in the cache between the
 * linear predictors and the gradients. Large work is divided into parts, which depend on its size
 * only and not on the number of threads. */
#include "engine/host/host.h"
#include "engine/host/thin.h"
#include "engine/host/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/pass/glm.h"
#include "base/sizes.h"
#include "base/threads.h"

enum {
  BLOCK_BYTES = 256 * 1024, /* of X: about a second-level cache */
  BLOCK_ROWS = 1024,        /* at most */
  LEAST_ROWS = 16,          /* for any number of columns: products need a minimal length */
  CHUNK = 64                /* rows whose terms are added before their sum is added exactly */
};
#define PART 2.5e5   /* elements of X in a part */
#define LINK_COST 25 /* of a predictor, in elements */
#define ROUND 2e8    /* elements between two checks for interrupts */

#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif

static size_t rows_of_block(size_t p, size_t predictors) {
  size_t rows = BLOCK_BYTES / sizeof(double) / (p + predictors);
  if (rows > BLOCK_ROWS) return BLOCK_ROWS;
  return rows < LEAST_ROWS ? LEAST_ROWS : rows;
}

/* A sum and the rounding errors of its additions (Neumaier's form of Kahan's sum). The error of an
 * infinite sum is not added: infinity - infinity is NaN. */
typedef struct {
  double sum, error;
} exact_sum;

INLINED void add(exact_sum *s, double term) {
  double sum = s->sum + term;
  s->error += fabs(s->sum) >= fabs(term) ? (s->sum - sum) + term : (term - sum) + s->sum;
  s->sum = sum;
}

static double total(exact_sum s) {
  return isfinite(s.sum) ? s.sum + s.error : s.sum;
}

/* The workspace of a thread: eta holds the predictors of a block, then the residuals, a column of
 * `step` rows for each predictor; sums are those of the results without beta's. */
typedef struct {
  const scl_glm_pass *pass;
  bool alone; /* products by BLAS, which has threads of its own */
  bool wide;  /* scl_host_has_wide() */
  size_t n, p, predictors, step;
  const double *x, *y, *aux, *alpha, *beta, *row_aux;
  double *eta, *d_beta;
  exact_sum *sums;
} worker;

/* The derivatives with respect to the cuts on both sides of a class. */
INLINED void add_cuts(worker *w, size_t m, double y, glm_term term) {
  exact_sum *aux = w->sums + w->pass->vectors + m * w->pass->aux_sums;
  size_t above = (size_t)y - 1;
  if (above < w->pass->aux_sums) add(aux + above, term.d_aux);
  if (above > 0) add(aux + above - 1, term.d_low);
}

/* Predictors of vector m become residuals, for `rows` rows, at most CHUNK, from row `first` of X,
 * which is row `at` of the block. With constants for `family` and `weighted` the compiler removes
 * the other cases. */
INLINED void link_rows(worker *w, int family, bool weighted, size_t m, size_t first, size_t at,
                       size_t rows) {
  const scl_glm_pass *pass = w->pass;
  const double *aux_values = w->aux + m * pass->aux_count;
  double *eta = w->eta + m * pass->classes * w->step + at, value = 0.0, d_aux = 0.0;
  scl_glm_aux kind = GLM_FAMILY_AUX(family);
  bool coupled = GLM_FAMILY_COUPLED(family), has_datum = GLM_FAMILY_DATUM(family);
  glm_aux aux = glm_aux_none();
  glm_odds_product odds = {1.0, 0.0};
  if (kind != SCL_GLM_NONE && kind != SCL_GLM_CUTS && !pass->row_aux)
    aux = glm_aux_given(aux_values);
  const double *weight = w->y + GLM_WEIGHT_COLUMN(family) * pass->y.ld + first;
  for (size_t i = 0; i < rows; i++) {
    double y = w->y[first + i], times = weighted ? weight[i] : 1.0;
    if (coupled) {
      double one = glm_classes(y, eta + i, (scl_long)w->step, (int)pass->classes);
      value += weighted ? times * one : one;
      for (size_t c = 0; weighted && c < pass->classes; c++) eta[c * w->step + i] *= times;
      continue;
    }
    if (kind == SCL_GLM_CUTS) aux = glm_aux_cuts(aux_values, (int)pass->aux_count, y);
    if (pass->row_aux) aux = glm_aux_number(w->row_aux[m * w->n + first + i]);
    double datum = has_datum ? w->y[pass->y.ld + first + i] : 0.0;
    glm_term term = glm_family_term(family, y, datum, eta[i], aux);
    if (weighted) {
      value += times * glm_term_value(family, term);
      term = glm_term_times(term, times);
    } else {
      value += term.value;
      if (GLM_FAMILY_ODDS(family)) value -= glm_multiply_odds(&odds, term.odds);
    }
    eta[i] = term.d_eta;
    d_aux += term.d_aux;
    if (kind == SCL_GLM_CUTS && pass->aux_sums > 0) add_cuts(w, m, y, term);
    if (pass->d_aux_rows != NULL) pass->d_aux_rows[m * w->n + first + i] = term.d_aux;
  }
  if (GLM_FAMILY_ODDS(family)) value -= log(odds.product) + odds.error / odds.product;
  add(w->sums + m, value);
  if (kind != SCL_GLM_CUTS && pass->aux_sums > 0) add(w->sums + pass->vectors + m, d_aux);
}

static void link_plain(worker *w, size_t m, size_t first, size_t at, size_t rows) {
  link_rows(w, (int)w->pass->family, false, m, first, at, rows);
}

static void link_weighted(worker *w, size_t m, size_t first, size_t at, size_t rows) {
  link_rows(w, (int)w->pass->family, true, m, first, at, rows);
}

#ifdef SCL_WIDE
SCL_WIDE __attribute__((flatten)) static void link_wide(worker *w, size_t m, size_t first,
                                                        size_t at, size_t rows) {
  switch (w->pass->family) {
#define GLM_ROW(NAME, name, support, words, aux)                                                   \
  case SCL_GLM_##NAME:                                                                             \
    link_rows(w, SCL_GLM_##NAME, false, m, first, at, rows);                                       \
    break;
    SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
  default:
    break;
  }
}

#else
#define link_wide link_plain
#endif

/* The same for all predictors by BLAS. */
static void multiply_alone(worker *w, bool transposed, size_t first, size_t rows) {
  int ld = (int)w->pass->x.ld, m = (int)rows, p = (int)w->p, step = (int)w->step;
  int predictors = (int)w->predictors;
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

/* eta += X beta, or d_beta += X' eta, for `rows` rows from `first`. */
static void multiply(worker *w, bool transposed, size_t first, size_t rows) {
  if (w->p == 0) return;
  if (w->alone) {
    multiply_alone(w, transposed, first, rows);
    return;
  }
  for (size_t v = 0; v < w->predictors; v++) {
    double *eta = w->eta + v * w->step;
    if (transposed) {
      scl_host_add_dots(rows, w->p, w->x + first, w->pass->x.ld, eta, w->d_beta + v * w->p);
    } else {
      scl_host_add_columns(rows, w->p, w->x + first, w->pass->x.ld, w->beta + v * w->p, eta);
    }
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
  exact_sum *d_alpha = w->sums + scl_glm_layout_of(pass).d_alpha;
  for (size_t v = 0; v < w->predictors; v++) {
    for (size_t i = 0; i < rows; i++)
      w->eta[v * w->step + i] = w->alpha[pass->row_alpha ? v * w->n + first + i : v];
  }
  multiply(w, false, first, rows);
  void (*link)(worker *, size_t, size_t, size_t, size_t) = w->wide ? link_wide : link_plain;
  if (pass->weighted) link = link_weighted;
  for (size_t m = 0; m < pass->vectors; m++) {
    for (size_t i = 0; i < rows; i += CHUNK)
      link(w, m, first + i, i, rows - i < CHUNK ? rows - i : CHUNK);
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

/* ---- parts and threads ----------------------------------------------------------------------- */

/* Each part has its sums: part i at sums + i * n_sums and d_beta + i * n_beta. */
typedef struct {
  worker common;
  size_t parts, part_rows, n_sums, n_beta;
  exact_sum *sums;
  double *d_beta, *eta; /* eta: a block's for each thread */
  size_t from, to;      /* parts of this round */
} shares;

static void run_part(const shares *s, worker *w, size_t part) {
  size_t end = (part + 1) * s->part_rows;
  if (end > w->n) end = w->n;
  w->sums = s->sums + part * s->n_sums;
  w->d_beta = s->d_beta + part * s->n_beta;
  for (size_t first = part * s->part_rows; first < end; first += w->step)
    pass_block(w, first, end - first < w->step ? end - first : w->step);
}

static void run_thread(void *arg, int thread, int threads) {
  const shares *s = arg;
  worker w = s->common;
  w.eta = s->eta + (size_t)thread * w.step * w.predictors;
  for (size_t i = s->from + (size_t)thread; i < s->to; i += (size_t)threads) run_part(s, &w, i);
}

static scl_status run_parts(shares *s, int threads) {
  scl_team *team = threads > 1 ? scl_team_start(threads) : NULL;
  size_t round = (size_t)(ROUND / PART);
  scl_status status = SCL_OK;
  for (s->from = 0; s->from < s->parts && status == SCL_OK; s->from = s->to) {
    s->to = s->parts - s->from < round ? s->parts : s->from + round;
    scl_team_run(team, run_thread, s);
    status = scl_poll();
  }
  scl_team_stop(team);
  return status;
}

static void cut(shares *s) {
  const worker *w = &s->common;
  double cost = (double)(w->p + LINK_COST) * (double)w->predictors;
  size_t blocks = (size_t)(PART / cost / (double)w->step) + 1;
  s->part_rows = blocks * w->step;
  s->parts = w->n > 0 ? scl_ceil_div(w->n, s->part_rows) : 1;
}

static void add_parts(const shares *s, double *results) {
  for (size_t i = 0; i < s->n_sums; i++) {
    exact_sum all = {0.0, 0.0};
    for (size_t part = 0; part < s->parts; part++) {
      const exact_sum *one = s->sums + part * s->n_sums + i;
      add(&all, one->sum);
      if (isfinite(one->sum)) all.error += one->error;
    }
    results[i] = total(all);
  }
  for (size_t j = 0; j < s->n_beta; j++) {
    double sum = 0.0;
    for (size_t part = 0; part < s->parts; part++) sum += s->d_beta[part * s->n_beta + j];
    results[s->n_sums + j] = sum;
  }
}

scl_status scl_host_glm(scl_context *ctx, const scl_glm_pass *pass) {
  (void)ctx;
  const scl_glm_layout at = scl_glm_layout_of(pass);
  size_t predictors = pass->vectors * pass->classes, p = pass->x.ncol;
  worker w = {.pass = pass,
              .wide = scl_host_has_wide(),
              .n = pass->x.nrow,
              .p = p,
              .predictors = predictors,
              .step = rows_of_block(p, predictors),
              .x = scl_host_at(pass->x),
              .y = scl_host_at(pass->y),
              .aux = pass->parameters + at.aux,
              .alpha = pass->parameters + at.alpha,
              .beta = pass->parameters + at.beta,
              .row_aux = pass->parameters + at.row_aux};
  shares s = {.common = w, .n_sums = at.d_beta, .n_beta = at.results - at.d_beta};
  cut(&s);
  int threads = s.parts > 1 ? scl_copy_threads() : 1;
  if ((size_t)threads > s.parts) threads = (int)s.parts;
  s.common.alone = s.parts == 1;
  size_t eta = (size_t)threads * w.step * predictors;
  s.eta = malloc(eta * sizeof *s.eta);
  s.sums = calloc(s.parts * s.n_sums, sizeof *s.sums);
  s.d_beta = calloc(s.parts * s.n_beta + 1, sizeof *s.d_beta);
  scl_status status = SCL_OK;
  if (s.eta == NULL || s.sums == NULL || s.d_beta == NULL)
    status = scl_fail_memory(eta * sizeof *s.eta, 0, "a likelihood");
  if (status == SCL_OK) status = run_parts(&s, threads);
  if (status == SCL_OK) add_parts(&s, pass->results);
  free(s.eta);
  free(s.sums);
  free(s.d_beta);
  return status;
}
