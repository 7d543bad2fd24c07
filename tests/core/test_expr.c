/* Lazy arithmetic: random programs over matrices against the same operations one by one on arrays;
 * views, limits, sharing, faults. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/scl_expr_graph.h"
#include "matrices.h"

/* ---- random programs ------------------------------------------------------------------------ */

/* A matrix of the program, pending or not, with what it should hold. */
typedef struct {
  scl_mat *x;
  double *want;
  size_t m, n;
  bool exact; /* every engine gives the same bits: may be compared, cut, rounded */
} item;

enum { ITEMS = 40, OPERATIONS = 24 };

typedef struct {
  scl_context *ctx;
  item at[ITEMS];
  int count;
} program;

static size_t pick(size_t n) {
  size_t k = (size_t)((test_random() + 1.0) / 2.0 * (double)n);
  return k < n ? k : n - 1;
}

static item *pick_item(program *p) {
  return &p->at[pick((size_t)p->count)];
}

/* Adds a result; what grew too large or is not finite is dropped, so that rounding stays small. */
static void add_item(program *p, scl_mat *x, double *want, size_t m, size_t n, bool exact) {
  bool fine = x != NULL && p->count < ITEMS;
  for (size_t k = 0; k < m * n && fine; k++) fine = fabs(want[k]) < 1e4;
  if (!fine) {
    scl_mat_release(x);
    free(want);
    return;
  }
  CHECK(scl_mat_nrow(x) == m && scl_mat_ncol(x) == n);
  p->at[p->count++] = (item){x, want, m, n, exact};
}

static const scl_op exact_unary[] = {SCL_OP_NEG,  SCL_OP_ABS,     SCL_OP_SQUARE, SCL_OP_FLOOR,
                                     SCL_OP_SIGN, SCL_OP_CEILING, SCL_OP_NOT,    SCL_OP_ROUND};
static const scl_op smooth_unary[] = {SCL_OP_TANH, SCL_OP_SIN, SCL_OP_ATAN, SCL_OP_LOG1P_EXP,
                                      SCL_OP_INV_LOGIT};
static const scl_op exact_binary[] = {SCL_OP_ADD, SCL_OP_SUB, SCL_OP_MUL, SCL_OP_PMIN, SCL_OP_PMAX,
                                      SCL_OP_LT,  SCL_OP_GE,  SCL_OP_EQ,  SCL_OP_AND,  SCL_OP_OR};
enum { CONTINUOUS = 5 }; /* of exact_binary, from the first */

#define LENGTH(x) (sizeof(x) / sizeof(x)[0])

static void step_unary(program *p) {
  item *a = pick_item(p);
  const bool exact = a->exact && pick(2) == 0;
  const scl_op op =
      exact ? exact_unary[pick(LENGTH(exact_unary))] : smooth_unary[pick(LENGTH(smooth_unary))];
  scl_term term = {a->x, 0};
  scl_mat *r = NULL;
  double *want = test_alloc((a->m * a->n + 1) * sizeof *want);
  for (size_t k = 0; k < a->m * a->n; k++) want[k] = scl_op_value(op, a->want[k], 0, 0);
  CHECK_OK(scl_expr_apply(op, 1, &term, &r));
  add_item(p, r, want, a->m, a->n, exact);
}

/* Another item of this shape, or a column that meets it; NULL where there is none. */
static item *pick_partner(program *p, const item *a) {
  for (int tries = 0; tries < 20; tries++) {
    item *b = pick_item(p);
    if (b->m == a->m && (b->n == a->n || b->n == 1)) return b;
  }
  return NULL;
}

static double value_at(const item *a, size_t i, size_t j) {
  return a->want[i + (a->n == 1 ? 0 : j) * a->m];
}

static void step_binary(program *p) {
  item *a = pick_item(p), *b = pick(4) == 0 ? NULL : pick_partner(p, a);
  const double number = (double)pick(9) * 0.5 - 2.0;
  const bool exact = a->exact && (b == NULL || b->exact), swap = pick(2) == 0;
  const scl_op op = exact_binary[pick(exact ? LENGTH(exact_binary) : CONTINUOUS)];
  scl_term terms[2] = {{a->x, 0}, {b != NULL ? b->x : NULL, number}};
  if (swap) {
    scl_term first = terms[0];
    terms[0] = terms[1];
    terms[1] = first;
  }
  scl_mat *r = NULL;
  double *want = test_alloc((a->m * a->n + 1) * sizeof *want);
  for (size_t j = 0; j < a->n; j++) {
    for (size_t i = 0; i < a->m; i++) {
      const double u = a->want[i + j * a->m], v = b != NULL ? value_at(b, i, j) : number;
      want[i + j * a->m] = swap ? scl_op_value(op, v, u, 0) : scl_op_value(op, u, v, 0);
    }
  }
  CHECK_OK(scl_expr_apply(op, 2, terms, &r));
  add_item(p, r, want, a->m, a->n, exact);
}

