#include "ops/triangular.h"

#include <math.h>

#include "ops/operation.h"
#include "ops/table.h"

static scl_view triangle(bool upper) {
  return upper ? SCL_UPPER : SCL_LOWER;
}

/* The side of b that has to be as long as l. */
static scl_status require_length(scl_tri_form form, scl_shape l, scl_shape b,
                                 const char *argument) {
  size_t have = form.side == SCL_LEFT ? b.nrow : b.ncol;
  if (have == l.nrow) return SCL_OK;
  return scl_fail_argument(argument, "'%s' must have %zu %s like 'l', not %zu", argument, l.nrow,
                           form.side == SCL_LEFT ? "rows" : "columns", have);
}

/* op(L)^-1 applied to b; everything is checked. */
static scl_status solve(scl_tri_form form, const scl_mat *l, const scl_mat *b, scl_mat **out) {
  const scl_mat *const operand[] = {l, b};
  const scl_call call = {
      .operation = SCL_OPERATION_TRI_SOLVE,
      .count = 2,
      .operand = {{SCL_A_MATRIX, scl_shape_of(l), 0.0}, {SCL_A_MATRIX, scl_shape_of(b), 0.0}},
      .attribute = {form.upper, form.transpose, form.side == SCL_RIGHT}};
  return scl_call_compute(&call, operand, out);
}

/* The last computed element of a solution: a zero on the diagonal, by which an unknown before it
 * was divided, leaves it infinite or NaN. */
static scl_block last_unknown(scl_tri_form form, const scl_mat *x) {
  bool left = form.side == SCL_LEFT, backward = (form.upper != form.transpose) == left;
  size_t last = backward ? 0 : (left ? x->nrow : x->ncol) - 1;
  return scl_block_part(scl_mat_block(x), left ? last : 0, left ? 0 : last, 1, 1);
}

/* With T = op(L): X = T^-1 B has T_adj = -B_adj X', and X = B T^-1 has T_adj = -X' B_adj; if T is
 * transposed, so is its adjoint. Only the triangle of L is used. */
static scl_status factor_adjoint(scl_tri_form form, const scl_mat *l, const scl_mat *x,
                                 const scl_mat *b_adj, scl_mat **out) {
  scl_view view = triangle(form.upper);
  bool left = form.side == SCL_LEFT;
  const scl_mat *first = left != form.transpose ? b_adj : x, *second = first == x ? b_adj : x;
  scl_mat *r;
  SCL_TRY(scl_mat_create(l->ctx, l->nrow, l->ncol, view, &r));
  scl_status status = SCL_OK;
  if (scl_is_empty(r)) goto done;
  const scl_engine *engine = scl_engine_of(r);
  if (scl_is_empty(x)) {
    SCL_GO(engine->fill(r->ctx, 0.0, scl_mat_block(r)));
    goto done;
  }
  SCL_GO(engine->gemm(r->ctx, -1.0, left ? SCL_NO_TRANS : SCL_TRANS, scl_mat_block(first),
                      SCL_GENERAL, left ? SCL_TRANS : SCL_NO_TRANS, scl_mat_block(second),
                      SCL_GENERAL, 0.0, scl_mat_block(r), form.upper ? SCL_ALL : SCL_LOWER_HALF));
  SCL_GO(scl_clear_outside(r->ctx, scl_mat_block(r), view));
done:
  return scl_give(status, r, out);
}

scl_status scl_tri_solve_adjoint(scl_tri_form form, const scl_mat *l, const scl_mat *x,
                                 const scl_mat *x_adj, scl_mat **l_adj, scl_mat **b_adj) {
  SCL_TRY(scl_require_square(l, "l"));
  SCL_TRY(scl_mat_same_context(l, x));
  SCL_TRY(require_length(form, scl_shape_of(l), scl_shape_of(x), "x"));
  SCL_TRY(scl_mat_same_context(l, x_adj));
  if (x->nrow != x_adj->nrow || x->ncol != x_adj->ncol) {
    return scl_fail_argument("x_adj", "'x_adj' must be %zu x %zu like 'x', not %zu x %zu", x->nrow,
                             x->ncol, x_adj->nrow, x_adj->ncol);
  }
  scl_checks checks = {.count = 0};
  scl_tri_form transposed = {form.side, form.upper, !form.transpose};
  scl_mat *b = NULL, *t = NULL;
  scl_status status;
  SCL_GO(scl_checks_diagonal(&checks, l, "l"));
  SCL_GO(solve(transposed, l, x_adj, &b));
  if (l_adj != NULL) SCL_GO(factor_adjoint(form, l, x, b, &t));
  SCL_GO(scl_checks_end(&checks, l->ctx, status));
  if (l_adj != NULL) *l_adj = scl_mat_retain(t);
  if (b_adj != NULL) *b_adj = scl_mat_retain(b);
done:
  scl_mat_release(t);
  scl_mat_release(b);
  return status;
}

/* ---- rows of ops/operations.def ------------------------------------------------------------- */

static scl_tri_form form_of(const scl_call *call) {
  return (scl_tri_form){.side = scl_call_flag(call, 2) ? SCL_RIGHT : SCL_LEFT,
                        .upper = scl_call_flag(call, 0),
                        .transpose = scl_call_flag(call, 1)};
}

scl_status scl_tri_solve_rule(const scl_call *call, scl_shape *out) {
  const scl_shape b = call->operand[1].shape;
  SCL_TRY(scl_call_square(call, 0, "l"));
  SCL_TRY(require_length(form_of(call), call->operand[0].shape, b, "b"));
  *out = (scl_shape){b.nrow, b.ncol, SCL_GENERAL};
  return SCL_OK;
}

scl_status scl_tri_solve_forward(const scl_call *call, const scl_mat *const *operand,
                                 scl_mat **out) {
  scl_context *ctx = operand[0]->ctx;
  scl_checks checks = {.count = 0};
  scl_mat *r = NULL;
  scl_status status = scl_checks_diagonal(&checks, operand[0], "l");
  if (status == SCL_OK) status = scl_call_compute(call, operand, &r);
  if (status == SCL_OK && scl_is_empty(r))
    status = scl_checks_end(&checks, ctx, status);
  else if (status == SCL_OK)
    status = scl_checks_end_unless_finite(&checks, ctx, last_unknown(form_of(call), r), status);
  return scl_give(status, r, out);
}

scl_status scl_tri_solve_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                             scl_block dst) {
  const scl_tri_form form = form_of(call);
  SCL_TRY(ctx->engine->copy(ctx, SCL_COPY, operand[1], dst));
  return ctx->engine->trsm(ctx, form.side, triangle(form.upper),
                           form.transpose ? SCL_TRANS : SCL_NO_TRANS, operand[0], dst);
}

scl_status scl_tri_inverse_rule(const scl_call *call, scl_shape *out) {
  const size_t n = call->operand[0].shape.nrow;
  SCL_TRY(scl_call_square(call, 0, "l"));
  *out = (scl_shape){n, n, triangle(scl_call_flag(call, 0))};
  return SCL_OK;
}

scl_status scl_tri_inverse_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                               scl_block dst) {
  const scl_status status =
      ctx->engine->trtri(ctx, triangle(scl_call_flag(call, 0)), operand[0], dst);
  /* Of values, which have no checks: as solutions, they are not finite. */
  return status == SCL_E_SINGULAR ? ctx->engine->fill(ctx, NAN, dst) : status;
}
