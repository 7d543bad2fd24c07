/* Rules (ops/call.h) of the operations that generated kernels compute. */
#include "ops/operation.h"
#include "ops/table.h"

/* ---- elementwise ---------------------------------------------------------------------------- */

static scl_status fail_shape(int k, scl_shape widest, scl_shape x) {
  static const char *const names[SCL_CALL_OPERANDS] = {"e1", "e2", "e3"};
  return scl_fail_argument(
      names[k], "non-conformable arguments: one operand is %zu x %zu, the other is %zu x %zu",
      widest.nrow, widest.ncol, x.nrow, x.ncol);
}

/* The view that a result has for all elements: a triangle stays where the operation maps zeros to
 * zero. */
static scl_view view_of(const scl_call *call, size_t n) {
  double at_zero[SCL_CALL_OPERANDS] = {0.0, 0.0, 0.0};
  scl_view view = SCL_GENERAL;
  bool any = false;
  for (int k = 0; k < call->count; k++) {
    const scl_shape x = call->operand[k].shape;
    if (call->operand[k].kind == SCL_A_NUMBER) {
      at_zero[k] = call->operand[k].number;
      continue;
    }
    if (x.ncol != n || (any && x.view != view)) return SCL_GENERAL;
    view = x.view;
    any = true;
  }
  if (!scl_is_triangular(view)) return view;
  const double value = scl_op_value((scl_op)call->operation, at_zero[0], at_zero[1], at_zero[2]);
  return value == 0.0 ? view : SCL_GENERAL;
}

/* Matrices have one shape, or are a column of as many rows, which is recycled over all columns. A
 * result keeps a triangular or symmetric view where that holds for all elements: lower + lower is
 * lower, lower * 2 is lower, exp(lower) is general. */
scl_status scl_apply_rule(const scl_call *call, scl_shape *out) {
  const scl_shape *widest = NULL;
  for (int k = 0; k < call->count; k++) {
    const scl_shape *x = &call->operand[k].shape;
    if (call->operand[k].kind == SCL_A_NUMBER) continue;
    if (widest == NULL || (widest->ncol == 1 && x->ncol != 1)) widest = x;
  }
  if (widest == NULL) return scl_fail_argument("e1", "at least one operand must be a matrix");
  for (int k = 0; k < call->count; k++) {
    const scl_shape x = call->operand[k].shape;
    if (call->operand[k].kind == SCL_A_NUMBER) continue;
    if (x.nrow != widest->nrow || (x.ncol != widest->ncol && x.ncol != 1)) {
      return fail_shape(k, *widest, x);
    }
  }
  *out = (scl_shape){widest->nrow, widest->ncol, view_of(call, widest->ncol)};
  return SCL_OK;
}

/* ---- reductions ----------------------------------------------------------------------------- */

scl_status scl_reduce_rule(const scl_call *call, scl_shape *out) {
  const scl_shape x = call->operand[0].shape;
  const scl_margin margin = (scl_margin)call->attribute[0];
  *out = (scl_shape){margin == SCL_BY_ROW ? x.nrow : 1, margin == SCL_BY_COLUMN ? x.ncol : 1,
                     SCL_GENERAL};
  return SCL_OK;
}

scl_status scl_placeholder_rule(const scl_call *call, scl_shape *out) {
  if (call->attribute[0] > 1.0)
    return scl_fail_argument("which", "a placeholder must have number 0 or 1");
  *out = (scl_shape){1, 1, SCL_GENERAL};
  return SCL_OK;
}

/* ---- views and indices ---------------------------------------------------------------------- */

scl_status scl_transpose_rule(const scl_call *call, scl_shape *out) {
  const scl_shape x = call->operand[0].shape;
  *out = (scl_shape){x.ncol, x.nrow, scl_view_transposed(x.view)};
  return SCL_OK;
}

scl_status scl_broadcast_rule(const scl_call *call, scl_shape *out) {
  const scl_shape x = call->operand[0].shape;
  const size_t m = scl_call_count(call, 0), n = scl_call_count(call, 1);
  if ((x.nrow != m && x.nrow != 1) || (x.ncol != n && x.ncol != 1)) {
    return scl_fail_argument("x", "'x' is %zu x %zu and cannot be recycled to %zu x %zu", x.nrow,
                             x.ncol, m, n);
  }
  *out = (scl_shape){m, n, SCL_GENERAL};
  return SCL_OK;
}

scl_status scl_part_rule(const scl_call *call, scl_shape *out) {
  const scl_shape x = call->operand[0].shape;
  const size_t i = scl_call_count(call, 0), j = scl_call_count(call, 1);
  const size_t m = scl_call_count(call, 2), n = scl_call_count(call, 3);
  if (i > x.nrow || m > x.nrow - i || j > x.ncol || n > x.ncol - j) {
    return scl_fail_argument(
        "x", "a block of %zu x %zu at (%zu, %zu) is not inside a matrix of %zu x %zu", m, n, i, j,
        x.nrow, x.ncol);
  }
  *out = (scl_shape){m, n, i == j && m == n ? x.view : SCL_GENERAL};
  return SCL_OK;
}

scl_status scl_with_part_rule(const scl_call *call, scl_shape *out) {
  const scl_shape x = call->operand[0].shape, value = call->operand[1].shape;
  const size_t i = scl_call_count(call, 0), j = scl_call_count(call, 1);
  if (i > x.nrow || value.nrow > x.nrow - i || j > x.ncol || value.ncol > x.ncol - j) {
    return scl_fail_argument(
        "value", "a block of %zu x %zu at (%zu, %zu) does not fit in a matrix of %zu x %zu",
        value.nrow, value.ncol, i, j, x.nrow, x.ncol);
  }
  *out = (scl_shape){x.nrow, x.ncol, SCL_GENERAL};
  return SCL_OK;
}

scl_status scl_index_rule(const scl_call *call, scl_shape *out) {
  if (call->attribute[0] == SCL_TOTAL) {
    return scl_fail_argument("margin", "'margin' must be 1 or 2");
  }
  *out = (scl_shape){scl_call_count(call, 1), scl_call_count(call, 2), SCL_GENERAL};
  return SCL_OK;
}

/* ---- products ------------------------------------------------------------------------------- */

scl_status scl_matvec_rule(const scl_call *call, scl_shape *out) {
  const scl_shape x = call->operand[0].shape, b = call->operand[1].shape;
  if (b.ncol != 1 || b.nrow != x.ncol) {
    return scl_fail_argument("b", "'b' must be one column with %zu rows, not %zu x %zu", x.ncol,
                             b.nrow, b.ncol);
  }
  *out = (scl_shape){x.nrow, 1, SCL_GENERAL};
  return SCL_OK;
}
