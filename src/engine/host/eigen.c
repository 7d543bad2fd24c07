/* Eigenvalues and eigenvectors of symmetric matrices, by LAPACK. */
#include "engine/host/host.h"

#include <math.h>
#include <stdlib.h>

/* LAPACK may not end for NaN. */
static bool is_finite(scl_block a) {
  for (size_t j = 0; j < a.ncol; j++) {
    const double *x = (const double *)scl_host_at(a) + j * a.ld;
    for (size_t i = 0; i < a.nrow; i++) {
      if (!isfinite(x[i])) return false;
    }
  }
  return true;
}

scl_status scl_host_eigen(scl_context *ctx, scl_block a, scl_block values) {
  const size_t n = a.nrow, room = 34 * n;
  bool done = false;
  if (is_finite(a)) {
    double *work = malloc(room * sizeof *work);
    if (work == NULL) return scl_fail_memory(room * sizeof *work, 0, "eigenvalues");
    done = scl_host_lib.syev('V', 'L', (int)n, scl_host_at(a), (int)a.ld, scl_host_at(values), work,
                             (int)room) == 0;
    free(work);
  }
  if (done) return SCL_OK;
  SCL_TRY(scl_host_fill(ctx, NAN, a));
  return scl_host_fill(ctx, NAN, values);
}
