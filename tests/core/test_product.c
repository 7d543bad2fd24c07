/* Products of whole matrices: every pair of views, shapes, result views, errors. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrices.h"
#include "record.h"

/* Which product. */
typedef enum { PLAIN, CROSS, TCROSS } kind;

static scl_status multiply(kind what, scl_mat *a, scl_mat *b, scl_mat **out) {
  return compute_product(what == CROSS, what == TCROSS, a, b, out);
}

/* Element (i, l) of op(A). */
static double element(const double *a, size_t ld, bool transposed, size_t i, size_t l) {
  return transposed ? a[l + i * ld] : a[i + l * ld];
}

/* The product against long double, with the bound k eps |A| |B| for each element. */
static void check_product(scl_context *ctx, kind what, size_t m, size_t n, size_t k,
                          scl_view view_a, scl_view view_b) {
  bool turn_a = what == CROSS, turn_b = what == TCROSS;
  scl_mat *a = mat_random(ctx, turn_a ? k : m, turn_a ? m : k, view_a), *c;
  scl_mat *b = mat_random(ctx, turn_b ? n : k, turn_b ? k : n, view_b);
  double *pa = mat_stored(a), *pb = mat_stored(b);
  REQUIRE_OK(multiply(what, a, b, &c));
  CHECK(c->nrow == m && c->ncol == n);
  double *got = mat_stored(c), worst = 0.0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      long double want = 0, size = 0;
      for (size_t l = 0; l < k; l++) {
        long double term =
            (long double)element(pa, a->nrow, turn_a, i, l) * element(pb, b->nrow, turn_b, l, j);
        want += term;
        size += fabsl(term);
      }
      double error = (double)fabsl(got[i + j * m] - want);
      double bound = (double)(size * DBL_EPSILON * (long double)(k + 1));
      if (!(error <= bound)) worst = fmax(worst, error > 0 ? error / (bound + DBL_MIN) : INFINITY);
    }
  }
  CHECK(worst == 0.0);
  CHECK(mat_is_canonical(got, m, n, c->view));
  FREE(got, pa, pb);
  RELEASE(a, b, c);
}

static void check_view_pairs(scl_context *ctx, size_t n) {
  for (int pair = 0; pair < 16; pair++) {
    for (int what = PLAIN; what <= TCROSS; what++) {
      check_product(ctx, (kind)what, n, n, n, (scl_view)(pair / 4), (scl_view)(pair % 4));
    }
  }
}

/* One square factor with a view, the other oblong. */
static void check_oblong(scl_context *ctx, size_t n, size_t other) {
  for (int view = 0; view < 4; view++) {
    check_product(ctx, PLAIN, n, other, n, (scl_view)view, SCL_GENERAL);
    check_product(ctx, CROSS, n, other, n, (scl_view)view, SCL_GENERAL);
    check_product(ctx, PLAIN, other, n, n, SCL_GENERAL, (scl_view)view);
    check_product(ctx, TCROSS, other, n, n, SCL_GENERAL, (scl_view)view);
  }
}

/* x' x and x x', by NULL and by the matrix itself: exactly symmetric. */
static void check_symmetric(scl_context *ctx, size_t m, size_t n, scl_view view) {
  scl_mat *x = mat_random(ctx, m, n, view), *y, *c, *d;
  double *px = mat_stored(x);
  y = mat_make(ctx, px, m, n, SCL_GENERAL);
  for (int what = CROSS; what <= TCROSS; what++) {
    size_t order = what == CROSS ? n : m;
    REQUIRE_OK(multiply((kind)what, x, y, &d));
    double *want = mat_stored(d);
    for (int self = 0; self < 2; self++) {
      REQUIRE_OK(multiply((kind)what, x, self ? x : NULL, &c));
      double *got = mat_stored(c);
      CHECK(c->view == SCL_SYMMETRIC && c->nrow == order);
      CHECK(mat_is_canonical(got, order, order, SCL_SYMMETRIC));
      CHECK(mat_distance(got, want, order * order) <= 1e-14 * (double)(m + n));
      free(got);
      scl_mat_release(c);
    }
    free(want);
    scl_mat_release(d);
  }
  free(px);
  RELEASE(x, y);
}

