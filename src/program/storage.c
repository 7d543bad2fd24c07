/* Storage of values: one allocation for each value that outlives its kernel, reused by later values
 * of the same length. Operands of a concat are stored in the concat's allocation. */
#include <stdlib.h>
#include <string.h>

#include "program/compile.h"

enum { NONE = -1 };

/* Short values share buffers where this saves time: on the host, whose caches then hold more of
 * them. */
enum { SHORT = 512, SHARED = 4096 };

typedef struct scl_free_block {
  scl_location at;
  size_t length;
  struct scl_free_block *next;
} free_block;

/* The value whose allocation holds this one. */
static int owner_of(const scl_compiling *c, int value) {
  value = scl_root(&c->lowered.tape, value);
  while (c->lowered.holder[value] != NONE) value = c->lowered.holder[value];
  return value;
}

/* The stored value from which `value` is read: for a view, its operand. */
static int read_of(const scl_compiling *c, int value) {
  const scl_tape *t = &c->lowered.tape;
  value = scl_root(t, value);
  while (scl_how(&t->value[value]) == SCL_IS_VIEW) {
    value = scl_root(t, scl_tape_operand(t, value, 0));
  }
  return value;
}

static void find_last_uses(scl_compiling *c) {
  const scl_tape *t = &c->lowered.tape;
  const scl_schedule *s = &c->schedule;
  for (int v = 0; v < t->values; v++) c->last_use[v] = s->group_of[v];
  for (int v = 0; v < t->values; v++) {
    if (s->group_of[v] == NONE) continue;
    int *own = &c->last_use[owner_of(c, v)];
    if (s->group_of[v] > *own) *own = s->group_of[v];
    for (int k = 0; k < t->value[v].operands; k++) {
      int *use = &c->last_use[owner_of(c, read_of(c, scl_tape_operand(t, v, k)))];
      if (s->group_of[v] > *use) *use = s->group_of[v];
    }
  }
  c->last_use[owner_of(c, c->lowered.result)] = s->groups;
}

/* Lists, for each value, the values that read it. */
static void find_readers(scl_compiling *c) {
  const scl_tape *t = &c->lowered.tape;
  memset(c->first_reader, 0, ((size_t)t->values + 1) * sizeof *c->first_reader);
  for (int k = 0; k < t->operands_used; k++) c->first_reader[t->operand[k] + 1]++;
  for (int v = 0; v < t->values; v++) c->first_reader[v + 1] += c->first_reader[v];
  for (int v = 0; v < t->values; v++) {
    for (int k = 0; k < t->value[v].operands; k++) {
      c->reader[c->first_reader[scl_tape_operand(t, v, k)]++] = v;
    }
  }
  for (int v = t->values; v > 0; v--) c->first_reader[v] = c->first_reader[v - 1];
  c->first_reader[0] = 0;
}

scl_status scl_storage_begin(scl_compiling *c) {
  const scl_tape *t = &c->lowered.tape;
  const size_t values = (size_t)t->values;
  c->at = calloc(values, sizeof *c->at);
  c->last_use = malloc(values * sizeof *c->last_use);
  c->reader = malloc(((size_t)t->operands_used + 1) * sizeof *c->reader);
  c->first_reader = malloc((values + 1) * sizeof *c->first_reader);
  c->step = malloc(values * sizeof *c->step);
  c->list_of = malloc(values * sizeof *c->list_of);
  c->uses = malloc(values * sizeof *c->uses);
  if (c->at == NULL || c->last_use == NULL || c->reader == NULL || c->first_reader == NULL ||
      c->step == NULL || c->list_of == NULL || c->uses == NULL) {
    return scl_fail_memory(values * sizeof *c->at, 0, "a program");
  }
  for (int v = 0; v < t->values; v++) c->step[v] = c->list_of[v] = NONE;
  find_last_uses(c);
  find_readers(c);
  return SCL_OK;
}

void scl_storage_end(scl_compiling *c) {
  for (int k = 0; k < SCL_FREE_LISTS; k++) {
    while (c->free_list[k] != NULL) {
      free_block *next = c->free_list[k]->next;
      free(c->free_list[k]);
      c->free_list[k] = next;
    }
  }
  free(c->at);
  free(c->last_use);
  free(c->reader);
  free(c->first_reader);
  free(c->step);
  free(c->list_of);
  free(c->uses);
}

/* ---- allocations ---------------------------------------------------------------------------- */

static scl_status allocate_buffer(scl_compiling *c, size_t length, scl_location *out) {
  scl_block block;
  SCL_TRY(scl_block_create(c->data->ctx, length, 1, &block));
  SCL_TRY(scl_routine_hold(c->routine, block.buffer));
  *out = (scl_location){block.buffer, 0};
  return SCL_OK;
}

