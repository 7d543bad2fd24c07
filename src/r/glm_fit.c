/* .Call entries of fits of generalised linear models that work on R's memory. */
#include "r/entries.h"
#include "r/glue.h"

#include <math.h>
#include <string.h>

#include <R_ext/Applic.h>

#include "engine/host/blas.h"
#include "engine/host/irls.h"
#include "ops/least_squares.h"

/* ---- reweighted least squares ---------------------------------------------------------------- */

/* list(beta, information, deviance, decrement, iterations), or NULL in difficult cases. `data`:
 * list(y, weights, offset, eta), the second and third of which may be NULL; `task`: the link, the
 * variance, theta, whether the dispersion is known, tolerance, least pivot, most steps.
 */
SEXP r_irls(SEXP x, SEXP data, SEXP task) {
  const size_t n = r_nrow(x, "x"), p = r_ncol(x, "x");
  bool fits =
      r_is_double(x, n * p) && TYPEOF(data) == VECSXP && XLENGTH(data) == 4 && r_is_double(task, 7);
  for (int k = 0; fits && k < 4; k++) {
    SEXP v = VECTOR_ELT(data, k);
    fits = r_is_double(v, n) || ((k == 1 || k == 2) && v == R_NilValue);
  }
  const double *to = fits ? REAL_RO(task) : NULL;
  fits = fits && to[0] >= 0 && to[0] < SCL_LINKS && to[1] >= 0 && to[1] < SCL_VARIANCES;
  if (!fits) {
    scl_fail_argument("x", "'x', its rows' numbers and the task must be double and of matching "
                           "shapes");
    r_throw();
  }
  const r_part parts[] = {{"beta", p, R_VECTOR},
                          {"information", p, p},
                          {"deviance", 1, R_VECTOR},
                          {"decrement", 1, R_VECTOR},
                          {"iterations", 1, R_VECTOR}};
  double *part[5];
  SEXP result = PROTECT(r_list_new(5, parts, part));
  scl_irls at = {.n = n,
                 .p = p,
                 .x = REAL_RO(x),
                 .y = REAL_RO(VECTOR_ELT(data, 0)),
                 .weight = r_numbers(VECTOR_ELT(data, 1)),
                 .offset = r_numbers(VECTOR_ELT(data, 2)),
                 .eta = REAL_RO(VECTOR_ELT(data, 3)),
                 .link = (scl_link)to[0],
                 .variance = (scl_variance)to[1],
                 .theta = to[2],
                 .known_dispersion = to[3] != 0.0,
                 .tolerance = to[4],
                 .skew = to[5],
                 .most = (int)to[6],
                 .beta = part[0],
                 .information = part[1]};
  bool found = false;
  scl_status status = scl_host_irls(&at, &found);
  *part[2] = at.deviance;
  *part[3] = at.decrement;
  *part[4] = at.steps;
  UNPROTECT(1);
  return r_return(status, found ? result : R_NilValue);
}

/* ---- QR decomposition ------------------------------------------------------------------------ */

/* The power of two below a size, as in R/glm-basis.R: dividing by it is exact. */
static double unit_of(double size) {
  int exponent = 0;
  if (size == 0.0) return 1.0;
  frexp(size, &exponent);
  return ldexp(1.0, exponent - 1 < -1022 ? -1022 : exponent - 1);
}

/* to = x / unit, times roots of w; gives the unit, NaN if x is not finite. *constant: whether all
 * of x are the same number, not 0. */
static double scale_column(const double *x, const double *w, size_t n, double *to, bool *constant) {
  double size = 0.0, odd = 0.0;
  *constant = n > 0 && x[0] != 0.0;
  for (size_t i = 0; i < n; i++) {
    odd += x[i] - x[i];
    size = fabs(x[i]) > size ? fabs(x[i]) : size;
    *constant &= x[i] == x[0];
  }
  if (odd != 0.0) return NAN;
  const double unit = unit_of(size);
  for (size_t i = 0; i < n; i++) to[i] = w == NULL ? x[i] / unit : x[i] / unit * sqrt(w[i]);
  return unit;
}

/* The decomposition of x, n x p, its rows times the roots of w (or NULL), as by qr() with this
 * tolerance: list(bad: the first column that is not finite, or 0; unit: powers of two by which
 * columns were divided; ones: the first constant column, or 0; kept: the columns that are linearly
 * independent; x: these, scaled and weighted; qr, aux; root: the upper triangle of those kept). */
