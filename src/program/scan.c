/* Derivatives of scans. For a step s' = f(s, x, c) with outputs o, and the derivatives s'^ and o^
 * with respect to these, reverse mode on the step alone gives s^, x^ and this step's share of c^.
 * Therefore the derivative is a scan too, from the last step to the first: its state is s^, its
 * outputs are x^, its sums are c^, and its inputs are x, c, o^ and the states that the scan itself
 * has kept. */
#include "program/scan.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1, MOST_INPUTS = 62 };

/* The numbers of a port among the parameters of a tape; NONE: they are not there. */
typedef struct {
  size_t from[SCL_SCAN_PORTS + 3], length[SCL_SCAN_PORTS + 3], to[SCL_SCAN_PORTS + 3];
  int count;
} moving;

static void add_move(moving *m, size_t from, size_t length, size_t to) {
  m->from[m->count] = from;
  m->length[m->count] = length;
  m->to[m->count++] = to;
}

/* ---- copies of steps ------------------------------------------------------------------------ */

static size_t moved(const moving *m, size_t at) {
  for (int k = 0; k < m->count; k++) {
    if (at >= m->from[k] && at < m->from[k] + m->length[k]) return m->to[k] + (at - m->from[k]);
  }
  return at;
}

/* Copies the data of a value's index that the other tape does not have. */
static size_t copy_data(const scl_tape *from, scl_tape *to, size_t data) {
  const scl_tape_data *d = &from->data[data];
  double *own = malloc((d->length + 1) * sizeof *own);
  if (own != NULL && d->length > 0) memcpy(own, d->numbers, d->length * sizeof *own);
  return (size_t)scl_tape_own_data(to, own, d->length);
}

static bool has_data(const scl_value *v) {
  return v->kind == SCL_VALUE_DATA || v->kind == SCL_VALUE_GATHER || v->kind == SCL_VALUE_SCATTER;
}

static int copy_value(const scl_tape *from, int value, scl_tape *to, const moving *m, int *copied,
                      int *operand) {
  scl_value v = from->value[value];
  for (int k = 0; k < v.operands; k++) operand[k] = copied[scl_tape_operand(from, value, k)];
  if (v.kind == SCL_VALUE_PARAMETER) v.at[0] = moved(m, v.at[0]);
  if (has_data(&v)) v.at[0] = copy_data(from, to, v.at[0]);
  return scl_tape_add_value(to, v, operand);
}

/* Copies what `result` needs to another tape, parameters moved; its index there. */
static int copy_step(const scl_tape *from, int result, const moving *m, scl_tape *to) {
  const int most = scl_tape_most_operands(from, result + 1);
  int copy = 0;
  int *copied = malloc(((size_t)result + 1) * sizeof *copied);
  int *operand = malloc(((size_t)most + 1) * sizeof *operand);
  if (copied == NULL || operand == NULL) {
    scl_tape_fail(to, scl_fail_memory((size_t)result * sizeof *copied, 0, "a gradient"));
  } else {
    for (int v = 0; v <= result; v++) copied[v] = v == result ? 0 : NONE;
    for (int v = result; v >= 0; v--) {
      for (int k = 0; copied[v] != NONE && k < from->value[v].operands; k++) {
        copied[scl_tape_operand(from, v, k)] = 0;
      }
    }
    for (int v = 0; v <= result && to->status == SCL_OK; v++) {
      if (copied[v] != NONE) copied[v] = copy_value(from, v, to, m, copied, operand);
    }
    copy = to->status == SCL_OK ? copied[result] : 0;
  }
  free(copied);
  free(operand);
  return copy;
}

static int parameter(scl_tape *t, size_t from, size_t length) {
  const scl_value v = {.kind = SCL_VALUE_PARAMETER, .at = {from, length}, .length = length};
  return scl_tape_add_value(t, v, NULL);
}

/* The guard of a step made of another one: inputs only, moved twice. */
static int copy_guard(const scl_scan_body *from, const moving *first, const moving *then,
                      scl_tape *to) {
  const scl_value *g = &from->tape.value[from->guard - (from->guard > 0)];
  if (from->guard == 0 || g->kind != SCL_VALUE_PARAMETER) return 0;
  return parameter(to, moved(then, moved(first, g->at[0])), 1) + 1;
}

