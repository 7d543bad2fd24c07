/* Tiles of 128 x 128, one group a processor, only for flat operands: for products with many tiles.
 * A group reads a quarter less than two of 128 x 64, which counts where a device is at the limit of
 * its power. */
#define MMA_TILE_M GEMM_MMA_HUGE_M
#define MMA_TILE_N GEMM_MMA_HUGE_N
#define MMA_WARP_M 64 /* rows and columns of a warp, multiples of 16 */
#define MMA_WARP_N 32
#ifndef MMA_STAGES
#define MMA_STAGES 3 /* in the ring, at least 2 MMA_TOGETHER; local memory grows with it */
#endif
#ifndef MMA_TOGETHER
#define MMA_TOGETHER 1 /* stages between two barriers */
#endif
#define MMA_ORDER 16
