/* Each iteration is one pass over the rows, in blocks that stay in the cache: linear predictors,
 * means, weights, deviance, X' W X and X' s. The rows are cut into parts as in gram.c. */
#include "engine/host/irls.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/sizes.h"
#include "base/threads.h"
#include "engine/host/gram.h"
#include "engine/host/vector_math.h"

enum {
  BLOCK = 512,            /* rows, at most */
  POLL = 64,              /* blocks between two polls */
  HALVINGS = 10,          /* of a step: then R's solver takes over */
  WORTH_A_TEAM = 1000000, /* multiplications */
  LINK_COST = 30          /* of a row, in multiplications */
};

/* ---- means and deviances of a block of rows -------------------------------------------------- */

static void run(scl_op op, double (*one)(double), size_t n, const double *x, double *y) {
  scl_vector_function *vectors = scl_vector_function_of(op);
  if (vectors != NULL) {
    vectors(n, x, y);
    return;
  }
  for (size_t i = 0; i < n; i++) y[i] = one(x[i]);
}

static double within(double v, double bound) {
  return v < -bound ? -bound : v > bound ? bound : v;
}

static void find_logit_means(size_t n, const double *eta, double *mu, double *slope) {
  const double least = DBL_EPSILON;
  for (size_t i = 0; i < n; i++) slope[i] = -fabs(within(eta[i], 30.0));
  run(SCL_OP_EXP, exp, n, slope, slope);
  for (size_t i = 0; i < n; i++) {
    const double e = slope[i], up = 1.0 / (1.0 + e);
    mu[i] = eta[i] < -30.0  ? least / (1.0 + least)
            : eta[i] > 30.0 ? 1.0 / (1.0 + least)
            : eta[i] < 0.0  ? e * up
                            : up;
    slope[i] = fabs(eta[i]) > 30.0 ? least : e * up * up;
  }
}

/* mu and its derivative by eta, with the bounds that they have in R. */
static void find_means(scl_link link, size_t n, const double *eta, double *mu, double *slope) {
  const double least = DBL_EPSILON, pi = 3.14159265358979323846;
  switch (link) {
  case SCL_LINK_LOGIT:
    find_logit_means(n, eta, mu, slope);
    break;
  case SCL_LINK_PROBIT:
    for (size_t i = 0; i < n; i++) { /* 8.12...: the quantile of the bound */
      mu[i] = 0.5 * erfc(-within(eta[i], 8.125890664701906) * sqrt(0.5));
      slope[i] = fmax(exp(-0.5 * eta[i] * eta[i]) / sqrt(2.0 * pi), least);
    }
    break;
  case SCL_LINK_CAUCHIT:
    for (size_t i = 0; i < n; i++) {
      mu[i] = atan2(1.0, -within(eta[i], 1.0 / (pi * least))) / pi;
      slope[i] = fmax(1.0 / (pi * (1.0 + eta[i] * eta[i])), least);
    }
    break;
  case SCL_LINK_CLOGLOG:
    for (size_t i = 0; i < n; i++) {
      mu[i] = fmax(fmin(-expm1(-exp(eta[i])), 1.0 - least), least);
      const double e = exp(fmin(eta[i], 700.0));
      slope[i] = fmax(e * exp(-e), least);
    }
    break;
  case SCL_LINK_LOG:
    run(SCL_OP_EXP, exp, n, eta, mu);
    for (size_t i = 0; i < n; i++) slope[i] = mu[i] = mu[i] > least ? mu[i] : least;
    break;
  case SCL_LINK_IDENTITY:
    for (size_t i = 0; i < n; i++) {
      mu[i] = eta[i];
      slope[i] = 1.0;
    }
    break;
  case SCL_LINK_SQRT:
    for (size_t i = 0; i < n; i++) {
      mu[i] = eta[i] * eta[i];
      slope[i] = 2.0 * eta[i];
    }
    break;
  case SCL_LINK_INVERSE:
    for (size_t i = 0; i < n; i++) {
      mu[i] = 1.0 / eta[i];
      slope[i] = -mu[i] * mu[i];
    }
    break;
  default: /* 1 / mu^2 */
    for (size_t i = 0; i < n; i++) {
      mu[i] = 1.0 / sqrt(eta[i]);
      slope[i] = -mu[i] / (2.0 * eta[i]);
    }
  }
}

