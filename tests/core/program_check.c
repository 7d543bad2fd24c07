#include "program_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/sparse_program.h"
#include "test.h"

static void fail_case(bool ok, const char *text, const char *what, double got, double want) {
  test_check(ok, what, __FILE__, __LINE__);
  if (!ok) printf("       %s: %.17g, not %.17g\n", text, got, want);
}

static bool near(double got, double want, double tolerance) {
  if (got == want || (isnan(got) && isnan(want))) return true;
  return fabs(got - want) <= tolerance * fmax(1.0, fabs(want));
}

scl_program *program_compile(scl_context *ctx, const program_nodes *l, int output,
                             const char *what) {
  scl_tape t;
  scl_program *p = NULL;
  scl_tape_begin(&t);
  const int result = program_record(l, &t, output);
  const scl_status status = scl_program_make(ctx, &t, result, l->parameters, &p);
  test_check_status(status, SCL_OK, what, __FILE__, __LINE__);
  return status == SCL_OK ? p : NULL;
}

/* ---- derivatives ---------------------------------------------------------------------------- */

/* One of several step sizes is suitable; large derivatives of high order need small ones. */
static void check_derivative(program_nodes *l, int output, const double *x, const double *direction,
                             double slope, double scale, const char *what) {
  double want = 0.0, h = 1e-3;
  bool ok = false;
  for (int k = 0; k < 3 && !ok; k++, h /= 8.0) {
    want = program_slope(l, output, x, direction, h);
    ok = near(slope / scale, want / scale, 1e-7);
  }
  fail_case(ok, "derivative", what, slope, want);
}

static void check_slope(program_nodes *l, int output, const double *x, const double *direction,
                        const double *gradient, const char *what) {
  double slope = 0.0, scale = 1.0;
  for (size_t i = 0; i < l->parameters; i++) {
    slope += gradient[i] * direction[i];
    scale = fmax(scale, fabs(gradient[i] * direction[i]));
  }
  check_derivative(l, output, x, direction, slope, scale, what);
}

enum { FEW_PARAMETERS = 8, DIRECTIONS = 3 };

static void check_slopes(program_nodes *l, int output, const double *x, const double *gradient,
                         const char *what) {
  const size_t count = l->parameters;
  double *direction = calloc(count + 1, sizeof *direction);
  if (direction == NULL) abort();
  for (size_t k = 0; k < (count <= FEW_PARAMETERS ? count : DIRECTIONS); k++) {
    const size_t i =
        count <= FEW_PARAMETERS ? k : (size_t)((test_random() + 1.0) / 2.0 * (double)(count - 1));
    direction[i] = 1.0;
    check_slope(l, output, x, direction, gradient, what);
    direction[i] = 0.0;
  }
  for (int k = 0; k < DIRECTIONS && count > 0; k++) {
    test_fill(direction, count);
    check_slope(l, output, x, direction, gradient, what);
  }
  free(direction);
}

/* ---- the whole ------------------------------------------------------------------------------ */

void program_check(scl_context *ctx, program_nodes *l, int output, const char *what) {
  const scl_memory before = scl_context_memory(ctx);
  const size_t count = l->parameters;
  double *x = test_alloc(count * sizeof *x), *got = test_alloc((count + 1) * sizeof *got), value;
  for (size_t i = 0; i < count; i++) x[i] = l->x[i];
  const double want = program_value(l, output, x);
  scl_program *p = program_compile(ctx, l, output, what);
  for (size_t i = 0; i <= count; i++) got[i] = -7.0;
  if (p != NULL && scl_program_run(p, x, false, &value) == SCL_OK &&
      scl_program_run(p, x, true, got) == SCL_OK) {
    fail_case(near(value, want, 1e-11), "value", what, value, want);
    fail_case(near(got[0], want, 1e-11), "value with gradient", what, got[0], want);
    if (isfinite(want)) check_slopes(l, output, x, got + 1, what);
    const double first = got[count];
    CHECK_OK(scl_program_run(p, x, true, got));
    fail_case(got[count] == first || isnan(first), "the second run", what, got[count], first);
  } else {
    test_check(false, what, __FILE__, __LINE__);
  }
  scl_program_release(p);
  test_check(scl_context_memory(ctx).live == before.live, what, __FILE__, __LINE__);
  FREE(x, got);
}

