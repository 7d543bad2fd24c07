/* Elementwise arithmetic, reductions and checks. (Structure and selection: scl_structure.h.)
 *
 * Results are new matrices in the context of the operands, in `*out`; the caller releases them. All
 * may fail with SCL_E_MEMORY and the device faults. A result keeps a triangular or symmetric view
 * where that is certain whatever the numbers are: lower + lower is lower, lower * 2 is lower,
 * exp(lower) is general, f(symmetric) is symmetric.
 * Operations that check or reduce wait for the device, the others do not. */
#ifndef SCL_ARITH_H
#define SCL_ARITH_H

#include "scl_engine.h"

/* ---- elementwise ---------------------------------------------------------------------------- */
/* op(a); op is a unary operation. */
scl_status scl_unary(scl_op op, const scl_mat *a, scl_mat **out);
/* op(a, b); op is a binary operation. a and b have one shape, or one of them is a column of the
 * other's rows, which then meets every column: else SCL_E_ARGUMENT. */
scl_status scl_binary(scl_op op, const scl_mat *a, const scl_mat *b, scl_mat **out);
/* op(a, scalar), or op(scalar, a) when `scalar_first`. */
scl_status scl_binary_scalar(scl_op op, const scl_mat *a, double scalar, bool scalar_first,
                             scl_mat **out);

/* diag(d) a (SCL_LEFT) or a diag(d) (SCL_RIGHT); d is a column or a row as long as that side. */
scl_status scl_scale_diagonal(scl_side side, const scl_mat *d, const scl_mat *a, scl_mat **out);
/* a + value I; a is square. */
scl_status scl_add_diagonal(const scl_mat *a, double value, scl_mat **out);

/* ---- to the host ---------------------------------------------------------------------------- */
/* Reduction over all elements of a (and b of the same shape for SCL_REDUCE_DOT, else NULL); the
 * identity of the reduction when there are none. */
scl_status scl_reduce(scl_reduction op, const scl_mat *a, const scl_mat *b, double *out);
/* *index as for the engine's check (scl_engine.h), 0 when all pass. `tol` is for the symmetric one,
 * which needs a square a. */
scl_status scl_check_matrix(scl_check what, double tol, const scl_mat *a, int64_t *index);

#endif
