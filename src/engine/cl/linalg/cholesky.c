/* Cholesky factor, inverse from the factor, and the leaf of the adjoint on a device.
 *
 * Factor: recursion over columns of full height. Factor the left half, subtract its product with
 * itself from the right half (one product with a long sum), factor the right half. With matrix
 * instructions a panel of PANEL_ORDER columns takes one launch, as long as the groups for all rows
 * below it run at the same time. Otherwise, and for the portable CHOLESKY_BLOCK columns, one launch
 * factors the diagonal block and another solves for the rows below. The host does not wait: the
 * order at which the factorisation fails stays on the device. */
#include "engine/cl/linalg/linalg.h"

#include "kernels/include/cholesky.h"

/* The state of a factorisation. With matrix instructions, `packed` holds the packed block columns
 * of the latest diagonal block, and `diagonals` the factors of the diagonal blocks from `first` to
 * `end`, side by side: other groups may still have to read these blocks in A. If `from` has a
 * buffer, A is read from there, and the factor gets zeros above its diagonal. */
typedef struct {
  scl_cl_op *op;
  scl_block a, from, info, packed, diagonals;
  size_t block; /* columns of a leaf */
  size_t first, end;
} factorisation;

static scl_status factor_block(scl_cl_op *op, size_t before, scl_block a, scl_block info) {
  size_t lines = op->cl->cpu ? CHOLESKY_CPU_LINES : CHOLESKY_GPU_LINES;
  size_t size[2] = {CHOLESKY_BLOCK, lines};
  return scl_launch_cholesky_block(op, scl_cl_range_2(size, size), (int)a.ncol, (int)before,
                                   scl_inout(a), scl_inout(info));
}

static scl_status factor_leaf(const factorisation *f, size_t at, size_t width) {
  size_t below = f->a.nrow - at - width;
  scl_block diagonal = scl_block_part(f->a, at, at, width, width);
  SCL_TRY(factor_block(f->op, at, diagonal, f->info));
  return scl_cl_trsm_in(f->op, SCL_RIGHT, SCL_LOWER, SCL_TRANS, diagonal,
                        scl_block_part(f->a, at + width, at, below, width));
}

/* Whether the factor is written to another matrix than A. */
static bool is_new(const factorisation *f) {
  return f->from.buffer != NULL;
}

static size_t groups_of(size_t rows) {
  size_t per_group = 16 * CHOLESKY_BELOW;
  return rows > per_group ? scl_ceil_div(rows, per_group) : 1;
}

/* One launch factors the diagonal block and, unless another launch is to use `packed`, solves for
 * the rows below it. */
static scl_status factor_panel(factorisation *f, size_t at, size_t width,
                               const scl_buffer *packed) {
  size_t n = f->a.nrow, below = n - at - width, rows = packed != NULL ? width : n - at;
  size_t items = 32 * CHOLESKY_WARPS;
  size_t clear = is_new(f) ? below : 0;
  size_t groups = groups_of(packed != NULL ? clear : below);
  scl_block a = scl_block_part(f->a, at, at, rows, width), diagonal = a;
  if (is_new(f) || (packed == NULL && groups > 1)) {
    diagonal = scl_block_part(f->diagonals, 0, at, width, width);
    if (f->end == 0) f->first = at;
    f->end = at + width;
  }
  scl_block from = is_new(f) && at == 0 ? scl_block_part(f->from, 0, 0, rows, width) : a;
  const cholesky_panel_task task = {.from_offset = from.offset,
                                    .below_offset = a.offset,
                                    .diagonal_offset = diagonal.offset,
                                    .info_offset = f->info.offset,
                                    .from_ld = (int)from.ld,
                                    .below_ld = (int)a.ld,
                                    .diagonal_ld = (int)diagonal.ld,
                                    .rows = (int)rows,
                                    .n = (int)width,
                                    .before = (int)at,
                                    .clear = (int)clear};
  return scl_launch_cholesky_mma_panel(
      f->op, scl_cl_range_1(groups * items, items), scl_in_buffer(from.buffer),
      scl_inout_buffer(a.buffer), scl_out_buffer(diagonal.buffer), scl_inout_buffer(f->info.buffer),
      scl_out_buffer(packed), &task);
}

