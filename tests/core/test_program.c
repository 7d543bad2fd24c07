/* Programs of each kind of value: value and derivatives against the reference, at many shapes. */
#include "program_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "test.h"

/* ---- subjects: a value made of parameters, at a shape ---------------------------------------- */

typedef int subject(program_nodes *l, size_t m, size_t n, int variant);

static int elementwise(program_nodes *l, size_t m, size_t n, int variant) {
  const int x = node_parameter(l, m * n), one = node_parameter(l, 1);
  const int data = node_random_data(l, m * n);
  const int product = node_binary(l, SCL_OP_MUL, x, variant == 0 ? data : one);
  const int sum = node_binary(l, SCL_OP_ADD, node_unary(l, SCL_OP_SIN, product), x);
  return node_binary(l, SCL_OP_SUB, one, variant == 2 ? node_ifelse(l, data, sum, one) : sum);
}

/* From variant 3 on alone: at its end, one derivative for all elements. */
static int broadcast(program_nodes *l, size_t m, size_t n, int variant) {
  const int by = variant % 3;
  const int x = node_parameter(l, by == 0 ? m : by == 1 ? n : 1), y = node_parameter(l, m * n);
  const int wide =
      node_one(l, SCL_VALUE_BROADCAST, x, by == 2 ? AT(1, m * n, 0) : AT(m, n, (size_t)by));
  return variant < 3 ? node_binary(l, SCL_OP_MUL, node_unary(l, SCL_OP_EXP, wide), y) : wide;
}

static int transpose(program_nodes *l, size_t m, size_t n, int variant) {
  int x = node_parameter(l, m * n);
  const int y = node_parameter(l, m * n);
  x = node_one(l, SCL_VALUE_TRANSPOSE, x, AT(m, n));
  if (variant == 1) x = node_one(l, SCL_VALUE_TRANSPOSE, x, AT(n, m));
  return node_binary(l, SCL_OP_MUL, x, y);
}

/* Parts of parts, with and without gaps. */
static int part(program_nodes *l, size_t m, size_t n, int variant) {
  const int whole = node_parameter(l, (m + 3) * (n + 2));
  const int x = variant % 2 == 0 ? whole : node_unary(l, SCL_OP_SIN, whole);
  const int block = node_one(l, SCL_VALUE_PART, x, AT(m + 3, 1, 1, m, n));
  if (variant < 2) return node_binary(l, SCL_OP_MUL, block, block);
  const int columns = node_one(l, SCL_VALUE_PART, x, AT(m + 3, 0, 1, m + 3, n));
  const int rows = node_one(l, SCL_VALUE_PART, x, AT(m + 3, 2, 0, m, n + 2));
  const int inner = node_one(l, SCL_VALUE_PART, columns, AT(m + 3, 2, 0, m, n));
  const int again = node_one(l, SCL_VALUE_PART, rows, AT(m, 0, 1, m, n));
  const int flat = node_one(l, SCL_VALUE_PART, columns, AT((m + 3) * n, n > 0, 0, m * n, 1));
  return node_binary(l, SCL_OP_MUL, node_binary(l, SCL_OP_ADD, inner, again),
                     node_binary(l, SCL_OP_ADD, block, flat));
}

/* A row, a column and a single element of a matrix. */
static int thin_part(program_nodes *l, size_t m, size_t n, int variant) {
  const int x = node_unary(l, SCL_OP_SIN, node_parameter(l, (m + 1) * (n + 1)));
  const int row = node_one(l, SCL_VALUE_PART, x, AT(m + 1, m, 0, 1, n));
  const int column = node_one(l, SCL_VALUE_PART, x, AT(m + 1, 0, n, m, 1));
  const int element = node_one(l, SCL_VALUE_PART, x, AT(m + 1, m, n, 1, 1));
  if (variant == 0) return node_binary(l, SCL_OP_MUL, row, element);
  if (variant == 1) return node_binary(l, SCL_OP_MUL, column, element);
  return node_binary(l, SCL_OP_MUL, node_one(l, SCL_VALUE_BROADCAST, row, AT(m, n, 1)),
                     node_one(l, SCL_VALUE_BROADCAST, column, AT(m, n, 0)));
}

