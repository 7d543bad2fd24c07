/* .Call entries for products, triangular solves and the Cholesky factor. Shapes are checked in R;
 * a base R matrix stays where it is on the host and is uploaded for a device. */
#include "r/entries.h"
#include "r/glue.h"

#include "ops/cholesky.h"
#include "ops/gemm.h"
#include "ops/triangular.h"

static bool flag(SEXP x) {
  return Rf_asLogical(x) == TRUE;
}

/* ---- products ------------------------------------------------------------------------------- */

typedef scl_status product(const scl_mat *a, const scl_mat *b, scl_mat **out);

static SEXP run_product(product *multiply, size_t m, size_t n, const SEXP *x,
                        const char *const *names, SEXP where) {
  SEXP result = PROTECT(r_result_new(r_any_handle(2, x), m, n));
  scl_status status;
  scl_mat *in[2], *out = NULL;
  SCL_GO(r_operands(where, 2, x, names, in));
  SCL_GO(multiply(in[0], in[1], &out));
  SCL_GO(r_result_set(result, &out));
done:
  r_operands_release(2, in);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_matmul(SEXP a, SEXP b, SEXP where) {
  const SEXP x[] = {a, b};
  const char *const names[] = {"a", "b"};
  return run_product(scl_matmul, r_nrow(a, "a"), r_ncol(b, "b"), x, names, where);
}

/* y may be NULL: x'x. */
SEXP r_crossprod(SEXP x, SEXP y, SEXP where) {
  const SEXP both[] = {x, y};
  const char *const names[] = {"x", "y"};
  return run_product(scl_crossprod, r_ncol(x, "x"), r_ncol(y == R_NilValue ? x : y, "y"), both,
                     names, where);
}

SEXP r_tcrossprod(SEXP x, SEXP y, SEXP where) {
  const SEXP both[] = {x, y};
  const char *const names[] = {"x", "y"};
  return run_product(scl_tcrossprod, r_nrow(x, "x"), r_nrow(y == R_NilValue ? x : y, "y"), both,
                     names, where);
}

/* ---- triangular ----------------------------------------------------------------------------- */

static scl_tri_form form_left(SEXP upper, SEXP transpose) {
  return (scl_tri_form){.side = SCL_LEFT, .upper = flag(upper), .transpose = flag(transpose)};
}

SEXP r_tri_solve(SEXP l, SEXP b, SEXP upper, SEXP transpose, SEXP where) {
  const SEXP x[] = {l, b};
  const char *const names[] = {"l", "b"};
  SEXP result = PROTECT(r_result_new(r_any_handle(2, x), r_nrow(b, "b"), r_ncol(b, "b")));
  scl_status status;
  scl_mat *in[2], *out = NULL;
  SCL_GO(r_operands(where, 2, x, names, in));
  SCL_GO(scl_tri_solve(form_left(upper, transpose), in[0], in[1], &out));
  SCL_GO(r_result_set(result, &out));
done:
  r_operands_release(2, in);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_tri_inverse(SEXP l, SEXP upper, SEXP where) {
  const char *const names[] = {"l"};
  SEXP result = PROTECT(r_result_new(r_is_handle(l), r_nrow(l, "l"), r_ncol(l, "l")));
  scl_status status;
  scl_mat *in[1], *out = NULL;
  SCL_GO(r_operands(where, 1, &l, names, in));
  SCL_GO(scl_tri_inverse(flag(upper), in[0], &out));
  SCL_GO(r_result_set(result, &out));
done:
  r_operands_release(1, in);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* A list of l's and b's adjoints. */
SEXP r_tri_solve_adjoint(SEXP l, SEXP x, SEXP x_adj, SEXP upper, SEXP transpose, SEXP where) {
  const SEXP operands[] = {l, x, x_adj};
  const char *const names[] = {"l", "x", "x_adj"}, *parts[] = {"l", "b", ""};
  bool resident = r_any_handle(3, operands);
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, parts));
  SET_VECTOR_ELT(result, 0, r_result_new(resident, r_nrow(l, "l"), r_ncol(l, "l")));
  SET_VECTOR_ELT(result, 1, r_result_new(resident, r_nrow(x, "x"), r_ncol(x, "x")));
  scl_status status;
  scl_mat *in[3], *l_adj = NULL, *b_adj = NULL;
  SCL_GO(r_operands(where, 3, operands, names, in));
  SCL_GO(scl_tri_solve_adjoint(form_left(upper, transpose), in[0], in[1], in[2], &l_adj, &b_adj));
  SCL_GO(r_result_set(VECTOR_ELT(result, 0), &l_adj));
  SCL_GO(r_result_set(VECTOR_ELT(result, 1), &b_adj));
done:
  r_operands_release(3, in);
  scl_mat_release(l_adj);
  scl_mat_release(b_adj);
  UNPROTECT(1);
  return r_return(status, result);
}

/* ---- Cholesky ------------------------------------------------------------------------------- */

SEXP r_chol(SEXP a, SEXP jitter, SEXP upper, SEXP where) {
  const char *const names[] = {"a"};
  SEXP result = PROTECT(r_result_new(r_is_handle(a), r_nrow(a, "a"), r_ncol(a, "a")));
  scl_status status;
  scl_mat *in[1], *out = NULL;
  SCL_GO(r_operands(where, 1, &a, names, in));
  SCL_GO(scl_chol(in[0], Rf_asReal(jitter), flag(upper), &out));
  SCL_GO(r_result_set(result, &out));
done:
  r_operands_release(1, in);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_chol_adjoint(SEXP l, SEXP l_adj, SEXP where) {
  const SEXP x[] = {l, l_adj};
  const char *const names[] = {"l", "l_adj"};
  return run_product(scl_chol_adjoint, r_nrow(l, "l"), r_ncol(l, "l"), x, names, where);
}

/* A matrix that is not positive definite is no fault here: the caller has another way. */
static SEXP return_if_pd(scl_status status, SEXP result) {
  return status == SCL_E_NOT_PD ? R_NilValue : r_return(status, result);
}

/* The diagonal of the factor of a handle's matrix; NULL unless it is positive definite. */
SEXP r_chol_pivots(SEXP a) {
  SEXP result = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)r_nrow(a, "a")));
  scl_mat *m = NULL;
  scl_status status = r_handle_get(a, "a", &m);
  if (status == SCL_OK) status = r_require_room(result, scl_mat_nrow(m));
  if (status == SCL_OK) status = scl_chol_pivots(m, REAL(result));
  UNPROTECT(1);
  return return_if_pd(status, result);
}

SEXP r_chol_inverse(SEXP l, SEXP upper, SEXP where) {
  const char *const names[] = {"x"};
  SEXP result = PROTECT(r_result_new(r_is_handle(l), r_nrow(l, "l"), r_ncol(l, "l")));
  scl_status status;
  scl_mat *in[1], *out = NULL;
  SCL_GO(r_operands(where, 1, &l, names, in));
  SCL_GO(scl_chol_inverse(in[0], flag(upper), &out));
  SCL_GO(r_result_set(result, &out));
done:
  r_operands_release(1, in);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}
