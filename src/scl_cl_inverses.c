/* Inverses of a triangular matrix, and of its diagonal blocks, all at once.
 *
 * First those of the smallest blocks (leaves), by substitution from the identity. Then from blocks
 * of order s to blocks of order 2 s. Every step is one launch for all blocks; only the last block
 * may be smaller. Of a lower T, X21 T11 = -X22 T21, of an upper one X12 T22 = -X11 T12. There are
 * two ways to divide by T11:
 *
 * - by substitution: the residual is small whatever the condition of the blocks;
 * - as a product with the inverse X11, two launches in all. That leaves a residual which grows with
 *   the condition of both halves, unless it is corrected by two products more. */
#include "scl_cl_linalg.h"

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

typedef struct {
  scl_cl_op *op;
  bool lower;
  size_t n, leaf;
  scl_block t, x;
  scl_block packed; /* leaves as matrix instructions want them; no buffer: plain substitution */
} inversion;

/* One step of doubling: pairs of blocks of order s, the second one of the last pair of order s2. */
typedef struct {
  const inversion *v;
  size_t s, s2, pairs;
  scl_block divisor, x; /* of the first pair: T11 (lower) or T22, and X21 or X12 */
} doubling;

static size_t leaf_of(scl_cl_context *cl) {
  return scl_cl_has_mma(cl) ? STRIPS_ORDER : TRIANGULAR_LEAF;
}

/* A batch of X D = B in place of B, for blocks D of T of one leaf that lie `stride` rows apart. In
 * the last one D has order n_last and B rows_last rows. */
typedef struct {
  size_t first, stride, batch; /* first row of the first D */
  size_t rows, rows_last, n_last;
  bool identity; /* B is the identity, whatever stands there */
  scl_block b;   /* of the first */
} leaf_batch;

static scl_status divide_leaves(const inversion *v, const leaf_batch *l) {
  size_t n = min_size(v->n, v->leaf), step_b = l->stride * (v->x.ld + 1);
  if (l->batch == 0) return SCL_OK;
  if (v->packed.buffer != NULL) {
    return scl_cl_strips_solve_in(v->op, &(scl_cl_strips){.right = true,
                                                          .reversed = v->lower,
                                                          .identity = l->identity,
                                                          .n = n,
                                                          .n_last = l->n_last,
                                                          .rhs = l->rows,
                                                          .rhs_last = l->rows_last,
                                                          .batch = l->batch,
                                                          .step_b = step_b,
                                                          .first = l->first / v->leaf,
                                                          .skip = l->stride / v->leaf - 1,
                                                          .b = l->b,
                                                          .packed = v->packed});
  }
  if (l->identity) {
    /* as large as the largest tile of a product, which reads beyond a leaf */
    size_t local[2] = {STRIPS_ORDER, 2}, global[2] = {scl_round_up(v->n, local[0]), 2};
    SCL_TRY(scl_cl_launch(v->op, SCL_K_triangular_vector_identities, 2, global, local, "imi",
                          (int)v->n, v->x.buffer, (int)v->x.ld));
  }
  scl_block d = scl_block_part(v->t, l->first, l->first, n, n);
  size_t local[2], global[2];
  scl_cl_kernel kernel = scl_cl_substitution(v->op, l->rows, l->batch, local, global);
  return scl_cl_launch(v->op, kernel, 2, global, local, "iibmllliillii", (int)n, (int)l->rows, d,
                       l->b.buffer, (long long)l->b.offset, (long long)l->b.ld, 1LL, 1,
                       (int)v->lower, (long long)(l->stride * (v->t.ld + 1)), (long long)step_b,
                       (int)l->n_last, (int)l->rows_last);
}

/* How many of the columns [at, at + n) of an X12 the last pair has; an X21 has all. */
static size_t columns_last(const doubling *d, size_t at, size_t n) {
  if (d->v->lower) return n;
  return d->s2 > at ? min_size(n, d->s2 - at) : 0;
}

