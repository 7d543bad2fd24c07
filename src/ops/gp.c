/* Gaussian processes: the object, and the steps that all evaluations share. */
#include "ops/gp_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the object ----------------------------------------------------------------------------- */

/* `own` live bytes count as free. */
static size_t find_largest(const scl_context *ctx, int matrices, uint64_t own) {
  scl_memory memory = scl_context_memory(ctx);
  if (memory.limit == 0) return 0;
  uint64_t used = memory.live - own;
  uint64_t each = (memory.limit > used ? memory.limit - used : 0) / (uint64_t)matrices;
  if (memory.largest != 0 && memory.largest < each) each = memory.largest;
  size_t n = (size_t)sqrt((double)(each / sizeof(double)));
  while (n > 0 && n * scl_mat_ld(ctx, n, n) * sizeof(double) > each) n--;
  return n;
}

size_t scl_gp_largest(const scl_context *ctx, int matrices) {
  return find_largest(ctx, matrices, 0);
}

/* Adds the largest possible n to an error of memory. */
static scl_status explain_memory(const scl_gp *gp, scl_status status, int matrices) {
  uint64_t each = (uint64_t)gp->n * scl_mat_ld(gp->ctx, gp->n, gp->n) * sizeof(double);
  size_t most =
      find_largest(gp->ctx, matrices, gp->room[0].buffer == NULL ? 0 : gp->room[0].buffer->bytes);
  if (status != SCL_E_MEMORY || most == 0 || most >= gp->n) return status;
  scl_fault *fault = scl_fault_edit();
  fault->bytes = each * (uint64_t)matrices;
  snprintf(fault->message, sizeof fault->message,
           "%zu observations need %d matri%s of %.3g GiB; '%s' has room for %zu observations now",
           gp->n, matrices, matrices == 1 ? "x" : "ces", (double)each / 1073741824.0,
           scl_context_label(gp->ctx), most);
  return status;
}

/* y and H side by side, in one matrix. */
static scl_status join_right(scl_gp *gp, const scl_gp_data *data) {
  scl_mat *y = NULL, *basis = NULL;
  scl_status status;
  SCL_GO(scl_mat_from_host(gp->ctx, data->y, gp->n, gp->outputs, SCL_GENERAL, &y));
  if (gp->q == 0) {
    gp->right = y;
    return SCL_OK;
  }
  SCL_GO(scl_mat_from_host(gp->ctx, data->basis, gp->n, gp->q, SCL_GENERAL, &basis));
  SCL_GO(scl_mat_create(gp->ctx, gp->n, gp->outputs + gp->q, SCL_GENERAL, &gp->right));
  scl_block right = scl_mat_block(gp->right);
  SCL_GO(gp->ctx->engine->copy(gp->ctx, SCL_COPY, scl_mat_block(y),
                               scl_gp_columns(right, 0, gp->outputs)));
  SCL_GO(gp->ctx->engine->copy(gp->ctx, SCL_COPY, scl_mat_block(basis),
                               scl_gp_columns(right, gp->outputs, gp->q)));
done:
  scl_mat_release(y);
  scl_mat_release(basis);
  return status;
}

scl_status scl_gp_check_data(const scl_gp_data *data) {
  if (data->n == 0 || data->outputs == 0) return scl_fail_argument("y", "'y' is empty");
  if (data->p == 0) return scl_fail_argument("x", "'x' has no columns");
  SCL_TRY(scl_require_finite_data(data->x, data->n, data->p, "x"));
  SCL_TRY(scl_require_finite_data(data->y, data->n, data->outputs, "y"));
  if (data->basis_columns > 0) {
    SCL_TRY(scl_require_finite_data(data->basis, data->n, data->basis_columns, "mean"));
  }
  return data->spread == NULL ? SCL_OK
                              : scl_require_finite_data(data->spread, data->n, 2, "variance");
}