/* ---- ports ---------------------------------------------------------------------------------- */

static void add_port(scl_scan_shape *s, scl_scan_role role, size_t length, bool shared) {
  s->port[scl_scan_first(s, role) + s->ports[role]] = (scl_scan_port){length, shared};
  s->ports[role]++; /* roles come in their order */
}

static const scl_scan_port *port_of(const scl_scan_shape *s, scl_scan_role role, int k) {
  return &s->port[scl_scan_first(s, role) + k];
}

static void add_ports(scl_scan_shape *to, scl_scan_role role, const scl_scan_shape *s,
                      scl_scan_role from) {
  for (int k = 0; k < s->ports[from]; k++) {
    add_port(to, role, port_of(s, from, k)->length, port_of(s, from, k)->shared);
  }
}

static bool is_active(uint64_t active, int port) {
  return (active >> port & 1) != 0;
}

static void add_active_ports(scl_scan_shape *to, scl_scan_role role, const scl_scan_shape *s,
                             scl_scan_role from, uint64_t active) {
  const int first = scl_scan_first(s, from);
  for (int k = 0; k < s->ports[from]; k++) {
    if (is_active(active, first + k)) add_port(to, role, port_of(s, from, k)->length, false);
  }
}

static int count_ports(const scl_scan_shape *s) {
  return scl_scan_first(s, SCL_SCAN_ROLES);
}

/* ---- bodies --------------------------------------------------------------------------------- */

/* A body that was made from `of`, or NONE. */
static int find_body(const scl_tape *t, int of, uint64_t active) {
  for (int k = 0; k < t->bodies; k++) {
    if (t->body[k]->of == of && t->body[k]->active == active) return k;
  }
  return NONE;
}

static scl_status too_many_ports(void) {
  return scl_fail_argument("f",
                           "cl_scan() has too many inputs and outputs (at most %d): put "
                           "several into one vector",
                           MOST_INPUTS);
}

static scl_scan_body *new_body(scl_tape *t, int of, uint64_t active, int ports) {
  scl_scan_body *body = NULL;
  if (ports >= SCL_SCAN_PORTS) {
    scl_tape_fail(t, too_many_ports());
    return NULL;
  }
  body = calloc(1, sizeof *body);
  if (body == NULL) {
    scl_tape_fail(t, scl_fail_memory(sizeof *body, 0, "a gradient"));
    return NULL;
  }
  scl_tape_begin(&body->tape);
  body->of = of;
  body->active = active;
  return body;
}

int scl_scan_copy(const scl_scan_body *from, const bool *own, scl_tape *to) {
  scl_scan_body *body =
      to->status == SCL_OK ? new_body(to, NONE, 0, count_ports(&from->shape)) : NULL;
  if (body == NULL) return 0;
  const moving still = {.count = 0};
  body->shape = from->shape;
  for (int k = 0; k < scl_scan_first(&from->shape, SCL_SCAN_SUM); k++) {
    if (own[k]) body->shape.port[k].shared = false;
  }
  body->result = copy_step(&from->tape, from->result, &still, &body->tape);
  body->guard = copy_guard(from, &still, &still, &body->tape);
  scl_tape_fail(to, body->tape.status);
  return scl_tape_add_body(to, body);
}

/* The step that outputs the state before it, after its own outputs. */
static int body_with_states(scl_tape *t, int of) {
  const int known = find_body(t, of, 0);
  if (known != NONE || t->status != SCL_OK) return known;
  const scl_scan_body *from = t->body[of];
  scl_scan_body *body = new_body(t, of, 0, count_ports(&from->shape) + from->shape.ports[0]);
  if (body == NULL) return 0;
  const moving still = {.count = 0};
  body->guard = copy_guard(from, &still, &still, &body->tape);
  for (int r = 0; r < SCL_SCAN_ROLES; r++) {
    add_ports(&body->shape, (scl_scan_role)r, &from->shape, (scl_scan_role)r);
  }
  add_ports(&body->shape, SCL_SCAN_OUT, &from->shape, SCL_SCAN_STATE);
  int part[SCL_SCAN_PORTS + 1], parts = 1;
  size_t at = 0;
  part[0] = copy_step(&from->tape, from->result, &still, &body->tape);
  for (int k = 0; k < from->shape.ports[SCL_SCAN_STATE]; k++) {
    const size_t length = from->shape.port[k].length;
    part[parts++] = parameter(&body->tape, at, length);
    at += length;
  }
  body->result = scl_tape_concat(&body->tape, parts, part);
  scl_tape_fail(t, body->tape.status);
  return scl_tape_add_body(t, body);
}

