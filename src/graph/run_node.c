/* Nodes that no generated kernel computes. */
#include <string.h>

#include "graph/graph.h"

/* The matrix of a leaf, for a forward function: without a reference, valid as long as the node. */
static scl_mat borrow(scl_context *ctx, const scl_node *node) {
  const scl_block b = node->block;
  return (scl_mat){.tag = SCL_MAT_TAG,
                   .refs = 1,
                   .ctx = ctx,
                   .buffer = b.buffer,
                   .offset = b.offset,
                   .ld = b.ld,
                   .nrow = node->nrow,
                   .ncol = node->ncol,
                   .type = b.type,
                   .view = node->view};
}

static bool is_same(const scl_node *a, const scl_node *b) {
  return a == b || (a->block.buffer != NULL && a->block.buffer == b->block.buffer &&
                    a->block.offset == b->block.offset && a->block.ld == b->block.ld &&
                    a->nrow == b->nrow && a->ncol == b->ncol && a->view == b->view);
}

/* Makes the node a leaf with the storage of a result. */
static void set_matrix(scl_node *node, scl_mat *result) {
  scl_block block = scl_mat_block(result);
  if (block.buffer != NULL) scl_buffer_retain(block.buffer);
  scl_node_set_block(node, block);
  scl_mat_release(result);
}

scl_status scl_node_run_call(scl_context *ctx, scl_node *node) {
  scl_mat borrowed[SCL_CALL_OPERANDS], *result = NULL;
  const scl_mat *operand[SCL_CALL_OPERANDS] = {NULL};
  scl_call call = {.operation = node->operation};
  for (int k = 0; k < SCL_CALL_OPERANDS && node->arg[k] != NULL; k++) {
    borrowed[k] = borrow(ctx, node->arg[k]);
    operand[k] = &borrowed[k];
    call.operand[k].kind = SCL_A_MATRIX;
    call.operand[k].shape = scl_shape_of(operand[k]);
    call.count++;
  }
  call.same = call.count > 1 && is_same(node->arg[0], node->arg[1]);
  if (call.same) operand[1] = operand[0];
  memcpy(call.attribute, node->attribute, sizeof call.attribute);
  SCL_TRY(scl_operations[node->operation].forward(&call, operand, &result));
  set_matrix(node, result);
  return SCL_OK;
}

/* A node without elements: nothing, or identities of reductions. */
scl_status scl_node_run_empty(scl_context *ctx, scl_node *node) {
  scl_block made;
  SCL_TRY(scl_block_create(ctx, node->nrow, node->ncol, &made));
  if (made.buffer != NULL) {
    double identity = node->op == SCL_REDUCE_COUNT ? scl_node_identity(node)
                      : scl_reduces_to_index(node->op)
                          ? 0.0
                          : scl_reduction_identity((scl_reduction)node->op);
    scl_status status = ctx->engine->fill(ctx, identity, made);
    if (status != SCL_OK) {
      scl_buffer_release(made.buffer);
      return status;
    }
  }
  scl_node_set_block(node, made);
  return SCL_OK;
}
