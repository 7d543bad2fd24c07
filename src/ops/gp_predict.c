/* Gaussian processes given their data: predictions, more observations. */
#include "ops/gp_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- conditioning --------------------------------------------------------------------------- */

/* dst (q x q, host) = M^-1 for a lower M. */
static void invert_lower(const double *m, size_t q, double *dst) {
  for (size_t j = 0; j < q; j++) {
    for (size_t i = 0; i < q; i++) {
      double sum = i == j ? 1.0 : 0.0;
      for (size_t k = 0; k < i; k++) sum -= m[i + k * q] * dst[k + j * q];
      dst[i + j * q] = sum / m[i + i * q];
    }
  }
}

void scl_gp_invert(const double *w, size_t q, double *a_inverse) {
  for (size_t j = 0; j < q; j++) {
    for (size_t i = 0; i < q; i++) {
      double sum = 0;
      for (size_t k = i > j ? i : j; k < q; k++) sum += w[k + i * q] * w[k + j * q];
      a_inverse[i + j * q] = sum;
    }
  }
}

/* The steps after the factor. `offset`: rows whose factor already existed. */
static scl_status finish_condition(scl_gp *gp, scl_gp_trend trend, size_t offset, double *value,
                                   double *b, double *a_inverse, double *weights) {
  size_t count = scl_gp_gradient_at(gp), q = gp->q, small = q * (q + gp->outputs);
  scl_status status;
  double *results = malloc((count + q * q) * sizeof *results);
  if (results == NULL) return scl_fail_memory(count * sizeof *results, 0, "results");
  SCL_GO(scl_gp_solve(gp, false));
  SCL_GO(scl_gp_solve_weights(gp));
  SCL_GO(scl_gp_read(gp, offset, count, results));
  if (gp->trend == NULL) gp->trend = malloc((small + 1) * sizeof *gp->trend);
  if (gp->trend == NULL) {
    status = scl_fail_memory(small * sizeof *gp->trend, 0, "coefficients");
    goto done;
  }
  memcpy(gp->trend, results + AT_BLOCKS, small * sizeof *gp->trend);
  invert_lower(gp->trend, q, results + count);
  scl_gp_invert(results + count, q, a_inverse);
  SCL_GO(scl_read_block(gp->ctx, scl_gp_columns(gp->weights, 0, gp->outputs), SCL_WAIT_WRITES,
                        weights));
  if (q > 0) memcpy(b, gp->trend + q * q, q * gp->outputs * sizeof *b);
  *value = scl_gp_marginal(gp, trend, results);
  gp->conditioned = true;
done:
  free(results);
  return status;
}

scl_status scl_gp_condition_given(scl_gp *gp, const scl_mat *c, scl_gp_trend trend, double *value,
                                  double *b, double *a_inverse, double *weights) {
  SCL_TRY(scl_gp_take(gp, c));
  return scl_gp_condition(gp, NULL, trend, value, b, a_inverse, weights);
}

scl_status scl_gp_condition(scl_gp *gp, const scl_covariance *kernel, scl_gp_trend trend,
                            double *value, double *b, double *a_inverse, double *weights) {
  SCL_TRY(scl_gp_prepare(gp, kernel, 1));
  SCL_TRY(scl_gp_factor(gp, kernel));
  return finish_condition(gp, trend, 0, value, b, a_inverse, weights);
}

/* The factor of all of C from that of the first n rows and columns in `old`: L21 = C21 L11^-T, and
 * the factor of C22 - L21 L21'. */
