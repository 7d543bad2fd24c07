/* Operations on the values before a scan's first iteration that are like those on its results wait
 * for the scan, if it does not need them: all of them then become one operation on vectors. Where
 * that is possible, each step of the scan has the value before it as its output, and there is one
 * step more: the vector is then there without copies. */
#include "program/roll_parts.h"

enum { NONE = SCL_ROLL_NONE, MOST_KEYS = 64 };

typedef struct {
  scl_roll *r;
  int loop;
  int *needed; /* of each root: 1 + the last loop that needs it */
  int *stack;  /* roots whose operands are still to be seen */
  int used;
  bool *entered; /* loops whose inputs were seen */
  int *reads;    /* of each root: 1 + the last loop that has elements of it as first values */
  uint64_t key[MOST_KEYS];
  int keys;
} search;

/* ---- what a scan needs ------------------------------------------------------------------------
 */

static void see(search *s, int root) {
  if (s->needed[root] == 1 + s->loop) return;
  s->needed[root] = 1 + s->loop;
  s->stack[s->used++] = root;
}

static void see_inputs(search *s, int loop) {
  const scl_roll_loop *l = &s->r->loop[loop];
  const size_t numbers = (size_t)l->xs * (size_t)l->count;
  if (s->entered[loop]) return;
  s->entered[loop] = true;
  for (int k = 0; k < l->states; k++) see(s, l->state[k].init.root);
  for (int k = 0; k < l->fixeds; k++) see(s, l->fixed[k].root);
  for (size_t k = 0; k < numbers; k++) see(s, l->x[k].root);
}

static void see_operand(search *s, int x) {
  const scl_roll_view *v = &s->r->view[x];
  const size_t n = v->root != NONE ? 1 : scl_tape_length(s->r->from, x);
  for (size_t k = 0; k < n; k++) see(s, v->root != NONE ? v->root : v->list[k].root);
}

/* Also what waits for other scans, with all that these need. */
static void find_needed(search *s) {
  const scl_roll *r = s->r;
  for (int k = 0; k < r->loops; k++) s->entered[k] = false;
  see_inputs(s, s->loop);
  while (s->used > 0) {
    const int v = s->stack[--s->used];
    if (r->role[v] == SCL_ROLL_SCANNED) see_inputs(s, r->loop_of[v]);
    if (r->after[v] != NONE) see_inputs(s, r->after[v]);
    for (int k = 0; k < scl_roll_value(r, v)->operands; k++) {
      see_operand(s, scl_tape_operand(r->from, v, k));
    }
  }
}

/* ---- what is alike ----------------------------------------------------------------------------
 */

int scl_roll_result_of(const scl_roll *r, int loop, scl_roll_element first) {
  const scl_roll_loop *l = &r->loop[loop];
  for (int k = 0; k < l->states; k++) {
    const scl_roll_element init = l->state[k].init;
    if (init.root == first.root && init.at == first.at) {
      return scl_roll_node_at(r, l, 0, l->state[k].position);
    }
  }
  return NONE;
}

static uint64_t key_of(const scl_roll *r, int v, int k, int result) {
  return scl_tape_mix(scl_tape_mix(r->local[v], (uint64_t)k), (uint64_t)result);
}

/* Of operation v with number e as operand k. */
typedef bool examiner(search *s, int v, int k, scl_roll_element e);

/* Notes v if the first iteration computes e. */
static bool note(search *s, int v, int k, scl_roll_element e) {
  const scl_roll *r = s->r;
  const scl_roll_loop *l = &r->loop[s->loop];
  const bool first = r->role[e.root] == SCL_ROLL_SCANNED && r->loop_of[e.root] == s->loop &&
                     r->seq_at[e.root] - l->start < l->period;
  if (first && s->keys < MOST_KEYS) s->key[s->keys++] = key_of(r, v, k, e.root);
  return false;
}