static void step_choice(program *p) {
  item *a = pick_item(p), *b = pick_partner(p, a);
  if (!a->exact || b == NULL) return;
  scl_term terms[3] = {{a->x, 0}, {b->x, 0}, {NULL, 0.25}};
  scl_mat *r = NULL;
  double *want = test_alloc((a->m * a->n + 1) * sizeof *want);
  for (size_t j = 0; j < a->n; j++) {
    for (size_t i = 0; i < a->m; i++) {
      want[i + j * a->m] =
          scl_op_value(SCL_OP_IFELSE, a->want[i + j * a->m], value_at(b, i, j), 0.25);
    }
  }
  CHECK_OK(scl_expr_apply(SCL_OP_IFELSE, 3, terms, &r));
  add_item(p, r, want, a->m, a->n, b->exact);
}

static void step_transpose(program *p) {
  item *a = pick_item(p);
  scl_mat *r = NULL;
  double *want = test_alloc((a->m * a->n + 1) * sizeof *want);
  for (size_t j = 0; j < a->n; j++) {
    for (size_t i = 0; i < a->m; i++) want[j + i * a->n] = a->want[i + j * a->m];
  }
  CHECK_OK(scl_expr_transpose(a->x, &r));
  add_item(p, r, want, a->n, a->m, a->exact);
}

static void step_part(program *p) {
  item *a = pick_item(p);
  if (a->m == 0 || a->n == 0) return;
  const size_t i0 = pick(a->m), j0 = pick(4) == 0 && i0 < a->n ? i0 : pick(a->n);
  const size_t m = 1 + pick(a->m - i0), n = 1 + pick(a->n - j0);
  scl_mat *r = NULL;
  double *want = test_alloc(m * n * sizeof *want);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) want[i + j * m] = a->want[i0 + i + (j0 + j) * a->m];
  }
  CHECK_OK(scl_expr_part(a->x, i0, j0, m, n, &r));
  add_item(p, r, want, m, n, a->exact);
}

static void step_with_part(program *p) {
  item *a = pick_item(p), *b = pick_item(p);
  if (b->m > a->m || b->n > a->n) return;
  const size_t i0 = pick(a->m - b->m + 1), j0 = pick(a->n - b->n + 1), count = a->m * a->n;
  scl_mat *r = NULL;
  double *want = test_alloc((count + 1) * sizeof *want);
  memcpy(want, a->want, count * sizeof *want);
  for (size_t j = 0; j < b->n; j++) {
    for (size_t i = 0; i < b->m; i++) want[i0 + i + (j0 + j) * a->m] = b->want[i + j * b->m];
  }
  CHECK_OK(scl_expr_with_part(a->x, i0, j0, b->x, &r));
  add_item(p, r, want, a->m, a->n, a->exact && b->exact);
}

static void step_broadcast(program *p) {
  item *a = pick_item(p);
  if (a->m != 1 && a->n != 1) return;
  const size_t m = a->m == 1 ? 1 + pick(9) : a->m, n = a->n == 1 ? 1 + pick(9) : a->n;
  scl_mat *r = NULL;
  double *want = test_alloc((m * n + 1) * sizeof *want);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      want[i + j * m] = a->want[(a->m == 1 ? 0 : i) + (a->n == 1 ? 0 : j) * a->m];
    }
  }
  CHECK_OK(scl_expr_broadcast(a->x, m, n, &r));
  add_item(p, r, want, m, n, a->exact);
}

static void step_index(program *p) {
  const item *a = pick_item(p);
  const bool rows = pick(2) == 0;
  scl_mat *r = NULL;
  double *want = test_alloc((a->m * a->n + 1) * sizeof *want);
  for (size_t j = 0; j < a->n; j++) {
    for (size_t i = 0; i < a->m; i++) want[i + j * a->m] = (double)(rows ? i : j) + 1.0;
  }
  CHECK_OK(scl_expr_index(p->ctx, rows ? SCL_BY_ROW : SCL_BY_COLUMN, a->m, a->n, &r));
  add_item(p, r, want, a->m, a->n, true);
}

