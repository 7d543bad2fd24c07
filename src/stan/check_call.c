#include "stan/check.h"

#include <stdio.h>

/* Requires '|' after the first argument of densities and distribution functions, and allows it
 * nowhere else. */
static scl_status check_bar(scl_stan_checker *c, const scl_stan_node *node, scl_stan_end end) {
  const bool density = end >= SCL_STAN_END_LPDF && end <= SCL_STAN_END_LCCDF;
  const bool bar = (node->flags & SCL_STAN_BAR) != 0;
  if (bar && !density) {
    return scl_stan_fail(c->program, node->position,
                         "'|' separates arguments of densities and "
                         "distribution functions only: write ',' in '%.60s'",
                         node->name->text);
  }
  if (!bar && density && end != SCL_STAN_END_CDF && node->count > 1) {
    return scl_stan_fail(c->program, node->position,
                         "'%.60s' has '|', not ',', after its first argument", node->name->text);
  }
  return SCL_OK;
}

/* ---- the program's functions ---------------------------------------------------------------- */

/* SCL_E_STAN if an argument that must be data is a value that is differentiated. */
static scl_status check_data_only(scl_stan_checker *c, const scl_stan_node *node, unsigned k) {
  if ((node->child[k]->flags & SCL_STAN_AUTODIFF) == 0) return SCL_OK;
  return scl_stan_fail(c->program, node->child[k]->position,
                       "argument %u of '%.60s' takes data only: this depends on parameters, as do "
                       "all local variables here",
                       k + 1, node->name->text);
}

static scl_status use_function(scl_stan_checker *c, scl_stan_node *node,
                               const scl_stan_function *f) {
  for (unsigned k = 0; k < node->count; k++) {
    if (f->node->child[k + 1]->flags & SCL_STAN_ONLY_DATA) SCL_TRY(check_data_only(c, node, k));
  }
  node->type = f->node->type;
  node->user = f->number;
  return SCL_OK;
}

/* ---- calls that do not fit ------------------------------------------------------------------ */

static void write_types(char *text, size_t size, const scl_stan_type *const *types,
                        unsigned count) {
  size_t used = 0;
  text[0] = '\0';
  for (unsigned k = 0; k < count && used < size; k++) {
    char type[100];
    used += (size_t)snprintf(text + used, size - used, "%s%s", k == 0 ? "" : ", ",
                             scl_stan_type_text(types[k], type, sizeof type));
  }
}

static scl_status fail_call(scl_stan_checker *c, const scl_stan_node *node,
                            const scl_stan_name *plain, const scl_stan_arguments *arguments) {
  char text[220];
  const scl_stan_function *f = plain->functions;
  if (f == NULL && !scl_stan_in_library(c->program, node->name)) {
    if (node->name->symbol != NULL) {
      return scl_stan_fail(c->program, node->position, "'%.60s' is a variable, not a function",
                           node->name->text);
    }
    scl_stan_nearest(c->program, node->name, SCL_STAN_NEAR_FUNCTION, text, sizeof text);
    return scl_stan_fail(c->program, node->position, "there is no function '%.60s'%s",
                         node->name->text, text);
  }
  const unsigned count = arguments->count, wrong = arguments->wrong;
  if (f == NULL && (count < arguments->least || count > arguments->most)) {
    char range[48] = "";
    if (arguments->least < arguments->most) {
      snprintf(range, sizeof range, "%u to ", arguments->least);
    }
    return scl_stan_fail(c->program, node->position, "'%.60s' takes %s%u argument%s, not %u",
                         node->name->text, range, arguments->most, arguments->most == 1 ? "" : "s",
                         count);
  }
  if (f == NULL && wrong < count) {
    char type[120];
    write_types(text, sizeof text, arguments->type, wrong);
    return scl_stan_fail(c->program, node->child[wrong]->position,
                         "'%.60s' takes no %s as argument %u%s%s%s", node->name->text,
                         scl_stan_type_text(arguments->type[wrong], type, sizeof type), wrong + 1,
                         wrong > 0 ? " after (" : "", text, wrong > 0 ? ")" : "");
  }
  write_types(text, sizeof text, arguments->type, count);
  return scl_stan_fail(c->program, node->position, "'%.60s' takes no arguments (%s)",
                       node->name->text, text);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static scl_status check_target(scl_stan_checker *c, scl_stan_node *node) {
  const bool allowed = c->block == SCL_STAN_MODEL || c->block == SCL_STAN_TRANSFORMED_PARAMETERS ||
                       (c->block == SCL_STAN_FUNCTIONS && c->end == SCL_STAN_END_LP);
  if (node->count > 0)
    return scl_stan_fail(c->program, node->position, "target() takes no arguments");
  if (!allowed) {
    return scl_stan_fail(c->program, node->position,
                         "target() is known only in transformed "
                         "parameters, the model and functions named _lp");
  }
  return scl_stan_type_of(c->program, SCL_STAN_REAL, 0, &node->type);
}

/* The types of the arguments, all of which are to have values. */
static scl_status collect_types(scl_stan_checker *c, const scl_stan_node *node,
                                const scl_stan_type ***out) {
  const scl_stan_type **types;
  SCL_TRY(scl_stan_alloc(c->program, (node->count + 1) * sizeof *types, &types));
  for (uint32_t k = 0; k < node->count; k++) {
    types[k] = node->child[k]->type;
    if (types[k]->base == SCL_STAN_FUNCTION) {
      return scl_stan_fail(c->program, node->child[k]->position,
                           "'%.60s' takes no function as its argument", node->name->text);
    }
    if (types[k]->base > SCL_STAN_TUPLE) {
      return scl_stan_fail_type(c, node->child[k], "this argument", "a value");
    }
  }
  *out = types;
  return SCL_OK;
}

scl_status scl_stan_check_call(scl_stan_checker *c, scl_stan_node *node) {
  if (node->name->keyword != 0) return check_target(c, node);
  const scl_stan_end end = scl_stan_end_of(node->name);
  SCL_TRY(scl_stan_check_place(c, node->name, node->position));
  SCL_TRY(check_bar(c, node, end));
  if (node->name->symbol != NULL && node->name->functions != NULL) {
    return scl_stan_fail(c->program, node->position,
                         "'%.60s' is a variable here, which hides the function of this name",
                         node->name->text);
  }
  const scl_stan_row *higher = scl_stan_higher(node->name);
  if (higher != NULL) return scl_stan_check_higher(c, node, higher);
  scl_stan_arguments arguments = {.count = node->count};
  const scl_stan_type **types = NULL;
  SCL_TRY(collect_types(c, node, &types));
  arguments.type = types;
  const scl_stan_function *f;
  scl_stan_name *plain;
  uint32_t data_only;
  SCL_TRY(scl_stan_plain_name(c, node->name, &plain));
  SCL_TRY(scl_stan_best_function(c, plain, types, node->count, node->position, &f));
  if (f != NULL) return use_function(c, node, f);
  SCL_TRY(scl_stan_library_result(c->program, node->name, &arguments, &data_only, &node->type));
  if (node->type == NULL) return fail_call(c, node, plain, &arguments);
  for (unsigned k = 0; k < node->count && k < 32; k++) {
    if (data_only >> k & 1) SCL_TRY(check_data_only(c, node, k));
  }
  return SCL_OK;
}