/* The gradient of a step on its own tape. Its parameters: the inputs with respect to which it is
 * differentiated (all states, active ports), other inputs, then the derivatives of the results,
 * from `seeds` on. */
typedef struct {
  scl_tape tape;
  moving in; /* from the body's parameters */
  size_t by, seeds;
  int gradient;
} step_gradient;

static void place_inputs(step_gradient *w, const scl_scan_shape *s, uint64_t active) {
  const int inputs = scl_scan_first(s, SCL_SCAN_SUM);
  for (int wanted = 1; wanted >= 0; wanted--) {
    size_t from = 0;
    for (int k = 0; k < inputs; from += s->port[k++].length) {
      const bool by = k < s->ports[SCL_SCAN_STATE] || is_active(active, k);
      if (by != (wanted == 1)) continue;
      add_move(&w->in, from, s->port[k].length, w->seeds);
      w->seeds += s->port[k].length;
    }
    if (wanted == 1) w->by = w->seeds;
  }
}

static void differentiate_step(step_gradient *w, const scl_scan_body *from, uint64_t active,
                               scl_gradient_of *gradient) {
  const scl_scan_shape *s = &from->shape;
  int seed[SCL_SCAN_PORTS], seeds = 0;
  size_t at;
  scl_tape_begin(&w->tape);
  w->tape.of_step = true;
  place_inputs(w, s, active);
  at = w->seeds;
  const int result = copy_step(&from->tape, from->result, &w->in, &w->tape);
  for (int k = 0; k < count_ports(s); k++) {
    if (k >= s->ports[SCL_SCAN_STATE] && k < scl_scan_first(s, SCL_SCAN_SUM)) continue;
    seed[seeds++] = parameter(&w->tape, at, s->port[k].length);
    at += s->port[k].length;
  }
  const int weights = scl_tape_concat(&w->tape, seeds, seed);
  const int product = scl_tape_binary(&w->tape, SCL_OP_MUL, result, weights);
  const int total = scl_tape_reduce(&w->tape, SCL_REDUCE_SUM, product, at - w->seeds, 1, SCL_TOTAL);
  w->gradient = gradient(&w->tape, total, w->by, true);
}

/* From the parameters of that tape to those of the reverse step. */
static void map_back(const step_gradient *w, const scl_scan_shape *s, moving *m) {
  const int states = s->ports[SCL_SCAN_STATE], xs = s->ports[SCL_SCAN_X];
  const size_t state = scl_scan_numbers(s, SCL_SCAN_STATE), x = scl_scan_numbers(s, SCL_SCAN_X);
  const size_t fixed = scl_scan_numbers(s, SCL_SCAN_FIXED), out = scl_scan_numbers(s, SCL_SCAN_OUT);
  const size_t sum = scl_scan_numbers(s, SCL_SCAN_SUM);
  size_t before = 0;
  for (int k = 0; k < scl_scan_first(s, SCL_SCAN_SUM); before += s->port[k++].length) {
    const size_t to = k < states        ? state + x + before
                      : k < states + xs ? before
                                        : state + x + state + out + (before - state - x);
    add_move(m, moved(&w->in, before), s->port[k].length, to);
  }
  add_move(m, w->seeds, state, 0);
  add_move(m, w->seeds + state, sum, state + x + state + out + fixed);
  add_move(m, w->seeds + state + sum, out, state + x + state);
}

