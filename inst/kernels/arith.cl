/* Elementwise arithmetic: dst = op(a, b) over m x n elements; in place allowed.
 *
 * Layout and work split as in elementwise.cl. An operand is a block, or the scalar beside it; a
 * block of leading dimension 0 repeats one column. `elementwise_op` is generated from
 * elementwise.def (scl_cl_generated.c): one branch an operation, the same for all work-items. */

#define AT(x, i, j) x[x##_offset + (i) + (long)(j) * x##_ld]

__kernel void arith_apply(const int op, const int m, const int n, const int a_is_block,
                          const double a_scalar, __global const double *a, const long a_offset,
                          const int a_ld, const int b_is_block, const double b_scalar,
                          __global const double *b, const long b_offset, const int b_ld,
                          __global double *dst, const long dst_offset, const int dst_ld) {
  const int i = get_global_id(0);
  if (i >= m) return;
  for (int j = get_global_id(1); j < n; j += get_global_size(1)) {
    const double u = a_is_block ? AT(a, i, j) : a_scalar;
    const double v = b_is_block ? AT(b, i, j) : b_scalar;
    AT(dst, i, j) = elementwise_op(op, u, v);
  }
}
