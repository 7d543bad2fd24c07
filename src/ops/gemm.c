#include "ops/gemm.h"

#include "ops/operation.h"

/* An operand of a product: op(matrix). */
typedef struct {
  const scl_mat *mat;
  scl_trans trans;
  const char *name; /* as the R user knows it */
} factor;

static size_t factor_nrow(factor f) {
  return f.trans ? f.mat->ncol : f.mat->nrow;
}

static size_t factor_ncol(factor f) {
  return f.trans ? f.mat->nrow : f.mat->ncol;
}

static scl_view factor_view(factor f) {
  return f.trans ? scl_view_transposed(f.mat->view) : f.mat->view;
}

/* The view of the product, and the part of it that has to be computed. */
static void plan(factor a, factor b, scl_view *view, scl_region *region) {
  *view = SCL_GENERAL;
  *region = SCL_ALL;
  if (a.mat == b.mat && a.trans != b.trans) {
    *view = SCL_SYMMETRIC;
    *region = SCL_MIRRORED;
  } else if (scl_is_triangular(factor_view(a)) && factor_view(a) == factor_view(b)) {
    *view = factor_view(a);
    if (*view == SCL_LOWER) *region = SCL_LOWER_HALF;
  }
}

static scl_status multiply(factor a, factor b, scl_mat **out) {
  SCL_TRY(scl_mat_same_context(a.mat, b.mat));
  if (factor_ncol(a) != factor_nrow(b)) {
    return scl_fail_argument(b.name,
                             "non-conformable arguments: '%s' is %zu x %zu, '%s' is %zu x %zu",
                             a.name, a.mat->nrow, a.mat->ncol, b.name, b.mat->nrow, b.mat->ncol);
  }
  scl_view view;
  scl_region region;
  plan(a, b, &view, &region);
  scl_context *ctx = a.mat->ctx;
  scl_mat *c;
  SCL_TRY(scl_mat_create(ctx, factor_nrow(a), factor_ncol(b), view, &c));
  scl_status status = SCL_OK;
  if (scl_is_empty(c)) goto done;
  if (factor_ncol(a) == 0) {
    SCL_GO(ctx->engine->fill(ctx, 0.0, scl_mat_block(c)));
  } else {
    SCL_GO(ctx->engine->gemm(ctx, 1.0, a.trans, scl_mat_block(a.mat), a.mat->view, b.trans,
                             scl_mat_block(b.mat), b.mat->view, 0.0, scl_mat_block(c), region));
    SCL_GO(scl_clear_outside(c, view));
  }
done:
  return scl_give(status, c, out);
}

scl_status scl_matmul(const scl_mat *a, const scl_mat *b, scl_mat **out) {
  return multiply((factor){a, SCL_NO_TRANS, "a"}, (factor){b, SCL_NO_TRANS, "b"}, out);
}

scl_status scl_crossprod(const scl_mat *x, const scl_mat *y, scl_mat **out) {
  return multiply((factor){x, SCL_TRANS, "x"}, (factor){y != NULL ? y : x, SCL_NO_TRANS, "y"}, out);
}

scl_status scl_tcrossprod(const scl_mat *x, const scl_mat *y, scl_mat **out) {
  return multiply((factor){x, SCL_NO_TRANS, "x"}, (factor){y != NULL ? y : x, SCL_TRANS, "y"}, out);
}
