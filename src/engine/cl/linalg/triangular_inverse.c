/* The inverse of a triangular matrix, or of all of its diagonal blocks.
 *
 * The smallest blocks (leaves) are inverted first, by substitution from the identity. Each step
 * then goes from blocks of order s to blocks of order 2 s, in two launches for all blocks; only the
 * last block may be smaller. For a lower T, X21 = -X22 T21 X11; for an upper one, X12 = -X11 T12
 * X22. The residual of these products grows with the condition of both halves, unless two more
 * products correct it. */
#include "engine/cl/linalg/linalg.h"

typedef struct {
  scl_cl_op *op;
  bool lower;
  size_t n, leaf;
  scl_block t, x;
  scl_block
      packed; /* the leaves for matrix instructions; without a buffer: portable substitution */
} inversion;

/* The inverses of the leaves, from the identity, which lies in x unless there are packed leaves. */
static scl_status invert_leaves(const inversion *v) {
  size_t n = v->n, order = scl_min(n, v->leaf), blocks = scl_ceil_div(n, v->leaf);
  size_t last = n - (blocks - 1) * v->leaf, step_b = v->leaf * (v->x.ld + 1);
  scl_block b = scl_block_part(v->x, 0, 0, order, order);
  if (v->packed.buffer != NULL) {
    return scl_cl_packed_solve_in(v->op, &(scl_cl_packed_solve){.right = true,
                                                                .reversed = v->lower,
                                                                .identity = true,
                                                                .n = order,
                                                                .n_last = last,
                                                                .rhs = order,
                                                                .rhs_last = last,
                                                                .batch = blocks,
                                                                .step_b = step_b,
                                                                .b = b,
                                                                .packed = v->packed});
  }
  scl_block d = scl_block_part(v->t, 0, 0, order, order);
  return scl_cl_substitute_in(v->op, &(scl_cl_substitution){.right = true,
                                                            .transposed = true,
                                                            .reversed = v->lower,
                                                            .n = order,
                                                            .n_last = last,
                                                            .rhs = order,
                                                            .rhs_last = last,
                                                            .batch = blocks,
                                                            .step_t = v->leaf * (v->t.ld + 1),
                                                            .step_b = step_b,
                                                            .t = d,
                                                            .b = b});
}

/* From the inverses of diagonal blocks of order s to those of order 2 s. Pair p starts at row 2 s
 * p; the second block of the last pair has order s2 <= s. Of a lower T, Y = X22, Z = X11, D = T11
 * and the new block is X21; of an upper one Y = X11, Z = X22, D = T22, and it is X12. `work` and
 * `work_d` hold s x s elements a pair. `also` is another product for the first launch, or NULL.
 */
static scl_status invert_pairs(scl_cl_op *op, bool lower, size_t s, scl_block t, scl_block dst,
                               scl_block work, scl_block work_d, bool correct,
                               const scl_cl_product *also) {
  size_t n = t.nrow, pairs = scl_ceil_div(n - s, 2 * s);
  size_t s2 = scl_min(s, n - (pairs - 1) * 2 * s - s);
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
  SCL_TRY(also != NULL ? scl_cl_product_pair_in(op, also, &p) : scl_cl_product_in(op, &p));

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
  SCL_TRY(scl_cl_triangles_in(op, lower, diagonal, d, pairs, step_t, s * s, lower ? s : s2));
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

/* The largest number of elements that the pairs of a step need. */
static size_t workspace_for_pairs(size_t n, size_t first, size_t end) {
  size_t most = 0;
  for (size_t s = first; s < end; s *= 2) {
    size_t need = scl_ceil_div(n - s, 2 * s) * s * s;
    if (need > most) most = need;
  }
  return most;
}

/* From leaves to blocks of order `block`; `also`, unless NULL, is computed with the last step. */
static scl_status double_by_products(const inversion *v, size_t block, bool correct,
                                     const scl_cl_product *also) {
  size_t end = scl_min(block, v->n), size = workspace_for_pairs(v->n, v->leaf, end);
  if (size == 0) return also != NULL ? scl_cl_product_in(v->op, also) : SCL_OK;
  scl_block work;
  SCL_TRY(scl_cl_temporary(v->op, size, correct ? 2 : 1, &work));
  scl_block second = correct ? scl_block_part(work, 0, 1, size, 1) : work;
  scl_status status = SCL_OK;
  for (size_t s = v->leaf; s < end && status == SCL_OK; s *= 2)
    status = invert_pairs(v->op, v->lower, s, v->t, v->x, work, second, correct,
                          2 * s >= end ? also : NULL);
  scl_buffer_release(work.buffer);
  return status;
}

scl_status scl_cl_quick_inverses_in(scl_cl_op *op, size_t block, scl_block t, scl_block dst,
                                    scl_block src, scl_block copy, const scl_cl_product *also) {
  inversion v = {.op = op, .lower = true, .n = t.nrow, .leaf = PANEL_ORDER, .t = t, .x = dst};
  scl_status status;
  SCL_GO(scl_cl_packed_create(op, scl_ceil_div(t.nrow, PANEL_ORDER), &v.packed));
  SCL_GO(scl_cl_pack_and_copy_in(op, true, true, t, v.packed, block, src, copy));
  SCL_GO(invert_leaves(&v));
  SCL_GO(double_by_products(&v, block, false, also));
done:
  scl_buffer_release(v.packed.buffer);
  return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The programs of an inverse by matrix instructions, built at the same time; the last one is only
 * needed above the order SMALL_TILES, where products have larger tiles. */
enum { SMALL_TILES = 1024 };
static const scl_cl_program needed_programs[] = {
    SCL_CL_PROGRAM_triangular_mma_pack, SCL_CL_PROGRAM_triangular_mma_solve,
    SCL_CL_PROGRAM_gemm_mma_tiny_nn, SCL_CL_PROGRAM_gemm_mma_small_nn};

scl_status scl_cl_trtri_in(scl_cl_op *op, scl_view view, scl_block t, scl_block dst) {
  inversion v = {.op = op, .lower = view == SCL_LOWER, .n = t.nrow, .t = t, .x = dst};
  v.leaf = TRIANGULAR_LEAF;
  if (t.nrow == 0) return SCL_OK;
  SCL_TRY(scl_cl_identity_in(op, 1.0, 1, dst));
  if (scl_cl_may_try_mma(op->cl) && v.n > PANEL_ORDER)
    SCL_TRY(scl_cl_programs_prepare(op->cl, v.n > SMALL_TILES ? 4 : 3, needed_programs));
  bool by_mma;
  SCL_TRY(scl_cl_use_packed(op, v.n, true, dst, &by_mma));
  if (by_mma) return scl_cl_packed_invert_in(op, v.lower, t, dst);
  SCL_TRY(invert_leaves(&v));
  return double_by_products(&v, v.n, true, NULL);
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
