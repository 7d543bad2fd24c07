#include "ops/constructors.h"

#include <stdlib.h>

#include "ops/operation.h"
#include "ops/table.h"

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
  const scl_call call = {.operation = SCL_OPERATION_COPY_AS,
                         .count = 1,
                         .operand = {{SCL_A_MATRIX, scl_shape_of(a), 0.0}},
                         .attribute = {kind}};
  return scl_call_compute(&call, &a, out);
}

/* Copies a block into a part of dst. */
static scl_status copy_into(scl_context *ctx, scl_block dst, size_t i, size_t j, scl_block from) {
  if (from.nrow == 0 || from.ncol == 0) return SCL_OK;
  return ctx->engine->copy(ctx, SCL_COPY, from, scl_block_part(dst, i, j, from.nrow, from.ncol));
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
  if (!scl_is_empty(r)) {
    status =
        copy_into(r->ctx, scl_mat_block(r), 0, 0, scl_block_part(scl_mat_block(a), i, j, m, n));
  }
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

/* The diagonal of dst from a column or a row. Both are treated as rows, with different leading
 * dimensions. */
static scl_status put_diagonal(scl_context *ctx, scl_block vector, scl_block dst) {
  vector.ld = vector.ncol == 1 ? 1 : vector.ld;
  vector.ncol = dst.ncol = dst.nrow < dst.ncol ? dst.nrow : dst.ncol;
  vector.nrow = dst.nrow = 1;
  dst.ld += 1;
  return ctx->engine->copy(ctx, SCL_COPY, vector, dst);
}

/* ---- rows of ops/operations.def ------------------------------------------------------------- */

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

scl_status scl_copy_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                        scl_block dst) {
  return ctx->engine->copy(ctx, (scl_copy)call->attribute[0], operand[0], dst);
}

static size_t diagonal_length(scl_shape x) {
  return x.nrow < x.ncol ? x.nrow : x.ncol;
}

scl_status scl_diagonal_rule(const scl_call *call, scl_shape *out) {
  *out = (scl_shape){diagonal_length(call->operand[0].shape), 1, SCL_GENERAL};
  return SCL_OK;
}

scl_status scl_diagonal_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                            scl_block dst) {
  (void)call;
  return ctx->engine->diagonal(ctx, operand[0], dst);
}

scl_status scl_with_diagonal_rule(const scl_call *call, scl_shape *out) {
  const scl_shape x = call->operand[0].shape, d = call->operand[1].shape;
  const size_t n = diagonal_length(x);
  if ((d.nrow != 1 && d.ncol != 1) || d.nrow * d.ncol != n) {
    return scl_fail_argument("value", "'value' must be a vector of length %zu, not %zu x %zu", n,
                             d.nrow, d.ncol);
  }
  *out = x;
  return SCL_OK;
}

scl_status scl_with_diagonal_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                                 scl_block dst) {
  (void)call;
  SCL_TRY(ctx->engine->copy(ctx, SCL_COPY, operand[0], dst));
  return put_diagonal(ctx, operand[1], dst);
}

scl_status scl_bind_rule(const scl_call *call, scl_shape *out) {
  const bool columns = scl_call_flag(call, 0);
  const scl_shape x = call->operand[0].shape, y = call->operand[1].shape;
  const size_t common = columns ? x.nrow : x.ncol, size = columns ? y.nrow : y.ncol;
  if (size != common) {
    return scl_fail_argument("...", "argument 2 has %zu %s, but the first has %zu", size,
                             columns ? "rows" : "columns", common);
  }
  *out = (scl_shape){x.nrow + (columns ? 0 : y.nrow), x.ncol + (columns ? y.ncol : 0), SCL_GENERAL};
  return SCL_OK;
}

scl_status scl_bind_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                        scl_block dst) {
  const bool columns = scl_call_flag(call, 0);
  const scl_shape x = call->operand[0].shape;
  SCL_TRY(copy_into(ctx, dst, 0, 0, operand[0]));
  return copy_into(ctx, dst, columns ? 0 : x.nrow, columns ? x.ncol : 0, operand[1]);
}
