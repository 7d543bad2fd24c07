/* Products in double precision by 8-bit integers (integers.h): the steps around the products of
 * residues, which are those of integers_multiply.cl or integers_mma.cl.
 *
 *   INTEGERS_SPLIT   scaled elements as whole numbers, their residues by all moduli
 *   INTEGERS_JOIN    whole numbers from their residues; alpha and beta
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
 * Both are sums of products of bytes: of the digits of a whole number with the residues of the
 * powers of 256, and of residues with the digits of P / modulus. Devices have an instruction for
 * four such terms, integers_dot(). All is integer arithmetic, but for quotients, in single
 * precision, and the last step of all. */

__constant int integers_inverse[][INTEGERS_MOST] = {INTEGERS_INVERSE_TABLE};
__constant uint integers_weight[][16][INTEGERS_GROUPS] = {INTEGERS_WEIGHT_TABLE};
__constant int integers_whole[][4] = {INTEGERS_PRODUCT_TABLE};
__constant float integers_quotient[] = {INTEGERS_QUOTIENT_TABLE};

/* sum + the products of the signed bytes of two words. */
SCL_INLINE int integers_dot(const uint x, const uint y, const int sum) {
#if defined(INTEGERS_MMA)
  return mma_dot(x, y, sum);
#elif defined(INTEGERS_DOT) && !defined(SCL_MMA_EMULATED)
  return sum + dot_4x8packed_ss_int(x, y);
#else
  const int4 each = convert_int4(as_char4(x)) * convert_int4(as_char4(y));
  return sum + (each.x + each.y + each.z + each.w);
#endif
}

/* The low bytes of four words. Vectors of bytes would do, but some compilers store them one by one,
 * each to a quarter of the sectors of memory that it touches. */
SCL_INLINE uint integers_pack(const uint x0, const uint x1, const uint x2, const uint x3) {
#ifdef INTEGERS_MMA
  return mma_pack(x0, x1, x2, x3);
#else
  return (x0 & 255) | (x1 & 255) << 8 | (x2 & 255) << 16 | x3 << 24;
#endif
}

#define INTEGERS_TO_WHOLE 0x1.8p23f   /* added: rounds, and the low bits are the whole number's */
#define INTEGERS_WHOLE_BITS 0x4a800000 /* of a float from 2^23 to 2^24, less its value */

/* The power of two by which a row is multiplied. */
SCL_INLINE int integers_scale(const float norm, const real limit) {
  return (int)clamp(floor((float)limit - norm), -1200.0f, 1200.0f);
}

/* ---- residues -------------------------------------------------------------------------------- */

/* The whole number next to x 2^scale, halves away from zero, of less than 55 bits, as digits of
 * base 256 from -128 on. */
SCL_INLINE uint2 integers_digits(const real x, const int scale) {
  const ulong bits = as_ulong(x), middle = 0x8080808080808080UL;
  const int exponent = (int)(bits >> 52) & 2047;
  const ulong mantissa = bits << 11 | (exponent == 0 ? 0UL : 1UL << 63);
  const int right = 1086 - max(exponent, 1) - scale; /* at least 9 */
  const ulong size = right > 64 ? 0UL : ((mantissa >> clamp(right - 1, 0, 63)) + 1) >> 1;
  const ulong sign = (long)bits < 0 ? ~0UL : 0UL;
  return as_uint2((((size ^ sign) - sign) + middle) ^ middle); /* each digit plus 128, and back */
}

/* The constants of one modulus: residues of the powers of 256, times the inverse for op(A); a
 * multiple of the modulus and of 256 near 3/2 2^23, as the bits of a float; its quotient by the
 * modulus is what `offset` falls short of 3/2 2^23. */
typedef struct {
  uint low, high;
  int start, modulus;
  float reciprocal, offset;
  float unused[2];
} integers_constants;

