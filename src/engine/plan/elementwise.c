/* The operations of lazy arithmetic (engine/plan/elementwise.h). */
#include "engine/plan/elementwise.h"

#include <string.h>

#include "kernels/include/port.h"
#include "kernels/include/special_functions.h"
#include "kernels/include/special_normal.h"
#include "kernels/include/special_density.h"
#include "kernels/include/incomplete_functions.h"
#include "kernels/include/bessel_functions.h"

#define TEXT(formula) #formula /* with its macros expanded */

const scl_op_row scl_ops[SCL_OP_COUNT] = {
#define SCL_UNARY(NAME, name, expression, da) [SCL_OP_##NAME] = {#name, #expression, {TEXT(da)}, 1},
#define SCL_BINARY(NAME, name, expression, da, db)                                                 \
  [SCL_OP_##NAME] = {#name, #expression, {TEXT(da), TEXT(db)}, 2},
#define SCL_TERNARY(NAME, name, expression, da, db, dc)                                            \
  [SCL_OP_##NAME] = {#name, #expression, {TEXT(da), TEXT(db), TEXT(dc)}, 3},
#include "kernels/include/elementwise.def"
#undef SCL_UNARY
#undef SCL_BINARY
#undef SCL_TERNARY
};

const scl_reduction_row scl_reductions[SCL_REDUCE_COUNT] = {
#define SCL_REDUCTION(NAME, name, identity, map, combine)                                          \
  [SCL_REDUCE_##NAME] = {#name, #identity, #map, #combine},
#include "kernels/include/reduce.def"
#undef SCL_REDUCTION
};

int scl_op_arity(scl_op op) {
  return (unsigned)op < SCL_OP_COUNT ? scl_ops[op].arity : 0;
}

bool scl_op_has_derivative(scl_op op, int k) {
  return strncmp(scl_ops[op].derivative[k], "unknown", strlen("unknown")) != 0;
}

const char *scl_op_name(scl_op op) {
  return (unsigned)op < SCL_OP_COUNT ? scl_ops[op].name : "";
}

const char *scl_reduction_name(scl_reduction op) {
  return (unsigned)op < SCL_REDUCE_COUNT ? scl_reductions[op].name : "reduce";
}

double scl_op_value(scl_op op, double a, double b, double c) {
  (void)b, (void)c;
  switch (op) {
#define SCL_UNARY(NAME, name, expression, da)                                                      \
  case SCL_OP_##NAME:                                                                              \
    return expression;
#define SCL_BINARY(NAME, name, expression, da, db)                                                 \
  case SCL_OP_##NAME:                                                                              \
    return expression;
#define SCL_TERNARY(NAME, name, expression, da, db, dc)                                            \
  case SCL_OP_##NAME:                                                                              \
    return expression;
#include "kernels/include/elementwise.def"
#undef SCL_UNARY
#undef SCL_BINARY
#undef SCL_TERNARY
  default:
    return NAN;
  }
}

double scl_reduction_identity(scl_reduction op) {
  switch (op) {
#define SCL_REDUCTION(NAME, name, identity, map, combine)                                          \
  case SCL_REDUCE_##NAME:                                                                          \
    return identity;
#include "kernels/include/reduce.def"
#undef SCL_REDUCTION
  default:
    return NAN;
  }
}
