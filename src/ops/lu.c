/* Factors of general square matrices, for compiled functions: rows of ops/operations.def.
 *
 * A factor is a column of n (n + 1) numbers that only LU_SOLVE reads: an LU decomposition, or on an
 * engine without one the inverse. A singular matrix is no failure: log |det| is -Inf, and solutions
 * are not finite. */
#include <math.h>
#include <stdlib.h>

#include "base/context.h"
#include "engine/pass/batch.h"
#include "ops/operation.h"
#include "ops/table.h"

/* ---- engines without LU ---------------------------------------------------------------------- */

/* The inverse and the determinant of one small matrix, as a batch of one. */
static scl_status small_inverse(scl_context *ctx, scl_block a, scl_block factor, scl_block det) {
  const size_t n = a.nrow;
  bool written;
  scl_batch_pass pass = {
      .op = SCL_BATCH_INVERSE, .n = n, .batch = 1, .a = {a, n * n}, .out = {factor, n * n}};
  SCL_TRY(ctx->engine->batch(ctx, &pass, &written));
  pass.op = SCL_BATCH_DET;
  pass.logarithm = true;
  pass.out = (scl_batch_operand){det, 1};
  return ctx->engine->batch(ctx, &pass, &written);
}

/* On the host engine: `numbers` has the matrix, and gets its inverse, then the determinant. */
static scl_status invert_on_host(size_t n, double *numbers) {
  scl_context *host = scl_context_complete();
  const size_t count = n * (n + 1);
  scl_block a = {.buffer = NULL}, factor = {.buffer = NULL}, det = {.buffer = NULL};
  scl_status status;
  SCL_GO(scl_block_create(host, n, n, &a));
  SCL_GO(scl_block_create(host, count, 1, &factor));
  SCL_GO(scl_block_create(host, 2, 1, &det));
  SCL_GO(host->engine->upload(host, SCL_GENERAL, numbers, n, a));
  SCL_GO(host->engine->lu(host, a, factor, det));
  SCL_GO(host->engine->identity(host, 1.0, 1, a));
  SCL_GO(host->engine->lu_solve(host, SCL_NO_TRANS, factor, a));
  SCL_GO(scl_read_block(host, a, SCL_WAIT_WRITES, numbers));
  SCL_GO(scl_read_block(host, det, SCL_WAIT_WRITES, numbers + n * n));
done:
  if (a.buffer != NULL) scl_buffer_release(a.buffer);
  if (factor.buffer != NULL) scl_buffer_release(factor.buffer);
  if (det.buffer != NULL) scl_buffer_release(det.buffer);
  return status;
}

/* The inverse of a large matrix, computed on the host. Waits. */
static scl_status large_inverse(scl_context *ctx, scl_block a, scl_block factor, scl_block det) {
  const size_t n = a.nrow, count = n * n + 2;
  double *numbers = malloc(count * sizeof *numbers);
  scl_status status;
  if (numbers == NULL) return scl_fail_memory(count * sizeof *numbers, 0, "an inverse");
  SCL_GO(scl_read_block(ctx, a, SCL_WAIT_WRITES, numbers));
  SCL_GO(invert_on_host(n, numbers));
  SCL_GO(ctx->engine->upload(ctx, SCL_GENERAL, numbers, n * n,
                             scl_block_part(factor, 0, 0, n * n, 1)));
  SCL_GO(ctx->engine->upload(ctx, SCL_GENERAL, numbers + n * n, 2, det));
done:
  free(numbers);
  return status;
}

/* ---- factors --------------------------------------------------------------------------------- */

scl_status scl_lu_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                      scl_block dst) {
  const size_t length = dst.nrow - 2;
  const scl_block a = operand[0], factor = scl_block_part(dst, 0, 0, length, 1);
  const scl_block det = scl_block_part(dst, length, 0, 2, 1);
  (void)call;
  if (a.nrow == 0) { /* the determinant is 1 */
    SCL_TRY(ctx->engine->fill(ctx, 0.0, scl_block_part(det, 0, 0, 1, 1)));
    return ctx->engine->fill(ctx, 1.0, scl_block_part(det, 1, 0, 1, 1));
  }
  if (ctx->engine->lu != NULL) return ctx->engine->lu(ctx, a, factor, det);
  return a.nrow <= SCL_BATCH_ORDER ? small_inverse(ctx, a, factor, det)
                                   : large_inverse(ctx, a, factor, det);
}

scl_status scl_lu_solve_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                            scl_block dst) {
  const scl_trans trans = scl_call_flag(call, 0) ? SCL_TRANS : SCL_NO_TRANS;
  const scl_block factor = scl_block_part(operand[0], 0, 0, operand[0].nrow - 2, 1);
  const size_t n = dst.nrow;
  if (ctx->engine->lu_solve != NULL) {
    SCL_TRY(ctx->engine->copy(ctx, SCL_COPY, operand[1], dst));
    return ctx->engine->lu_solve(ctx, trans, factor, dst);
  }
  const scl_block inverse = {factor.buffer, factor.offset, n, n, n, SCL_F64};
  return ctx->engine->gemm(ctx, 1.0, trans, inverse, SCL_GENERAL, SCL_NO_TRANS, operand[1],
                           SCL_GENERAL, 0.0, dst, SCL_ALL);
}
