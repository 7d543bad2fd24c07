/* Covariance functions of distance: one source for OpenCL C and C11 (port.h).
 *
 * A function f of the squared scaled distance r2 = sum_c ((x_c - x'_c) / l_c)^2, with f(0) = 1. It
 * also gives slope = -2 f'(r2), from which every derivative follows: for k = sd^2 f(r2),
 *   dk / d log sd  = 2 k
 *   dk / d log l_c = sd^2 slope ((x_c - x'_c) / l_c)^2
 * slope must be finite at r2 = 0.
 *
 * To add one: a function covariance_<name>() here, a line in the table, a constructor in
 * R/kernels.R, and its formula in tests/testthat/test-covariance.R. */
#ifndef SCL_COVARIANCE_FUNCTIONS_H
#define SCL_COVARIANCE_FUNCTIONS_H

#define SCL_SQRT3 1.7320508075688772
#define SCL_SQRT5 2.2360679774997898

/* SCL_COVARIANCE_<ID>, covariance_<name>() and the name that R uses. */
#define SCL_COVARIANCE_TABLE(ENTRY)                                                                \
  ENTRY(EXP_QUAD, exp_quad)                                                                        \
  ENTRY(MATERN32, matern32)                                                                        \
  ENTRY(MATERN52, matern52)

/* exp(-r^2 / 2) */
SCL_INLINE double covariance_exp_quad(double r2, double *slope) {
  double f = exp(-0.5 * r2);
  *slope = f;
  return f;
}

/* (1 + sqrt(3) r) exp(-sqrt(3) r) */
SCL_INLINE double covariance_matern32(double r2, double *slope) {
  double u = SCL_SQRT3 * sqrt(r2);
  double e = exp(-u);
  *slope = 3.0 * e;
  return (1.0 + u) * e;
}

/* (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r) */
SCL_INLINE double covariance_matern52(double r2, double *slope) {
  double u = SCL_SQRT5 * sqrt(r2);
  double e = exp(-u);
  *slope = (5.0 / 3.0) * (1.0 + u) * e;
  return (1.0 + u + (5.0 / 3.0) * r2) * e;
}

typedef enum {
#define SCL_COVARIANCE_ENTRY(ID, name) SCL_COVARIANCE_##ID,
  SCL_COVARIANCE_TABLE(SCL_COVARIANCE_ENTRY)
#undef SCL_COVARIANCE_ENTRY
      SCL_COVARIANCE_TYPES
} scl_covariance_type;

/* The function of this type: its value, and its slope. */
SCL_INLINE double covariance_value(int type, double r2, double *slope) {
  switch (type) {
#define SCL_COVARIANCE_ENTRY(ID, name)                                                             \
  case SCL_COVARIANCE_##ID: return covariance_##name(r2, slope);
    SCL_COVARIANCE_TABLE(SCL_COVARIANCE_ENTRY)
#undef SCL_COVARIANCE_ENTRY
  default: *slope = 0.0; return 0.0;
  }
}

#endif
