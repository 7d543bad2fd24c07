#include "gp_reference.h"

#include <math.h>

static void add_term(test_kernel *k, scl_covariance_type type, double sd, size_t from, size_t to) {
  scl_covariance *c = &k->kernel;
  k->term[c->terms++] = (scl_covariance_term){type, (int)(to - from), sd};
  for (size_t j = from; j < to; j++) {
    k->column[c->entries] = (int)j;
    k->lengthscale[c->entries] = 0.5 + 0.25 * (c->entries % 5);
    c->entries++;
  }
}

void test_kernel_mixed(test_kernel *k, size_t p) {
  k->kernel = (scl_covariance){0, 0, k->term, k->column, k->lengthscale, 0.3};
  add_term(k, SCL_COVARIANCE_EXP_QUAD, 0.7, 0, 1);
  add_term(k, SCL_COVARIANCE_MATERN32, 1.3, p > 1 ? p - 2 : 0, p);
  add_term(k, SCL_COVARIANCE_MATERN52, 0.9, 0, p);
}

double *test_kernel_parameter(test_kernel *k, int q) {
  if (q < k->kernel.terms) return &k->term[q].sd;
  q -= k->kernel.terms;
  return q < k->kernel.entries ? &k->lengthscale[q] : &k->kernel.noise;
}

static long double reference_function(scl_covariance_type type, long double r2) {
  long double r = sqrtl(r2);
  switch (type) {
  case SCL_COVARIANCE_EXP_QUAD:
    return expl(-r2 / 2);
  case SCL_COVARIANCE_MATERN32:
    return (1 + sqrtl(3) * r) * expl(-sqrtl(3) * r);
  case SCL_COVARIANCE_MATERN52:
    return (1 + sqrtl(5) * r + 5 * r2 / 3) * expl(-sqrtl(5) * r);
  default:
    return NAN;
  }
}

long double test_covariance_value(const scl_covariance *kernel, const double *x1, size_t m,
                                  size_t i, const double *x2, size_t n, size_t j) {
  long double sum = 0;
  for (int t = 0, e = 0; t < kernel->terms; t++) {
    long double r2 = 0, sd = kernel->term[t].sd;
    for (int last = e + kernel->term[t].entries; e < last; e++) {
      size_t column = (size_t)kernel->column[e];
      long double d = (long double)x1[i + column * m] - x2[j + column * n];
      d /= kernel->lengthscale[e];
      r2 += d * d;
    }
    sum += sd * sd * reference_function(kernel->term[t].type, r2);
  }
  return sum;
}