/* The derivative of `output` in direction w, as a program; NULL if there are no derivatives. */
static scl_program *compile_again(scl_context *ctx, const program_nodes *l, int output,
                                  const double *w, const char *what) {
  scl_tape t;
  scl_program *p = NULL;
  scl_tape_begin(&t);
  const int result = program_record(l, &t, output);
  const int gradient = scl_tape_gradient(&t, result, l->parameters, true);
  const int weights = scl_tape_data_value(&t, scl_tape_add_data(&t, w, l->parameters));
  const int all = scl_tape_binary(&t, SCL_OP_MUL, gradient, weights);
  const int sum = scl_tape_reduce(&t, SCL_REDUCE_SUM, all, l->parameters, 1, SCL_TOTAL);
  const scl_status status = scl_program_make(ctx, &t, sum, l->parameters, &p);
  /* Derivatives of trigamma() and similar functions are available up to some order only. */
  if (status == SCL_E_ARGUMENT && strstr(scl_fault_last()->message, "known up to") != NULL) {
    return NULL;
  }
  test_check_status(status, SCL_OK, what, __FILE__, __LINE__);
  return p;
}

/* By differences of the program's values, which were compared with the reference. */
static double own_slope(const scl_program *p, const double *x, const double *direction,
                        size_t count, double h) {
  double *y = test_alloc(count * sizeof *y), f[4];
  for (int k = 0; k < 4; k++) {
    const double step = (k % 2 ? -h : h) / (k < 2 ? 1.0 : 2.0);
    for (size_t i = 0; i < count; i++) y[i] = x[i] + step * direction[i];
    if (scl_program_run((scl_program *)p, y, false, &f[k]) != SCL_OK) f[k] = NAN;
  }
  free(y);
  return (4.0 * (f[2] - f[3]) / h - (f[0] - f[1]) / (2.0 * h)) / 3.0;
}

void program_check_again(scl_context *ctx, program_nodes *l, int output, const char *what) {
  const size_t count = l->parameters;
  double *x = test_alloc(count * sizeof *x), *w = test_alloc(count * sizeof *w);
  double *got = test_alloc((count + 1) * sizeof *got), slope = 0.0, scale = 1.0, want = NAN;
  test_fill(w, count);
  for (size_t i = 0; i < count; i++) x[i] = l->x[i];
  scl_program *p = compile_again(ctx, l, output, w, what);
  if (p != NULL && scl_program_run(p, x, true, got) == SCL_OK) {
    check_derivative(l, output, x, w, got[0], fmax(1.0, fabs(got[0])), what);
    test_fill(w, count);
    for (size_t i = 0; i < count; i++) slope += got[i + 1] * w[i];
    for (size_t i = 0; i < count; i++) scale = fmax(scale, fabs(got[i + 1] * w[i]));
    bool ok = false;
    for (double h = 1e-3; h > 1e-5 && !ok; h /= 8.0) {
      want = own_slope(p, x, w, count, h);
      ok = near(slope / scale, want / scale, 1e-6);
    }
    fail_case(ok, "second derivative", what, slope, want);
  }
  scl_program_release(p);
  FREE(x, w, got);
}

/* For several vectors too; on devices, which compile kernels for them, some. */
void program_check_and_end(scl_context *ctx, program_nodes *l, int output, const char *what) {
  static const size_t vectors[] = {2, 4, 3, 7};
  static int turn = 0;
  program_check(ctx, l, output, what);
  if (++turn % 4 == 0 || scl_traits(ctx)->synchronous) {
    program_check_vectors(ctx, l, output, vectors[turn / 4 % 4], what);
  }
  program_end(l);
}

/* ---- elementwise operations ----------------------------------------------------------------- */

typedef enum { REAL, POSITIVE, NEGATIVE, UNIT, QUARTER, PROBABILITY, ABOVE_ONE, COUNT } domain;

/* The widest that has values, of other operands between 0 and 1. */
static domain found_domain(scl_op op, int k) {
  static const struct {
    domain is;
    double at[3];
  } tried[] = {{REAL, {-2.7, -0.4, 1.6}},
               {UNIT, {-0.7, 0.1, 0.7}},
               {POSITIVE, {0.3, 0.9, 2.6}},
               {NEGATIVE, {-2.6, -0.9, -0.3}},
               {PROBABILITY, {0.3, 0.5, 0.7}}};
  for (size_t d = 0; d < LENGTH(tried); d++) {
    bool finite = true;
    for (int i = 0; i < 3; i++) {
      double x[3] = {0.6, 0.6, 0.6};
      x[k] = tried[d].at[i];
      finite = finite && isfinite(scl_op_value(op, x[0], x[1], x[2]));
    }
    if (finite) return tried[d].is;
  }
  return ABOVE_ONE;
}

