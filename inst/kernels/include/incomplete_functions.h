/* The incomplete gamma and beta functions, in C and OpenCL C: logarithms of the distribution
 * functions of gamma and beta variables, and their derivatives by the shapes. Series and continued
 * fractions (Press et al. 2007, sections 6.2 and 6.4; the latter by Lentz's method) are
 * differentiated term by term. The number of terms grows with the root of the shapes. port.h,
 * special_functions.h, special_normal.h and special_density.h come first. Relative errors are about
 * 1e-13. */
#ifndef SCL_INCOMPLETE_FUNCTIONS_H
#define SCL_INCOMPLETE_FUNCTIONS_H

#define INCOMPLETE_MOST_TERMS 200000
#define INCOMPLETE_TINY 1e-300
#define INCOMPLETE_LARGE 1e4 /* from here on Temme's expansion holds near the mean */
#define INCOMPLETE_HUGE 1e40 /* and from here on its S is below the rounding errors */

/* One step of a continued fraction by Lentz's method: h, whose derivative of the logarithm is
 * h_slope, becomes h c d, where 1 / d = a d + b and c = b + a / c. */
typedef struct {
  real c, c_slope, d, d_slope, h, h_slope;
} incomplete_fraction;

/* Returns the relative change of h. */
SCL_INLINE real incomplete_fraction_step(incomplete_fraction *f, real a, real a_slope, real b,
                                         real b_slope) {
  real below = a * f->d + b;
  const real below_slope = a_slope * f->d + a * f->d_slope + b_slope;
  f->c_slope = b_slope + a_slope / f->c - a * f->c_slope / (f->c * f->c);
  f->c = b + a / f->c;
  if (fabs(below) < INCOMPLETE_TINY) below = INCOMPLETE_TINY;
  if (fabs(f->c) < INCOMPLETE_TINY) f->c = INCOMPLETE_TINY;
  f->d = 1.0 / below;
  f->d_slope = -below_slope * f->d * f->d;
  const real move = f->d_slope / f->d + f->c_slope / f->c;
  f->h *= f->c * f->d;
  f->h_slope += move;
  return fmax(fabs(f->c * f->d - 1.0), fabs(move) / (fabs(f->h_slope) + 1e-3));
}

/* ---- gamma ----------------------------------------------------------------------------------- */

/* log(gamma(1 + a)) for small a too. */
SCL_INLINE real incomplete_log_gamma_1(real a) {
  real slope;
  if (a < 0.5) return special_log_gamma_2(a, &slope) - log1p(a);
  return special_log_gamma_right(a + 1.0);
}

/* log(x^a exp(-x) / gamma(a + 1)), without cancellation, and its derivative with respect to a. */
SCL_INLINE real incomplete_gamma_front(real x, real a, real *slope) {
  if (a < 12.0) {
    *slope = log(x) - special_digamma_right(a + 1.0);
  } else {
    *slope = special_log_ratio(x, a) - 0.5 / a - special_stirling_slope(a);
  }
  if (a < 1.0) return a * log(x) - x - incomplete_log_gamma_1(a);
  return -special_deviance(a, x) - 0.5 * log(a) - SPECIAL_LOG_SQRT_2PI - special_stirling_rest(a);
}

/* The logarithm of the density of a gamma variable. */
SCL_INLINE real incomplete_gamma_log_density(real x, real a) {
  real slope;
  return incomplete_gamma_front(x, a, &slope) + log(a) - log(x);
}

/* The density divided by a tail's probability, exp(r): far out the quotient of two numbers near 0
 * is that of an asymptotic series. */
SCL_INLINE real incomplete_gamma_quotient(real x, real a, real r) {
  const real d = fabs(x - a);
  if (r < -1e5) return d / x + 1.0 / d;
  return x > 0.0 ? exp(incomplete_gamma_log_density(x, a) - r) : 0.0;
}