static const scl_reduction reductions[] = {SCL_REDUCE_SUM, SCL_REDUCE_PROD, SCL_REDUCE_MIN,
                                           SCL_REDUCE_MAX};

static int reduced(program_nodes *l, size_t m, size_t n, int variant) {
  int x = node_parameter(l, m * n);
  if (variant / 3 == 1) { /* products of numbers around 1 */
    x = node_binary(l, SCL_OP_ADD, node_number(l, 1.0),
                    node_binary(l, SCL_OP_MUL, node_number(l, 0.1), x));
  } else if (variant / 3 > 1) { /* steps between elements, lest a difference jumps */
    double *step = test_alloc(m * n * sizeof *step);
    for (size_t i = 0; i < m * n; i++) step[i] = 0.2 * (double)(i * 7919 % (m * n));
    x = node_binary(l, SCL_OP_MUL, node_number(l, 0.05), x);
    x = node_binary(l, SCL_OP_ADD, x, node_data(l, step, m * n));
    free(step);
  }
  return node_reduce(l, reductions[variant / 3], x, m, n, (scl_margin)(variant % 3));
}

/* All margins of one value in one program. */
static int margins(program_nodes *l, size_t m, size_t n, int variant) {
  const int p = node_parameter(l, m * n);
  const int x = variant == 0 ? p : node_unary(l, SCL_OP_SIN, p);
  const int row = node_reduce(l, SCL_REDUCE_SUM, x, m, n, SCL_BY_ROW);
  const int column = node_reduce(l, SCL_REDUCE_SUM, x, m, n, SCL_BY_COLUMN);
  const int total = node_reduce(l, SCL_REDUCE_SUM, x, m, n, SCL_TOTAL);
  const int off = node_binary(l, SCL_OP_SUB, x, node_one(l, SCL_VALUE_BROADCAST, row, AT(m, n, 0)));
  const int wide = node_one(l, SCL_VALUE_BROADCAST, column, AT(m, n, 1));
  const int both = node_binary(l, SCL_OP_MUL, off, node_binary(l, SCL_OP_ADD, wide, total));
  return node_concat(l, 4, (const int[]){both, row, column, total});
}

static int gather(program_nodes *l, size_t m, size_t n, int variant) {
  const size_t length = m + (n > 0);
  const int p = node_parameter(l, length);
  const int x = variant == 0 ? p : node_unary(l, SCL_OP_SIN, p);
  const int indices = node_indices(l, length == 0 ? 0 : m * n, length);
  return node_one(l, SCL_VALUE_GATHER, x, AT((size_t)indices));
}

static int scatter(program_nodes *l, size_t m, size_t n, int variant) {
  const int p = node_parameter(l, m * n);
  const int x = variant == 0 ? p : node_unary(l, SCL_OP_SIN, p);
  const size_t length = m + n + 1;
  return node_one(l, SCL_VALUE_SCATTER, x, AT((size_t)node_indices(l, m * n, length), length));
}

static int concat(program_nodes *l, size_t m, size_t n, int variant) {
  const int p = node_parameter(l, m * n), q = node_parameter(l, n);
  const int x = variant == 0 ? p : node_unary(l, SCL_OP_SIN, p);
  const int number = node_number(l, 2.0), data = node_random_data(l, m);
  const int s = node_sum(l, x);
  const int inner = node_concat(l, 3, (const int[]){x, s, q});
  const int twice = node_concat(l, 6, (const int[]){inner, x, number, x, data, s});
  const int again = node_concat(l, 3, (const int[]){x, x, inner});
  return node_binary(l, SCL_OP_MUL, twice, node_sum(l, node_unary(l, SCL_OP_TANH, again)));
}

static int cumsum(program_nodes *l, size_t m, size_t n, int variant) {
  const int x = node_parameter(l, m * n);
  return node_one(l, SCL_VALUE_CUMSUM, variant < 2 ? x : node_unary(l, SCL_OP_SIN, x),
                  AT(m, n, (size_t)(variant % 2)));
}

