/* Elementwise values and sums: operations on numbers are computed here, and values with a simpler
 * form get that form. */
#include <math.h>

#include "program/tape.h"

static bool is_number(const scl_tape *t, int value) {
  return t->value[value].kind == SCL_VALUE_NUMBER;
}

int scl_tape_apply(scl_tape *t, scl_op op, int count, const int *operand) {
  scl_value v = {.kind = SCL_VALUE_APPLY, .op = (uint8_t)op, .operands = count, .length = 1};
  bool numbers = true;
  double a[3] = {0.0, 0.0, 0.0};
  if (t->status != SCL_OK) return 0;
  for (int k = 0; k < count; k++) {
    const size_t length = t->value[operand[k]].length;
    if (length != 1) v.length = length;
    if (is_number(t, operand[k])) {
      a[k] = t->value[operand[k]].number;
    } else {
      numbers = false;
    }
  }
  if (numbers) return scl_tape_number(t, scl_op_value(op, a[0], a[1], a[2]));
  return scl_tape_add_value(t, v, operand);
}

/* Simplified values have the same bits, except for the sign of NaN, and log_added(). */

static bool is_op(const scl_tape *t, int value, scl_op op) {
  return t->value[value].kind == SCL_VALUE_APPLY && t->value[value].op == op;
}

/* The number c of a value c x, or 0 for other values. */
static double factor_of(const scl_tape *t, int value, int *x) {
  if (is_op(t, value, SCL_OP_NEG)) {
    *x = scl_tape_operand(t, value, 0);
    return -1.0;
  }
  for (int k = 0; k < 2 && is_op(t, value, SCL_OP_MUL); k++) {
    const int number = scl_tape_operand(t, value, k);
    *x = scl_tape_operand(t, value, 1 - k);
    if (is_number(t, number)) return t->value[number].number;
  }
  return 0.0;
}

static bool is_power_of_two(double c) {
  int exponent;
  return frexp(fabs(c), &exponent) == 0.5;
}

/* c x for an x that is a product with a number, too; -1 if the result could be rounded otherwise.
 */
static int scaled(scl_tape *t, double c, int x) {
  int inner = x;
  const double d = factor_of(t, x, &inner);
  if (!isnormal(c * d) || (!is_power_of_two(c) && !is_power_of_two(d))) return -1;
  return scl_tape_binary(t, SCL_OP_MUL, inner, scl_tape_number(t, c * d));
}

int scl_tape_unary(scl_tape *t, scl_op op, int a) {
  if (t->status != SCL_OK) return 0;
  const int same = op == SCL_OP_NEG ? scaled(t, -1.0, a) : -1;
  return same >= 0 ? same : scl_tape_apply(t, op, 1, &a);
}

/* a^b for a number b that has its own operation; -1 for any other. */
static int power(scl_tape *t, int a, double b) {
  if (b == 1.0) return a;
  if (b == 2.0) return scl_tape_unary(t, SCL_OP_SQUARE, a);
  if (b == -1.0) return scl_tape_binary(t, SCL_OP_DIV, scl_tape_number(t, 1.0), a);
  return -1;
}

/* Of sums, products and quotients, with the sign of an operand moved outwards, where it may meet
 * another one: x if it is -x and has all elements, else -1. */
static int negated(const scl_tape *t, int value, int other) {
  const bool whole = scl_tape_length(t, value) >= scl_tape_length(t, other);
  return whole && is_op(t, value, SCL_OP_NEG) ? scl_tape_operand(t, value, 0) : -1;
}

static int without_sign(scl_tape *t, scl_op op, int a, int b) {
  const int x = negated(t, a, b), y = negated(t, b, a);
  if (op == SCL_OP_ADD && y >= 0) return scl_tape_binary(t, SCL_OP_SUB, a, y);
  if (op == SCL_OP_ADD && x >= 0) return scl_tape_binary(t, SCL_OP_SUB, b, x);
  if (op == SCL_OP_SUB && y >= 0) return scl_tape_binary(t, SCL_OP_ADD, a, y);
  if ((op != SCL_OP_MUL && op != SCL_OP_DIV) || (x < 0 && y < 0)) return -1;
  return scl_tape_unary(t, SCL_OP_NEG, scl_tape_binary(t, op, x >= 0 ? x : a, x >= 0 ? b : y));
}

/* A product with a number or with itself; -1 if it is neither. */
static int product_of(scl_tape *t, int a, int b) {
  if (a == b) return scl_tape_unary(t, SCL_OP_SQUARE, a);
  if (is_number(t, a)) return scaled(t, t->value[a].number, b);
  return is_number(t, b) ? scaled(t, t->value[b].number, a) : -1;
}

/* max(a, b) + log1p(exp(-|a - b|)), which is log(exp(a) + exp(b)), for infinite a = b too; -1 for
 * other sums. */
