#include "stan/library.h"

#include <string.h>

static const scl_stan_row rows[] = {
#define SCL_STAN_FUNCTION(names, signatures)                                                       \
  {SCL_STAN_ROW_FUNCTION, names, signatures, NULL, NULL, NULL, NULL, false},
#define SCL_STAN_DISTRIBUTION(names, variate, arguments, kinds, rng)                               \
  {SCL_STAN_ROW_DISTRIBUTION, names, variate, arguments, kinds, rng, NULL, false},
#define SCL_STAN_HIGHER(names, result, arguments, optional, other, inner, rest)                    \
  {SCL_STAN_ROW_HIGHER, names, result, arguments, optional, other, inner, rest},
#include "stan/functions.def"
#undef SCL_STAN_FUNCTION
#undef SCL_STAN_DISTRIBUTION
#undef SCL_STAN_HIGHER
};

const char *const scl_stan_ends[SCL_STAN_ENDS] = {"",       "_lpdf", "_lpmf",    "_lupdf",
                                                  "_lupmf", "_cdf",  "_lcdf",    "_lccdf",
                                                  "_rng",   "_lp",   "_jacobian"};

scl_stan_end scl_stan_end_of(const scl_stan_name *name) {
  for (int k = SCL_STAN_ENDS - 1; k > 0; k--) {
    const size_t length = strlen(scl_stan_ends[k]);
    if (name->length > length &&
        memcmp(name->text + name->length - length, scl_stan_ends[k], length) == 0) {
      return (scl_stan_end)k;
    }
  }
  return SCL_STAN_PLAIN;
}

static scl_status add_name(scl_stan_program *program, const char *text, size_t length,
                           const scl_stan_row *row) {
  scl_stan_name *name;
  scl_stan_entry *entry;
  SCL_TRY(scl_stan_intern(program, text, length, &name));
  SCL_TRY(scl_stan_alloc(program, sizeof *entry, &entry));
  entry->row = row;
  entry->next = name->library;
  name->library = entry;
  return SCL_OK;
}

scl_status scl_stan_add_library(scl_stan_program *program) {
  for (size_t k = sizeof rows / sizeof *rows; k-- > 0;) { /* backwards: each goes to the front */
    for (const char *at = rows[k].names; *at != '\0';) {
      const size_t length = strcspn(at, " ");
      SCL_TRY(add_name(program, at, length, &rows[k]));
      at += length + (at[length] == ' ');
    }
  }
  return SCL_OK;
}

/* ---- the best signature --------------------------------------------------------------------- */

typedef struct {
  int cost; /* -1: none yet */
  scl_stan_binding binding;
  const char *result;
  uint32_t data_only;
} best;

static unsigned length_of(const char *patterns) {
  unsigned length = 0;
  for (; patterns != NULL && *patterns != '\0' && *patterns != ')'; patterns++) {
    length += *patterns != '[' && *patterns != '!';
  }
  return length;
}

/* Takes a signature if it fits at a lower cost. `lists` are two texts of patterns, one after the
 * other; each ends with ')' or '\0'. */
static void consider(const char *const lists[2], const char *result, scl_stan_arguments *arguments,
                     best *b) {
  scl_stan_binding binding = {0};
  int cost = 0;
  uint32_t data_only = 0;
  unsigned k = 0;
  const unsigned length = length_of(lists[0]) + length_of(lists[1]);
  if (length < arguments->least) arguments->least = length;
  if (length > arguments->most) arguments->most = length;
  if (length != arguments->count) return;
  for (int list = 0; list < 2; list++) {
    const char *at = lists[list];
    for (; at != NULL && *at != '\0' && *at != ')'; k++) {
      bool only;
      const int step = scl_stan_fit(&at, arguments->type[k], &binding, &only);
      if (step < 0) {
        if (k > arguments->wrong) arguments->wrong = k;
        return;
      }
      if (only && k < 32) data_only |= 1u << k;
      cost += step;
    }
  }
  if (b->cost < 0 || cost < b->cost) *b = (best){cost, binding, result, data_only};
}

static void consider_all(const char *signatures, scl_stan_arguments *arguments, best *b) {
  for (const char *at = signatures; *at != '\0';) {
    const char *open = strchr(at, '(');
    const char *const lists[2] = {open + 1, NULL};
    consider(lists, at, arguments, b);
    at = strchr(at, ')') + 1;
    at += *at == ' ';
  }
}

