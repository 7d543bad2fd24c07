/* Inverses, order up to 8: Gauss-Jordan elimination in place with row pivoting, or cofactors. */

#if BATCH_N <= 3
/* Returns the status. */
SCL_INLINE int invert_by_cofactors(real *a) {
#if BATCH_N == 1
  real det = AT(0, 0), x[NN] = {1.0};
#elif BATCH_N == 2
  real det = AT(0, 0) * AT(1, 1) - AT(0, 1) * AT(1, 0);
  real x[NN] = {AT(1, 1), -AT(1, 0), -AT(0, 1), AT(0, 0)};
#else
  real x[NN] = {
      AT(1, 1) * AT(2, 2) - AT(1, 2) * AT(2, 1), AT(1, 2) * AT(2, 0) - AT(1, 0) * AT(2, 2),
      AT(1, 0) * AT(2, 1) - AT(1, 1) * AT(2, 0), AT(0, 2) * AT(2, 1) - AT(0, 1) * AT(2, 2),
      AT(0, 0) * AT(2, 2) - AT(0, 2) * AT(2, 0), AT(0, 1) * AT(2, 0) - AT(0, 0) * AT(2, 1),
      AT(0, 1) * AT(1, 2) - AT(0, 2) * AT(1, 1), AT(0, 2) * AT(1, 0) - AT(0, 0) * AT(1, 2),
      AT(0, 0) * AT(1, 1) - AT(0, 1) * AT(1, 0)};
  real det = AT(0, 0) * x[0] + AT(0, 1) * x[1] + AT(0, 2) * x[2];
#endif
  real d = 1.0 / det;
  SCL_UNROLL for (int e = 0; e < NN; e++) a[e] = x[e] * d;
  return pivot_status(fabs(det), BATCH_N - 1);
}
#endif

/* The columns stay in the order of the pivots: column k belongs at origin[k]. Orders up to 3 put
 * them in order in registers: then origin[k] is a constant. */
SCL_INLINE int invert_by_elimination(real *a, int *origin) {
  int status = 0, row[BATCH_N];
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) origin[k] = k;
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    real size;
    const int p = pivot_row(a, k, &size);
    if (status == 0) status = pivot_status(size, k);
    swap_rows(a, k, p);
#if BATCH_N > 3
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      int u = origin[k], v = origin[i];
      origin[k] = p == i ? v : u;
      origin[i] = p == i ? u : v;
    }
#endif
    row[k] = p;
    real d = 1.0 / AT(k, k);
    AT(k, k) = 1.0;
    SCL_UNROLL for (int j = 0; j < BATCH_N; j++) AT(k, j) *= d;
    SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
      if (i == k) continue;
      real f = AT(i, k);
      AT(i, k) = 0.0;
      SCL_UNROLL for (int j = 0; j < BATCH_N; j++) AT(i, j) = fma(-f, AT(k, j), AT(i, j));
    }
  }
#if BATCH_N <= 3
  SCL_UNROLL for (int k = BATCH_N - 2; k >= 0; k--) {
    SCL_UNROLL for (int j = k + 1; j < BATCH_N; j++) {
      bool swap = row[k] == j;
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) {
        real u = AT(i, k), v = AT(i, j);
        AT(i, k) = swap ? v : u;
        AT(i, j) = swap ? u : v;
      }
    }
  }
#endif
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
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) mine[i + origin[j] * BATCH_N] = AT(i, j);
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
