/* The pool of a device with memory of its own: reuse of released memory, parts of slabs, memory
 * freed when it runs short. */
#include <stdlib.h>

#include "test.h"

#include "engine/cl/runtime/cl.h"
#include "driver.h"

static const scl_storage result;

/* Memory released on a device with its own memory is kept, reported, reused and freed. */
static void check_pool(scl_context *ctx) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  const bool was = cl->cpu;
  const size_t bytes = 1 << 19;
  scl_buffer *a = NULL, *b = NULL;
  cl->cpu = false;
  scl_device_trim(ctx);
  CHECK(scl_context_memory(ctx).kept == 0);
  REQUIRE_OK(scl_buffer_create(ctx, bytes, result, &a));
  cl_mem memory = ((scl_cl_buffer *)a)->memory;
  scl_buffer_release(a);
  CHECK(scl_context_memory(ctx).kept == bytes && scl_context_memory(ctx).live == 0);
  REQUIRE_OK(scl_buffer_create(ctx, bytes, result, &b));
  CHECK(((scl_cl_buffer *)b)->memory == memory && scl_context_memory(ctx).kept == 0);
  REQUIRE_OK(scl_buffer_create(ctx, 10, result, &a)); /* far too large for that */
  scl_buffer_release(b);
  REQUIRE_OK(scl_buffer_create(ctx, 20, result, &b));
  CHECK(((scl_cl_buffer *)b)->memory != memory);
  scl_buffer_release(a);
  scl_buffer_release(b);
  const uint64_t limit = ctx->memory.limit;
  ctx->memory.limit = bytes + 1000; /* what is kept makes room */
  REQUIRE_OK(scl_buffer_create(ctx, 900, result, &a));
  CHECK(scl_context_memory(ctx).kept >= bytes);
  REQUIRE_OK(scl_buffer_create(ctx, 5000, result, &b));
  CHECK(scl_context_memory(ctx).kept < bytes);
  ctx->memory.limit = limit;
  scl_buffer_release(a);
  scl_buffer_release(b);
  scl_device_trim(ctx);
  CHECK(scl_context_memory(ctx).kept == 0);
  cl->cpu = was;
}

/* Buffers of medium size are parts of a slab, which is freed with the last of them. */
static void check_slabs(scl_context *ctx) {
  enum { COUNT = 20 };
  scl_cl_context *cl = (scl_cl_context *)ctx;
  const bool was = cl->cpu;
  const uint64_t memory = cl->info.memory;
  const size_t slab = 32 << 20, n = 500000; /* eight in a slab */
  scl_mat *m[COUNT];
  cl->cpu = false;
  cl->info.memory = 256 * (uint64_t)slab;
  scl_device_trim(ctx);
  for (int i = 0; i < COUNT; i++) {
    REQUIRE_OK(scl_mat_create(ctx, n, 1, SCL_GENERAL, &m[i]));
    CHECK(((scl_cl_buffer *)m[i]->buffer)->slab != NULL);
    REQUIRE_OK(ctx->engine->fill(ctx, i, scl_mat_block(m[i])));
  }
  uint64_t kept = scl_context_memory(ctx).kept;
  CHECK(cl->slab_bytes == 3 * slab);
  CHECK(kept < 3 * slab && kept + scl_context_memory(ctx).live > 3 * slab - COUNT * 4096);
  for (int i = 0; i < COUNT; i++) { /* neighbours do not touch */
    double first, last;
    scl_block block = scl_mat_block(m[i]);
    CHECK_OK(ctx->engine->download(ctx, SCL_GENERAL, scl_block_part(block, 0, 0, 1, 1),
                                   SCL_WAIT_WRITES, &first, 1));
    CHECK_OK(ctx->engine->download(ctx, SCL_GENERAL, scl_block_part(block, block.nrow - 1, 0, 1, 1),
                                   SCL_WAIT_WRITES, &last, 1));
    CHECK(first == i && last == i);
  }
  for (int i = 0; i < COUNT; i++) scl_mat_release(m[i]);
  CHECK(scl_context_memory(ctx).kept == 3 * slab);
  REQUIRE_OK(scl_mat_create(ctx, n, 1, SCL_GENERAL, &m[0])); /* out of the pool */
  CHECK(cl->slab_bytes == 3 * slab);
  scl_device_trim(ctx);
  CHECK(cl->slab_bytes == slab && scl_context_memory(ctx).kept < slab);
  scl_mat_release(m[0]);
  scl_device_trim(ctx);
  CHECK(cl->slab_bytes == 0 && scl_context_memory(ctx).kept == 0);
  driver_install();
  driver_counts before = driver_counted();
  for (int call = 1; call <= 3; call++) { /* making a slab, its first write, the part */
    driver_fail(call, -4, false);
    REQUIRE_OK(scl_mat_create(ctx, n, 1, SCL_GENERAL, &m[0]));
    driver_fail(0, 0, false);
    CHECK(((scl_cl_buffer *)m[0]->buffer)->slab == NULL && cl->slab_bytes == 0);
    scl_mat_release(m[0]);
    scl_device_trim(ctx);
    CHECK(driver_is_clean(before) && scl_context_memory(ctx).kept == 0);
  }
  driver_remove();
  cl->info.memory = memory;
  cl->cpu = was;
}

/* A buffer that pending commands still use is reused after them. */
static void check_reuse(scl_context *ctx) {
  enum { N = 200, ROUNDS = 60 };
  scl_cl_context *cl = (scl_cl_context *)ctx;
  const bool was = cl->cpu;
  double *data = test_alloc(N * N * sizeof *data), *got = test_alloc(N * N * sizeof *got);
  scl_mat *kept[ROUNDS];
  cl->cpu = false;
  for (int round = 0; round < ROUNDS; round++) {
    scl_mat *a;
    for (int i = 0; i < N * N; i++) data[i] = round + i % 7;
    REQUIRE_OK(scl_mat_from_host(ctx, data, N, N, SCL_GENERAL, &a));
    REQUIRE_OK(scl_mat_create(ctx, N, N, SCL_GENERAL, &kept[round]));
    REQUIRE_OK(
        ctx->engine->copy(ctx, SCL_COPY_TRANSPOSED, scl_mat_block(a), scl_mat_block(kept[round])));
    scl_mat_release(a); /* the next upload may take its memory */
    if (round % 3 == 2) {
      scl_mat_release(kept[round - 1]);
      kept[round - 1] = NULL;
    }
  }
  for (int round = 0; round < ROUNDS; round++) {
    long wrong = 0;
    if (kept[round] == NULL) continue;
    CHECK_OK(scl_mat_to_host(kept[round], got));
    for (int i = 0; i < N * N; i++) wrong += got[i / N + i % N * N] != round + i % 7;
    CHECK(wrong == 0);
    scl_mat_release(kept[round]);
  }
  scl_device_trim(ctx);
  cl->cpu = was;
  FREE(data, got);
}

void test_pool(scl_context *ctx) {
  if (scl_context_is_host(ctx)) return;
  check_pool(ctx);
  check_slabs(ctx);
  check_reuse(ctx);
}
