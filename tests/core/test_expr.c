/* Lazy arithmetic: operations, sharing, limits, errors. (Random programs: test_expr_programs.c.) */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "expr_reference.h"
#include "matrices.h"
#include "program/tape.h"
#include "record.h"

static scl_mat *apply(scl_op op, scl_mat *a, scl_mat *b, double number) {
  const scl_term terms[] = {{a, 0}, {b, number}};
  scl_mat *r = NULL;
  CHECK_OK(scl_expr_apply(op, scl_op_arity(op), terms, &r));
  return r;
}

/* Takes x over. */
static scl_mat *then(scl_op op, scl_mat *x, double number) {
  scl_mat *r = apply(op, x, NULL, number);
  scl_mat_release(x);
  return r;
}

static double first_of(scl_mat *x) {
  CHECK_OK(scl_mat_force(x));
  double *stored = mat_stored(x), value = stored[0];
  free(stored);
  return value;
}

/* All operations at awkward numbers, also as constants, against the table. */
static void check_operations(scl_context *ctx) {
  static const double awkward[] = {0.0,      -0.0, 1.0,    -1.0,  2.0,    0.5,
                                   INFINITY, NAN,  1e-300, 1e300, -1e308, -INFINITY};
  enum { N = LENGTH(awkward), MOST_TOGETHER = 8 };
  double a[N * N], b[N * N], got[N * N], want[N * N];
  for (size_t k = 0; k < N * N; k++) {
    a[k] = awkward[k % N];
    b[k] = awkward[k / N];
  }
  scl_mat *x = mat_make(ctx, a, N, N, SCL_GENERAL), *y = mat_make(ctx, b, N, N, SCL_GENERAL);
  /* Of the quick tests on a device, several are one kernel. */
  const int together = test_quick() && !scl_context_is_host(ctx) ? MOST_TOGETHER : 1;
  for (int first = 0; first < SCL_OP_COUNT; first += together) {
    if (!test_turn(ctx, (size_t)(first / together), 2)) continue;
    const scl_term terms[] = {{x, 0}, {y, 0}, {NULL, 3.0}};
    const int count = SCL_OP_COUNT - first < together ? SCL_OP_COUNT - first : together;
    scl_mat *r[MOST_TOGETHER] = {NULL};
    for (int i = 0; i < count; i++) {
      const scl_op op = (scl_op)(first + i);
      CHECK_OK(scl_expr_apply(op, scl_op_arity(op), terms, &r[i]));
    }
    REQUIRE_OK(scl_expr_eval((size_t)count, r));
    for (int i = 0; i < count; i++) {
      const scl_op op = (scl_op)(first + i);
      REQUIRE_OK(scl_mat_to_host(r[i], got));
      for (size_t k = 0; k < N * N; k++) want[k] = scl_op_value(op, a[k], b[k], 3.0);
      CHECK(mat_distance(got, want, N * N) <= 4e-15);
      scl_mat_release(r[i]);
    }
  }
  RELEASE(x, y);
}

/* The last value of a tape of numbers and their operations. */
static double last_value(const scl_tape *t, int value) {
  double *x = calloc((size_t)t->values + 1, sizeof *x), result;
  for (int v = 0; v <= value; v++) {
    double a[3] = {0.0, 0.0, 0.0};
    for (int k = 0; k < t->value[v].operands; k++) a[k] = x[scl_tape_operand(t, v, k)];
    const bool given = t->value[v].kind == SCL_VALUE_NUMBER;
    x[v] = given ? t->value[v].number : scl_op_value((scl_op)t->value[v].op, a[0], a[1], a[2]);
  }
  result = value < 0 ? 0.0 : x[value];
  free(x);
  return result;
}

/* The derivatives of the table against finite differences. */
static double derivative_of(scl_op op, int by, double a, double b, double c) {
  scl_tape t;
  scl_tape_begin(&t);
  const int number[] = {scl_tape_number(&t, a), scl_tape_number(&t, b), scl_tape_number(&t, c)};
  scl_value v = {.kind = SCL_VALUE_APPLY, .op = (uint8_t)op, .operands = scl_op_arity(op)};
  v.length = 1;
  const int r = scl_tape_add_value(&t, v, number);
  const double slope = last_value(&t, scl_tape_slope(&t, r, by, scl_tape_number(&t, 1.0)));
  CHECK_OK(t.status);
  scl_tape_end(&t);
  return slope;
}

