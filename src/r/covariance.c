/* .Call entries for covariance matrices. */
#include "r/covariance.h"

#include "r/entries.h"

#include <R_ext/Memory.h>

static SEXP element(SEXP list, R_xlen_t i, SEXPTYPE type) {
  if (TYPEOF(list) != VECSXP || XLENGTH(list) <= i) return R_NilValue;
  SEXP x = VECTOR_ELT(list, i);
  return (SEXPTYPE)TYPEOF(x) == type ? x : R_NilValue;
}

/* The products, with terms counted from 0; false if they do not add up. */
static bool read_factors(SEXP factors, scl_covariance *out) {
  R_xlen_t length = Rf_xlength(factors);
  if (factors == R_NilValue) return true;
  int *copy = (int *)R_alloc((size_t)length + 1, sizeof *copy);
  R_xlen_t at = 0;
  while (at < length) {
    int count = INTEGER(factors)[at];
    if (count < 1 || count > length - at - 1) return false;
    copy[at++] = count;
    for (int f = 0; f < count; f++, at++) copy[at] = INTEGER(factors)[at] - 1;
    out->products++;
  }
  out->factors = copy;
  return true;
}

scl_status r_covariance_read_values(SEXP layout, const double *value, R_xlen_t count,
                                    scl_covariance *out) {
  SEXP type = element(layout, 0, STRSXP), entries = element(layout, 1, INTSXP);
  SEXP columns = element(layout, 2, INTSXP), centers = element(layout, 3, REALSXP);
  SEXP factors = element(layout, 4, INTSXP), constants = element(layout, 5, REALSXP);
  int terms = (int)Rf_xlength(type), all = (int)Rf_xlength(columns);
  R_xlen_t sum = 0;
  scl_covariance kernel = {.terms = terms, .entries = all};
  for (R_xlen_t t = 0; t < Rf_xlength(entries); t++) sum += INTEGER(entries)[t];
  if (Rf_xlength(entries) != terms || sum != all || Rf_xlength(centers) != all || value == NULL ||
      count != 2 * terms + all + 1 || !read_factors(factors, &kernel)) {
    return scl_fail_argument("kernel", "'kernel' is not a covariance function");
  }
  scl_covariance_term *term = (scl_covariance_term *)R_alloc((size_t)terms + 1, sizeof *term);
  int *column = (int *)R_alloc((size_t)all + 1, sizeof *column);
  for (int t = 0; t < terms; t++) {
    term[t].entries = INTEGER(entries)[t];
    term[t].sd = value[t];
    term[t].extra = value[terms + all + t];
    if (t < Rf_xlength(constants) && !ISNAN(REAL(constants)[t])) {
      term[t].extra = REAL(constants)[t];
    }
    SCL_TRY(scl_covariance_find(CHAR(STRING_ELT(type, t)), &term[t].type));
  }
  for (int e = 0; e < all; e++) column[e] = INTEGER(columns)[e] - 1;
  kernel.term = term;
  kernel.column = column;
  kernel.lengthscale = value + terms;
  kernel.center = all > 0 ? REAL_RO(centers) : NULL;
  kernel.noise = value[2 * terms + all];
  *out = kernel;
  return SCL_OK;
}

scl_status r_covariance_read(SEXP layout, SEXP values, scl_covariance *out) {
  bool good = TYPEOF(values) == REALSXP;
  return r_covariance_read_values(layout, good ? REAL_RO(values) : NULL, Rf_xlength(values), out);
}

static const char *const operand_names[] = {"k_adj", "x1", "x2"};

SEXP r_covariance_matrix(SEXP x1, SEXP x2, SEXP layout, SEXP values, SEXP where) {
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  const SEXP x[] = {x1, x2};
  SEXP result = PROTECT(
      r_result_new(r_any_handle(2, x), r_nrow(x1, "x1"), r_nrow(x2 == R_NilValue ? x1 : x2, "x2")));
  scl_mat *m[2] = {NULL, NULL}, *out = NULL;
  if (status == SCL_OK) status = r_operands(where, 2, x, operand_names + 1, m);
  if (status == SCL_OK) status = scl_covariance_matrix(&kernel, m[0], m[1], &out);
  if (status == SCL_OK) status = r_result_set(result, &out);
  r_operands_release(2, m);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* Derivatives with respect to the logarithms of the values. */
SEXP r_covariance_adjoint(SEXP k_adj, SEXP x1, SEXP x2, SEXP layout, SEXP values, SEXP where) {
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  const SEXP x[] = {k_adj, x1, x2};
  SEXP result = PROTECT(Rf_allocVector(REALSXP, Rf_xlength(values)));
  scl_mat *m[3] = {NULL, NULL, NULL};
  if (status == SCL_OK) status = r_operands(where, 3, x, operand_names, m);
  if (status == SCL_OK) status = scl_covariance_adjoint(&kernel, m[1], m[2], m[0], REAL(result));
  r_operands_release(3, m);
  UNPROTECT(1);
  return r_return(status, result);
}

/* Derivatives with respect to the points in x1: a matrix of its shape, a handle if `resident`. */
SEXP r_covariance_inputs(SEXP k_adj, SEXP x1, SEXP x2, SEXP layout, SEXP values, SEXP resident,
                         SEXP where) {
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  const SEXP x[] = {k_adj, x1, x2};
  SEXP result =
      PROTECT(r_result_new(Rf_asLogical(resident) == TRUE, r_nrow(x1, "x1"), r_ncol(x1, "x1")));
  scl_mat *m[3] = {NULL, NULL, NULL}, *out = NULL;
  if (status == SCL_OK) status = r_operands(where, 3, x, operand_names, m);
  if (status == SCL_OK) status = scl_covariance_inputs(&kernel, m[1], m[2], m[0], &out);
  if (status == SCL_OK) status = r_result_set(result, &out);
  r_operands_release(3, m);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* k(x_i, x_i) for the rows of a base matrix, without white terms. */
SEXP r_covariance_variances(SEXP x, SEXP layout, SEXP values) {
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)r_nrow(x, "x")));
  if (status == SCL_OK) status = scl_covariance_check(&kernel, r_ncol(x, "x"));
  if (status == SCL_OK) {
    scl_covariance_variances(&kernel, REAL_RO(x), r_nrow(x, "x"), r_nrow(x, "x"), REAL(result));
  }
  UNPROTECT(1);
  return r_return(status, result);
}
