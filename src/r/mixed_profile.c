/* .Call entry of small linear models with random effects: the profiled deviance and its derivatives
 * from the sums of products alone, in one call, since each evaluation has much less arithmetic than
 * a call of an R function takes.
 *
 * The matrix of the effects of the first block, of the other ones and of the m - own further
 * columns is F = D'AD + E, where D has the blocks' factors kron(lambda, I), and ones for further
 * columns, and E ones for effects. With F = R'R and the numbers c the function is
 * v = sum(c log(R_ii^2)), so that dv = tr(W dF) with W = R^-1 diag(c) R^-T; c is 1 for effects. */
#include "r/entries.h"
#include "r/glue.h"

#include <math.h>
#include <string.h>

/* cross: for each level, then each of its k effects, m numbers; at: for each parameter its block,
 * row and column from 1 on; levels, columns, lambda: of each block. Further down what is computed:
 * root: each level's lower factor; p: as cross, root^-1 lambda' cross; rest of it m x m. */
typedef struct {
  size_t count, k, m, own, blocks, parameters;
  const double *first, *cross, *rest;
  const int *at, *levels, *columns;
  double **lambda, *root, *p, *schur, *factor, *inverse, *outer, *half;
} profile;

static double dot(size_t n, const double *a, const double *b) {
  double sum = 0.0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

static void add(size_t n, double s, const double *from, double *to) {
  for (size_t i = 0; i < n; i++) to[i] += s * from[i];
}

static double *numbers(size_t n) {
  return (double *)R_alloc(n > 0 ? n : 1, sizeof(double));
}

/* M D for the m rows of M, or M D', of the blocks after the first; elements of a row are `across`
 * apart and rows `down`. */
static void times_root(const profile *s, double *matrix, size_t across, size_t down, bool turned) {
  size_t before = 0;
  for (size_t b = 1; b < s->blocks; b++) {
    const size_t k = (size_t)s->columns[b], n = (size_t)s->levels[b];
    for (size_t step = 0; step < k; step++) {
      const size_t j = turned ? k - 1 - step : step;
      const size_t begin = turned ? 0 : j + 1, end = turned ? j : k;
      for (size_t l = 0; l < n; l++) {
        double *to = matrix + (before + j * n + l) * across;
        for (size_t r = 0; r < s->m; r++) to[r * down] *= s->lambda[b][j * k + j];
        for (size_t i = begin; i < end; i++) {
          const double f = turned ? s->lambda[b][i * k + j] : s->lambda[b][j * k + i];
          const double *from = matrix + (before + i * n + l) * across;
          for (size_t r = 0; r < s->m; r++) to[r * down] += f * from[r * down];
        }
      }
    }
    before += k * n;
  }
}

/* The lower factor of a level's lambda' A lambda + I and its rows of p. */
static bool factor_level(const profile *s, size_t level) {
  const size_t k = s->k, m = s->m;
  const double *a = s->first + level * k * k, *lambda = s->lambda[0];
  double *root = s->root + level * k * k, *p = s->p + level * k * m;
  const double *cross = s->cross + level * k * m;
  for (size_t j = 0; j < k; j++) {
    for (size_t i = 0; i < k; i++)
      s->half[j * k + i] = dot(k - j, a + i * k + j, lambda + j * k + j);
  }
  for (size_t j = 0; j < k; j++) {
    for (size_t c = 0; c < m; c++) p[j * m + c] = 0.0;
    for (size_t i = j; i < k; i++) add(m, lambda[j * k + i], cross + i * m, p + j * m);
    for (size_t h = 0; h <= j; h++) {
      double v = dot(k - h, lambda + h * k + h, s->half + j * k + h) + (h == j ? 1.0 : 0.0);
      for (size_t g = 0; g < h; g++) v -= root[g * k + j] * root[g * k + h];
      if (h == j && !(v > 0.0)) return false;
      root[h * k + j] = h == j ? sqrt(v) : v / root[h * k + h];
      if (h < j) add(m, -root[h * k + j], p + h * m, p + j * m);
    }
    for (size_t c = 0; c < m; c++) p[j * m + c] /= root[j * k + j];
  }
  return true;
}

/* The upper factor of an m x m matrix in its upper triangle's place. */
static bool upper_factor(double *a, size_t m) {
  for (size_t j = 0; j < m; j++) {
    for (size_t i = 0; i <= j; i++) {
      const double v = a[j * m + i] - dot(i, a + i * m, a + j * m);
      if (i == j && !(v > 0.0)) return false;
      a[j * m + i] = i == j ? sqrt(v) : v / a[i * m + i];
    }
  }
  return true;
}

/* schur: the further columns and other blocks without what the first block takes; factor: that of
 * the matrix of these with their factors D. */
static bool factorize(const profile *s) {
  const size_t m = s->m;
  memcpy(s->schur, s->rest, m * m * sizeof(double));
  for (size_t l = 0; l < s->count; l++) {
    if (!factor_level(s, l)) return false;
    for (size_t j = 0; j < s->k; j++) {
      const double *p = s->p + (l * s->k + j) * m;
      for (size_t c = 0; c < m; c++) add(c + 1, -p[c], p, s->schur + c * m);
    }
  }
  for (size_t c = 0; c < m; c++)
    for (size_t r = 0; r < c; r++) s->schur[r * m + c] = s->schur[c * m + r];
  memcpy(s->factor, s->schur, m * m * sizeof(double));
  times_root(s, s->factor, m, 1, false);
  times_root(s, s->factor, 1, m, false);
  for (size_t c = 0; c < s->own; c++) s->factor[c * m + c] += 1.0;
  return upper_factor(s->factor, m);
}

/* outer: R^-1 diag(weight) R^-T for the factor R. */
static void weighted_inverse(const profile *s, const double *weight) {
  const size_t m = s->m;
  memset(s->inverse, 0, m * m * sizeof(double));
  memset(s->outer, 0, m * m * sizeof(double));
  for (size_t j = 0; j < m; j++) {
    double *column = s->inverse + j * m;
    column[j] = 1.0;
    for (size_t i = j + 1; i-- > 0;) {
      column[i] /= s->factor[i * m + i];
      add(i, -column[i], s->factor + i * m, column);
    }
    const double c = j < s->own ? 1.0 : weight[j - s->own];
    for (size_t i = 0; i <= j; i++) add(j + 1, c * column[i], column, s->outer + i * m);
  }
}

/* Adds the derivatives by the first block's lambda that come from one level, for
 * outer = D W D'. */
static void level_slope(const profile *s, size_t level, double *v, double *slope) {
  const size_t k = s->k, m = s->m;
  const double *a = s->first + level * k * k, *cross = s->cross + level * k * m;
  const double *root = s->root + level * k * k, *lambda = s->lambda[0];
  double *p = s->p + level * k * m, *q = s->half, *by = s->half + k * k;
  memset(v, 0, k * m * sizeof(double));
  for (size_t j = k; j-- > 0;) { /* p becomes root^-T p */
    for (size_t i = j + 1; i < k; i++) add(m, -root[j * k + i], p + i * m, p + j * m);
    for (size_t c = 0; c < m; c++) p[j * m + c] /= root[j * k + j];
    for (size_t c = 0; c < m; c++) add(m, p[j * m + c], s->outer + c * m, v + j * m);
  }
  for (size_t j = 0; j < k; j++) { /* the inverse of root root', and v p' */
    double *column = q + j * k;
    for (size_t i = 0; i < k; i++) {
      column[i] = i == j ? 1.0 : 0.0;
      for (size_t h = 0; h < i; h++) column[i] -= root[h * k + i] * column[h];
      column[i] /= root[i * k + i];
    }
    for (size_t i = k; i-- > 0;) {
      for (size_t h = i + 1; h < k; h++) column[i] -= root[i * k + h] * column[h];
      column[i] /= root[i * k + i];
    }
  }
  for (size_t j = 0; j < k; j++)
    for (size_t i = 0; i < k; i++) q[j * k + i] += dot(m, v + i * m, p + j * m);
  for (size_t j = 0; j < k; j++)
    for (size_t i = 0; i < k; i++) {
      by[j * k + i] = 0.0;
      for (size_t h = 0; h <= i; h++) by[j * k + i] += lambda[h * k + i] * q[j * k + h];
    }
  for (size_t j = 0; j < k; j++)
    for (size_t i = j; i < k; i++)
      slope[j * k + i] += 2.0 * (dot(k, a + i * k, by + j * k) - dot(m, cross + i * m, v + j * m));
}

/* The derivatives by each block's lambda, as lambda, to `slope`. */
static void slopes(const profile *s, double *const *slope, double *room) {
  const size_t m = s->m;
  times_root(s, s->outer, 1, m, true);
  size_t before = 0;
  for (size_t b = 1; b < s->blocks; b++) {
    const size_t k = (size_t)s->columns[b], n = (size_t)s->levels[b];
    for (size_t j = 0; j < k; j++)
      for (size_t i = j; i < k; i++)
        for (size_t l = 0; l < n; l++)
          slope[b][j * k + i] += 2.0 * dot(m, s->schur + (before + i * n + l) * m,
                                           s->outer + (before + j * n + l) * m);
    before += k * n;
  }
  times_root(s, s->outer, m, 1, true);
  for (size_t l = 0; l < s->count; l++) level_slope(s, l, room, slope[0]);
}

/* Whether the arguments fit each other; fills s but for what is computed. */
static bool read_profile(SEXP sums, SEXP at, SEXP levels, SEXP columns, SEXP theta, profile *s) {
  s->blocks = (size_t)XLENGTH(levels);
  s->parameters = (size_t)XLENGTH(theta);
  bool fits = TYPEOF(sums) == VECSXP && XLENGTH(sums) == 3 && TYPEOF(levels) == INTSXP &&
              TYPEOF(columns) == INTSXP && s->blocks > 0 && (size_t)XLENGTH(columns) == s->blocks &&
              TYPEOF(at) == INTSXP && (size_t)XLENGTH(at) == 3 * s->parameters &&
              r_is_double(theta, s->parameters);
  for (size_t b = 0; fits && b < s->blocks; b++) {
    fits = INTEGER_RO(levels)[b] > 0 && INTEGER_RO(columns)[b] > 0;
    if (b > 0) s->own += (size_t)INTEGER_RO(levels)[b] * (size_t)INTEGER_RO(columns)[b];
  }
  if (!fits) return false;
  s->levels = INTEGER_RO(levels), s->columns = INTEGER_RO(columns), s->at = INTEGER_RO(at);
  s->count = (size_t)s->levels[0], s->k = (size_t)s->columns[0];
  s->m = (size_t)Rf_nrows(VECTOR_ELT(sums, 2));
  for (size_t i = 0; fits && i < s->parameters; i++) {
    const int b = s->at[i], row = s->at[s->parameters + i], column = s->at[2 * s->parameters + i];
    fits =
        b > 0 && (size_t)b <= s->blocks && column > 0 && row >= column && row <= s->columns[b - 1];
  }
  if (!fits || s->m < s->own || !r_is_double(VECTOR_ELT(sums, 0), s->k * s->k * s->count) ||
      !r_is_double(VECTOR_ELT(sums, 1), s->m * s->k * s->count) ||
      !r_is_double(VECTOR_ELT(sums, 2), s->m * s->m)) {
    return false;
  }
  s->first = REAL_RO(VECTOR_ELT(sums, 0)), s->cross = REAL_RO(VECTOR_ELT(sums, 1));
  s->rest = REAL_RO(VECTOR_ELT(sums, 2));
  return true;
}

/* Lower factors of zeros for each block. */
static double **lower_factors(const profile *s) {
  double **all = (double **)R_alloc(s->blocks, sizeof(double *));
  for (size_t b = 0; b < s->blocks; b++) {
    const size_t n = (size_t)s->columns[b] * (size_t)s->columns[b];
    all[b] = numbers(n);
    memset(all[b], 0, n * sizeof(double));
  }
  return all;
}

/* The place of parameter i in the factors. */
static double *place(const profile *s, double *const *factors, size_t i) {
  const size_t b = (size_t)s->at[i] - 1, k = (size_t)s->columns[b];
  return factors[b] + (size_t)(s->at[2 * s->parameters + i] - 1) * k + s->at[s->parameters + i] - 1;
}

/* sums: list(first, cross, rest); theta: the elements of lambda. Without `weight` the logarithm of
 * the determinant of the effects, then the further columns' elements of the diagonal of R; with
 * `weight`, the c of these columns, dv by theta. NULL if F has no factor. */
SEXP r_profile(SEXP sums, SEXP at, SEXP levels, SEXP columns, SEXP theta, SEXP weight) {
  profile s = {0};
  if (!read_profile(sums, at, levels, columns, theta, &s) ||
      !(weight == R_NilValue || r_is_double(weight, s.m - s.own))) {
    scl_fail_argument("sums", "internal: the sums do not fit the model");
    r_throw();
  }
  const size_t k = s.k, m = s.m, further = m - s.own;
  s.lambda = lower_factors(&s);
  for (size_t i = 0; i < s.parameters; i++) *place(&s, s.lambda, i) = REAL_RO(theta)[i];
  s.root = numbers(s.count * k * k), s.p = numbers(s.count * k * m), s.half = numbers(2 * k * k);
  s.schur = numbers(m * m), s.factor = numbers(m * m);
  if (!factorize(&s)) return R_NilValue;
  SEXP result = PROTECT(
      Rf_allocVector(REALSXP, (R_xlen_t)(weight == R_NilValue ? 1 + further : s.parameters)));
  if (weight == R_NilValue) {
    double log_det = 0.0;
    for (size_t l = 0; l < s.count; l++)
      for (size_t j = 0; j < k; j++) log_det += log(s.root[l * k * k + j * k + j]);
    for (size_t c = 0; c < s.own; c++) log_det += log(s.factor[c * m + c]);
    REAL(result)[0] = 2.0 * log_det;
    for (size_t c = 0; c < further; c++)
      REAL(result)[1 + c] = s.factor[(s.own + c) * m + s.own + c];
  } else {
    s.inverse = numbers(m * m), s.outer = numbers(m * m);
    weighted_inverse(&s, REAL_RO(weight));
    double **slope = lower_factors(&s);
    slopes(&s, slope, numbers(k * m));
    for (size_t i = 0; i < s.parameters; i++) REAL(result)[i] = *place(&s, slope, i);
  }
  UNPROTECT(1);
  return result;
}
