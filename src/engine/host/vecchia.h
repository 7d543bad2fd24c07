/* A block of Vecchia's approximation on the host: shared by vecchia.c and vecchia_covariance.c. */
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

enum { SCL_VECCHIA_WIDTH = 8 }; /* members whose vectors are moved together */

/* One for each thread: LANES points side by side, each number a vector. Covariances stand in
 * strips: the lower triangle by columns, so that functions run along them. */
typedef struct {
  const struct scl_vecchia_pass *pass;
  scl_vector_function *exponential; /* or NULL */
  size_t rows, pairs;               /* m + 1, or those in use; rows (rows + 1) / 2 */
  lanes *x, *z, *noise, *real; /* coordinates; columns; noise's variance; 1 for rows that exist */
  lanes *by_noise;             /* d noise / d log noise */
  lanes *quiet;                /* 1 for rows without noise and white terms */
  lanes *value, *slope, *bend; /* of each term, a strip */
  lanes *sum, *weight, *by;    /* strips */
  lanes *k;                    /* the covariances, then their factor: rows x rows */
  lanes *w, *b, *c;            /* rows */
  lanes *moved, *solved;       /* of information: rows for each parameter, and for each column */
  const lanes *moving;         /* the `width` vectors that dK multiplies */
  size_t width;
  size_t last[SCL_VECCHIA_WIDTH]; /* row after which each of them is zero */
  lanes *all_w;                   /* grouped: w of SCL_VECCHIA_WIDTH members */
  lanes *member;                  /* grouped: 1 for rows of members */
  lanes *place;                   /* grouped: the row of the q-th member, or -1 */
  size_t members;                 /* grouped: of the lane that has most */
  lanes *combined;                /* grouped: rows for each of them */
  lanes present;                  /* 1 in the lanes of points, 0 in the last block's others */
  int order;                      /* 1 + the lane of a block that is not positive definite, or 0 */
  bool far;                       /* a sum of squares has overflowed */
} block;

/* A row, lane w: coordinates, noise and so on, from its record. */
void scl_vecchia_read(block *v, const double *record, size_t row, int w, bool real, bool quiet);
/* k and the strips of terms, from the points. */
void scl_vecchia_build(block *v);
/* k := L, its lower factor. */
void scl_vecchia_factor(block *v);
/* x := L^-T x and x := L^-1 x, of the rows up to `last` (x is 0 beyond them, or not needed). */
void scl_vecchia_back(const block *v, size_t last, lanes *x);
void scl_vecchia_forward(const block *v, size_t last, lanes *x);
/* Adds the derivatives of the block to `total`, in the order of ops/covariance.h: the sum of
 * `weight` by dK, whose pairs count once. */
void scl_vecchia_differentiate(block *v, lanes *total);
/* moved = dK w for each parameter of information and each of the vectors w, up to their last rows.
 */
void scl_vecchia_move(block *v, const lanes *w);

/* Grouped: the blocks from i on, and what they add to `total`, which starts after the order. */
void scl_vecchia_read_blocks(block *v, size_t i);
void scl_vecchia_evaluate_blocks(block *v, lanes *total);

#endif