/* The list with the free storage of this length, latest first, among others. */
static free_block **list_of(scl_compiling *c, size_t length) {
  return &c->free_list[length % SCL_FREE_LISTS];
}

/* Storage of this length that is free, or a new one. */
static scl_status allocate(scl_compiling *c, size_t length, scl_location *out) {
  for (free_block **f = list_of(c, length); *f != NULL; f = &(*f)->next) {
    if ((*f)->length != length) continue;
    free_block *found = *f;
    *out = found->at;
    *f = found->next;
    free(found);
    return SCL_OK;
  }
  if (length > SHORT || !scl_traits(c->data->ctx)->synchronous)
    return allocate_buffer(c, length, out);
  if (c->shared_left < length) {
    SCL_TRY(allocate_buffer(c, SHARED, &c->shared));
    c->shared_left = SHARED;
  }
  *out = c->shared;
  c->shared.offset += length;
  c->shared_left -= length;
  return SCL_OK;
}

/* The results are followed by the orders of failing minors. */
static scl_status allocate_owner(scl_compiling *c, int value) {
  if (c->at[value].buffer != NULL) return SCL_OK;
  if (value == owner_of(c, c->lowered.result)) {
    c->at[value] = (scl_location){c->routine->out.buffer, 0};
    return SCL_OK;
  }
  return allocate(c, scl_tape_length(&c->lowered.tape, value), &c->at[value]);
}

scl_status scl_storage_make(scl_compiling *c, int value) {
  size_t offset = 0;
  int owner = value;
  for (; c->lowered.holder[owner] != NONE; owner = c->lowered.holder[owner]) {
    offset += c->lowered.offset[owner];
  }
  SCL_TRY(allocate_owner(c, owner));
  if (owner != value)
    c->at[value] = (scl_location){c->at[owner].buffer, c->at[owner].offset + offset};
  return SCL_OK;
}

scl_status scl_storage_release(scl_compiling *c, int group) {
  const scl_group *g = &c->schedule.group[group];
  const scl_tape *t = &c->lowered.tape;
  for (int i = 0; i < g->count; i++) {
    const int v = c->schedule.value[g->first + i];
    /* Values that end here were read by this group, or computed by it. */
    for (int k = -1; k < t->value[v].operands; k++) {
      const int x = k < 0 ? v : read_of(c, scl_tape_operand(t, v, k));
      const int owner = owner_of(c, x);
      if (c->last_use[owner] != group || c->at[owner].buffer == NULL) continue;
      if (scl_how(&t->value[owner]) == SCL_IS_LEAF) continue;
      free_block *f = malloc(sizeof *f);
      if (f == NULL) return scl_fail_memory(sizeof *f, 0, "a program");
      const size_t length = scl_tape_length(t, owner);
      free_block **list = list_of(c, length);
      *f = (free_block){c->at[owner], length, *list};
      *list = f;
      c->last_use[owner] = NONE; /* once */
    }
  }
  return SCL_OK;
}

/* ---- layout --------------------------------------------------------------------------------- */

scl_status scl_storage_find(scl_compiling *c, int value, scl_location *out) {
  const scl_tape *t = &c->lowered.tape;
  size_t offset = 0;
  for (; scl_is_alias(&t->value[value]); value = scl_tape_operand(t, value, 0)) {
    const size_t *at = t->value[value].at;
    offset += at[1] + at[2] * at[0];
  }
  const scl_value *v = &t->value[value];
  scl_location here = c->at[value];
  if (v->kind == SCL_VALUE_PARAMETER) {
    here = (scl_location){c->input.buffer, c->input.offset + v->at[0]};
  } else if (v->kind == SCL_VALUE_DATA) {
    scl_block block;
    SCL_TRY(scl_resident_numbers(c->data, (int)v->at[0], &block));
    here = (scl_location){block.buffer, block.offset};
  } else if (here.buffer == NULL && scl_how(v) == SCL_IS_LAYOUT) {
    SCL_TRY(scl_storage_make(c, value)); /* all of its operands are empty, or it is read first */
    here = c->at[value];
  }
  here.offset += offset;
  *out = here;
  return SCL_OK;
}

scl_status scl_storage_block(scl_compiling *c, int value, size_t m, size_t n, scl_block *out) {
  scl_location at;
  SCL_TRY(scl_storage_find(c, value, &at));
  *out = (scl_block){at.buffer, at.offset, m, m, n, SCL_F64};
  return SCL_OK;
}
