/* Checks: the first element of a block that fails one.
 *
 *        column 0  column 1             Columns are cut into chunks of `rows` rows, which are
 *       +---------+---------+--         counted down the columns. Group g takes the chunks g,
 *       | chunk 0 | chunk 3 |           g + groups, g + 2 groups, ...; its work-item l takes the
 *       +---------+---------+--         rows l, l + size, l + 2 size, ... of a chunk.
 *       | chunk 1 | chunk 4 |
 *       +---------+---------+--         Then the group finds the least of its work-items' indices
 *       | chunk 2 | chunk 5 |           by a tree in local memory (its size is a power of two), and
 *       +---------+---------+--         reduce_least the least of the groups'.
 *
 * Layout: column-major blocks. Group sizes and `rows` are the driver's
 * (engine/cl/elementwise/check.c). A minimum does not depend on its order. */

/* Where element (i, j) of a column-major block is. */
SCL_INLINE long element(const long i, const long j, const int ld) {
  return i + j * ld;
}

/* The least of the group's values, in item 0. */
SCL_INLINE_BARRIER real least_of_group(const int l, const int items, const real value,
                                       __local real *values) {
  values[l] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int stride = items / 2; stride > 0; stride /= 2) {
    if (l < stride) values[l] = fmin(values[l], values[l + stride]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return values[0];
}

SCL_INLINE int is_equal_within(const real tol, const real u, const real v) {
  if (u == v || (isnan(u) && isnan(v))) return 1;
  return isfinite(u) && isfinite(v) && fabs(u - v) <= tol * fmax(fabs(u), fabs(v));
}

/* dst_g = smallest 1-based, column-major index of an element of group g's chunks that fails, or
 * infinity: a whole number below 2^53. To a check of the diagonal, that is one column with elements
 * `stride` apart; all others see the block itself. */
__kernel void reduce_check(const reduce_task task, __global const real *a, const long a_offset,
                           const int a_ld, __global real *dst, const long dst_offset,
                           const int dst_ld, __local real *values) {
  a += a_offset;
  dst += dst_offset;
  const int what = task.what, view = task.view, stride = task.stride;
  const long m = task.m, n = task.n, rows = task.rows;
  const real tol = task.tol;
  const long per_column = (m + rows - 1) / rows;
  real found = INFINITY;
  for (long c = get_group_id(0); c < per_column * n; c += get_num_groups(0)) {
    const long j = c / per_column, first = (c - j * per_column) * rows;
    const long last = min(first + rows, m);
    for (long i = first + get_local_id(0); i < last; i += get_local_size(0)) {
      int fails = 0;
      if (what == CHECK_FINITE) {
        const int outside = ((view == VIEW_LOWER || view == VIEW_SYMMETRIC) && i < j) ||
                            (view == VIEW_UPPER && i > j);
        fails = !outside && !isfinite(a[element(i, j, a_ld)]);
      } else if (what == CHECK_SYMMETRIC) {
        fails = i > j && !is_equal_within(tol, a[element(i, j, a_ld)], a[element(j, i, a_ld)]);
      } else {
        fails = a[i * stride] == 0.0;
      }
      if (fails) found = fmin(found, (real)(i + j * m) + 1.0);
    }
  }
  found = least_of_group(get_local_id(0), get_local_size(0), found, values);
  if (get_local_id(0) == 0) dst[get_group_id(0)] = found;
}

/* dst = the least of n results; one group. */
__kernel void reduce_least(const int n, __global const real *a, const long a_offset,
                           const int a_ld, __global real *dst, const long dst_offset,
                           const int dst_ld, __local real *values) {
  a += a_offset;
  dst += dst_offset;
  real found = INFINITY;
  for (int i = get_local_id(0); i < n; i += get_local_size(0)) {
    found = fmin(found, a[i]);
  }
  found = least_of_group(get_local_id(0), get_local_size(0), found, values);
  if (get_local_id(0) == 0) dst[0] = found;
}