static void step_matvec(program *p) {
  item *a = pick_item(p), *b = pick_item(p);
  if (b->n != 1 || b->m != a->n) return;
  scl_mat *r = NULL;
  double *want = test_alloc((a->m + 1) * sizeof *want);
  for (size_t i = 0; i < a->m; i++) {
    want[i] = 0.0;
    for (size_t l = 0; l < a->n; l++) want[i] += a->want[i + l * a->m] * b->want[l];
  }
  CHECK_OK(scl_expr_matvec(a->x, b->x, &r));
  add_item(p, r, want, a->m, 1, false);
}

/* ---- reductions of arrays ------------------------------------------------------------------- */

static double reduce_array(scl_reduction op, size_t count, size_t step, const double *x) {
  double r = scl_reduction_identity(op), place = 0;
  for (size_t k = 0; k < count; k++) {
    const double v = x[k * step];
    switch (op) {
    case SCL_REDUCE_SUM:
      r += v;
      break;
    case SCL_REDUCE_PROD:
      r *= v;
      break;
    case SCL_REDUCE_MIN:
      r = isnan(r) || isnan(v) ? NAN : fmin(r, v);
      break;
    case SCL_REDUCE_MAX:
      r = isnan(r) || isnan(v) ? NAN : fmax(r, v);
      break;
    case SCL_REDUCE_COUNT_TRUE:
      r += !isnan(v) && v != 0;
      break;
    case SCL_REDUCE_COUNT_NAN:
      r += isnan(v) != 0;
      break;
    default: { /* which_max, which_min */
      const bool better = op == SCL_REDUCE_WHICH_MAX ? v > r : v < r;
      if (!isnan(v) && (place == 0 || better)) {
        r = v;
        place = (double)k + 1;
      }
    }
    }
  }
  return scl_reduces_to_index(op) ? place : r;
}

/* The reference of a reduction over a margin; free it. */
static double *reduce_item(scl_reduction op, const item *a, scl_margin margin, size_t *m,
                           size_t *n) {
  *m = margin == SCL_BY_ROW ? a->m : 1;
  *n = margin == SCL_BY_COLUMN ? a->n : 1;
  double *want = test_alloc((*m * *n + 1) * sizeof *want);
  for (size_t k = 0; k < *m * *n; k++) {
    want[k] = margin == SCL_TOTAL    ? reduce_array(op, a->m * a->n, 1, a->want)
              : margin == SCL_BY_ROW ? reduce_array(op, a->n, a->m, a->want + k)
                                     : reduce_array(op, a->m, 1, a->want + k * a->m);
  }
  return want;
}

static void step_reduce(program *p) {
  static const scl_reduction ops[] = {
      SCL_REDUCE_SUM,       SCL_REDUCE_MIN,       SCL_REDUCE_MAX,      SCL_REDUCE_COUNT_TRUE,
      SCL_REDUCE_WHICH_MAX, SCL_REDUCE_WHICH_MIN, SCL_REDUCE_COUNT_NAN};
  item *a = pick_item(p);
  const scl_reduction op = ops[pick(a->exact ? LENGTH(ops) : 3)];
  const scl_margin margin = (scl_margin)pick(3);
  scl_mat *r = NULL;
  size_t m, n;
  if (a->m == 0 || a->n == 0) return; /* identities may be infinite: test_empty() */
  double *want = reduce_item(op, a, margin, &m, &n);
  CHECK_OK(scl_expr_reduce(op, a->x, margin, &r));
  add_item(p, r, want, m, n, a->exact && op != SCL_REDUCE_SUM);
}

