/* Covariance functions: one source for OpenCL C and C11 (port.h).
 *
 * A term of a kernel is k = sd^2 f(s), where s is a sum over the columns that the term uses, of
 * one of four forms (metrics), with d = x_c - x'_c:
 *   squares   (d / l_c)^2
 *   sines     (sin(pi d / period) / l_c)^2
 *   products  (x_c - center_c) (x'_c - center_c) / l_c^2
 *   gaps      |d| / l_c, or with center_c = 1, for codes of levels, 1 / l_c unless d = 0
 * f gives its value, slope = -2 f'(s) (of gaps -f'(s)), and bend = df / d log extra; `extra` is the
 * one parameter or constant that a type may have, such as a period or a shape.
 * From these follow
 *   dk / d log sd     = 2 k
 *   dk / d log l_c    = sd^2 slope (the column's part of s)
 *   dk / d log extra  = sd^2 (bend - slope / 2 (ds / d log extra))
 *   dk / dx_c         = -sd^2 slope / 2 (ds / dx_c)
 * slope must be finite at s = 0. s may be infinite, where squares overflow: then value and slope
 * are those of the limit, never NaN, and a part counts through covariance_times() alone.
 *
 * To add one: a function covariance_<name>() here, a line in the table, a constructor and its
 * formula in R/covariance-functions.R, and its formula in tests/testthat/test-covariance.R.
 * A device program is built for some types only, as each type costs time to build and the other
 * types registers. Long functions are SCL_NOINLINE: a copy for each element of a work-item takes an
 * NVIDIA driver 24 s to build, and spills registers. */
#ifndef SCL_COVARIANCE_FUNCTIONS_H
#define SCL_COVARIANCE_FUNCTIONS_H

#ifndef __OPENCL_VERSION__ /* the driver puts them before this file */
#include "kernels/include/special_functions.h"
#include "kernels/include/bessel_functions.h"
#define SCL_COVARIANCE_CALLED static inline
#else /* one copy for all elements of a work-item, on CPU devices too */
#define SCL_COVARIANCE_CALLED static __attribute__((noinline))
#endif

#define SCL_SQRT3 1.7320508075688772
#define SCL_SQRT5 2.2360679774997898
#define SCL_PI 3.141592653589793
#define SCL_EARTH 6371.0088 /* mean radius in km; R/covariance-sphere.R has it too */

/* What the program at hand is built for: bit SCL_COVARIANCE_<ID> for a type, bit
 * SCL_COVARIANCE_TYPES for products of terms. Branches for anything else are left out.
 * engine/cl/covariance/covariance.c sets it. */
#ifndef PROGRAM_KINDS
#define PROGRAM_KINDS 0x7fffffff
#endif
#define covariance_has(kind) (PROGRAM_KINDS >> (kind)&1)

/* SCL_COVARIANCE_<ID>, covariance_<name>() and the name that R uses, metric. */
#define SCL_COVARIANCE_BASIC(ENTRY)                                                                \
  ENTRY(EXP_QUAD, exp_quad, SQUARES)                                                               \
  ENTRY(EXPONENTIAL, exponential, SQUARES)                                                         \
  ENTRY(MATERN32, matern32, SQUARES)                                                               \
  ENTRY(MATERN52, matern52, SQUARES)
#define SCL_COVARIANCE_LONG(ENTRY)                                                                 \
  ENTRY(RATIONAL_QUADRATIC, rational_quadratic, SQUARES)                                           \
  ENTRY(PERIODIC, periodic, SINES)                                                                 \
  ENTRY(GREAT_CIRCLE, great_circle, SQUARES)                                                       \
  ENTRY(GOWER, gower, GAPS)
#define SCL_COVARIANCE_BESSEL(ENTRY) ENTRY(MATERN, matern, SQUARES)
#define SCL_COVARIANCE_SHORT(ENTRY)                                                                \
  ENTRY(LINEAR, linear, PRODUCTS)                                                                  \
  ENTRY(CONSTANT, constant, SQUARES)                                                               \
  ENTRY(WHITE, white, SQUARES)                                                                     \
  ENTRY(SQUARED_DISTANCE, squared_distance, SQUARES)
