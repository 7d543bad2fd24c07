/* Copies and zeros for memory larger than the caches: the cache lines are written without being
 * read first. Plain stores where the compiler has no others. Call scl_stream_end() before another
 * thread may read the data. */
#ifndef SCL_ENGINE_TRANSFER_STREAM_H
#define SCL_ENGINE_TRANSFER_STREAM_H

#include <stddef.h>

void scl_stream_copy(double *to, const double *from, size_t n);
void scl_stream_zero(double *to, size_t n);
void scl_stream_end(void);

#endif
