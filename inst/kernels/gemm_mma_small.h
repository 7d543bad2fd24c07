/* Tiles of 64 x 64: for products with few tiles. */
#define MMA_NAME(form) gemm_mma_small_##form
#define MMA_TILE_M 64
#define MMA_TILE_N 64
#define MMA_WARP_M 32
#define MMA_WARP_N 32
#define MMA_STAGES 5
