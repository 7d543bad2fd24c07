/* Cholesky factors, order up to 8, from the lower triangle: by columns, left-looking. */

SCL_INLINE int factor(real *a) {
  int status = 0;
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    real d = AT(k, k);
    SCL_UNROLL for (int j = 0; j < k; j++) d = fma(-AT(k, j), AT(k, j), d);
    if (status == 0) status = !(fabs(d) < INFINITY) ? BATCH_NONFINITE : d > 0.0 ? 0 : k + 1;
    real root = sqrt(d), r = 1.0 / root;
    AT(k, k) = root;
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      real v = AT(i, k);
      SCL_UNROLL for (int j = 0; j < k; j++) v = fma(-AT(i, j), AT(k, j), v);
      AT(i, k) = v * r;
    }
  }
  return status;
}

BATCH_ENTRY(BATCH_IN(in), BATCH_OUT) {
  BATCH_SIZES BATCH_OPERAND(in, a) BATCH_OPERAND(out, out)
  __local real s[BATCH_LOCAL];
  SMALL_PLACE
  real a[NN];
  batch_in(item, count, NN, BATCH_STRIDE, step_in, in0 % 2 == 0, in + in0 + first * step_in, s);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) {
    __local real *mine = s + item * BATCH_STRIDE;
    SCL_UNROLL for (int e = 0; e < NN; e++) a[e] = mine[e];
    int status = factor(a);
    SCL_UNROLL for (int j = 0; j < BATCH_N; j++) {
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
        mine[flags & BATCH_UPPER ? j + i * BATCH_N : i + j * BATCH_N] = i >= j ? AT(i, j) : 0.0;
      }
    }
    if (status != 0) {
      for (int e = 0; e < NN; e++) mine[e] = NAN;
    }
    SMALL_STATUS(status)
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  batch_out(item, count, NN, BATCH_STRIDE, step_out, out0 % 2 == 0, s,
            out + out0 + first * step_out);
}
