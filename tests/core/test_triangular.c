/* Triangular solves and inverses of the engine table, which must keep LAPACK's test ratios (below
 * 30): solve ||B - op(T) X|| / (||T|| ||X|| eps), inverse ||T X - I|| / (n ||T|| ||X|| eps), in
 * 1-norms with residuals in long double. The other triangle of T holds NaN. */
#include <stdio.h>
#include <string.h>

#include "linalg.h"

typedef enum {
  TAME,    /* condition of a few */
  GRADED,  /* diagonal from 1 down to 1e-12 */
  KAHAN,   /* Kahan's matrix: condition up to 1e12, hidden in the off-diagonal part */
  PROCESS, /* factor of a smooth Gaussian process with little noise: condition 1e6 */
  KINDS
} kind;

static double worst_solve, worst_inverse;

/* A triangular matrix of order n; the other triangle is zero. */
static double *triangular(kind what, size_t n, bool lower, double scale) {
  double *t = test_alloc(n * n * sizeof *t);
  double angle = what == KAHAN ? pow(1e-12, 1.0 / (double)n) : 0;
  double c = sqrt(1 - angle * angle);
  for (size_t j = 0; j < n; j++) {
    double power = what == KAHAN ? pow(angle, (double)j) : 0;
    for (size_t i = 0; i < n; i++) {
      double d = fabs((double)i - (double)j) / (double)n;
      double value = test_random() / sqrt((double)n);
      if (i == j) value = 1 + 0.5 * fabs(test_random());
      if (what == GRADED) value *= (i == j ? 1 : 0.5) * pow(1e-12, (double)i / (double)n);
      if (what == KAHAN) value = power * (i == j ? 1 : -c * 0.3);
      if (what == PROCESS) value = exp(-200 * d * d) + (i == j ? 1e-10 : 0);
      t[i + j * n] = what == PROCESS ? value : scale * value;
    }
  }
  if (what == PROCESS) {
    CHECK(test_factor(t, n) == 0);
    for (size_t j = 0; j < n && !lower; j++)
      for (size_t i = 0; i < j; i++) t[i + j * n] = t[j + i * n];
    for (size_t i = 0; i < n * n; i++) t[i] *= scale;
  }
  test_set_triangle(t, n, n, lower, 0.0);
  return t;
}

/* 1-norm over the checked columns of B - op(T) X (left) or B - X op(T) (right). */
static double solve_residual(scl_side side, scl_trans trans, size_t m, size_t n, const double *t,
                             const double *x, const double *b) {
  size_t order = side == SCL_LEFT ? m : n;
  double norm = 0;
  long double *column = test_alloc(m * sizeof *column);
  for (size_t j = 0; j < n; j = test_next_column(j, n)) {
    for (size_t i = 0; i < m; i++) column[i] = b[i + j * m];
    for (size_t l = 0; l < order; l++) {
      long double factor = side == SCL_LEFT ? x[l + j * m] : test_at(t, order, trans, l, j);
      if (factor == 0) continue;
      for (size_t i = 0; i < m; i++)
        column[i] -= factor * (side == SCL_LEFT ? test_at(t, order, trans, i, l) : x[i + l * m]);
    }
    long double sum = 0;
    for (size_t i = 0; i < m; i++) sum += fabsl(column[i]);
    if (!(sum <= norm)) norm = (double)sum;
  }
  free(column);
  return norm;
}

/* Norm of the transpose where the rows of X are the solutions. */
static double norm_of(scl_side side, const double *x, size_t m, size_t n) {
  if (side == SCL_LEFT) return test_norm1(x, m, n);
  double norm = 0;
  for (size_t i = 0; i < m; i++) {
    double sum = 0;
    for (size_t j = 0; j < n; j++) sum += fabs(x[i + j * m]);
    if (sum > norm) norm = sum;
  }
  return norm;
}

