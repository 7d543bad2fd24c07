/* Copies and zeros for memory larger than the caches: the lines are written without being read
 * first. Plain ones where the compiler has no such stores. scl_stream_end() comes before another
 * thread may be told of them. */
#ifndef SCL_ENGINE_TRANSFER_STREAM_H
#define SCL_ENGINE_TRANSFER_STREAM_H

#include <stddef.h>

void scl_stream_copy(double *to, const double *from, size_t n);
void scl_stream_zero(double *to, size_t n);
void scl_stream_end(void);

#endif
