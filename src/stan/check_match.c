/* Which function of the program a call means. */
#include "stan/check.h"

#include <string.h>

/* The cost of a function for these arguments, -1 if it does not fit. */
static int cost_of(const scl_stan_node *function, const scl_stan_type *const *types,
                   unsigned count) {
  int cost = 0;
  if (function->count - 1 != count) return -1;
  for (unsigned k = 0; k < count; k++) {
    const int step = scl_stan_promotion(types[k], function->child[k + 1]->type);
    if (step < 0) return -1;
    cost += step;
  }
  return cost;
}

scl_status scl_stan_best_function(scl_stan_checker *c, const scl_stan_name *name,
                                  const scl_stan_type *const *types, unsigned count,
                                  uint32_t position, const scl_stan_function **out) {
  int best = -1;
  bool tie = false;
  *out = NULL;
  for (const scl_stan_function *f = name->functions; f != NULL; f = f->next) {
    const int cost = f->visible ? cost_of(f->node, types, count) : -1;
    if (cost < 0 || (best >= 0 && cost > best)) continue;
    tie = cost == best;
    best = cost;
    *out = f;
  }
  if (!tie) return SCL_OK;
  return scl_stan_fail(c->program, position,
                       "two definitions of '%.60s' fit these arguments equally "
                       "well: convert an argument",
                       name->text);
}

scl_status scl_stan_plain_name(scl_stan_checker *c, scl_stan_name *name, scl_stan_name **out) {
  const scl_stan_end end = scl_stan_end_of(name);
  *out = name;
  if (end != SCL_STAN_END_LUPDF && end != SCL_STAN_END_LUPMF) return SCL_OK;
  char text[300];
  if (name->length >= sizeof text) return SCL_OK;
  memcpy(text, name->text, name->length);
  memmove(text + name->length - 3, text + name->length - 2, 2); /* the 'u' */
  return scl_stan_intern(c->program, text, name->length - 1, out);
}
