/* Structured copies and the like on a device: elementwise.cl. */
#include "engine/cl/linalg/linalg.h"

#include "kernels/include/copies.h"

_Static_assert((int)SCL_COPY_TRANSPOSED == COPY_TRANSPOSED && (int)SCL_COPY_LOWER == COPY_LOWER &&
                   (int)SCL_COPY_UPPER == COPY_UPPER &&
                   (int)SCL_COPY_MIRROR_LOWER == COPY_MIRROR_LOWER &&
                   (int)SCL_COPY_MIRROR_UPPER == COPY_MIRROR_UPPER,
               "kinds of copies are numbered alike in C and in the kernels");

enum {
  TILE_ROWS_GPU = 8,   /* rows of a work-group of elementwise_transpose */
  TILE_ROWS_CPU = 1,   /* a group is one thread there: fewer items, less to save at barriers */
  GROUP = 256,         /* work-items of a group in all other kernels */
  GROUP_ROWS = 64,     /* of which along a column, when the columns are that long */
  MOST_COLUMNS = 16384 /* of the range; kernels walk over more with this stride */
};

static bool is_empty(scl_block b) {
  return b.nrow == 0 || b.ncol == 0;
}

/* Range over m x n elements. */
static scl_cl_range range_over(size_t m, size_t n) {
  scl_cl_range r = {.dims = 2, .local = {1, 1}};
  while (r.local[0] < m && r.local[0] < GROUP_ROWS) r.local[0] *= 2;
  while (r.local[1] < n && r.local[0] * r.local[1] < GROUP) r.local[1] *= 2;
  r.global[0] = scl_round_up(m, r.local[0]);
  r.global[1] = scl_round_up(n < MOST_COLUMNS ? n : MOST_COLUMNS, r.local[1]);
  return r;
}

/* Range over the n elements of a diagonal. */
static scl_cl_range range_along(size_t n) {
  return scl_cl_range_1(scl_round_up(n, GROUP_ROWS), GROUP_ROWS);
}

scl_status scl_cl_fill(scl_context *ctx, double value, scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  return scl_cl_op_end(&op, scl_launch_elementwise_fill(&op, range_over(dst.nrow, dst.ncol),
                                                        (int)dst.nrow, (int)dst.ncol, value,
                                                        scl_out(dst)));
}

scl_status scl_cl_identity_in(scl_cl_op *op, double value, size_t batch, scl_block dst) {
  return scl_launch_elementwise_identity(op, range_over(dst.nrow, dst.ncol), (int)dst.nrow,
                                         (int)dst.ncol, (int)(dst.ncol / batch), value,
                                         scl_out(dst));
}

scl_status scl_cl_identity(scl_context *ctx, double value, size_t batch, scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  return scl_cl_op_end(&op, scl_cl_identity_in(&op, value, batch, dst));
}

static scl_status launch_transpose(scl_cl_op *op, scl_copy kind, scl_block src, scl_block dst) {
  int in_place = src.buffer == dst.buffer && src.offset == dst.offset && src.ld == dst.ld;
  size_t columns = scl_ceil_div(dst.ncol, ELEMENTWISE_TILE);
  if (columns > MOST_COLUMNS) columns = MOST_COLUMNS;
  size_t local[2] = {ELEMENTWISE_TILE, op->cl->cpu ? TILE_ROWS_CPU : TILE_ROWS_GPU};
  size_t global[2] = {scl_round_up(dst.nrow, ELEMENTWISE_TILE), columns * local[1]};
  return scl_launch_elementwise_transpose(op, scl_cl_range_2(global, local), (int)kind, in_place,
                                          (int)dst.nrow, (int)dst.ncol, scl_in(src), scl_out(dst));
}

scl_status scl_cl_copy_in(scl_cl_op *op, scl_copy kind, scl_block src, scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  if (kind != SCL_COPY && kind != SCL_COPY_LOWER && kind != SCL_COPY_UPPER) {
    return launch_transpose(op, kind, src, dst);
  }
  return scl_launch_elementwise_copy(op, range_over(dst.nrow, dst.ncol), (int)kind, (int)dst.nrow,
                                     (int)dst.ncol, scl_in(src), scl_out(dst));
}

scl_status scl_cl_copy(scl_context *ctx, scl_copy kind, scl_block src, scl_block dst) {
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  return scl_cl_op_end(&op, scl_cl_copy_in(&op, kind, src, dst));
}

scl_status scl_cl_gather(scl_context *ctx, scl_block rows, scl_block columns, scl_block src,
                         scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  const elementwise_selection selection = {.m = (int)dst.nrow,
                                           .n = (int)dst.ncol,
                                           .all_rows = rows.buffer == NULL,
                                           .all_columns = columns.buffer == NULL};
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  /* An unused block needs a buffer too. */
  return scl_cl_op_end(
      &op, scl_launch_elementwise_gather(&op, range_over(dst.nrow, dst.ncol), &selection,
                                         scl_in_at(selection.all_rows ? src : rows),
                                         scl_in_at(selection.all_columns ? src : columns),
                                         scl_in(src), scl_out(dst)));
}

scl_status scl_cl_scale_diagonal(scl_context *ctx, scl_side side, scl_block d, scl_block a,
                                 scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  return scl_cl_op_end(&op, scl_launch_elementwise_scale_diagonal(
                                &op, range_over(dst.nrow, dst.ncol), side == SCL_LEFT,
                                (int)dst.nrow, (int)dst.ncol, scl_in(d), scl_in(a), scl_out(dst)));
}

scl_status scl_cl_add_diagonal(scl_context *ctx, double value, scl_block a) {
  const size_t n = a.nrow < a.ncol ? a.nrow : a.ncol;
  if (n == 0) return SCL_OK;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  return scl_cl_op_end(
      &op, scl_launch_elementwise_add_diagonal(&op, range_along(n), (int)n, value, scl_inout(a)));
}

scl_status scl_cl_diagonal(scl_context *ctx, scl_block a, scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  return scl_cl_op_end(&op,
                       scl_launch_elementwise_diagonal(&op, range_along(dst.nrow), (int)dst.nrow,
                                                       scl_in(a), scl_out(dst)));
}