/* The largest absolute value, by a combining expression. */
static void step_reduce_with(program *p) {
  item *a = pick_item(p);
  const scl_margin margin = (scl_margin)pick(3);
  scl_mat *u = NULL, *v = NULL, *abs_u = NULL, *abs_v = NULL, *combine = NULL, *r = NULL;
  size_t m, n;
  if (a->m == 0 || a->n == 0) return;
  double *copy = test_alloc(a->m * a->n * sizeof *copy);
  for (size_t k = 0; k < a->m * a->n; k++) copy[k] = fabs(a->want[k]);
  const item absolute = {a->x, copy, a->m, a->n, a->exact};
  double *want = reduce_item(SCL_REDUCE_MAX, &absolute, margin, &m, &n);
  free(copy);
  CHECK_OK(scl_expr_placeholder(p->ctx, 0, &u));
  CHECK_OK(scl_expr_placeholder(p->ctx, 1, &v));
  CHECK_OK(scl_expr_apply(SCL_OP_ABS, 1, &(scl_term){u, 0}, &abs_u));
  CHECK_OK(scl_expr_apply(SCL_OP_ABS, 1, &(scl_term){v, 0}, &abs_v));
  const scl_term both[] = {{abs_u, 0}, {abs_v, 0}};
  CHECK_OK(scl_expr_apply(SCL_OP_PMAX, 2, both, &combine));
  CHECK_OK(scl_expr_reduce_with(a->x, combine, 0.0, margin, &r));
  scl_mat *made[] = {u, v, abs_u, abs_v, combine};
  for (size_t k = 0; k < LENGTH(made); k++) scl_mat_release(made[k]);
  /* One element is not combined with anything, or with the identity: both are right. */
  if ((margin == SCL_TOTAL ? a->m * a->n : margin == SCL_BY_ROW ? a->n : a->m) == 1) {
    scl_mat_release(r);
    free(want);
    return;
  }
  add_item(p, r, want, m, n, a->exact);
}

/* ---- running programs ----------------------------------------------------------------------- */

static void check_item(const item *a) {
  CHECK(!scl_expr_about(a->x).pending);
  double *got = mat_stored(a->x);
  if (a->exact) {
    bool same = true;
    for (size_t k = 0; k < a->m * a->n; k++) same = same && got[k] == a->want[k];
    CHECK(same);
  } else {
    CHECK(mat_distance(got, a->want, a->m * a->n) <= 1e-9);
  }
  CHECK(mat_is_canonical(got, a->m, a->n, scl_mat_view(a->x)));
  free(got);
}

static void add_leaf(program *p, size_t m, size_t n, scl_view view) {
  scl_mat *x = mat_random(p->ctx, m, n, view);
  add_item(p, x, mat_stored(x), m, n, true);
}

static void run_program(scl_context *ctx, size_t m, size_t n) {
  static void (*const steps[])(program *) = {
      step_unary,  step_unary,       step_binary,    step_binary, step_binary,
      step_choice, step_transpose,   step_part,      step_index,  step_broadcast,
      step_reduce, step_reduce_with, step_with_part, step_matvec};
  program p = {.ctx = ctx};
  add_leaf(&p, m, n, SCL_GENERAL);
  add_leaf(&p, m, n, pick(2) == 0 ? SCL_LOWER : SCL_UPPER);
  add_leaf(&p, m, m, SCL_SYMMETRIC);
  add_leaf(&p, m, 1, SCL_GENERAL);
  add_leaf(&p, 1, n, SCL_GENERAL);
  for (int k = 0; k < OPERATIONS; k++) {
    steps[pick(LENGTH(steps))](&p);
    if (pick(8) == 0) CHECK_OK(scl_mat_force(pick_item(&p)->x));
  }
  scl_mat *all[ITEMS];
  for (int k = 0; k < p.count; k++) all[k] = p.at[k].x;
  CHECK_OK(scl_expr_eval((size_t)p.count, all));
  for (int k = 0; k < p.count; k++) {
    check_item(&p.at[k]);
    scl_mat_release(p.at[k].x);
    free(p.at[k].want);
  }
}

/* ---- single cases --------------------------------------------------------------------------- */

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
  enum { N = sizeof awkward / sizeof *awkward };
  double a[N * N], b[N * N], got[N * N], want[N * N];
  for (size_t k = 0; k < N * N; k++) {
    a[k] = awkward[k % N];
    b[k] = awkward[k / N];
  }
  scl_mat *x = mat_make(ctx, a, N, N, SCL_GENERAL), *y = mat_make(ctx, b, N, N, SCL_GENERAL);
  for (int op = 0; op < SCL_OP_COUNT; op++) {
    const scl_term terms[] = {{x, 0}, {y, 0}, {NULL, 3.0}};
    scl_mat *r = NULL;
    CHECK_OK(scl_expr_apply((scl_op)op, scl_op_arity((scl_op)op), terms, &r));
    REQUIRE_OK(scl_mat_force(r));
    REQUIRE_OK(scl_mat_to_host(r, got));
    for (size_t k = 0; k < N * N; k++) want[k] = scl_op_value((scl_op)op, a[k], b[k], 3.0);
    CHECK(mat_distance(got, want, N * N) <= 4e-15);
    scl_mat_release(r);
  }
  scl_mat_release(x);
  scl_mat_release(y);
}

