/* Tiles of 128 x 64, two groups a processor: for products with many tiles. */
#define MMA_TILE_M GEMM_MMA_LARGE_M
#define MMA_TILE_N GEMM_MMA_LARGE_N
#define MMA_WARP_M 64 /* rows and columns of a warp, multiples of 16 */
#define MMA_WARP_N 32
#ifndef MMA_STAGES
#define MMA_STAGES 4 /* in the ring, at least 2 MMA_TOGETHER; local memory grows with it */
#endif
#ifndef MMA_TOGETHER
#define MMA_TOGETHER 1 /* stages between two barriers */
#endif
