/* What the families of glm_families.h, which includes this file, share on the host only: the parts
 * of a log density that do not depend on a linear predictor. C11 only. */
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

/* Families whose density has no such part. */
#define GLM_NO_CONSTANT(name)                                                                      \
  static inline real glm_##name##_constant(real y, real datum) {                                   \
    (void)y;                                                                                       \
    (void)datum;                                                                                   \
    return 0.0;                                                                                    \
  }
#define GLM_NO_VALUE(name)                                                                         \
  static inline glm_term glm_##name##_value(real y, glm_aux aux) {                                 \
    glm_term none = {0.0, 0.0, 0.0, 0.0, 0.0};                                                     \
    (void)y;                                                                                       \
    (void)aux;                                                                                     \
    return none;                                                                                   \
  }

#endif
