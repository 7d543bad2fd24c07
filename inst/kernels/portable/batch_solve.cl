/* Solutions and determinants, order up to 8: L and U with row pivoting in registers, then one
 * right-hand side after the other through local memory. */

/* row[k]: which row was swapped with row k. The diagonal holds the pivots. */
SCL_INLINE int eliminate(real *a, int *row) {
  int status = 0;
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    real size;
    row[k] = pivot_row(a, k, &size);
    if (status == 0) status = pivot_status(size, k);
    swap_rows(a, k, row[k]);
    real d = 1.0 / AT(k, k);
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      real f = AT(i, k) * d;
      AT(i, k) = f;
      SCL_UNROLL for (int j = k + 1; j < BATCH_N; j++) AT(i, j) = fma(-f, AT(k, j), AT(i, j));
    }
  }
  return status;
}

SCL_INLINE void substitute(const real *a, const int *row, real *x) {
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      bool swap = row[k] == i;
      real u = x[k], v = x[i];
      x[k] = swap ? v : u;
      x[i] = swap ? u : v;
    }
  }
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) x[i] = fma(-AT(i, k), x[k], x[i]);
  }
  SCL_UNROLL for (int k = BATCH_N - 1; k >= 0; k--) {
    x[k] /= AT(k, k);
    SCL_UNROLL for (int i = 0; i < k; i++) x[i] = fma(-AT(i, k), x[k], x[i]);
  }
}

/* Without its power of two. What comes after a pivot of zero is not finite. */
SCL_INLINE real determinant(const real *a, const int *row, int *power) {
  real product = 1.0;
  *power = 0;
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    int more;
    const real part = pivot_part(AT(k, k), &more);
    product = product == 0.0 ? product : row[k] == k ? product * part : product * -part;
    *power += more;
  }
  return product;
}

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(b), BATCH_OUT) {
  BATCH_SIZES BATCH_OPERAND(in, a) BATCH_OPERAND(b, b) BATCH_OPERAND(out, out)
  __local real s[BATCH_LOCAL];
  SMALL_PLACE
  real a[NN], x[BATCH_N];
  int row[BATCH_N], status = 0;
  batch_in(item, count, NN, BATCH_STRIDE, step_in, in0 % 2 == 0, in + in0 + first * step_in, s);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) {
    SCL_UNROLL for (int e = 0; e < NN; e++) a[e] = s[item * BATCH_STRIDE + e];
    status = eliminate(a, row);
    if (flags & BATCH_DET) {
      int power;
      const real product = determinant(a, row, &power);
      determinant_out(product, power, batch, flags, out + out0 + first + item);
    } else {
      SMALL_STATUS(status)
    }
  }
  if (flags & BATCH_DET) return;
  __local real *mine = s + item * BATCH_COLUMN;
  for (int c = 0; c < count_b; c++) {
    barrier(CLK_LOCAL_MEM_FENCE);
    batch_in(item, count, BATCH_N, BATCH_COLUMN, step_b, (b0 + c * BATCH_N) % 2 == 0,
             b + b0 + first * step_b + c * BATCH_N, s);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < count) {
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) x[i] = mine[i];
      substitute(a, row, x);
      SCL_UNROLL for (int i = 0; i < BATCH_N; i++) mine[i] = status == 0 ? x[i] : NAN;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    batch_out(item, count, BATCH_N, BATCH_COLUMN, step_out, (out0 + c * BATCH_N) % 2 == 0, s,
              out + out0 + first * step_out + c * BATCH_N);
  }
}
