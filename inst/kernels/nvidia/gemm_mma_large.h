/* Tiles of 128 x 64, two groups a processor: for products with many tiles. */
#define MMA_TILE_M GEMM_MMA_LARGE_M
#define MMA_TILE_N GEMM_MMA_LARGE_N
#define MMA_WARP_M 64
#define MMA_WARP_N 32
#define MMA_STAGES 4
#define MMA_TOGETHER 1
