/* Random programs: kinds chosen at random for values whose shapes fit, with numbers of size around
 * one; value and derivatives are compared with the reference. A failure is printed with the
 * program's number, which is its seed. */
#include "program_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

typedef struct {
  int node;
  size_t m, n; /* its shape */
} shaped;

enum { POOL = 64 };

typedef struct {
  program_nodes l;
  shaped pool[POOL];
  int used;
} draw;

static size_t below(size_t limit) {
  const size_t k = (size_t)((test_random() + 1.0) / 2.0 * (double)limit);
  return k < limit ? k : limit - 1;
}

static shaped any(const draw *d) {
  return d->pool[below((size_t)d->used)];
}

static size_t length_of(const draw *d, int node) {
  return d->l.node[node].length;
}

/* ---- pieces --------------------------------------------------------------------------------- */

static int scaled(draw *d, int x, double factor) {
  return factor == 1.0 ? x : node_binary(&d->l, SCL_OP_MUL, x, node_number(&d->l, factor));
}

/* Keeps a value if it is smooth, scaled to numbers of size around one. */
static void keep(draw *d, int node, size_t m, size_t n) {
  double largest = 0.0;
  for (size_t i = 0; i < length_of(d, node); i++) {
    largest = fmax(largest, fabs(d->l.node[node].value[i]));
    if (!isfinite(d->l.node[node].value[i])) return;
  }
  if (d->used == POOL || !program_is_smooth(&d->l, node)) return;
  if (largest > 2.0) node = scaled(d, node, 1.0 / ceil(largest));
  d->pool[d->used++] = (shaped){node, m, n};
}

/* A value of this length: what is there, or elements of something. */
static int of_length(draw *d, size_t length) {
  for (int k = 0; k < 4; k++) {
    const shaped x = any(d);
    if (x.m * x.n == length) return x.node;
  }
  const shaped x = any(d);
  const int indices = node_indices(&d->l, length, x.m * x.n);
  return node_one(&d->l, SCL_VALUE_GATHER, x.node, AT((size_t)indices));
}

static int diagonal(draw *d, size_t n, double size) {
  double *x = test_alloc(n * n * sizeof *x);
  for (size_t i = 0; i < n * n; i++) x[i] = i % (n + 1) == 0 ? size : 0.0;
  const int node = node_data(&d->l, x, n * n);
  free(x);
  return node;
}

/* ---- kinds ---------------------------------------------------------------------------------- */

static void add_leaf(draw *d) {
  const size_t m = 1 + below(7), n = below(2) ? 1 : 1 + below(6);
  const size_t which = below(4);
  if (which == 0) {
    keep(d, node_number(&d->l, test_random()), 1, 1);
  } else {
    keep(d, which == 1 ? node_random_data(&d->l, m * n) : node_parameter(&d->l, m * n), m, n);
  }
}

static void add_apply(draw *d) {
  const scl_op op = (scl_op)below(SCL_OP_COUNT);
  const shaped x = any(d);
  int args[3];
  if (!scl_op_has_derivative(op, 0)) return;
  const int arity = scl_op_arity(op);
  const size_t first = below((size_t)arity);
  for (int k = 0; k < arity; k++) {
    const bool own = (size_t)k == first;
    const int y = own ? x.node : of_length(d, below(3) == 0 ? 1 : x.m * x.n);
    args[k] = program_argument(&d->l, op, k, y);
  }
  const int v = program_add(&d->l, SCL_VALUE_APPLY, op, arity, args, NULL, 0.0);
  if (length_of(d, v) == x.m * x.n) keep(d, v, x.m, x.n);
}

static void add_view(draw *d) {
  const shaped x = any(d);
  const size_t length = x.m * x.n, more = 1 + below(5);
  switch (below(4)) {
  case 0:
    if (length > 12) return;
    keep(d, node_one(&d->l, SCL_VALUE_BROADCAST, x.node, AT(length, more, 0)), length, more);
    break;
  case 1:
    if (length > 12) return;
    keep(d, node_one(&d->l, SCL_VALUE_BROADCAST, x.node, AT(more, length, 1)), more, length);
    break;
  case 2:
    keep(d, node_one(&d->l, SCL_VALUE_TRANSPOSE, x.node, AT(x.m, x.n)), x.n, x.m);
    break;
  default: {
    const size_t i = below(x.m), j = below(x.n), m = 1 + below(x.m - i), n = 1 + below(x.n - j);
    keep(d, node_one(&d->l, SCL_VALUE_PART, x.node, AT(x.m, i, j, m, n)), m, n);
  }
  }
}

