/* Iterations that need those before them. A loop is recorded as windows of operations that repeat.
 * The positions that lie on a circle of uses over iterations, or between two such circles, become
 * the step of a scan; everything else is left to roll_class.c.
 *
 * One step stands for all iterations if each position has the same operation in all of them, and
 * each operand has the same source in all of them:
 *   an element of another position, in the same iteration or a fixed number of iterations earlier
 *   (the first iterations, which have no earlier one, read a starting value); or
 *   an element that no position of the step computes.
 * This is compared iteration by iteration. */
#include "program/roll_parts.h"

#include <string.h>

#include "program/scan.h"

enum {
  NONE = SCL_ROLL_NONE,
  WINDOW = 6,
  MOST_PERIOD = 1024,
  MOST_TRIES = 64,
  MOST_LOOPS = 64,
  MOST_REFUSED = 8
};
/* MOST_LAG: how far back a step reads a state; each step of lag is one more state to carry.
 * MOST_NUMBERS and MOST_PRODUCTS: numbers and multiplications of a step. Its code has a line for
 * each operation and its numbers are private memory; larger steps are long enough as vectors.
 * LEAST_WORK: the fewest operations of a scan. A rule by which loops of some thousands of numbers
 * stayed plain operations on the host helped single calls and made chains three times slower. */
enum { MOST_LAG = 16, MOST_NUMBERS = 2000, MOST_PRODUCTS = 4000, LEAST_WORK = 64 };

/* ---- what a window has of a node --------------------------------------------------------------
 */

typedef struct {
  scl_roll *r;
  scl_roll_loop *l;
  uint8_t *edge; /* [q * period + p]: p uses q */
  bool *kept;
} search;

static int node_at(const search *s, int iteration, int position) {
  return scl_roll_node_at(s->r, s->l, iteration, position);
}

/* The position of a root and its iteration; false outside of the loop. */
static bool find_position(const search *s, int root, int *position, int *iteration) {
  const int at = s->r->seq_at[root] - s->l->start;
  if (s->r->seq_at[root] < 0 || at < 0 || at >= s->l->length) return false;
  *position = at % s->l->period;
  *iteration = at / s->l->period;
  return true;
}

static bool in_body(const search *s, int root, int *position, int *iteration) {
  return find_position(s, root, position, iteration) && s->l->place[*position] != NONE;
}

static int operand(const search *s, int node, int k) {
  return scl_tape_operand(s->r->from, node, k);
}

/* ---- the positions of the step -----------------------------------------------------------------
 */

/* Sums over iterations are no recursions (roll_sums.c). */
static bool is_total(const search *s, int node, int iteration) {
  int p, i;
  const int top = s->r->top[node];
  return top != NONE && (!find_position(s, top, &p, &i) || i != iteration);
}

static void find_totals(search *s) {
  for (int k = 0; k < s->l->length; k++) {
    const int i = k / s->l->period, p = k % s->l->period;
    if (is_total(s, node_at(s, i, p), i)) s->kept[p] = false;
  }
}

/* False if a position reads a sum over iterations that is not complete. */
static bool add_edges(search *s, int p, int x) {
  const bool listed = s->r->view[x].root == NONE;
  const size_t length = scl_tape_length(s->r->from, x), n = listed || length == 0 ? length : 1;
  for (size_t e = 0; e < n; e++) {
    int q, j;
    if (!find_position(s, scl_roll_at(s->r, x, e).root, &q, &j)) continue;
    if (s->kept[p] && !s->kept[q]) return false;
    s->edge[q * s->l->period + p] = 1;
  }
  return true;
}

static bool find_edges(search *s) {
  for (int n = 0; n < s->l->length; n++) {
    const int p = n % s->l->period, node = node_at(s, n / s->l->period, p);
    for (int k = 0; k < scl_roll_value(s->r, node)->operands; k++) {
      if (!add_edges(s, p, operand(s, node, k))) return false;
    }
  }
  return true;
}

