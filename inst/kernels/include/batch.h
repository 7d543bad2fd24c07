/* Shared by the batched kernels and their driver. All kernels but products take
 *   inputs and output         the buffers of the operands a, b and c, and of the result
 *   statuses, any             a byte for each matrix (ops/batch.h), written if BATCH_STATUSES; 1
 *                             once a matrix has failed
 *   task                      sizes, flags, and where the operands lie
 * and leave NaN where the status is not 0. */
#ifndef BATCH_H
#define BATCH_H

#define BATCH_UPPER 1
#define BATCH_TRANSPOSE 2   /* the triangle, or a product's left factor */
#define BATCH_TRANSPOSE_B 4 /* a product's right factor */
#define BATCH_COFACTORS 8
#define BATCH_LOGARITHM 16
#define BATCH_MEAN 32  /* there are means */
#define BATCH_DET 64   /* of the solver: determinants instead of solutions */
#define BATCH_MVN 128  /* of the triangular solver: log densities instead of solutions */
#define BATCH_STATUSES 256

/* For each operand: where its first matrix starts, and the stride from one matrix to the next (0:
 * one matrix is shared by all). */
typedef struct {
  scl_long a_offset, b_offset, c_offset, out_offset;
  int a_step, b_step, c_step, out_step;
  int batch, n; /* matrices, and their order */
  int count_b;  /* right-hand sides of a matrix */
  int flags;
} batch_task;
SCL_SAME_LAYOUT(batch_task, 64)

/* The same of products: each result is m x n, a sum of k terms. */
typedef struct {
  scl_long a_offset, b_offset, c_offset;
  int a_step, b_step, c_step;
  int batch, m, n, k;
  int flags;
} batch_product_task;
SCL_SAME_LAYOUT(batch_product_task, 56)

#define BATCH_NONFINITE 255
#define BATCH_SINGULAR_BELOW 0x1p-1022 /* a pivot whose reciprocal could overflow */

/* Products: the number of elements of a result from which tiles are used, the side of a tile, the
 * work-items of a group along one side, and how many terms of the sum are in local memory. */
#ifndef BATCH_TILED_FROM
#define BATCH_TILED_FROM 400
#endif
#ifndef BATCH_PRODUCT_TILE
#define BATCH_PRODUCT_TILE 32
#endif
#ifndef BATCH_PRODUCT_ITEMS
#define BATCH_PRODUCT_ITEMS 8
#endif
#ifndef BATCH_PRODUCT_DEPTH
#define BATCH_PRODUCT_DEPTH 8
#endif

/* The same with matrix instructions: from which size on, and warps of a group. */
#ifndef BATCH_MMA_FROM
#define BATCH_MMA_FROM 64
#endif
#ifndef BATCH_WARPS
#define BATCH_WARPS 4
#endif
/* The largest sides of a result that one warp, or one group, computes. */
#define BATCH_WARP_SIDE 32
#define BATCH_GROUP_SIDE 96

/* Solutions by panels: from which order on, and right-hand sides of a group. */
#ifndef BATCH_PANELS_FROM
#define BATCH_PANELS_FROM 49
#endif
#define BATCH_PANEL_SIDES 8

#endif
