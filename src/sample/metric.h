/* A dense inverse mass matrix L L'. The square that holds L, by column, has its transpose in the
 * upper triangle, so that both products read columns. */
#ifndef SCL_SAMPLE_METRIC_H
#define SCL_SAMPLE_METRIC_H

#include <stdbool.h>
#include <stddef.h>

/* The factor of the symmetric matrix whose lower triangle is in `a`, in place. False, with `a`
 * overwritten, if it is not positive definite. */
bool scl_metric_factor(size_t n, double *a);
/* to <- L x, or L' x: column by column, in this order, for equal bits. */
void scl_metric_times(size_t n, const double *factor, bool transposed, const double *restrict x,
                      double *restrict to);

#endif
