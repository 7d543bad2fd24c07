/* Fills, identities, copies of a triangle or transposed, rows and columns by index, diagonals.
 *
 *    column 0  1  2 ..  s  s+1        The range has two dimensions: work-item (i, j) writes the
 *         +--+--+--+-- --+--+--        elements (i, j), (i, j + s), (i, j + 2s), ... of the result
 *   row 0 |  |* |  |     |  |*         (one work-item's are marked *), where s is the size of the
 *       1 |  |  |  |     |  |          range along dimension 1, which the driver limits
 *       : |  |  |  |     |  |          (engine/cl/elementwise/copy.c). Neighbours along dimension 0
 *                                      write neighbours in memory.
 *
 * elementwise_transpose: a group reads a square tile along the columns of src, and writes it along
 * the columns of dst; in between the tile is in local memory. It takes every s-th tile of its row.
 *
 * Layout: column-major blocks, element (i, j) of x at x_offset + i + j * x_ld. Each element of the
 * result is written by one work-item, so no order matters. */

/* Where element (i, j) of a column-major block is. */
SCL_INLINE long element(const int i, const int j, const int ld) {
  return i + (long)j * ld;
}

__kernel void elementwise_fill(const int m, const int n, const real value, __global real *dst,
                               const long dst_offset, const int dst_ld) {
  dst += dst_offset;
  const int i = get_global_id(0);
  if (i >= m) return;
  for (int j = get_global_id(1); j < n; j += get_global_size(1)) dst[element(i, j, dst_ld)] = value;
}

/* dst is m x n in all, each batch member m x member. */
__kernel void elementwise_identity(const int m, const int n, const int member, const real value,
                                   __global real *dst, const long dst_offset, const int dst_ld) {
  dst += dst_offset;
  const int i = get_global_id(0);
  if (i >= m) return;
  for (int j = get_global_id(1); j < n; j += get_global_size(1)) {
    dst[element(i, j, dst_ld)] = i == j % member ? value : 0.0;
  }
}

/* All of src, or one triangle with zeros in the other; m x n. */
__kernel void elementwise_copy(const int kind, const int m, const int n, __global const real *src,
                               const long src_offset, const int src_ld, __global real *dst,
                               const long dst_offset, const int dst_ld) {
  src += src_offset;
  dst += dst_offset;
  const int i = get_global_id(0);
  if (i >= m) return;
  for (int j = get_global_id(1); j < n; j += get_global_size(1)) {
    const int zero = (kind == COPY_LOWER && i < j) || (kind == COPY_UPPER && i > j);
    dst[element(i, j, dst_ld)] = zero ? 0.0 : src[element(i, j, src_ld)];
  }
}

/* Whether element (i, j) of the result is src(i, j) rather than src(j, i). */
SCL_INLINE int is_kept(const int kind, const int i, const int j) {
  return (kind == COPY_MIRROR_LOWER && i >= j) || (kind == COPY_MIRROR_UPPER && i <= j);
}

/* dst (m x n) from src (n x m), or, mirrored, square dst from one triangle of src. Tiles go through
 * local memory, so that both sides are read and written along columns. In place (mirrored only),
 * the kept triangle is not written, and the other one is never read. */
__kernel void elementwise_transpose(const int kind, const int in_place, const int m, const int n,
                                    __global const real *src, const long src_offset,
                                    const int src_ld, __global real *dst, const long dst_offset,
                                    const int dst_ld) {
  src += src_offset;
  dst += dst_offset;
  __local real tile[ELEMENTWISE_TILE][ELEMENTWISE_TILE + 1]; /* one more: no bank conflicts */
  const int x = get_local_id(0), y = get_local_id(1), step = get_local_size(1);
  const int i0 = get_group_id(0) * ELEMENTWISE_TILE;
  for (int j0 = get_group_id(1) * ELEMENTWISE_TILE; j0 < n;
       j0 += get_num_groups(1) * ELEMENTWISE_TILE) {
    barrier(CLK_LOCAL_MEM_FENCE); /* the tile before has been read */
    for (int c = y; c < ELEMENTWISE_TILE; c += step) {
      const int i = i0 + c, j = j0 + x;
      if (i < m && j < n && !is_kept(kind, i, j)) tile[c][x] = src[element(j, i, src_ld)];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int c = y; c < ELEMENTWISE_TILE; c += step) {
      const int i = i0 + x, j = j0 + c;
      if (i < m && j < n) {
        if (!is_kept(kind, i, j)) {
          dst[element(i, j, dst_ld)] = tile[x][c];
        } else if (!in_place) {
          dst[element(i, j, dst_ld)] = src[element(i, j, src_ld)];
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
  rows += rows_offset;
  columns += columns_offset;
  src += src_offset;
  dst += dst_offset;
  const int m = selection.m, n = selection.n;
  const int all_rows = selection.all_rows, all_columns = selection.all_columns;
  const int i = get_global_id(0);
  if (i >= m) return;
  const int from_row = all_rows ? i : (int)rows[i];
  for (int j = get_global_id(1); j < n; j += get_global_size(1)) {
    const int from_column = all_columns ? j : (int)columns[j];
    dst[element(i, j, dst_ld)] = src[element(from_row, from_column, src_ld)];
  }
}

/* dst = diag(d) a (left), or a diag(d); m x n; in place allowed. */
__kernel void elementwise_scale_diagonal(const int left, const int m, const int n,
                                         __global const real *d, const long d_offset,
                                         const int d_ld, __global const real *a,
                                         const long a_offset, const int a_ld, __global real *dst,
                                         const long dst_offset, const int dst_ld) {
  d += d_offset;
  a += a_offset;
  dst += dst_offset;
  const int i = get_global_id(0);
  if (i >= m) return;
  for (int j = get_global_id(1); j < n; j += get_global_size(1)) {
    dst[element(i, j, dst_ld)] = d[left ? i : j] * a[element(i, j, a_ld)];
  }
}

/* a_ii += value for i < n. */
__kernel void elementwise_add_diagonal(const int n, const real value, __global real *a,
                                       const long a_offset, const int a_ld) {
  a += a_offset;
  const int i = get_global_id(0);
  if (i < n) a[element(i, i, a_ld)] += value;
}

/* dst_i = a_ii for i < n. */
__kernel void elementwise_diagonal(const int n, __global const real *a, const long a_offset,
                                   const int a_ld, __global real *dst, const long dst_offset,
                                   const int dst_ld) {
  a += a_offset;
  dst += dst_offset;
  const int i = get_global_id(0);
  if (i < n) dst[i] = a[element(i, i, a_ld)];
}
