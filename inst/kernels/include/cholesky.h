/* Sizes of the Cholesky kernels, known to cholesky.cl, cholesky_mma.cl and to their driver
 * (engine/cl/linalg/cholesky.c). No code.
 *
 * CHOLESKY_BLOCK: order of the diagonal blocks that one group factors in local memory.
 * CHOLESKY_LINES: work-items to a row of such a block.
 * The matrix-instruction kernel's blocks have the order STRIPS_ORDER (triangular.h).
 * CHOLESKY_EXTRA: strips of 16 rows below its diagonal block that a group takes along. */
#ifndef SCL_KERNEL_CHOLESKY_H
#define SCL_KERNEL_CHOLESKY_H

#define CHOLESKY_BLOCK 64
#define CHOLESKY_GPU_LINES 4
#define CHOLESKY_CPU_LINES 1
#define CHOLESKY_EXTRA 3
#define CHOLESKY_WARPS (1 + STRIPS_ORDER / 16 + CHOLESKY_EXTRA) /* of a group of cholesky_mma.cl */

#endif
