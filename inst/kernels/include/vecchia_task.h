/* Constants of the kernels of Vecchia's approximation (vecchia.cl), known to their driver. No code.
 */
#ifndef SCL_KERNEL_VECCHIA_TASK_H
#define SCL_KERNEL_VECCHIA_TASK_H

/* Offsets are in numbers; leading dimensions are those of columns, one for each point. */
typedef struct {
  scl_long records_offset, neighbours_offset, plan_offset, combine_offset, partial_offset;
  real noise2, logs; /* square of the noise's sd; factor of the logarithms in derivatives */
  int n, p, columns; /* points or blocks, coordinates, further columns of a record */
  int m;             /* neighbours of a point, or a block's rows less one */
  int records_ld, neighbours_ld;
  int spread; /* records end with s and v of the noise */
  int terms, entries, products;
  int combined; /* columns of `combine` */
  int results;  /* of a group: the failed order, and the numbers of engine/pass/vecchia.h */
  int parameters;
  int first;    /* block of grouped ones, of which n is the end */
  int together; /* members of a block whose information is computed at the same time */
  int unused;
} vecchia_task;
SCL_SAME_LAYOUT(vecchia_task, 120)

/* VECCHIA_WHAT: the results of a kernel, as scl_vecchia_what. */
#define VECCHIA_SUMS 0
#define VECCHIA_DERIVATIVES 1
#define VECCHIA_INFORMATION 3

#endif
