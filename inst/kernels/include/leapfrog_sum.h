/* The task of leapfrog_sum.cl, known to its driver (engine/cl/glm/glm.c). No code. */
#ifndef SCL_KERNEL_LEAPFROG_SUM_H
#define SCL_KERNEL_LEAPFROG_SUM_H

/* Rows of sums at a time, and the numbers for which there is local memory. */
#define LEAPFROG_SUMS 16
#define LEAPFROG_NEAR 2048
/* The numbers of a chain with d parameters whose metric has `directions` columns: of the metric
 * (leapfrog.h); in local memory. */
#define LEAPFROG_METRIC(d, directions) ((directions) > 0 ? 3 + (d) + (directions) * (1 + (d)) : 0)
#define LEAPFROG_NUMBERS(d, directions)                                                            \
  (13 * (d) + 3 + LEAPFROG_METRIC(d, directions) + (directions))

/* Number r of the results of group g is at partials + r * row_step + g * group_step; the other
 * offsets are those of leapfrog.h. */
typedef struct {
  scl_long partials, row_step, group_step, q, record;
  int vectors, p, point, directions;
  int groups, together; /* sums of a row; groups that make up one: 1 or GLM_TOGETHER */
} leapfrog_sum_task;
SCL_SAME_LAYOUT(leapfrog_sum_task, 64)

#endif
