#include "ops/diagonal.h"

#include "ops/operation.h"

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
    /* Elements that are zero by the view stay zero, even if d is infinite. */
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
