#include "scl_operation.h"

#include <stdio.h>

/* Adds the argument's name to the last fault. */
static scl_status name_argument(scl_status status, const char *argument) {
  scl_fault *fault = scl_fault_edit();
  snprintf(fault->argument, sizeof fault->argument, "%s", argument);
  return status;
}

scl_status scl_require_square(const scl_mat *a, const char *argument) {
  if (a->nrow == a->ncol) return SCL_OK;
  return scl_fail_argument(argument, "'%s' must be square, not %zu x %zu", argument, a->nrow,
                           a->ncol);
}

scl_status scl_require_finite(const scl_mat *a, scl_view view, const char *argument) {
  int64_t index = 0;
  if (scl_is_empty(a)) return SCL_OK;
  SCL_TRY(scl_engine_of(a)->check(a->ctx, SCL_CHECK_FINITE, 0.0, view, scl_mat_block(a), &index));
  if (index == 0) return SCL_OK;
  size_t place = (size_t)index - 1;
  scl_fail_index(SCL_E_NONFINITE, index, "'%s' holds a value that is not finite, at [%zu, %zu]",
                 argument, place % a->nrow + 1, place / a->nrow + 1);
  return name_argument(SCL_E_NONFINITE, argument);
}

scl_status scl_require_diagonal(const scl_mat *a, const char *argument) {
  int64_t index = 0;
  if (scl_is_empty(a)) return SCL_OK;
  SCL_TRY(scl_engine_of(a)->check(a->ctx, SCL_CHECK_DIAGONAL, 0.0, SCL_GENERAL, scl_mat_block(a),
                                  &index));
  if (index == 0) return SCL_OK;
  scl_fail_index(SCL_E_SINGULAR, index, "'%s' is singular: its diagonal element %lld is zero",
                 argument, (long long)index);
  return name_argument(SCL_E_SINGULAR, argument);
}

scl_status scl_clear_outside(scl_mat *a, scl_view view) {
  if (!scl_is_triangular(view) || scl_is_empty(a)) return SCL_OK;
  scl_block block = scl_mat_block(a);
  return scl_engine_of(a)->copy(a->ctx, view == SCL_LOWER ? SCL_COPY_LOWER : SCL_COPY_UPPER, block,
                                block);
}
