/* Calls of the engine as steps of a routine. */
#include <stdlib.h>

#include "program/compile.h"
#include "program/scan.h"

static scl_status block_of(scl_compiling *c, int v, int k, size_t m, size_t n, scl_block *out) {
  return scl_storage_block(c, scl_tape_operand(&c->lowered.tape, v, k), m, n, out);
}

/* X' r, or X b of several vectors, that shares no kernel. */
static scl_status fill_apart(scl_compiling *c, int v, scl_routine_step *s) {
  const scl_value *value = &c->lowered.tape.value[v];
  const bool adjoint = value->kind == SCL_VALUE_MATVEC_ADJOINT;
  const size_t m = value->at[0], k = value->at[1], n = value->at[adjoint ? 3 : 2];
  const size_t at[] = {adjoint ? k : m, adjoint ? m : k, n, adjoint, 0};
  s->kind = SCL_VALUE_MATMUL;
  scl_value_call(s->kind, at, &s->call);
  SCL_TRY(block_of(c, v, adjoint ? 1 : 0, m, k, &s->a));
  SCL_TRY(block_of(c, v, adjoint ? 0 : 1, adjoint ? m : k, n, &s->b));
  SCL_TRY(scl_storage_make(c, v));
  return scl_storage_block(c, v, adjoint ? k : m, n, &s->dst);
}

static size_t index_columns(const scl_value *v) {
  return v->kind == SCL_VALUE_GATHER_COLUMNS    ? v->at[1]
         : v->kind == SCL_VALUE_SCATTER_COLUMNS ? v->at[2]
                                                : 1;
}

static scl_status fill_indexed(scl_compiling *c, int v, scl_routine_step *s) {
  const scl_tape *t = &c->lowered.tape;
  const scl_value *value = &t->value[v];
  const int data = (int)value->at[0];
  const size_t length = scl_tape_length(t, scl_tape_operand(t, v, 0));
  const size_t columns = index_columns(value);
  SCL_TRY(block_of(c, v, 0, length / columns, columns, &s->a));
  if (value->kind == SCL_VALUE_SCATTER || value->kind == SCL_VALUE_SCATTER_COLUMNS) {
    SCL_TRY(scl_resident_groups(c->data, data, value->at[1], &s->b, &s->more, &s->most));
  } else {
    SCL_TRY(scl_resident_numbers(c->data, data, &s->b));
    c->data->of[data].is_index = true;
  }
  SCL_TRY(scl_storage_make(c, v));
  return scl_storage_block(c, v, value->length / columns, columns, &s->dst);
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
  const scl_value *value = &c->lowered.tape.value[v];
  scl_block *block[] = {&s->a, &s->b};
  scl_value_call(s->kind, value->at, &s->call);
  for (int k = 0; k < value->operands; k++) {
    const scl_shape shape = s->call.operand[k].shape;
    SCL_TRY(block_of(c, v, k, shape.nrow, shape.ncol, block[k]));
  }
  if (s->kind == SCL_VALUE_CHOL) {
    scl_routine *r = c->routine;
    s->more = scl_block_part(r->out, r->results + (size_t)r->factors, 0, 1, 1);
    r->vector[r->factors++] = value->at[1];
  }
  if (scl_is_sparse(s->kind)) {
    SCL_TRY(
        scl_resident_sparse(c->data, (int)value->at[0], value->at[1], value->at[2], &s->sparse));
  }
  const scl_value_shape result = scl_value_shape_of(s->kind, value->at, SCL_OF_RESULT);
  SCL_TRY(scl_storage_make(c, v));
  return scl_storage_block(c, v, result.rows, result.columns, &s->dst);
}

scl_status scl_add_call(scl_compiling *c, int v) {
  scl_routine_step *s;
  if (c->lowered.tape.value[v].length == 0) return SCL_OK;
  SCL_TRY(scl_routine_add(c->routine, &s));
  s->kind = (scl_value_kind)c->lowered.tape.value[v].kind;
  switch (s->kind) {
  case SCL_VALUE_MATVEC:
  case SCL_VALUE_MATVEC_ADJOINT:
    return fill_apart(c, v, s);
  case SCL_VALUE_GATHER:
  case SCL_VALUE_SCATTER:
  case SCL_VALUE_GATHER_COLUMNS:
  case SCL_VALUE_SCATTER_COLUMNS:
    return fill_indexed(c, v, s);
  case SCL_VALUE_SCAN:
    return fill_scan(c, v, s);
  default:
    return fill_call(c, v, s);
  }
}
