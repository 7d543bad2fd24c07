#include "stan/reader.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"

struct scl_stan_chunk {
  scl_stan_chunk *next;
  size_t used;
  alignas(max_align_t) char bytes[];
};

enum { CHUNK = 1 << 18 };

scl_status scl_stan_alloc(scl_stan_program *program, size_t bytes, void *out) {
  bytes = scl_round_up(bytes, alignof(max_align_t));
  if (program->chunks == NULL || program->room < bytes) {
    const size_t size = scl_max(bytes, CHUNK);
    scl_stan_chunk *chunk = calloc(1, sizeof *chunk + size);
    if (chunk == NULL) return scl_fail_memory(size, 0, "a Stan program");
    chunk->next = program->chunks;
    program->chunks = chunk;
    program->room = size;
  }
  void *place = program->chunks->bytes + program->chunks->used;
  program->chunks->used += bytes;
  program->room -= bytes;
  memcpy(out, &place, sizeof place);
  return SCL_OK;
}

void scl_stan_arena_free(scl_stan_program *program) {
  scl_stan_chunk *chunk = program->chunks;
  while (chunk != NULL) {
    scl_stan_chunk *next = chunk->next;
    free(chunk);
    chunk = next;
  }
  program->chunks = NULL;
  program->room = 0;
}
