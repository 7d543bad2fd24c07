/* Long work for BLAS and LAPACK in blocks, with a check for interrupts before each: the largest
 * side is halved until a block is small enough for one call. Triangular matrices are halved as T =
 * [T11 0; T21 T22]  (or with T12 above) so that all work but that of the diagonal blocks is
 * products. Each element is the same sum as in one call, taken in blocks; which blocks depends on
 * the sizes only. */
#include "engine/host/host.h"

#include "base/sizes.h"
#include "base/threads.h"

/* Operations of one call: about a quarter of a second of one core, and large enough that a product
 * of blocks is as fast as the whole product. Many cores need larger blocks. */
static _Atomic double most_work;
enum { ALIGN = 192 }; /* a multiple of the block sizes of BLAS kernels */

void scl_host_set_work(double operations) {
  most_work = operations;
}

static double work_limit(void) {
  if (most_work == 0.0) most_work = scl_usual_threads() < 8 ? 2e9 : 8e9;
  return most_work;
}

/* The first half of n, or 0 if n is not divided. */
static size_t half(size_t n) {
  size_t first = scl_round_up(n / 2, ALIGN);
  return first < n ? first : 0;
}

static char letter(scl_trans trans) {
  return trans == SCL_TRANS ? 'T' : 'N';
}

static char triangle(scl_view view) {
  return view == SCL_UPPER ? 'U' : 'L';
}

/* Rows i .. i + m - 1 and columns j .. j + n - 1 of op(a). */
static scl_block op_part(scl_block a, scl_trans trans, size_t i, size_t j, size_t m, size_t n) {
  return trans ? scl_block_part(a, j, i, n, m) : scl_block_part(a, i, j, m, n);
}

/* ---- products ------------------------------------------------------------------------------- */

scl_status scl_host_gemm_blocks(double alpha, scl_trans trans_a, scl_block a, scl_trans trans_b,
                                scl_block b, double beta, scl_block c) {
  const size_t m = c.nrow, n = c.ncol, k = trans_a ? a.nrow : a.ncol;
  const size_t longest = m >= n && m >= k ? m : n >= k ? n : k, first = half(longest);
  if (2.0 * (double)m * (double)n * (double)k <= work_limit() || first == 0) {
    SCL_TRY(scl_poll());
    scl_host_lib.gemm(letter(trans_a), letter(trans_b), (int)m, (int)n, (int)k, alpha,
                      scl_host_at(a), (int)a.ld, scl_host_at(b), (int)b.ld, beta, scl_host_at(c),
                      (int)c.ld);
    return SCL_OK;
  }
  const size_t rest = longest - first;
  for (int side = 0; side < 2; side++) {
    const size_t at = side == 0 ? 0 : first, size = side == 0 ? first : rest;
    if (longest == m) {
      SCL_TRY(scl_host_gemm_blocks(alpha, trans_a, op_part(a, trans_a, at, 0, size, k), trans_b, b,
                                   beta, scl_block_part(c, at, 0, size, n)));
    } else if (longest == n) {
      SCL_TRY(scl_host_gemm_blocks(alpha, trans_a, a, trans_b, op_part(b, trans_b, 0, at, k, size),
                                   beta, scl_block_part(c, 0, at, m, size)));
    } else {
      SCL_TRY(scl_host_gemm_blocks(alpha, trans_a, op_part(a, trans_a, 0, at, m, size), trans_b,
                                   op_part(b, trans_b, at, 0, size, n), side == 0 ? beta : 1.0, c));
    }
  }
  return SCL_OK;
}

scl_status scl_host_syrk_blocks(scl_trans trans, double alpha, scl_block a, double beta,
                                scl_block c) {
  const size_t n = c.nrow, k = trans ? a.nrow : a.ncol;
  const bool rows = n >= k;
  const size_t first = half(rows ? n : k), rest = (rows ? n : k) - first;
  if ((double)n * (double)n * (double)k <= work_limit() || first == 0) {
    SCL_TRY(scl_poll());
    scl_host_lib.syrk('L', letter(trans), (int)n, (int)k, alpha, scl_host_at(a), (int)a.ld, beta,
                      scl_host_at(c), (int)c.ld);
    return SCL_OK;
  }
  if (!rows) {
    SCL_TRY(scl_host_syrk_blocks(trans, alpha, op_part(a, trans, 0, 0, n, first), beta, c));
    return scl_host_syrk_blocks(trans, alpha, op_part(a, trans, 0, first, n, rest), 1.0, c);
  }
  scl_block above = op_part(a, trans, 0, 0, first, k), below = op_part(a, trans, first, 0, rest, k);
  SCL_TRY(scl_host_syrk_blocks(trans, alpha, above, beta, scl_block_part(c, 0, 0, first, first)));
  SCL_TRY(scl_host_gemm_blocks(alpha, trans, below, trans ? SCL_NO_TRANS : SCL_TRANS, above, beta,
                               scl_block_part(c, first, 0, rest, first)));
  return scl_host_syrk_blocks(trans, alpha, below, beta,
                              scl_block_part(c, first, first, rest, rest));
}