static int log_added(scl_tape *t, int high, int rest) {
  static const scl_op chain[] = {SCL_OP_LOG1P, SCL_OP_EXP, SCL_OP_NEG, SCL_OP_ABS};
  if (!is_op(t, high, SCL_OP_PMAX)) return -1;
  for (size_t k = 0; k < sizeof chain / sizeof *chain; k++) {
    if (!is_op(t, rest, chain[k])) return -1;
    rest = scl_tape_operand(t, rest, 0);
  }
  if (!is_op(t, rest, SCL_OP_SUB)) return -1;
  const int a = scl_tape_operand(t, high, 0), b = scl_tape_operand(t, high, 1);
  const int c = scl_tape_operand(t, rest, 0), d = scl_tape_operand(t, rest, 1);
  if ((a != c || b != d) && (a != d || b != c)) return -1;
  return scl_tape_binary(t, SCL_OP_LOG_ADD_EXP, a, b);
}

/* Simplifies operations that have no effect; -1 for all others. A zero factor stays: zero times NaN
 * is NaN. */
static int simpler(scl_tape *t, scl_op op, int a, int b) {
  const bool whole = scl_tape_length(t, a) >= scl_tape_length(t, b);
  if (op == SCL_OP_POW && is_number(t, b)) return power(t, a, t->value[b].number);
  if (whole && op == SCL_OP_ADD && scl_tape_is_number(t, b, 0.0)) return a;
  if (whole && op == SCL_OP_SUB && scl_tape_is_number(t, b, 0.0)) return a;
  if (whole && (op == SCL_OP_MUL || op == SCL_OP_DIV) && scl_tape_is_number(t, b, 1.0)) return a;
  if (op == SCL_OP_MUL && scl_tape_is_number(t, b, -1.0)) return scl_tape_unary(t, SCL_OP_NEG, a);
  if (op == SCL_OP_ADD && scl_tape_is_number(t, a, 0.0)) return b;
  if (op == SCL_OP_SUB && scl_tape_is_number(t, a, 0.0)) return scl_tape_unary(t, SCL_OP_NEG, b);
  if (op == SCL_OP_MUL && scl_tape_is_number(t, a, 1.0)) return b;
  if (op == SCL_OP_MUL && scl_tape_is_number(t, a, -1.0)) return scl_tape_unary(t, SCL_OP_NEG, b);
  int added = op == SCL_OP_ADD ? log_added(t, a, b) : -1;
  if (op == SCL_OP_ADD && added < 0) added = log_added(t, b, a);
  if (added >= 0) return added;
  const int product = op == SCL_OP_MUL ? product_of(t, a, b) : -1;
  return product >= 0 ? product : without_sign(t, op, a, b);
}

static bool commutes(scl_op op) {
  return op == SCL_OP_ADD || op == SCL_OP_MUL;
}

int scl_tape_binary(scl_tape *t, scl_op op, int a, int b) {
  if (t->status != SCL_OK) return 0;
  const int same = simpler(t, op, a, b);
  if (same >= 0) return same;
  const int forth[] = {a, b}, back[] = {b, a};
  return scl_tape_apply(t, op, 2, commutes(op) && b < a ? back : forth);
}

int scl_tape_ifelse(scl_tape *t, int test, int yes, int no) {
  const int operand[] = {test, yes, no};
  return scl_tape_apply(t, SCL_OP_IFELSE, 3, operand);
}

static int known_sum(scl_tape *t, int x, size_t count) {
  double sum = 0.0;
  for (size_t k = 0; k < count; k++) sum += scl_tape_known(t, x, k);
  return scl_tape_number(t, sum);
}

int scl_tape_reduce(scl_tape *t, scl_reduction op, int x, size_t m, size_t n, scl_margin margin) {
  if (t->status != SCL_OK) return 0;
  if (m * n == 0) {
    const size_t length = margin == SCL_TOTAL ? 1 : margin == SCL_BY_ROW ? m : n;
    return scl_tape_fill(t, scl_tape_number(t, scl_reduction_identity(op)), length);
  }
  if (m * n == 1 || (margin == SCL_BY_ROW && n == 1) || (margin == SCL_BY_COLUMN && m == 1)) {
    return x; /* sums, products and extremes of one element */
  }
  if (op == SCL_REDUCE_SUM && is_op(t, x, SCL_OP_NEG)) {
    return scl_tape_unary(t, SCL_OP_NEG,
                          scl_tape_reduce(t, op, scl_tape_operand(t, x, 0), m, n, margin));
  }
  if ((margin == SCL_BY_ROW && m == 1) || (margin == SCL_BY_COLUMN && n == 1)) margin = SCL_TOTAL;
  if (margin == SCL_TOTAL) {
    m *= n;
    n = 1;
    if (op == SCL_REDUCE_SUM && scl_tape_is_known(t, x)) return known_sum(t, x, m);
  }
  scl_value v = {.kind = SCL_VALUE_REDUCE,
                 .op = (uint8_t)op,
                 .operands = 1,
                 .at = {m, n, margin},
                 .length = margin == SCL_TOTAL    ? 1
                           : margin == SCL_BY_ROW ? m
                                                  : n};
  return scl_tape_add_value(t, v, &x);
}
