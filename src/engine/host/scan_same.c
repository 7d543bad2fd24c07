#include "engine/host/scan_same.h"

#include <string.h>

#include "engine/host/host.h"

size_t scl_scan_same(const scl_scan_pass *pass, size_t t, size_t first, size_t lanes) {
  const scl_scan_shape *s = &pass->code->shape;
  size_t same = pass->steps - t - 1;
  for (int k = s->ports[SCL_SCAN_STATE]; k < scl_scan_first(s, SCL_SCAN_FIXED); k++) {
    const scl_scan_port *x = &s->port[k];
    const size_t begin = x->shared ? 0 : first * x->length;
    const size_t numbers = x->length * (x->shared ? 1 : lanes);
    for (size_t i = begin; i < begin + numbers; i++) {
      const double *from = scl_host_at(pass->input[k]) + pass->steps * i;
      const double *at = pass->reverse ? from + pass->steps - 1 - t : from + t;
      size_t n = 0;
      while (n < same && memcmp(pass->reverse ? at - n - 1 : at + n + 1, at, sizeof *at) == 0) n++;
      same = n;
    }
  }
  return same;
}
