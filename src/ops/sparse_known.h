/* Sparse matrices of one pattern on the host, with the last factor: calls for the same numbers
 * factorize once. For the values SPARSE_*. */
#ifndef SCL_OPS_SPARSE_KNOWN_H
#define SCL_OPS_SPARSE_KNOWN_H

#include "base/engine.h"

typedef struct scl_sparse_known scl_sparse_known;

/* Whether these numbers are a pattern as ops/operations.def has it, of order n with `count` rows.
 */
bool scl_sparse_is_pattern(const double *pattern, size_t length, size_t n, size_t count);
/* The pattern is copied. SCL_E_MEMORY. */
scl_status scl_sparse_known_create(const double *pattern, size_t n, size_t count,
                                   scl_sparse_known **out);
/* The same pattern with a factor of its own, for another thread. */
scl_status scl_sparse_known_copy(const scl_sparse_known *known, scl_sparse_known **out);
void scl_sparse_known_release(scl_sparse_known *known); /* accepts NULL */

/* Of the matrix a, into dst; NaN if it has no factor. */
scl_status scl_sparse_known_log_det(scl_context *ctx, scl_sparse_known *known, scl_block a,
                                    scl_block dst);
scl_status scl_sparse_known_inverse(scl_context *ctx, scl_sparse_known *known, scl_block a,
                                    scl_block dst);
scl_status scl_sparse_known_solve(scl_context *ctx, scl_sparse_known *known, scl_block a,
                                  scl_block b, scl_block dst);
/* The factor in the order of the pattern, which must be filled (ops/sparse_root.h); the derivatives
 * by the matrix from those by the factor l. */
scl_status scl_sparse_known_root(scl_context *ctx, scl_sparse_known *known, scl_block a,
                                 scl_block dst);
scl_status scl_sparse_known_root_adjoint(scl_context *ctx, scl_sparse_known *known, scl_block l,
                                         scl_block slope, scl_block dst);

#endif
