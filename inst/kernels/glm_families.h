/* Families of generalised linear models: log density of one observation and its derivatives.
 * Single source: OpenCL C and C11.
 *
 * A family is one row of SCL_GLM_FAMILIES and the functions of its name. The row gives the name in
 * capitals and small letters; the test that a value y lies in the support, which may use the datum
 * beside y (the trials of binomial_logit, else 0); the support in words; the family's own parameter
 * (scl_glm_own). The log density of one observation is the sum of three parts:
 *
 *   glm_NAME(y, datum, eta, own)   what depends on the linear predictor, with its derivatives
 *   glm_NAME_value(y, own)         what depends on y and the own parameter only, with its
 *                                  derivatives; by the host, for the distinct values of y
 *   glm_NAME_constant(y, datum)    what depends on the data only; by the host, once
 *
 * All constants of the density are kept. Both tails keep their relative precision: no difference of
 * nearly equal numbers is taken where it can be avoided. */
#ifndef GLM_FAMILIES_H
#define GLM_FAMILIES_H

#define GLM_WHOLE(y) ((y) == floor(y) && (y) < 4503599627370496.0)

#define SCL_GLM_FAMILIES(FAMILY)                                                                   \
  FAMILY(BERNOULLI_LOGIT, bernoulli_logit, y == 0.0 || y == 1.0, "0 or 1", NONE)                   \
  FAMILY(BINOMIAL_LOGIT, binomial_logit, y >= 0.0 && y <= datum && GLM_WHOLE(y),                   \
         "whole numbers from 0 to 'trials'", NONE)                                                 \
  FAMILY(NORMAL_ID, normal_id, isfinite(y), "finite", SIGMA)                                       \
  FAMILY(POISSON_LOG, poisson_log, y >= 0.0 && GLM_WHOLE(y), "whole numbers from 0", NONE)         \
  FAMILY(NEG_BINOMIAL_2_LOG, neg_binomial_2_log, y >= 0.0 && GLM_WHOLE(y), "whole numbers from 0", \
         PHI)                                                                                      \
  FAMILY(CATEGORICAL_LOGIT, categorical_logit, y >= 1.0 && y <= GLM_MOST_CLASSES && GLM_WHOLE(y),  \
         "numbers of classes, from 1", NONE)                                                       \
  FAMILY(ORDERED_LOGISTIC, ordered_logistic, y >= 1.0 && y <= GLM_MOST_CLASSES && GLM_WHOLE(y),    \
         "numbers of classes, from 1", CUTS)

#define GLM_MOST_CLASSES 2000 /* sums by cut have to fit into a group's local memory */

typedef enum {
#define GLM_ROW(NAME, name, support, words, own) SCL_GLM_##NAME,
  SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
      SCL_GLM_FAMILY_COUNT
} scl_glm_family;

/* A family's own parameter: sigma or phi, one number; or cuts, one less than classes. */
typedef enum { SCL_GLM_NONE = 0, SCL_GLM_SIGMA, SCL_GLM_PHI, SCL_GLM_CUTS } scl_glm_own;

/* Facts of a family that a compiler knows when `family` is a constant: whether the predictors of an
 * observation, one for each class, have one density together; whether a datum stands beside y;
 * whether terms have odds (glm_term); the own parameter. */
#define GLM_FAMILY_COUPLED(family) ((family) == SCL_GLM_CATEGORICAL_LOGIT)
#define GLM_FAMILY_DATUM(family) ((family) == SCL_GLM_BINOMIAL_LOGIT)
#define GLM_FAMILY_ODDS(family)                                                                    \
  ((family) == SCL_GLM_BERNOULLI_LOGIT || (family) == SCL_GLM_ORDERED_LOGISTIC)
