/* Matrix products: rows of ops/operations.def. Zeros that a view promises are skipped, even where
 * the other operand is infinite. A product of two lower (upper) triangular matrices is lower
 * (upper); x' x and x x' are computed in one half, and exactly symmetric. */
#include "ops/operation.h"
#include "ops/table.h"

/* An operand of a product: op(matrix). */
typedef struct {
  scl_shape shape;
  scl_trans trans;
  const char *name; /* as the R user knows it */
} factor;

static size_t factor_nrow(factor f) {
  return f.trans ? f.shape.ncol : f.shape.nrow;
}

static size_t factor_ncol(factor f) {
  return f.trans ? f.shape.nrow : f.shape.ncol;
}

static scl_view factor_view(factor f) {
  return f.trans ? scl_view_transposed(f.shape.view) : f.shape.view;
}

/* The shape of the product, `same` if both are one matrix. */
static scl_status product_shape(factor a, factor b, bool same, scl_shape *out) {
  if (factor_ncol(a) != factor_nrow(b)) {
    return scl_fail_argument(
        b.name, "non-conformable arguments: '%s' is %zu x %zu, '%s' is %zu x %zu", a.name,
        a.shape.nrow, a.shape.ncol, b.name, b.shape.nrow, b.shape.ncol);
  }
  *out = (scl_shape){factor_nrow(a), factor_ncol(b), SCL_GENERAL};
  if (same && a.trans != b.trans) {
    out->view = SCL_SYMMETRIC;
  } else if (scl_is_triangular(factor_view(a)) && factor_view(a) == factor_view(b)) {
    out->view = factor_view(a);
  }
  return SCL_OK;
}

/* The part of a product that has to be computed. */
static scl_region region_of(scl_view view) {
  if (view == SCL_SYMMETRIC) return SCL_MIRRORED;
  return view == SCL_LOWER ? SCL_LOWER_HALF : SCL_ALL;
}

scl_status scl_matmul_rule(const scl_call *call, scl_shape *out) {
  const bool ta = scl_call_flag(call, 0), tb = scl_call_flag(call, 1), named = !ta && !tb;
  const int second = call->count > 1 ? 1 : 0;
  const factor a = {call->operand[0].shape, ta ? SCL_TRANS : SCL_NO_TRANS, named ? "a" : "x"};
  const factor b = {call->operand[second].shape, tb ? SCL_TRANS : SCL_NO_TRANS, named ? "b" : "y"};
  return product_shape(a, b, second == 0 || call->same, out);
}

scl_status scl_matmul_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                          scl_block dst) {
  const bool ta = scl_call_flag(call, 0), tb = scl_call_flag(call, 1);
  const int second = call->count > 1 ? 1 : 0;
  const scl_shape a = call->operand[0].shape, b = call->operand[second].shape;
  scl_shape c;
  SCL_TRY(scl_matmul_rule(call, &c));
  if ((ta ? a.nrow : a.ncol) == 0) return ctx->engine->fill(ctx, 0.0, dst);
  SCL_TRY(ctx->engine->gemm(ctx, 1.0, ta ? SCL_TRANS : SCL_NO_TRANS, operand[0], a.view,
                            tb ? SCL_TRANS : SCL_NO_TRANS, operand[second], b.view, 0.0, dst,
                            region_of(c.view)));
  return scl_clear_outside(ctx, dst, c.view);
}

scl_status scl_gram_rule(const scl_call *call, scl_shape *out) {
  const scl_shape x = call->operand[0].shape, w = call->operand[1].shape;
  if (w.nrow != x.nrow || w.ncol != 1)
    return scl_fail_argument(
        "w", "'w' must be a column with a number for each of the %zu rows of 'x'", x.nrow);
  *out = (scl_shape){x.ncol, x.ncol, SCL_SYMMETRIC};
  return SCL_OK;
}

/* Computes diag(w) x first. */
static scl_status gram_in_steps(scl_context *ctx, scl_block x, scl_view view, scl_block w,
                                scl_block c) {
  scl_block scaled;
  SCL_TRY(scl_block_create(ctx, x.nrow, x.ncol, &scaled));
  scl_status status = ctx->engine->scale_diagonal(ctx, SCL_LEFT, w, x, scaled);
  if (status == SCL_OK)
    status = ctx->engine->gemm(ctx, 1.0, SCL_TRANS, x, view, SCL_NO_TRANS, scaled, SCL_GENERAL, 0.0,
                               c, SCL_MIRRORED);
  scl_buffer_release(scaled.buffer);
  return status;
}

scl_status scl_gram_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                        scl_block dst) {
  const scl_block x = operand[0], w = operand[1];
  bool done = false;
  if (x.nrow == 0) return ctx->engine->fill(ctx, 0.0, dst);
  if (ctx->engine->gram != NULL) SCL_TRY(ctx->engine->gram(ctx, x, w, dst, &done));
  return done ? SCL_OK : gram_in_steps(ctx, x, call->operand[0].shape.view, w, dst);
}
