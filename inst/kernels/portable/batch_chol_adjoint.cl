/* Reverse mode of Cholesky factors, order up to 8: backwards through the columns, as
 * engine/host/lanes.c has it. Both inputs lie in local memory, or, where that would be more than
 * the 32 KB that every device has, each work-item reads its factor itself. */
#define BOTH_LOCAL (2 * 8 * BATCH_LOCAL <= 32768)

SCL_INLINE void reverse(const real *a, real *s) {
#define S(i, j) s[(i) + (j) * BATCH_N]
  SCL_UNROLL for (int k = BATCH_N - 1; k >= 0; k--) {
    real d = 1.0 / AT(k, k), sum = S(k, k);
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      real v = S(i, k);
      SCL_UNROLL for (int j = k + 1; j < BATCH_N; j++) v = fma(-2.0 * AT(j, k), S(i, j), v);
      v *= d;
      sum = fma(-v, AT(i, k), sum);
      S(k, i) = 0.5 * v; /* column k is still read */
    }
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) S(i, k) = S(k, i);
    S(k, k) = 0.5 * sum * d;
  }
#undef S
}

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(adj), BATCH_OUT) {
  BATCH_SIZES BATCH_OPERAND(in, a) BATCH_OPERAND(adj, b) BATCH_OPERAND(out, out)
  __local real s[BATCH_LOCAL];
#if BOTH_LOCAL
  __local real factors[BATCH_LOCAL];
#endif
  SMALL_PLACE
  __local real *mine = s + item * BATCH_STRIDE;
  real a[NN], x[NN];
#if BOTH_LOCAL
  batch_in(item, count, NN, BATCH_STRIDE, step_in, in0 % 2 == 0, in + in0 + first * step_in,
           factors);
#endif
  batch_in(item, count, NN, BATCH_STRIDE, step_adj, adj0 % 2 == 0, adj + adj0 + first * step_adj,
           s);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) {
    int status = 0;
#if BOTH_LOCAL
    SCL_UNROLL for (int e = 0; e < NN; e++) a[e] = factors[item * BATCH_STRIDE + e];
#else
    SCL_UNROLL for (int e = 0; e < NN; e++) a[e] = in[in0 + (first + item) * step_in + e];
#endif
    SCL_UNROLL for (int e = 0; e < NN; e++) x[e] = mine[e];
    SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
      if (status == 0) status = pivot_status(fabs(AT(k, k)), k);
    }
    reverse(a, x);
    SCL_UNROLL for (int e = 0; e < NN; e++) mine[e] = x[e];
    if (status != 0) {
      for (int e = 0; e < NN; e++) mine[e] = NAN;
    }
    SMALL_STATUS(status)
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  batch_out(item, count, NN, BATCH_STRIDE, step_out, out0 % 2 == 0, s,
            out + out0 + first * step_out);
}
