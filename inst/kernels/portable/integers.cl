/* Products in double precision by 8-bit integers (integers.h), in steps of a launch each:
 *
 *   integers_measure   norms of the rows of op(A) and the columns of op(B), in parts of the sums
 *   integers_combine   of the parts of a row: the logarithm of its norm
 *   integers_profile   where the rows of op(A), and the columns of op(B), are large
 *   integers_overlap, integers_overlaps   whether that is where the other operand is large
 *   integers_split     scaled elements as whole numbers, their residues by all moduli
 *   integers_multiply  residues of the elements of the product; integers_mma.cl does it, too
 *   integers_join      whole numbers from their residues; alpha and beta
 *
 *     A   residues      by all moduli               C's residues              C
 *   +---+   +---+                                      +---+
 *   |   |-->|   |+                                     |   |+               +---+
 *   +---+   +---+|+    +---+                           +---+|+   -------->  |   |
 *    B       +---+| *  |   |+   one modulus at a time   +---+|              +---+
 *   +---+     +---+    +---+|   ------------------->     +---+
 *   |   |-->            +---+
 *   +---+
 *
 * All is integer arithmetic, but for the norms (single precision will do for the bound that they
 * are for) and the last step of all. */

__constant int integers_inverse[][INTEGERS_MOST] = {INTEGERS_INVERSE_TABLE};
__constant int integers_weight[][INTEGERS_MOST][4] = {INTEGERS_WEIGHT_TABLE};
__constant int integers_share[] = {INTEGERS_SHARE_TABLE};
__constant long integers_whole[][4] = {INTEGERS_PRODUCT_TABLE};

#define INTEGERS_MANTISSA 0xfffffffffffffUL
#define INTEGERS_HIDDEN 0x10000000000000UL

/* ---- norms ----------------------------------------------------------------------------------- */

/* The terms of a row that count: from begin, if that is more, to end, if that is less. */
SCL_INLINE int integers_begin(const integers_operand *operand, const int row, const int begin) {
  const int diagonal = operand->first + row - operand->term;
  return operand->triangle == 2 ? max(begin, diagonal) : begin;
}

SCL_INLINE int integers_end(const integers_operand *operand, const int row, const int end) {
  const int diagonal = operand->first + row - operand->term;
  return operand->triangle == 1 ? min(end, diagonal + 1) : end;
}

/* 2^n, or 0 if that is less than single precision has. */
SCL_INLINE float integers_power(const int n) {
  return n < -126 ? 0.0f : as_float((n + 127) << 23);
}

/* A sum of squares, square * 4^exponent. An exponent of 2047: an element is not finite. */
typedef struct {
  int exponent;
  float square;
} integers_sum;

SCL_INLINE integers_sum integers_add(integers_sum sum, const int exponent, const float square) {
  if (exponent > sum.exponent) {
    sum.square *= integers_power(2 * max(sum.exponent - exponent, -63));
    sum.exponent = exponent;
  }
  sum.square += square * integers_power(2 * max(exponent - sum.exponent, -63));
  return sum;
}

/* The exponent and the upper 24 bits of the mantissa. */
SCL_INLINE integers_sum integers_add_square(const integers_sum sum, const real x) {
  const ulong bits = as_ulong(x);
  const int exponent = (int)(bits >> 52) & 2047;
  const ulong mantissa = (bits & INTEGERS_MANTISSA) | (exponent == 0 ? 0UL : INTEGERS_HIDDEN);
  const float upper = (float)(uint)((mantissa >> 29) + 1);
  if (mantissa == 0) return sum;
  return integers_add(sum, max(exponent, 1), upper * upper);
}

/* parts[part * rows + row]: an integers_sum. */
__kernel void integers_measure(__global const real *x, __global real *parts,
                               const integers_operand operand) {
  const int row = (int)get_global_id(0), part = (int)get_global_id(1);
  const int begin = integers_begin(&operand, row, part * operand.part);
  const int end =
      integers_end(&operand, row, min((part + 1) * operand.part, operand.depth));
  integers_sum sum = {0, 0.0f};
  if (row >= operand.rows) return;
  x += operand.offset + row * operand.row_step;
  for (int k = begin; k < end; k++) sum = integers_add_square(sum, x[k * operand.depth_step]);
  ((__global int2 *)parts)[part * (long)operand.rows + row] =
      (int2)(sum.exponent, as_int(sum.square));
}

