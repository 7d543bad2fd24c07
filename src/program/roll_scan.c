/* Loops of roll_loops.c as SCAN values. */
#include "program/roll_parts.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = SCL_ROLL_NONE };

/* Where a step finds an element: at a parameter, or a number. */
typedef struct {
  int at; /* NONE: the number */
  double number;
} port;

typedef struct {
  scl_roll *r;
  scl_roll_loop *l;
  scl_scan_body *body;
  int *rank; /* of states */
  port *x, *fixed;
  int *value;     /* of each body position */
  uint8_t *level; /* of the step's first `known` values */
  int known, level_room;
  int data, active, kept; /* numbers of inputs: of data, of others, and the same at all steps */
  scl_roll_source *of_x, *of_data, *of_active, *of_kept;
} writer;

static int node_at(const writer *w, int iteration, int position) {
  return scl_roll_node_at(w->r, w->l, iteration, position);
}

/* ---- ports ------------------------------------------------------------------------------------
 */

/* Lag by lag, so that the elements of a value come one after the other. */
static void rank_states(writer *w) {
  const scl_roll_state *s = w->l->state;
  for (int a = 0; a < w->l->states; a++) {
    for (int b = 0; b < w->l->states; b++) {
      const int order = s[b].lag != s[a].lag             ? s[b].lag - s[a].lag
                        : s[b].position != s[a].position ? s[b].position - s[a].position
                                                         : s[b].at - s[a].at;
      w->rank[a] += order < 0;
    }
  }
}

static void place_fixed(writer *w, scl_roll_source s, port *to) {
  *to = (port){NONE, s.number};
  if (s.value == NONE) return;
  to->at = w->kept;
  w->of_kept[w->kept++] = s;
}

/* Sorts the inputs that are the same at all steps: those that are elements of one value in a row
 * are then a part of it, not gathered. Returns the new place of each; NULL on failure. */
static int *sort_kept(writer *w) {
  const size_t kept = (size_t)w->kept;
  int *rank = scl_roll_room(w->r, kept, sizeof *rank);
  scl_roll_source *sorted = scl_roll_room(w->r, kept, sizeof *sorted);
  if (rank == NULL || sorted == NULL) return NULL;
  for (size_t a = 0; a < kept; a++) {
    for (size_t b = 0; b < kept; b++) {
      const int order = scl_roll_by_source(&w->of_kept[b], &w->of_kept[a]);
      rank[a] += order < 0 || (order == 0 && b < a);
    }
    sorted[rank[a]] = w->of_kept[a];
  }
  w->of_kept = sorted;
  return rank;
}

/* Inputs: numbers first, then others; those that do not vary are found only now. */
static void place_inputs(writer *w) {
  const scl_roll_loop *l = w->l;
  const size_t count = (size_t)l->count;
  w->data = w->active = w->kept = 0;
  for (int k = 0; k < l->fixeds; k++) {
    place_fixed(w, scl_roll_source_of(w->r, l->fixed[k]), &w->fixed[k]);
  }
  for (int c = 0; c < l->xs; c++) {
    scl_roll_source *s = w->of_active + (size_t)w->active * count;
    bool numbers = true;
    for (size_t i = 0; i < count; i++) {
      s[i] = w->of_x[(size_t)c * count + i];
      numbers = numbers && s[i].value == NONE;
    }
    if (scl_roll_all_same(s, count)) {
      place_fixed(w, s[0], &w->x[c]);
      w->x[c].at = w->x[c].at == NONE ? NONE : -2 - w->x[c].at;
    } else if (numbers) {
      memcpy(w->of_data + (size_t)w->data * count, s, count * sizeof *s);
      w->x[c].at = 2 * w->data++;
    } else {
      w->x[c].at = 2 * w->active++ + 1;
    }
  }
  const int states = l->states, fixed = states + w->data + w->active;
  const int *rank = sort_kept(w);
  if (rank == NULL) return;
  for (int k = 0; k < l->fixeds; k++) {
    if (w->fixed[k].at != NONE) w->fixed[k].at = fixed + rank[w->fixed[k].at];
  }
  for (int c = 0; c < l->xs; c++) {
    const int at = w->x[c].at;
    if (at == NONE) continue;
    w->x[c].at = at < NONE     ? fixed + rank[-2 - at]
                 : at % 2 == 0 ? states + at / 2
                               : states + w->data + at / 2;
  }
}

