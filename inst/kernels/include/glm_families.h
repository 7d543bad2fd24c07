/* Families of generalised linear models: log density of one observation and its derivatives.
 * Single source: OpenCL C and C11.
 *
 * A family is one row of SCL_GLM_FAMILIES and the functions of its name. The row gives the name in
 * capitals and small letters; the test that a value y lies in the support, which may use the datum
 * of the observation (the trials of binomial_logit, else 0); the support in words; the family's
 * auxiliary parameter (scl_glm_aux). The log density of one observation is the sum of three parts:
 *
 *   glm_NAME(y, datum, eta, aux)   the part with the linear predictor, and its derivatives; this
 *                                  runs once a row in passes bound by memory, so that ordinary
 *                                  values take a short path
 *   glm_NAME_value(y, aux)         the part with y and the auxiliary parameter only, and its
 *                                  derivatives; by the host, for the distinct values of y
 *   glm_NAME_constant(y, datum)    the part with the data only; by the host, once
 *
 * All constants of the density are kept. Both tails keep their relative precision: no difference of
 * nearly equal numbers is taken where it can be avoided. */
#ifndef GLM_FAMILIES_H
#define GLM_FAMILIES_H

#define GLM_WHOLE(y) ((y) == floor(y) && (y) < 4503599627370496.0)

#define SCL_GLM_FAMILIES(FAMILY)                                                                   \
  FAMILY(BERNOULLI_LOGIT, bernoulli_logit, y == 0.0 || y == 1.0, "0 or 1", NONE)                   \
  FAMILY(BINOMIAL_LOGIT, binomial_logit, y >= 0.0 && y <= datum && GLM_WHOLE(y),                   \
         "integers from 0 to 'trials'", NONE)                                                      \
  FAMILY(NORMAL_ID, normal_id, isfinite(y), "finite", SIGMA)                                       \
  FAMILY(POISSON_LOG, poisson_log, y >= 0.0 && GLM_WHOLE(y), "non-negative integers", NONE)        \
  FAMILY(NEG_BINOMIAL_2_LOG, neg_binomial_2_log, y >= 0.0 && GLM_WHOLE(y),                         \
         "non-negative integers", PHI)                                                             \
  FAMILY(CATEGORICAL_LOGIT, categorical_logit, y >= 1.0 && y <= GLM_MOST_CLASSES && GLM_WHOLE(y),  \
         "numbers of classes, from 1 to 2000", NONE)                                               \
  FAMILY(ORDERED_LOGISTIC, ordered_logistic, y >= 1.0 && y <= GLM_MOST_CLASSES && GLM_WHOLE(y),    \
         "numbers of classes, from 1 to 2000", CUTS)

#define GLM_MOST_CLASSES 2000 /* sums by cut have to fit into a group's local memory */

typedef enum {
#define GLM_ROW(NAME, name, support, words, aux) SCL_GLM_##NAME,
  SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
      SCL_GLM_FAMILY_COUNT
} scl_glm_family;

/* The auxiliary parameter of a family: sigma or phi, one number; or cuts, one less than classes. */
typedef enum { SCL_GLM_NONE = 0, SCL_GLM_SIGMA, SCL_GLM_PHI, SCL_GLM_CUTS } scl_glm_aux;

/* Facts of a family that a compiler knows when `family` is a constant: whether the predictors of an
 * observation, one for each class, have a joint density; whether there is a datum in addition to y;
 * whether terms have odds (glm_term); the auxiliary parameter. */
#define GLM_FAMILY_COUPLED(family) ((family) == SCL_GLM_CATEGORICAL_LOGIT)
#define GLM_FAMILY_DATUM(family) ((family) == SCL_GLM_BINOMIAL_LOGIT)
#define GLM_FAMILY_ODDS(family)                                                                    \
  ((family) == SCL_GLM_BERNOULLI_LOGIT || (family) == SCL_GLM_ORDERED_LOGISTIC)
#define GLM_FAMILY_AUX(family)                                                                     \
  ((family) == SCL_GLM_NORMAL_ID            ? SCL_GLM_SIGMA                                        \
   : (family) == SCL_GLM_NEG_BINOMIAL_2_LOG ? SCL_GLM_PHI                                          \
   : (family) == SCL_GLM_ORDERED_LOGISTIC   ? SCL_GLM_CUTS                                         \
                                            : SCL_GLM_NONE)

