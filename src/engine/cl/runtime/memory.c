/* Buffers of the device engine. Creating a buffer costs a driver more than a short kernel, and so
 * does releasing it. Hence there are
 *
 * - a pool of those that were released, by classes of size;
 * - slabs: the driver gives a large piece of memory, of which middling buffers are parts.
 *
 * A buffer of the pool may still be in use by pending commands: it keeps their counts, and its next
 * user is ordered after them as after any others. A temporary has no counts, but only commands of
 * one queue, its home, have used it: it is reused as a temporary of that queue.
 *
 * memory.kept is the memory obtained from the driver beyond the live buffers: the buffers of the
 * pool, and the parts of slabs that are not live. */
#include "engine/cl/runtime/cl.h"

#include <stdlib.h>

#include "engine/cl/runtime/private.h"

enum { POOL_SHARE = 16 }; /* of the device's memory, this fraction (its inverse) is kept */
/* A matrix that stays alive can keep a whole slab. Therefore slabs are small compared with the
 * memory, and no more than a part of it. Drivers are fast with buffers below the smallest part. */
enum { SLAB_MOST = 128 << 20, SLAB_SHARE = 256, SLABS_SHARE = 4, PARTS = 8 };
enum { PART_LEAST = 1 << 20, ALIGNMENT = 4096 };
enum { LOOKS = 32 }; /* the number of buffers of the pool that are examined for an idle one */

/* On a CPU device memory is the host's, and its allocator is fast. */
static size_t pool_limit(const scl_cl_context *cl) {
  return cl->cpu || cl->base.lost ? 0 : (size_t)(cl->info.memory / POOL_SHARE);
}

static void shrink_pool(scl_cl_context *cl, size_t limit);

/* Some drivers notice that memory is short only when it is first used, which is too late to try
 * again: kept memory is therefore released beforehand. */
static cl_mem create(scl_cl_context *cl, size_t bytes, cl_int *code) {
  const scl_memory *memory = &cl->base.memory;
  uint64_t needed = memory->live + bytes;
  if (needed + memory->kept > memory->limit) {
    shrink_pool(cl, needed < memory->limit ? (size_t)(memory->limit - needed) : 0);
  }
  return scl_cl.clCreateBuffer(cl->context, CL_MEM_READ_WRITE, bytes, NULL, code);
}

/* ---- slabs ----------------------------------------------------------------------------------- */
struct scl_cl_slab {
  cl_mem memory;
  size_t bytes, used;
  unsigned parts; /* buffers that are, live or in the pool */
};

static size_t slab_size(const scl_cl_context *cl) {
  uint64_t most = pool_limit(cl) == 0 ? 0 : cl->info.memory / SLAB_SHARE / ALIGNMENT * ALIGNMENT;
  return most < SLAB_MOST ? (size_t)most : SLAB_MOST;
}

static void free_slab(scl_cl_context *cl, scl_cl_slab *slab) {
  scl_cl.clReleaseMemObject(slab->memory);
  cl->freed++;
  cl->slab_bytes -= slab->bytes;
  cl->base.memory.kept -= slab->bytes;
  if (cl->slab == slab) cl->slab = NULL;
  free(slab);
}

/* Makes the driver allocate the memory now, by a write to an element that no part has: the first
 * use of an untouched part of a slab costs as much as a new buffer. */
static cl_int touch_slab(scl_cl_context *cl, scl_cl_slab *slab) {
  static const double zero = 0.0;
  cl_int code = scl_cl.clEnqueueWriteBuffer(cl->queue[SCL_CL_UPLOAD], slab->memory, CL_FALSE, 0,
                                            sizeof zero, &zero, 0, NULL, NULL);
  if (code == CL_SUCCESS) {
    cl->enqueued[SCL_CL_UPLOAD]++;
    slab->used = ALIGNMENT;
  }
  return code;
}

/* Memory that is too short for a slab may suffice for a single buffer; any other error is
 * returned. */
static scl_status slab_fault(scl_cl_context *cl, cl_int code, const char *where) {
  scl_status status = scl_cl_fail(&cl->base, code, where);
  return status == SCL_E_MEMORY ? SCL_OK : status;
}

