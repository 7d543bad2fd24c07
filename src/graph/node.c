/* Lazy arithmetic: nodes and the functions that make them. */
#include "graph/graph.h"

#include <stdlib.h>

#include "ops/operation.h"

/* ---- nodes ---------------------------------------------------------------------------------- */

scl_node *scl_node_retain(scl_node *node) {
  node->refs++;
  return node;
}

/* Nodes whose last holder is gone wait in a list, so that a deep graph takes no deep stack. */
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
    for (int k = 0; k < 3; k++) drop(last->arg[k], &list);
    scl_buffer_release(last->block.buffer);
    free(last);
  }
}

uint64_t scl_node_stamp(void) {
  static uint64_t stamp;
  return ++stamp;
}

static scl_status new_node(scl_node_kind kind, size_t m, size_t n, scl_view view, scl_node **out) {
  scl_node *node = calloc(1, sizeof *node);
  if (node == NULL) return scl_fail_memory(sizeof *node, 0, "an expression");
  node->refs = 1;
  node->kind = (uint8_t)kind;
  node->nrow = m;
  node->ncol = n;
  node->view = view;
  *out = node;
  return SCL_OK;
}

scl_status scl_node_of(scl_mat *x, scl_node **out) {
  if (x->pending != NULL) {
    *out = scl_node_retain(x->pending);
    return SCL_OK;
  }
  scl_node *node = NULL;
  SCL_TRY(new_node(SCL_NODE_LEAF, x->nrow, x->ncol, x->view, &node));
  node->block = scl_mat_block(x);
  if (x->buffer != NULL) scl_buffer_retain(x->buffer);
  *out = node;
  return SCL_OK;
}

void scl_node_settle(scl_node *node, scl_block block) {
  scl_node *arg[3] = {node->arg[0], node->arg[1], node->arg[2]};
  scl_buffer *before = node->block.buffer; /* of a node that was computed on the way already */
  node->kind = SCL_NODE_LEAF;
  node->depth = 0;
  node->block = block;
  for (int k = 0; k < 3; k++) node->arg[k] = NULL;
  for (int k = 0; k < 3; k++) scl_node_release(arg[k]);
  scl_buffer_release(before);
}

/* Gives `node` arg[k] (taking the reference over) and what follows from it. A graph that would be
 * too deep is computed below this operand. */
static scl_status take(scl_context *ctx, scl_node *node, int k, scl_node *arg) {
  node->arg[k] = arg;
  node->placeholder = node->placeholder || arg->placeholder;
  if (arg->depth + 1 >= SCL_EXPR_DEPTH && !arg->placeholder) SCL_TRY(scl_node_force(ctx, arg));
  if (arg->depth + 1 > SCL_EXPR_DEPTH) {
    return scl_fail_argument("combine", "'combine' has more than %d nested operations",
                             SCL_EXPR_DEPTH);
  }
  if (node->depth < arg->depth + 1) node->depth = (uint16_t)(arg->depth + 1);
  return SCL_OK;
}

/* A pending matrix; takes `node` over, also on a fault. `status` is passed on. */
static scl_status give(scl_status status, scl_context *ctx, scl_node *node, scl_mat **out) {
  if (status == SCL_OK)
    status = scl_mat_create_pending(ctx, node->nrow, node->ncol, node->view, node, scl_node_release,
                                    out);
  if (status != SCL_OK) scl_node_release(node);
  return status;
}

/* A node of one operand, whose shape and view are those given. */
static scl_status make_over(scl_node_kind kind, scl_mat *x, size_t m, size_t n, scl_view view,
                            scl_node **out) {
  scl_node *node = NULL, *arg = NULL;
  SCL_TRY(new_node(kind, m, n, view, &node));
  scl_status status = scl_node_of(x, &arg);
  if (status == SCL_OK) status = take(x->ctx, node, 0, arg);
  if (status != SCL_OK) {
    scl_node_release(node);
    return status;
  }
  *out = node;
  return SCL_OK;
}

/* ---- elementwise ---------------------------------------------------------------------------- */

/* Shape of the result, and that all operands fit it. */
static scl_status find_shape(int count, const scl_term *terms, size_t *m, size_t *n) {
  const scl_mat *widest = NULL;
  for (int k = 0; k < count; k++) {
    const scl_mat *x = terms[k].matrix;
    if (x != NULL && (widest == NULL || (widest->ncol == 1 && x->ncol != 1))) widest = x;
  }
  if (widest == NULL) return scl_fail_argument("e1", "at least one operand must be a matrix");
  for (int k = 0; k < count; k++) {
    const scl_mat *x = terms[k].matrix;
    if (x == NULL) continue;
    SCL_TRY(scl_mat_same_context(widest, x));
    if (x->nrow != widest->nrow || (x->ncol != widest->ncol && x->ncol != 1)) {
      return scl_fail_argument(
          k == 0   ? "e1"
          : k == 1 ? "e2"
                   : "e3",
          "non-conformable arguments: one operand is %zu x %zu, the other is %zu x %zu",
          widest->nrow, widest->ncol, x->nrow, x->ncol);
    }
  }
  *m = widest->nrow;
  *n = widest->ncol;
  return SCL_OK;
}