static void add_port(scl_scan_shape *s, scl_scan_role role, int length) {
  if (length == 0) return;
  s->port[scl_scan_first(s, role) + s->ports[role]] =
      (scl_scan_port){(size_t)length, role == SCL_SCAN_X || role == SCL_SCAN_FIXED};
  s->ports[role]++;
}

/* ---- the step ---------------------------------------------------------------------------------
 */

static int parameter(writer *w, int at, size_t length) {
  const scl_value v = {.kind = SCL_VALUE_PARAMETER, .at = {(size_t)at, length}, .length = length};
  return scl_tape_add_value(&w->body->tape, v, NULL);
}

static port port_of(const writer *w, const scl_roll_input *in) {
  switch (in->kind) {
  case SCL_ROLL_NUMBER:
    return (port){NONE, scl_roll_value(w->r, in->number)->number};
  case SCL_ROLL_CARRIED:
    return (port){w->rank[in->number], 0.0};
  case SCL_ROLL_FIXED:
    return w->fixed[in->number];
  default:
    return w->x[in->number];
  }
}

static int element(writer *w, const scl_roll_input *in) {
  scl_tape *t = &w->body->tape;
  if (in->kind == SCL_ROLL_OWN) {
    return scl_tape_part(t, w->value[w->l->place[in->position]], (size_t)in->at, 1);
  }
  const port p = port_of(w, in);
  return p.at == NONE ? scl_tape_number(t, p.number) : parameter(w, p.at, 1);
}

/* Whether these are parameters one after the other within a port. */
static bool is_range(const writer *w, const scl_roll_input *in, size_t n) {
  for (size_t k = 0; k < n; k++) {
    if (in[k].kind != in[0].kind || in[k].kind == SCL_ROLL_OWN) return false;
    if (port_of(w, &in[k]).at != port_of(w, &in[0]).at + (int)k) return false;
  }
  return port_of(w, &in[0]).at != NONE;
}

static bool is_whole(const writer *w, const scl_roll_input *in, size_t n) {
  for (size_t k = 0; k < n; k++) {
    if (in[k].kind != SCL_ROLL_OWN || in[k].position != in[0].position || in[k].at != (int)k) {
      return false;
    }
  }
  return scl_tape_length(&w->body->tape, w->value[w->l->place[in[0].position]]) == n;
}

static int operand(writer *w, const scl_roll_input *in, size_t n) {
  if (is_whole(w, in, n)) return w->value[w->l->place[in[0].position]];
  if (in[0].kind != SCL_ROLL_X && is_range(w, in, n)) return parameter(w, port_of(w, in).at, n);
  int *part = scl_roll_room(w->r, n, sizeof *part);
  if (part == NULL) return 0;
  for (size_t k = 0; k < n; k++) part[k] = element(w, &in[k]);
  return scl_tape_concat(&w->body->tape, (int)n, part);
}

/* What a value of the step depends on: the states, other inputs that vary, or neither. */
enum { KEPT, VARIES, CARRIED };
static int level_of(writer *w, int value) {
  const scl_tape *t = &w->body->tape;
  const size_t states = (size_t)w->l->states, varying = (size_t)(w->data + w->active);
  for (; w->known < t->values; w->known++) {
    const scl_value *v = &t->value[w->known];
    int level = KEPT;
    if (v->kind == SCL_VALUE_PARAMETER) {
      level = v->at[0] < states ? CARRIED : v->at[0] < states + varying ? VARIES : KEPT;
    }
    for (int k = 0; k < v->operands; k++) {
      const int other = w->level[scl_tape_operand(t, w->known, k)];
      if (other > level) level = other;
    }
    if (!scl_tape_grow(w->r->to, &w->level, &w->level_room, w->known, 1, sizeof *w->level)) {
      return CARRIED;
    }
    w->level[w->known] = (uint8_t)level;
  }
  return w->level[value];
}

static bool is_sum(const scl_tape *t, int x) {
  return t->value[x].kind == SCL_VALUE_APPLY && t->value[x].op == SCL_OP_ADD;
}

