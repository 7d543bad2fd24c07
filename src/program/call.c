/* Calls of the engine as steps of a routine. */
#include <stdlib.h>

#include "program/compile.h"
#include "program/scan.h"

static scl_status block_of(scl_compiling *c, int v, int k, size_t m, size_t n, scl_block *out) {
  return scl_storage_block(c, scl_tape_operand(&c->lowered.tape, v, k), m, n, out);
}

static scl_status fill_matmul(scl_compiling *c, int v, scl_routine_step *s) {
  const size_t *at = c->lowered.tape.value[v].at;
  s->flag[0] = at[3] != 0;
  s->flag[1] = at[4] != 0;
  SCL_TRY(block_of(c, v, 0, at[s->flag[0] ? 1 : 0], at[s->flag[0] ? 0 : 1], &s->a));
  return block_of(c, v, 1, at[s->flag[1] ? 2 : 1], at[s->flag[1] ? 1 : 2], &s->b);
}

/* X' r, or X b of several vectors, that shares no kernel. */
static scl_status fill_apart(scl_compiling *c, int v, scl_routine_step *s) {
  const scl_value *value = &c->lowered.tape.value[v];
  const size_t m = value->at[0], k = value->at[1];
  s->kind = SCL_VALUE_MATMUL;
  s->flag[0] = value->kind == SCL_VALUE_MATVEC_ADJOINT;
  const size_t n = value->at[s->flag[0] ? 3 : 2];
  SCL_TRY(block_of(c, v, s->flag[0] ? 1 : 0, m, k, &s->a));
  SCL_TRY(block_of(c, v, s->flag[0] ? 0 : 1, s->flag[0] ? m : k, n, &s->b));
  SCL_TRY(scl_storage_make(c, v));
  return scl_storage_block(c, v, s->flag[0] ? k : m, n, &s->dst);
}

static scl_status fill_lu_solve(scl_compiling *c, int v, scl_routine_step *s) {
  const size_t *at = c->lowered.tape.value[v].at;
  s->flag[0] = at[2] != 0;
  SCL_TRY(block_of(c, v, 0, at[0] * (at[0] + 1), 1, &s->a));
  return block_of(c, v, 1, at[0], at[1], &s->b);
}

static size_t index_columns(const scl_value *v) {
  return v->kind == SCL_VALUE_GATHER_COLUMNS    ? v->at[1]
         : v->kind == SCL_VALUE_SCATTER_COLUMNS ? v->at[2]
                                                : 1;
}

/* Fills the step of a gather or a scatter. */
static scl_status fill_indexed(scl_compiling *c, int v, size_t columns, scl_routine_step *s) {
  const scl_tape *t = &c->lowered.tape;
  const scl_value *value = &t->value[v];
  const int data = (int)value->at[0];
  const size_t length = scl_tape_length(t, scl_tape_operand(t, v, 0));
  SCL_TRY(block_of(c, v, 0, length / columns, columns, &s->a));
  if (value->kind == SCL_VALUE_SCATTER || value->kind == SCL_VALUE_SCATTER_COLUMNS) {
    return scl_resident_groups(c->data, data, value->at[1], &s->b, &s->more, &s->most);
  }
  SCL_TRY(scl_resident_numbers(c->data, data, &s->b));
  c->data->of[data].is_index = true;
  return SCL_OK;
}

static scl_status fill_scan(scl_compiling *c, int v, scl_routine_step *s) {
  const scl_tape *t = &c->lowered.tape;
  const scl_value *value = &t->value[v];
  scl_scan_pass *scan = s->scan = calloc(1, sizeof *scan);
  if (scan == NULL) return scl_fail_memory(sizeof *scan, 0, "a program");
  scan->steps = value->at[1];
  scan->sequences = value->at[2];
  scan->reverse = value->at[3] != 0;
  scan->keeps = value->at[4] != 0;
  scan->input = calloc((size_t)value->operands, sizeof *scan->input);
  if (scan->input == NULL) return scl_fail_memory(sizeof *scan, 0, "a program");
  SCL_TRY(scl_scan_code_make(t->body[value->at[0]], &scan->code));
  for (int k = 0; k < value->operands; k++) {
    const size_t length = scl_tape_length(t, scl_tape_operand(t, v, k));
    SCL_TRY(block_of(c, v, k, length, 1, &scan->input[k]));
  }
  SCL_TRY(scl_storage_make(c, v));
  return scl_storage_block(c, v, value->length, 1, &scan->dst);
}

/* The blocks of a call, in the shapes that its operation sees. */
static scl_status fill_call(scl_compiling *c, int v, scl_routine_step *s) {
  const scl_tape *t = &c->lowered.tape;
  const scl_value *value = &t->value[v];
  const size_t *at = value->at;
  size_t rows = value->length, columns = 1;
  switch (value->kind) {
  case SCL_VALUE_GATHER:
  case SCL_VALUE_SCATTER:
  case SCL_VALUE_GATHER_COLUMNS:
  case SCL_VALUE_SCATTER_COLUMNS:
    columns = index_columns(value);
    rows = value->length / columns;
    SCL_TRY(fill_indexed(c, v, columns, s));
    break;
  case SCL_VALUE_CUMSUM:
    s->flag[0] = at[2] != 0;
    rows = at[0];
    columns = at[1];
    SCL_TRY(block_of(c, v, 0, rows, columns, &s->a));
    break;
  case SCL_VALUE_MATMUL:
    SCL_TRY(fill_matmul(c, v, s));
    rows = at[0];
    columns = at[2];
    break;
  case SCL_VALUE_TRI_SOLVE:
    SCL_TRY(block_of(c, v, 0, at[0], at[0], &s->a));
    SCL_TRY(block_of(c, v, 1, at[0], at[1], &s->b));
    s->flag[0] = at[2] != 0;
    s->flag[1] = at[3] != 0;
    rows = at[0];
    columns = at[1];
    break;
  case SCL_VALUE_LU:
    SCL_TRY(block_of(c, v, 0, at[0], at[0], &s->a));
    break;
  case SCL_VALUE_LU_SOLVE:
    SCL_TRY(fill_lu_solve(c, v, s));
    rows = at[0];
    columns = at[1];
    break;
  case SCL_VALUE_CHOL:
    s->more =
        scl_block_part(c->routine->out, c->routine->results + (size_t)c->routine->factors, 0, 1, 1);
    c->routine->vector[c->routine->factors++] = at[1];
    SCL_TRY(block_of(c, v, 0, at[0], at[0], &s->a));
    rows = columns = at[0];
    break;
  default: /* CHOL_ADJOINT, TRIANGLE */
    SCL_TRY(block_of(c, v, 0, at[0], at[0], &s->a));
    if (value->operands > 1) SCL_TRY(block_of(c, v, 1, at[0], at[0], &s->b));
    s->flag[0] = at[1] == 1;
    s->flag[1] = at[1] == 2;
    rows = columns = at[0];
    break;
  }
  SCL_TRY(scl_storage_make(c, v));
  return scl_storage_block(c, v, rows, columns, &s->dst);
}

scl_status scl_add_call(scl_compiling *c, int v) {
  scl_routine_step *s;
  if (c->lowered.tape.value[v].length == 0) return SCL_OK;
  SCL_TRY(scl_routine_add(c->routine, &s));
  s->kind = (scl_value_kind)c->lowered.tape.value[v].kind;
  if (s->kind == SCL_VALUE_MATVEC || s->kind == SCL_VALUE_MATVEC_ADJOINT)
    return fill_apart(c, v, s);
  return s->kind == SCL_VALUE_SCAN ? fill_scan(c, v, s) : fill_call(c, v, s);
}
