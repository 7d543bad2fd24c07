/* Cholesky factors of whole matrices, and solve, inverse and determinant from them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/expr.h"
#include "ops/table.h"
#include "ops/cholesky.h"
#include "ops/triangular.h"
#include "matrices.h"
#include "record.h"

static const double unit_roundoff = 0x1p-53;

/* Largest column sum of magnitudes. */
static long double norm_one(const double *a, size_t n) {
  long double most = 0;
  for (size_t j = 0; j < n; j++) {
    long double sum = 0;
    for (size_t i = 0; i < n; i++) sum += fabsl(a[i + j * n]);
    most = fmaxl(most, sum);
  }
  return most;
}

/* LAPACK's ratio |A - L L'| / (n |A| u). */
static double factor_ratio(const double *a, const double *l, size_t n) {
  double *r = test_alloc(n * n * sizeof *r);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      long double sum = a[i + j * n];
      for (size_t k = 0; k <= j; k++) sum -= (long double)l[i + k * n] * l[j + k * n];
      r[i + j * n] = r[j + i * n] = (double)sum;
    }
  }
  double ratio = (double)(norm_one(r, n) / (norm_one(a, n) * n * unit_roundoff));
  free(r);
  return ratio;
}

/* Puts `junk` above the diagonal. */
static void spoil_upper(double *a, size_t n, double junk) {
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < j; i++) a[i + j * n] = junk;
  }
}

static void check_factor(scl_context *ctx, size_t n, double condition, double scale) {
  double *a = test_alloc(n * n * sizeof *a), *spoilt = test_alloc(n * n * sizeof *spoilt);
  mat_spd(a, n, condition, scale);
  memcpy(spoilt, a, n * n * sizeof *a);
  spoil_upper(spoilt, n, NAN);
  scl_mat *m = mat_make(ctx, spoilt, n, n, SCL_GENERAL), *l, *r;
  REQUIRE_OK(compute_chol(m, 0.0, false, &l));
  REQUIRE_OK(compute_chol(m, 0.0, true, &r));
  CHECK(l->view == SCL_LOWER && r->view == SCL_UPPER);
  double *pl = mat_stored(l), *pr = mat_stored(r);
  CHECK(mat_is_canonical(pl, n, n, SCL_LOWER) && mat_is_canonical(pr, n, n, SCL_UPPER));
  bool same = true, positive = true;
  for (size_t j = 0; j < n; j++) {
    positive = positive && pl[j * (n + 1)] > 0.0;
    for (size_t i = 0; i < n; i++) same = same && pl[i + j * n] == pr[j + i * n];
  }
  CHECK(same && positive);
  if (n > 0) CHECK(factor_ratio(a, pl, n) < 30);
  FREE(a, spoilt, pl, pr);
  RELEASE(m, l, r);
}

