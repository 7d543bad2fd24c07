/* The driver: finds views, sums and loops of the recorded tape, then takes its roots by height.
 * Roots of one height do not depend on each other; those with one signature become one operation.
 */
#include "program/roll.h"

#include <stdlib.h>
#include <string.h>

#include "program/facts.h"
#include "program/roll_parts.h"

enum { NONE = SCL_ROLL_NONE };

/* ---- what is not needed any more ----------------------------------------------------------------
 */

static void need(const scl_roll *r, bool *needed, int x) {
  const scl_roll_view *v = &r->view[x];
  const size_t n = v->root == NONE ? scl_tape_length(r->from, x) : 0;
  if (v->root != NONE) needed[v->root] = true;
  for (size_t k = 0; k < n; k++) needed[v->list[k].root] = true;
}

static void need_inputs(bool *needed, const scl_roll_loop *l) {
  const size_t numbers = (size_t)l->xs * (size_t)l->count;
  for (int k = 0; k < l->states; k++) needed[l->state[k].init.root] = true;
  for (int k = 0; k < l->fixeds; k++) needed[l->fixed[k].root] = true;
  for (size_t k = 0; k < numbers; k++) needed[l->x[k].root] = true;
}

/* A loop reads one of several equal inputs: what computes only the others is not live. */
static void drop_unread(scl_roll *r) {
  bool *needed = r->loops > 0 ? scl_roll_room(r, (size_t)r->nodes, sizeof *needed) : NULL;
  if (needed == NULL) return;
  need(r, needed, r->output);
  for (int k = 0; k < r->loops; k++) need_inputs(needed, &r->loop[k]);
  for (int v = r->nodes - 1; v >= 0; v--) {
    const scl_value *value = scl_roll_value(r, v);
    if (r->role[v] == SCL_ROLL_SCANNED || r->role[v] == SCL_ROLL_INSIDE) continue;
    r->live[v] = r->live[v] && (needed[v] || value->operands == 0);
    if (!r->live[v]) continue;
    for (int k = 0; k < r->terms[v]; k++) need(r, needed, r->term[v][k].node);
    for (int k = 0; k < value->operands && r->role[v] != SCL_ROLL_SUM; k++) {
      need(r, needed, scl_tape_operand(r->from, v, k));
    }
  }
}

/* ---- heights ----------------------------------------------------------------------------------
 */

static int height_of(const scl_roll *r, int x) {
  const scl_roll_view *v = &r->view[x];
  if (v->root != NONE) return r->height[v->root];
  int height = 0;
  for (size_t k = 0; k < scl_tape_length(r->from, x); k++) {
    if (r->height[v->list[k].root] > height) height = r->height[v->list[k].root];
  }
  return height;
}

static void raise(int *height, int other) {
  if (other >= *height) *height = other + 1;
}

static int height_of_root(const scl_roll *r, int v) {
  int height = 0;
  if (r->role[v] == SCL_ROLL_SCANNED) return r->loop[r->loop_of[v]].height;
  if (r->after[v] != NONE) raise(&height, r->loop[r->after[v]].height);
  if (r->role[v] == SCL_ROLL_SUM) {
    for (int k = 0; k < r->terms[v]; k++) raise(&height, height_of(r, r->term[v][k].node));
    return height;
  }
  for (int k = 0; k < scl_roll_value(r, v)->operands; k++) {
    raise(&height, height_of(r, scl_tape_operand(r->from, v, k)));
  }
  return height;
}

static int height_of_loop(const scl_roll *r, const scl_roll_loop *l) {
  int height = 0;
  for (int k = 0; k < l->states; k++) raise(&height, r->height[l->state[k].init.root]);
  for (int k = 0; k < l->fixeds; k++) raise(&height, r->height[l->fixed[k].root]);
  const size_t numbers = (size_t)l->xs * (size_t)l->count;
  for (size_t k = 0; k < numbers; k++) raise(&height, r->height[l->x[k].root]);
  return height;
}

static bool is_put(const scl_roll *r, int v) {
  return scl_roll_value(r, v)->kind != SCL_VALUE_NUMBER && r->role[v] != SCL_ROLL_SCANNED &&
         r->role[v] != SCL_ROLL_READ;
}

/* This takes several passes, since inputs of a scan may be recorded after its first results. False
 * if heights do not settle, which does not happen. */
