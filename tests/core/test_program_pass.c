/* Programs whose derivatives are X' r next to X b, in one read of X: against the same programs with
 * two reads, at the edges of tiles, with what else may stand in the kernel, and what may not. */
#include "program_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "test.h"

static void set_variable(const char *name, const char *value) {
  char *copy = malloc(strlen(value) + 1);
  if (copy == NULL) abort();
  scl_env_restore(name, strcpy(copy, value));
}

static void set_pass(const char *value) {
  set_variable("STATCL_ROW_PASS", value);
}

/* ---- functions of X b ------------------------------------------------------------------------ */

typedef struct {
  size_t n, p;
  int x;
} design;

static int product(program_nodes *l, const design *d) {
  return node_matmul(l, d->x, node_parameter(l, d->p), d->n, d->p, 1, false, false);
}

static int mul(program_nodes *l, int a, int b) {
  return node_binary(l, SCL_OP_MUL, a, b);
}

static int add(program_nodes *l, int a, int b) {
  return node_binary(l, SCL_OP_ADD, a, b);
}

static int logistic(program_nodes *l, const design *d) {
  const int eta = product(l, d), y = node_random_data(l, d->n);
  return node_sum(l,
                  node_binary(l, SCL_OP_SUB, mul(l, y, eta), node_unary(l, SCL_OP_LOG1P_EXP, eta)));
}

/* An intercept and a scale. */
static int normal(program_nodes *l, const design *d) {
  const int mean = add(l, product(l, d), node_parameter(l, 1)), y = node_random_data(l, d->n);
  const int scale = node_unary(l, SCL_OP_EXP, node_parameter(l, 1));
  const int z = node_binary(l, SCL_OP_DIV, node_binary(l, SCL_OP_SUB, y, mean), scale);
  return add(l, node_sum(l, mul(l, z, z)), node_unary(l, SCL_OP_LOG, scale));
}

/* Effects of groups, which are made first and whose derivatives read r. */
static int grouped(program_nodes *l, const design *d) {
  const int groups = 3;
  const int scaled =
      mul(l, node_unary(l, SCL_OP_EXP, node_parameter(l, 1)), node_parameter(l, (size_t)groups));
  const int index = node_indices(l, d->n, (size_t)groups);
  const int effect = node_one(l, SCL_VALUE_GATHER, scaled, AT((size_t)index));
  return node_sum(l, node_unary(l, SCL_OP_SIN, add(l, product(l, d), effect)));
}

/* X b and a function of it are derivatives. */
static int stored(program_nodes *l, const design *d) {
  const int eta = product(l, d), z = node_parameter(l, d->n), w = node_parameter(l, d->n);
  return add(l, node_sum(l, mul(l, node_unary(l, SCL_OP_SIN, eta), z)),
             node_sum(l, mul(l, eta, w)));
}

/* A call reads X b, and makes a part of r. */
static int read_elsewhere(program_nodes *l, const design *d) {
  const int eta = product(l, d), z = node_parameter(l, d->n);
  const int sums = node_one(l, SCL_VALUE_CUMSUM, eta, AT(d->n, 1, 0));
  return add(l, node_sum(l, mul(l, node_unary(l, SCL_OP_SIN, eta), z)),
             node_sum(l, node_unary(l, SCL_OP_TANH, sums)));
}

static int two_vectors(program_nodes *l, const design *d) {
  const int share = node_unary(l, SCL_OP_INV_LOGIT, product(l, d));
  return node_sum(l, mul(l, share, node_unary(l, SCL_OP_SIN, product(l, d))));
}

/* The scale is known only when all of X b is. */
static int profile(program_nodes *l, const design *d) {
  const int eta = product(l, d);
  const int scale = add(l, node_number(l, 1.0), node_sum(l, mul(l, eta, eta)));
  return node_sum(l, node_unary(l, SCL_OP_SIN, node_binary(l, SCL_OP_DIV, eta, scale)));
}

static int two_matrices(program_nodes *l, const design *d) {
  design other = *d;
  other.x = node_random_data(l, d->n * d->p);
  return node_sum(l, mul(l, node_unary(l, SCL_OP_SIN, product(l, d)), product(l, &other)));
}

/* More operands than one kernel takes. */
static int many_operands(program_nodes *l, const design *d) {
  int eta = product(l, d);
  for (int k = 0; k < 25; k++) {
    eta = add(l, eta, mul(l, node_random_data(l, d->n), node_parameter(l, 1)));
  }
  return node_sum(l, node_unary(l, SCL_OP_SIN, eta));
}

static int prod(program_nodes *l, const design *d) {
  const int eta = mul(l, node_number(l, 0.01), node_unary(l, SCL_OP_SIN, product(l, d)));
  return node_reduce(l, SCL_REDUCE_PROD, add(l, node_number(l, 1.0), eta), d->n, 1, SCL_TOTAL);
}

/* ---- one read against two -------------------------------------------------------------------- */

static bool is_near(double a, double b, double scale) {
  return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-12 * scale;
}

