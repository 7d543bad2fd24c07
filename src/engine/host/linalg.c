/* Products and factorisations of the host engine, with the BLAS and LAPACK that were set.
 *
 * Dimensions fit int: scl_mat_create() refuses larger ones, and the host does not pad columns. Some
 * implementations skip multiplications by an exact zero, and so lose the NaN of zero times
 * infinity; if only a special routine (trmm, syrk) does so, it is used for finite input only. */
#include "engine/host/host.h"

#include <math.h>

#include "engine/host/thin.h"

scl_host_blas scl_host_lib;

void scl_host_set_blas(const scl_host_blas *blas) {
  scl_host_lib = *blas;
}

static char letter(scl_trans trans) {
  return trans == SCL_TRANS ? 'T' : 'N';
}

/* Below this many result columns (rows) a special routine saves less than its checks cost. */
enum { SPECIAL_MIN = 8 };

static bool all_finite(scl_block a) {
  const double *p = scl_host_at(a);
  for (size_t j = 0; j < a.ncol; j++) {
    if (!scl_host_all_finite(a.nrow, p + j * a.ld)) return false;
  }
  return true;
}

/* ---- products ------------------------------------------------------------------------------- */

/* C = beta C, where C is not read when beta is 0. */
static scl_status scale_result(scl_context *ctx, double beta, scl_block c) {
  if (beta == 0.0) return scl_host_fill(ctx, 0.0, c);
  scl_host_scale(beta, c);
  return SCL_OK;
}

/* One column or one row. */
static scl_status product_vector(scl_context *ctx, double alpha, scl_trans trans_a, scl_block a,
                                 scl_trans trans_b, scl_block b, double beta, scl_block c) {
  if (c.ncol == 1 && alpha == 1.0 && beta == 0.0 && (!trans_b || b.ld == 1) &&
      scl_host_is_thin(a)) {
    scl_host_thin_product(trans_a, a, scl_host_at(b), scl_host_at(c));
    return SCL_OK;
  }
  /* Some versions of gemv multiply y by zero instead of clearing it. */
  if (beta == 0.0) SCL_TRY(scl_host_fill(ctx, 0.0, c));
  if (c.ncol == 1) {
    scl_host_lib.gemv(letter(trans_a), (int)a.nrow, (int)a.ncol, alpha, scl_host_at(a), (int)a.ld,
                      scl_host_at(b), trans_b ? (int)b.ld : 1, beta, scl_host_at(c), 1);
  } else {
    scl_host_lib.gemv(letter(trans_b ? SCL_NO_TRANS : SCL_TRANS), (int)b.nrow, (int)b.ncol, alpha,
                      scl_host_at(b), (int)b.ld, scl_host_at(a), trans_a ? 1 : (int)a.ld, beta,
                      scl_host_at(c), (int)c.ld);
  }
  return SCL_OK;
}

/* Whether a triangular factor saves half of the work. */
static bool is_triangular_product(scl_block a, scl_view view_a, scl_block b, scl_view view_b) {
  bool left = view_a == SCL_LOWER || view_a == SCL_UPPER;
  if (!left && view_b != SCL_LOWER && view_b != SCL_UPPER) return false;
  return (left ? a.nrow == a.ncol : b.nrow == b.ncol) && all_finite(a) && all_finite(b);
}

static scl_status product_triangular(double alpha, scl_trans trans_a, scl_block a, scl_view view_a,
                                     scl_trans trans_b, scl_block b, scl_view view_b, scl_block c) {
  bool left = view_a == SCL_LOWER || view_a == SCL_UPPER;
  scl_block t = left ? a : b, other = left ? b : a;
  scl_trans trans_other = left ? trans_b : trans_a;
  scl_host_copy_raw(trans_other ? SCL_COPY_TRANSPOSED : SCL_COPY, c.nrow, c.ncol,
                    scl_host_at(other), other.ld, scl_host_at(c), c.ld);
  return scl_host_trmm_blocks(left ? SCL_LEFT : SCL_RIGHT, left ? view_a : view_b,
                              left ? trans_a : trans_b, alpha, t, c);
}

static scl_status product(scl_context *ctx, double alpha, scl_trans trans_a, scl_block a,
                          scl_view view_a, scl_trans trans_b, scl_block b, scl_view view_b,
                          double beta, scl_block c) {
  size_t k = trans_a ? a.nrow : a.ncol;
  if (c.nrow == 0 || c.ncol == 0) return SCL_OK;
  if (k == 0) return scale_result(ctx, beta, c);
  if (c.ncol == 1 && trans_a && !trans_b && scl_host_is_tall(a)) {
    return scl_host_tall_product(alpha, a, scl_host_at(b), beta, scl_host_at(c));
  }
  if (c.ncol == 1 || c.nrow == 1) {
    return product_vector(ctx, alpha, trans_a, a, trans_b, b, beta, c);
  }
  if (beta == 0.0 && c.nrow >= SPECIAL_MIN && c.ncol >= SPECIAL_MIN &&
      is_triangular_product(a, view_a, b, view_b)) {
    return product_triangular(alpha, trans_a, a, view_a, trans_b, b, view_b, c);
  }
  return scl_host_gemm_blocks(alpha, trans_a, a, trans_b, b, beta, c);
}

static bool same_block(scl_block a, scl_block b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.ld == b.ld && a.nrow == b.nrow &&
         a.ncol == b.ncol;
}

/* The lower half of C: syrk if A and B are one matrix, else by panels, whose diagonal blocks are
 * computed in full. */