static void check_solve(scl_context *ctx, kind what, scl_side side, scl_view view, scl_trans trans,
                        size_t n, size_t rhs, double scale) {
  bool lower = view == SCL_LOWER;
  size_t m = side == SCL_LEFT ? n : rhs, columns = side == SCL_LEFT ? rhs : n;
  double *t = triangular(what, n, lower, scale);
  double *b = test_alloc(m * columns * sizeof *b), *x = test_alloc(m * columns * sizeof *x);
  test_fill(b, m * columns);
  double size = test_norm1(t, n, n);
  test_set_triangle(t, n, n, lower, NAN);
  test_framed dt = test_put(ctx, n, n, t), db = test_put(ctx, m, columns, b);
  CHECK_OK(ctx->engine->trsm(ctx, side, view, trans, dt.block, db.block));
  test_get(db, x);
  test_drop(dt);
  test_set_triangle(t, n, n, lower, 0.0);
  double residual = solve_residual(side, trans, m, columns, t, x, b);
  double ratio = residual / (size * norm_of(side, x, m, columns) * TEST_EPS);
  CHECK(n == 0 || rhs == 0 || ratio < 30);
  if (ratio > worst_solve) worst_solve = ratio;
  if (!(ratio < 30) && n * rhs > 0)
    printf("       kind %d side %d view %d trans %d n %zu rhs %zu scale %g: %g\n", what, side, view,
           trans, n, rhs, scale, ratio);
  FREE(t, b, x);
}

/* ||X T - I|| / (n ||T|| ||X|| eps), the residual that the engines keep small, as LAPACK does. */
static double inverse_ratio(size_t n, const double *t, const double *x) {
  double *identity = test_alloc(n * n * sizeof *identity);
  for (size_t e = 0; e < n * n; e++) identity[e] = e % (n + 1) == 0;
  double residual = solve_residual(SCL_RIGHT, SCL_NO_TRANS, n, n, t, x, identity);
  free(identity);
  return residual / ((double)n * test_norm1(t, n, n) * test_norm1(x, n, n) * TEST_EPS);
}

static void check_inverse(scl_context *ctx, kind what, scl_view view, size_t n, double scale) {
  bool lower = view == SCL_LOWER;
  double *t = triangular(what, n, lower, scale), *x = test_alloc(n * n * sizeof *x);
  test_set_triangle(t, n, n, lower, NAN);
  test_framed dt = test_put(ctx, n, n, t), dx = test_put(ctx, n, n, NULL);
  CHECK_OK(ctx->engine->trtri(ctx, view, dt.block, dx.block));
  test_get(dx, x);
  test_drop(dt);
  test_set_triangle(t, n, n, lower, 0.0);
  size_t spoilt = 0; /* the other triangle holds zeros */
  for (size_t j = 0; j < n; j++)
    for (size_t i = 0; i < n; i++) spoilt += (lower ? i < j : i > j) && x[i + j * n] != 0;
  CHECK(spoilt == 0);
  double ratio = n > 0 ? inverse_ratio(n, t, x) : 0;
  CHECK(ratio < 30);
  if (ratio > worst_inverse) worst_inverse = ratio;
  if (!(ratio < 30))
    printf("       inverse: kind %d view %d n %zu scale %g: %g\n", what, view, n, scale, ratio);
  FREE(t, x);
}

/* All eight forms of the solve, round robin over kinds, scales and numbers of right-hand sides. */
static void check_order(scl_context *ctx, size_t n, int forms) {
  static const size_t sides[] = {1, 2, 7, 16, 33, 65};
  static const double scales[] = {1, 1e-150, 1, 1e150};
  static unsigned turn;
  for (int f = 0; f < forms; f++, turn++) {
    check_solve(ctx, (kind)(turn / 3 % KINDS), turn & 1 ? SCL_RIGHT : SCL_LEFT,
                turn & 2 ? SCL_UPPER : SCL_LOWER, turn & 4 ? SCL_TRANS : SCL_NO_TRANS, n,
                sides[turn / 5 % 6], scales[turn / 7 % 4]);
  }
  turn++;
}

/* Few right-hand sides, which a GPU solves for block by block: every form, one block and more than
 * three, whole blocks and parts. */
