/* Y = alpha op(A) X + beta Y with few columns of X and Y (matrix times vector and similar), and the
 * sum of partial products. Bound by the reading of A: work-items run along its columns.
 *
 *   gemm_*_n: op(A) = A                          gemm_*_t: op(A) = A'
 *            k: slices 0 .. 7, in turn                    k: lanes 0 .. 31, in turn
 *          +-----------------+                          +----------------+
 *   lane 0 | 0 1 2 .. 7 0 1..|   rows of A      line 0  | 0 1 2 .. 31 0 1|  columns of A, stored
 *      1   | 0 1 2 .. 7 0 1..|   side by side      1    | 0 1 2 .. 31 0 1|  down the page
 *      ..  |                 |   in memory         ..   |                |
 *      31  | 0 1 2 .. 7 0 1..|                     7    | 0 1 2 .. 31 0 1|
 *          +-----------------+                          +----------------+
 *
 * A group is GEMM_THIN_LANES x GEMM_THIN_ROWS work-items. In the first form a lane has a row of
 * op(A) and the second dimension shares out k; in the second a line of lanes has a row of op(A) and
 * shares out k. A work-item keeps one sum for each column of X in registers; those of a row meet in
 * local memory. Order of summation: k of a work-item, then slices in their order (first form) or
 * halves of the lanes (second form).
 *
 * Range. Dimension 0: rows of op(A); dimension 1: columns of X, GEMM_THIN_COLUMNS at a time;
 * dimension 2: parts of the sum, k_part terms each. X and Y have any strides (gemm_thin_task in
 * gemm.h), so that a row vector times a matrix is the same kernel. What `views` (GEMM_A_*) promises
 * shortens the rows that a group reads. Sizes: gemm.h. */

/* Unrolls the loop along k, so that several loads overlap; a CPU's hardware looks ahead by
 * itself. */
#ifndef GEMM_THIN_UNROLL
#ifdef SCL_CPU
#define GEMM_THIN_UNROLL
#else
#define GEMM_THIN_UNROLL _Pragma("unroll 4")
#endif
#endif

#define GEMM_THIN_ITEMS (GEMM_THIN_LANES * GEMM_THIN_ROWS)

/* The task of a group: rows from row0 on, columns from column0 on, terms begin .. end - 1. */
typedef struct {
  __global const real *a, *x;
  __global real *y;
  int lda;
  long step_x, next_x, step_y, next_y;
  int m, n, begin, end, row0, column0;
  real alpha, beta;
} gemm_thin_part;

SCL_INLINE void gemm_thin_write(__global real *y, const real sum, const real alpha,
                                const real beta) {
  *y = beta == 0.0 ? alpha * sum : fma(beta, *y, alpha * sum);
}

/* op(A) = A, m x k: a lane is a row, a slice takes every GEMM_THIN_ROWS-th term. `columns` is a
 * constant. */
SCL_INLINE_BARRIER void gemm_thin_rows(const int columns, const gemm_thin_part *part,
                                       const int lane, const int slice, __local real *sums) {
  const int row = part->row0 + lane, m = part->m, n = part->n, column0 = part->column0;
  real sum[GEMM_THIN_COLUMNS];
  SCL_UNROLL
  for (int c = 0; c < GEMM_THIN_COLUMNS; c++) sum[c] = 0.0;
  if (row < m) {
    GEMM_THIN_UNROLL
    for (int i = part->begin + slice; i < part->end; i += GEMM_THIN_ROWS) {
      const real a = part->a[row + (long)i * part->lda];
      SCL_UNROLL
      for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
        if (c < columns && column0 + c < n)
          sum[c] = fma(a, part->x[i * part->step_x + (column0 + c) * part->next_x], sum[c]);
    }
  }
  SCL_UNROLL
  for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
    if (c < columns) sums[c * GEMM_THIN_ITEMS + slice * GEMM_THIN_LANES + lane] = sum[c];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int c = slice; c < columns; c += GEMM_THIN_ROWS) {
    real total = 0.0;
    for (int k = 0; k < GEMM_THIN_ROWS; k++)
      total += sums[c * GEMM_THIN_ITEMS + k * GEMM_THIN_LANES + lane];
    if (row < m && column0 + c < n)
      gemm_thin_write(part->y + row * part->step_y + (column0 + c) * part->next_y, total,
                      part->alpha, part->beta);
  }
}

