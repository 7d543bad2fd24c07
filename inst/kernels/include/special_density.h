/* Log densities and their derivatives, in C and OpenCL C, for all sizes of their arguments: the
 * parts of densities whose terms cancel. Differences of functions of nearly equal large numbers are
 * written as functions of the difference (Loader 2000; Abramowitz and Stegun 1972, chapter 6).
 * port.h and special_functions.h come first; errors as there. */
#ifndef SCL_SPECIAL_DENSITY_H
#define SCL_SPECIAL_DENSITY_H

#define SPECIAL_SMALLEST 2.2250738585072014e-308 /* below are denormal numbers */

/* log(1 + v) - v; `sum` is 1 + v, which may have more digits than v. */
SCL_INLINE real special_log1p_minus(real v, real sum) {
  const real s = v / (2.0 + v), w = s * s; /* log(1 + v) = 2 atanh(s) */
  real series = 0.0;
  if (!(fabs(v) < 0.25)) return log(sum) - v;
  for (int j = 11; j > 0; j--) series = series * w + 1.0 / (2.0 * j + 1.0);
  return s * (2.0 * w * series - v);
}

/* exp(z) - 1 - z; `grown` is exp(z) - 1. */
SCL_INLINE real special_expm1_minus(real z, real grown) {
  real sum = 2.0 / 87178291200.0;
  if (!(fabs(z) < 0.5)) return grown - z;
  SCL_HORNER_3(sum, z, 2.0 / 6227020800.0, 2.0 / 479001600.0, 2.0 / 39916800.0);
  SCL_HORNER_4(sum, z, 2.0 / 3628800.0, 2.0 / 362880.0, 2.0 / 40320.0, 2.0 / 5040.0);
  SCL_HORNER_4(sum, z, 2.0 / 720.0, 2.0 / 120.0, 2.0 / 24.0, 2.0 / 6.0);
  return 0.5 * z * z * (1.0 + z * sum);
}

/* log(a / b) for positive numbers. */
SCL_INLINE real special_log_ratio(real a, real b) {
  const real ratio = a / b;
  if (ratio > 0.5 && ratio < 2.0) return log1p((a - b) / b);
  return ratio > 1e-300 && ratio < INFINITY ? log(ratio) : log(a) - log(b);
}

/* ---- differences of the derivatives of log(gamma) ----------------------------------------------
 */

/* The factor of B_k / z^(k - 1 + order) in the derivative of this order of Stirling's series. */
SCL_INLINE real special_stirling_factor(int order, real k) {
  return order == 1 ? -1.0 / k : (order == 2 ? 1.0 : (order == 3 ? -1.0 : k + 2.0) * (k + 1.0));
}

/* The derivative of an order from 1 to 4 of Stirling's remainder at x > 0. */
SCL_INLINE real special_stirling_slope_of(real x, real order) {
  const real v = 1.0 / x, w = v * v;
  const int n = (int)order;
  if (!(x > 0.0) || !(order >= 1.0 && order <= 4.0)) return NAN;
  if (n == 1 && !(x < 12.0)) return special_stirling_slope(x);
  if (!(x < 12.0)) {
    real sum = -691.0 / 2730.0 * special_stirling_factor(n, 12.0);
    SCL_HORNER_1(sum, w, 5.0 / 66.0 * special_stirling_factor(n, 10.0));
    SCL_HORNER_1(sum, w, -1.0 / 30.0 * special_stirling_factor(n, 8.0));
    SCL_HORNER_1(sum, w, 1.0 / 42.0 * special_stirling_factor(n, 6.0));
    SCL_HORNER_1(sum, w, -1.0 / 30.0 * special_stirling_factor(n, 4.0));
    SCL_HORNER_1(sum, w, 1.0 / 6.0 * special_stirling_factor(n, 2.0));
    return sum * w * (n == 2 ? v : (n == 3 ? w : v * w));
  }
  /* Below 1 the poles of both parts are added first. */
  const int low = x < 1.0;
  const real y = low ? x + 1.0 : x;
  if (n == 1) return special_digamma_right(y) - log(x) + (low ? -0.5 : 0.5) * v;
  if (n == 2) return special_trigamma_right(y) - v + (low ? 0.5 : -0.5) * w;
  if (n == 3) return special_tetragamma_right(y) + w + (low ? -1.0 : 1.0) * (v * w);
  return special_pentagamma_right(y) - 2.0 * (v * w) + (low ? 3.0 : -3.0) * (w * w);
}

