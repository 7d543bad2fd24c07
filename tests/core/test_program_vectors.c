/* Several parameter vectors at once: all ways to combine values with and without parameters,
 * vectors that fail, data, memory. */
#include "program_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "test.h"

static const size_t counts[] = {1, 2, 3, 4, 7};
enum { COUNTS = LENGTH(counts) };

/* With the derivatives of all its elements. */
static int weighted(program_nodes *l, int v) {
  const int w = node_random_data(l, l->node[v].length);
  return node_sum(l, node_binary(l, SCL_OP_MUL, w, node_unary(l, SCL_OP_SIN, v)));
}

static void check_all_counts(scl_context *ctx, program_nodes *l, int v, const char *what) {
  const int output = weighted(l, v);
  for (int k = 0; k < COUNTS; k++) {
    if (!scl_traits(ctx)->synchronous && counts[k] != 3) continue;
    program_check_vectors(ctx, l, output, counts[k], what);
  }
  program_end(l);
}

/* ---- products and solves ----------------------------------------------------------------------
 */

static int leaf(program_nodes *l, bool wide, size_t length) {
  return wide ? node_parameter(l, length) : node_random_data(l, length);
}

static const size_t sizes[][3] = {{4, 3, 2}, {1, 3, 2}, {4, 1, 2}, {4, 3, 1},   {1, 3, 1},
                                  {1, 1, 2}, {4, 1, 1}, {1, 1, 1}, {5000, 3, 1}};

static void check_products(scl_context *ctx) {
  char what[80];
  for (size_t s = 0; s < LENGTH(sizes); s++) {
    for (int variant = 0; variant < 12; variant++) {
      const bool wide_a = variant % 3 != 1, wide_b = variant % 3 != 0;
      const bool ta = variant / 3 % 2, tb = variant / 6;
      const size_t m = sizes[s][0], k = sizes[s][1], n = sizes[s][2];
      if (!scl_traits(ctx)->synchronous && (s + (size_t)variant) % 3 != 0) continue;
      program_nodes l;
      program_begin(&l);
      const int a = leaf(&l, wide_a, m * k), b = leaf(&l, wide_b, k * n);
      snprintf(what, sizeof what, "product %d of %zu x %zu x %zu", variant, m, k, n);
      check_all_counts(ctx, &l, node_matmul(&l, a, b, m, k, n, ta, tb), what);
    }
  }
}

static int diagonal(program_nodes *l, size_t n, double size) {
  double *x = test_alloc(n * n * sizeof *x);
  for (size_t i = 0; i < n * n; i++) x[i] = i % (n + 1) == 0 ? size : 0.1;
  const int node = node_data(l, x, n * n);
  free(x);
  return node;
}

static void check_solves(scl_context *ctx) {
  char what[80];
  for (int variant = 0; variant < 12; variant++) {
    const bool wide_l = variant % 3 != 1, wide_b = variant % 3 != 0;
    enum { N = 5 };
    program_nodes l;
    program_begin(&l);
    int a = diagonal(&l, N, 3.0);
    if (wide_l) a = node_binary(&l, SCL_OP_ADD, a, node_parameter(&l, N * N));
    const size_t k = variant % 2 ? 1 : 3;
    const int b = leaf(&l, wide_b, N * k);
    snprintf(what, sizeof what, "solve %d", variant);
    check_all_counts(ctx, &l,
                     node_two(&l, SCL_VALUE_TRI_SOLVE, a, b,
                              AT(N, k, (size_t)(variant / 3 % 2), (size_t)(variant / 6))),
                     what);
  }
}

/* ---- layouts ----------------------------------------------------------------------------------
 */

static void check_concats(scl_context *ctx) {
  program_nodes l;
  int some[40];
  program_begin(&l); /* elements one by one, data between them */
  const int x = node_parameter(&l, 30);
  for (int k = 0; k < 30; k++) {
    some[k] = node_one(&l, SCL_VALUE_PART, x, AT(30, (size_t)(29 - k), 0, 1, 1));
    if (k % 3 == 1) some[k] = node_unary(&l, SCL_OP_EXP, some[k]);
    if (k % 7 == 2) some[k] = node_number(&l, 0.25 * k);
  }
  check_all_counts(ctx, &l, node_concat(&l, 30, some), "elements");
  program_begin(&l); /* other lengths */
  for (int k = 0; k < 12; k++) {
    const size_t length = (size_t)(k % 4);
    some[k] = k % 5 == 4 ? node_random_data(&l, length)
                         : node_unary(&l, SCL_OP_TANH, node_parameter(&l, length));
  }
  check_all_counts(ctx, &l, node_concat(&l, 12, some), "vectors");
  program_begin(&l); /* few, long */
  some[0] = node_unary(&l, SCL_OP_TANH, node_parameter(&l, 40000));
  some[1] = node_random_data(&l, 10);
  some[2] = node_parameter(&l, 1);
  check_all_counts(ctx, &l, node_concat(&l, 3, some), "long vectors");
}

