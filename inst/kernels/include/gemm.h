/* Sizes of the product kernels, known to the kernels (gemm.cl, gemm_cpu.cl, gemm_thin.cl) and to
 * their driver (engine/cl/linalg/gemm.c), and what a launch is to do. No code.
 *
 * A group computes a tile of C of TILE_M x TILE_N elements, a work-item ITEM_M x ITEM_N of them;
 * the sum over k advances by DEPTH for each pair of tiles of A and B in local memory. */
#ifndef SCL_KERNEL_GEMM_H
#define SCL_KERNEL_GEMM_H

#define GEMM_GPU_TILE_M 64
#define GEMM_GPU_TILE_N 64
#define GEMM_GPU_ITEM_M 8
#define GEMM_GPU_ITEM_N 4
/* The same of the large tile (gemm_large.h); both take GEMM_GPU_ITEMS work-items. */
#define GEMM_GPU_LARGE_M 128
#define GEMM_GPU_LARGE_ITEM_N 8
#define GEMM_GPU_ITEMS 128
#define GEMM_GPU_LARGE_BYTES 26000 /* of local memory, rounded up */

/* gemm_cpu.cl: largest tile, of which tiles are STEP, 2 STEP, 4 STEP (a multiple of both panels),
 * and the length of a slice along k. */
#define GEMM_CPU_TILE 192
#define GEMM_CPU_STEP 48
#define GEMM_CPU_DEPTH 128
#define GEMM_CPU_BYTES (2 * 8 * GEMM_CPU_TILE * GEMM_CPU_DEPTH) /* of local memory */

/* Tiles of the matrix-instruction kernels (gemm_mma_tiny.h, _small.h, _large.h, _huge.h). */
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

/* Products with at most THIN columns (or rows) go through gemm_thin.cl: groups of THIN_LANES x
 * THIN_ROWS work-items, THIN_COLUMNS columns at a time. */
#define GEMM_THIN 8
#define GEMM_THIN_LANES 32
#define GEMM_THIN_ROWS 8
#define GEMM_THIN_COLUMNS 4

/* Shortest piece of the k range when it is dealt out to several groups. */
#define GEMM_SPLIT 512

/* What a kernel may take for zero, and which elements of C it writes. */
#define GEMM_A_LOWER 1
#define GEMM_A_UPPER 2
#define GEMM_B_LOWER 4
#define GEMM_B_UPPER 8

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
