/* Warm-up: step size by dual averaging (Hoffman and Gelman, 2014, section 3.2), a diagonal inverse
 * mass matrix from the variances within windows that double. */
#ifndef SCL_SAMPLE_ADAPT_H
#define SCL_SAMPLE_ADAPT_H

#include <stdbool.h>

#include "base/status.h"

enum { SCL_WINDOWS = 32 };

typedef struct {
  double target; /* of the acceptance statistic */
  double step_size, mu, error, average;
  double count;
  int first, windows, end[SCL_WINDOWS]; /* iterations, counted from 1 */
  size_t dimension;
  double n, *mean, *squares; /* of the positions in this window; borrowed */
} scl_adaptation;

/* The windows of a warm-up, none for 0. */
void scl_adapt_windows(scl_adaptation *a, int warmup);
void scl_adapt_clear(scl_adaptation *a);
/* Starts averaging from a step size found by trial, with so many iterations left. */
void scl_adapt_restart(scl_adaptation *a, double step_size, double left);
/* The step size for the next iteration, after one with this acceptance statistic. */
double scl_adapt_step(scl_adaptation *a, double accept);
/* The step size after the warm-up. */
double scl_adapt_final(const scl_adaptation *a);
/* Adds a position; true, with the new diagonal in `inverse`, if a window ends with iteration i. */
bool scl_adapt_metric(scl_adaptation *a, int i, const double *q, double *inverse);

#endif
