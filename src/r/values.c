/* Values of matrices in vectors of R. */
#include "r/glue.h"

#include "graph/expr.h"

SEXP r_values_new(size_t m, size_t n) {
  SEXP pooled = r_pooled_matrix(m, n);
  return pooled != NULL ? pooled : Rf_allocMatrix(REALSXP, (int)m, (int)n);
}

scl_status r_require_room(SEXP result, size_t numbers) {
  if (TYPEOF(result) == REALSXP && (size_t)XLENGTH(result) == numbers) return SCL_OK;
  return scl_fail_argument("x", "internal: the result has room for %zu numbers, not for %zu",
                           (size_t)Rf_xlength(result), numbers);
}

scl_status r_values(SEXP result, scl_mat *m) {
  SCL_TRY(r_require_room(result, scl_mat_nrow(m) * scl_mat_ncol(m)));
  SCL_TRY(scl_mat_force(m));
  return scl_mat_to_host(m, REAL(result));
}
