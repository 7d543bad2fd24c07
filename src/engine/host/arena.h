/* Memory that is released as a whole: between the files of engine/host. */
#ifndef SCL_ENGINE_HOST_ARENA_H
#define SCL_ENGINE_HOST_ARENA_H

#include <stddef.h>

typedef struct {
  struct scl_arena_chunk *last;
} scl_arena;

/* Room for this many bytes, zeros; NULL if there is no memory. An arena of zeros is empty. */
void *scl_arena_take(scl_arena *a, size_t bytes);
void scl_arena_end(scl_arena *a);

#endif
