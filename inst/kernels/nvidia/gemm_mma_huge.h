/* Tiles of 128 x 128, one group a processor, and none but flat operands: for products with many
 * tiles. A group reads a quarter less than two of 128 x 64, which counts where a device is at the
 * limit of its power. */
#define MMA_TILE_M GEMM_MMA_HUGE_M
#define MMA_TILE_N GEMM_MMA_HUGE_N
#define MMA_WARP_M 64
#define MMA_WARP_N 32
#define MMA_STAGES 3
#define MMA_TOGETHER 1
#define MMA_ORDER 16
