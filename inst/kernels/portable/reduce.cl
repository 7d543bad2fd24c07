/* Checks that look for the first offending element of a block.
 *
 * Layout: column-major blocks. Columns are cut into chunks of `rows` rows; chunk c holds rows
 * (c % per_column) * rows and on of column c / per_column. Group g takes chunks g, g + groups, ...;
 * within a chunk item l takes rows l, l + size, .... Then a tree in local memory (the group size is
 * a power of two), and one group combines the results of the groups. */

#define AT(x, i, j) x[x##_offset + (i) + (j) * (long)x##_ld]

/* The least of the group's values, in item 0. */
static inline real least_of_group(const int l, const int items, const real value,
                                   __local real *values) {
  values[l] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int stride = items / 2; stride > 0; stride /= 2) {
    if (l < stride) values[l] = fmin(values[l], values[l + stride]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return values[0];
}

static inline int is_equal_within(const real tol, const real u, const real v) {
  if (u == v || (isnan(u) && isnan(v))) return 1;
  return isfinite(u) && isfinite(v) && fabs(u - v) <= tol * fmax(fabs(u), fabs(v));
}

/* dst_g = smallest 1-based, column-major index of an element of group g's chunks that fails, or
 * infinity: a whole number below 2^53. A check of the diagonal gets it as one column (ld + 1 is its
 * stride), all others the block itself. */
__kernel void reduce_check(const reduce_task task, __global const real *a, const long a_offset,
                           const int a_ld, __global real *dst, const long dst_offset,
                           const int dst_ld, __local real *values) {
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
        fails = !outside && !isfinite(AT(a, i, j));
      } else if (what == CHECK_SYMMETRIC) {
        fails = i > j && !is_equal_within(tol, AT(a, i, j), AT(a, j, i));
      } else {
        fails = a[a_offset + i * stride] == 0.0;
      }
      if (fails) found = fmin(found, (real)(i + j * m) + 1.0);
    }
  }
  found = least_of_group(get_local_id(0), get_local_size(0), found, values);
  if (get_local_id(0) == 0) dst[dst_offset + get_group_id(0)] = found;
}

/* dst = least of n results; one group. */
__kernel void reduce_least(const int n, __global const real *a, const long a_offset,
                           const int a_ld, __global real *dst, const long dst_offset,
                           const int dst_ld, __local real *values) {
  real found = INFINITY;
  for (int i = get_local_id(0); i < n; i += get_local_size(0)) {
    found = fmin(found, a[a_offset + i]);
  }
  found = least_of_group(get_local_id(0), get_local_size(0), found, values);
  if (get_local_id(0) == 0) dst[dst_offset] = found;
}
