#include "ops/constructors.h"

#include <stdlib.h>

#include "ops/operation.h"

scl_status scl_constant(scl_context *ctx, double value, size_t m, size_t n, scl_mat **out) {
  scl_mat *r;
  SCL_TRY(scl_mat_create_original(ctx, m, n, SCL_GENERAL, &r));
  scl_status status = SCL_OK;
  if (!scl_is_empty(r)) status = ctx->engine->fill(ctx, value, scl_mat_block(r));
  return scl_give(status, r, out);
}

scl_status scl_identity(scl_context *ctx, size_t n, size_t batch, scl_mat **out) {
  if (batch > 0 && n > SIZE_MAX / batch) {
    return scl_fail_argument("batch", "%zu identity matrices of order %zu have too many elements",
                             batch, n);
  }
  scl_mat *r;
  SCL_TRY(scl_mat_create_original(ctx, n, n * batch, batch == 1 ? SCL_SYMMETRIC : SCL_GENERAL, &r));
  scl_status status = SCL_OK;
  if (!scl_is_empty(r)) status = ctx->engine->identity(ctx, 1.0, batch, scl_mat_block(r));
  return scl_give(status, r, out);
}

static scl_view copy_view(scl_copy kind, scl_shape a) {
  bool square = a.nrow == a.ncol;
  switch (kind) {
  case SCL_COPY:
    return a.view;
  case SCL_COPY_TRANSPOSED:
    return scl_view_transposed(a.view);
  case SCL_COPY_LOWER:
    return square ? SCL_LOWER : SCL_GENERAL;
  case SCL_COPY_UPPER:
    return square ? SCL_UPPER : SCL_GENERAL;
  default:
    return SCL_SYMMETRIC;
  }
}

scl_status scl_copy_as(scl_copy kind, const scl_mat *a, scl_mat **out) {
  if (kind == SCL_COPY_MIRROR_LOWER || kind == SCL_COPY_MIRROR_UPPER) {
    SCL_TRY(scl_require_square(a, "a"));
  }
  bool transposed = kind == SCL_COPY_TRANSPOSED;
  scl_mat *r;
  SCL_TRY(scl_mat_create(a->ctx, transposed ? a->ncol : a->nrow, transposed ? a->nrow : a->ncol,
                         copy_view(kind, scl_shape_of(a)), &r));
  scl_status status = SCL_OK;
  if (!scl_is_empty(r)) {
    status = scl_engine_of(r)->copy(r->ctx, kind, scl_mat_block(a), scl_mat_block(r));
  }
  return scl_give(status, r, out);
}

/* Copies a block into a part of r. */
static scl_status copy_into(scl_mat *r, size_t i, size_t j, scl_block from) {
  if (from.nrow == 0 || from.ncol == 0) return SCL_OK;
  return scl_engine_of(r)->copy(r->ctx, SCL_COPY, from,
                                scl_block_part(scl_mat_block(r), i, j, from.nrow, from.ncol));
}

scl_status scl_part(const scl_mat *a, size_t i, size_t j, size_t m, size_t n, scl_mat **out) {
  if (i > a->nrow || m > a->nrow - i) {
    return scl_fail_argument("i", "rows %zu to %zu are out of bounds: there are %zu rows", i + 1,
                             i + m, a->nrow);
  }
  if (j > a->ncol || n > a->ncol - j) {
    return scl_fail_argument("j", "columns %zu to %zu are out of bounds: there are %zu columns",
                             j + 1, j + n, a->ncol);
  }
  scl_mat *r;
  SCL_TRY(scl_mat_create(a->ctx, m, n, i == j && m == n ? a->view : SCL_GENERAL, &r));
  scl_status status = SCL_OK;
  if (!scl_is_empty(r)) status = copy_into(r, 0, 0, scl_block_part(scl_mat_block(a), i, j, m, n));
  return scl_give(status, r, out);
}

/* ---- selection ------------------------------------------------------------------------------ */

static scl_status check_indices(const size_t *index, size_t count, size_t limit,
                                const char *argument) {
  for (size_t k = 0; k < count; k++) {
    if (index[k] >= limit) {
      return scl_fail_argument(argument, "subscript out of bounds: %zu of %zu", index[k] + 1,
                               limit);
    }
  }
  return SCL_OK;
}

