/* Reverse mode of the Cholesky factorisation as one operation, for devices with matrix
 * instructions.
 *
 * The recursion is that of ops/cholesky.c down to a range of RANGE rows and columns, with two
 * changes that suit a device. The inverses of all diagonal blocks of order BLOCK are computed
 * first, in a few batched launches. And with W = G_adj - 2 S2 G
 *
 *   S21 = 1/2 W L1^-1
 *
 * is written to S, and transposed as S12 at the same time, by blocks of columns from the right, so
 * that only products remain: S1_adj -= 2 tril(S12 G).
 *
 * A range is processed by block columns from the right. Its time depends on the number of launches
 * that wait for each other, so the diagonal block does not wait for the solution below it. With L1
 * and S1 of one block, and Q the lower triangle of L1' tril(L1_adj) with its mirror image, computed
 * beforehand,
 *
 *   W   = G_adj - 2 S2 G
 *   S21 = 1/2 W L1^-1   and, in the same launch,   Q -= W' G
 *   S1  = 1/2 L1^-T Q L1^-1                        (two launches)
 *
 * The second line holds because W = 2 S21 L1, and the lower triangle of L1' tril(2 S12 G) does not
 * depend on the elements above the diagonal of 2 S12 G: it is that of L1' (2 S12 G) = W' G.
 *
 * Of dF/dL only the diagonal blocks are copied to S beforehand; the rest is read by the first
 * product that subtracts from it. */
#include "engine/cl/linalg/linalg.h"

enum { BLOCK = 512, BAND = BLOCK * (BLOCK + 1), STEPS = 4, RANGE = STEPS * BLOCK };

typedef struct {
  scl_cl_op op;
  scl_block l, l_adj, s;
  scl_block inverse; /* of the diagonal blocks of l, BLOCK x BLOCK each, BAND apart */
  scl_block q;       /* Q of the blocks of a range, likewise */
  scl_block half;    /* Q L1^-1 */
  scl_block w;       /* the largest W */
} reverse_sweep;

/* Of order n, at row `at` of the whole matrix, a multiple of BLOCK. */
static scl_block diagonal_block(scl_block blocks, size_t at, size_t n) {
  blocks.offset += at / BLOCK * BAND;
  blocks.ld = BLOCK;
  blocks.nrow = blocks.ncol = n;
  return blocks;
}

static scl_status product(reverse_sweep *r, double alpha, scl_trans trans_a, scl_block a,
                          scl_view view_a, scl_trans trans_b, scl_block b, scl_view view_b,
                          double beta, scl_block c, scl_region region) {
  return scl_cl_product_in(&r->op, &(scl_cl_product){.alpha = alpha,
                                                     .trans_a = trans_a,
                                                     .a = a,
                                                     .view_a = view_a,
                                                     .trans_b = trans_b,
                                                     .b = b,
                                                     .view_b = view_b,
                                                     .beta = beta,
                                                     .c = c,
                                                     .region = region,
                                                     .batch = 1});
}

/* The Q of all blocks of a range, from the dF/dL that S contains at that point. */
static scl_cl_product diagonal_products(const reverse_sweep *r, size_t at, size_t n) {
  size_t batch = scl_ceil_div(n, BLOCK), order = n < BLOCK ? n : BLOCK;
  size_t last = n - (batch - 1) * BLOCK;
  return (scl_cl_product){.alpha = 1.0,
                          .trans_a = SCL_TRANS,
                          .a = scl_block_part(r->l, at, at, order, order),
                          .view_a = SCL_LOWER,
                          .step_a = BLOCK * (r->l.ld + 1),
                          .b = scl_block_part(r->s, at, at, order, order), /* zeros above */
                          .view_b = SCL_LOWER,
                          .step_b = BLOCK * (r->s.ld + 1),
                          .c = diagonal_block(r->q, 0, order),
                          .step_c = BAND,
                          .region = SCL_MIRRORED,
                          .batch = batch,
                          .m_last = last,
                          .n_last = last,
                          .k_last = last};
}

/* S1 = 1/2 L1^-T Q L1^-1. */
static scl_status both_sides(reverse_sweep *r, size_t at, scl_block q) {
  size_t n = q.nrow;
  scl_block inverse = diagonal_block(r->inverse, at, n), half = diagonal_block(r->half, 0, n);
  SCL_TRY(product(r, 1.0, SCL_NO_TRANS, q, SCL_SYMMETRIC, SCL_NO_TRANS, inverse, SCL_LOWER, 0.0,
                  half, SCL_ALL));
  return product(r, 0.5, SCL_TRANS, inverse, SCL_LOWER, SCL_NO_TRANS, half, SCL_GENERAL, 0.0,
                 scl_block_part(r->s, at, at, n, n), SCL_MIRRORED);
}

