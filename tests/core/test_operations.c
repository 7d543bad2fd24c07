/* The table of operations, row by row, so that a new row is tested automatically. For each row all
 * calls on operands of a few shapes and views with a few values of its attributes are tried. Those
 * that its rule accepts are computed and compared with operation_reference.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "program/tape.h"
#include "matrices.h"
#include "operation_reference.h"
#include "record.h"

/* ---- the table itself ----------------------------------------------------------------------- */

static void check_attribute_kinds(unsigned op) {
  static const double wrong[][3] = {[SCL_COUNT] = {-1.0, 0.5, 3e9},
                                    [SCL_FLAG] = {2.0, -1.0, NAN},
                                    [SCL_MARGIN] = {3.0, -1.0, 0.5}};
  const scl_operation *row = &scl_operations[op];
  const int operands = row->least, attributes = scl_operation_attributes(row);
  for (int k = 0; k < attributes; k++) {
    if (scl_operation_attribute(row, k)->kind == SCL_REAL) continue;
    for (int w = 0; w < 3; w++) {
      double attribute[SCL_CALL_ATTRIBUTES] = {0};
      attribute[k] = wrong[scl_operation_attribute(row, k)->kind][w];
      CHECK_STATUS(SCL_E_ARGUMENT, scl_operation_check(op, operands, attributes, attribute));
      CHECK(strcmp(scl_fault_last()->argument, scl_operation_attribute(row, k)->name) == 0);
    }
  }
}

static void check_row(unsigned op) {
  const scl_operation *row = &scl_operations[op];
  const double zeros[SCL_CALL_ATTRIBUTES + 1] = {0};
  const int operands = scl_operation_operands(row), attributes = scl_operation_attributes(row);
  unsigned found = SCL_OPERATION_COUNT;
  CHECK(row->name != NULL && row->name[0] != '\0');
  CHECK_OK(scl_operation_find(row->name, &found));
  CHECK(found == op); /* also: no name occurs twice */
  CHECK(row->how != SCL_IS_CALL || row->run != NULL || row->forward != scl_call_compute);
  CHECK(row->least >= 0 && row->least <= operands);
  CHECK_OK(scl_operation_check(op, operands, attributes, zeros));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_operation_check(op, row->least - 1, attributes, zeros));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_operation_check(op, operands + 1, attributes, zeros));
  CHECK_FAULT(SCL_E_ARGUMENT, "op", scl_operation_check(op, operands, attributes + 1, zeros));
  check_attribute_kinds(op);
}

/* ---- calls ---------------------------------------------------------------------------------- */

typedef struct {
  scl_context *ctx;
  scl_call call;
  scl_term operand[SCL_CALL_OPERANDS];
  double *data[SCL_CALL_OPERANDS]; /* as stored */
  int attributes;
  unsigned taken, refused; /* calls of the row so far */
} trial;

static const scl_shape shapes[] = {{5, 5, SCL_GENERAL},   {5, 5, SCL_LOWER},   {5, 5, SCL_UPPER},
                                   {5, 5, SCL_SYMMETRIC}, {5, 3, SCL_GENERAL}, {3, 5, SCL_GENERAL},
                                   {5, 1, SCL_GENERAL},   {1, 5, SCL_GENERAL}, {1, 1, SCL_GENERAL},
                                   {0, 5, SCL_GENERAL},   {0, 0, SCL_GENERAL}};

/* Square matrices are positive definite, so that factors and inverses of what is read exist. */
static scl_mat *make_operand(scl_context *ctx, scl_shape shape) {
  const size_t count = shape.nrow * shape.ncol;
  double *data = test_alloc((count + 1) * sizeof *data);
  if (shape.nrow == shape.ncol && shape.nrow > 0)
    mat_spd(data, shape.nrow, 10.0, 1.5);
  else
    test_fill(data, count);
  scl_mat *x = mat_make(ctx, data, shape.nrow, shape.ncol, shape.view);
  free(data);
  return x;
}

static scl_status run_trial(const trial *t, scl_mat **out) {
  return scl_compute(t->ctx, t->call.operation, t->call.count, t->operand, t->attributes,
                     t->call.attribute, out);
}

/* Eigenvectors may have either sign. */
static void align_columns(scl_shape shape, const double *got, double *expected) {
  for (size_t j = 0; j < shape.nrow; j++) {
    double product = 0.0;
    for (size_t i = 0; i < shape.nrow; i++) {
      product += got[i + j * shape.nrow] * expected[i + j * shape.nrow];
    }
    for (size_t i = 0; i < shape.nrow && product < 0; i++) expected[i + j * shape.nrow] *= -1;
  }
}

