/* Tiles of 128 x 64 and 8 x 8 sums to a work-item, which take less from local memory for each
 * multiplication: for products with many tiles. */
#define GEMM_TILE_M GEMM_GPU_LARGE_M
#define GEMM_TILE_N GEMM_GPU_TILE_N
#define GEMM_ITEM_M GEMM_GPU_ITEM_M
#define GEMM_ITEM_N GEMM_GPU_LARGE_ITEM_N