/* Weights are stored after y, and after the datum if there is one. */
#define GLM_WEIGHT_COLUMN(family) (GLM_FAMILY_DATUM(family) ? 2 : 1)

/* The log density is value - log(1 + odds), NaN when eta is NaN or infinite. Only families named by
 * GLM_FAMILY_ODDS have odds; where many terms are added, one logarithm of a product serves. */
typedef struct {
  real value, odds;
  real d_eta; /* the derivative by eta */
  real d_aux; /* by sigma or phi, or by the cut above the class */
  real d_low; /* by the cut below the class */
} glm_term;

/* The auxiliary parameter for one observation. */
typedef struct {
  real value, log_value, inverse; /* of sigma or phi */
  real above, below;          /* the cuts on both sides of the class; infinite at the ends */
} glm_aux;

SCL_INLINE glm_aux glm_aux_none(void) {
  glm_aux aux = {0.0, 0.0, 0.0, 0.0, 0.0};
  return aux;
}

SCL_INLINE glm_aux glm_aux_number(real number) {
  glm_aux aux = {number, log(number), 1.0 / number, 0.0, 0.0};
  return aux;
}

/* In the form in which kernels get it: the number, its logarithm and its inverse. */
SCL_INLINE glm_aux glm_aux_given(SCL_GLOBAL const real *given) {
  glm_aux aux = {given[0], given[1], given[2], 0.0, 0.0};
  return aux;
}

SCL_INLINE glm_aux glm_aux_cuts(SCL_GLOBAL const real *cut, int cuts, real y) {
  const int above = (int)y - 1;
  glm_aux aux = {0.0, 0.0, 0.0, INFINITY, -INFINITY};
  if (above < cuts) aux.above = cut[above];
  if (above > 0) aux.below = cut[above - 1];
  return aux;
}

/* ---- what the families share -------------------------------------------------------------------
 */

/* 0, or NaN at an infinity. */
#define GLM_NAN_IF_INFINITE(eta) (0.0 * (eta))

/* y eta, mean and log(y!) grow with the count, their sum does not. From this count on the three are
 * taken together: a term is then the log density minus its largest value for this y, attained at
 * mean y, and the constant is that largest value. */
#define GLM_MANY(y) ((y) >= 256.0)

/* eta - log(y) for y > 0, a normal number. Powers of two come off both sides first: the absolute
 * error is that of numbers below 1, however large eta is, as long as the difference is small. */