static bool find_heights(scl_roll *r) {
  bool changed = true;
  for (int pass = 0; pass < r->loops + 3 && changed; pass++) {
    changed = false;
    for (int v = 0; v < r->nodes; v++) {
      if (!r->live[v] || r->role[v] == SCL_ROLL_INSIDE) continue;
      const int height = height_of_root(r, v);
      changed = changed || height != r->height[v];
      r->height[v] = height;
    }
    for (int k = 0; k < r->loops; k++) {
      const int height = height_of_loop(r, &r->loop[k]);
      changed = changed || height != r->loop[k].height;
      r->loop[k].height = height;
    }
  }
  return !changed;
}

/* ---- signatures -------------------------------------------------------------------------------
 */

/* The first use of a root, which distinguishes the statements of an iteration. */
static uint64_t use_of(const scl_roll *r, int v) {
  const int user = r->user[v];
  if (user == NONE) return 0;
  if (r->top[user] != NONE && r->role[user] != SCL_ROLL_SCANNED) return 1;
  for (int k = 0; k < scl_roll_value(r, user)->operands; k++) {
    const int x = scl_tape_operand(r->from, user, k), root = r->view[x].root;
    if (root == v || root == NONE) {
      return scl_tape_mix(r->local[user], (uint64_t)(root == NONE ? 9 : k));
    }
  }
  return 2;
}

/* For an operation that waits, a value before the first iteration counts as the result that takes
 * its place, so that the same operation on results is alike. */
static uint64_t sig_of_operand(const scl_roll *r, int v, int k) {
  const int x = scl_tape_operand(r->from, v, k);
  if (r->after[v] == NONE || scl_tape_length(r->from, x) != 1) return scl_roll_operand_sig(r, x);
  const int result = scl_roll_result_of(r, r->after[v], scl_roll_at(r, x, 0));
  return result == NONE ? scl_roll_operand_sig(r, x) : scl_tape_mix(r->sig[result], 1);
}

static uint64_t sig_of(const scl_roll *r, int v) {
  const scl_value *value = scl_roll_value(r, v);
  uint64_t hash = r->local[v];
  if (r->role[v] == SCL_ROLL_SCANNED) {
    const scl_roll_loop *l = &r->loop[r->loop_of[v]];
    return scl_tape_mix(scl_tape_mix(3, (uint64_t)r->loop_of[v]),
                        (uint64_t)((r->seq_at[v] - l->start) % l->period));
  }
  if (r->role[v] == SCL_ROLL_SUM) {
    uint64_t terms = 0; /* in any order */
    for (int k = 0; k < r->terms[v]; k++) {
      const scl_roll_term *t = &r->term[v][k];
      terms += scl_tape_mix(scl_roll_operand_sig(r, t->node), t->minus);
    }
    return scl_tape_mix(scl_tape_mix(hash, terms), use_of(r, v));
  }
  if (value->kind == SCL_VALUE_NUMBER) return 4;
  if (value->kind == SCL_VALUE_DATA) {
    return value->length > 256 ? hash : scl_tape_mix(5, value->length);
  }
  if (value->operands == 0) return hash;
  for (int k = 0; k < value->operands; k++) {
    hash = scl_tape_mix(hash, sig_of_operand(r, v, k));
  }
  return scl_tape_mix(hash, use_of(r, v));
}

/* ---- order ------------------------------------------------------------------------------------
 */

typedef struct {
  int height, node;
  bool sum;
  uint64_t sig;
} entry;

static int by_sig(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->sum != y->sum) return x->sum ? 1 : -1;
  if (x->sig != y->sig) return x->sig < y->sig ? -1 : 1;
  return x->node - y->node;
}

static int alike(const entry *e, int first, int count) {
  int n = 1;
  while (first + n < count && e[first + n].height == e[first].height &&
         e[first + n].sum == e[first].sum && e[first + n].sig == e[first].sig) {
    n++;
  }
  return n;
}

/* Short vectors of data, one for each iteration, are read as single numbers. */
static void read_short_data(scl_roll *r, const entry *e, int count) {
  for (int k = 0; k < count;) {
    const int n = alike(e, k, count);
    int different = 0;
    for (int i = k; i < k + n; i++) different += r->number[e[i].node] == e[i].node;
    for (int i = k; i < k + n && different >= SCL_ROLL_FEWEST; i++) {
      if (scl_roll_value(r, e[i].node)->kind == SCL_VALUE_DATA) r->role[e[i].node] = SCL_ROLL_READ;
    }
    k += n;
  }
}

