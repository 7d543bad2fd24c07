/* Sampling statements: "y ~ normal(mu, sigma) T[0, ]". */
#include "stan/check.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  const scl_stan_type **types; /* the variate, then the arguments */
  unsigned count;
  const scl_stan_function *user;
  bool known; /* there is a function of that name, with whatever arguments */
  bool fits;
  bool mass;            /* it is the library's, of integers */
  unsigned least, most; /* the types that the library's function takes, if none has been found */
} sampled;

/* Looks for the distribution's function with this suffix. */
static scl_status find(scl_stan_checker *c, const scl_stan_node *node, scl_stan_end end,
                       sampled *s) {
  char text[300];
  scl_stan_name *name;
  scl_stan_arguments arguments = {.type = s->types, .count = s->count};
  const scl_stan_type *type = NULL;
  s->fits = false;
  if (node->name->length + 8 > sizeof text) return SCL_OK;
  snprintf(text, sizeof text, "%s%s", node->name->text, scl_stan_ends[end]);
  SCL_TRY(scl_stan_intern(c->program, text, strlen(text), &name));
  SCL_TRY(scl_stan_best_function(c, name, s->types, s->count, node->position, &s->user));
  if (s->user == NULL) SCL_TRY(scl_stan_library_result(c->program, name, &arguments, NULL, &type));
  s->known = s->known || name->functions != NULL || scl_stan_in_library(c->program, name);
  s->fits = s->user != NULL || type != NULL;
  if (name->functions == NULL && scl_stan_in_library(c->program, name)) {
    s->least = arguments.least;
    s->most = arguments.most;
    s->mass = end == SCL_STAN_END_LPMF;
  }
  return SCL_OK;
}

static scl_status fail_sample(scl_stan_checker *c, const scl_stan_node *node, const sampled *s) {
  char text[260] = "";
  if (!s->known) {
    scl_stan_nearest(c->program, node->name, SCL_STAN_NEAR_DISTRIBUTION, text, sizeof text);
    return scl_stan_fail(c->program, node->position, "there is no distribution '%.60s'%s",
                         node->name->text, text);
  }
  if (s->most > 0 && (s->count < s->least || s->count > s->most)) {
    const unsigned nearest = s->count < s->least ? s->least : s->most;
    return scl_stan_fail(c->program, node->position, "'%.60s' takes %s%u argument%s, not %u",
                         node->name->text,
                         s->least == s->most   ? ""
                         : nearest == s->least ? "at least "
                                               : "at most ",
                         nearest - 1, nearest == 2 ? "" : "s", s->count - 1);
  }
  const bool whole = s->mass && s->types[0]->base != SCL_STAN_INT;
  size_t used = 0;
  for (unsigned k = 1; k < s->count && used < sizeof text; k++) {
    char type[100];
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", k == 1 ? "" : ", ",
                             scl_stan_type_text(s->types[k], type, sizeof type));
  }
  char variate[100];
  return scl_stan_fail(c->program, node->position,
                       "'%.60s' is no distribution of %s with arguments (%s)%s", node->name->text,
                       scl_stan_type_text(s->types[0], variate, sizeof variate), text,
                       whole ? ": it takes integers" : "");
}

/* The bounds of T[lower, upper], and the distribution functions that they need. */
static scl_status check_truncation(scl_stan_checker *c, scl_stan_node *node, sampled *s) {
  const scl_stan_type *variate = s->types[0];
  for (uint32_t k = 1; k < 3; k++) {
    scl_stan_node *bound = node->child[k];
    if (bound == NULL) continue;
    SCL_TRY(scl_stan_check_value(c, bound));
    if (!scl_stan_is_scalar(bound->type)) {
      return scl_stan_fail_type(c, bound, "the bound of a truncation", "a number");
    }
    if (node->op == SCL_STAN_LPMF && bound->type->base != SCL_STAN_INT) {
      return scl_stan_fail_type(c, bound, "the bound of integers", "int");
    }
    const scl_stan_end end =
        k == 1 && node->child[2] == NULL ? SCL_STAN_END_LCCDF : SCL_STAN_END_LCDF;
    sampled cdf = {.types = s->types, .count = s->count};
    s->types[0] = bound->type;
    SCL_TRY(find(c, node, end, &cdf));
    if (!cdf.fits) {
      return scl_stan_fail(c->program, bound->position,
                           "'%.60s' cannot be truncated here: it has no function %s",
                           node->name->text, scl_stan_ends[end]);
    }
    s->types[0] = variate;
  }
  return SCL_OK;
}

/* Truncation comes last, so that the types of its bounds are those of the variate's function. */
scl_status scl_stan_check_sample(scl_stan_checker *c, scl_stan_node *node) {
  if (c->block != SCL_STAN_MODEL &&
      !(c->block == SCL_STAN_FUNCTIONS && c->end == SCL_STAN_END_LP)) {
    return scl_stan_fail(c->program, node->position,
                         "'~' stands in the model and in functions named _lp only");
  }
  sampled s = {.count = node->count - 2};
  SCL_TRY(scl_stan_alloc(c->program, s.count * sizeof *s.types, &s.types));
  for (uint32_t k = 0, n = 0; k < node->count; k++) {
    if (k == 1 || k == 2) continue;
    SCL_TRY(scl_stan_check_value(c, node->child[k]));
    s.types[n++] = node->child[k]->type;
  }
  const scl_stan_end own = scl_stan_end_of(node->name);
  if (own >= SCL_STAN_END_LPDF && own <= SCL_STAN_END_LCCDF) {
    return scl_stan_fail(c->program, node->position,
                         "'~' takes the distribution's name without '%s'", scl_stan_ends[own]);
  }
  SCL_TRY(find(c, node, SCL_STAN_END_LPDF, &s));
  node->op = SCL_STAN_LPDF;
  if (!s.fits) {
    SCL_TRY(find(c, node, SCL_STAN_END_LPMF, &s));
    node->op = SCL_STAN_LPMF;
  }
  if (!s.fits) return fail_sample(c, node, &s);
  if (s.user != NULL) node->user = s.user->number;
  return check_truncation(c, node, &s);
}
