/* Buffers: pieces of an engine's memory, with reference counts. */
#ifndef SCL_BASE_BUFFER_H
#define SCL_BASE_BUFFER_H

#include "base/context.h"
#include "base/type.h"

/* The part of a buffer that all engines share; filled by scl_buffer_create(). */
typedef struct scl_buffer {
  scl_context *ctx; /* borrowed: the matrices that hold the buffer hold the context */
  uint32_t refs;
  size_t bytes;
  bool counted; /* false: foreign memory, not part of the live bytes */
  /* The kind of garbage that its bytes may become (base/buffer.c), and the last collection before
   * it was made. */
  uint64_t *since_collect;
  uint64_t collection;
} scl_buffer;

/* The purpose of a new buffer, which decides when its creation collects garbage. */
typedef enum {
  SCL_RESULT = 0, /* an operation's result or workspace */
  SCL_ORIGINAL,   /* what the user uploads or fills: garbage of these is kept small */
  SCL_TRANSIENT   /* released soon: never a reason to collect */
} scl_purpose;

/* Properties of a new buffer other than its size. All zeros: an ordinary result. */
typedef struct {
  scl_type type;
  scl_purpose purpose;
  int only_queue; /* 1 + the one queue of the engine whose commands will use it; 0: any may */
} scl_storage;

/* Makes a counted buffer: checks the limits, collects garbage and retries once if there is too
 * little memory, and updates the counters. bytes == 0 gives NULL. */
scl_status scl_buffer_create(scl_context *ctx, size_t bytes, scl_storage storage, scl_buffer **out);
scl_buffer *scl_buffer_retain(scl_buffer *buffer); /* accepts NULL */
void scl_buffer_release(scl_buffer *buffer);       /* accepts NULL */

/* For tests: the n-th creation from now (1: the next) fails with SCL_E_MEMORY, also after the
 * collection; later ones succeed. -1 turns it off. */
void scl_buffer_fail_after(long n);

#endif
