#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE

#include "base/result_pool.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef _WIN32
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "base/sizes.h"
#include "base/threads.h"

#if !defined(_WIN32) && defined(MADV_FREE) && defined(MAP_ANONYMOUS)

enum { LARGE_PAGE = 2 << 20 };

static scl_result_block *unused[SCL_RESULT_POOL_BLOCKS]; /* in the order of their return */
static size_t count, total;

/* ---- what the system gives ------------------------------------------------------------------- */
static size_t physical_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
}

/* A number in a file; 0 where there is none. */
static size_t number_in(const char *path) {
  FILE *file = fopen(path, "r");
  unsigned long long number = 0;
  if (file == NULL) return 0;
  if (fscanf(file, "%llu", &number) != 1) number = 0;
  fclose(file);
  return number > SIZE_MAX ? SIZE_MAX : (size_t)number;
}

size_t scl_memory_limit(void) {
  static size_t limit;
  static const char *const paths[] = {"/sys/fs/cgroup/memory.max",
                                      "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
  if (limit > 0) return limit;
  limit = physical_memory();
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    size_t here = number_in(paths[i]);
    if (here > 0 && here < limit) limit = here;
  }
  return limit;
}

/* Maps enough memory to start at a large page, and unmaps the rest on both sides. */
static void *map_aligned(size_t size) {
  char *start =
      mmap(NULL, size + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return NULL;
  size_t before = (LARGE_PAGE - (uintptr_t)start % LARGE_PAGE) % LARGE_PAGE;
  if (before > 0) munmap(start, before);
  munmap(start + before + size, LARGE_PAGE - before);
  scl_expect_writes(start + before, size);
  return start + before;
}

static void unmap(scl_result_block *block) {
  munmap(block->memory, block->size);
  free(block);
}

static scl_result_block *fresh(size_t size) {
  scl_result_block *block = malloc(sizeof *block);
  if (block == NULL) return NULL;
  block->size = size;
  block->memory = map_aligned(size);
  if (block->memory != NULL) return block;
  free(block);
  return NULL;
}

/* ---- blocks ---------------------------------------------------------------------------------- */
static scl_result_block *remove_at(size_t i) {
  scl_result_block *block = unused[i];
  total -= block->size;
  count--;
  memmove(unused + i, unused + i + 1, (count - i) * sizeof *unused);
  return block;
}

static size_t size_for(size_t bytes) {
  return scl_round_up(bytes, LARGE_PAGE);
}

/* The smallest block that is large enough, unless much of it would be unused; else `count`. */
static size_t find_unused(size_t size) {
  size_t best = count;
  for (size_t i = 0; i < count; i++) {
    bool fits = unused[i]->size >= size && unused[i]->size - size <= size / 4;
    if (fits && (best == count || unused[i]->size < unused[best]->size)) best = i;
  }
  return best;
}

bool scl_result_pool_fits(size_t bytes) {
  return bytes <= SIZE_MAX / 2 && find_unused(size_for(bytes)) < count;
}

scl_result_block *scl_result_pool_get(size_t bytes) {
  if (bytes == 0 || bytes > SIZE_MAX / 2) return NULL;
  size_t size = size_for(bytes), at = find_unused(size);
  scl_result_block *block = at < count ? remove_at(at) : fresh(size);
  if (block != NULL) block->bytes = bytes;
  return block;
}

void scl_result_pool_return(scl_result_block *block) {
  size_t most = scl_memory_limit() / 8;
  if (block->size > most || madvise(block->memory, block->size, MADV_FREE) != 0) {
    unmap(block);
    return;
  }
  while (count == SCL_RESULT_POOL_BLOCKS || (count > 0 && total + block->size > most))
    unmap(remove_at(0));
  unused[count++] = block;
  total += block->size;
}

size_t scl_result_pool_unused(void) {
  return total;
}

void scl_result_pool_clear(void) {
  while (count > 0) unmap(remove_at(0));
}

#else

size_t scl_memory_limit(void) {
  return 0;
}

scl_result_block *scl_result_pool_get(size_t bytes) {
  (void)bytes;
  return NULL;
}

bool scl_result_pool_fits(size_t bytes) {
  (void)bytes;
  return false;
}

void scl_result_pool_return(scl_result_block *block) {
  (void)block;
}

size_t scl_result_pool_unused(void) {
  return 0;
}

void scl_result_pool_clear(void) {}

#endif