/* Whether e is a value before the first iteration, and the operation on its result was noted. */
static bool waits(search *s, int v, int k, scl_roll_element e) {
  if (s->reads[e.root] != 1 + s->loop) return false;
  const uint64_t key = key_of(s->r, v, k, scl_roll_result_of(s->r, s->loop, e));
  for (int i = 0; i < s->keys; i++) {
    if (s->key[i] == key) return true;
  }
  return false;
}

/* Operations that the loop does not need wait for it where `examine` says so. */
static void examine_all(search *s, examiner *examine) {
  scl_roll *r = s->r;
  for (int v = 0; v < r->nodes; v++) {
    if (!r->live[v] || r->role[v] == SCL_ROLL_SCANNED || s->needed[v] == 1 + s->loop) continue;
    for (int k = 0; k < scl_roll_value(r, v)->operands && r->after[v] == NONE; k++) {
      const int x = scl_tape_operand(r->from, v, k);
      if (scl_tape_length(r->from, x) != 1) continue;
      if (examine(s, v, k, scl_roll_at(r, x, 0))) r->after[v] = s->loop;
    }
  }
}

/* ---- first values as outputs ------------------------------------------------------------------
 */

/* Whether nothing fails or reads another number if the step is computed once more at the end. */
static bool may_repeat(const scl_roll *r, const scl_roll_loop *l) {
  if (l->xs > 0) return false;
  for (int b = 0; b < l->bodies; b++) {
    const int kind = scl_roll_value(r, scl_roll_node_at(r, l, 0, l->body[b]))->kind;
    if (kind != SCL_VALUE_APPLY && kind != SCL_VALUE_REDUCE) return false;
  }
  for (int k = 0; k < l->states; k++) {
    const scl_roll_state *state = &l->state[k];
    if (state->lag != 1 || l->out[l->place[state->position]] == NONE) return false;
  }
  return true;
}

static bool is_single(const scl_roll *r, int root) {
  return scl_tape_length(r->from, root) == 1 && scl_roll_value(r, root)->kind != SCL_VALUE_NUMBER;
}

static void find_early(search *s) {
  const scl_roll *r = s->r;
  scl_roll_loop *l = &r->loop[s->loop];
  for (int v = 0; v < r->nodes; v++) {
    if (!r->live[v] || r->after[v] != s->loop) continue;
    for (int k = 0; k < scl_roll_value(r, v)->operands; k++) {
      const int x = scl_tape_operand(r->from, v, k);
      if (scl_tape_length(r->from, x) != 1) continue;
      for (int j = 0; j < l->states; j++) {
        scl_roll_state *state = &l->state[j];
        const int result = scl_roll_node_at(r, l, 0, state->position);
        if (scl_roll_at(r, x, 0).root != state->init.root) continue;
        if (!is_single(r, state->init.root) || !is_single(r, result)) continue;
        state->early = true;
        l->more = 1;
      }
    }
  }
}

void scl_roll_find_inits(scl_roll *r) {
  const size_t n = (size_t)r->nodes;
  search s = {.r = r};
  s.needed = scl_roll_room(r, n, sizeof *s.needed);
  s.stack = scl_roll_room(r, n, sizeof *s.stack);
  s.reads = scl_roll_room(r, n, sizeof *s.reads);
  s.entered = scl_roll_room(r, (size_t)r->loops, sizeof *s.entered);
  for (int v = 0; v < r->nodes; v++) r->after[v] = NONE;
  if (scl_roll_failed(r)) return;
  for (; s.loop < r->loops; s.loop++) {
    const scl_roll_loop *l = &r->loop[s.loop];
    for (int k = 0; k < l->states; k++) s.reads[l->state[k].init.root] = 1 + s.loop;
    find_needed(&s);
    s.keys = 0;
    examine_all(&s, note);
    if (s.keys > 0) examine_all(&s, waits);
    if (s.keys > 0 && may_repeat(r, l)) find_early(&s);
  }
}
