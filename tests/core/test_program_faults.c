/* Programs when memory runs out at any point of making or running one, and recorded values that do
 * not fit: the correct error, nothing leaked. */
#include <math.h>
#include <stdlib.h>

#include "alloc.h"
#include "program/roll.h"
#include "program_check.h"
#include "test.h"

/* A program with all kinds of values and steps. */
static int record_all_kinds(program_nodes *l) {
  enum { N = 5 };
  double d[N * N];
  for (size_t i = 0; i < N * N; i++) d[i] = i % (N + 1) == 0 ? 8.0 : 0.1;
  const int x = node_parameter(l, N * N), y = node_parameter(l, N);
  const int across = node_one(l, SCL_VALUE_TRANSPOSE, x, AT(N, N));
  const int both = node_binary(l, SCL_OP_ADD, node_matmul(l, x, across, N, N, N, false, false),
                               node_data(l, d, N * N));
  const int factor = node_one(l, SCL_VALUE_CHOL, both, AT(N));
  const int solved = node_two(l, SCL_VALUE_TRI_SOLVE, factor, y, AT(N, 1, 0, 0));
  const int wide = node_one(l, SCL_VALUE_BROADCAST, solved, AT(N, N, 0));
  const int lower = node_one(l, SCL_VALUE_COPY_AS, node_binary(l, SCL_OP_MUL, wide, across),
                             AT(N, SCL_COPY_LOWER));
  const int sums = node_one(l, SCL_VALUE_CUMSUM, lower, AT(N, N, 1));
  const int some = node_one(l, SCL_VALUE_GATHER, sums, AT((size_t)node_indices(l, 3 * N, N * N)));
  const int spread = node_one(l, SCL_VALUE_SCATTER, some, AT((size_t)node_indices(l, 3 * N, N), N));
  const int rows = node_reduce(l, SCL_REDUCE_PROD, sums, N, N, SCL_BY_ROW);
  const int block = node_one(l, SCL_VALUE_PART, sums, AT(N, 1, 1, 3, 3));
  const int all = node_concat(l, 5, (const int[]){spread, rows, block, spread, solved});
  return node_sum(l, node_unary(l, SCL_OP_TANH, all));
}

/* A loop whose last iteration is shorter, sums of few patterns, and what is done with the values
 * before and after each iteration: all of program/roll*.c. */
static int record_loop(program_nodes *l) {
  enum { ITERATIONS = 20 };
  const int x = node_parameter(l, 1), y = node_parameter(l, 1);
  int state = node_unary(l, SCL_OP_EXP, x);
  int total = node_unary(l, SCL_OP_SINH, state);
  for (int i = 0; i < ITERATIONS; i++) {
    const int shift = node_binary(l, SCL_OP_MUL, y, node_number(l, cos(i)));
    const int moved = node_binary(l, SCL_OP_ADD, node_binary(l, SCL_OP_ADD, state, shift), x);
    int short_sum = i % 2 == 0 ? x : y;
    for (int k = 0; k < 4; k++)
      short_sum = node_binary(l, SCL_OP_ADD, short_sum, (i + k) % 2 == 0 ? x : y);
    state = node_unary(l, SCL_OP_TANH, moved);
    total = node_binary(l, SCL_OP_ADD, total, node_unary(l, SCL_OP_TANH, short_sum));
    if (i == ITERATIONS - 1) break;
    total = node_binary(l, SCL_OP_ADD, total, node_unary(l, SCL_OP_SINH, state));
    state = node_unary(l, SCL_OP_ATAN, node_binary(l, SCL_OP_MUL, state, y));
  }
  return node_binary(l, SCL_OP_ADD, total, state);
}

/* Factors of sparse matrices, of which a program keeps the last: ops/sparse*.c. */
static int record_sparse(program_nodes *l) {
  enum { N = 5, COLUMNS = 2, KINDS = 3 };
  int sum[KINDS];
  for (int k = 0; k < KINDS; k++) sum[k] = node_sum(l, node_sparse(l, N, COLUMNS, k));
  return node_sum(l, node_concat(l, KINDS, sum));
}

enum { OWN_ALLOCATIONS = 2 /* of program_record() */, MOST_ALLOCATIONS = 5000 };

static scl_status make_program(scl_context *ctx, const program_nodes *l, int output,
                               scl_program **p) {
  scl_tape t;
  scl_tape_begin(&t);
  const int result = program_record(l, &t, output);
  return scl_program_make(ctx, &t, result, l->parameters, p);
}

static scl_status make_rolled(scl_context *ctx, const program_nodes *l, int output,
                              scl_program **p) {
  scl_tape recorded, t;
  int result = 0;
  scl_tape_begin(&recorded);
  scl_tape_begin(&t);
  recorded.recorded = true;
  const int last = program_record(l, &recorded, output);
  scl_tape_roll(&recorded, last, &t, &result);
  CHECK(t.status != SCL_OK || t.bodies == 1);
  const scl_status status = scl_program_make(ctx, &t, result, l->parameters, p);
  scl_tape_end(&recorded);
  return status;
}

typedef scl_status maker(scl_context *, const program_nodes *, int, scl_program **);

