/* Cholesky factors, order up to 8, from the lower triangle: by columns, left-looking. Ownership of
 * matrices: batch_small.h. */

SCL_INLINE int factor_lower(real *a) {
  int status = 0;
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    real pivot = AT(a, k, k);
    SCL_UNROLL for (int j = 0; j < k; j++) pivot = fma(-AT(a, k, j), AT(a, k, j), pivot);
    if (status == 0) status = !(fabs(pivot) < INFINITY) ? BATCH_NONFINITE : pivot > 0.0 ? 0 : k + 1;
    real root = sqrt(pivot), inverse = 1.0 / root;
    AT(a, k, k) = root;
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      real x = AT(a, i, k);
      SCL_UNROLL for (int j = 0; j < k; j++) x = fma(-AT(a, i, j), AT(a, k, j), x);
      AT(a, i, k) = x * inverse;
    }
  }
  return status;
}

BATCH_ENTRY(BATCH_IN(in), BATCH_OUT) {
  const int batch = task.batch, flags = task.flags;
  const long in0 = task.a_offset, out0 = task.out_offset;
  const int step_in = task.a_step, step_out = task.out_step;
  __local real staged[BATCH_LOCAL];
  const int item = (int)get_local_id(0);
  const long first = (long)get_group_id(0) * BATCH_ITEMS; /* matrix of the group */
  const int count = (int)min((long)BATCH_ITEMS, batch - first);
  real a[BATCH_SQUARE];
  batch_in(item, count, BATCH_SQUARE, BATCH_STRIDE, step_in, in0 % 2 == 0,
           in + in0 + first * step_in, staged);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) {
    __local real *mine = staged + item * BATCH_STRIDE;
    SCL_UNROLL for (int e = 0; e < BATCH_SQUARE; e++) a[e] = mine[e];
    int status = factor_lower(a);
    SCL_UNROLL for (int j = 0; j < BATCH_N; j++) {
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
        mine[flags & BATCH_UPPER ? j + i * BATCH_N : i + j * BATCH_N] = i >= j ? AT(a, i, j) : 0.0;
      }
    }
    if (status != 0) {
      for (int e = 0; e < BATCH_SQUARE; e++) mine[e] = NAN;
    }
    batch_report(first + item, status, flags, statuses, any);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  batch_out(item, count, BATCH_SQUARE, BATCH_STRIDE, step_out, out0 % 2 == 0, staged,
            out + out0 + first * step_out);
}
