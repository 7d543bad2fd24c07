/* Lazy arithmetic: random programs over matrices, against the same operations one by one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "expr_reference.h"
#include "matrices.h"
#include "operation_reference.h"
#include "record.h"

/* A matrix of the program, pending or not, with its expected elements. */
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

/* Adds a result unless it is too large or not finite, so that rounding stays small. */
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

/* Records a call on items, or on `number` where an item is NULL; its value by
 * operation_reference.c. */
static void step_call(program *p, unsigned op, int count, item *const *x, double number,
                      const double *attribute, bool exact) {
  const scl_operation *row = &scl_operations[op];
  const double *data[SCL_CALL_OPERANDS] = {NULL};
  const int attributes = scl_operation_attributes(row);
  scl_term term[SCL_CALL_OPERANDS];
  scl_call call = {.operation = op, .count = count};
  scl_shape shape;
  scl_mat *r = NULL;
  for (int k = 0; k < count; k++) {
    term[k] = (scl_term){x[k] != NULL ? x[k]->x : NULL, number};
    data[k] = x[k] != NULL ? x[k]->want : NULL;
    call.operand[k].kind = x[k] != NULL ? SCL_A_MATRIX : SCL_A_NUMBER;
    call.operand[k].number = number;
    if (x[k] != NULL) call.operand[k].shape = scl_shape_of(x[k]->x);
  }
  for (int k = 0; k < attributes; k++) call.attribute[k] = attribute[k];
  REQUIRE_OK(row->rule(&call, &shape));
  double *want = test_alloc((shape.nrow * shape.ncol + 1) * sizeof *want);
  CHECK(operation_reference(&call, data, shape, want));
  CHECK_OK(scl_record(p->ctx, op, count, term, attributes, attribute, &r));
  add_item(p, r, want, shape.nrow, shape.ncol, exact);
}

static void step_unary(program *p) {
  item *a = pick_item(p);
  const bool exact = a->exact && pick(2) == 0;
  const scl_op op =
      exact ? exact_unary[pick(LENGTH(exact_unary))] : smooth_unary[pick(LENGTH(smooth_unary))];
  step_call(p, op, 1, &a, 0.0, NULL, exact);
}

/* Another item of this shape, or a column that is recycled over it; NULL where there is none. */
static item *pick_partner(program *p, const item *a) {
  for (int tries = 0; tries < 20; tries++) {
    item *b = pick_item(p);
    if (b->m == a->m && (b->n == a->n || b->n == 1)) return b;
  }
  return NULL;
}

static void step_binary(program *p) {
  item *a = pick_item(p), *b = pick(4) == 0 ? NULL : pick_partner(p, a);
  const double number = (double)pick(9) * 0.5 - 2.0;
  const bool exact = a->exact && (b == NULL || b->exact), swap = pick(2) == 0;
  const scl_op op = exact_binary[pick(exact ? LENGTH(exact_binary) : CONTINUOUS)];
  step_call(p, op, 2, (item *[]){swap ? b : a, swap ? a : b}, number, NULL, exact);
}

static void step_choice(program *p) {
  item *a = pick_item(p), *b = pick_partner(p, a);
  if (!a->exact || b == NULL) return;
  step_call(p, SCL_OP_IFELSE, 3, (item *[]){a, b, NULL}, 0.25, NULL, b->exact);
}

static void step_transpose(program *p) {
  item *a = pick_item(p);
  step_call(p, SCL_OPERATION_TRANSPOSE, 1, &a, 0.0, NULL, a->exact);
}

static void step_part(program *p) {
  item *a = pick_item(p);
  if (a->m == 0 || a->n == 0) return;
  const size_t i0 = pick(a->m), j0 = pick(4) == 0 && i0 < a->n ? i0 : pick(a->n);
  const double at[] = {(double)i0, (double)j0, (double)(1 + pick(a->m - i0)),
                       (double)(1 + pick(a->n - j0))};
  step_call(p, SCL_OPERATION_PART, 1, &a, 0.0, at, a->exact);
}

static void step_with_part(program *p) {
  item *a = pick_item(p), *b = pick_item(p);
  if (b->m > a->m || b->n > a->n) return;
  const double at[] = {(double)pick(a->m - b->m + 1), (double)pick(a->n - b->n + 1)};
  step_call(p, SCL_OPERATION_WITH_PART, 2, (item *[]){a, b}, 0.0, at, a->exact && b->exact);
}

static void step_broadcast(program *p) {
  item *a = pick_item(p);
  if (a->m != 1 && a->n != 1) return;
  const size_t m = a->m == 1 ? 1 + pick(9) : a->m, n = a->n == 1 ? 1 + pick(9) : a->n;
  step_call(p, SCL_OPERATION_BROADCAST, 1, &a, 0.0, (double[]){(double)m, (double)n}, a->exact);
}

