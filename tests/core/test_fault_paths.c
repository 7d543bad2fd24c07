/* Every operation when memory runs out at any of its buffers, or when the user asks to stop: the
 * right error, no result, no memory kept, and the same call succeeds afterwards. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/device.h"
#include "engine/cl/runtime/cl.h"
#include "ops/check.h"
#include "ops/compressed.h"
#include "ops/cholesky.h"
#include "graph/expr.h"
#include "ops/table.h"
#include "ops/glm.h"
#include "ops/gp.h"
#include "ops/operation.h"
#include "ops/constructors.h"
#include "ops/triangular.h"
#include "alloc.h"
#include "matrices.h"
#include "record.h"

enum { N = 70, TRIES = 100 };

/* Operands: symmetric positive definite, its factor, general, a column. */
typedef struct {
  scl_mat *a, *l, *g, *v;
} fixture;

/* Runs one operation; a second result goes to out[1]. */
typedef scl_status run_operation(const fixture *f, scl_mat **out);

static const scl_tri_form form = {SCL_LEFT, false, true};

/* Makes a graph over the operands, with a reduction inside and one at the end, and computes two of
 * its parts at once. */
static scl_status run_expression(const fixture *f, scl_mat **out) {
  scl_mat *step[5] = {NULL}, *sum = NULL;
  scl_status status;
  const scl_term first[] = {{f->g, 0}, {f->a, 0}};
  SCL_GO(scl_expr_apply(SCL_OP_ADD, 2, first, &step[0]));
  SCL_GO(scl_expr_reduce(SCL_REDUCE_SUM, step[0], SCL_BY_ROW, &step[1]));
  const scl_term second[] = {{step[0], 0}, {step[1], 0}};
  SCL_GO(scl_expr_apply(SCL_OP_SUB, 2, second, &step[2]));
  SCL_GO(record_transpose(step[2], &step[3]));
  SCL_GO(scl_expr_apply(SCL_OP_EXP, 1, &(scl_term){step[3], 0}, &step[4]));
  SCL_GO(scl_expr_reduce(SCL_REDUCE_WHICH_MAX, step[2], SCL_BY_COLUMN, &sum));
  scl_mat *both[] = {step[4], sum};
  SCL_GO(scl_expr_eval(2, both));
  out[0] = scl_mat_retain(step[4]);
  out[1] = scl_mat_retain(sum);
done:
  for (int k = 0; k < 5; k++) scl_mat_release(step[k]);
  scl_mat_release(sum);
  return status;
}

static scl_status run_blocks(const fixture *f, scl_mat **out) {
  const scl_operand g = {.block = scl_mat_block(f->g)}, a = {.block = scl_mat_block(f->a)};
  scl_mat *r;
  SCL_TRY(scl_mat_create(f->g->ctx, N, N, SCL_GENERAL, &r));
  return scl_give(scl_apply_blocks(f->g->ctx, SCL_OP_MUL, g, a, scl_mat_block(r)), r, out);
}

static scl_status run_check(const fixture *f, scl_mat **out) {
  int64_t index;
  (void)out;
  return scl_check_matrix(SCL_CHECK_SYMMETRIC, 0, f->a, &index);
}

static scl_status run_copy(const fixture *f, scl_mat **out) {
  return scl_copy_as(SCL_COPY_TRANSPOSED, f->l, out);
}

static scl_status run_part(const fixture *f, scl_mat **out) {
  return scl_part(f->g, 3, 4, 20, 30, out);
}

static scl_status run_select(const fixture *f, scl_mat **out) {
  const size_t index[] = {3, 1, 3};
  return scl_select(f->g, index, 3, index, 2, out);
}

static scl_status run_bind(const fixture *f, scl_mat **out) {
  const scl_term operand[] = {{f->g, 0.0}, {f->v, 0.0}};
  return scl_compute(NULL, SCL_OPERATION_BIND, 2, operand, 1, &(double){1.0}, out);
}