/* The logarithm of each row's norm, base 2: infinite if an element is not finite, minus infinity if
 * all are zero. */
__kernel void integers_combine(__global const real *parts, __global real *norms,
                               const int count, const integers_operand operand) {
  const int row = (int)get_global_id(0);
  integers_sum sum = {0, 0.0f};
  if (row >= operand.rows) return;
  for (int part = 0; part < count; part++) {
    const int2 one = ((__global const int2 *)parts)[part * (long)operand.rows + row];
    if (one.x > 0) sum = integers_add(sum, one.x, as_float(one.y));
  }
  /* bit 29 of a mantissa stood for 1, of which the exponent 1075 is that of 1 */
  ((__global float *)norms)[row] =
      sum.exponent == 2047 ? INFINITY
                           : (float)(sum.exponent - 1046) + 0.5f * log2(sum.square);
}

/* |x| / 2^norm, for a norm that is no less than |x|. */
SCL_INLINE float integers_relative(const real x, const float norm) {
  const ulong bits = as_ulong(x);
  const int exponent = (int)(bits >> 52) & 2047;
  const ulong mantissa = (bits & INTEGERS_MANTISSA) | (exponent == 0 ? 0UL : INTEGERS_HIDDEN);
  const float whole = floor(norm), fraction = exp2(whole - norm);
  return (float)(uint)(mantissa >> 29) * fraction *
         integers_power(max(exponent, 1) - 1046 - (int)whole);
}

/* For each term the mean magnitude in some rows, relative to their norms. */
__kernel void integers_profile(__global const real *x, __global const real *norms,
                               __global real *profile, const integers_operand operand) {
  const int k = (int)get_global_id(0), samples = min(operand.rows, INTEGERS_SAMPLES);
  float sum = 0.0f;
  int count = 0;
  if (k >= operand.depth) return;
  x += operand.offset + k * operand.depth_step;
  for (int i = 0; i < samples; i++) {
    const long row = (long)i * operand.rows / samples;
    const float norm = ((__global const float *)norms)[row];
    if (!isfinite(norm)) continue;
    if (k >= integers_begin(&operand, (int)row, 0) && k < integers_end(&operand, (int)row, k + 1))
      sum += integers_relative(x[row * operand.row_step], norm);
    count++;
  }
  ((__global float *)profile)[k] = count > 0 ? sum / count : 0.0f;
}

/* parts[part * rows + row]: of the product of the row's magnitudes with those of the other
 * operand's profile, relative to the norms: a mean of the angle's cosine. */
__kernel void integers_overlap(__global const real *x, __global const real *norms,
                               __global const real *profile, __global real *parts,
                               const integers_operand operand) {
  const int row = (int)get_global_id(0), part = (int)get_global_id(1);
  const int begin = integers_begin(&operand, row, part * operand.part);
  const int end =
      integers_end(&operand, row, min((part + 1) * operand.part, operand.depth));
  float sum = 0.0f;
  if (row >= operand.rows) return;
  const float norm = ((__global const float *)norms)[row];
  x += operand.offset + row * operand.row_step;
  for (int k = begin; k < end; k++) {
    const float weight = ((__global const float *)profile)[k];
    sum += integers_relative(x[k * operand.depth_step], norm) * weight;
  }
  ((__global float *)parts)[part * (long)operand.rows + row] = sum;
}

/* Adds these up, behind the norms; a row of zeros has 1. */
__kernel void integers_overlaps(__global const real *parts, __global real *norms, const int count,
                                const integers_operand operand) {
  const int row = (int)get_global_id(0);
  float sum = 0.0f;
  if (row >= operand.rows) return;
  for (int part = 0; part < count; part++)
    sum += ((__global const float *)parts)[part * (long)operand.rows + row];
  __global float *to = (__global float *)norms + row;
  to[operand.rows] = to[0] == -INFINITY ? 1.0f : sum;
}

