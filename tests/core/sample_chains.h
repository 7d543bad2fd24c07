/* Chains over a normal density in C. */
#ifndef SAMPLE_CHAINS_H
#define SAMPLE_CHAINS_H

#include <math.h>
#include <string.h>

#include "sample/chain.h"

enum { D = 3 };

/* Independent normals with standard deviations sd. */
typedef struct {
  double sd[D];
  long calls, interrupt_at; /* a call that is interrupted, once */
  double edge;              /* NaN where x[0] is beyond it */
} gauss;

static inline double density(const gauss *g, const double *x, double *slope) {
  double value = 0.0;
  for (int k = 0; k < D; k++) {
    slope[k] = -x[k] / (g->sd[k] * g->sd[k]);
    value += 0.5 * x[k] * slope[k];
  }
  return value;
}

static inline scl_status run_gauss(void *self, const double *x, size_t vectors, double *to) {
  (void)vectors;
  gauss *g = self;
  if (++g->calls == g->interrupt_at) return scl_fail(SCL_E_INTERRUPT, "interrupted");
  to[0] = x[0] > g->edge ? NAN : density(g, x, to + 1);
  if (x[0] > g->edge) to[1] = to[2] = to[3] = NAN;
  return SCL_OK;
}

/* By Newton's method from the side on which it converges. */
static inline double quantile(double p) {
  double x = 0.0;
  for (int k = 0; k < 60; k++) {
    const double off = 0.5 * erfc(-x / sqrt(2.0)) - p;
    const double by = off / (exp(-0.5 * x * x) / sqrt(2.0 * acos(-1.0)));
    x -= by > 1.0 ? 1.0 : by < -1.0 ? -1.0 : by;
  }
  return x;
}

static const int seed[6] = {1, 2, 3, 4, 5, 6};

static inline scl_status make(const scl_chain_options *o, scl_chain **out) {
  const double start[D] = {0.1, -0.2, 0.3};
  scl_random numbers;
  SCL_TRY(scl_random_begin(&numbers, seed, quantile));
  return scl_chain_make(o, start, &numbers, out);
}

static const double unit[D] = {1.0, 1.0, 1.0};

static inline scl_chain_options options(int warmup, int iter) {
  return (scl_chain_options){.dimension = D,
                             .warmup = warmup,
                             .iter = iter,
                             .leapfrogs = 10,
                             .max_depth = 10,
                             .adapts_metric = true,
                             .adapt_delta = 0.8,
                             .inverse_metric = unit};
}

static inline bool equal_draws(scl_chain *a, scl_chain *b) {
  const scl_chain_view u = scl_chain_view_of(a), v = scl_chain_view_of(b);
  if (u.done != v.done || u.kept != v.kept || u.evaluations != v.evaluations) return false;
  return memcmp(u.draws, v.draws, (size_t)u.kept * D * sizeof(double)) == 0 &&
         memcmp(u.figures, v.figures, (size_t)u.done * SCL_CHAIN_FIGURES * sizeof(double)) == 0;
}

#endif
