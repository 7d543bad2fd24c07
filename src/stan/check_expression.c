#include "stan/check.h"

static scl_status check_variable(scl_stan_checker *c, scl_stan_node *node) {
  const scl_stan_symbol *symbol = node->name->symbol;
  if (symbol == NULL) return scl_stan_fail_unknown(c, node);
  node->type = symbol->type;
  node->place = (uint8_t)symbol->place;
  const bool integer = symbol->type->base == SCL_STAN_INT;
  if (symbol->autodiff && !integer && scl_stan_differentiates(c)) node->flags |= SCL_STAN_AUTODIFF;
  return SCL_OK;
}

/* A call's argument that is the name of a function of the program. */
static scl_status check_argument(scl_stan_checker *c, scl_stan_node *node) {
  if (node->kind == SCL_STAN_VARIABLE_NODE && node->name->symbol == NULL) {
    scl_stan_name *plain;
    SCL_TRY(scl_stan_plain_name(c, node->name, &plain));
    if (plain->functions != NULL) {
      node->place = SCL_STAN_FUNCTION_NAME;
      return scl_stan_type_of(c->program, SCL_STAN_FUNCTION, 0, &node->type);
    }
  }
  return scl_stan_check_expression(c, node);
}

static scl_status check_conditional(scl_stan_checker *c, scl_stan_node *node) {
  const scl_stan_type *yes = node->child[1]->type, *no = node->child[2]->type;
  if (!scl_stan_is_int(node->child[0]->type)) {
    return scl_stan_fail_type(c, node->child[0], "the condition of '?'", "int");
  }
  SCL_TRY(scl_stan_common(c->program, yes, no, &node->type));
  if (node->type != NULL) return SCL_OK;
  char left[100], right[100];
  return scl_stan_fail(
      c->program, node->position, "the choices of '?' have different types: %s and %s",
      scl_stan_type_text(yes, left, sizeof left), scl_stan_type_text(no, right, sizeof right));
}

/* The type that all elements of {...} or [...] can be promoted to. */
static scl_status common_type(scl_stan_checker *c, const scl_stan_node *node,
                              const scl_stan_type **out) {
  const scl_stan_type *common = node->child[0]->type;
  for (uint32_t k = 1; k < node->count; k++) {
    const scl_stan_type *type = node->child[k]->type;
    const scl_stan_type *next;
    SCL_TRY(scl_stan_common(c->program, common, type, &next));
    if (next == NULL) {
      char left[100], right[100];
      return scl_stan_fail(c->program, node->child[k]->position,
                           "element %u is %s, those before it are %s", k + 1,
                           scl_stan_type_text(type, left, sizeof left),
                           scl_stan_type_text(common, right, sizeof right));
    }
    common = next;
  }
  *out = common;
  return SCL_OK;
}

static scl_status check_array(scl_stan_checker *c, scl_stan_node *node) {
  if (node->count == 0) {
    return scl_stan_fail(c->program, node->position,
                         "'{ }' has no elements: declare an array of size 0 in its place");
  }
  const scl_stan_type *type;
  SCL_TRY(common_type(c, node, &type));
  if (type->depth == SCL_STAN_DIMENSIONS) {
    return scl_stan_fail(c->program, node->position, "an array has at most %d dimensions",
                         SCL_STAN_DIMENSIONS);
  }
  return scl_stan_type_at(c->program, type, type->depth + 1u, &node->type);
}

/* [...]: a row vector of numbers, or a matrix of row vectors. */
static scl_status check_row(scl_stan_checker *c, scl_stan_node *node) {
  const scl_stan_type *type = NULL;
  scl_stan_base base = SCL_STAN_VOID;
  if (node->count == 0) return scl_stan_type_of(c->program, SCL_STAN_ROW, 0, &node->type);
  SCL_TRY(common_type(c, node, &type));
  if (type->depth == 0) {
    switch (type->base) {
    case SCL_STAN_INT:
    case SCL_STAN_REAL:
      base = SCL_STAN_ROW;
      break;
    case SCL_STAN_COMPLEX:
      base = SCL_STAN_CROW;
      break;
    case SCL_STAN_ROW:
      base = SCL_STAN_MATRIX;
      break;
    case SCL_STAN_CROW:
      base = SCL_STAN_CMATRIX;
      break;
    default:
      break;
    }
  }
  if (base == SCL_STAN_VOID) {
    return scl_stan_fail_type(c, node->child[0], "an element of '[ ]'",
                              "a number (of a row vector) or row_vector (of a matrix)");
  }
  return scl_stan_type_of(c->program, base, 0, &node->type);
}

