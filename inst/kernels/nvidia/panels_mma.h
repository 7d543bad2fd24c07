/* Block rows of a panel in the registers of warps, on the double-precision matrix instructions of
 * NVIDIA devices (mma.h): shared by cholesky_mma.cl and triangular_mma.cl.
 *
 *        block columns                  packed, one block column after another:
 *          0   1   2 ..
 *        +---+---+---+                  | -L00 | W0 | -L10 | -L20 | .. | -L11 | W1 | -L21 | ..
 *      0 |L00|   |   |                  PANEL_START(0)                 PANEL_START(1)
 *        +---+---+---+
 *      1 |L10|L11|   |  block rows      W0 = inv(L00), W1 = inv(L11), ..
 *        +---+---+---+
 *      2 |L20|L21|L22|
 *
 * A block row is 16 rows of PANEL_ORDER numbers, held as blocks of 16 x 16 by one warp. With quad
 * and member of a lane (mma.h), entry (2 quad + r, 8 h + 2 member + e) of a block x is x[h][2 r +
 * e]. So an accumulator of the 16 x 8 x 4 instruction can serve as its A operand without any
 * exchange, as the sum may be relabelled: step (h, e) sums over k = 8 h + 2 member + e.
 *
 * The triangular factor L that all warps need as B operand is packed: of each block column the
 * diagonal block of -L, the inverse W of that of L, the rows of -L below; rows of 16 entries
 * (PANEL_AT; the exclusive-or frees fragment loads and stores of bank conflicts). The sign makes
 * every elimination a plain product that is added.
 *
 * Solving x L' = b with a diagonal block is x = b W' and one correction, x += (b - x L') W':
 * without it the residual would grow with the condition of the block, and blocks of the covariance
 * matrix of a smooth Gaussian process are as ill-conditioned as the whole. */

#define PANEL_BLOCKS (PANEL_ORDER / 16)
#define PANEL_TAIL (PANEL_BLOCKS - 1) /* blocks of a block row after the one at hand */
#define PANEL_AT(row, k) ((row)*16 + ((k) ^ ((((row) ^ ((row) >> 1)) & 1) << 3)))
#define PANEL_COLUMN(p) (256 + 16 * (PANEL_ORDER - 16 * (p))) /* doubles of block column p */
#define PANEL_START(p) ((256 + 16 * PANEL_ORDER) * (p)-128 * (p) * ((p)-1))
/* The start of W, and then of the rows below, in block column p: row r of the panel is row r - 16 p
 * from here. */
#define PANEL_INVERSE 256

/* One product of 16 x 8 results: to = from + a b', where a is half of a block of a block row and b
 * the pair that this lane holds of 8 rows. */
MMA_COLLECTIVE void times8(const mma_lane lane, real to[4], const real from[4], const real a[4],
                           const real2 b) {
  mma_8_to(lane, to, from, a[0], a[2], a[1], a[3], b.x, b.y);
}

/* The pair of a lane in rows row to row + 7, from entry k on, of what starts at `packed`. */
MMA_INLINE real2 packed_pair(const mma_lane lane, __local const real *packed, const int row,
                             const int k) {
  if (!mma_is_active(lane)) return 0.0;
  return *(__local const real2 *)(packed + PANEL_AT(row + lane.quad, k + 2 * lane.member));
}

/* to = from + x B', where B is the 16 rows from `row` on of what starts at `packed`. Two chains. */
MMA_COLLECTIVE void times16(const mma_lane lane, real to[2][4], real from[2][4], real x[2][4],
                            __local const real *packed, const int row) {
  const real2 b00 = packed_pair(lane, packed, row, 0);
  const real2 b10 = packed_pair(lane, packed, row + 8, 0);
  const real2 b01 = packed_pair(lane, packed, row, 8);
  const real2 b11 = packed_pair(lane, packed, row + 8, 8);
  times8(lane, to[0], from[0], x[0], b00);
  times8(lane, to[1], from[1], x[0], b10);
  times8(lane, to[0], to[0], x[1], b01);
  times8(lane, to[1], to[1], x[1], b11);
}

/* solved L' = x for a diagonal block, of which `column` is the packed block column; x is lost. The
 * upper right quarters of L and W are zero and left out. The products are in an order in which a
 * warp waits for few of them. */
MMA_COLLECTIVE void solve16(const mma_lane lane, real solved[2][4], real x[2][4],
                            __local const real *column) {
  __local const real *inverse = column + PANEL_INVERSE;
  const real zero[4] = {0.0, 0.0, 0.0, 0.0};
  const real2 w00 = packed_pair(lane, inverse, 0, 0), w10 = packed_pair(lane, inverse, 8, 0);
  const real2 w11 = packed_pair(lane, inverse, 8, 8);
  const real2 l00 = packed_pair(lane, column, 0, 0), l10 = packed_pair(lane, column, 8, 0);
  const real2 l11 = packed_pair(lane, column, 8, 8);
  times8(lane, solved[0], zero, x[0], w00); /* x W' */
  times8(lane, solved[1], zero, x[0], w10);
  times8(lane, x[0], x[0], solved[0], l00); /* what that leaves: x - solved L' */
  times8(lane, solved[1], solved[1], x[1], w11);
  times8(lane, x[1], x[1], solved[0], l10);
  times8(lane, solved[0], solved[0], x[0], w00); /* the correction */
  times8(lane, x[1], x[1], solved[1], l11);
  times8(lane, solved[1], solved[1], x[0], w10);
  times8(lane, solved[1], solved[1], x[1], w11);
}