/* All flags; variants from 4 on have transposes before the product, from 8 on one value twice. */
static int matmul(program_nodes *l, size_t m, size_t n, int variant) {
  const bool ta = variant & 1, tb = variant & 2;
  const size_t k = variant < 8 ? (m + n + 1) / 2 : m;
  int a = node_parameter(l, m * k), b = a;
  if (variant >= 8) return node_matmul(l, a, b, m, m, m, ta, tb);
  b = node_parameter(l, k * n);
  if (variant >= 4) {
    a = node_one(l, SCL_VALUE_TRANSPOSE, a, ta ? AT(m, k) : AT(k, m));
    b = node_one(l, SCL_VALUE_TRANSPOSE, b, tb ? AT(k, n) : AT(n, k));
  }
  return node_matmul(l, a, b, m, k, n, ta, tb);
}

static int matmul_data(program_nodes *l, size_t m, size_t n, int variant) {
  const int data = node_random_data(l, m * n);
  const int x = node_parameter(l, variant == 0 ? n : m);
  return variant == 0 ? node_matmul(l, data, x, m, n, 1, false, false)
                      : node_matmul(l, x, data, 1, m, n, false, false);
}

static int identity(program_nodes *l, size_t n, double size) {
  double *d = calloc(n * n + 1, sizeof *d);
  if (d == NULL) abort();
  for (size_t i = 0; i < n; i++) d[i * (n + 1)] = size;
  const int node = node_data(l, d, n * n);
  free(d);
  return node;
}

/* Positive definite, of parameters. */
static int spd(program_nodes *l, size_t n) {
  const int b = node_parameter(l, n * n);
  return node_binary(l, SCL_OP_ADD, node_matmul(l, b, b, n, n, n, false, true),
                     identity(l, n, (double)n));
}

static int chol(program_nodes *l, size_t m, size_t n, int variant) {
  int a = spd(l, m);
  (void)n;
  if (variant == 1) a = node_one(l, SCL_VALUE_COPY_AS, a, AT(m, SCL_COPY_MIRROR_LOWER));
  return node_one(l, SCL_VALUE_CHOL, a, AT(m));
}

static int two_factors(program_nodes *l, size_t m, size_t n, int variant) {
  const int a = chol(l, m, m, variant), b = chol(l, n, n, variant);
  return node_concat(l, 3, (const int[]){a, b, a});
}

static int triangle(program_nodes *l, size_t m, size_t n, int variant) {
  const size_t kind = SCL_COPY_LOWER + (size_t)variant;
  return node_one(l, SCL_VALUE_COPY_AS, ((void)n, node_parameter(l, m * m)), AT(m, kind));
}

static int tri_solve(program_nodes *l, size_t m, size_t n, int variant) {
  const int x =
      node_binary(l, SCL_OP_MUL, node_number(l, 1.0 / (double)(m + 1)), node_parameter(l, m * m));
  const int t = node_binary(l, SCL_OP_ADD, x, identity(l, m, 1.5)), b = node_parameter(l, m * n);
  return node_two(l, SCL_VALUE_TRI_SOLVE, t, b,
                  AT(m, n, (size_t)(variant & 1), (size_t)(variant >> 1)));
}

/* A solution and the determinant, of a matrix that needs row exchanges: its rows are in reverse. */
static int general_solve(program_nodes *l, size_t m, size_t n, int variant) {
  double *reversed = test_alloc((m * m + 1) * sizeof *reversed);
  for (size_t i = 0; i < m * m; i++) reversed[i] = 0.0;
  for (size_t i = 0; i < m; i++) reversed[i + (m - 1 - i) * m] = variant & 1 ? -1.5 : 1.5;
  const int x =
      node_binary(l, SCL_OP_MUL, node_number(l, 1.0 / (double)(m + 1)), node_parameter(l, m * m));
  const int a = node_binary(l, SCL_OP_ADD, x, node_data(l, reversed, m * m));
  const int b = node_parameter(l, m * n);
  free(reversed);
  const int f = node_one(l, SCL_VALUE_LU, a, AT(m));
  const int solved = node_two(l, SCL_VALUE_LU_SOLVE, f, b, AT(m, n, (size_t)(variant & 1)));
  const int det = node_one(l, SCL_VALUE_PART, f, AT(m * (m + 1) + 2, m * (m + 1), 0, 2, 1));
  return variant < 2 ? solved : node_concat(l, 2, (const int[]){solved, det});
}

