/* Making, copying, selecting and binding matrices.
 *
 * Results are new matrices in the context of the operands, in `*out`; the caller releases them. All
 * may fail with SCL_E_MEMORY and errors of the device; none waits for the device. */
#ifndef SCL_OPS_CONSTRUCTORS_H
#define SCL_OPS_CONSTRUCTORS_H

#include "ops/call.h"

/* m x n, every element `value`. */
scl_status scl_constant(scl_context *ctx, double value, size_t m, size_t n, scl_mat **out);
/* `batch` identities of n x n side by side: n x (n * batch). */
scl_status scl_identity(scl_context *ctx, size_t n, size_t batch, scl_mat **out);
/* A structured copy. The result's view is that of a (SCL_COPY), its transpose, or that of the
 * triangle of a square matrix; copies that mirror need a square a. */
scl_status scl_copy_as(scl_copy kind, const scl_mat *a, scl_mat **out);
/* Rows i .. i+m-1 and columns j .. j+n-1; a square part on the diagonal keeps the view. */
scl_status scl_part(const scl_mat *a, size_t i, size_t j, size_t m, size_t n, scl_mat **out);
/* a[rows, columns] with 0-based indices in any order, repeats allowed; NULL selects all (and the
 * count is ignored). SCL_E_ARGUMENT for an index out of range. */
scl_status scl_select(const scl_mat *a, const size_t *rows, size_t m, const size_t *columns,
                      size_t n, scl_mat **out);

#endif
