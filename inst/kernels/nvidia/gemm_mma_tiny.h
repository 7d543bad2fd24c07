/* Tiles of 32 x 32: for products that would leave processors without a tile. */
#define MMA_TILE_M GEMM_MMA_TINY_M
#define MMA_TILE_N GEMM_MMA_TINY_N
#define MMA_WARP_M 16 /* rows and columns of a warp, multiples of 16 */
#define MMA_WARP_N 16
#ifndef MMA_STAGES
#define MMA_STAGES 8 /* in the ring, at least 2 MMA_TOGETHER; local memory grows with it */
#endif
#ifndef MMA_TOGETHER
#define MMA_TOGETHER 2 /* stages between two barriers */
#endif