SCL_INLINE integers_constants integers_constants_of(const int i, const int moduli,
                                                    const int left) {
  const int modulus = integers_modulus[i], times = 49152 / modulus;
  int power = left ? integers_inverse[moduli - INTEGERS_FEWEST][i] : 1;
  integers_constants c = {0, 0, INTEGERS_WHOLE_BITS + times * modulus * 256, modulus, 0, 0, {0, 0}};
  c.reciprocal = 1.0f / (float)modulus;
  c.reciprocal = fma(c.reciprocal, fma(-c.reciprocal, (float)modulus, 1.0f), c.reciprocal);
  c.offset = INTEGERS_TO_WHOLE - (float)(times * 256);
  for (int digit = 0; digit < 8; digit++) {
    const uint byte = ((uint)power & 255) << (digit % 4 * 8);
    c.low |= digit < 4 ? byte : 0;
    c.high |= digit < 4 ? 0 : byte;
    power *= 256;
    power -= modulus * (int)rint((float)power * c.reciprocal);
  }
  return c;
}

/* The low byte is the residue. The sum of at most 2^17 stands on `start`, whose quotient by the
 * modulus is a whole number that `offset` takes away again. The quotient is off by at most 2^-8, as
 * 1 / modulus is rounded, so that the residue stays below half a modulus and 1: a byte holds that
 * up to 253; for 256 it wraps around. */
SCL_INLINE uint integers_residue_of(const uint2 digits, const integers_constants *c) {
  const int sum = integers_dot(digits.y, c->high, integers_dot(digits.x, c->low, c->start));
  const float quotient = fma(as_float(sum), c->reciprocal, c->offset);
  return (uint)sum - as_uint(quotient) * (uint)c->modulus;
}

/* The residues of 16 terms of a row by all moduli. */
SCL_INLINE void integers_store(__global char *to, const uint2 *digits,
                               __local const integers_constants *constants, const int moduli,
                               const long modulus_step) {
  for (int i = 0; i < moduli; i++) {
    const integers_constants c = constants[i];
    uint words[4];
    SCL_UNROLL
    for (int word = 0; word < 4; word++) {
      const uint2 *of = digits + 4 * word;
      words[word] = integers_pack(integers_residue_of(of[0], &c), integers_residue_of(of[1], &c),
                                  integers_residue_of(of[2], &c), integers_residue_of(of[3], &c));
    }
    *(__global uint4 *)(to + i * modulus_step) = (uint4)(words[0], words[1], words[2], words[3]);
  }
}

/* A group packs a stage of a panel, a work-item's row in chunks of 16 terms. Terms that are
 * neighbours in memory are read by neighbours and go through local memory. A chunk is read before
 * any of it is used, without conditions, so that its reads are on their way together: past the last
 * row or term the last one is read instead, and not used. */
