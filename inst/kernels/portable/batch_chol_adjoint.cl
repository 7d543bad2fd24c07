/* Reverse mode of Cholesky factors, order up to 8: backwards through the columns, as
 * engine/host/lanes.c does. Layout and work split: batch_small.h. Both inputs lie in local memory,
 * or, where that would be more than the 32 KB that every device has, each work-item reads its
 * factor itself. */
#define BOTH_LOCAL (2 * 8 * BATCH_LOCAL <= 32768)

/* `adjoint` = the symmetric result, from the adjoint of the factor a. */
SCL_INLINE void reverse(const real *a, real *adjoint) {
  SCL_UNROLL for (int k = BATCH_N - 1; k >= 0; k--) {
    const real inverse = 1.0 / AT(a, k, k);
    real sum = AT(adjoint, k, k);
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      real x = AT(adjoint, i, k);
      SCL_UNROLL for (int j = k + 1; j < BATCH_N; j++) {
        x = fma(-2.0 * AT(a, j, k), AT(adjoint, i, j), x);
      }
      x *= inverse;
      sum = fma(-x, AT(a, i, k), sum);
      AT(adjoint, k, i) = 0.5 * x; /* column k is still read */
    }
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) AT(adjoint, i, k) = AT(adjoint, k, i);
    AT(adjoint, k, k) = 0.5 * sum * inverse;
  }
}

BATCH_ENTRY(BATCH_SIZES, BATCH_IN(in), BATCH_IN(adj), BATCH_OUT) {
  __local real staged[BATCH_LOCAL];
#if BOTH_LOCAL
  __local real factors[BATCH_LOCAL];
#endif
  const int item = get_local_id(0);
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
    SCL_UNROLL for (int k = 0; k < BATCH_SQUARE; k++) a[k] = factors[item * BATCH_STRIDE + k];
#else
    SCL_UNROLL for (int k = 0; k < BATCH_SQUARE; k++) {
      a[k] = in[in0 + (first + item) * step_in + k];
    }
#endif
    SCL_UNROLL for (int k = 0; k < BATCH_SQUARE; k++) x[k] = mine[k];
    SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
      if (status == 0) status = pivot_status(fabs(AT(a, k, k)), k);
    }
    reverse(a, x);
    SCL_UNROLL for (int k = 0; k < BATCH_SQUARE; k++) mine[k] = x[k];
    if (status != 0) {
      for (int k = 0; k < BATCH_SQUARE; k++) mine[k] = NAN;
    }
    batch_report(first + item, status, flags, statuses, any);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  batch_out(item, count, BATCH_SQUARE, BATCH_STRIDE, step_out, out0 % 2 == 0, staged,
            out + out0 + first * step_out);
}
