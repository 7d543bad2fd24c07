/* Values of matrices in vectors of R. */
#include "r/glue.h"

#include "graph/expr.h"

SEXP r_values_new(size_t m, size_t n) {
  SEXP pooled = r_pooled_matrix(m, n);
  return pooled != NULL ? pooled : Rf_allocMatrix(REALSXP, (int)m, (int)n);
}

scl_status r_require_room(SEXP result, size_t numbers) {
  if (r_is_double(result, numbers)) return SCL_OK;
  return scl_fail_argument("x", "internal: the result has room for %zu numbers, not for %zu",
                           (size_t)Rf_xlength(result), numbers);
}

bool r_is_double(SEXP x, size_t length) {
  return TYPEOF(x) == REALSXP && (size_t)XLENGTH(x) == length;
}

const double *r_numbers(SEXP x) {
  return x == R_NilValue ? NULL : REAL_RO(x);
}

SEXP r_list_new(int count, const r_part *parts, double **to) {
  SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
  SEXP names = PROTECT(Rf_allocVector(STRSXP, count));
  for (int k = 0; k < count; k++) {
    const r_part *p = &parts[k];
    SET_STRING_ELT(names, k, Rf_mkChar(p->name));
    SET_VECTOR_ELT(list, k,
                   p->ncol == R_VECTOR ? Rf_allocVector(REALSXP, (R_xlen_t)p->nrow)
                                       : Rf_allocMatrix(REALSXP, (int)p->nrow, (int)p->ncol));
    to[k] = REAL(VECTOR_ELT(list, k));
  }
  Rf_setAttrib(list, R_NamesSymbol, names);
  UNPROTECT(2);
  return list;
}

SEXP r_info_new(const scl_context *ctx, const char *device, uint64_t bytes, size_t blocks) {
  const char *names[] = {"device", "host", "bytes", "blocks", ""};
  SEXP info = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(info, 0, Rf_mkString(device));
  SET_VECTOR_ELT(info, 1, Rf_ScalarLogical(scl_context_is_host(ctx)));
  SET_VECTOR_ELT(info, 2, Rf_ScalarReal((double)bytes));
  SET_VECTOR_ELT(info, 3, Rf_ScalarInteger((int)blocks));
  UNPROTECT(1);
  return info;
}

scl_status r_values(SEXP result, scl_mat *m) {
  SCL_TRY(r_require_room(result, scl_mat_nrow(m) * scl_mat_ncol(m)));
  SCL_TRY(scl_mat_force(m));
  return scl_mat_to_host(m, REAL(result));
}