/* What is certain of the result whatever the elements are: zeros stay where the operation takes
 * them to zero. */
static scl_view view_of(scl_op op, int count, const scl_term *terms, size_t n) {
  double at_zero[3] = {0.0, 0.0, 0.0};
  scl_view view = SCL_GENERAL;
  bool any = false;
  for (int k = 0; k < count; k++) {
    const scl_mat *x = terms[k].matrix;
    if (x == NULL) {
      at_zero[k] = terms[k].number;
      continue;
    }
    if (x->ncol != n || (any && x->view != view)) return SCL_GENERAL;
    view = x->view;
    any = true;
  }
  if (!scl_is_triangular(view)) return view;
  return scl_op_value(op, at_zero[0], at_zero[1], at_zero[2]) == 0.0 ? view : SCL_GENERAL;
}

static scl_status new_number(double value, scl_node **out) {
  SCL_TRY(new_node(SCL_NODE_NUMBER, 1, 1, SCL_GENERAL, out));
  (*out)->number = value;
  return SCL_OK;
}

static scl_status term_node(const scl_term *term, size_t m, size_t n, scl_node **out) {
  if (term->matrix == NULL) return new_number(term->number, out);
  if (term->matrix->ncol == n) return scl_node_of(term->matrix, out);
  return make_over(SCL_NODE_BROADCAST, term->matrix, m, n, SCL_GENERAL, out);
}

scl_status scl_expr_apply(scl_op op, int count, const scl_term *terms, scl_mat **out) {
  size_t m = 0, n = 0;
  if (count != scl_op_arity(op)) {
    return scl_fail_argument("op", "operation '%s' takes %d operands, not %d", scl_op_name(op),
                             scl_op_arity(op), count);
  }
  SCL_TRY(find_shape(count, terms, &m, &n));
  scl_context *ctx = NULL;
  for (int k = 0; k < count; k++) {
    if (terms[k].matrix != NULL) ctx = terms[k].matrix->ctx;
  }
  scl_node *node = NULL;
  SCL_TRY(new_node(SCL_NODE_APPLY, m, n, view_of(op, count, terms, n), &node));
  node->op = (uint8_t)op;
  scl_status status = SCL_OK;
  for (int k = 0; k < count && status == SCL_OK; k++) {
    scl_node *arg = NULL;
    status = term_node(&terms[k], m, n, &arg);
    if (status == SCL_OK) status = take(ctx, node, k, arg);
  }
  return give(status, ctx, node, out);
}

/* ---- index functions ------------------------------------------------------------------------ */

scl_status scl_expr_transpose(scl_mat *x, scl_mat **out) {
  scl_node *node = NULL;
  SCL_TRY(make_over(SCL_NODE_TRANSPOSE, x, x->ncol, x->nrow, scl_view_transposed(x->view), &node));
  return give(SCL_OK, x->ctx, node, out);
}

scl_status scl_expr_broadcast(scl_mat *x, size_t m, size_t n, scl_mat **out) {
  scl_node *node = NULL;
  if ((x->nrow != m && x->nrow != 1) || (x->ncol != n && x->ncol != 1)) {
    return scl_fail_argument("x", "'x' is %zu x %zu and cannot be recycled to %zu x %zu", x->nrow,
                             x->ncol, m, n);
  }
  SCL_TRY(make_over(SCL_NODE_BROADCAST, x, m, n, SCL_GENERAL, &node));
  return give(SCL_OK, x->ctx, node, out);
}

scl_status scl_expr_part(scl_mat *x, size_t i, size_t j, size_t m, size_t n, scl_mat **out) {
  scl_node *node = NULL;
  if (i > x->nrow || m > x->nrow - i || j > x->ncol || n > x->ncol - j) {
    return scl_fail_argument(
        "x", "a block of %zu x %zu at (%zu, %zu) is not inside a matrix of %zu x %zu", m, n, i, j,
        x->nrow, x->ncol);
  }
  scl_view view = i == j && m == n ? x->view : SCL_GENERAL;
  SCL_TRY(make_over(SCL_NODE_PART, x, m, n, view, &node));
  node->i = i;
  node->j = j;
  return give(SCL_OK, x->ctx, node, out);
}

