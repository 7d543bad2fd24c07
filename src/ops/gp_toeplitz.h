/* The marginal likelihood of a Gaussian process whose covariance matrix is Toeplitz: points in
 * equal steps, a covariance that depends on their distance, the same noise everywhere. Value and
 * derivatives take O(n^2) and memory for some columns, on the host.
 *
 * With c the first column of C, the Levinson-Durbin recursion (Golub and Van Loan, Matrix
 * Computations, 4th edition, 4.7) gives for each i the prediction error filter f of the first i
 * observations (f_0 = 1) and the variance E of the error, hence innovations, log|C| and C^-1 b. The
 * last f and E give C^-1 by the formula of Gohberg and Semencul (Trench, 1964), of which
 * derivatives need the sums along the diagonals only: with x = f / E, sum_i (C^-1)_{i, i + d} =
 * sum_j (n - d - 2 j) x_j x_{j + d} / x_0,  j = 0 ... n - d - 1.
 *
 * The recursion is less accurate than a Cholesky factor for badly conditioned matrices; a result
 * that fails the checks below is not given. */
#ifndef SCL_OPS_GP_TOEPLITZ_H
#define SCL_OPS_GP_TOEPLITZ_H

#include "ops/gp.h"

/* As scl_gp_evaluate() with SCL_GP_MARGINAL, for one column of y, no `spread`, points in the order
 * of their steps, on a host context. The caller guarantees that the matrix is Toeplitz: only its
 * first column is computed. *usable is false, and the rest untouched, if C is not positive definite
 * or results would not be accurate: if the variances of the errors fall below that of the noise,
 * or, with `gradient`, unless tr(C^-1 C) is n and a' C a is y' a, to 1e-6. */
scl_status scl_gp_toeplitz(scl_context *host, const scl_gp_data *data, const scl_covariance *kernel,
                           scl_gp_trend trend, bool *usable, double *value, double *b,
                           double *gradient);

#endif
