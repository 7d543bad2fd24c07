/* .Call entries for operations whose result is not one matrix: the reverse mode of triangular
 * solves, and pivots. The others are in r/op.c. */
#include "r/entries.h"
#include "r/glue.h"

#include "ops/cholesky.h"
#include "ops/triangular.h"

static bool flag(SEXP x) {
  return Rf_asLogical(x) == TRUE;
}

/* ---- triangular ----------------------------------------------------------------------------- */

static scl_tri_form form_left(SEXP upper, SEXP transpose) {
  return (scl_tri_form){.side = SCL_LEFT, .upper = flag(upper), .transpose = flag(transpose)};
}

/* A list of the adjoints of l and b. */
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

/* A matrix that is not positive definite is not an error: the caller has another algorithm. */
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
