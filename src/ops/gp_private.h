/* Shared by the files scl_gp*.c. */
#ifndef SCL_OPS_GP_PRIVATE_H
#define SCL_OPS_GP_PRIVATE_H

#include "ops/gp.h"
#include "ops/operation.h"

#define LOG_2_PI 1.8378770664093453

/* Results, in one column so that one download is enough: these, then A's factor, b, and the
 * derivatives. */
enum {
  AT_INFO,          /* order of the failing leading minor, or 0 */
  AT_LOG_DET,       /* sum of log L_ii */
  AT_SQUARE,        /* y' P y; after AT_LOG_DET */
  AT_TREND_INFO,    /* as AT_INFO, of A */
  AT_TREND_LOG_DET, /* sum of the logarithms of the diagonal of A's factor */
  AT_LOO_LOG,       /* sum log P_ii */
  AT_LOO_SQUARE,    /* sum a_i^2 / P_ii */
  AT_FREE,
  AT_BLOCKS
};

struct scl_gp {
  scl_context *ctx;
  size_t n, p, outputs, q; /* q: columns of the basis */
  scl_mat *x, *right;      /* n x p; y and H side by side */
  scl_mat *spread;         /* n x 2 or NULL */
  scl_block given;         /* covariance matrix supplied by the caller, during the call */
  scl_block room[2];       /* memory of n x n matrices; the second is made when first needed */
  /* Their present contents; without a buffer where there are none. */
  scl_block factor;           /* L, lower, of C = L L' */
  scl_block factor_inverse;   /* L^-1, with zeros above its diagonal, */
  scl_block factor_inverse_t; /* and its transpose */
  scl_block solved;  /* as right: L^-1 y minus its part in the span of Q; Q = L^-1 H M^-T with
                        A = M M' */
  scl_block weights; /* as right: a, L^-T Q */
  scl_block results;
  bool conditioned;
  double *trend; /* of the last condition: M (q x q), b (q x outputs) */
};

static inline scl_block scl_gp_columns(scl_block b, size_t first, size_t count) {
  return scl_block_part(b, 0, first, b.nrow, count);
}

static inline scl_block scl_gp_scalar(const scl_gp *gp, size_t at) {
  return scl_block_part(gp->results, at, 0, 1, 1);
}

/* A q x columns matrix in the results. */
static inline scl_block scl_gp_small(const scl_gp *gp, size_t at, size_t columns) {
  scl_block b = scl_block_part(gp->results, at, 0, gp->q * columns, 1);
  b.nrow = b.ld = gp->q;
  b.ncol = columns;
  return b;
}
static inline scl_block scl_gp_trend_factor(const scl_gp *gp) {
  return scl_gp_small(gp, AT_BLOCKS, gp->q);
}
static inline size_t scl_gp_b_at(const scl_gp *gp) {
  return AT_BLOCKS + gp->q * gp->q;
}
static inline size_t scl_gp_gradient_at(const scl_gp *gp) {
  return scl_gp_b_at(gp) + gp->q * gp->outputs;
}

/* ---- steps (ops/gp.c); ops/gp_evaluate.c and ops/gp_predict.c are made of them --------------- */
/* The kernel is NULL where C is given. */

/* Checks, and allocates all workspaces. `matrices`: 1 or 2. */
scl_status scl_gp_prepare(scl_gp *gp, const scl_covariance *kernel, int matrices);
struct scl_covariance_pass scl_gp_pass(const scl_gp *gp, const scl_covariance *kernel);
/* Computes C and its factor, gp->factor. */
scl_status scl_gp_factor(scl_gp *gp, const scl_covariance *kernel);
/* SCL_E_ARGUMENT unless C is a matrix for these observations; notes it. */
scl_status scl_gp_take(scl_gp *gp, const scl_mat *c);
/* The host reads the order of a failing minor at once: its work is done already. */
scl_status scl_gp_early_info(scl_gp *gp, size_t offset);
/* solved, the trend and the likelihood's parts, from the factor. `invert`: gp->factor_inverse and
 * its transpose replace gp->factor, and products with them replace solves. */
scl_status scl_gp_solve(scl_gp *gp, bool invert);
scl_status scl_gp_solve_weights(scl_gp *gp);
/* Waits; count >= scl_gp_gradient_at(). `offset` is added to the order of a failing minor. */
scl_status scl_gp_read(scl_gp *gp, size_t offset, size_t count, double *results);
double scl_gp_marginal(const scl_gp *gp, scl_gp_trend trend, const double *results);

/* ops/vecchia.c has these too */
/* SCL_E_ARGUMENT, SCL_E_NONFINITE for data without observations or columns, or not finite. */
scl_status scl_gp_check_data(const scl_gp_data *data);
/* A^-1 = W' W (q x q) for the lower W = M^-1, A = M M'. */
void scl_gp_invert(const double *w, size_t q, double *a_inverse);

#endif
