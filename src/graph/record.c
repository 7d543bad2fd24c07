/* Recording: calls of operations become pending matrices. */
#include "graph/graph.h"

/* ---- operands ------------------------------------------------------------------------------- */

/* The context of the operands, which must be the same; the given one if none is a matrix. */
static scl_status find_context(int count, const scl_term *operand, scl_context **ctx) {
  const scl_mat *first = NULL;
  for (int k = 0; k < count; k++) {
    const scl_mat *x = operand[k].matrix;
    if (x == NULL) continue;
    if (first == NULL) first = x;
    SCL_TRY(scl_mat_same_context(first, x));
  }
  if (first != NULL) {
    *ctx = first->ctx;
    return SCL_OK;
  }
  if (*ctx == NULL) return scl_fail_argument("e1", "at least one operand must be a matrix");
  return scl_context_check(*ctx);
}

static scl_status describe(unsigned operation, int count, const scl_term *operand, int attributes,
                           const double *attribute, scl_call *out) {
  *out = (scl_call){.operation = operation, .count = count};
  for (int k = 0; k < attributes; k++) out->attribute[k] = attribute[k];
  for (int k = 0; k < count; k++) {
    const scl_mat *x = operand[k].matrix;
    out->operand[k].kind = x == NULL ? SCL_A_NUMBER : SCL_A_MATRIX;
    if (x != NULL) {
      out->operand[k].shape = scl_shape_of(x);
    } else if (scl_operations[operation].kind == SCL_VALUE_APPLY) {
      out->operand[k].number = operand[k].number;
    } else {
      const char *name = scl_operations[operation].operand[k];
      return scl_fail_argument(name, "'%s' must be a matrix", name);
    }
  }
  out->same = count > 1 && operand[0].matrix != NULL && operand[0].matrix == operand[1].matrix;
  return SCL_OK;
}

/* A combining expression consists of placeholders, numbers and operations only. */
static scl_status check_combine(scl_node *node, uint64_t stamp) {
  if (node->seen == stamp) return SCL_OK;
  node->seen = stamp;
  switch (node->kind) {
  case SCL_VALUE_PLACEHOLDER:
  case SCL_VALUE_NUMBER:
    return SCL_OK;
  case SCL_VALUE_APPLY:
    for (int k = 0; k < 3 && node->arg[k] != NULL; k++) {
      SCL_TRY(check_combine(node->arg[k], stamp));
    }
    return SCL_OK;
  default:
    return scl_fail_argument("combine", "'combine' can use only its two arguments and numbers");
  }
}

/* Checks that a rule, which knows only shapes, cannot make. */
static scl_status check_reduction(const scl_node *x, scl_node *combine) {
  if (x->placeholder) return scl_fail_argument("x", "an argument of 'combine' cannot be reduced");
  if (combine == NULL) return SCL_OK;
  if (combine->kind == SCL_VALUE_DATA) {
    return scl_fail_argument("combine", "'combine' must use its arguments");
  }
  return check_combine(combine, scl_node_stamp());
}

/* Gives the node operand k, whose reference it takes over, on failure too. A graph that would be
 * too deep is computed below this operand. */
