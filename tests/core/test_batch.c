/* Batches of small matrices: residuals by LAPACK's ratios, statuses, and the same bits for a matrix
 * at any index of a batch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/batch.h"
#include "matrices.h"

#define UNIT 0x1p-53 /* unit roundoff, as in LAPACK's test ratios */

/* ---- references ------------------------------------------------------------------------------ */

/* Largest column sum of magnitudes of an m x n matrix. */
static double norm_one(const double *a, size_t m, size_t n) {
  double most = 0;
  for (size_t j = 0; j < n; j++) {
    double sum = 0;
    for (size_t i = 0; i < m; i++) sum += fabs(a[i + j * m]);
    if (!(sum <= most)) most = sum;
  }
  return most;
}

/* r (m x n) = c - op(a) b with a sum of k terms. */
static void residual(size_t m, size_t n, size_t k, bool transpose, const double *a, const double *b,
                     const double *c, double *r) {
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      long double sum = c[i + j * m];
      for (size_t q = 0; q < k; q++) {
        sum -= (long double)(transpose ? a[q + i * k] : a[i + q * m]) * b[q + j * k];
      }
      r[i + j * m] = (double)sum;
    }
  }
}

static double *identity(size_t n) {
  double *e = test_alloc(n * n * sizeof *e);
  for (size_t i = 0; i < n * n; i++) e[i] = i % (n + 1) == 0;
  return e;
}

/* A random matrix of that condition number in the 2-norm, about: a symmetric one, its rows permuted
 * and some negated. */
static void general_matrix(double *a, size_t n, double condition) {
  double *spd = test_alloc(n * n * sizeof *spd);
  mat_spd(spd, n, condition, 1.0);
  for (size_t i = 0; i < n; i++) {
    size_t to = (i * 7 + 3) % n;
    while (n % 7 == 0 && to >= n) to -= n;
    if (n % 7 == 0) to = n - 1 - i;
    for (size_t j = 0; j < n; j++) a[to + j * n] = i % 3 == 1 ? -spd[i + j * n] : spd[i + j * n];
  }
  free(spd);
}

static const double conditions[] = {1.0, 1e4, 1e8, 1e12};
enum { CONDITIONS = 4 };

/* One matrix of each condition, `batch` of them. */
static double *make_batch(size_t n, size_t batch, bool definite) {
  double *a = test_alloc(n * n * batch * sizeof *a);
  for (size_t q = 0; q < batch; q++) {
    if (definite) {
      mat_spd(a + q * n * n, n, conditions[q % CONDITIONS], 1.0);
    } else {
      general_matrix(a + q * n * n, n, conditions[q % CONDITIONS]);
    }
  }
  return a;
}

static scl_mat *column(scl_context *ctx, const double *data, size_t count) {
  return mat_make(ctx, data, count, 1, SCL_GENERAL);
}

/* ---- inverse and factor ---------------------------------------------------------------------- */

/* |I - A X| / (n |A| |X| u), and the same from the other side. Gauss-Jordan elimination keeps the
 * error of X as small as a factor would, but neither residual: with conditions of 1e12 a matrix of
 * order 4 had 25 (Higham, Accuracy and Stability, 2002, section 14.4). */
static double inverse_ratio(const double *a, const double *x, size_t n) {
  double *e = identity(n), *r = test_alloc(n * n * sizeof *r);
  double scale = norm_one(a, n, n) * norm_one(x, n, n) * (double)n * UNIT;
  residual(n, n, n, false, a, x, e, r);
  double right = norm_one(r, n, n);
  residual(n, n, n, false, x, a, e, r);
  double left = norm_one(r, n, n);
  FREE(e, r);
  return (left > right ? left : right) / scale;
}