scl_status scl_gp_create(scl_context *ctx, const scl_gp_data *data, scl_gp **out) {
  size_t n = data->n;
  SCL_TRY(scl_gp_check_data(data));
  if (data->basis_columns > n) {
    return scl_fail_argument("mean",
                             "the mean has %zu coefficients, but there are %zu observations",
                             data->basis_columns, n);
  }
  scl_gp *gp = calloc(1, sizeof *gp);
  if (gp == NULL) return scl_fail_memory(sizeof *gp, 0, "a Gaussian process");
  scl_status status = SCL_OK;
  gp->ctx = scl_context_retain(ctx);
  gp->n = n;
  gp->p = data->p;
  gp->outputs = data->outputs;
  gp->q = data->basis_columns;
  status = scl_block_create(ctx, n, n,
                            &gp->room[0]); /* first: no work is done if the memory is too small */
  if (status != SCL_OK) {
    status = explain_memory(gp, status, 1);
    goto done;
  }
  SCL_GO(scl_mat_from_host(ctx, data->x, n, gp->p, SCL_GENERAL, &gp->x));
  SCL_GO(join_right(gp, data));
  if (data->spread != NULL)
    SCL_GO(scl_mat_from_host(ctx, data->spread, n, 2, SCL_GENERAL, &gp->spread));
  SCL_GO(scl_block_create(ctx, n, gp->outputs + gp->q, &gp->solved));
  SCL_GO(scl_block_create(ctx, n, gp->outputs + gp->q, &gp->weights));
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
  scl_mat_release(gp->right);
  scl_mat_release(gp->spread);
  for (int k = 0; k < 2; k++) scl_buffer_release(gp->room[k].buffer);
  scl_buffer_release(gp->solved.buffer);
  scl_buffer_release(gp->weights.buffer);
  scl_buffer_release(gp->results.buffer);
  scl_context_release(gp->ctx);
  free(gp->trend);
  free(gp);
}

scl_context *scl_gp_context(const scl_gp *gp) {
  return gp->ctx;
}

scl_gp_shape scl_gp_shape_of(const scl_gp *gp) {
  return (scl_gp_shape){gp->n, gp->p, gp->outputs, gp->q};
}

uint64_t scl_gp_bytes(const scl_gp *gp) {
  const scl_buffer *held[] = {gp->room[0].buffer, gp->room[1].buffer, gp->solved.buffer,
                              gp->weights.buffer, gp->results.buffer};
  uint64_t bytes = scl_mat_bytes(gp->x) + scl_mat_bytes(gp->right);
  if (gp->spread != NULL) bytes += scl_mat_bytes(gp->spread);
  for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
    if (held[i] != NULL) bytes += held[i]->bytes;
  }
  return bytes;
}

/* ---- steps ---------------------------------------------------------------------------------- */

scl_status scl_gp_prepare(scl_gp *gp, const scl_covariance *kernel, int matrices) {
  SCL_TRY(scl_context_check(gp->ctx));
  if (kernel != NULL) SCL_TRY(scl_covariance_check(kernel, gp->p));
  if (kernel != NULL && gp->ctx->engine->gp_prepare != NULL) {
    const struct scl_covariance_pass pass = scl_gp_pass(gp, kernel);
    SCL_TRY(gp->ctx->engine->gp_prepare(gp->ctx, &pass, matrices > 1));
  }
  gp->conditioned = false;
  gp->factor = gp->factor_inverse = gp->factor_inverse_t = (scl_block){0};
  if (matrices > 1 && gp->room[1].buffer == NULL) {
    scl_status status = scl_block_create(gp->ctx, gp->n, gp->n, &gp->room[1]);
    if (status != SCL_OK) return explain_memory(gp, status, matrices);
  }
  size_t count = scl_gp_gradient_at(gp);
  if (kernel != NULL) count += (size_t)scl_covariance_count(kernel);
  if (gp->results.buffer != NULL && gp->results.nrow >= count) return SCL_OK;
  scl_buffer_release(gp->results.buffer);
  gp->results = (scl_block){0};
  SCL_TRY(scl_block_create(gp->ctx, count, 1, &gp->results));
  return gp->ctx->engine->fill(gp->ctx, 0.0, gp->results); /* some are not always written */
}