static void add_reduction(draw *d) {
  static const scl_reduction ops[] = {SCL_REDUCE_SUM, SCL_REDUCE_SUM, SCL_REDUCE_PROD,
                                      SCL_REDUCE_MIN, SCL_REDUCE_MAX};
  const scl_reduction op = ops[below(5)];
  const shaped x = any(d);
  const scl_margin margin = (scl_margin)below(3);
  int y = x.node;
  if (op == SCL_REDUCE_PROD) { /* of numbers around one */
    y = node_binary(&d->l, SCL_OP_ADD, node_number(&d->l, 1.0), scaled(d, y, 0.2));
  }
  const int v = node_reduce(&d->l, op, y, x.m, x.n, margin);
  keep(d, v, length_of(d, v), 1);
}

static void add_places(draw *d) {
  const shaped x = any(d);
  const size_t length = x.m * x.n, count = 1 + below(20);
  if (below(2)) {
    const int indices = node_indices(&d->l, count, length);
    keep(d, node_one(&d->l, SCL_VALUE_GATHER, x.node, AT((size_t)indices)), count, 1);
  } else {
    const int indices = node_indices(&d->l, length, count);
    keep(d, node_one(&d->l, SCL_VALUE_SCATTER, x.node, AT((size_t)indices, count)), count, 1);
  }
}

static void add_concat(draw *d) {
  int some[4];
  const int count = 1 + (int)below(4);
  for (int k = 0; k < count; k++) some[k] = any(d).node;
  const int v = node_concat(&d->l, count, some);
  if (length_of(d, v) <= 80) keep(d, v, length_of(d, v), 1);
}

static void add_cumsum(draw *d) {
  const shaped x = any(d);
  keep(d, node_one(&d->l, SCL_VALUE_CUMSUM, x.node, AT(x.m, x.n, below(2))), x.m, x.n);
}

static void add_matmul(draw *d) {
  const shaped x = any(d);
  const bool ta = below(2), tb = below(2);
  const size_t m = ta ? x.n : x.m, k = ta ? x.m : x.n, n = 1 + below(5);
  if (m * n > 80) return;
  keep(d, node_matmul(&d->l, x.node, of_length(d, k * n), m, k, n, ta, tb), m, n);
}

static void add_square(draw *d) {
  const size_t n = 1 + below(6), k = 1 + below(4);
  int x = scaled(d, of_length(d, n * n), 0.5);
  switch (below(4)) {
  case 3:
    x = node_binary(&d->l, SCL_OP_ADD, scaled(d, x, 1.0 / (double)n), diagonal(d, n, -1.5));
    x = node_one(&d->l, SCL_VALUE_LU, x, AT(n));
    keep(d, node_one(&d->l, SCL_VALUE_PART, x, AT(n * (n + 1) + 2, n * (n + 1), 0, 1, 1)), 1, 1);
    keep(d, node_two(&d->l, SCL_VALUE_LU_SOLVE, x, of_length(d, n * k), AT(n, k, below(2))), n, k);
    break;
  case 0:
    x = node_matmul(&d->l, x, x, n, n, n, true, false);
    x = node_binary(&d->l, SCL_OP_ADD, x, diagonal(d, n, 1.0));
    if (below(2)) { /* unsymmetric: the upper triangle is not read */
      const int upper =
          node_one(&d->l, SCL_VALUE_COPY_AS, of_length(d, n * n), AT(n, SCL_COPY_UPPER));
      x = node_binary(&d->l, SCL_OP_ADD, x, scaled(d, upper, 0.3));
    }
    keep(d, node_one(&d->l, SCL_VALUE_CHOL, x, AT(n)), n, n);
    break;
  case 1:
    x = node_binary(&d->l, SCL_OP_ADD, scaled(d, x, 1.0 / (double)n), diagonal(d, n, 1.5));
    keep(d,
         node_two(&d->l, SCL_VALUE_TRI_SOLVE, x, of_length(d, n * k), AT(n, k, below(2), below(2))),
         n, k);
    break;
  default:
    keep(d, node_one(&d->l, SCL_VALUE_COPY_AS, x, AT(n, SCL_COPY_LOWER + below(3))), n, n);
  }
}

/* A branch whose numbers are not finite where it is not taken: an operation at 0 or at infinity. */
static void add_branch(draw *d) {
  static const scl_op ops[] = {SCL_OP_LOG, SCL_OP_SQRT, SCL_OP_LGAMMA, SCL_OP_DIV, SCL_OP_EXP};
  const scl_op op = ops[below(5)];
  const shaped x = any(d);
  const size_t length = x.m * x.n;
  double *taken = test_alloc(length * sizeof *taken);
  for (size_t i = 0; i < length; i++) taken[i] = (double)below(2);
  const int mask = node_data(&d->l, taken, length), one = node_number(&d->l, 1.0);
  free(taken);
  int y = node_binary(&d->l, SCL_OP_MUL, program_argument(&d->l, SCL_OP_LOG, 0, x.node), mask);
  const int test = below(2) ? mask : node_binary(&d->l, SCL_OP_GT, y, node_number(&d->l, 0.0));
  if (op == SCL_OP_DIV || op == SCL_OP_EXP) y = node_binary(&d->l, SCL_OP_DIV, one, y);
  if (op != SCL_OP_DIV) y = node_unary(&d->l, op, y);
  if (below(2)) y = node_binary(&d->l, SCL_OP_MUL, y, of_length(d, length));
  keep(d, node_ifelse(&d->l, test, y, of_length(d, length)), x.m, x.n);
}

