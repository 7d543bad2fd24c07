/* Memory of the host's matrices: released blocks are kept for the next ones.
 *
 * The operating system clears new pages, and takes back those that free() returns, which takes
 * longer than an elementwise operation on them. Blocks of one size class (a quarter of a power of
 * two) are reused, the last one first, which may still be in the cache. Small blocks are left to
 * malloc(). Only one thread at a time may call these functions (base/buffer.c locks). */
#ifndef SCL_ENGINE_HOST_MEMORY_H
#define SCL_ENGINE_HOST_MEMORY_H

#include <stddef.h>

/* At least this many bytes, aligned to a cache line; NULL if there is no memory. */
double *scl_host_memory_get(size_t bytes);
/* `bytes`: as requested. Accepts NULL. */
void scl_host_memory_return(double *memory, size_t bytes);
/* Bytes that are kept. */
size_t scl_host_memory_kept(void);
void scl_host_memory_clear(void); /* frees it */
/* From now on keeps at most this many bytes; for tests. */
void scl_host_memory_limit(size_t most);

#endif
