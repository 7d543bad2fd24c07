/* .Call entries for covariance matrices. */
#include "r_covariance.h"

#include "r_entries.h"

#include <R_ext/Memory.h>

static SEXP element(SEXP list, R_xlen_t i, SEXPTYPE type) {
  if (TYPEOF(list) != VECSXP || XLENGTH(list) <= i) return R_NilValue;
  SEXP x = VECTOR_ELT(list, i);
  return (SEXPTYPE)TYPEOF(x) == type ? x : R_NilValue;
}

scl_status r_covariance_read(SEXP layout, SEXP values, scl_covariance *out) {
  SEXP type = element(layout, 0, STRSXP), entries = element(layout, 1, INTSXP);
  SEXP columns = element(layout, 2, INTSXP);
  int terms = (int)Rf_xlength(type), all = (int)Rf_xlength(columns), sum = 0;
  for (R_xlen_t t = 0; t < Rf_xlength(entries); t++) sum += INTEGER(entries)[t];
  if (Rf_xlength(entries) != terms || sum != all || TYPEOF(values) != REALSXP ||
      XLENGTH(values) != terms + all + 1) {
    return scl_fail_argument("kernel", "'kernel' is not a covariance function");
  }
  scl_covariance_term *term = (scl_covariance_term *)R_alloc((size_t)terms + 1, sizeof *term);
  int *column = (int *)R_alloc((size_t)all + 1, sizeof *column);
  const double *value = REAL_RO(values);
  for (int t = 0; t < terms; t++) {
    term[t].entries = INTEGER(entries)[t];
    term[t].sd = value[t];
    SCL_TRY(scl_covariance_find(CHAR(STRING_ELT(type, t)), &term[t].type));
  }
  for (int e = 0; e < all; e++) column[e] = INTEGER(columns)[e] - 1;
  *out = (scl_covariance){.terms = terms,
                          .entries = all,
                          .term = term,
                          .column = column,
                          .lengthscale = value + terms,
                          .noise = value[terms + all]};
  return SCL_OK;
}

SEXP r_covariance_matrix(SEXP x1, SEXP x2, SEXP layout, SEXP values, SEXP where) {
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  const SEXP operands[] = {x1, x2};
  bool resident = r_is_handle(x1) || r_is_handle(x2);
  SEXP result = PROTECT(r_result_new(resident, r_nrow(x1), r_nrow(x2 == R_NilValue ? x1 : x2)));
  scl_context *ctx = NULL;
  scl_mat *a = NULL, *b = NULL, *out = NULL;
  if (status != SCL_OK) goto done;
  SCL_GO(r_context_pick(where, 2, operands, &ctx));
  SCL_GO(r_operand(ctx, x1, "x1", &a));
  SCL_GO(r_operand(ctx, x2, "x2", &b));
  SCL_GO(scl_covariance_matrix(&kernel, a, b, &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(a);
  scl_mat_release(b);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* Derivatives by the logarithms of the values. */
SEXP r_covariance_adjoint(SEXP k_adj, SEXP x1, SEXP x2, SEXP layout, SEXP values, SEXP where) {
  scl_covariance kernel;
  scl_status status = r_covariance_read(layout, values, &kernel);
  const SEXP operands[] = {k_adj, x1, x2};
  SEXP result = PROTECT(Rf_allocVector(REALSXP, Rf_xlength(values)));
  scl_context *ctx = NULL;
  scl_mat *weights = NULL, *a = NULL, *b = NULL;
  if (status != SCL_OK) goto done;
  SCL_GO(r_context_pick(where, 3, operands, &ctx));
  SCL_GO(r_operand(ctx, k_adj, "k_adj", &weights));
  SCL_GO(r_operand(ctx, x1, "x1", &a));
  SCL_GO(r_operand(ctx, x2, "x2", &b));
  SCL_GO(scl_covariance_adjoint(&kernel, a, b, weights, REAL(result)));
done:
  scl_mat_release(weights);
  scl_mat_release(a);
  scl_mat_release(b);
  UNPROTECT(1);
  return r_return(status, result);
}
