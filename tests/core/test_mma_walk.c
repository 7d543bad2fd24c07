/* Walks of many chains by matrix instructions (glm_mma_walk.cl), one of which overflows: the others
 * go on, as in a launch for each point. Other walks by these instructions are in test_glm_walk.c.
 */
#include <math.h>

#include "linalg.h"
#include "matrices.h"
#include "ops/glm.h"
#include "engine/cl/linalg/linalg.h"

enum { ROWS = 100, COLUMNS = 12, CHAINS = 12, POINTS = 8, NUMBERS = CHAINS * (1 + COLUMNS) };

static scl_glm *make_counts(scl_context *ctx, size_t n, size_t p) {
  double x[ROWS * COLUMNS], y[ROWS];
  scl_glm *glm = NULL;
  test_fill(x, n * p);
  for (size_t i = 0; i < n; i++) y[i] = (double)(i % 4);
  const scl_glm_data data = {.y = y, .n_y = n};
  scl_mat *m = mat_make(ctx, x, n, p, SCL_GENERAL);
  CHECK_OK(scl_glm_create(SCL_GLM_POISSON_LOG, &data, m, &glm));
  scl_mat_release(m);
  return glm;
}

/* The mean of the first chain is infinite, and its density not a number from the second point on:
 * numbers of its tiles must not reach other chains, by columns past the last or rows past the end.
 * A device of one unit has one group for each part of the chains. */
static void check_overflow(scl_context *ctx, size_t n, size_t p, size_t chains) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  static double start[6 * NUMBERS], record[2][POINTS * (2 * NUMBERS + CHAINS)];
  size_t turn[CHAINS], valid[CHAINS];
  const uint32_t units = cl->info.units;
  const size_t part = chains * (1 + p);
  const scl_glm_walk_task task = {
      .points = POINTS, .vectors = chains, .start = start, .turn = turn, .record = record[0]};
  scl_glm *glm = make_counts(ctx, n, p);
  if (glm == NULL) return;
  test_fill(start, 6 * part);
  for (size_t k = 0; k < 6 * part; k++) start[k] /= 10.0;
  for (size_t k = 0; k < part; k++) start[2 * part + k] = 0.01, start[5 * part + k] = -0.01;
  start[0] = 800.0;
  for (size_t v = 0; v < chains; v++) turn[v] = POINTS;
  cl->info.units = 1;
  for (int apart = 0; apart < 2; apart++) {
    scl_glm_walk_task here = task;
    here.record = record[apart];
    cl->walks_apart = (unsigned)apart;
    CHECK_OK(scl_glm_walk_begin(glm, 0, &here));
    CHECK_OK(scl_glm_walk_end(glm, 0, &here, valid));
    CHECK(cl->walks_apart == 0);
    for (size_t v = 0; v < chains; v++) CHECK(valid[v] == (v == 0 ? 1 : POINTS));
  }
  const size_t row = 2 * (1 + p) + 1;
  for (size_t i = 0; i < POINTS * chains * row; i++) {
    if (i / row % chains > 0)
      CHECK_NEAR(record[0][i], record[1][i], 1e-9 * (1.0 + fabs(record[1][i])));
  }
  cl->info.units = units;
  scl_glm_release(glm);
}

void test_mma_walk(scl_context *ctx) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  if (scl_context_is_host(ctx) || !scl_cl_may_try_large_mma(cl)) return;
  scl_cl_glm_force("16m8");
  check_overflow(ctx, 20, 2, 6);
  check_overflow(ctx, ROWS, COLUMNS, CHAINS);
  scl_cl_glm_force(NULL);
}
