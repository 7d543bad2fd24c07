/* The operations of lazy arithmetic, from inst/kernels/include/elementwise.def and reduce.def:
 * names and texts, for kernels and for R, and values. */
#ifndef SCL_ENGINE_PLAN_ELEMENTWISE_H
#define SCL_ENGINE_PLAN_ELEMENTWISE_H

#include "base/engine.h"

/* Elementwise operations: inst/kernels/include/elementwise.def expands to SCL_OP_ADD, ... */
typedef enum {
#define SCL_UNARY(NAME, name, expression, da) SCL_OP_##NAME,
#define SCL_BINARY(NAME, name, expression, da, db) SCL_OP_##NAME,
#define SCL_TERNARY(NAME, name, expression, da, db, dc) SCL_OP_##NAME,
#include "kernels/include/elementwise.def"
#undef SCL_UNARY
#undef SCL_BINARY
#undef SCL_TERNARY
  SCL_OP_COUNT
} scl_op;

/* Reductions to one number: inst/kernels/include/reduce.def expands to SCL_REDUCE_SUM, ... */
typedef enum {
#define SCL_REDUCTION(NAME, name, identity, map, combine) SCL_REDUCE_##NAME,
#include "kernels/include/reduce.def"
#undef SCL_REDUCTION
  SCL_REDUCE_COUNT
} scl_reduction;

/* Of a reduction: all elements, each row, each column. Of an index: the row or the column. */
typedef enum { SCL_TOTAL = 0, SCL_BY_ROW, SCL_BY_COLUMN } scl_margin;

/* The expression is OpenCL C in a, b, c; a derivative for each operand, a formula in operations of
 * the table. */
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

/* Number of operands, 0 if there is no such operation; its value for these; its name. */
int scl_op_arity(scl_op op);
double scl_op_value(scl_op op, double a, double b, double c);
const char *scl_op_name(scl_op op);
/* "reduce" for SCL_REDUCE_COUNT, a reduction that the user defines. */
const char *scl_reduction_name(scl_reduction op);
/* Whether there is a derivative with respect to operand k. */
bool scl_op_has_derivative(scl_op op, int k);
double scl_reduction_identity(scl_reduction op);

#endif
