/* Crossproducts of tall matrices, X'X and X' W X, by one pass over X (gram_mma.cl). */
#include "engine/cl/linalg/linalg.h"

#include <limits.h>

#include "kernels/include/gemm.h"
#include "kernels/include/gram.h"

/* Layouts by the columns that they hold, and groups of them that fit on a unit: for any number of
 * registers that a driver may give to a work-item, at most 255. A further group would wait for a
 * whole pass. */
static const struct {
  const scl_kernel_gram_mma *kernel;
  size_t columns, items, each_unit;
} layouts[] = {{&scl_k_gram_mma_32, 32, 32, 8},
               {&scl_k_gram_mma_64, 64, 64, 4},
               {&scl_k_gram_mma_104, 104, 128, 2},
               {&scl_k_gram_mma_128, 128, 128, 2}};

/* The least number of rows of a part; with fewer rows, or elements of a narrow matrix, products by
 * tiles are as fast, unless X would have to be multiplied by weights first. */
enum { LEAST_ROWS = 128, WORTH_ROWS = 4096, WORTH_NARROW = 3000000, NARROW = 32 };

static bool is_worth_it(scl_block x, scl_block w) {
  if (x.ncol > GRAM_MOST || x.nrow < WORTH_ROWS) return false;
  if (w.buffer != NULL) return true;
  return x.ncol > NARROW || (x.ncol > GEMM_THIN && x.nrow * x.ncol >= WORTH_NARROW);
}

size_t scl_cl_gram_columns(scl_cl_program which) {
  for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
    if (scl_cl_program_of(layouts[l].kernel->id) == which) return layouts[l].columns;
  }
  return 0;
}

scl_status scl_cl_gram_launch(scl_cl_op *op, double alpha, scl_block x, scl_block w, scl_block c) {
  size_t l = 0, p = x.ncol, n = x.nrow;
  while (layouts[l].columns < p) l++;
  size_t parts = scl_min(op->cl->info.units * layouts[l].each_unit, scl_ceil_div(n, LEAST_ROWS));
  const size_t rows = scl_round_up(scl_ceil_div(n, parts), GRAM_ROWS);
  parts = scl_ceil_div(n, rows);
  const gram_task task = {.x_offset = x.offset,
                          .w_offset = w.offset,
                          .x_ld = (int)x.ld,
                          .n = (int)n,
                          .p = (int)p,
                          .rows = (int)rows,
                          .weighted = w.buffer != NULL};
  const size_t local[2] = {GRAM_LANES, GRAM_SLICES};
  const size_t global[2] = {scl_round_up(p, GRAM_LANES), p * GRAM_SLICES};
  scl_block partial;
  SCL_TRY(scl_cl_temporary(op, p * p, parts, &partial));
  scl_status status = scl_launch_gram_mma(
      op, layouts[l].kernel, scl_cl_range_1(parts * layouts[l].items, layouts[l].items),
      scl_in_buffer(x.buffer), scl_in_buffer(w.buffer), scl_out_buffer(partial.buffer), &task);
  if (status == SCL_OK)
    status = scl_launch_gram_sum(op, scl_cl_range_2(global, local), scl_in_buffer(partial.buffer),
                                 scl_out(c), (int)p, (int)parts, alpha);
  scl_buffer_release(partial.buffer);
  return status;
}

scl_status scl_cl_gram_in(scl_cl_op *op, double alpha, scl_block x, scl_block w, scl_block c,
                          bool *done) {
  size_t l = 0;
  *done = false;
  if (!is_worth_it(x, w) || !scl_cl_aligned(x) || x.nrow > INT_MAX - GRAM_MOST) return SCL_OK;
  if (!scl_cl_may_try_mma(op->cl)) return SCL_OK;
  while (layouts[l].columns < x.ncol) l++;
  SCL_TRY(scl_cl_try_program(op->cl, scl_cl_program_of(layouts[l].kernel->id), done));
  return *done ? scl_cl_gram_launch(op, alpha, x, w, c) : SCL_OK;
}

scl_status scl_cl_gram(scl_context *ctx, scl_block x, scl_block w, scl_block c, bool *done) {
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, x.buffer);
  scl_cl_op_reads(&op, w.buffer);
  scl_cl_op_writes(&op, c.buffer);
  SCL_TRY(scl_cl_op_order(&op, -1));
  return scl_cl_op_end(&op, scl_cl_gram_in(&op, 1.0, x, w, c, done));
}
