/* The normal distribution, in C and OpenCL C: density, probability, its logarithm, quantiles.
 * port.h and special_functions.h come first; errors and infinities as there. */
#ifndef SCL_SPECIAL_NORMAL_H
#define SCL_SPECIAL_NORMAL_H

/* In the tail x is taken apart, as the rounding of its square would grow with it. */
SCL_INLINE real special_dnorm(real x) {
  const real head = rint(x * 65536.0) / 65536.0, rest = x - head;
  if (!(fabs(x) > 5.0)) return 0.3989422804014326779 * exp(-0.5 * x * x);
  if (fabs(x) > 39.0) return 0.0;
  return 0.3989422804014326779 * (exp(-0.5 * head * head) * exp((-0.5 * rest - head) * rest));
}

/* P(X <= x) for a standard normal X. In the tail erfc() would multiply the relative error of its
 * argument x / sqrt(2) by the square of that; the rounding error is corrected by the slope. */
SCL_INLINE real special_pnorm(real x) {
  const real t = -0.7071067811865475244 * x;
  const real rest = fma(-0.7071067811865475244, x, -t) + 4.833646656726457e-17 * x;
  if (!(fabs(x) < 40.0)) return x != x ? x : (x > 0.0 ? 1.0 : 0.0);
  return 0.5 * (erfc(t) - 1.128379167095512574 * exp(-t * t) * rest);
}

/* (1 - P(X <= t)) / density(t) * t for t >= 30: its asymptotic series. */
SCL_INLINE real special_mills(real t) {
  const real w = 1.0 / (t * t);
  real sum = 1.0 - 13.0 * w;
  sum = 1.0 - 11.0 * w * sum;
  sum = 1.0 - 9.0 * w * sum;
  sum = 1.0 - 7.0 * w * sum;
  sum = 1.0 - 5.0 * w * sum;
  sum = 1.0 - 3.0 * w * sum;
  return 1.0 - w * sum;
}

/* log(P(X <= x)). */
SCL_INLINE real special_log_pnorm(real x) {
  if (x > 0.0) return log1p(-special_pnorm(-x));
  if (!(x < -30.0)) return log(special_pnorm(x));
  return -0.5 * x * x - SPECIAL_LOG_SQRT_2PI - log(-x) + log(special_mills(-x));
}

/* Its derivative. */
SCL_INLINE real special_log_pnorm_slope(real x) {
  if (!(x < -30.0)) return special_dnorm(x) / special_pnorm(x);
  return -x / special_mills(-x);
}

/* The quantile at 1/2 + q for |q| <= 0.425, and -r^2 the logarithm of a smaller tail, that of which
 * this is the distance from 0: Wichura (1988), algorithm AS 241. */
SCL_INLINE real special_qnorm_middle(real q) {
  const real r = 0.180625 - q * q;
  real above = 2509.0809287301226727, below = 5226.495278852545925;
  SCL_HORNER_3(above, r, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457);
  SCL_HORNER_3(above, r, 13731.693765509461125, 1971.5909503065514427, 133.14166789178437745);
  SCL_HORNER_1(above, r, 3.387132872796366608);
  SCL_HORNER_3(below, r, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867);
  SCL_HORNER_3(below, r, 5394.1960214247511077, 687.1870074920579083, 42.313330701600911252);
  return q * above / (below * r + 1.0);
}

SCL_INLINE real special_qnorm_near(real r) { /* 1.6 + r <= 5 */
  real above = 7.7454501427834140764e-4, below = 1.05075007164441684324e-9;
  SCL_HORNER_2(above, r, 0.0227238449892691845833, 0.24178072517745061177);
  SCL_HORNER_3(above, r, 1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055);
  SCL_HORNER_2(above, r, 4.6303378461565452959, 1.42343711074968357734);
  SCL_HORNER_2(below, r, 5.475938084995344946e-4, 0.0151986665636164571966);
  SCL_HORNER_3(below, r, 0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494);
  SCL_HORNER_1(below, r, 2.05319162663775882187);
  return above / (below * r + 1.0);
}

SCL_INLINE real special_qnorm_far(real r) { /* 5 + r <= 27 */
  real above = 2.01033439929228813265e-7, below = 2.04426310338993978564e-15;
  SCL_HORNER_2(above, r, 2.71155556874348757815e-5, 0.0012426609473880784386);
  SCL_HORNER_2(above, r, 0.026532189526576123093, 0.29656057182850489123);
  SCL_HORNER_3(above, r, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772);
  SCL_HORNER_2(below, r, 1.4215117583164458887e-7, 1.8463183175100546818e-5);
  SCL_HORNER_2(below, r, 7.868691311456132591e-4, 0.0148753612908506148525);
  SCL_HORNER_2(below, r, 0.13692988092273580531, 0.59983220655588793769);
  return above / (below * r + 1.0);
}

SCL_INLINE real special_qnorm_tail(real r) {
  return r <= 5.0 ? special_qnorm_near(r - 1.6) : special_qnorm_far(r - 5.0);
}

/* The x with P(X <= x) = p. */
SCL_INLINE real special_qnorm(real p) {
  const real q = p - 0.5;
  if (!(p >= 0.0 && p <= 1.0)) return NAN;
  if (p == 0.0 || p == 1.0) return p == 0.0 ? -INFINITY : INFINITY;
  if (fabs(q) <= 0.425) return special_qnorm_middle(q);
  return q < 0.0 ? -special_qnorm_tail(sqrt(-log(p))) : special_qnorm_tail(sqrt(-log(1.0 - p)));
}

/* The same of p = exp(a); beyond the range of AS 241 by two of Newton's steps. */
SCL_INLINE real special_log_qnorm(real a) {
  const real q = exp(a) - 0.5;
  if (!(a <= 0.0)) return NAN;
  if (a == 0.0 || isinf(a)) return a == 0.0 ? INFINITY : -INFINITY;
  if (fabs(q) <= 0.425) return special_qnorm_middle(q);
  if (q > 0.0) return special_qnorm_tail(sqrt(-log(-expm1(a))));
  if (a >= -700.0) return -special_qnorm_tail(sqrt(-a));
  real x = -sqrt(-2.0 * a - log(-4.0 * SPECIAL_PI * a));
  x -= (special_log_pnorm(x) - a) / special_log_pnorm_slope(x);
  return x - (special_log_pnorm(x) - a) / special_log_pnorm_slope(x);
}

#endif