/* Keeps only the positions that are on a circle, or on a way from one circle to another. */
static int trim(search *s) {
  const int period = s->l->period;
  int left = 0;
  bool changed = true;
  for (int pass = 0; changed || pass % 2 != 0; pass++) { /* forth and back */
    changed = pass % 2 != 0 && changed;
    left = 0;
    for (int n = 0; n < period; n++) {
      const int p = pass % 2 == 0 ? n : period - 1 - n;
      bool in = false, out = false;
      for (int q = 0; q < period && s->kept[p]; q++) {
        in = in || (s->kept[q] && s->edge[q * period + p]);
        out = out || (s->kept[q] && s->edge[p * period + q]);
      }
      if (s->kept[p] && !(in && out)) {
        s->kept[p] = false;
        changed = true;
      }
      left += s->kept[p];
    }
  }
  return left;
}

/* ---- operands of the step -----------------------------------------------------------------------
 */

static bool same_element(const scl_roll *r, scl_roll_element a, scl_roll_element b) {
  return r->number[a.root] == r->number[b.root] && a.at == b.at;
}

static void *longer(scl_roll *r, void *list, int used, int *room, size_t size) {
  if (used < *room) return list;
  void *next = scl_roll_room(r, 2 * (size_t)*room + 16, size);
  if (next == NULL) return NULL;
  if (used > 0) memcpy(next, list, (size_t)used * size);
  *room = 2 * *room + 16;
  return next;
}

/* The number of a state, which is added if it is new; NONE on failure. */
static int state_of(search *s, scl_roll_state wanted) {
  scl_roll_loop *l = s->l;
  for (int k = 0; k < l->states; k++) {
    scl_roll_state *state = &l->state[k];
    if (state->position != wanted.position || state->at != wanted.at || state->lag != wanted.lag) {
      continue;
    }
    if (wanted.init.root == NONE) return k;
    if (state->init.root == NONE) state->init = wanted.init;
    return same_element(s->r, state->init, wanted.init) ? k : NONE;
  }
  l->state = longer(s->r, l->state, l->states, &l->state_room, sizeof *l->state);
  if (l->state == NULL) return NONE;
  l->state[l->states] = wanted;
  return l->states++;
}

/* How many windows have the position. */
static int recorded(const search *s, int p) {
  return (s->l->length - p + s->l->period - 1) / s->l->period;
}

/* Element e of operand k at position p in iteration i. */
static scl_roll_element element(const search *s, int p, int k, size_t e, int i) {
  return scl_roll_at(s->r, operand(s, node_at(s, i, p), k), e);
}

static bool carried(search *s, int p, int k, size_t e, scl_roll_input *to) {
  const int count = recorded(s, p);
  const scl_roll_element last = element(s, p, k, e, count - 1);
  int q, j;
  in_body(s, last.root, &q, &j);
  const int lag = count - 1 - j;
  if (lag > MOST_LAG || lag >= count) return false;
  *to = (scl_roll_input){lag == 0 ? SCL_ROLL_OWN : SCL_ROLL_CARRIED, q, last.at, 0};
  for (int i = lag; i < count; i++) {
    const scl_roll_element x = element(s, p, k, e, i);
    if (x.root != node_at(s, i - lag, q) || x.at != last.at) return false;
  }
  if (lag == 0) return s->l->place[q] < s->l->place[p];
  for (int i = 0; i < lag; i++) {
    int b, c;
    const scl_roll_element x = element(s, p, k, e, i);
    if (in_body(s, x.root, &b, &c)) return false;
    if (state_of(s, (scl_roll_state){q, last.at, lag - i, x, false}) == NONE) return false;
  }
  to->number = state_of(s, (scl_roll_state){q, last.at, lag, {NONE, 0}, false});
  return to->number != NONE && s->l->states < MOST_NUMBERS;
}

static int fixed_of(search *s, scl_roll_element x) {
  scl_roll_loop *l = s->l;
  for (int k = 0; k < l->fixeds; k++) {
    if (l->fixed[k].root == x.root && l->fixed[k].at == x.at) return k;
  }
  l->fixed = longer(s->r, l->fixed, l->fixeds, &l->fixed_room, sizeof *l->fixed);
  if (l->fixed == NULL) return NONE;
  l->fixed[l->fixeds] = x;
  return l->fixeds++;
}

/* The number of an input with an element for each iteration. An iteration without the operation
 * repeats the element before, since nothing reads what becomes of it. */