static scl_status extend_factor(const scl_gp *old, scl_gp *gp, const scl_covariance *kernel) {
  scl_context *ctx = gp->ctx;
  const scl_engine *engine = ctx->engine;
  size_t n = old->n, more = gp->n - n;
  scl_block x = scl_mat_block(gp->x);
  scl_block first = scl_block_part(gp->room[0], 0, 0, n, n),
            last = scl_block_part(gp->room[0], n, n, more, more);
  scl_block between = scl_block_part(gp->room[0], n, 0, more, n);
  struct scl_covariance_pass pass = scl_gp_pass(gp, kernel);
  SCL_TRY(engine->copy(ctx, SCL_COPY_LOWER, old->factor, first));
  pass.x1 = scl_block_part(x, n, 0, more, gp->p);
  pass.x2 = pass.x1;
  if (gp->spread != NULL) pass.spread = scl_block_part(pass.spread, n, 0, more, 2);
  pass.k = last;
  SCL_TRY(engine->covariance(ctx, &pass));
  pass.x2 = scl_block_part(x, 0, 0, n, gp->p);
  pass.symmetric = false;
  pass.region = SCL_ALL;
  pass.k = between;
  SCL_TRY(engine->covariance(ctx, &pass));
  SCL_TRY(engine->trsm(ctx, SCL_RIGHT, SCL_LOWER, SCL_TRANS, first, between));
  SCL_TRY(engine->gemm(ctx, -1.0, SCL_NO_TRANS, between, SCL_GENERAL, SCL_TRANS, between,
                       SCL_GENERAL, 1.0, last, SCL_LOWER_HALF));
  SCL_TRY(engine->potrf(ctx, last, scl_gp_scalar(gp, AT_INFO)));
  gp->factor = gp->room[0];
  return scl_gp_early_info(gp, n);
}

scl_status scl_gp_extend(const scl_gp *gp, const scl_gp_data *data, const scl_covariance *kernel,
                         scl_gp_trend trend, double *value, double *b, double *a_inverse,
                         double *weights, scl_gp **out) {
  if (!gp->conditioned)
    return scl_fail_argument("gp", "the Gaussian process is not conditioned on observations");
  if (data->n < gp->n || data->p != gp->p || data->outputs != gp->outputs ||
      data->basis_columns != gp->q || (data->n > gp->n && kernel == NULL)) {
    return scl_fail_argument("x", "the new observations do not match the old ones");
  }
  scl_gp *more = NULL;
  SCL_TRY(scl_gp_create(gp->ctx, data, &more));
  scl_status status;
  SCL_GO(scl_gp_prepare(more, kernel, 1));
  SCL_GO(extend_factor(gp, more, kernel));
  SCL_GO(finish_condition(more, trend, gp->n, value, b, a_inverse, weights));
done:
  if (status != SCL_OK) {
    scl_gp_release(more);
    return status;
  }
  *out = more;
  return SCL_OK;
}

scl_status scl_gp_precisions(scl_gp *gp, double *diagonal) {
  SCL_TRY(scl_context_check(gp->ctx));
  if (!gp->conditioned)
    return scl_fail_argument("gp", "the Gaussian process is not conditioned on observations");
  scl_context *ctx = gp->ctx;
  const scl_engine *engine = ctx->engine;
  scl_block work = {0}, q = scl_gp_columns(gp->weights, gp->outputs, gp->q);
  scl_status status = SCL_OK;
  if (gp->room[1].buffer == NULL) SCL_TRY(scl_block_create(ctx, gp->n, gp->n, &gp->room[1]));
  scl_block squared = gp->room[1]; /* L^-1, then the squares of its elements */
  SCL_GO(scl_block_create(ctx, gp->n, 2 + gp->q, &work));
  scl_block ones = scl_gp_columns(work, 0, 1), sums = scl_gp_columns(work, 1, 1);
  scl_block squares = scl_gp_columns(work, 2, gp->q);
  SCL_GO(engine->fill(ctx, 1.0, ones));
  SCL_GO(engine->trtri(ctx, SCL_LOWER, gp->factor, squared));
  SCL_GO(scl_apply_blocks(ctx, SCL_OP_MUL, (scl_operand){.block = squared},
                          (scl_operand){.block = squared}, squared));
  SCL_GO(engine->gemm(ctx, 1.0, SCL_TRANS, squared, SCL_LOWER, SCL_NO_TRANS, ones, SCL_GENERAL, 0.0,
                      sums, SCL_ALL));
  if (gp->q > 0) {
    scl_block some = ones;
    some.nrow = gp->q;
    SCL_GO(scl_apply_blocks(ctx, SCL_OP_MUL, (scl_operand){.block = q}, (scl_operand){.block = q},
                            squares));
    SCL_GO(engine->gemm(ctx, -1.0, SCL_NO_TRANS, squares, SCL_GENERAL, SCL_NO_TRANS, some,
                        SCL_GENERAL, 1.0, sums, SCL_ALL));
  }
  SCL_GO(scl_read_block(ctx, sums, SCL_WAIT_WRITES, diagonal));
done:
  scl_buffer_release(work.buffer);
  return status;
}