#define GLM_FAMILY_OWN(family)                                                                     \
  ((family) == SCL_GLM_NORMAL_ID            ? SCL_GLM_SIGMA                                        \
   : (family) == SCL_GLM_NEG_BINOMIAL_2_LOG ? SCL_GLM_PHI                                          \
   : (family) == SCL_GLM_ORDERED_LOGISTIC   ? SCL_GLM_CUTS                                         \
                                            : SCL_GLM_NONE)

/* Weights stand beside y, and the datum if there is one. */
#define GLM_WEIGHT_COLUMN(family) (GLM_FAMILY_DATUM(family) ? 2 : 1)

/* Flags of a pass: the gradient by beta is wanted; alpha, or the own parameter, is one for each
 * row; the parameters come with the launch, as glm_few; the last column of y has weights. */
enum { GLM_GRADIENT = 1, GLM_ROW_ALPHA = 2, GLM_ROW_OWN = 4, GLM_FEW = 8, GLM_WEIGHTED = 16 };

/* The first numbers of `work` (glm_pass.cl), where these are all parameters. */
enum { GLM_FEW_MOST = 16 };
typedef struct {
  double number[16];
} glm_few;

/* The log density is value - log(1 + odds), NaN when eta is NaN or infinite. Only families named by
 * GLM_FAMILY_ODDS have odds; where many terms are added, one logarithm of a product serves. */
typedef struct {
  double value, odds;
  double d_eta; /* the derivative by eta */
  double d_own; /* by sigma or phi, or by the cut above the class */
  double d_low; /* by the cut below the class */
} glm_term;

/* The own parameter as an observation sees it. */
typedef struct {
  double own, log_own, inverse; /* of sigma or phi */
  double above, below;          /* the cuts on both sides of the class; infinite at the ends */
} glm_own;

SCL_INLINE glm_own glm_own_none(void) {
  glm_own own = {0.0, 0.0, 0.0, 0.0, 0.0};
  return own;
}

SCL_INLINE glm_own glm_own_number(double number) {
  glm_own own = {number, log(number), 1.0 / number, 0.0, 0.0};
  return own;
}

/* As the kernels get it: the number, its logarithm and its inverse. */
SCL_INLINE glm_own glm_own_given(SCL_GLOBAL const double *given) {
  glm_own own = {given[0], given[1], given[2], 0.0, 0.0};
  return own;
}

SCL_INLINE glm_own glm_own_cuts(SCL_GLOBAL const double *cut, int cuts, double y) {
  const int above = (int)y - 1;
  glm_own own = {0.0, 0.0, 0.0, INFINITY, -INFINITY};
  if (above < cuts) own.above = cut[above];
  if (above > 0) own.below = cut[above - 1];
  return own;
}

/* ---- what the families share -------------------------------------------------------------------
 */

/* 0, or NaN at an infinity. */
#define GLM_NAN_IF_INFINITE(eta) (0.0 * (eta))

/* ---- the families ------------------------------------------------------------------------------
 */

/* y is 0 or 1: log of 1 / (1 + exp(-t)), where t is eta for y = 1 and -eta for y = 0. */
SCL_INLINE glm_term glm_bernoulli_logit(double y, double datum, double eta, glm_own own) {
  const double sign = y + y - 1.0;
  const double t = sign * eta;
  const double e = exp(-fabs(t));
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)datum;
  (void)own;
  term.value = fmin(t, 0.0) + GLM_NAN_IF_INFINITE(eta);
  term.odds = e;
  term.d_eta = sign * (t > 0.0 ? e : 1.0) / (1.0 + e);
  return term;
}

/* y successes of `datum` trials with log odds eta: y eta - N log(1 + exp(eta)), with the larger of
 * both tails split off, so that N = y and y = 0 cancel exactly. */
SCL_INLINE glm_term glm_binomial_logit(double y, double datum, double eta, glm_own own) {
  const double e = exp(-fabs(eta));
  const double rest = eta > 0.0 ? y - datum : y; /* of y eta - N max(eta, 0) */
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)own;
  term.value = rest * eta - datum * log1p(e) + GLM_NAN_IF_INFINITE(eta);
  term.d_eta = (rest + (eta > 0.0 ? y : y - datum) * e) / (1.0 + e);
  return term;
}

