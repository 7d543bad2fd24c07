#include "scl_arith.h"

#include "../inst/kernels/port.h"
#include "scl_operation.h"

/* ---- elementwise ---------------------------------------------------------------------------- */

static bool is_unary(scl_op op) {
  switch (op) {
#define SCL_UNARY(NAME, name, expression, da)                                                      \
  case SCL_OP_##NAME:                                                                              \
    return true;
#define SCL_BINARY(NAME, name, expression, da, db)                                                 \
  case SCL_OP_##NAME:                                                                              \
    return false;
#define SCL_TERNARY(NAME, name, expression, da, db, dc)
#include "../inst/kernels/elementwise.def"
#undef SCL_TERNARY
#undef SCL_UNARY
#undef SCL_BINARY
  default:
    return false;
  }
}

/* The operation on one pair of numbers. */
static double op_value(scl_op op, double a, double b) {
  (void)b;
  switch (op) {
#define SCL_UNARY(NAME, name, expression, da)                                                      \
  case SCL_OP_##NAME:                                                                              \
    return expression;
#define SCL_BINARY(NAME, name, expression, da, db)                                                 \
  case SCL_OP_##NAME:                                                                              \
    return expression;
#define SCL_TERNARY(NAME, name, expression, da, db, dc)
#include "../inst/kernels/elementwise.def"
#undef SCL_TERNARY
#undef SCL_UNARY
#undef SCL_BINARY
  default:
    return NAN;
  }
}

/* What is certain of op(a, b), where b is a matrix or, when NULL, the same at every place. Zeros
 * stay if the operation takes them to zero. */
static scl_view result_view(const scl_mat *a, const scl_mat *b, double at_zero) {
  scl_view view = a->view;
  if (view == SCL_GENERAL || (b != NULL && b->view != view)) return SCL_GENERAL;
  return view == SCL_SYMMETRIC || at_zero == 0.0 ? view : SCL_GENERAL;
}

/* Runs op on two operands that are checked; the result has the shape of `like`. */
static scl_status apply(scl_op op, const scl_mat *like, scl_operand a, scl_operand b, scl_view view,
                        scl_mat **out) {
  scl_mat *r;
  SCL_TRY(scl_mat_create(like->ctx, like->nrow, like->ncol, view, &r));
  scl_status status = SCL_OK;
  if (!scl_is_empty(r)) {
    status = scl_engine_of(r)->elementwise(r->ctx, op, a, b, scl_mat_block(r));
  }
  return scl_give(status, r, out);
}

static scl_operand operand(const scl_mat *a) {
  return (scl_operand){.block = scl_mat_block(a)};
}

static scl_status require_arity(scl_op op, bool unary) {
  if ((unsigned)op < SCL_OP_COUNT && is_unary(op) == unary) return SCL_OK;
  return scl_fail_argument("op", "operation %d does not take %s", (int)op,
                           unary ? "one operand" : "two operands");
}

scl_status scl_unary(scl_op op, const scl_mat *a, scl_mat **out) {
  SCL_TRY(require_arity(op, true));
  return apply(op, a, operand(a), (scl_operand){.scalar = 0.0},
               result_view(a, NULL, op_value(op, 0.0, 0.0)), out);
}

/* A column as if repeated side by side, n times. */
static scl_operand repeated(const scl_mat *column, size_t n) {
  scl_block b = scl_mat_block(column);
  b.ld = 0;
  b.ncol = n;
  return (scl_operand){.block = b};
}

scl_status scl_binary(scl_op op, const scl_mat *a, const scl_mat *b, scl_mat **out) {
  SCL_TRY(require_arity(op, false));
  SCL_TRY(scl_mat_same_context(a, b));
  bool same_rows = a->nrow == b->nrow;
  if (same_rows && a->ncol == b->ncol) {
    return apply(op, a, operand(a), operand(b), result_view(a, b, op_value(op, 0.0, 0.0)), out);
  }
  if (same_rows && b->ncol == 1) {
    return apply(op, a, operand(a), repeated(b, a->ncol), SCL_GENERAL, out);
  }
  if (same_rows && a->ncol == 1) {
    return apply(op, b, repeated(a, b->ncol), operand(b), SCL_GENERAL, out);
  }
  return scl_fail_argument("e2", "non-conformable: 'e1' is %zu x %zu, 'e2' is %zu x %zu", a->nrow,
                           a->ncol, b->nrow, b->ncol);
}