/* Views of two shapes in one expression: m x n and n x m. */
static int two_shapes(program_nodes *l, size_t m, size_t n, int variant) {
  const int x = node_parameter(l, m * n), y = node_parameter(l, m * n), z = node_parameter(l, m);
  const int across = node_one(l, SCL_VALUE_TRANSPOSE, x, AT(m, n));
  const int down = node_one(l, SCL_VALUE_TRANSPOSE, y, AT(n, m));
  const int wide = node_one(l, SCL_VALUE_BROADCAST, z, AT(m, n, 0));
  int r = node_binary(l, SCL_OP_MUL, across, down);
  if (variant == 1) r = node_reduce(l, SCL_REDUCE_SUM, r, m, n, SCL_BY_COLUMN);
  if (variant == 1) return r;
  r = node_binary(l, SCL_OP_ADD, r, node_binary(l, SCL_OP_MUL, wide, across));
  return node_ifelse(l, node_random_data(l, m * n), r, node_binary(l, SCL_OP_MUL, r, r));
}

/* ---- ends: one number of the subject --------------------------------------------------------- */

enum { PLAIN, WEIGHTED, MISSING, ENDS };

static int one_number(program_nodes *l, int v, int end) {
  if (end == PLAIN) return node_sum(l, v);
  const size_t length = l->node[v].length;
  if (end == MISSING) { /* some NaN, which are filled again */
    double *some = test_alloc(length * sizeof *some);
    for (size_t i = 0; i < length; i++) some[i] = i % 3 == 0 ? NAN : test_random();
    const int missing = node_binary(l, SCL_OP_ADD, v, node_data(l, some, length));
    free(some);
    v = node_binary(l, SCL_OP_FILL_NAN, missing, node_unary(l, SCL_OP_SIN, v));
  }
  const int w = node_random_data(l, length);
  return node_sum(l, node_binary(l, SCL_OP_MUL, node_binary(l, SCL_OP_MUL, v, v), w));
}

static const struct {
  const char *name;
  subject *make;
  int variants;
  bool square; /* a matrix of order m */
} subjects[] = {{"elementwise", elementwise, 3, false},
                {"broadcast", broadcast, 6, false},
                {"transpose", transpose, 2, false},
                {"part", part, 4, false},
                {"thin part", thin_part, 3, false},
                {"reduce", reduced, 12, false},
                {"margins", margins, 2, false},
                {"gather", gather, 2, false},
                {"scatter", scatter, 2, false},
                {"concat", concat, 2, false},
                {"cumsum", cumsum, 4, false},
                {"matmul", matmul, 12, true},
                {"matmul of data", matmul_data, 2, false},
                {"chol", chol, 2, true},
                {"two factors", two_factors, 1, true},
                {"triangle", triangle, 3, true},
                {"tri_solve", tri_solve, 4, true},
                {"calls", node_calls, 2, true},
                {"lu_solve", general_solve, 4, true},
                {"eigen", node_eigen, 1, true},
                {"sparse", node_sparse, 3, true},
                {"two shapes", two_shapes, 2, false}};

static const size_t shapes[][2] = {{3, 5}, {0, 0}, {0, 3}, {3, 0}, {1, 1},   {1, 2},   {2, 1},
                                   {1, 7}, {7, 1}, {2, 2}, {5, 3}, {20, 17}, {300, 1}, {1, 300}};
enum { SHAPES = LENGTH(shapes) };

/* Kernels take their time to compile: some shapes on devices; quick, a third of the variants. */
static bool is_wanted(const scl_context *ctx, size_t shape, int end, size_t s, int variant) {
  enum { EMPTY = 4, THIN = 2 }; /* the first shapes, the last ones */
  if (scl_traits(ctx)->synchronous) return true;
  if (test_quick()) {
    const size_t fits = SHAPES - EMPTY - (subjects[s].square ? THIN : 0);
    const bool chosen =
        test_turn(ctx, s, 3) && (subjects[s].variants == 1 || variant % 3 == (int)s % 2);
    return chosen && end == PLAIN && shape == EMPTY + (3 * s + (size_t)variant) % fits;
  }
  return shape == 0 ? end == WEIGHTED : (int)shape == 1 + variant % (SHAPES - 1) && end == PLAIN;
}

