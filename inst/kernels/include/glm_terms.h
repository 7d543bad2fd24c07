/* What the families of generalised linear models share (glm_families.h): the term of an
 * observation, the auxiliary parameter, and functions that keep the digits of counts. OpenCL C and
 * C11. */
#ifndef GLM_TERMS_H
#define GLM_TERMS_H

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
  real above, below;              /* the cuts on both sides of the class; infinite at the ends */
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

/* exp(-x) for x >= 0, and 1 / x for a normal x, to one unit in the last place. The library's
 * functions of NVIDIA devices have branches for rare arguments, between which the terms of several
 * predictors of a work-item are computed one after another; these have none, and their constants
 * are operands. exp(-x) = 2^k exp(r) with |r| <= log(2) / 2, where (exp(r) - 1 - r) / r^2 is the
 * minimax polynomial of degree 9, with an error of 1e-17 in exp(r). */
#ifdef __NV_CL_C_VERSION
__constant real glm_exp_terms[] = {2.500006162553128e-08,
                                   2.763024838532302e-07,
                                   2.755758637378518e-06,
                                   2.480149309888739e-05,
                                   1.9841269506578723e-04,
                                   1.3888888943630134e-03,
                                   8.333333333494461e-03,
                                   4.1666666666530155e-02,
                                   1.6666666666666413e-01,
                                   5.000000000000011e-01,
                                   1.0,
                                   1.0};
/* -1 / log(2); -log(2) in two parts; 1.5 * 2^52, to which a sum has an integer as its low word */
__constant real glm_exp_reduction[] = {-1.4426950408889634, -0.6931471805599453,
                                       -2.3190468138462996e-17, 6755399441055744.0};
SCL_INLINE real glm_exp_minus(real x) {
  const real most = x > 746.0 ? 746.0 : x;
  const real sum = fma(most, glm_exp_reduction[0], glm_exp_reduction[3]);
  const int k = as_int2(sum).x, low = k >> 1;
  const real n = sum - glm_exp_reduction[3];
  const real r = fma(n, glm_exp_reduction[2], fma(n, glm_exp_reduction[1], -most));
  real p = glm_exp_terms[0];
  SCL_UNROLL for (int i = 1; i < 12; i++) p = fma(p, r, glm_exp_terms[i]);
  /* 2^k in two factors, as it may be subnormal */
  return p * as_double((int2)(0, (low + 1023) << 20)) *
         as_double((int2)(0, (k - low + 1023) << 20));
}
SCL_INLINE real glm_inverse(real x) {
  real seed;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(seed) : "d"(x));
  const real error = fma(-x, seed, 1.0);
  return fma(seed, fma(error, error, error), seed);
}
#else
SCL_INLINE real glm_exp_minus(real x) {
  return exp(-x);
}
SCL_INLINE real glm_inverse(real x) {
  return 1.0 / x;
}
#endif

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

/* t = exp(x) - 1; *rest becomes t - x. */
SCL_INLINE real glm_expm1(real x, real *rest) {
  real sum = 1.0 / 6227020800.0;
  if (!(fabs(x) < 0.25)) {
    const real t = expm1(x);
    *rest = t - x;
    return t;
  }
  SCL_HORNER_4(sum, x, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0);
  SCL_HORNER_4(sum, x, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0);
  SCL_HORNER_3(sum, x, 1.0 / 24.0, 1.0 / 6.0, 1.0 / 2.0);
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
  SCL_HORNER_4(sum, w, 1.0 / 19.0, 1.0 / 17.0, 1.0 / 15.0, 1.0 / 13.0);
  SCL_HORNER_4(sum, w, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0);
  SCL_HORNER_1(sum, w, 1.0 / 3.0);
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

SCL_INLINE void glm_times_odds(glm_odds_product *p, real odds) {
  const real factor = 1.0 + odds, lost = odds - (factor - 1.0);
  const real product = p->product * factor;
  p->error = fma(p->error, factor, fma(p->product, lost, fma(p->product, factor, -product)));
  p->product = product;
}

/* Whether the product has to shed a factor before it overflows; and that factor's logarithm. */
#define GLM_IS_FULL(p) (!((p).product < 1e200))
SCL_INLINE real glm_shed(glm_odds_product *p) {
  const real logarithm = log(p->product) + p->error / p->product;
  p->product = 1.0;
  p->error = 0.0;
  return logarithm;
}

/* Multiplies, and returns the logarithm of what is shed, mostly 0. */
SCL_INLINE real glm_multiply_odds(glm_odds_product *p, real odds) {
  glm_times_odds(p, odds);
  return GLM_IS_FULL(*p) ? glm_shed(p) : 0.0;
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

#endif
