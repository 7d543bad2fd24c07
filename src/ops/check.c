#include "ops/check.h"

#include "ops/operation.h"

scl_status scl_check_matrix(scl_check what, double tol, const scl_mat *a, int64_t *index) {
  if (what == SCL_CHECK_SYMMETRIC) SCL_TRY(scl_require_square(a, "a"));
  if (scl_is_empty(a)) {
    *index = 0;
    return SCL_OK;
  }
  int64_t found = 0;
  SCL_TRY(scl_check_now(a->ctx, what, tol, a->view, scl_mat_block(a), &found));
  *index = found;
  return SCL_OK;
}