#define SCL_COVARIANCE_TABLE(ENTRY)                                                                \
  SCL_COVARIANCE_BASIC(ENTRY)                                                                      \
  SCL_COVARIANCE_LONG(ENTRY) SCL_COVARIANCE_SHORT(ENTRY) SCL_COVARIANCE_BESSEL(ENTRY)

typedef enum {
#define SCL_COVARIANCE_ENTRY(ID, name, metric) SCL_COVARIANCE_##ID,
  SCL_COVARIANCE_TABLE(SCL_COVARIANCE_ENTRY)
#undef SCL_COVARIANCE_ENTRY
      SCL_COVARIANCE_TYPES
} scl_covariance_type;

typedef enum {
  SCL_COVARIANCE_SQUARES = 0,
  SCL_COVARIANCE_SINES,
  SCL_COVARIANCE_PRODUCTS,
  SCL_COVARIANCE_GAPS
} scl_covariance_metric;

/* The results of f (top of this file). */
typedef struct {
  real value, slope, bend;
} covariance_point;

SCL_INLINE covariance_point covariance_result(const real value, const real slope, const real bend) {
  covariance_point p;
  p.value = value;
  p.slope = slope;
  p.bend = bend;
  return p;
}

/* slope times a part of s: a slope of 0 at a large distance stays 0 for an infinite part. */
SCL_INLINE real covariance_times(const real slope, const real part) {
  return slope == 0.0 ? 0.0 : slope * part;
}

/* s, finite: where it is cut off, the exponential of its root is 0. */
SCL_INLINE real covariance_cut(const real s) {
  return s > 1e300 ? 1e300 : s;
}

/* exp(-s / 2) */
SCL_INLINE covariance_point covariance_exp_quad(const real s, const real extra) {
  const real f = exp(-0.5 * s);
  (void)extra;
  return covariance_result(f, f, 0.0);
}

/* exp(-sqrt(s)); slope, infinite at 0, is multiplied only with parts of s, which are 0 there */
SCL_INLINE covariance_point covariance_exponential(const real s, const real extra) {
  const real r = sqrt(s), f = exp(-r);
  (void)extra;
  return covariance_result(f, r > 0.0 ? f / r : 0.0, 0.0);
}

/* (1 + sqrt(3 s)) exp(-sqrt(3 s)) */
SCL_INLINE covariance_point covariance_matern32(const real s, const real extra) {
  const real u = SCL_SQRT3 * sqrt(covariance_cut(s)), e = exp(-u);
  (void)extra;
  return covariance_result((1.0 + u) * e, 3.0 * e, 0.0);
}

/* (1 + sqrt(5 s) + 5 s / 3) exp(-sqrt(5 s)) */
SCL_INLINE covariance_point covariance_matern52(const real s, const real extra) {
  const real far = covariance_cut(s), u = SCL_SQRT5 * sqrt(far), e = exp(-u);
  (void)extra;
  return covariance_result((1.0 + u + (5.0 / 3.0) * far) * e, (5.0 / 3.0) * (1.0 + u) * e, 0.0);
}

/* (1 + s / (2 alpha))^-alpha, alpha = extra; the quotient may overflow where s does not */
SCL_NOINLINE covariance_point covariance_rational_quadratic(const real s, const real extra) {
  const real t = s / (2.0 * extra), share = t > 1e300 ? 1.0 : t / (1.0 + t);
  const real log1 = t > 1e300 ? log(s) - log(2.0 * extra) : log1p(t), f = exp(-extra * log1);
  return covariance_result(f, f / (1.0 + t), covariance_times(f, extra * (share - log1)));
}

