/* Batches of small matrices on the host: LANES matrices side by side, so that every step of an
 * algorithm is an operation on one vector register or a few, for every order, and the order of a
 * sum does not depend on the index of a matrix in its batch. Element (i, j) of the matrices of a
 * block is x[i + j * n], one number for each lane.
 *
 * The last block of a batch repeats its last matrix in the remaining lanes. */
#ifndef SCL_ENGINE_HOST_LANES_H
#define SCL_ENGINE_HOST_LANES_H

#include "engine/pass/batch.h"

#if defined(__GNUC__)
#define SCL_LANES 4
/* May alias: single lanes are read and written as doubles. */
typedef double scl_lanes __attribute__((vector_size(8 * SCL_LANES), may_alias));
#else
#define SCL_LANES 1
typedef double scl_lanes;
#endif

/* Lane w of an element. */
static inline double *scl_lane(scl_lanes *x, size_t element, int w) {
  return (double *)(x + element) + w;
}

/* All of these work in place. status[w] does not change once it is set. piv[k * SCL_LANES + w]: the
 * row that row k was swapped with. */

/* Inverse by Gauss-Jordan elimination; `work` holds 2 n elements. */
void scl_lanes_inverse(size_t n, scl_lanes *x, unsigned char *piv, scl_lanes *work,
                       unsigned char *status);
/* Inverse by cofactors, n <= 3. */
void scl_lanes_cofactors(size_t n, scl_lanes *x, unsigned char *status);
/* L and U of the rows in pivot order. */
void scl_lanes_lu(size_t n, scl_lanes *x, unsigned char *piv, unsigned char *status);
/* k right-hand sides with these factors. */
void scl_lanes_lu_solve(size_t n, size_t k, const scl_lanes *x, const unsigned char *piv,
                        scl_lanes *b);
/* Determinants from the factors: value (or log of its size) and sign, of each lane. */
void scl_lanes_lu_det(size_t n, scl_lanes *x, const unsigned char *piv, bool logarithm,
                      double value[SCL_LANES], double sign[SCL_LANES]);
/* Lower factor in the lower triangle. */
void scl_lanes_chol(size_t n, scl_lanes *x, unsigned char *status);
/* Reverse mode: l holds the lower factor, s the lower triangle of its adjoint; s becomes the
 * symmetric result. */
void scl_lanes_chol_adjoint(size_t n, scl_lanes *l, scl_lanes *s, unsigned char *status);
/* k right-hand sides with the lower triangle of l. */
void scl_lanes_forward(size_t n, size_t k, const scl_lanes *l, scl_lanes *b);
/* c (m x n) += a (m x k) b (k x n). */
void scl_lanes_product(size_t m, size_t n, size_t k, const scl_lanes *a, const scl_lanes *b,
                       scl_lanes *c);

#endif