static void check_inverse(scl_context *ctx, size_t n, size_t batch) {
  double *a = make_batch(n, batch, false);
  unsigned char *status = test_alloc(batch);
  scl_batch_report report = {status, 1};
  scl_mat *m = column(ctx, a, n * n * batch), *x;
  REQUIRE_OK(scl_batch_inverse(m, n, batch, false, &report, &x));
  CHECK(report.bad == 0);
  double *px = mat_stored(x), worst = 0;
  for (size_t q = 0; q < batch; q++) {
    double ratio = inverse_ratio(a + q * n * n, px + q * n * n, n);
    if (!(ratio <= worst)) worst = ratio;
  }
  CHECK(worst <= 100);
  if (n <= 3) { /* by cofactors the well-conditioned ones */
    scl_mat *y;
    REQUIRE_OK(scl_batch_inverse(m, n, batch, true, &report, &y));
    double *py = mat_stored(y);
    CHECK(report.bad == 0 && inverse_ratio(a, py, n) <= 10);
    free(py);
    scl_mat_release(y);
  }
  FREE(a, px, status);
  RELEASE(m, x);
}

/* |A - L L'| / (n |A| u) */
static double factor_ratio(const double *a, const double *l, size_t n) {
  double *t = test_alloc(n * n * sizeof *t), *r = test_alloc(n * n * sizeof *r);
  for (size_t i = 0; i < n * n; i++) t[i] = l[i / n + i % n * n];
  residual(n, n, n, false, l, t, a, r);
  double ratio = norm_one(r, n, n) / (norm_one(a, n, n) * (double)n * UNIT);
  FREE(t, r);
  return ratio;
}

static void check_chol(scl_context *ctx, size_t n, size_t batch) {
  double *a = make_batch(n, batch, true), *spoilt = test_alloc(n * n * batch * sizeof *spoilt);
  for (size_t e = 0; e < n * n * batch; e++) {
    spoilt[e] = e % n < e / n % n ? NAN : a[e]; /* above the diagonal nothing is read */
  }
  unsigned char *status = test_alloc(batch);
  scl_batch_report report = {status, 1};
  scl_mat *m = column(ctx, spoilt, n * n * batch), *l, *r;
  REQUIRE_OK(scl_batch_chol(m, n, batch, false, &report, &l));
  CHECK(report.bad == 0);
  REQUIRE_OK(scl_batch_chol(m, n, batch, true, NULL, &r));
  double *pl = mat_stored(l), *pr = mat_stored(r), worst = 0;
  bool same = true, lower = true;
  for (size_t q = 0; q < batch; q++) {
    const double *lq = pl + q * n * n, *rq = pr + q * n * n;
    double ratio = factor_ratio(a + q * n * n, lq, n);
    if (!(ratio <= worst)) worst = ratio;
    lower = lower && mat_is_canonical(lq, n, n, SCL_LOWER);
    for (size_t e = 0; e < n * n; e++) same = same && lq[e] == rq[e / n + e % n * n];
  }
  CHECK(worst <= 10);
  CHECK(same && lower);
  FREE(a, spoilt, pl, pr, status);
  RELEASE(m, l, r);
}

/* ---- solutions ------------------------------------------------------------------------------- */

/* |B - op(A) X| / (n |A| |X| u) */
static double solve_ratio(const double *a, bool transpose, const double *x, const double *b,
                          size_t n, size_t k) {
  double *r = test_alloc(n * k * sizeof *r);
  residual(n, k, n, transpose, a, x, b, r);
  double scale = norm_one(a, n, n) * norm_one(x, n, k) * (double)n * UNIT;
  double ratio = norm_one(r, n, k) / scale;
  free(r);
  return ratio;
}

