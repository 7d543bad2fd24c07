/* Cholesky factors: rows of ops/operations.def, and what needs no matrix.
 *
 * Factors are lower, A = L L', or upper where `upper` says so, A = R' R; only that triangle of a
 * factor is read. CHOL is of a + jitter I, of which the lower triangle is read: SCL_E_NONFINITE
 * (index: first such element of that triangle), SCL_E_NOT_PD (index: order of the failing leading
 * minor). CHOL_ADJOINT, from L and l_adj = dF/dL, of which the lower triangle is read, is the
 * symmetric S with dF = sum(S * dA) for every symmetric dA, in 2 n^3 / 3 operations:
 * SCL_E_NONFINITE, SCL_E_SINGULAR. Both wait for the device, since they check their input. */
#ifndef SCL_OPS_CHOLESKY_H
#define SCL_OPS_CHOLESKY_H

#include "ops/call.h"

/* The n diagonal elements of the lower factor of a: its determinant is the product of their
 * squares. Errors as for CHOL. */
scl_status scl_chol_pivots(const scl_mat *a, double *out);

#endif
