/* Elementwise operations and reductions of the tables, one at a time; diagonals and checks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "ops/check.h"
#include "ops/operation.h"
#include "matrices.h"
#include "op_reference.h"

/* ---- elementwise ---------------------------------------------------------------------------- */

static scl_status forced(scl_op op, int count, const scl_term *terms, scl_mat **out) {
  scl_mat *r;
  SCL_TRY(scl_expr_apply(op, count, terms, &r));
  scl_status status = scl_mat_force(r);
  return scl_give(status, r, out);
}

static scl_status apply_one(scl_op op, scl_mat *a, scl_mat **out) {
  return forced(op, 1, &(scl_term){a, 0}, out);
}

static scl_status apply_two(scl_op op, scl_mat *a, scl_mat *b, scl_mat **out) {
  const scl_term terms[] = {{a, 0}, {b, 0}};
  return forced(op, 2, terms, out);
}

static scl_status apply_number(scl_op op, scl_mat *a, double number, bool first, scl_mat **out) {
  const scl_term terms[] = {{first ? NULL : a, number}, {first ? a : NULL, number}};
  return forced(op, 2, terms, out);
}

static double first_element(const scl_mat *r) {
  double *stored = mat_stored(r), value = stored[0];
  free(stored);
  return value;
}

static scl_status reduce_all(scl_reduction op, scl_mat *a, double *out) {
  scl_mat *r;
  SCL_TRY(scl_expr_reduce(op, a, SCL_TOTAL, &r));
  scl_status status = scl_mat_force(r);
  if (status == SCL_OK) *out = first_element(r);
  scl_mat_release(r);
  return status;
}

/* The sum of the products of their elements. */
static scl_status dot_of(scl_context *ctx, const scl_mat *a, const scl_mat *b, double *out) {
  scl_mat *r;
  SCL_TRY(scl_mat_create(ctx, 1, 1, SCL_GENERAL, &r));
  scl_status status = scl_dot_blocks(ctx, scl_mat_block(a), scl_mat_block(b), scl_mat_block(r));
  if (status == SCL_OK) *out = first_element(r);
  scl_mat_release(r);
  return status;
}

static bool takes_two(scl_op op) {
  return scl_op_arity(op) == 2;
}

static const double awkward[] = {0.0,      -0.0,      1.0, -1.0,   2.0,  0.5,
                                 INFINITY, -INFINITY, NAN, 1e-300, 1e300};
enum { AWKWARD = LENGTH(awkward) };

/* Random numbers with special values among them. */
static void fill_awkward(double *x, size_t n) {
  test_fill(x, n);
  for (size_t i = 0; i < n; i++) {
    if (i % 3 == 1) x[i] = awkward[(i * 7 + i / 11) % AWKWARD];
  }
}

/* The result agrees with the reference for the stored operands, and its view with its content. */
static void check_result(scl_op op, scl_mat *r, const double *a, double scalar_a, const double *b,
                         double scalar_b) {
  size_t count = r->nrow * r->ncol;
  double *got = mat_stored(r), *want = test_alloc(count * sizeof *want);
  for (size_t i = 0; i < count; i++) {
    want[i] = op_reference(op, a != NULL ? a[i] : scalar_a, b != NULL ? b[i] : scalar_b, 0.0);
  }
  CHECK(mat_distance(got, want, count) <= 4e-15);
  CHECK(mat_is_canonical(got, r->nrow, r->ncol, r->view));
  FREE(got, want);
  scl_mat_release(r);
}

/* On a device each shape, each pair of views and each position of a number is a kernel to compile.
 * In turn there a sixth of the operations has all, half of the others one shape and one position.
 */
static bool is_few(const scl_context *ctx, scl_op op) {
  return !test_turn(ctx, (size_t)op, 6);
}

static void check_op(scl_context *ctx, scl_op op, size_t m, size_t n, scl_view view_a,
                     scl_view view_b) {
  size_t count = m * n;
  double *data = test_alloc(count * sizeof *data);
  fill_awkward(data, count);
  scl_mat *a = mat_make(ctx, data, m, n, view_a), *b, *r;
  fill_awkward(data, count);
  b = mat_make(ctx, data, m, n, view_b);
  double *stored_a = mat_stored(a), *stored_b = mat_stored(b);
  free(data);
  if (takes_two(op)) {
    REQUIRE_OK(apply_two(op, a, b, &r));
    check_result(op, r, stored_a, 0, stored_b, 0);
    for (size_t k = 0; k < AWKWARD; k++) {
      if (!is_few(ctx, op) || op % 2 == 0) {
        REQUIRE_OK(apply_number(op, a, awkward[k], false, &r));
        check_result(op, r, stored_a, 0, NULL, awkward[k]);
      }
      if (!is_few(ctx, op) || op % 2 == 1) {
        REQUIRE_OK(apply_number(op, b, awkward[k], true, &r));
        check_result(op, r, NULL, awkward[k], stored_b, 0);
      }
    }
    CHECK_STATUS(SCL_E_ARGUMENT, apply_one(op, a, &r));
  } else {
    REQUIRE_OK(apply_one(op, a, &r));
    check_result(op, r, stored_a, 0, NULL, 0);
    CHECK_STATUS(SCL_E_ARGUMENT, apply_two(op, a, b, &r));
  }
  FREE(stored_a, stored_b);
  RELEASE(a, b);
}

