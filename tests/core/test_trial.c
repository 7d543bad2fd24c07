/* Programs with matrix instructions: one that does not compile, or whose trial computes a wrong
 * result, is refused, and every operation uses the portable kernels. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/device.h"
#include "linalg.h"
#include "matrices.h"
#include "ops/batch.h"
#include "ops/cholesky.h"
#include "record.h"
#include "ops/glm.h"
#include "ops/triangular.h"

/* More than one block of everything; a batch's orders are those of its matrix instructions. */
enum { N = 150, BATCH_N = 61, BATCH_K = 40, BATCH = 2, ROWS = 40, COLUMNS = 12, VECTORS = 3 };

/* What all operations need, in host memory. */
typedef struct {
  double spd[N * N], l[N * N], general[N * N];
  double square[BATCH_N * BATCH_N * BATCH], sides[BATCH_N * BATCH_K * BATCH];
} fixture;

typedef scl_status operation(scl_context *ctx, const fixture *f, scl_mat **out);

static scl_mat *matrix(scl_context *ctx, const double *data, scl_view view) {
  return mat_make(ctx, data, N, N, view);
}

static scl_status run_product(scl_context *ctx, const fixture *f, scl_mat **out) {
  scl_mat *a = matrix(ctx, f->general, SCL_GENERAL), *b = matrix(ctx, f->spd, SCL_GENERAL);
  scl_status status = compute_product(false, false, a, b, out);
  RELEASE(a, b);
  return status;
}

static scl_status run_chol(scl_context *ctx, const fixture *f, scl_mat **out) {
  scl_mat *a = matrix(ctx, f->spd, SCL_SYMMETRIC);
  scl_status status = compute_chol(a, 0.0, false, out);
  scl_mat_release(a);
  return status;
}

static scl_status run_chol_adjoint(scl_context *ctx, const fixture *f, scl_mat **out) {
  scl_mat *l = matrix(ctx, f->l, SCL_LOWER), *adj = matrix(ctx, f->general, SCL_LOWER);
  scl_status status = compute_chol_adjoint(l, adj, out);
  RELEASE(l, adj);
  return status;
}

static scl_status run_tri_solve(scl_context *ctx, const fixture *f, scl_mat **out) {
  scl_mat *l = matrix(ctx, f->l, SCL_LOWER), *b = matrix(ctx, f->general, SCL_GENERAL);
  scl_status status = compute_tri_solve((scl_tri_form){.side = SCL_LEFT}, l, b, out);
  RELEASE(l, b);
  return status;
}

static scl_status run_inverse(scl_context *ctx, const fixture *f, scl_mat **out) {
  scl_mat *l = matrix(ctx, f->l, SCL_LOWER);
  scl_status status = compute_chol_inverse(l, false, out);
  scl_mat_release(l);
  return status;
}

static scl_status run_batch_product(scl_context *ctx, const fixture *f, scl_mat **out) {
  scl_mat *a = mat_make(ctx, f->square, BATCH_N * BATCH_N, BATCH, SCL_GENERAL);
  scl_mat *b = mat_make(ctx, f->sides, BATCH_N * BATCH_K, BATCH, SCL_GENERAL);
  scl_status status =
      scl_batch_matmul(a, SCL_NO_TRANS, b, SCL_NO_TRANS, BATCH_N, BATCH_K, BATCH_N, BATCH, out);
  RELEASE(a, b);
  return status;
}

static scl_status run_batch_solve(scl_context *ctx, const fixture *f, scl_mat **out) {
  scl_mat *a = mat_make(ctx, f->square, BATCH_N * BATCH_N, BATCH, SCL_GENERAL);
  scl_mat *b = mat_make(ctx, f->sides, BATCH_N * BATCH_K, BATCH, SCL_GENERAL);
  scl_status status = scl_batch_solve(a, b, BATCH_N, BATCH_K, BATCH, NULL, out);
  RELEASE(a, b);
  return status;
}

/* The gradients by beta of several vectors, as a matrix. */
static scl_status run_glm(scl_context *ctx, const fixture *f, scl_mat **out) {
  scl_mat *x = mat_make(ctx, f->general, ROWS, COLUMNS, SCL_GENERAL);
  double y[ROWS], value[VECTORS], d_beta[VECTORS * COLUMNS];
  for (int i = 0; i < ROWS; i++) y[i] = i % 2;
  scl_glm *glm = NULL;
  scl_status status =
      scl_glm_create(SCL_GLM_BERNOULLI_LOGIT, &(scl_glm_data){.y = y, .n_y = ROWS}, x, &glm);
  if (status == SCL_OK) {
    const scl_glm_parameters parameters = {.vectors = VECTORS,
                                           .alpha = f->general,
                                           .beta = f->general + VECTORS,
                                           .n_alpha = VECTORS,
                                           .n_beta = VECTORS * COLUMNS};
    status = scl_glm_evaluate(glm, &parameters, SCL_GLM_BETA,
                              &(scl_glm_results){.value = value, .d_beta = d_beta});
  }
  scl_glm_release(glm);
  scl_mat_release(x);
  if (status == SCL_OK) *out = mat_make(ctx, d_beta, COLUMNS, VECTORS, SCL_GENERAL);
  return status;
}