/* Columns [to, to + n) -= X(:, [from, from + n)) D([from, ..), [to, ..)). */
static scl_status eliminate(const doubling *d, size_t from, size_t to, size_t n) {
  size_t last = columns_last(d, to, n), step = 2 * d->s * (d->v->x.ld + 1);
  scl_cl_product p = {.alpha = -1.0, .beta = 1.0, .batch = last > 0 ? d->pairs : d->pairs - 1};
  if (p.batch == 0) return SCL_OK;
  p.a = scl_block_part(d->x, 0, from, d->s, n);
  p.b = scl_block_part(d->divisor, from, to, n, n);
  p.c = scl_block_part(d->x, 0, to, d->s, n);
  p.step_a = p.step_c = step;
  p.step_b = 2 * d->s * (d->v->t.ld + 1);
  p.n_last = last;
  p.m_last = d->v->lower ? d->s2 : d->s;
  return scl_cl_product_in(d->v->op, &p);
}

/* X D = B for the columns [at, at + n). */
static scl_status divide(const doubling *d, size_t at, size_t n) {
  if (n <= d->v->leaf) {
    size_t last = columns_last(d, at, n), s = d->s;
    leaf_batch l = {.first = (d->v->lower ? 0 : s) + at, .stride = 2 * s, .rows = s};
    l.batch = last > 0 ? d->pairs : d->pairs - 1;
    l.n_last = last > 0 ? last : n;
    l.rows_last = d->v->lower ? d->s2 : s;
    l.b = scl_block_part(d->x, 0, at, s, n);
    return divide_leaves(d->v, &l);
  }
  size_t h = n / 2;
  if (d->v->lower) {
    SCL_TRY(divide(d, at + h, h));
    SCL_TRY(eliminate(d, at + h, at, h));
    return divide(d, at, h);
  }
  SCL_TRY(divide(d, at, h));
  SCL_TRY(eliminate(d, at, at + h, h));
  return divide(d, at + h, h);
}

static scl_status double_blocks(const inversion *v, size_t s) {
  size_t pairs = (v->n - s + 2 * s - 1) / (2 * s), low = v->lower ? 0 : s, high = s - low;
  doubling d = {.v = v, .s = s, .pairs = pairs};
  d.s2 = min_size(s, v->n - (pairs - 1) * 2 * s - s);
  d.divisor = scl_block_part(v->t, low, low, s, s);
  d.x = scl_block_part(v->x, high, low, s, s);
  scl_cl_product p = {.alpha = -1.0, .batch = pairs};
  p.a = scl_block_part(v->x, high, high, s, s);
  p.view_a = v->lower ? SCL_LOWER : SCL_UPPER;
  p.b = scl_block_part(v->t, high, low, s, s);
  p.c = d.x;
  p.step_a = p.step_c = 2 * s * (v->x.ld + 1);
  p.step_b = 2 * s * (v->t.ld + 1);
  p.m_last = p.k_last = v->lower ? d.s2 : s;
  p.n_last = v->lower ? s : d.s2;
  SCL_TRY(scl_cl_product_in(v->op, &p));
  return divide(&d, 0, s);
}

/* The inverses of the leaves; unless `given`, dst is made the identity first. */
static scl_status invert_leaves(const inversion *v, bool given) {
  size_t n = v->n, order = min_size(n, v->leaf), blocks = (n + v->leaf - 1) / v->leaf;
  size_t last = n - (blocks - 1) * v->leaf;
  leaf_batch leaves = {.stride = v->leaf, .batch = blocks, .rows = order, .identity = !given};
  leaves.rows_last = leaves.n_last = last;
  leaves.b = scl_block_part(v->x, 0, 0, order, order);
  return divide_leaves(v, &leaves);
}

/* Packs the leaves where matrix instructions are to solve with them. */
static scl_status pack_leaves(inversion *v) {
  if (v->leaf != STRIPS_ORDER) return SCL_OK;
  SCL_TRY(scl_cl_strips_room(v->op, (v->n + STRIPS_ORDER - 1) / STRIPS_ORDER, &v->packed));
  /* X T = B has T' on the left: transposed, and for a lower T in reversed order. */
  return scl_cl_strips_pack_in(v->op, true, v->lower, v->t, v->packed);
}