/* Away from poles, where differences are no derivatives. */
static domain domain_of(scl_op op, int k) {
  switch (op) {
  case SCL_OP_DIV:
  case SCL_OP_OVER:
  case SCL_OP_MOD:
  case SCL_OP_INTDIV:
    return k == 0 ? REAL : POSITIVE;
  case SCL_OP_ATAN2:
  case SCL_OP_DIGAMMA_RISE:
  case SCL_OP_GAMMA:
  case SCL_OP_LGAMMA:
  case SCL_OP_DIGAMMA:
  case SCL_OP_LOG_QGAMMA:
  case SCL_OP_LOG_PNBINOM:
  case SCL_OP_LOG_QNBINOM:
    return POSITIVE;
  case SCL_OP_LOG_PBETA:
  case SCL_OP_LOG_QBETA:
    return k == 0 ? PROBABILITY : POSITIVE;
  case SCL_OP_STIRLING_SLOPE:
  case SCL_OP_BESSEL_K_SCALED:
    return k == 0 ? POSITIVE : COUNT;
  case SCL_OP_TAN:
    return UNIT;
  case SCL_OP_TANPI:
    return QUARTER;
  case SCL_OP_TRIGAMMA:
  case SCL_OP_TETRAGAMMA:
    return ABOVE_ONE;
  case SCL_OP_CHOOSE:
  case SCL_OP_LCHOOSE:
    return k == 0 ? ABOVE_ONE : COUNT;
  case SCL_OP_ROUND_TO:
    return k == 0 ? REAL : COUNT;
  default:
    return found_domain(op, k);
  }
}

int program_argument(program_nodes *l, scl_op op, int k, int x) {
  const domain to = domain_of(op, k);
  if (op == SCL_OP_SHIFT) return node_unary(l, SCL_OP_FLOOR, x); /* its derivative is 0 */
  if (to == REAL) return x;
  if (to == COUNT && (op == SCL_OP_ROUND_TO || op == SCL_OP_STIRLING_SLOPE)) {
    return node_number(l, 1.0);
  }
  if (to == COUNT && op == SCL_OP_BESSEL_K_SCALED) return node_number(l, 1.3);
  x = node_unary(l, SCL_OP_TANH, x);
  if (to == COUNT) { /* rounded to one */
    x = node_binary(l, SCL_OP_MUL, node_number(l, 0.3), x);
    return node_binary(l, SCL_OP_ADD, node_number(l, 1.0), x);
  }
  if (to == UNIT) return node_binary(l, SCL_OP_MUL, node_number(l, 0.8), x);
  if (to == QUARTER) return node_binary(l, SCL_OP_MUL, node_number(l, 0.3), x);
  if (to == PROBABILITY) return node_unary(l, SCL_OP_INV_LOGIT, x);
  x = node_unary(l, SCL_OP_EXP, x);
  if (to == NEGATIVE) return node_unary(l, SCL_OP_NEG, x);
  if (to == ABOVE_ONE) return node_binary(l, SCL_OP_ADD, x, node_number(l, 1.5));
  return x;
}

static double from_whole(double x) {
  return fabs(x - nearbyint(x));
}

/* How far the operands are from a jump or a kink. */
static double distance(scl_op op, double a, double b) {
  switch (op) {
  case SCL_OP_ABS:
  case SCL_OP_SIGN:
  case SCL_OP_NOT:
    return fabs(a);
  case SCL_OP_AND:
  case SCL_OP_OR:
    return fmin(fabs(a), fabs(b));
  case SCL_OP_EQ:
  case SCL_OP_NE:
  case SCL_OP_LT:
  case SCL_OP_GT:
  case SCL_OP_LE:
  case SCL_OP_GE:
  case SCL_OP_PMIN:
  case SCL_OP_PMAX:
    return fabs(a - b);
  case SCL_OP_CEILING:
  case SCL_OP_FLOOR:
  case SCL_OP_TRUNC:
    return from_whole(a);
  case SCL_OP_ROUND:
  case SCL_OP_ROUND_TO:
    return from_whole(a + 0.5);
  case SCL_OP_MOD:
  case SCL_OP_INTDIV:
    return from_whole(a / b);
  case SCL_OP_IFELSE:
    return fabs(a);
  default:
    return 1.0;
  }
}

enum { FAR = 50 }; /* one over the least distance */

/* The best and the second best of each row, column or all. */
static bool is_extreme_clear(const program_node *v, const double *x) {
  const size_t m = v->at[0], n = v->at[1];
  for (size_t k = 0; k < v->length; k++) {
    int close = 0;
    for (size_t e = 0; e < m * n; e++) {
      if (v->at[2] == 1 && e % m != k) continue;
      if (v->at[2] == 2 && e / m != k) continue;
      close += fabs(x[e] - v->value[k]) < 1.0 / FAR;
    }
    if (close > 1) return false;
  }
  return true;
}