/* C = `from` - 2 A B. */
static scl_status subtract_product(reverse_sweep *r, scl_block a, scl_view view_a, scl_block b,
                                   scl_block from, scl_block c, scl_region region) {
  return scl_cl_product_in(&r->op, &(scl_cl_product){.alpha = -2.0,
                                                     .a = a,
                                                     .view_a = view_a,
                                                     .b = b,
                                                     .beta = 1.0,
                                                     .from = from,
                                                     .c = c,
                                                     .region = region,
                                                     .batch = 1});
}

/* Columns [at, at + n) of S21, also transposed as S12, from W = G_adj - 2 S2 G, of which w holds
 * the same columns: the right half first, whose product is then subtracted from the left half. S2
 * starts at `below`. */
static scl_status solve_columns(reverse_sweep *r, scl_block w, size_t at, size_t below) {
  size_t n = w.ncol, rows = w.nrow;
  if (n <= BLOCK) {
    return scl_cl_product_in(
        &r->op, &(scl_cl_product){.alpha = 0.5,
                                  .a = w,
                                  .b = diagonal_block(r->inverse, at, n),
                                  .view_b = SCL_LOWER,
                                  .c = scl_block_part(r->s, below, at, rows, n),
                                  .transposed = scl_block_part(r->s, at, below, n, rows),
                                  .batch = 1});
  }
  size_t left = scl_ceil_div(n, BLOCK) / 2 * BLOCK, middle = at + left, right = n - left;
  scl_block rest = scl_block_part(w, 0, 0, rows, left);
  SCL_TRY(solve_columns(r, scl_block_part(w, 0, left, rows, right), middle, below));
  SCL_TRY(subtract_product(r, scl_block_part(r->s, below, middle, rows, right), SCL_GENERAL,
                           scl_block_part(r->l, middle, at, right, left), rest, rest, SCL_ALL));
  return solve_columns(r, rest, at, below);
}

/* dF/dL outside the diagonal blocks. After the first subtraction it is in S. */
static scl_block adjoint_part(const reverse_sweep *r, bool untouched, size_t row, size_t col,
                              size_t nrow, size_t ncol) {
  return scl_block_part(untouched ? r->l_adj : r->s, row, col, nrow, ncol);
}

static scl_block shape_w(const reverse_sweep *r, size_t nrow, size_t ncol) {
  scl_block w = r->w;
  w.ld = scl_round_up(nrow, 2);
  w.nrow = nrow;
  w.ncol = ncol;
  return w;
}

/* A block column of a range: n columns from `at` on, with S2 of `rows` rows below them. */
static scl_status sweep_column(reverse_sweep *r, size_t at, size_t n, size_t rows, scl_block q,
                               bool untouched) {
  if (rows == 0) return both_sides(r, at, q);
  size_t below = at + n;
  scl_block w = shape_w(r, rows, n), g = scl_block_part(r->l, below, at, rows, n);
  SCL_TRY(subtract_product(r, scl_block_part(r->s, below, below, rows, rows), SCL_SYMMETRIC, g,
                           adjoint_part(r, untouched, below, at, rows, n), w, SCL_ALL));
  scl_cl_product update = {.alpha = -1.0, .trans_a = SCL_TRANS, .a = w, .b = g, .beta = 1.0};
  update.c = q;
  update.region = SCL_MIRRORED;
  update.batch = 1;
  scl_cl_product solution = {.alpha = 0.5, .a = w, .view_b = SCL_LOWER, .batch = 1};
  solution.b = diagonal_block(r->inverse, at, n);
  solution.c = scl_block_part(r->s, below, at, rows, n);
  solution.transposed = scl_block_part(r->s, at, below, n, rows);
  SCL_TRY(scl_cl_product_pair_in(&r->op, &update, &solution));
  return both_sides(r, at, q);
}

/* Rows and columns [at, at + n), a range. `untouched`: nothing has been subtracted there yet, and
 * the Q are made. */
static scl_status sweep_range(reverse_sweep *r, size_t at, size_t n, bool untouched) {
  if (!untouched) {
    scl_cl_product q = diagonal_products(r, at, n);
    SCL_TRY(scl_cl_product_in(&r->op, &q));
  }
  for (size_t done = 0; done < n;) {
    size_t first = (n - done - 1) / BLOCK * BLOCK, width = n - done - first;
    SCL_TRY(
        sweep_column(r, at + first, width, done, diagonal_block(r->q, first, width), untouched));
    done += width;
  }
  return SCL_OK;
}

/* The size of the first part of n rows and columns, if n is larger than a range. */
static size_t first_part(size_t n) {
  return scl_ceil_div(n, BLOCK) / 2 * BLOCK;
}

