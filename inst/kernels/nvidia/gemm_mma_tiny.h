/* Tiles of 32 x 32: for products that would leave processors without a tile. */
#define MMA_TILE_M GEMM_MMA_TINY_M
#define MMA_TILE_N GEMM_MMA_TINY_N
#define MMA_WARP_M 16
#define MMA_WARP_N 16
#define MMA_STAGES 8
#define MMA_TOGETHER 2
