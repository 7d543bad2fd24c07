/* Structure: fills, identities, copies by triangle and transposed, diagonals.
 *
 * Layout: column-major blocks, element (i, j) of x at x_offset + i + j * x_ld.
 * Work split: a two-dimensional range, rows by columns. Rows are covered one work-item each; the
 * columns are walked with the stride of the range, which the host caps. elementwise_transpose works
 * on square tiles, one work-group a tile (walking over column tiles in the same way).
 * Each element of the output is written by one work-item, so no order matters. */

#define AT(x, i, j) x[x##_offset + (i) + (long)(j) * x##_ld]

__kernel void elementwise_fill(const int m, const int n, const real value, __global real *dst,
                               const long dst_offset, const int dst_ld) {
  const int i = get_global_id(0);
  if (i >= m) return;
  for (int j = get_global_id(1); j < n; j += get_global_size(1)) AT(dst, i, j) = value;
}

/* dst is m x n in all, each batch member m x member. */
__kernel void elementwise_identity(const int m, const int n, const int member, const real value,
                                   __global real *dst, const long dst_offset, const int dst_ld) {
  const int i = get_global_id(0);
  if (i >= m) return;
  for (int j = get_global_id(1); j < n; j += get_global_size(1)) {
    AT(dst, i, j) = i == j % member ? value : 0.0;
  }
}

/* All of src, or one triangle with zeros in the other; m x n. */
__kernel void elementwise_copy(const int kind, const int m, const int n, __global const real *src,
                               const long src_offset, const int src_ld, __global real *dst,
                               const long dst_offset, const int dst_ld) {
  const int i = get_global_id(0);
  if (i >= m) return;
  for (int j = get_global_id(1); j < n; j += get_global_size(1)) {
    const int zero = (kind == COPY_LOWER && i < j) || (kind == COPY_UPPER && i > j);
    AT(dst, i, j) = zero ? 0.0 : AT(src, i, j);
  }
}

/* Whether element (i, j) of the result is src(i, j) rather than src(j, i). */
static inline int keeps_place(const int kind, const int i, const int j) {
  return (kind == COPY_MIRROR_LOWER && i >= j) || (kind == COPY_MIRROR_UPPER && i <= j);
}

/* dst (m x n) from src (n x m), or, mirrored, square dst from one triangle of src. Tiles go through
 * local memory, so that both sides are read and written along columns. In place (mirrored only),
 * the kept triangle is not written, and the other one is never read. */
__kernel void elementwise_transpose(const int kind, const int in_place, const int m, const int n,
                                    __global const real *src, const long src_offset,
                                    const int src_ld, __global real *dst, const long dst_offset,
                                    const int dst_ld) {
  __local real tile[ELEMENTWISE_TILE][ELEMENTWISE_TILE + 1]; /* one more: no bank conflicts */
  const int x = get_local_id(0), y = get_local_id(1), step = get_local_size(1);
  const int i0 = get_group_id(0) * ELEMENTWISE_TILE;
  for (int j0 = get_group_id(1) * ELEMENTWISE_TILE; j0 < n;
       j0 += get_num_groups(1) * ELEMENTWISE_TILE) {
    barrier(CLK_LOCAL_MEM_FENCE); /* the tile of the round before has been read */
    for (int c = y; c < ELEMENTWISE_TILE; c += step) {
      const int i = i0 + c, j = j0 + x;
      if (i < m && j < n && !keeps_place(kind, i, j)) tile[c][x] = AT(src, j, i);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int c = y; c < ELEMENTWISE_TILE; c += step) {
      const int i = i0 + x, j = j0 + c;
      if (i < m && j < n) {
        if (!keeps_place(kind, i, j)) {
          AT(dst, i, j) = tile[x][c];
        } else if (!in_place) {
          AT(dst, i, j) = AT(src, i, j);
        }
      }
    }
  }
}

/* dst(i, j) = src(rows[i], columns[j]); m x n. Indices are 0-based whole numbers. */
__kernel void elementwise_gather(const elementwise_selection selection, __global const real *rows,
                                 const long rows_offset, __global const real *columns,
                                 const long columns_offset, __global const real *src,
                                 const long src_offset, const int src_ld, __global real *dst,
                                 const long dst_offset, const int dst_ld) {
  const int m = selection.m, n = selection.n;
  const int all_rows = selection.all_rows, all_columns = selection.all_columns;
  const int i = get_global_id(0);
  if (i >= m) return;
  const int from_row = all_rows ? i : (int)rows[rows_offset + i];
  for (int j = get_global_id(1); j < n; j += get_global_size(1)) {
    const int from_column = all_columns ? j : (int)columns[columns_offset + j];
    AT(dst, i, j) = AT(src, from_row, from_column);
  }
}

/* dst = diag(d) a (left), or a diag(d); m x n; in place allowed. */
__kernel void elementwise_scale_diagonal(const int left, const int m, const int n,
                                         __global const real *d, const long d_offset,
                                         const int d_ld, __global const real *a,
                                         const long a_offset, const int a_ld, __global real *dst,
                                         const long dst_offset, const int dst_ld) {
  const int i = get_global_id(0);
  if (i >= m) return;
  for (int j = get_global_id(1); j < n; j += get_global_size(1)) {
    AT(dst, i, j) = d[d_offset + (left ? i : j)] * AT(a, i, j);
  }
}

/* a_ii += value for i < n. */
__kernel void elementwise_add_diagonal(const int n, const real value, __global real *a,
                                       const long a_offset, const int a_ld) {
  const int i = get_global_id(0);
  if (i < n) AT(a, i, i) += value;
}

/* dst_i = a_ii for i < n. */
__kernel void elementwise_diagonal(const int n, __global const real *a, const long a_offset,
                                   const int a_ld, __global real *dst, const long dst_offset,
                                   const int dst_ld) {
  const int i = get_global_id(0);
  if (i < n) dst[dst_offset + i] = AT(a, i, i);
}
