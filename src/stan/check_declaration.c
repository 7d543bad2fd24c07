#include "stan/check.h"

static bool has_integers(const scl_stan_type *type) {
  if (type->base == SCL_STAN_INT) return true;
  for (unsigned k = 0; k < type->parts; k++) {
    if (has_integers(type->part[k])) return true;
  }
  return false;
}

/* Whether the variable is declared at the top of a block other than `model`. */
static bool is_global(const scl_stan_checker *c) {
  return c->level == 0 && c->block != SCL_STAN_FUNCTIONS && c->block != SCL_STAN_MODEL;
}

static scl_status check_sizes(scl_stan_checker *c, scl_stan_node *list) {
  if (list->flags & SCL_STAN_CHECKED) return SCL_OK;
  list->flags |= SCL_STAN_CHECKED;
  for (uint32_t k = 0; k < list->count; k++) {
    scl_stan_node *size = list->child[k];
    if (k > 0 && size == list->child[k - 1]) continue; /* of a square matrix */
    SCL_TRY(scl_stan_check_value(c, size));
    SCL_TRY(scl_stan_check_integer(c, size, "a size"));
    if (is_global(c) && (size->flags & SCL_STAN_AUTODIFF)) {
      return scl_stan_fail(c->program, size->position,
                           "a size cannot depend on parameters: only on data");
    }
  }
  return SCL_OK;
}

/* A bound, offset or multiplier: a number, or of the variable's type. */
static scl_status check_bound(scl_stan_checker *c, scl_stan_node *bound,
                              const scl_stan_type *type) {
  if ((bound->flags & SCL_STAN_CHECKED) == 0) SCL_TRY(scl_stan_check_value(c, bound));
  bound->flags |= SCL_STAN_CHECKED; /* several variables may share it */
  if (scl_stan_promotion(bound->type, type) >= 0) return SCL_OK;
  if (type->base == SCL_STAN_INT) {
    return scl_stan_is_int(bound->type)
               ? SCL_OK
               : scl_stan_fail_type(c, bound, "the bound of integers", "int");
  }
  const bool number = scl_stan_is_scalar(bound->type) && bound->type->base != SCL_STAN_COMPLEX;
  if (number) return SCL_OK;
  char text[120];
  return scl_stan_fail_type(c, bound, "this bound, offset or multiplier",
                            scl_stan_type_text(type, text, sizeof text));
}

static scl_status check_constraint(scl_stan_checker *c, scl_stan_node *constraint,
                                   const scl_stan_type *type) {
  if (constraint == NULL || constraint->op == SCL_STAN_C_NONE) return SCL_OK;
  if (!is_global(c)) {
    return scl_stan_fail(c->program, constraint->position,
                         "a local variable has no constraint: only those at the top of a block do, "
                         "the model's aside");
  }
  for (uint32_t k = 0; k < constraint->count; k++) {
    if (constraint->child[k] != NULL) SCL_TRY(check_bound(c, constraint->child[k], type));
  }
  return SCL_OK;
}

/* Sizes, constraint and parts (for tuples: a list of sized types). */
static scl_status check_sized(scl_stan_checker *c, scl_stan_node *sizes, scl_stan_node *parts,
                              scl_stan_node *constraint, const scl_stan_type *type) {
  SCL_TRY(check_sizes(c, sizes));
  SCL_TRY(check_constraint(c, constraint, type));
  if (parts == NULL || (parts->flags & SCL_STAN_CHECKED)) return SCL_OK;
  parts->flags |= SCL_STAN_CHECKED;
  for (uint32_t k = 0; k < parts->count; k++) {
    scl_stan_node *part = parts->child[k];
    SCL_TRY(check_sized(c, part->child[0], part->child[1], part->child[2], part->type));
  }
  return SCL_OK;
}

static scl_status check_block(const scl_stan_checker *c, const scl_stan_node *node) {
  const bool input = c->block == SCL_STAN_DATA || c->block == SCL_STAN_PARAMETERS;
  if (input && node->child[3] != NULL) {
    return scl_stan_fail(c->program, node->child[3]->position,
                         "'%.60s' gets its value from %s: it is not assigned here",
                         node->name->text, c->block == SCL_STAN_DATA ? "the data" : "the sampler");
  }
  const bool parameters =
      c->block == SCL_STAN_PARAMETERS || c->block == SCL_STAN_TRANSFORMED_PARAMETERS;
  if (parameters && is_global(c) && has_integers(node->type)) {
    return scl_stan_fail(c->program, node->position,
                         c->block == SCL_STAN_PARAMETERS
                             ? "parameters are real numbers: '%.60s' has integers"
                             : "transformed parameters are real numbers: '%.60s' has integers",
                         node->name->text);
  }
  return SCL_OK;
}

scl_status scl_stan_check_declaration(scl_stan_checker *c, scl_stan_node *node) {
  scl_stan_node *init = node->child[3];
  SCL_TRY(check_block(c, node));
  SCL_TRY(check_sized(c, node->child[0], node->child[1], node->child[2], node->type));
  const scl_stan_place place = is_global(c) ? c->block : SCL_STAN_LOCAL;
  node->place = (uint8_t)place;
  SCL_TRY(scl_stan_declare(c, node->name, node->type, place, scl_stan_differentiates(c),
                           node->position));
  if (init == NULL) return SCL_OK;
  SCL_TRY(scl_stan_check_value(c, init)); /* which may use elements of the variable itself */
  if (scl_stan_promotion(init->type, node->type) >= 0) return SCL_OK;
  char text[120];
  return scl_stan_fail_type(c, init, "the value",
                            scl_stan_type_text(node->type, text, sizeof text));
}