/* The derivatives of the table against differences. */
static double derivative_of(scl_op op, int by, double a, double b, double c) {
  const double r = scl_op_value(op, a, b, c);
  (void)r, (void)a, (void)b, (void)c;
  switch (op) {
#define SCL_UNARY(NAME, name, expression, da)                                                      \
  case SCL_OP_##NAME:                                                                              \
    return da;
#define SCL_BINARY(NAME, name, expression, da, db)                                                 \
  case SCL_OP_##NAME:                                                                              \
    return by == 0 ? da : db;
#define SCL_TERNARY(NAME, name, expression, da, db, dc)                                            \
  case SCL_OP_##NAME:                                                                              \
    return by == 0 ? da : by == 1 ? db : dc;
#include "../../inst/kernels/elementwise.def"
#undef SCL_UNARY
#undef SCL_BINARY
#undef SCL_TERNARY
  default:
    return NAN;
  }
}

static void check_derivatives(void) {
  const double h = 1e-6;
  for (int op = 0; op < SCL_OP_COUNT; op++) {
    /* Inside every domain; acosh() needs more than one. */
    const double at[3] = {op == SCL_OP_ACOSH ? 1.7 : 0.43, 0.71, 0.37};
    for (int by = 0; by < scl_op_arity((scl_op)op); by++) {
      double up[3] = {at[0], at[1], at[2]}, down[3] = {at[0], at[1], at[2]};
      up[by] += h;
      down[by] -= h;
      const double difference = (scl_op_value((scl_op)op, up[0], up[1], up[2]) -
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
  scl_mat_release(r);
  scl_mat_release(x);
}

/* Missing values: sums and extremes are NaN, places skip them. */
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
  scl_mat *made[] = {x, e, d, sum, max, more};
  for (size_t k = 0; k < LENGTH(made); k++) scl_mat_release(made[k]);
}

/* The graph lets go of what it was made of. */
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
  /* A balanced sum of 64 matrices, each with a number of its own. */
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
      scl_mat_release(a);
      scl_mat_release(b);
    }
  }
  REQUIRE_OK(scl_mat_force(level[0]));
  CHECK(scl_expr_counts().cut > cut);
  got = mat_stored(level[0]);
  CHECK(mat_distance(got, want, 20) <= 1e-13);
  free(got);
  free(want);
  scl_mat_release(level[0]);
  scl_mat_release(x);
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
  scl_mat_release(x);
  scl_mat_release(y);
}