/* Mean eta, standard deviation sigma. */
SCL_INLINE glm_term glm_normal_id(double y, double datum, double eta, glm_own own) {
  const double z = (y - eta) * own.inverse;
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)datum;
  term.value = -0.5 * z * z - own.log_own + GLM_NAN_IF_INFINITE(eta);
  term.d_eta = z * own.inverse;
  term.d_own = (z - 1.0) * (z + 1.0) * own.inverse;
  return term;
}

/* Mean exp(eta). */
SCL_INLINE glm_term glm_poisson_log(double y, double datum, double eta, glm_own own) {
  const double mean = exp(eta);
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)datum;
  (void)own;
  term.value = y * eta - mean + GLM_NAN_IF_INFINITE(eta);
  term.d_eta = y - mean;
  return term;
}

/* log(1 + t) - t / (1 + t) for t >= 0: by its series where the two nearly cancel. */
SCL_INLINE double glm_log1p_rest(double t, double log1p_t, double share) {
  double sum = 0.0;
  if (t > 0.0625) return log1p_t - share;
  for (int k = 14; k >= 2; k--) sum = (1.0 - 1.0 / k) - t * sum;
  return t * t * sum;
}

/* Mean mu = exp(eta), variance mu + mu^2 / phi. With s = eta - log(phi), so that mu / phi = exp(s):
 * y eta - (y + phi) log(1 + exp(s)), and what glm_neg_binomial_2_log_value() adds. For large s the
 * part y (eta - s) = y log(phi) is what remains of the first two. For small phi and y > 1, y / phi
 * is taken over from the derivative of the value: the sum of both is small beside it. */
#define GLM_SMALL_PHI(phi, y) ((phi) < 1.0 && (y) > 1.0)

SCL_INLINE glm_term glm_neg_binomial_2_log(double y, double datum, double eta, glm_own own) {
  const double s = eta - own.log_own, e = exp(-fabs(s)), log1p_e = log1p(e);
  const double inverse = 1.0 / (1.0 + e), small = e * inverse;
  const double share = s > 0.0 ? inverse : small, rest = s > 0.0 ? small : inverse;
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)datum;
  term.value = (s > 0.0 ? y * own.log_own - own.own * s : y * eta) - (y + own.own) * log1p_e +
               GLM_NAN_IF_INFINITE(eta);
  term.d_eta = (s > 0.0 ? y * e - own.own : y - own.own * e) * inverse;
  term.d_own = y * own.inverse * (GLM_SMALL_PHI(own.own, y) ? -rest : share);
  term.d_own -= s > 0.0 ? s + log1p_e - share : glm_log1p_rest(e, log1p_e, share);
  return term;
}

/* The class is where eta + logistic noise falls between the cuts: with u = above - eta and
 * l = below - eta, log(1 / (1 + exp(-u)) - 1 / (1 + exp(-l))) = -log(1 + exp(-u))
 * - log(1 + exp(l)) + log(1 - exp(l - u)), of which the last is for
 * glm_ordered_logistic_value(). */
SCL_INLINE glm_term glm_ordered_logistic(double y, double datum, double eta, glm_own own) {
  const double t_up = eta - own.above, t_low = own.below - eta; /* at most one is positive */
  const double up = exp(-fabs(t_up)), low = exp(-fabs(t_low)), both = up * low;
  const double inverse = 1.0 / ((1.0 + up) * (1.0 + low));
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  (void)y;
  (void)datum;
  term.value = -fmax(t_up, 0.0) - fmax(t_low, 0.0) + GLM_NAN_IF_INFINITE(eta);
  term.odds = up + low + both;
  term.d_own = (t_up > 0.0 ? 1.0 + low : up + both) * inverse;
  term.d_low = -(t_low > 0.0 ? 1.0 + up : low + both) * inverse;
  term.d_eta = (t_up > 0.0 ? both - 1.0 : t_low > 0.0 ? 1.0 - both : low - up) * inverse;
  return term;
}