static void check_views(scl_context *ctx) {
  scl_mat *l = mat_random(ctx, 5, 5, SCL_LOWER), *s, *r;
  s = mat_random(ctx, 5, 5, SCL_SYMMETRIC);
  REQUIRE_OK(apply_two(SCL_OP_ADD, l, l, &r));
  CHECK(r->view == SCL_LOWER);
  scl_mat_release(r);
  REQUIRE_OK(apply_number(SCL_OP_MUL, l, 2.0, true, &r));
  CHECK(r->view == SCL_LOWER);
  scl_mat_release(r);
  REQUIRE_OK(apply_one(SCL_OP_EXP, l, &r));
  CHECK(r->view == SCL_GENERAL);
  scl_mat_release(r);
  REQUIRE_OK(apply_one(SCL_OP_EXP, s, &r));
  CHECK(r->view == SCL_SYMMETRIC);
  scl_mat_release(r);
  REQUIRE_OK(apply_two(SCL_OP_ADD, s, l, &r));
  CHECK(r->view == SCL_GENERAL);
  RELEASE(r, l);
  l = mat_random(ctx, 5, 4, SCL_GENERAL);
  CHECK_FAULT(SCL_E_ARGUMENT, "e2", apply_two(SCL_OP_ADD, s, l, &r));
  RELEASE(l, s);
}

/* ---- diagonals, in the engine -------------------------------------------------------------- */

static void check_scaling(scl_context *ctx, size_t m, size_t n, scl_view view) {
  for (int side = SCL_LEFT; side <= SCL_RIGHT; side++) {
    for (int as_row = 0; as_row < 2; as_row++) {
      size_t length = side == SCL_LEFT ? m : n;
      scl_mat *a = mat_random(ctx, m, n, view), *r, *d;
      d = mat_random(ctx, as_row ? 1 : length, as_row ? length : 1, SCL_GENERAL);
      double *pa = mat_stored(a), *pd = mat_stored(d);
      REQUIRE_OK(scl_mat_create(ctx, m, n, SCL_GENERAL, &r));
      REQUIRE_OK(ctx->engine->scale_diagonal(ctx, (scl_side)side, scl_vector_block(d),
                                             scl_mat_block(a), scl_mat_block(r)));
      for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < m; i++) pa[i + j * m] *= pd[side == SCL_LEFT ? i : j];
      }
      double *got = mat_stored(r);
      CHECK(mat_distance(got, pa, m * n) == 0.0);
      FREE(got, pa, pd);
      RELEASE(r, d, a);
    }
  }
}

static void check_add_diagonal(scl_context *ctx, size_t n) {
  scl_mat *a = mat_random(ctx, n, n, SCL_SYMMETRIC);
  double *want = mat_stored(a), *got;
  for (size_t i = 0; i < n; i++) want[i * (n + 1)] += 2.5;
  REQUIRE_OK(ctx->engine->add_diagonal(ctx, 2.5, scl_mat_block(a)));
  got = mat_stored(a);
  CHECK(mat_distance(got, want, n * n) == 0.0);
  FREE(got, want);
  scl_mat_release(a);
}

/* ---- reductions ----------------------------------------------------------------------------- */

