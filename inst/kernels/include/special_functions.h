/* Special functions, in C and OpenCL C: the gamma function, its logarithm and the derivatives of
 * that; sines of multiples of pi; binomial coefficients; rounding. special_normal.h has the normal
 * distribution.
 *
 * Values at poles, zero and infinities are those of base R. Relative errors are a few units in the
 * last place; of digamma, and of log gamma of negative numbers, near their zeros a few units in the
 * last place of 1. port.h comes first. */
#ifndef SCL_SPECIAL_FUNCTIONS_H
#define SCL_SPECIAL_FUNCTIONS_H

#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT OFF /* the same bits, whatever stands around a call */
#endif

#define SPECIAL_PI 3.141592653589793238
#define SPECIAL_LOG_SQRT_2PI 0.9189385332046727418

/* ---- multiples of pi ----------------------------------------------------------------------------
 * Reductions to [0, 1/4] are exact. */

SCL_INLINE real special_sinpi(real x) {
  real t = fabs(x) - 2.0 * floor(0.5 * fabs(x)), sign = x < 0.0 ? -1.0 : 1.0;
  if (t >= 1.0) {
    t -= 1.0;
    sign = -sign;
  }
  if (t == 0.0) return 0.0; /* without a sign, as R has it */
  if (t > 0.5) t = 1.0 - t;
  return sign * (t <= 0.25 ? sin(SPECIAL_PI * t) : cos(SPECIAL_PI * (0.5 - t)));
}

SCL_INLINE real special_cospi(real x) {
  real t = fabs(x) - 2.0 * floor(0.5 * fabs(x)), sign = 1.0;
  if (t > 1.0) t = 2.0 - t;
  if (t > 0.5) {
    t = 1.0 - t;
    sign = -1.0;
  }
  return sign * (t <= 0.25 ? cos(SPECIAL_PI * t) : sin(SPECIAL_PI * (0.5 - t)));
}

/* NaN half way between whole numbers. */
SCL_INLINE real special_tanpi(real x) {
  const real c = special_cospi(x), s = special_sinpi(x);
  return c == 0.0 ? NAN : (s == 0.0 ? 0.0 : s / c);
}

/* ---- Stirling's series, for z >= 12 ---------------------------------------------------------- */

/* The remainder in log(gamma(z)) = (z - 1/2) log(z) - z + log(2 pi) / 2 + ... */
SCL_INLINE real special_stirling(real z) {
  const real w = 1.0 / (z * z);
  real sum = 691.0 / 360360.0;
  SCL_HORNER_4(sum, -w, 1.0 / 1188.0, 1.0 / 1680.0, 1.0 / 1260.0, 1.0 / 360.0);
  return (1.0 / 12.0 - w * sum) / z;
}

/* The same in the first derivative, log(z) - 1 / (2 z) + ... */
SCL_INLINE real special_stirling_slope(real z) {
  const real w = 1.0 / (z * z);
  real sum = 691.0 / 32760.0;
  SCL_HORNER_4(sum, -w, 1.0 / 132.0, 1.0 / 240.0, 1.0 / 252.0, 1.0 / 120.0);
  return -w * (1.0 / 12.0 - w * sum);
}

/* log(1 - exp(x)) for x <= 0. */
SCL_INLINE real special_log1m_exp(real x) {
  return x > -0.6931471805599453 ? log(-expm1(x)) : log1p(-exp(x));
}

/* x log(x / m) + m - x for x >= 0 and m >= 0; near x = m by its series in (x - m) / (x + m). */
SCL_INLINE real special_deviance(real x, real m) {
  const real unit = x > 1e300 || m > 1e300 ? 0.25 : 1.0; /* the sum does not overflow */
  const real v = (unit * x - unit * m) / (unit * x + unit * m), w = v * v;
  const real ratio = x / m;
  const int usual = ratio > 1e-300 && ratio < INFINITY;
  real sum = 0.0;
  if (!(x >= 0.0 && m >= 0.0)) return NAN;
  if (x == 0.0) return m;
  if (m == 0.0 || isinf(x) || isinf(m)) return INFINITY; /* 0 of either sign */
  if (!(w < 0.01)) return x * (usual ? log(ratio) : log(x) - log(m)) + (m - x);
  for (int j = 10; j > 0; j--) sum = sum * w + 1.0 / (2.0 * j + 1.0);
  return (x - m) * v + x * (2.0 * v * w * sum);
}

/* ---- log gamma around 2 ---------------------------------------------------------------------- */

/* log(gamma(2 + z)) for |z| <= 1/2, and its derivative: the series with the coefficients
 * (-1)^k (zeta(k) - 1) / k. */
