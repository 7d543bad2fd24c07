#include "engine/host/scan_single.h"

#include "engine/host/plan.h"

void scl_host_scan_single(const scl_scan_single *s, int count, size_t rows) {
  for (size_t r = 0; r < rows; r++) {
    for (const scl_scan_single *o = s; o < s + count; o++) {
      const double a = o->arg[0][r * o->step[0]];
      switch (o->op) {
      case SCL_OP_ADD:
        o->to[r] = a + o->arg[1][r * o->step[1]];
        break;
      case SCL_OP_SUB:
        o->to[r] = a - o->arg[1][r * o->step[1]];
        break;
      case SCL_OP_MUL:
        o->to[r] = a * o->arg[1][r * o->step[1]];
        break;
      case SCL_OP_DIV:
        o->to[r] = a / o->arg[1][r * o->step[1]];
        break;
      case SCL_OP_TIMES:
        o->to[r] = a == 0.0 ? 0.0 : a * o->arg[1][r * o->step[1]];
        break;
      case SCL_OP_COUNT:
        o->to[r] = a;
        break;
      default:
        o->to[r] =
            scl_op_value((scl_op)o->op, a, o->arg[1][r * o->step[1]], o->arg[2][r * o->step[2]]);
        break;
      }
    }
  }
}
