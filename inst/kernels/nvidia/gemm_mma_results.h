/* The results of a tile of gemm_mma.cl: a lane's sums, scaled and added to the old values, are
 * written to C and, on request, to its transpose. */

#define MMA_ROWS16 (MMA_WARP_M / 16)    /* blocks of 16 rows in a warp's part */
#define MMA_COLUMNS16 (MMA_WARP_N / 16) /* blocks of 16 columns */

/* One product of a batch. */
typedef struct {
  __global const real *a, *b, *from;
  __global real *c, *transposed; /* NULL: C is not written transposed */
  int a_ld, b_ld, c_ld, from_ld, transposed_ld;
  int m, n, k;
  int views, whole; /* whole: also above the diagonal */
  real alpha, beta;
} mma_product;

/* The pair of neighbouring columns number `pair` that a lane holds within 16 columns starts here;
 * its element in row 2 quad + r and column q of the pair is this sum. */
#define MMA_COLUMN(deep_b, member, pair)                                                           \
  ((deep_b) ? 8 * (pair) + 2 * (member) : 4 * (member) + 2 * (pair))
#define MMA_ELEMENT(sums, deep_b, i, j, r, pair, q)                                                \
  ((deep_b) ? sums[i][2 * (j) + (pair)][2 * (r) + (q)] : sums[i][2 * (j) + (q)][2 * (r) + (pair)])

/* Writes a lane's elements, of which (row0, column0) is the first, of a tile that lies within C and
 * off its diagonal. The old C is read in batches before the new one is written: the compiler cannot
 * know that the addresses differ. */
MMA_INLINE void mma_write_full(const int deep_b, real sums[MMA_ROWS16][2 * MMA_COLUMNS16][4],
                               const mma_product *product, const int row0, const int column0,
                               const int member) {
  const int c_ld = product->c_ld, from_ld = product->from_ld, ld = product->transposed_ld;
  __global const real *from = product->from;
  __global real *c = product->c, *transposed = product->transposed;
  const real alpha = product->alpha, beta = product->beta;
  SCL_UNROLL
  for (int j = 0; j < MMA_COLUMNS16; j++) {
    SCL_UNROLL
    for (int pair = 0; pair < 2; pair++) {
      const int column = column0 + 16 * j + MMA_COLUMN(deep_b, member, pair);
      real2 values[2][MMA_ROWS16];
      SCL_UNROLL
      for (int q = 0; q < 2; q++) {
        SCL_UNROLL
        for (int i = 0; i < MMA_ROWS16; i++) {
          values[q][i] = alpha * (real2)(MMA_ELEMENT(sums, deep_b, i, j, 0, pair, q),
                                         MMA_ELEMENT(sums, deep_b, i, j, 1, pair, q));
          if (beta != 0.0)
            values[q][i] += beta * *(__global const real2 *)(from + row0 + 16 * i +
                                                             (long)(column + q) * from_ld);
        }
      }
      SCL_UNROLL
      for (int q = 0; q < 2; q++) {
        SCL_UNROLL
        for (int i = 0; i < MMA_ROWS16; i++)
          *(__global real2 *)(c + row0 + 16 * i + (long)(column + q) * c_ld) = values[q][i];
      }
      if (transposed) {
        SCL_UNROLL
        for (int i = 0; i < MMA_ROWS16; i++) {
          __global real *to = transposed + column + (long)(row0 + 16 * i) * ld;
          *(__global real2 *)to = (real2)(values[0][i].x, values[1][i].x);
          *(__global real2 *)(to + ld) = (real2)(values[0][i].y, values[1][i].y);
        }
      }
    }
  }
}

/* The same, element by element, for tiles at the edge of C or on its diagonal. */
MMA_INLINE void mma_write_guarded(const int deep_b, real sums[MMA_ROWS16][2 * MMA_COLUMNS16][4],
                                  const mma_product *product, const int row0, const int column0,
                                  const int member) {
  const int c_ld = product->c_ld, from_ld = product->from_ld, ld = product->transposed_ld;
  const int m = product->m, n = product->n, whole = product->whole;
  __global const real *from = product->from;
  __global real *c = product->c, *transposed = product->transposed;
  const real alpha = product->alpha, beta = product->beta;
  SCL_NO_UNROLL /* a copy of the guards for each block would take a driver twice the time */
  for (int block = 0; block < MMA_ROWS16 * MMA_COLUMNS16; block++) {
    const int row1 = row0 + 16 * (block % MMA_ROWS16);
    const int column1 = column0 + 16 * (block / MMA_ROWS16);
    real part[1][2][4]; /* the sums of this block, chosen without an index into registers */
    SCL_UNROLL
    for (int e = 0; e < 8; e++) {
      part[0][e >> 2][e & 3] = 0.0;
      SCL_UNROLL
      for (int k = 0; k < MMA_ROWS16 * MMA_COLUMNS16; k++) {
        const real sum = sums[k % MMA_ROWS16][2 * (k / MMA_ROWS16) + (e >> 2)][e & 3];
        part[0][e >> 2][e & 3] = block == k ? sum : part[0][e >> 2][e & 3];
      }
    }
    real old[8];
    int used[8];
    SCL_UNROLL
    for (int x = 0; x < 8; x++) {
      const int row = row1 + (x & 1);
      const int column = column1 + MMA_COLUMN(deep_b, member, x >> 1 & 1) + (x >> 2);
      used[x] = row < m && column < n && (whole || row >= column);
      old[x] = 0.0;
      if (used[x] && beta != 0.0) old[x] = from[row + (long)column * from_ld];
    }
    SCL_UNROLL
    for (int x = 0; x < 8; x++) {
      const int r = x & 1, pair = x >> 1 & 1, q = x >> 2;
      const int row = row1 + r, column = column1 + MMA_COLUMN(deep_b, member, pair) + q;
      real value = alpha * MMA_ELEMENT(part, deep_b, 0, 0, r, pair, q);
      if (beta != 0.0) value = fma(beta, old[x], value);
      if (used[x]) {
        c[row + (long)column * c_ld] = value;
        if (transposed) transposed[column + (long)row * ld] = value;
      }
    }
  }
}
