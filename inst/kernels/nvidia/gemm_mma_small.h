/* Tiles of 64 x 64: for products with few tiles. */
#define MMA_TILE_M GEMM_MMA_SMALL_M
#define MMA_TILE_N GEMM_MMA_SMALL_N
#define MMA_WARP_M 32
#define MMA_WARP_N 32
#define MMA_STAGES 5
#define MMA_TOGETHER 1