static scl_status run_matmul(const fixture *f, scl_mat **out) {
  return compute_product(false, false, f->l, f->g, out);
}

static scl_status run_crossprod(const fixture *f, scl_mat **out) {
  return compute_product(true, false, f->g, NULL, out);
}

static scl_status run_solve(const fixture *f, scl_mat **out) {
  return compute_tri_solve(form, f->l, f->g, out);
}

static scl_status run_tri_inverse(const fixture *f, scl_mat **out) {
  return compute_tri_inverse(false, f->l, out);
}

static scl_status run_solve_adjoint(const fixture *f, scl_mat **out) {
  return scl_tri_solve_adjoint(form, f->l, f->g, f->a, out, out + 1);
}

static scl_status run_chol(const fixture *f, scl_mat **out) {
  return compute_chol(f->a, 0.5, true, out);
}

static scl_status run_chol_adjoint(const fixture *f, scl_mat **out) {
  return compute_chol_adjoint(f->l, f->g, out);
}

static scl_status run_chol_pivots(const fixture *f, scl_mat **out) {
  double pivots[N];
  (void)out;
  return scl_chol_pivots(f->a, pivots);
}

static scl_status run_chol_inverse(const fixture *f, scl_mat **out) {
  return compute_chol_inverse(f->l, true, out);
}

static scl_status run_log_det(const fixture *f, scl_mat **out) {
  return scl_compute(NULL, SCL_OPERATION_LOG_DET, 1, &(scl_term){f->l, 0.0}, 0, NULL, out);
}

/* Two terms over columns 1 and 2. */
static const scl_covariance_term terms[] = {{SCL_COVARIANCE_EXP_QUAD, 2, 1.0, 1.0},
                                            {SCL_COVARIANCE_MATERN32, 1, 0.5, 1.0}};
static const int columns[] = {0, 1, 1};
static const double lengthscales[] = {0.5, 2.0, 1.0};
static const scl_covariance kernel = {.terms = 2,
                                      .entries = 3,
                                      .term = terms,
                                      .column = columns,
                                      .lengthscale = lengthscales,
                                      .noise = 0.3};

static scl_status run_covariance(const fixture *f, scl_mat **out) {
  return scl_covariance_matrix(&kernel, f->g, NULL, out);
}

static scl_status run_covariance_adjoint(const fixture *f, scl_mat **out) {
  double gradient[8];
  (void)out;
  return scl_covariance_adjoint(&kernel, f->g, f->l, f->a, gradient);
}

static scl_status run_covariance_inputs(const fixture *f, scl_mat **out) {
  return scl_covariance_inputs(&kernel, f->g, f->l, f->a, out);
}

/* A Gaussian process from its creation to its predictions, and with more observations. */
static scl_status run_gp(const fixture *f, scl_mat **out) {
  double x[2 * N], weights[N], value, b, a_inverse, gradient[8], variance[3], covariance[9];
  scl_gp *gp = NULL, *more = NULL;
  scl_status status;
  (void)out;
  for (int i = 0; i < 2 * N; i++) x[i] = (double)(i * i % 83) / 83;
  scl_gp_data data = {N, 2, 1, 1, x, x, x + 1, NULL};
  SCL_GO(scl_gp_create(f->g->ctx, &data, &gp));
  for (int i = 0; i < 2; i++) {
    SCL_GO(
        scl_gp_evaluate(gp, &kernel, (scl_gp_objective)i, SCL_GP_INTEGRATE, &value, &b, gradient));
  }
  SCL_GO(scl_gp_condition(gp, &kernel, SCL_GP_PROFILE, &value, &b, &a_inverse, weights));
  SCL_GO(scl_gp_predict(gp, &kernel, x, x, 3, gradient, variance, covariance));
  SCL_GO(scl_gp_slope(gp, &kernel, x, 3, 0, gradient));
  SCL_GO(scl_gp_precisions(gp, weights));
  SCL_GO(scl_gp_extend(gp, &data, &kernel, SCL_GP_PROFILE, &value, &b, &a_inverse, weights, &more));
done:
  scl_gp_release(gp);
  scl_gp_release(more);
  return status;
}

