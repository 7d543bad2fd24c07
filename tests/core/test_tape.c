/* Simpler forms of recorded arithmetic (program/tape_arithmetic.c): which value stands for which.
 */
#include "program/tape.h"
#include "test.h"

#define MUL(a, b) scl_tape_binary(&t, SCL_OP_MUL, a, b)
#define DIV(a, b) scl_tape_binary(&t, SCL_OP_DIV, a, b)
#define ADD(a, b) scl_tape_binary(&t, SCL_OP_ADD, a, b)
#define SUB(a, b) scl_tape_binary(&t, SCL_OP_SUB, a, b)
#define NEG(a) scl_tape_unary(&t, SCL_OP_NEG, a)
#define SQUARE(a) scl_tape_unary(&t, SCL_OP_SQUARE, a)
#define NUMBER(x) scl_tape_number(&t, x)

static int parameter(scl_tape *t, size_t from, size_t length) {
  const size_t at[] = {from, length};
  return scl_tape_add(t, SCL_VALUE_PARAMETER, 0, 0, NULL, at, 0.0);
}

/* Whether a value is this operation of these two. */
static bool is(const scl_tape *t, int value, scl_op op, int a, int b) {
  const scl_value *v = &t->value[value];
  return v->kind == SCL_VALUE_APPLY && v->op == op && scl_tape_operand(t, value, 0) == a &&
         scl_tape_operand(t, value, 1) == b;
}

void test_tape(scl_context *ctx) {
  scl_tape t;
  (void)ctx;
  scl_tape_begin(&t);
  const int x = parameter(&t, 0, 3), y = parameter(&t, 3, 3), one = parameter(&t, 6, 1);
  /* factors, of which one is a power of two */
  CHECK(MUL(NUMBER(-0.5), MUL(x, NUMBER(2.0))) == NEG(x));
  CHECK(MUL(NUMBER(0.5), MUL(NUMBER(2.0), x)) == x);
  CHECK(MUL(MUL(x, NUMBER(4.0)), NUMBER(0.3)) == MUL(x, NUMBER(1.2)));
  CHECK(MUL(NUMBER(3.0), NEG(x)) == MUL(x, NUMBER(-3.0)));
  CHECK(NEG(MUL(x, NUMBER(3.0))) == MUL(x, NUMBER(-3.0)));
  CHECK(NEG(NEG(x)) == x);
  /* not where it would be rounded otherwise, or overflow */
  const int third = MUL(x, NUMBER(0.3)), large = MUL(x, NUMBER(0x1p1000));
  CHECK(is(&t, MUL(third, NUMBER(0.7)), SCL_OP_MUL, third, NUMBER(0.7)));
  CHECK(is(&t, MUL(large, NUMBER(0x1p30)), SCL_OP_MUL, large, NUMBER(0x1p30)));
  /* signs */
  CHECK(MUL(NEG(x), y) == NEG(MUL(x, y)));
  CHECK(DIV(x, NEG(y)) == NEG(DIV(x, y)));
  CHECK(NEG(DIV(NEG(x), y)) == DIV(x, y));
  CHECK(ADD(x, NEG(y)) == SUB(x, y));
  CHECK(ADD(NEG(x), y) == SUB(y, x));
  CHECK(SUB(x, NEG(y)) == ADD(x, y));
  CHECK(scl_tape_reduce(&t, SCL_REDUCE_SUM, NEG(x), 3, 1, SCL_TOTAL) ==
        NEG(scl_tape_reduce(&t, SCL_REDUCE_SUM, x, 3, 1, SCL_TOTAL)));
  const int minus = NEG(one); /* a number next to vectors stays */
  CHECK(is(&t, DIV(x, minus), SCL_OP_DIV, x, minus));
  CHECK(MUL(x, x) == SQUARE(x));
  CHECK(MUL(x, NEG(x)) == NEG(SQUARE(x)));
  CHECK_OK(t.status);
  scl_tape_end(&t);
}
