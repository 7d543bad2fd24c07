/* Products of the engine table against plain loops in long double: every element within
 * (k + 4) eps (|alpha| |A| |B| + |beta C|). */
#include <float.h>

#include "base/device.h"
#include "linalg.h"

typedef struct {
  size_t m, n, k;
  double alpha, beta;
  scl_trans trans_a, trans_b;
  scl_view view_a, view_b;
  scl_region region;
} product;

/* Random numbers that keep the promise of the view. */
static double *operand(size_t rows, size_t columns, scl_view view) {
  double *x = test_alloc(rows * columns * sizeof *x);
  test_fill(x, rows * columns);
  if (scl_view_is_lower(view)) test_set_triangle(x, rows, columns, true, 0.0);
  if (scl_view_is_upper(view)) test_set_triangle(x, rows, columns, false, 0.0);
  for (size_t j = 0; j < columns && view == SCL_SYMMETRIC; j++)
    for (size_t i = 0; i < j; i++) x[i + j * rows] = x[j + i * rows];
  return x;
}

/* Elements (i, j) that are wrong, in every step-th column. */
static size_t count_wrong(const product *p, const double *a, const double *b, const double *c,
                          const double *got, size_t step) {
  size_t lda = p->trans_a == SCL_TRANS ? p->k : p->m, ldb = p->trans_b == SCL_TRANS ? p->n : p->k;
  size_t wrong = 0;
  for (size_t j = 0; j < p->n; j += step) {
    for (size_t i = p->region == SCL_ALL ? 0 : j; i < p->m; i++) {
      long double sum = 0, size = 0;
      for (size_t l = 0; l < p->k; l++) {
        long double term =
            (long double)test_at(a, lda, p->trans_a, i, l) * test_at(b, ldb, p->trans_b, l, j);
        sum += term;
        size += fabsl(term);
      }
      size_t e = i + j * p->m;
      sum *= p->alpha;
      size *= fabs(p->alpha);
      if (p->beta != 0) sum += (long double)p->beta * c[e];
      if (p->beta != 0) size += fabs(p->beta * c[e]);
      if (!(fabsl(got[e] - sum) <= (long double)(p->k + 4) * TEST_EPS * size)) wrong++;
      if (p->region == SCL_MIRRORED && got[e] != got[j + i * p->m]) wrong++;
    }
  }
  return wrong;
}

/* With `twin`, B is A (as in a crossproduct), so that a mirrored result is symmetric. */
static void check_columns(scl_context *ctx, const product *p, bool twin, size_t step) {
  size_t rows_a = p->trans_a == SCL_TRANS ? p->k : p->m;
  size_t columns_a = p->trans_a == SCL_TRANS ? p->m : p->k;
  size_t rows_b = p->trans_b == SCL_TRANS ? p->n : p->k;
  size_t columns_b = p->trans_b == SCL_TRANS ? p->k : p->n;
  double *a = operand(rows_a, columns_a, p->view_a);
  double *b = twin ? a : operand(rows_b, columns_b, p->view_b);
  double *c = operand(p->m, p->n, p->region == SCL_MIRRORED ? SCL_SYMMETRIC : SCL_GENERAL);
  double *got = test_alloc(p->m * p->n * sizeof *got);
  test_framed da = test_put(ctx, rows_a, columns_a, a);
  test_framed db = twin ? da : test_put(ctx, rows_b, columns_b, b);
  test_framed dc = test_put(ctx, p->m, p->n, p->beta != 0 ? c : NULL);
  CHECK_OK(ctx->engine->gemm(ctx, p->alpha, p->trans_a, da.block, p->view_a, p->trans_b, db.block,
                             p->view_b, p->beta, dc.block, p->region));
  test_get(dc, got);
  test_drop(da);
  if (!twin) test_drop(db);
  CHECK(count_wrong(p, a, b, c, got, step) == 0);
  free(a);
  if (!twin) free(b);
  FREE(c, got);
}

/* Where long double has 113 bits, by software, large products have some columns checked. */
static void check_product(scl_context *ctx, const product *p, bool twin) {
  const bool slow = LDBL_MANT_DIG > 64 && p->m * p->n * p->k > 10000;
  check_columns(ctx, p, twin, slow ? p->n / 8 + 1 : 1);
}

