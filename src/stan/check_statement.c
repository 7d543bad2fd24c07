#include "stan/check.h"

/* ---- log density ---------------------------------------------------------------------------- */

static scl_status check_increment(scl_stan_checker *c, scl_stan_node *node) {
  const bool target = node->kind == SCL_STAN_TARGET_NODE;
  const scl_stan_place block = target ? SCL_STAN_MODEL : SCL_STAN_TRANSFORMED_PARAMETERS;
  const scl_stan_end end = target ? SCL_STAN_END_LP : SCL_STAN_END_JACOBIAN;
  if (c->block != block && !(c->block == SCL_STAN_FUNCTIONS && c->end == end)) {
    return scl_stan_fail(c->program, node->position,
                         target ? "'target +=' stands in the model and in functions named _lp only"
                                : "'jacobian +=' stands in transformed parameters and in functions "
                                  "named _jacobian only");
  }
  scl_stan_node *value = node->child[0];
  SCL_TRY(scl_stan_check_value(c, value));
  const scl_stan_type *type = value->type;
  const bool real = type->base == SCL_STAN_INT || type->base == SCL_STAN_REAL ||
                    (type->base >= SCL_STAN_VECTOR && type->base <= SCL_STAN_MATRIX);
  return real ? SCL_OK : scl_stan_fail_type(c, value, "what is added", "real numbers");
}

/* ---- control flow --------------------------------------------------------------------------- */

static scl_status check_body(scl_stan_checker *c, scl_stan_node *body) {
  scl_stan_symbol *mark = c->scope;
  c->level++;
  SCL_TRY(scl_stan_check_statement(c, body));
  c->level--;
  scl_stan_leave(c, mark);
  return SCL_OK;
}

static scl_status check_condition(scl_stan_checker *c, scl_stan_node *test) {
  SCL_TRY(scl_stan_check_value(c, test));
  const bool number = test->type->depth == 0 && test->type->base <= SCL_STAN_REAL;
  return number ? SCL_OK : scl_stan_fail_type(c, test, "a condition", "int or real");
}

static scl_status check_for(scl_stan_checker *c, scl_stan_node *node) {
  scl_stan_symbol *mark = c->scope;
  const scl_stan_type *type;
  for (uint32_t k = 0; k < 2; k++) {
    SCL_TRY(scl_stan_check_value(c, node->child[k]));
    SCL_TRY(scl_stan_check_integer(c, node->child[k], "a bound of a loop"));
  }
  SCL_TRY(scl_stan_type_of(c->program, SCL_STAN_INT, 0, &type));
  SCL_TRY(scl_stan_declare(c, node->name, type, SCL_STAN_LOOP, false, node->position));
  c->loops++;
  SCL_TRY(check_body(c, node->child[2]));
  c->loops--;
  scl_stan_leave(c, mark);
  return SCL_OK;
}

/* The type of a container's elements, NULL if it has none. */
static scl_status element_type(scl_stan_checker *c, const scl_stan_type *type,
                               const scl_stan_type **out) {
  *out = NULL;
  if (type->depth > 0) return scl_stan_type_at(c->program, type, type->depth - 1u, out);
  if (type->base >= SCL_STAN_VECTOR && type->base <= SCL_STAN_MATRIX) {
    return scl_stan_type_of(c->program, SCL_STAN_REAL, 0, out);
  }
  if (type->base >= SCL_STAN_CVECTOR && type->base <= SCL_STAN_CMATRIX) {
    return scl_stan_type_of(c->program, SCL_STAN_COMPLEX, 0, out);
  }
  return SCL_OK;
}

static scl_status check_foreach(scl_stan_checker *c, scl_stan_node *node) {
  scl_stan_symbol *mark = c->scope;
  scl_stan_node *container = node->child[0];
  const scl_stan_type *type;
  SCL_TRY(scl_stan_check_value(c, container));
  SCL_TRY(element_type(c, container->type, &type));
  if (type == NULL) {
    return scl_stan_fail_type(c, container, "what a loop goes over",
                              "a range, array, vector or matrix");
  }
  const bool autodiff = (container->flags & SCL_STAN_AUTODIFF) != 0;
  SCL_TRY(scl_stan_declare(c, node->name, type, SCL_STAN_LOOP, autodiff, node->position));
  c->loops++;
  SCL_TRY(check_body(c, node->child[1]));
  c->loops--;
  scl_stan_leave(c, mark);
  return SCL_OK;
}

static scl_status check_while(scl_stan_checker *c, scl_stan_node *node) {
  SCL_TRY(check_condition(c, node->child[0]));
  c->loops++;
  SCL_TRY(check_body(c, node->child[1]));
  c->loops--;
  return SCL_OK;
}