/* The special functions in each of their ranges. */
static void check_special_derivatives(void) {
  static const scl_op ops[] = {SCL_OP_GAMMA,          SCL_OP_LGAMMA,    SCL_OP_DIGAMMA,
                               SCL_OP_TRIGAMMA,       SCL_OP_SINPI,     SCL_OP_COSPI,
                               SCL_OP_TANPI,          SCL_OP_ERF,       SCL_OP_ERFC,
                               SCL_OP_PNORM,          SCL_OP_LOG_PNORM, SCL_OP_TETRAGAMMA,
                               SCL_OP_LOG_PNORM_SLOPE};
  static const double at[] = {-31.3, -20.4, -2.3, -0.6, -0.3, 0.2, 0.7,
                              1.2,   1.7,   2.8,  9.1,  13.3, 21.7};
  for (size_t k = 0; k < LENGTH(ops); k++) {
    for (size_t i = 0; i < LENGTH(at); i++) {
      const double h = 1e-5, up = scl_op_value(ops[k], at[i] + h, 0, 0);
      const double down = scl_op_value(ops[k], at[i] - h, 0, 0), slope = (up - down) / (2 * h);
      const double scale = fmax(fabs(slope), 1e-3 * fabs(up));
      CHECK(fabs(derivative_of(ops[k], 0, at[i], 0, 0) - slope) <= 1e-6 * scale);
    }
  }
}

/* Those of densities, of positive numbers. */
static void check_density_derivatives(void) {
  static const double at[] = {0.04, 0.3, 1.7, 2.8, 11.9, 12.2, 55.0};
  const size_t count = LENGTH(at);
  for (size_t i = 0; i < count; i++) {
    const double h = 1e-5 * at[i], a = at[i];
    double slope = scl_op_value(SCL_OP_LOG1M_EXP, -a + h, 0, 0);
    slope = (slope - scl_op_value(SCL_OP_LOG1M_EXP, -a - h, 0, 0)) / (2 * h);
    CHECK(fabs(derivative_of(SCL_OP_LOG1M_EXP, 0, -a, 0, 0) - slope) <= 1e-7 * fabs(slope));
    slope = scl_op_value(SCL_OP_STIRLING, a + h, 0, 0) - scl_op_value(SCL_OP_STIRLING, a - h, 0, 0);
    slope /= 2 * h;
    CHECK(fabs(derivative_of(SCL_OP_STIRLING, 0, a, 0, 0) - slope) <= 1e-7 * fabs(slope) + 1e-9);
    for (size_t j = 0; j < count; j++) {
      const double b = at[j] * 1.03, g = 1e-5 * b;
      slope = scl_op_value(SCL_OP_DEVIANCE, a + h, b, 0);
      slope = (slope - scl_op_value(SCL_OP_DEVIANCE, a - h, b, 0)) / (2 * h);
      CHECK_NEAR(derivative_of(SCL_OP_DEVIANCE, 0, a, b, 0), slope, 1e-8 * (1 + b));
      slope = scl_op_value(SCL_OP_DEVIANCE, a, b + g, 0);
      slope = (slope - scl_op_value(SCL_OP_DEVIANCE, a, b - g, 0)) / (2 * g);
      CHECK_NEAR(derivative_of(SCL_OP_DEVIANCE, 1, a, b, 0), slope, 1e-8 * (1 + a / b));
    }
  }
}

static void check_derivatives(void) {
  const double h = 1e-6;
  for (int op = 0; op < SCL_OP_COUNT; op++) {
    /* Inside every domain; acosh() needs more than one, the logarithm of 1 - exp() less than 0. */
    const double first = op == SCL_OP_ACOSH ? 1.7 : op == SCL_OP_LOG1M_EXP ? -0.43 : 0.43;
    const bool ordered = op == SCL_OP_STIRLING_SLOPE; /* its second operand is a whole number */
    const double at[3] = {first, ordered ? 2.0 : 0.71, 0.37};
    for (int by = 0; by < (ordered ? 1 : scl_op_arity((scl_op)op)); by++) {
      if (!scl_op_has_derivative((scl_op)op, by)) continue;
      double up[3] = {at[0], at[1], at[2]}, down[3] = {at[0], at[1], at[2]};
      up[by] += h;
      down[by] -= h;
      /* the derivative of a shift is 0 by its definition */
      const double difference = op == SCL_OP_SHIFT
                                    ? 0.0
                                    : (scl_op_value((scl_op)op, up[0], up[1], up[2]) -
                                       scl_op_value((scl_op)op, down[0], down[1], down[2])) /
                                          (2 * h);
      CHECK_NEAR(derivative_of((scl_op)op, by, at[0], at[1], at[2]), difference, 1e-7);
    }
  }
}

