/* Arithmetic of sizes. */
#ifndef SCL_BASE_SIZES_H
#define SCL_BASE_SIZES_H

#include <stddef.h>

static inline size_t scl_min(size_t a, size_t b) {
  return a < b ? a : b;
}

static inline size_t scl_max(size_t a, size_t b) {
  return a > b ? a : b;
}

/* How many pieces of `size` it takes to cover n. */
static inline size_t scl_ceil_div(size_t n, size_t size) {
  return (n + size - 1) / size;
}

/* The smallest multiple of `step` that is not below n. */
static inline size_t scl_round_up(size_t n, size_t step) {
  return scl_ceil_div(n, step) * step;
}

#endif
