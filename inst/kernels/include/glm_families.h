/* Families of generalised linear models: log density of one observation and its derivatives.
 * Single source: OpenCL C and C11.
 *
 * A family is one row of SCL_GLM_FAMILIES and the functions of its name. The row gives the name in
 * capitals and small letters; the test that a value y lies in the support, which may use the datum
 * of the observation (the trials of binomial_logit, else 0); the support in words; the family's
 * auxiliary parameter (scl_glm_aux) and facts. The log density of one observation is the sum of
 * three parts:
 *
 *   glm_NAME(y, datum, eta, aux)   the part with the linear predictor, and its derivatives; this
 *                                  runs once a row in passes bound by memory, so that ordinary
 *                                  values take a short path
 *   glm_NAME_value(y, aux)         the part with y and the auxiliary parameter only, and its
 *                                  derivatives; by the host, for the distinct values of y
 *   glm_NAME_constant(y, datum)    the part with the data only; by the host, once
 *
 * and glm_NAME_curve(y, datum, eta, aux) is its second derivative (glm_curve), by the host.
 *
 * All constants of the density are kept. Both tails keep their relative precision: no difference of
 * nearly equal numbers is taken where it can be avoided. */
#ifndef GLM_FAMILIES_H
#define GLM_FAMILIES_H

#ifndef __OPENCL_VERSION__
#include "glm_terms.h"
#include "glm_values.h"
#endif

/* The auxiliary parameter of a family: sigma or phi, one number; or cuts, one less than classes. */
typedef enum { SCL_GLM_NONE = 0, SCL_GLM_SIGMA, SCL_GLM_PHI, SCL_GLM_CUTS } scl_glm_aux;

/* Facts of a family, added to its auxiliary parameter: a datum in addition to y; the predictors of
 * an observation, one for each class, have a joint density; terms have odds (glm_term); work-items
 * of a GPU's pass take few registers; y is 0 or 1, and there is no constant. */
enum { GLM_DATUM = 4, GLM_JOINT = 8, GLM_ODDS = 16, GLM_LEAN = 32, GLM_BINARY = 64 };

#define GLM_WHOLE(y) ((y) == floor(y) && (y) < 4503599627370496.0)

#define SCL_GLM_FAMILIES(FAMILY)                                                                   \
  FAMILY(BERNOULLI_LOGIT, bernoulli_logit, y == 0.0 || y == 1.0, "0 or 1",                         \
         GLM_ODDS | GLM_LEAN | GLM_BINARY)                                                         \
  FAMILY(BINOMIAL_LOGIT, binomial_logit, y >= 0.0 && y <= datum && GLM_WHOLE(y),                   \
         "integers from 0 to 'trials'", GLM_DATUM)                                                 \
  FAMILY(NORMAL_ID, normal_id, isfinite(y), "finite", SCL_GLM_SIGMA | GLM_LEAN)                    \
  FAMILY(POISSON_LOG, poisson_log, y >= 0.0 && GLM_WHOLE(y), "non-negative integers", 0)           \
  FAMILY(NEG_BINOMIAL_2_LOG, neg_binomial_2_log, y >= 0.0 && GLM_WHOLE(y),                         \
         "non-negative integers", SCL_GLM_PHI)                                                     \
  FAMILY(CATEGORICAL_LOGIT, categorical_logit, y >= 1.0 && y <= GLM_MOST_CLASSES && GLM_WHOLE(y),  \
         "numbers of classes, from 1 to 2000", GLM_JOINT | GLM_LEAN)                               \
  FAMILY(ORDERED_LOGISTIC, ordered_logistic, y >= 1.0 && y <= GLM_MOST_CLASSES && GLM_WHOLE(y),    \
         "numbers of classes, from 1 to 2000", SCL_GLM_CUTS | GLM_ODDS)

#define GLM_MOST_CLASSES 2000 /* sums by cut have to fit into a group's local memory */

typedef enum {
#define GLM_ROW(NAME, name, support, words, facts) SCL_GLM_##NAME,
  SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
      SCL_GLM_FAMILY_COUNT
} scl_glm_family;

/* The families that have each bit of the facts, so that a compiler knows them when `family` is a
 * constant. */