__kernel __attribute__((reqd_work_group_size(INTEGERS_PANEL, 1, 1))) void
INTEGERS_SPLIT(__global const real *x, __global const real *norms, __global real *residues,
               const integers_operand operand) {
  __local integers_constants constants[INTEGERS_MOST];
  __local real terms[INTEGERS_PANEL * (INTEGERS_CHUNK + 1)];
  const int item = (int)get_local_id(0), group = (int)get_group_id(0);
  const int panels = (int)get_num_groups(0) / operand.stages;
  const int panel = group % panels, stage = group / panels;
  const int row = panel * INTEGERS_PANEL + item;
  const int position = operand.left ? integers_position(item) : item;
  __global char *to = (__global char *)residues +
                      (panel * (long)operand.stages + stage) * INTEGERS_PACKED +
                      position * INTEGERS_CHUNK;
  const bool inside = row < operand.rows;
  const int scale = inside ? integers_scale(((__global const float *)norms)[operand.first + row],
                                            operand.limit)
                           : 0;
  const int begin = integers_begin(&operand, row, 0);
  const int end = inside ? integers_end(&operand, row, operand.depth) : 0;
  const bool across = operand.depth_step == 1 && operand.row_step != 1;
  if (item < operand.moduli)
    constants[item] = integers_constants_of(item, operand.moduli, operand.left);
  barrier(CLK_LOCAL_MEM_FENCE);
  x += operand.offset;
  for (int depth = stage * INTEGERS_DEPTH; depth < (stage + 1) * INTEGERS_DEPTH;
       depth += INTEGERS_CHUNK) {
    uint2 digits[INTEGERS_CHUNK];
    real values[INTEGERS_CHUNK];
    SCL_UNROLL
    for (int i = 0; i < INTEGERS_CHUNK; i++) {
      const int within = i * INTEGERS_PANEL + item;
      const int of = across ? panel * INTEGERS_PANEL + within / INTEGERS_CHUNK : row;
      const int term = depth + (across ? within % INTEGERS_CHUNK : i);
      values[i] = x[min(of, operand.rows - 1) * operand.row_step +
                    min(term, operand.depth - 1) * operand.depth_step];
    }
    if (across) {
      barrier(CLK_LOCAL_MEM_FENCE);
      SCL_UNROLL
      for (int i = 0; i < INTEGERS_CHUNK; i++) {
        const int within = i * INTEGERS_PANEL + item;
        terms[within / INTEGERS_CHUNK * (INTEGERS_CHUNK + 1) + within % INTEGERS_CHUNK] = values[i];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      SCL_UNROLL
      for (int k = 0; k < INTEGERS_CHUNK; k++) values[k] = terms[item * (INTEGERS_CHUNK + 1) + k];
    }
    SCL_UNROLL
    for (int k = 0; k < INTEGERS_CHUNK; k++)
      digits[k] = integers_digits(depth + k >= begin && depth + k < end ? values[k] : 0.0, scale);
    integers_store(to, digits, constants, operand.moduli, operand.modulus_step);
    to += INTEGERS_PANEL * INTEGERS_CHUNK;
  }
}

/* ---- whole numbers from residues ------------------------------------------------------------- */

/* Of INTEGERS_JOINED elements the residues by four moduli in a word. */
typedef struct {
  uint of[INTEGERS_GROUPS][INTEGERS_JOINED];
} integers_residues;

SCL_INLINE void integers_load_residues(integers_residues *to, __global const char *from,
                                       const long step, const int moduli) {
  SCL_UNROLL
  for (int group = 0; group < INTEGERS_GROUPS; group++) {
    uint each[4]; /* bytes of four elements, of which bytes of four moduli are made */
    SCL_UNROLL
    for (int i = 0; i < 4; i++) {
      const int modulus = 4 * group + i;
      each[i] = modulus < moduli ? *(__global const uint *)(from + modulus * step) : 0;
    }
    const uint even = (each[0] & 0xff00ff) | (each[1] & 0xff00ff) << 8;
    const uint odd = (each[0] >> 8 & 0xff00ff) | (each[1] & 0xff00ff00);
    const uint other_even = (each[2] & 0xff00ff) | (each[3] & 0xff00ff) << 8;
    const uint other_odd = (each[2] >> 8 & 0xff00ff) | (each[3] & 0xff00ff00);
    to->of[group][0] = (even & 0xffff) | other_even << 16;
    to->of[group][1] = (odd & 0xffff) | other_odd << 16;
    to->of[group][2] = even >> 16 | (other_even & 0xffff0000);
    to->of[group][3] = odd >> 16 | (other_odd & 0xffff0000);
  }
}

/* Digit `digit` of base 256 of the sum of residue times P / modulus, not yet less than 256. */
SCL_INLINE int integers_digit(const integers_residues *residues, const int element,
                              const int choice, const int digit) {
  int sum = 0;
  SCL_UNROLL
  for (int group = 0; group < INTEGERS_GROUPS; group++)
    sum = integers_dot(residues->of[group][element], integers_weight[choice][digit][group], sum);
  return sum;
}

/* The double next to a number of four parts of 32 bits, each of which may reach beyond the next.
 * The sum of its halves is rounded once if it has at most 64 bits. */
SCL_INLINE real integers_value(const long part[4]) {
  const long second = part[1] + (part[0] >> 32), third = part[2] + (second >> 32);
  ulong low = (ulong)second << 32 | (uint)part[0];
  ulong high = (ulong)(part[3] + (third >> 32)) << 32 | (uint)third;
  const bool negative = (long)high < 0;
  if (negative) {
    low = -low;
    high = ~high + (low == 0 ? 1 : 0);
  }
  const real value = fma((real)high, 0x1p64, (real)low);
  return negative ? -value : value;
}

/* The sum of residue times P / modulus, less the multiple of P that is next to it: its quotient by
 * P is known to 2^-13, and a number is less than P / 2 by more than that. */
SCL_INLINE real integers_element(const integers_residues *residues, const int element,
                                 const int choice) {
  long part[4];
  SCL_UNROLL
  for (int i = 0; i < 4; i++) {
    int digit[4];
    SCL_UNROLL
    for (int j = 0; j < 4; j++)
      digit[j] = integers_digit(residues, element, choice, 4 * i + j);
    part[i] = (long)(digit[2] + (digit[3] << 8)) * 65536 + (digit[0] + (digit[1] << 8));
  }
  const float upper = fma((float)part[3], 65536.0f, (float)(part[2] >> 16));
  const int times = (int)rint(upper * integers_quotient[choice]);
  SCL_UNROLL
  for (int i = 0; i < 4; i++) part[i] -= (long)times * integers_whole[choice][i];
  return integers_value(part);
}

/* x 2^n, rounded once. The first of two factors keeps a whole number of 128 bits in range. */
SCL_INLINE real integers_shifted(const real x, const int n) {
  const int all = clamp(n, -2000, 2000), some = all / 2;
  const real first = as_double((long)(some + 1023) << 52);
  return x * first * as_double((long)(all - some + 1023) << 52);
}

/* A work-item finds INTEGERS_JOINED rows of a column of C; the group writes them in order. */
__kernel __attribute__((reqd_work_group_size(INTEGERS_JOINERS, 1, 1))) void
INTEGERS_JOIN(__global const real *residues, __global const real *norms_a,
              __global const real *norms_b, __global const real *from, __global real *c,
              const integers_product product) {
  __local real found[INTEGERS_JOINERS * INTEGERS_JOINED];
  const int item = (int)get_local_id(0), column = (int)get_group_id(1);
  const int first = (int)get_group_id(0) * INTEGERS_JOINERS * INTEGERS_JOINED;
  const int row = first + item * INTEGERS_JOINED;
  const int below = product.first_row - product.first_column; /* the diagonal of the whole C */
  const int last = first + INTEGERS_JOINERS * INTEGERS_JOINED - 1;
  /* a return before the barrier has POCL 3.1 write past the ends */
  const bool needed = product.region == GEMM_ALL || last + below >= column;
  if (needed && row < product.m) {
    integers_residues each;
    integers_load_residues(&each,
                           (__global const char *)residues + column * (long)product.rows + row,
                           product.c_step, product.moduli);
    SCL_UNROLL
    for (int i = 0; i < INTEGERS_JOINED; i++)
      found[item * INTEGERS_JOINED + i] =
          integers_element(&each, i, product.moduli - INTEGERS_FEWEST);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int scale = integers_scale(
      ((__global const float *)norms_b)[product.first_column + column], product.limit);
  __global const float *norms = (__global const float *)norms_a + product.first_row;
  from += product.from_offset + column * (long)product.from_ld;
  __global real *mirror = c + product.mirror_offset + column;
  c += product.c_offset + column * (long)product.c_ld;
  SCL_UNROLL
  for (int i = 0; i < INTEGERS_JOINED; i++) {
    const int at = i * INTEGERS_JOINERS + item, of = first + at;
    if (of >= product.m || (product.region != GEMM_ALL && of + below < column)) continue;
    const int scales = scale + integers_scale(norms[of], product.limit);
    real value = product.alpha * integers_shifted(found[at], -scales);
    if (product.beta != 0.0) value += product.beta * from[of];
    c[of] = value;
    if (product.region == GEMM_MIRRORED) mirror[of * (long)product.c_ld] = value;
  }
}