SCL_INLINE real special_log_gamma_2(real z, real *slope) {
  real p = 0.0, d = 0.0;
#define SPECIAL_TERM(c) d = d * z + p, p = p * z + (c)
#define SPECIAL_TERMS(a, b, c) SPECIAL_TERM(a), SPECIAL_TERM(b), SPECIAL_TERM(c)
  SPECIAL_TERMS(3.104424774732227276e-11, -6.422964563838100022e-11, 1.330476437424448948e-10);
  SPECIAL_TERMS(-2.759522885124233145e-10, 5.731367241678862013e-10, -1.192140140586091207e-09);
  SPECIAL_TERMS(2.483674543802478317e-09, -5.183475041970046655e-09, 1.083865921489695409e-08);
  SPECIAL_TERMS(-2.271109460894316491e-08, 4.769810169363980566e-08, -1.004322482396809961e-07);
  SPECIAL_TERMS(2.120718480555466587e-07, -4.492469198764566043e-07, 9.551412130407419833e-07);
  SPECIAL_TERMS(-2.039215753801366237e-06, 4.374866789907487804e-06, -9.439488275268395904e-06);
  SPECIAL_TERMS(2.050721277567069155e-05, -4.492623673813314170e-05, 9.945751278180853371e-05);
  SPECIAL_TERMS(-0.0002231547584535793798, 0.0005096695247430424223, -0.001192753911703260977);
  SPECIAL_TERMS(0.002890510330741523286, -0.007385551028673985266, 0.02058080842778454788);
  SPECIAL_TERMS(-0.06735230105319809513, 0.3224670334241132182, 0.4227843350984671394);
#undef SPECIAL_TERMS
#undef SPECIAL_TERM
  *slope = p + z * d;
  return z * p;
}

/* Whether gamma has a pole at x. */
SCL_INLINE int special_is_pole(real x) {
  return x <= 0.0 && x == floor(x);
}

/* log(gamma(x)) for x > -1/2. */
SCL_INLINE real special_log_gamma_right(real x) {
  real slope, product = 1.0, y = x;
  if (x < 0.5) return special_log_gamma_2(x, &slope) - log1p(x) - log(fabs(x));
  if (x < 1.5) return special_log_gamma_2(x - 1.0, &slope) - log1p(x - 1.0);
  if (x >= 12.0) {
    return (x - 0.5) * (log(x) - 1.0) + (SPECIAL_LOG_SQRT_2PI - 0.5) + special_stirling(x);
  }
  while (y >= 2.5) {
    y -= 1.0;
    product *= y;
  }
  return special_log_gamma_2(y - 2.0, &slope) + log(product);
}

/* log(abs(gamma(x))); infinite at poles. */
SCL_INLINE real special_log_gamma(real x) {
  if (special_is_pole(x)) return INFINITY;
  if (!(x <= -0.5)) return special_log_gamma_right(x);
  return -log(fabs(special_sinpi(x)) / SPECIAL_PI) - log(-x) - special_log_gamma_right(-x);
}

/* For x >= 20; pow() and exp() of one part each, because the product may overflow. */
SCL_INLINE real special_gamma_large(real x) {
  const real root = pow(x, 0.5 * x - 0.25);
  return root * exp(-x) * root * (2.506628274631000502 * exp(special_stirling(x)));
}

/* gamma(x); NaN at poles. */
SCL_INLINE real special_gamma(real x) {
  real slope, above = 1.0, below = 1.0, y = x;
  if (x != x || special_is_pole(x)) return NAN;
  if (x > 171.7) return INFINITY;
  if (x >= 20.0) return special_gamma_large(x);
  if (x <= -20.0) {
    return x < -190.0 ? 0.0 : -SPECIAL_PI / (x * special_sinpi(x) * special_gamma_large(-x));
  }
  while (y >= 2.5) { /* gamma(y + 1) = y gamma(y) */
    y -= 1.0;
    above *= y;
  }
  while (y < -0.5) {
    below *= y;
    y += 1.0;
  }
  if (y < 0.5) return exp(special_log_gamma_2(y, &slope)) / (below * y * (1.0 + y));
  if (y < 1.5) return exp(special_log_gamma_2(y - 1.0, &slope)) / (below * y);
  return exp(special_log_gamma_2(y - 2.0, &slope)) * above;
}

/* ---- its derivatives ------------------------------------------------------------------------- */

/* The first derivative of log(gamma(x)) for x > -1/2. */
SCL_INLINE real special_digamma_right(real x) {
  real slope, above = 0.0, below = 1.0, y = x;
  if (x >= 12.0) return log(x) - 0.5 / x + special_stirling_slope(x);
  while (y >= 2.5) { /* above / below is the sum of 1 / y */
    y -= 1.0;
    above = above * y + below;
    below *= y;
  }
  if (x < 0.5) {
    special_log_gamma_2(x, &slope);
    return slope - 1.0 / (1.0 + x) - 1.0 / x;
  }
  if (x < 1.5) {
    special_log_gamma_2(x - 1.0, &slope);
    return slope - 1.0 / x;
  }
  special_log_gamma_2(y - 2.0, &slope);
  return slope + above / below;
}

