#include "scl_gp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scl_operation.h"

#define LOG_2_PI 1.8378770664093453

/* Results, in one column so that one download brings them all; derivatives follow. */
enum {
  AT_INFO,    /* order of the failing leading minor, or 0 */
  AT_LOG_DET, /* sum of log L_ii */
  AT_SQUARE,  /* (y - mean)' C^-1 (y - mean) */
  AT_MEAN,    /* estimated mean */
  AT_ONES,    /* 1' C^-1 1 */
  AT_GRADIENT
};

struct scl_gp {
  scl_context *ctx;
  size_t n, p;
  scl_mat *x, *y;
  scl_block c;       /* n x n: C, then its factor */
  scl_block inverse; /* n x n: C^-1; made when first needed */
  scl_block solved;  /* n x 3: L^-1 (y - mean), L^-1 1, and the diagonal or the weights */
  scl_block results;
  bool conditioned;
  scl_gp_mean mean; /* that of the last scl_gp_condition() */
  double ones;      /* 1' C^-1 1, likewise */
};

static scl_block column(scl_block b, size_t j) {
  return scl_block_part(b, 0, j, b.nrow, 1);
}

static scl_block result(const scl_gp *gp, size_t at) {
  return scl_block_part(gp->results, at, 0, 1, 1);
}

/* ---- the object ----------------------------------------------------------------------------- */

scl_status scl_gp_create(scl_context *ctx, const double *x, const double *y, size_t n, size_t p,
                         scl_gp **out) {
  if (n == 0) return scl_fail_argument("y", "'y' is empty");
  if (p == 0) return scl_fail_argument("x", "'x' has no columns");
  scl_gp *gp = calloc(1, sizeof *gp);
  if (gp == NULL) return scl_fail_memory(sizeof *gp, 0, "a Gaussian process");
  scl_status status = SCL_OK;
  gp->ctx = scl_context_retain(ctx);
  gp->n = n;
  gp->p = p;
  SCL_GO(scl_mat_from_host(ctx, x, n, p, SCL_GENERAL, &gp->x));
  SCL_GO(scl_mat_from_host(ctx, y, n, 1, SCL_GENERAL, &gp->y));
  SCL_GO(scl_require_finite(gp->x, SCL_GENERAL, "x"));
  SCL_GO(scl_require_finite(gp->y, SCL_GENERAL, "y"));
  SCL_GO(scl_block_create(ctx, n, 3, &gp->solved));
  SCL_GO(scl_block_create(ctx, n, n, &gp->c));
done:
  if (status != SCL_OK) {
    scl_gp_release(gp);
    return status;
  }
  *out = gp;
  return SCL_OK;
}

void scl_gp_release(scl_gp *gp) {
  if (gp == NULL) return;
  scl_mat_release(gp->x);
  scl_mat_release(gp->y);
  scl_buffer_release(gp->c.buffer);
  scl_buffer_release(gp->inverse.buffer);
  scl_buffer_release(gp->solved.buffer);
  scl_buffer_release(gp->results.buffer);
  scl_context_release(gp->ctx);
  free(gp);
}

scl_context *scl_gp_context(const scl_gp *gp) {
  return gp->ctx;
}

size_t scl_gp_rows(const scl_gp *gp) {
  return gp->n;
}

uint64_t scl_gp_bytes(const scl_gp *gp) {
  const scl_buffer *held[] = {gp->c.buffer, gp->inverse.buffer, gp->solved.buffer,
                              gp->results.buffer};
  uint64_t bytes = scl_mat_bytes(gp->x) + scl_mat_bytes(gp->y);
  for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
    if (held[i] != NULL) bytes += held[i]->bytes;
  }
  return bytes;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static scl_status prepare(scl_gp *gp, const scl_covariance *kernel) {
  SCL_TRY(scl_context_check(gp->ctx));
  SCL_TRY(scl_covariance_check(kernel, gp->p));
  gp->conditioned = false;
  size_t count = AT_GRADIENT + (size_t)scl_covariance_count(kernel);
  if (gp->results.buffer != NULL && gp->results.nrow >= count) return SCL_OK;
  scl_buffer_release(gp->results.buffer);
  gp->results = (scl_block){0};
  SCL_TRY(scl_block_create(gp->ctx, count, 1, &gp->results));
  return gp->ctx->engine->fill(gp->ctx, 0.0, gp->results); /* not every evaluation writes all */
}