static void add_any(draw *d) {
  static void (*const add[])(draw *) = {
      add_leaf,      add_apply,  add_apply,  add_apply,  add_apply,  add_view,   add_view,
      add_reduction, add_places, add_concat, add_cumsum, add_matmul, add_square, add_branch};
  add[below(LENGTH(add))](d);
}

/* The sum of some of the values that came last. */
static int result_of(draw *d) {
  int sum = -1;
  for (int k = 0; k < 3; k++) {
    const shaped x = d->pool[d->used - 1 - (int)below((size_t)(d->used < 8 ? d->used : 8))];
    int v = x.node;
    if (below(3)) v = node_binary(&d->l, SCL_OP_MUL, v, node_random_data(&d->l, x.m * x.n));
    v = node_sum(&d->l, v);
    sum = sum < 0 ? v : node_binary(&d->l, SCL_OP_ADD, sum, v);
  }
  return sum;
}

/* ---- as text -------------------------------------------------------------------------------- */

static void put_numbers(FILE *to, const char *name, const double *x, size_t count) {
  fprintf(to, "%s", name);
  for (size_t i = 0; i < count; i++) fprintf(to, " %a", x[i]);
  fprintf(to, "\n");
}

static const char *name_of(const program_node *v) {
  return v->kind == SCL_VALUE_APPLY    ? scl_op_name((scl_op)v->op)
         : v->kind == SCL_VALUE_REDUCE ? scl_reduction_name((scl_reduction)v->op)
                                       : "-";
}

/* The program with its value and gradient at the present point: tests/reference/programs.py. */
static void put_program(scl_context *ctx, const program_nodes *l, int result, FILE *to) {
  double *got = test_alloc((l->parameters + 1) * sizeof *got);
  scl_program *p = program_compile(ctx, l, result, "a program to print");
  CHECK_OK(scl_program_run(p, l->x, true, got));
  scl_program_release(p);
  fprintf(to, "program %d\n", result);
  put_numbers(to, "x", l->x, l->parameters);
  for (int k = 0; k < l->data_count; k++) put_numbers(to, "data", l->data[k], l->data_length[k]);
  for (int k = 0; k < l->nodes; k++) {
    const program_node *v = &l->node[k];
    fprintf(to, "node %s %s %zu %a %d", scl_row_of(v->kind)->name, name_of(v), v->length, v->number,
            v->operands);
    for (int i = 0; i < v->operands; i++) fprintf(to, " %d", v->operand[i]);
    for (int i = 0; i < scl_value_attributes(v->kind); i++) fprintf(to, " %zu", v->at[i]);
    fprintf(to, "\n");
  }
  put_numbers(to, "result", got, l->parameters + 1);
  free(got);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* `print`: NULL, or where the program is printed instead of being checked. */
static void check_one(scl_context *ctx, int number, FILE *print) {
  draw d = {.used = 0};
  char what[40];
  program_begin(&d.l);
  keep(&d, node_parameter(&d.l, 1 + below(10)), 1, 1);
  d.pool[0].m = d.l.parameters;
  add_leaf(&d);
  const size_t steps = 4 + below(24);
  for (size_t k = 0; k < steps; k++) add_any(&d);
  snprintf(what, sizeof what, "program %d", number);
  const int result = result_of(&d);
  if (print != NULL) {
    put_program(ctx, &d.l, result, print);
    program_end(&d.l);
    return;
  }
  if (number % 4 == 0) program_check_again(ctx, &d.l, result, what);
  if (number % 4 == 1 && scl_traits(ctx)->synchronous) {
    program_check_sparse(ctx, &d.l, result, NULL, what);
  }
  program_check_and_end(ctx, &d.l, result, what);
}

void test_program_random(scl_context *ctx) {
  /* A device compiles kernels for each of them: some, or as many as STATCL_TEST_PROGRAMS says; four
   * in turn. */
  const char *asked = getenv("STATCL_TEST_PROGRAMS");
  const int few = asked != NULL ? atoi(asked) : test_small() ? 6 : 60;
  const int programs = scl_traits(ctx)->synchronous && asked == NULL ? 2000 : few;
  const char *path = getenv("STATCL_TEST_PRINT"); /* a file */
  FILE *print = path != NULL ? fopen(path, "w") : NULL;
  for (int k = 0; k < programs; k++) {
    if (asked == NULL && !test_turn(ctx, (size_t)k, 15)) continue;
    test_seed(1000 + (uint64_t)k);
    check_one(ctx, k, print);
  }
  if (print != NULL) CHECK(fclose(print) == 0);
}
