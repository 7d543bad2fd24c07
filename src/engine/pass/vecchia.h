/* Vecchia's approximation of a Gaussian process as an engine sees it.
 *
 * Each point i of the order is conditioned on its neighbours, earlier points. With K the covariance
 * matrix of the block (the neighbours, then the point itself), K = L L', and w = L^-T e_last:
 *   w' z = standardised residual of z_i given its neighbours,  log w_last = -log sd
 * A pass gives one of
 *   weights: w of each point;
 *   sums: out = (sum of log w_last, then for the columns Z of `right` the lower triangle of the sum
 *     of (Z' w) (Z' w)', by columns); or
 *   derivatives of F = logs sum log w_last - sum_c factor_c sum (w' Z combine_c)^2 / 2 with respect
 *     to the logarithms of the parameters: out = (sum of log w_last, sum_c factor_c sum of squares,
 *     the scl_covariance_count() derivatives); or
 *   information: the derivatives of the sums, and the Fisher information of the distributions of
 * all z_i given their neighbours, by r `parameters`, which are groups of the logarithms of the
 *     kernel's: out = (the sums as above, then the derivatives of all of them by the first
 *     parameter, the second, ..., the lower triangle of the information by columns).
 * With residuals e_c = w' z_c, z~ = sum_c factor_c e_c z_c and k = (logs + sum_c factor_c e_c^2) /
 * 2 they are dF = b' dK w with b = K^-1 z~ - k w, one further triangular solve. With u_r = L^-1
 * dK_r w, whose last element counts half in sums h(u, .), and t_c = L^-1 z_c, they are d e_c =
 * -h(u_r, t_c), d log w_last = -u_r,last / 2, and the information is h(u_r, u_s).
 *
 * Grouped, not for weights: `n` is the number of blocks of up to m + 1 rows in their order, of
 * which `neighbours` has for each: twice the point, and 1 more for members; -1 beyond them. All of
 * the above is summed over the members; that of member i comes from the rows up to i. Then L is one
 * factor of the whole block, w = L^-T e_i.
 *
 * out[0] of the results is -1 if a block does not fit the local memory of the device, and nothing
 * was computed; or it is an order that failed: a point or block (from 1) whose block is not
 * positive definite, or 0; what stands above follows it. */
#ifndef SCL_ENGINE_PASS_VECCHIA_H
#define SCL_ENGINE_PASS_VECCHIA_H

#include "engine/pass/covariance.h"

enum {
  SCL_VECCHIA_MOST_COMBINED = 64,
  SCL_VECCHIA_MOST_NEIGHBOURS = 400,
  SCL_VECCHIA_DEVICE_NEIGHBOURS = 63 /* on a device */
};

typedef enum {
  SCL_VECCHIA_SUMS = 0,
  SCL_VECCHIA_DERIVATIVES,
  SCL_VECCHIA_WEIGHTS,
  SCL_VECCHIA_INFORMATION
} scl_vecchia_what;

struct scl_vecchia_pass {
  scl_vecchia_what what;
  const scl_covariance *kernel;
  size_t n, p, columns; /* points, coordinates, columns of `right` */
  size_t m;             /* most neighbours, >= 0 */
  bool grouped;
  size_t tall; /* grouped: the first blocks, that have more than 32 rows */
  /* A column for each point: p coordinates, `columns` numbers, then if `spread` s and v of its
   * noise noise^2 s + v. */
  scl_block records;
  bool spread;
  /* Two whole numbers of 32 bits in each element, a column for each point: its neighbours, -1 for
   * those that are missing, which come last. Its nrow is the smallest that holds m. */
  scl_block neighbours;
  size_t combined;       /* columns of `combine`, up to SCL_VECCHIA_MOST_COMBINED */
  const double *combine; /* columns x combined, host memory */
  const double *factor;  /* of each */
  double logs;
  /* Information: of each logarithm the number of its parameter from 1, negative if it is minus the
   * parameter, or 0; host memory. */
  const int *group;
  size_t parameters;
  double *out; /* host memory; the function waits */
  /* Weights, on the host only: n of the points from `first` on, m + 1 numbers for each, to
   * `weights`; those of missing neighbours are 0. `quiet`: the point itself is without noise and
   * white terms, and so are neighbours from record `noisy` on, but
   * for 1e-10 of their variance. `at`, unless it has no buffer: the
   * points, in the form of `records`, which has their neighbours.
   */
  size_t first;
  bool quiet;
  size_t noisy;
  scl_block at;
  double *weights;
};

/* Numbers of the result. */
static inline size_t scl_vecchia_results(const struct scl_vecchia_pass *pass) {
  if (pass->what == SCL_VECCHIA_WEIGHTS) return 1;
  if (pass->what == SCL_VECCHIA_DERIVATIVES) return 3 + (size_t)scl_covariance_count(pass->kernel);
  size_t sums = 1 + pass->columns * (pass->columns + 1) / 2, r = pass->parameters;
  if (pass->what == SCL_VECCHIA_INFORMATION) return 1 + (r + 1) * sums + r * (r + 1) / 2;
  return 1 + sums;
}

#endif
