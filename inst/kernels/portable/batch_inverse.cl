/* Inverses, order up to 8: Gauss-Jordan elimination in place with row pivoting, or cofactors.
 * Layout and work split: batch_small.h. */

#if BATCH_N <= 3
/* Returns the status. */
SCL_INLINE int invert_by_cofactors(real *a) {
#if BATCH_N == 1
  const real det = AT(a, 0, 0), x[BATCH_SQUARE] = {1.0};
#elif BATCH_N == 2
  const real det = AT(a, 0, 0) * AT(a, 1, 1) - AT(a, 0, 1) * AT(a, 1, 0);
  const real x[BATCH_SQUARE] = {AT(a, 1, 1), -AT(a, 1, 0), -AT(a, 0, 1), AT(a, 0, 0)};
#else
  const real x[BATCH_SQUARE] = {AT(a, 1, 1) * AT(a, 2, 2) - AT(a, 1, 2) * AT(a, 2, 1),
                                AT(a, 1, 2) * AT(a, 2, 0) - AT(a, 1, 0) * AT(a, 2, 2),
                                AT(a, 1, 0) * AT(a, 2, 1) - AT(a, 1, 1) * AT(a, 2, 0),
                                AT(a, 0, 2) * AT(a, 2, 1) - AT(a, 0, 1) * AT(a, 2, 2),
                                AT(a, 0, 0) * AT(a, 2, 2) - AT(a, 0, 2) * AT(a, 2, 0),
                                AT(a, 0, 1) * AT(a, 2, 0) - AT(a, 0, 0) * AT(a, 2, 1),
                                AT(a, 0, 1) * AT(a, 1, 2) - AT(a, 0, 2) * AT(a, 1, 1),
                                AT(a, 0, 2) * AT(a, 1, 0) - AT(a, 0, 0) * AT(a, 1, 2),
                                AT(a, 0, 0) * AT(a, 1, 1) - AT(a, 0, 1) * AT(a, 1, 0)};
  const real det = AT(a, 0, 0) * x[0] + AT(a, 0, 1) * x[1] + AT(a, 0, 2) * x[2];
#endif
  const real inverse = 1.0 / det;
  SCL_UNROLL for (int k = 0; k < BATCH_SQUARE; k++) a[k] = x[k] * inverse;
  return pivot_status(fabs(det), BATCH_N - 1);
}

/* The columns in their order: exchanges them back. */
SCL_INLINE void swap_columns_back(real *a, const int *row) {
  SCL_UNROLL for (int k = BATCH_N - 2; k >= 0; k--) {
    SCL_UNROLL for (int j = k + 1; j < BATCH_N; j++) {
      const bool swap = row[k] == j;
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
        const real x = AT(a, i, k), y = AT(a, i, j);
        AT(a, i, k) = swap ? y : x;
        AT(a, i, j) = swap ? x : y;
      }
    }
  }
}
#endif

/* The columns stay in the order of the pivots: column k belongs at origin[k]. Orders up to 3 put
 * them in order in registers: then origin[k] is a constant. */
SCL_INLINE int invert_by_elimination(real *a, int *origin) {
  int status = 0, row[BATCH_N];
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) origin[k] = k;
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    real size;
    row[k] = pivot_row(a, k, &size);
    if (status == 0) status = pivot_status(size, k);
    swap_rows(a, k, row[k]);
#if BATCH_N > 3
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      const int x = origin[k], y = origin[i];
      origin[k] = row[k] == i ? y : x;
      origin[i] = row[k] == i ? x : y;
    }
#endif
    const real inverse = 1.0 / AT(a, k, k);
    AT(a, k, k) = 1.0;
    SCL_UNROLL for (int j = 0; j < BATCH_N; j++) AT(a, k, j) *= inverse;
    SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
      if (i == k) continue;
      const real factor = AT(a, i, k);
      AT(a, i, k) = 0.0;
      SCL_UNROLL for (int j = 0; j < BATCH_N; j++) {
        AT(a, i, j) = fma(-factor, AT(a, k, j), AT(a, i, j));
      }
    }
  }
#if BATCH_N <= 3
  swap_columns_back(a, row);
#endif
  return status;
}

BATCH_ENTRY(BATCH_SIZES, BATCH_IN(in), BATCH_OUT) {
  __local real staged[BATCH_LOCAL];
  const int item = get_local_id(0);
  const long first = (long)get_group_id(0) * BATCH_ITEMS; /* matrix of the group */
  const int count = (int)min((long)BATCH_ITEMS, batch - first);
  real a[BATCH_SQUARE];
  batch_in(item, count, BATCH_SQUARE, BATCH_STRIDE, step_in, in0 % 2 == 0,
           in + in0 + first * step_in, staged);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) {
    __local real *mine = staged + item * BATCH_STRIDE;
    SCL_UNROLL for (int k = 0; k < BATCH_SQUARE; k++) a[k] = mine[k];
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
      for (int k = 0; k < BATCH_SQUARE; k++) mine[k] = NAN;
    }
    batch_report(first + item, status, flags, statuses, any);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  batch_out(item, count, BATCH_SQUARE, BATCH_STRIDE, step_out, out0 % 2 == 0, staged,
            out + out0 + first * step_out);
}
