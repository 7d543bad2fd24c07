/* Products with sparse matrices: launches of compressed.cl. */
#include "engine/cl/linalg/linalg.h"

#include <limits.h>
#include <stdlib.h>

#include "engine/pass/compressed.h"
#include "kernels/include/compressed.h"

static void declare(scl_cl_op *op, const struct scl_compressed_rows *a) {
  scl_cl_op_reads(op, a->start.buffer);
  scl_cl_op_reads(op, a->column.buffer);
  scl_cl_op_reads(op, a->value.buffer);
  scl_cl_op_reads(op, a->tiles.buffer);
  scl_cl_op_reads(op, a->cuts.buffer);
}

/* The product with one column, or with several of which b is the transpose. */
static scl_status columns_in(scl_cl_op *op, const struct scl_compressed_rows *a, scl_block b,
                             scl_block pieces, scl_block dst) {
  const compressed_task task = {.b_offset = b.offset,
                                .c_offset = dst.offset,
                                .b_ld = (int)b.ld,
                                .c_ld = (int)dst.ld,
                                .columns = (int)dst.ncol,
                                .pieces = (int)a->pieces};
  const scl_cl_range range = scl_cl_range_1(a->tile_count * COMPRESSED_ITEMS, COMPRESSED_ITEMS);
  SCL_TRY((dst.ncol == 1 ? scl_launch_compressed_multiply : scl_launch_compressed_multiply_wide)(
      op, range, scl_in_buffer(a->tiles.buffer), scl_in_buffer(a->start.buffer),
      scl_in_buffer(a->column.buffer), scl_in_buffer(a->value.buffer), scl_in_buffer(b.buffer),
      scl_out_buffer(dst.buffer), scl_out_buffer(pieces.buffer), &task));
  if (a->pieces == 0) return SCL_OK;
  const size_t global[2] = {a->cut_count * COMPRESSED_ITEMS, dst.ncol};
  const size_t local[2] = {COMPRESSED_ITEMS, 1};
  return scl_launch_compressed_join(op, scl_cl_range_2(global, local),
                                    scl_in_buffer(a->cuts.buffer), scl_in_buffer(pieces.buffer),
                                    scl_out_buffer(dst.buffer), &task);
}

static scl_status multiply_in(scl_cl_op *op, const struct scl_compressed_rows *a, scl_block b,
                              scl_block dst) {
  const size_t most = scl_min(dst.ncol, COMPRESSED_WIDTH);
  size_t width = 1;
  while (width < most) width *= 2;
  scl_block pieces = {0}, rows = {0};
  scl_status status = SCL_OK;
  if (a->pieces > 0) SCL_GO(scl_cl_temporary(op, a->pieces, most, &pieces));
  if (width > 1) SCL_GO(scl_cl_temporary(op, width, b.nrow, &rows));
  for (size_t j = 0; j < dst.ncol; j += width) {
    const size_t count = scl_min(width, dst.ncol - j);
    scl_block x = scl_block_part(b, 0, j, b.nrow, count);
    if (count > 1) {
      const scl_block from = x;
      x = scl_block_part(rows, 0, 0, count, b.nrow);
      SCL_GO(scl_cl_copy_in(op, SCL_COPY_TRANSPOSED, from, x));
    }
    SCL_GO(columns_in(op, a, x, pieces, scl_block_part(dst, 0, j, dst.nrow, count)));
  }
done:
  scl_buffer_release(pieces.buffer);
  scl_buffer_release(rows.buffer);
  return status;
}

scl_status scl_cl_compressed_multiply(scl_context *ctx, const struct scl_compressed_rows *a,
                                      scl_block b, scl_block dst) {
  if (dst.nrow == 0 || dst.ncol == 0) return SCL_OK;
  if (a->count == 0) return scl_cl_fill(ctx, 0.0, dst);
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  declare(&op, a);
  scl_cl_op_reads(&op, b.buffer);
  scl_cl_op_writes(&op, dst.buffer);
  SCL_TRY(scl_cl_op_order(&op, -1));
  return scl_cl_op_end(&op, multiply_in(&op, a, b, dst));
}

/* ---- A' diag(w) A ---------------------------------------------------------------------------- */

static int by_length(const void *a, const void *b) {
  const int x = *(const int *)a, y = *(const int *)b;
  return (x < y) - (x > y);
}

/* The length from which columns are left to products with A': one work-item takes about 3 us for
 * each row of a column, and the longest column is waited for; a product reads the whole matrix. */
