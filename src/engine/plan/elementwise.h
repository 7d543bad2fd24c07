/* The operations of lazy arithmetic, as inst/kernels/include/elementwise.def and reduce.def have
 * them: names and texts, for kernels and for R, and values. */
#ifndef SCL_ENGINE_PLAN_ELEMENTWISE_H
#define SCL_ENGINE_PLAN_ELEMENTWISE_H

#include "base/engine.h"

/* Texts are OpenCL C in a, b, c; a derivative for each operand. */
typedef struct {
  const char *name, *expression, *derivative[3];
  int arity;
} scl_op_row;
extern const scl_op_row scl_ops[SCL_OP_COUNT];

/* `map` is in a, `combine` in u and v. */
typedef struct {
  const char *name, *identity, *map, *combine;
} scl_reduction_row;
extern const scl_reduction_row scl_reductions[SCL_REDUCE_COUNT];

/* Number of operands, 0 for what is no operation; its value for these; its name. */
int scl_op_arity(scl_op op);
double scl_op_value(scl_op op, double a, double b, double c);
const char *scl_op_name(scl_op op);
/* "reduce" for SCL_REDUCE_COUNT, a reduction of the user's own. */
const char *scl_reduction_name(scl_reduction op);
double scl_reduction_identity(scl_reduction op);

#endif