static void check_solve(scl_context *ctx, size_t n, size_t k, size_t batch) {
  double *a = make_batch(n, batch, false), *b = test_alloc(n * k * batch * sizeof *b);
  test_fill(b, n * k * batch);
  unsigned char *status = test_alloc(batch);
  scl_batch_report report = {status, 1};
  scl_mat *ma = column(ctx, a, n * n * batch), *mb = column(ctx, b, n * k * batch), *x, *shared;
  REQUIRE_OK(scl_batch_solve(ma, mb, n, k, batch, &report, &x));
  CHECK(report.bad == 0);
  double *px = mat_stored(x), worst = 0;
  for (size_t q = 0; q < batch; q++) {
    double ratio = solve_ratio(a + q * n * n, false, px + q * n * k, b + q * n * k, n, k);
    if (!(ratio <= worst)) worst = ratio;
  }
  CHECK(worst <= 10);
  /* A shared matrix gives the same bits as copies of it. */
  scl_mat *one = column(ctx, a, n * n), *right = column(ctx, b, n * k);
  REQUIRE_OK(scl_batch_solve(one, mb, n, k, batch, NULL, &shared));
  double *ps = mat_stored(shared);
  CHECK(memcmp(px, ps, n * k * sizeof *px) == 0);
  scl_mat_release(shared);
  REQUIRE_OK(scl_batch_solve(ma, right, n, k, batch, NULL, &shared));
  double *pr = mat_stored(shared);
  CHECK(memcmp(px, pr, n * k * sizeof *px) == 0);
  FREE(a, b, px, ps, pr, status);
  RELEASE(ma, mb, x, one, shared, right);
}

static void check_triangular(scl_context *ctx, size_t n, size_t k, size_t batch) {
  size_t nn = n * n;
  double *l = test_alloc(nn * batch * sizeof *l), *t = test_alloc(nn * batch * sizeof *t);
  double *b = test_alloc(n * k * batch * sizeof *b);
  unsigned char *status = test_alloc(batch);
  scl_batch_report report = {status, 1};
  for (int form = 0; form < 4; form++) {
    bool upper = form & 1, transpose = form & 2;
    test_fill(l, nn * batch), test_fill(b, n * k * batch);
    for (size_t e = 0; e < nn * batch; e++) { /* `t` without the triangle that is not read */
      size_t i = e % n, j = e / n % n;
      l[e] = i == j ? 1.0 + fabs(l[e]) : l[e] / (double)n;
      t[e] = (upper ? i > j : i < j) ? 0.0 : l[e];
      if (t[e] == 0.0 && i != j) l[e] = NAN;
    }
    scl_mat *ml = column(ctx, l, nn * batch), *mb = column(ctx, b, n * k * batch), *x;
    REQUIRE_OK(scl_batch_tri_solve(ml, mb, n, k, batch, upper, transpose, &report, &x));
    CHECK(report.bad == 0);
    double *px = mat_stored(x), worst = 0;
    for (size_t q = 0; q < batch; q++) {
      double ratio = solve_ratio(t + q * nn, transpose, px + q * n * k, b + q * n * k, n, k);
      if (!(ratio <= worst)) worst = ratio;
    }
    CHECK(worst <= 10);
    free(px);
    RELEASE(ml, x);
    /* The status names the first zero of a diagonal. */
    l[nn - 1] = 0.0;
    l[(batch - 1) * nn] = l[batch * nn - 1] = 0.0;
    ml = column(ctx, l, nn * batch);
    REQUIRE_OK(scl_batch_tri_solve(ml, mb, n, k, batch, upper, transpose, &report, &x));
    px = mat_stored(x);
    CHECK(report.bad == 2 && status[0] == n && status[batch - 1] == 1);
    CHECK(isnan(px[0]) && isnan(px[n * k * batch - 1]) && isfinite(px[n * k]));
    free(px);
    RELEASE(ml, mb, x);
  }
  FREE(l, t, b, status);
}

/* ---- determinants, densities, adjoints: from the factors ------------------------------------- */

