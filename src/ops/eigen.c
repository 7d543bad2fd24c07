/* Eigenvalues and eigenvectors of symmetric matrices: a row of ops/operations.def. Engines without
 * them have them computed on the host. A matrix without eigenvalues, which is not finite, is no
 * failure: they are NaN. */
#include <stdlib.h>

#include "base/context.h"
#include "ops/operation.h"

scl_status scl_eigen_rule(const scl_call *call, scl_shape *out) {
  const size_t n = call->operand[0].shape.nrow;
  SCL_TRY(scl_call_square(call, 0, "a"));
  *out = (scl_shape){n, n + 1, SCL_GENERAL};
  return SCL_OK;
}

/* `numbers`, n x n and room for n more: the matrix, in whose place come vectors and values. */
static scl_status eigen_on_host(size_t n, double *numbers) {
  scl_context *host = scl_context_complete();
  scl_block all;
  scl_status status;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j + 1; i < n; i++) {
      double *lower = &numbers[i + j * n], *upper = &numbers[j + i * n];
      *lower = *upper = 0.5 * *lower + 0.5 * *upper;
    }
  }
  SCL_TRY(scl_block_create(host, n, n + 1, &all));
  SCL_GO(host->engine->upload(host, SCL_GENERAL, numbers, n, scl_block_part(all, 0, 0, n, n)));
  SCL_GO(
      host->engine->eigen(host, scl_block_part(all, 0, 0, n, n), scl_block_part(all, 0, n, n, 1)));
  SCL_GO(scl_read_block(host, all, SCL_WAIT_WRITES, numbers));
done:
  scl_buffer_release(all.buffer);
  return status;
}

scl_status scl_eigen_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                         scl_block dst) {
  const size_t n = dst.nrow, bytes = n * (n + 1) * sizeof(double);
  scl_status status;
  (void)call;
  if (n == 0) return SCL_OK;
  double *numbers = malloc(bytes);
  if (numbers == NULL) return scl_fail_memory(bytes, 0, "eigenvalues");
  SCL_GO(scl_read_block(ctx, operand[0], SCL_WAIT_WRITES, numbers));
  SCL_GO(eigen_on_host(n, numbers));
  SCL_GO(ctx->engine->upload(ctx, SCL_GENERAL, numbers, n, dst));
done:
  free(numbers);
  return status;
}