bool program_is_smooth(const program_nodes *l, int node) {
  const program_node *v = &l->node[node];
  if (v->kind == SCL_VALUE_REDUCE && v->op != SCL_REDUCE_SUM && v->op != SCL_REDUCE_PROD) {
    return is_extreme_clear(v, l->node[v->operand[0]].value);
  }
  for (size_t i = 0; v->kind == SCL_VALUE_APPLY && i < v->length; i++) {
    double a[2] = {0.0, 0.0};
    for (int k = 0; k < v->operands && k < 2; k++) {
      const program_node *x = &l->node[v->operand[k]];
      a[k] = x->value[x->length == 1 ? 0 : i];
    }
    if (distance((scl_op)v->op, a[0], a[1]) * FAR < 1.0) return false;
  }
  return true;
}

/* ---- sparse Hessians ------------------------------------------------------------------------- */

/* The program of second or third derivatives, or NULL. */
static scl_program *compile_order(scl_context *ctx, const program_nodes *l, int output, int order) {
  scl_tape t;
  scl_program *p = NULL;
  scl_tape_begin(&t);
  const int result = program_record(l, &t, output);
  return scl_program_make_second(ctx, &t, result, l->parameters, order, &p) == SCL_OK ? p : NULL;
}

static void compare_sparse(scl_sparse_program *p, scl_program *second, scl_program *third,
                           const double *x, const size_t *at, const char *what) {
  const scl_sparse_pattern *s = scl_sparse_program_pattern(p);
  const size_t n = scl_sparse_program_parameters(p);
  double *full = test_alloc(n * n * sizeof *full), *got = test_alloc(n * sizeof *got);
  double *h = test_alloc(s->count * sizeof *h), *w = test_alloc(s->count * sizeof *w);
  double *d = test_alloc(n * sizeof *d), *want = test_alloc(n * sizeof *want), largest = 1.0;
  CHECK_OK(scl_program_hessian(second, x, full));
  CHECK_OK(scl_sparse_program_run(p, x, h));
  for (size_t i = 0; i < n; i++) d[i] = want[i] = got[i] = 0.0;
  for (size_t j = 0; j < s->n; j++) d[at[j]] = test_random();
  for (size_t k = 0; k < n * n; k++) largest = fmax(largest, fabs(full[k]));
  for (size_t j = 0; j < s->n; j++) {
    for (size_t i = j, k = s->start[j]; i < s->n; i++) {
      const bool there = k < s->start[j + 1] && s->row[k] == i;
      const double want_h = full[at[i] + at[j] * n], got_h = there ? h[k] : 0.0;
      fail_case(near(got_h / largest, want_h / largest, 1e-10), "sparse Hessian", what, got_h,
                want_h);
      if (there) w[k++] = d[at[i]] * d[at[j]] * (i == j ? 1.0 : 2.0);
    }
  }
  CHECK_OK(scl_program_product(third, x, d, want));
  CHECK_OK(scl_sparse_program_adjoint(p, x, w, got));
  for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(want[i]));
  for (size_t i = 0; i < n; i++) {
    fail_case(near(got[i] / largest, want[i] / largest, 1e-9), "third derivative", what, got[i],
              want[i]);
  }
  FREE(full, got, h, w, d, want);
}

size_t program_check_sparse(scl_context *ctx, program_nodes *l, int output,
                            const unsigned char *chosen, const char *what) {
  enum { MOST = 100000 };
  const scl_memory before = scl_context_memory(ctx);
  const size_t n = l->parameters;
  unsigned char *all = test_alloc(n);
  double *x = test_alloc(n * sizeof *x);
  size_t *at = test_alloc(n * sizeof *at), count = 0, columns = 0;
  for (size_t i = 0; i < n; i++) {
    all[i] = chosen == NULL || chosen[i];
    x[i] = l->x[i];
    if (all[i]) at[columns++] = i;
  }
  scl_program *second = compile_order(ctx, l, output, 2), *third = compile_order(ctx, l, output, 3);
  scl_sparse_program *p = NULL;
  scl_tape t;
  scl_tape_begin(&t);
  const int result = program_record(l, &t, output);
  if (second != NULL && third != NULL) {
    CHECK_OK(scl_sparse_program_make(ctx, &t, result, n, all, MOST, &p));
  }
  if (p != NULL) {
    count = scl_sparse_program_pattern(p)->count;
    compare_sparse(p, second, third, x, at, what);
  }
  scl_tape_end(&t);
  scl_program_release(second);
  scl_program_release(third);
  scl_sparse_program_release(p);
  test_check(scl_context_memory(ctx).live == before.live, what, __FILE__, __LINE__);
  FREE(all, x, at);
  return count;
}
