/* Reverse mode of the Cholesky factorisation as one operation, for devices with matrix
 * instructions.
 *
 * The recursion is that of scl_cholesky.c, with three changes that suit a device. The inverses of
 * all diagonal blocks of order LEAF are made first, in a few batched launches. The leaf is the
 * closed form with such an inverse. And with W = G_adj - 2 S2 G
 *
 *   S21 = 1/2 W L1^-1
 *
 * is written to its place, and as S12 at the same time, by blocks of columns from the right, so
 * that what is left is products: S1_adj -= 2 tril(S12 G). Of dF/dL only the diagonal blocks are
 * copied to S beforehand; the rest is read by the first product that subtracts from it. */
#include "scl_cl_linalg.h"

enum { LEAF = 512, BAND = LEAF * (LEAF + 1) };

typedef struct {
  scl_cl_op op;
  scl_block l, l_adj, s;
  scl_block inverse; /* of the diagonal blocks of l, LEAF x LEAF each, BAND apart */
  scl_block work;    /* two such blocks */
  scl_block w;       /* W of the largest step */
} reverse_sweep;

/* Of order n, at row `at` of the whole matrix, a multiple of LEAF. */
static scl_block diagonal_block(scl_block blocks, size_t at, size_t n) {
  blocks.offset += at / LEAF * BAND;
  blocks.ld = LEAF;
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

/* S = 1/2 inv(L)' Q inv(L), where Q is the lower triangle of L' tril(L_adj) with its mirror image.
 */
static scl_status leaf(reverse_sweep *r, size_t at, size_t n) {
  scl_block l = scl_block_part(r->l, at, at, n, n), inverse = diagonal_block(r->inverse, at, n);
  scl_block s = scl_block_part(r->s, at, at, n, n); /* still with zeros above its diagonal */
  scl_block q = diagonal_block(r->work, 0, n), half = diagonal_block(r->work, LEAF, n);
  SCL_TRY(
      product(r, 1.0, SCL_TRANS, l, SCL_LOWER, SCL_NO_TRANS, s, SCL_LOWER, 0.0, q, SCL_MIRRORED));
  SCL_TRY(product(r, 1.0, SCL_NO_TRANS, q, SCL_SYMMETRIC, SCL_NO_TRANS, inverse, SCL_LOWER, 0.0,
                  half, SCL_ALL));
  return product(r, 0.5, SCL_TRANS, inverse, SCL_LOWER, SCL_NO_TRANS, half, SCL_GENERAL, 0.0, s,
                 SCL_MIRRORED);
}

/* C = `from` - 2 A B. */
static scl_status subtract(reverse_sweep *r, scl_block a, scl_view view_a, scl_block b,
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

/* Columns [at, at + n) of S21, and as S12 again, from W = G_adj - 2 S2 G, of which w holds the
 * same: the right half first, then its part is taken from the left half. S2 starts at `below`. */
static scl_status solve_columns(reverse_sweep *r, scl_block w, size_t at, size_t below) {
  size_t n = w.ncol, rows = w.nrow;
  if (n <= LEAF) {
    return scl_cl_product_in(&r->op,
                             &(scl_cl_product){.alpha = 0.5,
                                               .a = w,
                                               .b = diagonal_block(r->inverse, at, n),
                                               .view_b = SCL_LOWER,
                                               .c = scl_block_part(r->s, below, at, rows, n),
                                               .turned = scl_block_part(r->s, at, below, n, rows),
                                               .batch = 1});
  }
  size_t left = (n + LEAF - 1) / LEAF / 2 * LEAF, middle = at + left, right = n - left;
  scl_block rest = scl_block_part(w, 0, 0, rows, left);
  SCL_TRY(solve_columns(r, scl_block_part(w, 0, left, rows, right), middle, below));
  SCL_TRY(subtract(r, scl_block_part(r->s, below, middle, rows, right), SCL_GENERAL,
                   scl_block_part(r->l, middle, at, right, left), rest, rest, SCL_ALL));
  return solve_columns(r, rest, at, below);
}

/* Rows and columns [at, at + n). `untouched`: nothing has been subtracted there yet, and off the
 * diagonal blocks dF/dL is not yet in S. */
static scl_status sweep(reverse_sweep *r, size_t at, size_t n, bool untouched) {
  if (n <= LEAF) return leaf(r, at, n);
  size_t n1 = (n + LEAF - 1) / LEAF / 2 * LEAF, middle = at + n1, n2 = n - n1;
  scl_block g = scl_block_part(r->l, middle, at, n2, n1), from = untouched ? r->l_adj : r->s;
  scl_block w = r->w;
  w.ld = scl_round_up(n2, 2);
  w.nrow = n2;
  w.ncol = n1;
  SCL_TRY(sweep(r, middle, n2, untouched));
  SCL_TRY(subtract(r, scl_block_part(r->s, middle, middle, n2, n2), SCL_SYMMETRIC, g,
                   scl_block_part(from, middle, at, n2, n1), w, SCL_ALL));
  SCL_TRY(solve_columns(r, w, at, middle));
  SCL_TRY(subtract(r, scl_block_part(r->s, at, middle, n1, n2), SCL_GENERAL, g,
                   scl_block_part(from, at, at, n1, n1), scl_block_part(r->s, at, at, n1, n1),
                   SCL_LOWER_HALF));
  return sweep(r, at, n1, false);
}

/* The workspaces, the inverses of the diagonal blocks, and those of dF/dL with zeros above. */
static scl_status prepare(reverse_sweep *r) {
  size_t blocks = (r->l.nrow + LEAF - 1) / LEAF;
  SCL_TRY(scl_cl_temporary(&r->op, BAND * blocks, 1, &r->inverse));
  SCL_TRY(scl_cl_temporary(&r->op, BAND * 2, 1, &r->work));
  size_t left = blocks / 2 * LEAF, below = r->l.nrow - left; /* of the first step */
  if (left > 0) SCL_TRY(scl_cl_temporary(&r->op, scl_round_up(below, 2), left, &r->w));
  SCL_TRY(scl_cl_quick_inverses_in(&r->op, LEAF, r->l, diagonal_block(r->inverse, 0, LEAF)));
  return scl_cl_lower_blocks_in(&r->op, LEAF, r->l_adj, r->s);
}

scl_status scl_cl_potrf_adjoint(scl_context *ctx, scl_block l, scl_block l_adj, scl_block s,
                                bool *taken) {
  *taken = false;
  if (l.nrow == 0 || !scl_cl_aligned(l) || !scl_cl_aligned(l_adj) || !scl_cl_aligned(s) ||
      !scl_cl_has_mma((scl_cl_context *)ctx)) {
    return SCL_OK;
  }
  reverse_sweep r = {.l = l, .l_adj = l_adj, .s = s};
  scl_cl_op_begin(&r.op, ctx);
  scl_cl_op_reads(&r.op, l.buffer);
  scl_cl_op_reads(&r.op, l_adj.buffer);
  scl_cl_op_writes(&r.op, s.buffer);
  scl_status status = scl_cl_op_order(&r.op, -1);
  if (status == SCL_OK) status = prepare(&r);
  if (status == SCL_OK) status = sweep(&r, 0, l.nrow, true);
  status = scl_cl_op_end(&r.op, status);
  *taken = true;
  scl_buffer_release(r.inverse.buffer);
  scl_buffer_release(r.work.buffer);
  scl_buffer_release(r.w.buffer);
  return status;
}