/* Value and gradient; the calls of the program, or -1. */
static int run(scl_context *ctx, program_nodes *l, int output, const char *pass, double *to,
               const char *what) {
  double *again = test_alloc((l->parameters + 1) * sizeof *again);
  int calls = -1;
  set_pass(pass);
  scl_program *p = program_compile(ctx, l, output, what);
  if (p != NULL && scl_program_run(p, l->x, true, to) == SCL_OK &&
      scl_program_run(p, l->x, true, again) == SCL_OK) {
    calls = scl_program_about(p).calls;
    test_check(memcmp(to, again, (l->parameters + 1) * sizeof *to) == 0, what, __FILE__, __LINE__);
  }
  scl_program_release(p);
  free(again);
  return calls;
}

/* `calls`: how many calls remain next to one read of X. */
static void check_same(scl_context *ctx, program_nodes *l, int output, int calls,
                       const char *what) {
  const size_t count = l->parameters + 1;
  double *one = test_alloc(count * sizeof *one), *two = test_alloc(count * sizeof *two);
  double scale = 1.0;
  test_check(run(ctx, l, output, "0", two, what) >= 0, what, __FILE__, __LINE__);
  const int got = run(ctx, l, output, "1", one, what);
  for (size_t i = 0; i < count; i++) {
    if (fabs(two[i]) > scale && isfinite(two[i])) scale = fabs(two[i]);
  }
  bool same = true;
  for (size_t i = 0; i < count && same; i++) {
    same = is_near(one[i], two[i], scale);
    if (!same) printf("       %s: %zu is %.17g, not %.17g\n", what, i, one[i], two[i]);
  }
  test_check(same, what, __FILE__, __LINE__);
  if (got != calls) printf("       %s: %d calls\n", what, got);
  test_check(got == calls, what, __FILE__, __LINE__);
  FREE(one, two);
}

typedef int function(program_nodes *l, const design *d);

static void check_function(scl_context *ctx, function *f, size_t n, size_t p, int calls,
                           const char *what) {
  char text[96];
  program_nodes l;
  snprintf(text, sizeof text, "%s, %zu x %zu", what, n, p);
  program_begin(&l);
  const design d = {n, p, node_random_data(&l, n * p)};
  const int output = f(&l, &d);
  const scl_memory before = scl_context_memory(ctx);
  check_same(ctx, &l, output, calls, text);
  test_check(scl_context_memory(ctx).live == before.live, text, __FILE__, __LINE__);
  program_end(&l);
}

/* Tiles have 128, 64, 32 and 16 rows with up to 26, 52, 104 and more columns, half as many where
 * the number of rows is odd. */
static const size_t shapes[][2] = {{2, 1},   {127, 2}, {128, 3},  {129, 3},  {130, 3},  {64, 52},
                                   {66, 51}, {33, 33}, {32, 100}, {34, 128}, {500, 55}, {31, 65}};

static void check_shapes(scl_context *ctx) {
  for (size_t s = 0; s < LENGTH(shapes); s++) {
    check_function(ctx, logistic, shapes[s][0], shapes[s][1], 0, "logistic");
  }
  check_function(ctx, logistic, 1, 3, 1, "one row");
  check_function(ctx, logistic, 40, ctx->engine->pass_columns(ctx) + 1, 1, "too many columns");
}

/* Blocks of the host have 64 to 512 rows of up to 512 columns; work of several threads is cut into
 * tiles of blocks. */
static void check_blocks(scl_context *ctx) {
  static const size_t sides[][2] = {{511, 64},  {512, 64},  {513, 65}, {1025, 1},  {127, 512},
                                    {129, 256}, {64, 511},  {65, 512}, {9000, 60}, {4096, 128},
                                    {70001, 5}, {5000, 26}, {17000, 1}};
  for (size_t s = 0; s < LENGTH(sides); s++)
    check_function(ctx, s % 2 == 0 ? logistic : normal, sides[s][0], sides[s][1], 0, "blocks");
  for (size_t s = 0; s < 300; s++) {
    const size_t n = 2 + (size_t)(fabs(test_random()) * 700.0),
                 p = 1 + (size_t)(fabs(test_random()) * 90.0);
    check_function(ctx,
                   s % 3 == 0   ? two_vectors
                   : s % 3 == 1 ? normal
                                : logistic,
                   n, p, 0, "blocks");
  }
}

/* The same bits on any number of threads, and prepared (ready.c) or not. */
static void check_threads(scl_context *ctx) {
  program_nodes l;
  program_begin(&l);
  const design d = {20011, 40, node_random_data(&l, 20011 * 40)};
  const int output = normal(&l, &d);
  double *one = test_alloc((l.parameters + 1) * sizeof *one);
  double *more = test_alloc((l.parameters + 1) * sizeof *more);
  char *before = scl_env_copy("STATCL_COPY_THREADS");
  set_variable("STATCL_COPY_THREADS", "1");
  CHECK(run(ctx, &l, output, "1", one, "one thread") == 0);
  set_variable("STATCL_COPY_THREADS", "5");
  CHECK(run(ctx, &l, output, "1", more, "five threads") == 0);
  CHECK(memcmp(one, more, (l.parameters + 1) * sizeof *one) == 0);
  set_variable("STATCL_COPY_THREADS", before != NULL ? before : "");
  FREE(before, one, more);
  program_end(&l);
}

