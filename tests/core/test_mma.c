/* The kernels with matrix instructions (inst/kernels/nvidia), each at the edges of its tiles. Only
 * on devices that have such instructions or emulate them (STATCL_MMA_EMULATED=1); with
 * STATCL_TEST_SMALL=1 small enough for a simulator. Products of small whole numbers are exact;
 * other results are compared with those of the host. In the emulation every such kernel of the
 * kernel table must have been launched in the end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linalg.h"
#include "record.h"
#include "matrices.h"
#include "ops/batch.h"
#include "ops/cholesky.h"
#include "engine/cl/linalg/linalg.h"
#include "kernels/include/gemm.h"

/* Matrices of so many rows and more have columns on 16-byte boundaries, which these kernels need
 * (scl_mat_ld()): blocks of any order are placed in one. */
enum { FRAME = 64 };

/* ---- products -------------------------------------------------------------------------------- */

typedef struct {
  scl_cl_tile tile;
  bool trans_a, trans_b;
  size_t m, n, k;
  double alpha, beta;
  scl_region region;
  bool lower_a, from, transposed; /* A is lower triangular; C from elsewhere; C' too */
} product;

static double *whole_numbers(size_t m, size_t n, bool lower) {
  double *x = test_alloc(m * n * sizeof *x);
  test_fill(x, m * n);
  for (size_t e = 0; e < m * n; e++) x[e] = lower && e % m < e / m ? 0 : round(9 * x[e]);
  return x;
}

static double exact(const product *p, const double *a, const double *b, size_t i, size_t j) {
  double sum = 0;
  for (size_t l = 0; l < p->k; l++)
    sum += (p->trans_a ? a[l + i * p->k] : a[i + l * p->m]) *
           (p->trans_b ? b[j + l * p->n] : b[l + j * p->k]);
  return sum;
}

/* Wrong elements of C, of which those above the diagonal may be those of `before`. */
static size_t count_wrong(const product *p, const double *a, const double *b, const double *from,
                          const double *before, const double *got) {
  size_t wrong = 0;
  for (size_t j = 0; j < p->n; j++) {
    for (size_t i = 0; i < p->m; i++) {
      size_t e = i + j * p->m;
      double want = p->alpha * exact(p, a, b, i, j) + (p->beta != 0 ? p->beta * from[e] : 0);
      if (i < j && p->region == SCL_LOWER_HALF) want = before[e];
      wrong += got[e] != want;
    }
  }
  return wrong;
}

static scl_status launch_product(scl_context *ctx, const scl_cl_product *q, scl_cl_tile tile) {
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, q->a.buffer);
  scl_cl_op_reads(&op, q->b.buffer);
  if (q->from.buffer != NULL) scl_cl_op_reads(&op, q->from.buffer);
  if (q->transposed.buffer != NULL) scl_cl_op_writes(&op, q->transposed.buffer);
  scl_cl_op_writes(&op, q->c.buffer);
  SCL_TRY(scl_cl_op_order(&op, -1));
  return scl_cl_op_end(&op, scl_cl_product_tiled_in(&op, q, tile));
}

static void check_transposed(const double *c, const double *transposed, size_t m, size_t n) {
  size_t wrong = 0;
  for (size_t e = 0; e < m * n; e++) wrong += transposed[e / m + e % m * n] != c[e];
  CHECK(wrong == 0);
}