/* Coupled families have glm_classes() in its place. */
SCL_INLINE glm_term glm_categorical_logit(double y, double datum, double eta, glm_own own) {
  glm_term term = {NAN, 0.0, NAN, NAN, NAN};
  (void)y;
  (void)datum;
  (void)eta;
  (void)own;
  return term;
}

/* The term of any family that is not coupled. `family` is the same for all work-items. */
SCL_INLINE glm_term glm_family_term(int family, double y, double datum, double eta, glm_own own) {
  glm_term none = {NAN, 0.0, NAN, NAN, NAN};
  switch (family) {
#define GLM_ROW(NAME, name, support, words, parameter)                                             \
  case SCL_GLM_##NAME: return glm_##name(y, datum, eta, own);
    SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
  default: return none;
  }
}

SCL_INLINE double glm_term_value(int family, glm_term term) {
  return GLM_FAMILY_ODDS(family) ? term.value - log1p(term.odds) : term.value;
}

/* The derivatives of an observation that counts `times`. */
SCL_INLINE glm_term glm_term_times(glm_term term, double times) {
  term.d_eta *= times;
  term.d_own *= times;
  term.d_low *= times;
  return term;
}

/* A product of factors 1 + odds with its rounding errors beside it, so that the logarithm has its
 * relative precision also where all odds are small. */
typedef struct {
  double product, error;
} glm_odds_product;

/* Gives the logarithm of what the product has to give away before it overflows, mostly 0. */
SCL_INLINE double glm_multiply_odds(glm_odds_product *p, double odds) {
  const double factor = 1.0 + odds, lost = odds - (factor - 1.0);
  const double product = p->product * factor;
  p->error = fma(p->error, factor, fma(p->product, lost, fma(p->product, factor, -product)));
  p->product = product;
  if (product < 1e200) return 0.0;
  const double logarithm = log(product) + p->error / product;
  p->product = 1.0;
  p->error = 0.0;
  return logarithm;
}

/* categorical_logit: the log density of class y, whose predictors, one for each class, stand `step`
 * apart and become the derivatives by themselves. With the largest predictor subtracted from all,
 * and `rest` the sum of the others' exponentials, it is the class's own less log(1 + rest). */
#define GLM_CLASSES(name, SPACE)                                                                   \
  SCL_INLINE double name(double y, SPACE double *eta, scl_long step, int classes) {                \
    const int own = (int)y - 1;                                                                    \
    double most = eta[0], rest = 0.0, others = 0.0, check = 0.0;                                   \
    int top = 0;                                                                                   \
    for (int c = 0; c < classes; c++) {                                                            \
      const double here = eta[c * step];                                                           \
      if (here > most) top = c;                                                                    \
      most = fmax(most, here);                                                                     \
      check += GLM_NAN_IF_INFINITE(here);                                                          \
    }                                                                                              \
    const double mine = eta[own * step] - most;                                                    \
    for (int c = 0; c < classes; c++) {                                                            \
      const double e = exp(eta[c * step] - most);                                                  \
      eta[c * step] = e;                                                                           \
      if (c != top) rest += e;                                                                     \
      if (c != own) others += e;                                                                   \
    }                                                                                              \
    const double inverse = 1.0 / (1.0 + rest);                                                     \
    for (int c = 0; c < classes; c++) eta[c * step] *= -inverse;                                   \
    eta[own * step] = others * inverse;                                                            \
    return mine - log1p(rest) + check;                                                             \
  }
GLM_CLASSES(glm_classes, SCL_GLOBAL)

/* ---- what the host adds ------------------------------------------------------------------------
 */
#ifndef __OPENCL_VERSION__

#include "special_functions.h"

