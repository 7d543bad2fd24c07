/* Families of generalised linear models: log density of one observation and its derivative by the
 * linear predictor. Single source: OpenCL C and C11.
 *
 * A family is one row of SCL_GLM_FAMILIES and one function of the same name. The row gives the
 * name in capitals and small letters, the test that a value y lies in the support, and the support
 * in words. All constants of the density are kept. */
#ifndef GLM_FAMILIES_H
#define GLM_FAMILIES_H

#define SCL_GLM_FAMILIES(FAMILY)                                                                   \
  FAMILY(BERNOULLI_LOGIT, bernoulli_logit, y == 0.0 || y == 1.0, "0 or 1")

typedef enum {
#define GLM_ROW(NAME, name, support, words) SCL_GLM_##NAME,
  SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
      SCL_GLM_FAMILY_COUNT
} scl_glm_family;

typedef struct {
  double value; /* log density; NaN when eta is NaN or infinite */
  double d_eta; /* its derivative by eta */
} glm_term;

/* y is 0 or 1: log of 1 / (1 + exp(-t)), where t is eta for y = 1 and -eta for y = 0. With
 * e = exp(-|t|), which never overflows, both tails keep their full relative precision: the
 * derivative is e / (1 + e) where t > 0, and no difference of nearly equal numbers is taken. */
SCL_INLINE glm_term glm_bernoulli_logit(double y, double eta) {
  const double sign = y + y - 1.0;
  const double t = sign * eta;
  const double e = exp(-fabs(t));
  glm_term term;
  term.value = fmin(t, 0.0) - log1p(e) + 0.0 * eta; /* 0 * eta: 0, or NaN at an infinity */
  term.d_eta = sign * (t > 0.0 ? e : 1.0) / (1.0 + e);
  return term;
}

/* The term of any family. `family` is the same for all work-items. */
SCL_INLINE glm_term glm_family_term(int family, double y, double eta) {
  glm_term none = {NAN, NAN};
  switch (family) {
#define GLM_ROW(NAME, name, support, words)                                                        \
  case SCL_GLM_##NAME: return glm_##name(y, eta);
    SCL_GLM_FAMILIES(GLM_ROW)
#undef GLM_ROW
  default: return none;
  }
}

#endif
