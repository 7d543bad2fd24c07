/* Products with sparse matrices in compressed rows: the stored elements of row i are value[e] in
 * column[e], start[i] <= e < start[i + 1].
 *
 * compressed_multiply: C = A B. A work-group has a tile: up to COMPRESSED_TILE stored elements of
 * whole rows, up to one row for each work-item, or a piece of a longer row.
 *
 *   elements   | row 5 | row 6           | row 7 | row 8     |
 *   loading      0 1 2 3 4 5 6 7 ...                           item, of a group of 8
 *   adding       0 1 0 1 2 3 2 3 2 3 2 3   4 5 4 5 6 7 6 7 6 7  with two lanes for each row
 *
 * Elements are loaded in order and multiplied into local memory; then the items share the rows,
 * with a power of two of lanes for each row: a lane adds every lanes-th element, and the sums of
 * the lanes are added as a tree. The order is that of the tiles, hence the same bits in every run.
 * The sum of a piece goes to `pieces`, and compressed_join adds those of a row, a work-group for
 * each row.
 *
 * compressed_gram: C = A' diag(w) A, lower triangle, added to zeros: element (k, j) is the sum over
 * the rows i of column j with an element in column k. A work-item has a column j and a range of k,
 * and goes through the rows in order. Columns that are too long for one work-item are left to
 * products with A': compressed_scatter writes diag(w) A e_j to a column of zeros. */

/* Adds up values[item], values[item + step], ... over `lanes` of them, for each stretch of lanes *
 * step; both are powers of two. The sums are in the first of each. */
