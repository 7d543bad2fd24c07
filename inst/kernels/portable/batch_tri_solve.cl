/* Triangular solutions and normal log densities, order up to 8. Upper triangles, and transposes of
 * lower ones, are read in reverse order, so that the system is always lower. Ownership of matrices:
 * batch_small.h. */

SCL_INLINE real density(const real *a, const real *x) {
  real squares = 0.0, logs = 0.0;
  SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
    squares = fma(x[i], x[i], squares);
    logs += log(fabs(AT(a, i, i)));
  }
  return -0.5 * squares - logs - 0.5 * BATCH_N * 1.837877066409345483561; /* log(2 pi) */
}

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(b), BATCH_IN(means), BATCH_OUT) {
  const int batch = task.batch, count_b = task.count_b, flags = task.flags;
  const long in0 = task.a_offset, b0 = task.b_offset, means0 = task.c_offset;
  const long out0 = task.out_offset;
  const int step_in = task.a_step, step_b = task.b_step, step_means = task.c_step;
  const int step_out = task.out_step;
  __local real staged[BATCH_LOCAL];
  const int item = (int)get_local_id(0);
  const long first = (long)get_group_id(0) * BATCH_ITEMS; /* matrix of the group */
  const int count = (int)min((long)BATCH_ITEMS, batch - first);
  const bool transposed = (flags & BATCH_TRANSPOSE) != 0;
  const bool reversed = ((flags & BATCH_UPPER) != 0) != transposed;
  real a[BATCH_SQUARE], x[BATCH_N];
  int status = 0;
  batch_in(item, count, BATCH_SQUARE, BATCH_STRIDE, step_in, in0 % 2 == 0,
           in + in0 + first * step_in, staged);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) {
    __local real *matrix = staged + item * BATCH_STRIDE;
    SCL_UNROLL for (int j = 0; j < BATCH_N; j++) {
      SCL_UNROLL for (int i = j; i < BATCH_N; i++) {
        int row = reversed ? BATCH_N - 1 - i : i, column = reversed ? BATCH_N - 1 - j : j;
        AT(a, i, j) = matrix[transposed ? column + row * BATCH_N : row + column * BATCH_N];
      }
      if (status == 0 && matrix[j + j * BATCH_N] == 0.0) status = j + 1;
    }
    batch_report(first + item, status, flags, statuses, any);
  }
  __local real *mine = staged + item * BATCH_COLUMN;
  for (int c = 0; c < count_b; c++) {
    barrier(CLK_LOCAL_MEM_FENCE);
    batch_in(item, count, BATCH_N, BATCH_COLUMN, step_b, (b0 + c * BATCH_N) % 2 == 0,
             b + b0 + first * step_b + c * BATCH_N, staged);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < count) {
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
        int row = reversed ? BATCH_N - 1 - i : i;
        x[i] = mine[row];
        if (flags & BATCH_MEAN) x[i] -= means[means0 + (first + item) * step_means + row];
      }
      SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
        x[k] /= AT(a, k, k);
        SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) x[i] = fma(-AT(a, i, k), x[k], x[i]);
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
      batch_out(item, count, BATCH_N, BATCH_COLUMN, step_out, (out0 + c * BATCH_N) % 2 == 0, staged,
                out + out0 + first * step_out + c * BATCH_N);
    }
  }
}
