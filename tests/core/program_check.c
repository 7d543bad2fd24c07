#include "program_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Of the steps that can be taken, one fits; large derivatives of high order want small ones. */
static void check_slope(program_nodes *l, int output, const double *x, const double *direction,
                        const double *gradient, const char *what) {
  double slope = 0.0, scale = 1.0, want = 0.0, h = 1e-3;
  bool ok = false;
  for (size_t i = 0; i < l->parameters; i++) {
    slope += gradient[i] * direction[i];
    scale = fmax(scale, fabs(gradient[i] * direction[i]));
  }
  for (int k = 0; k < 3 && !ok; k++, h /= 8.0) {
    want = program_slope(l, output, x, direction, h);
    ok = near(slope / scale, want / scale, 1e-7);
  }
  fail_case(ok, "derivative", what, slope, want);
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
  free(x);
  free(got);
}

void program_check_and_end(scl_context *ctx, program_nodes *l, int output, const char *what) {
  program_check(ctx, l, output, what);
  program_end(l);
}

/* ---- elementwise operations ----------------------------------------------------------------- */

bool program_has_slope(scl_op op) {
  switch (op) {
  case SCL_OP_PENTAGAMMA:
  case SCL_OP_LOG_PGAMMA_SLOPE:
  case SCL_OP_LOG_QGAMMA_SLOPE:
  case SCL_OP_LOG_PBETA_SLOPE_A:
  case SCL_OP_LOG_PBETA_SLOPE_B:
    return false;
  default:
    return true;
  }
}

typedef enum { REAL, POSITIVE, NEGATIVE, UNIT, QUARTER, PROBABILITY, ABOVE_ONE, COUNT } domain;

static domain domain_of(scl_op op, int k) {
  switch (op) {
  case SCL_OP_POW:
    return k == 0 ? POSITIVE : REAL;
  case SCL_OP_MOD:
  case SCL_OP_INTDIV:
    return k == 0 ? REAL : POSITIVE;
  case SCL_OP_DIV:
    return k == 0 ? REAL : POSITIVE;
  case SCL_OP_ATAN2:
  case SCL_OP_DEVIANCE:
  case SCL_OP_SQRT:
  case SCL_OP_LOG:
  case SCL_OP_LOG2:
  case SCL_OP_LOG10:
  case SCL_OP_LBETA:
  case SCL_OP_GAMMA:
  case SCL_OP_LGAMMA:
  case SCL_OP_DIGAMMA:
  case SCL_OP_STIRLING:
  case SCL_OP_LOG_PGAMMA:
  case SCL_OP_LOG_QGAMMA:
    return POSITIVE;
  case SCL_OP_LOG_PBETA:
  case SCL_OP_LOG_QBETA:
    return k == 0 ? PROBABILITY : POSITIVE;
  case SCL_OP_LOG1M_EXP:
  case SCL_OP_LOG_QNORM:
    return NEGATIVE;
  case SCL_OP_LOG1P:
  case SCL_OP_ASIN:
  case SCL_OP_ACOS:
  case SCL_OP_ATANH:
  case SCL_OP_TAN:
    return UNIT;
  case SCL_OP_TANPI:
    return QUARTER;
  case SCL_OP_QNORM:
    return PROBABILITY;
  case SCL_OP_ACOSH:
  case SCL_OP_TRIGAMMA:
  case SCL_OP_TETRAGAMMA:
  case SCL_OP_PENTAGAMMA:
    return ABOVE_ONE;
  case SCL_OP_CHOOSE:
  case SCL_OP_LCHOOSE:
    return k == 0 ? ABOVE_ONE : COUNT;
  case SCL_OP_ROUND_TO:
    return k == 0 ? REAL : COUNT;
  default:
    return REAL;
  }
}

int program_argument(program_nodes *l, scl_op op, int k, int x) {
  const domain to = domain_of(op, k);
  if (to == REAL) return x;
  if (to == COUNT) return node_number(l, 1.0);
  x = node_unary(l, SCL_OP_TANH, x);
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
