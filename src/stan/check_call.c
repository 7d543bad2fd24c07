#include "stan/check.h"

#include <stdio.h>

/* ---- where functions may be called ---------------------------------------------------------- */

enum { IN_TRANSFORMED_DATA = 1, IN_PARAMETERS = 2, IN_MODEL = 4, IN_GENERATED = 8 };

/* Blocks in which functions with an end may be called, and ends of functions that may call them. */
static const struct {
  unsigned blocks;
  scl_stan_end callers[4];
  const char *where;
} permitted[SCL_STAN_ENDS] = {
    [SCL_STAN_END_RNG] = {IN_TRANSFORMED_DATA | IN_GENERATED,
                          {SCL_STAN_END_RNG},
                          "in transformed data, generated quantities and functions named _rng"},
    [SCL_STAN_END_LP] = {IN_PARAMETERS | IN_MODEL,
                         {SCL_STAN_END_LP},
                         "in transformed parameters, the model and functions named _lp"},
    [SCL_STAN_END_JACOBIAN] = {IN_PARAMETERS,
                               {SCL_STAN_END_JACOBIAN},
                               "in transformed parameters and functions named _jacobian"},
    [SCL_STAN_END_LUPDF] = {IN_MODEL,
                            {SCL_STAN_END_LP, SCL_STAN_END_LPDF, SCL_STAN_END_LPMF},
                            "in the model and functions named _lp, _lpdf or _lpmf"},
    [SCL_STAN_END_LUPMF] = {IN_MODEL,
                            {SCL_STAN_END_LP, SCL_STAN_END_LPDF, SCL_STAN_END_LPMF},
                            "in the model and functions named _lp, _lpdf or _lpmf"},
};

static unsigned block_bit(scl_stan_place block) {
  switch (block) {
  case SCL_STAN_TRANSFORMED_DATA:
    return IN_TRANSFORMED_DATA;
  case SCL_STAN_TRANSFORMED_PARAMETERS:
    return IN_PARAMETERS;
  case SCL_STAN_MODEL:
    return IN_MODEL;
  case SCL_STAN_GENERATED:
    return IN_GENERATED;
  default:
    return 0;
  }
}

static scl_status check_place(scl_stan_checker *c, const scl_stan_node *node, scl_stan_end end) {
  if (permitted[end].blocks == 0 || (permitted[end].blocks & block_bit(c->block)) != 0)
    return SCL_OK;
  for (int k = 0; k < 4 && c->block == SCL_STAN_FUNCTIONS && permitted[end].callers[k] != 0; k++) {
    if (c->end == permitted[end].callers[k]) return SCL_OK;
  }
  return scl_stan_fail(c->program, node->position, "'%.60s' can only be called %s",
                       node->name->text, permitted[end].where);
}

/* '|' stands after the first argument of densities and the like, and nowhere else. */
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

/* SCL_E_STAN if an argument that takes data only is given a value that is differentiated. */
static scl_status check_data_only(scl_stan_checker *c, const scl_stan_node *node, unsigned k) {
  if ((node->child[k]->flags & SCL_STAN_AUTODIFF) == 0) return SCL_OK;
  return scl_stan_fail(c->program, node->child[k]->position,
                       "argument %u of '%.60s' takes data only, and this depends on parameters",
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
  for (; f != NULL && !f->visible; f = f->next) continue;
  if (f == NULL && plain->functions != NULL) {
    return scl_stan_fail(c->program, node->position,
                         "'%.60s' is called before its definition: "
                         "declare it above, without a body",
                         node->name->text);
  }
  if (f == NULL && !scl_stan_in_library(c->program, node->name)) {
    if (node->name->symbol != NULL) {
      return scl_stan_fail(c->program, node->position, "'%.60s' is a variable, not a function",
                           node->name->text);
    }
    SCL_TRY(scl_stan_nearest(c->program, node->name, false, text, sizeof text));
    return scl_stan_fail(c->program, node->position, "there is no function '%.60s'%s",
                         node->name->text, text);
  }
  write_types(text, sizeof text, arguments->type, arguments->count);
  if (f == NULL && arguments->wrong < arguments->count) {
    char type[120];
    return scl_stan_fail(c->program, node->child[arguments->wrong]->position,
                         "'%.60s' takes no %s as argument %u after (%s)", node->name->text,
                         scl_stan_type_text(arguments->type[arguments->wrong], type, sizeof type),
                         arguments->wrong + 1,
                         (write_types(text, sizeof text, arguments->type, arguments->wrong), text));
  }
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
  SCL_TRY(check_place(c, node, end));
  SCL_TRY(check_bar(c, node, end));
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