scl_status scl_cl_diagonal_inverses_in(scl_cl_op *op, bool lower, size_t block, scl_block t,
                                       scl_block dst) {
  inversion v = {.op = op, .lower = lower, .n = t.nrow, .leaf = leaf_of(op->cl), .t = t, .x = dst};
  scl_status status;
  SCL_GO(pack_leaves(&v));
  SCL_GO(invert_leaves(&v, false));
  for (size_t s = v.leaf; s < min_size(block, t.nrow); s *= 2) SCL_GO(double_blocks(&v, s));
done:
  scl_buffer_release(v.packed.buffer);
  return status;
}

/* ---- by products ----------------------------------------------------------------------------- */

/* From the inverses of diagonal blocks of order s to those of order 2 s. Pair p starts at row 2 s
 * p; the second block of the last pair has order s2 <= s. Of a lower T, Y = X22, Z = X11, D = T11
 * and the new block is X21; of an upper one Y = X11, Z = X22, D = T22, and it is X12. `work`,
 * `work_d`: room for s x s elements a pair. `beside`: a product to be done
 * in the same launch as the first, or NULL. */
static scl_status invert_pairs(scl_cl_op *op, bool lower, size_t s, scl_block t, scl_block dst,
                               scl_block work, scl_block work_d, bool correct,
                               const scl_cl_product *beside) {
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
  SCL_TRY(beside != NULL ? scl_cl_product_pair_in(op, beside, &p) : scl_cl_product_in(op, &p));

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

/* Elements that the pairs of a step need, at most. */
static size_t room_for_pairs(size_t n, size_t first, size_t end) {
  size_t most = 0;
  for (size_t s = first; s < end; s *= 2) {
    size_t need = (n - s + 2 * s - 1) / (2 * s) * s * s;
    if (need > most) most = need;
  }
  return most;
}

/* From leaves to blocks of order `block`, with `beside`, or NULL, in the last step. */
static scl_status double_by_products(const inversion *v, size_t block, bool correct,
                                     const scl_cl_product *beside) {
  size_t end = min_size(block, v->n), room = room_for_pairs(v->n, v->leaf, end);
  if (room == 0) return beside != NULL ? scl_cl_product_in(v->op, beside) : SCL_OK;
  scl_block work;
  SCL_TRY(scl_cl_temporary(v->op, room, correct ? 2 : 1, &work));
  scl_block second = correct ? scl_block_part(work, 0, 1, room, 1) : work;
  scl_status status = SCL_OK;
  for (size_t s = v->leaf; s < end && status == SCL_OK; s *= 2)
    status = invert_pairs(v->op, v->lower, s, v->t, v->x, work, second, correct,
                          2 * s >= end ? beside : NULL);
  scl_buffer_release(work.buffer);
  return status;
}

scl_status scl_cl_quick_inverses_in(scl_cl_op *op, size_t block, scl_block t, scl_block dst,
                                    scl_block src, scl_block copy, const scl_cl_product *beside) {
  inversion v = {.op = op, .lower = true, .n = t.nrow, .leaf = STRIPS_ORDER, .t = t, .x = dst};
  scl_status status;
  SCL_GO(scl_cl_strips_room(op, (t.nrow + STRIPS_ORDER - 1) / STRIPS_ORDER, &v.packed));
  SCL_GO(scl_cl_strips_pack_and_copy_in(op, true, true, t, v.packed, block, src, copy));
  SCL_GO(invert_leaves(&v, false));
  SCL_GO(double_by_products(&v, block, false, beside));
done:
  scl_buffer_release(v.packed.buffer);
  return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

scl_status scl_cl_trtri_in(scl_cl_op *op, scl_view view, scl_block t, scl_block dst) {
  inversion v = {.op = op, .lower = view == SCL_LOWER, .n = t.nrow, .t = t, .x = dst};
  v.leaf = TRIANGULAR_LEAF;
  if (t.nrow == 0) return SCL_OK;
  SCL_TRY(scl_cl_identity_in(op, 1.0, 1, dst));
  if (scl_cl_use_strips(op, v.n, true, dst)) return scl_cl_strips_invert_in(op, v.lower, t, dst);
  SCL_TRY(invert_leaves(&v, true));
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