static scl_status check_tuple(scl_stan_checker *c, scl_stan_node *node) {
  const scl_stan_type **parts;
  if (node->count > UINT16_MAX) {
    return scl_stan_fail(c->program, node->position, "this tuple has too many parts");
  }
  SCL_TRY(scl_stan_alloc(c->program, node->count * sizeof *parts, &parts));
  for (uint32_t k = 0; k < node->count; k++) parts[k] = node->child[k]->type;
  return scl_stan_type_with(c->program, SCL_STAN_TUPLE, 0, parts, node->count, &node->type);
}

/* The children of an expression from `first` to before `end`. */
static scl_status check_children(scl_stan_checker *c, scl_stan_node *node, uint32_t first,
                                 uint32_t end) {
  for (uint32_t k = first; k < end; k++) {
    scl_stan_node *child = node->child[k];
    if (child == NULL) continue;
    if (node->kind == SCL_STAN_CALL_NODE)
      SCL_TRY(check_argument(c, child));
    else if (node->kind == SCL_STAN_INDEX_NODE && k > 0)
      SCL_TRY(check_children(c, child, 0, child->count));
    else
      SCL_TRY(scl_stan_check_value(c, child));
    node->flags |= child->flags & SCL_STAN_AUTODIFF;
  }
  return SCL_OK;
}

static scl_status check_string(scl_stan_checker *c, scl_stan_node *node) {
  return scl_stan_type_of(c->program, SCL_STAN_STRING, 0, &node->type);
}

/* The type of an expression, from those of its children; numbers have theirs. */
static scl_status (*const checks[SCL_STAN_KINDS])(scl_stan_checker *, scl_stan_node *) = {
    [SCL_STAN_VARIABLE_NODE] = check_variable,
    [SCL_STAN_STRING_NODE] = check_string,
    [SCL_STAN_CALL_NODE] = scl_stan_check_call,
    [SCL_STAN_OPERATION_NODE] = scl_stan_check_operation,
    [SCL_STAN_CONDITIONAL_NODE] = check_conditional,
    [SCL_STAN_INDEX_NODE] = scl_stan_check_index,
    [SCL_STAN_TUPLE_GET_NODE] = scl_stan_check_part,
    [SCL_STAN_ARRAY_NODE] = check_array,
    [SCL_STAN_ROW_NODE] = check_row,
    [SCL_STAN_TUPLE_NODE] = check_tuple,
};

/* Down along a chain to its end, which is on the program's stack above the others, and back. */
scl_status scl_stan_check_expression(scl_stan_checker *c, scl_stan_node *node) {
  scl_stan_program *program = c->program;
  const uint32_t mark = program->stack_count;
  scl_stan_node *next;
  for (; (next = scl_stan_chained(node)) != NULL; node = next) {
    SCL_TRY(scl_stan_push(program, node));
    if (node->kind == SCL_STAN_CONDITIONAL_NODE) SCL_TRY(check_children(c, node, 0, 2));
  }
  SCL_TRY(check_children(c, node, 0, node->count));
  if (checks[node->kind] != NULL) SCL_TRY(checks[node->kind](c, node));
  while (program->stack_count > mark) {
    const scl_stan_node *last = node;
    node = program->stack[--program->stack_count];
    node->flags |= last->flags & SCL_STAN_AUTODIFF;
    if (node->kind == SCL_STAN_OPERATION_NODE) SCL_TRY(check_children(c, node, 1, 2));
    SCL_TRY(checks[node->kind](c, node));
  }
  return SCL_OK;
}

scl_status scl_stan_check_value(scl_stan_checker *c, scl_stan_node *node) {
  SCL_TRY(scl_stan_check_expression(c, node));
  switch (node->type->base) {
  case SCL_STAN_VOID:
    return scl_stan_fail(c->program, node->position, "'%.60s' gives no value: it is a statement",
                         node->name->text);
  case SCL_STAN_STRING:
    return scl_stan_fail(c->program, node->position,
                         "text can only be printed, by print(), reject() and fatal_error()");
  default:
    return SCL_OK;
  }
}