/* ---- triangular matrices -------------------------------------------------------------------- */

/* Both halves of a triangular matrix t and of b, on the side where t acts. `off` is the block of
 * op(t) that is not on its diagonal. */
typedef struct {
  scl_block t1, t2, off, b1, b2;
  scl_trans trans;
  bool left, lower; /* lower: op(t) is */
} halves;

static halves cut(scl_side side, scl_view view, scl_trans trans, scl_block t, scl_block b,
                  size_t first) {
  const size_t n = t.nrow, rest = n - first;
  const bool left = side == SCL_LEFT;
  halves h = {
      .trans = trans, .left = left, .lower = (view == SCL_LOWER) == (trans == SCL_NO_TRANS)};
  h.t1 = scl_block_part(t, 0, 0, first, first);
  h.t2 = scl_block_part(t, first, first, rest, rest);
  h.off = view == SCL_LOWER ? scl_block_part(t, first, 0, rest, first)
                            : scl_block_part(t, 0, first, first, rest);
  h.b1 = left ? scl_block_part(b, 0, 0, first, b.ncol) : scl_block_part(b, 0, 0, b.nrow, first);
  h.b2 =
      left ? scl_block_part(b, first, 0, rest, b.ncol) : scl_block_part(b, 0, first, b.nrow, rest);
  return h;
}

/* to = alpha op(off) from + to, or with op(off) on the right. */
static scl_status add_off(const halves *h, double alpha, scl_block from, scl_block to) {
  return h->left ? scl_host_gemm_blocks(alpha, h->trans, h->off, SCL_NO_TRANS, from, 1.0, to)
                 : scl_host_gemm_blocks(alpha, SCL_NO_TRANS, from, h->trans, h->off, 1.0, to);
}

/* The work of t on b, and the index where b is divided, whose other side is independent; 0:
 * nowhere. */
static double work_with(scl_block t, scl_block b) {
  return (double)t.nrow * (double)b.nrow * (double)b.ncol;
}

static size_t other_side(scl_side side, scl_block b) {
  return side == SCL_LEFT ? b.ncol : b.nrow;
}

static scl_block other_part(scl_side side, scl_block b, size_t at, size_t size) {
  return side == SCL_LEFT ? scl_block_part(b, 0, at, b.nrow, size)
                          : scl_block_part(b, at, 0, size, b.ncol);
}

scl_status scl_host_trsm_blocks(scl_side side, scl_view view, scl_trans trans, double alpha,
                                scl_block t, scl_block b) {
  const size_t other = other_side(side, b), first = half(t.nrow), split = half(other);
  const bool by_other = other >= t.nrow && split > 0;
  if (work_with(t, b) <= work_limit() || (first == 0 && split == 0)) {
    SCL_TRY(scl_poll());
    scl_host_lib.trsm(side == SCL_LEFT ? 'L' : 'R', triangle(view), letter(trans), (int)b.nrow,
                      (int)b.ncol, alpha, scl_host_at(t), (int)t.ld, scl_host_at(b), (int)b.ld);
    return SCL_OK;
  }
  if (by_other || first == 0) {
    SCL_TRY(scl_host_trsm_blocks(side, view, trans, alpha, t, other_part(side, b, 0, split)));
    return scl_host_trsm_blocks(side, view, trans, alpha, t,
                                other_part(side, b, split, other - split));
  }
  const halves h = cut(side, view, trans, t, b, first);
  const bool forward = h.lower == h.left; /* the unknowns of the first half come first */
  scl_block t1 = forward ? h.t1 : h.t2, t2 = forward ? h.t2 : h.t1;
  scl_block b1 = forward ? h.b1 : h.b2, b2 = forward ? h.b2 : h.b1;
  SCL_TRY(scl_host_trsm_blocks(side, view, trans, alpha, t1, b1));
  scl_host_scale(alpha, b2);
  SCL_TRY(add_off(&h, -1.0, b1, b2));
  return scl_host_trsm_blocks(side, view, trans, 1.0, t2, b2);
}