/* The power of two by which a row is multiplied. */
SCL_INLINE int integers_scale(const float norm, const real limit) {
  return (int)clamp(floor((float)limit - norm), -1200.0f, 1200.0f);
}

/* ---- residues -------------------------------------------------------------------------------- */

/* The whole number next to x 2^scale, halves away from zero. */
SCL_INLINE long integers_round(const real x, const int scale) {
  const ulong bits = as_ulong(x);
  const int exponent = (int)(bits >> 52) & 2047;
  const ulong mantissa = (bits & INTEGERS_MANTISSA) | (exponent == 0 ? 0UL : INTEGERS_HIDDEN);
  const int shift = max(exponent, 1) - 1075 + scale;
  const int right = clamp(-shift, 1, 63);
  const ulong whole =
      shift >= 0 ? mantissa << min(shift, 63) : (mantissa + (1UL << (right - 1))) >> right;
  return (long)bits < 0 ? -(long)whole : (long)whole;
}

/* A whole number is taken apart in four digits of base 2^16, of least magnitude. Single precision
 * holds the sums of such digits times residues, at most 2^24, and their residues, exactly. */
#define INTEGERS_DIGITS 4
#define INTEGERS_TO_WHOLE 0x1.8p23f /* added: rounds, and the low bits are the whole number's */

/* The constants of one modulus. */
typedef struct {
  float power[INTEGERS_DIGITS]; /* residues of 2^(16 digit), times the inverse for op(A) */
  float modulus, reciprocal;
  float unused[2];
} integers_constants;

SCL_INLINE integers_constants integers_constants_of(const int i, const int moduli,
                                                    const int left) {
  const int modulus = integers_modulus[i], reciprocal = integers_reciprocal(modulus);
  int power = left ? integers_inverse[moduli - INTEGERS_FEWEST][i] : 1;
  integers_constants c;
  for (int digit = 0; digit < INTEGERS_DIGITS; digit++) {
    c.power[digit] = (float)power;
    power = integers_residue(power << 16, modulus, reciprocal);
  }
  c.modulus = (float)modulus;
  c.reciprocal = 1.0f / c.modulus;
  c.unused[0] = c.unused[1] = 0.0f;
  return c;
}

SCL_INLINE float4 integers_take_apart(const long whole) {
  const ulong above = (ulong)whole + 0x8000800080008000UL; /* each digit plus 2^15 */
  const uint low = (uint)above, high = (uint)(above >> 32);
  /* with the exponent of 2^23: no conversion, which is slow on some devices */
  const uint4 bits = 0x4b000000u | (uint4)(low & 0xffff, low >> 16, high & 0xffff, high >> 16);
  return as_float4(bits) - (0x1p23f + 0x1p15f);
}

/* The low byte is the residue. As 1 / modulus is rounded, its magnitude may be one more than half a
 * modulus, which a byte holds up to 253; for 256 it wraps around. */
SCL_INLINE uint integers_residue_of(const float4 digit, const integers_constants *c) {
  const float sum = fma(digit.w, c->power[3],
                        fma(digit.z, c->power[2],
                            fma(digit.y, c->power[1], digit.x * c->power[0])));
  const float quotient = fma(sum, c->reciprocal, INTEGERS_TO_WHOLE) - INTEGERS_TO_WHOLE;
  return as_uint(fma(-quotient, c->modulus, sum) + INTEGERS_TO_WHOLE);
}