SCL_INLINE real glm_log_excess(real eta, real y) {
  union {
    real number;
    scl_long bits;
  } part;
  part.number = y;
  const scl_long above = part.bits - 0x3fe6a09e667f3bcd; /* the bits of sqrt(1/2) */
  const real k = (real)(above >> 52);
  part.bits -= above & ~(scl_long)0xfffffffffffff; /* y / 2^k, from sqrt(1/2) to sqrt(2) */
  /* log(2) in two parts, of which k times the first is exact */
  return (eta - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10 - log(part.number);
}

/* t = exp(x) - 1; *rest becomes t - x. The series is written out because compilers for hosts divide
 * in loops that they do not unroll. */
SCL_INLINE real glm_expm1(real x, real *rest) {
  real sum = 1.0 / 6227020800.0;
  if (!(fabs(x) < 0.25)) {
    const real t = expm1(x);
    *rest = t - x;
    return t;
  }
  sum = 1.0 / 479001600.0 + x * sum;
  sum = 1.0 / 39916800.0 + x * sum;
  sum = 1.0 / 3628800.0 + x * sum;
  sum = 1.0 / 362880.0 + x * sum;
  sum = 1.0 / 40320.0 + x * sum;
  sum = 1.0 / 5040.0 + x * sum;
  sum = 1.0 / 720.0 + x * sum;
  sum = 1.0 / 120.0 + x * sum;
  sum = 1.0 / 24.0 + x * sum;
  sum = 1.0 / 6.0 + x * sum;
  sum = 1.0 / 2.0 + x * sum;
  *rest = x * x * sum;
  return x + *rest;
}

/* log(1 + v) - v for |v| below 1/64. */
SCL_INLINE real glm_log1p_minus_small(real v) {
  const real s = v / (2.0 + v), w = s * s;
  return s * (2.0 * w * (1.0 / 3.0 + w * (1.0 / 5.0 + w * (1.0 / 7.0 + w * (1.0 / 9.0)))) - v);
}

/* log(1 + v) - v for v >= -1/2. */
SCL_INLINE real glm_log1p_minus(real v) {
  const real s = v / (2.0 + v), w = s * s; /* log(1 + v) = 2 atanh(s) */
  real sum = 1.0 / 21.0;
  if (!(fabs(v) < 0.25)) return log1p(v) - v;
  sum = 1.0 / 19.0 + w * sum;
  sum = 1.0 / 17.0 + w * sum;
  sum = 1.0 / 15.0 + w * sum;
  sum = 1.0 / 13.0 + w * sum;
  sum = 1.0 / 11.0 + w * sum;
  sum = 1.0 / 9.0 + w * sum;
  sum = 1.0 / 7.0 + w * sum;
  sum = 1.0 / 5.0 + w * sum;
  sum = 1.0 / 3.0 + w * sum;
  return s * (2.0 * w * sum - v);
}

/* For a successes and b failures, 0 < a <= b, and log odds of log(a / b) + d: the log likelihood
 * minus its maximum, a d - (a + b) log(1 + a (exp(d) - 1) / (a + b)), and its derivatives with
 * respect to d, a and b. */
typedef struct {
  real value, by_d, by_a, by_b;
} glm_shortfall;

SCL_INLINE glm_shortfall glm_two_counts(real a, real b, real d) {
  const real n = a + b, x = a / n, rest = b / n;
  glm_shortfall s;
  if (d > 300.0) { /* exp(d) may overflow, and x underflow */
    const real w = d + (log(a) - log(n)), e = exp(-fabs(w));
    const real logarithm = fmax(w, 0.0) + log1p(e), share = (w > 0.0 ? 1.0 : e) / (1.0 + e);
    s.value = a * d - n * logarithm;
    s.by_d = -b * share;
    s.by_a = d - logarithm - rest / (exp(-d) + x);
    s.by_b = share - logarithm;
    return s;
  }
  real more;
  const real t = glm_expm1(d, &more), v = x * t, part = t / (1.0 + v);
  s.by_d = -a * rest * part;
  if (v > 1.0) {
    const real logarithm = log1p(v);
    s.value = a * d - n * logarithm;
    s.by_a = d - logarithm - rest * part;
    s.by_b = x * part - logarithm;
  } else {
    const real less = glm_log1p_minus(v);
    s.value = -a * more - n * less;
    s.by_a = rest * v * part - more - less;
    s.by_b = -less - v * x * part;
  }
  return s;
}

/* ---- the families ------------------------------------------------------------------------------
 */

/* y is 0 or 1: log of 1 / (1 + exp(-t)), where t is eta for y = 1 and -eta for y = 0. */
SCL_INLINE glm_term glm_bernoulli_logit(real y, real datum, real eta, glm_aux aux) {
  const real sign = y + y - 1.0;
  const real t = sign * eta;
  const real e = exp(-fabs(t));
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)datum;
  (void)aux;
  term.value = fmin(t, 0.0) + GLM_NAN_IF_INFINITE(eta);
  term.odds = e;
  term.d_eta = sign * (t > 0.0 ? e : 1.0) / (1.0 + e);
  return term;
}

/* y successes of `datum` trials with log odds eta: y eta - N log(1 + exp(eta)), with the larger of
 * both tails split off, so that N = y and y = 0 cancel exactly. */
SCL_INLINE glm_term glm_binomial_logit(real y, real datum, real eta, glm_aux aux) {
  const real failures = datum - y;
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)aux;
  term.value = GLM_NAN_IF_INFINITE(eta);
  if (GLM_MANY(fmin(y, failures))) {
    const real ratio = y / failures, lost = fma(-ratio, failures, y) / y;
    const real d = glm_log_excess(eta, ratio) - lost, sign = y > failures ? -1.0 : 1.0;
    const glm_shortfall s = glm_two_counts(fmin(y, failures), fmax(y, failures), sign * d);
    term.value += s.value;
    term.d_eta = sign * s.by_d;
  } else {
    const real e = exp(-fabs(eta));
    const real rest = eta > 0.0 ? -failures : y; /* of y eta - N max(eta, 0) */
    term.value += rest * eta - datum * log1p(e);
    term.d_eta = (rest + (eta > 0.0 ? y : -failures) * e) / (1.0 + e);
  }
  return term;
}

