/* Solutions and determinants, order up to 8: L and U with row pivoting in registers, then one
 * right-hand side after the other through local memory. */

/* row[k]: which row was swapped with row k. The diagonal holds the pivots. */
SCL_INLINE int eliminate(double *a, int *row) {
  int status = 0;
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    int p = k;
    double big = fabs(AT(k, k));
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      double v = fabs(AT(i, k));
      bool larger = !(v <= big); /* a NaN wins, and is found below */
      big = larger ? v : big;
      p = larger ? i : p;
    }
    row[k] = p;
    if (status == 0) status = pivot_status(big, k);
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      bool swap = p == i;
      SCL_UNROLL for (int j = 0; j < BATCH_N; j++) {
        double u = AT(k, j), v = AT(i, j);
        AT(k, j) = swap ? v : u;
        AT(i, j) = swap ? u : v;
      }
    }
    double d = 1.0 / AT(k, k);
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      double f = AT(i, k) * d;
      AT(i, k) = f;
      SCL_UNROLL for (int j = k + 1; j < BATCH_N; j++) AT(i, j) = fma(-f, AT(k, j), AT(i, j));
    }
  }
  return status;
}

SCL_INLINE void substitute(const double *a, const int *row, double *x) {
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
      bool swap = row[k] == i;
      double u = x[k], v = x[i];
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

/* The product of the pivots is kept as a number near 1 and a power of two, which no pivot
 * overflows. */
SCL_INLINE double determinant(const double *a, const int *row, int flags, double *sign) {
  double product = 1.0;
  int power = 0;
  bool zero = false; /* what comes after a pivot of zero is not finite */
  SCL_UNROLL for (int k = 0; k < BATCH_N; k++) {
    double next = product * AT(k, k);
    zero = zero || next == 0.0;
    int exponent = zero || !(fabs(next) < INFINITY) ? 0 : ilogb(next);
    product = zero ? 0.0 : ldexp(row[k] != k ? -next : next, -exponent);
    power += exponent;
  }
  *sign = isnan(product) ? NAN : product > 0.0 ? 1.0 : product < 0.0 ? -1.0 : 0.0;
  return flags & BATCH_LOGARITHM ? log(fabs(product)) + power * 0.693147180559945309417
                                 : ldexp(product, clamp(power, -5000, 5000));
}

__attribute__((reqd_work_group_size(BATCH_ITEMS, 1, 1))) __kernel void
BATCH_KERNEL(const int batch, const int n, const int columns, const int flags,
             __global const double *in, const long in0, const int step_in,
             __global const double *b, const long b0, const int step_b, __global double *out,
             const long out0, const int step_out, __global double *statuses, __global int *any) {
  __local double s[BATCH_LOCAL];
  SMALL_PLACE
  double a[NN], x[BATCH_N];
  int row[BATCH_N], status = 0;
  batch_in(item, count, NN, BATCH_STRIDE, step_in, in0 % 2 == 0, in + in0 + first * step_in, s);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) {
    SCL_UNROLL for (int e = 0; e < NN; e++) a[e] = s[item * BATCH_STRIDE + e];
    status = eliminate(a, row);
    if (flags & BATCH_DET) {
      double sign;
      out[out0 + first + item] = determinant(a, row, flags, &sign);
      if (flags & BATCH_LOGARITHM) out[out0 + batch + first + item] = sign;
    } else {
      SMALL_STATUS(status)
    }
  }
  if (flags & BATCH_DET) return;
  __local double *mine = s + item * BATCH_COLUMN;
  for (int c = 0; c < columns; c++) {
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
