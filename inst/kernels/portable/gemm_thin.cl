/* Y = alpha op(A) X + beta Y with few columns of X and Y (matrix times vector and its kin), and the
 * sum of partial products.
 *
 * Bound by the reading of A: work-items run along its columns. X and Y have any strides (element
 * (i, c) at i * step + c * next), so that a row vector times a matrix is the same kernel.
 *
 * Dimension 0: rows of op(A); dimension 1: columns of X, GEMM_THIN_COLUMNS at a time; dimension 2:
 * pieces of the k range, `k_piece` long, whose results lie step_y elements apart in Y.
 *
 * A group is GEMM_THIN_LANES x GEMM_THIN_ROWS work-items; every sum has a fixed order. Rows of
 * op(A) that a group reads are shortened by what `views` (GEMM_A_*) promises. */

/* Several loads under way at once; a CPU looks ahead by itself. */
#ifdef SCL_CPU
#define GEMM_THIN_UNROLL
#else
#define GEMM_THIN_UNROLL _Pragma("unroll 4")
#endif

#define GEMM_THIN_ITEMS (GEMM_THIN_LANES * GEMM_THIN_ROWS)

SCL_INLINE void gemm_thin_write(__global real *y, const real sum, const real alpha,
                                const real beta) {
  *y = beta == 0.0 ? alpha * sum : fma(beta, *y, alpha * sum);
}

/* op(A) = A, m x k: a lane is a row, the second dimension deals out k. `columns` is a constant. */
SCL_INLINE void gemm_thin_rows(const int columns, const int m, const int n, const int begin,
                               const int end, const real alpha, __global const real *A,
                               const int lda, __global const real *X, const long step_x,
                               const long next_x, const real beta, __global real *Y,
                               const long step_y, const long next_y, const int c0,
                               const int row0, const int lane, const int slice,
                               __local real *sums) {
  const int row = row0 + lane;
  real sum[GEMM_THIN_COLUMNS];
  SCL_UNROLL
  for (int c = 0; c < GEMM_THIN_COLUMNS; c++) sum[c] = 0.0;
  if (row < m) {
    GEMM_THIN_UNROLL
    for (int i = begin + slice; i < end; i += GEMM_THIN_ROWS) {
      const real a = A[row + (long)i * lda];
      SCL_UNROLL
      for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
        if (c < columns && c0 + c < n) sum[c] = fma(a, X[i * step_x + (c0 + c) * next_x], sum[c]);
    }
  }
  SCL_UNROLL
  for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
    if (c < columns) sums[c * GEMM_THIN_ITEMS + slice * GEMM_THIN_LANES + lane] = sum[c];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int c = slice; c < columns; c += GEMM_THIN_ROWS) {
    real total = 0.0;
    for (int s = 0; s < GEMM_THIN_ROWS; s++)
      total += sums[c * GEMM_THIN_ITEMS + s * GEMM_THIN_LANES + lane];
    if (row < m && c0 + c < n)
      gemm_thin_write(Y + row * step_y + (c0 + c) * next_y, total, alpha, beta);
  }
}

