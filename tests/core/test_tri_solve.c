/* Triangular solves, inverses and the reverse mode of the solve, over whole matrices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/triangular.h"
#include "matrices.h"
#include "record.h"

static const double unit_roundoff = 0x1p-53;

static scl_tri_form form_of(int k) {
  return (scl_tri_form){k & 1 ? SCL_RIGHT : SCL_LEFT, (k & 2) != 0, (k & 4) != 0};
}

static bool in_triangle(bool upper, size_t i, size_t j) {
  return upper ? i <= j : i >= j;
}

/* A well-conditioned triangle, with `junk` in the other one. */
static double *make_triangle(size_t n, bool upper, double junk) {
  double *t = test_alloc(n * n * sizeof *t);
  test_fill(t, n * n);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) {
      double *x = t + i + j * n;
      if (!in_triangle(upper, i, j)) *x = junk;
      if (i == j) *x = 1.5 + *x;
      if (i != j && in_triangle(upper, i, j)) *x *= 2.0 / sqrt((double)n);
    }
  }
  return t;
}

/* Element (i, j) of op(T). */
static double tri_element(scl_tri_form form, const double *t, size_t n, size_t i, size_t j) {
  if (form.transpose) {
    size_t keep = i;
    i = j;
    j = keep;
  }
  return in_triangle(form.upper, i, j) ? t[i + j * n] : 0.0;
}

/* max |B - op(T) X| (or |B - X op(T)|) over n |T| |X| u, in the largest-element norms. */
static double residual(scl_tri_form form, const double *t, size_t n, const double *x,
                       const double *b, size_t nrow, size_t ncol) {
  long double worst = 0, size_x = 0, size_t_ = 0;
  for (size_t i = 0; i < nrow * ncol; i++) size_x = fmaxl(size_x, fabsl(x[i]));
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) size_t_ = fmaxl(size_t_, fabs(tri_element(form, t, n, i, j)));
  }
  for (size_t j = 0; j < ncol; j++) {
    for (size_t i = 0; i < nrow; i++) {
      long double r = b[i + j * nrow];
      for (size_t l = 0; l < n; l++) {
        r -= form.side == SCL_LEFT ? (long double)tri_element(form, t, n, i, l) * x[l + j * nrow]
                                   : (long double)x[i + l * nrow] * tri_element(form, t, n, l, j);
      }
      worst = fmaxl(worst, fabsl(r));
    }
  }
  return worst == 0 ? 0.0 : (double)(worst / (size_t_ * size_x * n * unit_roundoff));
}

static void check_solve(scl_context *ctx, scl_tri_form form, size_t n, size_t m, double junk) {
  double *t = make_triangle(n, form.upper, junk);
  scl_mat *l = mat_make(ctx, t, n, n, SCL_GENERAL), *x, *b;
  b = form.side == SCL_LEFT ? mat_random(ctx, n, m, SCL_GENERAL)
                            : mat_random(ctx, m, n, SCL_GENERAL);
  REQUIRE_OK(compute_tri_solve(form, l, b, &x));
  CHECK(x->nrow == b->nrow && x->ncol == b->ncol);
  double *px = mat_stored(x), *pb = mat_stored(b);
  CHECK(residual(form, t, n, px, pb, x->nrow, x->ncol) < 30);
  FREE(px, pb, t);
  RELEASE(l, b, x);
}

static void check_inverse(scl_context *ctx, bool upper, size_t n) {
  double *t = make_triangle(n, upper, NAN), *unit = test_alloc(n * n * sizeof *unit);
  for (size_t i = 0; i < n * n; i++) unit[i] = i % (n + 1) == 0;
  scl_mat *l = mat_make(ctx, t, n, n, SCL_GENERAL), *x;
  REQUIRE_OK(compute_tri_inverse(upper, l, &x));
  CHECK(x->view == (upper ? SCL_UPPER : SCL_LOWER));
  double *px = mat_stored(x);
  CHECK(mat_is_canonical(px, n, n, x->view));
  CHECK(residual((scl_tri_form){SCL_LEFT, upper, false}, t, n, px, unit, n, n) < 30);
  FREE(px, t, unit);
  RELEASE(l, x);
}