/* Parts of the parameters that overlap, parts that nobody reads. */
static void check_parts(scl_context *ctx) {
  program_nodes l;
  program_begin(&l);
  const int x = node_parameter(&l, 40), y = node_parameter(&l, 3);
  const int late = node_one(&l, SCL_VALUE_PART, x, AT(40, 6, 0, 9, 1));
  const int early = node_one(&l, SCL_VALUE_PART, x, AT(40, 5, 0, 9, 1));
  const int alone = node_one(&l, SCL_VALUE_PART, x, AT(40, 20, 0, 3, 1));
  const int last = node_one(&l, SCL_VALUE_PART, x, AT(40, 39, 0, 1, 1));
  const int step = node_binary(&l, SCL_OP_SUB, late, early);
  int v = node_sum(&l, node_binary(&l, SCL_OP_MUL, step, step));
  v = node_binary(&l, SCL_OP_ADD, v, node_sum(&l, node_binary(&l, SCL_OP_MUL, alone, y)));
  check_all_counts(ctx, &l, node_binary(&l, SCL_OP_MUL, v, last), "parts of parameters");
  program_begin(&l);
  const int m = node_unary(&l, SCL_OP_SIN, node_parameter(&l, 6 * 7));
  const int rows = node_one(&l, SCL_VALUE_PART, m, AT(6, 1, 0, 3, 7));
  const int inner = node_one(&l, SCL_VALUE_PART, m, AT(6, 1, 2, 3, 4));
  const int row = node_one(&l, SCL_VALUE_PART, m, AT(6, 2, 1, 1, 5));
  const int sums = node_reduce(&l, SCL_REDUCE_SUM, rows, 3, 7, SCL_BY_ROW);
  const int both = node_concat(&l, 4, (const int[]){rows, inner, row, sums});
  check_all_counts(ctx, &l, both, "parts of a matrix");
}

static void check_places(scl_context *ctx) {
  program_nodes l;
  char what[80];
  for (size_t n = 20; n <= 2000; n += 1980) {
    for (int variant = 0; variant < 2; variant++) {
      program_begin(&l);
      const int p = node_parameter(&l, 15);
      const int x = variant == 0 ? p : node_unary(&l, SCL_OP_SIN, p);
      const int g = node_one(&l, SCL_VALUE_GATHER, x, AT((size_t)node_indices(&l, n, 15)));
      const int s = node_one(&l, SCL_VALUE_SCATTER, g, AT((size_t)node_indices(&l, n, 9), 9));
      const int again = node_one(&l, SCL_VALUE_GATHER, s, AT((size_t)node_indices(&l, n, 9)));
      snprintf(what, sizeof what, "%zu elements", n);
      const int sum = node_binary(&l, SCL_OP_MUL, g, again);
      check_all_counts(ctx, &l, node_concat(&l, 2, (const int[]){sum, s}), what);
    }
  }
}

/* No parameters in the result; only some of the values have them. */
static void check_ends(scl_context *ctx) {
  program_nodes l;
  program_begin(&l);
  node_parameter(&l, 4);
  check_all_counts(ctx, &l, node_random_data(&l, 1), "data");
  program_begin(&l);
  const int a = node_parameter(&l, 1), d = node_random_data(&l, 12);
  const int sums = node_reduce(&l, SCL_REDUCE_SUM, d, 3, 4, SCL_BY_ROW);
  check_all_counts(ctx, &l, node_binary(&l, SCL_OP_MUL, sums, a), "values without parameters");
  program_begin(&l);
  const int none = node_number(&l, 2.0);
  scl_program *p = program_compile(ctx, &l, none, "no parameters");
  double got[3] = {0.0, 0.0, 0.0};
  CHECK(scl_program_is_mapped(p, 3));
  CHECK_OK(scl_program_run_vectors(p, got, 3, true, got));
  CHECK(got[0] == 2.0 && got[2] == 2.0);
  scl_program_release(p);
  program_end(&l);
}

/* ---- vectors that fail ------------------------------------------------------------------------
 */