static void check_from_factor(scl_context *ctx, size_t n, size_t batch) {
  size_t nn = n * n;
  double *a = make_batch(n, batch, true), *y = test_alloc(n * batch * sizeof *y);
  double *w = test_alloc(nn * batch * sizeof *w), *mean = test_alloc(n * sizeof *mean);
  test_fill(y, n * batch), test_fill(w, nn * batch), test_fill(mean, n);
  scl_mat *m = column(ctx, a, nn * batch), *l, *r, *det, *density, *upper, *s;
  scl_mat *my = mat_make(ctx, y, n, batch, SCL_GENERAL), *mw = column(ctx, w, nn * batch);
  scl_mat *centre = column(ctx, mean, n);
  REQUIRE_OK(scl_batch_chol(m, n, batch, false, NULL, &l));
  REQUIRE_OK(scl_batch_chol(m, n, batch, true, NULL, &r));
  REQUIRE_OK(scl_batch_det(m, n, batch, true, &det));
  REQUIRE_OK(scl_batch_mvn_lpdf(my, centre, l, n, batch, false, NULL, &density));
  REQUIRE_OK(scl_batch_mvn_lpdf(my, centre, r, n, batch, true, NULL, &upper));
  REQUIRE_OK(scl_batch_chol_adjoint(l, mw, n, batch, NULL, &s));
  double *pl = mat_stored(l), *pd = mat_stored(det), *pm = mat_stored(density), *ps = mat_stored(s);
  double *pu = mat_stored(upper);
  for (size_t q = 0; q < batch; q++) {
    const double *lq = pl + q * nn;
    double log_det = 0, squares = 0;
    for (size_t i = 0; i < n; i++) { /* in place: y becomes z */
      double *z = y + q * n;
      long double sum = (long double)z[i] - mean[i];
      for (size_t j = 0; j < i; j++) sum -= (long double)lq[i + j * n] * z[j];
      z[i] = (double)(sum / lq[i * (n + 1)]);
      squares += z[i] * z[i];
      log_det += 2 * log(lq[i * (n + 1)]);
    }
    double want = -0.5 * (squares + log_det + (double)n * 1.8378770664093453);
    /* Solutions with the factor have the root of the condition number. */
    double loss = 1e-12 * sqrt(conditions[q % CONDITIONS]);
    CHECK(pd[batch + q] == 1.0);
    CHECK_NEAR(pd[q], log_det, 1e-13 * conditions[q % CONDITIONS] + 1e-12);
    CHECK(fabs(pm[q] - want) <= loss * (1 + fabs(squares) + fabs(log_det)));
    CHECK(fabs(pu[q] - want) <= loss * (1 + fabs(squares) + fabs(log_det)));
    if (q > 0) continue;
    /* dF along a direction by central differences of F = sum(w * L), at condition 1. */
    double *moved = test_alloc(nn * sizeof *moved), side[2] = {0, 0}, along = 0, h = 1e-5;
    for (int k = 0; k < 2; k++) {
      for (size_t e = 0; e < nn; e++) {
        double direction = cos((double)(e % n + e / n)); /* symmetric */
        moved[e] = a[e] + (k ? h : -h) * direction;
        if (k == 0) along += ps[e] * direction;
      }
      scl_mat *mm = column(ctx, moved, nn), *lm;
      REQUIRE_OK(scl_batch_chol(mm, n, 1, false, NULL, &lm));
      double *pk = mat_stored(lm);
      for (size_t e = 0; e < nn; e++) side[k] += e % n >= e / n ? w[e] * pk[e] : 0;
      free(pk);
      RELEASE(mm, lm);
    }
    CHECK(fabs(along - (side[1] - side[0]) / (2 * h)) <= 1e-6 * (double)nn);
    free(moved);
  }
  FREE(a, y, w, mean, pl, pd, pm, ps, pu);
  RELEASE(m, l, r, det, density, upper, s, my, mw, centre);
}

/* ---- statuses -------------------------------------------------------------------------------- */

static bool all_nan(const double *x, size_t count) {
  for (size_t e = 0; e < count; e++) {
    if (!isnan(x[e])) return false;
  }
  return true;
}

