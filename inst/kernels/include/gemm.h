/* Sizes of the product kernels, known to the kernels (gemm.cl, gemm_cpu.cl, gemm_thin.cl) and to
 * their driver (engine/cl/linalg/gemm.c), and the task of a launch. No code.
 */
#ifndef SCL_KERNEL_GEMM_H
#define SCL_KERNEL_GEMM_H

/* gemm.cl. */
#define GEMM_GPU_TILE_M 64 /* rows and columns of C that a group computes */
#define GEMM_GPU_TILE_N 64
#define GEMM_GPU_ITEM_M 8 /* those of a work-item; even */
#define GEMM_GPU_ITEM_N 4
#define GEMM_GPU_LARGE_M 128 /* the same of the large tile (gemm_large.h), where it differs */
#define GEMM_GPU_LARGE_ITEM_N 8
#define GEMM_GPU_ITEMS 128         /* work-items of a group, of both tiles */
#define GEMM_GPU_LARGE_BYTES 26000 /* of local memory that the large tile takes, rounded up */

/* gemm_cpu.cl. */
#define GEMM_CPU_TILE 192  /* order of the largest tile: 4 GEMM_CPU_STEP */
#define GEMM_CPU_STEP 48   /* that of the smallest one: a multiple of both panels */
#define GEMM_CPU_DEPTH 128 /* length of a slice along k */
#define GEMM_CPU_BYTES (2 * 8 * GEMM_CPU_TILE * GEMM_CPU_DEPTH) /* of local memory */

/* Tiles of the matrix-instruction kernels (gemm_mma_tiny.h, _small.h, _large.h, _huge.h): rows and
 * columns of C that a group computes, and its work-items. */
#define GEMM_MMA_TINY_M 32
#define GEMM_MMA_TINY_N 32
#define GEMM_MMA_SMALL_M 64
#define GEMM_MMA_SMALL_N 64
#define GEMM_MMA_LARGE_M 128
#define GEMM_MMA_LARGE_N 64
#define GEMM_MMA_ITEMS 128
#define GEMM_MMA_HUGE_M 128
#define GEMM_MMA_HUGE_N 128
#define GEMM_MMA_HUGE_ITEMS 256

/* gemm_thin.cl. */
#define GEMM_THIN 8        /* most columns (or rows) of its products */
#define GEMM_THIN_LANES 32 /* work-items of a group: LANES x ROWS */
#define GEMM_THIN_ROWS 8
#define GEMM_THIN_COLUMNS 4 /* that a group computes at a time */

/* Fewest terms of a part when a sum is split between several groups. */
#define GEMM_SPLIT 512

/* Flags of `views`: the only triangle of op(A), or of op(B), that is not zero. */
#define GEMM_A_LOWER 1
#define GEMM_A_UPPER 2
#define GEMM_B_LOWER 4
#define GEMM_B_UPPER 8

/* Values of `region`: the elements of C that are written. */
#define GEMM_ALL 0
#define GEMM_LOWER_HALF 1
#define GEMM_MIRRORED 2
#define GEMM_AND_TRANSPOSED 3 /* all, and C transposed to another matrix: gemm_mma.cl only */

/* A batch of products C = alpha op(A) op(B) + beta C, by tiles. The matrices are those of the first
 * product, the others follow `*_step` elements apart; the last one may be smaller. */
typedef struct {
  scl_long a_offset, b_offset, c_offset;
  scl_long from_offset, transposed_offset; /* gemm_mma.cl only */
  scl_long a_step, b_step, c_step;
  real alpha, beta;
  int a_ld, b_ld, c_ld, from_ld, transposed_ld;
  int m, n, k, m_last, n_last, k_last;
  int views, region;
  int tiles, batch; /* of C, of the products: a pair of products only */
  int cpu_tile;     /* order of a tile: gemm_cpu.cl only */
} gemm_task;
SCL_SAME_LAYOUT(gemm_task, 144)

/* A product with few columns, Y = alpha op(A) X + beta Y (gemm_thin.cl). Element (i, c) of X lies
 * i * x_row + c * x_column elements from its start; Y likewise. Part p of the sum has k_part terms;
 * its results lie p * y_part elements further on. */
typedef struct {
  scl_long x_row, x_column, y_row, y_column, y_part;
  real alpha, beta;
  int m, n, k, k_part, views;
  int unused; /* fills the struct up */
} gemm_thin_task;
SCL_SAME_LAYOUT(gemm_thin_task, 80)

#endif