/* log(gamma(a + b)) - log(gamma(a)) for a > 0 and b >= 0. */
SCL_INLINE real special_log_gamma_rise(real a, real b) {
  real sum = 0.0;
  for (; a < 12.0; a += 1.0) sum -= b / a < INFINITY ? log1p(b / a) : log(b) - log(a);
  /* 1 / n^k - 1 / a^k is 1 / n - 1 / a times a sum of powers. */
  const real factor[5] = {-1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0,
                          -691.0 / 360360.0};
  const real n = a + b, p = 1.0 / n, q = 1.0 / a;
  real powers = 1.0, odd = q, rest = 1.0 / 12.0;
  for (int k = 0; k < 5; k++) {
    powers = powers * p * p + odd * (p + q);
    rest += factor[k] * powers;
    odd *= q * q;
  }
  const real grown = b / a > 1e-290 ? (a - 0.5) * log1p(b / a) : b;
  return sum + grown + b * (log(n) - 1.0) - b * p * q * rest;
}

/* digamma(a + b) - digamma(a). */
SCL_INLINE real special_digamma_rise(real a, real b) {
  real sum = 0.0;
  if (!(a > 0.0 && b >= 0.0)) return special_digamma(a + b) - special_digamma(a);
  if (b < 1e-6 * a) return b * special_trigamma_right(a + 0.5 * b);
  for (; a < 12.0; a += 1.0) sum += a + b < INFINITY ? b / (a + b) / a : 1.0 / a;
  const real n = a + b;
  sum += 0.5 * (b < INFINITY ? b / n : 1.0) / a;
  return sum + log1p(b / a) + (special_stirling_slope(n) - special_stirling_slope(a));
}

/* ---- gamma and Student's t ----------------------------------------------------------------------
 */

/* log(m^a exp(-m) / gamma(a)), m = r x. */
SCL_INLINE real special_gamma_power(real x, real a, real r) {
  const real m = r * x;
  const int usual = m > 1e-290;
  if (!(x >= 0.0 && a >= 0.0 && r >= 0.0)) return NAN;
  if (x == 0.0 || r == 0.0 || a == 0.0 || isinf(m) || isinf(a)) return -INFINITY;
  const real size = usual ? log(m) : log(x) + log(r);
  if (a < 12.0) return a * size - m - special_log_gamma_right(a);
  return 0.5 * log(a) - SPECIAL_LOG_SQRT_2PI - special_stirling(a) -
         (usual ? special_deviance(a, m) : a * (log(a) - size) + (m - a));
}

/* (n + 1) / 2 log(1 + x^2 / n) for n > 0. */
SCL_INLINE real special_t_power(real n, real x) {
  const real q = x * (x / n);
  if (!(n > 0.0) || x != x) return NAN;
  if (q < 1e-290) return 0.5 * (x * x + q);
  if (q < 1e300) return 0.5 * (n + 1.0) * log1p(q);
  return isinf(x) ? INFINITY : (n + 1.0) * (log(fabs(x)) - 0.5 * log(n));
}

/* Its derivative with respect to n. */
SCL_INLINE real special_t_power_slope(real n, real x) {
  const real q = x * (x / n), part = q / (1.0 + q);
  if (!(n > 0.0) || x != x) return NAN;
  if (q < 1.0) return -0.5 * (special_log1p_minus(-part, 1.0 - part) + part / n);
  if (q < 1e300) return 0.5 * (log1p(q) - part - part / n);
  return log(fabs(x)) - 0.5 * log(n) - 0.5 - 0.5 / n;
}

/* ---- beta and negative binomial ----------------------------------------------------------------
 */

/* log(x) where y = 1 - x. */
SCL_INLINE real special_log_share(real x, real y) {
  return x < 0.5 ? log(x) : log1p(-y);
}