SEXP r_rotation(SEXP x, SEXP w, SEXP tol) {
  const size_t n = r_nrow(x, "x"), p = r_ncol(x, "x");
  if (!r_is_double(x, n * p) || !(w == R_NilValue || r_is_double(w, n))) {
    scl_fail_argument("x", "'x' and the weights must be double and of matching shapes");
    r_throw();
  }
  const char *names[] = {"bad", "unit", "ones", "kept", "x", "qr", "aux", "root", ""};
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP unit = Rf_allocVector(REALSXP, (R_xlen_t)p);
  SET_VECTOR_ELT(result, 1, unit);
  SEXP scaled = Rf_allocMatrix(REALSXP, (int)n, (int)p);
  SET_VECTOR_ELT(result, 4, scaled);
  int ones = 0, bad = 0;
  for (size_t j = 0; j < p && bad == 0; j++) {
    bool constant = false;
    REAL(unit)
    [j] = scale_column(REAL_RO(x) + j * n, r_numbers(w), n, REAL(scaled) + j * n, &constant);
    if (ones == 0 && constant) ones = (int)j + 1;
    if (isnan(REAL(unit)[j])) bad = (int)j + 1;
  }
  SET_VECTOR_ELT(result, 0, Rf_ScalarInteger(bad));
  SET_VECTOR_ELT(result, 2, Rf_ScalarInteger(ones));
  if (bad > 0) {
    UNPROTECT(1);
    return result;
  }
  SEXP qr = Rf_duplicate(scaled);
  SET_VECTOR_ELT(result, 5, qr);
  SEXP aux = Rf_allocVector(REALSXP, (R_xlen_t)p);
  SET_VECTOR_ELT(result, 6, aux);
  int rows = (int)n, columns = (int)p, rank = 0;
  double limit = Rf_asReal(tol);
  int *pivot = (int *)R_alloc(p + 1, sizeof *pivot);
  double *work = (double *)R_alloc(2 * p + 1, sizeof *work);
  for (int j = 0; j < columns; j++) pivot[j] = j + 1;
  if (n > 0 && p > 0) F77_CALL(dqrdc2)
  (REAL(qr), &rows, &rows, &columns, &limit, &rank, REAL(aux), pivot, work);
  const size_t k = (size_t)rank;
  SEXP kept = Rf_allocVector(INTSXP, rank);
  SET_VECTOR_ELT(result, 3, kept);
  SEXP root = Rf_allocMatrix(REALSXP, rank, rank);
  SET_VECTOR_ELT(result, 7, root);
  for (size_t j = 0; j < k; j++) {
    INTEGER(kept)[j] = pivot[j];
    for (size_t i = 0; i < k; i++) REAL(root)[j * k + i] = i <= j ? REAL(qr)[j * n + i] : 0.0;
  }
  if (k < p) {
    SEXP some = Rf_allocMatrix(REALSXP, rows, rank);
    SET_VECTOR_ELT(result, 4, some); /* `scaled` stays until the next allocation */
    for (size_t j = 0; j < k && n > 0; j++)
      memcpy(REAL(some) + j * n, REAL(scaled) + (size_t)(pivot[j] - 1) * n, n * sizeof(double));
  }
  UNPROTECT(1);
  return result;
}

/* ---- least squares --------------------------------------------------------------------------- */

/* list(beta, rest) for double x (n x p), y, and its decomposition by qr(): `qr` and `qraux`, of
 * which the first p columns count, and the upper triangle `root`, p x p. */
SEXP r_least_squares(SEXP x, SEXP y, SEXP qr, SEXP aux, SEXP root) {
  const size_t n = r_nrow(x, "x"), p = r_ncol(x, "x");
  const bool fits = r_is_double(x, n * p) && r_is_double(y, n) && r_is_double(root, p * p) &&
                    TYPEOF(qr) == REALSXP && (size_t)XLENGTH(qr) >= n * p &&
                    TYPEOF(aux) == REALSXP && (size_t)XLENGTH(aux) >= p;
  if (!fits) {
    scl_fail_argument("x", "'x', 'y' and the decomposition must be double and of matching shapes");
    r_throw();
  }
  double *part[2];
  SEXP result =
      PROTECT(r_list_new(2, (r_part[]){{"beta", p, R_VECTOR}, {"rest", n, R_VECTOR}}, part));
  const scl_reflections q = {n, p, REAL_RO(x), REAL_RO(qr), REAL_RO(aux), REAL_RO(root)};
  scl_status status = scl_least_squares(&q, REAL_RO(y), part[0], part[1]);
  UNPROTECT(1);
  return r_return(status, result);
}