static scl_status not_pd(double order) {
  return scl_fail_index(SCL_E_NOT_PD, (int64_t)order,
                        "the leading minor of order %lld is not positive", (long long)order);
}

/* C and its factor. */
static scl_status factor(scl_gp *gp, const scl_covariance *kernel) {
  scl_block x = scl_mat_block(gp->x);
  struct scl_covariance_pass pass = {
      .kernel = kernel, .x1 = x, .x2 = x, .symmetric = true, .region = SCL_LOWER_HALF, .k = gp->c};
  SCL_TRY(gp->ctx->engine->covariance(gp->ctx, &pass));
  SCL_TRY(gp->ctx->engine->potrf(gp->ctx, gp->c, result(gp, AT_INFO)));
  if (!scl_context_is_host(gp->ctx)) return SCL_OK;
  /* There the work is done already: no need to go on with a factor that is none. */
  double info;
  SCL_TRY(gp->ctx->engine->download(gp->ctx, SCL_GENERAL, result(gp, AT_INFO), &info, 1));
  return info != 0 ? not_pd(info) : SCL_OK;
}

/* solved[, 0] = L^-1 (y - mean); with an estimated mean also solved[, 1] = L^-1 1. */
static scl_status solve(scl_gp *gp, scl_gp_mean mean) {
  scl_context *ctx = gp->ctx;
  const scl_engine *engine = ctx->engine;
  scl_block z = column(gp->solved, 0), ones = column(gp->solved, 1);
  SCL_TRY(engine->elementwise(ctx, SCL_OP_SUB, (scl_operand){.block = scl_mat_block(gp->y)},
                              (scl_operand){.scalar = mean.estimated ? 0.0 : mean.value}, z));
  scl_block both = scl_block_part(gp->solved, 0, 0, gp->n, mean.estimated ? 2 : 1);
  if (mean.estimated) SCL_TRY(engine->fill(ctx, 1.0, ones));
  SCL_TRY(engine->trsm(ctx, SCL_LEFT, SCL_LOWER, SCL_NO_TRANS, gp->c, both));
  if (mean.estimated) {
    scl_block b = result(gp, AT_MEAN), s = result(gp, AT_ONES);
    SCL_TRY(engine->reduce(ctx, SCL_REDUCE_DOT, ones, ones, s));
    SCL_TRY(engine->reduce(ctx, SCL_REDUCE_DOT, ones, z, b));
    SCL_TRY(engine->elementwise(ctx, SCL_OP_DIV, (scl_operand){.block = b},
                                (scl_operand){.block = s}, b));
    SCL_TRY(engine->gemm(ctx, -1.0, SCL_NO_TRANS, ones, SCL_GENERAL, SCL_NO_TRANS, b, SCL_GENERAL,
                         1.0, z, SCL_ALL));
  }
  return SCL_OK;
}

/* solved[, 2] = a = L'^-1 solved[, 0]. */
static scl_status solve_weights(scl_gp *gp) {
  scl_block a = column(gp->solved, 2);
  SCL_TRY(gp->ctx->engine->copy(gp->ctx, SCL_COPY, column(gp->solved, 0), a));
  return gp->ctx->engine->trsm(gp->ctx, SCL_LEFT, SCL_LOWER, SCL_TRANS, gp->c, a);
}

/* The likelihood's parts, from the factor and solved[, 0]. */
static scl_status likelihood_parts(scl_gp *gp) {
  const scl_engine *engine = gp->ctx->engine;
  scl_block z = column(gp->solved, 0), diagonal = column(gp->solved, 2), none = {0};
  SCL_TRY(engine->diagonal(gp->ctx, gp->c, diagonal));
  SCL_TRY(engine->reduce(gp->ctx, SCL_REDUCE_SUM_LOG, diagonal, none, result(gp, AT_LOG_DET)));
  return engine->reduce(gp->ctx, SCL_REDUCE_DOT, z, z, result(gp, AT_SQUARE));
}

static scl_status differentiate(scl_gp *gp, const scl_covariance *kernel) {
  SCL_TRY(solve_weights(gp));
  if (gp->inverse.buffer == NULL) {
    SCL_TRY(scl_block_create(gp->ctx, gp->n, gp->n, &gp->inverse));
  }
  SCL_TRY(gp->ctx->engine->potri(gp->ctx, gp->c, gp->inverse));
  scl_block x = scl_mat_block(gp->x);
  struct scl_covariance_pass pass = {
      .kernel = kernel,
      .x1 = x,
      .x2 = x,
      .symmetric = true,
      .weights = gp->inverse,
      .a = column(gp->solved, 2),
      .outer = 0.5,
      .inner = -0.5,
      .out = scl_block_part(gp->results, AT_GRADIENT, 0, (size_t)scl_covariance_count(kernel), 1)};
  return gp->ctx->engine->covariance_adjoint(gp->ctx, &pass);
}

