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

STRIPS_INLINE real lane_value(const real value, const int lane) {
  const uint2 bits = as_uint2(value);
  uint low, high;
#define STRIPS_SHUFFLE(to, from)                                                                   \
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(to) : "r"(from), "r"(lane))
  STRIPS_SHUFFLE(low, bits.x);
  STRIPS_SHUFFLE(high, bits.y);
  return as_double((uint2)(low, high));
}

/* One product of 16 x 8 results: to = from + a b', where a is half of a strip's block and b the
 * pair that this lane holds of 8 rows. */
#define STRIPS_TIMES_8(to, from, a, b)                                                             \
  MMA_MOVE_8(to, from, (a)[0], (a)[2], (a)[1], (a)[3], (b).x, (b).y)

STRIPS_INLINE real2 packed_pair(__local const real *packed, const int row, const int k) {
  return *(__local const real2 *)(packed + STRIPS_AT(row, k));
}

/* to = from + x B', where B is the 16 rows from `row` on of what starts at `packed`. Two chains. */
STRIPS_INLINE void times16(real to[2][4], real from[2][4], real x[2][4],
                           __local const real *packed, const int row, const int g, const int t) {
  const real2 b00 = packed_pair(packed, row + g, 2 * t);
  const real2 b10 = packed_pair(packed, row + 8 + g, 2 * t);
  const real2 b01 = packed_pair(packed, row + g, 8 + 2 * t);
  const real2 b11 = packed_pair(packed, row + 8 + g, 8 + 2 * t);
  STRIPS_TIMES_8(to[0], from[0], x[0], b00);
  STRIPS_TIMES_8(to[1], from[1], x[0], b10);
  STRIPS_TIMES_8(to[0], to[0], x[1], b01);
  STRIPS_TIMES_8(to[1], to[1], x[1], b11);
}

/* solved L' = x for a diagonal block, of which `column` is the packed column block; x is lost. The
 * upper right quarters of L and W are zero and left out. The products are in an order in which a
 * warp waits for few of them. */
STRIPS_INLINE void solve16(real solved[2][4], real x[2][4], __local const real *column,
                           const int g, const int t) {
  __local const real *inverse = column + STRIPS_INVERSE;
  const real zero[4] = {0.0, 0.0, 0.0, 0.0};
  const real2 w00 = packed_pair(inverse, g, 2 * t), w10 = packed_pair(inverse, 8 + g, 2 * t);
  const real2 w11 = packed_pair(inverse, 8 + g, 8 + 2 * t);
  const real2 l00 = packed_pair(column, g, 2 * t), l10 = packed_pair(column, 8 + g, 2 * t);
  const real2 l11 = packed_pair(column, 8 + g, 8 + 2 * t);
  STRIPS_TIMES_8(solved[0], zero, x[0], w00); /* x W' */
  STRIPS_TIMES_8(solved[1], zero, x[0], w10);
  STRIPS_TIMES_8(x[0], x[0], solved[0], l00); /* what that leaves: x - solved L' */
  STRIPS_TIMES_8(solved[1], solved[1], x[1], w11);
  STRIPS_TIMES_8(x[1], x[1], solved[0], l10);
  STRIPS_TIMES_8(solved[0], solved[0], x[0], w00); /* the correction */
  STRIPS_TIMES_8(x[1], x[1], solved[1], l11);
  STRIPS_TIMES_8(solved[1], solved[1], x[0], w10);
  STRIPS_TIMES_8(solved[1], solved[1], x[1], w11);
}