/* One launch factors the panel if the groups for all rows below run at the same time. Otherwise one
 * group factors the diagonal block, and a solve follows. */
static scl_status factor_leaf_mma(factorisation *f, size_t at, size_t width) {
  size_t below = f->a.nrow - at - width;
  if (groups_of(below) <= f->op->cl->info.units) return factor_panel(f, at, width, NULL);
  SCL_TRY(factor_panel(f, at, width, f->packed.buffer));
  scl_block rows = scl_block_part(f->a, at + width, at, below, width);
  if (is_new(f) && at == 0) /* the solve is in place */
    SCL_TRY(scl_cl_copy_in(f->op, SCL_COPY, scl_block_part(f->from, width, 0, below, width), rows));
  return scl_cl_packed_solve_in(f->op, &(scl_cl_packed_solve){.right = true,
                                                              .n = width,
                                                              .n_last = width,
                                                              .rhs = below,
                                                              .rhs_last = below,
                                                              .batch = 1,
                                                              .b = rows,
                                                              .packed = f->packed});
}

static scl_status copy_diagonal_blocks(const factorisation *f) {
  if (f->end == 0) return SCL_OK;
  size_t n = f->end - f->first, count = scl_ceil_div(n, PANEL_ORDER);
  size_t local[3] = {32, 8, 1}, global[3] = {PANEL_ORDER, PANEL_ORDER, count};
  return scl_launch_cholesky_mma_copy_diagonal(
      f->op, scl_cl_range_3(global, local), (int)n, is_new(f),
      scl_in(scl_block_part(f->diagonals, 0, f->first, PANEL_ORDER, n)),
      scl_out(scl_block_part(f->a, f->first, f->first, n, n)));
}

/* C -= P P' for the columns [middle, middle + right), with the `left` columns before them as P. If
 * P starts with the first column, nothing has been subtracted from C before. */
static scl_status update_columns(const factorisation *f, size_t middle, size_t left, size_t right) {
  size_t at = middle - left, below = f->a.nrow - middle;
  scl_block rows = scl_block_part(f->a, middle, at, below, left);
  scl_block transposed = scl_block_part(f->a, middle, at, right, left);
  scl_block c = scl_block_part(f->a, middle, middle, below, right);
  if (f->packed.buffer == NULL || !is_new(f) || at > 0) {
    return scl_cl_gemm_in(f->op, -1.0, SCL_NO_TRANS, rows, SCL_GENERAL, SCL_TRANS, transposed,
                          SCL_GENERAL, 1.0, c, SCL_LOWER_HALF);
  }
  return scl_cl_product_in(
      f->op, &(scl_cl_product){.alpha = -1.0,
                               .beta = 1.0,
                               .a = rows,
                               .trans_b = SCL_TRANS,
                               .b = transposed,
                               .c = c,
                               .from = scl_block_part(f->from, middle, middle, below, right),
                               .region = SCL_LOWER_HALF,
                               .batch = 1});
}

/* Factors columns [at, at + width). The columns to the left are factored and have been subtracted.
 */
static scl_status factor_columns(factorisation *f, size_t at, size_t width) {
  if (width <= f->block) {
    return f->packed.buffer != NULL ? factor_leaf_mma(f, at, width) : factor_leaf(f, at, width);
  }
  size_t left = scl_ceil_div(width, f->block) / 2 * f->block;
  SCL_TRY(factor_columns(f, at, left));
  SCL_TRY(update_columns(f, at + left, left, width - left));
  return factor_columns(f, at + left, width - left);
}

/* Whether matrix instructions can factor the panels. Builds the programs for a factor of this
 * order, all at the same time. If there are more rows than the groups of a panel can take, the
 * program for solves is needed. */