/* The slab from which parts are taken, with room for `bytes`; NULL if there cannot be one. */
static scl_status open_slab(scl_cl_context *cl, size_t bytes, scl_cl_slab **out) {
  size_t size = slab_size(cl);
  *out = NULL;
  if (bytes < PART_LEAST || bytes > size / PARTS) return SCL_OK;
  if (cl->slab != NULL && cl->slab->bytes - cl->slab->used >= bytes) {
    *out = cl->slab;
    return SCL_OK;
  }
  const scl_memory *memory = &cl->base.memory;
  if (cl->slab_bytes + size > cl->info.memory / SLABS_SHARE) return SCL_OK;
  if (memory->live + memory->kept + size > memory->limit) return SCL_OK;
  scl_cl_slab *slab = calloc(1, sizeof *slab);
  if (slab == NULL) return SCL_OK;
  cl_int code = CL_SUCCESS;
  slab->memory = create(cl, size, &code);
  if (slab->memory != NULL) code = touch_slab(cl, slab);
  if (slab->memory == NULL || code != CL_SUCCESS) {
    if (slab->memory != NULL) scl_cl.clReleaseMemObject(slab->memory);
    free(slab);
    return slab_fault(cl, code, "making a slab");
  }
  slab->bytes = size;
  cl->slab_bytes += size;
  cl->base.memory.kept += size;
  cl->slab = slab; /* the one before lives as long as its parts */
  *out = slab;
  return SCL_OK;
}

/* Makes `buffer` a part of a slab; its memory stays NULL if no slab has room. */
static scl_status take_part(scl_cl_context *cl, size_t bytes, scl_cl_buffer *buffer) {
  scl_cl_slab *slab;
  SCL_TRY(open_slab(cl, bytes, &slab));
  if (slab == NULL) return SCL_OK;
  cl_buffer_region region = {slab->used, scl_round_up(bytes, ALIGNMENT)};
  cl_int code = CL_SUCCESS;
  buffer->memory = scl_cl.clCreateSubBuffer(slab->memory, CL_MEM_READ_WRITE,
                                            CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  if (buffer->memory == NULL) {
    if (slab->parts == 0) free_slab(cl, slab);
    return slab_fault(cl, code, "clCreateSubBuffer");
  }
  slab->used += region.size;
  slab->parts++;
  buffer->slab = slab;
  buffer->capacity = region.size;
  cl->base.memory.kept -= buffer->capacity;
  return SCL_OK;
}

/* ---- the pool -------------------------------------------------------------------------------- */
/* Four classes for each power of two. */
static int class_of(size_t bytes) {
  int power = 0;
  while (bytes >> power > 7) power++;
  int class = bytes < 4 ? 0 : 4 * power + (int)(bytes >> power) - 3;
  return class < SCL_CL_CLASSES ? class : SCL_CL_CLASSES - 1;
}

static scl_cl_shelf *shelf_of(scl_cl_context *cl, const scl_cl_buffer *buffer) {
  return &cl->shelf[buffer->home + 1][class_of(buffer->capacity)];
}

static void leave_pool(scl_cl_context *cl, scl_cl_buffer *buffer) {
  scl_cl_shelf *shelf = shelf_of(cl, buffer);
  *(buffer->newer != NULL ? &buffer->newer->older : &shelf->newest) = buffer->older;
  *(buffer->older != NULL ? &buffer->older->newer : &shelf->oldest) = buffer->newer;
  buffer->newer = buffer->older = NULL;
  cl->pooled--;
}

static void enter_pool(scl_cl_context *cl, scl_cl_buffer *buffer) {
  scl_cl_shelf *shelf = shelf_of(cl, buffer);
  buffer->older = shelf->newest;
  *(buffer->older != NULL ? &buffer->older->newer : &shelf->oldest) = buffer;
  shelf->newest = buffer;
  buffer->released = ++cl->releases;
  cl->pooled++;
}

/* Returns to the driver the memory of a buffer that is neither live nor in the pool. The driver
 * keeps it until the commands that use it are done. */
static void drop(scl_cl_context *cl, scl_cl_buffer *buffer) {
  scl_cl.clReleaseMemObject(buffer->memory);
  cl->freed++;
  if (buffer->slab == NULL) {
    cl->base.memory.kept -= buffer->capacity;
  } else if (--buffer->slab->parts == 0) {
    free_slab(cl, buffer->slab);
  }
  free(buffer);
}

static void shrink_pool(scl_cl_context *cl, size_t limit) {
  while (cl->base.memory.kept > limit && cl->pooled > 0) {
    scl_cl_buffer *oldest = NULL;
    for (int i = 0; i < (SCL_CL_QUEUES + 1) * SCL_CL_CLASSES; i++) {
      scl_cl_buffer *b = cl->shelf[i / SCL_CL_CLASSES][i % SCL_CL_CLASSES].oldest;
      if (b != NULL && (oldest == NULL || b->released < oldest->released)) oldest = b;
    }
    leave_pool(cl, oldest);
    drop(cl, oldest);
  }
}

void scl_cl_pool_free(scl_cl_context *cl) {
  shrink_pool(cl, 0);
}

/* Whether no command is known to use it any more. */
static bool is_idle(const scl_cl_context *cl, const scl_cl_buffer *buffer) {
  bool idle = buffer->written <= cl->done[buffer->written_on];
  for (int q = 0; q < SCL_CL_QUEUES; q++) idle = idle && buffer->read[q] <= cl->done[q];
  return idle;
}

/* A buffer that is large enough, but not much larger; preferably an idle one. */
static scl_cl_buffer *take_from_pool(scl_cl_context *cl, size_t bytes, int home) {
  if (cl->pooled == 0) return NULL;
  scl_cl_buffer *found = NULL;
  size_t most = bytes + bytes / 4 + 256;
  int last = class_of(most), looks = 0;
  scl_cl_update_progress(cl);
  for (int c = class_of(bytes); c <= last; c++) {
    scl_cl_buffer *b = cl->shelf[home + 1][c].newest;
    for (; b != NULL && looks < LOOKS; b = b->older, looks++) {
      if (b->capacity < bytes || b->capacity > most) continue;
      found = b;
      if (is_idle(cl, b)) looks = LOOKS;
    }
  }
  if (found == NULL) return NULL;
  leave_pool(cl, found);
  cl->base.memory.kept -= found->capacity;
  return found;
}

/* ---- buffers --------------------------------------------------------------------------------- */
static scl_status take_own(scl_cl_context *cl, size_t bytes, scl_cl_buffer *buffer) {
  cl_int code = CL_SUCCESS;
  buffer->memory = create(cl, bytes, &code);
  if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE && cl->pooled > 0) {
    scl_cl_pool_free(cl);
    buffer->memory = create(cl, bytes, &code);
  }
  buffer->capacity = bytes;
  if (buffer->memory != NULL && code == CL_SUCCESS) return SCL_OK;
  scl_status status = scl_cl_fail(&cl->base, code, "clCreateBuffer");
  if (status != SCL_E_MEMORY) return status;
  return scl_fail_memory(bytes, cl->base.memory.limit, "a matrix on the device");
}

