/* Shared by all batched kernels: their parameters (batch.h describes them), the statuses of pivots,
 * and determinants. */

#define BATCH_ENTRY                                                                                \
  __attribute__((reqd_work_group_size(BATCH_ITEMS, 1, 1))) __kernel void BATCH_KERNEL
#define BATCH_IN(x) __global const real *x
#define BATCH_OUT                                                                                  \
  __global real *out, __global real *statuses, __global int *any, const batch_task task

/* Writes the status of a matrix. */
SCL_INLINE void batch_report(const long matrix, const int status, const int flags,
                             __global real *statuses, __global int *any) {
  if (flags & BATCH_STATUSES) ((__global uchar *)statuses)[matrix] = (uchar)status;
  if (status != 0) *any = 1;
}

/* Status of pivot k, of which `size` is the absolute value. */
SCL_INLINE int pivot_status(real size, int k) {
  return !(size < INFINITY) ? BATCH_NONFINITE : size < BATCH_SINGULAR_BELOW ? k + 1 : 0;
}

/* A pivot as a number of size 1/2 to 1 (or 0, or not finite) times 2^*power: products of up to 128
 * such numbers neither overflow nor underflow. */
SCL_INLINE real pivot_part(real pivot, int *power) {
  const bool tiny = fabs(pivot) < 0x1p-1022;
  const real scaled = tiny ? pivot * 0x1p+1000 : pivot;
  const int exponent = (int)(as_ulong(scaled) >> 52 & 2047);
  *power = 0;
  if (scaled == 0.0 || exponent == 2047) return scaled;
  *power = exponent - (tiny ? 2022 : 1022);
  return as_double((as_ulong(scaled) & 0x800fffffffffffffUL) | 0x3fe0000000000000UL);
}

/* Writes the determinant, or the logarithm of its absolute value and, `batch` numbers further, its
 * sign; out[0] belongs to this matrix. */
SCL_INLINE void determinant_out(real product, int power, int batch, int flags, __global real *out) {
  if (flags & BATCH_LOGARITHM) {
    out[0] = log(fabs(product)) + power * 0.693147180559945309417;
    out[batch] = isnan(product) ? NAN : product > 0.0 ? 1.0 : product < 0.0 ? -1.0 : 0.0;
  } else {
    out[0] = ldexp(product, clamp(power, -5000, 5000));
  }
}
