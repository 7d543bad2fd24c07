#include "engine/host/memory.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/sizes.h"
#include "base/threads.h"

enum {
  ALIGNMENT = 64, /* a cache line, and the widest vector register */
  SMALLEST = 4096,
  LARGE = 4 << 20,    /* from here on with large pages, where the system has them */
  CLASSES = 4 * 24,   /* up to 64 GiB */
  USUALLY = 64 << 20, /* kept; about the amount of garbage before a collection (base/buffer.c) */
};

/* Precedes the numbers: the address that malloc() returned. In a kept block: the next block. */
typedef union {
  void *start;
  double *next;
} head;

static double *unused[CLASSES];
static size_t kept;
/* Sanitizers see every use of memory that was freed, but not of memory that is kept. */
#ifdef __SANITIZE_ADDRESS__
static size_t most = 0;
#else
static size_t most = USUALLY;
#endif

/* The class of a size, and in *size the bytes of its blocks; CLASSES if there is none. */
static size_t class_of(size_t bytes, size_t *size) {
  size_t octave = 0, base = SMALLEST;
  *size = bytes;
  if (bytes < SMALLEST) return CLASSES;
  while (bytes / 2 >= base && octave < CLASSES / 4) {
    base *= 2;
    octave++;
  }
  if (octave >= CLASSES / 4) return CLASSES;
  const size_t quarter = scl_ceil_div(bytes - base, base / 4); /* 0 .. 4 */
  const size_t class = 4 * octave + quarter;
  if (class < CLASSES) *size = base + quarter * (base / 4);
  return class < CLASSES ? class : CLASSES;
}

static double *fresh(size_t size) {
  if (size > SIZE_MAX - 2 * ALIGNMENT) return NULL;
  char *start = malloc(size + 2 * ALIGNMENT - 1);
  if (start == NULL) return NULL;
  char *data = (char *)scl_round_up((uintptr_t)start + sizeof(head), ALIGNMENT);
  ((head *)(void *)data)[-1].start = start;
  if (size >= LARGE) scl_expect_writes(data, size);
  return (double *)(void *)data;
}

static void release(double *memory) {
  free(((head *)(void *)memory)[-1].start);
}

double *scl_host_memory_get(size_t bytes) {
  size_t size;
  const size_t class = class_of(bytes, &size);
  if (class == CLASSES || unused[class] == NULL) return fresh(size);
  double *memory = unused[class];
  unused[class] = ((head *)(void *)memory)->next;
  kept -= size;
  return memory;
}

void scl_host_memory_return(double *memory, size_t bytes) {
  size_t size;
  if (memory == NULL) return;
  const size_t class = class_of(bytes, &size);
  if (class == CLASSES || size > most || kept > most - size) {
    release(memory);
    return;
  }
  ((head *)(void *)memory)->next = unused[class];
  unused[class] = memory;
  kept += size;
}

size_t scl_host_memory_kept(void) {
  return kept;
}

void scl_host_memory_clear(void) {
  for (size_t k = 0; k < CLASSES; k++) {
    while (unused[k] != NULL) {
      double *memory = unused[k];
      unused[k] = ((head *)(void *)memory)->next;
      release(memory);
    }
  }
  kept = 0;
}

void scl_host_memory_limit(size_t bytes) {
  scl_host_memory_clear();
  most = bytes;
}