/* ---- reverse mode --------------------------------------------------------------------------- */

/* F(l, b) = sum(w * solve(l, b)). */
static double objective(scl_context *ctx, scl_tri_form form, const double *t, size_t n,
                        const double *pb, size_t nrow, size_t ncol, const double *w) {
  scl_mat *l = mat_make(ctx, t, n, n, SCL_GENERAL), *b = mat_make(ctx, pb, nrow, ncol, SCL_GENERAL);
  scl_mat *x = NULL;
  CHECK_OK(compute_tri_solve(form, l, b, &x));
  double *px = mat_stored(x), sum = 0.0;
  for (size_t i = 0; i < nrow * ncol; i++) sum += w[i] * px[i];
  free(px);
  RELEASE(l, b, x);
  return sum;
}

/* Both adjoints against central differences along a random direction. */
static void check_adjoint(scl_context *ctx, scl_tri_form form, size_t n, size_t m) {
  size_t nrow = form.side == SCL_LEFT ? n : m, ncol = form.side == SCL_LEFT ? m : n;
  size_t count = nrow * ncol;
  double *t = make_triangle(n, form.upper, NAN), *direction = make_triangle(n, form.upper, 0.0);
  double *pb = test_alloc(count * sizeof *pb), *w = test_alloc(count * sizeof *w);
  double *db = test_alloc(count * sizeof *db), *moved = test_alloc(n * n * sizeof *moved);
  test_fill(pb, count), test_fill(w, count), test_fill(db, count);
  scl_mat *l = mat_make(ctx, t, n, n, SCL_GENERAL), *x, *l_adj, *b_adj;
  scl_mat *b = mat_make(ctx, pb, nrow, ncol, SCL_GENERAL), *x_adj;
  x_adj = mat_make(ctx, w, nrow, ncol, SCL_GENERAL);
  REQUIRE_OK(compute_tri_solve(form, l, b, &x));
  REQUIRE_OK(scl_tri_solve_adjoint(form, l, x, x_adj, &l_adj, &b_adj));
  double *pl = mat_stored(l_adj), *pba = mat_stored(b_adj), along_l = 0.0, along_b = 0.0;
  CHECK(l_adj->view == (form.upper ? SCL_UPPER : SCL_LOWER));
  CHECK(mat_is_canonical(pl, n, n, l_adj->view));
  for (size_t i = 0; i < n * n; i++) along_l += pl[i] * direction[i];
  for (size_t i = 0; i < count; i++) along_b += pba[i] * db[i];
  double side[2], h = 1e-5;
  for (int s = 0; s < 2; s++) {
    for (size_t i = 0; i < n * n; i++) moved[i] = t[i] + (s ? h : -h) * direction[i];
    side[s] = objective(ctx, form, moved, n, pb, nrow, ncol, w);
  }
  CHECK_NEAR(along_l, (side[1] - side[0]) / (2 * h), 1e-7);
  for (int s = 0; s < 2; s++) {
    double *pm = test_alloc(count * sizeof *pm);
    for (size_t i = 0; i < count; i++) pm[i] = pb[i] + (s ? h : -h) * db[i];
    side[s] = objective(ctx, form, t, n, pm, nrow, ncol, w);
    free(pm);
  }
  CHECK_NEAR(along_b, (side[1] - side[0]) / (2 * h), 1e-7);
  FREE(t, direction, pb, w, db, moved, pl, pba);
  RELEASE(l, b, x, x_adj, b_adj, l_adj);
}

/* ---- faults --------------------------------------------------------------------------------- */

