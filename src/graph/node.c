/* The life of nodes. */
#include "graph/graph.h"

#include <stdlib.h>

/* ---- nodes ---------------------------------------------------------------------------------- */

scl_node *scl_node_retain(scl_node *node) {
  node->refs++;
  return node;
}

/* Nodes without a reference go to a list, so that releasing a deep graph needs no deep stack. */
static void drop(scl_node *node, scl_node **list) {
  if (node == NULL || --node->refs > 0) return;
  node->next = *list;
  *list = node;
}

void scl_node_release(scl_node *node) {
  scl_node *list = NULL;
  drop(node, &list);
  while (list != NULL) {
    scl_node *last = list;
    list = last->next;
    for (int k = 0; k < SCL_CALL_OPERANDS; k++) drop(last->arg[k], &list);
    scl_buffer_release(last->block.buffer);
    free(last);
  }
}

uint64_t scl_node_stamp(void) {
  static uint64_t stamp;
  return ++stamp;
}

scl_status scl_node_new(scl_value_kind kind, scl_shape shape, scl_node **out) {
  scl_node *node = calloc(1, sizeof *node);
  if (node == NULL) return scl_fail_memory(sizeof *node, 0, "an expression");
  node->refs = 1;
  node->kind = (uint8_t)kind;
  node->nrow = shape.nrow;
  node->ncol = shape.ncol;
  node->view = shape.view;
  *out = node;
  return SCL_OK;
}

scl_status scl_node_of(scl_mat *x, scl_node **out) {
  if (x->pending != NULL) {
    *out = scl_node_retain(scl_node_pending(x));
    return SCL_OK;
  }
  scl_node *node = NULL;
  SCL_TRY(scl_node_new(SCL_VALUE_DATA, scl_shape_of(x), &node));
  node->block = scl_mat_block(x);
  if (x->buffer != NULL) scl_buffer_retain(x->buffer);
  *out = node;
  return SCL_OK;
}

void scl_node_set_block(scl_node *node, scl_block block) {
  scl_node *arg[3] = {node->arg[0], node->arg[1], node->arg[2]};
  scl_buffer *before = node->block.buffer; /* of a node that was already computed meanwhile */
  node->kind = SCL_VALUE_DATA;
  node->depth = 0;
  node->block = block;
  for (int k = 0; k < 3; k++) node->arg[k] = NULL;
  for (int k = 0; k < 3; k++) scl_node_release(arg[k]);
  scl_buffer_release(before);
}
