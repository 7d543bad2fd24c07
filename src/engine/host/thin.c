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

/* Eight columns at a time, so that sums are read and written less often and additions to eight sums
 * hide each other's latency; the remaining ones one by one. */
enum { SIDE = 8, LEFT_SIDE = 4 };
#ifdef __clang__
#define UNROLLED
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

#define DEFINE_PRODUCTS(width, target, lanes)                                                      \
  target static void add_##width(size_t n, size_t columns, const double *x, size_t ld,             \
                                 const double *weight, double *to) {                               \
    enum { W = sizeof(lanes) / sizeof(double) };                                                   \
    size_t l = 0;                                                                                  \
    for (; l + SIDE <= columns; l += SIDE) {                                                       \
      const double *a = x + l * ld;                                                                \
      double w[SIDE]; /* else read again after each store */                                       \
      UNROLLED for (size_t c = 0; c < SIDE; c++) w[c] = weight[l + c];                             \
      size_t k = 0;                                                                                \
      for (; k + W <= n; k += W) {                                                                 \
        lanes sum = *(const lanes *)(to + k);                                                      \
        UNROLLED for (size_t c = 0; c < SIDE; c++) {                                               \
          sum += *(const lanes *)(a + c * ld + k) * w[c];                                          \
        }                                                                                          \
        *(lanes *)(to + k) = sum;                                                                  \
      }                                                                                            \
      for (; k < n; k++) {                                                                         \
        for (size_t c = 0; c < SIDE; c++) to[k] += a[c * ld + k] * w[c];                           \
      }                                                                                            \
    }                                                                                              \
    for (; l < columns; l++) {                                                                     \
      const double *a = x + l * ld, u = weight[l];                                                 \
      size_t k = 0;                                                                                \
      for (; k + W <= n; k += W) *(lanes *)(to + k) += *(const lanes *)(a + k) * u;                \
      for (; k < n; k++) to[k] += a[k] * u;                                                        \
    }                                                                                              \
  }                                                                                                \
  target static void dots_##width(size_t n, size_t columns, const double *x, size_t ld,            \
                                  const double *r, double *to) {                                   \
    enum { W = sizeof(lanes) / sizeof(double) };                                                   \
    const size_t whole = n / W * W;                                                                \
    size_t l = 0;                                                                                  \
    for (; l + SIDE <= columns; l += SIDE) {                                                       \
      const double *a = x + l * ld;                                                                \
      lanes sum[SIDE] = {{0.0}};                                                                   \
      for (size_t k = 0; k < whole; k += W) {                                                      \
        const lanes v = *(const lanes *)(r + k);                                                   \
        UNROLLED for (size_t c = 0; c < SIDE; c++) sum[c] += *(const lanes *)(a + c * ld + k) * v; \
      }                                                                                            \
      for (size_t c = 0; c < SIDE; c++) {                                                          \
        double all = 0.0;                                                                          \
        UNROLLED for (size_t i = 0; i < W; i++) all += sum[c][i];                                  \
        for (size_t k = whole; k < n; k++) all += a[c * ld + k] * r[k];                            \
        to[l + c] += all;                                                                          \
      }                                                                                            \
    }                                                                                              \
    for (; l < columns; l++) {                                                                     \
      const double *a = x + l * ld;                                                                \
      lanes sum[LEFT_SIDE] = {{0.0}};                                                              \
      double all = 0.0;                                                                            \
      size_t k = 0;                                                                                \
      for (; k + LEFT_SIDE * W <= n; k += LEFT_SIDE * W) {                                         \
        UNROLLED for (size_t c = 0; c < LEFT_SIDE; c++) {                                          \
          sum[c] += *(const lanes *)(a + k + c * W) * *(const lanes *)(r + k + c * W);             \
        }                                                                                          \
      }                                                                                            \
      for (; k < whole; k += W) sum[0] += *(const lanes *)(a + k) * *(const lanes *)(r + k);       \
      const lanes total = (sum[0] + sum[1]) + (sum[2] + sum[3]);                                   \
      UNROLLED for (size_t i = 0; i < W; i++) all += total[i];                                     \
      for (; k < n; k++) all += a[k] * r[k];                                                       \
      to[l] += all;                                                                                \
    }                                                                                              \
  }

typedef double widest __attribute__((vector_size(64), aligned(8), may_alias));
#ifdef __clang__
#define WIDEST __attribute__((target("avx512f"), min_vector_width(512)))
#else
#define WIDEST __attribute__((target("avx512f,prefer-vector-width=512")))
#endif

DEFINE_PRODUCTS(wide, SCL_WIDE, scl_wide)
DEFINE_PRODUCTS(widest, WIDEST, widest)

static bool has_widest(void) {
  return scl_host_has_wide() && __builtin_cpu_supports("avx512f");
}

#else
#define add_wide add_plain
#define dots_wide dots_plain
#define add_widest add_plain
#define dots_widest dots_plain

static bool has_widest(void) {
  return false;
}

#endif

void scl_host_add_columns(size_t n, size_t columns, const double *x, size_t ld,
                          const double *weight, double *to) {
  (has_widest()          ? add_widest
   : scl_host_has_wide() ? add_wide
                         : add_plain)(n, columns, x, ld, weight, to);
}

void scl_host_add_dots(size_t n, size_t columns, const double *x, size_t ld, const double *r,
                       double *to) {
  (has_widest()          ? dots_widest
   : scl_host_has_wide() ? dots_wide
                         : dots_plain)(n, columns, x, ld, r, to);
}

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