struct scl_covariance_pass scl_gp_pass(const scl_gp *gp, const scl_covariance *kernel) {
  scl_block x = scl_mat_block(gp->x);
  struct scl_covariance_pass pass = {
      .kernel = kernel, .x1 = x, .x2 = x, .symmetric = true, .region = SCL_LOWER_HALF};
  if (gp->spread != NULL) pass.spread = scl_mat_block(gp->spread);
  return pass;
}

static scl_status not_pd(double order) {
  return scl_fail_index(SCL_E_NOT_PD, (int64_t)order,
                        "the leading minor of order %lld is not positive", (long long)order);
}

scl_status scl_gp_early_info(scl_gp *gp, size_t offset) {
  if (!scl_traits(gp->ctx)->synchronous) return SCL_OK;
  double info;
  SCL_TRY(scl_read_block(gp->ctx, scl_gp_scalar(gp, AT_INFO), SCL_WAIT_WRITES, &info));
  return info != 0 ? not_pd(info + (double)offset) : SCL_OK;
}

scl_status scl_gp_factor(scl_gp *gp, const scl_covariance *kernel) {
  struct scl_covariance_pass pass = scl_gp_pass(gp, kernel);
  pass.k = gp->room[0];
  SCL_TRY(kernel == NULL ? gp->ctx->engine->copy(gp->ctx, SCL_COPY_LOWER, gp->given, pass.k)
                         : gp->ctx->engine->covariance(gp->ctx, &pass));
  SCL_TRY(gp->ctx->engine->potrf(gp->ctx, pass.k, scl_gp_scalar(gp, AT_INFO)));
  gp->factor = pass.k;
  return scl_gp_early_info(gp, 0);
}

scl_status scl_gp_take(scl_gp *gp, const scl_mat *c) {
  if (c->nrow != gp->n || c->ncol != gp->n) {
    return scl_fail_argument("kernel", "the covariance matrix must be %zu x %zu", gp->n, gp->n);
  }
  gp->given = scl_mat_block(c);
  return SCL_OK;
}

/* dst = L^-1 src, or L^-T src. Products with a transposed matrix are the fastest. */
static scl_status divide(scl_gp *gp, scl_trans trans, scl_block src, scl_block dst) {
  const scl_engine *engine = gp->ctx->engine;
  if (gp->factor_inverse.buffer != NULL) {
    bool plain = trans == SCL_NO_TRANS;
    return engine->gemm(gp->ctx, 1.0, SCL_TRANS, plain ? gp->factor_inverse_t : gp->factor_inverse,
                        plain ? SCL_UPPER : SCL_LOWER, SCL_NO_TRANS, src, SCL_GENERAL, 0.0, dst,
                        SCL_ALL);
  }
  SCL_TRY(engine->copy(gp->ctx, SCL_COPY, src, dst));
  return engine->trsm(gp->ctx, SCL_LEFT, SCL_LOWER, trans, gp->factor, dst);
}

/* L^-1 goes to the second matrix, its transpose replaces L. */
static scl_status invert_factor(scl_gp *gp) {
  const scl_engine *engine = gp->ctx->engine;
  SCL_TRY(engine->trtri(gp->ctx, SCL_LOWER, gp->factor, gp->room[1]));
  gp->factor_inverse = gp->room[1];
  gp->factor = (scl_block){0};
  SCL_TRY(engine->copy(gp->ctx, SCL_COPY_TRANSPOSED, gp->factor_inverse, gp->room[0]));
  gp->factor_inverse_t = gp->room[0];
  return SCL_OK;
}

/* A = S' S for S = L^-1 H, its factor M, Q = S M^-T, whose columns are orthonormal; z = L^-1 y
 * minus Q Q' z; b = M^-T Q' z. */
