/* Buffers of the device engine, and the pool of those that were released: making a buffer costs a
 * driver more than a short kernel.
 *
 * A buffer serves again when the commands that use it are complete. Of a temporary nobody keeps
 * count, but only commands of one queue, its home, have used it: it serves as a temporary of that
 * queue again at once. */
#include "scl_cl.h"

#include <stdlib.h>

#include "scl_cl_inside.h"

enum { POOL_MOST = 512 << 20, POOL_SHARE = 32 }; /* bytes; of the device's memory, one in so many */

static void drop(scl_cl_buffer *buffer) {
  /* The driver keeps the memory until the commands that use it are done. */
  scl_cl.clReleaseMemObject(buffer->memory);
  free(buffer);
}

/* On a CPU device memory is the host's, and its allocator is quick. */
static size_t pool_limit(const scl_cl_context *cl) {
  if (cl->cpu) return 0;
  uint64_t share = cl->info.memory / POOL_SHARE;
  return share < POOL_MOST ? (size_t)share : POOL_MOST;
}

static void shrink_pool(scl_cl_context *cl, size_t limit) {
  while (cl->base.memory.kept > limit) {
    scl_cl_buffer **last = &cl->pool;
    while ((*last)->older != NULL) last = &(*last)->older;
    cl->base.memory.kept -= (*last)->capacity;
    drop(*last);
    *last = NULL;
  }
}

void scl_cl_pool_free(scl_cl_context *cl) {
  shrink_pool(cl, 0);
}

void scl_device_trim(scl_context *ctx) {
  if (!scl_context_is_host(ctx)) scl_cl_pool_free((scl_cl_context *)ctx);
}

/* Whether no command uses it any more. */
static bool is_idle(scl_cl_context *cl, scl_cl_buffer *buffer) {
  bool idle = true;
  if (scl_cl_passed(cl, buffer->written_on, buffer->written, &idle) != SCL_OK) return false;
  for (int q = 0; q < SCL_CL_QUEUES && idle; q++) {
    if (scl_cl_passed(cl, q, buffer->read[q], &idle) != SCL_OK) return false;
  }
  return idle;
}

/* One that is large enough, but not by far. */
static scl_cl_buffer *take_from_pool(scl_cl_context *cl, size_t bytes) {
  for (scl_cl_buffer **at = &cl->pool; *at != NULL; at = &(*at)->older) {
    scl_cl_buffer *buffer = *at;
    if (buffer->home != cl->wanted_home) continue;
    if (buffer->capacity < bytes || buffer->capacity > bytes + bytes / 4 + 4096) continue;
    if (!is_idle(cl, buffer)) continue;
    *at = buffer->older;
    buffer->older = NULL;
    cl->base.memory.kept -= buffer->capacity;
    return buffer;
  }
  return NULL;
}

static cl_mem allocate(scl_cl_context *cl, size_t bytes, cl_int *code) {
  cl_mem memory = scl_cl.clCreateBuffer(cl->context, CL_MEM_READ_WRITE, bytes, NULL, code);
  if (*code != CL_MEM_OBJECT_ALLOCATION_FAILURE || cl->pool == NULL) return memory;
  scl_cl_pool_free(cl);
  return scl_cl.clCreateBuffer(cl->context, CL_MEM_READ_WRITE, bytes, NULL, code);
}

scl_status scl_cl_buffer_create(scl_context *ctx, size_t bytes, scl_buffer **out) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  scl_cl_buffer *buffer = take_from_pool(cl, bytes);
  if (buffer == NULL) {
    buffer = calloc(1, sizeof *buffer);
    if (buffer == NULL) return scl_fail_memory(sizeof *buffer, 0, "a buffer handle");
    cl_int code = CL_SUCCESS;
    buffer->memory = allocate(cl, bytes, &code);
    if (buffer->memory == NULL || code != CL_SUCCESS) {
      free(buffer);
      scl_status status = scl_cl_fail(ctx, code, "clCreateBuffer");
      if (status != SCL_E_MEMORY) return status;
      return scl_fail_memory(bytes, ctx->memory.limit, "a matrix on the device");
    }
    buffer->capacity = bytes;
    buffer->home = cl->wanted_home;
  }
  *out = &buffer->base;
  return SCL_OK;
}

void scl_cl_buffer_destroy(scl_buffer *base) {
  scl_cl_buffer *buffer = (scl_cl_buffer *)base;
  scl_cl_context *cl = (scl_cl_context *)base->ctx;
  size_t limit = cl->base.lost ? 0 : pool_limit(cl);
  if (buffer->capacity > limit / 2) {
    drop(buffer);
    return;
  }
  buffer->older = cl->pool;
  cl->pool = buffer;
  cl->base.memory.kept += buffer->capacity;
  shrink_pool(cl, limit);
}

scl_status scl_cl_temporary(scl_cl_op *op, size_t m, size_t n, scl_block *out) {
  scl_cl_context *cl = op->cl;
  cl->base.transient = true;
  cl->wanted_home = op->queue;
  scl_status status = scl_block_create(&cl->base, m, n, out);
  cl->wanted_home = -1;
  cl->base.transient = false;
  return status;
}
