/* The incomplete gamma and beta functions, in C and OpenCL C: logarithms of the distribution
 * functions of gamma, beta and negative binomial variables, and their derivatives by the shapes. A
 * gamma variable's are series and continued fractions (Press et al. 2007, section 6.2; the latter
 * by Lentz's method), differentiated term by term, or an expansion; the number of terms grows with
 * the root of the shape. The others are series or integrals of fixed size. port.h,
 * special_functions.h, special_normal.h and special_density.h come first. Relative errors are about
 * 1e-13, where one rounding of an argument does not change a value by more. */
#ifndef SCL_INCOMPLETE_FUNCTIONS_H
#define SCL_INCOMPLETE_FUNCTIONS_H

#define INCOMPLETE_MOST_TERMS 200000
#define INCOMPLETE_TINY 1e-300
#define INCOMPLETE_LARGE 1e4 /* from here on Temme's expansion holds near the mean */
#define INCOMPLETE_NODES 16  /* times two */
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

/* log(P(X <= x)) for x and a below 1: P(X <= x) is (1 + u) times the first term of its series. */
SCL_INLINE real incomplete_gamma_small(real x, real a, real *slope) {
  real term = 1.0, u = 0.0, u_slope = 0.0;
  for (int n = 1; n < 40 && fabs(term) > 1e-20; n++) {
    term *= -x / n;
    u += term / (a + n);
    u_slope += term * n / ((a + n) * (a + n));
  }
  u *= a;
  *slope = log(x) - special_digamma_right(a + 1.0) + u_slope / (1.0 + u);
  return fmin(a * log(x) - incomplete_log_gamma_1(a) + log1p(u), 0.0);
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
  *slope = value > -INFINITY ? *slope / -expm1(-value) : 0.0;
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
  /* The tail that is not near 1 comes first, except for small shapes. */
  const int small = x < 1.0 && a < 1.0, from_above = !small && (x >= a + 1.0 || a < 1.0);
  real value;
  if (small) {
    value = incomplete_gamma_small(x, a, slope);
  } else if (from_above) {
    value = incomplete_gamma_fraction(x, a, slope);
  } else {
    value = incomplete_gamma_series(x, a, slope);
  }
  if (upper != from_above) value = incomplete_complement(value, slope);
  if (*slope != *slope && a < SPECIAL_SMALLEST) *slope = 0.0; /* its parts overflow */
  return value;
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

/* ---- beta and negative binomial ---------------------------------------------------------------
 *
 * For a beta variable X with shapes a and b, P(X <= x) is exp(front) times the integral of
 * exp(h(u)) over u > 0, where x's logit less u takes the place of x's logit. A negative binomial
 * count with mean m and size s is at least k with the probability P(X <= x), where x = m / (s + m),
 * a = k and b = s; then m exp(-u) takes the place of m. */
typedef struct {
  real x, y; /* their sum is 1 */
  real a, b, n;
  real front;       /* log(x^a y^b / beta(a, b)) */
  real rise;        /* n (a / n - x) */
  real count, mean; /* of a negative binomial variable, else 0 */
  int of_size;      /* whether its size is a */
} incomplete_beta;

/* The variable of the derivative: none, a, b, or the size of a negative binomial variable. */
typedef enum {
  INCOMPLETE_BY_NONE,
  INCOMPLETE_BY_A,
  INCOMPLETE_BY_B,
  INCOMPLETE_BY_SIZE
} incomplete_by;

SCL_INLINE incomplete_beta incomplete_beta_make(real x, real a, real b) {
  const real n = a + b, m = n * x, more = a < b ? a - (n - b) : b - (n - a);
  incomplete_beta t = {x, 1.0 - x, a, b, n, 0.0, 0.0, 0.0, 0.0, 0};
  t.front = special_beta_power_of(x, t.y, a, b);
  t.rise = (a - m) - (fma(n, x, -m) + more * x);
  return t;
}

/* log(k P(Y = k)) for a Poisson count Y with mean k > 0. */
SCL_INLINE real incomplete_count_log(real k) {
  return 0.5 * log(k) - SPECIAL_LOG_SQRT_2PI - special_stirling_rest(k);
}

SCL_INLINE incomplete_beta incomplete_neg_binomial_make(real count, real mean, real size) {
  const real odds = mean / size, inverse = size / mean;
  const real x = odds < 1.0 ? odds / (1.0 + odds) : 1.0 / (1.0 + inverse);
  const real y = odds < 1.0 ? 1.0 / (1.0 + odds) : inverse / (1.0 + inverse);
  incomplete_beta t = {x, y, count, size, count + size, 0.0, 0.0, count, mean, 0};
  t.front = special_neg_binomial(count, mean, size) + incomplete_count_log(count);
  t.rise = (count - mean) * y;
  return t;
}

/* The same of 1 - X. */
SCL_INLINE incomplete_beta incomplete_beta_mirror(incomplete_beta t) {
  incomplete_beta other = {t.y, t.x, t.b, t.a, t.n, t.front, -t.rise, t.count, t.mean, !t.of_size};
  return other;
}

/* The derivative of `front` by a. */
SCL_INLINE real incomplete_beta_score(real x, real y, real a, real b, real rise) {
  const real n = a + b;
  if (a < 12.0) return special_log_share(x, y) + special_digamma_rise(a, b);
  const real part = fabs(rise) < 0.5 * a ? log1p(-rise / a) : special_log_ratio(n * x, a);
  return part + 0.5 * (b / n) / a + (special_stirling_slope(n) - special_stirling_slope(a));
}

SCL_INLINE real incomplete_beta_front_slope(incomplete_beta t, incomplete_by by) {
  if (by == INCOMPLETE_BY_NONE) return 0.0;
  if (by == INCOMPLETE_BY_A) return incomplete_beta_score(t.x, t.y, t.a, t.b, t.rise);
  if (by == INCOMPLETE_BY_B) return incomplete_beta_score(t.y, t.x, t.b, t.a, -t.rise);
  return special_neg_binomial_slope(t.count, t.mean, t.of_size ? t.a : t.b);
}

/* log(P(X <= x)) for a from 1 to 20 and x up to the mean: the series of (n)_j x^j / (a + 1)_j. */
SCL_INLINE real incomplete_beta_series(incomplete_beta t, incomplete_by by, real *slope) {
  const int counted = by == INCOMPLETE_BY_SIZE && !t.of_size;
  real term = 1.0, sum = 1.0, change = 0.0, sum_slope = 0.0;
  for (int j = 0; j < INCOMPLETE_MOST_TERMS && term > 1e-18 * sum; j++) {
    const real next = t.n + j, below = t.a + 1.0 + j;
    if (by == INCOMPLETE_BY_B) change += 1.0 / next;
    if (by == INCOMPLETE_BY_A) change += 1.0 / next - 1.0 / below;
    if (counted) change += (t.mean - t.a - j) / next * (t.y / t.b);
    if (by == INCOMPLETE_BY_SIZE && !counted) change += 1.0 / next - 1.0 / below + t.y / t.a;
    term *= next * t.x / below;
    sum += term;
    sum_slope += term * change;
  }
  *slope = incomplete_beta_front_slope(t, by) + sum_slope / sum;
  if (by == INCOMPLETE_BY_A || (by == INCOMPLETE_BY_SIZE && !counted)) *slope -= 1.0 / t.a;
  return t.front + log(sum / t.a);
}

/* h(u): none of its terms is positive for x up to the mean, and about half of one is lost at most.
 */
SCL_INLINE real incomplete_beta_exponent(incomplete_beta t, real u) {
  const real share = t.x < 0.5 ? t.x : t.y, z = t.x < 0.5 ? -u : u, grown = expm1(z);
  const real sum = 1.0 + share * grown;
  return -t.rise * u -
         t.n * (share * special_expm1_minus(z, grown) + special_log1p_minus(share * grown, sum));
}

/* The u from which on exp(h(u)) is nothing, by Newton's steps; h is concave. */
SCL_INLINE real incomplete_beta_reach(incomplete_beta t) {
  real u = 76.0 / (t.rise + hypot(t.rise, sqrt(76.0 * t.n * t.x * t.y)));
  for (int j = 0; j < 20; j++) {
    const real above = incomplete_beta_exponent(t, u) + 38.0, fall = exp(-u);
    if (fabs(above) < 1.0) break;
    u += above / (t.rise + t.n * t.x * t.y * (-expm1(-u) / (t.y + t.x * fall)));
  }
  return u;
}

/* The derivative of `front` at u, less that at 0; of a negative binomial variable all of it. */
SCL_INLINE real incomplete_beta_move(incomplete_beta t, incomplete_by by, real u) {
  if (by == INCOMPLETE_BY_NONE) return 0.0;
  if (by == INCOMPLETE_BY_A) return -log1p(t.y * expm1(u));
  if (by == INCOMPLETE_BY_B) return -log1p(t.x * expm1(-u));
  if (!t.of_size) return special_neg_binomial_slope(t.count, t.mean * exp(-u), t.b);
  return special_neg_binomial_slope(t.count, t.mean * exp(u), t.a);
}

/* log(P(X <= x)) for a above 20 and x up to the mean, by the quadrature of Gauss and Legendre. */
SCL_INLINE real incomplete_beta_integral(incomplete_beta t, incomplete_by by, real *slope) {
  const real node[INCOMPLETE_NODES] = {
      0.99726386184948156, 0.98561151154526834, 0.96476225558750643, 0.93490607593773969,
      0.89632115576605212, 0.84936761373256997, 0.79448379596794241, 0.73218211874028968,
      0.6630442669302152,  0.58771575724076233, 0.50689990893222939, 0.42135127613063535,
      0.33186860228212765, 0.23928736225213707, 0.14447196158279649, 0.048307665687738316};
  const real weight[INCOMPLETE_NODES] = {
      0.0070186100094700966, 0.016274394730905671, 0.025392065309262059, 0.034273862913021433,
      0.042835898022226681,  0.050998059262376176, 0.058684093478535547, 0.065822222776361847,
      0.072345794108848506,  0.078193895787070306, 0.083311924226946755, 0.087652093004403811,
      0.091173878695763885,  0.093844399080804566, 0.095638720079274859, 0.096540088514727801};
  const real reach = incomplete_beta_reach(t);
  real sum = 0.0, sum_slope = 0.0;
  for (int j = 0; j < 2 * INCOMPLETE_NODES; j++) {
    const real at = j < INCOMPLETE_NODES ? node[j] : -node[j - INCOMPLETE_NODES],
               u = reach * (0.5 + 0.5 * at);
    const real part = weight[j < INCOMPLETE_NODES ? j : j - INCOMPLETE_NODES] *
                      exp(incomplete_beta_exponent(t, u));
    sum += part;
    sum_slope += part * incomplete_beta_move(t, by, u);
  }
  *slope = sum_slope / sum;
  if (by != INCOMPLETE_BY_SIZE) *slope += incomplete_beta_front_slope(t, by);
  return t.front + log(0.5 * reach * sum);
}

/* log(P(X > x)) or log(P(X <= x)) for a below 1 and x near 0, where P(X <= x) = (1 + u) (1 + v)
 * with small u and v. */
SCL_INLINE real incomplete_beta_small(incomplete_beta t, incomplete_by by, real *slope) {
  const real of_a = by == INCOMPLETE_BY_B ? 0.0 : 1.0, of_b = 1.0 - of_a;
  const real of_log_x = by == INCOMPLETE_BY_SIZE ? t.y / t.a : 0.0;
  real term = 1.0, term_slope = 0.0, u = 0.0, u_slope = 0.0;
  for (int j = 1; j < 200 && fabs(term) + fabs(term_slope) > 1e-20; j++) {
    const real factor = (j - t.b) / j * t.x, below = t.a + j;
    term_slope = term_slope * factor - of_b * term * t.x / j;
    term *= factor;
    u += term / below;
    u_slope += of_a * term * (j / below) / below + t.a * (term_slope + of_log_x * j * term) / below;
  }
  u *= t.a;
  const real first = t.a * special_log_share(t.x, t.y) + special_log_gamma_rise(t.b, t.a) -
                     incomplete_log_gamma_1(t.a);
  real first_slope = of_b * special_digamma_rise(t.b, t.a) + t.a * of_log_x;
  if (of_a > 0.0) {
    first_slope +=
        special_log_share(t.x, t.y) + special_digamma(t.n) - special_digamma_right(t.a + 1.0);
  }
  *slope = first_slope + u_slope / (1.0 + u);
  return fmin(first + log1p(u), 0.0);
}

SCL_INLINE int incomplete_beta_is_small(incomplete_beta t) {
  return t.a < 1.0 && t.x <= 0.5 && t.n * t.x <= 1.0;
}

SCL_INLINE real incomplete_beta_tail(incomplete_beta t, int upper, incomplete_by by, real *slope) {
  const incomplete_by back =
      by == INCOMPLETE_BY_A ? INCOMPLETE_BY_B : (by == INCOMPLETE_BY_B ? INCOMPLETE_BY_A : by);
  const incomplete_beta other = incomplete_beta_mirror(t);
  const int small = incomplete_beta_is_small(t), small_other = incomplete_beta_is_small(other);
  const int mirrored = !small && (small_other || t.rise < 0.0);
  const incomplete_beta near = mirrored ? other : t;
  const incomplete_by by_near = mirrored ? back : by;
  real value;
  if (small || small_other) {
    value = incomplete_beta_small(near, by_near, slope);
  } else if (near.a > 20.0) {
    value = incomplete_beta_integral(near, by_near, slope);
  } else {
    value = incomplete_beta_series(near, by_near, slope);
  }
  if (upper != mirrored) value = incomplete_complement(value, slope);
  if (*slope != *slope && fmin(t.a, t.b) < SPECIAL_SMALLEST) *slope = 0.0; /* its parts overflow */
  return value;
}

SCL_INLINE real incomplete_pbeta(real x, real a, real b, int upper, incomplete_by by, real *slope) {
  *slope = NAN;
  if (x != x || !(a > 0.0 && b > 0.0)) return NAN;
  *slope = 0.0;
  if (x <= 0.0 || x >= 1.0) return (x <= 0.0) != upper ? -INFINITY : 0.0;
  if (isinf(a + b)) { /* all mass at the mean */
    const real mean = isinf(a) ? (isinf(b) ? 0.5 : 1.0) : (isinf(b) ? 0.0 : 1.0 / (1.0 + b / a));
    return (x >= mean) != upper ? 0.0 : -INFINITY;
  }
  return incomplete_beta_tail(incomplete_beta_make(x, a, b), upper, by, slope);
}

/* A function of three numbers by one of these: its value, or with another `by` that derivative. */
#define INCOMPLETE_FUNCTION(name, of, upper, by)                                                   \
  SCL_INLINE real incomplete_##name(real x, real a, real b) {                                      \
    real slope;                                                                                    \
    const real value = of(x, a, b, upper, by, &slope);                                             \
    return (by) == INCOMPLETE_BY_NONE ? value : slope;                                             \
  }

