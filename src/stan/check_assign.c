/* Assignments. */
#include "stan/check.h"

/* SCL_E_STAN if the variable cannot be assigned to here. */
static scl_status check_assignable(scl_stan_checker *c, const scl_stan_node *variable) {
  const char *why = NULL;
  switch (variable->place) {
  case SCL_STAN_DATA:
    why = "data keep their values";
    break;
  case SCL_STAN_PARAMETERS:
    why = "parameters keep their values";
    break;
  case SCL_STAN_LOOP:
    why = "the variable of a loop keeps its value";
    break;
  case SCL_STAN_ARGUMENT:
    why = "the argument of a function keeps its value: copy it first";
    break;
  case SCL_STAN_TRANSFORMED_DATA:
  case SCL_STAN_TRANSFORMED_PARAMETERS:
    if (variable->place != c->block)
      why = "it can only be assigned to in the block that declares it";
    break;
  default:
    break;
  }
  if (why == NULL) return SCL_OK;
  return scl_stan_fail(c->program, variable->position, "'%.60s' cannot be assigned to: %s",
                       variable->name->text, why);
}

/* The variable of a left side, which may be a part of it; NULL: there is none. */
static const scl_stan_node *root_of(const scl_stan_node *node) {
  while (node->kind == SCL_STAN_INDEX_NODE || node->kind == SCL_STAN_TUPLE_GET_NODE) {
    node = node->child[0];
  }
  return node->kind == SCL_STAN_VARIABLE_NODE ? node : NULL;
}

static bool keeps_dimension(const scl_stan_node *node) {
  for (uint32_t k = 1; k < node->count; k++) {
    if (node->child[k]->kind != SCL_STAN_SINGLE_NODE) return true;
  }
  return false;
}

/* Whether an expression uses a variable. */
static bool uses(const scl_stan_node *node, const scl_stan_name *name) {
  for (; node != NULL; node = scl_stan_chained(node)) {
    if (node->kind == SCL_STAN_VARIABLE_NODE) return node->name == name;
    const scl_stan_node *chained = scl_stan_chained(node);
    for (uint32_t k = 0; k < node->count; k++) {
      if (node->child[k] != chained && uses(node->child[k], name)) return true;
    }
  }
  return false;
}

/* Whether the indices of a left side use a variable. */
static bool indices_use(const scl_stan_node *left, const scl_stan_name *name) {
  for (; left->kind != SCL_STAN_VARIABLE_NODE; left = left->child[0]) {
    if (left->kind != SCL_STAN_INDEX_NODE) continue;
    for (uint32_t k = 1; k < left->count; k++) {
      if (uses(left->child[k], name)) return true;
    }
  }
  return false;
}

/* Up to `most` parts of tuples, from the variable to the first index: "x.1.2[3]" has 1 and 2. The
 * number of them; all: there are no indices. */
static unsigned path_of(const scl_stan_node *left, unsigned *path, unsigned most) {
  if (left->kind == SCL_STAN_VARIABLE_NODE) return 0;
  const unsigned before = path_of(left->child[0], path, most);
  if (before == most || left->kind == SCL_STAN_INDEX_NODE) return before;
  path[before] = (unsigned)left->child[1]->value;
  return before + 1;
}

/* Whether two left sides may be the same memory. */
static bool overlap(const scl_stan_node *a, const scl_stan_node *b) {
  unsigned first[16], second[16];
  if (root_of(a)->name != root_of(b)->name) return false;
  const unsigned m = path_of(a, first, 16), n = path_of(b, second, 16);
  for (unsigned k = 0; k < m && k < n; k++) {
    if (first[k] != second[k]) return false;
  }
  return true;
}

enum { MOST_LEFT = 64 };

/* The variables, and parts of them, that a left side assigns to. */
typedef struct {
  const scl_stan_node *node[MOST_LEFT];
  unsigned count;
} sides;

static scl_status collect(scl_stan_checker *c, const scl_stan_node *left, sides *s) {
  if (left->kind == SCL_STAN_TUPLE_NODE) {
    for (uint32_t k = 0; k < left->count; k++) SCL_TRY(collect(c, left->child[k], s));
    return SCL_OK;
  }
  const scl_stan_node *root = root_of(left);
  if (root == NULL) {
    return scl_stan_fail(c->program, left->position,
                         "the left side of an assignment is a variable or a part of one");
  }
  if (s->count == MOST_LEFT) {
    return scl_stan_fail(c->program, left->position, "this assigns to more than %d variables",
                         MOST_LEFT);
  }
  s->node[s->count++] = left;
  for (const scl_stan_node *node = left; node != root; node = node->child[0]) {
    const scl_stan_node *inner = node->child[0];
    if (node->kind == SCL_STAN_INDEX_NODE && inner->kind == SCL_STAN_INDEX_NODE &&
        keeps_dimension(inner)) {
      return scl_stan_fail(c->program, node->position,
                           "an element of several elements cannot be assigned to: put the indices "
                           "in one '[ ]'");
    }
  }
  return check_assignable(c, root);
}

/* SCL_E_STAN unless each side can be assigned to, whatever comes first. */
static scl_status check_left(scl_stan_checker *c, const scl_stan_node *left) {
  sides s = {.count = 0};
  SCL_TRY(collect(c, left, &s));
  for (unsigned i = 0; i < s.count; i++) {
    for (unsigned j = 0; j < s.count; j++) {
      if (j < i && overlap(s.node[j], s.node[i])) {
        return scl_stan_fail(c->program, s.node[i]->position,
                             "'%.60s' is assigned to twice in one statement",
                             root_of(s.node[i])->name->text);
      }
      if (indices_use(s.node[i], root_of(s.node[j])->name)) {
        return scl_stan_fail(c->program, s.node[i]->position,
                             "an index uses '%.60s', which the statement assigns to: copy it first",
                             root_of(s.node[j])->name->text);
      }
    }
  }
  return SCL_OK;
}

scl_status scl_stan_check_assignment(scl_stan_checker *c, scl_stan_node *node) {
  scl_stan_node *left = node->child[0], *right = node->child[1];
  SCL_TRY(scl_stan_check_value(c, left));
  SCL_TRY(check_left(c, left));
  SCL_TRY(scl_stan_check_value(c, right));
  const scl_stan_type *type = right->type;
  char wanted[120], given[120];
  const bool elements =
      node->op == SCL_STAN_OP_ASSIGN_ELT_MULTIPLY || node->op == SCL_STAN_OP_ASSIGN_ELT_DIVIDE;
  if (elements && scl_stan_is_scalar(left->type)) {
    type = NULL;
  } else if (node->op != SCL_STAN_OP_ASSIGN) {
    SCL_TRY(scl_stan_operate(c, node->op, left->type, right->type, &type));
  }
  if (type != NULL && scl_stan_promotion(type, left->type) >= 0) return SCL_OK;
  scl_stan_type_text(left->type, wanted, sizeof wanted);
  scl_stan_type_text(right->type, given, sizeof given);
  if (node->op != SCL_STAN_OP_ASSIGN) {
    return scl_stan_fail(c->program, node->position, "'%s' takes no %s with %s",
                         scl_stan_operator_names[node->op], wanted, given);
  }
  return scl_stan_fail(c->program, right->position, "%s cannot be assigned to %s", given, wanted);
}
