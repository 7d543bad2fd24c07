/* Between the files of src/ops/sparse*.c.
 *
 * Columns of the factor with nearly the same rows form a supernode: a dense panel of m rows and c
 * columns, the first c rows being those of its own columns. The factor is computed from the leaves
 * of the tree of supernodes to its roots: what a supernode takes from the rows behind its own is
 * kept on a stack until its parent takes it over. The inverse is computed from the roots to the
 * leaves. J. W. H. Liu, "The multifrontal method for sparse matrix solution", 1992. */
#ifndef SCL_OPS_SPARSE_PARTS_H
#define SCL_OPS_SPARSE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/sparse.h"

#define SCL_SPARSE_ROOT UINT32_MAX

typedef struct {
  uint32_t from, columns, rows; /* first column; c; rows behind the own ones */
  uint32_t parent;              /* supernode, or SCL_SPARSE_ROOT */
  uint32_t child, next;         /* the last child; the next child of the parent, both likewise */
  size_t at;                    /* of its rows in `row` and `place` */
  size_t panel;                 /* of its panel in `x` */
} scl_supernode;

struct scl_sparse_factor {
  size_t n, count, nodes, size, stack, inverse_stack;
  uint32_t *order; /* the column of the matrix at each place of the factor */
  scl_supernode *node;
  uint32_t *row;    /* rows behind the own ones */
  uint32_t *place;  /* of these in the parent's panel */
  size_t *to;       /* of each number of the matrix in `x` */
  size_t *diagonal; /* of each place in `x` */
  double *x, *room, *vector;
  bool ready;
};

/* An order by minimum degree (ops/sparse_order.c). SCL_E_MEMORY. */
scl_status scl_sparse_order(size_t n, const size_t *start, const uint32_t *row, uint32_t *order);

#endif