scl_status scl_binary_scalar(scl_op op, const scl_mat *a, double scalar, bool scalar_first,
                             scl_mat **out) {
  SCL_TRY(require_arity(op, false));
  scl_operand matrix = operand(a), number = {.scalar = scalar};
  if (scalar_first) {
    return apply(op, a, number, matrix, result_view(a, NULL, op_value(op, scalar, 0.0)), out);
  }
  return apply(op, a, matrix, number, result_view(a, NULL, op_value(op, 0.0, scalar)), out);
}

scl_status scl_scale_diagonal(scl_side side, const scl_mat *d, const scl_mat *a, scl_mat **out) {
  size_t length = side == SCL_LEFT ? a->nrow : a->ncol;
  SCL_TRY(scl_mat_same_context(d, a));
  if ((d->nrow != 1 && d->ncol != 1) || d->nrow * d->ncol != length) {
    return scl_fail_argument("d", "'d' must be a vector of length %zu, not %zu x %zu", length,
                             d->nrow, d->ncol);
  }
  scl_mat *r;
  scl_view view = scl_is_triangular(a->view) ? a->view : SCL_GENERAL;
  SCL_TRY(scl_mat_create(a->ctx, a->nrow, a->ncol, view, &r));
  scl_status status = SCL_OK;
  if (!scl_is_empty(r)) {
    SCL_GO(scl_engine_of(r)->scale_diagonal(r->ctx, side, scl_vector_block(d), scl_mat_block(a),
                                            scl_mat_block(r)));
    /* Promised zeros stay zeros, also where d is infinite. */
    SCL_GO(scl_clear_outside(r, view));
  }
done:
  return scl_give(status, r, out);
}

scl_status scl_add_diagonal(const scl_mat *a, double value, scl_mat **out) {
  SCL_TRY(scl_require_square(a, "a"));
  scl_mat *r;
  SCL_TRY(scl_mat_create(a->ctx, a->nrow, a->ncol, a->view, &r));
  scl_status status = SCL_OK;
  if (!scl_is_empty(r)) {
    SCL_GO(scl_engine_of(r)->copy(r->ctx, SCL_COPY, scl_mat_block(a), scl_mat_block(r)));
    SCL_GO(scl_engine_of(r)->add_diagonal(r->ctx, value, scl_mat_block(r)));
  }
done:
  return scl_give(status, r, out);
}

/* ---- to the host ---------------------------------------------------------------------------- */

static double identity_of(scl_reduction op) {
  switch (op) {
#define SCL_REDUCTION(NAME, name, arity, identity, map, combine)                                   \
  case SCL_REDUCE_##NAME:                                                                          \
    return identity;
#include "../inst/kernels/reduce.def"
#undef SCL_REDUCTION
  default:
    return NAN;
  }
}

static int arity_of(scl_reduction op) {
  switch (op) {
#define SCL_REDUCTION(NAME, name, arity, identity, map, combine)                                   \
  case SCL_REDUCE_##NAME:                                                                          \
    return arity;
#include "../inst/kernels/reduce.def"
#undef SCL_REDUCTION
  default:
    return 0;
  }
}

scl_status scl_reduce(scl_reduction op, const scl_mat *a, const scl_mat *b, double *out) {
  int arity = arity_of(op);
  if (arity == 0 || (arity == 2) != (b != NULL)) {
    return scl_fail_argument("op", "reduction %d does not take %d operands", (int)op,
                             b == NULL ? 1 : 2);
  }
  if (b != NULL) {
    SCL_TRY(scl_mat_same_context(a, b));
    if (a->nrow != b->nrow || a->ncol != b->ncol) {
      return scl_fail_argument("y", "non-conformable: 'x' is %zu x %zu, 'y' is %zu x %zu", a->nrow,
                               a->ncol, b->nrow, b->ncol);
    }
  }
  if (scl_is_empty(a)) {
    *out = identity_of(op);
    return SCL_OK;
  }
  scl_block result;
  SCL_TRY(scl_block_create(a->ctx, 1, 1, &result));
  scl_status status;
  double value;
  SCL_GO(scl_engine_of(a)->reduce(a->ctx, op, scl_mat_block(a), scl_mat_block(b != NULL ? b : a),
                                  result));
  SCL_GO(scl_engine_of(a)->download(a->ctx, SCL_GENERAL, result, &value, 1));
  *out = value;
done:
  scl_buffer_release(result.buffer);
  return status;
}

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