/* Packs 16 terms of a row. */
__kernel void integers_split(__global const real *x, __global const real *norms,
                             __global real *residues, const integers_operand operand) {
  __local integers_constants constants[INTEGERS_MOST];
  const int row = (int)get_global_id(0), chunk = (int)get_global_id(1);
  const int depth = chunk * INTEGERS_CHUNK, item = (int)get_local_id(0);
  const int position = operand.left ? integers_position(row) : row;
  const long at = ((position / INTEGERS_PANEL * (long)operand.chunks + chunk) * INTEGERS_PANEL +
                   position % INTEGERS_PANEL) * INTEGERS_CHUNK;
  __global char *to = (__global char *)residues + at;
  __global const float *norm = (__global const float *)norms + operand.first + row;
  const bool inside = row < operand.rows;
  const int scale = inside ? integers_scale(*norm, operand.limit) : 0;
  float4 digits[INTEGERS_CHUNK];
  if (item < operand.moduli)
    constants[item] = integers_constants_of(item, operand.moduli, operand.left);
  barrier(CLK_LOCAL_MEM_FENCE);
  const int begin = integers_begin(&operand, row, 0);
  const int end = inside ? integers_end(&operand, row, operand.depth) : 0;
  x += operand.offset + row * operand.row_step + depth * operand.depth_step;
  SCL_UNROLL
  for (int k = 0; k < INTEGERS_CHUNK; k++) {
    const bool there = depth + k >= begin && depth + k < end;
    digits[k] = integers_take_apart(there ? integers_round(x[k * operand.depth_step], scale) : 0);
  }
  for (int i = 0; i < operand.moduli; i++) {
    const integers_constants c = constants[i];
    uint words[4];
    SCL_UNROLL
    for (int word = 0; word < 4; word++) {
      const float4 *of = digits + 4 * word;
      words[word] = as_uint((uchar4)((uchar)integers_residue_of(of[0], &c),
                                     (uchar)integers_residue_of(of[1], &c),
                                     (uchar)integers_residue_of(of[2], &c),
                                     (uchar)integers_residue_of(of[3], &c)));
    }
    *(__global uint4 *)(to + i * operand.modulus_step) =
        (uint4)(words[0], words[1], words[2], words[3]);
  }
}

/* ---- products -------------------------------------------------------------------------------- */

/* INTEGERS_ROWS rows of a column of C by one modulus. */
__kernel void integers_multiply(__global const real *a, __global const real *b, __global real *c,
                                const integers_product product) {
  const int row = (int)get_global_id(0) * INTEGERS_ROWS, column = (int)get_global_id(1);
  const int i = (int)get_global_id(2), modulus = integers_modulus[i];
  const int first = integers_position(row % INTEGERS_PANEL);
  const int reciprocal = integers_reciprocal(modulus);
  __global const char *rows =
      (__global const char *)a + i * product.a_step +
      (row / INTEGERS_PANEL * (long)product.chunks * INTEGERS_PANEL + first) * INTEGERS_CHUNK;
  __global const char *columns =
      (__global const char *)b + i * product.b_step +
      (column / INTEGERS_PANEL * (long)product.chunks * INTEGERS_PANEL + column % INTEGERS_PANEL) *
          INTEGERS_CHUNK;
  int4 sums[INTEGERS_ROWS];
  char packed[INTEGERS_ROWS];
  SCL_UNROLL
  for (int r = 0; r < INTEGERS_ROWS; r++) sums[r] = 0;
  for (int chunk = 0; chunk < product.chunks; chunk++) {
    const int16 y = convert_int16(vload16(0, columns));
    SCL_UNROLL
    for (int r = 0; r < INTEGERS_ROWS; r++) {
      const int16 z = y * convert_int16(vload16(r / 2 * 8 + r % 2, rows));
      const int8 sum = z.lo + z.hi;
      sums[r] += sum.lo + sum.hi;
    }
    rows += INTEGERS_PANEL * INTEGERS_CHUNK;
    columns += INTEGERS_PANEL * INTEGERS_CHUNK;
  }
  SCL_UNROLL
  for (int r = 0; r < INTEGERS_ROWS; r++)
    packed[r] = (char)integers_residue(sums[r].x + sums[r].y + sums[r].z + sums[r].w, modulus,
                                       reciprocal);
  vstore16(vload16(0, packed), 0,
           (__global char *)c + i * product.c_step + column * (long)product.rows + row);
}

/* ---- whole numbers from residues ------------------------------------------------------------- */

/* A whole number of four parts of 30 bits, the highest of which has a sign. */
typedef struct {
  long part[4];
} integers_number;