/* (s + a) + b as s + (a + b) if s alone depends on the states: steps wait for each other, and a + b
 * is computed for all of them before. Of such a + b, what varies first: (a + m) + b as (a + b) + m.
 */
static int add(writer *w, int x, int b) {
  scl_tape *t = &w->body->tape;
  if (level_of(w, x) < level_of(w, b)) return add(w, b, x);
  const int level = level_of(w, x), other = level_of(w, b);
  if (!is_sum(t, x) || (other == level && level != VARIES))
    return scl_tape_binary(t, SCL_OP_ADD, x, b);
  int s = scl_tape_operand(t, x, 0), a = scl_tape_operand(t, x, 1);
  if (level_of(w, a) == level) {
    const int second = a;
    a = s;
    s = second;
  }
  if (level_of(w, a) == level) return scl_tape_binary(t, SCL_OP_ADD, x, b);
  return other == level ? scl_tape_binary(t, SCL_OP_ADD, add(w, s, b), a)
                        : scl_tape_binary(t, SCL_OP_ADD, s, add(w, a, b));
}

/* The operation of a recorded value, on these operands. */
static int again(writer *w, const scl_value *v, const int *x) {
  if (v->kind == SCL_VALUE_APPLY && v->op == SCL_OP_ADD) return add(w, x[0], x[1]);
  return scl_tape_add(&w->body->tape, (scl_value_kind)v->kind, v->op, v->operands, x, v->at,
                      v->number);
}

static void write_positions(writer *w) {
  for (int b = 0; b < w->l->bodies && w->body->tape.status == SCL_OK; b++) {
    const int node = node_at(w, 0, w->l->body[b]);
    const scl_value *v = scl_roll_value(w->r, node);
    const scl_roll_input *in = w->l->input[b];
    int *x = scl_roll_room(w->r, (size_t)v->operands, sizeof *x);
    if (x == NULL) return;
    for (int k = 0; k < v->operands; k++) {
      const size_t n = scl_tape_length(w->r->from, scl_tape_operand(w->r->from, node, k));
      x[k] = operand(w, in, n);
      in += n;
    }
    if (scl_roll_failed(w->r) || w->body->tape.status != SCL_OK) return;
    const int made = again(w, v, x);
    w->value[b] = scl_tape_fill(&w->body->tape, made, v->length);
  }
}

static int new_state(writer *w, const scl_roll_state *s) {
  if (s->lag == 1) {
    return scl_tape_part(&w->body->tape, w->value[w->l->place[s->position]], (size_t)s->at, 1);
  }
  for (int k = 0; k < w->l->states; k++) {
    const scl_roll_state *last = &w->l->state[k];
    if (last->position == s->position && last->at == s->at && last->lag == s->lag - 1) {
      return parameter(w, w->rank[k], 1);
    }
  }
  w->r->broken = true; /* does not happen */
  return 0;
}

/* The state that has the results at a position and the value before them; or NONE. */
static int early_state(const scl_roll_loop *l, int position) {
  for (int k = 0; k < l->states; k++) {
    if (l->state[k].early && l->state[k].position == position) return k;
  }
  return NONE;
}

static void write_results(writer *w) {
  const scl_roll_loop *l = w->l;
  int *part = scl_roll_room(w->r, (size_t)(l->states + l->bodies), sizeof *part), parts = l->states;
  if (part == NULL || w->body->tape.status != SCL_OK) return;
  for (int k = 0; k < l->states; k++) part[w->rank[k]] = new_state(w, &l->state[k]);
  for (int b = 0; b < l->bodies; b++) {
    const int early = early_state(l, l->body[b]);
    if (l->out[b] == NONE) continue;
    part[parts++] = early == NONE ? w->value[b] : parameter(w, w->rank[early], 1);
  }
  w->body->result = scl_tape_concat(&w->body->tape, parts, part);
}

/* ---- inputs that are only added ----------------------------------------------------------------
 */

