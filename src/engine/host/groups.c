/* Sums over groups of elements, and cumulative sums, on the host. */
#include "engine/host/host.h"

scl_status scl_host_group_sums(scl_context *ctx, scl_block starts, scl_block order, size_t most,
                               scl_block src, scl_block dst) {
  const double *start = scl_host_at(starts), *s = scl_host_at(src);
  const double *element = order.buffer != NULL ? scl_host_at(order) : NULL;
  double *d = scl_host_at(dst);
  (void)ctx;
  (void)most;
  for (size_t k = 0; k < dst.nrow; k++) {
    const size_t end = (size_t)start[k + 1];
    double sum = 0.0;
    for (size_t t = (size_t)start[k]; t < end; t++) sum += s[(size_t)element[t]];
    d[k] = sum;
  }
  return SCL_OK;
}

scl_status scl_host_cumulate(scl_context *ctx, bool reverse, scl_block src, scl_block dst) {
  (void)ctx;
  for (size_t j = 0; j < dst.ncol; j++) {
    const double *s = scl_host_at(src) + j * src.ld;
    double *d = scl_host_at(dst) + j * dst.ld, sum = 0.0;
    for (size_t k = 0; k < dst.nrow; k++) {
      const size_t i = reverse ? dst.nrow - 1 - k : k;
      sum += s[i];
      d[i] = sum;
    }
  }
  return SCL_OK;
}