/* log(P(X <= x)) of a gamma variable X, for x up to about a, by the series of x^n / (a + 1)_n. */
SCL_INLINE real incomplete_gamma_series(real x, real a, real *slope) {
  real term = 1.0, sum = 1.0, harmonic = 0.0, sum_slope = 0.0, front_slope;
  for (int n = 1; n < INCOMPLETE_MOST_TERMS && term > 1e-17 * sum; n++) {
    harmonic += 1.0 / (a + n);
    term *= x / (a + n);
    sum += term;
    sum_slope -= term * harmonic;
  }
  const real front = incomplete_gamma_front(x, a, &front_slope);
  *slope = front_slope + sum_slope / sum;
  return front + log(sum);
}

/* log(P(X > x)) for x from about a, and from 1, on. */
SCL_INLINE real incomplete_gamma_fraction(real x, real a, real *slope) {
  real b = x + 1.0 - a, front_slope;
  if (fabs(b) < INCOMPLETE_TINY) b = INCOMPLETE_TINY;
  incomplete_fraction f = {1.0 / INCOMPLETE_TINY, 0.0, 1.0 / b, 1.0 / (b * b), 1.0 / b, 1.0 / b};
  real far = 1.0;
  for (int n = 1; n < INCOMPLETE_MOST_TERMS && far > 1e-16; n++) {
    b += 2.0;
    far = incomplete_fraction_step(&f, -n * (n - a), n, b, -1.0);
  }
  const real front = incomplete_gamma_front(x, a, &front_slope);
  *slope = front_slope + 1.0 / a + f.h_slope;
  return front + log(a) + log(f.h);
}

/* log(P(X > x)) for x and a below 1: P(X <= x) = (1 + u) (1 + v) with small u and v. */
SCL_INLINE real incomplete_gamma_small(real x, real a, real *slope) {
  real term = 1.0, u = 0.0, u_slope = 0.0;
  for (int n = 1; n < 40 && fabs(term) > 1e-20; n++) {
    term *= -x / n;
    u += term / (a + n);
    u_slope += term * n / ((a + n) * (a + n));
  }
  u *= a;
  const real v = expm1(a * log(x) - incomplete_log_gamma_1(a));
  const real v_slope = (1.0 + v) * (log(x) - special_digamma_right(a + 1.0));
  const real q = -(u + v + u * v);
  *slope = -(u_slope * (1.0 + v) + v_slope * (1.0 + u)) / q;
  return log(q);
}

/* log(P(X > x)) or log(P(X <= x)) of a gamma variable X with a large shape: Temme's (1979) uniform
 * expansion of Phi(-z) + dnorm(z) S(eta) / sqrt(a), where z^2 / 2 = a eta^2 / 2 is the deviance. S
 * is the sum of C_k(eta) / a^k; the C_k are power series about x = a. */
SCL_INLINE real incomplete_gamma_large(real x, real a, int upper, real *slope) {
  const real zero[15] = {-0.33333333333333331,   0.083333333333333329,    -0.014814814814814815,
                         0.0011574074074074073,  0.00035273368606701942,  -0.0001787551440329218,
                         3.9192631785224377e-05, -2.185448510679992e-06,  -1.85406221071516e-06,
                         8.2967113409530865e-07, -1.7665952736826078e-07, 6.7078535434014984e-09,
                         1.0261809784240309e-08, -4.3820360184533529e-09, 9.1476995822367902e-10};
  const real one[10] = {-0.0018518518518518519,  -0.003472222222222222,  0.0026455026455026454,
                        -0.00099022633744855963, 0.00020576131687242798, -4.018775720164609e-07,
                        -1.8098550334489977e-05, 7.6491609160811098e-06, -1.6120900894563446e-06,
                        4.647127802807434e-09};
  const real two[6] = {0.0041335978835978834,  -0.0026813271604938273, 0.0007716049382716049,
                       2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05};
  const real root = sqrt(a), sign = upper ? 1.0 : -1.0;
  const real size = sqrt(2.0 * special_deviance(a, x)), z = x < a ? -size : size, eta = z / root;
  const real l = special_log_ratio(x, a), t = z == 0.0 ? 1.0 : l / eta;
  real s = 0.0, by_eta = 0.0, by_a = 0.0; /* S and its derivatives */
  for (int k = 14; k >= 0 && a <= INCOMPLETE_HUGE; k--) {
    const real c1 = k < 10 ? one[k] : 0.0, c2 = k < 6 ? two[k] : 0.0;
    by_eta = by_eta * eta + s;
    s = s * eta + (zero[k] + (c1 + c2 / a) / a);
    by_a = by_a * eta - (c1 + 2.0 * c2 / a) / (a * a);
  }
  by_a -= (by_eta * (t + 0.5 * eta) + 0.5 * s) / a;
  const real hazard = special_log_pnorm_slope(-sign * z) / root, rest = sign * hazard * s;
  *slope = hazard < INFINITY ? sign * hazard * (t + l * s + by_a) / (1.0 + rest) : l;
  return special_log_pnorm(-sign * z) + log1p(rest);
}

