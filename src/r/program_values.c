/* .Call entries for compiled functions: from a list of parameters to a list of derivatives.
 *
 *   r_program_evaluate(program, values, like): the value at a named list of parameters, with the
 *       attribute "gradient", a list like it; NULL if the program is stale, or the parameters are
 *       not like the list `like`, unless that is NULL
 *   r_program_evaluate_vectors(program, values, like): the same at several points, along one more
 *       dimension of each parameter, the last: as many values, and a list like `values`; NULL also
 *       if the program must first be mapped to this many vectors */
#include "r/entries.h"
#include "r/program.h"

#include <stdlib.h>
#include <string.h>

/* Whether `values` are plain numeric vectors with the lengths and dimensions of `like`. */
static bool is_like(SEXP values, SEXP like) {
  if (TYPEOF(values) != VECSXP || XLENGTH(values) != XLENGTH(like)) return false;
  for (R_xlen_t k = 0; k < XLENGTH(like); k++) {
    SEXP v = VECTOR_ELT(values, k), l = VECTOR_ELT(like, k);
    const bool numeric = TYPEOF(v) == REALSXP || TYPEOF(v) == INTSXP;
    if (!numeric || Rf_isObject(v) || XLENGTH(v) != XLENGTH(l)) return false;
    SEXP dim = Rf_getAttrib(v, R_DimSymbol), expected = Rf_getAttrib(l, R_DimSymbol);
    if (dim != expected && !R_compute_identical(dim, expected, 16)) return false;
  }
  return true;
}

static scl_status bad_values(size_t parameters) {
  return scl_fail_argument(
      "values", "'values' must be a list of numeric vectors, %zu numbers in all", parameters);
}

/* The numbers of a double or integer vector. */
static void copy_numbers(SEXP v, double *to) {
  const R_xlen_t n = XLENGTH(v);
  if (TYPEOF(v) == REALSXP) {
    memcpy(to, REAL_RO(v), (size_t)n * sizeof *to);
    return;
  }
  const int *from = INTEGER_RO(v);
  for (R_xlen_t i = 0; i < n; i++) to[i] = from[i] == NA_INTEGER ? NA_REAL : from[i];
}

/* A list of vectors or arrays like `values`, to be filled. */
static SEXP make_like(SEXP values) {
  SEXP result = PROTECT(Rf_allocVector(VECSXP, XLENGTH(values)));
  for (R_xlen_t k = 0; k < XLENGTH(values); k++) {
    SEXP v = VECTOR_ELT(values, k);
    SEXP part = Rf_allocVector(REALSXP, XLENGTH(v));
    SET_VECTOR_ELT(result, k, part);
    Rf_setAttrib(part, R_DimSymbol, Rf_getAttrib(v, R_DimSymbol));
  }
  Rf_setAttrib(result, R_NamesSymbol, Rf_getAttrib(values, R_NamesSymbol));
  UNPROTECT(1);
  return result;
}

/* The parameters, with the places of their derivatives in `gradient`; integers are converted
 * there. */
static scl_status find_parts(SEXP values, SEXP gradient, size_t parameters,
                             scl_program_part *part) {
  size_t at = 0;
  for (R_xlen_t k = 0; k < XLENGTH(values); k++) {
    SEXP v = VECTOR_ELT(values, k);
    const size_t n = (size_t)XLENGTH(v);
    if ((TYPEOF(v) != REALSXP && TYPEOF(v) != INTSXP) || n > parameters - at)
      return bad_values(parameters);
    double *slope = REAL(VECTOR_ELT(gradient, k));
    if (TYPEOF(v) == INTSXP) copy_numbers(v, slope);
    part[k] = (scl_program_part){TYPEOF(v) == INTSXP ? slope : REAL_RO(v), slope, n};
    at += n;
  }
  return at == parameters ? SCL_OK : bad_values(parameters);
}

SEXP r_program_evaluate(SEXP program, SEXP values, SEXP like) {
  const size_t parameters = r_program_parameters(program);
  const bool may_refuse = like != R_NilValue;
  if (may_refuse && (TYPEOF(like) != VECSXP || !is_like(values, like))) return R_NilValue;
  const bool is_list = TYPEOF(values) == VECSXP;
  const size_t count = is_list ? (size_t)XLENGTH(values) : 0;
  SEXP result = PROTECT(Rf_allocVector(REALSXP, 1));
  SEXP gradient = PROTECT(is_list ? make_like(values) : R_NilValue);
  Rf_setAttrib(result, Rf_install("gradient"), gradient);
  scl_program_part *part = malloc((count + 1) * sizeof *part);
  scl_program *p;
  scl_status status;
  if (part == NULL) SCL_GO(scl_fail_memory(count * sizeof *part, 0, "the parameters"));
  SCL_GO(r_program_get(program, &p));
  SCL_GO(is_list ? find_parts(values, gradient, parameters, part) : bad_values(parameters));
  SCL_GO(scl_program_run_parts(p, count, part, REAL(result)));
done:
  free(part);
  UNPROTECT(2);
  if (status == SCL_E_STALE && may_refuse) return R_NilValue;
  return r_return(status, result);
}