/* Every allocation fails in turn. */
static void check_allocations(scl_context *ctx, program_nodes *l, int output, maker *make) {
  const scl_memory before = scl_context_memory(ctx);
  const double want = program_value(l, output, l->x);
  bool fails = true;
  long n = 1;
  for (; fails && n < MOST_ALLOCATIONS; n++) {
    scl_program *p = NULL;
    alloc_fail(n + OWN_ALLOCATIONS);
    const scl_status status = make(ctx, l, output, &p);
    fails = alloc_failed();
    alloc_fail(0);
    CHECK(status == SCL_OK || (status == SCL_E_MEMORY && fails));
    CHECK((p != NULL) == (status == SCL_OK));
    double value = want;
    if (p != NULL) CHECK_OK(scl_program_run(p, l->x, false, &value));
    CHECK_NEAR(value, want, 1e-12);
    scl_program_release(p);
    CHECK(scl_context_memory(ctx).live == before.live);
    CHECK(scl_context_memory(ctx).buffers == before.buffers);
  }
  CHECK(!fails);
}

/* Every buffer of the engine is refused in turn. */
static void check_buffers(scl_context *ctx, program_nodes *l, int output) {
  const scl_memory before = scl_context_memory(ctx);
  scl_status status = SCL_E_MEMORY;
  for (int n = 1; status != SCL_OK && n < MOST_ALLOCATIONS; n++) {
    scl_program *p = NULL;
    scl_buffer_fail_after(n);
    status = make_program(ctx, l, output, &p);
    scl_buffer_fail_after(-1);
    CHECK(status == SCL_OK || status == SCL_E_MEMORY);
    CHECK((p != NULL) == (status == SCL_OK));
    scl_program_release(p);
    CHECK(scl_context_memory(ctx).live == before.live);
    CHECK(scl_context_memory(ctx).buffers == before.buffers);
  }
  CHECK_OK(status);
}

static void check_runs(scl_context *ctx, program_nodes *l, int output) {
  scl_program *p = program_compile(ctx, l, output, "a run without memory");
  double *got = test_alloc((l->parameters + 1) * sizeof *got);
  const double want = program_value(l, output, l->x);
  bool fails = p != NULL;
  for (long n = 1; fails && n < MOST_ALLOCATIONS; n++) {
    alloc_fail(n);
    const scl_status status = scl_program_run(p, l->x, true, got);
    fails = alloc_failed();
    alloc_fail(0);
    CHECK(status == SCL_OK || (status == SCL_E_MEMORY && fails));
    if (status == SCL_OK) CHECK_NEAR(got[0], want, 1e-12);
  }
  CHECK(!fails);
  scl_program_release(p);
  free(got);
}

/* ---- what does not fit ----------------------------------------------------------------------- */

static const double wrong_index[] = {0.0, 5.0}, nan_index[] = {0.0, NAN}, below[] = {-1.0, 0.0};

/* Values of 5 and 6 elements, a number, three lists of indices, then what does not fit them. */
typedef struct {
  scl_value_kind kind;
  unsigned op;
  int operands, operand[3];
  size_t at[SCL_VALUE_ATTRIBUTES];
} recorded;

