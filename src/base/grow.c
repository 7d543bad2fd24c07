#include "base/grow.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST = 32 };

scl_status scl_grow(void *array, int *room, size_t needed, size_t size, const char *what) {
  if (needed <= (size_t)*room) return SCL_OK;
  size_t next = *room < FEWEST ? FEWEST : 2 * (size_t)*room;
  if (next < needed) next = needed;
  if (next > INT_MAX) return scl_fail_memory(next * size, 0, what);
  void *old;
  memcpy(&old, array, sizeof old);
  void *longer = realloc(old, next * size);
  if (longer == NULL) return scl_fail_memory(next * size, 0, what);
  memcpy(array, &longer, sizeof longer);
  *room = (int)next;
  return SCL_OK;
}