#define GLM_BIT(bit, NAME, facts) | ((facts) / (bit) % 2) << SCL_GLM_##NAME
#define GLM_IN_1(NAME, name, support, words, facts) GLM_BIT(1, NAME, facts)
#define GLM_IN_2(NAME, name, support, words, facts) GLM_BIT(2, NAME, facts)
#define GLM_IN_DATUM(NAME, name, support, words, facts) GLM_BIT(GLM_DATUM, NAME, facts)
#define GLM_IN_JOINT(NAME, name, support, words, facts) GLM_BIT(GLM_JOINT, NAME, facts)
#define GLM_IN_ODDS(NAME, name, support, words, facts) GLM_BIT(GLM_ODDS, NAME, facts)
#define GLM_IN_LEAN(NAME, name, support, words, facts) GLM_BIT(GLM_LEAN, NAME, facts)
#define GLM_IN_BINARY(NAME, name, support, words, facts) GLM_BIT(GLM_BINARY, NAME, facts)
enum {
  GLM_WITH_1 = 0 SCL_GLM_FAMILIES(GLM_IN_1),
  GLM_WITH_2 = 0 SCL_GLM_FAMILIES(GLM_IN_2),
  GLM_WITH_DATUM = 0 SCL_GLM_FAMILIES(GLM_IN_DATUM),
  GLM_WITH_JOINT = 0 SCL_GLM_FAMILIES(GLM_IN_JOINT),
  GLM_WITH_ODDS = 0 SCL_GLM_FAMILIES(GLM_IN_ODDS),
  GLM_WITH_LEAN = 0 SCL_GLM_FAMILIES(GLM_IN_LEAN),
  GLM_WITH_BINARY = 0 SCL_GLM_FAMILIES(GLM_IN_BINARY)
};
#define GLM_IS(fact, family) ((GLM_WITH_##fact >> (family)) & 1)
#define GLM_FAMILY_COUPLED(family) GLM_IS(JOINT, family)
#define GLM_FAMILY_DATUM(family) GLM_IS(DATUM, family)
#define GLM_FAMILY_ODDS(family) GLM_IS(ODDS, family)
#define GLM_FAMILY_AUX(family) ((scl_glm_aux)(GLM_IS(1, family) + 2 * GLM_IS(2, family)))

/* Weights are stored after y, and after the datum if there is one. */
#define GLM_WEIGHT_COLUMN(family) (GLM_FAMILY_DATUM(family) ? 2 : 1)

/* ---- the families ------------------------------------------------------------------------------
 */

/* y is 0 or 1: log of 1 / (1 + exp(-t)), where t is eta for y = 1 and -eta for y = 0. */
SCL_INLINE glm_term glm_bernoulli_logit(real y, real datum, real eta, glm_aux aux) {
  const real sign = y + y - 1.0;
  const real t = sign * eta;
  const real e = glm_exp_minus(fabs(t));
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)datum;
  (void)aux;
  term.value = (t > 0.0 ? 0.0 : t) + GLM_NAN_IF_INFINITE(eta);
  term.odds = e;
  term.d_eta = sign * (t > 0.0 ? e : 1.0) * glm_inverse(1.0 + e);
  return term;
}

#ifndef __OPENCL_VERSION__
GLM_NO_CONSTANT(bernoulli_logit)

GLM_NO_VALUE(bernoulli_logit)

static inline glm_curve glm_bernoulli_logit_curve(real y, real datum, real eta, glm_aux aux) {
  glm_curve curve = {0};
  (void)y;
  (void)datum;
  (void)aux;
  curve.weight = glm_spread(eta, &curve.d_weight);
  return curve;
}
#endif

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

#ifndef __OPENCL_VERSION__
static inline real glm_binomial_logit_constant(real y, real datum) {
  return GLM_MANY(fmin(y, datum - y)) ? glm_best_binomial(datum, y) : glm_log_choose(datum, y);
}

GLM_NO_VALUE(binomial_logit)

static inline glm_curve glm_binomial_logit_curve(real y, real datum, real eta, glm_aux aux) {
  glm_curve curve = glm_bernoulli_logit_curve(y, 1.0, eta, aux);
  curve.weight *= datum;
  curve.d_weight *= datum;
  return curve;
}
#endif

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

#ifndef __OPENCL_VERSION__
static inline real glm_normal_id_constant(real y, real datum) {
  (void)y;
  (void)datum;
  return -SPECIAL_LOG_SQRT_2PI;
}

GLM_NO_VALUE(normal_id)

static inline glm_curve glm_normal_id_curve(real y, real datum, real eta, glm_aux aux) {
  glm_curve curve = {0};
  (void)datum;
  curve.weight = aux.inverse * aux.inverse;
  curve.score_aux = -2.0 * (y - eta) * curve.weight * aux.inverse;
  curve.weight_aux = -2.0 * curve.weight * aux.inverse;
  return curve;
}
#endif

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

#ifndef __OPENCL_VERSION__
static inline real glm_poisson_log_constant(real y, real datum) {
  (void)datum;
  return GLM_MANY(y) ? glm_best_poisson(y) : -glm_log_factorial(y);
}

GLM_NO_VALUE(poisson_log)

static inline glm_curve glm_poisson_log_curve(real y, real datum, real eta, glm_aux aux) {
  glm_curve curve = {0};
  (void)y;
  (void)datum;
  (void)aux;
  curve.weight = curve.d_weight = exp(eta);
  return curve;
}
#endif

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

#ifndef __OPENCL_VERSION__
static inline real glm_neg_binomial_2_log_constant(real y, real datum) {
  return glm_poisson_log_constant(y, datum);
}

