/* Groups of values of one element, for engines that run operations on single numbers without a
 * kernel (engine/plan/repeat.h). A value that only this group reads is in a register, which others
 * take after its last use; the rest is in memory, and no limits of plans apply. */
#include <stdlib.h>

#include "program/compile.h"

typedef struct {
  scl_compiling *c;
  scl_numbers *n;
  int group, list;
  int *free_register, free_count;
} numbering;

static bool is_single(const scl_tape *t, int v) {
  const scl_value *value = &t->value[v];
  return value->length == 1 && (value->kind == SCL_VALUE_APPLY || value->kind == SCL_VALUE_COPY);
}

bool scl_is_number_group(const scl_compiling *c, const scl_group *g) {
  if (c->data->ctx->engine->expr_repeat == NULL || g->elements != 1) return false;
  for (int i = 0; i < g->count; i++) {
    if (!is_single(&c->lowered.tape, c->schedule.value[g->first + i])) return false;
  }
  return true;
}

static int readers_of(const scl_compiling *c, int v) {
  return c->first_reader[v + 1] - c->first_reader[v];
}

/* Whether a value, or a view of it, is read outside of the group. */
static bool is_stored(const scl_compiling *c, int v, int group) {
  if (c->lowered.holder[v] >= 0) return true;
  for (int k = c->first_reader[v]; k < c->first_reader[v + 1]; k++) {
    if (c->schedule.group_of[c->reader[k]] != group) return true;
  }
  return false;
}

static int place_of(numbering *w, int x, scl_status *status) {
  const scl_tape *t = &w->c->lowered.tape;
  const scl_value *v = &t->value[x];
  const bool view = scl_how(v) == SCL_IS_VIEW && !scl_is_alias(v);
  scl_location at = {NULL, 0};
  if (*status == SCL_OK)
    *status = scl_storage_find(w->c, view ? scl_tape_operand(t, x, 0) : x, &at);
  if (view && v->kind == SCL_VALUE_PART) at.offset += v->at[1] + v->at[2] * v->at[0];
  w->n->place[w->n->places] = (scl_number_place){at.buffer, at.offset};
  return SCL_REGISTER_PLACE | w->n->places++;
}

/* The register of an operand; after its last use by this group it is free. */
static int register_of(numbering *w, int x, scl_status *status) {
  scl_compiling *c = w->c;
  const scl_value *v = &c->lowered.tape.value[x];
  if (c->list_of[x] != w->list) {
    c->list_of[x] = w->list;
    if (v->kind == SCL_VALUE_NUMBER) {
      c->step[x] = SCL_REGISTER_CONSTANT | w->n->constants;
      w->n->constant[w->n->constants++] = v->number;
    } else {
      c->step[x] = place_of(w, x, status);
    }
  }
  const int reg = c->step[x];
  if ((reg & SCL_REGISTER_KIND) == SCL_REGISTER_OTHER && --c->uses[x] == 0)
    w->free_register[w->free_count++] = reg;
  return reg;
}

static scl_status add_value(numbering *w, int v) {
  scl_compiling *c = w->c;
  const scl_tape *t = &c->lowered.tape;
  const scl_value *value = &t->value[v];
  scl_status status = SCL_OK;
  scl_number_step *s = &w->n->step[w->n->steps++];
  s->op = value->kind == SCL_VALUE_COPY ? (unsigned)SCL_OP_COUNT : value->op;
  for (int k = 0; k < value->operands; k++) {
    const int x = scl_tape_operand(t, v, k);
    s->arg[k] = register_of(w, x, &status);
    if ((s->arg[k] & SCL_REGISTER_KIND) == SCL_REGISTER_OTHER && readers_of(c, x) == 1)
      s->only |= 1u << k;
  }
  c->list_of[v] = w->list;
  c->uses[v] = readers_of(c, v);
  if (is_stored(c, v, w->group)) {
    if (status == SCL_OK) status = scl_storage_make(c, v);
    s->to = c->step[v] = place_of(w, v, &status);
  } else {
    s->to = c->step[v] = w->free_count > 0 ? w->free_register[--w->free_count]
                                           : (SCL_REGISTER_OTHER | w->n->others++);
  }
  return status;
}

scl_status scl_number_group(scl_compiling *c, const scl_group *g) {
  const int *value = c->schedule.value + g->first, group = c->schedule.group_of[*value];
  const size_t count = (size_t)g->count, most = 4 * count; /* each value and its operands */
  numbering w = {.c = c, .group = group, .list = ++c->lists};
  scl_routine_step *step;
  scl_status status = scl_routine_add(c->routine, &step);
  if (status != SCL_OK) return status;
  w.n = step->numbers = scl_numbers_make(count, most, most);
  w.free_register = malloc((count + 1) * sizeof *w.free_register);
  if (w.n == NULL || w.free_register == NULL)
    status = scl_fail_memory(most * sizeof *w.n->place, 0, "a program");
  for (int i = 0; i < g->count && status == SCL_OK; i++) status = add_value(&w, value[i]);
  free(w.free_register);
  return status;
}