static scl_status take_operand(scl_context *ctx, scl_node *node, int k, scl_node *arg) {
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

/* An operand of an elementwise operation with n columns: a single column is repeated. */
static scl_status repeat_column(scl_context *ctx, const scl_node *node, scl_node *x,
                                scl_node **out) {
  const scl_shape shape = {node->nrow, node->ncol, SCL_GENERAL};
  scl_node *wide = NULL;
  scl_status status = scl_node_new(SCL_VALUE_BROADCAST, shape, &wide);
  if (status != SCL_OK) {
    scl_node_release(x);
    return status;
  }
  wide->operation = SCL_OPERATION_BROADCAST;
  wide->attribute[0] = (double)shape.nrow;
  wide->attribute[1] = (double)shape.ncol;
  status = take_operand(ctx, wide, 0, x);
  if (status != SCL_OK) {
    scl_node_release(wide);
    return status;
  }
  *out = wide;
  return SCL_OK;
}

static scl_status operand_node(scl_context *ctx, const scl_node *node, const scl_term *operand,
                               scl_node **out) {
  if (operand->matrix == NULL) {
    SCL_TRY(scl_node_new(SCL_VALUE_NUMBER, (scl_shape){1, 1, SCL_GENERAL}, out));
    (*out)->attribute[0] = operand->number;
    return SCL_OK;
  }
  scl_node *x = NULL;
  SCL_TRY(scl_node_of(operand->matrix, &x));
  if (node->kind == SCL_VALUE_APPLY && x->ncol != node->ncol) {
    return repeat_column(ctx, node, x, out);
  }
  *out = x;
  return SCL_OK;
}

/* ---- recording ------------------------------------------------------------------------------ */

/* Gives the node its operands. A combining expression is not computed with the node, and does not
 * make it deeper. */
static scl_status take_operands(scl_context *ctx, scl_node *node, int count,
                                const scl_term *operand) {
  for (int k = 0; k < count; k++) {
    scl_node *arg = NULL;
    SCL_TRY(operand_node(ctx, node, &operand[k], &arg));
    if (node->kind == SCL_VALUE_REDUCE && k == 1) {
      node->arg[k] = arg;
    } else {
      SCL_TRY(take_operand(ctx, node, k, arg));
    }
  }
  return node->kind == SCL_VALUE_REDUCE ? check_reduction(node->arg[0], node->arg[1]) : SCL_OK;
}

static uint8_t op_of(unsigned operation, const scl_call *call) {
  if (operation < SCL_FIRST_REDUCTION) return (uint8_t)operation;
  if (operation <= SCL_LAST_REDUCTION) return (uint8_t)(operation - SCL_FIRST_REDUCTION);
  if (operation == SCL_OPERATION_PLACEHOLDER) return (uint8_t)call->attribute[0];
  return operation == SCL_OPERATION_REDUCE_WITH ? SCL_REDUCE_COUNT : 0;
}

scl_status scl_record(scl_context *ctx, unsigned operation, int count, const scl_term *operand,
                      int attributes, const double *attribute, scl_mat **out) {
  scl_call call;
  scl_shape shape;
  scl_node *node = NULL;
  SCL_TRY(scl_operation_check(operation, count, attributes, attribute));
  SCL_TRY(find_context(count, operand, &ctx));
  SCL_TRY(describe(operation, count, operand, attributes, attribute, &call));
  SCL_TRY(scl_operations[operation].rule(&call, &shape));
  scl_value_kind kind = scl_operations[operation].kind;
  if (kind == SCL_VALUE_REDUCE_WITH) kind = SCL_VALUE_REDUCE;
  SCL_TRY(scl_node_new(kind, shape, &node));
  node->operation = (uint16_t)operation;
  node->op = op_of(operation, &call);
  node->placeholder = operation == SCL_OPERATION_PLACEHOLDER;
  for (int k = 0; k < attributes; k++) node->attribute[k] = attribute[k];
  scl_status status = take_operands(ctx, node, count, operand);
  if (status == SCL_OK) {
    status = scl_mat_create_pending(ctx, shape.nrow, shape.ncol, shape.view, node, scl_node_release,
                                    out);
  }
  if (status != SCL_OK) scl_node_release(node);
  return status;
}

scl_status scl_compute(scl_context *ctx, unsigned operation, int count, const scl_term *operand,
                       int attributes, const double *attribute, scl_mat **out) {
  scl_mat *result = NULL;
  SCL_TRY(scl_record(ctx, operation, count, operand, attributes, attribute, &result));
  scl_status status = scl_mat_force(result);
  if (status != SCL_OK) {
    scl_mat_release(result);
    return status;
  }
  *out = result;
  return SCL_OK;
}

/* ---- by name -------------------------------------------------------------------------------- */

scl_status scl_expr_apply(scl_op op, int count, const scl_term *terms, scl_mat **out) {
  if ((unsigned)op >= SCL_OP_COUNT) {
    return scl_fail_argument("op", "unknown elementwise operation number %d", (int)op);
  }
  return scl_record(NULL, op, count, terms, 0, NULL, out);
}

scl_status scl_expr_reduce(scl_reduction op, scl_mat *x, scl_margin margin, scl_mat **out) {
  if ((unsigned)op >= SCL_REDUCE_COUNT) {
    return scl_fail_argument("op", "unknown reduction number %d", (int)op);
  }
  return scl_record(NULL, SCL_FIRST_REDUCTION + op, 1, &(scl_term){x, 0}, 1, &(double){margin},
                    out);
}
