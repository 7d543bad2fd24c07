/* The table of operations (graph/ops.def), and calls of its rows. */
#ifndef SCL_GRAPH_OPERATIONS_H
#define SCL_GRAPH_OPERATIONS_H

#include "engine/plan/elementwise.h"
#include "ops/call.h"

/* How an operation is computed, which is also the kind of its node. Kinds before CALL are computed
 * by generated kernels: values, steps and changes of the index. */
typedef enum {
  SCL_NODE_LEAF,      /* no operation: a computed matrix */
  SCL_NODE_NUMBER,    /* no operation: a number, which fits every shape */
  SCL_NODE_APPLY,     /* elementwise */
  SCL_NODE_TRANSPOSE, /* of the first operand, as are the next two */
  SCL_NODE_BROADCAST, /* rows, columns or both are repeated */
  SCL_NODE_PART,      /* a block of it */
  SCL_NODE_WITH_PART, /* the first operand with a block from the second */
  SCL_NODE_INDEX,     /* row or column numbers */
  SCL_NODE_MATVEC,    /* a matrix times a column, both computed: inside a kernel or as a product */
  SCL_NODE_REDUCE,    /* of the first operand; the second is the combining expression, if any */
  SCL_NODE_PLACEHOLDER, /* a value of a combining expression */
  SCL_NODE_CALL         /* its forward function */
} scl_node_kind;

typedef enum {
  SCL_COUNT,  /* a whole number, 0 <= value < 2^31 */
  SCL_FLAG,   /* 0 or 1 */
  SCL_MARGIN, /* a value of scl_margin */
  SCL_REAL    /* any number */
} scl_attribute_kind;

typedef struct {
  const char *name; /* NULL behind the last one */
  scl_attribute_kind kind;
} scl_attribute;

typedef struct {
  const char *name;
  scl_node_kind how;
  int least;                              /* operands that must be given */
  const char *operand[SCL_CALL_OPERANDS]; /* NULL behind the last one */
  scl_attribute attribute[SCL_CALL_ATTRIBUTES];
  scl_rule *rule;
  scl_forward *forward; /* of a CALL */
} scl_operation;

/* Numbers of the rows. That of an elementwise operation is its scl_op; reductions follow, in the
 * order of scl_reduction. */
enum {
  SCL_FIRST_REDUCTION = SCL_OP_COUNT,
  SCL_LAST_REDUCTION = SCL_OP_COUNT + SCL_REDUCE_COUNT - 1,
#define SCL_OPERATION(NAME, ...) SCL_OPERATION_##NAME,
#include "graph/ops.def"
#undef SCL_OPERATION
  SCL_OPERATION_COUNT
};

extern const scl_operation scl_operations[SCL_OPERATION_COUNT];

/* The row of this name; SCL_E_ARGUMENT naming "op". */
scl_status scl_operation_find(const char *name, unsigned *out);

/* How many operands and attributes a row has. */
int scl_operation_operands(const scl_operation *row);
int scl_operation_attributes(const scl_operation *row);

/* SCL_E_ARGUMENT unless the numbers of operands and attributes and the kinds of the attributes are
 * those of the row. Rules rely on that and on nothing else. `attribute` may be NULL if there are
 * none. */
scl_status scl_operation_check(unsigned operation, int operands, int attributes,
                               const double *attribute);

#endif