/* Mean eta, standard deviation sigma. */
SCL_INLINE glm_term glm_normal_id(real y, real datum, real eta, glm_aux aux) {
  const real z = (y - eta) * aux.inverse;
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)datum;
  term.value = -0.5 * z * z - aux.log_value + GLM_NAN_IF_INFINITE(eta);
  term.d_eta = z * aux.inverse;
  term.d_aux = (z - 1.0) * (z + 1.0) * aux.inverse;
  return term;
}

/* Mean exp(eta). */
SCL_INLINE glm_term glm_poisson_log(real y, real datum, real eta, glm_aux aux) {
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)datum;
  (void)aux;
  term.value = GLM_NAN_IF_INFINITE(eta);
  if (GLM_MANY(y)) {
    real rest;
    term.d_eta = -y * glm_expm1(glm_log_excess(eta, y), &rest);
    term.value -= y * rest;
  } else {
    const real mean = exp(eta);
    term.value += y * eta - mean;
    term.d_eta = y - mean;
  }
  return term;
}

/* Mean mu = exp(eta), variance mu + mu^2 / phi. With n = y + phi, and m = n, or m = phi where y is
 * 0 or 1, this is y eta - n log((mu + phi) / m); for many y, less y log(y). */
SCL_INLINE glm_term glm_neg_binomial_2_log(real y, real datum, real eta, glm_aux aux) {
  const real phi = aux.value, n = y + phi, mean = exp(eta);
  const real base = y > 1.0 ? y : 0.0, m = base + phi;
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)datum;
  term.value = GLM_NAN_IF_INFINITE(eta);
  if (GLM_MANY(y)) { /* of y successes and phi failures */
    const real d = glm_log_excess(eta, y), sign = phi < y ? -1.0 : 1.0;
    const glm_shortfall s = glm_two_counts(fmin(y, phi), fmax(y, phi), sign * d);
    term.value += s.value;
    term.d_eta = sign * s.by_d;
    term.d_aux = phi < y ? s.by_a : s.by_b;
    return term;
  }
  if (mean <= 1e4 * n) {
    const real sum = mean + phi, product = m * sum, apart = mean - base;
    real inverse, v; /* 1 / sum and apart / m, by one division where it does not overflow */
    if (product > 1e-290 && product < 1e290) {
      const real both = 1.0 / product;
      inverse = m * both;
      v = apart * (sum * both);
    } else {
      inverse = 1.0 / fmax(sum, 2.3e-308);
      v = apart / m;
    }
    const real share = apart * inverse; /* v / (1 + v) */
    if (fabs(v) < 0.015625) {
      const real less = glm_log1p_minus_small(v);
      term.value += y * eta - apart * (y > 1.0 ? 1.0 : n / m) - n * less;
      term.d_aux = -less - v * share;
    } else { /* log(sum / m), by the argument that is not close to -1 */
      const real size = log1p(v < 0.0 ? -share : v), logarithm = v < 0.0 ? -size : size;
      term.value += y * eta - n * logarithm;
      term.d_aux = share - logarithm;
    }
    term.d_eta = phi * inverse * (y - mean);
    if (y == 1.0) term.d_aux += mean * inverse / phi;
  } else { /* without mu, which may overflow; f is phi / mu */
    const real f = exp(aux.log_value - eta), log1p_f = log1p(f), inverse = 1.0 / (1.0 + f);
    const real log_m = y > 1.0 ? log(m) : aux.log_value, part = y > 0.0 ? y * exp(-eta) : 0.0;
    term.value += phi * (log_m - eta) - n * log1p_f + y * log_m;
    term.d_eta = phi * (part - 1.0) * inverse;
    term.d_aux = (y > 1.0 ? 1.0 - part : 1.0) * inverse - ((eta - log_m) + log1p_f);
    if (y == 1.0) term.d_aux += inverse / phi;
  }
  return term;
}

/* The class is where eta + logistic noise falls between the cuts: with u = above - eta and
 * l = below - eta, log(1 / (1 + exp(-u)) - 1 / (1 + exp(-l))) = -log(1 + exp(-u))
 * - log(1 + exp(l)) + log(1 - exp(l - u)), of which the last is for
 * glm_ordered_logistic_value(). */