/* NaN at poles. */
SCL_INLINE real special_digamma(real x) {
  if (special_is_pole(x)) return NAN;
  if (!(x <= -0.5)) return special_digamma_right(x);
  return special_digamma_right(1.0 - x) - SPECIAL_PI * special_cospi(x) / special_sinpi(x);
}

/* The second one, for x > 0: the terms below 12 as one fraction, then the series. */
SCL_INLINE real special_trigamma_right(real x) {
  real above = 0.0, below = 1.0, y = x;
  for (; y < 12.0; y += 1.0) {
    above = above * (y * y) + below;
    below *= y * y;
  }
  const real v = 1.0 / y, w = v * v;
  real sum = 7.0 / 6.0;
  SCL_HORNER_4(sum, -w, 691.0 / 2730.0, 5.0 / 66.0, 1.0 / 30.0, 1.0 / 42.0);
  SCL_HORNER_2(sum, -w, 1.0 / 30.0, 1.0 / 6.0);
  return above / below + (v + 0.5 * w + v * w * sum);
}

/* The remainder of Stirling's formula for log(gamma(x)), x > 0, and its derivative. */
SCL_INLINE real special_stirling_rest(real x) {
  if (!(x > 0.0)) return NAN;
  if (x >= 12.0) return special_stirling(x);
  return special_log_gamma_right(x) - (x - 0.5) * log(x) + x - SPECIAL_LOG_SQRT_2PI;
}

SCL_INLINE real special_stirling_rest_slope(real x) {
  if (x >= 12.0) return special_stirling_slope(x);
  return special_digamma(x) - log(x) + 0.5 / x;
}

/* Infinite at poles. */
SCL_INLINE real special_trigamma(real x) {
  if (special_is_pole(x)) return INFINITY;
  if (!(x < 0.0)) return special_trigamma_right(x);
  const real cosecant = SPECIAL_PI / special_sinpi(x);
  return cosecant * cosecant - special_trigamma_right(1.0 - x);
}

/* The third one, for x > 0. */
SCL_INLINE real special_tetragamma_right(real x) {
  real above = 0.0, below = 1.0, y = x;
  for (; y < 12.0; y += 1.0) {
    above = above * (y * y * y) + below;
    below *= y * y * y;
  }
  const real v = 1.0 / y, w = v * v;
  real sum = 35.0 / 2.0;
  SCL_HORNER_4(sum, -w, 691.0 / 210.0, 5.0 / 6.0, 3.0 / 10.0, 1.0 / 6.0);
  SCL_HORNER_2(sum, -w, 1.0 / 6.0, 0.5);
  return -2.0 * above / below - w * (1.0 + v + w * sum);
}

SCL_INLINE real special_tetragamma(real x) {
  if (special_is_pole(x)) return NAN;
  if (!(x < 0.0)) return special_tetragamma_right(x);
  const real cosecant = SPECIAL_PI / special_sinpi(x);
  return special_tetragamma_right(1.0 - x) -
         2.0 * cosecant * cosecant * cosecant * special_cospi(x);
}

/* The fourth one, for x > 0. */
SCL_INLINE real special_pentagamma_right(real x) {
  real above = 0.0, below = 1.0, y = x;
  for (; y < 12.0; y += 1.0) {
    const real square = y * y;
    above = above * (square * square) + below;
    below *= square * square;
  }
  const real v = 1.0 / y, w = v * v;
  real sum = 280.0;
  SCL_HORNER_4(sum, -w, 691.0 / 15.0, 10.0, 3.0, 4.0 / 3.0);
  SCL_HORNER_2(sum, -w, 1.0, 2.0);
  return 6.0 * above / below + v * w * (2.0 + 3.0 * v + w * sum);
}

/* Infinite at poles. */
SCL_INLINE real special_pentagamma(real x) {
  if (special_is_pole(x)) return INFINITY;
  if (!(x < 0.0)) return special_pentagamma_right(x);
  const real sine = SPECIAL_PI / special_sinpi(x), cosine = special_cospi(x);
  return sine * sine * sine * sine * (4.0 * cosine * cosine + 2.0) -
         special_pentagamma_right(1.0 - x);
}

/* ---- binomial coefficients and the beta function -----------------------------------------------
 * As base R has them: k is rounded; n counts as whole when it is so to 1e-7. */