/* Some matrices of a batch are singular, indefinite or not finite: the others keep their bits. */
static void check_statuses(scl_context *ctx, size_t n, size_t batch) {
  size_t nn = n * n;
  double *a = make_batch(n, batch, true);
  scl_mat *m = column(ctx, a, nn * batch), *clean[2], *spoilt[2];
  REQUIRE_OK(scl_batch_inverse(m, n, batch, false, NULL, &clean[0]));
  REQUIRE_OK(scl_batch_chol(m, n, batch, false, NULL, &clean[1]));
  size_t singular = 1, infinite = batch / 2, missing = batch - 1, last = n - 1;
  for (size_t i = 0; i < n; i++) { /* the last row and column are zero: the last pivot fails */
    a[singular * nn + last + i * n] = a[singular * nn + i + last * n] = 0.0;
  }
  a[infinite * nn + last] = INFINITY;
  a[missing * nn + nn - 1] = NAN;
  scl_mat_release(m);
  m = column(ctx, a, nn * batch);
  unsigned char *status = test_alloc(batch);
  scl_batch_report report = {status, 0};
  REQUIRE_OK(scl_batch_inverse(m, n, batch, false, &report, &spoilt[0]));
  for (int which = 0; which < 2; which++) {
    if (which == 1) REQUIRE_OK(scl_batch_chol(m, n, batch, false, &report, &spoilt[1]));
    CHECK(report.bad == 3);
    CHECK(status[singular] == n && status[infinite] == SCL_BATCH_NONFINITE);
    CHECK(status[missing] == SCL_BATCH_NONFINITE);
    double *was = mat_stored(clean[which]), *is = mat_stored(spoilt[which]);
    bool same = true;
    for (size_t q = 0; q < batch; q++) {
      if (status[q] != SCL_BATCH_FINE) {
        CHECK(all_nan(is + q * nn, nn));
      } else {
        same = same && memcmp(was + q * nn, is + q * nn, nn * sizeof *is) == 0;
      }
    }
    CHECK(same);
    FREE(was, is);
  }
  /* The next batch is clean again. */
  scl_mat *again;
  double *e = identity(n);
  scl_mat *unit = column(ctx, e, nn);
  REQUIRE_OK(scl_batch_chol(unit, n, 1, false, &report, &again));
  CHECK(report.bad == 0);
  FREE(a, status, e);
  RELEASE(m, unit, again);
  for (int which = 0; which < 2; which++) {
    RELEASE(clean[which], spoilt[which]);
  }
}

/* A matrix alone, and the same one at each index of larger batches. */
static void check_bits(scl_context *ctx, size_t n) {
  static const size_t batches[] = {1, 2, 7, 65, 130};
  size_t nn = n * n;
  enum { OPERATIONS = 5 };
  double *one = make_batch(n, 1, true), *first[OPERATIONS] = {NULL};
  for (size_t b = 0; b < 5; b++) {
    size_t batch = test_small() && b > 2 ? 1 : batches[b];
    double *a = test_alloc(nn * batch * sizeof *a);
    for (size_t q = 0; q < batch; q++) memcpy(a + q * nn, one, nn * sizeof *a);
    scl_mat *m = column(ctx, a, nn * batch), *result[OPERATIONS];
    REQUIRE_OK(scl_batch_inverse(m, n, batch, false, NULL, &result[0]));
    REQUIRE_OK(scl_batch_chol(m, n, batch, false, NULL, &result[1]));
    REQUIRE_OK(scl_batch_solve(m, m, n, n, batch, NULL, &result[2]));
    REQUIRE_OK(scl_batch_det(m, n, batch, false, &result[3]));
    REQUIRE_OK(scl_batch_matmul(m, SCL_NO_TRANS, m, SCL_TRANS, n, n, n, batch, &result[4]));
    for (int which = 0; which < OPERATIONS; which++) {
      double *x = mat_stored(result[which]);
      size_t each = which == 3 ? 1 : nn;
      if (first[which] == NULL) {
        first[which] = test_alloc(each * sizeof *x);
        memcpy(first[which], x, each * sizeof *x);
      }
      bool same = true;
      for (size_t q = 0; q < batch; q++) {
        same = same && memcmp(first[which], x + q * each, each * sizeof *x) == 0;
      }
      CHECK(same);
      free(x);
      scl_mat_release(result[which]);
    }
    scl_mat_release(m);
    free(a);
  }
  free(one);
  for (int which = 0; which < OPERATIONS; which++) free(first[which]);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void check_shapes(scl_context *ctx) {
  scl_mat *empty = mat_make(ctx, NULL, 0, 1, SCL_GENERAL),
          *some = mat_random(ctx, 18, 1, SCL_GENERAL);
  scl_mat *out = NULL;
  unsigned char status[2] = {9, 9};
  scl_batch_report report = {status, 5};
  REQUIRE_OK(scl_batch_inverse(empty, 3, 0, false, &report, &out));
  CHECK(scl_mat_nrow(out) == 0 && report.bad == 0);
  scl_mat_release(out);
  REQUIRE_OK(scl_batch_chol(empty, 0, 2, false, &report, &out));
  CHECK(scl_mat_nrow(out) == 0 && report.bad == 0);
  scl_mat_release(out);
  out = NULL;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_batch_inverse(some, 3, 3, false, NULL, &out));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_batch_inverse(some, 129, 1, false, NULL, &out));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_batch_inverse(some, 4, 1, true, NULL, &out));
  CHECK(out == NULL);
  RELEASE(empty, some);
}