/* A zero anywhere on the diagonal is found, for all right-hand sides and other elements. */
static void check_zeros(scl_context *ctx, scl_tri_form form, size_t n, size_t sides,
                        bool diagonal) {
  const size_t places[] = {0, n / 3, n - 2, n - 1};
  bool left = form.side == SCL_LEFT;
  double *t = make_triangle(n, form.upper, diagonal ? 0.0 : NAN),
         *zeros = test_alloc(n * sides * 8);
  for (size_t i = 0; i < n * n && diagonal; i++) t[i] = i % (n + 1) == 0 ? 2.0 : 0.0;
  for (size_t i = 0; i < n * sides; i++) zeros[i] = 0.0;
  scl_mat *b[] = {mat_random(ctx, left ? n : sides, left ? sides : n, SCL_GENERAL),
                  mat_make(ctx, zeros, left ? n : sides, left ? sides : n, SCL_GENERAL)};
  for (size_t k = 0; k < 4; k++) {
    double *place = t + places[k] * (n + 1), old = *place;
    *place = k % 2 ? -0.0 : 0.0;
    scl_mat *l = mat_make(ctx, t, n, n, SCL_GENERAL), *r = NULL;
    CHECK_STATUS(SCL_E_SINGULAR, compute_tri_solve(form, l, b[k % 2], &r));
    CHECK(scl_fault_last()->index == (int64_t)places[k] + 1);
    scl_mat_release(l);
    *place = old;
  }
  FREE(t, zeros);
  RELEASE(b[0], b[1]);
}

static void check_faults(scl_context *ctx) {
  scl_tri_form form = {SCL_LEFT, false, false};
  size_t n = 40;
  double *t = make_triangle(n, false, NAN);
  t[16 * (n + 1)] = 0.0;
  t[30 * (n + 1)] = 0.0;
  scl_mat *l = mat_make(ctx, t, n, n, SCL_GENERAL), *b = mat_random(ctx, n, 2, SCL_GENERAL),
          *r = NULL;
  CHECK_STATUS(SCL_E_SINGULAR, compute_tri_solve(form, l, b, &r));
  CHECK(scl_fault_last()->index == 17);
  CHECK(strcmp(scl_fault_last()->argument, "l") == 0);
  CHECK_STATUS(SCL_E_SINGULAR, compute_tri_inverse(true, l, &r));
  CHECK(scl_fault_last()->index == 17);
  CHECK_STATUS(SCL_E_SINGULAR, scl_tri_solve_adjoint(form, l, b, b, &r, NULL));
  form.side = SCL_RIGHT;
  CHECK_FAULT(SCL_E_ARGUMENT, "b", compute_tri_solve(form, l, b, &r));
  CHECK_FAULT(SCL_E_ARGUMENT, "x", scl_tri_solve_adjoint(form, l, b, b, &r, NULL));
  CHECK_FAULT(SCL_E_ARGUMENT, "l", compute_tri_solve(form, b, l, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, compute_tri_inverse(false, b, &r));
  CHECK(r == NULL);
  free(t);
  RELEASE(l, b);
}

void test_tri_solve(scl_context *ctx) {
  static const size_t orders[] = {0, 1, 2, 17, 65, 130};
  static const size_t sides[] = {0, 1, 3, 40};
  for (int k = 0; k < 8; k++) {
    for (size_t i = 0; i < LENGTH(orders); i++) {
      for (size_t j = 0; j < LENGTH(sides); j++) {
        check_solve(ctx, form_of(k), orders[i], sides[j], j % 2 ? NAN : 1e300);
      }
    }
    check_zeros(ctx, form_of(k), 150, 3, k % 2);
    check_zeros(ctx, form_of(k), 1100, 1, k < 4);
    check_adjoint(ctx, form_of(k), 9, 4);
    check_adjoint(ctx, form_of(k), 1, 1);
    check_adjoint(ctx, form_of(k), 70, 3);
  }
  for (size_t i = 0; i < LENGTH(orders); i++) {
    check_inverse(ctx, false, orders[i]);
    check_inverse(ctx, true, orders[i]);
  }
  check_faults(ctx);
}