/* Waits, and reports a failed factor. */
static scl_status read_results(scl_gp *gp, size_t count, double *results) {
  scl_block part = scl_block_part(gp->results, 0, 0, count, 1);
  SCL_TRY(gp->ctx->engine->download(gp->ctx, SCL_GENERAL, part, results, count));
  return results[AT_INFO] != 0 ? not_pd(results[AT_INFO]) : SCL_OK;
}

/* ---- what is asked of it -------------------------------------------------------------------- */

scl_status scl_gp_evaluate(scl_gp *gp, const scl_covariance *kernel, scl_gp_mean mean,
                           double *value, double *mean_out, double *gradient) {
  SCL_TRY(prepare(gp, kernel));
  size_t parameters = gradient == NULL ? 0 : (size_t)scl_covariance_count(kernel);
  double *results = malloc((AT_GRADIENT + parameters) * sizeof *results);
  if (results == NULL) return scl_fail_memory(sizeof *results * parameters, 0, "derivatives");
  scl_status status;
  SCL_GO(factor(gp, kernel));
  SCL_GO(solve(gp, mean));
  SCL_GO(likelihood_parts(gp));
  if (gradient != NULL) SCL_GO(differentiate(gp, kernel));
  SCL_GO(read_results(gp, AT_GRADIENT + parameters, results));
  *value = -0.5 * results[AT_SQUARE] - results[AT_LOG_DET] - 0.5 * (double)gp->n * LOG_2_PI;
  *mean_out = mean.estimated ? results[AT_MEAN] : mean.value;
  if (gradient != NULL) memcpy(gradient, results + AT_GRADIENT, parameters * sizeof *gradient);
done:
  free(results);
  return status;
}

scl_status scl_gp_condition(scl_gp *gp, const scl_covariance *kernel, scl_gp_mean mean,
                            double *mean_out, double *weights) {
  SCL_TRY(prepare(gp, kernel));
  double results[AT_GRADIENT];
  SCL_TRY(factor(gp, kernel));
  SCL_TRY(solve(gp, mean));
  SCL_TRY(solve_weights(gp));
  SCL_TRY(read_results(gp, AT_GRADIENT, results));
  SCL_TRY(gp->ctx->engine->download(gp->ctx, SCL_GENERAL, column(gp->solved, 2), weights, gp->n));
  gp->mean = (scl_gp_mean){mean.estimated, mean.estimated ? results[AT_MEAN] : mean.value};
  gp->ones = results[AT_ONES];
  gp->conditioned = true;
  *mean_out = gp->mean.value;
  return SCL_OK;
}

/* What a prediction works on: v (n x m) covariances with the data, then L^-1 of them; rows of three
 * sums (m x 3): a' v, (L^-1 1)' v, squares. */
typedef struct {
  scl_mat *x;
  scl_block v, sums, ones, covariance;
} prediction;

/* sums[, at] = v' u */
static scl_status sum_columns(scl_gp *gp, const prediction *w, scl_block u, size_t at) {
  return gp->ctx->engine->gemm(gp->ctx, 1.0, SCL_TRANS, w->v, SCL_GENERAL, SCL_NO_TRANS, u,
                               SCL_GENERAL, 0.0, column(w->sums, at), SCL_ALL);
}

/* K** - V' V. */
static scl_status predict_covariance(scl_gp *gp, const scl_covariance *kernel, prediction *w,
                                     double *covariance) {
  scl_covariance quiet = *kernel;
  quiet.noise = 0;
  scl_block x = scl_mat_block(w->x);
  SCL_TRY(scl_block_create(gp->ctx, x.nrow, x.nrow, &w->covariance));
  struct scl_covariance_pass pass = {.kernel = &quiet,
                                     .x1 = x,
                                     .x2 = x,
                                     .symmetric = true,
                                     .region = SCL_MIRRORED,
                                     .k = w->covariance};
  SCL_TRY(gp->ctx->engine->covariance(gp->ctx, &pass));
  SCL_TRY(gp->ctx->engine->gemm(gp->ctx, -1.0, SCL_TRANS, w->v, SCL_GENERAL, SCL_NO_TRANS, w->v,
                                SCL_GENERAL, 1.0, w->covariance, SCL_MIRRORED));
  return gp->ctx->engine->download(gp->ctx, SCL_GENERAL, w->covariance, covariance, x.nrow);
}