/* The indices as a column of numbers in the context, for the engine; NULL for all. */
static scl_status index_column(scl_context *ctx, const size_t *index, size_t count, scl_mat **out) {
  *out = NULL;
  if (index == NULL) return SCL_OK;
  double *number = malloc(count * sizeof *number);
  if (number == NULL) return scl_fail_memory(count * sizeof *number, 0, "a subscript");
  for (size_t k = 0; k < count; k++) number[k] = (double)index[k];
  scl_status status = scl_mat_from_host(ctx, number, count, 1, SCL_GENERAL, out);
  free(number);
  return status;
}

scl_status scl_select(const scl_mat *a, const size_t *rows, size_t m, const size_t *columns,
                      size_t n, scl_mat **out) {
  if (rows != NULL) SCL_TRY(check_indices(rows, m, a->nrow, "i"));
  if (columns != NULL) SCL_TRY(check_indices(columns, n, a->ncol, "j"));
  if (rows == NULL && columns == NULL) return scl_copy_as(SCL_COPY, a, out);
  const scl_block all = {.buffer = NULL};
  scl_mat *r = NULL, *row = NULL, *column = NULL;
  scl_status status;
  SCL_GO(scl_mat_create(a->ctx, rows != NULL ? m : a->nrow, columns != NULL ? n : a->ncol,
                        SCL_GENERAL, &r));
  if (scl_is_empty(r)) goto done;
  SCL_GO(index_column(a->ctx, rows, m, &row));
  SCL_GO(index_column(a->ctx, columns, n, &column));
  SCL_GO(scl_engine_of(r)->gather(r->ctx, row != NULL ? scl_mat_block(row) : all,
                                  column != NULL ? scl_mat_block(column) : all, scl_mat_block(a),
                                  scl_mat_block(r)));
done:
  scl_mat_release(row);
  scl_mat_release(column);
  return scl_give(status, r, out);
}

/* ---- diagonals ------------------------------------------------------------------------------ */

scl_status scl_diagonal(const scl_mat *a, scl_mat **out) {
  size_t n = a->nrow < a->ncol ? a->nrow : a->ncol;
  scl_mat *r;
  SCL_TRY(scl_mat_create(a->ctx, n, 1, SCL_GENERAL, &r));
  scl_status status = SCL_OK;
  if (n > 0) status = scl_engine_of(r)->diagonal(r->ctx, scl_mat_block(a), scl_mat_block(r));
  return scl_give(status, r, out);
}

/* The diagonal of r from the vector d. Both are treated as rows, with different leading
 * dimensions. */
static scl_status put_diagonal(const scl_mat *d, scl_mat *r) {
  scl_block diagonal = scl_mat_block(r), vector = scl_vector_block(d);
  diagonal.nrow = vector.nrow = 1;
  diagonal.ncol = vector.ncol = r->nrow < r->ncol ? r->nrow : r->ncol;
  diagonal.ld += 1;
  vector.ld = 1;
  return scl_engine_of(r)->copy(r->ctx, SCL_COPY, vector, diagonal);
}

scl_status scl_diagonal_matrix(const scl_mat *d, scl_mat **out) {
  size_t n = d->nrow * d->ncol;
  if (n > 0 && d->nrow != 1 && d->ncol != 1) {
    return scl_fail_argument("d", "'d' must be a vector, not %zu x %zu", d->nrow, d->ncol);
  }
  scl_mat *r;
  SCL_TRY(scl_mat_create(d->ctx, n, n, SCL_SYMMETRIC, &r));
  scl_status status = SCL_OK;
  if (n > 0) {
    SCL_GO(scl_engine_of(r)->fill(r->ctx, 0.0, scl_mat_block(r)));
    SCL_GO(put_diagonal(d, r));
  }
done:
  return scl_give(status, r, out);
}

static scl_status require_diagonal(size_t n, scl_shape d) {
  if ((d.nrow == 1 || d.ncol == 1) && d.nrow * d.ncol == n) return SCL_OK;
  return scl_fail_argument("value", "'value' must be a vector of length %zu, not %zu x %zu", n,
                           d.nrow, d.ncol);
}

