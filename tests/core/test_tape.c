/* Simpler forms of recorded arithmetic (program/tape_arithmetic.c): which value stands for which.
 */
#include <stdlib.h>
#include <string.h>

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

/* ---- known numbers -------------------------------------------------------------------------- */

static int own(scl_tape *t, const double *numbers, size_t length) {
  double *copy = test_alloc(length * sizeof *copy);
  memcpy(copy, numbers, length * sizeof *copy);
  return scl_tape_own_data(t, copy, length);
}

static int sum(scl_tape *t, int x) {
  return scl_tape_reduce(t, SCL_REDUCE_SUM, x, scl_tape_length(t, x), 1, SCL_TOTAL);
}

/* The data of a scatter that is known; NULL if it stays a scatter. */
static const double *scattered(scl_tape *t, int x, int index, size_t length) {
  const int value = scl_tape_scatter(t, x, index, length);
  CHECK_OK(t->status);
  if (t->value[value].kind == SCL_VALUE_SCATTER) return NULL;
  CHECK(t->value[value].kind == SCL_VALUE_DATA && t->value[value].length == length);
  return t->data[t->value[value].at[0]].numbers;
}

static void check_known(void) {
  static const double x[] = {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}, order[] = {5.0, 0.0, 0.0, 2.0};
  static const double rows[] = {1.0, 0.0, 1.0, 1.0, 0.0, 1.0}, few[] = {1.0, 1.0, 1.0, 1.0};
  static const double zeros[] = {3.0, -3.0, 1.0, 1.0, 1.0, 1.0};
  static const double opposite[] = {0.0, 0.0, 1.0, 1.0, 1.0, 1.0};
  const size_t block[] = {3, 1, 0, 2, 2};
  scl_tape t;
  scl_tape_begin(&t);
  const int mine = scl_tape_data_value(&t, own(&t, x, 6));
  const int given = scl_tape_data_value(&t, scl_tape_add_data(&t, x, 6));
  const int index = own(&t, order, 4), given_index = scl_tape_add_data(&t, order, 4);
  const int to = own(&t, rows, 6), given_to = scl_tape_add_data(&t, rows, 6);
  /* sums of what only moves elements */
  CHECK(sum(&t, mine) == NUMBER(63.0));
  CHECK(sum(&t, scl_tape_gather(&t, mine, index)) == NUMBER(38.0));
  CHECK(sum(&t, scl_tape_block_part(&t, mine, block)) == NUMBER(54.0));
  CHECK(sum(&t, scl_tape_broadcast(&t, mine, 4, 6, true)) == NUMBER(252.0));
  CHECK(scl_tape_part(&t, scl_tape_broadcast(&t, mine, 4, 6, true), 9, 1) == NUMBER(4.0));
  CHECK(scl_tape_part(&t, scl_tape_broadcast(&t, mine, 6, 4, false), 9, 1) == NUMBER(8.0));
  CHECK(sum(&t, scl_tape_fill(&t, NUMBER(0.5), 7)) == NUMBER(3.5));
  CHECK(scl_tape_part(&t, scl_tape_transpose(&t, mine, 3, 2), 1, 1) == NUMBER(8.0));
  CHECK(scl_tape_part(&t, scl_tape_transpose(&t, mine, 3, 2), 2, 1) == NUMBER(2.0));
  /* of other data there will be other numbers */
  CHECK(t.value[sum(&t, given)].kind == SCL_VALUE_REDUCE);
  CHECK(t.value[sum(&t, scl_tape_gather(&t, mine, given_index))].kind == SCL_VALUE_REDUCE);
  CHECK(t.value[scl_tape_part(&t, given, 1, 1)].kind == SCL_VALUE_PART);
  CHECK(t.value[sum(&t, SQUARE(mine))].kind == SCL_VALUE_REDUCE);
  /* scatters */
  const double *two = scattered(&t, mine, to, 2);
  CHECK(two != NULL && two[0] == 18.0 && two[1] == 45.0);
  two = scattered(&t, scl_tape_broadcast(&t, scl_tape_part(&t, mine, 0, 3), 3, 2, false), to, 2);
  CHECK(two != NULL && two[0] == 4.0 && two[1] == 10.0);
  CHECK(scattered(&t, given, to, 2) == NULL);
  CHECK(scattered(&t, mine, given_to, 2) == NULL);
  /* not where an element is 0, since nothing has a share in it, or by chance */
  CHECK(scattered(&t, mine, to, 3) == NULL);
  CHECK(scattered(&t, scl_tape_part(&t, mine, 0, 4), own(&t, few, 4), 2) == NULL);
  CHECK(scattered(&t, scl_tape_data_value(&t, own(&t, zeros, 6)), own(&t, opposite, 6), 2) == NULL);
  CHECK_OK(t.status);
  scl_tape_end(&t);
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
  check_known();
}
