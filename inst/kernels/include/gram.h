/* Sizes of the crossproducts of tall matrices (nvidia/gram_mma.cl, portable/gram.cl), known to the
 * kernels and to their driver (engine/cl/linalg/gram.c), and the task of a launch. No code. */
#ifndef SCL_KERNEL_GRAM_H
#define SCL_KERNEL_GRAM_H

#define GRAM_ROWS 16   /* rows of X in a stage */
#define GRAM_MOST 128  /* columns of the largest layout */
#define GRAM_LANES 32  /* elements of the result that a group of gram_sum adds up */
#define GRAM_SLICES 16 /* into which it cuts the parts */

/* Part g of the sum has rows g * rows, ... of X; w_offset counts only if `weighted`. */
typedef struct {
  scl_long x_offset, w_offset;
  int x_ld, n, p, rows, weighted;
  int unused; /* fills the struct up */
} gram_task;
SCL_SAME_LAYOUT(gram_task, 40)

#endif