scl_status scl_with_diagonal(const scl_mat *a, const scl_mat *d, scl_mat **out) {
  size_t n = a->nrow < a->ncol ? a->nrow : a->ncol;
  SCL_TRY(scl_mat_same_context(a, d));
  SCL_TRY(require_diagonal(n, scl_shape_of(d)));
  scl_mat *r;
  SCL_TRY(scl_copy_as(SCL_COPY, a, &r));
  return scl_give(scl_is_empty(r) ? SCL_OK : put_diagonal(d, r), r, out);
}

/* ---- binding -------------------------------------------------------------------------------- */

/* Whether the second argument can be bound to the first one. */
static scl_status require_side(bool columns, scl_shape first, scl_shape second) {
  const size_t common = columns ? first.nrow : first.ncol;
  const size_t size = columns ? second.nrow : second.ncol;
  if (size == common) return SCL_OK;
  return scl_fail_argument("...", "argument 2 has %zu %s, but the first has %zu", size,
                           columns ? "rows" : "columns", common);
}

/* ---- rows of graph/ops.def ------------------------------------------------------------------ */

scl_status scl_copy_rule(const scl_call *call, scl_shape *out) {
  const scl_copy kind = (scl_copy)call->attribute[0];
  const scl_shape x = call->operand[0].shape;
  if (call->attribute[0] > SCL_COPY_MIRROR_UPPER) {
    return scl_fail_argument("kind", "no copy has number %g", call->attribute[0]);
  }
  if (kind >= SCL_COPY_MIRROR_LOWER) SCL_TRY(scl_call_square(call, 0, "a"));
  const bool transposed = kind == SCL_COPY_TRANSPOSED;
  *out =
      (scl_shape){transposed ? x.ncol : x.nrow, transposed ? x.nrow : x.ncol, copy_view(kind, x)};
  return SCL_OK;
}

scl_status scl_copy_forward(const scl_call *call, const scl_mat *const *operand, scl_mat **out) {
  return scl_copy_as((scl_copy)call->attribute[0], operand[0], out);
}

static size_t diagonal_length(scl_shape x) {
  return x.nrow < x.ncol ? x.nrow : x.ncol;
}

scl_status scl_diagonal_rule(const scl_call *call, scl_shape *out) {
  *out = (scl_shape){diagonal_length(call->operand[0].shape), 1, SCL_GENERAL};
  return SCL_OK;
}

scl_status scl_diagonal_forward(const scl_call *call, const scl_mat *const *operand,
                                scl_mat **out) {
  (void)call;
  return scl_diagonal(operand[0], out);
}

scl_status scl_with_diagonal_rule(const scl_call *call, scl_shape *out) {
  const scl_shape x = call->operand[0].shape;
  SCL_TRY(require_diagonal(diagonal_length(x), call->operand[1].shape));
  *out = x;
  return SCL_OK;
}

scl_status scl_with_diagonal_forward(const scl_call *call, const scl_mat *const *operand,
                                     scl_mat **out) {
  (void)call;
  return scl_with_diagonal(operand[0], operand[1], out);
}

scl_status scl_bind_rule(const scl_call *call, scl_shape *out) {
  const bool columns = scl_call_flag(call, 0);
  const scl_shape x = call->operand[0].shape, y = call->operand[1].shape;
  SCL_TRY(require_side(columns, x, y));
  *out = (scl_shape){x.nrow + (columns ? 0 : y.nrow), x.ncol + (columns ? y.ncol : 0), SCL_GENERAL};
  return SCL_OK;
}

scl_status scl_bind_forward(const scl_call *call, const scl_mat *const *operand, scl_mat **out) {
  const bool columns = scl_call_flag(call, 0);
  const scl_mat *x = operand[0], *y = operand[1];
  scl_shape shape;
  scl_mat *r;
  SCL_TRY(scl_bind_rule(call, &shape));
  SCL_TRY(scl_mat_create(x->ctx, shape.nrow, shape.ncol, SCL_GENERAL, &r));
  scl_status status = SCL_OK;
  if (!scl_is_empty(r)) {
    SCL_GO(copy_into(r, 0, 0, scl_mat_block(x)));
    SCL_GO(copy_into(r, columns ? 0 : x->nrow, columns ? x->ncol : 0, scl_mat_block(y)));
  }
done:
  return scl_give(status, r, out);
}
