/* Structured copies and the like on the host. */
#include "engine/host/host.h"

#include "base/sizes.h"

#include <string.h>

/* ---- copies --------------------------------------------------------------------------------- */

/* Tiles of a transposition: both sides stay in the first-level cache. */
enum { TILE = 32 };

static void copy_general(size_t m, size_t n, const double *src, size_t ld_src, double *dst,
                         size_t ld_dst) {
  if (ld_src == m && ld_dst == m) {
    memcpy(dst, src, m * n * sizeof *dst);
    return;
  }
  for (size_t j = 0; j < n; j++) {
    memcpy(dst + j * ld_dst, src + j * ld_src, m * sizeof *dst);
  }
}

/* Elements of the tile at (i0, j0) of dst from the transposed tile of src. */
static void transpose_tile(size_t i0, size_t i1, size_t j0, size_t j1, const double *src,
                           size_t ld_src, double *dst, size_t ld_dst) {
  for (size_t j = j0; j < j1; j++) {
    for (size_t i = i0; i < i1; i++) dst[i + j * ld_dst] = src[j + i * ld_src];
  }
}

static void copy_transposed(size_t m, size_t n, const double *src, size_t ld_src, double *dst,
                            size_t ld_dst) {
  for (size_t j = 0; j < n; j += TILE) {
    for (size_t i = 0; i < m; i += TILE) {
      transpose_tile(i, scl_min(i + TILE, m), j, scl_min(j + TILE, n), src, ld_src, dst, ld_dst);
    }
  }
}

static void copy_triangle(bool lower, size_t m, size_t n, const double *src, size_t ld_src,
                          double *dst, size_t ld_dst) {
  for (size_t j = 0; j < n; j++) {
    const double *s = src + j * ld_src;
    double *d = dst + j * ld_dst;
    size_t from = lower ? scl_min(j, m) : 0, to = lower ? m : scl_min(j + 1, m);
    for (size_t i = 0; i < from; i++) d[i] = 0.0;
    if (to > from && d != s) memcpy(d + from, s + from, (to - from) * sizeof *d);
    for (size_t i = to; i < m; i++) d[i] = 0.0;
  }
}

/* One half of a square matrix from the other. */
static void mirror(bool from_lower, size_t n, double *a, size_t ld) {
  for (size_t j = 0; j < n; j += TILE) {
    size_t j1 = scl_min(j + TILE, n);
    for (size_t jj = j; jj < j1; jj++) {
      for (size_t i = jj + 1; i < j1; i++) {
        if (from_lower) {
          a[jj + i * ld] = a[i + jj * ld];
        } else {
          a[i + jj * ld] = a[jj + i * ld];
        }
      }
    }
    for (size_t i = j1; i < n; i += TILE) {
      size_t i1 = scl_min(i + TILE, n);
      if (from_lower) {
        transpose_tile(j, j1, i, i1, a, ld, a, ld);
      } else {
        transpose_tile(i, i1, j, j1, a, ld, a, ld);
      }
    }
  }
}

void scl_host_scale(double factor, scl_block a) {
  for (size_t j = 0; j < a.ncol && factor != 1.0; j++) {
    double *column = scl_host_at(a) + j * a.ld;
    for (size_t i = 0; i < a.nrow; i++) column[i] *= factor;
  }
}

void scl_host_mirror(scl_block a) {
  mirror(true, a.nrow, scl_host_at(a), a.ld);
}

void scl_host_copy_raw(scl_copy kind, size_t m, size_t n, const double *src, size_t ld_src,
                       double *dst, size_t ld_dst) {
  if (m == 0 || n == 0) return;
  bool from_lower = kind == SCL_COPY_LOWER || kind == SCL_COPY_MIRROR_LOWER;
  switch (kind) {
  case SCL_COPY:
    copy_general(m, n, src, ld_src, dst, ld_dst);
    break;
  case SCL_COPY_TRANSPOSED:
    copy_transposed(m, n, src, ld_src, dst, ld_dst);
    break;
  case SCL_COPY_LOWER:
  case SCL_COPY_UPPER:
    copy_triangle(from_lower, m, n, src, ld_src, dst, ld_dst);
    break;
  case SCL_COPY_MIRROR_LOWER:
  case SCL_COPY_MIRROR_UPPER:
    copy_triangle(from_lower, m, n, src, ld_src, dst, ld_dst);
    mirror(from_lower, n, dst, ld_dst);
    break;
  }
}

scl_status scl_host_copy(scl_context *ctx, scl_copy kind, scl_block src, scl_block dst) {
  (void)ctx;
  scl_host_copy_raw(kind, dst.nrow, dst.ncol, scl_host_at(src), src.ld, scl_host_at(dst), dst.ld);
  return SCL_OK;
}

/* ---- structure ------------------------------------------------------------------------------ */

scl_status scl_host_fill(scl_context *ctx, double value, scl_block dst) {
  (void)ctx;
  double *d = scl_host_at(dst);
  for (size_t j = 0; j < dst.ncol; j++) {
    for (size_t i = 0; i < dst.nrow; i++) d[i + j * dst.ld] = value;
  }
  return SCL_OK;
}

scl_status scl_host_identity(scl_context *ctx, double value, size_t batch, scl_block dst) {
  SCL_TRY(scl_host_fill(ctx, 0.0, dst));
  if (dst.nrow == 0 || dst.ncol == 0) return SCL_OK;
  double *d = scl_host_at(dst);
  size_t n = dst.ncol / batch;
  for (size_t j = 0; j < dst.ncol; j++) {
    if (j % n < dst.nrow) d[j % n + j * dst.ld] = value;
  }
  return SCL_OK;
}

scl_status scl_host_scale_diagonal(scl_context *ctx, scl_side side, scl_block d, scl_block a,
                                   scl_block dst) {
  (void)ctx;
  const double *scale = scl_host_at(d), *from = scl_host_at(a);
  double *to = scl_host_at(dst);
  for (size_t j = 0; j < dst.ncol; j++) {
    for (size_t i = 0; i < dst.nrow; i++) {
      to[i + j * dst.ld] = scale[side == SCL_LEFT ? i : j] * from[i + j * a.ld];
    }
  }
  return SCL_OK;
}

scl_status scl_host_add_diagonal(scl_context *ctx, double value, scl_block a) {
  (void)ctx;
  double *p = scl_host_at(a);
  for (size_t i = 0; i < scl_min(a.nrow, a.ncol); i++) p[i * (a.ld + 1)] += value;
  return SCL_OK;
}

scl_status scl_host_diagonal(scl_context *ctx, scl_block a, scl_block dst) {
  (void)ctx;
  const double *p = scl_host_at(a);
  double *d = scl_host_at(dst);
  for (size_t i = 0; i < dst.nrow; i++) d[i] = p[i * (a.ld + 1)];
  return SCL_OK;
}

scl_status scl_host_gather(scl_context *ctx, scl_block rows, scl_block columns, scl_block src,
                           scl_block dst) {
  (void)ctx;
  const double *row = scl_host_at(rows), *column = scl_host_at(columns), *s = scl_host_at(src);
  double *d = scl_host_at(dst);
  for (size_t j = 0; j < dst.ncol; j++) {
    const double *from = s + (column == NULL ? j : (size_t)column[j]) * src.ld;
    for (size_t i = 0; i < dst.nrow; i++) {
      d[i + j * dst.ld] = from[row == NULL ? i : (size_t)row[i]];
    }
  }
  return SCL_OK;
}
