/* Vecchia's approximation of Gaussian-process regression (ops/gp.h): in a maximin order of the
 * points, each observation is conditioned on its m nearest earlier ones only,
 *   p(y) = prod_i p(y_i | y_neighbours(i)),
 * so that the precision matrix is Q = W W' with a sparse column w_i for each point
 * (engine/pass/vecchia.h), and everything takes O(n m^3) operations. Vecchia (1988); Guinness
 * (2018); the derivatives are those of Guinness (2021). Likelihoods can be grouped (Guinness,
 * 2018): observations whose neighbours overlap are conditioned together on the union, each on those
 * of it that are earlier (scl_vecchia_group()).
 *
 * An object has the data on the host, in the order of the approximation, and on a device a copy for
 * likelihoods there. */
#ifndef SCL_OPS_VECCHIA_H
#define SCL_OPS_VECCHIA_H

#include "ops/gp.h"

typedef struct scl_vecchia scl_vecchia;

/* `scale`: factors of the columns of x, p nonnegative numbers, for the distances of the order and
 * the neighbours. m is cut to n - 1. `grouped`: likelihoods and their information. Errors as of
 * scl_gp_create(), and SCL_E_ARGUMENT naming "neighbours". */
scl_status scl_vecchia_create(scl_context *ctx, const scl_gp_data *data, const double *scale,
                              size_t m, bool grouped, scl_vecchia **out);
void scl_vecchia_release(scl_vecchia *v); /* accepts NULL */

scl_context *scl_vecchia_context(const scl_vecchia *v); /* borrowed */
scl_gp_shape scl_vecchia_shape_of(const scl_vecchia *v);
size_t scl_vecchia_neighbour_count(const scl_vecchia *v);
uint64_t scl_vecchia_bytes(const scl_vecchia *v);
/* order (n), and neighbours (m x n) as positions in it, from 0; -1: none. */
void scl_vecchia_graph(const scl_vecchia *v, int32_t *order, int32_t *neighbours);
/* The number of blocks, 0 if it is not grouped; their rows; scl_vecchia_group() has their form. */
size_t scl_vecchia_block_count(const scl_vecchia *v);
size_t scl_vecchia_block_size(const scl_vecchia *v);
const int32_t *scl_vecchia_blocks(const scl_vecchia *v); /* borrowed */

/* As scl_gp_evaluate() of the marginal likelihood. SCL_E_NOT_PD with the row of x whose
 * observation, with its neighbours, has no positive definite covariance matrix. */
scl_status scl_vecchia_evaluate(scl_vecchia *v, const scl_covariance *kernel, scl_gp_trend trend,
                                double *value, double *b, double *gradient);

/* The same with derivatives by `count` parameters and their Fisher information (count x count),
 * with b known: of the logarithms of the kernel's parameters, group[i] is the number of parameter i
 * from 1, negative if it is minus the parameter, or 0 if it is none. In one pass. */
scl_status scl_vecchia_inform(scl_vecchia *v, const scl_covariance *kernel, scl_gp_trend trend,
                              const int *group, size_t count, double *value, double *b,
                              double *gradient, double *information);

/* As scl_gp_condition(), with value and b of the likelihood; and `precisions` (n): the diagonal of
 * Q, or with a basis of P. */
scl_status scl_vecchia_condition(scl_vecchia *v, const scl_covariance *kernel, scl_gp_trend trend,
                                 double *value, double *b, double *a_inverse, double *weights,
                                 double *precisions);

/* Mean (count x outputs) and variance (count) of the process at points x (count x p, with the basis
 * there), given their
 * nearest observations, m or all, b and a_inverse. */
scl_status scl_vecchia_predict(scl_vecchia *v, const scl_covariance *kernel, const double *x,
                               const double *basis, size_t count, const double *b,
                               const double *a_inverse, double *mean, double *variance);

/* Draws of the process, without noise and white terms, at points x (count x p, with the basis
 * there): in the last rows of `values`, which has standard normal numbers at first. With noise NULL
 * they are without data and mean, and values is count x draws. Else they are given the data: values
 * is (n + count) x draws; `noise` (n x draws) has draws of the noise of the observations and of
 * white terms, b (a column for each draw) of the coefficients of the mean. Each point is
 * conditioned on m others, or on all if there are fewer. For one output. A failure may leave any
 * numbers in `values`.
 */
scl_status scl_vecchia_simulate(scl_vecchia *v, const scl_covariance *kernel, const double *x,
                                const double *basis, size_t count, const double *b,
                                const double *noise, size_t draws, double *values);

#endif