/* Input c becomes its sum with input d, which becomes 0. */
static void add_columns(writer *w, int c, int d) {
  const size_t count = (size_t)w->l->count;
  scl_roll_source *a = w->of_x + (size_t)c * count, *b = w->of_x + (size_t)d * count;
  bool numbers = true;
  for (size_t i = 0; i < count; i++) numbers = numbers && a[i].value == NONE && b[i].value == NONE;
  const int x[] = {numbers ? 0 : scl_roll_gather(w->r, a, count),
                   numbers ? 0 : scl_roll_gather(w->r, b, count)};
  const int sum = numbers ? 0 : scl_tape_binary(w->r->to, SCL_OP_ADD, x[0], x[1]);
  for (size_t i = 0; i < count; i++) {
    const scl_roll_source both = {NONE, 0, a[i].number + b[i].number, 0};
    a[i] = numbers ? both : (scl_roll_source){sum, i, 0.0, 0};
    b[i] = (scl_roll_source){NONE, 0, 0.0, 0};
  }
}

/* The number of the input that varies and is this value of the step; NONE for other values. */
static int input_of(const writer *w, int value) {
  const scl_value *v = &w->body->tape.value[value];
  for (int c = 0; c < w->l->xs && v->kind == SCL_VALUE_PARAMETER; c++) {
    const size_t varying = (size_t)(w->l->states + w->data + w->active);
    if (v->at[0] < varying && w->x[c].at == (int)v->at[0]) return c;
  }
  return NONE;
}

/* Where the results depend on two inputs only by their sum, that is the input. Whether there are
 * such inputs. */
static bool merge_inputs(writer *w) {
  const scl_tape *t = &w->body->tape;
  int *uses = scl_roll_room(w->r, (size_t)t->values, sizeof *uses);
  bool merged = false;
  if (uses == NULL || t->status != SCL_OK || w->l->xs < 2) return false;
  uses[w->body->result] = 1;
  for (int v = t->values - 1; v >= 0; v--) {
    for (int k = 0; k < t->value[v].operands && uses[v] > 0; k++) {
      uses[scl_tape_operand(t, v, k)]++;
    }
  }
  for (int v = 0; v < t->values && !scl_roll_failed(w->r); v++) {
    if (uses[v] == 0 || !is_sum(t, v)) continue;
    const int a = scl_tape_operand(t, v, 0), b = scl_tape_operand(t, v, 1);
    const int c = input_of(w, a), d = input_of(w, b);
    if (c == NONE || d == NONE || uses[a] != 1 || uses[b] != 1) continue;
    add_columns(w, c, d);
    merged = true;
  }
  return merged;
}

/* ---- the scan ---------------------------------------------------------------------------------
 */

/* Columns of `count` elements: views of one value if they are that, else one by one. */
static int columns(scl_roll *r, scl_roll_source *s, int many, size_t count) {
  const size_t all = (size_t)many * count;
  if (scl_roll_gather_cost(r, s, all) <= 1) return scl_roll_gather(r, s, all);
  int *part = scl_roll_room(r, (size_t)many, sizeof *part);
  if (part == NULL) return 0;
  for (int c = 0; c < many; c++) {
    part[c] = scl_tape_fill(r->to, scl_roll_gather(r, s + (size_t)c * count, count), count);
  }
  return scl_tape_concat(r->to, many, part);
}

static int init(writer *w) {
  const size_t n = (size_t)w->l->states;
  scl_roll_source *s = scl_roll_room(w->r, n, sizeof *s);
  if (s == NULL) return 0;
  for (size_t k = 0; k < n; k++) {
    s[w->rank[k]] = scl_roll_source_of(w->r, w->l->state[k].init);
  }
  return scl_tape_fill(w->r->to, scl_roll_gather(w->r, s, n), n);
}

static void place(const writer *w, int iteration, int position, scl_roll_place to) {
  const int node = node_at(w, iteration, position);
  if (node != NONE) w->r->place[node] = to;
}

/* What has its own value from now on is read from the scan, where that has it too. */
static void place_first(const writer *w, int root, scl_roll_place to) {
  const int there = w->r->place[root].value;
  if (there != NONE && scl_tape_length(w->r->to, there) == 1) w->r->place[root] = to;
}

