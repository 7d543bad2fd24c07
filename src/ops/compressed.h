/* Sparse matrices with their transposes, in compressed rows, for products: on any engine, and never
 * dense. (Sparse factors are in ops/sparse.h.) */
#ifndef SCL_OPS_COMPRESSED_H
#define SCL_OPS_COMPRESSED_H

#include "base/matrix.h"

typedef struct scl_compressed scl_compressed;

/* m x n, from compressed columns: those of column j are value[t] in row[t], start[j] <= t < start[j
 * + 1], rows increasing. `value` must outlive the matrix on an engine that can wrap it; the others
 * are copied. SCL_E_ARGUMENT ("x") if that is not so. */
scl_status scl_compressed_create(scl_context *ctx, size_t m, size_t n, const int32_t *start,
                                 const int32_t *row, const double *value, scl_compressed **out);
void scl_compressed_release(scl_compressed *a); /* accepts NULL */

scl_context *scl_compressed_context(const scl_compressed *a); /* borrowed */
uint64_t scl_compressed_bytes(const scl_compressed *a);

/* op(A) b. */
scl_status scl_compressed_multiply(const scl_compressed *a, bool transposed, scl_mat *b,
                                   scl_mat **out);
/* op(A)' diag(w) op(A), symmetric; w: a column, or NULL. */
scl_status scl_compressed_gram(const scl_compressed *a, bool transposed, scl_mat *w, scl_mat **out);

#endif
