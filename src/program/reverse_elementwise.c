/* Derivatives of elementwise operations as values of the program, so that they are fused with
 * adjacent operations and can be differentiated again: a reader of the formulas in
 * inst/kernels/include/elementwise.def.
 *
 *   choice:  compare ['?' choice ':' choice]
 *   compare: sum [('==', '<=', '>=', '<' or '>') sum]
 *   sum:     product {('+' or '-') product}
 *   product: factor {('*' or '/') factor}
 *   factor:  '-' factor, '(' choice ')', a number, a name, or name '(' choice {',' choice} ')'
 */
#include "program/tape.h"

#include <stdlib.h>
#include <string.h>

enum { ZERO = -1 };

/* A value, and whether it is a multiple of g: then products with it are shares. */
typedef struct {
  int value;
  bool share;
} part;

typedef struct {
  scl_tape *t;
  const char *at; /* the rest of the text */
  int value, g;
  bool skips; /* a branch that is not taken: nothing is recorded */
} reader;

static part read_choice(reader *f);

/* ---- text ----------------------------------------------------------------------------------- */

static part fail(reader *f, const char *message) {
  if (!f->skips && f->t->status == SCL_OK) {
    f->t->status = scl_fail_argument("f", "%s", message);
  }
  return (part){0, false};
}

static bool take(reader *f, const char *text) {
  while (*f->at == ' ') f->at++;
  const size_t length = strlen(text);
  if (strncmp(f->at, text, length) != 0) return false;
  f->at += length;
  return true;
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9');
}

static bool is_name(const char *name, size_t length, const char *want) {
  return strncmp(name, want, length) == 0 && want[length] == '\0';
}

/* ---- values --------------------------------------------------------------------------------- */

static part of_number(const reader *f, double number) {
  return (part){f->skips ? 0 : scl_tape_number(f->t, number), false};
}

static part apply(const reader *f, scl_op op, part x, part y) {
  if (f->skips) return x;
  const int value = scl_op_arity(op) == 1 ? scl_tape_unary(f->t, op, x.value)
                                          : scl_tape_binary(f->t, op, x.value, y.value);
  return (part){value, x.share || y.share};
}

static part multiply(const reader *f, part x, part y) {
  if (!x.share || f->skips) return apply(f, SCL_OP_MUL, x, y);
  return (part){scl_tape_times(f->t, x.value, y.value), true};
}

static part divide(const reader *f, part x, part y) {
  if (!x.share || f->skips) return apply(f, SCL_OP_DIV, x, y);
  return (part){scl_tape_over(f->t, x.value, y.value), true};
}

/* g d for a d that has poles. */
static part share_poles(const reader *f, part g, part d) {
  if (f->skips || scl_tape_is_number(f->t, d.value, 0.0)) return d;
  return (part){scl_tape_times_poles(f->t, g.value, d.value), true};
}

/* ---- names ---------------------------------------------------------------------------------- */

static part read_operand(reader *f, const char *name, size_t length) {
  static const char operands[] = "abc";
  const char *k = length == 1 ? strchr(operands, *name) : NULL;
  if (k != NULL && k - operands < f->t->value[f->value].operands) {
    return (part){scl_tape_operand(f->t, f->value, (int)(k - operands)), false};
  }
  if (is_name(name, length, "r")) return (part){f->value, false};
  if (is_name(name, length, "g")) return (part){f->g, true};
  if (is_name(name, length, "pi")) return of_number(f, 3.14159265358979323846);
  return fail(f, "the derivative of an operation has an unknown name");
}

/* unknown("message") */
static part read_unknown(reader *f) {
  char message[120] = "";
  if (!take(f, "\"")) return fail(f, "the derivative of an operation is unknown");
  for (size_t i = 0; *f->at != '\0' && *f->at != '"'; f->at++) {
    if (i + 1 < sizeof message) message[i++] = *f->at;
  }
  f->at += strlen("\")");
  return fail(f, message);
}

static part call_row(reader *f, const char *name, size_t length, int count, const part *x) {
  for (int op = 0; op < SCL_OP_COUNT; op++) {
    if (*name != *scl_ops[op].name || !is_name(name, length, scl_ops[op].name)) continue;
    if (scl_ops[op].arity != count) break;
    if (count < 3) return apply(f, (scl_op)op, x[0], x[1]);
    const int operand[] = {x[0].value, x[1].value, x[2].value};
    return (part){f->skips ? 0 : scl_tape_apply(f->t, (scl_op)op, count, operand), false};
  }
  return fail(f, "the derivative of an operation calls an unknown function");
}