/* log(x^a y^b / beta(a, b)), y = 1 - x. */
SCL_INLINE real special_beta_power_of(real x, real y, real a, real b) {
  const real n = a + b, m = n * x, low = fmin(a, b);
  if (!(x >= 0.0 && y >= 0.0 && a >= 0.0 && b >= 0.0)) return NAN;
  if (x == 0.0 || y == 0.0 || a == 0.0 || b == 0.0 || isinf(n)) return -INFINITY;
  if (n < 12.0 || low < 1.0) {
    return a * special_log_share(x, y) + b * special_log_share(y, x) - special_lbeta(a, b);
  }
  const real rest = special_stirling(n) - special_stirling_rest(a) - special_stirling_rest(b);
  const real own = m > 1e-290 ? special_deviance(a, m) : a * (log(a / n) - log(x)) + (m - a);
  return rest + 0.5 * log(low * (fmax(a, b) / n)) - SPECIAL_LOG_SQRT_2PI - own -
         special_deviance(b, n * y);
}

SCL_INLINE real special_beta_power(real x, real a, real b) {
  return special_beta_power_of(x, 1.0 - x, a, b);
}

/* Half the deviance of a negative binomial count y with mean m and size n. */
SCL_INLINE real special_neg_binomial_deviance(real y, real m, real n) {
  if (isinf(n)) return special_deviance(y, m);
  if (isinf(n + m) || (m == 0.0 && y > 0.0)) return INFINITY;
  if (y == 0.0) return m / n < INFINITY ? n * log1p(m / n) : n * (log(m) - log(n));
  /* v and u are the relative distances of size and count from those at the mean. */
  const real v = (y - m) / (n + m), u = (m - y) / y / (1.0 + m / n);
  const real ratio = (n + y) / (n + m), odds = m / y * ratio;
  if (isinf(ratio))
    return (y - m) * (n / (n + m)) - y * (log(m) - log(y) + log(n + y) - log(n + m) - u);
  const real part = fabs(u) < 0.25 || odds > 1e-300 ? special_log1p_minus(u, odds)
                                                    : log(m) - log(y) + log(ratio) - u;
  return -n * special_log1p_minus(v, ratio) - y * part;
}

/* The log density of a negative binomial count y > 0 with size n > 0, less that of a Poisson count
 * with mean y at y, and without the deviance; and `from` plus its derivative with respect to n. */
SCL_INLINE real special_neg_binomial_rest(real y, real n) {
  const real more = y / n < INFINITY ? log1p(y / n) : log(y) - log(n);
  return special_stirling_rest(n + y) - special_stirling_rest(n) - 0.5 * more;
}

SCL_INLINE real special_neg_binomial_rest_slope(real from, real y, real n) {
  return from + 0.5 * (y / (n + y) / n) +
         (special_stirling_slope_of(n + y, 1.0) - special_stirling_slope_of(n, 1.0));
}

/* The log density of a negative binomial count y with mean m and size n > 0, without the term of y
 * alone: that of a Poisson count with mean y at y. */
SCL_INLINE real special_neg_binomial(real y, real m, real n) {
  if (!(y >= 0.0 && m >= 0.0 && n > 0.0)) return NAN;
  if (y == 0.0) return -special_neg_binomial_deviance(y, m, n);
  return special_neg_binomial_rest(y, n) - special_neg_binomial_deviance(y, m, n);
}

/* Its derivative with respect to n. */
SCL_INLINE real special_neg_binomial_slope(real y, real m, real n) {
  const real from = y == 1.0 ? 0.0 : y, ratio = (n + from) / (n + m);
  if (!(y >= 0.0 && m >= 0.0 && n > 0.0)) return NAN;
  if (isinf(n)) return 0.0;
  const real far = isinf(m) ? -INFINITY : special_log1p_minus((from - m) / (n + m), ratio);
  if (y == 0.0) return far;
  if (y == 1.0) return far + m / (n + m) / n; /* the other terms cancel */
  return special_neg_binomial_rest_slope(far, y, n);
}

#endif