static void check_shapes(scl_context *ctx) {
  static const size_t shapes[][3] = {
      {1, 1, 1},    {1, 1, 70},   {1, 9, 1},     {2, 3, 4},      {7, 5, 3},     {8, 8, 8},
      {31, 33, 32}, {32, 32, 32}, {33, 31, 65},  {63, 65, 64},   {64, 64, 64},  {65, 63, 9},
      {130, 70, 3}, {9, 200, 11}, {200, 9, 100}, {100, 129, 77}, {257, 66, 40}, {1, 130, 67},
      {130, 1, 67}, {3, 130, 67}, {130, 3, 67},  {130, 8, 67},   {5, 77, 300},  {40, 40, 1}};
  for (size_t s = 0; s < LENGTH(shapes); s++) {
    for (int t = 0; t < 4; t++) {
      product p = {.m = shapes[s][0], .n = shapes[s][1], .k = shapes[s][2]};
      p.trans_a = t & 1 ? SCL_TRANS : SCL_NO_TRANS;
      p.trans_b = t & 2 ? SCL_TRANS : SCL_NO_TRANS;
      p.alpha = 1;
      check_product(ctx, &p, false);
      p.alpha = -0.7;
      p.beta = 1.3;
      check_product(ctx, &p, false);
    }
  }
}

/* A sum over nothing, and alpha = 0, scale C; beta = 0 clears it, whatever its elements. */
static void check_empty(scl_context *ctx) {
  static const size_t shapes[][3] = {{5, 4, 0}, {1, 70, 0}, {70, 40, 0}, {40, 70, 5}};
  for (int s = 0; s < 4; s++) {
    product p = {.m = shapes[s][0], .n = shapes[s][1], .k = shapes[s][2], .alpha = s < 3};
    check_product(ctx, &p, false);
    p.beta = 1.3;
    check_product(ctx, &p, false);
  }
  static const size_t empty[][3] = {{0, 4, 3}, {4, 0, 3}, {0, 0, 0}};
  for (int s = 0; s < 3; s++) {
    product p = {.m = empty[s][0], .n = empty[s][1], .k = empty[s][2], .alpha = 1};
    check_product(ctx, &p, false);
  }
}

static void check_views(scl_context *ctx) {
  static const size_t shapes[][3] = {{3, 3, 3},     {70, 70, 70},  {131, 131, 131},
                                     {40, 100, 70}, {100, 3, 100}, {2, 90, 130}};
  for (size_t s = 0; s < LENGTH(shapes); s++) {
    for (int t = 0; t < 4; t++) {
      for (int v = 0; v < 16; v++) {
        product p = {.m = shapes[s][0], .n = shapes[s][1], .k = shapes[s][2], .alpha = 1};
        p.trans_a = t & 1 ? SCL_TRANS : SCL_NO_TRANS;
        p.trans_b = t & 2 ? SCL_TRANS : SCL_NO_TRANS;
        p.view_a = (scl_view)(v % 4);
        p.view_b = (scl_view)(v / 4);
        if (p.view_a == SCL_SYMMETRIC && p.m != p.k) continue;
        if (p.view_b == SCL_SYMMETRIC && p.n != p.k) continue;
        check_product(ctx, &p, false);
      }
    }
  }
}

/* A A' and A' A with each region; A also triangular, as in the inverse from a factor. */
static void check_symmetric(scl_context *ctx) {
  static const size_t shapes[][2] = {{1, 1},  {2, 5},    {8, 300},  {5, 3000},  {33, 10},
                                     {64, 9}, {65, 129}, {130, 70}, {200, 200}, {391, 131}};
  for (size_t s = 0; s < LENGTH(shapes); s++) {
    for (int t = 0; t < 2; t++) {
      product p = {.m = shapes[s][0], .n = shapes[s][0], .k = shapes[s][1], .alpha = 0.5};
      p.trans_a = t == 0 ? SCL_NO_TRANS : SCL_TRANS;
      p.trans_b = t == 0 ? SCL_TRANS : SCL_NO_TRANS;
      for (int region = SCL_ALL; region <= SCL_MIRRORED; region++) {
        p.region = (scl_region)region;
        p.beta = 0;
        check_product(ctx, &p, true);
        p.beta = -1.5;
        check_product(ctx, &p, true);
        product q = p;
        q.view_a = q.view_b = SCL_LOWER;
        check_product(ctx, &q, true);
      }
    }
  }
}

