#include "engine/cl/runtime/staging.h"

#include <stdlib.h>

#include "engine/cl/runtime/private.h"

/* Pieces are small until the first large transfer: most contexts only transfer parameters and
 * results. On a CPU device small pieces keep the copies in the caches. */
enum { PIECE_SMALL = 64 << 10, PIECE_CPU = 256 << 10, PIECE_GPU = 4 << 20 };

static int queue_of(int direction) {
  return direction == SCL_CL_UP ? SCL_CL_UPLOAD : SCL_CL_DOWNLOAD;
}

static void free_staging(scl_cl_context *cl, int direction, scl_cl_staging *staging) {
  if (staging == NULL) return;
  for (int p = 0; p < SCL_CL_PIECES; p++) {
    if (staging->busy[p].event != NULL) scl_cl.clReleaseEvent(staging->busy[p].event);
  }
  if (staging->host != NULL) {
    scl_cl.clEnqueueUnmapMemObject(cl->queue[queue_of(direction)], staging->pinned, staging->host,
                                   0, NULL, NULL);
    scl_cl.clFinish(cl->queue[queue_of(direction)]);
  }
  if (staging->pinned != NULL) scl_cl.clReleaseMemObject(staging->pinned);
  if (staging->device != NULL) scl_cl.clReleaseMemObject(staging->device);
  free(staging);
}

void scl_cl_staging_free(scl_cl_context *cl) {
  for (int d = SCL_CL_UP; d <= SCL_CL_DOWN; d++) {
    free_staging(cl, d, cl->staging[d]);
    cl->staging[d] = NULL;
  }
}

static scl_status make_staging(scl_cl_context *cl, int direction, size_t piece,
                               scl_cl_staging **out) {
  scl_cl_staging *staging = calloc(1, sizeof *staging);
  if (staging == NULL) return scl_fail_memory(sizeof *staging, 0, "staging memory");
  staging->piece = piece;
  cl_int code = CL_SUCCESS;
  size_t bytes = piece * SCL_CL_PIECES;
  const char *where = "clCreateBuffer (staging memory)";
  staging->pinned = scl_cl.clCreateBuffer(cl->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                          bytes, NULL, &code);
  if (staging->pinned != NULL) {
    where = "clEnqueueMapBuffer (staging memory)";
    staging->host =
        scl_cl.clEnqueueMapBuffer(cl->queue[queue_of(direction)], staging->pinned, CL_TRUE,
                                  CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &code);
  }
  if (staging->host == NULL) {
    free_staging(cl, direction, staging);
    return scl_cl_fail(&cl->base, code, where);
  }
  *out = staging;
  return SCL_OK;
}

static scl_status wait_all(scl_cl_context *cl, scl_cl_staging *staging) {
  for (unsigned p = 0; p < SCL_CL_PIECES; p++) SCL_TRY(scl_cl_staging_wait(cl, staging, p));
  return SCL_OK;
}

/* Grows at the first large transfer. If there is no memory for that, small pieces are kept. */
static scl_status fit_staging(scl_cl_context *cl, int direction, size_t bytes) {
  scl_cl_staging **staging = &cl->staging[direction];
  size_t large = cl->cpu ? PIECE_CPU : PIECE_GPU;
  bool wants_large = bytes > PIECE_SMALL * SCL_CL_PIECES;
  if (*staging != NULL && (!wants_large || (*staging)->piece == large)) return SCL_OK;
  if (*staging != NULL) SCL_TRY(wait_all(cl, *staging));
  scl_cl_staging *made = NULL;
  scl_status status = SCL_E_MEMORY;
  if (wants_large) status = make_staging(cl, direction, large, &made);
  if (status == SCL_E_MEMORY) {
    if (*staging != NULL) return SCL_OK;
    status = make_staging(cl, direction, PIECE_SMALL, &made);
  }
  if (status != SCL_OK) return status;
  free_staging(cl, direction, *staging);
  *staging = made;
  return SCL_OK;
}

scl_status scl_cl_staging_get(scl_cl_context *cl, int direction, size_t bytes, bool packed,
                              scl_cl_staging **out) {
  SCL_TRY(fit_staging(cl, direction, bytes));
  scl_cl_staging *staging = cl->staging[direction];
  if (packed && staging->device == NULL) {
    cl_int code = CL_SUCCESS;
    staging->device =
        scl_cl.clCreateBuffer(cl->context, CL_MEM_READ_WRITE, 2 * staging->piece, NULL, &code);
    if (staging->device == NULL) {
      return scl_cl_fail(&cl->base, code, "clCreateBuffer (staging memory)");
    }
  }
  *out = staging;
  return SCL_OK;
}

static void drop_event(cl_event *event) {
  scl_cl.clReleaseEvent(*event);
  *event = NULL;
}

scl_status scl_cl_staging_ready(scl_cl_context *cl, scl_cl_staging *staging, unsigned piece,
                                bool *out) {
  cl_event *event = &staging->busy[piece].event;
  if (*event == NULL) {
    return scl_cl_passed(cl, staging->busy[piece].queue, staging->busy[piece].count, out);
  }
  SCL_TRY(scl_cl_happened(cl, *event, out));
  if (*out) drop_event(event);
  return SCL_OK;
}

scl_status scl_cl_staging_wait(scl_cl_context *cl, scl_cl_staging *staging, unsigned piece) {
  cl_event *event = &staging->busy[piece].event;
  if (*event == NULL) {
    return scl_cl_reach(cl, staging->busy[piece].queue, staging->busy[piece].count);
  }
  SCL_TRY(scl_cl_wait(cl, *event));
  drop_event(event);
  return SCL_OK;
}

scl_status scl_cl_staging_take(scl_cl_context *cl, scl_cl_staging *staging, unsigned *piece) {
  unsigned p = staging->next;
  SCL_TRY(scl_cl_staging_wait(cl, staging, p));
  staging->next = (p + 1) % SCL_CL_PIECES;
  *piece = p;
  return SCL_OK;
}

void scl_cl_staging_use(scl_cl_staging *staging, unsigned piece, const scl_cl_op *op,
                        cl_event event) {
  if (event != NULL) scl_cl.clRetainEvent(event);
  staging->busy[piece].event = event;
  staging->busy[piece].queue = op->queue;
  staging->busy[piece].count = event == NULL ? op->cl->enqueued[op->queue] + 1 : 0;
}