/* log(1 + t) - t for t >= 0, by its series where the two nearly cancel. */
static inline double glm_log1p_minus(double t) {
  double sum = 0.0;
  if (t > 0.0625) return log1p(t) - t;
  for (int k = 15; k >= 2; k--) sum = 1.0 / k - t * sum;
  return -t * t * sum;
}

/* log(gamma(z + r) / gamma(z)) - r log(z) for z >= 16, r >= 0. */
static inline double glm_log_rising(double z, double r) {
  const double ratio = r / z;
  return (r - 0.5) * ratio + (z + r - 0.5) * glm_log1p_minus(ratio) + special_stirling(z + r) -
         special_stirling(z);
}

/* log(gamma(y + phi) / gamma(phi)) - y log(phi), and its derivative by phi (without -y / phi for
 * small phi, see above): the sum of log(1 + j / phi) for j < y, term by term until z = phi + j
 * passes 16; the r that are left by Stirling's series. */
static inline glm_term glm_neg_binomial_2_log_value(double y, glm_own own) {
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  const double phi = own.own;
  double j = 0.0;
  for (; j < y && (phi + j < 16.0 || y - j < 8.0); j += 1.0) {
    term.value += log1p(j / phi);
    term.d_own += GLM_SMALL_PHI(phi, y) ? 1.0 / (phi + j) : -j / (phi * (phi + j));
  }
  if (j < y) {
    const double z = phi + j, r = y - j;
    term.value += r * log1p(j / phi) + glm_log_rising(z, r);
    /* psi(z + r) - psi(z) - r / z; then r / z, or r / z - r / phi */
    term.d_own += glm_log1p_minus(r / z) + 0.5 * r / (z * (z + r)) + special_stirling_slope(z + r) -
                  special_stirling_slope(z) + (GLM_SMALL_PHI(phi, y) ? r / z : -r * j / (z * phi));
  }
  return term;
}

/* log(1 - exp(below - above)), by both cuts. */
static inline glm_term glm_ordered_logistic_value(double y, glm_own own) {
  glm_term term = {0.0, 0.0, 0.0, 0.0, 0.0};
  const double gap = own.above - own.below;
  (void)y;
  if (isinf(gap)) return term;
  term.value = gap > 0.693 ? log1p(-exp(-gap)) : log(-expm1(-gap));
  term.d_own = 1.0 / expm1(gap);
  term.d_low = -term.d_own;
  return term;
}

static inline double glm_log_factorial(double y) { return special_log_gamma(y + 1.0); }

/* log of the binomial coefficient, from Stirling's series where the factorials are large and nearly
 * cancel. */
static inline double glm_log_choose(double n, double k) {
  const double small = fmin(k, n - k), large = n - small;
  if (small < 1.0) return 0.0;
  if (large < 16.0) return glm_log_factorial(n) - glm_log_factorial(k) - glm_log_factorial(n - k);
  /* log((large + 1) ... (large + small)) - log(small!), with z = large + 1 */
  const double z = large + 1.0;
  return small * log(z) + glm_log_rising(z, small) - glm_log_factorial(small);
}

static inline double glm_family_constant(int family, double y, double datum) {
  switch (family) {
  case SCL_GLM_BINOMIAL_LOGIT: return glm_log_choose(datum, y);
  case SCL_GLM_NORMAL_ID: return -0.91893853320467274178; /* -log(2 pi) / 2 */
  case SCL_GLM_POISSON_LOG:
  case SCL_GLM_NEG_BINOMIAL_2_LOG: return -glm_log_factorial(y);
  default: return 0.0;
  }
}

static inline glm_term glm_family_value(int family, double y, glm_own own) {
  glm_term none = {0.0, 0.0, 0.0, 0.0, 0.0};
  if (family == SCL_GLM_NEG_BINOMIAL_2_LOG) return glm_neg_binomial_2_log_value(y, own);
  if (family == SCL_GLM_ORDERED_LOGISTIC) return glm_ordered_logistic_value(y, own);
  return none;
}

#endif
#endif