static scl_status solve_trend(scl_gp *gp) {
  scl_context *ctx = gp->ctx;
  const scl_engine *engine = ctx->engine;
  scl_block z = scl_gp_columns(gp->solved, 0, gp->outputs);
  scl_block q = scl_gp_columns(gp->solved, gp->outputs, gp->q);
  scl_block m = scl_gp_trend_factor(gp), b = scl_gp_small(gp, scl_gp_b_at(gp), gp->outputs);
  scl_block diagonal = scl_gp_columns(gp->weights, 0, 1); /* free until later */
  diagonal.nrow = gp->q;
  SCL_TRY(engine->gemm(ctx, 1.0, SCL_TRANS, q, SCL_GENERAL, SCL_NO_TRANS, q, SCL_GENERAL, 0.0, m,
                       SCL_MIRRORED));
  SCL_TRY(engine->potrf(ctx, m, scl_gp_scalar(gp, AT_TREND_INFO)));
  SCL_TRY(engine->trsm(ctx, SCL_RIGHT, SCL_LOWER, SCL_TRANS, m, q));
  SCL_TRY(engine->gemm(ctx, 1.0, SCL_TRANS, q, SCL_GENERAL, SCL_NO_TRANS, z, SCL_GENERAL, 0.0, b,
                       SCL_ALL));
  SCL_TRY(engine->gemm(ctx, -1.0, SCL_NO_TRANS, q, SCL_GENERAL, SCL_NO_TRANS, b, SCL_GENERAL, 1.0,
                       z, SCL_ALL));
  SCL_TRY(engine->trsm(ctx, SCL_LEFT, SCL_LOWER, SCL_TRANS, m, b));
  SCL_TRY(engine->diagonal(ctx, m, diagonal));
  return scl_reduce_block(ctx, SCL_REDUCE_SUM_LOG, diagonal, scl_gp_scalar(gp, AT_TREND_LOG_DET));
}

scl_status scl_gp_solve(scl_gp *gp, bool invert) {
  const scl_engine *engine = gp->ctx->engine;
  scl_block diagonal = scl_gp_columns(gp->weights, 0, 1); /* free until later */
  scl_block z = scl_gp_columns(gp->solved, 0, gp->outputs);
  const bool together = gp->q == 0 && gp->outputs == 1; /* the sums: one kernel to build and run */
  SCL_TRY(engine->diagonal(gp->ctx, gp->factor, diagonal));
  if (!together)
    SCL_TRY(scl_reduce_block(gp->ctx, SCL_REDUCE_SUM_LOG, diagonal, scl_gp_scalar(gp, AT_LOG_DET)));
  if (invert) SCL_TRY(invert_factor(gp));
  SCL_TRY(divide(gp, SCL_NO_TRANS, scl_mat_block(gp->right), gp->solved));
  if (together)
    return scl_sum_log_and_squares(gp->ctx, diagonal, z,
                                   scl_block_part(gp->results, AT_LOG_DET, 0, 2, 1));
  if (gp->q > 0) SCL_TRY(solve_trend(gp));
  return scl_dot_blocks(gp->ctx, z, z, scl_gp_scalar(gp, AT_SQUARE));
}

scl_status scl_gp_solve_weights(scl_gp *gp) {
  return divide(gp, SCL_TRANS, gp->solved, gp->weights);
}

scl_status scl_gp_read(scl_gp *gp, size_t offset, size_t count, double *results) {
  scl_block part = scl_block_part(gp->results, 0, 0, count, 1);
  SCL_TRY(scl_read_block(gp->ctx, part, SCL_WAIT_WRITES, results));
  if (results[AT_INFO] != 0) return not_pd(results[AT_INFO] + (double)offset);
  if (gp->q > 0 && results[AT_TREND_INFO] != 0) {
    return scl_fail_index(
        SCL_E_SINGULAR, (int64_t)results[AT_TREND_INFO],
        "column %d of the basis of the mean is a linear combination of those before it",
        (int)results[AT_TREND_INFO]);
  }
  return SCL_OK;
}

double scl_gp_marginal(const scl_gp *gp, scl_gp_trend trend, const double *results) {
  double outputs = (double)gp->outputs, rows = (double)gp->n;
  double log_det = results[AT_LOG_DET];
  if (trend == SCL_GP_INTEGRATE && gp->q > 0) {
    rows -= (double)gp->q;
    log_det += results[AT_TREND_LOG_DET];
  }
  return -0.5 * results[AT_SQUARE] - outputs * (log_det + 0.5 * rows * LOG_2_PI);
}
