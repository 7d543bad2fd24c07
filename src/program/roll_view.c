/* Views of recorded values, live roots and their signatures. */
#include "program/facts.h"
#include "program/roll_parts.h"

#include <stdlib.h>
#include <string.h>

/* A value that moves elements is listed, a number for each, so that loops over its elements are
 * seen through: up to SHORT elements, or if it joins MANY_OPERANDS or more short parts, as a loop
 * that writes elements does. A list of a longer one takes memory and shows no loop. */
enum { SHORT = 1024, MANY_OPERANDS = 4 };

void *scl_roll_room(scl_roll *r, size_t count, size_t size) {
  if (scl_roll_failed(r)) return NULL;
  if (!scl_tape_grow(r->to, &r->held, &r->hold_room, r->holds, 1, sizeof *r->held)) return NULL;
  void *room = calloc(count + 1, size);
  if (room == NULL) {
    scl_tape_fail(r->to, scl_fail_memory(count * size, 0, "a program"));
    return NULL;
  }
  r->held[r->holds++] = room;
  return room;
}

bool scl_roll_failed(const scl_roll *r) {
  return r->to->status != SCL_OK;
}

/* ---- views ---------------------------------------------------------------------------------- */

bool scl_roll_is_move(const scl_roll *r, int node) {
  switch ((scl_value_kind)scl_roll_value(r, node)->kind) {
  case SCL_VALUE_BROADCAST:
  case SCL_VALUE_TRANSPOSE:
  case SCL_VALUE_PART:
  case SCL_VALUE_GATHER:
  case SCL_VALUE_CONCAT:
    return true;
  default:
    return false;
  }
}

scl_roll_element scl_roll_at(const scl_roll *r, int node, size_t k) {
  const scl_roll_view *v = &r->view[node];
  if (v->root == SCL_ROLL_NONE) return v->list[k];
  return (scl_roll_element){v->root, (int)(v->from + k * v->step)};
}

/* The view of every `step`-th element of an operand, which may be a view itself. */
static bool strided(scl_roll *r, int node, int x, size_t from, size_t step) {
  const scl_roll_view *of = &r->view[x];
  if (of->root == SCL_ROLL_NONE) return false;
  r->view[node] = (scl_roll_view){of->root, of->from + from * of->step, step * of->step, NULL};
  return true;
}

static bool part_view(scl_roll *r, int node) {
  const size_t *at = scl_roll_value(r, node)->at;
  const size_t from = at[1] + at[2] * at[0];
  if (at[3] * at[4] == 0) return false;
  if (at[4] == 1) return strided(r, node, scl_tape_operand(r->from, node, 0), from, 1);
  return at[3] == 1 && strided(r, node, scl_tape_operand(r->from, node, 0), from, at[0]);
}

static void list_concat(scl_roll *r, int node, scl_roll_element *to) {
  for (int k = 0; k < scl_roll_value(r, node)->operands; k++) {
    const int x = scl_tape_operand(r->from, node, k);
    const size_t n = scl_tape_length(r->from, x);
    for (size_t i = 0; i < n; i++) *to++ = scl_roll_at(r, x, i);
  }
}

static void fill_list(scl_roll *r, int node, scl_roll_element *to) {
  const scl_value *v = scl_roll_value(r, node);
  if (v->kind == SCL_VALUE_CONCAT) {
    list_concat(r, node, to);
    return;
  }
  const int x = scl_tape_operand(r->from, node, 0);
  if (v->kind == SCL_VALUE_GATHER) {
    scl_tape_data *index = &r->to->data[v->at[0]];
    index->assumed |= SCL_DATA_READ;
    for (size_t k = 0; k < v->length; k++) to[k] = scl_roll_at(r, x, (size_t)index->numbers[k]);
    return;
  }
  size_t m, n;
  scl_value_view_shape(v, &m, &n);
  for (size_t k = 0; k < v->length; k++) {
    to[k] = scl_roll_at(r, x, scl_value_view_element(v, k % m, k / m));
  }
}

/* Whether the view of a value that moves elements is kept as a list of them. */
static bool is_listed(const scl_roll *r, int node) {
  const scl_value *v = scl_roll_value(r, node);
  if (v->length <= SHORT) return true;
  if (v->kind == SCL_VALUE_CONCAT) {
    return v->operands >= MANY_OPERANDS && v->length < 64 * (size_t)v->operands;
  }
  return r->view[scl_tape_operand(r->from, node, 0)].root == SCL_ROLL_NONE;
}

void scl_roll_find_views(scl_roll *r) {
  for (int v = 0; v < r->nodes && !scl_roll_failed(r); v++) {
    r->view[v] = (scl_roll_view){v, 0, 1, NULL};
    if (!scl_roll_is_move(r, v)) continue;
    if (scl_roll_value(r, v)->kind == SCL_VALUE_PART && part_view(r, v)) continue;
    if (!is_listed(r, v)) continue;
    scl_roll_element *list = scl_roll_room(r, scl_roll_value(r, v)->length, sizeof *list);
    if (list == NULL) return;
    fill_list(r, v, list);
    r->view[v] = (scl_roll_view){SCL_ROLL_NONE, 0, 1, list};
  }
}

/* ---- uses ----------------------------------------------------------------------------------- */