SCL_INLINE void integers_carry(integers_number *x) {
  SCL_UNROLL
  for (int part = 0; part < 3; part++) {
    x->part[part + 1] += x->part[part] >> 30;
    x->part[part] &= (1L << 30) - 1;
  }
}

/* x / 2^scale. The sum is rounded once if it has more than 53 bits. */
SCL_INLINE real integers_value(integers_number x, const int scale) {
  integers_carry(&x);
  const bool negative = x.part[3] < 0;
  if (negative) {
    SCL_UNROLL
    for (int part = 0; part < 4; part++) x.part[part] = -x.part[part];
    integers_carry(&x);
  }
  const real lower = fma((real)(x.part[2] << 30 | x.part[1]), 0x1p30, (real)x.part[0]);
  const real value = fma((real)x.part[3], 0x1p90, lower);
  return ldexp(negative ? -value : value, -scale);
}

/* Rows row to row + 3 of C as sums of residue times P / modulus, less the multiple of P that is
 * next to it: its quotient by P is known to 2^-15, and a number is less than P / 2 by more than
 * that. */
SCL_INLINE void integers_of_residues(integers_number x[INTEGERS_JOINED],
                                     __global const char *residues, const long step,
                                     const int moduli) {
  int quotient[INTEGERS_JOINED];
  SCL_UNROLL
  for (int row = 0; row < INTEGERS_JOINED; row++) {
    quotient[row] = 0;
    SCL_UNROLL
    for (int part = 0; part < 4; part++) x[row].part[part] = 0;
  }
  for (int i = 0; i < moduli; i++) {
    const int4 residue = convert_int4(*(__global const char4 *)(residues + i * step));
    const int each[INTEGERS_JOINED] = {residue.x, residue.y, residue.z, residue.w};
    SCL_UNROLL
    for (int part = 0; part < 4; part++) {
      const int weight = integers_weight[moduli - INTEGERS_FEWEST][i][part];
      SCL_UNROLL
      for (int row = 0; row < INTEGERS_JOINED; row++)
        x[row].part[part] += (long)each[row] * weight;
    }
    SCL_UNROLL
    for (int row = 0; row < INTEGERS_JOINED; row++) quotient[row] += each[row] * integers_share[i];
  }
  SCL_UNROLL
  for (int row = 0; row < INTEGERS_JOINED; row++) {
    const int times = (quotient[row] + (1 << 25)) >> 26;
    SCL_UNROLL
    for (int part = 0; part < 4; part++)
      x[row].part[part] -= times * integers_whole[moduli - INTEGERS_FEWEST][part];
  }
}

/* INTEGERS_JOINED rows of a column of C. */
__kernel void integers_join(__global const real *residues, __global const real *norms_a,
                            __global const real *norms_b, __global const real *from,
                            __global real *c, const integers_product product) {
  const int first = (int)get_global_id(0) * INTEGERS_JOINED, column = (int)get_global_id(1);
  const int below = product.first_row - product.first_column; /* the diagonal of the whole C */
  if (first >= product.m) return;
  if (product.region != GEMM_ALL && first + INTEGERS_JOINED - 1 + below < column) return;
  const int scale = integers_scale(
      ((__global const float *)norms_b)[product.first_column + column], product.limit);
  integers_number x[INTEGERS_JOINED];
  integers_of_residues(x, (__global const char *)residues + column * (long)product.rows + first,
                       product.c_step, product.moduli);
  __global const float *norms = (__global const float *)norms_a + product.first_row;
  from += product.from_offset + first + column * (long)product.from_ld;
  SCL_UNROLL
  for (int i = 0; i < INTEGERS_JOINED; i++) {
    const int row = first + i;
    if (row >= product.m || (product.region != GEMM_ALL && row + below < column)) continue;
    const int scales = scale + integers_scale(norms[row], product.limit);
    real value = product.alpha * integers_value(x[i], scales);
    if (product.beta != 0.0) value += product.beta * from[i];
    c[product.c_offset + row + column * (long)product.c_ld] = value;
    if (product.region == GEMM_MIRRORED)
      c[product.mirror_offset + column + row * (long)product.c_ld] = value;
  }
}
