#include "engine/transfer/stream.h"

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__

#include <emmintrin.h>

/* Numbers before the first address that is aligned for a store of two. */
static size_t head(const double *to, size_t n) {
  size_t odd = (uintptr_t)to / sizeof *to % 2;
  return odd < n ? odd : n;
}

void scl_stream_copy(double *to, const double *from, size_t n) {
  size_t i = head(to, n);
  if (i > 0) to[0] = from[0];
  for (; i + 4 <= n; i += 4) { /* half a cache line, so that a whole line is written at once */
    __m128d first = _mm_loadu_pd(from + i), second = _mm_loadu_pd(from + i + 2);
    _mm_stream_pd(to + i, first);
    _mm_stream_pd(to + i + 2, second);
  }
  for (; i < n; i++) to[i] = from[i];
}

void scl_stream_zero(double *to, size_t n) {
  size_t i = head(to, n);
  if (i > 0) to[0] = 0.0;
  for (; i + 2 <= n; i += 2) _mm_stream_pd(to + i, _mm_setzero_pd());
  for (; i < n; i++) to[i] = 0.0;
}

void scl_stream_end(void) {
  _mm_sfence();
}

#else

void scl_stream_copy(double *to, const double *from, size_t n) {
  memcpy(to, from, n * sizeof *to);
}

void scl_stream_zero(double *to, size_t n) {
  memset(to, 0, n * sizeof *to);
}

void scl_stream_end(void) {}

#endif