static void check_subjects(scl_context *ctx) {
  char what[100];
  for (size_t s = 0; s < LENGTH(subjects); s++) {
    for (int variant = 0; variant < subjects[s].variants; variant++) {
      for (size_t k = 0; k < SHAPES; k++) {
        for (int end = 0; end < ENDS; end++) {
          const size_t m = shapes[k][0], n = shapes[k][1];
          if (!is_wanted(ctx, k, end, s, variant) || (subjects[s].square && (m > 100 || n > 100)))
            continue;
          program_nodes l;
          program_begin(&l);
          const int v = subjects[s].make(&l, m, n, variant);
          snprintf(what, sizeof what, "%s %d of %zu x %zu, end %d", subjects[s].name, variant, m, n,
                   end);
          const int result = one_number(&l, v, end);
          if (k == 0 && scl_traits(ctx)->synchronous) program_check_again(ctx, &l, result, what);
          program_check_and_end(ctx, &l, result, what);
        }
      }
    }
  }
}

/* ---- elementwise operations ----------------------------------------------------------------- */

/* Operands x and y that the operation takes; drawn again until it is smooth there. */
static int add_operation(program_nodes *l, scl_op op, size_t length) {
  for (;;) {
    int args[3];
    for (int k = 0; k < scl_op_arity(op); k++) {
      args[k] = program_argument(l, op, k, node_parameter(l, length));
    }
    const int v = program_add(l, SCL_VALUE_APPLY, op, scl_op_arity(op), args, NULL, 0.0);
    if (program_is_smooth(l, v)) return v;
  }
}

static void check_operations(scl_context *ctx) {
  const int together = scl_traits(ctx)->synchronous ? 1 : 10; /* large kernels compile slowly */
  const bool few = together > 1 && test_quick();
  program_nodes l;
  int all = -1, count = 0;
  program_begin(&l);
  for (int op = 0; op < SCL_OP_COUNT; op++) {
    if (!scl_op_has_derivative((scl_op)op, 0)) continue;
    /* Long to compile: on devices test_expr.c has these and what their derivatives lead to. */
    if (few && op >= SCL_OP_LOG_QGAMMA && op <= SCL_OP_LOG_QBETA) continue;
    if ((few && op == SCL_OP_BESSEL_K_SCALED) || !test_turn(ctx, (size_t)op, 3)) continue;
    const int v = add_operation(&l, (scl_op)op, 7);
    const int s = node_sum(&l, node_binary(&l, SCL_OP_MUL, v, node_random_data(&l, 7)));
    all = all < 0 ? s : node_binary(&l, SCL_OP_ADD, all, s);
    if (++count % together != 0) continue;
    program_check_and_end(ctx, &l, all, scl_op_name((scl_op)op));
    all = -1;
  }
  if (all >= 0) program_check_and_end(ctx, &l, all, "the last operations");
}

/* Powers that have operations of their own, and what changes nothing. */
static void check_folding(scl_context *ctx) {
  static const double powers[] = {-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, -2.5};
  program_nodes l;
  program_begin(&l);
  const int x = program_argument(&l, SCL_OP_LOG, 0, node_parameter(&l, 5));
  const int zero = node_number(&l, 0.0), one = node_number(&l, 1.0), less = node_number(&l, -1.0);
  int sum = node_binary(&l, SCL_OP_SUB, zero, x);
  for (size_t k = 0; k < LENGTH(powers); k++) {
    const int p = node_binary(&l, SCL_OP_POW, x, node_number(&l, powers[k]));
    sum = node_binary(&l, k % 2 ? SCL_OP_ADD : SCL_OP_SUB, sum, p);
    sum = node_binary(&l, SCL_OP_ADD, zero, node_binary(&l, SCL_OP_MUL, sum, one));
    sum = node_binary(&l, SCL_OP_DIV, node_binary(&l, SCL_OP_MUL, less, sum), one);
    sum = node_unary(&l, SCL_OP_NEG, node_unary(&l, SCL_OP_NEG, sum));
    sum = node_binary(&l, SCL_OP_SUB, node_binary(&l, SCL_OP_MUL, sum, less), zero);
    sum = node_binary(&l, SCL_OP_ADD, node_binary(&l, SCL_OP_MUL, one, sum), zero);
  }
  program_check_and_end(ctx, &l, one_number(&l, sum, WEIGHTED), "folding");
}

