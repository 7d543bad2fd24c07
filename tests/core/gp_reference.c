#include "gp_reference.h"

#include <math.h>

static void add_term(test_kernel *k, scl_covariance_type type, double sd, size_t from, size_t to) {
  scl_covariance *c = &k->kernel;
  double extra = type == SCL_COVARIANCE_RATIONAL_QUADRATIC ? 0.7
                 : type == SCL_COVARIANCE_PERIODIC         ? 1.3
                                                           : 1.0;
  k->term[c->terms++] = (scl_covariance_term){type, (int)(to - from), sd, extra};
  for (size_t j = from; j < to; j++) {
    k->column[c->entries] = (int)j;
    k->lengthscale[c->entries] = 0.5 + 0.25 * (c->entries % 5);
    k->center[c->entries] = type == SCL_COVARIANCE_LINEAR ? 0.2 : 0.0;
    if (type == SCL_COVARIANCE_GOWER) k->center[c->entries] = j % 2 == 0 ? 0.0 : 1.0;
    c->entries++;
  }
}

static void begin_kernel(test_kernel *k) {
  k->kernel = (scl_covariance){.term = k->term,
                               .column = k->column,
                               .lengthscale = k->lengthscale,
                               .center = k->center,
                               .noise = 0.3};
}

void test_kernel_mixed(test_kernel *k, size_t p) {
  begin_kernel(k);
  add_term(k, SCL_COVARIANCE_EXP_QUAD, 0.7, 0, 1);
  add_term(k, SCL_COVARIANCE_MATERN32, 1.3, p > 1 ? p - 2 : 0, p);
  add_term(k, SCL_COVARIANCE_MATERN52, 0.9, 0, p);
  add_term(k, SCL_COVARIANCE_EXPONENTIAL, 0.4, p - 1, p);
}

void test_kernel_composed(test_kernel *k, size_t p) {
  /* 0 + 1 * 2 + 3 * 4 * 5 + 6 + 7 * 0 + 8 * 1 + 9 * 10 */
  static const int factors[] = {1, 0, 2, 1, 2, 3, 3, 4, 5, 1, 6, 2, 7, 0, 2, 8, 1, 2, 9, 10};
  begin_kernel(k);
  add_term(k, SCL_COVARIANCE_EXP_QUAD, 0.7, 0, p);
  add_term(k, SCL_COVARIANCE_MATERN32, 1.3, p > 1 ? p - 2 : 0, p);
  add_term(k, SCL_COVARIANCE_PERIODIC, 0.8, 0, 1);
  add_term(k, SCL_COVARIANCE_LINEAR, 0.6, 0, p);
  add_term(k, SCL_COVARIANCE_RATIONAL_QUADRATIC, 1.1, 0, p);
  add_term(k, SCL_COVARIANCE_MATERN52, 0.9, p - 1, p);
  add_term(k, SCL_COVARIANCE_CONSTANT, 0.5, 0, 0);
  add_term(k, SCL_COVARIANCE_WHITE, 0.4, 0, 0);
  add_term(k, SCL_COVARIANCE_EXPONENTIAL, 0.7, 0, 1);
  add_term(k, SCL_COVARIANCE_GREAT_CIRCLE, 0.8, 0, p);
  add_term(k, SCL_COVARIANCE_GOWER, 0.6, 0, p);
  k->kernel.factors = factors;
  k->kernel.products = 7;
}

double *test_kernel_parameter(test_kernel *k, int q) {
  if (q < k->kernel.terms) return &k->term[q].sd;
  q -= k->kernel.terms;
  if (q < k->kernel.entries) return &k->lengthscale[q];
  q -= k->kernel.entries;
  return q < k->kernel.terms ? &k->term[q].extra : &k->kernel.noise;
}

static long double reference_term(const scl_covariance *kernel, int t, const double *x1, size_t m,
                                  size_t i, const double *x2, size_t n, size_t j, bool same) {
  const scl_covariance_term *term = &kernel->term[t];
  const long double pi = acosl(-1), alpha = term->extra,
                    variance = (long double)term->sd * term->sd;
  long double r2 = 0, sines = 0, dot = 0, gaps = 0;
  int e = 0;
  for (int before = 0; before < t; before++) e += kernel->term[before].entries;
  for (int last = e + term->entries; e < last; e++) {
    size_t column = (size_t)kernel->column[e];
    long double u = x1[i + column * m], v = x2[j + column * n], l = kernel->lengthscale[e];
    r2 += (u - v) / l * ((u - v) / l);
    if (term->type == SCL_COVARIANCE_PERIODIC) {
      long double wave = sinl(pi * (u - v) / alpha) / l;
      sines += wave * wave;
    }
    gaps += (kernel->center[e] != 0 ? (u != v ? 1 : 0) : fabsl(u - v)) / l;
    dot += (u - kernel->center[e]) / l * ((v - kernel->center[e]) / l);
  }
  long double r = sqrtl(r2);
  switch (term->type) {
  case SCL_COVARIANCE_EXP_QUAD:
    return variance * expl(-r2 / 2);
  case SCL_COVARIANCE_EXPONENTIAL:
    return variance * expl(-r);
  case SCL_COVARIANCE_MATERN32:
    return variance * (1 + sqrtl(3) * r) * expl(-sqrtl(3) * r);
  case SCL_COVARIANCE_MATERN52:
    return variance * (1 + sqrtl(5) * r + 5 * r2 / 3) * expl(-sqrtl(5) * r);
  case SCL_COVARIANCE_RATIONAL_QUADRATIC:
    return variance * powl(1 + r2 / (2 * alpha), -alpha);
  case SCL_COVARIANCE_PERIODIC:
    return variance * expl(-2 * sines);
  case SCL_COVARIANCE_GREAT_CIRCLE:
    return variance * expl(-2 * SCL_EARTH / alpha * asinl(r / (2 * SCL_EARTH)));
  case SCL_COVARIANCE_GOWER:
    return variance * expl(-gaps);
  case SCL_COVARIANCE_LINEAR:
    return variance * dot;
  case SCL_COVARIANCE_CONSTANT:
    return variance;
  case SCL_COVARIANCE_WHITE:
    return same ? variance : 0;
  default:
    return NAN;
  }
}

static long double reference(const scl_covariance *kernel, const double *x1, size_t m, size_t i,
                             const double *x2, size_t n, size_t j, bool same) {
  long double sum = 0;
  const int *next = kernel->factors;
  for (int t = 0; next == NULL && t < kernel->terms; t++) {
    sum += reference_term(kernel, t, x1, m, i, x2, n, j, same);
  }
  for (int g = 0; next != NULL && g < kernel->products; g++) {
    long double product = 1;
    for (int count = *next++; count > 0; count--) {
      product *= reference_term(kernel, *next++, x1, m, i, x2, n, j, same);
    }
    sum += product;
  }
  return sum;
}

long double test_covariance_value(const scl_covariance *kernel, const double *x1, size_t m,
                                  size_t i, const double *x2, size_t n, size_t j) {
  return reference(kernel, x1, m, i, x2, n, j, false);
}

long double test_covariance_within(const scl_covariance *kernel, const double *x, size_t n,
                                   size_t i, size_t j) {
  long double noise = i == j ? (long double)kernel->noise * kernel->noise : 0;
  return reference(kernel, x, n, i, x, n, j, i == j) + noise;
}
