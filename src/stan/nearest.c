#include "stan/library.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 48, FOUND = 3 };

/* The number of letters to change, remove, insert or swap with a neighbour. */
static unsigned distance(const char *a, size_t m, const char *b, size_t n) {
  unsigned row[3][LONGEST + 1];
  for (size_t j = 0; j <= n; j++) row[0][j] = (unsigned)j;
  for (size_t i = 1; i <= m; i++) {
    unsigned *now = row[i % 3];
    const unsigned *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
    now[0] = (unsigned)i;
    for (size_t j = 1; j <= n; j++) {
      unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
      if (last[j] + 1 < best) best = last[j] + 1;
      if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
      now[j] = best;
    }
  }
  return row[m % 3][n];
}

typedef struct {
  unsigned distance;
  char text[LONGEST + 16];
} candidate;

/* Keeps a name if it is among the nearest; equally near ones by the alphabet. */
static void keep(candidate *found, unsigned *count, unsigned near, const char *text) {
  candidate c = {.distance = near};
  snprintf(c.text, sizeof c.text, "%s", text);
  for (unsigned k = 0; k < *count; k++) {
    if (strcmp(found[k].text, c.text) == 0) return;
  }
  for (unsigned k = 0; k < FOUND; k++) {
    if (k == *count) {
      found[k] = c;
      ++*count;
      return;
    }
    const bool before = c.distance < found[k].distance ||
                        (c.distance == found[k].distance && strcmp(c.text, found[k].text) < 0);
    if (before) {
      const candidate next = found[k];
      found[k] = c;
      c = next;
    }
  }
}

static bool is_distribution(const scl_stan_name *name) {
  for (const scl_stan_entry *entry = name->library; entry != NULL; entry = entry->next) {
    if (entry->row->kind == SCL_STAN_ROW_DISTRIBUTION) return true;
  }
  return false;
}

/* Compares with the functions of a distribution, with each of their suffixes. */
static void compare_ends(const scl_stan_name *name, const scl_stan_name *distribution,
                         unsigned most, candidate *found, unsigned *count) {
  for (int end = SCL_STAN_END_LPDF; end <= SCL_STAN_END_RNG; end++) {
    const bool normalised = end != SCL_STAN_END_LUPDF && end != SCL_STAN_END_LUPMF;
    if (!normalised || !scl_stan_has_end(distribution, (scl_stan_end)end)) continue;
    char text[LONGEST + 16];
    snprintf(text, sizeof text, "%s%s", distribution->text, scl_stan_ends[end]);
    const size_t length = strlen(text);
    if (length > LONGEST) continue;
    const unsigned near = distance(name->text, name->length, text, length);
    if (near <= most) keep(found, count, near, text);
  }
}

static bool is_known(const scl_stan_name *name, scl_stan_near what) {
  if (what == SCL_STAN_NEAR_VARIABLE) return name->symbol != NULL;
  if (what == SCL_STAN_NEAR_DISTRIBUTION) return is_distribution(name);
  return name->functions != NULL ||
         (name->library != NULL && name->library->row->kind != SCL_STAN_ROW_DISTRIBUTION);
}

/* Whether two names differ only in capitals. */
static bool same_letters(const scl_stan_name *a, const scl_stan_name *b) {
  if (a->length != b->length) return false;
  for (size_t k = 0; k < a->length; k++) {
    const char x = a->text[k], y = b->text[k];
    const bool letters = (x ^ y) == 32 && ((x | 32) >= 'a' && (x | 32) <= 'z');
    if (x != y && !letters) return false;
  }
  return true;
}

void scl_stan_nearest(const scl_stan_program *program, const scl_stan_name *name,
                      scl_stan_near what, char *text, size_t size) {
  candidate found[FOUND];
  unsigned count = 0;
  const unsigned most = name->length < 3 ? 0 : name->length < 4 ? 1 : name->length < 9 ? 2 : 3;
  text[0] = '\0';
  if (name->length > LONGEST) return;
  for (uint32_t k = 0; k < program->name_places; k++) {
    for (const scl_stan_name *n = program->names[k]; n != NULL; n = n->next) {
      if (n == name || n->length > LONGEST || n->length > name->length + most) continue;
      if (is_known(n, what) && n->length + most >= name->length) {
        const unsigned near =
            same_letters(name, n) ? 0 : distance(name->text, name->length, n->text, n->length);
        if (near <= most) keep(found, &count, near, n->text);
      }
      if (what == SCL_STAN_NEAR_FUNCTION && is_distribution(n)) {
        compare_ends(name, n, most, found, &count);
      }
    }
  }
  size_t used = 0;
  for (unsigned k = 0; k < count && used < size; k++) {
    used += (size_t)snprintf(text + used, size - used, "%s'%s'", k == 0 ? ": did you mean " : ", ",
                             found[k].text);
  }
  if (count > 0 && used + 1 < size) snprintf(text + used, size - used, "?");
}