/* x^y at x = 0 and y = 0, a product with zeros, equal extremes: known derivatives. */
static void check_borders(scl_context *ctx) {
  program_nodes l;
  double got[9];
  program_begin(&l);
  const int p = node_parameter(&l, 8);
  const int x = node_one(&l, SCL_VALUE_PART, p, AT(8, 0, 0, 2, 1));
  const int y = node_one(&l, SCL_VALUE_PART, p, AT(8, 2, 0, 2, 1));
  const int z = node_one(&l, SCL_VALUE_PART, p, AT(8, 4, 0, 4, 1));
  int sum = node_sum(&l, node_binary(&l, SCL_OP_POW, x, y));
  sum = node_binary(&l, SCL_OP_ADD, sum, node_reduce(&l, SCL_REDUCE_PROD, z, 4, 1, SCL_TOTAL));
  sum = node_binary(&l, SCL_OP_ADD, sum, node_reduce(&l, SCL_REDUCE_MAX, z, 4, 1, SCL_TOTAL));
  scl_program *f = program_compile(ctx, &l, sum, "borders");
  const double at[] = {0.0, 2.0, 3.0, 0.0, 0.0, 5.0, 2.0, 5.0};
  const double want[] = {6.0, 0.0, 0.0, 0.0, log(2.0), 50.0, 0.5, 0.0, 0.5};
  CHECK_OK(scl_program_run(f, at, true, got));
  for (int k = 0; k < 9; k++) CHECK_NEAR(got[k], want[k], 1e-14);
  const double two_zeros[] = {1.0, 2.0, 3.0, 0.0, 0.0, 5.0, 0.0, 4.0};
  CHECK_OK(scl_program_run(f, two_zeros, true, got));
  CHECK_NEAR(got[0], 7.0, 1e-14);
  for (int k = 5; k < 9; k++) CHECK_NEAR(got[k], k == 6 ? 1.0 : 0.0, 1e-14);
  scl_program_release(f);
  program_end(&l);
}

/* ---- groups that pass a plan's limits -------------------------------------------------------- */

static void check_limits(scl_context *ctx) {
  program_nodes l;
  program_begin(&l);
  const int x = node_parameter(&l, 31), a = node_parameter(&l, 1);
  int v = node_binary(&l, SCL_OP_MUL, x, a), sums = node_number(&l, 0.0);
  for (int k = 0; k < 30; k++) { /* leaves and numbers */
    const int scaled =
        node_binary(&l, SCL_OP_MUL, node_random_data(&l, 31), node_number(&l, 0.1 + 0.01 * k));
    v = node_binary(&l, SCL_OP_ADD, v, node_binary(&l, SCL_OP_MUL, scaled, x));
    v = node_binary(&l, SCL_OP_ADD, v, node_number(&l, 1.0 / (k + 3)));
    if (k % 2 == 0) sums = node_binary(&l, SCL_OP_ADD, sums, node_sum(&l, v)); /* outputs */
  }
  program_check(ctx, &l, node_binary(&l, SCL_OP_ADD, sums, one_number(&l, v, WEIGHTED)),
                "leaves, numbers, outputs");
  program_end(&l);
  v = node_parameter(&l, 7);
  for (int k = 0; k < 600; k++) { /* steps */
    v = k % 2 ? node_unary(&l, SCL_OP_SIN, v) : node_binary(&l, SCL_OP_ADD, v, v);
  }
  program_check_and_end(ctx, &l, node_sum(&l, v), "steps");
}

/* A thousand parts of a vector, one after the other. */
static void check_chain(scl_context *ctx) {
  program_nodes l;
  program_begin(&l);
  const size_t length = scl_traits(ctx)->synchronous ? 1000 : test_quick() ? 20 : 100;
  const int x = node_parameter(&l, length), phi = node_parameter(&l, 1);
  int state = node_number(&l, 0.0);
  for (size_t i = 0; i < length; i++) {
    const int now = node_one(&l, SCL_VALUE_PART, x, AT(length, i, 0, 1, 1));
    state = node_binary(&l, SCL_OP_ADD, node_binary(&l, SCL_OP_MUL, state, phi), now);
    state = node_unary(&l, SCL_OP_SIN, state);
  }
  program_check_and_end(ctx, &l, state, "a chain");
}

/* ---- outputs and inputs ---------------------------------------------------------------------- */