/* log(beta(a, b)); NaN where either is negative. */
SCL_INLINE real special_lbeta(real a, real b) {
  const real p = fmin(a, b), q = fmax(a, b), sum = p + q;
  if (a != a || b != b) return a + b;
  if (p < 0.0) return NAN;
  if (p == 0.0) return INFINITY;
  if (isinf(q)) return -INFINITY;
  if (p >= 12.0) {
    const real rest = special_stirling(p) + special_stirling(q) - special_stirling(sum);
    return SPECIAL_LOG_SQRT_2PI - 0.5 * log(q) + rest + (p - 0.5) * log(p / sum) +
           q * log1p(-p / sum);
  }
  if (q >= 12.0) {
    const real rest = special_stirling(q) - special_stirling(sum);
    return special_log_gamma(p) + rest + p - p * log(sum) + (q - 0.5) * log1p(-p / sum);
  }
  if (p < 1e-300) return special_log_gamma(p) + (special_log_gamma(q) - special_log_gamma(sum));
  return log(special_gamma(p) * (special_gamma(q) / special_gamma(sum)));
}

SCL_INLINE int special_is_whole(real x) {
  return fabs(x - rint(x)) <= 1e-7 * fmax(1.0, fabs(x));
}

/* log(abs(choose(n, k))). */
SCL_INLINE real special_lchoose(real n, real k) {
  if (n != n || k != k) return n + k;
  k = rint(k);
  if (k < 2.0) return k < 0.0 ? -INFINITY : (k == 0.0 ? 0.0 : log(fabs(n)));
  if (n < 0.0) n = -n + k - 1.0;
  if (special_is_whole(n)) {
    n = rint(n);
    if (n < k) return -INFINITY;
    if (n - k < 2.0) return n == k ? 0.0 : log(n);
  } else if (n < k - 1.0) {
    return special_log_gamma(n + 1.0) - special_log_gamma(k + 1.0) - special_log_gamma(n - k + 1.0);
  }
  return -log(n + 1.0) - special_lbeta(n - k + 1.0, k + 1.0);
}

/* For whole k from 0 to 29. */
SCL_INLINE real special_choose_few(real n, real k) {
  real r = k == 0.0 ? 1.0 : n;
  for (int j = 2; j <= (int)k; j++) r *= (n - j + 1.0) / j;
  return special_is_whole(n) ? rint(r) : r;
}

SCL_INLINE real special_choose(real n, real k) {
  real sign = 1.0;
  if (n != n || k != k) return n + k;
  k = rint(k);
  if (k < 30.0) {
    if (n - k < k && n - k >= 0.0 && special_is_whole(n)) k = rint(n - k);
    return k < 0.0 ? 0.0 : special_choose_few(n, k);
  }
  if (n < 0.0) {
    n = -n + k - 1.0;
    if (k != 2.0 * floor(0.5 * k)) sign = -1.0;
  }
  if (special_is_whole(n)) {
    n = rint(n);
    if (n < k) return 0.0;
    if (n - k < 30.0) return sign * special_choose_few(n, n - k);
    return sign * rint(exp(special_lchoose(n, k)));
  }
  if (n < k - 1.0) {
    const real x = k - n - 1.0; /* gamma(-x) is negative where floor(x) is even */
    if (floor(x) == 2.0 * floor(0.5 * floor(x))) sign = -sign;
  }
  return sign * exp(special_lchoose(n, k));
}

/* ---- rounding -------------------------------------------------------------------------------- */

/* x to multiples of 1 / b, of -b where b is negative, or of 1e-308 (1e200 b) where b is at most
 * 1e-200; b is a power of ten: the nearer of the two neighbours of x as they are stored, or of
 * equally near ones the even one, as R since 4.0.0. Numbers that have no more than 15 digits down
 * to there are rounded already. */
SCL_INLINE real special_round(real x, real b) {
  if (x == 0.0 || (b >= 1e300 && fabs(x) >= 1e-284)) return x; /* often, and without logarithms */
  /* 1e-200 / b is a whole number here, but for rounding. */
  const real more = b > 0.0 && b < 1e-199 ? rint(1e-200 / b) : 1.0;
  const real unit = more > 1.0 ? 1e308 : fabs(b), a = fabs(x);
  const real digits = b > 0.0 ? log10(unit) + log10(more) : -log10(unit);
  if (digits + (logb(a) + 0.5) * 0.30102999566398119521 > 15.0) return x;
  const real scaled = b > 0.0 ? a * unit * more : a / unit, whole = floor(scaled);
  const real low = b > 0.0 ? whole / more / unit : whole * unit;
  const real high = b > 0.0 ? ceil(scaled) / more / unit : ceil(scaled) * unit;
  const int even = whole == 2.0 * floor(0.5 * whole);
  const real nearest = a - low < high - a || (a - low == high - a && even) ? low : high;
  return x < 0.0 ? -nearest : nearest;
}

#endif
