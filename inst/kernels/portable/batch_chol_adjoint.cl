/* Reverse mode of Cholesky factors, order up to 8: backwards through the columns, as
 * src/engine/host/lanes.c has it. Ownership of matrices: batch_small.h. Both inputs go through
 * local memory; where they would take more than the 32 KB that every device has, each work-item
 * reads its factor itself. */
#define BOTH_LOCAL (2 * 8 * BATCH_LOCAL <= 32768)

/* a: the factor; x: its adjoint, and then the result. */
SCL_INLINE void reverse_factor(const real *a, real *x) {
  SCL_UNROLL for (int k = BATCH_N - 1; k >= 0; k--) {
    real inverse = 1.0 / AT(a, k, k), sum = AT(x, k, k);
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      real y = AT(x, i, k);
      SCL_UNROLL for (int j = k + 1; j < BATCH_N; j++) {
        y = fma(-2.0 * AT(a, j, k), AT(x, i, j), y);
      }
      y *= inverse;
      sum = fma(-y, AT(a, i, k), sum);
      AT(x, k, i) = 0.5 * y; /* column k is still read */
    }
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) AT(x, i, k) = AT(x, k, i);
    AT(x, k, k) = 0.5 * sum * inverse;
  }
}

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(adj), BATCH_OUT) {
  const int batch = task.batch, flags = task.flags;
  const long in0 = task.a_offset, adj0 = task.b_offset, out0 = task.out_offset;
  const int step_in = task.a_step, step_adj = task.b_step, step_out = task.out_step;
  __local real staged[BATCH_LOCAL];
#if BOTH_LOCAL
  __local real factors[BATCH_LOCAL];
#endif
  const int item = (int)get_local_id(0);
  const long first = (long)get_group_id(0) * BATCH_ITEMS; /* matrix of the group */
  const int count = (int)min((long)BATCH_ITEMS, batch - first);
  __local real *mine = staged + item * BATCH_STRIDE;
  real a[BATCH_SQUARE], x[BATCH_SQUARE];
#if BOTH_LOCAL
  batch_in(item, count, BATCH_SQUARE, BATCH_STRIDE, step_in, in0 % 2 == 0,
           in + in0 + first * step_in, factors);
#endif
  batch_in(item, count, BATCH_SQUARE, BATCH_STRIDE, step_adj, adj0 % 2 == 0,
           adj + adj0 + first * step_adj, staged);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) {
    int status = 0;
#if BOTH_LOCAL
    SCL_UNROLL for (int e = 0; e < BATCH_SQUARE; e++) a[e] = factors[item * BATCH_STRIDE + e];
#else
    SCL_UNROLL for (int e = 0; e < BATCH_SQUARE; e++) a[e] = in[in0 + (first + item) * step_in + e];
#endif
    SCL_UNROLL for (int e = 0; e < BATCH_SQUARE; e++) x[e] = mine[e];
    SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
      if (status == 0) status = pivot_status(fabs(AT(a, k, k)), k);
    }
    reverse_factor(a, x);
    SCL_UNROLL for (int e = 0; e < BATCH_SQUARE; e++) mine[e] = x[e];
    if (status != 0) {
      for (int e = 0; e < BATCH_SQUARE; e++) mine[e] = NAN;
    }
    batch_report(first + item, status, flags, statuses, any);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  batch_out(item, count, BATCH_SQUARE, BATCH_STRIDE, step_out, out0 % 2 == 0, staged,
            out + out0 + first * step_out);
}