/* The parts of the gradient in the order of the results: states, sums of fixed inputs, outputs. */
static int collect_parts(step_gradient *w, const scl_scan_shape *s, uint64_t active) {
  static const scl_scan_role order[] = {SCL_SCAN_STATE, SCL_SCAN_FIXED, SCL_SCAN_X};
  int part[SCL_SCAN_PORTS], parts = 0;
  for (int r = 0; r < 3; r++) {
    const int first = scl_scan_first(s, order[r]);
    for (int k = first; k < first + s->ports[order[r]]; k++) {
      size_t before = 0;
      if (r > 0 && !is_active(active, k)) continue;
      for (int j = 0; j < k; j++) before += s->port[j].length;
      part[parts++] =
          scl_tape_part(&w->tape, w->gradient, moved(&w->in, before), s->port[k].length);
    }
  }
  return scl_tape_concat(&w->tape, parts, part);
}

static int adjoint_body(scl_tape *t, int of, uint64_t active, scl_gradient_of *gradient) {
  const int known = find_body(t, of, active);
  if (known != NONE || t->status != SCL_OK) return known;
  const scl_scan_body *from = t->body[of];
  const scl_scan_shape *s = &from->shape;
  scl_scan_body *body = new_body(t, of, active,
                                 count_ports(s) + s->ports[SCL_SCAN_STATE] + s->ports[SCL_SCAN_X] +
                                     s->ports[SCL_SCAN_FIXED]);
  if (body == NULL) return 0;
  scl_scan_shape *b = &body->shape;
  add_ports(b, SCL_SCAN_STATE, s, SCL_SCAN_STATE);
  add_ports(b, SCL_SCAN_X, s, SCL_SCAN_X);
  add_ports(b, SCL_SCAN_X, s, SCL_SCAN_STATE);
  add_ports(b, SCL_SCAN_X, s, SCL_SCAN_OUT);
  add_ports(b, SCL_SCAN_FIXED, s, SCL_SCAN_FIXED);
  add_ports(b, SCL_SCAN_FIXED, s, SCL_SCAN_SUM);
  add_active_ports(b, SCL_SCAN_SUM, s, SCL_SCAN_FIXED, active);
  add_active_ports(b, SCL_SCAN_OUT, s, SCL_SCAN_X, active);
  step_gradient w = {.by = 0};
  moving back = {.count = 0};
  differentiate_step(&w, from, active, gradient);
  const int result = collect_parts(&w, s, active);
  map_back(&w, s, &back);
  scl_tape_fail(t, w.tape.status);
  if (t->status == SCL_OK) body->result = copy_step(&w.tape, result, &back, &body->tape);
  body->guard = copy_guard(from, &w.in, &back, &body->tape);
  scl_tape_fail(t, body->tape.status);
  scl_tape_end(&w.tape);
  return scl_tape_add_body(t, body);
}

/* ---- shares --------------------------------------------------------------------------------- */

/* The parts of a SCAN's result, or of its derivative, that belong to a role. */
static int role_parts(scl_tape *t, int x, const scl_value *v, scl_scan_role role, bool kept,
                      int *part) {
  const scl_scan_shape *s = &t->body[v->at[0]]->shape;
  size_t at = scl_scan_begin(s, v->at[1], v->at[2], role, kept);
  const int first = scl_scan_first(s, role);
  for (int k = 0; k < s->ports[role]; k++) {
    const size_t each = role == SCL_SCAN_OUT || kept ? v->at[1] * v->at[2] : v->at[2];
    const size_t length = s->port[first + k].length * each;
    part[k] = scl_tape_part(t, x, at, length);
    at += length;
  }
  return s->ports[role];
}

/* The share of an input that all sequences share. */
static int over_sequences(scl_tape *t, int share, size_t length, size_t sequences) {
  return scl_tape_reduce(t, SCL_REDUCE_SUM, share, length, sequences, SCL_BY_ROW);
}

/* The operands of the reverse scan, in the order of its ports. */
static void back_operands(scl_tape *t, int value, int g, int *operand) {
  const scl_value v = t->value[value];
  const scl_scan_shape s = t->body[v.at[0]]->shape;
  size_t at[SCL_VALUE_ATTRIBUTES];
  int given[SCL_SCAN_PORTS], k = 0;
  for (int i = 0; i < v.operands; i++) given[i] = scl_tape_operand(t, value, i);
  memcpy(at, v.at, sizeof at);
  at[4] = 1;
  const int kept = scl_tape_scan(t, at, given);
  scl_value all = v;
  all.at[4] = 1;
  k += role_parts(t, g, &v, SCL_SCAN_STATE, false, operand);
  const int x = s.ports[SCL_SCAN_STATE], fixed = x + s.ports[SCL_SCAN_X];
  for (int i = x; i < fixed; i++) operand[k++] = given[i];
  k += role_parts(t, kept, &all, SCL_SCAN_STATE, true, operand + k);
  k += role_parts(t, g, &v, SCL_SCAN_OUT, false, operand + k);
  if (v.at[4] != 0) k += role_parts(t, g, &v, SCL_SCAN_STATE, true, operand + k);
  for (int i = fixed; i < v.operands; i++) operand[k++] = given[i];
  role_parts(t, g, &v, SCL_SCAN_SUM, false, operand + k);
}

