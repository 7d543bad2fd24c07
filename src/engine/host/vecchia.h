/* A block of Vecchia's approximation on the host: what vecchia.c and vecchia_covariance.c share. */
#ifndef SCL_ENGINE_HOST_VECCHIA_H
#define SCL_ENGINE_HOST_VECCHIA_H

#include "engine/host/host.h"
#include "engine/host/lanes.h"
#include "engine/host/vector_math.h"
#include "engine/host/wide.h"
#include "engine/pass/vecchia.h"

#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif

typedef scl_lanes lanes;

/* One for each thread: LANES points side by side, each number a vector. Covariances stand in
 * strips: the lower triangle by columns, so that functions run along them. */
typedef struct {
  const struct scl_vecchia_pass *pass;
  scl_vector_function *exponential; /* or NULL */
  size_t rows, pairs;               /* m + 1, rows (rows + 1) / 2 */
  lanes *x, *z, *noise, *real; /* coordinates; columns; noise's variance; 1 for rows that exist */
  lanes *by_noise;             /* d noise / d log noise */
  lanes *quiet;                /* 1 for rows without noise and white terms */
  lanes *value, *slope, *bend; /* of each term, a strip */
  lanes *sum, *weight, *by;    /* strips */
  lanes *k;                    /* the covariances, then their factor: rows x rows */
  lanes *w, *b, *c;            /* rows */
  lanes *moved, *solved;       /* of information: rows for each parameter, and for each column */
  lanes present;               /* 1 in the lanes of points, 0 in the last block's others */
  int order;                   /* 1 + the lane of a block that is not positive definite, or 0 */
  bool far;                    /* a sum of squares has overflowed */
} block;

/* k and the strips of terms, from the points. */
void scl_vecchia_build(block *v);
/* Adds the derivatives b' dK w of the block to `total`, in the order of ops/covariance.h. */
void scl_vecchia_differentiate(block *v, lanes *total);
/* moved = dK w for each parameter of information. */
void scl_vecchia_move(block *v);

#endif