static scl_status prepare_programs(scl_cl_op *op, size_t n, bool *usable) {
  static const scl_cl_program list[] = {SCL_CL_PROGRAM_cholesky_mma,
                                        SCL_CL_PROGRAM_gemm_mma_tiny_nt,
                                        SCL_CL_PROGRAM_triangular_mma_solve};
  const bool solves = n > PANEL_ORDER && groups_of(n - PANEL_ORDER) > op->cl->info.units;
  *usable = false;
  if (!scl_cl_may_try_mma(op->cl)) return SCL_OK;
  SCL_TRY(scl_cl_programs_prepare(op->cl, solves ? 3 : n > PANEL_ORDER ? 2 : 1, list));
  SCL_TRY(scl_cl_try_program(op->cl, SCL_CL_PROGRAM_cholesky_mma, usable));
  if (*usable && solves)
    SCL_TRY(scl_cl_try_program(op->cl, SCL_CL_PROGRAM_triangular_mma_solve, usable));
  return SCL_OK;
}

/* A product of shape m x n x k with B or B', as the steps of a factor and its inverse have it. */
static scl_cl_program choose_product(scl_cl_context *cl, size_t m, size_t n, size_t k, bool trans_b,
                                     scl_view view_a, scl_region region) {
  const size_t ld = scl_round_up(scl_max(scl_max(m, n), k), 2);
  const scl_block b = {.ld = ld, .nrow = trans_b ? n : k, .ncol = trans_b ? k : n};
  return scl_cl_product_choice(
      cl, &(scl_cl_product){.a = {.ld = ld, .nrow = m, .ncol = k},
                            .b = b,
                            .c = {.ld = ld, .nrow = m, .ncol = n},
                            .view_a = view_a,
                            .view_b = view_a == SCL_UPPER ? SCL_UPPER : SCL_GENERAL,
                            .trans_b = trans_b ? SCL_TRANS : SCL_NO_TRANS,
                            .region = region,
                            .batch = 1});
}

int scl_cl_factor_programs(scl_cl_context *cl, size_t n, bool inverse, scl_cl_program *list) {
  const size_t half = scl_ceil_div(n, PANEL_ORDER) / 2 * PANEL_ORDER, rest = n - half;
  int count = 0;
  if (!scl_cl_may_try_mma(cl)) return 0;
  /* the slowest builds come first, as some have to wait */
  if (inverse) {
    list[count++] = choose_product(cl, n, n, n, true, SCL_UPPER, SCL_LOWER_HALF);
    if (half > 0) list[count++] = choose_product(cl, rest, half, rest, false, SCL_LOWER, SCL_ALL);
    list[count++] = SCL_CL_PROGRAM_triangular_mma_solve;
  }
  list[count++] = SCL_CL_PROGRAM_cholesky_mma;
  if (half > 0)
    list[count++] = choose_product(cl, rest, rest, half, true, SCL_GENERAL, SCL_LOWER_HALF);
  if (inverse) list[count++] = SCL_CL_PROGRAM_triangular_mma_pack;
  if (half > 0) list[count++] = SCL_CL_PROGRAM_gemm_mma_tiny_nt;
  if (half > 0 && inverse) list[count++] = SCL_CL_PROGRAM_gemm_mma_tiny_nn;
  return count;
}

/* Writes to l the factor of the lower triangle of `from`, or of l itself if `from` has no buffer.
 */
static scl_status factor_matrix(scl_cl_op *op, scl_block from, scl_block l, scl_block info) {
  factorisation f = {.op = op, .a = l, .from = from, .info = info, .block = CHOLESKY_BLOCK};
  if (l.nrow == 0) { /* sets info; the kernel needs a buffer even if there is nothing to factor */
    return factor_block(op, 0, (scl_block){.buffer = info.buffer, .ld = 1}, info);
  }
  bool usable = false;
  if (scl_cl_aligned(from) && scl_cl_aligned(l)) SCL_TRY(prepare_programs(op, l.nrow, &usable));
  if (!usable) {
    if (is_new(&f)) SCL_TRY(scl_cl_copy_in(op, SCL_COPY_LOWER, from, l));
    return factor_columns(&f, 0, l.ncol);
  }
  scl_status status;
  f.block = PANEL_ORDER;
  SCL_GO(scl_cl_packed_create(op, 1, &f.packed));
  SCL_GO(scl_cl_temporary(op, PANEL_ORDER, l.ncol, &f.diagonals));
  SCL_GO(factor_columns(&f, 0, l.ncol));
  SCL_GO(copy_diagonal_blocks(&f));
done:
  scl_buffer_release(f.packed.buffer);
  scl_buffer_release(f.diagonals.buffer);
  return status;
}

