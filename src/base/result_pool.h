/* Memory on the host for large results, used again when its owner is done. Memory that comes fresh
 * from the system has to be cleared page by page first, which takes longer than the bus takes to
 * fill it; what was in use before has not.
 *
 * Unused blocks stay mapped, but the system may take their pages back whenever it is short of
 * memory, without writing them anywhere (MADV_FREE). At most SCL_RECYCLE_BLOCKS of them are kept,
 * in all an eighth of the memory that there is. Where the system has no such advice there are no
 * blocks. For one thread. */
#ifndef SCL_BASE_RESULT_POOL_H
#define SCL_BASE_RESULT_POOL_H

#include <stdbool.h>
#include <stddef.h>

enum { SCL_RECYCLE_BLOCKS = 256 };

typedef struct scl_recycled {
  void *memory; /* begins at a large page */
  size_t bytes; /* as asked for */
  size_t size;  /* as mapped */
} scl_recycled;

/* A block of this many bytes (> 0), unused or fresh, with any contents. NULL when there is no
 * memory, or no blocks on this system. */
scl_recycled *scl_recycle_take(size_t bytes);
/* Whether an unused one would do. */
bool scl_recycle_fits(size_t bytes);
/* Back from its owner, who must not touch it any more. */
void scl_recycle_give(scl_recycled *block);

/* Bytes of unused blocks; and gives all of them back to the system. */
size_t scl_recycle_unused(void);
void scl_recycle_clear(void);

/* Bytes of memory that this process may hope for: the machine's, or its container's limit. 0 when
 * unknown. */
size_t scl_memory_limit(void);

#endif