/* `carried`, (p + 1) x 2, with what scl_least_squares_slope() adds to its columns for double x (n x
 * p), y and beta. */
SEXP r_least_squares_slope(SEXP x, SEXP y, SEXP beta, SEXP carried) {
  const size_t n = r_nrow(x, "x"), p = r_ncol(x, "x");
  if (!r_is_double(x, n * p) || !r_is_double(y, n) || !r_is_double(beta, p) ||
      !r_is_double(carried, 2 * (p + 1))) {
    scl_fail_argument("x", "'x', 'y', 'beta' and the sums must be double and of matching shapes");
    r_throw();
  }
  SEXP result = PROTECT(Rf_allocMatrix(REALSXP, (int)(p + 1), 2));
  double *sum = REAL(result);
  memcpy(sum, REAL_RO(carried), 2 * (p + 1) * sizeof *sum);
  scl_status status =
      scl_least_squares_slope(REAL_RO(x), n, p, REAL_RO(y), REAL_RO(beta), sum, sum + p + 1);
  UNPROTECT(1);
  return r_return(status, result);
}

/* x root^-1 as a matrix without names, for double matrices x (n x p) and root (p x p, upper). By
 * plain loops: some BLAS start threads for the smallest of triangular solutions. */
SEXP r_solve_right(SEXP x, SEXP root) {
  const size_t n = r_nrow(x, "x"), p = r_ncol(x, "x");
  if (!r_is_double(x, n * p) || !r_is_double(root, p * p)) {
    scl_fail_argument("x", "'x' and 'root' must be double matrices of matching shapes");
    r_throw();
  }
  SEXP result = PROTECT(Rf_allocMatrix(REALSXP, (int)n, (int)p));
  if (n * p > 0) memcpy(REAL(result), REAL_RO(x), n * p * sizeof(double));
  scl_solve_right(REAL(result), n, p, REAL_RO(root));
  UNPROTECT(1);
  return result;
}

/* log(1 + v) - v for double numbers. */
SEXP r_log1p_minus(SEXP v) {
  const R_xlen_t n = Rf_xlength(v);
  if (TYPEOF(v) != REALSXP) {
    scl_fail_argument("v", "'v' must be double");
    r_throw();
  }
  SEXP result = PROTECT(Rf_allocVector(REALSXP, n));
  const double *x = REAL_RO(v);
  double *y = REAL(result);
  for (R_xlen_t i = 0; i < n; i++) {
    /* log(1 + v) = 2 atanh(s) */
    const double s = x[i] / (2.0 + x[i]), square = s * s;
    double sum = 0.0;
    for (int k = 21; k >= 3; k -= 2) sum = 1.0 / k + square * sum;
    y[i] = fabs(x[i]) < 0.25 ? s * (2.0 * square * sum - x[i]) : log1p(x[i]) - x[i];
  }
  UNPROTECT(1);
  return result;
}

/* X' diag(w) X for a double matrix x and double numbers w, one for each row. */
SEXP r_weighted_gram(SEXP x, SEXP w) {
  const size_t n = r_nrow(x, "x"), p = r_ncol(x, "x");
  if (!r_is_double(x, n * p) || !r_is_double(w, n)) {
    scl_fail_argument("w", "'w' must have one number for each row of the double matrix 'x'");
    r_throw();
  }
  SEXP result = PROTECT(Rf_allocMatrix(REALSXP, (int)p, (int)p));
  scl_status status = scl_host_weighted_gram(REAL_RO(x), n, p, REAL_RO(w), REAL(result));
  UNPROTECT(1);
  return r_return(status, result);
}

/* For a double matrix x with p columns and the residuals y - x beta: their p products with the
 * columns, and the sum of their squares. x beta if y is NULL. */
SEXP r_rest(SEXP x, SEXP y, SEXP beta) {
  const size_t n = r_nrow(x, "x"), p = r_ncol(x, "x");
  const bool plain = y == R_NilValue;
  if (!r_is_double(x, n * p) || !(plain || r_is_double(y, n)) || !r_is_double(beta, p)) {
    scl_fail_argument("x", "'x', 'y' and 'beta' must be double and of matching shapes");
    r_throw();
  }
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)(plain ? n : p + 1)));
  double *rest = plain ? REAL(result) : NULL, *slope = plain ? NULL : REAL(result);
  scl_status status = scl_host_rest(REAL_RO(x), n, p, r_numbers(y), REAL_RO(beta), rest, slope);
  UNPROTECT(1);
  return r_return(status, result);
}