/* All live roots by height. */
static entry *list_roots(scl_roll *r, int *count) {
  int highest = 0;
  for (int v = 0; v < r->nodes; v++) highest = r->height[v] > highest ? r->height[v] : highest;
  entry *e = scl_roll_room(r, (size_t)r->nodes, sizeof *e);
  int *next = scl_roll_room(r, (size_t)highest + 2, sizeof *next);
  if (e == NULL || next == NULL) return NULL;
  for (int v = 0; v < r->nodes; v++) {
    if (r->live[v] && r->role[v] != SCL_ROLL_INSIDE) next[r->height[v] + 1]++;
  }
  for (int h = 0; h <= highest; h++) next[h + 1] += next[h];
  *count = next[highest + 1];
  for (int v = r->nodes - 1; v >= 0; v--) {
    if (!r->live[v] || r->role[v] == SCL_ROLL_INSIDE) continue;
    e[--next[r->height[v] + 1]] = (entry){r->height[v], v, r->role[v] == SCL_ROLL_SUM, 0};
  }
  return e;
}

/* All live roots by height, then by signature; those of scans and within sums have signatures only.
 */
static entry *sort_roots(scl_roll *r, int *count) {
  int kept = 0;
  entry *e = list_roots(r, count);
  if (e == NULL) return NULL;
  for (int k = 0; k < *count; k++) r->sig[e[k].node] = e[k].sig = sig_of(r, e[k].node);
  for (int k = 0, n; k < *count; k += n) {
    for (n = 1; k + n < *count && e[k + n].height == e[k].height;) n++;
    qsort(e + k, (size_t)n, sizeof *e, by_sig);
  }
  read_short_data(r, e, *count);
  for (int k = 0; k < *count; k++) {
    if (is_put(r, e[k].node)) e[kept++] = e[k];
  }
  *count = kept;
  return e;
}

static bool has_many_alike(const scl_roll *r, int sum) {
  int best = 0;
  for (int k = 0, run = 0; k < r->terms[sum]; k++) {
    const int last = k > 0 ? r->term[sum][k - 1].node : NONE;
    const bool same =
        k > 0 && scl_roll_operand_sig(r, last) == scl_roll_operand_sig(r, r->term[sum][k].node);
    run = same ? run + 1 : 1;
    if (run > best) best = run;
  }
  return best >= SCL_ROLL_FEWEST;
}

/* Whether anything repeats; all other programs stay as they were recorded. */
static bool is_worth(const scl_roll *r, const entry *e, int count) {
  if (r->loops > 0) return true;
  for (int k = 0; k < count;) {
    const int n = alike(e, k, count), kind = scl_roll_value(r, e[k].node)->kind;
    const bool joins =
        kind == SCL_VALUE_APPLY || kind == SCL_VALUE_REDUCE || kind == SCL_VALUE_MATMUL;
    if (joins && n >= SCL_ROLL_FEWEST) return true;
    if (e[k].sum && has_many_alike(r, e[k].node)) return true;
    k += n;
  }
  return false;
}

static void put_loops(scl_roll *r, int below) {
  for (int k = 0; k < r->loops; k++) {
    if (!r->loop[k].done && r->loop[k].height < below) scl_roll_put_loop(r, &r->loop[k]);
  }
}

static void put_roots(scl_roll *r, const entry *e, int count) {
  int *member = scl_roll_room(r, (size_t)count, sizeof *member);
  if (member == NULL) return;
  for (int k = 0; k < count && !scl_roll_failed(r) && !r->broken;) {
    const int n = alike(e, k, count);
    put_loops(r, e[k].height);
    for (int i = 0; i < n; i++) member[i] = e[k + i].node;
    if (e[k].sum) {
      scl_roll_put_sums(r, member, n);
    } else {
      scl_roll_put_class(r, member, n);
    }
    k += n;
  }
  if (!r->broken) put_loops(r, INT32_MAX);
}

/* ---- all --------------------------------------------------------------------------------------
 */

static void list_operations(scl_roll *r) {
  for (int v = 0; v < r->nodes; v++) {
    r->seq_at[v] = NONE;
    if (!r->live[v] || scl_roll_value(r, v)->operands == 0) continue;
    r->seq_at[v] = r->operations;
    r->seq[r->operations++] = v;
  }
}

