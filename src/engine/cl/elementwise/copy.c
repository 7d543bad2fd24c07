/* Structured copies and the like on a device: elementwise.cl. */
#include "engine/cl/linalg/linalg.h"

enum {
  TILE = 32,           /* ELEMENTWISE_TILE */
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
static void range_2d(size_t m, size_t n, size_t global[2], size_t local[2]) {
  local[0] = 1;
  while (local[0] < m && local[0] < GROUP_ROWS) local[0] *= 2;
  local[1] = 1;
  while (local[1] < n && local[0] * local[1] < GROUP) local[1] *= 2;
  global[0] = scl_round_up(m, local[0]);
  global[1] = scl_round_up(n < MOST_COLUMNS ? n : MOST_COLUMNS, local[1]);
}

scl_status scl_cl_fill(scl_context *ctx, double value, scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  size_t global[2], local[2];
  range_2d(dst.nrow, dst.ncol, global, local);
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_writes(&op, dst.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK) {
    status = scl_cl_launch(&op, SCL_K_elementwise_fill, 2, global, local, "iidb", (int)dst.nrow,
                           (int)dst.ncol, value, dst);
  }
  return scl_cl_op_end(&op, status);
}

scl_status scl_cl_identity_in(scl_cl_op *op, double value, size_t batch, scl_block dst) {
  size_t global[2], local[2];
  range_2d(dst.nrow, dst.ncol, global, local);
  return scl_cl_launch(op, SCL_K_elementwise_identity, 2, global, local, "iiidb", (int)dst.nrow,
                       (int)dst.ncol, (int)(dst.ncol / batch), value, dst);
}

scl_status scl_cl_identity(scl_context *ctx, double value, size_t batch, scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_writes(&op, dst.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK) status = scl_cl_identity_in(&op, value, batch, dst);
  return scl_cl_op_end(&op, status);
}

scl_status scl_cl_copy_in(scl_cl_op *op, scl_copy kind, scl_block src, scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  size_t global[2], local[2];
  if (kind == SCL_COPY || kind == SCL_COPY_LOWER || kind == SCL_COPY_UPPER) {
    range_2d(dst.nrow, dst.ncol, global, local);
    return scl_cl_launch(op, SCL_K_elementwise_copy, 2, global, local, "iiibb", (int)kind,
                         (int)dst.nrow, (int)dst.ncol, src, dst);
  }
  int in_place = src.buffer == dst.buffer && src.offset == dst.offset && src.ld == dst.ld;
  size_t columns = (dst.ncol + TILE - 1) / TILE;
  if (columns > MOST_COLUMNS) columns = MOST_COLUMNS;
  local[0] = TILE;
  local[1] = op->cl->cpu ? TILE_ROWS_CPU : TILE_ROWS_GPU;
  global[0] = scl_round_up(dst.nrow, TILE);
  global[1] = columns * local[1];
  return scl_cl_launch(op, SCL_K_elementwise_transpose, 2, global, local, "iiiibb", (int)kind,
                       in_place, (int)dst.nrow, (int)dst.ncol, src, dst);
}

scl_status scl_cl_copy(scl_context *ctx, scl_copy kind, scl_block src, scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, src.buffer);
  scl_cl_op_writes(&op, dst.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK) status = scl_cl_copy_in(&op, kind, src, dst);
  return scl_cl_op_end(&op, status);
}

scl_status scl_cl_gather(scl_context *ctx, scl_block rows, scl_block columns, scl_block src,
                         scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  const int all_rows = rows.buffer == NULL, all_columns = columns.buffer == NULL;
  size_t global[2], local[2];
  range_2d(dst.nrow, dst.ncol, global, local);
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, rows.buffer);
  scl_cl_op_reads(&op, columns.buffer);
  scl_cl_op_reads(&op, src.buffer);
  scl_cl_op_writes(&op, dst.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK) {
    /* A kernel needs some buffer for every block that it names. */
    status = scl_cl_launch(&op, SCL_K_elementwise_gather, 2, global, local, "iiiibbbb",
                           (int)dst.nrow, (int)dst.ncol, all_rows, all_columns,
                           all_rows ? src : rows, all_columns ? src : columns, src, dst);
  }
  return scl_cl_op_end(&op, status);
}

scl_status scl_cl_scale_diagonal(scl_context *ctx, scl_side side, scl_block d, scl_block a,
                                 scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  size_t global[2], local[2];
  range_2d(dst.nrow, dst.ncol, global, local);
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, d.buffer);
  scl_cl_op_reads(&op, a.buffer);
  scl_cl_op_writes(&op, dst.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK) {
    status = scl_cl_launch(&op, SCL_K_elementwise_scale_diagonal, 2, global, local, "iiibbb",
                           (int)(side == SCL_LEFT), (int)dst.nrow, (int)dst.ncol, d, a, dst);
  }
  return scl_cl_op_end(&op, status);
}

scl_status scl_cl_add_diagonal(scl_context *ctx, double value, scl_block a) {
  const size_t n = a.nrow < a.ncol ? a.nrow : a.ncol;
  if (n == 0) return SCL_OK;
  const size_t local = GROUP_ROWS, global = scl_round_up(n, local);
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_writes(&op, a.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK) {
    status = scl_cl_launch(&op, SCL_K_elementwise_add_diagonal, 1, &global, &local, "idb", (int)n,
                           value, a);
  }
  return scl_cl_op_end(&op, status);
}

scl_status scl_cl_diagonal(scl_context *ctx, scl_block a, scl_block dst) {
  if (is_empty(dst)) return SCL_OK;
  const size_t local = GROUP_ROWS, global = scl_round_up(dst.nrow, local);
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, a.buffer);
  scl_cl_op_writes(&op, dst.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK) {
    status = scl_cl_launch(&op, SCL_K_elementwise_diagonal, 1, &global, &local, "ibb",
                           (int)dst.nrow, a, dst);
  }
  return scl_cl_op_end(&op, status);
}
