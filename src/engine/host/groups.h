/* Sums of groups of rows that come block by block: between the files of engine/host. */
#ifndef SCL_ENGINE_HOST_GROUPS_H
#define SCL_ENGINE_HOST_GROUPS_H

#include "engine/host/host.h"

/* Rows next to each other that are of one group are a run, which is added up before its sum is
 * added to that of the group. If most runs are short, there are none, and a group has several sums,
 * which take turns, so that an addition need not wait for that of the row before. */
typedef struct {
  size_t groups;
  const int32_t *group; /* of each row, or run */
  const int32_t *end;   /* of each run: the row after its last; NULL: there are no runs */
  double *turns;        /* SCL_GROUP_TURNS sums of each group, or NULL: one, which is the result */
  size_t run;           /* the first that is not added yet */
} scl_host_groups;

enum { SCL_GROUP_TURNS = 4 };

/* The group of each row, from the lists of group_sums() (base/engine.def). */
void scl_host_find_groups(scl_block starts, scl_block order, int32_t *group);
/* How many runs these rows have, each within a block; and lists of them, which have room. */
size_t scl_host_count_runs(size_t rows, size_t block, const int32_t *group);
void scl_host_list_runs(size_t rows, size_t block, const int32_t *group, int32_t *of_run,
                        int32_t *end);

/* to[k] = the sum of group k: from 0, over the blocks of rows i .. i + n - 1 in their order. */
void scl_host_groups_begin(scl_host_groups *g, double *to);
void scl_host_groups_add(scl_host_groups *g, size_t i, size_t n, const double *x, double *to);
void scl_host_groups_end(const scl_host_groups *g, double *to);

#endif