static void check_result(const trial *t, scl_shape want, const scl_mat *result) {
  const size_t count = want.nrow * want.ncol;
  CHECK(scl_mat_nrow(result) == want.nrow && scl_mat_ncol(result) == want.ncol);
  CHECK(scl_mat_view(result) == want.view);
  double *got = mat_stored(result), *expected = test_alloc((count + 1) * sizeof *expected);
  CHECK(mat_is_canonical(got, want.nrow, want.ncol, want.view));
  const bool known = operation_reference(&t->call, (const double *const *)t->data, want, expected);
  if (t->call.operation == SCL_OPERATION_EIGEN) align_columns(want, got, expected);
  CHECK(known); /* a new row needs its lines in operation_reference.c */
  const bool right = known && mat_distance(got, expected, count) <= 1e-10;
  if (!right) test_check(false, scl_operations[t->call.operation].name, __FILE__, __LINE__);
  FREE(got, expected);
}

/* ---- trials --------------------------------------------------------------------------------- */

/* On a device each structure of an elementwise result is a kernel: one call of a row is enough
 * there, as test_expr*.c try the kernels. */
static bool is_enough(const trial *t) {
  return !scl_context_is_host(t->ctx) && scl_operations[t->call.operation].how != SCL_IS_CALL &&
         t->taken > 0;
}

static void try_call(trial *t) {
  const scl_operation *row = &scl_operations[t->call.operation];
  scl_shape shape = {99, 99, SCL_GENERAL};
  scl_mat *result = NULL;
  if (is_enough(t)) return;
  const scl_status status = row->rule(&t->call, &shape);
  if (status != SCL_OK) {
    t->refused++;
    CHECK(status == SCL_E_ARGUMENT && shape.nrow == 99);
    CHECK(scl_fault_last()->argument[0] != '\0' && scl_fault_last()->message[0] != '\0');
    CHECK_STATUS(status, run_trial(t, &result));
    CHECK(result == NULL);
    return;
  }
  t->taken++;
  CHECK_OK(run_trial(t, &result));
  if (result == NULL) return;
  check_result(t, shape, result);
  scl_mat_release(result);
}

static void try_attributes(trial *t, int k) {
  static const struct {
    int count;
    double value[4];
  } values[] = {[SCL_COUNT] = {4, {0, 1, 3, 5}},
                [SCL_FLAG] = {2, {0, 1}},
                [SCL_MARGIN] = {3, {0, 1, 2}},
                [SCL_REAL] = {2, {0, 0.25}}};
  if (k == t->attributes) {
    try_call(t);
    return;
  }
  const scl_attribute_kind kind =
      scl_operation_attribute(&scl_operations[t->call.operation], k)->kind;
  for (int v = 0; v < values[kind].count; v++) {
    t->call.attribute[k] = values[kind].value[v];
    try_attributes(t, k + 1);
  }
}

static void try_operands(trial *t, int k) {
  if (k == t->call.count) {
    t->call.same = false;
    try_attributes(t, 0);
    return;
  }
  for (size_t s = 0; s < LENGTH(shapes); s++) {
    t->operand[k].matrix = make_operand(t->ctx, shapes[s]);
    t->data[k] = mat_stored(t->operand[k].matrix);
    t->call.operand[k].kind = SCL_A_MATRIX;
    t->call.operand[k].shape = shapes[s];
    try_operands(t, k + 1);
    free(t->data[k]);
    scl_mat_release(t->operand[k].matrix);
    t->operand[k].matrix = NULL;
    /* Of three operands the first two vary little: 1,331 calls of each row would not find more. */
    if (t->call.count == 3 && k < 2 && s == 1) return;
  }
}

static void check_calls(scl_context *ctx, unsigned op) {
  const scl_operation *row = &scl_operations[op];
  unsigned taken = 0;
  /* These have no value by themselves: check_reduce_with(). */
  if (op == SCL_OPERATION_PLACEHOLDER || op == SCL_OPERATION_REDUCE_WITH) return;
  for (int count = row->least; count <= scl_operation_operands(row); count++) {
    trial t = {.ctx = ctx, .attributes = scl_operation_attributes(row)};
    t.call.operation = op;
    t.call.count = count;
    try_operands(&t, 0);
    taken += t.taken;
  }
  CHECK(taken > 0);
}

/* One matrix as both operands: an exactly symmetric product. */
static void check_same(scl_context *ctx) {
  scl_mat *x = mat_random(ctx, 5, 3, SCL_GENERAL), *r = NULL;
  REQUIRE_OK(compute_product(true, false, x, x, &r));
  CHECK(r->view == SCL_SYMMETRIC);
  RELEASE(r, x);
}

