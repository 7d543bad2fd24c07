/* Products in double precision by 8-bit integers (integers.h): norms of the rows of op(A) and the
 * columns of op(B), and whether they are large in the same places.
 *
 *   integers_sample    norms of some rows of an operand
 *   integers_profile   for each term their mean magnitude, relative to these norms
 *   integers_measure   norms of all rows, and their products with the other operand's profile, in
 *                      parts of the sums: one pass over the operand
 *   integers_combine   the parts of a row
 *
 * Single precision will do for the bound that norms are for: sums are relative to a power of two,
 * that of the largest element so far, as squares may be out of range of any format. */

#define INTEGERS_MANTISSA 0xfffffffffffffUL

/* 2^n, or 0 if that is less than single precision has. */
SCL_INLINE float integers_power(const int n) {
  return n < -126 ? 0.0f : as_float((n + 127) << 23);
}

/* Squares and products of elements with weights, relative to 4^exponent and 2^exponent; an exponent
 * is that of a double. 2047: an element is not finite. 0: all are zero. */
typedef struct {
  int exponent;
  float square, product;
} integers_sums;

SCL_INLINE void integers_raise(integers_sums *sums, const int exponent) {
  if (exponent <= sums->exponent) return;
  const float less = integers_power(max(sums->exponent - exponent, -63));
  sums->square *= less * less;
  sums->product *= less;
  sums->exponent = exponent;
}

/* |x| / 2^exponent for an exponent that is no less than that of x. */
SCL_INLINE float integers_relative(const real x, const int exponent) {
  const ulong bits = as_ulong(x);
  const int own = (int)(bits >> 52) & 2047, shifted = own - exponent + 127;
  const uint mantissa = (uint)(bits >> 29) & 0x7fffff;
  if (own == 0)
    return (float)(bits & INTEGERS_MANTISSA) * 0x1p-52f * integers_power(1 - exponent);
  return shifted > 0 ? as_float((uint)shifted << 23 | mantissa) : 0.0f;
}

SCL_INLINE void integers_add(integers_sums *sums, const real x, const float weight) {
  const int exponent = (int)(as_ulong(x) >> 52) & 2047;
  if (exponent > sums->exponent || sums->exponent == 0)
    integers_raise(sums, (as_ulong(x) << 1) == 0 ? 0 : max(exponent, 1));
  const float size = integers_relative(x, sums->exponent);
  sums->square = fma(size, size, sums->square);
  sums->product = fma(size, weight, sums->product);
}

SCL_INLINE void integers_add_sums(integers_sums *sums, const integers_sums other) {
  integers_raise(sums, other.exponent);
  const float less = integers_power(max(other.exponent - sums->exponent, -63));
  sums->square = fma(other.square, less * less, sums->square);
  sums->product = fma(other.product, less, sums->product);
}

/* The logarithm of a norm, base 2: infinite if an element is not finite, minus infinity if all are
 * zero. 1023 is the exponent of 1. */
SCL_INLINE float integers_norm(const integers_sums sums) {
  if (sums.exponent == 2047) return INFINITY;
  return (float)(sums.exponent - 1023) + 0.5f * log2(sums.square);
}

/* A group for each row. */
__kernel __attribute__((reqd_work_group_size(INTEGERS_MEASURERS, 1, 1))) void
integers_sample(__global const real *x, __global real *norms, const integers_operand operand) {
  __local integers_sums shared[INTEGERS_MEASURERS];
  const int sample = (int)get_group_id(0), item = (int)get_local_id(0);
  const int row = (int)((long)sample * operand.rows / min(operand.rows, INTEGERS_SAMPLES));
  const int end = integers_end(&operand, row, operand.depth);
  integers_sums sums = {0, 0.0f, 0.0f};
  x += operand.offset + row * operand.row_step;
  for (int k = integers_begin(&operand, row, 0) + item; k < end; k += INTEGERS_MEASURERS)
    integers_add(&sums, x[k * operand.depth_step], 0.0f);
  shared[item] = sums;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item != 0) return;
  for (int other = 1; other < INTEGERS_MEASURERS; other++)
    integers_add_sums(&sums, shared[other]);
  ((__global float *)norms)[sample] = integers_norm(sums);
}

