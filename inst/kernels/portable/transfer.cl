/* Between a block and its packed triangle, for a span of the packed columns: columns col ..
 * col + cols - 1, rows from .. to - 1. packed[0] is number `base` of the whole packed triangle.
 *
 *             col          col + cols
 *       +------+--------------+---       A group of TRANSFER_TILE x TRANSFER_TILE work-items has a
 *       |      .              .          tile of the rectangle, a work-item an element; rows lie
 *  from |......+----+----+----+          along dimension 0, so that neighbours are neighbours in
 *       |      |tile|tile|tile|          memory. Of the rectangle only the elements of the triangle
 *       |      +----+----+----+          are packed.
 *       |      |tile|tile|tile|
 *    to |......+----+----+----+          The mirror image is transposed through local memory, so
 *       |                                that it is written along columns, too.
 *
 * Layout: the block is column-major with a_offset and a_ld; the packed form is that of packed.h.
 * Every element is written by one work-item. */

__kernel __attribute__((reqd_work_group_size(TRANSFER_TILE, TRANSFER_TILE, 1)))
void transfer_pack(__global const real *a, const long a_offset, const int a_ld,
                   __global real *packed, const int m, const int kind, const int col,
                   const int cols, const int from, const int to, const long base) {
  const long i = from + (long)get_global_id(0);
  const long j = col + (long)get_global_id(1);
  if (i >= to || j >= (long)col + cols) return;
  const long first = packed_first(m, j, kind);
  if (i < first || i >= packed_end(m, j, kind)) return;
  packed[packed_before(m, j, kind) + i - first - base] = a[a_offset + i + j * a_ld];
}

/* Rows of the rectangle outside the triangle become zero or, if `mirrored` (lower triangles of
 * square blocks only), are left to the mirror image of the triangle. */
__kernel __attribute__((reqd_work_group_size(TRANSFER_TILE, TRANSFER_TILE, 1)))
void transfer_unpack(__global real *a, const long a_offset, const int a_ld,
                     __global const real *packed, const int m, const int kind, const int col,
                     const int cols, const int from, const int to, const long base,
                     const int mirrored) {
  __local real tile[TRANSFER_TILE][TRANSFER_TILE + 1];
  const long last_col = (long)col + cols;
  const int x = get_local_id(0), y = get_local_id(1);
  const long row_0 = from + (long)get_group_id(0) * TRANSFER_TILE;
  const long col_0 = col + (long)get_group_id(1) * TRANSFER_TILE;

  long i = row_0 + x, j = col_0 + y;
  const bool inside = i < to && j < last_col;
  const long first = packed_first(m, j, kind);
  const bool stored = inside && i >= first && i < packed_end(m, j, kind);
  real value = 0.0;
  if (stored) value = packed[packed_before(m, j, kind) + i - first - base];
  if (stored || (inside && !mirrored)) a[a_offset + i + j * a_ld] = value;

  tile[y][x] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  i = row_0 + y;
  j = col_0 + x;
  if (mirrored && i < to && j < last_col && i > j) a[a_offset + j + i * a_ld] = tile[x][y];
}
