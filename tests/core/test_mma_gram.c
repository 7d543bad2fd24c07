/* Crossproducts of tall matrices by matrix instructions (gram_mma.cl), at the edges of their
 * layouts, where test_mma.c says. Whole numbers: the results are exact. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "linalg.h"
#include "matrices.h"
#include "record.h"
#include "engine/cl/linalg/linalg.h"

enum { FRAME = 64 }; /* as in test_mma.c */

static double *whole_numbers(size_t count) {
  double *x = test_alloc(count * sizeof *x);
  test_fill(x, count);
  for (size_t e = 0; e < count; e++) x[e] = round(9 * x[e]);
  return x;
}

/* X' W X of whole numbers in a frame, by the kernels themselves. */
static void check_gram(scl_context *ctx, size_t n, size_t p, bool weighted) {
  double *x = whole_numbers(n * p), *w = whole_numbers(n);
  double *got = test_alloc(p * p * sizeof *got);
  size_t wrong = 0;
  test_framed dx = test_put(ctx, n, p, x), dw = test_put(ctx, n, 1, w);
  test_framed dc = test_put(ctx, p, p, NULL);
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, dx.block.buffer);
  scl_cl_op_reads(&op, dw.block.buffer);
  scl_cl_op_writes(&op, dc.block.buffer);
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK)
    status = scl_cl_gram_launch(&op, 2, dx.block, weighted ? dw.block : (scl_block){0}, dc.block);
  CHECK_OK(scl_cl_op_end(&op, status));
  test_get(dc, got);
  for (size_t e = 0; e < p * p; e++) {
    const double *a = x + e % p * n, *b = x + e / p * n;
    double sum = 0;
    for (size_t r = 0; r < n; r++) sum += a[r] * b[r] * (weighted ? w[r] : 1);
    wrong += got[e] != 2 * sum;
  }
  CHECK(wrong == 0);
  if (wrong > 0) printf("       crossproduct, %zu x %zu: %zu\n", n, p, wrong);
  test_drop(dx), test_drop(dw);
  FREE(x, w, got);
}

static void check_grams(scl_context *ctx) {
  static const size_t shapes[][2] = {{33, 9},   {35, 33},  {18, 65},   {17, 105}, {1, 1},
                                     {31, 7},   {16, 32},  {300, 63},  {259, 64}, {513, 100},
                                     {64, 104}, {47, 127}, {1000, 128}};
  test_frame = FRAME;
  for (size_t s = 0; s < (test_small() ? 4 : LENGTH(shapes)); s++) {
    check_gram(ctx, shapes[s][0], shapes[s][1], s % 2 == 0);
    if (!test_small()) check_gram(ctx, shapes[s][0], shapes[s][1], s % 2 == 1);
  }
}

/* As operations, which take these kernels after their trials, against the host's. */
static void check_operations(scl_context *ctx, size_t n, size_t p) {
  double *x = test_alloc(n * p * sizeof *x), *w = test_alloc(n * sizeof *w);
  test_fill(x, n * p), test_fill(w, n);
  scl_mat *c[2][2];
  for (int on_host = 0; on_host < 2; on_host++) {
    scl_context *where = on_host ? scl_context_host() : ctx;
    scl_mat *mx = mat_make(where, x, n, p, SCL_GENERAL),
            *mw = mat_make(where, w, n, 1, SCL_GENERAL);
    REQUIRE_OK(compute_product(true, false, mx, NULL, &c[on_host][0]));
    REQUIRE_OK(scl_compute(NULL, SCL_OPERATION_GRAM, 2, (scl_term[]){{mx, 0}, {mw, 0}}, 0, NULL,
                           &c[on_host][1]));
    RELEASE(mx, mw);
  }
  for (int k = 0; k < 2; k++) {
    double *got = mat_stored(c[0][k]), *want = mat_stored(c[1][k]);
    CHECK(mat_distance(got, want, p * p) <= 1e-12);
    CHECK(c[0][k]->view == SCL_SYMMETRIC);
    RELEASE(c[0][k], c[1][k]);
    FREE(got, want);
  }
  FREE(x, w);
}

void test_mma_gram(scl_context *ctx) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  if (scl_context_is_host(ctx) || !scl_cl_may_try_mma(cl)) return;
  static const size_t columns[] = {9, 33, 65, 105};
  check_grams(ctx);
  for (size_t c = 0; c < LENGTH(columns) && !test_small(); c++) {
    check_operations(ctx, 4099, columns[c]);
    CHECK(cl->trial[SCL_CL_PROGRAM_gram_mma_32 + c].state == SCL_CL_PASSED);
  }
}