/* A likelihood from its creation to two evaluations, of which the second needs more workspace. */
static scl_status run_glm(const fixture *f, scl_mat **out) {
  double y = 1, alpha[N] = {0}, beta[N] = {0}, value, d_alpha[N], d_beta[N];
  const scl_glm_data data = {.y = &y, .n_y = 1};
  const scl_glm_results results = {&value, d_alpha, d_beta, NULL, out, NULL};
  scl_glm_parameters at = {.alpha = alpha, .beta = beta, .n_alpha = 1, .n_beta = N};
  scl_glm *glm = NULL;
  scl_status status;
  SCL_GO(scl_glm_create(SCL_GLM_BERNOULLI_LOGIT, &data, f->g, &glm));
  SCL_GO(scl_glm_evaluate(glm, &at, SCL_GLM_BETA, &results));
  at.n_alpha = N;
  at.row_alpha = true;
  SCL_GO(scl_glm_evaluate(glm, &at, SCL_GLM_ALPHA | SCL_GLM_X, &results));
done:
  scl_glm_release(glm);
  return status;
}

/* A sparse matrix whose first row is full, longer than a tile, from its creation to products. */
static scl_status run_compressed(const fixture *f, scl_mat **out) {
  enum { WIDE = 1100 }; /* COMPRESSED_TILE is 1024 */
  static int32_t start[WIDE + 1], row[2 * WIDE];
  static double value[2 * WIDE];
  scl_compressed *a = NULL;
  scl_mat *right = NULL;
  scl_status status;
  int32_t count = 0;
  for (int j = 0; j < WIDE; j++) {
    start[j] = count;
    row[count] = 0;
    value[count++] = 1.0 + j % 3;
    if (j % N == 0) continue;
    row[count] = j % N;
    value[count++] = 0.5;
  }
  start[WIDE] = count;
  SCL_GO(scl_compressed_create(f->g->ctx, N, WIDE, start, row, value, &a));
  SCL_GO(scl_compressed_multiply(a, true, f->g, &right));
  SCL_GO(scl_compressed_multiply(a, false, right, &out[0]));
  SCL_GO(scl_compressed_gram(a, true, NULL, &out[1]));
done:
  scl_compressed_release(a);
  scl_mat_release(right);
  if (status != SCL_OK) {
    scl_mat_release(out[0]);
    out[0] = NULL;
  }
  return status;
}

static run_operation *const operations[] = {
    run_expression,
    run_blocks,
    run_check,
    run_copy,
    run_part,
    run_select,
    run_bind,
    run_matmul,
    run_crossprod,
    run_solve,
    run_tri_inverse,
    run_chol,
    run_chol_pivots,
    run_solve_adjoint,
    run_chol_adjoint,
    run_chol_inverse,
    run_log_det,
    run_covariance,
    run_covariance_adjoint,
    run_covariance_inputs,
    run_gp,
    run_glm,
    run_compressed,
};

/* The conditions after a run: without success no result, and no memory on the device. */
static void check_end(scl_context *ctx, scl_status status, scl_mat *const out[2],
                      scl_memory before) {
  CHECK(status == SCL_OK || (out[0] == NULL && out[1] == NULL));
  RELEASE(out[0], out[1]);
  CHECK_OK(scl_context_finish(ctx));
  CHECK(scl_context_memory(ctx).live == before.live);
  CHECK(scl_context_memory(ctx).buffers == before.buffers);
}

