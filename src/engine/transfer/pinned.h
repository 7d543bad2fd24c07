/* The host's half of a big transfer: threads copy between a matrix and a ring of pieces of pinned
 * memory, each of which holds one span of the matrix's packed form (engine/transfer/packed.h),
 * while the owner, one thread, moves pieces between the ring and the device.
 *
 * The matrix is cut into blocks, which are assigned in order to free threads. The owner opens spans
 * in order: for an upload when their piece is free, for a download when its contents have arrived.
 * A thread whose block lies in a span that is not open yet waits; the owner copies too, and does
 * its other work instead of waiting. */
#ifndef SCL_ENGINE_TRANSFER_PINNED_H
#define SCL_ENGINE_TRANSFER_PINNED_H

#include <stdatomic.h>

#include "engine/transfer/packed.h"
#include "base/threads.h"

enum { SCL_PINNED_PIECES = 16 };

/* The work of one thread: elements at .. end - 1 of the matrix (column by column, nrow to a column)
 * of its block, and the span they are in. */
typedef struct {
  size_t at, end;
  scl_packed_span span;
  size_t number, span_end; /* of the span: from 1 on, and its end in elements of the matrix */
  bool stream;             /* the block's memory is in use, but not in the caches */
} scl_pinned_worker;

typedef struct scl_pinned_copy {
  /* Set before the start. `to` is NULL for uploads; ld is that of host memory. */
  scl_packed shape;
  size_t capacity; /* packed elements of a span, at most */
  const double *from;
  double *to;
  size_t ld;
  double *piece[SCL_PINNED_PIECES]; /* of spans 0, 1, ..., over and over */

  size_t block, shift, blocks; /* elements of a block, missing in the first one, number of blocks */
  bool fresh;                  /* `to` may be memory that is not mapped yet */
  scl_team *team;
  atomic_size_t next;                    /* block to take */
  atomic_size_t open;                    /* spans that may be copied */
  atomic_size_t left[SCL_PINNED_PIECES]; /* elements of the span in each piece, not copied yet */
  atomic_bool stop;
  scl_pinned_worker owner;
  scl_packed_span last; /* the span opened last, and its end */
  size_t last_end;
} scl_pinned_copy;

/* Cuts the matrix into blocks. */
void scl_pinned_begin(scl_pinned_copy *copy);
/* Starts threads if they pay for this transfer. */
void scl_pinned_start_threads(scl_pinned_copy *copy);
/* Opens the next span; its piece is the next one of the ring. */
void scl_pinned_open(scl_pinned_copy *copy);
/* Whether all of span `number` (from 0), which is open, has been copied. */
bool scl_pinned_copied(const scl_pinned_copy *copy, size_t number);
/* Copies a part, if there is one that can be copied now. */
bool scl_pinned_help(scl_pinned_copy *copy);
/* Ends the threads; the rest is not copied. */
void scl_pinned_end(scl_pinned_copy *copy);

#endif