static void check_functions(scl_context *ctx) {
  static const struct {
    function *f;
    const char *what;
    int calls;
  } cases[] = {{normal, "normal", 0},
               {grouped, "groups", 2},
               {stored, "stored", 0},
               {read_elsewhere, "read elsewhere", 3},
               {two_vectors, "two vectors", 0},
               {profile, "profile", 1},
               {two_matrices, "two matrices", 2},
               {many_operands, "many operands", 1},
               {prod, "a product of all", 1}};
  for (size_t k = 0; k < LENGTH(cases); k++) {
    check_function(ctx, cases[k].f, 70, 3, cases[k].calls, cases[k].what);
    if (k < 3) check_function(ctx, cases[k].f, 67, 40, cases[k].calls, cases[k].what);
  }
}

/* Rows with numbers that are not finite. */
static void check_not_finite(scl_context *ctx) {
  const double odd[] = {NAN, INFINITY, -INFINITY};
  for (size_t k = 0; k < 3; k++) {
    program_nodes l;
    program_begin(&l);
    double x[70 * 3];
    test_fill(x, 70 * 3);
    x[k == 0 ? 69 : 5] = odd[k];
    const design d = {70, 3, node_data(&l, x, 70 * 3)};
    check_same(ctx, &l, logistic(&l, &d), 0, "not finite");
    program_end(&l);
  }
}

/* New data. */
static void check_data(scl_context *ctx) {
  program_nodes l;
  double value[4], changed[4], x[70 * 3];
  program_begin(&l);
  const design d = {70, 3, node_random_data(&l, 70 * 3)};
  const int output = logistic(&l, &d);
  set_pass("1");
  scl_program *p = program_compile(ctx, &l, output, "data");
  test_fill(x, 70 * 3);
  if (p != NULL) {
    CHECK_OK(scl_program_run(p, l.x, true, value));
    CHECK_OK(scl_program_set_data(p, 0, x, 70 * 3));
    CHECK_OK(scl_program_run(p, l.x, true, changed));
    CHECK(value[0] != changed[0] && value[1] != changed[1]);
    CHECK_OK(scl_program_set_data(p, 0, l.data[0], 70 * 3));
    CHECK_OK(scl_program_run(p, l.x, true, changed));
    CHECK(memcmp(value, changed, sizeof value) == 0);
  }
  scl_program_release(p);
  program_end(&l);
}

/* Against differences. */
static void check_derivatives(scl_context *ctx) {
  function *const functions[] = {logistic, normal, grouped, two_vectors};
  set_pass("1");
  for (size_t k = 0; k < 4; k++) {
    program_nodes l;
    program_begin(&l);
    const design d = {70, 3, node_random_data(&l, 70 * 3)};
    program_check(ctx, &l, functions[k](&l, &d), "a pass");
    program_end(&l);
  }
}

/* Several vectors at once: a kernel has up to four predictors, the products of each vector; with
 * matrix instructions eight, of 11 to 104 columns and an even number of rows. */
static void check_vectors(scl_context *ctx) {
  static const struct {
    function *f;
    size_t n, p, vectors;
  } cases[] = {{logistic, 70, 3, 4},    {logistic, 70, 3, 5},       {normal, 70, 3, 3},
               {grouped, 70, 3, 4},     {stored, 70, 60, 4},        {two_vectors, 67, 3, 2},
               {two_vectors, 70, 3, 4}, {read_elsewhere, 70, 3, 2}, {profile, 70, 3, 2},
               {logistic, 70, 13, 4},   {logistic, 32, 55, 3},      {normal, 2, 104, 2},
               {grouped, 70, 17, 5},    {two_vectors, 48, 20, 4},   {logistic, 34, 40, 8},
               {logistic, 70, 20, 9},   {read_elsewhere, 18, 16, 7}};
  for (size_t k = 0; k < LENGTH(cases); k++) {
    if (!test_turn(ctx, k, 2)) continue;
    char text[96];
    program_nodes l;
    snprintf(text, sizeof text, "case %zu of several vectors", k);
    program_begin(&l);
    const design d = {cases[k].n, cases[k].p, node_random_data(&l, cases[k].n * cases[k].p)};
    const int output = cases[k].f(&l, &d);
    set_pass("1");
    program_check_vectors(ctx, &l, output, cases[k].vectors, text);
    program_end(&l);
  }
}

void test_program_pass(scl_context *ctx) {
  char *before = scl_env_copy("STATCL_ROW_PASS");
  set_pass("1");
  const scl_engine *e = ctx->engine;
  if (e->pass_columns != NULL && e->pass_columns(ctx) > 0) {
    check_shapes(ctx);
    check_functions(ctx);
    if (scl_traits(ctx)->synchronous) {
      check_blocks(ctx);
      check_threads(ctx);
    }
    check_not_finite(ctx);
    check_data(ctx);
    check_vectors(ctx);
    test_seed(1);
    check_derivatives(ctx);
  }
  set_pass(before != NULL ? before : "");
  free(before);
}
