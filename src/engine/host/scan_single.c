#include "engine/host/scan_single.h"

#include "engine/host/code.h"

#define OPERAND(k) o->arg[k][r * o->step[k]]
#define CASE(NAME, expression)                                                                     \
  case SCL_OP_##NAME: {                                                                            \
    const double b = OPERAND(1);                                                                   \
    (void)b;                                                                                       \
    o->to[r] = expression;                                                                         \
    break;                                                                                         \
  }
#define PAIR(NAME, place, second, FIRST, first)                                                    \
  case SCL_CODE_PAIR + SCL_FIRST_##FIRST *SCL_SECOND_COUNT + SCL_SECOND_##NAME##_##place: {        \
    const double b = OPERAND(1), c = OPERAND(2), t = first;                                        \
    (void)b, (void)c;                                                                              \
    o->to[r] = second;                                                                             \
    break;                                                                                         \
  }
#define PAIRS(NAME, first) SCL_CODE_SECONDS(PAIR, NAME, first)

SCL_ROUNDS_TWICE void scl_host_scan_single(const scl_scan_single *s, int count, size_t rows) {
  for (size_t r = 0; r < rows; r++) {
    for (const scl_scan_single *o = s; o < s + count; o++) {
      const double a = OPERAND(0);
      switch (o->op) {
        SCL_CODE_FREQUENT(CASE)
        SCL_CODE_FIRSTS(PAIRS)
      case SCL_OP_IFELSE:
        o->to[r] = isnan(a) ? a : a != 0.0 ? OPERAND(1) : OPERAND(2);
        break;
      case SCL_CODE_COPY:
        o->to[r] = a;
        break;
      default:
        o->to[r] = scl_op_value((scl_op)o->op, a, OPERAND(1), OPERAND(2));
        break;
      }
    }
  }
}