/* Relative to the sum of magnitudes, which is what any order of additions can guarantee. */
static void check_sums(scl_context *ctx, size_t m, size_t n) {
  size_t count = m * n;
  double *x = test_alloc(count * sizeof *x), *y = test_alloc(count * sizeof *y), got;
  test_fill(x, count);
  test_fill(y, count);
  scl_mat *a = mat_make(ctx, x, m, n, SCL_GENERAL), *b = mat_make(ctx, y, m, n, SCL_GENERAL);
  long double sum = 0, size = 0, dot = 0, dot_size = 0;
  double least = INFINITY, most = -INFINITY;
  for (size_t i = 0; i < count; i++) {
    sum += x[i];
    size += fabsl(x[i]);
    dot += (long double)x[i] * y[i];
    dot_size += fabsl((long double)x[i] * y[i]);
    if (x[i] < least) least = x[i];
    if (x[i] > most) most = x[i];
  }
  REQUIRE_OK(reduce_all(SCL_REDUCE_SUM, a, &got));
  CHECK(fabsl(got - sum) <= 4e-15L * size);
  REQUIRE_OK(dot_of(ctx, a, b, &got));
  CHECK(fabsl(got - dot) <= 4e-15L * dot_size);
  REQUIRE_OK(reduce_all(SCL_REDUCE_MIN, a, &got));
  CHECK(got == least);
  REQUIRE_OK(reduce_all(SCL_REDUCE_MAX, a, &got));
  CHECK(got == most);
  if (count > 0) {
    x[count / 2] = NAN;
    scl_mat *c = mat_make(ctx, x, m, n, SCL_GENERAL);
    for (int op = 0; op < SCL_REDUCE_WHICH_MAX; op++) {
      REQUIRE_OK(reduce_all((scl_reduction)op, c, &got));
      bool counts = op == SCL_REDUCE_COUNT_NAN || op == SCL_REDUCE_COUNT_TRUE;
      double want = op == SCL_REDUCE_COUNT_NAN ? 1.0 : (double)(count - 1);
      CHECK(counts ? got == want : isnan(got));
    }
    scl_mat_release(c);
  }
  for (size_t i = 0; i < count; i++) x[i] = 1.0 + fabs(y[i]);
  scl_mat *c = mat_make(ctx, x, m, n, SCL_GENERAL);
  sum = 0;
  for (size_t i = 0; i < count; i++) sum += logl(x[i]);
  REQUIRE_OK(reduce_all(SCL_REDUCE_SUM_LOG, c, &got));
  CHECK(fabsl(got - sum) <= 4e-15L * (sum + 1));
  scl_mat_release(c);
  long double product = 1;
  for (size_t i = 0; i < count; i++) {
    x[i] = 1.0 + y[i] / (double)(count + 1);
    product *= x[i];
  }
  c = mat_make(ctx, x, m, n, SCL_GENERAL);
  REQUIRE_OK(reduce_all(SCL_REDUCE_PROD, c, &got));
  CHECK(fabsl(got - product) <= 4e-16L * product * (long double)(count + 8));
  FREE(x, y);
  RELEASE(a, b, c);
}

/* A reduction over a part of a larger buffer. */
static void check_strided_sum(scl_context *ctx) {
  scl_mat *a = mat_random(ctx, 40, 30, SCL_GENERAL);
  double *x = mat_stored(a), got;
  long double want = 0;
  for (size_t j = 3; j < 20; j++) {
    for (size_t i = 5; i < 38; i++) want += x[i + j * 40];
  }
  scl_block result;
  REQUIRE_OK(scl_block_create(ctx, 1, 1, &result));
  scl_block part = scl_block_part(scl_mat_block(a), 5, 3, 33, 17);
  REQUIRE_OK(scl_reduce_block(ctx, SCL_REDUCE_SUM, part, result));
  REQUIRE_OK(ctx->engine->download(ctx, SCL_GENERAL, result, SCL_WAIT_WRITES, &got, 1));
  CHECK_NEAR(got, (double)want, 1e-14);
  scl_buffer_release(result.buffer);
  free(x);
  scl_mat_release(a);
}

/* ---- checks --------------------------------------------------------------------------------- */

static int64_t find(scl_context *ctx, scl_check what, double tol, const double *x, size_t m,
                    size_t n, scl_view view) {
  scl_mat *a = mat_make(ctx, x, m, n, view);
  int64_t index = -1;
  CHECK_OK(scl_check_matrix(what, tol, a, &index));
  scl_mat_release(a);
  return index;
}