static const recorded refused[] = {{SCL_VALUE_DATA, 0, 0, {0}, {3, 2}},
                                   {SCL_VALUE_DATA, 0, 0, {0}, {0, 3}},
                                   {SCL_VALUE_APPLY, SCL_OP_ADD, 2, {0, 1}, {0}},
                                   {SCL_VALUE_APPLY, SCL_OP_ADD, 1, {0}, {0}},
                                   {SCL_VALUE_APPLY, SCL_OP_ADD, 2, {0, 3}, {0}},
                                   {SCL_VALUE_APPLY, SCL_OP_ADD, 2, {0, -1}, {0}},
                                   {SCL_VALUE_APPLY, SCL_OP_COUNT, 1, {0}, {0}},
                                   {SCL_VALUE_APPLY, SCL_OP_IFELSE, 3, {0, 1, 2}, {0}},
                                   {SCL_VALUE_BROADCAST, 0, 1, {0}, {4, 5, 0}},
                                   {SCL_VALUE_BROADCAST, 0, 1, {0}, {5, 4, 1}},
                                   {SCL_VALUE_TRANSPOSE, 0, 1, {0}, {2, 3}},
                                   {SCL_VALUE_PART, 0, 1, {0}, {5, 1, 0, 5, 1}},
                                   {SCL_VALUE_PART, 0, 1, {0}, {5, 0, 1, 1, 1}},
                                   {SCL_VALUE_REDUCE, SCL_REDUCE_SUM, 1, {0}, {5, 1, 3}},
                                   {SCL_VALUE_REDUCE, SCL_REDUCE_SUM, 1, {0}, {6, 1, 0}},
                                   {SCL_VALUE_REDUCE, SCL_REDUCE_SUM_LOG, 1, {0}, {5, 1, 0}},
                                   {SCL_VALUE_REDUCE, SCL_REDUCE_COUNT_NAN, 1, {0}, {5, 1, 0}},
                                   {SCL_VALUE_GATHER, 0, 1, {0}, {0}},
                                   {SCL_VALUE_GATHER, 0, 1, {0}, {1}},
                                   {SCL_VALUE_GATHER, 0, 1, {0}, {2}},
                                   {SCL_VALUE_GATHER, 0, 1, {0}, {3}},
                                   {SCL_VALUE_SCATTER, 0, 1, {0}, {0, 6}},
                                   {SCL_VALUE_CUMSUM, 0, 1, {0}, {2, 2, 0}},
                                   {SCL_VALUE_MATMUL, 0, 2, {0, 1}, {5, 1, 5, 0, 0}},
                                   {SCL_VALUE_MATMUL, 0, 1, {0}, {5, 1, 5, 0, 0}},
                                   {SCL_VALUE_MATVEC, 0, 2, {0, 0}, {1, 5}},
                                   {SCL_VALUE_MATVEC_ADJOINT, 0, 2, {0, 0}, {5, 1}},
                                   {SCL_VALUE_CHOL, 0, 1, {0}, {2}},
                                   {SCL_VALUE_TRI_SOLVE, 0, 2, {2, 0}, {1, 4, 0, 0}},
                                   {SCL_VALUE_LU, 0, 1, {0}, {2}},
                                   {SCL_VALUE_LU_SOLVE, 0, 2, {0, 1}, {1, 1, 0}},
                                   {SCL_VALUE_EIGEN, 0, 1, {0}, {2}},
                                   {SCL_VALUE_SPARSE_LOG_DET, 0, 1, {2}, {0, 1, 1}},
                                   {SCL_VALUE_SPARSE_LOG_DET, 0, 1, {2}, {7, 1, 1}},
                                   {SCL_VALUE_SPARSE_ROOT, 0, 1, {2}, {7, 1, 1}},
                                   {SCL_VALUE_SPARSE_SOLVE, 0, 2, {2, 0}, {1, 1, 1, 5}},
                                   {SCL_VALUE_COPY_AS, 0, 1, {2}, {1, SCL_COPY_MIRROR_UPPER}},
                                   {SCL_VALUE_TRI_INVERSE, 0, 1, {0}, {1, 5, 0}},
                                   {SCL_VALUE_WITH_PART, 0, 2, {0, 2}, {0, 0}}};

static void check_refused(scl_context *ctx) {
  for (size_t k = 0; k < LENGTH(refused); k++) {
    const recorded *v = &refused[k];
    scl_program *p = NULL;
    scl_tape t;
    scl_tape_begin(&t);
    scl_tape_add_data(&t, wrong_index, 2);
    scl_tape_add_data(&t, nan_index, 2);
    scl_tape_add_data(&t, below, 2);
    scl_tape_add(&t, SCL_VALUE_PARAMETER, 0, 0, NULL, AT(0, 5), 0.0);
    scl_tape_add(&t, SCL_VALUE_PARAMETER, 0, 0, NULL, AT(5, 6), 0.0);
    scl_tape_number(&t, 0.5);
    CHECK_OK(t.status);
    const int x = scl_tape_add(&t, v->kind, v->op, v->operands, v->operand, v->at, 0.0);
    CHECK_STATUS(SCL_E_ARGUMENT, t.status);
    CHECK(scl_tape_unary(&t, SCL_OP_EXP, x) == 0);
    CHECK_STATUS(SCL_E_ARGUMENT, scl_program_make(ctx, &t, x, 11, &p));
    CHECK(p == NULL);
  }
}

/* A result that is no number, parameters that are not there, an unknown derivative. */
static void check_results(scl_context *ctx) {
  program_nodes l;
  scl_program *p = NULL;
  program_begin(&l);
  const int x = node_parameter(&l, 2), sum = node_sum(&l, x);
  CHECK_STATUS(SCL_E_ARGUMENT, make_program(ctx, &l, x, &p));
  CHECK_STATUS(SCL_E_ARGUMENT, make_program(ctx, &l, node_unary(&l, SCL_OP_PENTAGAMMA, sum), &p));
  CHECK_STATUS(SCL_E_ARGUMENT,
               make_program(ctx, &l, node_binary(&l, SCL_OP_LOG_PGAMMA_SLOPE, sum, sum), &p));
  l.parameters = 1;
  CHECK_STATUS(SCL_E_ARGUMENT, make_program(ctx, &l, sum, &p));
  CHECK(p == NULL);
  program_end(&l);
}

static void check_memory(scl_context *ctx, int (*record)(program_nodes *), const char *what) {
  program_nodes l;
  program_begin(&l);
  const int output = record(&l);
  program_check(ctx, &l, output, what);
  check_allocations(ctx, &l, output, make_program);
  check_buffers(ctx, &l, output);
  check_runs(ctx, &l, output);
  program_end(&l);
}

void test_program_faults(scl_context *ctx) {
  program_nodes l;
  check_memory(ctx, record_all_kinds, "all kinds");
  check_memory(ctx, record_sparse, "sparse factors");
  program_begin(&l);
  check_allocations(ctx, &l, record_loop(&l), make_rolled);
  program_end(&l);
  check_refused(ctx);
  check_results(ctx);
}