/* The part that needs the factor; `what` of V's sums are then there. */
static scl_status predict_spread(scl_gp *gp, const scl_covariance *kernel, prediction *w,
                                 double *variance, double *covariance) {
  scl_context *ctx = gp->ctx;
  SCL_TRY(ctx->engine->trsm(ctx, SCL_LEFT, SCL_LOWER, SCL_NO_TRANS, gp->c, w->v));
  if (gp->mean.estimated) SCL_TRY(sum_columns(gp, w, column(gp->solved, 1), 1));
  if (covariance != NULL) SCL_TRY(predict_covariance(gp, kernel, w, covariance));
  if (variance == NULL) return SCL_OK;
  SCL_TRY(ctx->engine->elementwise(ctx, SCL_OP_MUL, (scl_operand){.block = w->v},
                                   (scl_operand){.block = w->v}, w->v));
  SCL_TRY(scl_block_create(ctx, gp->n, 1, &w->ones));
  SCL_TRY(ctx->engine->fill(ctx, 1.0, w->ones));
  return sum_columns(gp, w, w->ones, 2);
}

/* Fills the host arrays from the sums (m x 3). */
static void finish_prediction(const scl_gp *gp, const scl_covariance *kernel, size_t m,
                              const double *sums, double *mean, double *variance,
                              double *covariance) {
  const double *dot = sums, *ones = sums + m, *squares = sums + 2 * m;
  double prior = scl_covariance_variance(kernel);
  double spread = gp->mean.estimated ? 1.0 / gp->ones : 0.0; /* variance of the mean */
  for (size_t i = 0; i < m; i++) {
    mean[i] = gp->mean.value + dot[i];
    double u = gp->mean.estimated ? 1.0 - ones[i] : 0.0;
    if (variance != NULL) variance[i] = prior - squares[i] + u * u * spread;
    for (size_t j = 0; covariance != NULL && gp->mean.estimated && j < m; j++) {
      covariance[i + j * m] += u * (1.0 - ones[j]) * spread;
    }
  }
}

scl_status scl_gp_predict(scl_gp *gp, const scl_covariance *kernel, const double *x, size_t m,
                          double *mean, double *variance, double *covariance) {
  SCL_TRY(scl_context_check(gp->ctx));
  SCL_TRY(scl_covariance_check(kernel, gp->p));
  if (!gp->conditioned)
    return scl_fail_argument("gp", "the process is not conditioned on its data");
  if (m == 0) return SCL_OK;
  scl_context *ctx = gp->ctx;
  prediction w = {0};
  scl_status status = SCL_OK;
  double *sums = calloc(3 * m, sizeof *sums);
  if (sums == NULL) return scl_fail_memory(3 * m * sizeof *sums, 0, "predictions");
  SCL_GO(scl_mat_from_host(ctx, x, m, gp->p, SCL_GENERAL, &w.x));
  SCL_GO(scl_block_create(ctx, gp->n, m, &w.v));
  SCL_GO(scl_block_create(ctx, m, 3, &w.sums));
  struct scl_covariance_pass pass = {.kernel = kernel,
                                     .x1 = scl_mat_block(gp->x),
                                     .x2 = scl_mat_block(w.x),
                                     .region = SCL_ALL,
                                     .k = w.v};
  SCL_GO(ctx->engine->fill(ctx, 0.0, w.sums));
  SCL_GO(ctx->engine->covariance(ctx, &pass));
  SCL_GO(sum_columns(gp, &w, column(gp->solved, 2), 0));
  if (variance != NULL || covariance != NULL) {
    SCL_GO(predict_spread(gp, kernel, &w, variance, covariance));
  }
  SCL_GO(ctx->engine->download(ctx, SCL_GENERAL, w.sums, sums, m));
  finish_prediction(gp, kernel, m, sums, mean, variance, covariance);
done:
  scl_mat_release(w.x);
  scl_buffer_release(w.v.buffer);
  scl_buffer_release(w.sums.buffer);
  scl_buffer_release(w.ones.buffer);
  scl_buffer_release(w.covariance.buffer);
  free(sums);
  return status;
}
