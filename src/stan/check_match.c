/* Which function of the program a call means, and where it may be called. */
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
    const int cost = cost_of(f->node, types, count);
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
  memmove(text + name->length - 4, text + name->length - 3, 3); /* the 'u' */
  return scl_stan_intern(c->program, text, name->length - 1, out);
}

/* ---- where functions may be called ---------------------------------------------------------- */

enum { IN_TRANSFORMED_DATA = 1, IN_PARAMETERS = 2, IN_MODEL = 4, IN_GENERATED = 8 };

/* For each suffix of a name (_lp, _rng, ...): the blocks in which such functions may be called, and
 * the suffixes of functions that may call them. */
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
                            {SCL_STAN_END_LPDF, SCL_STAN_END_LPMF},
                            "in the model and functions named _lpdf or _lpmf"},
    [SCL_STAN_END_LUPMF] = {IN_MODEL,
                            {SCL_STAN_END_LPDF, SCL_STAN_END_LPMF},
                            "in the model and functions named _lpdf or _lpmf"},
};

static const unsigned bit_of[SCL_STAN_PLACES] = {
    [SCL_STAN_TRANSFORMED_DATA] = IN_TRANSFORMED_DATA,
    [SCL_STAN_TRANSFORMED_PARAMETERS] = IN_PARAMETERS,
    [SCL_STAN_MODEL] = IN_MODEL,
    [SCL_STAN_GENERATED] = IN_GENERATED,
};

scl_status scl_stan_check_place(const scl_stan_checker *c, const scl_stan_name *name,
                                uint32_t position) {
  const scl_stan_end end = scl_stan_end_of(name);
  if (permitted[end].blocks == 0 || (permitted[end].blocks & bit_of[c->block]) != 0) return SCL_OK;
  for (int k = 0; k < 4 && c->block == SCL_STAN_FUNCTIONS && permitted[end].callers[k] != 0; k++) {
    if (c->end == permitted[end].callers[k]) return SCL_OK;
  }
  return scl_stan_fail(c->program, position, "'%.60s' can only be called %s", name->text,
                       permitted[end].where);
}