/* ---- predictions ---------------------------------------------------------------------------- */

/* A block of m points. v (n x m): covariances with the data, then L^-1 of them; sums (m x outputs +
 * q + 1): v' a, then V' Q, and sums of squares. */
typedef struct {
  scl_gp *gp;
  const scl_covariance *kernel; /* or NULL, and given covariances */
  const scl_mat *cross, *within;
  size_t m;
  scl_mat *x;
  scl_block v, sums, ones, covariance;
  double *host; /* sums */
} prediction;

static scl_status sum_columns(const prediction *w, scl_block u, size_t at) {
  return w->gp->ctx->engine->gemm(w->gp->ctx, 1.0, SCL_TRANS, w->v, SCL_GENERAL, SCL_NO_TRANS, u,
                                  SCL_GENERAL, 0.0, scl_gp_columns(w->sums, at, u.ncol), SCL_ALL);
}

/* K** - V' V. */
static scl_status predict_covariance(prediction *w, double *covariance) {
  scl_context *ctx = w->gp->ctx;
  SCL_TRY(scl_block_create(ctx, w->m, w->m, &w->covariance));
  if (w->kernel == NULL) {
    SCL_TRY(ctx->engine->copy(ctx, SCL_COPY, scl_mat_block(w->within), w->covariance));
  } else {
    scl_block x = scl_mat_block(w->x);
    struct scl_covariance_pass pass = {.kernel = w->kernel,
                                       .x1 = x,
                                       .x2 = x,
                                       .symmetric = true,
                                       .quiet = true,
                                       .region = SCL_MIRRORED,
                                       .k = w->covariance};
    SCL_TRY(ctx->engine->covariance(ctx, &pass));
  }
  SCL_TRY(ctx->engine->gemm(ctx, -1.0, SCL_TRANS, w->v, SCL_GENERAL, SCL_NO_TRANS, w->v,
                            SCL_GENERAL, 1.0, w->covariance, SCL_MIRRORED));
  return scl_read_block(ctx, w->covariance, SCL_WAIT_WRITES, covariance);
}

/* The part that needs the factor. */
static scl_status predict_spread(prediction *w, bool variance, double *covariance) {
  scl_gp *gp = w->gp;
  scl_context *ctx = gp->ctx;
  SCL_TRY(ctx->engine->trsm(ctx, SCL_LEFT, SCL_LOWER, SCL_NO_TRANS, gp->factor, w->v));
  if (gp->q > 0) {
    SCL_TRY(sum_columns(w, scl_gp_columns(gp->solved, gp->outputs, gp->q), gp->outputs));
  }
  if (covariance != NULL) SCL_TRY(predict_covariance(w, covariance));
  if (!variance) return SCL_OK;
  SCL_TRY(scl_apply_blocks(ctx, SCL_OP_MUL, (scl_operand){.block = w->v},
                           (scl_operand){.block = w->v}, w->v));
  SCL_TRY(scl_block_create(ctx, gp->n, 1, &w->ones));
  SCL_TRY(ctx->engine->fill(ctx, 1.0, w->ones));
  return sum_columns(w, w->ones, gp->outputs + gp->q);
}

/* v = the covariances of the points x with the data. */
static scl_status cover_points(prediction *w, const double *x) {
  scl_gp *gp = w->gp;
  scl_context *ctx = gp->ctx;
  if (w->kernel == NULL) return ctx->engine->copy(ctx, SCL_COPY, scl_mat_block(w->cross), w->v);
  SCL_TRY(scl_mat_from_host(ctx, x, w->m, gp->p, SCL_GENERAL, &w->x));
  struct scl_covariance_pass pass = {.kernel = w->kernel,
                                     .x1 = scl_mat_block(gp->x),
                                     .x2 = scl_mat_block(w->x),
                                     .region = SCL_ALL,
                                     .k = w->v};
  return ctx->engine->covariance(ctx, &pass);
}