/* 2^(1 - nu) / gamma(nu) u^nu K_nu(u) with u = sqrt(2 nu s), nu = extra, a constant. With g_nu =
 * u^nu K_nu(u), which stays finite at 0, g_{nu + 1} = u^2 g_{nu - 1} + 2 nu g_nu, and g_nu' = -u
 * g_{nu - 1}. Recurrence starts at the order m in [-1/2, 1/2); for half-integers at 1/2 and 3/2,
 * where g is elementary. */
SCL_COVARIANCE_CALLED covariance_point covariance_matern(const real s, const real extra) {
  const real u = sqrt(2.0 * extra * covariance_cut(s)), n = floor(extra + 0.5), m = extra - n;
  const real scale = exp(-u) / (0.5 * special_gamma(extra) * exp2(extra));
  real before, g, next; /* g_{nu - 1}, g_nu, both times exp(u) until the end */
  real order = m + 1.0;
  if (u == 0.0) return covariance_result(1.0, extra > 1.0 ? extra / (extra - 1.0) : 0.0, 0.0);
  if (scale == 0.0) return covariance_result(0.0, 0.0, 0.0);
  if (m == -0.5) {
    g = 1.2533141373155003; /* sqrt(pi / 2) */
    before = g / u;
    order = 0.5;
  } else {
    const real power = pow(u, m), k = u <= 1.2 ? exp(u) : 1.0;
    before = u <= 1.2 ? bessel_k_series(u, m, &next) : bessel_k_fraction(u, m, &next);
    before *= k * power;
    g = k * power * u * next;
    if (n == 0.0) { /* g_m, and g_{m - 1} by the recurrence backwards */
      next = before;
      before = (g - 2.0 * m * before) / (u * u);
      g = next;
    }
  }
  for (; order < extra - 0.25; order += 1.0) {
    next = u * u * before + 2.0 * order * g;
    before = g;
    g = next;
  }
  return covariance_result(scale * g, 2.0 * extra * scale * before, 0.0);
}

/* exp(-arc / extra), extra the lengthscale in km; s is the square of the chord, in km, between
 * points on the sphere. Its slope, infinite at 0, is multiplied only with 0 there. */
SCL_INLINE covariance_point covariance_great_circle(const real s, const real extra) {
  const real q = fmin(sqrt(s) / (2.0 * SCL_EARTH), 1.0), arc = 2.0 * SCL_EARTH * asin(q) / extra;
  const real f = exp(-arc), root = sqrt(s * fmax(1.0 - q * q, 1e-16));
  return covariance_result(f, s > 0.0 ? f / (extra * root) : 0.0, f * arc);
}

/* exp(-s) of the gaps */
SCL_INLINE covariance_point covariance_gower(const real s, const real extra) {
  const real f = exp(-s);
  (void)extra;
  return covariance_result(f, f, 0.0);
}

/* exp(-2 s) of the sines */
SCL_INLINE covariance_point covariance_periodic(const real s, const real extra) {
  const real f = exp(-2.0 * s);
  (void)extra;
  return covariance_result(f, 4.0 * f, 0.0);
}

/* s itself, of the products */
SCL_INLINE covariance_point covariance_linear(const real s, const real extra) {
  (void)extra;
  return covariance_result(s, -2.0, 0.0);
}

/* 1; uses no column */
SCL_INLINE covariance_point covariance_constant(const real s, const real extra) {
  (void)s;
  (void)extra;
  return covariance_result(1.0, 0.0, 0.0);
}

/* 1 if both points are the same observation, else 0. The caller decides: s is 0 for the one and 1
 * for the other. Uses no column. */
SCL_INLINE covariance_point covariance_white(const real s, const real extra) {
  (void)extra;
  return covariance_result(1.0 - s, 0.0, 0.0);
}

/* s itself, for squares; not a covariance, but used in functions of distance that users write */
SCL_INLINE covariance_point covariance_squared_distance(const real s, const real extra) {
  (void)extra;
  return covariance_result(s, -2.0, 0.0);
}

