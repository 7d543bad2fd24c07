/* The modified Bessel function K of real order, in C and OpenCL C: Temme's series for small
 * arguments, Steed's continued fraction for others, then recurrence upwards in the order (Temme
 * 1975; Press et al. 2007, section 6.6). port.h and special_functions.h come first. Relative errors
 * are some units in the last place, and grow slowly with the order. */
#ifndef SCL_BESSEL_FUNCTIONS_H
#define SCL_BESSEL_FUNCTIONS_H

#define BESSEL_MOST_ORDER 1e5

/* K_m(x) and, in `next`, K_{m+1}(x), for |m| <= 1/2 and 0 < x <= 1.2. */
SCL_INLINE real bessel_k_series(real x, real m, real *next) {
  const real log_2 = log(2.0 / x), s = m * log_2, quarter = 0.25 * x * x;
  real slope, rest = -0.57721566490153286; /* o / m, o the odd part of log(gamma(1 + m)) */
  real even = 1.0, ratio = 1.0;            /* 1 / (gamma(1 + m) gamma(1 - m)); sinh(s) / s */
  if (fabs(m) > 1e-9) {
    rest = 0.5 * (special_log_gamma_2(m, &slope) - special_log_gamma_2(-m, &slope)) / m;
    rest -= atanh(m) / m;
    even = special_sinpi(m) / (SPECIAL_PI * m);
  }
  if (fabs(s) > 1e-9) ratio = sinh(s) / s;
  const real o = rest * m, root = sqrt(even);
  const real difference = fabs(o) > 1e-9 ? sinh(o) / o * rest : rest;
  real f = (difference * cosh(s) + cosh(o) * ratio * log_2) / root, c = 1.0;
  real p = 0.5 * exp(s + o) / root, q = 0.5 * exp(-s - o) / root;
  real sum = f, sum_next = p;
  for (int k = 1; k < 40; k++) {
    f = (k * f + p + q) / (k * k - m * m);
    p /= k - m;
    q /= k + m;
    c *= quarter / k;
    sum += c * f;
    sum_next += c * (p - k * f);
    if (c * f < 1e-17 * sum && c * p < 1e-17 * sum_next) break;
  }
  *next = sum_next * 2.0 / x;
  return sum;
}

/* exp(x) times the same, for x > 1.2. */
SCL_INLINE real bessel_k_fraction(real x, real m, real *next) {
  const real first = 0.25 - m * m;
  real b = 2.0 * (1.0 + x), d = 1.0 / b, h = d, step = d;
  real before = 0.0, q = 1.0, a = -first, c = first, total = first, s = 1.0 + first * d;
  for (int k = 2; k < 1000; k++) {
    a -= 2.0 * (k - 1);
    c *= -a / k;
    const real after = (before - b * q) / a;
    before = q;
    q = after;
    total += c * q;
    b += 2.0;
    d = 1.0 / (b + a * d);
    step *= b * d - 1.0;
    h += step;
    s += total * step;
    if (fabs(total * step) <= 1e-17 * fabs(s)) break;
  }
  const real value = sqrt(0.5 * SPECIAL_PI / x) / s;
  *next = value * ((m + x + 0.5 - first * h) / x);
  return value;
}

/* exp(x) K_nu(x). */
SCL_INLINE real bessel_k_scaled(real x, real nu) {
  const real order = fabs(nu), n = floor(order + 0.5), m = order - n;
  real value, next;
  if (!(x >= 0.0 && order <= BESSEL_MOST_ORDER)) return NAN;
  if (x == 0.0 || isinf(x)) return x == 0.0 ? INFINITY : 0.0;
  if (x <= 1.2) {
    const real scale = exp(x);
    value = scale * bessel_k_series(x, m, &next);
    next *= scale;
  } else {
    value = bessel_k_fraction(x, m, &next);
  }
  for (real k = 1.0; k <= n; k += 1.0) {
    const real after = 2.0 * (m + k) / x * next + value;
    value = next;
    next = after;
  }
  return value;
}

#endif