/* Whether R's family would accept all of these; the bounds of its validmu(), or stricter. */
static bool are_valid(scl_link link, scl_variance variance, size_t n, const double *eta,
                      const double *mu) {
  const double below = variance == SCL_VARIANCE_ONE ? -INFINITY : 0.0;
  const double above = variance == SCL_VARIANCE_BINOMIAL ? 1.0 : INFINITY;
  const bool positive = link == SCL_LINK_SQRT || link == SCL_LINK_INVERSE_SQUARE;
  bool valid = true;
  for (size_t i = 0; i < n; i++) valid &= (mu[i] > below) & (mu[i] < above);
  for (size_t i = 0; i < n && positive; i++) valid &= eta[i] > 0.0;
  for (size_t i = 0; i < n && link == SCL_LINK_INVERSE; i++) valid &= eta[i] != 0.0;
  return valid;
}

/* The variances; the deviances without the weights. `first` and `second` are workspace. */
static void find_variances(const scl_irls *at, size_t n, const double *y, const double *mu,
                           double *variance, double *deviance, double *first, double *second) {
  const double theta = at->theta;
  switch (at->variance) {
  case SCL_VARIANCE_BINOMIAL:
    for (size_t i = 0; i < n; i++) {
      first[i] = y[i] > 0.0 ? y[i] / mu[i] : 1.0;
      second[i] = y[i] < 1.0 ? (1.0 - y[i]) / (1.0 - mu[i]) : 1.0;
    }
    run(SCL_OP_LOG, log, n, first, first);
    run(SCL_OP_LOG, log, n, second, second);
    for (size_t i = 0; i < n; i++) {
      variance[i] = mu[i] * (1.0 - mu[i]);
      deviance[i] = 2.0 * (y[i] * first[i] + (1.0 - y[i]) * second[i]);
    }
    break;
  case SCL_VARIANCE_MU:
  case SCL_VARIANCE_MU2:
    for (size_t i = 0; i < n; i++) first[i] = y[i] > 0.0 ? y[i] / mu[i] : 1.0;
    run(SCL_OP_LOG, log, n, first, first);
    for (size_t i = 0; i < n; i++) {
      const bool plain = at->variance == SCL_VARIANCE_MU;
      const double gap = y[i] - mu[i];
      variance[i] = plain ? mu[i] : mu[i] * mu[i];
      deviance[i] = 2.0 * (plain ? y[i] * first[i] - gap : gap / mu[i] - first[i]);
    }
    break;
  case SCL_VARIANCE_MU3:
    for (size_t i = 0; i < n; i++) {
      const double gap = y[i] - mu[i];
      variance[i] = mu[i] * mu[i] * mu[i];
      deviance[i] = gap * gap / (y[i] * mu[i] * mu[i]);
    }
    break;
  case SCL_VARIANCE_THETA:
    for (size_t i = 0; i < n; i++) {
      first[i] = fmax(1.0, y[i]) / mu[i];
      second[i] = (y[i] + theta) / (mu[i] + theta);
    }
    run(SCL_OP_LOG, log, n, first, first);
    run(SCL_OP_LOG, log, n, second, second);
    for (size_t i = 0; i < n; i++) {
      variance[i] = mu[i] + mu[i] * mu[i] / theta;
      deviance[i] = 2.0 * (y[i] * first[i] - (y[i] + theta) * second[i]);
    }
    break;
  default:
    for (size_t i = 0; i < n; i++) {
      const double gap = y[i] - mu[i];
      variance[i] = 1.0;
      deviance[i] = gap * gap;
    }
  }
}

/* ---- one pass -------------------------------------------------------------------------------- */

typedef struct {
  double deviance, pearson;
  bool valid;
} row_sums;