static void check_jitter(scl_context *ctx) {
  /* Of rank one: the second minor is zero. */
  double a[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, want[9];
  memcpy(want, a, sizeof a);
  for (int i = 0; i < 3; i++) want[i * 4] += 0.25;
  scl_mat *m = mat_make(ctx, a, 3, 3, SCL_SYMMETRIC), *l = NULL;
  CHECK_STATUS(SCL_E_NOT_PD, compute_chol(m, 0.0, false, &l));
  CHECK(l == NULL && scl_fault_last()->index == 2);
  CHECK_FAULT(SCL_E_ARGUMENT, "jitter", compute_chol(m, -1.0, false, &l));
  CHECK_STATUS(SCL_E_ARGUMENT, compute_chol(m, NAN, false, &l));
  REQUIRE_OK(compute_chol(m, 0.25, false, &l));
  double *pl = mat_stored(l), *pm = mat_stored(m);
  CHECK(factor_ratio(want, pl, 3) < 5);
  CHECK(mat_distance(pm, a, 9) == 0.0);
  FREE(pl, pm);
  RELEASE(m, l);
}

/* The order of the first failing minor, as base R words it. */
static void check_not_positive(scl_context *ctx, size_t n, size_t order) {
  double *a = test_alloc(n * n * sizeof *a);
  char want[80];
  mat_spd(a, n, 10.0, 1.0);
  a[(order - 1) * (n + 1)] = -1.0;
  if (order < n) a[n * n - 1] = -2.0; /* a later one does not count */
  scl_mat *m = mat_make(ctx, a, n, n, SCL_GENERAL), *l = NULL;
  CHECK_STATUS(SCL_E_NOT_PD, compute_chol(m, 0.0, order % 2 == 0, &l));
  CHECK(l == NULL && scl_fault_last()->index == (int64_t)order);
  snprintf(want, sizeof want, "the leading minor of order %d is not positive", (int)order);
  CHECK(strcmp(scl_fault_last()->message, want) == 0);
  free(a);
  scl_mat_release(m);
}

/* The engine itself must not let a NaN pivot pass. */
static void check_nan_pivot(scl_context *ctx, size_t n, size_t order) {
  double *a = test_alloc(n * n * sizeof *a), found = -1.0;
  mat_spd(a, n, 10.0, 1.0);
  a[(order - 1) * (n + 1)] = NAN;
  scl_mat *m = mat_make(ctx, a, n, n, SCL_GENERAL);
  scl_block info;
  REQUIRE_OK(scl_block_create(ctx, 1, 1, &info));
  REQUIRE_OK(ctx->engine->potrf(ctx, scl_mat_block(m), info));
  REQUIRE_OK(ctx->engine->download(ctx, SCL_GENERAL, info, SCL_WAIT_WRITES, &found, 1));
  CHECK(found == (double)order);
  scl_buffer_release(info.buffer);
  free(a);
  scl_mat_release(m);
}

/* The row log_det of the table of operations. */
static scl_status log_det(scl_mat *l, double *out) {
  scl_mat *r;
  SCL_TRY(scl_compute(NULL, SCL_OPERATION_LOG_DET, 1, &(scl_term){l, 0.0}, 0, NULL, &r));
  const scl_status status = scl_mat_to_host(r, out);
  scl_mat_release(r);
  return status;
}

static void check_faults(scl_context *ctx) {
  size_t n = 20;
  double *a = test_alloc(n * n * sizeof *a);
  mat_spd(a, n, 10.0, 1.0);
  a[17 + 3 * n] = INFINITY;
  scl_mat *m = mat_make(ctx, a, n, n, SCL_GENERAL), *oblong = mat_random(ctx, 4, 3, SCL_GENERAL);
  scl_mat *r = NULL;
  double value = 7.0, pivots[20] = {7.0};
  CHECK_STATUS(SCL_E_NONFINITE, compute_chol(m, 0.0, false, &r));
  CHECK(scl_fault_last()->index == (int64_t)(17 + 3 * n + 1));
  CHECK(strcmp(scl_fault_last()->argument, "a") == 0);
  CHECK_FAULT(SCL_E_ARGUMENT, "a", compute_chol(oblong, 0.0, false, &r));
  CHECK_STATUS(SCL_E_NONFINITE, scl_chol_pivots(m, pivots));
  CHECK(scl_fault_last()->index == (int64_t)(17 + 3 * n + 1));
  CHECK_FAULT(SCL_E_ARGUMENT, "a", scl_chol_pivots(oblong, pivots));
  CHECK_STATUS(SCL_E_ARGUMENT, compute_chol_inverse(oblong, false, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, log_det(oblong, &value));
  CHECK_STATUS(SCL_E_ARGUMENT, compute_chol_adjoint(oblong, oblong, &r));
  CHECK_FAULT(SCL_E_ARGUMENT, "l_adj", compute_chol_adjoint(m, oblong, &r));
  CHECK_FAULT(SCL_E_NONFINITE, "l", compute_chol_adjoint(m, m, &r));
  scl_mat_release(m);
  a[17 + 3 * n] = 0.0;
  a[5 * (n + 1)] = 0.0;
  m = mat_make(ctx, a, n, n, SCL_GENERAL);
  CHECK_STATUS(SCL_E_NOT_PD, scl_chol_pivots(m, pivots));
  CHECK(scl_fault_last()->index == 6 && pivots[0] == 7.0);
  CHECK_STATUS(SCL_E_SINGULAR, compute_chol_inverse(m, true, &r));
  CHECK_STATUS(SCL_E_SINGULAR, compute_chol_adjoint(m, m, &r));
  CHECK(scl_fault_last()->index == 6);
  CHECK(r == NULL && value == 7.0);
  free(a);
  RELEASE(m, oblong);
}

/* |B - A X| over |A| |X| n u, elementwise norms. */
static double solve_ratio(const double *a, const double *x, const double *b, size_t n, size_t m) {
  long double worst = 0, size_x = 0;
  for (size_t i = 0; i < n * m; i++) size_x = fmaxl(size_x, fabsl(x[i]));
  for (size_t j = 0; j < m; j++) {
    for (size_t i = 0; i < n; i++) {
      long double r = b[i + j * n];
      for (size_t k = 0; k < n; k++) r -= (long double)a[i + k * n] * x[k + j * n];
      worst = fmaxl(worst, fabsl(r));
    }
  }
  return worst == 0 ? 0 : (double)(worst / (norm_one(a, n) * size_x * n * unit_roundoff));
}

/* A^-1 b by two triangular solves with the factor. */
static void check_solution(scl_mat *factor, bool upper, scl_mat *b, const double *a,
                           const double *stored) {
  scl_mat *half, *x;
  const scl_tri_form first = {SCL_LEFT, upper, upper}, second = {SCL_LEFT, upper, !upper};
  REQUIRE_OK(compute_tri_solve(first, factor, b, &half));
  REQUIRE_OK(compute_tri_solve(second, factor, half, &x));
  double *solution = mat_stored(x);
  CHECK(solve_ratio(a, solution, stored, b->nrow, b->ncol) < 30);
  free(solution);
  RELEASE(half, x);
}

static void check_from_factor(scl_context *ctx, size_t n, size_t m, double condition) {
  double *a = test_alloc(n * n * sizeof *a), *unit = test_alloc(n * n * sizeof *unit), value;
  mat_spd(a, n, condition, 1.0);
  for (size_t i = 0; i < n * n; i++) unit[i] = i % (n + 1) == 0;
  scl_mat *mat = mat_make(ctx, a, n, n, SCL_SYMMETRIC), *l, *x;
  scl_mat *b = mat_random(ctx, n, m, SCL_GENERAL);
  double *pb = mat_stored(b), want = 0.0;
  for (size_t i = 0; i < n; i++) want -= n > 1 ? log(condition) * (double)i / (double)(n - 1) : 0.0;
  double *pivots = test_alloc((n + 1) * sizeof *pivots);
  REQUIRE_OK(scl_chol_pivots(mat, pivots));
  for (int upper = 0; upper < 2; upper++) {
    REQUIRE_OK(compute_chol(mat, 0.0, upper, &l));
    if (!upper) {
      double *factor = mat_stored(l);
      for (size_t i = 0; i < n; i++) CHECK(pivots[i] == factor[i * (n + 1)]);
      free(factor);
    }
    /* The other triangle of a factor is never read. */
    double *pl = mat_stored(l);
    for (size_t j = 0; j < n; j++) {
      for (size_t i = 0; i < n; i++) {
        if (upper ? i > j : i < j) pl[i + j * n] = NAN;
      }
    }
    scl_mat *factor = mat_make(ctx, pl, n, n, SCL_GENERAL);
    free(pl);
    REQUIRE_OK(compute_chol_inverse(factor, upper, &x));
    double *px = mat_stored(x);
    CHECK(x->view == SCL_SYMMETRIC && mat_is_canonical(px, n, n, SCL_SYMMETRIC));
    CHECK(solve_ratio(a, px, unit, n, n) < 30);
    free(px);
    REQUIRE_OK(log_det(factor, &value));
    CHECK_NEAR(value, want, 1e-14 * condition);
    scl_mat_release(x);
    check_solution(factor, upper, b, a, pb);
    RELEASE(l, factor);
  }
  FREE(a, pb, unit, pivots);
  RELEASE(mat, b);
}

void test_chol_ops(scl_context *ctx) {
  static const size_t orders[] = {0, 1, 2, 3, 17, 64, 65, 130, 200};
  for (size_t i = 0; i < LENGTH(orders); i++) {
    check_factor(ctx, orders[i], 10.0, 1.0);
    check_factor(ctx, orders[i], 1e12, 1.0);
    check_factor(ctx, orders[i], 1e4, 1e-150);
    check_factor(ctx, orders[i], 1e4, 1e150);
  }
  static const size_t failing[][2] = {{1, 1},   {5, 1},    {5, 3},    {5, 5},
                                      {130, 1}, {130, 77}, {130, 130}};
  for (size_t i = 0; i < LENGTH(failing); i++) {
    check_not_positive(ctx, failing[i][0], failing[i][1]);
    check_nan_pivot(ctx, failing[i][0], failing[i][1]);
  }
  check_jitter(ctx);
  check_faults(ctx);
  check_from_factor(ctx, 0, 2, 10.0);
  check_from_factor(ctx, 1, 0, 10.0);
  check_from_factor(ctx, 33, 5, 10.0);
  check_from_factor(ctx, 100, 1, 1e6);
}
