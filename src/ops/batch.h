/* Batches of small matrices: the same operation on many independent matrices at once.
 *
 * A batch is a column of numbers: m x n matrices, column-major, one after the other without a gap,
 * so that matrix q starts at element q * m * n. The orders of square matrices go up to
 * SCL_BATCH_ORDER. An operand marked "shared" may hold one matrix, which is then used for all.
 *
 * A matrix that is singular, not positive definite or not finite does not affect the others: its
 * part of the result is NaN and its status says why. A result depends on its own matrix only: the
 * same bits in any batch, at any index.
 *
 * `status`, where it is an argument, holds a byte for each matrix: SCL_BATCH_FINE, k for the k-th
 * pivot (inverse, solve, tri_solve: it is zero or too small to be divided by; chol: the leading
 * minor of order k is not positive), or SCL_BATCH_NONFINITE. The call then waits; `bad` is the
 * number of matrices that are not fine, and the bytes are valid only if it is not 0. With status ==
 * NULL no status is reported, and on a device nothing waits.
 *
 * Results are new, released by the caller. SCL_E_ARGUMENT where shapes do not fit, SCL_E_MEMORY. */
#ifndef SCL_OPS_BATCH_H
#define SCL_OPS_BATCH_H

#include "base/engine.h"
#include "engine/pass/batch.h"

typedef struct {
  unsigned char *status; /* `batch` bytes, or NULL */
  size_t bad;
} scl_batch_report;

/* Inverses by Gauss-Jordan elimination with row pivoting; with `cofactors` (n <= 3) by cofactors,
 * which lose digits as a matrix nears singularity. */
scl_status scl_batch_inverse(const scl_mat *a, size_t n, size_t batch, bool cofactors,
                             scl_batch_report *report, scl_mat **out);

/* Cholesky factors, lower or upper; the lower triangles are read. */
scl_status scl_batch_chol(const scl_mat *a, size_t n, size_t batch, bool upper,
                          scl_batch_report *report, scl_mat **out);

/* Reverse mode of the lower factors: CHOL_ADJOINT of each. A zero on a diagonal is reported
 * in the status. */
scl_status scl_batch_chol_adjoint(const scl_mat *l, const scl_mat *l_adj, size_t n, size_t batch,
                                  scl_batch_report *report, scl_mat **out);

/* Solutions of a x = b, by elimination with row pivoting; a is n x n, b is n x k. Both may be
 * shared. */
scl_status scl_batch_solve(const scl_mat *a, const scl_mat *b, size_t n, size_t k, size_t batch,
                           scl_batch_report *report, scl_mat **out);

/* Determinants: a column of them, or, if `logarithm`, a batch x 2 matrix of log |det a| and the
 * sign of det a. */
scl_status scl_batch_det(const scl_mat *a, size_t n, size_t batch, bool logarithm, scl_mat **out);

/* Solutions of l x = b, or l' x = b if `transpose`; l is lower or upper triangular and its other
 * triangle is not used. Both may be shared. */
scl_status scl_batch_tri_solve(const scl_mat *l, const scl_mat *b, size_t n, size_t k, size_t batch,
                               bool upper, bool transpose, scl_batch_report *report, scl_mat **out);

/* op(a) op(b), m x k times k x n; sizes are not bounded by SCL_BATCH_ORDER. Both may be shared. */
scl_status scl_batch_matmul(const scl_mat *a, scl_trans trans_a, const scl_mat *b,
                            scl_trans trans_b, size_t m, size_t n, size_t k, size_t batch,
                            scl_mat **out);

/* Log densities of multivariate normals at the columns of y (n x batch): mean and Cholesky factor
 * (lower or upper) may be shared; mean may be NULL for zero. A column of `batch` values. */
scl_status scl_batch_mvn_lpdf(const scl_mat *y, const scl_mat *mean, const scl_mat *factor,
                              size_t n, size_t batch, bool upper, scl_batch_report *report,
                              scl_mat **out);

#endif
