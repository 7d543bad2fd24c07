/* The table of operations (ops/operations.def), and calls of its rows. */
#ifndef SCL_OPS_TABLE_H
#define SCL_OPS_TABLE_H

#include "engine/plan/elementwise.h"
#include "ops/call.h"

/* Its rows: kinds of values (program/tape.h) and of nodes (graph/graph.h). */
typedef enum {
#define SCL_OPERATION(NAME, ...) SCL_VALUE_##NAME,
#include "ops/operations.def"
#undef SCL_OPERATION
  SCL_VALUE_KINDS
} scl_value_kind;

/* How an operation is computed. */
typedef enum {
  SCL_IS_LEAF,
  SCL_IS_STEP,
  SCL_IS_VIEW,
  SCL_IS_TOTAL,
  SCL_IS_CALL,
  SCL_IS_LAYOUT
} scl_value_how;

typedef enum {
  SCL_COUNT,  /* a whole number, 0 <= value < 2^31 */
  SCL_FLAG,   /* 0 or 1 */
  SCL_MARGIN, /* a value of scl_margin */
  SCL_REAL    /* any number */
} scl_attribute_kind;

typedef struct {
  const char *name; /* NULL behind the last one */
  scl_attribute_kind kind;
  bool of_values, of_nodes;
} scl_attribute;

enum { SCL_ROW_ATTRIBUTES = 5, SCL_MANY_OPERANDS = -1 };

typedef struct {
  const char *name;
  scl_value_kind kind;
  scl_value_how how;
  int least;                              /* operands that must be given, or SCL_MANY_OPERANDS */
  const char *operand[SCL_CALL_OPERANDS]; /* NULL behind the last one */
  scl_attribute attribute[SCL_ROW_ATTRIBUTES];
  scl_rule *rule; /* NULL: of values alone */
  scl_forward *forward;
  scl_run *run;
  bool is_value; /* false: of nodes alone, or made by program/lower.c */
} scl_operation;

/* Numbers of the rows. That of an elementwise operation is its scl_op; reductions follow, in the
 * order of scl_reduction, then the kinds. */
enum {
  SCL_FIRST_REDUCTION = SCL_OP_COUNT,
  SCL_LAST_REDUCTION = SCL_OP_COUNT + SCL_REDUCE_COUNT - 1,
#define SCL_OPERATION(NAME, ...) SCL_OPERATION_##NAME,
#include "ops/operations.def"
#undef SCL_OPERATION
  SCL_OPERATION_COUNT
};

extern const scl_operation scl_operations[SCL_OPERATION_COUNT];

/* The rules and functions of the rows. */
scl_rule scl_apply_rule, scl_reduce_rule;
#define NODE(rule) scl_rule rule;
#define CHECKED(rule, forward)                                                                     \
  scl_rule rule;                                                                                   \
  scl_forward forward;
#define NO_NODE
#define SCL_OPERATION(NAME, name, how, operands, attributes, shapes, node, run, value)             \
  node scl_run run;
#include "ops/operations.def"
#undef SCL_OPERATION
#undef NO_NODE
#undef CHECKED
#undef NODE

/* ---- nodes ---------------------------------------------------------------------------------- */
/* The row of a node with this name; SCL_E_ARGUMENT naming "op". */
scl_status scl_operation_find(const char *name, unsigned *out);

/* How many operands a row has, at most; how many attributes as a node; and these. */
int scl_operation_operands(const scl_operation *row);
int scl_operation_attributes(const scl_operation *row);
const scl_attribute *scl_operation_attribute(const scl_operation *row, int k);

/* SCL_E_ARGUMENT unless the numbers of operands and attributes and the kinds of the attributes are
 * those of the row. Rules rely on that and on nothing else. `attribute` may be NULL if there are
 * none. */
scl_status scl_operation_check(unsigned operation, int operands, int attributes,
                               const double *attribute);

/* ---- values --------------------------------------------------------------------------------- */
static inline const scl_operation *scl_row_of(scl_value_kind kind) {
  return &scl_operations[SCL_LAST_REDUCTION + 1 + kind];
}
/* Whether the rows and columns of its operands stand before the attributes of a value. */
bool scl_value_has_dims(scl_value_kind kind);
/* How many attributes a value has; how many operands, or SCL_MANY_OPERANDS. */
int scl_value_attributes(scl_value_kind kind);
int scl_value_operands(scl_value_kind kind);

/* The shape of operand k, or of the result for k = SCL_OF_RESULT, by the attributes; rows are
 * SIZE_MAX where these do not say it. */
enum { SCL_OF_RESULT = -1 };
typedef struct {
  size_t rows, columns;
} scl_value_shape;
scl_value_shape scl_value_shape_of(scl_value_kind kind, const size_t *at, int k);
/* The call of a value. */
void scl_value_call(scl_value_kind kind, const size_t *at, scl_call *out);

#endif
