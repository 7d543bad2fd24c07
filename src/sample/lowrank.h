/* An inverse mass matrix of low rank plus diagonal, L L' = D^1/2 (I + U (Lambda - I) U') D^1/2 with
 * orthonormal columns of U, so L = D^1/2 (I + U (Lambda^1/2 - I) U'): a product takes 4 d r
 * multiplications.
 *
 * It is estimated from positions and gradients. D holds sd(position) / sd(gradient), and in the
 * space of the leading eigenvectors of both, scaled by D (for few dimensions in all of them), the
 * matrix S has S B S = A with the covariance matrices A of positions and B of gradients: for a
 * normal distribution that is the covariance matrix itself, whatever the positions. U and Lambda
 * are the eigenpairs of S with eigenvalues above 2 or below 1/2. */
#ifndef SCL_SAMPLE_LOWRANK_H
#define SCL_SAMPLE_LOWRANK_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  size_t d, most;             /* dimension, and the largest rank */
  double *scale;              /* D^1/2; borrowed, as all below */
  double *rank;               /* as a double, so that all is one block */
  double *value;              /* Lambda */
  double *vector, *transpose; /* U, by column and by row */
  double *weight, *product;   /* Lambda^1/2 - 1; temporary */
} scl_lowrank;

/* The number of doubles of all but `scale`, and the metric that is kept there. */
size_t scl_lowrank_room(size_t d, size_t most);
scl_lowrank scl_lowrank_at(size_t d, size_t most, double *scale, double *room);
/* Sets `rank` directions, at most `most`. */
void scl_lowrank_set(const scl_lowrank *m, size_t rank, const double *values,
                     const double *vectors);
/* to <- L x, or L' x, in this order of operations, for equal bits. */
void scl_lowrank_times(const scl_lowrank *m, bool transposed, const double *restrict x,
                       double *restrict to);

/* The number of doubles in the workspace of the estimates. */
size_t scl_lowrank_work(size_t d, size_t n, size_t most);
/* Estimates the metric from n > 1 positions and their gradients, in columns, which are
 * overwritten. */
void scl_lowrank_fit(const scl_lowrank *m, size_t n, double *positions, double *gradients,
                     double *work);
/* The same if the metric saves at least a fifth of the steps against the variances of the
 * positions: estimated from each half of the positions and gradients, both are compared on the
 * other half. Otherwise false, and the rank is 0. */
bool scl_lowrank_choose(const scl_lowrank *m, size_t n, double *positions, double *gradients,
                        double *work);

#endif