/* Each with a program that it needs. */
static const struct {
  operation *run;
  const char *program;
} operations[] = {{run_product, "gemm_mma_"},
                  {run_chol, "cholesky_mma"},
                  {run_chol_adjoint, "triangular_mma_pack_and_copy"},
                  {run_tri_solve, "triangular_mma_pack"},
                  {run_inverse, "triangular_mma_pack"},
                  {run_batch_product, "batch_matmul_group_4"},
                  {run_batch_solve, "batch_solve_mma_64"},
                  {run_glm, "glm_40m4_bernoulli_logit"}};
enum { OPERATIONS = LENGTH(operations) };

static void check_operation(scl_context *ctx, const fixture *f, operation *run) {
  scl_mat *got = NULL, *want = NULL;
  CHECK_OK(run(scl_context_host(), f, &want));
  CHECK_OK(run(ctx, f, &got));
  if (got != NULL && want != NULL) {
    double *x = mat_stored(got), *y = mat_stored(want);
    CHECK(mat_distance(x, y, scl_mat_nrow(want) * scl_mat_ncol(want)) < 1e-9);
    FREE(x, y);
  }
  RELEASE(got, want);
}

/* Programs whose names begin like this: how many were tried, and how many of them refused with a
 * reason that has this text in it, or because their trial could do without them: others that it
 * needs were refused before. */
static void count_trials(const scl_context *ctx, const char *name, const char *text, int *tried,
                         int *refused) {
  scl_device_trial trial;
  int at = 0;
  *tried = *refused = 0;
  while (scl_device_trial_next(ctx, &at, &trial)) {
    if (strncmp(trial.program, name, strlen(name)) != 0) continue;
    ++*tried;
    *refused += strstr(trial.refusal, text) != NULL || strstr(trial.refusal, "without it") != NULL;
  }
}

/* All operations with this fault in all programs. The results are correct nevertheless, and the
 * reason is stored. */
static void check_fault(size_t index, const fixture *f, const char *fault, const char *reason) {
  scl_context *ctx = NULL;
  int tried, refused;
  setenv("STATCL_TRIAL_FAULT", fault, 1);
  REQUIRE_OK(scl_device_open(index, &ctx));
  if (scl_device_variant(ctx)[0] != '\0') {
    CHECK(scl_device_of(ctx)->type != SCL_DEVICE_CPU);
    scl_context_release(ctx);
    unsetenv("STATCL_TRIAL_FAULT");
    SKIP("the device has no matrix instructions");
    return;
  }
  for (int i = 0; i < OPERATIONS; i++) {
    check_operation(ctx, f, operations[i].run);
    count_trials(ctx, operations[i].program, reason, &tried, &refused);
    if (tried == 0 || refused != tried)
      fprintf(stderr, "%s, %s: %d tried, %d refused\n", fault, operations[i].program, tried,
              refused);
    CHECK(tried > 0 && refused == tried);
  }
  CHECK(scl_context_memory(ctx).live == 0);
  scl_context_release(ctx);
  unsetenv("STATCL_TRIAL_FAULT");
}

static size_t index_of_device(const scl_context *ctx) {
  const scl_device_info *list, *info = scl_device_of(ctx);
  size_t count, i = 0;
  CHECK_OK(scl_device_list(&list, &count));
  while (i < count && &list[i] != info && strcmp(list[i].id, info->id) != 0) i++;
  return i;
}

void test_trial(scl_context *ctx) {
  if (scl_context_is_host(ctx) || test_small()) {
    SKIP("needs a device");
    return;
  }
  fixture *f = test_alloc(sizeof *f);
  mat_spd(f->spd, N, 10.0, 2.0);
  test_fill(f->general, N * N);
  test_fill(f->sides, BATCH_N * BATCH_K * BATCH);
  test_fill(f->square, BATCH_N * BATCH_N * BATCH);
  for (int i = 0; i < BATCH_N * BATCH; i++)
    f->square[i % BATCH_N * (BATCH_N + 1) + i / BATCH_N * BATCH_N * BATCH_N] += 30.0;
  for (int i = 0; i < N * N; i++)
    f->l[i] = i % N < i / N ? 0.0 : i % N == i / N ? 4.0 : 0.1 * f->general[i];
  const size_t index = index_of_device(ctx);
  /* A GPU tries its own instructions, and need not know how to emulate them. */
  if (scl_device_of(ctx)->type == SCL_DEVICE_CPU) setenv("STATCL_MMA_EMULATED", "1", 1);
  check_fault(index, f, "build:*", "could not be compiled");
  check_fault(index, f, "result:*", "its trial gave a wrong result");
  unsetenv("STATCL_MMA_EMULATED");
  free(f);
}
