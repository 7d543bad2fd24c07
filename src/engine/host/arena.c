#include "engine/host/arena.h"

#include <stdlib.h>

#include "base/sizes.h"

enum { CHUNK = 1 << 15 };

typedef struct scl_arena_chunk {
  struct scl_arena_chunk *before;
  size_t used, bytes;
} chunk;

void *scl_arena_take(scl_arena *a, size_t bytes) {
  bytes = scl_round_up(bytes, sizeof(double));
  if (a->last == NULL || a->last->bytes - a->last->used < bytes) {
    const size_t size = scl_max(bytes, CHUNK);
    chunk *c = calloc(1, sizeof *c + size);
    if (c == NULL) return NULL;
    *c = (chunk){a->last, 0, size};
    a->last = c;
  }
  void *at = (char *)(a->last + 1) + a->last->used;
  a->last->used += bytes;
  return at;
}

void scl_arena_end(scl_arena *a) {
  while (a->last != NULL) {
    chunk *before = a->last->before;
    free(a->last);
    a->last = before;
  }
}
