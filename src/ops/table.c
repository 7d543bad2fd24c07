/* The table of operations. */
#include "ops/table.h"

#include <math.h>
#include <string.h>

#include "ops/operation.h"

#define OPERANDS(least, ...)                                                                       \
  least, {                                                                                         \
    __VA_ARGS__                                                                                    \
  }
#define MANY OPERANDS(SCL_MANY_OPERANDS, NULL)
#define ATTRIBUTES(...)                                                                            \
  { __VA_ARGS__ }
#define NO_ATTRIBUTES ATTRIBUTES({0})
#define SIZE(name)                                                                                 \
  { #name, SCL_COUNT, true, false }
#define COUNT(name)                                                                                \
  { #name, SCL_COUNT, true, true }
#define FLAG(name)                                                                                 \
  { #name, SCL_FLAG, true, true }
#define MARGIN(name)                                                                               \
  { #name, SCL_MARGIN, true, true }
#define NUMBER(name)                                                                               \
  { #name, SCL_REAL, true, true }
#define LAZY_FLAG(name)                                                                            \
  { #name, SCL_FLAG, false, true }
#define LAZY_NUMBER(name)                                                                          \
  { #name, SCL_REAL, false, true }
#define NODE(rule) rule, scl_call_compute
#define CHECKED(rule, forward) rule, forward
#define NO_NODE NULL, NULL
#define NO_RUN NULL
#define VALUE(reverse, vectors, scalars) true
#define NO_VALUE false

/* Of elementwise operations and reductions. */
#define ROW(name, KIND, how, operands, attributes, rule)                                           \
  { #name, SCL_VALUE_##KIND, SCL_IS_##how, operands, attributes, rule, NULL, NULL, false }

const scl_operation scl_operations[SCL_OPERATION_COUNT] = {
#define SCL_UNARY(NAME, name, ...)                                                                 \
  [SCL_OP_##NAME] = ROW(name, APPLY, STEP, OPERANDS(1, "e1"), NO_ATTRIBUTES, scl_apply_rule),
#define SCL_BINARY(NAME, name, ...)                                                                \
  [SCL_OP_##NAME] = ROW(name, APPLY, STEP, OPERANDS(2, "e1", "e2"), NO_ATTRIBUTES, scl_apply_rule),
#define SCL_TERNARY(NAME, name, ...)                                                               \
  [SCL_OP_##NAME] =                                                                                \
      ROW(name, APPLY, STEP, OPERANDS(3, "e1", "e2", "e3"), NO_ATTRIBUTES, scl_apply_rule),
#include "kernels/include/elementwise.def"
#undef SCL_UNARY
#undef SCL_BINARY
#undef SCL_TERNARY
#define SCL_REDUCTION(NAME, name, ...)                                                             \
  [SCL_FIRST_REDUCTION + SCL_REDUCE_##NAME] =                                                      \
      ROW(name, REDUCE, TOTAL, OPERANDS(1, "x"), ATTRIBUTES(MARGIN(margin)), scl_reduce_rule),
#include "kernels/include/reduce.def"
#undef SCL_REDUCTION
#define SCL_OPERATION(NAME, name, how, operands, attributes, shapes, node, run, value)             \
  [SCL_OPERATION_##                                                                                \
      NAME] = {#name, SCL_VALUE_##NAME, SCL_IS_##how, operands, attributes, node, run, value},
#include "ops/operations.def"
#undef SCL_OPERATION
};

/* ---- nodes ---------------------------------------------------------------------------------- */

scl_status scl_operation_find(const char *name, unsigned *out) {
  for (unsigned k = 0; k < SCL_OPERATION_COUNT; k++) {
    if (scl_operations[k].rule != NULL && strcmp(scl_operations[k].name, name) == 0) {
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

static int count_attributes(const scl_operation *row, bool of_nodes) {
  int count = 0;
  for (int k = 0; k < SCL_ROW_ATTRIBUTES && row->attribute[k].name != NULL; k++) {
    count += of_nodes ? row->attribute[k].of_nodes : row->attribute[k].of_values;
  }
  return count;
}

int scl_operation_attributes(const scl_operation *row) {
  return count_attributes(row, true);
}

const scl_attribute *scl_operation_attribute(const scl_operation *row, int k) {
  const scl_attribute *attribute = row->attribute;
  for (;; attribute++) {
    if (attribute->of_nodes && k-- == 0) return attribute;
  }
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
  if (operation >= SCL_OPERATION_COUNT || scl_operations[operation].rule == NULL) {
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
  for (int k = 0; k < count; k++)
    SCL_TRY(check_attribute(scl_operation_attribute(row, k), attribute[k]));
  return SCL_OK;
}

/* ---- calls ---------------------------------------------------------------------------------- */

scl_status scl_call_compute(const scl_call *call, const scl_mat *const *operand, scl_mat **out) {
  const scl_operation *row = &scl_operations[call->operation];
  scl_block block[SCL_CALL_OPERANDS] = {{0}};
  scl_shape shape;
  scl_mat *r;
  SCL_TRY(row->rule(call, &shape));
  SCL_TRY(scl_mat_create(operand[0]->ctx, shape.nrow, shape.ncol, shape.view, &r));
  for (int k = 0; k < call->count; k++) block[k] = scl_mat_block(operand[k]);
  scl_status status = SCL_OK;
  if (!scl_is_empty(r)) status = row->run(r->ctx, call, block, scl_mat_block(r));
  return scl_give(status, r, out);
}

scl_status scl_call_nonsingular(const scl_call *call, const scl_mat *const *operand,
                                scl_mat **out) {
  scl_checks checks = {.count = 0};
  scl_mat *r = NULL;
  scl_status status = scl_checks_diagonal(&checks, operand[0], "l");
  if (status == SCL_OK) status = scl_call_compute(call, operand, &r);
  return scl_give(scl_checks_end(&checks, operand[0]->ctx, status), r, out);
}

/* ---- values --------------------------------------------------------------------------------- */

bool scl_value_has_dims(scl_value_kind kind) {
  const scl_operation *row = scl_row_of(kind);
  bool sized = row->rule == NULL || row->how != SCL_IS_CALL;
  for (int k = 0; k < SCL_ROW_ATTRIBUTES && row->attribute[k].name != NULL; k++) {
    sized = sized || !row->attribute[k].of_nodes;
  }
  return !sized;
}

int scl_value_operands(scl_value_kind kind) {
  const scl_operation *row = scl_row_of(kind);
  return row->least == SCL_MANY_OPERANDS ? SCL_MANY_OPERANDS : scl_operation_operands(row);
}

int scl_value_attributes(scl_value_kind kind) {
  const scl_operation *row = scl_row_of(kind);
  return count_attributes(row, false) +
         (scl_value_has_dims(kind) ? 2 * scl_operation_operands(row) : 0);
}

/* As the table has it. */
static scl_value_shape shape_in_table(scl_value_kind kind, const size_t *at, int k) {
#define BY(rows, columns)                                                                          \
  (scl_value_shape) {                                                                              \
    rows, columns                                                                                  \
  }
#define ANY BY(SIZE_MAX, 1)
#define RULE ANY
#define SHAPES(a, b, result) k == SCL_OF_RESULT ? result : k == 0 ? a : k == 1 ? b : ANY
#define ANY_SHAPES ANY
  switch (kind) {
#define SCL_OPERATION(NAME, name, how, operands, attributes, shapes, ...)                          \
  case SCL_VALUE_##NAME:                                                                           \
    return shapes;
#include "ops/operations.def"
#undef SCL_OPERATION
  default:
    return ANY;
  }
}

void scl_value_call(scl_value_kind kind, const size_t *at, scl_call *out) {
  const scl_operation *row = scl_row_of(kind);
  int given = scl_value_has_dims(kind) ? 2 * scl_operation_operands(row) : 0, count = 0;
  *out = (scl_call){.operation = (unsigned)(row - scl_operations),
                    .count = scl_operation_operands(row)};
  for (int k = 0; k < out->count; k++) {
    const scl_value_shape shape = scl_value_shape_of(kind, at, k);
    out->operand[k].kind = SCL_A_MATRIX;
    out->operand[k].shape = (scl_shape){shape.rows, shape.columns, SCL_GENERAL};
  }
  for (int k = 0; k < SCL_ROW_ATTRIBUTES && row->attribute[k].name != NULL; k++) {
    const scl_attribute *a = &row->attribute[k];
    if (a->of_nodes) out->attribute[count++] = a->of_values ? (double)at[given] : 0.0;
    given += a->of_values;
  }
}

scl_value_shape scl_value_shape_of(scl_value_kind kind, const size_t *at, int k) {
  const scl_operation *row = scl_row_of(kind);
  scl_shape shape;
  scl_call call;
  if (k != SCL_OF_RESULT && scl_value_has_dims(kind)) return BY(at[2 * k], at[2 * k + 1]);
  if (k != SCL_OF_RESULT || row->how != SCL_IS_CALL || row->rule == NULL) {
    return shape_in_table(kind, at, k);
  }
  scl_value_call(kind, at, &call);
  return row->rule(&call, &shape) == SCL_OK ? BY(shape.nrow, shape.ncol) : ANY;
}
