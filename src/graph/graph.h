/* Inside of lazy arithmetic: nodes, and plans made of them.
 *
 * A node is a value at each place of its shape, made of other nodes. Nodes are reference counted
 * and point downwards only. A pending matrix holds one node; other nodes may hold the same one.
 * When it is computed the node becomes a leaf, whoever holds it, and lets its operands go. */
#ifndef SCL_GRAPH_GRAPH_H
#define SCL_GRAPH_GRAPH_H

#include "engine/plan/plan.h"
#include "graph/expr.h"

typedef enum {
  SCL_NODE_LEAF,       /* block */
  SCL_NODE_NUMBER,     /* number; fits every shape */
  SCL_NODE_APPLY,      /* op(arg[0], ...) */
  SCL_NODE_TRANSPOSE,  /* of arg[0] */
  SCL_NODE_BROADCAST,  /* of arg[0] */
  SCL_NODE_PART,       /* of arg[0], from (i, j) */
  SCL_NODE_WITH_PART,  /* arg[0] with arg[1] from (i, j) on */
  SCL_NODE_INDEX,      /* row or column number, by margin */
  SCL_NODE_MATVEC,     /* arg[0] (a leaf) times arg[1] (a leaf, one column) */
  SCL_NODE_REDUCE,     /* of arg[0]; arg[1] is the combining expression or NULL */
  SCL_NODE_PLACEHOLDER /* op: which */
} scl_node_kind;

typedef struct scl_node {
  uint32_t refs;
  uint8_t kind, op, margin;
  bool placeholder; /* stands on a placeholder: has no value of its own */
  uint16_t depth;
  scl_view view;
  size_t nrow, ncol;
  struct scl_node *arg[3];
  double number; /* of a number; the identity of a reduction with a combining expression */
  size_t i, j;
  scl_block block;       /* of a leaf; the buffer is held */
  uint64_t seen;         /* stamp of the last walk that came by */
  struct scl_node *next; /* in the list of a walk, or of what is being released */
} scl_node;

scl_node *scl_node_retain(scl_node *node);
void scl_node_release(scl_node *node); /* accepts NULL; not recursive */
/* The node of a matrix: that which is pending, or a new leaf. Release it. */
scl_status scl_node_of(scl_mat *x, scl_node **out);
/* Turns a node into a leaf; takes the buffer of `block` over. */
void scl_node_settle(scl_node *node, scl_block block);
uint64_t scl_node_stamp(void); /* a new one */
/* Computes one node, in place. */
scl_status scl_node_force(scl_context *ctx, scl_node *node);

/* Plans up to SCL_PLAN_OUTPUTS nodes of one shape (scl_node_places()) and margin, below which no
 * reduction is left; false when a limit of the plan is passed. Outputs take their blocks, which are
 * made by scl_mat_ld(), afterwards: scl_plan_place(). */
bool scl_plan_make(const scl_context *ctx, size_t count, scl_node *const *roots, scl_plan *plan);
/* The places that a node's computation walks over: its own shape, or that of what it reduces. */
static inline const scl_node *scl_node_places(const scl_node *node) {
  return node->kind == SCL_NODE_REDUCE ? node->arg[0] : node;
}

#endif
