/* Pinned host memory for all transfers of one direction: a ring of pieces. A piece is free when the
 * last command that uses it is complete. Kept with the context, because pinning is slow. */
#ifndef SCL_ENGINE_CL_RUNTIME_STAGING_H
#define SCL_ENGINE_CL_RUNTIME_STAGING_H

#include "engine/cl/runtime/cl.h"
#include "engine/transfer/pinned.h"

enum { SCL_CL_UP, SCL_CL_DOWN };
enum { SCL_CL_PIECES = SCL_PINNED_PIECES };

typedef struct scl_cl_staging {
  cl_mem pinned; /* mapped at `host` all the time */
  char *host;
  cl_mem device; /* two pieces on the device, for packed triangles; NULL until asked for */
  size_t piece;  /* bytes */
  /* The last command that uses each piece: its event, or its count in a queue. */
  struct {
    cl_event event;
    int queue;
    uint64_t count;
  } busy[SCL_CL_PIECES];
  unsigned next;
} scl_cl_staging;

/* The staging memory of a direction, in pieces that suit a transfer of `bytes`; with the pieces on
 * the device if `packed`. Borrowed. */
scl_status scl_cl_staging_get(scl_cl_context *cl, int direction, size_t bytes, bool packed,
                              scl_cl_staging **out);

/* The last command that uses the piece is the operation's next one to be recorded, with this event
 * or NULL. */
void scl_cl_staging_use(scl_cl_staging *staging, unsigned piece, const scl_cl_op *op,
                        cl_event event);

/* Whether the piece is free, without waiting; and waiting until it is. */
scl_status scl_cl_staging_ready(scl_cl_context *cl, scl_cl_staging *staging, unsigned piece,
                                bool *out);
scl_status scl_cl_staging_wait(scl_cl_context *cl, scl_cl_staging *staging, unsigned piece);

/* The next piece of the ring; waits until it is free. */
scl_status scl_cl_staging_take(scl_cl_context *cl, scl_cl_staging *staging, unsigned *piece);

static inline double *scl_cl_staging_at(scl_cl_staging *staging, unsigned piece) {
  return (double *)(void *)(staging->host + piece * staging->piece);
}

#endif
