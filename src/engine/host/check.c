/* Checks of the host engine. */
#include "engine/host/host.h"

#include "kernels/include/port.h"

/* ---- checks --------------------------------------------------------------------------------- */

/* x - x is NaN for what is not finite. Four sums hide the time of an addition. */
bool scl_host_all_finite(size_t n, const double *x) {
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int k = 0; k < 4; k++) sum[k] += x[i + k] - x[i + k];
  }
  for (; i < n; i++) sum[0] += x[i] - x[i];
  return sum[0] + sum[1] + sum[2] + sum[3] == 0.0;
}

/* 1-based, column-major; 0 for none. */
static int64_t find_nonfinite(scl_view view, scl_block a) {
  const double *p = scl_host_at(a);
  for (size_t j = 0; j < a.ncol; j++) {
    size_t from = view == SCL_LOWER || view == SCL_SYMMETRIC ? j : 0;
    size_t to = view == SCL_UPPER && j + 1 < a.nrow ? j + 1 : a.nrow;
    if (scl_host_all_finite(to > from ? to - from : 0, p + from + j * a.ld)) continue;
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