static void check_operation(scl_context *ctx, const fixture *f, run_operation *run) {
  const scl_memory before = scl_context_memory(ctx);
  scl_status status = SCL_E_MEMORY;
  int faults = 0;
  for (; status != SCL_OK && faults < TRIES; faults++) {
    scl_mat *out[2] = {NULL, NULL};
    scl_buffer_fail_after(faults + 1);
    status = run(f, out);
    scl_buffer_fail_after(-1);
    CHECK(status == SCL_OK || status == SCL_E_MEMORY);
    check_end(ctx, status, out, before);
  }
  CHECK(status == SCL_OK);
}

/* The same for every allocation of the host's own memory. The sanitizer reports leaks when the run
 * ends. Some failures are handled: fewer threads, smaller pieces. */
static void check_allocations(scl_context *ctx, const fixture *f, run_operation *run) {
  const scl_memory before = scl_context_memory(ctx);
  bool fails = true;
  for (long n = 1; fails && n < 10 * TRIES; n++) {
    scl_mat *out[2] = {NULL, NULL};
    alloc_fail(n);
    scl_status status = run(f, out);
    fails = alloc_failed();
    alloc_fail(0);
    CHECK(status == SCL_OK || (status == SCL_E_MEMORY && fails));
    check_end(ctx, status, out, before);
  }
  CHECK(!fails);
}

#include "driver.h"
#include "base/device.h"

static long driver_faults;

/* One run with the n-th call of the driver failing; false when it makes fewer calls. */
static bool fail_call(scl_context *ctx, const fixture *f, run_operation *run, long n, int code) {
  const scl_memory before = scl_context_memory(ctx);
  long calls = driver_counted().calls;
  scl_mat *out[2] = {NULL, NULL};
  driver_fail(n, code, false);
  scl_status status = run(f, out);
  bool fired = driver_counted().calls - calls >= n;
  driver_fail(0, 0, false);
  ctx->lost = false;
  /* The second try of a buffer may succeed after a shortage; nothing does after a loss. */
  CHECK(!fired || status != SCL_OK || code == -4);
  if (status != SCL_OK) {
    CHECK(status == (code == -4 ? SCL_E_MEMORY : SCL_E_LOST));
    CHECK(out[0] == NULL && out[1] == NULL);
  }
  RELEASE(out[0], out[1]);
  CHECK_OK(scl_context_finish(ctx));
  CHECK(scl_context_memory(ctx).live == before.live);
  CHECK(scl_context_memory(ctx).buffers == before.buffers);
  if (fired) driver_faults++;
  return fired;
}

/* Every call of the driver fails in turn. Operands hold the events of their last use, so the number
 * of events is not always the same, but it does not grow. */
static void check_driver(scl_context *ctx, const fixture *f, run_operation *run) {
  scl_mat *out[2] = {NULL, NULL};
  driver_install();
  CHECK_OK(run(f, out));
  RELEASE(out[0], out[1]);
  CHECK_OK(scl_context_finish(ctx));
  scl_device_trim(ctx);
  driver_counts before = driver_counted();
  for (long n = 1; fail_call(ctx, f, run, n, -4) && n < 1000; n++) {
    fail_call(ctx, f, run, n, -5);
  }
  scl_device_trim(ctx);
  driver_counts after = driver_counted();
  CHECK(after.buffers == before.buffers && after.kernels == before.kernels);
  CHECK(after.programs == before.programs && after.maps == before.maps);
  CHECK(after.events - before.events < 24);
  out[0] = out[1] = NULL;
  CHECK_OK(run(f, out));
  RELEASE(out[0], out[1]);
}

static void check_drivers(scl_context *ctx, const fixture *f) {
  for (size_t k = 0; k < LENGTH(operations); k++) {
    check_driver(ctx, f, operations[k]);
  }
  CHECK(driver_faults > 200);
  printf("       %ld calls of the driver failed in turn\n", driver_faults);
  driver_remove();
}

/* The first evaluation of a likelihood, each call of the driver failing in turn, in memory that had
 * other contents: the next one is right. */
