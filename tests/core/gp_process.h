/* Gaussian processes in long double, by the textbook formulas, for test_gp.c. */
#ifndef GP_PROCESS_H
#define GP_PROCESS_H

#include "ops/gp.h"
#include "gp_reference.h"

typedef long double long_double;
typedef void kernel_maker(test_kernel *k, size_t p);

enum { MOST_BASIS = 3, MOST_OUTPUTS = 2 };

/* A problem; it owns its arrays. */
typedef struct {
  scl_gp_data data;
  double *x, *y, *basis, *spread;
  test_kernel k;
  scl_gp_trend trend;
} problem;

void process_problem(problem *r, kernel_maker *make, size_t n, size_t p, size_t outputs, size_t q,
                     bool spread, scl_gp_trend trend);
void process_problem_free(problem *r);
/* C_ij as the process has it. */
long_double process_covariance(const problem *r, size_t i, size_t j);

/* The process given its data, except row `without` (n: none). */
typedef struct {
  size_t n, q, outputs;
  size_t *row;
  long_double *l, *s, *z, *a; /* L, L^-1 H, L^-1 (y - H b), C^-1 (y - H b) */
  long_double m[MOST_BASIS * MOST_BASIS], b[MOST_BASIS * MOST_OUTPUTS], value;
} reference;

void process_new(reference *r, const problem *p, size_t without);
void process_free(reference *r);

/* At one point, from its covariances v with the data, which the second one makes L^-1 v, and its
 * basis h, which becomes r = M^-1 (h - S' v): the mean v' a + h' b; what variances need. */
long_double process_mean(const reference *r, long_double *v, long_double *h, size_t output);
void process_spread(const reference *r, long_double *v, long_double *h);
long_double process_dot(const long_double *a, const long_double *b, size_t n);

/* The marginal likelihood; or the sum of log p(y_i | the others), each from a new factor. */
long_double process_value(const problem *p, scl_gp_objective objective);

#endif