scl_status scl_cl_potrf_copy(scl_context *ctx, scl_block a, scl_block l, scl_block info) {
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, a.buffer);
  scl_cl_op_writes(&op, l.buffer);
  scl_cl_op_writes(&op, info.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK) status = factor_matrix(&op, a, l, info);
  return scl_cl_op_end(&op, status);
}

scl_status scl_cl_potrf(scl_context *ctx, scl_block a, scl_block info) {
  return scl_cl_potrf_copy(ctx, (scl_block){0}, a, info);
}

static scl_status invert_factor(scl_cl_op *op, scl_block l, scl_block dst) {
  scl_block inverse;
  SCL_TRY(scl_cl_temporary(op, l.nrow, l.nrow, &inverse));
  scl_status status = scl_cl_trtri_in(op, SCL_LOWER, l, inverse);
  if (status == SCL_OK)
    status = scl_cl_gemm_in(op, 1.0, SCL_TRANS, inverse, SCL_LOWER, SCL_NO_TRANS, inverse,
                            SCL_LOWER, 0.0, dst, SCL_MIRRORED);
  scl_buffer_release(inverse.buffer);
  return status;
}

scl_status scl_cl_potri(scl_context *ctx, scl_block l, scl_block dst) {
  scl_cl_op op;
  if (l.nrow == 0) return SCL_OK;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, l.buffer);
  scl_cl_op_writes(&op, dst.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK) status = invert_factor(&op, l, dst);
  return scl_cl_op_end(&op, status);
}

/* S = 1/2 inv(L)' Q inv(L), where Q is the lower triangle of L' tril(Lbar) with its mirror image:
 * halving the diagonal and adding the transpose does not change the diagonal. */
static scl_status adjoint_leaf(scl_cl_op *op, scl_block l, scl_block s, scl_block work) {
  size_t n = l.nrow;
  scl_block lower = scl_block_part(work, 0, 0, n, n), adjoint = scl_block_part(work, 0, n, n, n);
  scl_block q = scl_block_part(work, 0, 2 * n, n, n),
            inverse = scl_block_part(work, 0, 3 * n, n, n);
  SCL_TRY(scl_cl_lower_in(op, l, lower));
  SCL_TRY(scl_cl_lower_in(op, s, adjoint));
  SCL_TRY(scl_cl_trtri_in(op, SCL_LOWER, l, inverse));
  SCL_TRY(scl_cl_gemm_in(op, 1.0, SCL_TRANS, lower, SCL_LOWER, SCL_NO_TRANS, adjoint, SCL_LOWER,
                         0.0, q, SCL_MIRRORED));
  SCL_TRY(scl_cl_gemm_in(op, 1.0, SCL_NO_TRANS, q, SCL_GENERAL, SCL_NO_TRANS, inverse, SCL_LOWER,
                         0.0, adjoint, SCL_ALL));
  return scl_cl_gemm_in(op, 0.5, SCL_TRANS, inverse, SCL_LOWER, SCL_NO_TRANS, adjoint, SCL_GENERAL,
                        0.0, s, SCL_MIRRORED);
}

scl_status scl_cl_potrf_adjoint_leaf(scl_context *ctx, scl_block l, scl_block s) {
  scl_cl_op op;
  scl_block work = {0};
  scl_status status;
  if (l.nrow == 0) return SCL_OK;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, l.buffer);
  scl_cl_op_writes(&op, s.buffer);
  SCL_GO(scl_cl_op_order(&op, -1));
  SCL_GO(scl_cl_temporary(&op, l.nrow, 4 * l.nrow, &work));
  SCL_GO(adjoint_leaf(&op, l, s, work));
done:
  scl_buffer_release(work.buffer);
  return scl_cl_op_end(&op, status);
}
