/* The sum of the parts of a crossproduct (nvidia/gram_mma.cl), of which each is the lower half of a
 * p x p matrix; the result has both halves.
 *
 * A group adds up GRAM_LANES neighbours of a column: work-item (l, s) the parts s, s + GRAM_SLICES,
 * ... of element l, in this order; then work-item (l, 0) the sums of the slices, in order. */

#define GRAM_LOADS 8 /* in flight, of a work-item */

__kernel __attribute__((reqd_work_group_size(GRAM_LANES, GRAM_SLICES, 1))) void
gram_sum(__global const real *parts, __global real *c, const long c_offset, const int c_ld,
         const int p, const int count, const real alpha) {
  __local real slices[GRAM_SLICES][GRAM_LANES];
  const int lane = get_local_id(0), slice = get_local_id(1);
  const int row = get_global_id(0), column = get_group_id(1);
  const int used = row < p && row >= column;
  const long step = (long)p * p;
  real sum = 0.0;
  parts += used ? row + (long)column * p : 0;
  for (int first = used ? slice : count; first < count; first += GRAM_LOADS * GRAM_SLICES) {
    SCL_UNROLL
    for (int k = 0; k < GRAM_LOADS; k++) {
      const int part = first + k * GRAM_SLICES;
      sum += part < count ? parts[part * step] : 0.0;
    }
  }
  slices[slice][lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (used && slice == 0) {
    for (int s = 1; s < GRAM_SLICES; s++) sum += slices[s][lane];
    c[c_offset + row + (long)column * c_ld] = alpha * sum;
    c[c_offset + column + (long)row * c_ld] = alpha * sum;
  }
}