scl_status scl_expr_with_part(scl_mat *x, size_t i, size_t j, scl_mat *value, scl_mat **out) {
  scl_node *node = NULL, *arg = NULL;
  SCL_TRY(scl_mat_same_context(x, value));
  if (i > x->nrow || value->nrow > x->nrow - i || j > x->ncol || value->ncol > x->ncol - j) {
    return scl_fail_argument(
        "value", "a block of %zu x %zu at (%zu, %zu) does not fit in a matrix of %zu x %zu",
        value->nrow, value->ncol, i, j, x->nrow, x->ncol);
  }
  SCL_TRY(make_over(SCL_NODE_WITH_PART, x, x->nrow, x->ncol, SCL_GENERAL, &node));
  node->i = i;
  node->j = j;
  scl_status status = scl_node_of(value, &arg);
  if (status == SCL_OK) status = take(x->ctx, node, 1, arg);
  return give(status, x->ctx, node, out);
}

scl_status scl_expr_index(scl_context *ctx, scl_margin margin, size_t m, size_t n, scl_mat **out) {
  scl_node *node = NULL;
  if (margin != SCL_BY_ROW && margin != SCL_BY_COLUMN) {
    return scl_fail_argument("margin", "'margin' must be 1 or 2");
  }
  SCL_TRY(scl_context_check(ctx));
  SCL_TRY(new_node(SCL_NODE_INDEX, m, n, SCL_GENERAL, &node));
  node->margin = (uint8_t)margin;
  return give(SCL_OK, ctx, node, out);
}

scl_status scl_expr_matvec(scl_mat *x, scl_mat *b, scl_mat **out) {
  scl_node *node = NULL, *arg = NULL;
  SCL_TRY(scl_mat_same_context(x, b));
  if (b->ncol != 1 || b->nrow != x->ncol) {
    return scl_fail_argument("b", "'b' must be one column with %zu rows, not %zu x %zu", x->ncol,
                             b->nrow, b->ncol);
  }
  SCL_TRY(make_over(SCL_NODE_MATVEC, x, x->nrow, 1, SCL_GENERAL, &node));
  scl_status status = scl_node_of(b, &arg);
  if (status == SCL_OK) status = take(x->ctx, node, 1, arg);
  return give(status, x->ctx, node, out);
}

/* ---- reductions ----------------------------------------------------------------------------- */

static scl_status reduce_node(scl_mat *x, scl_margin margin, scl_node **out) {
  if ((unsigned)margin > SCL_BY_COLUMN) {
    return scl_fail_argument("margin", "'margin' must be 0, 1 or 2");
  }
  if (x->pending != NULL && x->pending->placeholder) {
    return scl_fail_argument("x", "an argument of 'combine' cannot be reduced");
  }
  SCL_TRY(make_over(SCL_NODE_REDUCE, x, margin == SCL_BY_ROW ? x->nrow : 1,
                    margin == SCL_BY_COLUMN ? x->ncol : 1, SCL_GENERAL, out));
  (*out)->margin = (uint8_t)margin;
  return SCL_OK;
}

scl_status scl_expr_reduce(scl_reduction op, scl_mat *x, scl_margin margin, scl_mat **out) {
  scl_node *node = NULL;
  if ((unsigned)op >= SCL_REDUCE_COUNT) {
    return scl_fail_argument("op", "unknown reduction number %d", (int)op);
  }
  SCL_TRY(reduce_node(x, margin, &node));
  node->op = (uint8_t)op;
  return give(SCL_OK, x->ctx, node, out);
}

/* A combining expression has values of its own kind only: placeholders, numbers, operations. */
static scl_status check_combine(scl_node *node, uint64_t stamp) {
  if (node->seen == stamp) return SCL_OK;
  node->seen = stamp;
  switch (node->kind) {
  case SCL_NODE_PLACEHOLDER:
  case SCL_NODE_NUMBER:
    return SCL_OK;
  case SCL_NODE_APPLY:
    for (int k = 0; k < 3 && node->arg[k] != NULL; k++) {
      SCL_TRY(check_combine(node->arg[k], stamp));
    }
    return SCL_OK;
  default:
    return scl_fail_argument("combine", "'combine' can use only its two arguments and numbers");
  }
}

scl_status scl_expr_reduce_with(scl_mat *x, const scl_mat *combine, double identity,
                                scl_margin margin, scl_mat **out) {
  scl_node *node = NULL;
  if (combine->pending == NULL) {
    return scl_fail_argument("combine", "'combine' must use its arguments");
  }
  SCL_TRY(check_combine(combine->pending, scl_node_stamp()));
  SCL_TRY(reduce_node(x, margin, &node));
  node->op = SCL_REDUCE_COUNT;
  node->number = identity;
  node->arg[1] = scl_node_retain(combine->pending);
  return give(SCL_OK, x->ctx, node, out);
}

scl_status scl_expr_placeholder(scl_context *ctx, int which, scl_mat **out) {
  scl_node *node = NULL;
  if (which != 0 && which != 1)
    return scl_fail_argument("which", "a placeholder must have number 0 or 1");
  SCL_TRY(scl_context_check(ctx));
  SCL_TRY(new_node(SCL_NODE_PLACEHOLDER, 1, 1, SCL_GENERAL, &node));
  node->op = (uint8_t)which;
  node->placeholder = true;
  return give(SCL_OK, ctx, node, out);
}
