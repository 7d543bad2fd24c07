/* Nodes of the graph, and how they become plans. Included by src/graph only.
 *
 * A node is a call of an operation (ops/table.h), whose operands are other nodes; or a leaf,
 * which has a value; or a number. Nodes are reference counted and point downwards only. A pending
 * matrix holds one node; other nodes may hold the same one. A computed node becomes a
 * leaf in place, for all that hold it, and releases its operands. */
#ifndef SCL_GRAPH_GRAPH_H
#define SCL_GRAPH_GRAPH_H

#include "engine/plan/plan.h"
#include "graph/expr.h"
#include "ops/table.h"

typedef struct scl_node {
  uint32_t refs;
  uint8_t kind; /* scl_value_kind: DATA for a leaf, REDUCE for REDUCE_WITH too */
  uint8_t op;   /* of an elementwise operation: scl_op; of a reduction: scl_reduction, or
                   SCL_REDUCE_COUNT for one of the user's own */
  uint16_t operation;
  uint16_t depth;
  bool placeholder; /* depends on a placeholder: has no value */
  scl_view view;
  size_t nrow, ncol;
  struct scl_node *arg[SCL_CALL_OPERANDS];
  double attribute[SCL_CALL_ATTRIBUTES]; /* of a number: the number */
  scl_block block;                       /* of a leaf; the buffer is held */
  uint64_t seen;                         /* stamp of the last walk that visited it */
  struct scl_node *next;                 /* in the list of a walk, or of nodes to release */
} scl_node;

/* The node of a pending matrix, NULL for all others. */
static inline scl_node *scl_node_pending(const scl_mat *x) {
  return x->pending;
}

/* Whether a function of its row computes it. */
static inline bool scl_node_is_call(const scl_node *node) {
  return scl_row_of(node->kind)->how == SCL_IS_CALL;
}
/* Of a reduction, or of row or column numbers. */
static inline scl_margin scl_node_margin(const scl_node *node) {
  return (scl_margin)node->attribute[0];
}
/* Where a part begins. */
static inline size_t scl_node_row(const scl_node *node) {
  return (size_t)node->attribute[0];
}
static inline size_t scl_node_column(const scl_node *node) {
  return (size_t)node->attribute[1];
}
/* Of a reduction with a combining expression. */
static inline double scl_node_identity(const scl_node *node) {
  return node->attribute[1];
}

scl_status scl_node_new(scl_value_kind kind, scl_shape shape, scl_node **out);
scl_node *scl_node_retain(scl_node *node);
void scl_node_release(scl_node *node); /* accepts NULL; not recursive */
/* The node of a matrix: the pending one, or a new leaf. Release it. */
scl_status scl_node_of(scl_mat *x, scl_node **out);
/* Makes a node a leaf, which then owns the buffer of `block`. */
void scl_node_set_block(scl_node *node, scl_block block);
uint64_t scl_node_stamp(void); /* a new one */
/* Computes one node, in place. */
scl_status scl_node_force(scl_context *ctx, scl_node *node);

/* Nodes that no plan computes: calls, products with a column among them, and nodes without elements
 * (identities of reductions, or nothing). Their operands are leaves; they become leaves. */
scl_status scl_node_run_call(scl_context *ctx, scl_node *node);
scl_status scl_node_run_empty(scl_context *ctx, scl_node *node);

/* ---- plans ---------------------------------------------------------------------------------- */
/* Plans up to SCL_PLAN_OUTPUTS nodes of one shape (scl_node_domain()) and margin without reductions
 * among their operands; false if they exceed a limit of the plan. Outputs get their blocks later,
 * by scl_plan_place(). */
bool scl_plan_make(const scl_context *ctx, size_t count, scl_node *const *roots, scl_plan *plan);
/* The node over whose elements a computation runs: the operand of a reduction, else itself. */
static inline const scl_node *scl_node_domain(const scl_node *node) {
  return node->kind == SCL_VALUE_REDUCE ? node->arg[0] : node;
}

#endif