/* Elements above the diagonal of a lower half may hold anything before, NaN as well. */
static void check_lower_half(scl_context *ctx) {
  size_t m = 150, n = 90, k = 20;
  double *a = operand(m, k, SCL_GENERAL), *b = operand(n, k, SCL_GENERAL);
  double *c = operand(m, n, SCL_GENERAL), *got = test_alloc(m * n * sizeof *got);
  product p = {m, n, k, -1, 1, SCL_NO_TRANS, SCL_TRANS, SCL_GENERAL, SCL_GENERAL, SCL_LOWER_HALF};
  test_set_triangle(c, m, n, true, NAN);
  test_framed da = test_put(ctx, m, k, a), db = test_put(ctx, n, k, b), dc = test_put(ctx, m, n, c);
  CHECK_OK(ctx->engine->gemm(ctx, -1, SCL_NO_TRANS, da.block, SCL_GENERAL, SCL_TRANS, db.block,
                             SCL_GENERAL, 1, dc.block, SCL_LOWER_HALF));
  test_get(dc, got);
  CHECK(count_wrong(&p, a, b, c, got, 1) == 0);
  test_drop(da);
  test_drop(db);
  FREE(a, b, c, got);
}

/* Sums that are divided among several groups; the same bits a second time. */
static void check_long(scl_context *ctx) {
  static const size_t shapes[][3] = {{2, 2, 1000000}, {1, 1, 100003}, {3, 5, 20011}, {1, 40, 5000},
                                     {40, 1, 5000},   {40, 30, 3001}, {9, 9, 4097}};
  for (size_t s = 0; s < LENGTH(shapes); s++) {
    for (int t = 0; t < 4; t++) {
      product p = {.m = shapes[s][0], .n = shapes[s][1], .k = shapes[s][2], .alpha = 1.1};
      if (p.k > 100000 && t != 1) continue;
      p.trans_a = t & 1 ? SCL_TRANS : SCL_NO_TRANS;
      p.trans_b = t & 2 ? SCL_TRANS : SCL_NO_TRANS;
      p.beta = t == 1 ? 0 : 0.3;
      check_product(ctx, &p, false);
      if (p.m != p.n || (t != 1 && t != 2)) continue;
      p.region = SCL_MIRRORED;
      check_product(ctx, &p, true);
    }
  }
}

static void check_same_bits(scl_context *ctx) {
  size_t n = 70, k = 5000;
  double *a = operand(k, n, SCL_GENERAL), *first = test_alloc(n * n * sizeof *first);
  double *second = test_alloc(n * n * sizeof *second);
  test_framed da = test_put(ctx, k, n, a);
  for (int run = 0; run < 2; run++) {
    test_framed dc = test_put(ctx, n, n, NULL);
    CHECK_OK(ctx->engine->gemm(ctx, 1, SCL_TRANS, da.block, SCL_GENERAL, SCL_NO_TRANS, da.block,
                               SCL_GENERAL, 0, dc.block, SCL_MIRRORED));
    test_get(dc, run == 0 ? first : second);
  }
  CHECK(memcmp(first, second, n * n * sizeof *first) == 0);
  test_drop(da);
  FREE(a, first, second);
}

/* Tiles and transposed copies that only large products on a GPU use. */
static void check_large(scl_context *ctx) {
  const scl_device_info *list;
  size_t count;
  bool gpu = false;
  REQUIRE_OK(scl_device_list(&list, &count));
  for (size_t i = 0; i < count && !scl_context_is_host(ctx); i++)
    gpu |= list[i].type == SCL_DEVICE_GPU && strcmp(list[i].name, scl_context_name(ctx)) == 0;
  if (!gpu || test_small()) return;
  for (int t = 0; t < 4; t++) {
    product p = {.m = 5770, .n = 5753, .k = 501, .alpha = -0.7, .beta = 1.3};
    p.trans_a = t & 1 ? SCL_TRANS : SCL_NO_TRANS;
    p.trans_b = t & 2 ? SCL_TRANS : SCL_NO_TRANS;
    check_columns(ctx, &p, false, 239);
    p.n = p.m;
    p.region = SCL_MIRRORED;
    if (t == 1 || t == 2) check_columns(ctx, &p, true, 239);
  }
}

void test_gemm(scl_context *ctx) {
  for (test_frame = 1; test_frame <= test_frames(ctx); test_frame++) {
    check_shapes(ctx);
    check_empty(ctx);
    check_views(ctx);
    check_symmetric(ctx);
    check_lower_half(ctx);
    check_long(ctx);
    check_same_bits(ctx);
  }
  check_large(ctx);
}