static void check_empty(scl_context *ctx) {
  scl_mat *x = mat_random(ctx, 0, 3, SCL_GENERAL), *r = NULL;
  REQUIRE_OK(scl_expr_reduce(SCL_REDUCE_SUM, x, SCL_TOTAL, &r));
  CHECK(first_of(r) == 0.0);
  scl_mat_release(r);
  REQUIRE_OK(scl_expr_reduce(SCL_REDUCE_MAX, x, SCL_BY_COLUMN, &r));
  CHECK(scl_mat_ncol(r) == 3 && first_of(r) == -INFINITY);
  scl_mat_release(r);
  REQUIRE_OK(scl_expr_reduce(SCL_REDUCE_WHICH_MAX, x, SCL_TOTAL, &r));
  CHECK(first_of(r) == 0.0);
  scl_mat_release(r);
  REQUIRE_OK(scl_expr_reduce(SCL_REDUCE_SUM, x, SCL_BY_ROW, &r));
  CHECK(scl_mat_nrow(r) == 0);
  CHECK_OK(scl_mat_force(r));
  scl_mat_release(r);
  r = apply(SCL_OP_EXP, x, NULL, 0);
  CHECK_OK(scl_mat_force(r));
  CHECK(scl_mat_nrow(r) == 0 && scl_mat_ncol(r) == 3);
  RELEASE(r, x);
}

/* Missing values: sums and extremes are NaN, which_max and which_min skip them. */
static void check_missing(scl_context *ctx) {
  const double data[] = {NAN, 1, 5, 5, NAN, 2};
  static const double want[SCL_REDUCE_COUNT] = {
      [SCL_REDUCE_SUM] = NAN,      [SCL_REDUCE_SUM_LOG] = NAN, [SCL_REDUCE_PROD] = NAN,
      [SCL_REDUCE_MIN] = NAN,      [SCL_REDUCE_MAX] = NAN,     [SCL_REDUCE_COUNT_NAN] = 2,
      [SCL_REDUCE_COUNT_TRUE] = 4, [SCL_REDUCE_WHICH_MAX] = 3, [SCL_REDUCE_WHICH_MIN] = 2};
  scl_mat *x = mat_make(ctx, data, 6, 1, SCL_GENERAL);
  for (int op = 0; op < SCL_REDUCE_COUNT; op++) {
    scl_mat *r = NULL;
    REQUIRE_OK(scl_expr_reduce((scl_reduction)op, x, SCL_TOTAL, &r));
    CHECK_NEAR(first_of(r), want[op], 0);
    scl_mat_release(r);
  }
  scl_mat_release(x);
}

/* One kernel for several results; values are kept; inner matrices become leaves. */
static void check_sharing(scl_context *ctx) {
  scl_mat *x = mat_random(ctx, 30, 20, SCL_GENERAL), *sum = NULL, *max = NULL;
  scl_mat *e = apply(SCL_OP_EXP, x, NULL, 0), *d = apply(SCL_OP_ADD, e, NULL, 1);
  REQUIRE_OK(scl_expr_reduce(SCL_REDUCE_SUM, e, SCL_TOTAL, &sum));
  REQUIRE_OK(scl_expr_reduce(SCL_REDUCE_MAX, d, SCL_TOTAL, &max));
  CHECK(scl_expr_about(max).nodes == 5 && scl_expr_about(max).depth == 3);
  scl_mat *all[] = {d, sum, e, max, d};
  const uint64_t before = scl_expr_counts().evaluated;
  REQUIRE_OK(scl_expr_eval(5, all));
  CHECK(scl_expr_counts().evaluated == before + 1);
  REQUIRE_OK(scl_expr_eval(5, all));
  CHECK(scl_expr_counts().evaluated == before + 1);
  CHECK(!scl_expr_about(d).pending && scl_expr_about(d).nodes == 0);
  scl_mat *more = apply(SCL_OP_MUL, e, NULL, 2);
  CHECK(scl_expr_about(more).nodes == 3);
  RELEASE(x, e, d, sum, max, more);
}

