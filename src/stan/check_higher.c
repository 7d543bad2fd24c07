/* Functions whose first argument is a function of the program: solvers, reduce_sum(), map_rect().
 */
#include "stan/check.h"

#include <string.h>

enum { MOST = 256 };

/* The arguments that a call hands to the function: those of the row, then the rest of the call's.
 */
typedef struct {
  const scl_stan_type *type[MOST];
  unsigned count;
} inner;

static scl_status fail_argument(scl_stan_checker *c, const scl_stan_node *node, uint32_t k) {
  char text[120];
  return scl_stan_fail(c->program, node->child[k]->position, "'%.60s' takes no %s as argument %u",
                       node->name->text,
                       scl_stan_type_text(node->child[k]->type, text, sizeof text), k + 1);
}

/* Arguments from number `k` on against patterns; k becomes the first after them. With `optional`,
 * all may be left out. */
static scl_status check_patterns(scl_stan_checker *c, scl_stan_node *node, const char *patterns,
                                 bool optional, uint32_t *k) {
  scl_stan_binding binding = {0};
  for (const char *at = patterns; *at != '\0'; ++*k) {
    bool only;
    if (*k >= node->count) {
      if (optional && at == patterns) return SCL_OK;
      return scl_stan_fail(c->program, node->position, "'%.60s' has too few arguments: %u",
                           node->name->text, node->count);
    }
    const scl_stan_node *argument = node->child[*k];
    if (argument->type->base > SCL_STAN_TUPLE ||
        scl_stan_fit(&at, argument->type, &binding, &only) < 0) {
      return fail_argument(c, node, *k);
    }
    if (only && (argument->flags & SCL_STAN_AUTODIFF)) {
      return scl_stan_fail(c->program, argument->position,
                           "argument %u of '%.60s' takes data only: this depends on parameters, as "
                           "do all local variables here",
                           *k + 1, node->name->text);
    }
  }
  return SCL_OK;
}

static scl_status collect_inner(scl_stan_checker *c, const scl_stan_node *node,
                                const scl_stan_row *row, uint32_t rest, inner *in) {
  const scl_stan_binding binding = {.first = node->child[1]->type};
  for (const char *at = row->inner; *at != '\0'; in->count++) {
    if (*at == '!') at++;
    SCL_TRY(scl_stan_result(c->program, &at, &binding, &in->type[in->count]));
  }
  for (uint32_t k = rest; k < node->count; k++, in->count++) {
    const scl_stan_type *type = node->child[k]->type;
    if (in->count == MOST) {
      return scl_stan_fail(c->program, node->position, "this call has more than %d arguments",
                           MOST);
    }
    if (type->base > SCL_STAN_TUPLE) return fail_argument(c, node, k);
    in->type[in->count] = type;
  }
  return SCL_OK;
}

static scl_status fail_function(scl_stan_checker *c, const scl_stan_node *node, const inner *in) {
  char text[300] = "";
  for (unsigned k = 0; k < in->count; k++) {
    char type[100];
    scl_stan_type_text(in->type[k], type, sizeof type);
    if (strlen(text) + strlen(type) + 3 >= sizeof text) break;
    if (k > 0) strncat(text, ", ", 3);
    strncat(text, type, sizeof text - strlen(text) - 1);
  }
  return scl_stan_fail(c->program, node->child[0]->position,
                       "'%.60s' needs a function that takes (%s): '%.60s' does not",
                       node->name->text, text, node->child[0]->name->text);
}

/* The name of a function that is an argument has no suffix; reduce_sum() also takes densities. */
static scl_status check_function(scl_stan_checker *c, const scl_stan_node *node,
                                 const scl_stan_row *row) {
  const scl_stan_name *name = node->child[0]->name;
  const scl_stan_end end = scl_stan_end_of(name);
  const bool sums = row->result[0] == 'r' && row->rest; /* reduce_sum */
  const bool density = end >= SCL_STAN_END_LPDF && end <= SCL_STAN_END_LUPMF;
  if (end == SCL_STAN_PLAIN || (density && sums)) {
    return scl_stan_check_place(c, name, node->child[0]->position);
  }
  return scl_stan_fail(c->program, node->child[0]->position,
                       "'%.60s' takes no function whose name ends with %s", node->name->text,
                       scl_stan_ends[end]);
}

scl_status scl_stan_check_higher(scl_stan_checker *c, scl_stan_node *node,
                                 const scl_stan_row *row) {
  if (node->count < 2 || node->child[0]->type->base != SCL_STAN_FUNCTION) {
    return scl_stan_fail(c->program, node->position,
                         "the first argument of '%.60s' is the name of a function of this program",
                         node->name->text);
  }
  inner in = {.count = 0};
  uint32_t k = 1;
  SCL_TRY(check_patterns(c, node, row->arguments, false, &k));
  SCL_TRY(check_patterns(c, node, row->more, true, &k));
  if (k < node->count && !row->rest) {
    return scl_stan_fail(c->program, node->child[k]->position, "'%.60s' takes no argument %u",
                         node->name->text, k + 1);
  }
  SCL_TRY(collect_inner(c, node, row, k, &in));
  scl_stan_name *name;
  const scl_stan_function *f;
  const scl_stan_type *wanted;
  const char *result = row->other, *value = row->result;
  const scl_stan_binding none = {0};
  SCL_TRY(check_function(c, node, row));
  SCL_TRY(scl_stan_plain_name(c, node->child[0]->name, &name));
  SCL_TRY(scl_stan_best_function(c, name, in.type, in.count, node->child[0]->position, &f));
  if (f == NULL) return fail_function(c, node, &in);
  SCL_TRY(scl_stan_result(c->program, &result, &none, &wanted));
  if (f->node->type != wanted) {
    char text[100], other[100];
    return scl_stan_fail(c->program, node->child[0]->position,
                         "'%.60s' needs a function that gives %s: '%.60s' gives %s",
                         node->name->text, scl_stan_type_text(wanted, text, sizeof text),
                         name->text, scl_stan_type_text(f->node->type, other, sizeof other));
  }
  node->child[0]->user = f->number;
  return scl_stan_result(c->program, &value, &none, &node->type);
}
