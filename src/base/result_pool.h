/* A pool of host memory for large results, reused after its owner has returned it. The system
 * clears fresh memory page by page, which takes longer than the transfer that fills it; memory that
 * was in use is not cleared again.
 *
 * Unused blocks stay mapped, but the system may take their pages back whenever it is short of
 * memory, without writing them anywhere (MADV_FREE). At most SCL_RESULT_POOL_BLOCKS of them are
 * kept, together at most an eighth of all memory. On a system without this advice there are no
 * blocks. Not thread-safe. */
#ifndef SCL_BASE_RESULT_POOL_H
#define SCL_BASE_RESULT_POOL_H

#include <stdbool.h>
#include <stddef.h>

enum { SCL_RESULT_POOL_BLOCKS = 256 };

typedef struct scl_result_block {
  void *memory; /* begins at a large page */
  size_t bytes; /* as asked for */
  size_t size;  /* as mapped */
} scl_result_block;

/* A block of this many bytes (> 0), unused or fresh, with any contents. NULL when there is no
 * memory, or no blocks on this system. */
scl_result_block *scl_result_pool_get(size_t bytes);
/* Whether an unused block would fit. */
bool scl_result_pool_fits(size_t bytes);
/* Returns a block; its owner must not use it any more. */
void scl_result_pool_return(scl_result_block *block);

/* Bytes of unused blocks; clear() returns all of them to the system. */
size_t scl_result_pool_unused(void);
void scl_result_pool_clear(void);

/* Bytes of memory that this process may use: those of the machine, or the limit of its container. 0
 * if unknown. */
size_t scl_memory_limit(void);

#endif