static scl_status longest_column(const struct scl_compressed_pair *a, int *out) {
  const size_t n = a->columns.m;
  int *length = malloc(n * sizeof *length);
  if (length == NULL) return scl_fail_memory(n * sizeof *length, 0, "a sparse crossproduct");
  for (size_t j = 0; j < n; j++) length[j] = a->starts[j + 1] - a->starts[j];
  qsort(length, n, sizeof *length, by_length);
  const double product = 40.0 + 6e-6 * (double)a->rows.count, each = 3.0;
  size_t best = 0;
  for (size_t k = 1; k < n; k++) {
    if (product * (double)k + each * length[k] < product * (double)best + each * length[best])
      best = k;
  }
  *out = length[best];
  free(length);
  return SCL_OK;
}

/* Column j of the result by a product with the transpose; x is a workspace. */
static scl_status long_column(scl_cl_op *op, const struct scl_compressed_pair *a, size_t j,
                              scl_block w, scl_block x, scl_block dst) {
  const int first = a->starts[j], end = a->starts[j + 1];
  const size_t global[2] = {scl_round_up(x.nrow, COMPRESSED_ITEMS), 1};
  const size_t local[2] = {COMPRESSED_ITEMS, 1};
  SCL_TRY(scl_launch_elementwise_fill(op, scl_cl_range_2(global, local), (int)x.nrow, 1, 0.0,
                                      scl_out(x)));
  const size_t items = scl_round_up((size_t)(end - first), COMPRESSED_ITEMS);
  SCL_TRY(scl_launch_compressed_scatter(op, scl_cl_range_1(items, COMPRESSED_ITEMS), first, end,
                                        w.buffer != NULL, scl_in_buffer(a->columns.column.buffer),
                                        scl_in_buffer(a->columns.value.buffer), scl_in_at(w),
                                        scl_out_at(x)));
  return multiply_in(op, &a->columns, x, scl_block_part(dst, 0, j, dst.nrow, 1));
}

static scl_status gram_in(scl_cl_op *op, const struct scl_compressed_pair *a, scl_block w,
                          scl_block dst) {
  enum { GROUP = 64, ENOUGH = 1 << 16 }; /* work-items of a group; that keep a device busy */
  const size_t n = dst.nrow;
  const size_t ranges = scl_min(scl_ceil_div(ENOUGH, n), scl_ceil_div(n, GROUP));
  int longest = 0;
  SCL_TRY(longest_column(a, &longest));
  const compressed_gram_task task = {.w_offset = w.offset,
                                     .c_offset = dst.offset,
                                     .c_ld = (int)dst.ld,
                                     .n = (int)n,
                                     .width = (int)scl_ceil_div(n, ranges),
                                     .longest = longest,
                                     .weighted = w.buffer != NULL};
  const size_t global[2] = {scl_round_up(n, GROUP), ranges}, local[2] = {GROUP, 1};
  SCL_TRY(scl_launch_compressed_gram(
      op, scl_cl_range_2(global, local), scl_in_buffer(a->rows.start.buffer),
      scl_in_buffer(a->rows.column.buffer), scl_in_buffer(a->rows.value.buffer),
      scl_in_buffer(a->columns.start.buffer), scl_in_buffer(a->columns.column.buffer),
      scl_in_buffer(a->columns.value.buffer), scl_in_buffer(w.buffer), scl_inout_buffer(dst.buffer),
      &task));
  scl_block x = {0};
  scl_status status = SCL_OK;
  for (size_t j = 0; j < n && status == SCL_OK; j++) {
    if (a->starts[j + 1] - a->starts[j] <= longest) continue;
    if (x.buffer == NULL) SCL_GO(scl_cl_temporary(op, a->rows.m, 1, &x));
    status = long_column(op, a, j, w, x, dst);
  }
done:
  scl_buffer_release(x.buffer);
  return status;
}

scl_status scl_cl_compressed_gram(scl_context *ctx, const struct scl_compressed_pair *a,
                                  scl_block w, scl_block dst) {
  if (dst.nrow == 0) return SCL_OK;
  SCL_TRY(scl_cl_fill(ctx, 0.0, dst));
  if (a->rows.count == 0) return SCL_OK;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  declare(&op, &a->rows);
  declare(&op, &a->columns);
  scl_cl_op_reads(&op, w.buffer);
  scl_cl_op_writes(&op, dst.buffer);
  SCL_TRY(scl_cl_op_order(&op, -1));
  SCL_TRY(scl_cl_op_end(&op, gram_in(&op, a, w, dst)));
  return scl_cl_copy(ctx, SCL_COPY_MIRROR_LOWER, dst, dst);
}
