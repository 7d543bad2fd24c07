/* Inverses of the diagonal blocks of a triangular matrix, all at once.
 *
 * First those of the smallest blocks (leaves), by substitution from the identity. Then from blocks
 * of order s to blocks of order 2 s: of a lower T, X21 T11 = -X22 T21, of an upper one
 * X12 T22 = -X11 T12, again by substitution. (A product with the inverse X11 in its place would
 * leave a residual that grows with the condition of both halves.) Every step is one launch for all
 * blocks; only the last block may be smaller. */
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
  size_t local[2] = {TRIANGULAR_ITEMS, 1}, global[2] = {scl_round_up(l->rows, local[0]), l->batch};
  return scl_cl_launch(
      v->op, SCL_K_triangular_substitute, 2, global, local, "iibmllliillii", (int)n, (int)l->rows,
      d, l->b.buffer, (long long)l->b.offset, (long long)l->b.ld, 1LL, 1, (int)v->lower,
      (long long)(l->stride * (v->t.ld + 1)), (long long)step_b, (int)l->n_last, (int)l->rows_last);
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

static scl_status invert(const inversion *v, size_t block) {
  size_t n = v->n, order = min_size(n, v->leaf), blocks = (n + v->leaf - 1) / v->leaf;
  size_t last = n - (blocks - 1) * v->leaf;
  leaf_batch leaves = {.stride = v->leaf, .batch = blocks, .rows = order, .identity = true};
  leaves.rows_last = leaves.n_last = last;
  leaves.b = scl_block_part(v->x, 0, 0, order, order);
  SCL_TRY(divide_leaves(v, &leaves));
  for (size_t s = v->leaf; s < min_size(block, n); s *= 2) SCL_TRY(double_blocks(v, s));
  return SCL_OK;
}

scl_status scl_cl_diagonal_inverses_in(scl_cl_op *op, bool lower, size_t block, scl_block t,
                                       scl_block dst) {
  inversion v = {.op = op, .lower = lower, .n = t.nrow, .t = t, .x = dst};
  v.leaf = leaf_of(op->cl);
  if (v.leaf != STRIPS_ORDER) return invert(&v, block);
  SCL_TRY(scl_cl_strips_room(op, (t.nrow + STRIPS_ORDER - 1) / STRIPS_ORDER, &v.packed));
  /* X T = B has T' on the left: transposed, and for a lower T in reversed order. */
  scl_status status = scl_cl_strips_pack_in(op, true, lower, t, v.packed);
  if (status == SCL_OK) status = invert(&v, block);
  scl_buffer_release(v.packed.buffer);
  return status;
}