static void check_checks(scl_context *ctx, size_t n) {
  double *x = test_alloc(n * n * sizeof *x);
  mat_spd(x, n, 10.0, 1.0);
  CHECK(find(ctx, SCL_CHECK_FINITE, 0, x, n, n, SCL_GENERAL) == 0);
  CHECK(find(ctx, SCL_CHECK_SYMMETRIC, 0, x, n, n, SCL_GENERAL) == 0);
  CHECK(find(ctx, SCL_CHECK_DIAGONAL, 0, x, n, n, SCL_GENERAL) == 0);
  const double bad[] = {NAN, INFINITY, -INFINITY};
  for (size_t k = 0; k < 3; k++) {
    size_t i = (n * 2) / 3, j = n / 3; /* on or below the diagonal */
    double keep = x[i + j * n], other = x[j + i * n];
    x[i + j * n] = bad[k];
    CHECK(find(ctx, SCL_CHECK_FINITE, 0, x, n, n, SCL_GENERAL) == (int64_t)(i + j * n + 1));
    CHECK(find(ctx, SCL_CHECK_FINITE, 0, x, n, n, SCL_LOWER) == (int64_t)(i + j * n + 1));
    CHECK(find(ctx, SCL_CHECK_FINITE, 0, x, n, n, SCL_SYMMETRIC) == (int64_t)(i + j * n + 1));
    if (i != j) {
      CHECK(find(ctx, SCL_CHECK_FINITE, 0, x, n, n, SCL_UPPER) == 0);
      CHECK(find(ctx, SCL_CHECK_SYMMETRIC, 1e-8, x, n, n, SCL_GENERAL) == (int64_t)(i + j * n + 1));
      x[j + i * n] = bad[k];
      CHECK(find(ctx, SCL_CHECK_SYMMETRIC, 1e-8, x, n, n, SCL_GENERAL) == 0);
      x[j + i * n] = other;
    }
    x[i + j * n] = keep;
    if (i != j) {
      x[i + j * n] = other + 1e-3 * fabs(other);
      CHECK(find(ctx, SCL_CHECK_SYMMETRIC, 1e-2, x, n, n, SCL_GENERAL) == 0);
      CHECK(find(ctx, SCL_CHECK_SYMMETRIC, 1e-4, x, n, n, SCL_GENERAL) == (int64_t)(i + j * n + 1));
      x[i + j * n] = keep;
    }
  }
  x[(n - 1) * (n + 1)] = -0.0;
  CHECK(find(ctx, SCL_CHECK_DIAGONAL, 0, x, n, n, SCL_GENERAL) == (int64_t)n);
  x[0] = 0.0;
  CHECK(find(ctx, SCL_CHECK_DIAGONAL, 0, x, n, n, SCL_GENERAL) == 1);
  free(x);
}

/* Quantiles and combinatorial functions have their reference in R (test-distributions.R),
 * incomplete gamma functions (test-density.R) and parts of densities (test-density-ends.R) too. */
static bool has_reference(scl_op op) {
  if (op >= SCL_OP_LOG_PGAMMA && op <= SCL_OP_LOG_QGAMMA_SLOPE) return false;
  if (op >= SCL_OP_STIRLING_SLOPE && op <= SCL_OP_LOG_RATIO) return false;
  if (op >= SCL_OP_GAMMA_POWER && op <= SCL_OP_NEG_BINOMIAL_SLOPE) return false;
  return op != SCL_OP_BESSEL_K_SCALED && op != SCL_OP_QNORM && op != SCL_OP_LOG_QNORM &&
         op != SCL_OP_LBETA && op != SCL_OP_CHOOSE && op != SCL_OP_LCHOOSE;
}

void test_arith(scl_context *ctx) {
  enum { LARGEST = 4, SHAPES };
  static const size_t shape[SHAPES][2] = {{1, 1}, {5, 3}, {0, 4}, {4, 0}, {67, 33}};
  for (int op = 0; op < SCL_OP_COUNT; op++) {
    if (scl_op_arity((scl_op)op) > 2) continue; /* test_expr.c */
    if (!has_reference((scl_op)op)) continue;
    const bool few = is_few(ctx, (scl_op)op);
    if (few && !test_turn(ctx, (size_t)op, 2)) continue;
    for (size_t s = few ? LARGEST : 0; s < SHAPES; s++) {
      check_op(ctx, (scl_op)op, shape[s][0], shape[s][1], SCL_GENERAL, SCL_GENERAL);
    }
    /* On a device every operation has two of the pairs of views and every pair an eighth of the
       operations. */
    for (int view = 0; view < 16; view++) {
      bool chosen = view % 4 == (op + view / 4) % 4 && view / 4 % 2 == op / 4 % 2 && !few;
      if (!chosen && !scl_context_is_host(ctx)) continue;
      check_op(ctx, (scl_op)op, 9, 9, (scl_view)(view / 4), (scl_view)(view % 4));
    }
  }
  test_seed(1);
  check_views(ctx);
  for (size_t s = 0; s < SHAPES; s++) {
    check_scaling(ctx, shape[s][0], shape[s][1], SCL_GENERAL);
  }
  for (int view = 0; view < 4; view++) check_scaling(ctx, 20, 20, (scl_view)view);
  check_add_diagonal(ctx, 1);
  check_add_diagonal(ctx, 33);
  static const size_t sums[][2] = {{1, 1}, {7, 9}, {0, 3}, {129, 1}, {1, 129}, {1000, 77}};
  for (size_t s = 0; s < LENGTH(sums); s++) check_sums(ctx, sums[s][0], sums[s][1]);
  check_strided_sum(ctx);
  static const size_t orders[] = {1, 2, 7, 64, 65};
  for (size_t s = 0; s < 5; s++) check_checks(ctx, orders[s]);
}