static void check_product(scl_context *ctx, const product *p) {
  bool twin = p->region == SCL_MIRRORED; /* C = A A' */
  double *a = whole_numbers(p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->lower_a);
  double *b = twin ? a : whole_numbers(p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, false);
  double *c = whole_numbers(p->m, p->n, false), *from = whole_numbers(p->m, p->n, false);
  double *got = test_alloc(p->m * p->n * sizeof *got);
  for (size_t e = 0; twin && e < p->m * p->m; e++) c[e] = from[e] = (double)(e / p->m + e % p->m);
  test_framed da = test_put(ctx, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, a);
  test_framed db = test_put(ctx, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, b);
  test_framed dc = test_put(ctx, p->m, p->n, c), df = test_put(ctx, p->m, p->n, from);
  test_framed dt = test_put(ctx, p->n, p->m, NULL);
  scl_cl_product q = {.alpha = p->alpha,
                      .beta = p->beta,
                      .trans_a = p->trans_a ? SCL_TRANS : SCL_NO_TRANS,
                      .trans_b = p->trans_b ? SCL_TRANS : SCL_NO_TRANS,
                      .view_a = p->lower_a ? SCL_LOWER : SCL_GENERAL,
                      .region = p->region,
                      .a = da.block,
                      .b = db.block,
                      .c = dc.block,
                      .batch = 1};
  if (p->from) q.from = df.block;
  if (p->transposed) q.transposed = dt.block;
  CHECK_OK(launch_product(ctx, &q, p->tile));
  test_get(dc, got);
  size_t wrong = count_wrong(p, a, b, p->from ? from : c, c, got);
  CHECK(wrong == 0);
  if (wrong > 0)
    printf("       tile %d, %d%d, %zu x %zu x %zu: %zu\n", p->tile, p->trans_a, p->trans_b, p->m,
           p->n, p->k, wrong);
  double *transposed = test_alloc(p->m * p->n * sizeof *transposed);
  test_get(dt, transposed);
  if (p->transposed) check_transposed(got, transposed, p->m, p->n);
  test_drop(da), test_drop(db), test_drop(df);
  FREE(a, c, from, got, transposed);
  if (!twin) free(b);
}

/* Two products in one launch. */
static void check_pair(scl_context *ctx, size_t m, size_t n, size_t k) {
  product p[2] = {{.trans_a = true, .m = m, .n = n, .k = k, .alpha = 1},
                  {.m = n, .n = m, .k = k, .alpha = -1}};
  double *a[2], *b[2], *got = test_alloc(m * n * sizeof *got);
  test_framed da[2], db[2], dc[2];
  scl_cl_product q[2];
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  for (int i = 0; i < 2; i++) {
    size_t rows = i == 0 ? k : p[i].m, columns = i == 0 ? p[i].m : k;
    a[i] = whole_numbers(rows, columns, false);
    b[i] = whole_numbers(k, p[i].n, false);
    da[i] = test_put(ctx, rows, columns, a[i]);
    db[i] = test_put(ctx, k, p[i].n, b[i]);
    dc[i] = test_put(ctx, p[i].m, p[i].n, NULL);
    q[i] = (scl_cl_product){.alpha = p[i].alpha,
                            .trans_a = i == 0 ? SCL_TRANS : SCL_NO_TRANS,
                            .a = da[i].block,
                            .b = db[i].block,
                            .c = dc[i].block,
                            .batch = 1};
    scl_cl_op_reads(&op, da[i].block.buffer);
    scl_cl_op_reads(&op, db[i].block.buffer);
    scl_cl_op_writes(&op, dc[i].block.buffer);
  }
  scl_status status = scl_cl_op_order(&op, -1);
  if (status == SCL_OK) status = scl_cl_product_pair_in(&op, &q[0], &q[1]);
  CHECK_OK(scl_cl_op_end(&op, status));
  for (int i = 0; i < 2; i++) {
    test_get(dc[i], got);
    CHECK(count_wrong(&p[i], a[i], b[i], NULL, NULL, got) == 0);
    test_drop(da[i]), test_drop(db[i]);
    FREE(a[i], b[i]);
  }
  free(got);
}

static void check_products(scl_context *ctx) {
  test_frame = FRAME;
  static const size_t sides[][2] = {{GEMM_MMA_TINY_M, GEMM_MMA_TINY_N},
                                    {GEMM_MMA_SMALL_M, GEMM_MMA_SMALL_N},
                                    {GEMM_MMA_LARGE_M, GEMM_MMA_LARGE_N},
                                    {GEMM_MMA_HUGE_M, GEMM_MMA_HUGE_N}};
  for (int tile = SCL_CL_TILE_MMA_TINY; tile < SCL_CL_TILES; tile++) {
    const size_t *side = sides[tile - SCL_CL_TILE_MMA_TINY], m = side[0], n = side[1];
    const size_t shapes[][3] = {{m + 1, n - 1, 9}, {m - 1, n + 1, 23}, {m, n, 16}, {1, 1, 1},
                                {3, n, 40},        {m, 3, 7},          {5, 3, 0}};
    for (int form = 0; form < 4; form++) {
      if (form % 2 == 1 && tile >= SCL_CL_TILE_MMA_LARGE) continue;
      if (form == 0 && tile == SCL_CL_TILE_MMA_HUGE) continue;
      product p = {.tile = (scl_cl_tile)tile, .trans_a = form & 1, .trans_b = form & 2, .alpha = 1};
      for (size_t s = 0; s < (test_small() ? 1 : LENGTH(shapes)); s++) {
        p.m = shapes[s][0], p.n = shapes[s][1], p.k = shapes[s][2];
        p.beta = s % 2 == 1 ? 2 : 0, p.from = s == 1, p.transposed = s == 2;
        check_product(ctx, &p);
      }
      if (test_small()) continue;
      p = (product){(scl_cl_tile)tile, form & 1, form & 2, m + 5, m + 5, m + 5, -1, 1,
                    SCL_LOWER_HALF,    true,     false,    false};
      check_product(ctx, &p);
      p.region = SCL_MIRRORED;
      p.lower_a = false;
      if (form == 1 || form == 2) check_product(ctx, &p);
    }
  }
  check_pair(ctx, 33, 7, 9);
  if (!test_small()) check_pair(ctx, 31, 70, 40);
}