static scl_status predict_block(prediction *w, const double *x, bool variance, double *covariance) {
  scl_gp *gp = w->gp;
  scl_context *ctx = gp->ctx;
  SCL_TRY(scl_block_create(ctx, gp->n, w->m, &w->v));
  SCL_TRY(scl_block_create(ctx, w->m, gp->outputs + gp->q + 1, &w->sums));
  SCL_TRY(ctx->engine->fill(ctx, 0.0, w->sums));
  SCL_TRY(cover_points(w, x));
  SCL_TRY(sum_columns(w, scl_gp_columns(gp->weights, 0, gp->outputs), 0));
  if (variance || covariance != NULL) SCL_TRY(predict_spread(w, variance, covariance));
  return scl_read_block(ctx, w->sums, SCL_WAIT_WRITES, w->host);
}

static void release_block(prediction *w) {
  scl_mat_release(w->x);
  scl_buffer_release(w->v.buffer);
  scl_buffer_release(w->sums.buffer);
  scl_buffer_release(w->ones.buffer);
  scl_buffer_release(w->covariance.buffer);
  w->x = NULL;
  w->v = w->sums = w->ones = w->covariance = (scl_block){0};
}

/* The contribution of the trend to the mean, variance and covariance: with the column r_i = M^-1
 * h_i - Q' v_i for each point, b' h_i, r_i' r_i and r_i' r_j. basis: m rows with leading dimension
 * ld. */
static scl_status add_trend(const prediction *w, const double *basis, size_t ld, double *mean,
                            size_t ld_mean, double *variance, double *covariance) {
  const scl_gp *gp = w->gp;
  size_t q = gp->q, m = w->m;
  const double *factor = gp->trend, *b = gp->trend + q * q, *qv = w->host + gp->outputs * m;
  double *r = malloc((q * m + 1) * sizeof *r);
  if (r == NULL) return scl_fail_memory(q * m * sizeof *r, 0, "predictions");
  for (size_t i = 0; i < m; i++) {
    for (size_t k = 0; k < gp->outputs; k++) {
      for (size_t c = 0; c < q; c++) mean[i + k * ld_mean] += basis[i + c * ld] * b[c + k * q];
    }
    for (size_t c = 0; c < q; c++) {
      double sum = basis[i + c * ld];
      for (size_t k = 0; k < c; k++) sum -= factor[c + k * q] * r[k + i * q];
      r[c + i * q] = sum / factor[c + c * q];
    }
  }
  for (size_t i = 0; i < m; i++) { /* only when all M^-1 h_i are there */
    for (size_t c = 0; c < q; c++) r[c + i * q] -= qv[i + c * m];
  }
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < m; j++) {
      if (covariance == NULL && j != i) continue;
      double sum = 0;
      for (size_t c = 0; c < q; c++) sum += r[c + i * q] * r[c + j * q];
      if (covariance != NULL) covariance[i + j * m] += sum;
      if (variance != NULL && i == j) variance[i] += sum;
    }
  }
  free(r);
  return SCL_OK;
}

/* Points at a time: a block of covariances with the data stays at 128 MiB. */
static size_t block_size(const scl_gp *gp, size_t m, bool covariance) {
  size_t points = ((size_t)16 << 20) / gp->n;
  if (points < 64) points = 64;
  return covariance || points > m ? m : points;
}