static void check_arguments(scl_context *ctx) {
  scl_mat *x = mat_random(ctx, 4, 3, SCL_GENERAL), *y = mat_random(ctx, 3, 3, SCL_GENERAL);
  scl_mat *r = NULL, *u = NULL;
  const scl_term both[] = {{x, 0}, {y, 0}}, numbers[] = {{NULL, 1}, {NULL, 2}};
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_apply(SCL_OP_ADD, 2, both, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_apply(SCL_OP_ADD, 2, numbers, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_apply(SCL_OP_EXP, 2, both, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_apply(SCL_OP_COUNT, 0, both, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_broadcast(x, 4, 6, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_part(x, 1, 0, 4, 1, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_part(x, (size_t)-1, 0, 2, 1, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_with_part(x, 2, 0, y, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_matvec(x, y, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_index(ctx, SCL_TOTAL, 2, 2, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_placeholder(ctx, 2, &r));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_reduce_with(x, x, 0, SCL_TOTAL, &r));
  REQUIRE_OK(scl_expr_placeholder(ctx, 0, &u));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_mat_force(u));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_reduce(SCL_REDUCE_SUM, u, SCL_TOTAL, &r));
  CHECK(r == NULL);
  scl_mat *mixed = apply(SCL_OP_MUL, x, NULL, 2);
  CHECK_STATUS(SCL_E_ARGUMENT, scl_expr_reduce_with(x, mixed, 0, SCL_TOTAL, &r));
  scl_mat *made[] = {x, y, u, mixed};
  for (size_t k = 0; k < LENGTH(made); k++) scl_mat_release(made[k]);
}

/* Structures that differ make sources that differ; numbers and sizes are in none. */
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
  scl_mat *made[] = {x, a, b, c};
  for (size_t k = 0; k < LENGTH(made); k++) scl_mat_release(made[k]);
}

/* Large enough for several tiles and groups; sums of every margin are the same bits twice. */
static void check_large(scl_context *ctx) {
  static const size_t shape[][2] = {{70000, 1}, {1, 70000}, {300, 301}, {3, 20000}, {20000, 3}};
  for (size_t s = 0; s < (test_small() ? 0 : LENGTH(shape)); s++) {
    const size_t m = shape[s][0], n = shape[s][1];
    scl_mat *x = mat_random(ctx, m, n, SCL_GENERAL), *t = NULL;
    item a = {x, mat_stored(x), m, n, true};
    REQUIRE_OK(scl_expr_transpose(x, &t));
    for (int margin = 0; margin < 3; margin++) {
      for (int op = 0; op < SCL_REDUCE_COUNT; op++) {
        if (op != SCL_REDUCE_SUM && op != SCL_REDUCE_MAX && op != SCL_REDUCE_WHICH_MIN) continue;
        scl_mat *r[2] = {NULL, NULL}, *of_t = NULL;
        size_t rows, columns;
        double *want = reduce_item((scl_reduction)op, &a, (scl_margin)margin, &rows, &columns);
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
        free(first);
        free(second);
        free(want);
        scl_mat_release(r[0]);
        scl_mat_release(r[1]);
        scl_mat_release(of_t);
      }
    }
    scl_mat *back = apply(SCL_OP_ADD, t, t, 0);
    REQUIRE_OK(scl_mat_force(back));
    double *got = mat_stored(back);
    bool same = true;
    for (size_t i = 0; i < m; i++) {
      for (size_t j = 0; j < n; j++) same = same && got[j + i * n] == 2 * a.want[i + j * m];
    }
    CHECK(same);
    free(got);
    free(a.want);
    scl_mat_release(back);
    scl_mat_release(t);
    scl_mat_release(x);
  }
}

/* Enough rows for a product inside the kernel. */
static void check_regression(scl_context *ctx) {
  const size_t m = 5000, k = 3;
  if (test_small()) return;
  scl_mat *x = mat_random(ctx, m, k, SCL_GENERAL), *b = mat_random(ctx, k, 1, SCL_GENERAL);
  scl_mat *y = mat_random(ctx, m, 1, SCL_GENERAL), *mu = NULL, *sum = NULL;
  REQUIRE_OK(scl_expr_matvec(x, b, &mu));
  const uint64_t before = scl_expr_counts().evaluated;
  scl_mat *r = apply(SCL_OP_SUB, y, mu, 0);
  scl_mat *square = apply(SCL_OP_SQUARE, r, NULL, 0);
  REQUIRE_OK(scl_expr_reduce(SCL_REDUCE_SUM, square, SCL_TOTAL, &sum));
  double *sx = mat_stored(x), *sb = mat_stored(b), *sy = mat_stored(y), want = 0;
  for (size_t i = 0; i < m; i++) {
    const double d = sy[i] - sx[i] * sb[0] - sx[i + m] * sb[1] - sx[i + 2 * m] * sb[2];
    want += d * d;
  }
  CHECK_NEAR(first_of(sum) / want, 1.0, 1e-12);
  CHECK(scl_expr_counts().evaluated == before + 1);
  free(sx);
  free(sb);
  free(sy);
  scl_mat *made[] = {x, b, y, mu, r, square, sum};
  for (size_t i = 0; i < LENGTH(made); i++) scl_mat_release(made[i]);
}

void test_expr(scl_context *ctx) {
  static const size_t shape[][2] = {{5, 5}, {7, 3}, {1, 6}, {6, 1}, {1, 1}, {70, 33}, {3, 80}};
  const int programs = test_small() ? 1 : scl_context_is_host(ctx) ? 60 : 1;
  check_operations(ctx);
  check_derivatives();
  check_empty(ctx);
  check_missing(ctx);
  check_sharing(ctx);
  check_memory(ctx);
  check_limits(ctx);
  check_doubling(ctx);
  check_arguments(ctx);
  check_source(ctx);
  check_large(ctx);
  check_regression(ctx);
  for (int k = 0; k < programs; k++) {
    for (size_t s = 0; s < LENGTH(shape) - (test_small() ? 2 : 0); s++) {
      run_program(ctx, shape[s][0], shape[s][1]);
    }
  }
}
