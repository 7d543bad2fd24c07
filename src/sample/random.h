/* Streams of random numbers: those of R's generator "L'Ecuyer-CMRG" (L'Ecuyer, 1999, Operations
 * Research 47: MRG32k3a) with normal numbers by inversion, so that chains in C and in R draw the
 * same numbers. */
#ifndef SCL_SAMPLE_RANDOM_H
#define SCL_SAMPLE_RANDOM_H

#include <stdbool.h>

#include "base/status.h"

enum { SCL_RANDOM_BLOCK = 128 }; /* uniform numbers are made that many at a time, or more */

typedef struct {
  uint32_t state[6];
  double (*quantile)(double p); /* of the standard normal distribution, 0 < p < 1 */
  double *buffer;               /* uniform numbers made and not yet used: used .. count - 1 */
  size_t used, count, room;
} scl_random;

scl_status scl_random_begin(scl_random *s, const int state[6],
                            double (*quantile)(double)); /* SCL_E_MEMORY */
void scl_random_end(scl_random *s);
bool scl_random_sound(const scl_random *s); /* whether the generator can have this state */
/* Room for n buffered numbers. SCL_E_MEMORY. */
scl_status scl_random_grow(scl_random *s, size_t n);

void scl_random_normal(scl_random *s, size_t n, double *to);
/* n numbers in (0, 1), valid until the next call. SCL_E_MEMORY. */
scl_status scl_random_uniform(scl_random *s, size_t n, const double **out);
/* Makes `to`, begun or zero, a stream that gives the numbers that `from` will give. SCL_E_MEMORY.
 */
scl_status scl_random_copy(const scl_random *from, scl_random *to);

#endif