/* ---- Cholesky factor, its adjoint, triangular solves ----------------------------------------- */

/* Largest difference of the lower triangles, relative to the largest element. */
static double lower_distance(const double *got, const double *want, size_t n) {
  double worst = 0, size = 0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      double d = fabs(got[i + j * n] - want[i + j * n]);
      if (!(d <= worst)) worst = d;
      size = fmax(size, fabs(want[i + j * n]));
    }
  }
  return worst / size;
}

/* In place, and to another matrix; and where it stops if element `bad` of the diagonal is wrong. */
static void check_factor(scl_context *ctx, size_t n, size_t bad) {
  double *a = test_alloc(n * n * sizeof *a), *got = test_alloc(n * n * sizeof *got), order[2];
  mat_spd(a, n, 100, 1);
  scl_mat *host = mat_make(scl_context_host(), a, n, n, SCL_SYMMETRIC), *l;
  REQUIRE_OK(compute_chol(host, 0, false, &l));
  double *want = mat_stored(l);
  for (int failing = 0; failing < 2; failing++) {
    if (failing) a[bad * (n + 1)] = -1;
    test_framed da = test_put(ctx, n, n, a), dl = test_put(ctx, n, n, NULL);
    test_framed info = test_put(ctx, 1, 1, NULL), new_info = test_put(ctx, 1, 1, NULL);
    CHECK_OK(ctx->engine->potrf_copy(ctx, da.block, dl.block, new_info.block));
    CHECK_OK(ctx->engine->potrf(ctx, da.block, info.block));
    test_get(info, &order[0]);
    test_get(new_info, &order[1]);
    CHECK(order[0] == (failing ? (double)bad + 1 : 0) && order[1] == order[0]);
    test_get(da, got);
    if (!failing) CHECK(lower_distance(got, want, n) <= 1e-13);
    test_get(dl, got);
    if (!failing) CHECK(lower_distance(got, want, n) <= 1e-13);
  }
  RELEASE(host, l);
  FREE(a, got, want);
}

static void check_adjoint(scl_context *ctx, size_t n) {
  double *a = test_alloc(n * n * sizeof *a), *result[2];
  mat_spd(a, n, 100, 1);
  scl_mat *spd = mat_make(scl_context_host(), a, n, n, SCL_SYMMETRIC), *l;
  REQUIRE_OK(compute_chol(spd, 0, false, &l));
  double *stored = mat_stored(l);
  test_fill(a, n * n);
  for (int on_host = 0; on_host < 2; on_host++) {
    scl_context *where = on_host ? scl_context_host() : ctx;
    scl_mat *factor = mat_make(where, stored, n, n, SCL_LOWER), *s;
    scl_mat *adjoint = mat_make(where, a, n, n, SCL_GENERAL);
    REQUIRE_OK(compute_chol_adjoint(factor, adjoint, &s));
    result[on_host] = mat_stored(s);
    RELEASE(factor, adjoint, s);
  }
  CHECK(lower_distance(result[0], result[1], n) <= 1e-12);
  RELEASE(spd, l);
  FREE(a, stored, result[0], result[1]);
}

