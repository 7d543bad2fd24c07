/* The table of operations (graph/operations.h). */
#include "graph/operations.h"

#include <math.h>
#include <string.h>

#include "graph/rules.h"
#include "ops/cholesky.h"
#include "ops/constructors.h"
#include "ops/gemm.h"
#include "ops/triangular.h"

#define OPERANDS(...)                                                                              \
  { __VA_ARGS__ }
#define NO_OPERANDS                                                                                \
  { NULL }
#define ATTRIBUTES(...)                                                                            \
  { __VA_ARGS__ }
#define NO_ATTRIBUTES                                                                              \
  {                                                                                                \
    { NULL, SCL_COUNT }                                                                            \
  }
#define COUNT(name)                                                                                \
  { #name, SCL_COUNT }
#define FLAG(name)                                                                                 \
  { #name, SCL_FLAG }
#define MARGIN(name)                                                                               \
  { #name, SCL_MARGIN }
#define NUMBER(name)                                                                               \
  { #name, SCL_REAL }

const scl_operation scl_operations[SCL_OPERATION_COUNT] = {
#define SCL_UNARY(NAME, name, ...)                                                                 \
  [SCL_OP_##NAME] = {#name, SCL_NODE_APPLY, 1, OPERANDS("e1"), NO_ATTRIBUTES, scl_apply_rule, NULL},
#define SCL_BINARY(NAME, name, ...)                                                                \
  [SCL_OP_##NAME] = {#name,         SCL_NODE_APPLY, 2,   OPERANDS("e1", "e2"),                     \
                     NO_ATTRIBUTES, scl_apply_rule, NULL},
#define SCL_TERNARY(NAME, name, ...)                                                               \
  [SCL_OP_##NAME] = {#name,         SCL_NODE_APPLY, 3,   OPERANDS("e1", "e2", "e3"),               \
                     NO_ATTRIBUTES, scl_apply_rule, NULL},
#include "kernels/include/elementwise.def"
#undef SCL_UNARY
#undef SCL_BINARY
#undef SCL_TERNARY
#define SCL_REDUCTION(NAME, name, ...)                                                             \
  [SCL_FIRST_REDUCTION + SCL_REDUCE_##NAME] = {#name,                                              \
                                               SCL_NODE_REDUCE,                                    \
                                               1,                                                  \
                                               OPERANDS("x"),                                      \
                                               ATTRIBUTES(MARGIN(margin)),                         \
                                               scl_reduce_rule,                                    \
                                               NULL},
#include "kernels/include/reduce.def"
#undef SCL_REDUCTION
#define SCL_OPERATION(NAME, name, how, least, operands, attributes, rule, forward)                 \
  [SCL_OPERATION_##NAME] = {#name, SCL_NODE_##how, least, operands, attributes, rule, forward},
#include "graph/ops.def"
#undef SCL_OPERATION
};

scl_status scl_operation_find(const char *name, unsigned *out) {
  for (unsigned k = 0; k < SCL_OPERATION_COUNT; k++) {
    if (strcmp(scl_operations[k].name, name) == 0) {
      *out = k;
      return SCL_OK;
    }
  }
  return scl_fail_argument("op", "unknown operation '%s'", name);
}

int scl_operation_operands(const scl_operation *row) {
  int count = 0;
  while (count < SCL_CALL_OPERANDS && row->operand[count] != NULL) count++;
  return count;
}

int scl_operation_attributes(const scl_operation *row) {
  int count = 0;
  while (count < SCL_CALL_ATTRIBUTES && row->attribute[count].name != NULL) count++;
  return count;
}

static scl_status check_attribute(const scl_attribute *attribute, double value) {
  const char *name = attribute->name;
  switch (attribute->kind) {
  case SCL_COUNT:
    if (value >= 0.0 && value <= 2147483647.0 && value == floor(value)) return SCL_OK;
    return scl_fail_argument(name, "'%s' must be a non-negative integer", name);
  case SCL_FLAG:
    if (value == 0.0 || value == 1.0) return SCL_OK;
    return scl_fail_argument(name, "'%s' must be TRUE or FALSE", name);
  case SCL_MARGIN:
    if (value == SCL_TOTAL || value == SCL_BY_ROW || value == SCL_BY_COLUMN) return SCL_OK;
    return scl_fail_argument(name, "'%s' must be 0, 1 or 2", name);
  default:
    return SCL_OK;
  }
}

scl_status scl_operation_check(unsigned operation, int operands, int attributes,
                               const double *attribute) {
  if (operation >= SCL_OPERATION_COUNT) {
    return scl_fail_argument("op", "unknown operation number %u", operation);
  }
  const scl_operation *row = &scl_operations[operation];
  const int most = scl_operation_operands(row), count = scl_operation_attributes(row);
  if (operands < row->least || operands > most) {
    return scl_fail_argument("op", "operation '%s' takes %d operands, not %d", row->name,
                             operands > most ? most : row->least, operands);
  }
  if (attributes != count) {
    return scl_fail_argument("op", "operation '%s' has %d attributes, not %d", row->name, count,
                             attributes);
  }
  for (int k = 0; k < count; k++) SCL_TRY(check_attribute(&row->attribute[k], attribute[k]));
  return SCL_OK;
}