/* log(P(X <= x)) of a beta variable X with shapes a and b, log(P(X > x)), and their derivatives by
 * the shapes. */
INCOMPLETE_FUNCTION(log_pbeta, incomplete_pbeta, 0, INCOMPLETE_BY_NONE)
INCOMPLETE_FUNCTION(log_pbeta_slope_a, incomplete_pbeta, 0, INCOMPLETE_BY_A)
INCOMPLETE_FUNCTION(log_pbeta_slope_b, incomplete_pbeta, 0, INCOMPLETE_BY_B)
INCOMPLETE_FUNCTION(log_qbeta, incomplete_pbeta, 1, INCOMPLETE_BY_NONE)
INCOMPLETE_FUNCTION(log_qbeta_slope_a, incomplete_pbeta, 1, INCOMPLETE_BY_A)
INCOMPLETE_FUNCTION(log_qbeta_slope_b, incomplete_pbeta, 1, INCOMPLETE_BY_B)

/* log(P(Y >= k)) or log(P(Y < k)) of a negative binomial count Y with mean m and size s. */
SCL_INLINE real incomplete_neg_binomial(real k, real m, real s, int below, incomplete_by by,
                                        real *slope) {
  const real whole = ceil(k);
  *slope = NAN;
  if (k != k || !(m >= 0.0 && s >= 0.0)) return NAN;
  *slope = 0.0;
  if (k <= 0.0) return below ? -INFINITY : 0.0;
  if (isinf(k) || m == 0.0 || s == 0.0) return below ? 0.0 : -INFINITY;
  if (isinf(m)) return below ? -INFINITY : 0.0;
  if (isinf(s)) {
    const real value = incomplete_gamma(m, whole, below, slope);
    *slope = 0.0;
    return value;
  }
  return incomplete_beta_tail(incomplete_neg_binomial_make(whole, m, s), below, by, slope);
}

INCOMPLETE_FUNCTION(log_pnbinom, incomplete_neg_binomial, 1, INCOMPLETE_BY_NONE)
INCOMPLETE_FUNCTION(log_pnbinom_slope, incomplete_neg_binomial, 1, INCOMPLETE_BY_SIZE)
INCOMPLETE_FUNCTION(log_qnbinom, incomplete_neg_binomial, 0, INCOMPLETE_BY_NONE)
INCOMPLETE_FUNCTION(log_qnbinom_slope, incomplete_neg_binomial, 0, INCOMPLETE_BY_SIZE)

#endif