/* For every buffer that cannot be made: an error, no result, no memory left. */
static void check_memory(scl_context *ctx) {
  double *a = make_batch(9, 3, true);
  scl_mat *m = column(ctx, a, 243), *out = NULL;
  unsigned char status[3];
  scl_batch_report report = {status, 0};
  scl_status got = SCL_E_MEMORY;
  long tries = 0;
  for (; got == SCL_E_MEMORY && tries < 10; tries++) {
    scl_buffer_fail_after(tries + 1);
    got = scl_batch_chol(m, 9, 3, false, &report, &out);
    scl_buffer_fail_after(-1);
    CHECK((got == SCL_OK) == (out != NULL));
  }
  CHECK_STATUS(SCL_OK, got);
  CHECK(tries >= 2); /* the result at least had to be made */
  free(a);
  RELEASE(m, out);
}

void test_batch(scl_context *ctx) {
  /* A kernel serves several orders: its largest, and the one above that of the kernel before. */
  static const size_t orders[] = {1,  2,  3,  4,  5,  6,  7,   8,   9,   12, 13,
                                  16, 17, 24, 25, 32, 33, 40,  41,  48,  56, 57,
                                  64, 65, 80, 81, 96, 97, 112, 113, 127, 128};
  size_t count = LENGTH(orders);
  /* Each is a dozen programs to compile on a device: in the quick tests a fifth of them there,
   * which take turns. */
  const bool few = test_quick() && !scl_context_is_host(ctx);
  check_shapes(ctx);
  check_memory(ctx);
  for (size_t i = 0; i < count; i++) {
    size_t n = orders[i];
    if (test_small() && n > 33) break;
    if (few && n != SCL_BATCH_ORDER && (i % 5 != 0 || !test_turn(ctx, i / 5, 2))) continue;
    check_inverse(ctx, n, n <= 8 ? 70 : 7);
    check_solve(ctx, n, n % 7 + 1, n <= 8 ? 70 : 5);
    check_triangular(ctx, n, n % 5 + 1, n <= 8 ? 70 : 5);
    check_from_factor(ctx, n, n <= 8 ? 70 : 5);
    check_chol(ctx, n, n <= 8 ? 70 : 7);
    check_statuses(ctx, n, n <= 8 ? 70 : 6);
    check_bits(ctx, n);
  }
  if (test_small() || few) return;
  for (size_t n = 1; n <= SCL_BATCH_ORDER; n++) { /* one matrix of each condition */
    check_inverse(ctx, n, CONDITIONS);
    check_chol(ctx, n, CONDITIONS);
    check_solve(ctx, n, 1, CONDITIONS);
  }
  check_inverse(ctx, 3, 100000);
  check_chol(ctx, 3, 100000);
}