/* op(A) = A', A is k x m: a line of lanes works along a column of A. */
SCL_INLINE_BARRIER void gemm_thin_columns(const int columns, const gemm_thin_part *part,
                                          const int lane, const int line, __local real *sums) {
  const int row = part->row0 + line, m = part->m, n = part->n, column0 = part->column0;
  real sum[GEMM_THIN_COLUMNS];
  SCL_UNROLL
  for (int c = 0; c < GEMM_THIN_COLUMNS; c++) sum[c] = 0.0;
  if (row < m) {
    GEMM_THIN_UNROLL
    for (int i = part->begin + lane; i < part->end; i += GEMM_THIN_LANES) {
      const real a = part->a[i + (long)row * part->lda];
      SCL_UNROLL
      for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
        if (c < columns && column0 + c < n)
          sum[c] = fma(a, part->x[i * part->step_x + (column0 + c) * part->next_x], sum[c]);
    }
  }
  __local real *line_sums = sums + line * GEMM_THIN_LANES;
  SCL_UNROLL
  for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
    if (c < columns) line_sums[c * GEMM_THIN_ITEMS + lane] = sum[c];
  for (int width = GEMM_THIN_LANES / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < width) {
      SCL_UNROLL
      for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
        if (c < columns)
          line_sums[c * GEMM_THIN_ITEMS + lane] += line_sums[c * GEMM_THIN_ITEMS + lane + width];
    }
  }
  if (lane == 0 && row < m) {
    SCL_UNROLL
    for (int c = 0; c < GEMM_THIN_COLUMNS; c++)
      if (c < columns && column0 + c < n)
        gemm_thin_write(part->y + row * part->step_y + (column0 + c) * part->next_y,
                        line_sums[c * GEMM_THIN_ITEMS], part->alpha, part->beta);
  }
}

/* `rows`: rows of op(A) that a group takes. */
#define GEMM_THIN_KERNEL(name, body, columns, rows)                                                \
  __kernel __attribute__((reqd_work_group_size(GEMM_THIN_LANES, GEMM_THIN_ROWS, 1))) void name(    \
      __global const real *a, const long a_offset, const int a_ld, __global const real *x,         \
      const long x_offset, __global real *y, const long y_offset, const gemm_thin_task task) {     \
    __local real sums[(columns)*GEMM_THIN_ITEMS];                                                  \
    const int piece = get_group_id(2), row0 = get_group_id(0) * (rows), views = task.views;        \
    const int begin = piece * task.k_part, end = min(task.k, begin + task.k_part);                 \
    const gemm_thin_part part = {.a = a + a_offset,                                                \
                                 .x = x + x_offset,                                                \
                                 .y = y + y_offset + piece * task.y_part,                          \
                                 .lda = a_ld,                                                      \
                                 .step_x = task.x_row,                                             \
                                 .next_x = task.x_column,                                          \
                                 .step_y = task.y_row,                                             \
                                 .next_y = task.y_column,                                          \
                                 .m = task.m,                                                      \
                                 .n = task.n,                                                      \
                                 .begin = views & GEMM_A_UPPER ? max(begin, row0) : begin,         \
                                 .end = views & GEMM_A_LOWER ? min(end, row0 + (rows)) : end,      \
                                 .row0 = row0,                                                     \
                                 .column0 = (int)get_group_id(1) * (columns),                      \
                                 .alpha = task.alpha,                                              \
                                 .beta = task.beta};                                               \
    body(columns, &part, get_local_id(0), get_local_id(1), sums);                                  \
  }

GEMM_THIN_KERNEL(gemm_vector_n, gemm_thin_rows, 1, GEMM_THIN_LANES)
GEMM_THIN_KERNEL(gemm_vector_t, gemm_thin_columns, 1, GEMM_THIN_ROWS)
GEMM_THIN_KERNEL(gemm_thin_n, gemm_thin_rows, GEMM_THIN_COLUMNS, GEMM_THIN_LANES)
GEMM_THIN_KERNEL(gemm_thin_t, gemm_thin_columns, GEMM_THIN_COLUMNS, GEMM_THIN_ROWS)

/* C = alpha (P_0 + P_1 + ...) + beta C: `count` dense m x n matrices, added in this order. A
 * work-item an element. */
__kernel void gemm_sum(const int m, const int n, const int count, const real alpha,
                       __global const real *parts, const long parts_offset, const real beta,
                       __global real *c, const long c_offset, const int c_ld, const int region) {
  const int row = get_global_id(0), column = get_global_id(1);
  if (row >= m || column >= n || (region != GEMM_ALL && row < column)) return;
  parts += parts_offset + row + (long)column * m;
  real sum = 0.0;
  GEMM_THIN_UNROLL
  for (int part = 0; part < count; part++) sum += parts[part * ((long)m * n)];
  __global real *to = c + c_offset + row + (long)column * c_ld;
  gemm_thin_write(to, sum, alpha, beta);
  if (region == GEMM_MIRRORED) c[c_offset + column + (long)row * c_ld] = *to;
}
