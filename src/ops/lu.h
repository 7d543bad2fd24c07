/* Factors of general square matrices, for compiled functions (src/program).
 *
 * A factor is a column of n (n + 1) numbers that only scl_lu_solve_block() reads: an LU
 * decomposition, or on an engine without one the inverse. A singular matrix is no failure: log
 * |det| is -Inf, and solutions are not finite. */
#ifndef SCL_OPS_LU_H
#define SCL_OPS_LU_H

#include "base/engine.h"

/* factor and det (two numbers: log |det a| and the sign of det a) of the n x n matrix a; all
 * without gaps. */
scl_status scl_lu_block(scl_context *ctx, scl_block a, scl_block factor, scl_block det);

/* x = op(A)^-1 b, n x k. */
scl_status scl_lu_solve_block(scl_context *ctx, scl_trans trans, scl_block factor, scl_block b,
                              scl_block x);

#endif