static int x_of(search *s, int p, int k, size_t e) {
  scl_roll_loop *l = s->l;
  const size_t count = (size_t)l->count;
  const int known = recorded(s, p);
  for (int c = 0; c < l->xs; c++) {
    const scl_roll_element *x = l->x + (size_t)c * count;
    int i = 0;
    while (i < known && same_element(s->r, x[i], element(s, p, k, e, i))) i++;
    if (i == known) return c;
  }
  l->x = longer(s->r, l->x, l->xs, &l->x_room, count * sizeof *l->x);
  if (l->x == NULL) return NONE;
  scl_roll_element *x = l->x + (size_t)l->xs * count;
  for (int i = 0; i < l->count; i++) x[i] = i < known ? element(s, p, k, e, i) : x[i - 1];
  return l->xs++;
}

static bool given(search *s, int p, int k, size_t e, scl_roll_input *to) {
  const scl_roll_element first = element(s, p, k, e, 0);
  bool same = true;
  for (int i = 0; i < recorded(s, p); i++) {
    int q, j;
    const scl_roll_element x = element(s, p, k, e, i);
    if (in_body(s, x.root, &q, &j)) return false;
    same = same && same_element(s->r, x, first);
  }
  if (same && scl_roll_value(s->r, first.root)->kind == SCL_VALUE_NUMBER) {
    *to = (scl_roll_input){SCL_ROLL_NUMBER, NONE, 0, first.root};
    return true;
  }
  *to = (scl_roll_input){same ? SCL_ROLL_FIXED : SCL_ROLL_X, NONE, 0, 0};
  to->number = same ? fixed_of(s, first) : x_of(s, p, k, e);
  return to->number != NONE && s->l->xs + s->l->fixeds < MOST_NUMBERS;
}

/* All elements of the operands at a position, which is number b of the step. */
static bool find_inputs(search *s, int b) {
  scl_roll_loop *l = s->l;
  const int p = l->body[b], count = recorded(s, l->body[b]);
  const int node = node_at(s, count - 1, p);
  size_t elements = 0;
  for (int k = 0; k < scl_roll_value(s->r, node)->operands; k++) {
    elements += scl_tape_length(s->r->from, operand(s, node, k));
  }
  scl_roll_input *to = l->input[b] = scl_roll_room(s->r, elements, sizeof *to);
  if (to == NULL) return false;
  for (int i = 0; i < count; i++) {
    if (!scl_roll_same_operation(s->r, node_at(s, i, p), node)) return false;
  }
  for (int k = 0; k < scl_roll_value(s->r, node)->operands; k++) {
    const size_t n = scl_tape_length(s->r->from, operand(s, node, k));
    for (size_t e = 0; e < n; e++, to++) {
      int q, j;
      const bool own = in_body(s, element(s, p, k, e, count - 1).root, &q, &j);
      if (!(own ? carried(s, p, k, e, to) : given(s, p, k, e, to))) return false;
    }
  }
  return true;
}

/* Whether a step may have these operations, and this many. */
static bool is_small(const search *s) {
  size_t numbers = 0, products = 0;
  for (int b = 0; b < s->l->bodies; b++) {
    const int node = node_at(s, 0, s->l->body[b]);
    const scl_value *v = scl_roll_value(s->r, node);
    const bool large = v->kind == SCL_VALUE_LU || v->kind == SCL_VALUE_LU_SOLVE;
    if (!scl_scan_has_code((scl_value_kind)v->kind) || large) return false;
    if (scl_roll_is_move(s->r, node)) return false;
    if (v->kind == SCL_VALUE_SCATTER) return false;
    numbers += v->length;
    products += v->kind == SCL_VALUE_APPLY ? v->length : v->length * (v->at[0] + v->at[1]);
  }
  return numbers <= MOST_NUMBERS && products <= MOST_PRODUCTS;
}

