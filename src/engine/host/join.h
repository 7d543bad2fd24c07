/* Gathers and sums of groups that a plan computes with its own elements, block by block, while
 * these are in the cache: between the files of engine/host. */
#ifndef SCL_ENGINE_HOST_JOIN_H
#define SCL_ENGINE_HOST_JOIN_H

#include "engine/host/host.h"
#include "engine/plan/repeat.h"

typedef struct {
  int home;         /* of a gather or sums: the plan that computes it; -1: none does */
  int first, next;  /* of a plan: the first of those, each of which has the next; -1: none */
  bool passes;      /* of a gather: only its home reads the result, which is not stored */
  unsigned passing; /* of a plan: bit k: likewise of output k and the sums that it computes */
} scl_host_joined;

/* Fills a list of `parts`. `results`: what is read when all parts are done; NULL: anything is. The
 * memory of a part may be that of values which no later part reads, so a part moves past others
 * only if they touch none of its numbers. */
void scl_host_join(int parts, const scl_repeat *part, const scl_buffer *results,
                   scl_host_joined *joined);

#endif
