/* Points in space for Vecchia's approximation: a maximin order, and nearest neighbours by a k-d
 * tree. Points are rows of p numbers, one after another; distances are Euclidean, and ties go to
 * the smaller index. Results do not depend on the number of threads. */
#ifndef SCL_OPS_VECCHIA_ORDER_H
#define SCL_OPS_VECCHIA_ORDER_H

#include "base/status.h"

/* order[k] = the k-th point: the first is the one nearest to the mean, and each next one has the
 * largest distance from those before it. Beyond a size (scl_vecchia_exact_order()) only
 * approximately so: by cells of a grid, whose sides are halved from level to level; a cell
 * contributes the point nearest to its centre unless it has one already. */
scl_status scl_vecchia_order(const double *points, size_t n, size_t p, int32_t *order);
size_t scl_vecchia_exact_order(size_t p);

/* neighbours[k + i * stride]: the m points (fewer for i < m: -1 then) nearest to point i among
 * those before it, nearest first. */
scl_status scl_vecchia_neighbours(const double *points, size_t n, size_t p, size_t m, size_t stride,
                                  int32_t *neighbours);

/* The same for points `at` (count x p) among all of `points`. */
scl_status scl_vecchia_nearest(const double *points, size_t n, size_t p, const double *at,
                               size_t count, size_t m, size_t stride, int32_t *neighbours);

/* A partition of the points into blocks whose members are conditioned together on the union of
 * their neighbours. Point by point in the order: one joins the block of a neighbour if the square
 * of the union's size is not above the sum of the squares apart. A block has the rows of the union
 * in the order, scl_vecchia_block_rows(m) numbers, -1 beyond its size: twice the position, and 1
 * more for members. Blocks with more rows, and of those with more members, come first. *blocks:
 * release with free(). n is at most 2^30. */
scl_status scl_vecchia_group(const int32_t *neighbours, size_t n, size_t m, size_t stride,
                             int32_t **blocks, size_t *count);
size_t scl_vecchia_block_rows(size_t m);

#endif