static void use(scl_roll *r, int user, int x) {
  const scl_roll_view *view = &r->view[x];
  const size_t n = scl_tape_length(r->from, x);
  int last = SCL_ROLL_NONE;
  for (size_t i = 0; i < n; i++) {
    const int root = view->root != SCL_ROLL_NONE ? view->root : view->list[i].root;
    if (root != last) {
      r->live[root] = true;
      r->uses[root]++;
      r->user[root] = user;
    }
    last = root;
    if (view->root != SCL_ROLL_NONE) return;
  }
}

void scl_roll_find_uses(scl_roll *r) {
  use(r, SCL_ROLL_NONE, r->output);
  for (int v = r->nodes - 1; v >= 0; v--) {
    if (!r->live[v] || !scl_roll_is_root(r, v)) continue;
    for (int k = 0; k < scl_roll_value(r, v)->operands; k++) {
      use(r, v, scl_tape_operand(r->from, v, k));
    }
  }
}

/* ---- equal values -----------------------------------------------------------------------------
 */

static uint64_t local_sig(const scl_roll *r, int node) {
  const scl_value *v = scl_roll_value(r, node);
  uint64_t hash = scl_tape_hash(v);
  for (int k = 0; k < v->operands; k++) {
    hash = scl_tape_mix(hash, scl_tape_length(r->from, scl_tape_operand(r->from, node, k)));
  }
  return hash;
}

static uint64_t mix_operand(const scl_roll *r, uint64_t hash, int x) {
  const scl_roll_view *v = &r->view[x];
  const size_t n = scl_tape_length(r->from, x);
  if (v->root != SCL_ROLL_NONE) {
    hash = scl_tape_mix(scl_tape_mix(hash, (uint64_t)r->number[v->root]), v->from);
    return scl_tape_mix(scl_tape_mix(hash, v->step), n);
  }
  for (size_t k = 0; k < n; k++) {
    const scl_roll_element e = v->list[k];
    hash = scl_tape_mix(scl_tape_mix(hash, (uint64_t)r->number[e.root]), (uint64_t)e.at);
  }
  return hash;
}

static bool equal_operands(const scl_roll *r, int x, int y) {
  const scl_roll_view *v = &r->view[x], *w = &r->view[y];
  const size_t n = scl_tape_length(r->from, x);
  if (n != scl_tape_length(r->from, y)) return false;
  if (v->root != SCL_ROLL_NONE && w->root != SCL_ROLL_NONE) {
    return r->number[v->root] == r->number[w->root] && v->from == w->from && v->step == w->step;
  }
  for (size_t k = 0; k < n; k++) {
    const scl_roll_element a = scl_roll_at(r, x, k), b = scl_roll_at(r, y, k);
    if (r->number[a.root] != r->number[b.root] || a.at != b.at) return false;
  }
  return true;
}

static bool equal_roots(const scl_roll *r, int a, int b) {
  const scl_value *v = scl_roll_value(r, a), *w = scl_roll_value(r, b);
  if (!scl_roll_same_operation(r, a, b)) return false;
  if (memcmp(&v->number, &w->number, sizeof v->number) != 0) return false;
  for (int k = 0; k < v->operands; k++) {
    if (!equal_operands(r, scl_tape_operand(r->from, a, k), scl_tape_operand(r->from, b, k))) {
      return false;
    }
  }
  return true;
}

void scl_roll_find_equal(scl_roll *r) {
  size_t buckets = 64;
  while (buckets < 2 * (size_t)r->nodes) buckets *= 2;
  int *bucket = scl_roll_room(r, buckets, sizeof *bucket); /* 1 + the root */
  if (bucket == NULL) return;
  for (int v = 0; v < r->nodes; v++) {
    r->number[v] = v;
    if (!r->live[v]) continue;
    r->local[v] = local_sig(r, v);
    uint64_t hash = scl_tape_mix_number(r->local[v], scl_roll_value(r, v)->number);
    for (int k = 0; k < scl_roll_value(r, v)->operands; k++) {
      hash = mix_operand(r, hash, scl_tape_operand(r->from, v, k));
    }
    size_t at = (size_t)hash & (buckets - 1);
    while (bucket[at] != 0 && !equal_roots(r, bucket[at] - 1, v)) at = (at + 1) & (buckets - 1);
    if (bucket[at] == 0) bucket[at] = v + 1;
    r->number[v] = bucket[at] - 1;
  }
}

/* ---- signatures ----------------------------------------------------------------------------- */

bool scl_roll_same_operation(const scl_roll *r, int a, int b) {
  const scl_value *v = scl_roll_value(r, a), *w = scl_roll_value(r, b);
  if (!scl_tape_alike(v, w)) return false;
  for (int k = 0; k < v->operands; k++) {
    if (scl_tape_length(r->from, scl_tape_operand(r->from, a, k)) !=
        scl_tape_length(r->from, scl_tape_operand(r->from, b, k))) {
      return false;
    }
  }
  return true;
}

uint64_t scl_roll_operand_sig(const scl_roll *r, int node) {
  const scl_roll_view *v = &r->view[node];
  const size_t n = scl_tape_length(r->from, node);
  if (v->root != SCL_ROLL_NONE) return scl_tape_mix(r->sig[v->root], n);
  uint64_t hash = 0, last = 0;
  for (size_t k = 0; k < n; k++) {
    if (k == 0 || r->sig[v->list[k].root] != last)
      hash = scl_tape_mix(hash, r->sig[v->list[k].root]);
    last = r->sig[v->list[k].root];
  }
  return n == 1 ? scl_tape_mix(last, n) : scl_tape_mix(hash, n);
}
