/* Products with the derivative g of the value's result. Where g is 0, the share of an operand is 0,
 * even if the operation's own derivative is not finite there: a branch of ifelse() that was not
 * taken has no influence, whatever its numbers are.
 *
 * A product with a number that overflows is 0 wherever g is. At a pole, such as that of log(x) at
 * 0, g may tend to 0 as the derivative tends to infinity: exp(log(x)) has the derivative 1 there.
 * So derivatives with poles are only guarded where a zero of g is exact (scl_tape_zeros()). */
#include <math.h>

#include "program/facts.h"

static bool is_nonzero_number(const scl_tape *t, int g) {
  return t->value[g].kind == SCL_VALUE_NUMBER && t->value[g].number != 0.0;
}

static bool has_zeros(const scl_tape *t, int g, unsigned kind) {
  return (t->value[g].zeros & kind) != 0;
}

/* -x of whole length: x and a sign to be put before the product. */
static bool take_sign(const scl_tape *t, int *x, int other) {
  const scl_value *v = &t->value[*x];
  const bool negated =
      v->kind == SCL_VALUE_APPLY && v->op == SCL_OP_NEG && v->length >= scl_tape_length(t, other);
  if (negated) *x = scl_tape_operand(t, *x, 0);
  return negated;
}

static int guarded(scl_tape *t, scl_op op, int g, int d) {
  const bool sign = take_sign(t, &g, d) != take_sign(t, &d, g);
  const int share = g == d && op == SCL_OP_TIMES ? scl_tape_unary(t, SCL_OP_SQUARE, g)
                                                 : scl_tape_apply(t, op, 2, (const int[]){g, d});
  return sign ? scl_tape_unary(t, SCL_OP_NEG, share) : share;
}

int scl_tape_times(scl_tape *t, int g, int d) {
  if (t->status != SCL_OK) return 0;
  if (is_nonzero_number(t, g) || scl_tape_is_finite(t, d)) {
    return scl_tape_binary(t, SCL_OP_MUL, g, d);
  }
  return guarded(t, SCL_OP_TIMES, g, d);
}

int scl_tape_times_poles(scl_tape *t, int g, int d) {
  if (t->status != SCL_OK) return 0;
  return has_zeros(t, g, SCL_ZERO_BY_VALUE) ? scl_tape_times(t, g, d)
                                            : scl_tape_binary(t, SCL_OP_MUL, g, d);
}

int scl_tape_over(scl_tape *t, int g, int d) {
  if (t->status != SCL_OK) return 0;
  if (!has_zeros(t, g, SCL_ZERO_BY_VALUE) || is_nonzero_number(t, d)) {
    return scl_tape_binary(t, SCL_OP_DIV, g, d);
  }
  return guarded(t, SCL_OP_OVER, g, d);
}

/* Products of matrices add zeros times infinities: where rows of g were masked, numbers of x that
 * are not finite belong to these, as otherwise the value would not be finite. */
int scl_tape_factor(scl_tape *t, int g, int x) {
  if (t->status != SCL_OK || !has_zeros(t, g, SCL_ZERO_BY_CHOICE) || scl_tape_is_finite(t, x)) {
    return x;
  }
  return scl_tape_ifelse(t, scl_tape_unary(t, SCL_OP_IS_FINITE, x), x, scl_tape_number(t, 0.0));
}

/* The derivative of the share g d or g / d with respect to g is d or 1 / d. It counts as 0 where
 * that is not finite and g was masked, since it may be multiplied by other zeros later. `again` is
 * the derivative with respect to the share. */
int scl_tape_times_again(scl_tape *t, int again, int g, int d) {
  if (t->status != SCL_OK || !has_zeros(t, g, SCL_ZERO_BY_CHOICE))
    return scl_tape_times(t, again, d);
  const int finite = scl_tape_unary(t, SCL_OP_IS_FINITE, d);
  return scl_tape_times(t, again, scl_tape_ifelse(t, finite, d, scl_tape_number(t, 0.0)));
}

int scl_tape_over_again(scl_tape *t, int again, int g, int d) {
  if (t->status != SCL_OK || !has_zeros(t, g, SCL_ZERO_BY_CHOICE))
    return scl_tape_over(t, again, d);
  const int inverse = scl_tape_binary(t, SCL_OP_DIV, scl_tape_number(t, 1.0), d);
  const int finite = scl_tape_unary(t, SCL_OP_IS_FINITE, inverse);
  const int infinite = scl_tape_number(t, INFINITY);
  return scl_tape_binary(t, SCL_OP_DIV, again, scl_tape_ifelse(t, finite, d, infinite));
}

/* A test within a branch that was not taken may be NaN: g is 0 there. */
int scl_tape_where(scl_tape *t, int test, bool truth, int g) {
  if (t->status != SCL_OK) return 0;
  const int zero = scl_tape_number(t, 0.0);
  if (has_zeros(t, g, SCL_ZERO_BY_CHOICE)) test = scl_tape_binary(t, SCL_OP_FILL_NAN, test, zero);
  return truth ? scl_tape_ifelse(t, test, g, zero) : scl_tape_ifelse(t, test, zero, g);
}