/* The graph releases its operands. */
static void check_memory(scl_context *ctx) {
  const uint64_t before = scl_context_memory(ctx).live;
  scl_mat *x = mat_random(ctx, 64, 64, SCL_GENERAL), *a = apply(SCL_OP_EXP, x, NULL, 0);
  const uint64_t one = scl_context_memory(ctx).live - before;
  scl_mat_release(x);
  CHECK(scl_context_memory(ctx).live == before + one); /* held by the expression */
  CHECK_OK(scl_mat_force(a));
  CHECK(scl_context_memory(ctx).live == before + one); /* by its value */
  scl_mat_release(a);
  CHECK(scl_context_memory(ctx).live == before);
}

/* Chains beyond the limit of depth, and graphs with more steps, leaves and numbers than a kernel
 * takes: the same values. */
static void check_limits(scl_context *ctx) {
  scl_mat *x = mat_random(ctx, 5, 4, SCL_GENERAL), *y = scl_mat_retain(x);
  double *want = mat_stored(x), *got;
  const uint64_t cut = scl_expr_counts().cut;
  for (int k = 0; k < 3 * SCL_EXPR_DEPTH; k++) {
    y = then(SCL_OP_MUL, then(SCL_OP_ADD, y, k), 0.5);
    CHECK(scl_expr_about(y).depth <= SCL_EXPR_DEPTH);
    for (int i = 0; i < 20; i++) want[i] = (want[i] + k) * 0.5;
  }
  REQUIRE_OK(scl_mat_force(y));
  got = mat_stored(y);
  CHECK(mat_distance(got, want, 20) == 0.0);
  free(got);
  scl_mat_release(y);
  /* A balanced sum of 64 matrices, each with another number. */
  scl_mat *level[64];
  for (int i = 0; i < 20; i++) want[i] = 0.0;
  for (int k = 0; k < 64; k++) {
    scl_mat *leaf = mat_random(ctx, 5, 4, SCL_GENERAL);
    double *stored = mat_stored(leaf);
    for (int i = 0; i < 20; i++) want[i] += stored[i] * (k + 0.25);
    free(stored);
    level[k] = then(SCL_OP_MUL, leaf, k + 0.25);
  }
  for (int count = 64; count > 1; count /= 2) {
    for (int k = 0; k < count / 2; k++) {
      scl_mat *a = level[2 * k], *b = level[2 * k + 1];
      level[k] = apply(SCL_OP_ADD, a, b, 0);
      RELEASE(a, b);
    }
  }
  REQUIRE_OK(scl_mat_force(level[0]));
  CHECK(scl_expr_counts().cut > cut);
  got = mat_stored(level[0]);
  CHECK(mat_distance(got, want, 20) <= 1e-13);
  FREE(got, want);
  RELEASE(level[0], x);
}

/* A graph that refers to itself twice at every level: 2^60 paths, 60 nodes. */
static void check_doubling(scl_context *ctx) {
  scl_mat *x = mat_random(ctx, 3, 3, SCL_GENERAL), *y = scl_mat_retain(x);
  for (int k = 0; k < 60; k++) {
    scl_mat *next = apply(SCL_OP_ADD, y, y, 0);
    scl_mat_release(y);
    y = next;
  }
  char text[100];
  scl_expr_text(y, text, sizeof text);
  CHECK(strlen(text) == sizeof text - 1);
  CHECK(scl_expr_about(y).nodes == 62); /* two leaves and 60 sums */
  const double from = first_of(x);
  CHECK(first_of(y) == ldexp(from, 60));
  RELEASE(x, y);
}