/* q: p and the column of the score, padded. `from_eta`: at the predictors of the start. */
typedef struct {
  const scl_irls *at;
  size_t q, step, parts, part_rows;
  const double *beta;
  bool from_eta;
  double *sums;   /* q x q for each part */
  double *blocks; /* step x q for each thread */
  row_sums *rows; /* for each part */
  _Atomic size_t next;
  _Atomic bool stop;
} pass;

/* eta of `rows` rows from `first`. */
static void find_eta(const pass *s, size_t first, size_t rows, double *eta) {
  const scl_irls *at = s->at;
  if (s->from_eta) {
    memcpy(eta, at->eta + first, rows * sizeof *eta);
    return;
  }
  for (size_t i = 0; i < rows; i++) eta[i] = 0.0;
  for (size_t j = 0; j < at->p; j++) {
    const double *column = at->x + j * at->n + first, beta = s->beta[j];
    for (size_t i = 0; i < rows; i++) eta[i] += column[i] * beta;
  }
  for (size_t i = 0; at->offset != NULL && i < rows; i++) eta[i] += at->offset[first + i];
}

/* The columns sqrt(w) x and score / sqrt(w), padded. */
static void fill_block(const pass *s, size_t first, size_t rows, const double *root,
                       const double *target, double *block) {
  const scl_irls *at = s->at;
  const size_t ld = scl_gram_padded(rows);
  for (size_t j = 0; j < s->q; j++) {
    double *to = block + j * ld;
    const double *from = at->x + j * at->n + first;
    for (size_t i = 0; i < rows && j < at->p; i++) to[i] = from[i] * root[i];
    if (j == at->p) memcpy(to, target, rows * sizeof *to);
    if (j > at->p) memset(to, 0, rows * sizeof *to);
    for (size_t i = rows; i < ld; i++) to[i] = 0.0;
  }
}

static void pass_block(const pass *s, size_t first, size_t rows, double *block, row_sums *sums,
                       double *gram) {
  const scl_irls *at = s->at;
  const double *y = at->y + first;
  double eta[BLOCK], mu[BLOCK], slope[BLOCK] = {0.0}, variance[BLOCK], deviance[BLOCK];
  double one[BLOCK] = {0.0}, two[BLOCK] = {0.0};
  find_eta(s, first, rows, eta);
  find_means(at->link, rows, eta, mu, slope);
  if (!are_valid(at->link, at->variance, rows, eta, mu)) {
    sums->valid = false;
    return;
  }
  find_variances(at, rows, y, mu, variance, deviance, one, two);
  for (size_t i = 0; i < rows; i++) {
    const double w = at->weight != NULL ? at->weight[first + i] : 1.0, gap = y[i] - mu[i];
    const double by_eta = w * slope[i] / variance[i], weight = by_eta * slope[i];
    const double past = at->offset != NULL ? at->offset[first + i] : 0.0;
    const double score = by_eta * gap + (s->from_eta ? weight * (eta[i] - past) : 0.0);
    sums->deviance += w * deviance[i];
    sums->pearson += w * gap * gap / variance[i];
    one[i] = sqrt(weight);
    two[i] = weight > 0.0 ? score / one[i] : 0.0;
  }
  fill_block(s, first, rows, one, two, block);
  scl_gram_add(block, scl_gram_padded(rows), s->q, gram);
}

static void run_thread(void *arg, int thread, int threads) {
  pass *s = arg;
  (void)threads;
  double *block = s->blocks + (size_t)thread * s->step * s->q;
  for (;;) {
    const size_t part = atomic_fetch_add(&s->next, 1);
    if (part >= s->parts) return;
    const size_t end = scl_min(s->at->n, (part + 1) * s->part_rows);
    row_sums *sums = s->rows + part;
    double *gram = s->sums + part * s->q * s->q;
    *sums = (row_sums){.valid = true};
    memset(gram, 0, s->q * s->q * sizeof *gram);
    for (size_t first = part * s->part_rows, i = 0; first < end; first += s->step, i++) {
      pass_block(s, first, scl_min(end - first, s->step), block, sums, gram);
      if (thread == 0 && i % POLL == POLL - 1 && scl_poll() != SCL_OK) atomic_store(&s->stop, true);
      if (!sums->valid || atomic_load(&s->stop)) break;
    }
  }
}

