/* Batched small matrices on a device: chooses the kernel for the order and launches it. If statuses
 * are wanted, a flag says whether any matrix failed; only then does a second pass write statuses,
 * and the host reads them. A byte for each matrix, written every time, would take 5 us of 75. */
#include "engine/pass/batch.h"
#include "engine/cl/linalg/linalg.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/include/batch.h"
#include "kernels/include/gemm.h"
#include "engine/cl/batch/layouts.h"

typedef struct {
  size_t n, items, matrices; /* largest order; work-items and matrices of a group */
  size_t columns;            /* right-hand sides of a group; 0: all */
} layout;

#define BATCH_SMALL(op, n, items) {n, items, items, 0},
#define BATCH_TILE(op, n, p, q, matrices) {n, (p) * (q) * (matrices), matrices, q},
static const layout pivoted[] = {BATCH_PIVOTED_LAYOUTS(any)};
static const layout triangle[] = {BATCH_TRIANGLE_LAYOUTS(any)};
#undef BATCH_SMALL
#undef BATCH_TILE
#define BATCH_PANEL(n, p) {n, 32 * (p), 1, BATCH_PANEL_SIDES},
static const layout panels[] = {BATCH_PANEL_LAYOUTS};
#undef BATCH_PANEL

/* The kernels of the layouts, in their order. */
#define BATCH_SMALL(op, n, items) &scl_k_batch_##op##_##n,
#define BATCH_TILE(op, n, p, q, matrices) &scl_k_batch_##op##_##n,
#define BATCH_PANEL(n, p) &scl_k_batch_solve_mma_##n,
static const scl_kernel_batch_inverse *const inverse_kernels[] = {BATCH_PIVOTED_LAYOUTS(inverse)};
static const scl_kernel_batch_chol *const chol_kernels[] = {BATCH_TRIANGLE_LAYOUTS(chol)};
static const scl_kernel_batch_chol_adjoint *const chol_adjoint_kernels[] = {
    BATCH_TRIANGLE_LAYOUTS(chol_adjoint)};
static const scl_kernel_batch_solve *const solve_kernels[] = {BATCH_PIVOTED_LAYOUTS(solve)};
static const scl_kernel_batch_solve *const panel_kernels[] = {BATCH_PANEL_LAYOUTS};
static const scl_kernel_batch_tri_solve *const tri_solve_kernels[] = {
    BATCH_TRIANGLE_LAYOUTS(tri_solve)};
#undef BATCH_SMALL
#undef BATCH_TILE
#undef BATCH_PANEL
#define BATCH_STRIPS(strips, stages) [strips] = &scl_k_batch_matmul_group_##strips,
static const scl_kernel_batch_product *const group_kernels[] = {BATCH_STRIPS_LAYOUTS};
#undef BATCH_STRIPS

static int flags_of(const scl_batch_pass *p, bool statuses) {
  return (p->upper ? BATCH_UPPER : 0) | (p->transpose ? BATCH_TRANSPOSE : 0) |
         (p->transpose_b ? BATCH_TRANSPOSE_B : 0) | (p->cofactors ? BATCH_COFACTORS : 0) |
         (p->logarithm ? BATCH_LOGARITHM : 0) | (p->c.block.buffer != NULL ? BATCH_MEAN : 0) |
         (p->op == SCL_BATCH_DET ? BATCH_DET : 0) | (p->op == SCL_BATCH_MVN ? BATCH_MVN : 0) |
         (statuses ? BATCH_STATUSES : 0);
}

static scl_status launch_product_kernel(scl_cl_op *op, const scl_kernel_batch_product *kernel,
                                        scl_cl_range range, const scl_batch_pass *p) {
  const batch_product_task task = {.a_offset = (int64_t)p->a.block.offset,
                                   .b_offset = (int64_t)p->b.block.offset,
                                   .c_offset = (int64_t)p->out.block.offset,
                                   .a_step = (int)p->a.step,
                                   .b_step = (int)p->b.step,
                                   .c_step = (int)p->out.step,
                                   .batch = (int)p->batch,
                                   .m = (int)p->m,
                                   .n = (int)p->n,
                                   .k = (int)p->k,
                                   .flags = flags_of(p, false)};
  return scl_launch_batch_product(op, kernel, range, scl_in_buffer(p->a.block.buffer),
                                  scl_in_buffer(p->b.block.buffer),
                                  scl_out_buffer(p->out.block.buffer), &task);
}

static bool is_tiny(const scl_batch_pass *p) {
  return p->m <= 16 || p->n <= 16;
}