SCL_INLINE_BARRIER void compressed_tree(__local real *values, const int item, const int lanes,
                                        const int step) {
  for (int count = lanes / 2; count > 0; count /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if ((item / step & (lanes - 1)) < count) values[item] += values[item + count * step];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* Where the sum of a row and a column of C goes. */
inline void compressed_write(__global real *c, __global real *pieces, __global const int *tile,
                             const int row, const int j, const real sum,
                             const compressed_task task) {
  if (tile[3] < 0) {
    c[task.c_offset + row + (long)j * task.c_ld] = sum;
  } else {
    pieces[tile[3] + (long)j * task.pieces] = sum;
  }
}

/* How many lanes each of `rows` rows can have, a power of two, of `items` work-items. */
inline int compressed_lanes(const int items, const int rows) {
  return max(1, items >> (32 - (int)clz(rows - 1)));
}

__kernel void compressed_multiply(__global const int *tiles, __global const int *start,
                                  __global const int *column, __global const real *value,
                                  __global const real *b, __global real *c, __global real *pieces,
                                  const compressed_task task) {
  __local real product[COMPRESSED_TILE], sums[COMPRESSED_ITEMS];
  const int item = get_local_id(0);
  __global const int *tile = tiles + (long)get_group_id(0) * COMPRESSED_RECORD;
  const int first = tile[2], end = tile[2 + COMPRESSED_RECORD];
  int at[COMPRESSED_EACH];
  real factor[COMPRESSED_EACH];
  SCL_UNROLL
  for (int k = 0; k < COMPRESSED_EACH; k++) {
    const int e = first + item + k * COMPRESSED_ITEMS;
    at[k] = e < end ? column[e] : -1;
    factor[k] = e < end ? value[e] : 0.0;
  }
  const int lanes = compressed_lanes(COMPRESSED_ITEMS, tile[1]);
  const int lane = item & (lanes - 1), own = item / lanes;
  const int row = own < tile[1] ? tile[0] + own : -1;
  const int from = row >= 0 ? max(start[row], first) - first : 0;
  const int to = row >= 0 ? min(start[row + 1], end) - first : 0;
  SCL_UNROLL
  for (int k = 0; k < COMPRESSED_EACH; k++) {
    if (at[k] >= 0) product[item + k * COMPRESSED_ITEMS] = factor[k] * b[task.b_offset + at[k]];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  real sum = 0.0;
  for (int t = from + lane; t < to; t += lanes) sum += product[t];
  sums[item] = sum;
  compressed_tree(sums, item, lanes, 1);
  if (row >= 0 && lane == 0) compressed_write(c, pieces, tile, row, 0, sums[item], task);
}

/* Several columns, at most b_ld of them, a power of two up to COMPRESSED_WIDTH. B is transposed:
 * the elements of a row of B stand together, so one gather serves all columns. Neighbouring items
 * have the columns of a row of C. If there are more rows than items for them, these take several,
 * and no lanes share a row. */
__kernel void compressed_multiply_wide(__global const int *tiles, __global const int *start,
                                       __global const int *column, __global const real *value,
                                       __global const real *b, __global real *c,
                                       __global real *pieces, const compressed_task task) {
  __local real factor[COMPRESSED_TILE], sums[COMPRESSED_ITEMS];
  __local int at[COMPRESSED_TILE];
  const int item = get_local_id(0);
  __global const int *tile = tiles + (long)get_group_id(0) * COMPRESSED_RECORD;
  const int first = tile[2], end = tile[2 + COMPRESSED_RECORD];
  for (int e = first + item; e < end; e += COMPRESSED_ITEMS) {
    at[e - first] = column[e];
    factor[e - first] = value[e];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int j = item & (task.b_ld - 1), slot = item / task.b_ld;
  const int slots = COMPRESSED_ITEMS / task.b_ld;
  const int lanes = compressed_lanes(slots, tile[1]), lane = slot & (lanes - 1);
  __global const real *x = b + task.b_offset + j;
  for (int before = 0; before < tile[1]; before += slots / lanes) {
    const int own = before + slot / lanes, row = tile[0] + own;
    const bool used = own < tile[1] && j < task.columns;
    real sum = 0.0;
    if (used) {
      const int to = min(start[row + 1], end) - first;
      for (int t = max(start[row], first) - first + lane; t < to; t += lanes) {
        sum += factor[t] * x[(long)at[t] * task.b_ld];
      }
    }
    if (lanes > 1) {
      sums[item] = sum;
      compressed_tree(sums, item, lanes, task.b_ld);
      sum = sums[item];
    }
    if (used && lane == 0) compressed_write(c, pieces, tile, row, j, sum, task);
  }
}

/* cuts: for each row of several pieces itself and its first piece; then the end of the last. */
__kernel void compressed_join(__global const int *cuts, __global const real *pieces,
                              __global real *c, const compressed_task task) {
  __local real sums[COMPRESSED_ITEMS];
  const int item = get_local_id(0);
  const long cut = get_group_id(0), j = get_group_id(1);
  const int row = cuts[2 * cut], end = cuts[2 * cut + 3];
  real sum = 0.0;
  for (int t = cuts[2 * cut + 1] + item; t < end; t += COMPRESSED_ITEMS) {
    sum += pieces[t + j * task.pieces];
  }
  sums[item] = sum;
  compressed_tree(sums, item, COMPRESSED_ITEMS, 1);
  if (item == 0) c[task.c_offset + row + j * task.c_ld] = sums[0];
}

/* The matrix by rows (column) and by columns (row). */
__kernel void compressed_gram(__global const int *row_start, __global const int *column,
                              __global const real *by_row, __global const int *column_start,
                              __global const int *row, __global const real *by_column,
                              __global const real *w, __global real *c,
                              const compressed_gram_task task) {
  const int j = get_global_id(0), low = max(j, (int)get_global_id(1) * task.width);
  const int high = min(task.n, ((int)get_global_id(1) + 1) * task.width);
  if (j >= task.n || low >= high) return;
  const int first = column_start[j], end = column_start[j + 1];
  if (end - first > task.longest) return;
  __global real *to = c + task.c_offset + (long)j * task.c_ld;
  for (int e = first; e < end; e++) {
    const int i = row[e];
    const real factor = task.weighted ? by_column[e] * w[task.w_offset + i] : by_column[e];
    for (int t = row_start[i]; t < row_start[i + 1]; t++) {
      const int k = column[t];
      if (k >= low && k < high) to[k] += factor * by_row[t];
    }
  }
}

/* For the column whose stored elements are from `first` to `end`. */
__kernel void compressed_scatter(const int first, const int end, const int weighted,
                                 __global const int *row, __global const real *by_column,
                                 __global const real *w, const long w_offset, __global real *dst,
                                 const long dst_offset) {
  const int e = first + get_global_id(0);
  if (e >= end) return;
  const int i = row[e];
  dst[dst_offset + i] = weighted ? by_column[e] * w[w_offset + i] : by_column[e];
}
