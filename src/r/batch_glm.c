/* .Call entries of regressions by group: groups as codes, the fits, and their results as R keeps
 * them. */
#include "r/entries.h"
#include "r/glue.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "engine/host/vector_math.h"
#include "engine/pass/glm_batch.h"
#include "ops/glm_batch.h"

enum { TEAM_FROM = 1 << 18 }; /* numbers from which threads are used */

static scl_team *team_for(R_xlen_t n) {
  const int threads = n < TEAM_FROM ? 1 : scl_copy_threads();
  return threads > 1 ? scl_team_start(threads) : NULL;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Whole numbers of R: integers, or doubles that are. */
typedef struct {
  const int *i;
  const double *d;
  R_xlen_t n;
} whole_numbers;

static inline int at(const whole_numbers *v, R_xlen_t k) {
  return v->i != NULL ? v->i[k] : (int)v->d[k];
}

typedef struct {
  int least, most;
  bool sorted;
  R_xlen_t runs; /* of equal numbers */
} number_range;

/* false if there is an NA, or a number that is not whole or too large. */
static bool find_range(const whole_numbers *v, number_range *range) {
  *range = (number_range){.least = INT_MAX, .most = INT_MIN, .sorted = true};
  int last = 0;
  for (R_xlen_t k = 0; k < v->n; k++) {
    if (v->d != NULL && !(fabs(v->d[k]) < 2147483647.0 && (double)(int)v->d[k] == v->d[k])) {
      return false;
    }
    const int value = at(v, k);
    if (value == NA_INTEGER) return false;
    range->sorted &= k == 0 || value >= last;
    range->runs += k == 0 || value != last;
    range->least = value < range->least ? value : range->least;
    range->most = value > range->most ? value : range->most;
    last = value;
  }
  return true;
}

/* list(code: 1, 2, ... of the distinct values in increasing order; value: these; size: how many of
 * each; order: the positions from 0 on, by code, or NULL if they are in order), or NULL for values
 * that as.factor() has to sort. */
SEXP r_group_codes(SEXP group) {
  whole_numbers v = {.n = XLENGTH(group)};
  if (TYPEOF(group) == INTSXP) v.i = INTEGER_RO(group);
  if (TYPEOF(group) == REALSXP) v.d = REAL_RO(group);
  number_range range;
  if ((v.i == NULL && v.d == NULL) || v.n == 0 || v.n > INT_MAX || !find_range(&v, &range)) {
    return R_NilValue;
  }
  const double span = (double)range.most - range.least + 1.0;
  if (span > 4.0 * (double)v.n + 1000.0) return R_NilValue;
  const char *names[] = {"code", "value", "size", "order", ""};
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  int *count = (int *)R_alloc((size_t)span, sizeof *count);
  memset(count, 0, (size_t)span * sizeof *count);
  for (R_xlen_t k = 0; k < v.n; k++) count[at(&v, k) - range.least]++;
  R_xlen_t groups = 0;
  for (size_t j = 0; j < (size_t)span; j++) groups += count[j] > 0;
  SEXP code = Rf_allocVector(INTSXP, v.n);
  SET_VECTOR_ELT(result, 0, code);
  SEXP value = Rf_allocVector(INTSXP, groups);
  SET_VECTOR_ELT(result, 1, value);
  SEXP size = Rf_allocVector(INTSXP, groups);
  SET_VECTOR_ELT(result, 2, size);
  int *next = NULL; /* where the next position of a group goes */
  if (!range.sorted) {
    SET_VECTOR_ELT(result, 3, Rf_allocVector(REALSXP, v.n));
    next = (int *)R_alloc((size_t)groups, sizeof *next);
  }
  int found = 0, before = 0;
  for (size_t j = 0; j < (size_t)span; j++) {
    if (count[j] == 0) continue;
    INTEGER(value)[found] = range.least + (int)j;
    INTEGER(size)[found] = count[j];
    if (next != NULL) next[found] = before;
    before += count[j];
    count[j] = ++found;
  }
  double *order = range.sorted ? NULL : REAL(VECTOR_ELT(result, 3));
  for (R_xlen_t k = 0; k < v.n; k++) {
    const int c = count[at(&v, k) - range.least];
    INTEGER(code)[k] = c;
    if (order != NULL) order[next[c - 1]++] = (double)k;
  }
  UNPROTECT(1);
  return result;
}

typedef struct {
  const double *x;
  size_t n;
  bool odd[64];
} finite_job;

static void check_part(void *arg, int part, int parts) {
  finite_job *job = arg;
  const size_t from = job->n * (size_t)part / (size_t)parts;
  const size_t to = job->n * (size_t)(part + 1) / (size_t)parts;
  double sum[8] = {0.0};
  size_t i = from;
  for (; i + 8 <= to; i += 8)
    for (int k = 0; k < 8; k++) sum[k] += job->x[i + (size_t)k] - job->x[i + (size_t)k];
  for (; i < to; i++) sum[0] += job->x[i] - job->x[i];
  for (int k = 1; k < 8; k++) sum[0] += sum[k];
  job->odd[part] = sum[0] != 0.0; /* an infinite number less itself is NaN */
}

/* Whether all numbers of a double vector are finite. */
SEXP r_all_finite(SEXP x) {
  if (TYPEOF(x) != REALSXP) return Rf_ScalarLogical(TRUE);
  finite_job job = {.x = REAL_RO(x), .n = (size_t)XLENGTH(x)};
  scl_team *team = team_for(XLENGTH(x));
  scl_team_run(team, check_part, &job);
  scl_team_stop(team);
  bool odd = false;
  for (int k = 0; k < 64; k++) odd |= job.odd[k];
  return Rf_ScalarLogical(!odd);
}

/* ---- fits ------------------------------------------------------------------------------------ */

typedef struct {
  int family;
  size_t n;
  const double *eta;
  double *mean;
} mean_job;

/* The means of linear predictors, with the limits of R's make.link(). */
static void mean_part(void *arg, int part, int parts) {
  const mean_job *job = arg;
  const size_t from = job->n * (size_t)part / (size_t)parts;
  const size_t to = job->n * (size_t)(part + 1) / (size_t)parts;
  const double *eta = job->eta;
  double *mean = job->mean;
  scl_vector_function *vectors = scl_vector_function_of(SCL_OP_EXP);
  if (vectors != NULL) vectors(to - from, eta + from, mean + from);
  for (size_t i = from; i < to; i++) {
    double e = vectors != NULL ? mean[i] : exp(eta[i]);
    if (job->family == GLM_BATCH_POISSON) {
      mean[i] = e < DBL_EPSILON ? DBL_EPSILON : e;
    } else {
      if (eta[i] < -30.0) e = DBL_EPSILON;
      if (eta[i] > 30.0) e = 1.0 / DBL_EPSILON;
      mean[i] = e / (1.0 + e);
    }
  }
}

/* The parts of a result. */
enum { BETA, VARIANCE, COVARIANCE, DEVIANCE, RANK, STEPS, STATE, ETA, MEAN, PARTS };

static void share_out(SEXP result, const double *found, size_t p, size_t groups) {
  double *beta = REAL(VECTOR_ELT(result, BETA)), *variance = REAL(VECTOR_ELT(result, VARIANCE));
  double *covariance = REAL(VECTOR_ELT(result, COVARIANCE));
  for (size_t g = 0; g < groups; g++) {
    const double *own = found + g * (size_t)GLM_BATCH_RESULTS(p);
    for (size_t j = 0; j < p; j++) {
      beta[j * groups + g] = isnan(own[j]) ? NA_REAL : own[j];
      variance[j * groups + g] = isnan(own[j]) ? NA_REAL : own[p + j * (p + 1)];
    }
    memcpy(covariance + g * p * p, own + p, p * p * sizeof *own);
    own += p + p * p;
    REAL(VECTOR_ELT(result, DEVIANCE))[g] = own[0];
    for (int k = RANK; k <= STATE; k++) {
      const double v = own[k - DEVIANCE];
      INTEGER(VECTOR_ELT(result, k))[g] = isnan(v) ? NA_INTEGER : (int)v;
    }
  }
}

/* What ops/glm_batch.h gives, or NULL if the engine cannot: matrices groups x p of coefficients
 * and variances, and so on. task: family, most steps, rows of the largest group. */
SEXP r_glm_batch(SEXP x, SEXP y, SEXP weights, SEXP offset, SEXP order, SEXP starts, SEXP task,
                 SEXP where) {
  enum { OPERANDS = 6 };
  const SEXP given[] = {x, y, weights, offset, order, starts};
  const char *const names[] = {"x", "y", "weights", "offset", "order", "starts"};
  const char *parts[] = {"beta",  "variance", "cov", "deviance", "rank",
                         "steps", "state",    "eta", "mean",     ""};
  const double *t = REAL_RO(task);
  const size_t n = r_nrow(x, "x"), p = r_ncol(x, "x"), groups = (size_t)XLENGTH(starts) - 1;
  const int family = (int)t[0];
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, parts));
  SEXP numbers = PROTECT(r_values_new((size_t)GLM_BATCH_RESULTS(p), groups));
  SET_VECTOR_ELT(result, BETA, Rf_allocMatrix(REALSXP, (int)groups, (int)p));
  SET_VECTOR_ELT(result, VARIANCE, Rf_allocMatrix(REALSXP, (int)groups, (int)p));
  SET_VECTOR_ELT(result, COVARIANCE, Rf_allocVector(REALSXP, (R_xlen_t)(groups * p * p)));
  SET_VECTOR_ELT(result, DEVIANCE, Rf_allocVector(REALSXP, (R_xlen_t)groups));
  for (int k = RANK; k <= STATE; k++) {
    SET_VECTOR_ELT(result, k, Rf_allocVector(INTSXP, (R_xlen_t)groups));
  }
  SET_VECTOR_ELT(result, ETA, Rf_allocVector(REALSXP, (R_xlen_t)n));
  SET_VECTOR_ELT(result, MEAN,
                 family == GLM_BATCH_NORMAL ? VECTOR_ELT(result, ETA)
                                            : Rf_allocVector(REALSXP, (R_xlen_t)n));
  scl_mat *m[OPERANDS] = {0}, *out = NULL, *eta = NULL;
  bool done = false;
  scl_status status;
  SCL_GO(r_operands(where, OPERANDS, given, names, m));
  const scl_glm_batch_data data = {.family = family,
                                   .most = (int)t[1],
                                   .most_rows = (size_t)t[2],
                                   .x = m[0],
                                   .y = m[1],
                                   .weights = m[2],
                                   .offset = m[3],
                                   .order = m[4],
                                   .starts = m[5]};
  SCL_GO(scl_glm_batch(&data, &done, &out, &eta));
  if (!done) goto done;
  SCL_GO(r_values(VECTOR_ELT(result, ETA), eta));
  SCL_GO(r_values(numbers, out));
  share_out(result, REAL_RO(numbers), p, groups);
  if (family != GLM_BATCH_NORMAL) {
    mean_job job = {family, n, REAL_RO(VECTOR_ELT(result, ETA)), REAL(VECTOR_ELT(result, MEAN))};
    scl_team *team = team_for((R_xlen_t)n);
    scl_team_run(team, mean_part, &job);
    scl_team_stop(team);
  }
done:
  r_operands_release(OPERANDS, m);
  scl_mat_release(out);
  scl_mat_release(eta);
  UNPROTECT(2);
  return r_return(status, done ? result : R_NilValue);
}