/* All kinds of values, such that a wrong rule mixes vectors. */
static int all_kinds(program_nodes *l) {
  enum { N = 4 };
  const int x = node_parameter(l, N * N), y = node_parameter(l, N), s = node_parameter(l, 1);
  const int design = node_random_data(l, 9 * N);
  const int eta = node_matmul(l, design, y, 9, N, 1, false, false);
  const int across = node_one(l, SCL_VALUE_TRANSPOSE, x, AT(N, N));
  const int both = node_binary(l, SCL_OP_ADD, node_matmul(l, x, across, N, N, N, false, false),
                               diagonal(l, N, 8.0));
  const int factor = node_one(l, SCL_VALUE_CHOL, both, AT(N));
  const int solved = node_two(l, SCL_VALUE_TRI_SOLVE, factor, y, AT(N, 1, 0, 0));
  const int wide = node_one(l, SCL_VALUE_BROADCAST, solved, AT(N, N, 0));
  const int lower = node_one(l, SCL_VALUE_COPY_AS, node_binary(l, SCL_OP_MUL, wide, across),
                             AT(N, SCL_COPY_MIRROR_LOWER));
  const int sums = node_one(l, SCL_VALUE_CUMSUM, lower, AT(N, N, 1));
  const int some = node_one(l, SCL_VALUE_GATHER, sums, AT((size_t)node_indices(l, 3 * N, N * N)));
  const int spread = node_one(l, SCL_VALUE_SCATTER, some, AT((size_t)node_indices(l, 3 * N, N), N));
  const int rows = node_reduce(l, SCL_REDUCE_PROD, sums, N, N, SCL_BY_ROW);
  const int largest = node_reduce(l, SCL_REDUCE_MAX, sums, N, N, SCL_BY_COLUMN);
  const int block = node_one(l, SCL_VALUE_PART, sums, AT(N, 1, 1, 2, 3));
  const int all = node_concat(l, 8, (const int[]){spread, rows, block, s, largest, eta, s, solved});
  return node_binary(l, SCL_OP_MUL, node_sum(l, node_unary(l, SCL_OP_TANH, all)), s);
}

enum { FOUR = 4 };

static void check_nan(scl_context *ctx) {
  program_nodes l;
  program_begin(&l);
  const int output = all_kinds(&l);
  const size_t n = l.parameters, rows = n + 1;
  scl_program *p = program_compile(ctx, &l, output, "NaN");
  double *x = test_alloc(n * FOUR * sizeof *x);
  double *want = test_alloc(rows * FOUR * sizeof *want),
         *got = test_alloc(rows * FOUR * sizeof *got);
  CHECK_OK(program_map(p, &l, output, FOUR));
  for (size_t i = 0; i < n * FOUR; i++) x[i] = l.x[i % n] + 0.01 * (double)(i / n);
  CHECK_OK(scl_program_run_vectors(p, x, FOUR, true, want));
  for (size_t k = 0; k < FOUR; k++) {
    double *bad = test_alloc(n * FOUR * sizeof *bad);
    for (int how = 0; how < 3; how++) { /* all of them; those of the factor; one of the others */
      memcpy(bad, x, n * FOUR * sizeof *bad);
      for (size_t i = 0; i < n; i++) {
        if (how == 0 || (how == 1 && i < 16) || (how == 2 && i == 17)) {
          bad[k * n + i] = how == 2 ? INFINITY : NAN;
        }
      }
      CHECK_OK(scl_program_run_vectors(p, bad, FOUR, true, got));
      CHECK(isnan(got[k * rows]));
      for (size_t i = 0; i < rows; i++) want[k * rows + i] = got[k * rows + i];
      CHECK(memcmp(got, want, k * rows * sizeof *got) == 0);
      CHECK(memcmp(got + (k + 1) * rows, want + (k + 1) * rows,
                   (FOUR - k - 1) * rows * sizeof *got) == 0);
    }
    CHECK_OK(scl_program_run_vectors(p, x, FOUR, true, want)); /* right again */
    for (size_t i = 0; i < rows * FOUR; i++) CHECK(isfinite(want[i]));
    free(bad);
  }
  scl_program_release(p);
  program_end(&l);
  FREE(x, want, got);
}