static void check_result_views(scl_context *ctx) {
  scl_mat *l = mat_random(ctx, 12, 12, SCL_LOWER), *u = mat_random(ctx, 12, 12, SCL_UPPER), *r;
  REQUIRE_OK(compute_product(false, false, l, l, &r));
  CHECK(r->view == SCL_LOWER);
  scl_mat_release(r);
  REQUIRE_OK(compute_product(false, false, u, u, &r));
  CHECK(r->view == SCL_UPPER);
  scl_mat_release(r);
  REQUIRE_OK(compute_product(true, false, u, l, &r));
  CHECK(r->view == SCL_LOWER);
  scl_mat_release(r);
  REQUIRE_OK(compute_product(false, false, l, u, &r));
  CHECK(r->view == SCL_GENERAL);
  RELEASE(r, l, u);
}

/* A NaN affects its whole row, even where it is multiplied by zero; promised zeros stay. */
static void check_nonfinite(scl_context *ctx, size_t n) {
  double *x = test_alloc(n * n * sizeof *x), *zero = test_alloc(n * n * sizeof *zero);
  test_fill(x, n * n);
  for (size_t i = 0; i < n * n; i++) zero[i] = 0.0;
  x[n - 1] = NAN;
  scl_mat *a = mat_make(ctx, x, n, n, SCL_GENERAL), *z = mat_make(ctx, zero, n, n, SCL_GENERAL), *r;
  REQUIRE_OK(compute_product(false, false, a, z, &r));
  double *got = mat_stored(r);
  bool spread = true;
  for (size_t j = 0; j < n; j++) spread = spread && isnan(got[n - 1 + j * n]);
  CHECK(spread && got[0] == 0.0);
  free(got);
  scl_mat_release(r);
  REQUIRE_OK(compute_product(false, true, a, NULL, &r));
  got = mat_stored(r);
  CHECK(isnan(got[n - 1]) && isnan(got[n * n - 1]) && isfinite(got[0]));
  free(got);
  scl_mat_release(r);
  scl_mat *l = mat_make(ctx, x, n, n, SCL_LOWER);
  REQUIRE_OK(compute_product(false, false, l, l, &r));
  got = mat_stored(r);
  CHECK(mat_is_canonical(got, n, n, SCL_LOWER) && isnan(got[n - 1]));
  FREE(got, x, zero);
  RELEASE(r, l, a, z);
}

static void check_faults(scl_context *ctx) {
  scl_mat *a = mat_random(ctx, 3, 4, SCL_GENERAL), *b = mat_random(ctx, 5, 2, SCL_GENERAL);
  scl_mat *r = NULL;
  CHECK_FAULT(SCL_E_ARGUMENT, "b", compute_product(false, false, a, b, &r));
  CHECK_FAULT(SCL_E_ARGUMENT, "y", compute_product(true, false, a, b, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, compute_product(false, true, a, b, &r));
  CHECK(r == NULL);
  RELEASE(a, b);
}

void test_product(scl_context *ctx) {
  static const size_t shape[][3] = {{1, 1, 1},    {3, 5, 2},  {0, 3, 2},   {3, 0, 2},
                                    {3, 4, 0},    {1, 65, 9}, {65, 1, 33}, {67, 31, 65},
                                    {2, 2, 5000}, {1, 1, 999}};
  for (size_t s = 0; s < LENGTH(shape); s++) {
    for (int what = PLAIN; what <= TCROSS; what++) {
      check_product(ctx, (kind)what, shape[s][0], shape[s][1], shape[s][2], SCL_GENERAL,
                    SCL_GENERAL);
    }
  }
  static const size_t orders[] = {1, 7, 8, 33, 65};
  for (size_t s = 0; s < LENGTH(orders); s++) check_view_pairs(ctx, orders[s]);
  check_oblong(ctx, 20, 3);
  check_oblong(ctx, 20, 37);
  check_oblong(ctx, 66, 1);
  check_symmetric(ctx, 5, 3, SCL_GENERAL);
  check_symmetric(ctx, 40, 203, SCL_GENERAL);
  check_symmetric(ctx, 0, 3, SCL_GENERAL);
  for (int view = 1; view < 4; view++) check_symmetric(ctx, 50, 50, (scl_view)view);
  check_result_views(ctx);
  check_nonfinite(ctx, 3);
  check_nonfinite(ctx, 20);
  check_faults(ctx);
}