scl_status scl_gp_predict(scl_gp *gp, const scl_covariance *kernel, const double *x,
                          const double *basis, size_t m, double *mean, double *variance,
                          double *covariance) {
  SCL_TRY(scl_context_check(gp->ctx));
  SCL_TRY(scl_covariance_check(kernel, gp->p));
  if (!gp->conditioned)
    return scl_fail_argument("gp", "the Gaussian process is not conditioned on observations");
  if (m == 0) return SCL_OK;
  size_t most = block_size(gp, m, covariance != NULL), width = gp->outputs + gp->q + 1;
  prediction w = {.gp = gp, .kernel = kernel};
  scl_status status = SCL_OK;
  double *points = malloc(most * gp->p * sizeof *points);
  w.host = malloc(most * width * sizeof *w.host);
  if (points == NULL || w.host == NULL) {
    status = scl_fail_memory(most * width * sizeof *w.host, 0, "predictions");
    goto done;
  }
  for (size_t at = 0; at < m; at += w.m) {
    w.m = m - at < most ? m - at : most;
    for (size_t c = 0; c < gp->p; c++) {
      memcpy(points + c * w.m, x + at + c * m, w.m * sizeof *points);
    }
    SCL_GO(predict_block(&w, points, variance != NULL, covariance));
    for (size_t k = 0; k < gp->outputs; k++) {
      memcpy(mean + at + k * m, w.host + k * w.m, w.m * sizeof *mean);
    }
    if (variance != NULL) {
      scl_covariance_variances(kernel, points, w.m, w.m, variance + at);
      const double *squares = w.host + (gp->outputs + gp->q) * w.m;
      for (size_t i = 0; i < w.m; i++) variance[at + i] -= squares[i];
    }
    if (gp->q > 0) {
      SCL_GO(add_trend(&w, basis + at, m, mean + at, m, variance == NULL ? NULL : variance + at,
                       covariance));
    }
    release_block(&w);
  }
done:
  release_block(&w);
  free(points);
  free(w.host);
  return status;
}

scl_status scl_gp_predict_given(scl_gp *gp, const scl_mat *cross, const scl_mat *within,
                                const double *basis, double *mean, double *variance,
                                double *covariance) {
  SCL_TRY(scl_context_check(gp->ctx));
  size_t m = cross->ncol, width = gp->outputs + gp->q + 1;
  if (!gp->conditioned)
    return scl_fail_argument("gp", "the Gaussian process is not conditioned on observations");
  if (cross->nrow != gp->n ||
      (covariance != NULL && (within == NULL || within->nrow != m || within->ncol != m)))
    return scl_fail_argument("kernel", "the covariances do not match the points");
  if (m == 0) return SCL_OK;
  prediction w = {.gp = gp, .cross = cross, .within = within, .m = m};
  scl_status status;
  w.host = malloc(m * width * sizeof *w.host);
  if (w.host == NULL) return scl_fail_memory(m * width * sizeof *w.host, 0, "predictions");
  SCL_GO(predict_block(&w, NULL, variance != NULL, covariance));
  memcpy(mean, w.host, m * gp->outputs * sizeof *mean);
  if (variance != NULL) {
    const double *squares = w.host + (gp->outputs + gp->q) * m;
    for (size_t i = 0; i < m; i++) variance[i] -= squares[i];
  }
  if (gp->q > 0) SCL_GO(add_trend(&w, basis, m, mean, m, variance, covariance));
done:
  release_block(&w);
  free(w.host);
  return status;
}

scl_status scl_gp_slope(scl_gp *gp, const scl_covariance *kernel, const double *x, size_t m,
                        size_t output, double *slope) {
  SCL_TRY(scl_context_check(gp->ctx));
  SCL_TRY(scl_covariance_check(kernel, gp->p));
  if (!gp->conditioned)
    return scl_fail_argument("gp", "the Gaussian process is not conditioned on observations");
  if (output >= gp->outputs) return scl_fail_argument("output", "'output' is not a column of 'y'");
  if (m == 0) return SCL_OK;
  scl_context *ctx = gp->ctx;
  scl_mat *points = NULL;
  scl_block ones = {0}, out = {0};
  scl_status status;
  SCL_GO(scl_mat_from_host(ctx, x, m, gp->p, SCL_GENERAL, &points));
  SCL_GO(scl_block_create(ctx, m, 1, &ones));
  SCL_GO(scl_block_create(ctx, m, gp->p, &out));
  SCL_GO(ctx->engine->fill(ctx, 1.0, ones));
  struct scl_covariance_pass pass = {.kernel = kernel,
                                     .x1 = scl_mat_block(points),
                                     .x2 = scl_mat_block(gp->x),
                                     .u = ones,
                                     .v = scl_gp_columns(gp->weights, output, 1),
                                     .outer = 1.0,
                                     .out = out};
  SCL_GO(ctx->engine->covariance_inputs(ctx, &pass));
  SCL_GO(scl_read_block(ctx, out, SCL_WAIT_WRITES, slope));
done:
  scl_mat_release(points);
  scl_buffer_release(ones.buffer);
  scl_buffer_release(out.buffer);
  return status;
}