static void check_arguments(scl_context *ctx) {
  scl_mat *x = mat_random(ctx, 4, 3, SCL_GENERAL), *y = mat_random(ctx, 3, 3, SCL_GENERAL);
  scl_mat *r = NULL, *u = NULL;
  const scl_term both[] = {{x, 0}, {y, 0}}, numbers[] = {{NULL, 1}, {NULL, 2}};
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_apply(SCL_OP_ADD, 2, both, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_apply(SCL_OP_ADD, 2, numbers, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_apply(SCL_OP_EXP, 2, both, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_apply(SCL_OP_COUNT, 0, both, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, record_broadcast(x, 4, 6, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, record_part(x, 1, 0, 4, 1, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, record_part(x, (size_t)-1, 0, 2, 1, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, record_with_part(x, 2, 0, y, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, record_matvec(x, y, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, record_index(ctx, SCL_TOTAL, 2, 2, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, record_placeholder(ctx, 2, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, record_reduce_with(x, x, 0, SCL_TOTAL, &r));
  REQUIRE_OK(record_placeholder(ctx, 0, &u));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_mat_force(u));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_reduce(SCL_REDUCE_SUM, u, SCL_TOTAL, &r));
  CHECK(r == NULL);
  scl_mat *mixed = apply(SCL_OP_MUL, x, NULL, 2);
  CHECK_STATUS(SCL_E_ARGUMENT, record_reduce_with(x, mixed, 0, SCL_TOTAL, &r));
  RELEASE(x, y, u, mixed);
}

/* Different structures have different sources, which contain no numbers and sizes. */
static void check_source(scl_context *ctx) {
  scl_mat *x = mat_random(ctx, 6, 5, SCL_GENERAL);
  scl_mat *a = apply(SCL_OP_MUL, x, NULL, 1234.5), *b = apply(SCL_OP_MUL, x, NULL, -7);
  scl_mat *c = apply(SCL_OP_ADD, x, NULL, -7);
  char *text[3] = {NULL, NULL, NULL};
  REQUIRE_OK(scl_expr_source(1, &a, &text[0]));
  REQUIRE_OK(scl_expr_source(1, &b, &text[1]));
  REQUIRE_OK(scl_expr_source(1, &c, &text[2]));
  CHECK(strcmp(text[0], text[1]) == 0 && strcmp(text[0], text[2]) != 0);
  CHECK(strstr(text[0], "1234") == NULL && strstr(text[0], "__kernel void expr(") != NULL);
  CHECK(scl_expr_about(a).pending);
  for (int k = 0; k < 3; k++) free(text[k]);
  RELEASE(x, a, b, c);
}

/* Large enough for several tiles and groups; sums of every margin are the same bits twice. */
static void check_large(scl_context *ctx) {
  static const size_t shape[][2] = {{70000, 1}, {1, 70000}, {300, 301}, {3, 20000}, {20000, 3}};
  for (size_t s = 0; s < (test_small() ? 0 : LENGTH(shape)); s++) {
    const size_t m = shape[s][0], n = shape[s][1];
    scl_mat *x = mat_random(ctx, m, n, SCL_GENERAL), *t = NULL;
    double *stored = mat_stored(x);
    REQUIRE_OK(record_transpose(x, &t));
    for (int margin = 0; margin < 3; margin++) {
      for (int op = 0; op < SCL_REDUCE_COUNT; op++) {
        if (op != SCL_REDUCE_SUM && op != SCL_REDUCE_MAX && op != SCL_REDUCE_WHICH_MIN) continue;
        scl_mat *r[2] = {NULL, NULL}, *of_t = NULL;
        size_t rows, columns;
        double *want =
            expr_reduced((scl_reduction)op, stored, m, n, (scl_margin)margin, &rows, &columns);
        for (int twice = 0; twice < 2; twice++) {
          REQUIRE_OK(scl_expr_reduce((scl_reduction)op, x, (scl_margin)margin, &r[twice]));
          REQUIRE_OK(scl_mat_force(r[twice]));
        }
        double *first = mat_stored(r[0]), *second = mat_stored(r[1]);
        CHECK(mat_distance(first, want, rows * columns) <= 1e-11);
        CHECK(memcmp(first, second, rows * columns * sizeof *first) == 0);
        if (margin != 0) { /* rows are the columns of the transpose */
          REQUIRE_OK(scl_expr_reduce((scl_reduction)op, t, (scl_margin)(3 - margin), &of_t));
          REQUIRE_OK(scl_mat_force(of_t));
          double *third = mat_stored(of_t);
          CHECK(mat_distance(third, want, rows * columns) <= 1e-11);
          free(third);
        }
        FREE(first, second, want);
        RELEASE(r[0], r[1], of_t);
      }
    }
    scl_mat *back = apply(SCL_OP_ADD, t, t, 0);
    REQUIRE_OK(scl_mat_force(back));
    double *got = mat_stored(back);
    bool same = true;
    for (size_t i = 0; i < m; i++) {
      for (size_t j = 0; j < n; j++) same = same && got[j + i * n] == 2 * stored[i + j * m];
    }
    CHECK(same);
    FREE(got, stored);
    RELEASE(back, t, x);
  }
}

/* A transposed operand and one that is not, reduced. */
static void check_transposed(scl_context *ctx) {
  const size_t m = 300, n = 301;
  if (test_small()) return;
  scl_mat *x = mat_random(ctx, n, m, SCL_GENERAL), *y = mat_random(ctx, m, n, SCL_GENERAL);
  scl_mat *t = NULL, *sums = NULL;
  REQUIRE_OK(record_transpose(x, &t));
  scl_mat *product = apply(SCL_OP_MUL, t, y, 0);
  REQUIRE_OK(scl_expr_reduce(SCL_REDUCE_SUM, product, SCL_BY_ROW, &sums));
  REQUIRE_OK(scl_mat_force(sums));
  double *a = mat_stored(x), *b = mat_stored(y), *got = mat_stored(sums), *want;
  want = test_alloc(m * sizeof *want);
  for (size_t i = 0; i < m; i++) {
    want[i] = 0;
    for (size_t j = 0; j < n; j++) want[i] += a[j + i * n] * b[i + j * m];
  }
  CHECK(mat_distance(got, want, m) <= 1e-12);
  FREE(a, b, got, want);
  RELEASE(x, y, t, product, sums);
}

/* y minus a product, stored and summed in one kernel, against the host's sums. */
static void check_product_inside(scl_context *ctx, size_t m, size_t k) {
  scl_mat *x = mat_random(ctx, m, k, SCL_GENERAL);
  scl_mat *b = mat_random(ctx, k, 1, SCL_GENERAL), *y = mat_random(ctx, m, 1, SCL_GENERAL);
  scl_mat *mu = NULL, *sum = NULL;
  REQUIRE_OK(record_matvec(x, b, &mu));
  const uint64_t before = scl_expr_counts().evaluated;
  scl_mat *r = apply(SCL_OP_SUB, y, mu, 0), *square = apply(SCL_OP_SQUARE, r, NULL, 0);
  REQUIRE_OK(scl_expr_reduce(SCL_REDUCE_SUM, square, SCL_TOTAL, &sum));
  scl_mat *both[] = {r, sum};
  REQUIRE_OK(scl_expr_eval(2, both));
  CHECK(scl_expr_counts().evaluated == before + 1);
  double *sx = mat_stored(x), *sb = mat_stored(b), *sy = mat_stored(y), *got = mat_stored(r);
  double want = 0, worst = 0;
  for (size_t i = 0; i < m; i++) {
    double d = sy[i];
    for (size_t l = 0; l < k; l++) d -= sx[i + l * m] * sb[l];
    worst = fmax(worst, fabs(d - got[i]));
    want += d * d;
  }
  CHECK(worst < 1e-13);
  CHECK_NEAR(first_of(sum) / want, 1.0, 1e-12);
  FREE(sx, sb, sy, got);
  RELEASE(b, y, x, mu, r, square, sum);
}

/* Enough rows for a product inside the kernel: in pairs of rows, with an odd one left over, and by
 * the row, as one column of an odd length is; with columns left over from the last batch. */
static void check_regression(scl_context *ctx) {
  static const size_t columns[] = {1, 3, 4, 10};
  if (test_small()) return;
  for (size_t c = 0; c < LENGTH(columns); c++) {
    check_product_inside(ctx, 4800, columns[c]);
    check_product_inside(ctx, 4801, columns[c]);
  }
}

/* A part of a product, put into a column of as many rows: at other rows there is nothing to read
 * (the sanitizers detect it). */
static void check_part_of_product(scl_context *ctx) {
  const size_t m = 5000, k = 2, n = 10;
  if (test_small()) return;
  scl_mat *x = mat_random(ctx, m, k, SCL_GENERAL), *b = mat_random(ctx, k, 1, SCL_GENERAL);
  scl_mat *y = mat_random(ctx, m, 1, SCL_GENERAL), *mu = NULL, *part = NULL, *r = NULL;
  REQUIRE_OK(record_matvec(x, b, &mu));
  REQUIRE_OK(record_part(mu, 0, 0, n, 1, &part));
  REQUIRE_OK(record_with_part(y, m - n, 0, part, &r));
  REQUIRE_OK(scl_mat_force(r));
  double *sx = mat_stored(x), *sb = mat_stored(b), *want = mat_stored(y), *got = mat_stored(r);
  for (size_t i = 0; i < n; i++) want[m - n + i] = sx[i] * sb[0] + sx[i + m] * sb[1];
  CHECK(mat_distance(got, want, m) <= 1e-14);
  FREE(sx, sb, want, got);
  RELEASE(x, b, y, mu, part, r);
}

void test_expr(scl_context *ctx) {
  check_operations(ctx);
  check_derivatives();
  check_special_derivatives();
  check_density_derivatives();
  check_empty(ctx);
  check_missing(ctx);
  check_sharing(ctx);
  check_memory(ctx);
  check_limits(ctx);
  check_doubling(ctx);
  check_arguments(ctx);
  check_source(ctx);
  check_large(ctx);
  check_transposed(ctx);
  check_regression(ctx);
  check_part_of_product(ctx);
}
