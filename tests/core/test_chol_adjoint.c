/* Reverse mode of the Cholesky factor: against the closed form in 113-bit arithmetic, and against
 * central differences. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "ops/cholesky.h"
#include "matrices.h"
#include "record.h"

/* The stored elements of the factor, of its adjoint and of the adjoint of the matrix. */
typedef struct {
  double *l, *l_adj, *s;
} result;

static result compute(scl_context *ctx, const double *a, size_t n) {
  scl_mat *m = mat_make(ctx, a, n, n, SCL_SYMMETRIC), *l = NULL, *s = NULL;
  scl_mat *l_adj = mat_random(ctx, n, n, SCL_GENERAL); /* its upper triangle is not read */
  CHECK_OK(compute_chol(m, 0.0, false, &l));
  CHECK_OK(compute_chol_adjoint(l, l_adj, &s));
  const result r = {mat_stored(l), mat_stored(l_adj), mat_stored(s)};
  CHECK(s->view == SCL_SYMMETRIC && mat_is_canonical(r.s, n, n, SCL_SYMMETRIC));
  RELEASE(m, l, l_adj, s);
  return r;
}

static void free_result(const result *r) {
  FREE(r->l, r->l_adj, r->s);
}

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;

/* S = 1/2 L^-T (P + P') L^-1 with P the lower triangle of L' dF/dL, its diagonal halved; the lower
 * triangle of S is computed. */
static void reference(const double *l, const double *l_adj, size_t n, quad *s) {
  quad *m = test_alloc(n * n * sizeof *m);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      quad sum = 0;
      for (size_t k = i; k < n; k++) sum += (quad)l[k + i * n] * l_adj[k + j * n];
      m[i + j * n] = m[j + i * n] = sum / 2;
    }
  }
  for (size_t j = 0; j < n; j++) { /* M = L^-T M */
    for (size_t i = n; i-- > 0;) {
      quad sum = m[i + j * n];
      for (size_t k = i + 1; k < n; k++) sum -= (quad)l[k + i * n] * m[k + j * n];
      m[i + j * n] = sum / l[i + i * n];
    }
  }
  for (size_t j = n; j-- > 0;) { /* S = M L^-1, the diagonal last: it needs its column */
    for (size_t i = n; i-- > j;) {
      quad sum = m[i + j * n];
      for (size_t k = j + 1; k < n; k++) {
        sum -= (k <= i ? s[i + k * n] : s[k + i * n]) * l[k + j * n];
      }
      s[i + j * n] = sum / l[j + j * n];
    }
  }
  free(m);
}

/* Relative to the largest element of S. */
static double distance(const double *got, const quad *want, size_t n) {
  double worst = 0, size = 0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      quad d = got[i + j * n] - want[i + j * n];
      double error = fabs((double)d), value = fabs((double)want[i + j * n]);
      if (!(error <= worst)) worst = error;
      if (value > size) size = value;
    }
  }
  return worst / size;
}

static void check_reference(scl_context *ctx, size_t n, double condition) {
  double *a = test_alloc(n * n * sizeof *a);
  quad *want = test_alloc(n * n * sizeof *want);
  mat_spd(a, n, condition, 1.0);
  const result r = compute(ctx, a, n);
  reference(r.l, r.l_adj, n, want);
  /* The solves are with L, whose condition number is the root of A's. */
  CHECK(distance(r.s, want, n) <= 10 * (double)n * DBL_EPSILON / 2 * sqrt(condition));
  FREE(a, want);
  free_result(&r);
}
#endif

/* Orders that a device processes in several blocks: some columns of S against S e = 1/2 L^-T (P +
 * P') L^-1 e, in the compiler's highest precision. Each column is compared relative to `norm`, that
 * of S. */
static void check_columns(scl_context *ctx, size_t n, double condition) {
  double *a = test_alloc(n * n * sizeof *a), worst = 0.0, norm = 0.0;
  long double *p = test_alloc(n * n * sizeof *p), *x = test_alloc(2 * n * sizeof *x), *y = x + n;
  mat_spd(a, n, condition, 1.0);
  const result r = compute(ctx, a, n);
  for (size_t j = 0; j < n; j++) { /* p: P + P' */
    for (size_t i = j; i < n; i++) {
      long double sum = 0;
      for (size_t k = i; k < n; k++) sum += (long double)r.l[k + i * n] * r.l_adj[k + j * n];
      p[i + j * n] = p[j + i * n] = sum;
    }
  }
  for (size_t i = 0; i < n * n; i++) norm = fmax(norm, fabs(r.s[i]));
  for (size_t j = 0; j < n; j += n / 5) {
    for (size_t i = 0; i < n; i++) { /* L^-1 e */
      long double sum = i == j;
      for (size_t k = j; k < i; k++) sum -= r.l[i + k * n] * x[k];
      x[i] = i < j ? 0 : sum / r.l[i + i * n];
    }
    for (size_t i = 0; i < n; i++) {
      y[i] = 0;
      for (size_t k = 0; k < n; k++) y[i] += p[k + i * n] * x[k];
    }
    for (size_t i = n; i-- > 0;) {
      for (size_t k = i + 1; k < n; k++) y[i] -= r.l[k + i * n] * y[k];
      y[i] /= r.l[i + i * n];
      worst = fmax(worst, fabs((double)(y[i] / 2 - r.s[i + j * n])));
    }
  }
  CHECK(worst <= 10 * (double)n * DBL_EPSILON / 2 * sqrt(condition) * norm);
  FREE(a, p, x);
  free_result(&r);
}

