/* A k-d tree whose leaves hold a few points each, with their coordinates. */
#ifndef SCL_OPS_VECCHIA_TREE_H
#define SCL_OPS_VECCHIA_TREE_H

#include <stdbool.h>

#include "base/status.h"
#include "base/threads.h"

enum { SCL_TREE_LEAF = 12 }; /* the most points of a leaf */

/* A point's record is its p coordinates, and its index as one more number. */
typedef struct {
  size_t n, p, leaves; /* leaves: a power of two */
  double *record;      /* in the order of the leaves */
  double *split;       /* of node k, whose children are 2 k + 1 and 2 k + 2 */
  int *dimension;      /* along which node k is split */
} scl_tree;

scl_status scl_tree_create(const double *points, size_t n, size_t p, scl_team *team, int threads,
                           scl_tree **out);
void scl_tree_release(scl_tree *tree); /* accepts NULL */

/* The nearest points to one: `at`, the results and a workspace. */
typedef struct {
  const scl_tree *tree;
  const double *at;
  double *offset;   /* p numbers: how far `at` is from the node at hand along each coordinate */
  double *distance; /* squares, of the `found` nearest ones so far, ascending */
  int32_t *index;   /* of these */
  size_t m, found;
  int64_t limit; /* only points with a smaller index */
} scl_tree_search;

void scl_tree_nearest(scl_tree_search *search);

/* closest[i] becomes the square of the distance of point i from `at` if that is smaller than now;
 * points beyond the square `radius` may be left out. `offset`: p zeros. */
void scl_tree_shrink(const scl_tree *tree, const double *at, double radius, double *offset,
                     double *closest);

#endif