/* By matrix instructions, for results of any size, one tile for each warp. */
static scl_status launch_product_warps(scl_cl_op *op, const scl_batch_pass *p) {
  const bool tiny = is_tiny(p);
  size_t tile = tiny ? 16 : 32, warp = 32;
  size_t tiles = scl_ceil_div(p->m, tile) * scl_ceil_div(p->n, tile);
  size_t local = BATCH_WARPS * warp, global = scl_round_up(p->batch * tiles * warp, local);
  return launch_product_kernel(op, tiny ? &scl_k_batch_matmul_mma_16 : &scl_k_batch_matmul_mma_32,
                               scl_cl_range_1(global, local), p);
}

/* Strips of 16 rows of a result that a group has. */
static size_t strips_of(const scl_batch_pass *p) {
  return scl_ceil_div(p->m > p->n ? p->m : p->n, 16);
}

/* By matrix instructions, one result for each group. */
static scl_status launch_product_groups(scl_cl_op *op, const scl_batch_pass *p) {
  const size_t strips = strips_of(p), items = 32 * strips;
  return launch_product_kernel(op, group_kernels[strips], scl_cl_range_1(p->batch * items, items),
                               p);
}

/* Products by the tiles of single products, which count the batch in a dimension of the range that
 * has at most this number of groups. */
enum { MOST_GROUPS = 65535 };

static scl_block shaped(scl_batch_operand o, bool transposed, size_t nrow, size_t ncol,
                        size_t first) {
  scl_block b = o.block;
  b.offset += first * o.step;
  b.nrow = b.ld = transposed ? ncol : nrow;
  b.ncol = transposed ? nrow : ncol;
  return b;
}

static scl_status launch_product_tiles(scl_cl_op *op, const scl_batch_pass *p) {
  scl_cl_product product = {.alpha = 1.0,
                            .trans_a = p->transpose ? SCL_TRANS : SCL_NO_TRANS,
                            .trans_b = p->transpose_b ? SCL_TRANS : SCL_NO_TRANS,
                            .step_a = p->a.step,
                            .step_b = p->b.step,
                            .step_c = p->out.step};
  for (size_t first = 0; first < p->batch; first += product.batch) {
    size_t left = p->batch - first;
    product.batch = left < MOST_GROUPS ? left : MOST_GROUPS;
    product.a = shaped(p->a, p->transpose, p->m, p->k, first);
    product.b = shaped(p->b, p->transpose_b, p->k, p->n, first);
    product.c = shaped(p->out, false, p->m, p->n, first);
    SCL_TRY(scl_cl_product_tiled_in(op, &product, SCL_CL_TILE_MMA_SMALL));
  }
  return SCL_OK;
}

/* These tiles copy pairs of elements, so sizes must be even. They save time unless much of them
 * lies beyond the edge. (Results start a buffer, so their offsets are even.) */
static bool fits_tiles(const scl_batch_pass *p) {
  size_t padded = scl_round_up(p->m, GEMM_MMA_SMALL_M) * scl_round_up(p->n, GEMM_MMA_SMALL_N);
  return (p->m | p->n | p->k | p->a.block.offset | p->b.block.offset | p->out.block.offset) % 2 ==
             0 &&
         4 * padded <= 5 * p->m * p->n;
}

/* The fastest product with matrix instructions that this device can use; false if there is none. */
static scl_status launch_product_mma(scl_cl_op *op, const scl_batch_pass *p, bool *taken) {
  const bool large = p->m > BATCH_WARP_SIDE && p->n > BATCH_WARP_SIDE;
  if (large && fits_tiles(p)) {
    const scl_cl_program tiles =
        scl_cl_product_program(SCL_CL_TILE_MMA_SMALL, p->transpose ? SCL_TRANS : SCL_NO_TRANS,
                               p->transpose_b ? SCL_TRANS : SCL_NO_TRANS);
    SCL_TRY(scl_cl_try_program(op->cl, tiles, taken));
    if (*taken) return launch_product_tiles(op, p);
  }
  if (large && p->m <= BATCH_GROUP_SIDE && p->n <= BATCH_GROUP_SIDE) {
    SCL_TRY(scl_cl_try_program(op->cl, scl_cl_program_of(group_kernels[strips_of(p)]->id), taken));
    if (*taken) return launch_product_groups(op, p);
  }
  SCL_TRY(scl_cl_try_program(
      op->cl, is_tiny(p) ? SCL_CL_PROGRAM_batch_matmul_mma_16 : SCL_CL_PROGRAM_batch_matmul_mma_32,
      taken));
  return *taken ? launch_product_warps(op, p) : SCL_OK;
}

