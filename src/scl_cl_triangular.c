/* Triangular solves and inverses on a device.
 *
 * Solve: T is halved down to blocks that one launch solves by substitution; between the halves
 * stands a product with the off-diagonal block, so that nearly all of the work is in products with
 * long sums. Inverse: all diagonal blocks in one launch, then blocks of twice the order by two
 * batched products, X21 = -X22 T21 X11, until one block is left. */
#include "scl_cl_linalg.h"

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

/* ---- solve ---------------------------------------------------------------------------------- */
/* "M x = b" for the columns (rows, if right) of B, with M = T or T'. */
typedef struct {
  bool right, transposed; /* M = T' */
  bool lower;             /* T */
  bool reversed;          /* M is upper: the last unknown comes first */
  size_t leaf;            /* order of the blocks that one launch solves */
  scl_block packed;       /* all of them, where matrix instructions solve; else no buffer */
} solve_form;

static solve_form form_of(scl_side side, scl_view view, scl_trans trans) {
  solve_form form = {.right = side == SCL_RIGHT, .lower = view == SCL_LOWER};
  form.transposed = (trans == SCL_TRANS) != form.right;
  form.reversed = form.lower == form.transposed;
  form.leaf = TRIANGULAR_LEAF;
  return form;
}

/* Rows of B are read in pairs, columns one by one. */
static bool use_strips(scl_cl_op *op, size_t n, bool right, scl_block b) {
  return n > TRIANGULAR_LEAF / 2 && (!right || scl_cl_aligned(b)) && scl_cl_has_mma(op->cl);
}

/* The kernel that solves by substitution, TRIANGULAR_ITEMS right-hand sides a group. */
static scl_cl_kernel substitution(const scl_cl_op *op, size_t rhs, size_t batch, size_t local[2],
                                  size_t global[2]) {
  local[0] = op->cl->cpu ? 1 : TRIANGULAR_ITEMS;
  local[1] = 1;
  global[0] = (rhs + TRIANGULAR_ITEMS - 1) / TRIANGULAR_ITEMS * local[0];
  global[1] = batch;
  return op->cl->cpu ? SCL_K_triangular_cpu_substitute : SCL_K_triangular_substitute;
}

static scl_status substitute(scl_cl_op *op, const solve_form *form, size_t at, scl_block t,
                             scl_block b) {
  size_t n = t.nrow, rhs = form->right ? b.nrow : b.ncol;
  if (form->packed.buffer != NULL) {
    return scl_cl_strips_solve_in(op, &(scl_cl_strips){.right = form->right,
                                                       .reversed = form->reversed,
                                                       .n = n,
                                                       .n_last = n,
                                                       .rhs = rhs,
                                                       .rhs_last = rhs,
                                                       .batch = 1,
                                                       .first = at / form->leaf,
                                                       .b = b,
                                                       .packed = form->packed});
  }
  size_t local[2], global[2];
  scl_cl_kernel kernel = substitution(op, rhs, 1, local, global);
  return scl_cl_launch(op, kernel, 2, global, local, "iibmllliillii", (int)n, (int)rhs, t, b.buffer,
                       (long long)b.offset, (long long)(form->right ? b.ld : 1),
                       (long long)(form->right ? 1 : b.ld), (int)form->transposed,
                       (int)form->reversed, 0LL, 0LL, (int)n, (int)rhs);
}

/* b2 -= M21 b1: `known` are the solved unknowns, `off` the block of T between the two. */
static scl_status eliminate(scl_cl_op *op, const solve_form *form, scl_block off, scl_block known,
                            scl_block rest) {
  scl_trans flip = form->transposed ? SCL_TRANS : SCL_NO_TRANS;
  if (!form->right)
    return scl_cl_gemm_in(op, -1.0, flip, off, SCL_GENERAL, SCL_NO_TRANS, known, SCL_GENERAL, 1.0,
                          rest, SCL_ALL);
  flip = form->transposed ? SCL_NO_TRANS : SCL_TRANS;
  return scl_cl_gemm_in(op, -1.0, SCL_NO_TRANS, known, SCL_GENERAL, flip, off, SCL_GENERAL, 1.0,
                        rest, SCL_ALL);
}

/* `t` starts at row `at` of the whole triangular matrix. */
static scl_status solve(scl_cl_op *op, const solve_form *form, size_t at, scl_block t,
                        scl_block b) {
  size_t n = t.nrow, leaf = form->leaf;
  if (n <= leaf) return substitute(op, form, at, t, b);
  size_t h = (n + leaf - 1) / leaf / 2 * leaf, rest = n - h;
  scl_block t1 = scl_block_part(t, 0, 0, h, h), t2 = scl_block_part(t, h, h, rest, rest);
  scl_block off = form->lower ? scl_block_part(t, h, 0, rest, h) : scl_block_part(t, 0, h, h, rest);
  scl_block b1 =
      form->right ? scl_block_part(b, 0, 0, b.nrow, h) : scl_block_part(b, 0, 0, h, b.ncol);
  scl_block b2 =
      form->right ? scl_block_part(b, 0, h, b.nrow, rest) : scl_block_part(b, h, 0, rest, b.ncol);
  if (form->reversed) {
    SCL_TRY(solve(op, form, at + h, t2, b2));
    SCL_TRY(eliminate(op, form, off, b2, b1));
    return solve(op, form, at, t1, b1);
  }
  SCL_TRY(solve(op, form, at, t1, b1));
  SCL_TRY(eliminate(op, form, off, b1, b2));
  return solve(op, form, at + h, t2, b2);
}