/* op(A) = A', A is k x m: a line of lanes works along a column of A. */
SCL_INLINE void gemm_thin_columns(const int columns, const int m, const int n, const int begin,
                                  const int end, const real alpha, __global const real *A,
                                  const int lda, __global const real *X, const long step_x,
                                  const long next_x, const real beta, __global real *Y,
                                  const long step_y, const long next_y, const int c0,
                                  const int row0, const int lane, const int line,
                                  __local real *sums) {
  const int row = row0 + line;
  real sum[GEMM_THIN_COLUMNS];
  SCL_UNROLL
  for (int c = 0; c < GEMM_THIN_COLUMNS; c++) sum[c] = 0.0;
  if (row < m) {
    GEMM_THIN_UNROLL
    for (int i = begin + lane; i < end; i += GEMM_THIN_LANES) {
      const real a = A[i + (long)row * lda];
      SCL_UNROLL
      for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
        if (c < columns && c0 + c < n) sum[c] = fma(a, X[i * step_x + (c0 + c) * next_x], sum[c]);
    }
  }
  __local real *mine = sums + line * GEMM_THIN_LANES;
  SCL_UNROLL
  for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
    if (c < columns) mine[c * GEMM_THIN_ITEMS + lane] = sum[c];
  for (int width = GEMM_THIN_LANES / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < width) {
      SCL_UNROLL
      for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
        if (c < columns)
          mine[c * GEMM_THIN_ITEMS + lane] += mine[c * GEMM_THIN_ITEMS + lane + width];
    }
  }
  if (lane == 0 && row < m) {
    SCL_UNROLL
    for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
      if (c < columns && c0 + c < n)
        gemm_thin_write(Y + row * step_y + (c0 + c) * next_y, mine[c * GEMM_THIN_ITEMS], alpha,
                        beta);
  }
}

/* `rows`: rows of op(A) that a group takes. */
#define GEMM_THIN_KERNEL(name, body, columns, rows)                                                \
  __kernel __attribute__((reqd_work_group_size(GEMM_THIN_LANES, GEMM_THIN_ROWS, 1))) void name(    \
      const int m, const int n, const int k, const int k_piece, const real alpha,                  \
      __global const real *A, const long offset_a, const int lda, __global const real *X,          \
      const long offset_x, const long step_x, const long next_x, const real beta,                  \
      __global real *Y, const long offset_y, const long step_y, const long next_y,                 \
      const long piece_y, const int views) {                                                       \
    __local real sums[(columns)*GEMM_THIN_ITEMS];                                                  \
    const int piece = get_group_id(2), row0 = get_group_id(0) * (rows);                            \
    int begin = piece * k_piece, end = min(k, begin + k_piece);                                    \
    if (views & GEMM_A_LOWER) end = min(end, row0 + (rows));                                       \
    if (views & GEMM_A_UPPER) begin = max(begin, row0);                                            \
    body(columns, m, n, begin, end, alpha, A + offset_a, lda, X + offset_x, step_x, next_x, beta,  \
         Y + offset_y + piece * piece_y, step_y, next_y, get_group_id(1) * (columns), row0,        \
         get_local_id(0), get_local_id(1), sums);                                                  \
  }

GEMM_THIN_KERNEL(gemm_vector_n, gemm_thin_rows, 1, GEMM_THIN_LANES)
GEMM_THIN_KERNEL(gemm_vector_t, gemm_thin_columns, 1, GEMM_THIN_ROWS)
GEMM_THIN_KERNEL(gemm_thin_n, gemm_thin_rows, GEMM_THIN_COLUMNS, GEMM_THIN_LANES)
GEMM_THIN_KERNEL(gemm_thin_t, gemm_thin_columns, GEMM_THIN_COLUMNS, GEMM_THIN_ROWS)

/* C = alpha (P_0 + P_1 + ...) + beta C: `parts` dense m x n matrices, added in this order. A
 * work-item an element. */
__kernel void gemm_sum(const int m, const int n, const int parts, const real alpha,
                       __global const real *P, const long offset_p, const real beta,
                       __global real *C, const long offset_c, const int ldc, const int region) {
  const int row = get_global_id(0), column = get_global_id(1);
  if (row >= m || column >= n || (region != GEMM_ALL && row < column)) return;
  P += offset_p + row + (long)column * m;
  real sum = 0.0;
  GEMM_THIN_UNROLL
  for (int part = 0; part < parts; part++) sum += P[part * ((long)m * n)];
  __global real *to = C + offset_c + row + (long)column * ldc;
  gemm_thin_write(to, sum, alpha, beta);
  if (region == GEMM_MIRRORED) C[offset_c + column + (long)row * ldc] = *to;
}
