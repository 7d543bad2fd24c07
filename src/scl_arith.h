/* Elementwise arithmetic, structure, selection, reductions and checks.
 *
 * Results are new matrices in the context of the operands, in `*out`; the caller releases them. All
 * may fail with SCL_E_MEMORY and the device faults. A result keeps a triangular or symmetric view
 * where that is certain whatever the numbers are: lower + lower is lower, lower * 2 is lower,
 * exp(lower) is general, f(symmetric) is symmetric.
 * Operations that check or reduce wait for the device, the others do not. */
#ifndef SCL_ARITH_H
#define SCL_ARITH_H

#include "scl_engine.h"

/* ---- elementwise -------------------------------------------------------------------------------
 */
/* op(a); op is a unary operation. */
scl_status scl_unary(scl_op op, const scl_mat *a, scl_mat **out);
/* op(a, b); op is a binary operation, a and b have one shape: else SCL_E_ARGUMENT. */
scl_status scl_binary(scl_op op, const scl_mat *a, const scl_mat *b, scl_mat **out);
/* op(a, scalar), or op(scalar, a) when `scalar_first`. */
scl_status scl_binary_scalar(scl_op op, const scl_mat *a, double scalar, bool scalar_first,
                             scl_mat **out);

/* diag(d) a (SCL_LEFT) or a diag(d) (SCL_RIGHT); d is a column or a row as long as that side. */
scl_status scl_scale_diagonal(scl_side side, const scl_mat *d, const scl_mat *a, scl_mat **out);
/* a + value I; a is square. */
scl_status scl_add_diagonal(const scl_mat *a, double value, scl_mat **out);

/* ---- structure
 * ----------------------------------------------------------------------------------- */
/* m x n, every element `value`. */
scl_status scl_constant(scl_context *ctx, double value, size_t m, size_t n, scl_mat **out);
/* `batch` identities of n x n side by side: n x (n * batch). */
scl_status scl_identity(scl_context *ctx, size_t n, size_t batch, scl_mat **out);
/* A structured copy. The result's view is that of a (SCL_COPY), its transpose, or what the triangle
 * makes of a square matrix; copies that mirror need a square a. */
scl_status scl_copy_as(scl_copy kind, const scl_mat *a, scl_mat **out);
/* Rows i .. i+m-1 and columns j .. j+n-1; a square part on the diagonal keeps the view. */
scl_status scl_part(const scl_mat *a, size_t i, size_t j, size_t m, size_t n, scl_mat **out);
/* a[rows, columns] with 0-based indices in any order, repeats allowed; NULL takes all (and the
 * count is ignored). SCL_E_ARGUMENT for an index out of range. */
scl_status scl_select(const scl_mat *a, const size_t *rows, size_t m, const size_t *columns,
                      size_t n, scl_mat **out);
/* The diagonal as a column. */
scl_status scl_diagonal(const scl_mat *a, scl_mat **out);
/* The square matrix with the column or row d on its diagonal. */
scl_status scl_diagonal_matrix(const scl_mat *d, scl_mat **out);
/* Side by side, or one under the other. count > 0; SCL_E_ARGUMENT when the other dimensions differ.
 */
scl_status scl_bind_columns(const scl_mat *const *parts, size_t count, scl_mat **out);
scl_status scl_bind_rows(const scl_mat *const *parts, size_t count, scl_mat **out);

/* ---- to the host
 * ----------------------------------------------------------------------------------- */
/* Reduction over all elements of a (and b of the same shape for SCL_REDUCE_DOT, else NULL); the
 * identity of the reduction when there are none. */
scl_status scl_reduce(scl_reduction op, const scl_mat *a, const scl_mat *b, double *out);
/* *index as for the engine's check (scl_engine.h), 0 when all pass. `tol` is for the symmetric one,
 * which needs a square a. */
scl_status scl_check_matrix(scl_check what, double tol, const scl_mat *a, int64_t *index);

#endif
