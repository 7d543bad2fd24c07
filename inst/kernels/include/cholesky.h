/* Sizes of the Cholesky kernels, known to cholesky.cl, cholesky_mma.cl and to their driver
 * (engine/cl/linalg/cholesky.c), and what a launch is to do. No code.
 *
 * CHOLESKY_BLOCK: order of the diagonal blocks that one group factors in local memory.
 * CHOLESKY_LINES: work-items to a row of such a block.
 * The matrix-instruction kernel's blocks have the order PANEL_ORDER (triangular.h).
 * CHOLESKY_BELOW: block rows (of 16 rows) below the diagonal block that a group solves for. */
#ifndef SCL_KERNEL_CHOLESKY_H
#define SCL_KERNEL_CHOLESKY_H

#define CHOLESKY_BLOCK 64
#define CHOLESKY_GPU_LINES 4
#define CHOLESKY_CPU_LINES 1
#define CHOLESKY_BELOW 3
#define CHOLESKY_WARPS (1 + PANEL_ORDER / 16 + CHOLESKY_BELOW) /* of a group of cholesky_mma.cl */

/* A panel that cholesky_mma_panel factors, read from one matrix, written to others. */
typedef struct {
  scl_long from_offset, below_offset, diagonal_offset, info_offset;
  int from_ld, below_ld, diagonal_ld;
  int rows, n; /* n columns */
  int before;  /* columns of the matrix before it */
  int clear;   /* columns right of it that become zero above the diagonal */
  int unused;  /* fills the struct up */
} cholesky_panel_task;
SCL_SAME_LAYOUT(cholesky_panel_task, 64)

#endif
