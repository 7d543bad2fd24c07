#include "stan/check.h"

#include <stdio.h>

scl_status scl_stan_declare(scl_stan_checker *c, scl_stan_name *name, const scl_stan_type *type,
                            scl_stan_place place, bool autodiff, uint32_t position) {
  if (name->symbol != NULL) {
    return scl_stan_fail(c->program, position, "the name '%.60s' is in use: line %u declares it",
                         name->text, scl_stan_line(c->program, name->symbol->position));
  }
  const scl_stan_end end = scl_stan_end_of(name);
  if (end == SCL_STAN_END_LUPDF || end == SCL_STAN_END_LUPMF) {
    return scl_stan_fail(c->program, position, "the name of a variable does not end with %s",
                         scl_stan_ends[end]);
  }
  scl_stan_symbol *symbol;
  SCL_TRY(scl_stan_alloc(c->program, sizeof *symbol, &symbol));
  *symbol = (scl_stan_symbol){c->scope, name, type, place, autodiff, position};
  c->scope = name->symbol = symbol;
  return SCL_OK;
}

void scl_stan_leave(scl_stan_checker *c, scl_stan_symbol *mark) {
  for (; c->scope != mark; c->scope = c->scope->before) c->scope->name->symbol = NULL;
}

bool scl_stan_differentiates(const scl_stan_checker *c) {
  return c->block == SCL_STAN_FUNCTIONS || c->block == SCL_STAN_PARAMETERS ||
         c->block == SCL_STAN_TRANSFORMED_PARAMETERS || c->block == SCL_STAN_MODEL;
}

/* The block after this one that declares the name, or SCL_STAN_BLOCKS. */
static scl_stan_place declared_later(const scl_stan_checker *c, const scl_stan_name *name) {
  for (int k = c->block; k < SCL_STAN_BLOCKS; k++) {
    const scl_stan_node *list = c->program->block[k];
    for (uint32_t i = 0; list != NULL && k != SCL_STAN_FUNCTIONS && i < list->count; i++) {
      const scl_stan_node *node = list->child[i];
      if (node->kind == SCL_STAN_DECLARATION_NODE && node->name == name) return (scl_stan_place)k;
    }
  }
  return SCL_STAN_BLOCKS;
}

scl_status scl_stan_fail_unknown(const scl_stan_checker *c, const scl_stan_node *variable) {
  const scl_stan_name *name = variable->name;
  const scl_stan_place later = declared_later(c, name);
  const uint32_t position = variable->position;
  if (later == c->block) {
    return scl_stan_fail(c->program, position, "'%.60s' is used before its declaration",
                         name->text);
  }
  if (later != SCL_STAN_BLOCKS && c->block == SCL_STAN_FUNCTIONS) {
    return scl_stan_fail(c->program, position,
                         "'%.60s' is a variable of the program: a function sees its arguments "
                         "only, so hand it over as one",
                         name->text);
  }
  if (later != SCL_STAN_BLOCKS) {
    return scl_stan_fail(c->program, position,
                         "'%.60s' is not known here: the block %s declares it later", name->text,
                         scl_stan_place_names[later]);
  }
  if (name->functions != NULL || name->library != NULL) {
    return scl_stan_fail(c->program, position,
                         "'%.60s' is a function, not a variable: call it "
                         "with '( )'",
                         name->text);
  }
  char near[200];
  scl_stan_nearest(c->program, name, SCL_STAN_NEAR_VARIABLE, near, sizeof near);
  return scl_stan_fail(c->program, position, "the variable '%.60s' is not declared%s", name->text,
                       near);
}

scl_status scl_stan_fail_type(const scl_stan_checker *c, const scl_stan_node *node,
                              const char *what, const char *wanted) {
  char text[120];
  return scl_stan_fail(c->program, node->position, "%s is %s, not %s", what,
                       scl_stan_type_text(node->type, text, sizeof text), wanted);
}

scl_status scl_stan_check_integer(const scl_stan_checker *c, const scl_stan_node *node,
                                  const char *what) {
  return scl_stan_is_int(node->type) ? SCL_OK : scl_stan_fail_type(c, node, what, "int");
}