/* log(1 - exp(value)) of a probability's logarithm, and the derivative of that. */
SCL_INLINE real incomplete_complement(real value, real *slope) {
  *slope = *slope / -expm1(-value);
  return special_log1m_exp(value);
}

SCL_INLINE real incomplete_gamma(real x, real a, int upper, real *slope) {
  *slope = NAN;
  if (x != x || !(a >= 0.0)) return NAN;
  *slope = 0.0;
  if (x <= 0.0) return upper ? 0.0 : -INFINITY;
  if (isinf(x) || a == 0.0) return upper ? -INFINITY : 0.0;
  if (isinf(a)) return upper ? 0.0 : -INFINITY;
  if (a > INCOMPLETE_HUGE || (a > INCOMPLETE_LARGE && fabs(x - a) < 0.25 * a)) {
    return incomplete_gamma_large(x, a, upper, slope);
  }
  /* The tail that is not near 1 comes first. */
  if (x < a + 1.0 && !(a < 1.0 && (x >= 1.0 || a * log(x) > -0.7))) {
    const real value = incomplete_gamma_series(x, a, slope);
    return upper ? incomplete_complement(value, slope) : value;
  }
  const real value =
      x < 1.0 ? incomplete_gamma_small(x, a, slope) : incomplete_gamma_fraction(x, a, slope);
  return upper ? value : incomplete_complement(value, slope);
}

/* log(P(X <= x)) of a gamma variable X with shape a, log(P(X > x)), and their derivatives with
 * respect to a. */
SCL_INLINE real incomplete_log_pgamma(real x, real a) {
  real slope;
  return incomplete_gamma(x, a, 0, &slope);
}

SCL_INLINE real incomplete_log_pgamma_slope(real x, real a) {
  real slope;
  incomplete_gamma(x, a, 0, &slope);
  return slope;
}

SCL_INLINE real incomplete_log_qgamma(real x, real a) {
  real slope;
  return incomplete_gamma(x, a, 1, &slope);
}

SCL_INLINE real incomplete_log_qgamma_slope(real x, real a) {
  real slope;
  incomplete_gamma(x, a, 1, &slope);
  return slope;
}

/* ---- beta ------------------------------------------------------------------------------------ */

/* log(x^a y^b / beta(a, b)), y = 1 - x. */
SCL_INLINE real incomplete_beta_front(real x, real y, real a, real b) {
  const real n = a + b;
  const real rest = special_stirling_rest(n) - special_stirling_rest(a) - special_stirling_rest(b);
  return rest + 0.5 * log(a / n * b) - SPECIAL_LOG_SQRT_2PI - special_deviance(a, n * x) -
         special_deviance(b, n * y);
}

/* The logarithm of the density of a beta variable. */
SCL_INLINE real incomplete_beta_log_density(real x, real a, real b) {
  return incomplete_beta_front(x, 1.0 - x, a, b) - log(x) - log1p(-x);
}

/* log(P(X <= x)) of a beta variable for x not much above its mean; y = 1 - x. The slope is the
 * derivative by a, or by b. */