/* Only the sizes of a product choose its kernel, so that a result does not depend on its batch. */
static scl_status launch_product(scl_cl_op *op, const scl_batch_pass *p) {
  size_t m = p->m, n = p->n, most = (size_t)INT_MAX / p->k; /* these kernels index by ints */
  if (m * n >= BATCH_MMA_FROM && m <= most && n <= most && scl_cl_may_try_mma(op->cl)) {
    bool taken;
    SCL_TRY(launch_product_mma(op, p, &taken));
    if (taken) return SCL_OK;
  }
  if (m * n < BATCH_TILED_FROM) {
    size_t local = 64, global = scl_round_up(p->batch * m * n, local);
    return launch_product_kernel(op, &scl_k_batch_matmul_small, scl_cl_range_1(global, local), p);
  }
  size_t rows = scl_ceil_div(m, BATCH_PRODUCT_TILE), columns = scl_ceil_div(n, BATCH_PRODUCT_TILE);
  size_t local[2] = {BATCH_PRODUCT_ITEMS, BATCH_PRODUCT_ITEMS};
  size_t global[2] = {p->batch * rows * BATCH_PRODUCT_ITEMS, columns * BATCH_PRODUCT_ITEMS};
  return launch_product_kernel(op, &scl_k_batch_matmul_tiled, scl_cl_range_2(global, local), p);
}

/* The first of the layouts that is large enough. */
static size_t find_layout(const layout *layouts, size_t n) {
  size_t l = 0;
  while (layouts[l].n < n) l++;
  return l;
}

/* Whether solutions and determinants are computed by panels, with matrix instructions. */
static scl_status use_panels(scl_cl_context *cl, const scl_batch_pass *p, bool *out) {
  const bool solves = p->op == SCL_BATCH_SOLVE || p->op == SCL_BATCH_DET;
  *out = false;
  if (!solves || p->n < BATCH_PANELS_FROM) return SCL_OK;
  return scl_cl_try_program(cl, scl_cl_program_of(panel_kernels[find_layout(panels, p->n)]->id),
                            out);
}

static const layout *layouts_of(const scl_batch_pass *p, bool by_panels) {
  if (by_panels) return panels;
  return p->op == SCL_BATCH_INVERSE || p->op == SCL_BATCH_SOLVE || p->op == SCL_BATCH_DET
             ? pivoted
             : triangle;
}

static batch_task describe_task(const scl_batch_pass *p, bool statuses) {
  return (batch_task){.a_offset = (int64_t)p->a.block.offset,
                      .b_offset = (int64_t)p->b.block.offset,
                      .c_offset = (int64_t)p->c.block.offset,
                      .out_offset = (int64_t)p->out.block.offset,
                      .a_step = (int)p->a.step,
                      .b_step = (int)p->b.step,
                      .c_step = (int)p->c.step,
                      .out_step = (int)p->out.step,
                      .batch = (int)p->batch,
                      .n = (int)p->n,
                      .count_b = (int)p->k,
                      .flags = flags_of(p, statuses)};
}

static scl_status launch_pass(scl_cl_op *op, const scl_batch_pass *p, scl_buffer *statuses) {
  if (p->op == SCL_BATCH_MATMUL) return launch_product(op, p);
  bool by_panels;
  SCL_TRY(use_panels(op->cl, p, &by_panels));
  const layout *layouts = layouts_of(p, by_panels);
  size_t i = find_layout(layouts, p->n);
  const layout *l = &layouts[i];
  size_t parts = l->columns > 0 && p->k > 0 ? scl_ceil_div(p->k, l->columns) : 1;
  size_t local[2] = {l->items, 1};
  size_t global[2] = {scl_ceil_div(p->batch, l->matrices) * l->items, parts};
  const scl_cl_range range = scl_cl_range_2(global, local);
  const scl_arg_in_buffer a = scl_in_buffer(p->a.block.buffer);
  const scl_arg_in_buffer b = scl_in_buffer(p->b.block.buffer);
  const scl_arg_out_buffer out = scl_out_buffer(p->out.block.buffer);
  const scl_arg_out_buffer to = scl_out_buffer(statuses);
  const scl_arg_inout_memory flag = scl_inout_memory(op->cl->batch_flag);
  const batch_task task = describe_task(p, statuses != NULL);
  switch (p->op) {
  case SCL_BATCH_INVERSE:
    return scl_launch_batch_inverse(op, inverse_kernels[i], range, a, out, to, flag, &task);
  case SCL_BATCH_CHOL:
    return scl_launch_batch_chol(op, chol_kernels[i], range, a, out, to, flag, &task);
  case SCL_BATCH_CHOL_ADJOINT:
    return scl_launch_batch_chol_adjoint(op, chol_adjoint_kernels[i], range, a, b, out, to, flag,
                                         &task);
  case SCL_BATCH_TRI_SOLVE:
  case SCL_BATCH_MVN:
    return scl_launch_batch_tri_solve(op, tri_solve_kernels[i], range, a, b,
                                      scl_in_buffer(p->c.block.buffer), out, to, flag, &task);
  default:
    return scl_launch_batch_solve(op, by_panels ? panel_kernels[i] : solve_kernels[i], range, a, b,
                                  out, to, flag, &task);
  }
}

