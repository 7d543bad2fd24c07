/* Sizes of the Cholesky kernels, known to cholesky.cl, cholesky_mma.cl and to their driver
 * (engine/cl/linalg/cholesky.c), and the task of a launch. No code. */
#ifndef SCL_KERNEL_CHOLESKY_H
#define SCL_KERNEL_CHOLESKY_H

/* cholesky.cl. */
#define CHOLESKY_BLOCK 64    /* order of the diagonal blocks that one group factors */
#define CHOLESKY_GPU_LINES 4 /* work-items to a row of such a block, on a GPU */
#define CHOLESKY_CPU_LINES 1 /* the same, on a CPU */

/* cholesky_mma.cl, whose blocks have the order PANEL_ORDER (triangular.h). */
#define CHOLESKY_BELOW 3 /* block rows below the diagonal block that a group solves for */
#define CHOLESKY_WARPS (1 + PANEL_ORDER / 16 + CHOLESKY_BELOW) /* of a group */

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
