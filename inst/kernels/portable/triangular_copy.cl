/* Copies of triangles: a work-item an element. */

/* dst = lower or upper triangle of src with zeros in the other, n x n; dimension 2: a batch of
 * blocks, src_step and dst_step elements apart, the last of order n_last. */
__kernel void triangular_copy(const int n, const int upper, __global const real *src,
                              const long src_offset, const int src_ld, __global real *dst,
                              const long dst_offset, const int dst_ld, const long src_step,
                              const long dst_step, const int n_last) {
  const int row = get_global_id(0), column = get_global_id(1), which = get_global_id(2);
  const int order = which == (int)get_global_size(2) - 1 ? n_last : n;
  if (row >= order || column >= order) return;
  real value = 0.0;
  if (upper ? row <= column : row >= column)
    value = src[src_offset + which * src_step + row + (long)column * src_ld];
  dst[dst_offset + which * dst_step + row + (long)column * dst_ld] = value;
}
