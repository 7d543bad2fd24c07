/* Inverses, order up to 8: Gauss-Jordan elimination in place with row pivoting, or cofactors.
 * Ownership of matrices: batch_small.h. */

#if BATCH_N <= 3
/* Returns the status. */
SCL_INLINE int invert_by_cofactors(real *a) {
#if BATCH_N == 1
  real det = AT(a, 0, 0), x[BATCH_SQUARE] = {1.0};
#elif BATCH_N == 2
  real det = AT(a, 0, 0) * AT(a, 1, 1) - AT(a, 0, 1) * AT(a, 1, 0);
  real x[BATCH_SQUARE] = {AT(a, 1, 1), -AT(a, 1, 0), -AT(a, 0, 1), AT(a, 0, 0)};
#else
  real x[BATCH_SQUARE] = {/* rows i, columns j: a[i + 3 * j] */
                          a[4] * a[8] - a[7] * a[5], a[7] * a[2] - a[1] * a[8],
                          a[1] * a[5] - a[4] * a[2], a[6] * a[5] - a[3] * a[8],
                          a[0] * a[8] - a[6] * a[2], a[3] * a[2] - a[0] * a[5],
                          a[3] * a[7] - a[6] * a[4], a[6] * a[1] - a[0] * a[7],
                          a[0] * a[4] - a[3] * a[1]};
  real det = AT(a, 0, 0) * x[0] + AT(a, 0, 1) * x[1] + AT(a, 0, 2) * x[2];
#endif
  real scale = 1.0 / det;
  SCL_UNROLL for (int e = 0; e < BATCH_SQUARE; e++) a[e] = x[e] * scale;
  return pivot_status(fabs(det), BATCH_N - 1);
}
#endif

/* The columns stay in the order of the pivots: column k belongs at origin[k]. Orders up to 3 put
 * them in order in registers: then origin[k] is a constant. */
SCL_INLINE int invert_by_elimination(real *a, int *origin) {
  int status = 0, pivots[BATCH_N];
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) origin[k] = k;
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    real size;
    const int row = pivot_row(a, k, &size);
    if (status == 0) status = pivot_status(size, k);
    swap_rows(a, k, row);
#if BATCH_N > 3
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      int x = origin[k], y = origin[i];
      origin[k] = row == i ? y : x;
      origin[i] = row == i ? x : y;
    }
#endif
    pivots[k] = row;
    real scale = 1.0 / AT(a, k, k);
    AT(a, k, k) = 1.0;
    SCL_UNROLL for (int j = 0; j < BATCH_N; j++) AT(a, k, j) *= scale;
    SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
      if (i == k) continue;
      real factor = AT(a, i, k);
      AT(a, i, k) = 0.0;
      SCL_UNROLL for (int j = 0; j < BATCH_N; j++) {
        AT(a, i, j) = fma(-factor, AT(a, k, j), AT(a, i, j));
      }
    }
  }
#if BATCH_N <= 3
  SCL_UNROLL for (int k = BATCH_N - 2; k >= 0; k--) {
    SCL_UNROLL for (int j = k + 1; j < BATCH_N; j++) {
      bool swap = pivots[k] == j;
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
        real x = AT(a, i, k), y = AT(a, i, j);
        AT(a, i, k) = swap ? y : x;
        AT(a, i, j) = swap ? x : y;
      }
    }
  }
#endif
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
    int origin[BATCH_N], status;
#if BATCH_N <= 3
    if (flags & BATCH_COFACTORS) {
      status = invert_by_cofactors(a);
      SCL_UNROLL for (int j = 0; j < BATCH_N; j++) origin[j] = j;
    } else {
      status = invert_by_elimination(a, origin);
    }
#else
    status = invert_by_elimination(a, origin);
#endif
    SCL_UNROLL for (int j = 0; j < BATCH_N; j++) {
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) mine[i + origin[j] * BATCH_N] = AT(a, i, j);
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
