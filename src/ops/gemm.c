#include "ops/gemm.h"

#include "ops/operation.h"

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

/* op(a) op(b); the names are those of the operands. */
static scl_status multiply(scl_trans trans_a, const scl_mat *a, scl_trans trans_b, const scl_mat *b,
                           const char *const *name, scl_mat **out) {
  scl_shape shape;
  SCL_TRY(scl_mat_same_context(a, b));
  factor first = {scl_shape_of(a), trans_a, name[0]}, second = {scl_shape_of(b), trans_b, name[1]};
  SCL_TRY(product_shape(first, second, a == b, &shape));
  scl_context *ctx = a->ctx;
  scl_mat *c;
  SCL_TRY(scl_mat_create(ctx, shape.nrow, shape.ncol, shape.view, &c));
  scl_status status = SCL_OK;
  if (scl_is_empty(c)) goto done;
  if (factor_ncol(first) == 0) {
    SCL_GO(ctx->engine->fill(ctx, 0.0, scl_mat_block(c)));
  } else {
    SCL_GO(ctx->engine->gemm(ctx, 1.0, trans_a, scl_mat_block(a), a->view, trans_b,
                             scl_mat_block(b), b->view, 0.0, scl_mat_block(c),
                             region_of(shape.view)));
    SCL_GO(scl_clear_outside(c, shape.view));
  }
done:
  return scl_give(status, c, out);
}

static const char *const names_ab[] = {"a", "b"}, *const names_xy[] = {"x", "y"};

scl_status scl_matmul(const scl_mat *a, const scl_mat *b, scl_mat **out) {
  return multiply(SCL_NO_TRANS, a, SCL_NO_TRANS, b, names_ab, out);
}

scl_status scl_crossprod(const scl_mat *x, const scl_mat *y, scl_mat **out) {
  return multiply(SCL_TRANS, x, SCL_NO_TRANS, y != NULL ? y : x, names_xy, out);
}

scl_status scl_tcrossprod(const scl_mat *x, const scl_mat *y, scl_mat **out) {
  return multiply(SCL_NO_TRANS, x, SCL_TRANS, y != NULL ? y : x, names_xy, out);
}

static scl_status gram_shape(scl_shape x, scl_shape w, scl_shape *out) {
  if (w.nrow != x.nrow || w.ncol != 1)
    return scl_fail_argument(
        "w", "'w' must be a column with a number for each of the %zu rows of 'x'", x.nrow);
  *out = (scl_shape){x.ncol, x.ncol, SCL_SYMMETRIC};
  return SCL_OK;
}

/* Computes diag(w) x first. */
static scl_status gram_in_steps(const scl_mat *x, const scl_mat *w, scl_mat *c) {
  scl_mat *scaled;
  SCL_TRY(scl_mat_create(x->ctx, x->nrow, x->ncol, SCL_GENERAL, &scaled));
  const scl_engine *engine = x->ctx->engine;
  scl_status status = engine->scale_diagonal(x->ctx, SCL_LEFT, scl_mat_block(w), scl_mat_block(x),
                                             scl_mat_block(scaled));
  if (status == SCL_OK)
    status = engine->gemm(x->ctx, 1.0, SCL_TRANS, scl_mat_block(x), x->view, SCL_NO_TRANS,
                          scl_mat_block(scaled), SCL_GENERAL, 0.0, scl_mat_block(c), SCL_MIRRORED);
  scl_mat_release(scaled);
  return status;
}

scl_status scl_gram(const scl_mat *x, const scl_mat *w, scl_mat **out) {
  scl_shape shape = {0};
  SCL_TRY(scl_mat_same_context(x, w));
  SCL_TRY(gram_shape(scl_shape_of(x), scl_shape_of(w), &shape));
  scl_context *ctx = x->ctx;
  scl_mat *c;
  SCL_TRY(scl_mat_create(ctx, shape.nrow, shape.ncol, shape.view, &c));
  scl_status status = SCL_OK;
  bool done = false;
  if (scl_is_empty(c)) goto done;
  if (x->nrow == 0) {
    SCL_GO(ctx->engine->fill(ctx, 0.0, scl_mat_block(c)));
    goto done;
  }
  if (ctx->engine->gram != NULL)
    SCL_GO(ctx->engine->gram(ctx, scl_mat_block(x), scl_mat_block(w), scl_mat_block(c), &done));
  if (!done) SCL_GO(gram_in_steps(x, w, c));
done:
  return scl_give(status, c, out);
}

/* ---- rows of graph/ops.def ------------------------------------------------------------------ */

static scl_status shape_of_call(const scl_call *call, scl_trans trans_a, scl_trans trans_b,
                                const char *const *name, scl_shape *out) {
  const int second = call->count > 1 ? 1 : 0;
  factor a = {call->operand[0].shape, trans_a, name[0]};
  factor b = {call->operand[second].shape, trans_b, name[1]};
  return product_shape(a, b, second == 0 || call->same, out);
}

scl_status scl_matmul_rule(const scl_call *call, scl_shape *out) {
  return shape_of_call(call, SCL_NO_TRANS, SCL_NO_TRANS, names_ab, out);
}

scl_status scl_crossprod_rule(const scl_call *call, scl_shape *out) {
  return shape_of_call(call, SCL_TRANS, SCL_NO_TRANS, names_xy, out);
}

scl_status scl_tcrossprod_rule(const scl_call *call, scl_shape *out) {
  return shape_of_call(call, SCL_NO_TRANS, SCL_TRANS, names_xy, out);
}

scl_status scl_matmul_forward(const scl_call *call, const scl_mat *const *operand, scl_mat **out) {
  (void)call;
  return scl_matmul(operand[0], operand[1], out);
}

scl_status scl_crossprod_forward(const scl_call *call, const scl_mat *const *operand,
                                 scl_mat **out) {
  (void)call;
  return scl_crossprod(operand[0], operand[1], out);
}

scl_status scl_tcrossprod_forward(const scl_call *call, const scl_mat *const *operand,
                                  scl_mat **out) {
  (void)call;
  return scl_tcrossprod(operand[0], operand[1], out);
}

scl_status scl_gram_rule(const scl_call *call, scl_shape *out) {
  return gram_shape(call->operand[0].shape, call->operand[1].shape, out);
}

scl_status scl_gram_forward(const scl_call *call, const scl_mat *const *operand, scl_mat **out) {
  (void)call;
  return scl_gram(operand[0], operand[1], out);
}
