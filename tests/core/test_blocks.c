/* Long work in blocks (engine/host/blocks.c): the suites of products and factorisations once more,
 * with blocks so small that all of it is divided; and interrupts, checked between blocks. */
#include <string.h>

#include "engine/host/host.h"
#include "linalg.h"

static int calls, stop_at;

static bool counting(void) {
  return ++calls == stop_at;
}

/* A factorisation, an inverse and a product of order n, interrupted at the k-th check. */
static scl_status work(scl_context *ctx, const double *x, size_t n, int k) {
  scl_block a, b, c, info;
  SCL_TRY(scl_block_create(ctx, n, n, &a));
  SCL_TRY(scl_block_create(ctx, n, n, &b));
  SCL_TRY(scl_block_create(ctx, n, n, &c));
  SCL_TRY(scl_block_create(ctx, 1, 1, &info));
  memcpy(scl_host_at(a), x, n * n * sizeof *x);
  calls = 0;
  stop_at = k;
  scl_status status = ctx->engine->potrf(ctx, a, info);
  if (status == SCL_OK) status = ctx->engine->potri(ctx, a, b);
  if (status == SCL_OK) {
    status = ctx->engine->gemm(ctx, 1.0, SCL_NO_TRANS, a, SCL_GENERAL, SCL_NO_TRANS, b, SCL_GENERAL,
                               0.0, c, SCL_ALL);
  }
  scl_buffer_release(a.buffer);
  scl_buffer_release(b.buffer);
  scl_buffer_release(c.buffer);
  scl_buffer_release(info.buffer);
  return status;
}

static void check_interrupts(scl_context *ctx) {
  enum { N = 600 };
  double *x = test_alloc(N * N * sizeof *x);
  for (size_t i = 0; i < N * N; i++) x[i] = i % (N + 1) == 0 ? N : test_random();
  scl_hooks_set(&(scl_hooks){.interrupted = counting});
  CHECK_OK(work(ctx, x, N, -1));
  const int all = calls;
  CHECK(all > 30);
  for (int k = 1; k <= all; k++) CHECK_STATUS(SCL_E_INTERRUPT, work(ctx, x, N, k));
  scl_hooks_set(&(scl_hooks){.interrupted = NULL});
  free(x);
}

void test_blocks(scl_context *ctx) {
  if (!scl_context_is_host(ctx)) return;
  scl_host_set_work(2e6);
  check_interrupts(ctx);
  scl_host_set_work(3e5);
  test_gemm(ctx);
  test_triangular(ctx);
  test_cholesky(ctx);
  test_chol_ops(ctx);
  scl_host_set_work(0);
}
