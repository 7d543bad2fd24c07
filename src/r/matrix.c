/* .Call entries for matrices: making, reading back, facts, freeing. */
#include "r/entries.h"
#include "r/node.h"

#include "base/engine.h"

/* A copy of base R data. `where` may be a handle, whose context it then has. */
SEXP r_matrix_new(SEXP data, SEXP nrow, SEXP ncol, SEXP view, SEXP where) {
  size_t m = (size_t)Rf_asReal(nrow), n = (size_t)Rf_asReal(ncol);
  SEXP result = PROTECT(r_result_new(true, m, n));
  scl_status status = SCL_OK;
  scl_context *ctx = NULL;
  scl_mat *out = NULL;
  if (!r_is_double(data, m * n)) {
    SCL_GO(scl_fail_argument("data", "'data' must be a double vector of length nrow * ncol"));
  }
  SCL_GO(r_context_pick(where, 1, &where, &ctx));
  SCL_GO(scl_mat_from_host(ctx, REAL_RO(data), m, n, (scl_view)Rf_asInteger(view), &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_matrix_to_host(SEXP handle) {
  SEXP result = PROTECT(r_result_new(false, r_nrow(handle, "x"), r_ncol(handle, "x")));
  scl_mat *m = NULL;
  scl_status status = r_handle_get(handle, "x", &m);
  if (status == SCL_OK) status = r_values(result, m);
  UNPROTECT(1);
  return r_return(status, result);
}

/* Facts for printing; never raises and computes nothing. `state` is "" for a usable handle, else
 * the reason. */
SEXP r_matrix_info(SEXP handle) {
  const char *names[] = {"state", "device", "host", "bytes", ""};
  SEXP info = PROTECT(Rf_mkNamed(VECSXP, names));
  scl_context *ctx = NULL;
  scl_status status = r_handle_context(handle, "x", &ctx);
  scl_mat *m = status == SCL_OK ? r_node_matrix(r_handle_node(handle)) : NULL;
  SET_VECTOR_ELT(info, 0, Rf_mkString(status == SCL_OK ? "" : scl_fault_last()->message));
  SET_VECTOR_ELT(info, 1, Rf_mkString(ctx ? scl_context_name(ctx) : ""));
  SET_VECTOR_ELT(info, 2, Rf_ScalarLogical(ctx && scl_context_is_host(ctx)));
  SET_VECTOR_ELT(info, 3, Rf_ScalarReal(m ? (double)scl_mat_bytes(m) : 0.0));
  UNPROTECT(1);
  return info;
}

/* Frees now instead of at the next garbage collection; freeing twice is no error. */
SEXP r_matrix_free(SEXP handle) {
  scl_status status = r_handle_free(handle);
  return r_return(status == SCL_E_STALE ? SCL_OK : status, R_NilValue);
}