SCL_INLINE real incomplete_beta_fraction(real x, real y, real a, real b, int by_b, real *slope) {
  const real n = a + b, first = -n * x / (a + 1.0);
  const real first_slope = by_b ? -x / (a + 1.0) : (b - 1.0) * x / ((a + 1.0) * (a + 1.0));
  real below = 1.0 + first;
  if (fabs(below) < INCOMPLETE_TINY) below = INCOMPLETE_TINY;
  incomplete_fraction f = {1.0, 0.0, 1.0 / below, 0.0, 1.0 / below, -first_slope / below};
  f.d_slope = -first_slope * f.d * f.d;
  real far = 1.0;
  for (int m = 1; m < INCOMPLETE_MOST_TERMS && far > 1e-16; m++) {
    const real p = a + 2.0 * m, even = m * x / ((p - 1.0) * p), odd = -x / (p * (p + 1.0));
    const real even_slope = by_b ? even : -even * (b - m) * (1.0 / (p - 1.0) + 1.0 / p);
    const real grown = (a + m) * (n + m);
    const real odd_slope =
        odd * (by_b ? a + m : (a + n + 2.0 * m) - grown * (1.0 / p + 1.0 / (p + 1.0)));
    far = incomplete_fraction_step(&f, even * (b - m), even_slope, 1.0, 0.0);
    far = fmax(far, incomplete_fraction_step(&f, odd * grown, odd_slope, 1.0, 0.0));
  }
  *slope = f.h_slope + special_digamma_right(n);
  *slope += by_b ? log(y) - special_digamma_right(b) : log(x) - special_digamma_right(a) - 1.0 / a;
  return incomplete_beta_front(x, y, a, b) + log(f.h / a);
}

SCL_INLINE real incomplete_beta(real x, real a, real b, int upper, int by_b, real *slope) {
  const real y = 1.0 - x;
  *slope = NAN;
  if (x != x || !(a > 0.0 && b > 0.0)) return NAN;
  *slope = 0.0;
  if (x <= 0.0 || x >= 1.0) return (x <= 0.0) != upper ? -INFINITY : 0.0;
  if (isinf(a) || isinf(b)) { /* all mass at 0, 1 or 1 / 2 */
    const int below = isinf(b) && (!isinf(a) || x >= 0.5);
    return below != upper ? 0.0 : -INFINITY;
  }
  if (x <= (a + 1.0) / (a + b + 2.0) || (b < 1.0 && x < 0.95)) {
    const real value = incomplete_beta_fraction(x, y, a, b, by_b, slope);
    return upper ? incomplete_complement(value, slope) : value;
  }
  const real value = incomplete_beta_fraction(y, x, b, a, !by_b, slope);
  return upper ? value : incomplete_complement(value, slope);
}

/* log(P(X <= x)) of a beta variable X with shapes a and b, log(P(X > x)), and their derivatives by
 * the shapes. */
SCL_INLINE real incomplete_log_pbeta(real x, real a, real b) {
  real slope;
  return incomplete_beta(x, a, b, 0, 0, &slope);
}

SCL_INLINE real incomplete_log_pbeta_slope_a(real x, real a, real b) {
  real slope;
  incomplete_beta(x, a, b, 0, 0, &slope);
  return slope;
}

SCL_INLINE real incomplete_log_pbeta_slope_b(real x, real a, real b) {
  real slope;
  incomplete_beta(x, a, b, 0, 1, &slope);
  return slope;
}

SCL_INLINE real incomplete_log_qbeta(real x, real a, real b) {
  real slope;
  return incomplete_beta(x, a, b, 1, 0, &slope);
}

SCL_INLINE real incomplete_log_qbeta_slope_a(real x, real a, real b) {
  real slope;
  incomplete_beta(x, a, b, 1, 0, &slope);
  return slope;
}

SCL_INLINE real incomplete_log_qbeta_slope_b(real x, real a, real b) {
  real slope;
  incomplete_beta(x, a, b, 1, 1, &slope);
  return slope;
}

#endif