/* The flag starts at 0, and is only cleared after it was found set: a batch without a failed matrix
 * costs no command to clear it. If a pass that wants no statuses leaves it set, a later pass reads
 * statuses that are all 0. */
static scl_status need_flag(scl_cl_context *cl) {
  if (cl->batch_flag != NULL) return SCL_OK;
  cl_int zero = 0, code = CL_SUCCESS;
  cl_mem flag = scl_cl.clCreateBuffer(cl->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                      sizeof zero, &zero, &code);
  if (flag == NULL) return scl_cl_fail(&cl->base, code, "clCreateBuffer");
  cl->batch_flag = flag;
  return SCL_OK;
}

static scl_status ask_flag(scl_cl_op *op) {
  cl_event event = NULL;
  if (op->missing) return SCL_OK;
  cl_int code = scl_cl.clEnqueueReadBuffer(op->cl->queue[op->queue], op->cl->batch_flag, CL_FALSE,
                                           0, sizeof op->cl->batch_seen, &op->cl->batch_seen,
                                           op->waits, op->waits > 0 ? op->wait : NULL, &event);
  if (code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, code, "clEnqueueReadBuffer");
  scl_cl_op_took(op, event);
  return SCL_OK;
}

static scl_status clear_flag(scl_cl_op *op) {
  static const cl_int zero = 0;
  cl_event event = NULL;
  cl_int code =
      scl_cl.clEnqueueWriteBuffer(op->cl->queue[op->queue], op->cl->batch_flag, CL_FALSE, 0,
                                  sizeof zero, &zero, 0, NULL, scl_cl_op_event(op, &event));
  if (code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, code, "clEnqueueWriteBuffer");
  scl_cl_op_took(op, event);
  return SCL_OK;
}

/* Runs the pass and, if statuses are wanted, reads whether any matrix has failed. With `statuses`,
 * this is the second pass, which writes them. */
static scl_status run_pass(scl_context *ctx, const scl_batch_pass *p, scl_buffer *statuses) {
  scl_cl_op op;
  scl_cl_context *cl = (scl_cl_context *)ctx;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, p->a.block.buffer);
  scl_cl_op_reads(&op, p->b.block.buffer);
  scl_cl_op_reads(&op, p->c.block.buffer);
  scl_cl_op_writes(&op, p->out.block.buffer);
  scl_cl_op_writes(&op, statuses);
  scl_status status = scl_cl_op_order(&op, -1);
  if (p->status != NULL) op.timing = SCL_CL_TIME_EACH;
  if (status == SCL_OK) status = launch_pass(&op, p, statuses);
  if (p->status == NULL || status != SCL_OK) return scl_cl_op_end(&op, status);
  op.timing = SCL_CL_TIME_NONE;
  if (statuses != NULL) return scl_cl_op_end(&op, clear_flag(&op));
  SCL_TRY(scl_cl_op_end(&op, ask_flag(&op)));
  return scl_cl_reach(cl, op.queue, cl->enqueued[op.queue]);
}

static scl_status fetch_statuses(scl_context *ctx, const scl_batch_pass *p, bool *written) {
  scl_block statuses;
  size_t words = scl_ceil_div(p->batch, sizeof(double)), bytes = words * sizeof(double);
  SCL_TRY(scl_block_create(ctx, words, 1, &statuses));
  scl_status status;
  double *copy = malloc(bytes);
  if (copy == NULL) {
    status = scl_fail_memory(bytes, 0, "the statuses of a batch");
    goto done;
  }
  SCL_GO(run_pass(ctx, p, statuses.buffer));
  SCL_GO(scl_cl_download(ctx, SCL_GENERAL, statuses, SCL_WAIT_WRITES, copy, words));
  memcpy(p->status, copy, p->batch);
  *written = true;
done:
  free(copy);
  scl_buffer_release(statuses.buffer);
  return status;
}

scl_status scl_cl_batch(scl_context *ctx, const scl_batch_pass *p, bool *written) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  SCL_TRY(need_flag(cl));
  SCL_TRY(run_pass(ctx, p, NULL));
  return p->status == NULL || cl->batch_seen == 0 ? SCL_OK : fetch_statuses(ctx, p, written);
}
