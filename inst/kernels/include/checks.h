/* Shared by reduce.cl and its driver (engine/cl/elementwise/check.c). */
#ifndef SCL_KERNEL_CHECKS_H
#define SCL_KERNEL_CHECKS_H

/* The values of scl_check and scl_view (base/engine.h, base/matrix.h). */
#define CHECK_FINITE 0
#define CHECK_SYMMETRIC 1
#define VIEW_LOWER 1
#define VIEW_UPPER 2
#define VIEW_SYMMETRIC 3

/* The condition that reduce_check tests, and the elements. */
typedef struct {
  real tol;       /* relative, of CHECK_SYMMETRIC */
  scl_long m, n;  /* the block, as the kernel sees it */
  scl_long rows;  /* of a chunk */
  int what, view; /* scl_check, scl_view */
  int stride;     /* of a check of the diagonal: from one of its elements to the next */
  int unused;     /* fills the struct up */
} reduce_task;
SCL_SAME_LAYOUT(reduce_task, 48)

#endif
