/* Sums of many terms (roll_sums.c): terms that are alike are reduced together. */
#include "program/roll_parts.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = SCL_ROLL_NONE };

/* Terms first to first + width - 1 of a sum are alike. */
typedef struct {
  int first, width;
  bool minus;
  uint64_t sig;
} group;

typedef struct {
  uint64_t sig;
  scl_roll_term term;
  int at;
} labelled;

static int by_label(const void *a, const void *b) {
  const labelled *x = a, *y = b;
  if (x->term.minus != y->term.minus) return x->term.minus ? 1 : -1;
  if (x->sig != y->sig) return x->sig < y->sig ? -1 : 1;
  return x->at - y->at;
}

/* Sorts the terms of a sum; its groups, or NULL. */
static group *find_groups(scl_roll *r, int sum, int *groups) {
  const int count = r->terms[sum];
  labelled *l = scl_roll_room(r, (size_t)count, sizeof *l);
  group *g = scl_roll_room(r, (size_t)count, sizeof *g);
  if (l == NULL || g == NULL) return NULL;
  for (int k = 0; k < count; k++) {
    l[k] = (labelled){scl_roll_operand_sig(r, r->term[sum][k].node), r->term[sum][k], k};
  }
  qsort(l, (size_t)count, sizeof *l, by_label);
  *groups = 0;
  for (int k = 0; k < count; k++) {
    r->term[sum][k] = l[k].term;
    if (k == 0 || l[k].sig != l[k - 1].sig || l[k].term.minus != l[k - 1].term.minus) {
      g[(*groups)++] = (group){k, 0, l[k].term.minus, l[k].sig};
    }
    g[*groups - 1].width++;
  }
  return g;
}

static int plus(scl_roll *r, int total, int x, bool minus) {
  if (total == NONE) return minus ? scl_tape_unary(r->to, SCL_OP_NEG, x) : x;
  return scl_tape_binary(r->to, minus ? SCL_OP_SUB : SCL_OP_ADD, total, x);
}

static int one_by_one(scl_roll *r, int total, const scl_roll_term *term, int count) {
  for (int k = 0; k < count; k++) {
    total = plus(r, total, scl_roll_whole(r, term[k].node), term[k].minus);
  }
  return total;
}

/* The sum of single numbers, in any order: elements that occur several times have weights. */
static int total_of(scl_roll *r, scl_roll_source *s, size_t count) {
  size_t some = 0;
  double *weight = malloc((count + 1) * sizeof *weight);
  if (weight == NULL) {
    scl_tape_fail(r->to, scl_fail_memory(count * sizeof *weight, 0, "a program"));
    return 0;
  }
  qsort(s, count, sizeof *s, scl_roll_by_source);
  for (size_t k = 0; k < count; k++) {
    if (k > 0 && scl_roll_by_source(&s[k], &s[some - 1]) == 0) {
      weight[some - 1] += 1.0;
    } else {
      s[some] = s[k];
      weight[some++] = 1.0;
    }
  }
  int x = scl_roll_gather(r, s, some);
  if (some == 1) {
    x = scl_tape_binary(r->to, SCL_OP_MUL, x, scl_tape_number(r->to, weight[0]));
  } else if (some < count) {
    const int w = scl_roll_data(r, weight, some);
    x = scl_tape_binary(r->to, SCL_OP_MUL, x, scl_tape_data_value(r->to, w));
    weight = NULL;
  }
  free(weight);
  return scl_roll_failed(r) ? 0 : scl_tape_reduce(r->to, SCL_REDUCE_SUM, x, some, 1, SCL_TOTAL);
}

static int add_numbers(scl_roll *r, const scl_roll_source *s, size_t count) {
  double sum = 0.0;
  for (size_t k = 0; k < count; k++) sum += s[k].number;
  return scl_tape_number(r->to, sum);
}

/* A group of one sum, whose terms have `length` elements. */
static int add_group(scl_roll *r, int total, const scl_roll_term *term, const group *g,
                     size_t length) {
  const size_t width = (size_t)g->width;
  scl_roll_source *s = scl_roll_room(r, width * length, sizeof *s);
  if (s == NULL) return 0;
  for (size_t k = 0; k < width; k++) {
    for (size_t e = 0; e < length; e++) {
      s[k * length + e] = scl_roll_source_of(r, scl_roll_at(r, term[k].node, e));
    }
  }
  bool numbers = length == 1;
  for (size_t k = 0; k < width && numbers; k++) numbers = s[k].value == NONE;
  if (numbers) return plus(r, total, add_numbers(r, s, width), g->minus);
  if (length == 1 && scl_roll_all_same(s, width))
    return plus(r, total, total_of(r, s, width), g->minus);
  if (width < SCL_ROLL_FEWEST || scl_roll_gather_cost(r, s, width * length) >= SCL_ROLL_TOO_MUCH) {
    return one_by_one(r, total, term, g->width);
  }
  if (length == 1) return plus(r, total, total_of(r, s, width), g->minus);
  const int x = scl_tape_fill(r->to, scl_roll_gather(r, s, width * length), width * length);
  if (scl_roll_failed(r)) return 0;
  return plus(r, total, scl_tape_reduce(r->to, SCL_REDUCE_SUM, x, length, width, SCL_BY_ROW),
              g->minus);
}

