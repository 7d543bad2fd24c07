/* Triangular solutions and normal log densities, order up to 8. Upper triangles, and transposes of
 * lower ones, are turned end for end as they are read: what is solved is always lower. */

SCL_INLINE real density(const real *a, const real *x) {
  real squares = 0.0, logs = 0.0;
  SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
    squares = fma(x[i], x[i], squares);
    logs += log(fabs(AT(i, i)));
  }
  return -0.5 * squares - logs - 0.5 * BATCH_N * 1.837877066409345483561; /* log(2 pi) */
}

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(b), BATCH_IN(means), BATCH_OUT) {
  BATCH_SIZES
  BATCH_OPERAND(in, a) BATCH_OPERAND(b, b) BATCH_OPERAND(means, c) BATCH_OPERAND(out, out)
  __local real s[BATCH_LOCAL];
  SMALL_PLACE
  const bool turned = (flags & BATCH_TRANSPOSE) != 0;
  const bool reversed = ((flags & BATCH_UPPER) != 0) != turned;
  real a[NN], x[BATCH_N];
  int status = 0;
  batch_in(item, count, NN, BATCH_STRIDE, step_in, in0 % 2 == 0, in + in0 + first * step_in, s);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) {
    __local real *matrix = s + item * BATCH_STRIDE;
    SCL_UNROLL for (int j = 0; j < BATCH_N; j++) {
      SCL_UNROLL for (int i = j; i < BATCH_N; i++) {
        int u = reversed ? BATCH_N - 1 - i : i, v = reversed ? BATCH_N - 1 - j : j;
        AT(i, j) = matrix[turned ? v + u * BATCH_N : u + v * BATCH_N];
      }
      if (status == 0 && matrix[j + j * BATCH_N] == 0.0) status = j + 1;
    }
    SMALL_STATUS(status)
  }
  __local real *mine = s + item * BATCH_COLUMN;
  for (int c = 0; c < count_b; c++) {
    barrier(CLK_LOCAL_MEM_FENCE);
    batch_in(item, count, BATCH_N, BATCH_COLUMN, step_b, (b0 + c * BATCH_N) % 2 == 0,
             b + b0 + first * step_b + c * BATCH_N, s);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < count) {
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
        int u = reversed ? BATCH_N - 1 - i : i;
        x[i] = mine[u];
        if (flags & BATCH_MEAN) x[i] -= means[means0 + (first + item) * step_means + u];
      }
      SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
        x[k] /= AT(k, k);
        SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) x[i] = fma(-AT(i, k), x[k], x[i]);
      }
      if (flags & BATCH_MVN) {
        out[out0 + first + item] = status == 0 ? density(a, x) : NAN;
      } else {
        SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
          mine[reversed ? BATCH_N - 1 - i : i] = status == 0 ? x[i] : NAN;
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!(flags & BATCH_MVN)) {
      batch_out(item, count, BATCH_N, BATCH_COLUMN, step_out, (out0 + c * BATCH_N) % 2 == 0, s,
                out + out0 + first * step_out + c * BATCH_N);
    }
  }
}