/* F(A) = sum of w * chol(A) over the lower triangle. */
static double objective(scl_context *ctx, const double *a, const double *w, size_t n) {
  scl_mat *m = mat_make(ctx, a, n, n, SCL_SYMMETRIC), *l = NULL;
  CHECK_OK(compute_chol(m, 0.0, false, &l));
  double *pl = mat_stored(l), sum = 0.0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) sum += w[i + j * n] * pl[i + j * n];
  }
  free(pl);
  RELEASE(m, l);
  return sum;
}

static void check_differences(scl_context *ctx, size_t n) {
  double *a = test_alloc(n * n * sizeof *a), *moved = test_alloc(n * n * sizeof *moved);
  double *direction = test_alloc(n * n * sizeof *direction), *w = test_alloc(n * n * sizeof *w);
  mat_spd(a, n, 20.0, 10.0);
  test_fill(w, n * n), test_fill(direction, n * n);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < j; i++) {
      direction[i + j * n] = direction[j + i * n];
      w[i + j * n] = NAN; /* never read */
    }
  }
  scl_mat *m = mat_make(ctx, a, n, n, SCL_SYMMETRIC), *l, *s, *l_adj;
  l_adj = mat_make(ctx, w, n, n, SCL_GENERAL);
  REQUIRE_OK(compute_chol(m, 0.0, false, &l));
  REQUIRE_OK(compute_chol_adjoint(l, l_adj, &s));
  double *ps = mat_stored(s), along = 0.0, side[2], h = 1e-5;
  for (size_t i = 0; i < n * n; i++) along += ps[i] * direction[i];
  for (int k = 0; k < 2; k++) {
    for (size_t i = 0; i < n * n; i++) moved[i] = a[i] + (k ? h : -h) * direction[i];
    side[k] = objective(ctx, moved, w, n);
  }
  CHECK_NEAR(along, (side[1] - side[0]) / (2 * h), 1e-7);
  FREE(a, moved, direction, w, ps);
  RELEASE(m, l, s, l_adj);
}

/* A non-finite element is found at any index, though a device checks the operands only if the
 * result's first element is not finite. */
static void check_faults(scl_context *ctx, size_t n) {
  static const double bad[] = {NAN, INFINITY, -INFINITY};
  double *l = test_alloc(n * n * sizeof *l), *l_adj = test_alloc(n * n * sizeof *l_adj);
  for (size_t place = 0; place < 8; place++) {
    size_t j = place * (n - 1) / 7, i = place % 2 ? n - 1 : j;
    for (int k = 0; k < 7; k++) { /* 0 to 2: in l, 3 to 5: in l_adj, 6: a zero on the diagonal */
      test_fill(l, n * n), test_fill(l_adj, n * n);
      for (size_t c = 0; c < n; c++) {
        for (size_t r = 0; r < n; r++)
          l[r + c * n] = r == c ? (double)n : r > c ? l[r + c * n] : 0.0;
      }
      if (k < 3) l[i + j * n] = bad[k];
      if (k >= 3 && k < 6) l_adj[i + j * n] = bad[k - 3];
      if (k == 6) l[j + j * n] = 0.0;
      scl_mat *ml = mat_make(ctx, l, n, n, SCL_LOWER), *s = NULL;
      scl_mat *ma = mat_make(ctx, l_adj, n, n, SCL_GENERAL);
      CHECK_STATUS(k == 6 ? SCL_E_SINGULAR : SCL_E_NONFINITE, compute_chol_adjoint(ml, ma, &s));
      RELEASE(ml, ma);
    }
  }
  FREE(l, l_adj);
}

void test_chol_adjoint(scl_context *ctx) {
#ifdef __SIZEOF_FLOAT128__
  static const double conditions[] = {2.0, 1e4, 1e9};
  for (size_t n = 1; n <= 40; n++) {
    for (size_t k = 0; k < 3; k++) check_reference(ctx, n, conditions[k]);
  }
  check_reference(ctx, 64, 1e4);
  for (size_t k = 0; k < 3; k++) check_reference(ctx, 65, conditions[k]);
  check_reference(ctx, 129, 1e2);
  check_reference(ctx, 129, 1e8);
  check_reference(ctx, 257, 1e6);
#else
  SKIP("no 113-bit arithmetic");
#endif
  check_columns(ctx, 513, 1e2);
  check_columns(ctx, 1099, 1e8);
  check_faults(ctx, 1);
  check_faults(ctx, 6);
  check_faults(ctx, 200);
  check_faults(ctx, 700);
  check_differences(ctx, 5);
  check_differences(ctx, 150);
}