/* "T" of a distribution's _rng: an array if an argument is a container. */
static const char *vectorised_result(const scl_stan_row *row, scl_stan_arguments *arguments,
                                     best *b) {
  const char *const lists[2] = {row->arguments, NULL};
  const int before = b->cost;
  consider(lists, NULL, arguments, b);
  if (b->cost == before) return b->result;
  const bool whole = strchr(row->more, 'm') != NULL;
  if (b->binding.any_container) return whole ? "[i" : "[r";
  return whole ? "i" : "r";
}

static void consider_distribution(const scl_stan_row *row, scl_stan_end end,
                                  scl_stan_arguments *arguments, best *b) {
  const bool mass = strchr(row->more, 'm') != NULL, cdf = strchr(row->more, 'c') != NULL;
  const char *const lists[2] = {row->result, row->arguments};
  switch (end) {
  case SCL_STAN_END_LPDF:
  case SCL_STAN_END_LUPDF:
    if (!mass) consider(lists, "r", arguments, b);
    break;
  case SCL_STAN_END_LPMF:
  case SCL_STAN_END_LUPMF:
    if (mass) consider(lists, "r", arguments, b);
    break;
  case SCL_STAN_END_RNG:
    if (strcmp(row->other, "*") == 0)
      b->result = vectorised_result(row, arguments, b);
    else
      consider_all(row->other, arguments, b);
    break;
  case SCL_STAN_END_CDF:
  case SCL_STAN_END_LCDF:
  case SCL_STAN_END_LCCDF:
    if (cdf) consider(lists, "r", arguments, b);
    break;
  default:
    break;
  }
}

/* Whether a distribution has a function with this suffix. */
static bool has_end(const scl_stan_row *row, scl_stan_end end) {
  const bool mass = strchr(row->more, 'm') != NULL;
  switch (end) {
  case SCL_STAN_END_LPDF:
  case SCL_STAN_END_LUPDF:
    return !mass;
  case SCL_STAN_END_LPMF:
  case SCL_STAN_END_LUPMF:
    return mass;
  case SCL_STAN_END_RNG:
    return row->other[0] != '\0';
  default:
    return strchr(row->more, 'c') != NULL;
  }
}

/* The distribution's name, without the suffix; there may be no such distribution. */
static scl_status distribution_of(scl_stan_program *program, const scl_stan_name *name,
                                  scl_stan_end end, scl_stan_name **out) {
  return scl_stan_intern(program, name->text, name->length - strlen(scl_stan_ends[end]), out);
}

scl_status scl_stan_library_result(scl_stan_program *program, const scl_stan_name *name,
                                   scl_stan_arguments *arguments, uint32_t *data_only,
                                   const scl_stan_type **out) {
  best b = {.cost = -1};
  const scl_stan_end end = scl_stan_end_of(name);
  arguments->wrong = arguments->most = 0;
  arguments->least = UINT32_MAX;
  for (const scl_stan_entry *entry = name->library; entry != NULL; entry = entry->next) {
    if (entry->row->kind == SCL_STAN_ROW_FUNCTION) consider_all(entry->row->result, arguments, &b);
  }
  if (end != SCL_STAN_PLAIN) {
    scl_stan_name *distribution;
    SCL_TRY(distribution_of(program, name, end, &distribution));
    const scl_stan_entry *entry = distribution->library;
    for (; entry != NULL; entry = entry->next) {
      if (entry->row->kind == SCL_STAN_ROW_DISTRIBUTION) {
        consider_distribution(entry->row, end, arguments, &b);
      }
    }
  }
  *out = NULL;
  if (data_only != NULL) *data_only = b.data_only;
  if (b.cost < 0) return SCL_OK;
  return scl_stan_result(program, &b.result, &b.binding, out);
}

const scl_stan_row *scl_stan_higher(const scl_stan_name *name) {
  for (const scl_stan_entry *entry = name->library; entry != NULL; entry = entry->next) {
    if (entry->row->kind == SCL_STAN_ROW_HIGHER) return entry->row;
  }
  return NULL;
}

bool scl_stan_has_end(const scl_stan_name *distribution, scl_stan_end end) {
  for (const scl_stan_entry *entry = distribution->library; entry != NULL; entry = entry->next) {
    if (entry->row->kind == SCL_STAN_ROW_DISTRIBUTION && has_end(entry->row, end)) return true;
  }
  return false;
}

bool scl_stan_in_library(scl_stan_program *program, const scl_stan_name *name) {
  for (const scl_stan_entry *entry = name->library; entry != NULL; entry = entry->next) {
    if (entry->row->kind != SCL_STAN_ROW_DISTRIBUTION) return true;
  }
  const scl_stan_end end = scl_stan_end_of(name);
  scl_stan_name *distribution;
  return end != SCL_STAN_PLAIN && distribution_of(program, name, end, &distribution) == SCL_OK &&
         scl_stan_has_end(distribution, end);
}