SCL_INLINE glm_term glm_ordered_logistic(real y, real datum, real eta, glm_aux aux) {
  const real t_up = eta - aux.above, t_low = aux.below - eta; /* at most one is positive */
  const real up = exp(-fabs(t_up)), low = exp(-fabs(t_low)), both = up * low;
  const real inverse = 1.0 / ((1.0 + up) * (1.0 + low));
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)y;
  (void)datum;
  term.value = -fmax(t_up, 0.0) - fmax(t_low, 0.0) + GLM_NAN_IF_INFINITE(eta);
  term.odds = up + low + both;
  term.d_aux = (t_up > 0.0 ? 1.0 + low : up + both) * inverse;
  term.d_low = -(t_low > 0.0 ? 1.0 + up : low + both) * inverse;
  term.d_eta = (t_up > 0.0 ? both - 1.0 : t_low > 0.0 ? 1.0 - both : low - up) * inverse;
  return term;
}

/* Coupled families have glm_classes() instead. */
SCL_INLINE glm_term glm_categorical_logit(real y, real datum, real eta, glm_aux aux) {
  glm_term term = {NAN, 0.0, NAN, NAN, NAN};
  (void)y;
  (void)datum;
  (void)eta;
  (void)aux;
  return term;
}

/* The term of any family that is not coupled. `family` is the same for all work-items. */
SCL_INLINE glm_term glm_family_term(int family, real y, real datum, real eta, glm_aux aux) {
  glm_term none = {NAN, 0.0, NAN, NAN, NAN};
  switch (family) {
#define GLM_ROW(NAME, name, support, words, parameter)                                             \
  case SCL_GLM_##NAME:                                                                             \
    return glm_##name(y, datum, eta, aux);
    SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
  default:
    return none;
  }
}

SCL_INLINE real glm_term_value(int family, glm_term term) {
  return GLM_FAMILY_ODDS(family) ? term.value - log1p(term.odds) : term.value;
}

/* The derivatives of an observation that counts `times`. */
SCL_INLINE glm_term glm_term_times(glm_term term, real times) {
  term.d_eta *= times;
  term.d_aux *= times;
  term.d_low *= times;
  return term;
}

/* A product of factors 1 + odds and its rounding errors, so that the logarithm keeps its relative
 * precision where all odds are small. */
typedef struct {
  real product, error;
} glm_odds_product;

/* Returns the logarithm of the factor that the product has to shed before it overflows, mostly
 * 0. */
SCL_INLINE real glm_multiply_odds(glm_odds_product *p, real odds) {
  const real factor = 1.0 + odds, lost = odds - (factor - 1.0);
  const real product = p->product * factor;
  p->error = fma(p->error, factor, fma(p->product, lost, fma(p->product, factor, -product)));
  p->product = product;
  if (product < 1e200) return 0.0;
  const real logarithm = log(product) + p->error / product;
  p->product = 1.0;
  p->error = 0.0;
  return logarithm;
}

/* categorical_logit: the log density of class y, whose predictors, one for each class, stand `step`
 * apart and become the derivatives by themselves. With the largest predictor subtracted from all,
 * and `rest` the sum of the others' exponentials, it is the observed class's less log(1 + rest). */
#define GLM_CLASSES(name, SPACE)                                                                   \
  SCL_INLINE real name(real y, SPACE real *eta, scl_long step, int classes) {                      \
    const int observed = (int)y - 1;                                                               \
    real most = eta[0], rest = 0.0, others = 0.0, check = 0.0;                                     \
    int top = 0;                                                                                   \
    for (int c = 0; c < classes; c++) {                                                            \
      const real here = eta[c * step];                                                             \
      if (here > most) top = c;                                                                    \
      most = fmax(most, here);                                                                     \
      check += GLM_NAN_IF_INFINITE(here);                                                          \
    }                                                                                              \
    const real mine = eta[observed * step] - most;                                                 \
    for (int c = 0; c < classes; c++) {                                                            \
      const real e = exp(eta[c * step] - most);                                                    \
      eta[c * step] = e;                                                                           \
      if (c != top) rest += e;                                                                     \
      if (c != observed) others += e;                                                              \
    }                                                                                              \
    const real inverse = 1.0 / (1.0 + rest);                                                       \
    for (int c = 0; c < classes; c++) eta[c * step] *= -inverse;                                   \
    eta[observed * step] = others * inverse;                                                       \
    return mine - log1p(rest) + check;                                                             \
  }
GLM_CLASSES(glm_classes, SCL_GLOBAL)

#ifndef __OPENCL_VERSION__
#include "glm_values.h"
#endif
#endif
