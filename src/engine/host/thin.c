/* Products of a vector and a matrix of few columns, of a size at which a call of the BLAS would
 * take longer than the product. Each column is read once, in order. */
#include "engine/host/thin.h"

#include <string.h>

#include "engine/host/wide.h"

enum { MOST_ELEMENTS = 16384 }; /* 128 KiB: more rows than columns of them stay in the cache */

static void add_plain(size_t n, size_t columns, const double *x, size_t ld, const double *weight,
                      double *to) {
  for (size_t l = 0; l < columns; l++) {
    for (size_t k = 0; k < n; k++) to[k] += x[l * ld + k] * weight[l];
  }
}

static void dots_plain(size_t n, size_t columns, const double *x, size_t ld, const double *r,
                       double *to) {
  for (size_t l = 0; l < columns; l++) {
    double even = 0.0, odd = 0.0;
    size_t k = 0;
    for (; k + 2 <= n; k += 2) {
      even += x[l * ld + k] * r[k];
      odd += x[l * ld + k + 1] * r[k + 1];
    }
    if (k < n) even += x[l * ld + k] * r[k];
    to[l] += even + odd;
  }
}

#ifdef SCL_WIDE

/* Four columns at a time, so that sums are read and written less often. */
SCL_WIDE static void add_wide(size_t n, size_t columns, const double *x, size_t ld,
                              const double *weight, double *to) {
  size_t l = 0;
  for (; l + 4 <= columns; l += 4) {
    const double *a = x + l * ld, *b = a + ld, *c = b + ld, *d = c + ld;
    const double u = weight[l], v = weight[l + 1], w = weight[l + 2], z = weight[l + 3];
    size_t k = 0;
    for (; k + SCL_WIDE_LANES <= n; k += SCL_WIDE_LANES) {
      const scl_wide sum = *(scl_wide *)(to + k) + *(const scl_wide *)(a + k) * u;
      *(scl_wide *)(to + k) =
          ((sum + *(const scl_wide *)(b + k) * v) + *(const scl_wide *)(c + k) * w) +
          *(const scl_wide *)(d + k) * z;
    }
    for (; k < n; k++) to[k] = (((to[k] + a[k] * u) + b[k] * v) + c[k] * w) + d[k] * z;
  }
  for (; l < columns; l++) {
    const double *a = x + l * ld, u = weight[l];
    size_t k = 0;
    for (; k + SCL_WIDE_LANES <= n; k += SCL_WIDE_LANES)
      *(scl_wide *)(to + k) += *(const scl_wide *)(a + k) * u;
    for (; k < n; k++) to[k] += a[k] * u;
  }
}

/* Four sums side by side hide the latency of an addition: of four columns, or of one. */
SCL_WIDE static void dots_wide(size_t n, size_t columns, const double *x, size_t ld,
                               const double *r, double *to) {
  enum { W = SCL_WIDE_LANES };
  size_t l = 0;
  for (; l + 4 <= columns; l += 4) {
    const double *a = x + l * ld, *b = a + ld, *c = b + ld, *d = c + ld;
    scl_wide sa = {0.0}, sb = {0.0}, sc = {0.0}, sd = {0.0};
    size_t k = 0;
    for (; k + W <= n; k += W) {
      const scl_wide v = *(const scl_wide *)(r + k);
      sa += *(const scl_wide *)(a + k) * v;
      sb += *(const scl_wide *)(b + k) * v;
      sc += *(const scl_wide *)(c + k) * v;
      sd += *(const scl_wide *)(d + k) * v;
    }
    double sum[4] = {(sa[0] + sa[1]) + (sa[2] + sa[3]), (sb[0] + sb[1]) + (sb[2] + sb[3]),
                     (sc[0] + sc[1]) + (sc[2] + sc[3]), (sd[0] + sd[1]) + (sd[2] + sd[3])};
    for (; k < n; k++) {
      sum[0] += a[k] * r[k];
      sum[1] += b[k] * r[k];
      sum[2] += c[k] * r[k];
      sum[3] += d[k] * r[k];
    }
    for (size_t i = 0; i < 4; i++) to[l + i] += sum[i];
  }
  for (; l < columns; l++) {
    const double *a = x + l * ld;
    scl_wide s[4] = {{0.0}, {0.0}, {0.0}, {0.0}};
    size_t k = 0;
    for (; k + 4 * W <= n; k += 4 * W) {
      s[0] += *(const scl_wide *)(a + k) * *(const scl_wide *)(r + k);
      s[1] += *(const scl_wide *)(a + k + W) * *(const scl_wide *)(r + k + W);
      s[2] += *(const scl_wide *)(a + k + 2 * W) * *(const scl_wide *)(r + k + 2 * W);
      s[3] += *(const scl_wide *)(a + k + 3 * W) * *(const scl_wide *)(r + k + 3 * W);
    }
    for (; k + W <= n; k += W) s[0] += *(const scl_wide *)(a + k) * *(const scl_wide *)(r + k);
    const scl_wide all = (s[0] + s[1]) + (s[2] + s[3]);
    double sum = (all[0] + all[1]) + (all[2] + all[3]);
    for (; k < n; k++) sum += a[k] * r[k];
    to[l] += sum;
  }
}

void scl_host_add_columns(size_t n, size_t columns, const double *x, size_t ld,
                          const double *weight, double *to) {
  (scl_host_has_wide() ? add_wide : add_plain)(n, columns, x, ld, weight, to);
}

void scl_host_add_dots(size_t n, size_t columns, const double *x, size_t ld, const double *r,
                       double *to) {
  (scl_host_has_wide() ? dots_wide : dots_plain)(n, columns, x, ld, r, to);
}

#else

void scl_host_add_columns(size_t n, size_t columns, const double *x, size_t ld,
                          const double *weight, double *to) {
  add_plain(n, columns, x, ld, weight, to);
}

void scl_host_add_dots(size_t n, size_t columns, const double *x, size_t ld, const double *r,
                       double *to) {
  dots_plain(n, columns, x, ld, r, to);
}

#endif

bool scl_host_is_thin(scl_block a) {
  return a.nrow * a.ncol <= MOST_ELEMENTS;
}

void scl_host_thin_product(scl_trans trans, scl_block a, const double *x, double *y) {
  const double *from = scl_host_at(a);
  memset(y, 0, (trans == SCL_TRANS ? a.ncol : a.nrow) * sizeof *y);
  if (trans == SCL_TRANS) {
    scl_host_add_dots(a.nrow, a.ncol, from, a.ld, x, y);
    return;
  }
  scl_host_add_columns(a.nrow, a.ncol, from, a.ld, x, y);
}
