/* Residuals of least squares with about twice the digits of a double, in host memory, for the
 * correction of a solution. */
#ifndef SCL_OPS_LEAST_SQUARES_H
#define SCL_OPS_LEAST_SQUARES_H

#include <stddef.h>

#include "base/context.h"

/* For x, n x p and column-major, y and rest of n numbers, beta of p:
 * gap = y - rest - x beta (n numbers) and slope = x' rest (p numbers), each sum and product with
 * its rounding error and rounded once. Nothing overlaps. SCL_E_MEMORY; the status of scl_poll(). */
scl_status scl_least_squares_gaps(const double *x, size_t n, size_t p, const double *y,
                                  const double *beta, const double *rest, double *gap,
                                  double *slope);

/* Adds x' (y - x beta) to the first p of `sum` and the sum of squares of y - x beta to the next
 * one, for a block of rows. `lost`, as long, holds the rounding errors of `sum`. Nothing overlaps.
 * SCL_E_MEMORY; the status of scl_poll(). */
scl_status scl_least_squares_slope(const double *x, size_t n, size_t p, const double *y,
                                   const double *beta, double *sum, double *lost);

/* The reflections of the QR decomposition of x, n x p, as LINPACK's dqrdc gives them: `qr`, of
 * which the lower half is read, and `aux`; `root`, p x p, is the upper triangle. */
typedef struct {
  size_t n, p;
  const double *x, *qr, *aux, *root;
} scl_reflections;

/* Coefficients (p) and residuals (n), both refined with residuals in twice the precision until they
 * no longer improve. As proposed by Bjorck, they are refined together: with large residuals, errors
 * of the coefficients grow with the square of the condition number. Nothing overlaps. The statuses
 * of scl_least_squares_gaps(). */
scl_status scl_least_squares(const scl_reflections *q, const double *y, double *beta, double *rest);

/* x becomes x root^-1 for x, n x p, and an upper triangular root, p x p, both column-major. */
void scl_solve_right(double *x, size_t n, size_t p, const double *root);

#endif