scl_status scl_cl_trsm_in(scl_cl_op *op, scl_side side, scl_view view, scl_trans trans, scl_block t,
                          scl_block b) {
  if (b.nrow == 0 || b.ncol == 0) return SCL_OK;
  solve_form form = form_of(side, view, trans);
  size_t rhs = form.right ? b.nrow : b.ncol;
  if (scl_cl_trsv_pays(op, t.nrow, rhs)) {
    return scl_cl_trsv_in(op, &(scl_cl_vectors){.lower = form.lower,
                                                .transposed = form.transposed,
                                                .rhs = rhs,
                                                .step = form.right ? b.ld : 1,
                                                .next = form.right ? 1 : b.ld,
                                                .t = t,
                                                .b = b});
  }
  if (!use_strips(op, t.nrow, form.right, b)) return solve(op, &form, 0, t, b);
  form.leaf = STRIPS_ORDER;
  SCL_TRY(scl_cl_strips_room(op, (t.nrow + STRIPS_ORDER - 1) / STRIPS_ORDER, &form.packed));
  scl_status status = scl_cl_strips_pack_in(op, form.transposed, form.reversed, t, form.packed);
  if (status == SCL_OK) status = solve(op, &form, 0, t, b);
  scl_buffer_release(form.packed.buffer);
  return status;
}

scl_status scl_cl_trsm(scl_context *ctx, scl_side side, scl_view view, scl_trans trans, scl_block t,
                       scl_block b) {
  scl_cl_op op;
  if (b.nrow == 0 || b.ncol == 0) return SCL_OK;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, t.buffer);
  scl_cl_op_writes(&op, b.buffer);
  SCL_TRY(scl_cl_op_order(&op, -1));
  return scl_cl_op_end(&op, scl_cl_trsm_in(&op, side, view, trans, t, b));
}

/* ---- inverse -------------------------------------------------------------------------------- */
/* Triangles of a batch of square blocks, the last of order `last`. */
static scl_status copy_triangles(scl_cl_op *op, bool lower, scl_block src, scl_block dst,
                                 size_t batch, size_t step_src, size_t step_dst, size_t last) {
  size_t local[3] = {32, op->cl->cpu ? 1 : 8, 1};
  size_t global[3] = {scl_round_up(src.nrow, local[0]), scl_round_up(src.ncol, local[1]), batch};
  return scl_cl_launch(op, SCL_K_triangular_copy, 3, global, local, "iibblli", (int)src.nrow,
                       (int)!lower, src, dst, (long long)step_src, (long long)step_dst, (int)last);
}

scl_status scl_cl_lower_in(scl_cl_op *op, scl_block src, scl_block dst) {
  return copy_triangles(op, true, src, dst, 1, 0, 0, src.nrow);
}

/* The inverses of all diagonal blocks of order TRIANGULAR_LEAF, as the solutions of X T = I, from
 * the identity in dst. */
static scl_status invert_leaves(scl_cl_op *op, bool lower, scl_block t, scl_block dst) {
  size_t n = t.nrow, leaf = min_size(n, TRIANGULAR_LEAF);
  size_t batch = (n + leaf - 1) / leaf, last = n - (batch - 1) * leaf;
  size_t local[2], global[2];
  scl_cl_kernel kernel = substitution(op, leaf, batch, local, global);
  solve_form form = form_of(SCL_RIGHT, lower ? SCL_LOWER : SCL_UPPER, SCL_NO_TRANS);
  return scl_cl_launch(op, kernel, 2, global, local, "iibmllliillii", (int)leaf, (int)leaf, t,
                       dst.buffer, (long long)dst.offset, (long long)dst.ld, 1LL,
                       (int)form.transposed, (int)form.reversed, (long long)(leaf * (t.ld + 1)),
                       (long long)(leaf * (dst.ld + 1)), (int)last, (int)last);
}

/* From the inverses of diagonal blocks of order s to those of order 2 s. Pair p starts at row 2 s
 * p; the second block of the last pair has order s2 <= s. Of a lower T, Y = X22, Z = X11, D = T11
 * and the new block is X21; of an upper one Y = X11, Z = X22, D = T22, and it is X12. `work`,
 * `work_d`: room for s x s elements a pair. */