/* Rows and columns [at, at + n). */
static scl_status sweep_part(reverse_sweep *r, size_t at, size_t n, bool untouched) {
  if (n <= RANGE) return sweep_range(r, at, n, untouched);
  size_t n1 = first_part(n), middle = at + n1, n2 = n - n1;
  scl_block g = scl_block_part(r->l, middle, at, n2, n1), w = shape_w(r, n2, n1);
  scl_block s1 = scl_block_part(r->s, at, at, n1, n1);
  SCL_TRY(sweep_part(r, middle, n2, untouched));
  SCL_TRY(subtract_product(r, scl_block_part(r->s, middle, middle, n2, n2), SCL_SYMMETRIC, g,
                           adjoint_part(r, untouched, middle, at, n2, n1), w, SCL_ALL));
  SCL_TRY(solve_columns(r, w, at, middle));
  SCL_TRY(subtract_product(r, scl_block_part(r->s, at, middle, n1, n2), SCL_GENERAL, g,
                           adjoint_part(r, untouched, at, at, n1, n1), s1, SCL_LOWER_HALF));
  return sweep_part(r, at, n1, false);
}

/* Makes the workspaces, the inverses of the diagonal blocks of L, copies of the diagonal blocks of
 * dF/dL with zeros above the diagonal, and the Q of the first range. */
static scl_status prepare_sweep(reverse_sweep *r) {
  size_t n = r->l.nrow, blocks = scl_ceil_div(n, BLOCK), at = 0;
  size_t left = n > RANGE ? first_part(n) : (n > BLOCK ? BLOCK : 0); /* columns of the largest W */
  SCL_TRY(scl_cl_temporary(&r->op, BAND * blocks, 1, &r->inverse));
  SCL_TRY(scl_cl_temporary(&r->op, BAND * (blocks < STEPS ? blocks : STEPS), 1, &r->q));
  SCL_TRY(scl_cl_temporary(&r->op, BAND, 1, &r->half));
  if (left > 0) SCL_TRY(scl_cl_temporary(&r->op, scl_round_up(n - left, 2), left, &r->w));
  while (n - at > RANGE) at += first_part(n - at);
  scl_cl_product first = diagonal_products(r, at, n - at);
  return scl_cl_quick_inverses_in(&r->op, BLOCK, r->l, diagonal_block(r->inverse, 0, BLOCK),
                                  r->l_adj, r->s, &first);
}

/* Whether matrix instructions can do the solves. Builds the programs of the sweep, all at the same
 * time. Its products have portable tiles too. */
static scl_status prepare_programs(scl_cl_context *cl, size_t n, bool *usable) {
  static const scl_cl_program list[] = {
      SCL_CL_PROGRAM_triangular_mma_solve, SCL_CL_PROGRAM_gemm_mma_tiny_pair,
      SCL_CL_PROGRAM_triangular_mma_pack_and_copy, SCL_CL_PROGRAM_gemm_mma_tiny_nn,
      SCL_CL_PROGRAM_gemm_mma_tiny_tn};
  *usable = false;
  if (!scl_cl_may_try_mma(cl)) return SCL_OK;
  if (n > PANEL_ORDER) SCL_TRY(scl_cl_programs_prepare(cl, 5, list));
  SCL_TRY(scl_cl_try_program(cl, SCL_CL_PROGRAM_triangular_mma_pack_and_copy, usable));
  if (!*usable) return SCL_OK;
  return scl_cl_try_program(cl, SCL_CL_PROGRAM_triangular_mma_solve, usable);
}

scl_status scl_cl_potrf_adjoint(scl_context *ctx, scl_block l, scl_block l_adj, scl_block s,
                                bool *taken) {
  *taken = false;
  if (l.nrow == 0 || !scl_cl_aligned(l) || !scl_cl_aligned(l_adj) || !scl_cl_aligned(s))
    return SCL_OK;
  bool usable;
  SCL_TRY(prepare_programs((scl_cl_context *)ctx, l.nrow, &usable));
  if (!usable) return SCL_OK;
  reverse_sweep r = {.l = l, .l_adj = l_adj, .s = s};
  scl_cl_op_begin(&r.op, ctx);
  scl_cl_op_reads(&r.op, l.buffer);
  scl_cl_op_reads(&r.op, l_adj.buffer);
  scl_cl_op_writes(&r.op, s.buffer);
  scl_status status = scl_cl_op_order(&r.op, -1);
  if (status == SCL_OK) status = prepare_sweep(&r);
  if (status == SCL_OK) status = sweep_part(&r, 0, l.nrow, true);
  status = scl_cl_op_end(&r.op, status);
  *taken = true;
  scl_buffer_release(r.inverse.buffer);
  scl_buffer_release(r.q.buffer);
  scl_buffer_release(r.half.buffer);
  scl_buffer_release(r.w.buffer);
  return status;
}