static scl_status check_if(scl_stan_checker *c, scl_stan_node *node) {
  for (;;) {
    SCL_TRY(check_condition(c, node->child[0]));
    SCL_TRY(check_body(c, node->child[1]));
    scl_stan_node *next = scl_stan_chained(node);
    if (next == NULL) break;
    node = next;
  }
  return node->child[2] == NULL ? SCL_OK : check_body(c, node->child[2]);
}

static scl_status check_block(scl_stan_checker *c, scl_stan_node *node) {
  scl_stan_symbol *mark = c->scope;
  c->level++;
  for (uint32_t k = 0; k < node->count; k++) SCL_TRY(scl_stan_check_statement(c, node->child[k]));
  c->level--;
  scl_stan_leave(c, mark);
  return SCL_OK;
}

static scl_status check_leave_loop(scl_stan_checker *c, scl_stan_node *node) {
  if (c->loops > 0) return SCL_OK;
  return scl_stan_fail(c->program, node->position, "'%s' stands outside of a loop",
                       node->kind == SCL_STAN_BREAK_NODE ? "break" : "continue");
}

/* ---- others --------------------------------------------------------------------------------- */

static scl_status check_return(scl_stan_checker *c, scl_stan_node *node) {
  scl_stan_node *value = node->child[0];
  if (c->function == NULL) {
    return scl_stan_fail(c->program, node->position, "'return' stands in functions only");
  }
  const scl_stan_type *wanted = c->function->type;
  char text[120];
  if (value == NULL) {
    if (wanted->base == SCL_STAN_VOID) return SCL_OK;
    return scl_stan_fail(c->program, node->position, "'%.60s' gives %s: return a value",
                         c->function->name->text, scl_stan_type_text(wanted, text, sizeof text));
  }
  SCL_TRY(scl_stan_check_value(c, value));
  if (wanted->base == SCL_STAN_VOID) {
    return scl_stan_fail(c->program, value->position, "'%.60s' is void: it returns no value",
                         c->function->name->text);
  }
  if (scl_stan_promotion(value->type, wanted) >= 0) return SCL_OK;
  return scl_stan_fail_type(c, value, "what is returned",
                            scl_stan_type_text(wanted, text, sizeof text));
}

static scl_status check_message(scl_stan_checker *c, scl_stan_node *node) {
  for (uint32_t k = 0; k < node->count; k++) {
    scl_stan_node *argument = node->child[k];
    if (argument->kind == SCL_STAN_STRING_NODE)
      SCL_TRY(scl_stan_check_expression(c, argument));
    else
      SCL_TRY(scl_stan_check_value(c, argument));
  }
  return SCL_OK;
}

static scl_status check_call_statement(scl_stan_checker *c, scl_stan_node *node) {
  const scl_stan_node *call = node->child[0];
  SCL_TRY(scl_stan_check_expression(c, node->child[0]));
  if (call->type->base == SCL_STAN_VOID) return SCL_OK;
  return scl_stan_fail(c->program, call->position,
                       "the value of '%.60s' is not used: assign it, or add it to target",
                       call->name->text);
}

static scl_status (*const checks[SCL_STAN_KINDS])(scl_stan_checker *, scl_stan_node *) = {
    [SCL_STAN_DECLARATION_NODE] = scl_stan_check_declaration,
    [SCL_STAN_ASSIGN_NODE] = scl_stan_check_assignment,
    [SCL_STAN_TARGET_NODE] = check_increment,
    [SCL_STAN_JACOBIAN_NODE] = check_increment,
    [SCL_STAN_SAMPLE_NODE] = scl_stan_check_sample,
    [SCL_STAN_FOR_NODE] = check_for,
    [SCL_STAN_FOREACH_NODE] = check_foreach,
    [SCL_STAN_WHILE_NODE] = check_while,
    [SCL_STAN_IF_NODE] = check_if,
    [SCL_STAN_BLOCK_NODE] = check_block,
    [SCL_STAN_PROFILE_NODE] = check_block,
    [SCL_STAN_BREAK_NODE] = check_leave_loop,
    [SCL_STAN_CONTINUE_NODE] = check_leave_loop,
    [SCL_STAN_RETURN_NODE] = check_return,
    [SCL_STAN_STATEMENT_NODE] = check_call_statement,
    [SCL_STAN_PRINT_NODE] = check_message,
    [SCL_STAN_REJECT_NODE] = check_message,
    [SCL_STAN_FATAL_NODE] = check_message,
};

scl_status scl_stan_check_statement(scl_stan_checker *c, scl_stan_node *node) {
  const bool input = c->block == SCL_STAN_DATA || c->block == SCL_STAN_PARAMETERS;
  if (input && node->kind != SCL_STAN_DECLARATION_NODE) {
    return scl_stan_fail(c->program, node->position, "the block %s has declarations only",
                         scl_stan_place_names[c->block]);
  }
  return checks[node->kind](c, node);
}