/* |x| / 2^norm, for a norm that is no less than |x|. */
SCL_INLINE float integers_share_of(const real x, const float norm) {
  const float whole = ceil(norm);
  return integers_relative(x, (int)whole + 1023) * exp2(whole - norm);
}

__kernel void integers_profile(__global const real *x, __global const real *norms,
                               __global real *profile, const integers_operand operand) {
  const int k = (int)get_global_id(0), samples = min(operand.rows, INTEGERS_SAMPLES);
  float sum = 0.0f;
  int count = 0;
  if (k >= operand.depth) return;
  x += operand.offset + k * operand.depth_step;
  for (int i = 0; i < samples; i++) {
    const int row = (int)((long)i * operand.rows / samples);
    const float norm = ((__global const float *)norms)[i];
    if (!isfinite(norm)) continue;
    if (k >= integers_begin(&operand, row, 0) && k < integers_end(&operand, row, k + 1))
      sum += integers_share_of(x[row * operand.row_step], norm);
    count++;
  }
  ((__global float *)profile)[k] = count > 0 ? sum / count : 0.0f;
}

/* Of the sums of a row's part: those of all rows for a part stand together. */
SCL_INLINE long integers_place(const integers_operand *operand, const int part, const int row) {
  return 3 * (part * (long)operand->rows + row);
}

/* Neighbours take the terms of a row in turn where these are neighbours in memory (`lanes`),
 * otherwise different rows. */
__kernel __attribute__((reqd_work_group_size(INTEGERS_MEASURERS, 1, 1))) void
integers_measure(__global const real *x, __global const real *profile, __global real *parts,
                 const integers_operand operand) {
  __local integers_sums shared[INTEGERS_MEASURERS];
  const int item = (int)get_local_id(0), part = (int)get_group_id(1);
  const int lane = item % operand.lanes;
  const int row = (int)get_global_id(0) / operand.lanes;
  const int begin = integers_begin(&operand, row, part * operand.part);
  const int limit = min((part + 1) * operand.part, operand.depth);
  const int end = row < operand.rows ? integers_end(&operand, row, limit) : 0;
  integers_sums sums = {0, 0.0f, 0.0f};
  x += operand.offset + row * operand.row_step;
  for (int k = begin + lane; k < end; k += operand.lanes)
    integers_add(&sums, x[k * operand.depth_step], ((__global const float *)profile)[k]);
  shared[item] = sums;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane != 0 || row >= operand.rows) return;
  for (int other = 1; other < operand.lanes; other++)
    integers_add_sums(&sums, shared[item + other]);
  __global int *to = (__global int *)parts + integers_place(&operand, part, row);
  to[0] = sums.exponent;
  to[1] = as_int(sums.square);
  to[2] = as_int(sums.product);
}

/* The logarithm of each row's norm; behind these, the mean of the cosines of the angles between its
 * magnitudes and those of the other operand, 1 for a row of zeros. */
__kernel void integers_combine(__global const real *parts, __global real *norms,
                               const int count, const integers_operand operand) {
  const int row = (int)get_global_id(0);
  integers_sums sums = {0, 0.0f, 0.0f};
  if (row >= operand.rows) return;
  for (int part = 0; part < count; part++) {
    __global const int *from = (__global const int *)parts + integers_place(&operand, part, row);
    integers_add_sums(&sums, (integers_sums){from[0], as_float(from[1]), as_float(from[2])});
  }
  __global float *to = (__global float *)norms + row;
  to[0] = integers_norm(sums);
  to[operand.rows] = sums.exponent == 0 ? 1.0f : sums.product / sqrt(sums.square);
}
