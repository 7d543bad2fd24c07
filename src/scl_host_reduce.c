/* Reductions and checks of the host engine. */
#include "scl_host.h"

#include "../inst/kernels/port.h"

/* Sums are pairwise above runs of RUN elements: the error grows with log n, and the order depends
 * on the shape alone. LANES partial results a run hide the latency of the addition. */
enum { RUN = 128, LANES = 8 };

typedef double reduce_run(size_t n, const double *array_a, const double *array_b);
typedef double combine_two(double u, double v);

#define SCL_REDUCTION(NAME, name, arity, identity, map, combine)                                   \
  static double combine_##name(double u, double v) {                                               \
    return combine;                                                                                \
  }                                                                                                \
  static double run_##name(size_t n, const double *array_a, const double *array_b) {               \
    double lane[LANES];                                                                            \
    for (size_t l = 0; l < LANES; l++) lane[l] = identity;                                         \
    for (size_t i = 0; i < n; i++) {                                                               \
      const double a = array_a[i], b = arity == 2 ? array_b[i] : 0.0;                              \
      (void)b;                                                                                     \
      const double u = lane[i % LANES], v = map;                                                   \
      lane[i % LANES] = combine;                                                                   \
    }                                                                                              \
    for (size_t half = LANES / 2; half > 0; half /= 2) {                                           \
      for (size_t l = 0; l < half; l++) lane[l] = combine_##name(lane[l], lane[l + half]);         \
    }                                                                                              \
    return lane[0];                                                                                \
  }
#include "../inst/kernels/reduce.def"
#undef SCL_REDUCTION

static const struct {
  reduce_run *run;
  combine_two *combine;
  double identity;
  int arity;
} reductions[SCL_REDUCE_COUNT] = {
#define SCL_REDUCTION(NAME, name, arity, identity, map, combine)                                   \
  [SCL_REDUCE_##NAME] = {run_##name, combine_##name, identity, arity},
#include "../inst/kernels/reduce.def"
#undef SCL_REDUCTION
};

static double reduce_rows(scl_reduction op, size_t n, const double *a, const double *b) {
  if (n <= RUN) return reductions[op].run(n, a, b);
  size_t half = (n / 2 + RUN - 1) / RUN * RUN;
  return reductions[op].combine(reduce_rows(op, half, a, b),
                                reduce_rows(op, n - half, a + half, b == NULL ? b : b + half));
}

static double reduce_columns(scl_reduction op, size_t m, size_t n, const double *a, size_t ld_a,
                             const double *b, size_t ld_b) {
  if (n == 1) return reduce_rows(op, m, a, b);
  size_t half = n / 2;
  return reductions[op].combine(reduce_columns(op, m, half, a, ld_a, b, ld_b),
                                reduce_columns(op, m, n - half, a + half * ld_a, ld_a,
                                               b == NULL ? b : b + half * ld_b, ld_b));
}

scl_status scl_host_reduce(scl_context *ctx, scl_reduction op, scl_block a, scl_block b,
                           scl_block dst) {
  (void)ctx;
  size_t m = a.nrow, n = a.ncol;
  const bool two = reductions[op].arity == 2;
  double value = reductions[op].identity;
  if (m > 0 && n > 0) {
    if (a.ld == m && (!two || b.ld == m)) {
      m *= n;
      n = 1;
    }
    value = reduce_columns(op, m, n, scl_host_at(a), a.ld, two ? scl_host_at(b) : NULL, b.ld);
  }
  *scl_host_at(dst) = value;
  return SCL_OK;
}

/* ---- checks --------------------------------------------------------------------------------- */

/* 1-based, column-major; 0 for none. */
static int64_t find_nonfinite(scl_view view, scl_block a) {
  const double *p = scl_host_at(a);
  for (size_t j = 0; j < a.ncol; j++) {
    size_t from = view == SCL_LOWER || view == SCL_SYMMETRIC ? j : 0;
    size_t to = view == SCL_UPPER && j + 1 < a.nrow ? j + 1 : a.nrow;
    for (size_t i = from; i < to; i++) {
      if (!isfinite(p[i + j * a.ld])) return (int64_t)(i + j * a.nrow) + 1;
    }
  }
  return 0;
}

static int64_t find_asymmetric(double tol, scl_block a) {
  const double *p = scl_host_at(a);
  for (size_t j = 0; j < a.ncol; j++) {
    for (size_t i = j + 1; i < a.nrow; i++) {
      double u = p[i + j * a.ld], v = p[j + i * a.ld];
      bool equal = u == v || (isnan(u) && isnan(v));
      /* The bound of an infinity is infinite: only finite pairs may differ within it. */
      if (!equal && !(isfinite(u) && isfinite(v) && fabs(u - v) <= tol * fmax(fabs(u), fabs(v)))) {
        return (int64_t)(i + j * a.nrow) + 1;
      }
    }
  }
  return 0;
}

static int64_t find_zero_diagonal(scl_block a) {
  const double *p = scl_host_at(a);
  size_t n = a.nrow < a.ncol ? a.nrow : a.ncol;
  for (size_t i = 0; i < n; i++) {
    if (p[i * (a.ld + 1)] == 0.0) return (int64_t)i + 1;
  }
  return 0;
}

scl_status scl_host_check(scl_context *ctx, scl_check what, double tol, scl_view view, scl_block a,
                          scl_block dst) {
  (void)ctx;
  int64_t index = 0;
  switch (what) {
  case SCL_CHECK_FINITE:
    index = find_nonfinite(view, a);
    break;
  case SCL_CHECK_SYMMETRIC:
    index = find_asymmetric(tol, a);
    break;
  case SCL_CHECK_DIAGONAL:
    index = find_zero_diagonal(a);
    break;
  }
  double *found = scl_host_at(dst);
  for (size_t i = 0; i < dst.nrow; i++) found[i] = INFINITY;
  if (index > 0) found[0] = (double)index;
  return SCL_OK;
}