/* log(gamma(n) / gamma(phi)) + phi log(phi) - n log(n), where n = y + phi, plus y if y is many; its
 * derivative with respect to phi. */
static inline glm_term glm_neg_binomial_2_log_value(real y, glm_aux aux) {
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  const real phi = fmax(aux.value, SPECIAL_SMALLEST);
  if (y < 2.0) return term; /* both are 0 with what the other part has */
  term.value = special_neg_binomial_rest(y, phi) - (GLM_MANY(y) ? 0.0 : y);
  term.d_aux = special_neg_binomial_rest_slope(0.0, y, phi);
  return term;
}

/* With p = mu / (mu + phi) and q = 1 - p the weight is (y + phi) p q, where phi p = mu q. */
static inline glm_curve glm_neg_binomial_2_log_curve(real y, real datum, real eta, glm_aux aux) {
  const real phi = aux.value, t = eta - aux.log_value;
  const real p = 1.0 / (1.0 + exp(-t)), q = 1.0 / (1.0 + exp(t)), root = exp(eta / 2.0) * q;
  glm_curve curve = {0};
  real unused;
  (void)datum;
  /* if phi is very large, mu / phi may underflow */
  curve.weight = phi < 1.0 ? (y + phi) * glm_spread(t, &unused) : (1.0 + y / phi) * (root * root);
  curve.d_weight = curve.weight * (q - p);
  curve.score_aux = (y * q - phi * p) * p / phi;
  curve.weight_aux = p * q * (2.0 * phi * p + y * (p - q)) / phi;
  return curve;
}
#endif

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

#ifndef __OPENCL_VERSION__
GLM_NO_CONSTANT(ordered_logistic)

/* log(1 - exp(below - above)), by both cuts. */
static inline glm_term glm_ordered_logistic_value(real y, glm_aux aux) {
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  const real gap = aux.above - aux.below;
  (void)y;
  if (isinf(gap)) return term;
  term.value = gap > 0.693 ? log1p(-exp(-gap)) : log(-expm1(-gap));
  term.d_aux = 1.0 / expm1(gap);
  term.d_low = -term.d_aux;
  return term;
}

static inline glm_curve glm_ordered_logistic_curve(real y, real datum, real eta, glm_aux aux) {
  glm_curve curve = {0};
  (void)y;
  (void)datum;
  curve.score_aux = glm_spread(aux.above - eta, &curve.weight_aux);
  curve.score_low = glm_spread(aux.below - eta, &curve.weight_low);
  curve.weight = curve.score_aux + curve.score_low;
  curve.d_weight = -(curve.weight_aux + curve.weight_low);
  return curve;
}
#endif

/* Coupled families have glm_classes() instead. */
SCL_INLINE glm_term glm_categorical_logit(real y, real datum, real eta, glm_aux aux) {
  glm_term term = {NAN, 0.0, NAN, NAN, NAN};
  (void)y;
  (void)datum;
  (void)eta;
  (void)aux;
  return term;
}

#ifndef __OPENCL_VERSION__
GLM_NO_CONSTANT(categorical_logit)

GLM_NO_VALUE(categorical_logit)

/* Coupled families have a weight for each pair of classes. */
static inline glm_curve glm_categorical_logit_curve(real y, real datum, real eta, glm_aux aux) {
  glm_curve curve = {NAN, NAN, NAN, NAN, NAN, NAN};
  (void)y;
  (void)datum;
  (void)eta;
  (void)aux;
  return curve;
}
#endif

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

#ifndef __OPENCL_VERSION__
static inline real glm_family_constant(int family, real y, real datum) {
  switch (family) {
#define GLM_ROW(NAME, name, support, words, facts)                                                 \
  case SCL_GLM_##NAME:                                                                             \
    return glm_##name##_constant(y, datum);
    SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
  default:
    return NAN;
  }
}

static inline glm_term glm_family_value(int family, real y, glm_aux aux) {
  glm_term none = {NAN, 0.0, NAN, NAN, NAN};
  switch (family) {
#define GLM_ROW(NAME, name, support, words, facts)                                                 \
  case SCL_GLM_##NAME:                                                                             \
    return glm_##name##_value(y, aux);
    SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
  default:
    return none;
  }
}

static inline glm_curve glm_family_curve(int family, real y, real datum, real eta, glm_aux aux) {
  glm_curve none = {NAN, NAN, NAN, NAN, NAN, NAN};
  switch (family) {
#define GLM_ROW(NAME, name, support, words, facts)                                                 \
  case SCL_GLM_##NAME:                                                                             \
    return glm_##name##_curve(y, datum, eta, aux);
    SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
  default:
    return none;
  }
}
#endif

SCL_INLINE real glm_term_value(int family, glm_term term) {
  return GLM_FAMILY_ODDS(family) ? term.value - log1p(term.odds) : term.value;
}

#endif