static void step_index(program *p) {
  const item *a = pick_item(p);
  const double at[] = {pick(2) == 0 ? SCL_BY_ROW : SCL_BY_COLUMN, (double)a->m, (double)a->n};
  step_call(p, SCL_OPERATION_INDEX, 0, NULL, 0.0, at, true);
}

static void step_matvec(program *p) {
  item *a = pick_item(p), *b = pick_item(p);
  if (b->n != 1 || b->m != a->n) return;
  step_call(p, SCL_OPERATION_MATVEC, 2, (item *[]){a, b}, 0.0, NULL, false);
}

static void step_reduce(program *p) {
  static const scl_reduction ops[] = {
      SCL_REDUCE_SUM,       SCL_REDUCE_MIN,       SCL_REDUCE_MAX,      SCL_REDUCE_COUNT_TRUE,
      SCL_REDUCE_WHICH_MAX, SCL_REDUCE_WHICH_MIN, SCL_REDUCE_COUNT_NAN};
  item *a = pick_item(p);
  const scl_reduction op = ops[pick(a->exact ? LENGTH(ops) : 3)];
  const double margin = (double)pick(3);
  if (a->m == 0 || a->n == 0) return; /* identities may be infinite: check_empty() of test_expr.c */
  step_call(p, SCL_FIRST_REDUCTION + op, 1, &a, 0.0, &margin, a->exact && op != SCL_REDUCE_SUM);
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
  double *want = expr_reduced(SCL_REDUCE_MAX, copy, a->m, a->n, margin, &m, &n);
  free(copy);
  CHECK_OK(record_placeholder(p->ctx, 0, &u));
  CHECK_OK(record_placeholder(p->ctx, 1, &v));
  CHECK_OK(scl_expr_apply(SCL_OP_ABS, 1, &(scl_term){u, 0}, &abs_u));
  CHECK_OK(scl_expr_apply(SCL_OP_ABS, 1, &(scl_term){v, 0}, &abs_v));
  const scl_term both[] = {{abs_u, 0}, {abs_v, 0}};
  CHECK_OK(scl_expr_apply(SCL_OP_PMAX, 2, both, &combine));
  CHECK_OK(record_reduce_with(a->x, combine, 0.0, margin, &r));
  RELEASE(u, v, abs_u, abs_v, combine);
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

/* Releases one matrix; expressions of it stay. */
static void drop_item(program *p) {
  item *gone = pick_item(p);
  scl_mat_release(gone->x);
  free(gone->want);
  *gone = p->at[--p->count];
}

/* Computes one, or fails, which leaves it unchanged. */
static void force_item(program *p) {
  scl_mat *x = pick_item(p)->x;
  if (pick(3) == 0) scl_buffer_fail_after((long)pick(3) + 1);
  const scl_status status = scl_mat_force(x);
  scl_buffer_fail_after(-1);
  CHECK(status == SCL_OK || (status == SCL_E_MEMORY && scl_expr_about(x).pending));
}

static void run_program(scl_context *ctx, size_t m, size_t n) {
  static void (*const steps[])(program *) = {
      step_unary,  step_unary,       step_binary,    step_binary, step_binary,
      step_choice, step_transpose,   step_part,      step_index,  step_broadcast,
      step_reduce, step_reduce_with, step_with_part, step_matvec};
  const scl_memory before = scl_context_memory(ctx);
  program p = {.ctx = ctx};
  add_leaf(&p, m, n, SCL_GENERAL);
  add_leaf(&p, m, n, pick(2) == 0 ? SCL_LOWER : SCL_UPPER);
  add_leaf(&p, m, m, SCL_SYMMETRIC);
  add_leaf(&p, m, 1, SCL_GENERAL);
  add_leaf(&p, 1, n, SCL_GENERAL);
  for (int k = 0; k < OPERATIONS; k++) {
    steps[pick(LENGTH(steps))](&p);
    if (pick(8) == 0) force_item(&p);
    if (pick(6) == 0 && p.count > 3) drop_item(&p);
  }
  scl_mat *all[ITEMS];
  for (int k = 0; k < p.count; k++) all[k] = p.at[k].x;
  CHECK_OK(scl_expr_eval((size_t)p.count, all));
  for (int k = 0; k < p.count; k++) {
    check_item(&p.at[k]);
    scl_mat_release(p.at[k].x);
    free(p.at[k].want);
  }
  CHECK(scl_context_memory(ctx).live == before.live);
  CHECK(scl_context_memory(ctx).buffers == before.buffers);
}

void test_expr_programs(scl_context *ctx) {
  static const size_t shape[][2] = {{5, 5}, {7, 3}, {1, 6}, {6, 1}, {1, 1}, {70, 33}, {3, 80}};
  /* Each structure is compiled on a device: a few programs there. */
  const int programs = test_small() || !scl_context_is_host(ctx) ? 1 : 60;
  for (int k = 0; k < programs; k++) {
    for (size_t s = 0; s < LENGTH(shape) - (test_small() ? 2 : 0); s++) {
      run_program(ctx, shape[s][0], shape[s][1]);
    }
  }
}
