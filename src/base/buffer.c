/* Buffers: counting, limits, and garbage collections of the host language, which does not see the
 * memory behind its small handles. */
#include "base/engine.h"
#include "base/threads.h"

static long fail_after = -1;

void scl_buffer_fail_after(long n) {
  fail_after = n;
}

static scl_turn turn = ATOMIC_FLAG_INIT;

enum { COLLECT_AT_LEAST = 48 << 20, LARGE_AT_LEAST = 512 << 20, LARGE_SHARE = 32 };
enum { COLLECT_TIME_SHARE = 20 };

/* Most garbage is young: a collection of young objects is then enough, and takes a hundredth of the
 * time of a full one. Garbage that it leaves may be older, and counts as such.
 * SCL_E_INTERRUPT if the user stopped it: the operation may never poll. */
static scl_status collect(scl_context *ctx, bool all) {
  const uint64_t start = scl_clock_us(), *live = &ctx->memory.live;
  ctx->small_since_collect = ctx->large_since_collect = ctx->results_since_collect = 0;
  ctx->collections++;
  scl_status status = SCL_OK;
  if (!all) {
    status = scl_collect_garbage(false);
    const uint64_t most = ctx->live_then > COLLECT_AT_LEAST ? ctx->live_then : COLLECT_AT_LEAST;
    all = status == SCL_OK && *live > ctx->live_then + most / 2;
  }
  if (all) status = scl_collect_garbage(true);
  if (all || *live < ctx->live_then) ctx->live_then = *live;
  ctx->left = *live - ctx->live_then;
  ctx->collected_at = scl_clock_us();
  ctx->collected = ctx->collected_at - start;
  return status;
}

/* The counter to which a new buffer of this size belongs. */
static uint64_t *count_for(scl_context *ctx, size_t bytes, scl_purpose purpose) {
  if (bytes <= SCL_SMALL_BUFFER && (ctx->spare == 0 || purpose == SCL_ORIGINAL)) {
    return &ctx->small_since_collect;
  }
  return ctx->spare == 0 ? &ctx->large_since_collect : &ctx->results_since_collect;
}

/* Whether enough was allocated since the last collection to justify another one. Small matrices are
 * counted together. Work on a large matrix takes longer than a collection, so large ones may first
 * fill a share of the device. With memory to spare a collection takes as long as many operations;
 * then only a share of the time is spent on collections, unless there may be too much garbage. */
static bool is_due(scl_context *ctx, size_t bytes, scl_purpose purpose) {
  if (purpose == SCL_TRANSIENT) return false;
  const scl_memory *memory = &ctx->memory;
  const uint64_t *count = count_for(ctx, bytes, purpose);
  uint64_t pace = memory->live / 2, since = *count + ctx->left + bytes;
  if (pace < COLLECT_AT_LEAST) pace = COLLECT_AT_LEAST;
  if (count == &ctx->small_since_collect) return since > pace;
  if (count == &ctx->results_since_collect) {
    if (since > ctx->spare) return true;
    return since > pace && scl_clock_us() - ctx->collected_at > COLLECT_TIME_SHARE * ctx->collected;
  }
  uint64_t share = memory->limit != 0 ? memory->limit / LARGE_SHARE : LARGE_AT_LEAST;
  return since > (pace < share ? share : pace);
}

static scl_status create_once(scl_context *ctx, size_t bytes, scl_storage storage, bool injected,
                              scl_buffer **out) {
  uint64_t limit = ctx->memory.limit;
  if (injected || (limit != 0 && (bytes > limit || ctx->memory.live > limit - bytes))) {
    return scl_fail_memory(bytes, limit, "a matrix");
  }
  return ctx->engine->buffer_create(ctx, bytes, storage, out);
}

static void count_buffer(scl_context *ctx, size_t bytes, scl_purpose purpose, scl_buffer *buffer) {
  scl_memory *memory = &ctx->memory;
  buffer->ctx = ctx;
  buffer->refs = 1;
  buffer->bytes = bytes;
  buffer->counted = true;
  memory->live += bytes;
  memory->buffers++;
  if (memory->live > memory->peak) memory->peak = memory->live;
  buffer->collection = ctx->collections;
  buffer->since_collect = purpose != SCL_TRANSIENT ? count_for(ctx, bytes, purpose) : NULL;
  if (buffer->since_collect != NULL) *buffer->since_collect += bytes;
}

static scl_status create(scl_context *ctx, size_t bytes, scl_storage storage, scl_buffer **out) {
  SCL_TRY(scl_context_check(ctx));
  const scl_memory *memory = &ctx->memory;
  if (memory->largest != 0 && bytes > memory->largest) {
    return scl_fail_memory(bytes, memory->largest, "one matrix");
  }
  bool injected = fail_after > 0 && --fail_after == 0;
  if (is_due(ctx, bytes, storage.purpose)) SCL_TRY(collect(ctx, false));

  scl_buffer *buffer = NULL;
  scl_status status = create_once(ctx, bytes, storage, injected, &buffer);
  if (status == SCL_E_MEMORY) {
    SCL_TRY(collect(ctx, true));
    /* Pending work may still use a released buffer. */
    SCL_TRY(ctx->engine->finish(ctx));
    status = create_once(ctx, bytes, storage, injected, &buffer);
  }
  if (status != SCL_OK) return status;
  count_buffer(ctx, bytes, storage.purpose, buffer);
  *out = buffer;
  return SCL_OK;
}

scl_status scl_buffer_create(scl_context *ctx, size_t bytes, scl_storage storage,
                             scl_buffer **out) {
  if (bytes == 0) {
    *out = NULL;
    return SCL_OK;
  }
  scl_turn_take(&turn);
  const scl_status status = create(ctx, bytes, storage, out);
  scl_turn_end(&turn);
  return status;
}

scl_buffer *scl_buffer_retain(scl_buffer *buffer) {
  scl_turn_take(&turn);
  if (buffer != NULL) buffer->refs++;
  scl_turn_end(&turn);
  return buffer;
}

static void release(scl_buffer *buffer) {
  if (--buffer->refs > 0) return;
  scl_context *ctx = buffer->ctx;
  if (buffer->counted) {
    ctx->memory.live -= buffer->bytes;
    ctx->memory.buffers--;
    /* Released memory is not garbage. */
    if (buffer->since_collect != NULL && buffer->collection == ctx->collections &&
        *buffer->since_collect >= buffer->bytes) {
      *buffer->since_collect -= buffer->bytes;
    }
  }
  /* A forked child must not call the driver: the memory is freed with the process. */
  if (ctx->owner != 0 && ctx->owner != scl_process_id()) return;
  ctx->engine->buffer_destroy(buffer);
}

void scl_buffer_release(scl_buffer *buffer) {
  if (buffer == NULL) return;
  scl_turn_take(&turn);
  release(buffer);
  scl_turn_end(&turn);
}
