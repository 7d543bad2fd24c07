/* Arrays that grow. */
#ifndef SCL_BASE_GROW_H
#define SCL_BASE_GROW_H

#include "base/status.h"

/* Room for `needed` entries of `size` bytes in an array of malloc() that has *room. `array` points
 * to its pointer, NULL if there is no array yet; on failure both stay as they are. The room at
 * least doubles, so that entries may be added one by one. `what` the memory is for is in the error.
 */
scl_status scl_grow(void *array, int *room, size_t needed, size_t size, const char *what);

#endif
