/* Tiles of 64 x 64: for products with few tiles. */
#define MMA_TILE_M GEMM_MMA_SMALL_M
#define MMA_TILE_N GEMM_MMA_SMALL_N
#define MMA_WARP_M 32 /* rows and columns of a warp, multiples of 16 */
#define MMA_WARP_N 32
#ifndef MMA_STAGES
#define MMA_STAGES 5 /* in the ring, at least 2 MMA_TOGETHER; local memory grows with it */
#endif
#ifndef MMA_TOGETHER
#define MMA_TOGETHER 1 /* stages between two barriers */
#endif
