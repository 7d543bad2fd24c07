/* Tiles of 64 x 64: for products with few tiles. */
#define GEMM_TILE_M GEMM_GPU_TILE_M
#define GEMM_TILE_N GEMM_GPU_TILE_N
#define GEMM_ITEM_M GEMM_GPU_ITEM_M
#define GEMM_ITEM_N GEMM_GPU_ITEM_N