static void put_alone(scl_roll *r, int sum) {
  int groups, total = NONE;
  const group *g = find_groups(r, sum, &groups);
  const size_t length = scl_tape_length(r->from, sum);
  for (int k = 0; g != NULL && k < groups && !scl_roll_failed(r); k++) {
    total = add_group(r, total, r->term[sum] + g[k].first, &g[k], length);
  }
  if (scl_roll_failed(r)) return;
  const bool one = scl_tape_length(r->to, total) == 1;
  r->place[sum] = (scl_roll_place){total, 0, !one || length == 1};
}

/* ---- several sums -----------------------------------------------------------------------------
 */

/* Terms `from` to `from` + width - 1 of all members, a row for each member. */
static scl_roll_source *sources(scl_roll *r, const int *member, int count, int from, int width) {
  scl_roll_source *s = scl_roll_room(r, (size_t)count * (size_t)width, sizeof *s), *to = s;
  for (int k = from; k < from + width && s != NULL; k++) {
    for (int i = 0; i < count; i++) {
      *to++ = scl_roll_source_of(r, scl_roll_at(r, r->term[member[i]][k].node, 0));
    }
  }
  return s;
}

static bool are_alike(scl_roll *r, const int *member, int count, const group *g, int groups) {
  for (int i = 1; i < count; i++) {
    int others;
    const group *h = find_groups(r, member[i], &others);
    if (h == NULL || others != groups) return false;
    for (int k = 0; k < groups; k++) {
      if (h[k].width != g[k].width || h[k].sig != g[k].sig || h[k].minus != g[k].minus)
        return false;
    }
  }
  return true;
}

static bool put_together(scl_roll *r, const int *member, int count) {
  int groups, total = NONE;
  if (count < SCL_ROLL_FEWEST || scl_tape_length(r->from, member[0]) != 1) return false;
  const group *g = find_groups(r, member[0], &groups);
  if (g == NULL || !are_alike(r, member, count, g, groups)) return false;
  scl_roll_source **s = scl_roll_room(r, (size_t)groups, sizeof *s);
  for (int k = 0; k < groups; k++) {
    const size_t all = (size_t)count * (size_t)g[k].width;
    if (s == NULL) return false;
    s[k] = sources(r, member, count, g[k].first, g[k].width);
    if (s[k] == NULL || scl_roll_gather_cost(r, s[k], all) >= SCL_ROLL_TOO_MUCH) return false;
  }
  for (int k = 0; k < groups && !scl_roll_failed(r); k++) {
    const size_t width = (size_t)g[k].width, all = (size_t)count * width;
    int x = scl_roll_gather(r, s[k], all);
    if (width > 1) {
      x = scl_tape_fill(r->to, x, all);
      if (scl_roll_failed(r)) return false;
      x = scl_tape_reduce(r->to, SCL_REDUCE_SUM, x, (size_t)count, width, SCL_BY_ROW);
    }
    total = plus(r, total, x, g[k].minus);
  }
  if (scl_roll_failed(r)) return false;
  const bool one = scl_tape_length(r->to, total) == 1;
  for (int i = 0; i < count; i++) {
    r->place[member[i]] = (scl_roll_place){total, one ? 0 : (size_t)i, !one};
  }
  return true;
}

static void put_all(scl_roll *r, const int *member, int count) {
  if (put_together(r, member, count)) return;
  for (int i = 0; i < count && !scl_roll_failed(r); i++) put_alone(r, member[i]);
}

typedef struct {
  int number, node;
} numbered;

static int by_number(const void *a, const void *b) {
  const numbered *x = a, *y = b;
  return x->number != y->number ? (x->number < y->number ? -1 : 1) : x->node - y->node;
}

/* Equal sums are computed once if these are many. */
void scl_roll_put_sums(scl_roll *r, const int *member, int count) {
  numbered *n = scl_roll_room(r, (size_t)count, sizeof *n);
  int *once = scl_roll_room(r, (size_t)count, sizeof *once), some = 0;
  if (n == NULL || once == NULL) return;
  for (int i = 0; i < count; i++) n[i] = (numbered){r->number[member[i]], member[i]};
  qsort(n, (size_t)count, sizeof *n, by_number);
  for (int i = 0; i < count; i++) {
    if (i == 0 || n[i].number != n[i - 1].number) once[some++] = n[i].node;
  }
  if (2 * some > count) {
    put_all(r, member, count);
    return;
  }
  put_all(r, once, some);
  for (int i = 0, k = -1; i < count && !scl_roll_failed(r); i++) {
    k += i == 0 || n[i].number != n[i - 1].number;
    r->place[n[i].node] = r->place[once[k]];
  }
}