/* The function of this type; the second one as a function of its own. */
SCL_INLINE covariance_point covariance_of(const int type, const real s, const real extra) {
  switch (type) {
#define SCL_COVARIANCE_ENTRY(ID, name, metric)                                                     \
  case SCL_COVARIANCE_##ID:                                                                        \
    if (covariance_has(SCL_COVARIANCE_##ID)) return covariance_##name(s, extra);                   \
    break;
    SCL_COVARIANCE_TABLE(SCL_COVARIANCE_ENTRY)
#undef SCL_COVARIANCE_ENTRY
  default:
    break;
  }
  return covariance_result(0.0, 0.0, 0.0);
}
SCL_NOINLINE covariance_point covariance_any(const int type, const real s, const real extra) {
  return covariance_of(type, s, extra);
}

SCL_INLINE int covariance_metric(const int type) {
  if (covariance_has(SCL_COVARIANCE_PERIODIC) && type == SCL_COVARIANCE_PERIODIC) {
    return SCL_COVARIANCE_SINES;
  }
  if (covariance_has(SCL_COVARIANCE_GOWER) && type == SCL_COVARIANCE_GOWER) {
    return SCL_COVARIANCE_GAPS;
  }
  return covariance_has(SCL_COVARIANCE_LINEAR) && type == SCL_COVARIANCE_LINEAR
             ? SCL_COVARIANCE_PRODUCTS
             : SCL_COVARIANCE_SQUARES;
}

/* ---- a column's part of s ------------------------------------------------------------------- */

/* Whole periods are subtracted first: the sine of a large argument would lose digits. So would the
 * quotient if there are very many periods, or it would be infinite. */
SCL_INLINE real covariance_phase(const real x, const real y, const real period) {
  const real t = (x - y) / period;
  if (fabs(t) > 1e9) return SCL_PI * (remainder(x - y, period) / period);
  return SCL_PI * (t - rint(t));
}

SCL_NOINLINE real covariance_sine(const real x, const real y, const real period) {
  return sin(covariance_phase(x, y, period));
}

/* inverse = 1 / l. */
SCL_INLINE real covariance_part(const int metric, const real x, const real y, const real center,
                                const real inverse, const real extra) {
  real u;
  if (metric == SCL_COVARIANCE_PRODUCTS) {
    return ((x - center) * inverse) * ((y - center) * inverse);
  }
  if (metric == SCL_COVARIANCE_GAPS) {
    return center != 0.0 ? (x != y ? inverse : 0.0) : fabs(x - y) * inverse;
  }
  u = (metric == SCL_COVARIANCE_SINES ? covariance_sine(x, y, extra) : x - y) * inverse;
  return u * u;
}

/* Its derivative with respect to log extra. */
SCL_NOINLINE real covariance_part_extra(const int metric, const real x, const real y,
                                        const real inverse, const real extra) {
  real phase;
  if (metric != SCL_COVARIANCE_SINES) return 0.0;
  phase = covariance_phase(x, y, extra);
  if (phase == 0.0) return 0.0;
  return -2.0 * (sin(phase) * inverse) * (cos(phase) * inverse) * (SCL_PI * ((x - y) / extra));
}

/* Its derivative with respect to x; of gaps twice that, as their slope is half as large. */
SCL_INLINE real covariance_part_x(const int metric, const real x, const real y, const real center,
                                  const real inverse, const real extra) {
  real phase;
  if (metric == SCL_COVARIANCE_PRODUCTS) return (y - center) * inverse * inverse;
  if (metric == SCL_COVARIANCE_SQUARES) return 2.0 * ((x - y) * inverse) * inverse;
  if (metric == SCL_COVARIANCE_GAPS) {
    return center != 0.0 || x == y ? 0.0 : x > y ? 2.0 * inverse : -2.0 * inverse;
  }
  phase = covariance_phase(x, y, extra);
  return 2.0 * (sin(phase) * inverse) * (cos(phase) * inverse) * (SCL_PI / extra);
}

#endif
