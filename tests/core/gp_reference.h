/* Covariances in long double, from the formulas alone, for test_covariance.c and test_gp.c. */
#ifndef GP_REFERENCE_H
#define GP_REFERENCE_H

#include "ops/covariance.h"

#define MOST_TERMS 16
#define MOST_ENTRIES 90
#define MOST_PARAMETERS (2 * MOST_TERMS + MOST_ENTRIES + 1)

/* A kernel with its own arrays; `kernel` points into them. */
typedef struct {
  scl_covariance kernel;
  scl_covariance_term term[MOST_TERMS];
  int column[MOST_ENTRIES];
  double lengthscale[MOST_ENTRIES], center[MOST_ENTRIES];
} test_kernel;

/* A sum of basic types: on column 0, on the last two columns, on all columns. */
void test_kernel_mixed(test_kernel *k, size_t p);
/* All types but that with a constant, in products of one to three factors. */
void test_kernel_composed(test_kernel *k, size_t p);
/* The parameter number q in the order of the derivatives. */
double *test_kernel_parameter(test_kernel *k, int q);

/* k(x1_i, x2_j), without noise and white terms; x1 and x2 are dense with m and n rows. */
long double test_covariance_value(const scl_covariance *kernel, const double *x1, size_t m,
                                  size_t i, const double *x2, size_t n, size_t j);

/* The same with noise and white terms if i == j. */
long double test_covariance_within(const scl_covariance *kernel, const double *x, size_t n,
                                   size_t i, size_t j);

#endif
