/* LU factors of general matrices with row pivoting, by panels of LAPACK: between panels is a check
 * for interrupts, and most work is products. */
#include "engine/host/host.h"

#include <math.h>
#include <stdlib.h>

enum { PANEL = 256, COLUMNS = 192 }; /* between two checks for interrupts */

static int least(size_t a, size_t b) {
  return (int)(a < b ? a : b);
}

/* Exchanges rows `from` .. `to` - 1 of these columns as `pivot`, which counts from 1, says. */
static void exchange_rows(double *a, size_t ld, size_t columns, size_t from, size_t to,
                          const int *pivot) {
  for (size_t j = 0; j < columns; j++) {
    double *x = a + j * ld;
    for (size_t i = from; i < to; i++) {
      const size_t other = (size_t)pivot[i] - 1;
      const double kept = x[i];
      x[i] = x[other];
      x[other] = kept;
    }
  }
}

/* Updates the columns after a panel that begins at column `from`. */
static scl_status update_rest(scl_block a, size_t from, size_t width, double *unit) {
  const size_t n = a.nrow, to = from + width, rest = n - to;
  double *p = scl_host_at(a);
  for (size_t j = 0; j < width; j++) { /* trsm takes no unit diagonal for granted */
    for (size_t i = j; i < width; i++) {
      unit[i + j * width] = i == j ? 1.0 : p[from + i + (from + j) * a.ld];
    }
  }
  scl_host_lib.trsm('L', 'L', 'N', (int)width, (int)rest, 1.0, unit, (int)width,
                    p + from + to * a.ld, (int)a.ld);
  return scl_host_gemm_blocks(-1.0, SCL_NO_TRANS, scl_block_part(a, to, from, rest, width),
                              SCL_NO_TRANS, scl_block_part(a, from, to, width, rest), 1.0,
                              scl_block_part(a, to, to, rest, rest));
}

static scl_status factorize(scl_block a, int *pivot, double *unit) {
  const size_t n = a.nrow;
  double *p = scl_host_at(a);
  for (size_t from = 0; from < n; from += PANEL) {
    const size_t width = (size_t)least(n - from, PANEL), to = from + width;
    SCL_TRY(scl_poll());
    scl_host_lib.getrf((int)(n - from), (int)width, p + from * (a.ld + 1), (int)a.ld, pivot + from);
    for (size_t i = from; i < to; i++) pivot[i] += (int)from;
    exchange_rows(p, a.ld, from, from, to, pivot);
    if (to == n) break;
    exchange_rows(p + to * a.ld, a.ld, n - to, from, to, pivot);
    SCL_TRY(update_rest(a, from, width, unit));
  }
  return SCL_OK;
}

static void determinant(scl_block a, const int *pivot, double *det) {
  const double *p = scl_host_at(a);
  double logs = 0.0, sign = 1.0;
  for (size_t i = 0; i < a.nrow; i++) {
    const double u = p[i * (a.ld + 1)];
    logs += log(fabs(u));
    if ((u < 0.0) != (pivot[i] != (int)i + 1)) sign = -sign;
  }
  det[0] = logs;
  det[1] = sign;
}

scl_status scl_host_lu(scl_context *ctx, scl_block a, scl_block factor, scl_block det) {
  const size_t n = a.nrow;
  const scl_block lu = {factor.buffer, factor.offset, n, n, n, SCL_F64};
  double *pivots = scl_host_at(factor) + n * n;
  int *pivot = malloc(n * sizeof *pivot);
  double *unit = n > PANEL ? malloc((size_t)PANEL * PANEL * sizeof *unit) : NULL;
  scl_status status = scl_host_copy(ctx, SCL_COPY, a, lu);
  if (pivot == NULL || (n > PANEL && unit == NULL)) {
    status = scl_fail_memory((size_t)PANEL * PANEL * sizeof *unit, 0, "an LU factor");
  }
  if (status == SCL_OK) status = factorize(lu, pivot, unit);
  if (status == SCL_OK) {
    for (size_t i = 0; i < n; i++) pivots[i] = pivot[i];
    determinant(lu, pivot, scl_host_at(det));
  }
  free(pivot);
  free(unit);
  return status;
}

scl_status scl_host_lu_solve(scl_context *ctx, scl_trans trans, scl_block factor, scl_block b) {
  const size_t n = b.nrow;
  const double *lu = scl_host_at(factor), *pivots = lu + n * n;
  int *pivot = malloc(n * sizeof *pivot);
  scl_status status = SCL_OK;
  (void)ctx;
  if (pivot == NULL) return scl_fail_memory(n * sizeof *pivot, 0, "an LU factor");
  for (size_t i = 0; i < n; i++) pivot[i] = (int)pivots[i];
  for (size_t j = 0; j < b.ncol && status == SCL_OK; j += COLUMNS) {
    status = scl_poll();
    if (status != SCL_OK) break;
    scl_host_lib.getrs(trans == SCL_TRANS ? 'T' : 'N', (int)n, least(b.ncol - j, COLUMNS), lu,
                       (int)n, pivot, scl_host_at(b) + j * b.ld, (int)b.ld);
  }
  free(pivot);
  return status;
}
