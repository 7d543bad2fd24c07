/* Warm-up: step size by dual averaging (Hoffman and Gelman, 2014, section 3.2), and the inverse
 * mass matrix from the variances or the covariance matrix of the positions within windows that
 * double. */
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
  bool dense;
  size_t rows; /* for a metric of low rank: room for columns of both below; else 0 */
  /* Of the positions in this window: count, mean, sums of squares or, if dense, the lower triangle
   * of the matrix of sums of products (by column); borrowed. */
  double n, *mean, *squares;
  double kept, *positions, *gradients; /* evenly spaced ones of them, in columns */
} scl_adaptation;

/* The windows of a warm-up, none for 0. */
void scl_adapt_windows(scl_adaptation *a, int warmup);
void scl_adapt_clear(scl_adaptation *a);
/* Starts averaging from a step size found by trial, with this number of iterations left. */
void scl_adapt_restart(scl_adaptation *a, double step_size, double left);
/* The step size for the next iteration, after one with this acceptance statistic. */
double scl_adapt_step(scl_adaptation *a, double accept);
/* The step size after the warm-up. */
double scl_adapt_final(const scl_adaptation *a);
/* Columns for the positions of the largest window, 256 at most. */
size_t scl_adapt_rows(int warmup);
/* Adds the position of iteration i and its gradient; true if a window ends with it. */
bool scl_adapt_observe(scl_adaptation *a, int i, const double *q, const double *g);
/* Whether `n` and `kept` are those after this iteration; `waits`: at the end of a window. */
bool scl_adapt_consistent(const scl_adaptation *a, int done, bool waits);
/* Adds the positions of another window, the `part`-th of `parts`, counted from 0. Of those in
 * columns each part gives every `parts`-th in place of those of `a`. */
void scl_adapt_merge(scl_adaptation *a, const scl_adaptation *other, int part, int parts);
/* The inverse mass matrix of the window, its diagonal or, if dense, its lower triangle. */
void scl_adapt_inverse(const scl_adaptation *a, double *inverse);

#endif
