/* .Call entries that make, copy, select from and bind matrices on an engine. R has checked index
 * vectors: positive integers; NULL selects all. */
#include "r/entries.h"
#include "r/node.h"

#include <stdlib.h>

#include "graph/expr.h"
#include "ops/check.h"
#include "ops/constructors.h"

/* Rows, columns and view of a handle; a deferred one stays deferred. */
SEXP r_matrix_shape(SEXP x) {
  SEXP result = PROTECT(Rf_allocVector(INTSXP, 3));
  scl_context *ctx;
  scl_status status = r_handle_context(x, "x", &ctx);
  if (status == SCL_OK) {
    const scl_shape shape = r_node_shape(r_handle_node(x));
    INTEGER(result)[0] = (int)shape.nrow;
    INTEGER(result)[1] = (int)shape.ncol;
    INTEGER(result)[2] = (int)shape.view;
  }
  UNPROTECT(1);
  return r_return(status, result);
}

/* The clMatrix of a handle: a copy of `prototype` with shape and view of the matrix behind it,
 * which stays pending. `dimnames` may be NULL. In C, because four assignments of slots in R cost
 * more than a short kernel.
 */
SEXP r_matrix_wrap(SEXP handle, SEXP dimnames, SEXP prototype) {
  SEXP dim = PROTECT(Rf_allocVector(INTSXP, 2));
  scl_mat *m;
  scl_status status = r_handle_peek(handle, "x", &m);
  SEXP x = PROTECT(Rf_shallow_duplicate(prototype));
  if (status == SCL_OK) {
    INTEGER(dim)[0] = (int)scl_mat_nrow(m);
    INTEGER(dim)[1] = (int)scl_mat_ncol(m);
    SEXP view = PROTECT(Rf_mkString(scl_view_name(scl_mat_view(m))));
    Rf_setAttrib(x, Rf_install("handle"), handle);
    Rf_setAttrib(x, Rf_install("Dim"), dim);
    Rf_setAttrib(x, Rf_install("view"), view);
    if (dimnames != R_NilValue) Rf_setAttrib(x, Rf_install("Dimnames"), dimnames);
    UNPROTECT(1);
  }
  UNPROTECT(2);
  return r_return(status, x);
}

SEXP r_matrix_constant(SEXP value, SEXP nrow, SEXP ncol, SEXP where) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_status status;
  scl_context *ctx;
  scl_mat *out = NULL;
  SCL_GO(r_context(Rf_asInteger(where), &ctx));
  SCL_GO(
      scl_constant(ctx, Rf_asReal(value), (size_t)Rf_asReal(nrow), (size_t)Rf_asReal(ncol), &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_matrix_identity(SEXP n, SEXP batch, SEXP where) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_status status;
  scl_context *ctx;
  scl_mat *out = NULL;
  SCL_GO(r_context(Rf_asInteger(where), &ctx));
  SCL_GO(scl_identity(ctx, (size_t)Rf_asReal(n), (size_t)Rf_asReal(batch), &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* ---- selection ------------------------------------------------------------------------------ */

/* 1-based R indices as 0-based ones; NULL for R_NilValue (with *count = all). free() it. */
static scl_status indices(SEXP index, size_t all, size_t *count, size_t **out) {
  *out = NULL;
  *count = all;
  if (index == R_NilValue) return SCL_OK;
  size_t n = (size_t)XLENGTH(index);
  size_t *p = malloc((n > 0 ? n : 1) * sizeof *p);
  if (p == NULL) return scl_fail_memory(n * sizeof *p, 0, "an index vector");
  for (size_t k = 0; k < n; k++) p[k] = (size_t)INTEGER_RO(index)[k] - 1;
  *out = p;
  *count = n;
  return SCL_OK;
}

/* Whether indices follow each other without a gap; no indices at all, or NULL for all, do. */
static bool is_run(const size_t *index, size_t count) {
  for (size_t k = 1; index != NULL && k < count; k++) {
    if (index[k] != index[k - 1] + 1) return false;
  }
  return true;
}

/* x[rows, columns], as a handle or (not resident) as a base R matrix. */
SEXP r_matrix_select(SEXP x, SEXP rows, SEXP columns, SEXP resident) {
  size_t m = rows == R_NilValue ? r_nrow(x, "x") : (size_t)XLENGTH(rows);
  size_t n = columns == R_NilValue ? r_ncol(x, "x") : (size_t)XLENGTH(columns);
  SEXP result = PROTECT(r_result_new(Rf_asLogical(resident) == TRUE, m, n));
  scl_status status;
  scl_mat *in, *out = NULL;
  size_t *i = NULL, *j = NULL;
  SCL_GO(r_handle_get(x, "x", &in));
  SCL_GO(indices(rows, scl_mat_nrow(in), &m, &i));
  SCL_GO(indices(columns, scl_mat_ncol(in), &n, &j));
  if (is_run(i, m) && is_run(j, n)) {
    SCL_GO(scl_part(in, i != NULL && m > 0 ? i[0] : 0, j != NULL && n > 0 ? j[0] : 0, m, n, &out));
  } else {
    SCL_GO(scl_select(in, i, m, j, n, &out));
  }
  SCL_GO(r_result_set(result, &out));
done:
  free(i);
  free(j);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* ---- diagonals, binding, checks ------------------------------------------------------------- */

/* The diagonal as a base R vector. */
SEXP r_matrix_diagonal(SEXP x) {
  size_t m = r_nrow(x, "x"), n = r_ncol(x, "x");
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)(m < n ? m : n)));
  scl_status status;
  scl_mat *in, *out = NULL;
  SCL_GO(r_handle_get(x, "x", &in));
  SCL_GO(scl_compute(NULL, SCL_OPERATION_DIAGONAL, 1, &(scl_term){in, 0.0}, 0, NULL, &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* Index from 1 of the first element that fails, 0 if none does; `what` is a value of scl_check. */
SEXP r_matrix_check(SEXP x, SEXP what, SEXP tol) {
  SEXP result = PROTECT(Rf_ScalarReal(0.0));
  scl_status status;
  scl_mat *in;
  int64_t index;
  SCL_GO(r_handle_get(x, "x", &in));
  SCL_GO(scl_check_matrix((scl_check)Rf_asInteger(what), Rf_asReal(tol), in, &index));
  REAL(result)[0] = (double)index;
done:
  UNPROTECT(1);
  return r_return(status, result);
}