/* A matrix without a factor is NaN for its vector only. */
static void check_no_factor(scl_context *ctx) {
  program_nodes l;
  program_begin(&l);
  const int s = node_parameter(&l, 2);
  int sum = node_number(&l, 0.0);
  for (size_t n = 2; n <= 40; n += 38) { /* two matrices */
    const int one = node_one(&l, SCL_VALUE_PART, s, AT(2, n == 2, 0, 1, 1));
    const int a = node_binary(&l, SCL_OP_ADD, diagonal(&l, n, 1.0),
                              node_one(&l, SCL_VALUE_BROADCAST, one, AT(1, n * n, 0)));
    const int f = node_one(&l, SCL_VALUE_CHOL, a, AT(n));
    sum = node_binary(&l, SCL_OP_ADD, sum, weighted(&l, f));
  }
  scl_program *p = program_compile(ctx, &l, sum, "no factor");
  static const double x[] = {0.3, 0.2, -0.2, 0.4, 0.3, -0.99, -0.5, -0.99, 0.1, 0.7};
  double want[15], got[15];
  CHECK_OK(scl_program_run_vectors(p, x, 5, true, want));
  CHECK_OK(program_map(p, &l, sum, 5));
  CHECK_OK(scl_program_run_vectors(p, x, 5, true, got));
  for (int k = 0; k < 15; k++) {
    CHECK(!isnan(want[k]) == (k / 3 < 1 || k / 3 > 3));
    CHECK_NEAR(got[k], want[k], 1e-11);
  }
  CHECK_OK(scl_program_run_vectors(p, x, 5, false, got));
  for (int k = 0; k < 5; k++) CHECK_NEAR(got[k], want[3 * k], 1e-11);
  scl_program_release(p);
  program_end(&l);
}

/* ---- what is kept ------------------------------------------------------------------------------
 */

/* Data are shared and change for all counts; the oldest of many counts is dropped. */
static void check_data(scl_context *ctx) {
  const scl_memory before = scl_context_memory(ctx);
  program_nodes l;
  program_begin(&l);
  const int p = node_parameter(&l, 3000), d = node_random_data(&l, 3000);
  const int output = node_sum(&l, node_binary(&l, SCL_OP_MUL, node_unary(&l, SCL_OP_EXP, p), d));
  scl_program *f = program_compile(ctx, &l, output, "data");
  double *x = test_alloc(7 * 3000 * sizeof *x), want, got[7];
  test_fill(x, 7 * 3000);
  for (int round = 0; round < 2; round++) {
    for (int k = 0; k < COUNTS; k++) {
      CHECK_OK(program_map(f, &l, output, counts[k]));
      CHECK_OK(scl_program_run_vectors(f, x, counts[k], false, got));
      for (size_t j = 0; j < counts[k]; j++) {
        CHECK_OK(scl_program_run(f, x + j * 3000, false, &want));
        CHECK_NEAR(got[j], want, 1e-10);
      }
    }
    for (int k = 0; k < 3000; k++) l.data[0][k] = 0.001 * (k + 1);
    CHECK_OK(scl_program_set_data(f, 0, l.data[0], 3000));
  }
  const uint64_t full = scl_program_about(f).bytes;
  for (size_t k = 8; k < 11; k++) CHECK_OK(program_map(f, &l, output, k));
  CHECK(!scl_program_is_mapped(f, 2) && !scl_program_is_mapped(f, 3));
  CHECK(scl_program_is_mapped(f, 7) && scl_program_is_mapped(f, 10));
  CHECK(scl_program_about(f).bytes > full);
  CHECK(scl_program_about(f).bytes == scl_context_memory(ctx).live - before.live);
  scl_program_release(f);
  CHECK(scl_context_memory(ctx).live == before.live);
  program_end(&l);
  free(x);
}

/* A value of a kind without a rule: one vector after another. */
static void check_no_rule(scl_context *ctx) {
  scl_program *p = NULL;
  double got[6], want[2];
  for (int round = 0; round < 2; round++) {
    scl_tape t;
    scl_tape_begin(&t);
    const int x = scl_tape_add(&t, SCL_VALUE_PARAMETER, 0, 0, NULL, AT(0, 1), 0.0);
    const int one = scl_tape_call(&t, SCL_VALUE_CHOL_ADJOINT, scl_tape_number(&t, 2.0),
                                  scl_tape_number(&t, 3.0), AT(1));
    const int y = scl_tape_binary(&t, SCL_OP_MUL, scl_tape_unary(&t, SCL_OP_EXP, x), one);
    CHECK_OK(round == 0 ? scl_program_make(ctx, &t, y, 1, &p) : scl_program_map(p, &t, y, 3));
  }
  CHECK(scl_program_is_mapped(p, 3));
  const double at[] = {0.5, NAN, 1.0};
  CHECK_OK(scl_program_run_vectors(p, at, 3, true, got));
  CHECK_OK(scl_program_run(p, at + 2, true, want));
  CHECK(isnan(got[2]) && got[4] == want[0] && got[5] == want[1]);
  scl_program_release(p);
}