scl_status scl_host_trmm_blocks(scl_side side, scl_view view, scl_trans trans, double alpha,
                                scl_block t, scl_block b) {
  const size_t other = other_side(side, b), first = half(t.nrow), split = half(other);
  const bool by_other = other >= t.nrow && split > 0;
  if (work_with(t, b) <= work_limit() || (first == 0 && split == 0)) {
    SCL_TRY(scl_poll());
    scl_host_lib.trmm(side == SCL_LEFT ? 'L' : 'R', triangle(view), letter(trans), (int)b.nrow,
                      (int)b.ncol, alpha, scl_host_at(t), (int)t.ld, scl_host_at(b), (int)b.ld);
    return SCL_OK;
  }
  if (by_other || first == 0) {
    SCL_TRY(scl_host_trmm_blocks(side, view, trans, alpha, t, other_part(side, b, 0, split)));
    return scl_host_trmm_blocks(side, view, trans, alpha, t,
                                other_part(side, b, split, other - split));
  }
  const halves h = cut(side, view, trans, t, b, first);
  const bool second = h.lower == h.left; /* this half of the result needs both halves of b */
  scl_block t1 = second ? h.t2 : h.t1, t2 = second ? h.t1 : h.t2;
  scl_block b1 = second ? h.b2 : h.b1, b2 = second ? h.b1 : h.b2;
  SCL_TRY(scl_host_trmm_blocks(side, view, trans, alpha, t1, b1));
  SCL_TRY(add_off(&h, alpha, b2, b1));
  return scl_host_trmm_blocks(side, view, trans, alpha, t2, b2);
}

/* ---- factorisations ------------------------------------------------------------------------- */

scl_status scl_host_potrf_blocks(scl_block a, int *order) {
  const size_t n = a.nrow, first = half(n), rest = n - first;
  if ((double)n * (double)n * (double)n <= 3.0 * work_limit() || first == 0) {
    SCL_TRY(scl_poll());
    *order = scl_host_lib.potrf('L', (int)n, scl_host_at(a), (int)a.ld);
    return SCL_OK;
  }
  scl_block above = scl_block_part(a, 0, 0, first, first);
  scl_block left = scl_block_part(a, first, 0, rest, first);
  scl_block below = scl_block_part(a, first, first, rest, rest);
  SCL_TRY(scl_host_potrf_blocks(above, order));
  if (*order != 0) return SCL_OK;
  SCL_TRY(scl_host_trsm_blocks(SCL_RIGHT, SCL_LOWER, SCL_TRANS, 1.0, above, left));
  SCL_TRY(scl_host_syrk_blocks(SCL_NO_TRANS, -1.0, left, 1.0, below));
  SCL_TRY(scl_host_potrf_blocks(below, order));
  if (*order != 0) *order += (int)first;
  return SCL_OK;
}

scl_status scl_host_trtri_blocks(scl_view view, scl_block t, int *place) {
  const size_t n = t.nrow, first = half(n), rest = n - first;
  if ((double)n * (double)n * (double)n <= 3.0 * work_limit() || first == 0) {
    SCL_TRY(scl_poll());
    *place = scl_host_lib.trtri(triangle(view), (int)n, scl_host_at(t), (int)t.ld);
    return SCL_OK;
  }
  for (size_t i = 0; i < n; i++) {
    if (scl_host_at(t)[i * (t.ld + 1)] == 0.0) {
      *place = (int)i + 1;
      return SCL_OK;
    }
  }
  scl_block t1 = scl_block_part(t, 0, 0, first, first);
  scl_block t2 = scl_block_part(t, first, first, rest, rest);
  const bool lower = view == SCL_LOWER;
  scl_block off =
      lower ? scl_block_part(t, first, 0, rest, first) : scl_block_part(t, 0, first, first, rest);
  /* X = T^-1 satisfies X T = I block by block, as in LAPACK: from both sides by substitution its
   * residual would grow with the condition. */
  scl_block inverted = lower ? t2 : t1, kept = lower ? t1 : t2;
  SCL_TRY(scl_host_trtri_blocks(view, inverted, place));
  SCL_TRY(scl_host_trmm_blocks(SCL_LEFT, view, SCL_NO_TRANS, 1.0, inverted, off));
  SCL_TRY(scl_host_trsm_blocks(SCL_RIGHT, view, SCL_NO_TRANS, -1.0, kept, off));
  return scl_host_trtri_blocks(view, kept, place);
}

/* The lower half of X' X in the place of a lower triangular X. */
static scl_status lauum_blocks(scl_block x) {
  const size_t n = x.nrow, first = half(n), rest = n - first;
  if ((double)n * (double)n * (double)n <= 3.0 * work_limit() || first == 0) {
    SCL_TRY(scl_poll());
    scl_host_lib.lauum('L', (int)n, scl_host_at(x), (int)x.ld);
    return SCL_OK;
  }
  scl_block x1 = scl_block_part(x, 0, 0, first, first);
  scl_block x2 = scl_block_part(x, first, first, rest, rest);
  scl_block off = scl_block_part(x, first, 0, rest, first);
  SCL_TRY(lauum_blocks(x1));
  SCL_TRY(scl_host_syrk_blocks(SCL_TRANS, 1.0, off, 1.0, x1));
  SCL_TRY(scl_host_trmm_blocks(SCL_LEFT, SCL_LOWER, SCL_TRANS, 1.0, x2, off));
  return lauum_blocks(x2);
}

scl_status scl_host_potri_blocks(scl_block l, int *place) {
  SCL_TRY(scl_host_trtri_blocks(SCL_LOWER, l, place));
  return *place != 0 ? SCL_OK : lauum_blocks(l);
}
