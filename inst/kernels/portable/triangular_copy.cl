/* Copies of triangles. */

/* D = lower or upper triangle of S with zeros beyond it, n x n; dimension 2: a batch of blocks,
 * step_s and step_d elements apart, the last of order n_last. A work-item an element. */
__kernel void triangular_copy(const int n, const int upper, __global const real *S,
                              const long offset_s, const int lds, __global real *D,
                              const long offset_d, const int ldd, const long step_s,
                              const long step_d, const int n_last) {
  const int row = get_global_id(0), column = get_global_id(1), which = get_global_id(2);
  const int order = which == (int)get_global_size(2) - 1 ? n_last : n;
  if (row >= order || column >= order) return;
  real value = 0.0;
  if (upper ? row <= column : row >= column)
    value = S[offset_s + which * step_s + row + (long)column * lds];
  D[offset_d + which * step_d + row + (long)column * ldd] = value;
}
