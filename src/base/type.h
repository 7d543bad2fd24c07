/* The type of a matrix's elements. Sizes are computed from it, and an engine says which types it
 * computes with (base/engine.h: traits). */
#ifndef SCL_BASE_TYPE_H
#define SCL_BASE_TYPE_H

#include <stddef.h>

typedef enum { SCL_F64 = 0 } scl_type;

static inline size_t scl_type_size(scl_type type) {
  (void)type; /* the only one */
  return sizeof(double);
}

#endif