static scl_status product_lower(scl_context *ctx, double alpha, scl_trans trans_a, scl_block a,
                                scl_trans trans_b, scl_block b, double beta, scl_block c) {
  enum { PANEL = 192 };
  size_t m = c.nrow, n = c.ncol < m ? c.ncol : m, k = trans_a ? a.nrow : a.ncol;
  if (k > 0 && n >= SPECIAL_MIN && trans_a != trans_b && same_block(a, b) && all_finite(a)) {
    return scl_host_syrk_blocks(trans_a, alpha, a, beta, scl_block_part(c, 0, 0, n, n));
  }
  for (size_t j = 0; j < n; j += PANEL) {
    size_t width = n - j < PANEL ? n - j : PANEL;
    scl_block rows =
        trans_a ? scl_block_part(a, 0, j, k, m - j) : scl_block_part(a, j, 0, m - j, k);
    scl_block columns =
        trans_b ? scl_block_part(b, j, 0, width, k) : scl_block_part(b, 0, j, k, width);
    SCL_TRY(product(ctx, alpha, trans_a, rows, SCL_GENERAL, trans_b, columns, SCL_GENERAL, beta,
                    scl_block_part(c, j, j, m - j, width)));
  }
  return SCL_OK;
}

scl_status scl_host_gemm(scl_context *ctx, double alpha, scl_trans trans_a, scl_block a,
                         scl_view view_a, scl_trans trans_b, scl_block b, scl_view view_b,
                         double beta, scl_block c, scl_region region) {
  if (region == SCL_ALL) {
    return product(ctx, alpha, trans_a, a, view_a, trans_b, b, view_b, beta, c);
  }
  SCL_TRY(product_lower(ctx, alpha, trans_a, a, trans_b, b, beta, c));
  if (region == SCL_MIRRORED) scl_host_mirror(c);
  return SCL_OK;
}

/* ---- factorisations ------------------------------------------------------------------------- */

scl_status scl_host_potrf(scl_context *ctx, scl_block a, scl_block info) {
  (void)ctx;
  double *p = scl_host_at(a);
  int order = 0;
  if (a.nrow > 0) {
    SCL_TRY(scl_host_potrf_blocks(a, &order));
    /* A NaN is not less than or equal to zero: some versions accept it as a pivot. */
    int done = order > 0 ? order - 1 : (int)a.nrow;
    for (int i = 0; i < done; i++) {
      if (isnan(p[(size_t)i * (a.ld + 1)])) {
        order = i + 1;
        break;
      }
    }
  }
  *scl_host_at(info) = order;
  return SCL_OK;
}

scl_status scl_host_potrf_copy(scl_context *ctx, scl_block a, scl_block l, scl_block info) {
  if (a.nrow > 0) SCL_TRY(scl_host_copy(ctx, SCL_COPY_LOWER, a, l));
  return scl_host_potrf(ctx, l, info);
}

scl_status scl_host_transpose_lower(scl_context *ctx, scl_block a) {
  scl_host_mirror(a);
  return scl_host_copy(ctx, SCL_COPY_UPPER, a, a);
}

scl_status scl_host_trsm(scl_context *ctx, scl_side side, scl_view view, scl_trans trans,
                         scl_block t, scl_block b) {
  (void)ctx;
  if (b.nrow == 0 || b.ncol == 0) return SCL_OK;
  return scl_host_trsm_blocks(side, view, trans, 1.0, t, b);
}

scl_status scl_host_trtri(scl_context *ctx, scl_view view, scl_block t, scl_block dst) {
  if (t.nrow == 0) return SCL_OK;
  SCL_TRY(scl_host_copy(ctx, view == SCL_UPPER ? SCL_COPY_UPPER : SCL_COPY_LOWER, t, dst));
  int info = 0;
  SCL_TRY(scl_host_trtri_blocks(view, dst, &info));
  if (info != 0) return scl_fail_index(SCL_E_SINGULAR, info, "diagonal element %d is zero", info);
  return SCL_OK;
}

scl_status scl_host_potri(scl_context *ctx, scl_block l, scl_block dst) {
  if (l.nrow == 0) return SCL_OK;
  if (!same_block(l, dst)) SCL_TRY(scl_host_copy(ctx, SCL_COPY_LOWER, l, dst));
  int info = 0;
  SCL_TRY(scl_host_potri_blocks(dst, &info));
  if (info != 0) return scl_fail_index(SCL_E_SINGULAR, info, "diagonal element %d is zero", info);
  scl_host_mirror(dst);
  return SCL_OK;
}

/* S = 1/2 L^-T (P + P') L^-1, where P is the lower triangle of L' dF/dL with its diagonal halved.
 */
scl_status scl_host_potrf_adjoint_leaf(scl_context *ctx, scl_block l, scl_block s) {
  size_t n = s.nrow;
  if (n == 0) return SCL_OK;
  scl_block w;
  SCL_TRY(scl_block_create(ctx, n, n, &w));
  double *pl = scl_host_at(l), *pw = scl_host_at(w), *ps = scl_host_at(s);
  scl_host_copy_raw(SCL_COPY_LOWER, n, n, ps, s.ld, pw, w.ld);
  scl_host_lib.trmm('L', 'L', 'T', (int)n, (int)n, 1.0, pl, (int)l.ld, pw, (int)w.ld);
  scl_host_mirror(w);
  scl_host_lib.trsm('L', 'L', 'T', (int)n, (int)n, 0.5, pl, (int)l.ld, pw, (int)w.ld);
  scl_host_lib.trsm('R', 'L', 'N', (int)n, (int)n, 1.0, pl, (int)l.ld, pw, (int)w.ld);
  /* The two triangles differ by rounding only; their mean is exactly symmetric. */
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      double mean = 0.5 * (pw[i + j * w.ld] + pw[j + i * w.ld]);
      ps[i + j * s.ld] = mean;
      ps[j + i * s.ld] = mean;
    }
  }
  scl_buffer_release(w.buffer);
  return SCL_OK;
}
