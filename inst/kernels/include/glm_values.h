/* Terms that the host adds to those of glm_families.h, which includes this file: the parts of a log
 * density that do not depend on a linear predictor. C11 only. */
#ifndef GLM_VALUES_H
#define GLM_VALUES_H

#include "special_functions.h"

#include "special_density.h"

/* log(gamma(z + r) / gamma(z)) - r log(z) for z >= 16, r >= 0. */
static inline real glm_log_rising(real z, real r) {
  const real ratio = r / z;
  return (r - 0.5) * ratio + (z + r - 0.5) * glm_log1p_minus(ratio) + special_stirling(z + r) -
         special_stirling(z);
}

/* log(gamma(n) / gamma(phi)) + phi log(phi) - n log(n), where n = y + phi, plus y if y is many; its
 * derivative with respect to phi. */
static inline glm_term glm_neg_binomial_2_log_value(real y, glm_aux aux) {
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  const real phi = fmax(aux.value, SPECIAL_SMALLEST);
  if (y < 2.0) return term; /* both are 0 with what the other part has */
  term.value = special_neg_binomial_rest(y, phi) - (GLM_MANY(y) ? 0.0 : y);
  term.d_aux = special_neg_binomial_rest_slope(y, phi);
  return term;
}

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

static inline real glm_log_factorial(real y) {
  return special_log_gamma(y + 1.0);
}

/* The largest log density of any Poisson distribution at y, for many y. */
static inline real glm_best_poisson(real y) {
  return -SPECIAL_LOG_SQRT_2PI - 0.5 * log(y) - special_stirling(y);
}

/* log of the binomial coefficient, also of numbers that are not whole, from Stirling's series where
 * the factorials are large and nearly cancel; k or n - k is small. */
static inline real glm_log_choose(real n, real k) {
  const real small = fmin(k, n - k), large = n - small;
  if (small == 0.0) return 0.0;
  if (large < 16.0) return glm_log_factorial(n) - glm_log_factorial(k) - glm_log_factorial(n - k);
  /* log((large + 1) ... (large + small)) - log(small!), with z = large + 1 */
  const real z = large + 1.0;
  return small * log(z) + glm_log_rising(z, small) - glm_log_factorial(small);
}

/* The largest log density of any binomial distribution at many y, many n - y. */
static inline real glm_best_binomial(real n, real y) {
  const real rest = n - y;
  return -SPECIAL_LOG_SQRT_2PI - 0.5 * log(y * (rest / n)) + special_stirling(n) -
         special_stirling(y) - special_stirling(rest);
}

static inline real glm_family_constant(int family, real y, real datum) {
  switch (family) {
  case SCL_GLM_BINOMIAL_LOGIT:
    return GLM_MANY(fmin(y, datum - y)) ? glm_best_binomial(datum, y) : glm_log_choose(datum, y);
  case SCL_GLM_NORMAL_ID:
    return -SPECIAL_LOG_SQRT_2PI;
  case SCL_GLM_POISSON_LOG:
  case SCL_GLM_NEG_BINOMIAL_2_LOG:
    return GLM_MANY(y) ? glm_best_poisson(y) : -glm_log_factorial(y);
  default:
    return 0.0;
  }
}

static inline glm_term glm_family_value(int family, real y, glm_aux aux) {
  glm_term none = {0.0, 0.0, 0.0, 0.0, 0.0};
  if (family == SCL_GLM_NEG_BINOMIAL_2_LOG) return glm_neg_binomial_2_log_value(y, aux);
  if (family == SCL_GLM_ORDERED_LOGISTIC) return glm_ordered_logistic_value(y, aux);
  return none;
}

/* ---- second derivatives ------------------------------------------------------------------------
 */

/* The weight of an observation, minus the second derivative of its log density by eta, and that
 * one's derivative by eta; the derivatives of d_eta and of the weight by sigma, phi or the cut
 * above the class, and by the cut below it. */
typedef struct {
  real weight, d_weight;
  real score_aux, weight_aux, score_low, weight_low;
} glm_curve;

/* The density of the logistic distribution, and its derivative in *slope. */
static inline real glm_spread(real t, real *slope) {
  const real e = exp(-fabs(t)), spread = e / ((1.0 + e) * (1.0 + e));
  *slope = spread * (t > 0.0 ? e - 1.0 : 1.0 - e) / (1.0 + e);
  return spread;
}

static inline glm_curve glm_bernoulli_logit_curve(real y, real datum, real eta, glm_aux aux) {
  glm_curve curve = {0};
  (void)y;
  (void)datum;
  (void)aux;
  curve.weight = glm_spread(eta, &curve.d_weight);
  return curve;
}

static inline glm_curve glm_binomial_logit_curve(real y, real datum, real eta, glm_aux aux) {
  glm_curve curve = glm_bernoulli_logit_curve(y, 1.0, eta, aux);
  curve.weight *= datum;
  curve.d_weight *= datum;
  return curve;
}

static inline glm_curve glm_normal_id_curve(real y, real datum, real eta, glm_aux aux) {
  glm_curve curve = {0};
  (void)datum;
  curve.weight = aux.inverse * aux.inverse;
  curve.score_aux = -2.0 * (y - eta) * curve.weight * aux.inverse;
  curve.weight_aux = -2.0 * curve.weight * aux.inverse;
  return curve;
}

static inline glm_curve glm_poisson_log_curve(real y, real datum, real eta, glm_aux aux) {
  glm_curve curve = {0};
  (void)y;
  (void)datum;
  (void)aux;
  curve.weight = curve.d_weight = exp(eta);
  return curve;
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

/* Coupled families have a weight for each pair of classes. */
static inline glm_curve glm_categorical_logit_curve(real y, real datum, real eta, glm_aux aux) {
  glm_curve curve = {NAN, NAN, NAN, NAN, NAN, NAN};
  (void)y;
  (void)datum;
  (void)eta;
  (void)aux;
  return curve;
}

static inline glm_curve glm_family_curve(int family, real y, real datum, real eta, glm_aux aux) {
  glm_curve none = {NAN, NAN, NAN, NAN, NAN, NAN};
  switch (family) {
#define GLM_ROW(NAME, name, support, words, parameter)                                             \
  case SCL_GLM_##NAME:                                                                             \
    return glm_##name##_curve(y, datum, eta, aux);
    SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
  default:
    return none;
  }
}

#endif
