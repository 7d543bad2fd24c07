/* Strips of 16 rows in the registers of a warp, on the double-precision matrix instructions of
 * NVIDIA devices (mma.h): what cholesky_mma.cl and triangular_mma.cl share.
 *
 * A strip is 16 rows of a block of order STRIPS_ORDER, held as blocks of 16 x 16. With g = lane / 4
 * and t = lane % 4, entry (2g + r, 8h + 2t + e) of a block b is b[h][2r + e]. So an accumulator of
 * the 16 x 8 x 4 instruction can serve as its A operand without any exchange, as the sum may be
 * relabelled: step (h, e) sums over k = 8h + 2t + e.
 *
 * The triangular factor L that all warps need as B operand is packed. Column block p, of 16
 * columns, starts at STRIPS_START(p): the 16 x 16 diagonal block of -L, then the inverse W of that
 * of L, then the rows of -L below; rows of 16 entries (STRIPS_AT; the exclusive-or frees fragment
 * loads and stores of bank conflicts). The sign makes every elimination a plain product that is
 * added.
 *
 * Solving x L' = b with a diagonal block is x = b W' and one correction, x += (b - x L') W':
 * without it the residual would grow with the condition of the block, and blocks of the covariance
 * matrix of a smooth Gaussian process are as ill-conditioned as the whole. */

#define STRIPS (STRIPS_ORDER / 16)
#define STRIPS_TAIL (STRIPS - 1)
#define STRIPS_AT(row, k) ((row) * 16 + ((k) ^ ((((row) ^ ((row) >> 1)) & 1) << 3)))
#define STRIPS_COLUMN(p) (256 + 16 * (STRIPS_ORDER - 16 * (p))) /* doubles of column block p */
#define STRIPS_START(p) ((256 + 16 * STRIPS_ORDER) * (p) - 128 * (p) * ((p) - 1))
/* Where W and then the rows below start in a column block: row r is row r - 16p there. */
#define STRIPS_INVERSE 256

/* Everything must end up in one kernel, as arrays passed by pointer live in registers only then. */
#define STRIPS_INLINE static inline __attribute__((always_inline))

STRIPS_INLINE double lane_value(const double value, const int lane) {
  const uint2 bits = as_uint2(value);
  uint low, high;
#define STRIPS_SHUFFLE(to, from)                                                                   \
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(to) : "r"(from), "r"(lane))
  STRIPS_SHUFFLE(low, bits.x);
  STRIPS_SHUFFLE(high, bits.y);
  return as_double((uint2)(low, high));
}

/* to = from + x B', where B is the 16 rows from `row` on of what starts at `packed`. Two chains. */
STRIPS_INLINE void times16(double to[2][4], double from[2][4], double x[2][4],
                             __local const double *packed, const int row, const int g,
                             const int t) {
  SCL_UNROLL
  for (int h = 0; h < 2; h++) {
    const double2 b0 = *(__local const double2 *)(packed + STRIPS_AT(row + g, 8 * h + 2 * t));
    const double2 b1 = *(__local const double2 *)(packed + STRIPS_AT(row + 8 + g, 8 * h + 2 * t));
    if (h == 0) {
      MMA_MOVE_4(to[0], from[0], x[0][0], x[0][2], b0.x);
      MMA_MOVE_4(to[1], from[1], x[0][0], x[0][2], b1.x);
    } else {
      MMA_MOVE_4(to[0], to[0], x[1][0], x[1][2], b0.x);
      MMA_MOVE_4(to[1], to[1], x[1][0], x[1][2], b1.x);
    }
    MMA_MOVE_4(to[0], to[0], x[h][1], x[h][3], b0.y);
    MMA_MOVE_4(to[1], to[1], x[h][1], x[h][3], b1.y);
  }
}

/* solved L' = x for a diagonal block; `column` is its packed column block. */
STRIPS_INLINE void solve16(double solved[2][4], double x[2][4], __local const double *column,
                           const int g, const int t) {
  double zero[2][4] = {{0.0, 0.0, 0.0, 0.0}, {0.0, 0.0, 0.0, 0.0}}, rest[2][4];
  times16(solved, zero, x, column + STRIPS_INVERSE, 0, g, t);
  times16(rest, x, solved, column, 0, g, t);
  times16(solved, solved, rest, column + STRIPS_INVERSE, 0, g, t);
}