scl_status scl_cl_buffer_create(scl_context *ctx, size_t bytes, scl_storage storage,
                                scl_buffer **out) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  int home = storage.only_queue - 1;
  scl_cl_buffer *buffer = take_from_pool(cl, bytes, home);
  if (buffer == NULL) {
    buffer = calloc(1, sizeof *buffer);
    if (buffer == NULL) return scl_fail_memory(sizeof *buffer, 0, "a buffer handle");
    buffer->home = home;
    scl_status status = take_part(cl, bytes, buffer);
    if (status == SCL_OK && buffer->memory == NULL) status = take_own(cl, bytes, buffer);
    if (status != SCL_OK) {
      free(buffer);
      return status;
    }
  }
  *out = &buffer->base;
  return SCL_OK;
}

void scl_cl_buffer_destroy(scl_buffer *base) {
  scl_cl_buffer *buffer = (scl_cl_buffer *)base;
  scl_cl_context *cl = (scl_cl_context *)base->ctx;
  size_t limit = pool_limit(cl);
  cl->base.memory.kept += buffer->capacity;
  if (buffer->capacity > limit / 2) {
    drop(cl, buffer);
    return;
  }
  enter_pool(cl, buffer);
  shrink_pool(cl, limit);
}

scl_status scl_cl_temporary(scl_cl_op *op, size_t m, size_t n, scl_block *out) {
  const scl_storage storage = {.purpose = SCL_TRANSIENT, .only_queue = op->queue + 1};
  return scl_block_create_in(&op->cl->base, m, n, storage, out);
}
