/* Diagonals in products and sums, and checks. (Elementwise arithmetic and reductions:
 * graph/expr.h.)
 *
 * Results are new matrices in the context of the operands, in `*out`; the caller releases them. All
 * may fail with SCL_E_MEMORY and errors of the device. Checks wait for the device. */
#ifndef SCL_OPS_DIAGONAL_H
#define SCL_OPS_DIAGONAL_H

#include "base/engine.h"

/* diag(d) a (SCL_LEFT) or a diag(d) (SCL_RIGHT); d is a column or a row as long as that side. */
scl_status scl_scale_diagonal(scl_side side, const scl_mat *d, const scl_mat *a, scl_mat **out);
/* a + value I; a is square. */
scl_status scl_add_diagonal(const scl_mat *a, double value, scl_mat **out);

/* *index as for the engine's check (base/engine.h), 0 when all pass. `tol` is for the symmetric
 * one, which needs a square a. */
scl_status scl_check_matrix(scl_check what, double tol, const scl_mat *a, int64_t *index);

#endif