/* op(T) X = B, or X op(T) = B: the residual. */
static void check_solve(scl_context *ctx, size_t n, size_t rhs, int form) {
  bool lower = form & 1, trans = form & 2, right = form & 4;
  size_t rows = right ? rhs : n, columns = right ? n : rhs;
  double *t = test_alloc(n * n * sizeof *t), *b = test_alloc(n * rhs * sizeof *b), worst = 0;
  double *x = test_alloc(n * rhs * sizeof *x);
  test_fill(t, n * n), test_fill(b, n * rhs);
  for (size_t i = 0; i < n * n; i++) t[i] /= (double)n;
  for (size_t i = 0; i < n; i++) t[i * (n + 1)] += 2;
  test_set_triangle(t, n, n, lower, NAN);
  test_framed dt = test_put(ctx, n, n, t), db = test_put(ctx, rows, columns, b);
  CHECK_OK(ctx->engine->trsm(ctx, right ? SCL_RIGHT : SCL_LEFT, lower ? SCL_LOWER : SCL_UPPER,
                             trans ? SCL_TRANS : SCL_NO_TRANS, dt.block, db.block));
  test_get(db, x);
  test_set_triangle(t, n, n, lower, 0);
  for (size_t s = 0; s < rhs; s++) {
    for (size_t i = 0; i < n; i++) {
      double sum = -b[right ? s + i * rhs : i + s * n];
      for (size_t k = 0; k < n; k++)
        sum += x[right ? s + k * rhs : k + s * n] * t[trans != right ? k + i * n : i + k * n];
      if (!(fabs(sum) <= worst)) worst = fabs(sum);
    }
  }
  CHECK(worst <= 1e-14);
  test_drop(dt);
  FREE(t, b, x);
}

static void check_factors(scl_context *ctx) {
  static const size_t orders[] = {17, 1, 2, 15, 16, 31, 112, 127, 128, 129, 145, 177, 257, 300};
  static const size_t solves[] = {33, 64, 127, 128, 129, 200};
  static const size_t adjoints[] = {18, 2, 65, 127, 129, 201};
  for (size_t o = 0; o < (test_small() ? 1 : LENGTH(orders)); o++)
    check_factor(ctx, orders[o], orders[o] - 1 - orders[o] / 3);
  for (size_t o = 0; o < (test_small() ? 1 : LENGTH(solves)); o++) {
    for (int form = test_small() ? 6 : 0; form < (test_small() ? 7 : 8); form++) {
      check_solve(ctx, solves[o], 5, form);
      if (!test_small()) check_solve(ctx, solves[o], 15 + 2 * o, form);
    }
  }
  for (size_t o = 0; o < (test_small() ? 1 : LENGTH(adjoints)); o++)
    check_adjoint(ctx, adjoints[o]);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* How far a result on the device is from that on the host; both are freed. */
static double apart(scl_mat *got, scl_mat *want, size_t count) {
  double *x = mat_stored(got), *y = mat_stored(want), worst = mat_distance(x, y, count);
  FREE(x, y);
  RELEASE(got, want);
  return worst;
}

static scl_mat *column(scl_context *ctx, const double *data, size_t count) {
  return mat_make(ctx, data, count, 1, SCL_GENERAL);
}

static void check_batch_product(scl_context *ctx, size_t m, size_t n, size_t k, size_t batch) {
  double *a = test_alloc(m * k * batch * sizeof *a), *b = test_alloc(k * n * batch * sizeof *b);
  test_fill(a, m * k * batch), test_fill(b, k * n * batch);
  for (int form = 0; form < (test_small() ? 1 : 4); form++) {
    scl_mat *c[2];
    for (int on_host = 0; on_host < 2; on_host++) {
      scl_context *where = on_host ? scl_context_host() : ctx;
      scl_mat *ma = column(where, a, m * k * batch), *mb = column(where, b, k * n * batch);
      REQUIRE_OK(scl_batch_matmul(ma, form & 1 ? SCL_TRANS : SCL_NO_TRANS, mb,
                                  form & 2 ? SCL_TRANS : SCL_NO_TRANS, m, n, k, batch,
                                  &c[on_host]));
      RELEASE(ma, mb);
    }
    CHECK(apart(c[0], c[1], m * n * batch) <= 1e-13);
  }
  FREE(a, b);
}

/* Solutions, determinants; the second matrix is singular. */
static void check_batch_solve(scl_context *ctx, size_t n, size_t sides) {
  enum { BATCH = 2 };
  double *a = test_alloc(n * n * BATCH * sizeof *a), *b = test_alloc(n * sides * BATCH * sizeof *b);
  test_fill(a, n * n * BATCH), test_fill(b, n * sides * BATCH);
  for (size_t i = 0; i < n; i++) a[(i * 7 + 3) % n + i * n] += i % 2 ? 4 : -4;
  for (size_t i = 0; i < n; i++) a[n * n + i * n + n / 2] = 0;
  scl_mat *x[2], *det[2];
  for (int on_host = 0; on_host < 2; on_host++) {
    scl_context *where = on_host ? scl_context_host() : ctx;
    scl_mat *ma = column(where, a, n * n * BATCH), *mb = column(where, b, n * sides * BATCH);
    unsigned char status[BATCH];
    scl_batch_report report = {.status = status};
    REQUIRE_OK(scl_batch_solve(ma, mb, n, sides, BATCH, &report, &x[on_host]));
    CHECK(report.bad == 1 && status[0] == SCL_BATCH_FINE);
    REQUIRE_OK(scl_batch_det(ma, n, BATCH, true, &det[on_host]));
    RELEASE(ma, mb);
  }
  CHECK(apart(x[0], x[1], n * sides * BATCH) <= 1e-12);
  CHECK(apart(det[0], det[1], BATCH) <= 1e-12);
  FREE(a, b);
}

static void check_batches(scl_context *ctx) {
  static const size_t shapes[][4] = {{8, 9, 9, 3},    {17, 31, 9, 2},  {33, 47, 9, 1},
                                     {49, 63, 9, 1},  {65, 79, 9, 1},  {81, 95, 9, 1},
                                     {16, 16, 8, 5},  {32, 33, 17, 3}, {48, 48, 31, 2},
                                     {64, 35, 40, 1}, {80, 80, 1, 2},  {96, 97, 23, 1}};
  static const size_t orders[] = {49, 65, 97, 63, 64, 95, 96, 127, 128};
  for (size_t s = 0; s < (test_small() ? 6 : LENGTH(shapes)); s++)
    check_batch_product(ctx, shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3]);
  for (size_t o = 0; o < (test_small() ? 3 : LENGTH(orders)); o++)
    check_batch_solve(ctx, orders[o], test_small() ? 1 : 9);
}