/* A call in the middle of an expression, of an expression: its operand and its use are kernels too.
 * sum((x + 1)' (x + 1) * 2). */
static void check_chain(scl_context *ctx) {
  scl_mat *x = mat_random(ctx, 7, 3, SCL_GENERAL), *next = NULL, *product = NULL, *sum = NULL;
  const scl_term one[] = {{x, 0}, {NULL, 1.0}};
  REQUIRE_OK(scl_expr_apply(SCL_OP_ADD, 2, one, &next));
  REQUIRE_OK(scl_record(NULL, SCL_OPERATION_MATMUL, 1, &(scl_term){next, 0}, 2, (double[]){1, 0},
                        &product));
  CHECK(scl_expr_about(product).pending && scl_expr_about(product).depth == 2);
  CHECK(scl_mat_view(product) == SCL_SYMMETRIC && scl_mat_ncol(product) == 3);
  char text[80];
  scl_expr_text(product, text, sizeof text);
  CHECK(strcmp(text, "matmul(x1 + 1)") == 0);
  REQUIRE_OK(scl_expr_reduce(SCL_REDUCE_SUM, product, SCL_TOTAL, &sum));
  REQUIRE_OK(scl_mat_force(sum));
  double *data = mat_stored(x), *got = mat_stored(sum), want = 0.0;
  for (int a = 0; a < 3; a++) {
    for (int b = 0; b < 3; b++) {
      for (int i = 0; i < 7; i++) want += (data[i + 7 * a] + 1.0) * (data[i + 7 * b] + 1.0);
    }
  }
  CHECK_NEAR(got[0], want, 1e-13);
  FREE(data, got);
  RELEASE(x, next, product, sum);
}

/* The reduction with the sum of its two values is the sum; without placeholders it is refused. */
static void check_reduce_with(scl_context *ctx) {
  scl_mat *x = mat_random(ctx, 5, 3, SCL_GENERAL), *u = NULL, *v = NULL, *both = NULL, *r = NULL;
  REQUIRE_OK(record_placeholder(ctx, 0, &u));
  REQUIRE_OK(record_placeholder(ctx, 1, &v));
  REQUIRE_OK(scl_expr_apply(SCL_OP_ADD, 2, (scl_term[]){{u, 0}, {v, 0}}, &both));
  REQUIRE_OK(record_reduce_with(x, both, 0.0, SCL_BY_COLUMN, &r));
  REQUIRE_OK(scl_mat_force(r));
  double *data = mat_stored(x), *got = mat_stored(r);
  for (int j = 0; j < 3; j++) {
    double want = 0.0;
    for (int i = 0; i < 5; i++) want += data[i + 5 * j];
    CHECK_NEAR(got[j], want, 1e-14);
  }
  scl_mat_release(r);
  r = NULL;
  CHECK_STATUS(SCL_E_ARGUMENT, record_reduce_with(x, x, 0.0, SCL_TOTAL, &r));
  CHECK_STATUS(SCL_E_ARGUMENT,
               scl_compute(ctx, SCL_OPERATION_PLACEHOLDER, 0, NULL, 1, &(double){0}, &r));
  CHECK_STATUS(SCL_E_ARGUMENT,
               scl_record(NULL, SCL_OPERATION_MATMUL, 2, (scl_term[]){{x, 0}, {NULL, 2.0}}, 2,
                          (double[]){0, 0}, &r));
  CHECK(r == NULL && strcmp(scl_fault_last()->argument, "b") == 0);
  FREE(data, got);
  RELEASE(x, u, v, both);
}

void test_operations(scl_context *ctx) {
  unsigned none;
  const uint64_t before = scl_context_memory(ctx).live;
  CHECK_STATUS(SCL_E_ARGUMENT, scl_operation_find("no such operation", &none));
  CHECK_STATUS(SCL_E_ARGUMENT, scl_operation_check(SCL_OPERATION_COUNT, 1, 0, NULL));
  for (unsigned op = 0; op < SCL_OPERATION_COUNT; op++) {
    if (scl_operations[op].rule == NULL) continue; /* of values alone */
    check_row(op);
    /* Elementwise operations are kernels to compile, which test_arith.c and test_expr.c try too. */
    const bool few = test_small() || (test_quick() && !scl_context_is_host(ctx));
    if (!few || op >= SCL_OP_COUNT) check_calls(ctx, op);
  }
  for (int k = 0; k < SCL_VALUE_KINDS; k++) {
    CHECK(scl_value_attributes((scl_value_kind)k) <= SCL_VALUE_ATTRIBUTES);
  }
  check_same(ctx);
  check_chain(ctx);
  check_reduce_with(ctx);
  CHECK(scl_context_memory(ctx).live == before);
}