/* Whether the last window has something of the step, and lacks only operations that cannot fail. */
static bool ends_well(const search *s) {
  bool some = false;
  for (int p = 0; p < s->l->period; p++) {
    const int kind = scl_roll_value(s->r, node_at(s, 0, p))->kind;
    const bool is_there = recorded(s, p) == s->l->count;
    some = some || (s->kept[p] && is_there);
    if (s->kept[p] && !is_there && kind != SCL_VALUE_APPLY && kind != SCL_VALUE_REDUCE)
      return false;
  }
  return some;
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* Whether the step's last state has all elements at a position. */
static bool is_last_state(const search *s, int position) {
  size_t found = 0;
  for (int k = 0; k < s->l->states; k++) {
    found += s->l->state[k].position == position && s->l->state[k].lag == 1;
  }
  return found == scl_roll_value(s->r, node_at(s, 0, position))->length;
}

static void note_output(search *s, int x) {
  const bool listed = s->r->view[x].root == NONE;
  const size_t n = scl_tape_length(s->r->from, x);
  for (size_t e = 0; e < n; e++) {
    const scl_roll_element from = scl_roll_at(s->r, x, e);
    int q, j;
    if (!in_body(s, from.root, &q, &j)) {
      if (!listed) return;
      continue;
    }
    if (j < s->l->count - 1 || !is_last_state(s, q)) s->l->out[s->l->place[q]] = 0;
  }
}

/* Which positions something outside of the step reads. */
static void find_outputs(search *s) {
  scl_roll_loop *l = s->l;
  for (int b = 0; b < l->bodies; b++) l->out[b] = NONE;
  note_output(s, s->r->output);
  for (int n = l->start; n < s->r->operations; n++) {
    const int node = s->r->seq[n];
    int q, j;
    if (in_body(s, node, &q, &j)) continue;
    for (int k = 0; k < scl_roll_value(s->r, node)->operands; k++)
      note_output(s, operand(s, node, k));
  }
  for (int b = 0; b < l->bodies; b++) {
    if (l->out[b] == NONE) continue;
    l->out[b] = l->outs;
    l->outs += (int)scl_roll_value(s->r, node_at(s, 0, l->body[b]))->length;
  }
}

/* ---- one loop ---------------------------------------------------------------------------------
 */

typedef enum { INDEPENDENT, CARRIED, REFUSED } verdict;

static verdict examine(search *s) {
  scl_roll_loop *l = s->l;
  const size_t period = (size_t)l->period;
  s->edge = scl_roll_room(s->r, period * period, 1);
  s->kept = scl_roll_room(s->r, period, 1);
  l->place = scl_roll_room(s->r, period, sizeof *l->place);
  if (s->edge == NULL || s->kept == NULL || l->place == NULL) return REFUSED;
  memset(s->kept, 1, period);
  find_totals(s);
  if (!find_edges(s)) return REFUSED;
  l->bodies = trim(s);
  if (l->bodies == 0) return INDEPENDENT;
  l->body = scl_roll_room(s->r, (size_t)l->bodies, sizeof *l->body);
  l->out = scl_roll_room(s->r, (size_t)l->bodies, sizeof *l->out);
  l->input = scl_roll_room(s->r, (size_t)l->bodies, sizeof *l->input);
  if (l->body == NULL || l->out == NULL || l->input == NULL) return REFUSED;
  int b = 0;
  for (int p = 0; p < l->period; p++) {
    l->place[p] = s->kept[p] ? b : NONE;
    if (s->kept[p]) l->body[b++] = p;
  }
  if (!ends_well(s) || !is_small(s)) return REFUSED;
  for (b = 0; b < l->bodies; b++) {
    if (!find_inputs(s, b)) return REFUSED;
  }
  if (l->states == 0 || l->count * l->bodies < LEAST_WORK) return REFUSED;
  find_outputs(s);
  return CARRIED;
}

static void take_loop(scl_roll *r, const scl_roll_loop *l) {
  for (int k = 0; k < l->length; k++) {
    if (l->place[k % l->period] == NONE) continue;
    r->role[r->seq[l->start + k]] = SCL_ROLL_SCANNED;
    r->loop_of[r->seq[l->start + k]] = r->loops;
  }
  r->loop[r->loops++] = *l;
}

/* ---- repetition -------------------------------------------------------------------------------
 */

typedef struct {
  uint64_t *local;
  int *next; /* the next place with the same operations, or NONE */
  int count;
} sequence;

static void find_next(scl_roll *r, sequence *q) {
  int buckets = 64;
  while (buckets < 2 * q->count) buckets *= 2;
  int *bucket = scl_roll_room(r, (size_t)buckets, sizeof *bucket); /* 1 + the place */
  uint64_t *hash = scl_roll_room(r, (size_t)q->count, sizeof *hash);
  if (bucket == NULL || hash == NULL) return;
  for (int s = q->count - 1; s >= 0; s--) {
    q->next[s] = NONE;
    if (s + WINDOW > q->count) continue;
    for (int k = 0; k < WINDOW; k++) hash[s] = scl_tape_mix(hash[s], q->local[s + k]);
    int at = (int)(hash[s] & (uint64_t)(buckets - 1));
    while (bucket[at] != 0 && hash[bucket[at] - 1] != hash[s]) at = (at + 1) & (buckets - 1);
    if (bucket[at] != 0) q->next[s] = bucket[at] - 1;
    bucket[at] = s + 1;
  }
}

/* How many operations repeat with this period. */
static int repeated(const sequence *q, int start, int period) {
  int n = period;
  while (start + n < q->count && q->local[start + n] == q->local[start + n - period]) n++;
  return n;
}

/* The same operations repeat wherever a window begins: where the last window ends with the last
 * operation that repeats; at the first place, without the operations behind the last whole window;
 * one iteration later, since the first one is often special; or at the first place, where the last
 * window may end early. Of steps with as few numbers, the last one if it has more iterations. */
static verdict examine_starts(scl_roll *r, int start, int period, int repeats) {
  const int rest = repeats % period;
  const struct {
    int shift;
    bool early;
  } at[] = {{rest, false}, {0, false}, {period, false}, {0, true}};
  scl_roll_loop best = {.count = 0};
  bool refused = false;
  for (int k = 0; k < 4; k++) {
    const bool seen = k > 0 && at[k].shift == 0 && rest == 0; /* the first one is the same */
    const int whole = (repeats - at[k].shift) / period;
    if (seen || whole < SCL_ROLL_FEWEST) continue;
    scl_roll_loop loop = {.start = start + at[k].shift,
                          .period = period,
                          .count = whole + at[k].early,
                          .length = at[k].early ? repeats : whole * period};
    search s = {.r = r, .l = &loop};
    const verdict found = examine(&s);
    if (found == INDEPENDENT) return INDEPENDENT;
    refused = refused || (found == REFUSED && !at[k].early);
    if (found != CARRIED) continue;
    const int numbers = loop.xs + loop.states, fewest = best.xs + best.states;
    const bool longer = numbers == fewest && loop.outs <= best.outs && loop.count > best.count;
    if (best.count == 0 || numbers < fewest || (at[k].early && longer)) best = loop;
  }
  if (best.count == 0) return refused ? REFUSED : INDEPENDENT;
  take_loop(r, &best);
  return CARRIED;
}

/* Tries the longest loop that begins here; if it is refused, others, such as one whose iterations
 * are several of these. Returns the number of operations that need no further attempt. */
static int try_loops(scl_roll *r, const sequence *q, int start) {
  int period[MOST_TRIES], repeats[MOST_TRIES], tries = 0, best = 0;
  for (int t = q->next[start]; t != NONE && tries < MOST_TRIES; t = q->next[t]) {
    const int p = t - start, n = p <= MOST_PERIOD ? repeated(q, start, p) : 0;
    if (n == 0) break;
    period[tries] = p;
    repeats[tries++] = n;
    if (n / p >= SCL_ROLL_FEWEST && n > best + best / 16) best = n;
  }
  for (int k = 0, refused = 0; k < tries && refused < MOST_REFUSED && best > 0; k++) {
    const bool is_long = repeats[k] >= best - best / 16;
    if (!is_long || repeats[k] / period[k] < SCL_ROLL_FEWEST) continue;
    if (examine_starts(r, start, period[k], repeats[k]) != REFUSED) return best;
    refused++;
  }
  if (best > 0 && repeats[0] < best && repeats[0] / period[0] >= SCL_ROLL_FEWEST) {
    examine_starts(r, start, period[0], repeats[0]);
    return repeats[0];
  }
  return best > 0 ? best : 1;
}

void scl_roll_find_loops(scl_roll *r) {
  sequence q = {.count = r->operations};
  q.local = scl_roll_room(r, (size_t)q.count, sizeof *q.local);
  q.next = scl_roll_room(r, (size_t)q.count, sizeof *q.next);
  r->loop = scl_roll_room(r, MOST_LOOPS, sizeof *r->loop);
  if (q.local == NULL || q.next == NULL || r->loop == NULL) return;
  for (int s = 0; s < q.count; s++) q.local[s] = r->local[r->seq[s]];
  find_next(r, &q);
  for (int s = 0; s < q.count && r->loops < MOST_LOOPS && !scl_roll_failed(r);) {
    s += try_loops(r, &q, s);
  }
}
