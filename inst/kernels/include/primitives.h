/* What a device must compute rightly before it is used (engine/cl/runtime/primitives.c tries it).
 * Single source: OpenCL C and C11.
 *
 * A row of PRIMITIVES: its name; the words for it in messages; how many units in the last place a
 * value may be off; the value, of the numbers a, b and c. The specification has 3 units for exp and
 * log, 16 for pow, and one more is for the rounding of what it is compared with. */
#ifndef SCL_KERNEL_PRIMITIVES_H
#define SCL_KERNEL_PRIMITIVES_H

/* Work-items of a group; columns of the table: the number of the primitive, a, b, c, the value,
 * what the group has exchanged, and in its first two elements the counters. */
#define PRIMITIVES_ITEMS 64
#define PRIMITIVES_COLUMNS 7
/* The work-items; the last 31 bits of their numbers, combined; the least of 1000 - number. */
#define PRIMITIVES_COUNTERS 3

/* The bits of a, as an unsigned number. */
#ifdef __OPENCL_VERSION__
#define PRIMITIVES_BITS(a) as_ulong(a)
#define PRIMITIVES_NUMBER(bits) as_double(bits)
#else
#define PRIMITIVES_BITS(a) primitives_bits(a)
#define PRIMITIVES_NUMBER(bits) primitives_number(bits)
#endif

#define PRIMITIVES(PRIMITIVE)                                                                      \
  PRIMITIVE(add, "addition", 0, a + b)                                                             \
  PRIMITIVE(subtract, "subtraction", 0, a - b)                                                     \
  PRIMITIVE(multiply, "multiplication", 0, a * b)                                                  \
  PRIMITIVE(divide, "division", 0, a / b)                                                          \
  PRIMITIVE(root, "square roots", 0, sqrt(a))                                                      \
  PRIMITIVE(fused, "fma()", 0, fma(a, b, c))                                                       \
  PRIMITIVE(contracted, "a * b + c", 0, a * b + c)                                                 \
  PRIMITIVE(sum_error, "the order of sums", 0, (a - (a + b)) + b)                                  \
  PRIMITIVE(exponential, "exp()", 4, exp(a))                                                       \
  PRIMITIVE(logarithm, "log()", 4, log(a))                                                         \
  PRIMITIVE(power, "pow()", 17, pow(a, b))                                                         \
  PRIMITIVE(tiny_product, "subnormal numbers", 0, a * b)                                           \
  PRIMITIVE(tiny_difference, "subnormal numbers", 0, a - b)                                        \
  PRIMITIVE(order, "comparisons", 0, a < b ? 1.0 : a > b ? 2.0 : a == b ? 3.0 : 4.0)               \
  PRIMITIVE(to_int, "conversion to integers", 0, (real)(int)a)                                     \
  PRIMITIVE(to_long, "conversion to 64-bit integers", 0, (real)(scl_long)a)                        \
  PRIMITIVE(whole, "rounding to whole numbers", 0, rint(a) + 0.25 * floor(a))                      \
  PRIMITIVE(long_product, "64-bit integers", 0,                                                    \
            PRIMITIVES_NUMBER(PRIMITIVES_BITS(a) * PRIMITIVES_BITS(b) + PRIMITIVES_BITS(c)))       \
  PRIMITIVE(long_quotient, "64-bit integers", 0,                                                   \
            PRIMITIVES_NUMBER(PRIMITIVES_BITS(a) / PRIMITIVES_BITS(b)))                            \
  PRIMITIVE(long_shift, "64-bit integers", 0,                                                      \
            PRIMITIVES_NUMBER((PRIMITIVES_BITS(a) >> 21) ^ (PRIMITIVES_BITS(b) << 37)))

enum {
#define PRIMITIVE(name, words, ulps, value) PRIMITIVE_##name,
  PRIMITIVES(PRIMITIVE)
#undef PRIMITIVE
      PRIMITIVE_COUNT
};

#endif
