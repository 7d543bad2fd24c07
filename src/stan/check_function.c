/* The functions block. */
#include "stan/check.h"

#include <string.h>

static bool same_arguments(const scl_stan_node *a, const scl_stan_node *b) {
  if (a->count != b->count) return false;
  for (uint32_t k = 1; k < a->count; k++) {
    if (a->child[k]->type != b->child[k]->type) return false;
  }
  return true;
}

static bool same_data(const scl_stan_node *a, const scl_stan_node *b) {
  for (uint32_t k = 1; k < a->count; k++) {
    if ((a->child[k]->flags ^ b->child[k]->flags) & SCL_STAN_ONLY_DATA) return false;
  }
  return true;
}

/* SCL_E_STAN if the library has the function with these arguments. */
static scl_status check_library(scl_stan_checker *c, const scl_stan_node *node) {
  const scl_stan_type **types, *result = NULL;
  SCL_TRY(scl_stan_alloc(c->program, node->count * sizeof *types, &types));
  for (uint32_t k = 1; k < node->count; k++) types[k - 1] = node->child[k]->type;
  scl_stan_arguments arguments = {.type = types, .count = node->count - 1};
  if (scl_stan_higher(node->name) == NULL) {
    SCL_TRY(scl_stan_library_result(c->program, node->name, &arguments, NULL, &result));
    if (result == NULL) return SCL_OK;
  }
  return scl_stan_fail(c->program, node->position,
                       "Stan has a function '%.60s' of these arguments: choose another name",
                       node->name->text);
}

enum { MOST_OVERLOADS = 1000 };

/* The definition that a node declares or is: the same name and types of arguments. SCL_E_STAN if
 * there are too many of that name. */
static scl_status find_function(const scl_stan_checker *c, const scl_stan_node *node,
                                scl_stan_function **out) {
  unsigned count = 0;
  *out = node->name->functions;
  while (*out != NULL && !same_arguments((*out)->node, node)) {
    *out = (*out)->next;
    count++;
  }
  if (count < MOST_OVERLOADS) return SCL_OK;
  return scl_stan_fail(c->program, node->position, "more than %d functions have the name '%.60s'",
                       MOST_OVERLOADS, node->name->text);
}

/* Makes a function known. A definition takes the place of its declaration. */
static scl_status add_function(scl_stan_checker *c, const scl_stan_node *node, uint32_t number) {
  scl_stan_function *f;
  SCL_TRY(find_function(c, node, &f));
  const bool defined = node->child[0] != NULL;
  if (f != NULL) {
    if (f->node->type != node->type) {
      return scl_stan_fail(
          c->program, node->position,
          "'%.60s' takes the same arguments in line %u and gives another type there",
          node->name->text, scl_stan_line(c->program, f->node->position));
    }
    if (defined == (f->node->child[0] != NULL)) {
      return scl_stan_fail(c->program, node->position,
                           "'%.60s' is %s twice with these arguments, first in line %u",
                           node->name->text, defined ? "defined" : "declared",
                           scl_stan_line(c->program, f->node->position));
    }
    if (!defined) {
      return scl_stan_fail(c->program, node->position, "'%.60s' is declared after its definition",
                           node->name->text);
    }
    if (!same_data(f->node, node)) {
      return scl_stan_fail(c->program, node->position,
                           "'%.60s' is declared in line %u with 'data' at other arguments",
                           node->name->text, scl_stan_line(c->program, f->node->position));
    }
    f->node = node;
    f->number = number;
    return SCL_OK;
  }
  SCL_TRY(scl_stan_alloc(c->program, sizeof *f, &f));
  *f = (scl_stan_function){.next = node->name->functions, .node = node, .number = number};
  node->name->functions = f;
  return SCL_OK;
}

/* Whether a type has integers only. */
static bool is_integer(const scl_stan_type *type) {
  if (type->base != SCL_STAN_TUPLE) return type->base == SCL_STAN_INT;
  for (unsigned k = 0; k < type->parts; k++) {
    if (!is_integer(type->part[k])) return false;
  }
  return true;
}

