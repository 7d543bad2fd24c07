/* exp(), log() and functions made of these on runs of numbers, four at a time: a call of the
 * system's function for each number would take most of the time of a likelihood. Errors are below
 * two units in the last place. Numbers outside the usual range are passed to the system's
 * function. */
#include "engine/host/vector_math.h"

#include <math.h>
#include <string.h>

#include "engine/host/wide.h"

#ifdef SCL_WIDE

enum { LANES = SCL_WIDE_LANES, ROUND = 4 }; /* vectors between two tests of the range */

typedef scl_wide lanes;
typedef int64_t bits __attribute__((vector_size(8 * LANES), aligned(8), may_alias));

#define INLINED static inline __attribute__((always_inline)) SCL_WIDE

/* Added to a number of small size it leaves the nearest whole number in the last bits. */
#define MAGIC 6755399441055744.0 /* 1.5 2^52 */
#define LOG2_E 1.4426950408889634074
/* log(2) in two parts; products of the first with whole numbers below 2^20 are exact. */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10

INLINED lanes all(double x) {
  return (lanes){x, x, x, x};
}

/* exp(x) for |x| <= 708: 2^k exp(r) with |r| <= log(2) / 2, of which 13 terms of the series. */
INLINED lanes exp_lanes(lanes x) {
  const lanes shifted = x * LOG2_E + MAGIC, k = shifted - MAGIC;
  const lanes r = (x - k * LN2_HIGH) - k * LN2_LOW;
  lanes sum = all(1.0 / 6227020800.0);
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  const lanes value = 1.0 + (r + r * r * sum);
  return (lanes)((bits)value + ((bits)shifted << 52));
}

/* log(x) for normal x > 0: x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), and the series of
 * log((1 + s) / (1 - s)) in s = f / (2 + f), with the coefficients of Ng's minimax polynomial. */
INLINED lanes log_lanes(lanes x) {
  /* Subtracting the bits of sqrt(1/2) leaves k in the exponent. */
  const bits from = (bits)x - 0x3fe6a09e667f3bcdLL;
  const bits exponent = from >> 52;
  const lanes m = (lanes)((bits)x - (exponent << 52));
  const lanes k = (lanes)(exponent + 0x4338000000000000LL) - MAGIC;
  const lanes f = m - 1.0, s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  lanes sum = all(1.479819860511658591e-01);
  sum = sum * z + 1.531383769920937332e-01;
  sum = sum * z + 1.818357216161805012e-01;
  sum = sum * z + 2.222219843214978396e-01;
  sum = sum * z + 2.857142874366239149e-01;
  sum = sum * z + 3.999999999940941908e-01;
  sum = sum * z + 6.666666666666735130e-01;
  return k * LN2_HIGH - ((half - (s * (half + z * sum) + k * LN2_LOW)) - f);
}

INLINED lanes choose(bits test, lanes yes, lanes no) {
  return (lanes)(((bits)yes & test) | ((bits)no & ~test));
}

/* log(1 + x) for x > -1 below 2^52: the rounding error of 1 + x is corrected by the slope. */
INLINED lanes log1p_lanes(lanes x) {
  const lanes y = 1.0 + x, value = log_lanes(y) + (x - (y - 1.0)) / y;
  return choose(x == 0.0, x, value); /* -0 */
}

INLINED lanes size_of(lanes x) {
  return (lanes)((bits)x & 0x7fffffffffffffffLL);
}

INLINED lanes inv_logit_lanes(lanes x) {
  const lanes e = exp_lanes(-size_of(x));
  return choose(x < 0.0, e, all(1.0)) / (1.0 + e);
}

INLINED lanes log1p_exp_lanes(lanes x) {
  return choose(x > 0.0, x, all(0.0)) + log1p_lanes(exp_lanes(-size_of(x)));
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* name(n, x, y): y = function(x). All numbers for which `usual` is true are computed by vectors, so
 * that a number's value does not depend on its neighbours; the others one by one. */
#define DEFINE_RUN(name, usual, vectors, one)                                                      \
  /* Up to a round, with other numbers among them. */                                              \
  SCL_WIDE static void name##_few(size_t n, const double *from, double *to) {                      \
    double value[ROUND * LANES];                                                                   \
    for (size_t i = 0; i < n; i += LANES) {                                                        \
      lanes x = all(1.0);                                                                          \
      for (size_t k = 0; k < LANES && i + k < n; k++) x[k] = from[i + k];                          \
      const bits fine = usual;                                                                     \
      x = choose(fine, x, all(0.5));                                                               \
      *(lanes *)(value + i) = vectors(x);                                                          \
      for (size_t k = 0; k < LANES && i + k < n; k++) {                                            \
        if (!fine[k]) value[i + k] = one(from[i + k]);                                             \
      }                                                                                            \
    }                                                                                              \
    memcpy(to, value, n * sizeof *to);                                                             \
  }                                                                                                \
  SCL_WIDE static void name(size_t n, const double *from, double *to) {                            \
    size_t i = 0;                                                                                  \
    for (; i + ROUND * LANES <= n; i += ROUND * LANES) {                                           \
      bits fine = {-1, -1, -1, -1};                                                                \
      for (int v = 0; v < ROUND; v++) {                                                            \
        const lanes x = *(const lanes *)(from + i + v * LANES);                                    \
        fine &= usual;                                                                             \
      }                                                                                            \
      if (!(fine[0] & fine[1] & fine[2] & fine[3])) {                                              \
        name##_few(ROUND *LANES, from + i, to + i);                                                \
        continue;                                                                                  \
      }                                                                                            \
      for (int v = 0; v < ROUND; v++) {                                                            \
        const lanes x = *(const lanes *)(from + i + v * LANES);                                    \
        *(lanes *)(to + i + v * LANES) = vectors(x);                                               \
      }                                                                                            \
    }                                                                                              \
    if (i < n) name##_few(n - i, from + i, to + i);                                                \
  }

static double one_inv_logit(double a) {
  return a < 0.0 ? exp(a) / (1.0 + exp(a)) : 1.0 / (1.0 + exp(-a));
}

static double one_log1p_exp(double a) {
  return a > 0.0 ? a + log1p(exp(-a)) : log1p(exp(a));
}

#define IN_EXP_RANGE (size_of(x) <= 708.0)
#define IS_NORMAL ((x >= 2.2250738585072014e-308) & (x <= 1.7976931348623157e308))

DEFINE_RUN(run_exp, IN_EXP_RANGE, exp_lanes, exp)
DEFINE_RUN(run_log, IS_NORMAL, log_lanes, log)
DEFINE_RUN(run_log1p, ((x > -0.999) & (x < 4503599627370496.0)), log1p_lanes, log1p)
DEFINE_RUN(run_inv_logit, IN_EXP_RANGE, inv_logit_lanes, one_inv_logit)
DEFINE_RUN(run_log1p_exp, IN_EXP_RANGE, log1p_exp_lanes, one_log1p_exp)

scl_vector_function *scl_vector_function_of(scl_op op) {
  static scl_vector_function *const runs[SCL_OP_COUNT] = {[SCL_OP_EXP] = run_exp,
                                                          [SCL_OP_LOG] = run_log,
                                                          [SCL_OP_LOG1P] = run_log1p,
                                                          [SCL_OP_INV_LOGIT] = run_inv_logit,
                                                          [SCL_OP_LOG1P_EXP] = run_log1p_exp};
  return scl_host_has_wide() ? runs[op] : NULL;
}

#else

scl_vector_function *scl_vector_function_of(scl_op op) {
  (void)op;
  return NULL;
}

#endif