static void check_ends(scl_context *ctx) {
  program_nodes l;
  program_begin(&l);
  const int p = node_parameter(&l, 1);
  program_check(ctx, &l, p, "a parameter");
  program_check(ctx, &l, node_unary(&l, SCL_OP_EXP, p), "its exponential");
  program_check(ctx, &l, node_number(&l, 3.0), "a number");
  program_check_and_end(ctx, &l, node_random_data(&l, 1), "data");
  program_check_and_end(ctx, &l, node_number(&l, NAN), "no parameters");
  const int x = node_parameter(&l, 9), none = node_concat(&l, 0, NULL);
  program_check(ctx, &l, node_sum(&l, none), "nothing");
  program_check_and_end(ctx, &l, node_one(&l, SCL_VALUE_PART, x, AT(9, 4, 0, 1, 1)), "a part");
}

/* A matrix without a factor gives NaN, and the next run is right again. */
static void check_no_factor(scl_context *ctx) {
  program_nodes l;
  double got[2], value;
  program_begin(&l);
  const int s = node_parameter(&l, 1);
  int sum = node_number(&l, 0.0);
  for (size_t n = 2; n <= 40; n += 38) { /* two matrices */
    const int a = node_binary(&l, SCL_OP_ADD, identity(&l, n, 1.0),
                              node_one(&l, SCL_VALUE_BROADCAST, s, AT(1, n * n, 0)));
    const int f = node_one(&l, SCL_VALUE_CHOL, a, AT(n));
    sum = node_binary(&l, SCL_OP_ADD, sum, one_number(&l, f, WEIGHTED));
  }
  scl_program *f = program_compile(ctx, &l, sum, "no factor");
  static const double at[] = {0.3, -0.9, 0.3, -0.2, NAN, 0.5, 0.3};
  for (size_t k = 0; k < LENGTH(at); k++) {
    const double want = program_value(&l, sum, &at[k]);
    CHECK(!isnan(want) == (at[k] > 0.0));
    CHECK_OK(scl_program_run(f, &at[k], false, &value));
    CHECK_NEAR(value, want, 1e-12);
    CHECK_OK(scl_program_run(f, &at[k], true, got));
    CHECK_NEAR(got[0], want, 1e-12);
    CHECK(!isnan(want) == !isnan(got[1]));
  }
  scl_program_release(f);
  l.x[0] = 0.3;
  program_check_and_end(ctx, &l, sum, "no factor");
}

static void check_data(scl_context *ctx) {
  program_nodes l;
  program_begin(&l);
  const int p = node_parameter(&l, 6), d = node_random_data(&l, 6);
  const int index = node_indices(&l, 6, 6);
  const int g = node_one(&l, SCL_VALUE_GATHER, p, AT((size_t)index));
  const int s = node_one(&l, SCL_VALUE_SCATTER, g, AT((size_t)node_indices(&l, 6, 4), 4));
  const int sum = node_binary(&l, SCL_OP_ADD, node_sum(&l, node_binary(&l, SCL_OP_MUL, g, d)),
                              one_number(&l, s, PLAIN));
  scl_program *f = program_compile(ctx, &l, sum, "data");
  double value;
  for (int k = 0; k < 6; k++) l.data[0][k] = 2.0 + k;
  CHECK_OK(scl_program_set_data(f, 0, l.data[0], 6));
  CHECK_OK(scl_program_run(f, l.x, false, &value));
  CHECK_NEAR(value, program_value(&l, sum, l.x), 1e-12);
  CHECK_STATUS(SCL_E_ARGUMENT, scl_program_set_data(f, 0, l.data[0], 5));
  for (int k = -1; k < 3; k += k < 0 ? 2 : 1)
    CHECK_STATUS(SCL_E_ARGUMENT, scl_program_set_data(f, k, l.data[0], 6));
  scl_program_release(f);
  program_end(&l);
}

void test_program(scl_context *ctx) {
  check_operations(ctx);
  check_subjects(ctx);
  void (*const others[])(scl_context *) = {check_folding, check_borders, check_limits,
                                           check_chain,   check_ends,    check_no_factor,
                                           check_data};
  for (size_t k = 0; k < LENGTH(others); k++) {
    if (test_turn(ctx, k, 2)) others[k](ctx);
  }
}