static scl_status invert_pairs(scl_cl_op *op, bool lower, size_t s, scl_block t, scl_block dst,
                               scl_block work, scl_block work_d, bool correct) {
  size_t n = t.nrow, pairs = (n - s + 2 * s - 1) / (2 * s);
  size_t s2 = min_size(s, n - (pairs - 1) * 2 * s - s);
  size_t step_t = 2 * s * (t.ld + 1), step = 2 * s * (dst.ld + 1);
  scl_view view = lower ? SCL_LOWER : SCL_UPPER;
  scl_block x1 = scl_block_part(dst, 0, 0, s, s), x2 = scl_block_part(dst, s, s, s, s);
  scl_block x = lower ? scl_block_part(dst, s, 0, s, s) : scl_block_part(dst, 0, s, s, s);
  scl_block off = lower ? scl_block_part(t, s, 0, s, s) : scl_block_part(t, 0, s, s, s);
  scl_block diagonal = lower ? scl_block_part(t, 0, 0, s, s) : scl_block_part(t, s, s, s, s);
  scl_block w = {.buffer = work.buffer, .offset = work.offset, .ld = s, .nrow = s, .ncol = s};
  scl_block d = {.buffer = work_d.buffer, .offset = work_d.offset, .ld = s, .nrow = s, .ncol = s};

  /* W = Y T21 */
  scl_cl_product p = {.alpha = 1.0, .batch = pairs, .m_last = lower ? s2 : s};
  p.n_last = lower ? s : s2;
  p.a = lower ? x2 : x1;
  p.view_a = view;
  p.b = off;
  p.c = w;
  p.step_a = step;
  p.step_b = step_t;
  p.step_c = s * s;
  p.k_last = lower ? s2 : s;
  SCL_TRY(scl_cl_product_in(op, &p));

  /* X21 = -W Z */
  scl_cl_product q = p;
  q.alpha = -1.0;
  q.a = w;
  q.view_a = SCL_GENERAL;
  q.b = lower ? x1 : x2;
  q.view_b = view;
  q.c = x;
  q.step_a = s * s;
  q.step_b = q.step_c = step;
  q.k_last = lower ? s : s2;
  SCL_TRY(scl_cl_product_in(op, &q));
  if (!correct) return SCL_OK;

  /* W += X21 D */
  SCL_TRY(copy_triangles(op, lower, diagonal, d, pairs, step_t, s * s, lower ? s : s2));
  scl_cl_product r = q;
  r.alpha = r.beta = 1.0;
  r.a = x;
  r.b = d;
  r.c = w;
  r.step_a = step;
  r.step_b = r.step_c = s * s;
  SCL_TRY(scl_cl_product_in(op, &r));

  /* X21 -= W Z */
  q.beta = 1.0;
  return scl_cl_product_in(op, &q);
}

scl_status scl_cl_trtri_in(scl_cl_op *op, scl_view view, scl_block t, scl_block dst) {
  bool lower = view == SCL_LOWER;
  size_t n = t.nrow;
  if (n == 0) return SCL_OK;
  SCL_TRY(scl_cl_identity_in(op, 1.0, 1, dst));
  if (use_strips(op, n, true, dst)) return scl_cl_strips_invert_in(op, lower, t, dst);
  SCL_TRY(invert_leaves(op, lower, t, dst));
  if (n <= TRIANGULAR_LEAF) return SCL_OK;

  size_t most = 0; /* elements that the pairs of a level need */
  for (size_t s = TRIANGULAR_LEAF; s < n; s *= 2) {
    size_t need = (n - s + 2 * s - 1) / (2 * s) * s * s;
    if (need > most) most = need;
  }
  scl_block work;
  SCL_TRY(scl_cl_temporary(op, most, 2, &work));
  scl_block second = scl_block_part(work, 0, 1, most, 1);
  scl_status status = SCL_OK;
  for (size_t s = TRIANGULAR_LEAF; s < n && status == SCL_OK; s *= 2)
    status = invert_pairs(op, lower, s, t, dst, work, second, true);
  scl_buffer_release(work.buffer);
  return status;
}

scl_status scl_cl_block_inverses_in(scl_cl_op *op, size_t block, scl_block t, scl_block dst) {
  SCL_TRY(scl_cl_strips_leaves_in(op, true, t, dst));
  if (t.nrow <= STRIPS_ORDER) return SCL_OK;
  scl_block work;
  SCL_TRY(scl_cl_temporary(op, block, t.nrow + block, &work));
  scl_status status = SCL_OK;
  for (size_t s = STRIPS_ORDER; s < min_size(block, t.nrow) && status == SCL_OK; s *= 2)
    status = invert_pairs(op, true, s, t, dst, work, work, false);
  scl_buffer_release(work.buffer);
  return status;
}

scl_status scl_cl_trtri(scl_context *ctx, scl_view view, scl_block t, scl_block dst) {
  scl_cl_op op;
  if (t.nrow == 0) return SCL_OK;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, t.buffer);
  scl_cl_op_writes(&op, dst.buffer);
  SCL_TRY(scl_cl_op_order(&op, -1));
  return scl_cl_op_end(&op, scl_cl_trtri_in(&op, view, t, dst));
}