static scl_status check_name(scl_stan_checker *c, const scl_stan_node *node) {
  const scl_stan_end end = scl_stan_end_of(node->name);
  const char *name = node->name->text;
  if (end == SCL_STAN_END_LUPDF || end == SCL_STAN_END_LUPMF) {
    return scl_stan_fail(c->program, node->position,
                         "'%.60s' cannot be defined: define the function "
                         "named %s, which is used for it",
                         name, end == SCL_STAN_END_LUPDF ? "_lpdf" : "_lpmf");
  }
  SCL_TRY(check_library(c, node));
  if (end < SCL_STAN_END_LPDF || end > SCL_STAN_END_LCCDF) return SCL_OK;
  if (node->type->base != SCL_STAN_REAL || node->type->depth > 0) {
    return scl_stan_fail(c->program, node->position,
                         "'%.60s' gives a density or probability: its "
                         "type is real",
                         name);
  }
  const bool mass = end == SCL_STAN_END_LPMF, density = end == SCL_STAN_END_LPDF;
  if (!mass && !density) return SCL_OK;
  const bool integer = node->count > 1 && is_integer(node->child[1]->type);
  if (node->count < 2 || integer != mass) {
    return scl_stan_fail(c->program, node->position,
                         mass ? "the first argument of '%.60s' has integers, as the name ends with "
                                "_lpmf"
                              : "the first argument of '%.60s' has real numbers, as the name ends "
                                "with _lpdf",
                         name);
  }
  return SCL_OK;
}

static bool is_true(const scl_stan_node *test) {
  return test->kind == SCL_STAN_NUMBER_NODE && test->value != 0;
}

/* Whether a statement of a loop's body has a 'break' that ends this loop. */
static bool breaks(const scl_stan_node *node) {
  for (; node->kind == SCL_STAN_IF_NODE; node = node->child[2]) {
    if (breaks(node->child[1])) return true;
    if (node->child[2] == NULL) return false;
  }
  if (node->kind == SCL_STAN_BREAK_NODE) return true;
  if (node->kind != SCL_STAN_BLOCK_NODE && node->kind != SCL_STAN_PROFILE_NODE) return false;
  for (uint32_t k = 0; k < node->count; k++) {
    if (breaks(node->child[k])) return true;
  }
  return false;
}

/* Whether every way through a statement ends with 'return', or with an error. */
static bool returns(const scl_stan_node *node) {
  for (; node->kind == SCL_STAN_IF_NODE; node = node->child[2]) {
    if (node->child[2] == NULL || !returns(node->child[1])) return false;
  }
  switch (node->kind) {
  case SCL_STAN_RETURN_NODE:
  case SCL_STAN_REJECT_NODE:
  case SCL_STAN_FATAL_NODE:
    return true;
  case SCL_STAN_BLOCK_NODE:
  case SCL_STAN_PROFILE_NODE:
    for (uint32_t k = 0; k < node->count; k++) {
      if (returns(node->child[k])) return true;
    }
    return false;
  case SCL_STAN_FOR_NODE:
    return returns(node->child[2]);
  case SCL_STAN_FOREACH_NODE:
    return returns(node->child[1]);
  case SCL_STAN_WHILE_NODE:
    return is_true(node->child[0]) && !breaks(node->child[1]);
  default:
    return false;
  }
}

static scl_status check_body(scl_stan_checker *c, scl_stan_node *node) {
  scl_stan_node *body = node->child[0];
  scl_stan_symbol *mark = c->scope;
  c->function = node;
  c->end = scl_stan_end_of(node->name);
  for (uint32_t k = 1; k < node->count; k++) {
    const scl_stan_node *argument = node->child[k];
    SCL_TRY(scl_stan_declare(c, argument->name, argument->type, SCL_STAN_ARGUMENT,
                             (argument->flags & SCL_STAN_ONLY_DATA) == 0, argument->position));
  }
  for (uint32_t k = 0; k < body->count; k++) SCL_TRY(scl_stan_check_statement(c, body->child[k]));
  scl_stan_leave(c, mark);
  c->function = NULL;
  c->end = SCL_STAN_PLAIN;
  if (node->type->base == SCL_STAN_VOID || returns(body)) return SCL_OK;
  return scl_stan_fail(c->program, node->position,
                       "'%.60s' can end without 'return': return a value on every way through it",
                       node->name->text);
}

scl_status scl_stan_check_functions(scl_stan_checker *c, scl_stan_node *list) {
  for (uint32_t k = 0; k < list->count; k++) {
    SCL_TRY(check_name(c, list->child[k]));
    SCL_TRY(add_function(c, list->child[k], k + 1));
  }
  for (uint32_t k = 0; k < list->count; k++) {
    scl_stan_node *node = list->child[k];
    scl_stan_function *f;
    SCL_TRY(find_function(c, node, &f));
    if (node->child[0] != NULL) {
      SCL_TRY(check_body(c, node));
    } else if (f->node->child[0] == NULL) {
      return scl_stan_fail(c->program, node->position,
                           "'%.60s' is declared here, and nowhere defined", node->name->text);
    }
  }
  return SCL_OK;
}