/* ---- the search ------------------------------------------------------------------------------ */

/* A point: X' W X (p x p), X' s, and sums over the rows. */
typedef struct {
  double *information, *score;
  double deviance, pearson;
} point;

typedef struct {
  scl_irls *at;
  pass pass;
  scl_team *team;
  point here, there;
  double *root, *size, *half, *step, *to; /* the lower factor; its scales; p numbers each */
  double square;                          /* of the length of the step */
} search;

/* *valid: whether all means are valid and all sums finite. */
static scl_status visit(search *s, const double *beta, point *to, bool *valid) {
  const size_t p = s->at->p, q = s->pass.q;
  s->pass.beta = beta;
  s->pass.from_eta = beta == NULL;
  atomic_store(&s->pass.next, 0);
  scl_team_run(s->team, run_thread, &s->pass);
  if (s->pass.stop) return SCL_E_INTERRUPT;
  SCL_TRY(scl_poll());
  *valid = true;
  to->deviance = to->pearson = 0.0;
  for (size_t part = 0; part < s->pass.parts; part++) {
    const row_sums *rows = s->pass.rows + part;
    *valid &= rows->valid;
    to->deviance += rows->deviance;
    to->pearson += rows->pearson;
  }
  *valid = *valid && isfinite(to->deviance);
  for (size_t j = 0; j < p; j++)
    for (size_t i = j; i <= p; i++) {
      double sum = 0.0;
      for (size_t part = 0; part < s->pass.parts; part++)
        sum += s->pass.sums[(part * q + j) * q + i];
      *valid = *valid && isfinite(sum);
      if (i == p) {
        to->score[j] = sum;
      } else {
        to->information[j * p + i] = to->information[i * p + j] = sum;
      }
    }
  return SCL_OK;
}

/* step = information^-1 score; false unless the information is well conditioned. */
static bool find_step(search *s, const point *at) {
  const size_t p = s->at->p;
  double *root = s->root;
  for (size_t j = 0; j < p; j++) {
    s->size[j] = sqrt(at->information[j * p + j]);
    if (!(s->size[j] > 1e-140 && s->size[j] < INFINITY)) return false;
  }
  for (size_t j = 0; j < p; j++)
    for (size_t i = j; i < p; i++) {
      double sum = at->information[j * p + i] / (s->size[i] * s->size[j]);
      for (size_t k = 0; k < j; k++) sum -= root[k * p + i] * root[k * p + j];
      if (i == j && !(sum > s->at->skew * s->at->skew)) return false;
      root[j * p + i] = i == j ? sqrt(sum) : sum / root[j * p + j];
    }
  s->square = 0.0;
  for (size_t i = 0; i < p; i++) {
    double sum = at->score[i] / s->size[i];
    for (size_t k = 0; k < i; k++) sum -= root[k * p + i] * s->half[k];
    s->half[i] = sum / root[i * p + i];
    s->square += s->half[i] * s->half[i];
  }
  for (size_t i = p; i-- > 0;) {
    double sum = s->half[i];
    for (size_t k = i + 1; k < p; k++) sum -= root[i * p + k] * s->step[k];
    s->step[i] = sum / root[i * p + i];
  }
  for (size_t i = 0; i < p; i++) s->step[i] /= s->size[i];
  return isfinite(s->square);
}

/* beta' information beta. */
static double length_of(const search *s) {
  const size_t p = s->at->p;
  double length = 0.0;
  for (size_t j = 0; j < p; j++)
    for (size_t i = 0; i < p; i++)
      length += s->at->beta[i] * s->here.information[j * p + i] * s->at->beta[j];
  return length;
}