static void check_first_evaluation(const scl_context *like) {
  enum { CALLS = 14, SIZES = 9, ROWS = 64 };
  const double x[ROWS] = {1.0}, y[ROWS] = {1.0}, alpha = 0.1, beta = 0.2;
  for (long n = 1; n < CALLS; n++) {
    scl_context *ctx = NULL;
    scl_block used[SIZES];
    scl_mat *m = NULL;
    scl_glm *glm = NULL;
    double value[2] = {0.0};
    const scl_glm_data data = {.y = y, .n_y = ROWS};
    const scl_glm_parameters at = {
        .vectors = 1, .alpha = &alpha, .beta = &beta, .n_alpha = 1, .n_beta = 1};
    driver_install();
    REQUIRE_OK(scl_device_open(driver_index(like), &ctx));
    for (size_t k = 0; k < SIZES; k++) {
      CHECK_OK(scl_block_create(ctx, (size_t)16 << k, 1, &used[k]));
      CHECK_OK(ctx->engine->fill(ctx, 0.1, used[k])); /* no half of it is 0 */
    }
    for (size_t k = 0; k < SIZES; k++) scl_buffer_release(used[k].buffer);
    CHECK_OK(scl_mat_from_host(ctx, x, ROWS, 1, SCL_GENERAL, &m));
    CHECK_OK(scl_glm_create(SCL_GLM_BERNOULLI_LOGIT, &data, m, &glm));
    scl_cl_glm_force("10f");
    for (int k = 0; k < 3; k++) { /* the last one with everything in order */
      const scl_glm_results out = {.value = &value[k / 2]};
      driver_fail(k == 0 ? n : 0, -4, false);
      const scl_status status = scl_glm_evaluate(glm, &at, 0, &out);
      CHECK(status == SCL_OK || k == 0);
      driver_fail(0, 0, false);
    }
    const double first = alpha + beta, right = -log1p(exp(-first)) - (ROWS - 1) * log1p(exp(alpha));
    CHECK_NEAR(value[0], right, 1e-12 * ROWS);
    CHECK(value[0] == value[1]);
    scl_cl_glm_force(NULL);
    scl_glm_release(glm);
    scl_mat_release(m);
    scl_context_release(ctx);
    driver_remove();
  }
}

static bool always(void) {
  return true;
}

/* Long work stops when asked to. */
static void check_interrupt(scl_context *ctx) {
  scl_mat *l = NULL, *g = mat_random(ctx, 3 * N, 3 * N, SCL_GENERAL), *out = NULL;
  CHECK_OK(scl_identity(ctx, 3 * N, 1, &l));
  scl_hooks_set(&(scl_hooks){.interrupted = always});
  CHECK_STATUS(SCL_E_INTERRUPT, compute_chol_adjoint(l, g, &out));
  scl_hooks_set(&(scl_hooks){.interrupted = NULL});
  CHECK(out == NULL);
  CHECK_OK(compute_chol_adjoint(l, g, &out));
  RELEASE(l, g, out);
}

void test_fault_paths(scl_context *ctx) {
  double *a = test_alloc(sizeof(double) * N * N);
  mat_spd(a, N, 10.0, 1.0);
  fixture f = {.a = mat_make(ctx, a, N, N, SCL_SYMMETRIC),
               .g = mat_random(ctx, N, N, SCL_GENERAL),
               .v = mat_random(ctx, N, 1, SCL_GENERAL)};
  free(a);
  check_interrupt(ctx);
  CHECK_OK(compute_chol(f.a, 0.0, false, &f.l));
  for (size_t k = 0; f.l != NULL && k < LENGTH(operations); k++) {
    check_operation(ctx, &f, operations[k]);
    check_allocations(ctx, &f, operations[k]);
  }
  if (f.l != NULL && !scl_context_is_host(ctx)) check_drivers(ctx, &f);
  if (!scl_context_is_host(ctx)) check_first_evaluation(ctx);
  RELEASE(f.a, f.g, f.v, f.l);
}