void scl_scan_shares(scl_tape *t, int value, int g, const bool *active, scl_gradient_of *gradient,
                     int *share) {
  const scl_value v = t->value[value];
  int operand[2 * SCL_SCAN_PORTS], part[SCL_SCAN_PORTS];
  uint64_t mask = (uint64_t)1 << 63; /* differs from a body with states */
  for (int k = 0; k < v.operands; k++) share[k] = NONE;
  if (v.operands > MOST_INPUTS) {
    scl_tape_fail(t, too_many_ports());
    return;
  }
  for (int k = 0; k < v.operands; k++) mask |= active[k] ? (uint64_t)1 << k : 0;
  const int of = v.at[4] != 0 ? body_with_states(t, (int)v.at[0]) : (int)v.at[0];
  const int back = t->status == SCL_OK ? adjoint_body(t, of, mask, gradient) : 0;
  if (t->status != SCL_OK) return;
  const scl_scan_shape s = t->body[of]->shape;
  back_operands(t, value, scl_tape_fill(t, g, v.length), operand);
  const size_t at[] = {(size_t)back, v.at[1], v.at[2], v.at[3] == 0, 0};
  const int slopes = scl_tape_scan(t, at, operand);
  if (t->status != SCL_OK) return;
  const scl_value w = t->value[slopes];
  role_parts(t, slopes, &w, SCL_SCAN_STATE, false, share);
  for (int r = SCL_SCAN_X; r <= SCL_SCAN_FIXED; r++) {
    const int first = scl_scan_first(&s, (scl_scan_role)r);
    int next = 0;
    role_parts(t, slopes, &w, r == SCL_SCAN_X ? SCL_SCAN_OUT : SCL_SCAN_SUM, false, part);
    for (int k = first; k < first + s.ports[r]; k++) {
      if (!active[k]) continue;
      share[k] = part[next++];
      const size_t length = s.port[k].length * (r == SCL_SCAN_X ? v.at[1] : 1);
      if (s.port[k].shared) share[k] = over_sequences(t, share[k], length, v.at[2]);
    }
  }
}

/* ---- steps from outside --------------------------------------------------------------------- */

static bool within_a_port(const scl_scan_shape *s, const scl_value *p) {
  size_t at = 0;
  for (int k = 0; k < scl_scan_first(s, SCL_SCAN_SUM); at += s->port[k++].length) {
    if (p->at[0] >= at && p->at[0] + p->at[1] <= at + s->port[k].length) return true;
  }
  return false;
}

scl_status scl_scan_check(const scl_scan_body *body) {
  const scl_scan_shape *s = &body->shape;
  SCL_TRY(body->tape.status);
  for (int v = 0; v < body->tape.values; v++) {
    const scl_value *p = &body->tape.value[v];
    if (!scl_scan_has_code((scl_value_kind)p->kind) ||
        (p->kind == SCL_VALUE_PARAMETER && !within_a_port(s, p))) {
      return scl_fail_argument("f", "the step of a scan has values that do not fit");
    }
  }
  const size_t results = scl_scan_numbers(s, SCL_SCAN_STATE) + scl_scan_numbers(s, SCL_SCAN_SUM) +
                         scl_scan_numbers(s, SCL_SCAN_OUT);
  const bool guarded = body->guard == 0 || scl_tape_length(&body->tape, body->guard - 1) == 1;
  if (scl_tape_length(&body->tape, body->result) != results || s->ports[SCL_SCAN_STATE] == 0 ||
      !guarded) {
    return scl_fail_argument("f", "the step of a scan has results that do not fit");
  }
  return SCL_OK;
}