/* ---- the same at several points -------------------------------------------------------------- */

/* How many points v has, if each of them is like l; else 0. */
static size_t points_like(SEXP v, SEXP l) {
  const bool numeric = TYPEOF(v) == REALSXP || TYPEOF(v) == INTSXP;
  if (!numeric || Rf_isObject(v)) return 0;
  SEXP dim = Rf_getAttrib(v, R_DimSymbol), expected = Rf_getAttrib(l, R_DimSymbol);
  if (dim == R_NilValue) {
    return expected == R_NilValue && XLENGTH(l) == 1 ? (size_t)XLENGTH(v) : 0;
  }
  const R_xlen_t last = XLENGTH(dim) - 1;
  if (expected == R_NilValue) {
    return last == 1 && INTEGER(dim)[0] == XLENGTH(l) ? (size_t)INTEGER(dim)[1] : 0;
  }
  if (last < 2 || last != XLENGTH(expected)) return 0;
  const size_t bytes = (size_t)last * sizeof(int);
  const bool same = memcmp(INTEGER_RO(dim), INTEGER_RO(expected), bytes) == 0;
  return same ? (size_t)INTEGER_RO(dim)[last] : 0;
}

static size_t count_points(SEXP values, SEXP like) {
  size_t points = 0;
  if (TYPEOF(values) != VECSXP || TYPEOF(like) != VECSXP) return 0;
  if (XLENGTH(values) != XLENGTH(like)) return 0;
  for (R_xlen_t k = 0; k < XLENGTH(values); k++) {
    const size_t here = points_like(VECTOR_ELT(values, k), VECTOR_ELT(like, k));
    if (here == 0 || (k > 0 && here != points)) return 0;
    points = here;
  }
  return points;
}

/* From a matrix for each parameter to columns of `rows` numbers with all parameters; `room` has the
 * numbers of the largest. */
static void to_columns(SEXP values, size_t rows, size_t points, double *room, double *to) {
  for (R_xlen_t k = 0; k < XLENGTH(values); k++) {
    const size_t size = (size_t)XLENGTH(VECTOR_ELT(values, k)) / points;
    copy_numbers(VECTOR_ELT(values, k), room);
    for (size_t v = 0; v < points; v++) {
      memcpy(to + v * rows, room + v * size, size * sizeof *to);
    }
    to += size;
  }
}

/* And back. */
static void split_columns(const double *from, SEXP parts, size_t rows, size_t points) {
  for (R_xlen_t k = 0; k < XLENGTH(parts); k++) {
    double *to = REAL(VECTOR_ELT(parts, k));
    const size_t size = (size_t)XLENGTH(VECTOR_ELT(parts, k)) / points;
    for (size_t v = 0; v < points; v++, to += size) memcpy(to, from + v * rows, size * sizeof *to);
    from += size;
  }
}

SEXP r_program_evaluate_vectors(SEXP program, SEXP values, SEXP like) {
  const size_t parameters = r_program_parameters(program), points = count_points(values, like);
  const size_t numbers = points * (3 * parameters + 1);
  if (points == 0) return R_NilValue;
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)points));
  SEXP gradient = PROTECT(make_like(values));
  Rf_setAttrib(result, Rf_install("gradient"), gradient);
  double *room = malloc(numbers * sizeof *room);
  bool mapped = false;
  scl_program *p;
  scl_status status;
  if (room == NULL) SCL_GO(scl_fail_memory(numbers * sizeof *room, 0, "the parameters"));
  SCL_GO(r_program_get(program, &p));
  mapped = scl_program_is_mapped(p, points);
  if (mapped) {
    double *x = room + points * parameters, *answer = x + points * parameters;
    to_columns(values, parameters, points, room, x);
    SCL_GO(scl_program_run_vectors(p, x, points, true, answer));
    for (size_t v = 0; v < points; v++) REAL(result)[v] = answer[v * (parameters + 1)];
    split_columns(answer + 1, gradient, parameters + 1, points);
  }
done:
  free(room);
  UNPROTECT(2);
  if (status == SCL_E_STALE) return R_NilValue;
  return r_return(status, mapped ? result : R_NilValue);
}
