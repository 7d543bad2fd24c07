/* Products of batches: every form and kind of tile, non-finite elements, a shared matrix. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/batch.h"
#include "matrices.h"

#define UNIT 0x1p-53 /* unit roundoff */

static scl_mat *column(scl_context *ctx, const double *data, size_t count) {
  return mat_make(ctx, data, count, 1, SCL_GENERAL);
}

static void check_product(scl_context *ctx, size_t m, size_t n, size_t k, size_t batch) {
  double *a = test_alloc(m * k * batch * sizeof *a), *b = test_alloc(k * n * batch * sizeof *b);
  test_fill(a, m * k * batch), test_fill(b, k * n * batch);
  scl_mat *ma = column(ctx, a, m * k * batch), *mb = column(ctx, b, k * n * batch), *c;
  for (int form = 0; form < 4; form++) {
    bool ta = form & 1, tb = form & 2;
    REQUIRE_OK(scl_batch_matmul(ma, ta ? SCL_TRANS : SCL_NO_TRANS, mb,
                                tb ? SCL_TRANS : SCL_NO_TRANS, m, n, k, batch, &c));
    double *pc = mat_stored(c), worst = 0;
    for (size_t e = 0; e < m * n * batch; e++) {
      size_t i = e % m, j = e / m % n, q = e / (m * n);
      long double sum = 0, size = 0;
      for (size_t t = 0; t < k; t++) {
        long double term = (long double)a[q * m * k + (ta ? t + i * k : i + t * m)] *
                           b[q * k * n + (tb ? j + t * n : t + j * k)];
        sum += term;
        size += fabsl(term);
      }
      double error = (double)(fabsl(sum - pc[e]) / (size * (long double)((double)k * UNIT)));
      if (!(error <= worst)) worst = error;
    }
    CHECK(worst <= 2);
    free(pc);
    scl_mat_release(c);
  }
  FREE(a, b);
  RELEASE(ma, mb);
}

/* A non-finite element affects only its row, its column and its matrix. */
static void check_product_spoilt(scl_context *ctx, size_t m, size_t n, size_t k) {
  enum { BATCH = 3 };
  double *a = test_alloc(m * k * BATCH * sizeof *a), *b = test_alloc(k * n * BATCH * sizeof *b);
  test_fill(a, m * k * BATCH), test_fill(b, k * n * BATCH);
  for (int form = 0; form < 4; form++) {
    bool ta = form & 1, tb = form & 2;
    size_t row = m * k + (ta ? (m - 1) * k : m - 1); /* of the second matrix, the last, k = 0 */
    size_t column_at = k * n + (tb ? (k - 1) * n : k - 1); /* the first, the last of the sum */
    double kept[2] = {a[row], b[column_at]};
    a[row] = INFINITY, b[column_at] = NAN;
    scl_mat *ma = column(ctx, a, m * k * BATCH), *mb = column(ctx, b, k * n * BATCH), *c;
    REQUIRE_OK(scl_batch_matmul(ma, ta ? SCL_TRANS : SCL_NO_TRANS, mb,
                                tb ? SCL_TRANS : SCL_NO_TRANS, m, n, k, BATCH, &c));
    double *pc = mat_stored(c);
    bool right = true;
    for (size_t e = 0; e < m * n * BATCH; e++) {
      size_t i = e % m, j = e / m % n, q = e / (m * n);
      right = right && !isfinite(pc[e]) == (q == 1 && (i == m - 1 || j == 0));
    }
    CHECK(right);
    free(pc);
    RELEASE(ma, mb, c);
    a[row] = kept[0], b[column_at] = kept[1];
  }
  FREE(a, b);
}

/* One matrix serves all, on either side. */
static void check_product_shared(scl_context *ctx, size_t n) {
  enum { BATCH = 5 };
  size_t nn = n * n;
  double *a = test_alloc(nn * BATCH * sizeof *a), *same = test_alloc(nn * BATCH * sizeof *same);
  test_fill(a, nn * BATCH);
  for (size_t q = 0; q < BATCH; q++) memcpy(same + q * nn, a, nn * sizeof *a);
  scl_mat *ma = column(ctx, a, nn * BATCH), *one = column(ctx, a, nn), *all[2], *got[2];
  scl_mat *repeated = column(ctx, same, nn * BATCH);
  REQUIRE_OK(scl_batch_matmul(ma, SCL_NO_TRANS, repeated, SCL_NO_TRANS, n, n, n, BATCH, &all[0]));
  REQUIRE_OK(scl_batch_matmul(ma, SCL_NO_TRANS, one, SCL_NO_TRANS, n, n, n, BATCH, &got[0]));
  REQUIRE_OK(scl_batch_matmul(repeated, SCL_TRANS, ma, SCL_NO_TRANS, n, n, n, BATCH, &all[1]));
  REQUIRE_OK(scl_batch_matmul(one, SCL_TRANS, ma, SCL_NO_TRANS, n, n, n, BATCH, &got[1]));
  for (int side = 0; side < 2; side++) {
    double *x = mat_stored(all[side]), *y = mat_stored(got[side]);
    CHECK(memcmp(x, y, nn * BATCH * sizeof *x) == 0);
    FREE(x, y);
    RELEASE(all[side], got[side]);
  }
  FREE(a, same);
  RELEASE(ma, one, repeated);
}

void test_batch_product(scl_context *ctx) {
  /* One element a work-item, and tiles of each kind: smaller, full, one more; even and odd. */
  static const size_t shapes[][4] = {
      {3, 2, 5, 70},  {1, 1, 40, 3},   {7, 9, 3, 5},     {8, 8, 8, 9},       {16, 16, 16, 6},
      {17, 15, 1, 5}, {20, 21, 9, 3},  {32, 32, 32, 5},  {33, 65, 17, 2},    {34, 36, 38, 3},
      {9, 70, 31, 2}, {64, 64, 64, 3}, {100, 66, 50, 2}, {128, 128, 128, 2}, {129, 131, 127, 2}};
  for (size_t i = 0; i < LENGTH(shapes); i++) {
    const size_t *s = shapes[i];
    if (test_small() && s[0] * s[1] * s[2] > 40000) continue;
    check_product(ctx, s[0], s[1], s[2], s[3]);
    if (i > 1) check_product_spoilt(ctx, s[0], s[1], s[2]);
  }
  check_product_shared(ctx, 5);
  check_product_shared(ctx, 17);
  check_product_shared(ctx, 34);
}
