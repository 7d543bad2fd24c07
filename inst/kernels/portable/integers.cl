/* Products in double precision by 8-bit integers (integers.h), in steps of a launch each:
 *
 *   integers_measure   norms of the rows of op(A) and the columns of op(B), in parts of the sums
 *   integers_combine   of the parts of a row: the logarithm of its norm
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
  const int begin = part * operand.part, end = min(begin + operand.part, operand.depth);
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

/* A whole number is taken apart in parts of 13 bits, the highest with its sign. Single precision
 * holds sums of such parts times residues of powers of 2^13, and their residues, exactly. */
#define INTEGERS_PARTS 5
#define INTEGERS_BITS 13
#define INTEGERS_TO_WHOLE 0x1.8p23f /* added: rounds, and the low bits are the whole number's */

/* The constants of one modulus. */
typedef struct {
  float power[INTEGERS_PARTS]; /* residues of 2^(13 part), times the inverse for op(A) */
  float modulus, reciprocal;
  float unused;
} integers_constants;

SCL_INLINE integers_constants integers_constants_of(const int i, const int moduli,
                                                    const int left) {
  const int modulus = integers_modulus[i], reciprocal = integers_reciprocal(modulus);
  int power = left ? integers_inverse[moduli - INTEGERS_FEWEST][i] : 1;
  integers_constants c;
  for (int part = 0; part < INTEGERS_PARTS; part++) {
    c.power[part] = (float)power;
    power = integers_residue(power << INTEGERS_BITS, modulus, reciprocal);
  }
  c.modulus = (float)modulus;
  c.reciprocal = 1.0f / c.modulus;
  c.unused = 0.0f;
  return c;
}

SCL_INLINE void integers_take_apart(const long whole, float part[INTEGERS_PARTS]) {
  const int bias = 1 << (INTEGERS_BITS - 1);
  SCL_UNROLL
  for (int i = 0; i < INTEGERS_PARTS; i++) {
    const int last = i == INTEGERS_PARTS - 1;
    const int bits = (int)(whole >> (INTEGERS_BITS * i));
    const int above = last ? bits + bias : bits & ((1 << INTEGERS_BITS) - 1);
    /* the exponent is that of 2^23: no conversion, which is slow on some devices */
    part[i] = as_float(0x4b000000 | above) - (last ? 0x1p23f + bias : 0x1p23f);
  }
}

/* The low byte is the residue. */
SCL_INLINE uint integers_residue_of(const float part[INTEGERS_PARTS], const integers_constants *c) {
  float sum = part[0] * c->power[0];
  SCL_UNROLL
  for (int i = 1; i < INTEGERS_PARTS; i++) sum = fma(part[i], c->power[i], sum);
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
  float part[INTEGERS_CHUNK][INTEGERS_PARTS];
  if (item < operand.moduli)
    constants[item] = integers_constants_of(item, operand.moduli, operand.left);
  barrier(CLK_LOCAL_MEM_FENCE);
  x += operand.offset + row * operand.row_step + depth * operand.depth_step;
  SCL_UNROLL
  for (int k = 0; k < INTEGERS_CHUNK; k++) {
    const bool there = inside && depth + k < operand.depth;
    integers_take_apart(there ? integers_round(x[k * operand.depth_step], scale) : 0, part[k]);
  }
  for (int i = 0; i < operand.moduli; i++) {
    const integers_constants c = constants[i];
    uint words[4];
    SCL_UNROLL
    for (int word = 0; word < 4; word++) {
      words[word] = 0;
      SCL_UNROLL
      for (int k = 0; k < 4; k++)
        words[word] |= (integers_residue_of(part[4 * word + k], &c) & 255) << (8 * k);
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