/* The step, halved until the deviance does not rise; *moved: whether it does not. */
static scl_status move(search *s, bool *moved) {
  const size_t p = s->at->p;
  const double bound = s->here.deviance + 1e-10 * (fabs(s->here.deviance) + 0.1);
  double size = 1.0;
  *moved = false;
  for (int i = 0; i < HALVINGS && !*moved; i++, size /= 2) {
    bool valid = false;
    for (size_t j = 0; j < p; j++) s->to[j] = s->at->beta[j] + size * s->step[j];
    SCL_TRY(visit(s, s->to, &s->there, &valid));
    *moved = valid && s->there.deviance <= bound;
  }
  if (!*moved) return SCL_OK;
  memcpy(s->at->beta, s->to, p * sizeof *s->to);
  const point past = s->here;
  s->here = s->there;
  s->there = past;
  return SCL_OK;
}

static scl_status find(search *s, bool *found) {
  scl_irls *at = s->at;
  const size_t p = at->p;
  bool fine = false;
  double last = INFINITY;
  SCL_TRY(visit(s, NULL, &s->here, &fine));
  if (!fine || !find_step(s, &s->here)) return SCL_OK;
  memcpy(at->beta, s->step, p * sizeof *at->beta);
  SCL_TRY(visit(s, at->beta, &s->here, &fine));
  for (at->steps = 0; fine && find_step(s, &s->here); at->steps++) {
    const double spare = at->n > p ? (double)(at->n - p) : 1.0;
    const double unit = at->known_dispersion ? 1.0 : s->here.pearson / spare;
    at->decrement = s->square > 0.0 ? sqrt(s->square / unit) : 0.0;
    /* when the step is only rounding error, it does not get smaller */
    const bool at_rounding = at->decrement < 1e-6 && at->decrement >= last;
    if (at->decrement <= at->tolerance || s->square <= 1e-24 * length_of(s) || at_rounding) {
      for (size_t j = 0; j < p && !at_rounding; j++) at->beta[j] += s->step[j];
      memcpy(at->information, s->here.information, p * p * sizeof *at->information);
      at->deviance = s->here.deviance;
      *found = true;
      return SCL_OK;
    }
    if (at->steps >= at->most) return SCL_OK;
    last = at->decrement;
    SCL_TRY(move(s, &fine));
  }
  return SCL_OK;
}

scl_status scl_host_irls(scl_irls *at, bool *found) {
  const size_t n = at->n, p = at->p, q = scl_gram_padded(p + 1);
  search s = {.at = at, .pass = {.at = at, .q = q, .step = scl_gram_step(q)}};
  pass *pass = &s.pass;
  *found = false;
  pass->part_rows = scl_gram_padded(scl_ceil_div(n, SCL_GRAM_PARTS));
  pass->part_rows = scl_max(pass->part_rows, pass->step);
  pass->parts = scl_ceil_div(n, pass->part_rows);
  int threads = n * (p * p + LINK_COST) < WORTH_A_TEAM ? 1 : scl_copy_threads();
  if ((size_t)threads > pass->parts) threads = (int)scl_max(pass->parts, 1);
  const size_t numbers = pass->parts * q * q + (size_t)threads * pass->step * q + 3 * p * p + 6 * p;
  double *memory = malloc((numbers + 1) * sizeof *memory);
  pass->rows = malloc((pass->parts + 1) * sizeof *pass->rows);
  if (memory == NULL || pass->rows == NULL) {
    free(memory);
    free(pass->rows);
    return scl_fail_memory(numbers * sizeof *memory, 0, "a fit");
  }
  double *next = memory;
  pass->sums = next, next += pass->parts * q * q;
  pass->blocks = next, next += (size_t)threads * pass->step * q;
  double **const places[] = {&s.here.score, &s.there.score, &s.size, &s.half, &s.step, &s.to};
  for (size_t i = 0; i < 6; i++) *places[i] = next, next += p;
  s.here.information = next, next += p * p;
  s.there.information = next, next += p * p;
  s.root = next;
  s.team = threads > 1 ? scl_team_start(threads) : NULL;
  scl_status status = find(&s, found);
  scl_team_stop(s.team);
  free(memory);
  free(pass->rows);
  return status;
}