static bool begin(scl_roll *r) {
  const size_t n = (size_t)r->nodes;
  r->view = scl_roll_room(r, n, sizeof *r->view);
  r->place = scl_roll_room(r, n, sizeof *r->place);
  r->role = scl_roll_room(r, n, sizeof *r->role);
  r->live = scl_roll_room(r, n, sizeof *r->live);
  r->uses = scl_roll_room(r, n, sizeof *r->uses);
  r->user = scl_roll_room(r, n, sizeof *r->user);
  r->local = scl_roll_room(r, n, sizeof *r->local);
  r->number = scl_roll_room(r, n, sizeof *r->number);
  r->height = scl_roll_room(r, n, sizeof *r->height);
  r->sig = scl_roll_room(r, n, sizeof *r->sig);
  r->term = scl_roll_room(r, n, sizeof *r->term);
  r->terms = scl_roll_room(r, n, sizeof *r->terms);
  r->top = scl_roll_room(r, n, sizeof *r->top);
  r->loop_of = scl_roll_room(r, n, sizeof *r->loop_of);
  r->after = scl_roll_room(r, n, sizeof *r->after);
  r->seq = scl_roll_room(r, n, sizeof *r->seq);
  r->seq_at = scl_roll_room(r, n, sizeof *r->seq_at);
  bool countable = true; /* elements have numbers of type int */
  for (int v = 0; v < r->nodes && !scl_roll_failed(r); v++) {
    r->place[v].value = NONE;
    countable = countable && scl_tape_length(r->from, v) <= INT32_MAX;
  }
  return countable && !scl_roll_failed(r);
}

/* The result; negative if nothing is rolled. */
static int roll(scl_roll *r) {
  int count = 0;
  if (!begin(r)) return NONE;
  scl_roll_find_views(r);
  if (scl_roll_failed(r)) return NONE;
  scl_roll_find_uses(r);
  scl_roll_find_equal(r);
  list_operations(r);
  scl_roll_find_sums(r);
  if (scl_roll_failed(r)) return NONE;
  scl_roll_find_loops(r);
  drop_unread(r);
  scl_roll_find_inits(r);
  if (scl_roll_failed(r) || !find_heights(r)) return NONE;
  const entry *e = sort_roots(r, &count);
  if (e == NULL || !is_worth(r, e, count)) return NONE;
  put_roots(r, e, count);
  if (scl_roll_failed(r) || r->broken) return NONE;
  const int result = scl_roll_whole(r, r->output);
  return scl_roll_failed(r) || r->broken ? NONE : result;
}

/* The recorded operations one by one. */
static int repeat_all(scl_tape *from, int output, scl_tape *to) {
  const int most = scl_tape_most_operands(from, output + 1);
  int *copy = malloc(((size_t)output + 1) * sizeof *copy);
  int *operand = malloc(((size_t)most + 1) * sizeof *operand);
  if (copy == NULL || operand == NULL) {
    scl_tape_fail(to, scl_fail_memory((size_t)output * sizeof *copy, 0, "a program"));
  }
  for (int v = 0; v <= output && to->status == SCL_OK; v++) {
    const scl_value *w = &from->value[v];
    for (int k = 0; k < w->operands; k++) operand[k] = copy[scl_tape_operand(from, v, k)];
    copy[v] =
        scl_tape_add(to, (scl_value_kind)w->kind, w->op, w->operands, operand, w->at, w->number);
  }
  const int result = to->status == SCL_OK ? copy[output] : 0;
  free(copy);
  free(operand);
  return result;
}

static void exchange_bodies(scl_tape *from, scl_tape *to) {
  struct scl_scan_body **body = from->body;
  const int bodies = from->bodies, room = from->bodies_room;
  from->body = to->body;
  from->bodies = to->bodies;
  from->bodies_room = to->bodies_room;
  to->body = body;
  to->bodies = bodies;
  to->bodies_room = room;
}

/* An empty tape with the data and the bodies of the recorded one, of which it has `bodies`. */
static void begin_again(scl_tape *from, int bodies, scl_tape *to) {
  while (to->bodies > bodies) scl_tape_drop_body(to);
  exchange_bodies(to, from);
  scl_tape_end(to);
  exchange_bodies(from, to);
  scl_tape_borrow_data(to, from);
}

void scl_tape_roll(scl_tape *from, int output, scl_tape *to, int *result) {
  scl_roll r = {.from = from, .to = to, .nodes = output + 1, .output = output};
  const int bodies = from->bodies;
  if (scl_tape_fail(to, from->status)) return;
  exchange_bodies(from, to);
  scl_tape_borrow_data(to, from);
  r.own_first = to->data_used;
  *result = to->status == SCL_OK ? roll(&r) : NONE;
  for (int k = 0; k < r.holds; k++) free(r.held[k]);
  free(r.held);
  if (*result >= 0) return;
  if (to->status == SCL_E_MEMORY) {
    *result = 0;
    return;
  }
  begin_again(from, bodies, to);
  *result = repeat_all(from, output, to);
}