static void place_results(writer *w, int scan) {
  const scl_roll_loop *l = w->l;
  const scl_value *v = &w->r->to->value[scan];
  const scl_scan_shape *shape = &w->r->to->body[v->at[0]]->shape;
  const size_t count = (size_t)(l->count + l->more);
  const size_t outs = scl_scan_begin(shape, count, 1, SCL_SCAN_OUT, false);
  for (int b = 0; b < l->bodies; b++) {
    const int early = early_state(l, l->body[b]);
    const size_t from = outs + (size_t)l->out[b] * count;
    if (early != NONE) place_first(w, l->state[early].init.root, (scl_roll_place){scan, from, 1});
    for (size_t i = 0; i < (size_t)l->count && l->out[b] != NONE; i++) {
      place(w, (int)i, l->body[b], (scl_roll_place){scan, from + (early != NONE) + i, count});
    }
    for (int k = 0; k < l->states && l->out[b] == NONE; k++) {
      const scl_roll_state *s = &l->state[k];
      if (s->position != l->body[b] || s->lag != 1 || s->at != 0) continue;
      place(w, l->count - 1, l->body[b], (scl_roll_place){scan, (size_t)w->rank[k], 1});
    }
  }
}

static bool make_room(writer *w) {
  scl_roll_loop *l = w->l;
  const size_t count = (size_t)l->count, xs = (size_t)l->xs;
  w->rank = scl_roll_room(w->r, (size_t)l->states, sizeof *w->rank);
  w->x = scl_roll_room(w->r, xs, sizeof *w->x);
  w->fixed = scl_roll_room(w->r, (size_t)l->fixeds, sizeof *w->fixed);
  w->value = scl_roll_room(w->r, (size_t)l->bodies, sizeof *w->value);
  w->of_x = scl_roll_room(w->r, xs * count, sizeof *w->of_x);
  w->of_data = scl_roll_room(w->r, (xs + 1) * count, sizeof *w->of_data);
  w->of_active = scl_roll_room(w->r, (xs + 1) * count, sizeof *w->of_active);
  w->of_kept = scl_roll_room(w->r, xs + (size_t)l->fixeds, sizeof *w->of_kept);
  if (scl_roll_failed(w->r)) return false;
  w->body = calloc(1, sizeof *w->body);
  if (w->body != NULL) return true;
  scl_tape_fail(w->r->to, scl_fail_memory(sizeof *w->body, 0, "a program"));
  return false;
}

static void write_body(writer *w) {
  const scl_roll_loop *l = w->l;
  scl_scan_shape *s = &w->body->shape;
  scl_tape_end(&w->body->tape);
  memset(s, 0, sizeof *s);
  w->known = 0;
  w->body->of = NONE;
  place_inputs(w);
  add_port(s, SCL_SCAN_STATE, l->states);
  add_port(s, SCL_SCAN_X, w->data);
  add_port(s, SCL_SCAN_X, w->active);
  add_port(s, SCL_SCAN_FIXED, w->kept);
  add_port(s, SCL_SCAN_OUT, l->outs);
  write_positions(w);
  write_results(w);
}

void scl_roll_put_loop(scl_roll *r, scl_roll_loop *loop) {
  writer w = {.r = r, .l = loop};
  if (!make_room(&w)) return;
  rank_states(&w);
  for (int k = 0; k < loop->xs * loop->count; k++) w.of_x[k] = scl_roll_source_of(r, loop->x[k]);
  do {
    write_body(&w);
  } while (merge_inputs(&w));
  free(w.level);
  const size_t count = (size_t)loop->count, kept = (size_t)w.kept;
  const int body = scl_tape_add_body(r->to, w.body);
  int x[4], used = 0;
  x[used++] = init(&w);
  if (w.data > 0) x[used++] = columns(r, w.of_data, w.data, count);
  if (w.active > 0) x[used++] = columns(r, w.of_active, w.active, count);
  if (kept > 0) x[used++] = scl_tape_fill(r->to, scl_roll_gather(r, w.of_kept, kept), kept);
  const size_t at[] = {(size_t)body, count + (size_t)loop->more, 1, 0, 0};
  if (scl_roll_failed(r)) return;
  const int scan = scl_tape_scan(r->to, at, x);
  if (!scl_roll_failed(r)) place_results(&w, scan);
  loop->done = true;
}
