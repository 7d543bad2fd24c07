/* Sums over groups of elements, and cumulative sums down columns.
 *
 * groups_sum: the elements of group k are src[order[t]], starts[k] <= t < starts[k + 1].
 *
 *   order   | group 0 | group 1     | group 2 | ...        one work-group, or one work-item where
 *              item 0 1 2 0 1 2 0 1 2 3 0 1 2              groups are short, for each of them
 *
 * The items of a work-group take its elements in turn, and their sums are added as a tree: a fixed
 * order, so the same bits in every run.
 *
 * groups_sum_parts: the same where groups are long: `parts` work-groups for each of them, which
 * take its elements in turn; groups_add_parts adds the parts, a work-item for each group.
 *
 * groups_cumulate: one work-group for each column, which walks down it in pieces as long as the
 * group; `carry` is the sum of all pieces before. */

/* Adds up values[0 .. items - 1], items being a power of two; the sum is in values[0]. */
SCL_INLINE_BARRIER void groups_tree(__local real *values, const int item, const int items) {
  for (int count = items / 2; count > 0; count /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < count) values[item] += values[item + count];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* The sum of src[order[t]] over t = first, first + step, ... before `end`, over all work-items,
 * each of which has a `first` of its own. For all to read until the next call. */
SCL_INLINE_BARRIER real groups_walk(__global const real *order, __global const real *src,
                                    const long first, const long end, const long step,
                                    __local real *values, const int item, const int items) {
  real sum = 0.0;
  for (long t = first; t < end; t += step) sum += src[(long)order[t]];
  barrier(CLK_LOCAL_MEM_FENCE); /* all have read the sum before */
  values[item] = sum;
  groups_tree(values, item, items);
  return values[0];
}

__kernel void groups_sum(const int groups, __global const real *starts, const long starts_offset,
                         __global const real *order, const long order_offset,
                         __global const real *src, const long src_offset, __global real *dst,
                         const long dst_offset, __local real *values) {
  const int item = get_local_id(0), items = get_local_size(0);
  for (int k = get_group_id(0); k < groups; k += get_num_groups(0)) {
    const long first = (long)starts[starts_offset + k], end = (long)starts[starts_offset + k + 1];
    const real sum = groups_walk(order + order_offset, src + src_offset, first + item, end, items,
                                 values, item, items);
    if (item == 0) dst[dst_offset + k] = sum;
  }
}

__kernel void groups_sum_parts(const int groups, const int parts, __global const real *starts,
                               const long starts_offset, __global const real *order,
                               const long order_offset, __global const real *src,
                               const long src_offset, __global real *sums, __local real *values) {
  const int item = get_local_id(0), items = get_local_size(0);
  for (int at = get_group_id(0); at < groups * parts; at += get_num_groups(0)) {
    const int k = at / parts, part = at - k * parts;
    const long first = (long)starts[starts_offset + k] + (long)part * items;
    const long end = (long)starts[starts_offset + k + 1];
    const real sum = groups_walk(order + order_offset, src + src_offset, first + item, end,
                                 (long)parts * items, values, item, items);
    if (item == 0) sums[at] = sum;
  }
}

__kernel void groups_add_parts(const int groups, const int parts, __global const real *sums,
                               __global real *dst, const long dst_offset) {
  const int k = get_global_id(0);
  if (k >= groups) return;
  real sum = 0.0;
  for (int part = 0; part < parts; part++) sum += sums[(long)k * parts + part];
  dst[dst_offset + k] = sum;
}

__kernel void groups_sum_short(const int groups, __global const real *starts,
                               const long starts_offset, __global const real *order,
                               const long order_offset, __global const real *src,
                               const long src_offset, __global real *dst, const long dst_offset) {
  const int k = get_global_id(0);
  if (k >= groups) return;
  const long end = (long)starts[starts_offset + k + 1];
  real sum = 0.0;
  for (long t = (long)starts[starts_offset + k]; t < end; t++) {
    sum += src[src_offset + (long)order[order_offset + t]];
  }
  dst[dst_offset + k] = sum;
}

__kernel void groups_cumulate(const int rows, const int columns, const int reverse,
                              __global const real *src, const long src_offset, const int src_ld,
                              __global real *dst, const long dst_offset, const int dst_ld,
                              __local real *values) {
  const int item = get_local_id(0), items = get_local_size(0);
  for (int j = get_group_id(0); j < columns; j += get_num_groups(0)) {
    const long from = src_offset + (long)j * src_ld, to = dst_offset + (long)j * dst_ld;
    real carry = 0.0;
    for (int first = 0; first < rows; first += items) {
      const int k = first + item, i = reverse ? rows - 1 - k : k;
      values[item] = k < rows ? src[from + i] : 0.0;
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int distance = 1; distance < items; distance *= 2) {
        const real before = item >= distance ? values[item - distance] : 0.0;
        barrier(CLK_LOCAL_MEM_FENCE);
        values[item] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      if (k < rows) dst[to + i] = carry + values[item];
      carry += values[items - 1];
      barrier(CLK_LOCAL_MEM_FENCE); /* before the next piece's values */
    }
  }
}
