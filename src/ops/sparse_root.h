/* Cholesky factors of sparse matrices in the order that they have, as values, and their reverse
 * mode. The pattern has what fills in: it is that of the factor. */
#ifndef SCL_OPS_SPARSE_ROOT_H
#define SCL_OPS_SPARSE_ROOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* The lower triangle by columns: those of column j are row[start[j]], ..., in order, the diagonal
 * first. */
typedef struct {
  size_t n;
  const double *start, *row;
} scl_sparse_columns;

/* Whether nothing more fills in. */
bool scl_sparse_is_filled(scl_sparse_columns a);
/* Replaces a lower triangle by its factor, by NaN if it has none. SCL_E_MEMORY. */
scl_status scl_sparse_root(scl_sparse_columns a, double *x);
/* Replaces the derivatives by the factor l by those by the lower triangle. SCL_E_MEMORY. */
scl_status scl_sparse_root_adjoint(scl_sparse_columns a, const double *l, double *slope);

#endif