/* ---- nothing is left out --------------------------------------------------------------------- */

static void check_launched(const scl_cl_context *cl) {
  static const struct {
    const char *name;
    scl_cl_program program;
  } kernels[] = {
#define SCL_CL_KERNEL_OF(program, name, signature) {#name, SCL_CL_PROGRAM_##program},
#define SCL_CL_KERNEL(program, name, parameters) {#name, SCL_CL_PROGRAM_##program},
#include "engine/cl/runtime/kernels.def"
  };
  static const char *const programs[] = {
#define SCL_CL_PROGRAM(program, sources) sources,
#include "engine/cl/runtime/kernels.def"
  };
  size_t launched = 0;
  for (int k = 0; k < SCL_CL_KERNELS; k++) {
    bool likelihood = strncmp(kernels[k].name, "glm_", 4) == 0; /* not by the smaller instruction */
    if (strstr(programs[kernels[k].program], "nvidia/") == NULL) continue;
    if (cl->small_mma && likelihood) continue;
    launched += cl->launches[k] > 0;
    CHECK(cl->launches[k] > 0);
    if (cl->launches[k] == 0) printf("       never launched: %s\n", kernels[k].name);
  }
  printf("%-12s %zu kernels launched\n", "mma", launched);
}

static bool has_mma(scl_context *ctx) {
  return !scl_context_is_host(ctx) && scl_cl_may_try_mma((scl_cl_context *)ctx);
}

/* If a trial refuses a program, the portable kernels are used without notice. */
static void check_if_mma(scl_context *ctx, void (*check)(scl_context *)) {
  if (!has_mma(ctx)) return;
  check(ctx);
  for (int p = 0; p < SCL_CL_PROGRAMS; p++)
    CHECK(!scl_cl_is_refused((scl_cl_context *)ctx, (scl_cl_program)p));
}

void test_mma_gemm(scl_context *ctx) {
  check_if_mma(ctx, check_products);
}
void test_mma_chol(scl_context *ctx) {
  test_frame = FRAME;
  check_if_mma(ctx, check_factors);
}
void test_mma_batch(scl_context *ctx) {
  check_if_mma(ctx, check_batches);
}
/* Of all suites before it. */
void test_mma_launched(scl_context *ctx) {
  if (has_mma(ctx) && ((scl_cl_context *)ctx)->emulated_mma) check_launched((scl_cl_context *)ctx);
}