static part read_call(reader *f, const char *name, size_t length) {
  part x[3] = {{0, false}, {0, false}, {0, false}};
  int count = 0;
  if (is_name(name, length, "unknown")) return read_unknown(f);
  do {
    x[count++] = read_choice(f);
  } while (count < 3 && take(f, ","));
  if (!take(f, ")")) return fail(f, "the derivative of an operation cannot be read");
  if (is_name(name, length, "poles")) return share_poles(f, x[0], x[1]);
  const int g = x[0].value, a = x[1].value, b = x[2].value;
  const bool share = count == 2 && is_name(name, length, "times");
  if (share || (count == 2 && is_name(name, length, "over"))) {
    x[0].share = true;
    return share ? multiply(f, x[0], x[1]) : divide(f, x[0], x[1]);
  }
  if (f->skips) return x[0];
  if (is_name(name, length, "times_again"))
    return (part){scl_tape_times_again(f->t, g, a, b), true};
  if (is_name(name, length, "over_again")) return (part){scl_tape_over_again(f->t, g, a, b), true};
  return call_row(f, name, length, count, x);
}

/* ---- formulas ------------------------------------------------------------------------------- */

static part read_factor(reader *f) {
  if (take(f, "-")) {
    const part x = read_factor(f);
    return apply(f, SCL_OP_NEG, x, x);
  }
  if (take(f, "(")) {
    const part x = read_choice(f);
    return take(f, ")") ? x : fail(f, "the derivative of an operation lacks a parenthesis");
  }
  const char *name = f->at;
  if (*name >= '0' && *name <= '9') {
    char *end;
    const double number = strtod(name, &end);
    f->at = end;
    return of_number(f, number);
  }
  while (is_letter(*f->at)) f->at++;
  const size_t length = (size_t)(f->at - name);
  return take(f, "(") ? read_call(f, name, length) : read_operand(f, name, length);
}

static part read_product(reader *f) {
  part x = read_factor(f);
  for (;;) {
    if (take(f, "*")) {
      x = multiply(f, x, read_factor(f));
    } else if (take(f, "/")) {
      x = divide(f, x, read_factor(f));
    } else {
      return x;
    }
  }
}

static part read_sum(reader *f) {
  part x = read_product(f);
  for (;;) {
    if (take(f, "+")) {
      x = apply(f, SCL_OP_ADD, x, read_product(f));
    } else if (take(f, "-")) {
      x = apply(f, SCL_OP_SUB, x, read_product(f));
    } else {
      return x;
    }
  }
}

static part read_comparison(reader *f) {
  static const struct {
    const char *text;
    scl_op op;
  } sign[] = {
      {"==", SCL_OP_EQ}, {"<=", SCL_OP_LE}, {">=", SCL_OP_GE}, {"<", SCL_OP_LT}, {">", SCL_OP_GT}};
  const part x = read_sum(f);
  for (size_t k = 0; k < sizeof sign / sizeof *sign; k++) {
    if (take(f, sign[k].text)) return apply(f, sign[k].op, x, read_sum(f));
  }
  return x;
}

static part read_branch(reader *f, bool taken) {
  const bool skips = f->skips;
  f->skips = skips || !taken;
  const part x = read_choice(f);
  f->skips = skips;
  return x;
}

/* A test that is a number selects one branch. The other branch of a share can only be 0. */
static part read_choice(reader *f) {
  const part test = read_comparison(f);
  if (!take(f, "?")) return test;
  const scl_value *v = &f->t->value[test.value];
  const bool known = !f->skips && v->kind == SCL_VALUE_NUMBER && v->number == v->number;
  const bool truth = known && v->number != 0.0;
  const part yes = read_branch(f, !known || truth);
  if (!take(f, ":")) return fail(f, "the derivative of an operation lacks a branch");
  const part no = read_branch(f, !known || !truth);
  if (known || f->skips) return truth ? yes : no;
  if (yes.share || no.share) {
    const int g = yes.share ? yes.value : no.value;
    return (part){scl_tape_where(f->t, test.value, yes.share, g), true};
  }
  return (part){scl_tape_ifelse(f->t, test.value, yes.value, no.value), false};
}

int scl_tape_slope(scl_tape *t, int value, int k, int g) {
  const scl_op op = (scl_op)t->value[value].op;
  reader f = {.t = t, .at = scl_ops[op].derivative[k], .value = value, .g = g};
  const part share = read_choice(&f);
  if (*f.at != '\0') fail(&f, "the derivative of an operation cannot be read");
  return t->status != SCL_OK || scl_tape_is_number(t, share.value, 0.0) ? ZERO : share.value;
}