/* Parameters in several places, long ones among them, and with each allocation failing in turn: the
 * same bits as from one vector. */
static void check_split(scl_context *ctx) {
  static const size_t length[] = {2, 20000, 3, 1, 17000};
  program_nodes l;
  int output = 0;
  program_begin(&l);
  for (size_t k = 0; k < 5; k++) {
    const int x = node_sum(&l, node_unary(&l, SCL_OP_SIN, node_parameter(&l, length[k])));
    output = k == 0 ? x : node_binary(&l, SCL_OP_MUL, output, x);
  }
  scl_program *p = program_compile(ctx, &l, output, "parts");
  double *want = test_alloc((l.parameters + 1) * sizeof *want), value = 0.0;
  double *got = test_alloc(l.parameters * sizeof *got);
  scl_program_part part[5];
  for (size_t k = 0, at = 0; k < 5; at += length[k++]) {
    part[k] = (scl_program_part){k < 2 ? l.x + at : got + at, got + at, length[k]};
  }
  CHECK_OK(scl_program_run(p, l.x, true, want));
  bool fails = true;
  for (long n = 1; fails && n < 100; n++) {
    memcpy(got, l.x, l.parameters * sizeof *got);
    alloc_fail(n);
    const scl_status status = scl_program_run_parts(p, 5, part, &value);
    fails = alloc_failed();
    alloc_fail(0);
    CHECK(status == SCL_OK || (status == SCL_E_MEMORY && fails));
  }
  CHECK(!fails && value == want[0]);
  CHECK(memcmp(got, want + 1, l.parameters * sizeof *got) == 0);
  scl_program_release(p);
  program_end(&l);
  FREE(want, got);
}

/* ---- faults ------------------------------------------------------------------------------------
 */

enum { OWN_ALLOCATIONS = 2 /* of program_record() */, MOST_ALLOCATIONS = 9000 };

/* Every allocation of mapping fails in turn, and every buffer: nothing is kept, and the program
 * still runs. */
static void check_faults(scl_context *ctx) {
  program_nodes l;
  program_begin(&l);
  const int output = all_kinds(&l);
  scl_program *p = program_compile(ctx, &l, output, "faults");
  const scl_memory before = scl_context_memory(ctx);
  bool fails = true;
  for (long n = 1; fails && n < MOST_ALLOCATIONS; n++) {
    alloc_fail(n + OWN_ALLOCATIONS);
    const scl_status status = program_map(p, &l, output, 3);
    fails = alloc_failed();
    alloc_fail(0);
    CHECK(status == SCL_OK || (status == SCL_E_MEMORY && fails));
    CHECK(scl_program_is_mapped(p, 3) == (status == SCL_OK));
    if (status == SCL_OK) { /* a failure that costs speed only */
      scl_program_release(p);
      p = program_compile(ctx, &l, output, "faults");
    }
    CHECK(scl_context_memory(ctx).live == before.live);
  }
  CHECK(!fails);
  scl_status status = SCL_E_MEMORY;
  for (int n = 1; status != SCL_OK && n < MOST_ALLOCATIONS; n++) {
    const uint64_t live = scl_context_memory(ctx).live;
    scl_buffer_fail_after(n);
    status = program_map(p, &l, output, 2);
    scl_buffer_fail_after(-1);
    CHECK(status == SCL_OK || status == SCL_E_MEMORY);
    CHECK(status == SCL_OK || scl_context_memory(ctx).live == live);
  }
  CHECK_OK(status);
  double value, other[2], x[64];
  for (size_t i = 0; i < 2 * l.parameters; i++) x[i] = l.x[i % l.parameters];
  CHECK_OK(scl_program_run(p, l.x, false, &value));
  CHECK_OK(scl_program_run_vectors(p, x, 2, false, other));
  CHECK_NEAR(other[1], value, 1e-12);
  const int several = node_parameter(&l, 2);
  CHECK_STATUS(SCL_E_ARGUMENT, program_map(p, &l, several, 4));
  CHECK_STATUS(SCL_E_ARGUMENT, program_map(p, &l, node_sum(&l, several), 4));
  scl_program_release(p);
  program_end(&l);
}

void test_program_vectors(scl_context *ctx) {
  check_products(ctx);
  check_solves(ctx);
  check_concats(ctx);
  check_parts(ctx);
  check_places(ctx);
  check_ends(ctx);
  check_nan(ctx);
  check_no_factor(ctx);
  check_data(ctx);
  check_no_rule(ctx);
  check_split(ctx);
  check_faults(ctx);
}
