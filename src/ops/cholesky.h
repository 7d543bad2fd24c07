/* Cholesky factor, its reverse mode, and results computed from the factor.
 *
 * Factors are lower, A = L L', or upper where `upper` says so, A = R' R; only that triangle of a
 * factor is read. Results are new matrices, released by the caller. All of these wait for the
 * device, since they check their input. */
#ifndef SCL_OPS_CHOLESKY_H
#define SCL_OPS_CHOLESKY_H

#include "ops/call.h"

/* Factor of the n x n matrix a + jitter I, of which the lower triangle is read. jitter >= 0.
 * SCL_E_NONFINITE (index: first such element of that triangle), SCL_E_NOT_PD (index: order of the
 * failing leading minor). */
scl_status scl_chol(const scl_mat *a, double jitter, bool upper, scl_mat **out);

/* The n diagonal elements of the factor of a: its determinant is the product of their squares.
 * Errors as for scl_chol(). */
scl_status scl_chol_pivots(const scl_mat *a, double *out);

/* Reverse mode of the lower factor: from L and l_adj = dF/dL, of which the lower triangle is read,
 * the symmetric S with dF = sum(S * dA) for every symmetric dA. 2 n^3 / 3 operations.
 * SCL_E_NONFINITE, SCL_E_SINGULAR. */
scl_status scl_chol_adjoint(const scl_mat *l, const scl_mat *l_adj, scl_mat **out);

/* The same on blocks, unchecked: l with zeros above its diagonal. */
scl_status scl_chol_adjoint_block(scl_context *ctx, scl_block l, scl_block l_adj, scl_block s);

/* A^-1 from the factor, symmetric. SCL_E_SINGULAR. */
scl_status scl_chol_inverse(const scl_mat *l, bool upper, scl_mat **out);

/* Rows of graph/ops.def; the result of log_det is a 1 x 1 matrix, and it does not wait. */
scl_rule scl_chol_rule, scl_chol_adjoint_rule, scl_chol_inverse_rule, scl_log_det_rule;
scl_forward scl_chol_forward, scl_chol_adjoint_forward, scl_chol_inverse_forward;
scl_forward scl_log_det_forward;

#endif