static void check_vectors(scl_context *ctx) {
  static const size_t orders[] = {225, 512, 769, 1153};
  static const size_t sides[] = {1, 3, 4};
  for (int form = 0; form < 16; form++) {
    check_solve(ctx, (kind)((form + form / 8) % KINDS), form & 1 ? SCL_RIGHT : SCL_LEFT,
                form & 2 ? SCL_UPPER : SCL_LOWER, form & 4 ? SCL_TRANS : SCL_NO_TRANS,
                orders[form / 2 % 4], sides[form % 3], 1);
  }
}

/* An infinite element of b, or a zero on the diagonal, makes its unknown and those that depend on
 * it not finite; unknowns solved before it are right, and a second run gives the same bits. `at`:
 * its index, in the order of solving. */
static void check_not_finite(scl_context *ctx, scl_view view, scl_trans trans, bool zero, size_t n,
                             size_t at) {
  bool lower = view == SCL_LOWER, reversed = lower == (trans == SCL_TRANS);
  size_t place = reversed ? n - 1 - at : at, wrong = 0;
  double *t = triangular(TAME, n, lower, 1), *b = test_alloc(n * sizeof *b);
  double *x = test_alloc(n * sizeof *x), *again = test_alloc(n * sizeof *again);
  test_fill(b, n);
  if (zero)
    t[place * (n + 1)] = 0;
  else
    b[place] = INFINITY;
  for (int run = 0; run < 2; run++) {
    test_framed dt = test_put(ctx, n, n, t), db = test_put(ctx, n, 1, b);
    CHECK_OK(ctx->engine->trsm(ctx, SCL_LEFT, view, trans, dt.block, db.block));
    test_get(db, run == 0 ? x : again);
    test_drop(dt);
  }
  CHECK(memcmp(x, again, n * sizeof *x) == 0);
  for (size_t p = 0; p < n; p++) {
    size_t i = reversed ? n - 1 - p : p;
    long double rest = b[i], size = fabs(b[i]);
    for (size_t q = 0; q <= p && p < at; q++) {
      size_t j = reversed ? n - 1 - q : q;
      rest -= (long double)test_at(t, n, trans, i, j) * x[j];
      size += fabs(test_at(t, n, trans, i, j) * x[j]);
    }
    wrong += p < at ? !(fabsl(rest) <= 30 * TEST_EPS * size) : isfinite(x[i]) != 0;
  }
  CHECK(wrong == 0);
  FREE(t, b, x, again);
}

static void check_all(scl_context *ctx) {
  static const size_t edges[] = {255, 256, 257, 511, 512, 513};
  static const size_t large[] = {1023, 1025, 1537, 2049};
  for (size_t n = 0; n <= 130; n++) {
    check_order(ctx, n, 8);
    for (int what = TAME; what < KINDS; what++)
      check_inverse(ctx, (kind)what, (n + what) % 2 ? SCL_LOWER : SCL_UPPER, n, 1);
  }
  for (size_t e = 0; e < 6; e++) {
    check_order(ctx, edges[e], 5);
    for (int what = TAME; what < KINDS; what++) {
      if (test_few(ctx) && what != (int)e % KINDS) continue;
      check_inverse(ctx, (kind)what, (e + what) % 2 ? SCL_LOWER : SCL_UPPER, edges[e],
                    what % 2 ? 1e-100 : 1e100);
    }
  }
  for (size_t e = 0; e < 4; e++) {
    if (test_few(ctx) && large[e] != 1025) continue;
    check_order(ctx, large[e], 2);
    check_inverse(ctx, (kind)e, e % 2 ? SCL_LOWER : SCL_UPPER, large[e], 1);
  }
  check_vectors(ctx);
  for (int form = 0; form < 8; form++) {
    check_not_finite(ctx, form & 1 ? SCL_UPPER : SCL_LOWER, form & 2 ? SCL_TRANS : SCL_NO_TRANS,
                     form & 4, form < 4 ? 130 : 600, form < 4 ? 77 : 301);
  }
}

void test_triangular(scl_context *ctx) {
  worst_solve = worst_inverse = 0;
  for (test_frame = 1; test_frame <= test_frames(ctx); test_frame++) check_all(ctx);
  printf("%-12s worst ratios: solve %.3g, inverse %.3g\n", "triangular", worst_solve,
         worst_inverse);
}
