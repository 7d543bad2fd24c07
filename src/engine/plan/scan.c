/* Recursions: shapes, and the order of operations. */
#include "engine/plan/scan.h"

#include <stdlib.h>
#include <string.h>

/* ---- shapes --------------------------------------------------------------------------------- */

int scl_scan_first(const scl_scan_shape *s, scl_scan_role role) {
  int first = 0;
  for (int r = 0; r < (int)role; r++) first += s->ports[r];
  return first;
}

size_t scl_scan_numbers(const scl_scan_shape *s, scl_scan_role role) {
  const int first = scl_scan_first(s, role);
  size_t numbers = 0;
  for (int k = 0; k < s->ports[role]; k++) numbers += s->port[first + k].length;
  return numbers;
}

size_t scl_scan_offset(const scl_scan_shape *s, scl_scan_role role) {
  size_t offset = 0;
  for (int r = 0; r < (int)role; r++) offset += scl_scan_numbers(s, (scl_scan_role)r);
  return offset;
}

size_t scl_scan_begin(const scl_scan_shape *s, size_t steps, size_t sequences, scl_scan_role role,
                      bool kept) {
  const size_t state = scl_scan_numbers(s, SCL_SCAN_STATE) * sequences;
  const size_t sums = scl_scan_numbers(s, SCL_SCAN_SUM) * sequences;
  if (kept) return state + sums + scl_scan_numbers(s, SCL_SCAN_OUT) * steps * sequences;
  return role == SCL_SCAN_STATE ? 0 : role == SCL_SCAN_SUM ? state : state + sums;
}

size_t scl_scan_length(const scl_scan_shape *s, size_t steps, size_t sequences, bool keeps) {
  const size_t kept = keeps ? scl_scan_numbers(s, SCL_SCAN_STATE) * steps * sequences : 0;
  return scl_scan_begin(s, steps, sequences, SCL_SCAN_STATE, true) + kept;
}

int scl_scan_port_of(const scl_scan_shape *s, int reg, size_t *element) {
  size_t at = (size_t)reg;
  int port = 0;
  while (at >= s->port[port].length) at -= s->port[port++].length;
  *element = at;
  return port;
}

/* ---- order ---------------------------------------------------------------------------------- */

static int first_result(const scl_scan_code *code) {
  return code->inputs + code->constants;
}

scl_scan_phase scl_scan_phase_of(const scl_scan_code *code, int reg) {
  size_t element;
  if (reg >= first_result(code)) {
    return (scl_scan_phase)code->operation[reg - first_result(code)].phase;
  }
  if (reg >= code->inputs) return SCL_SCAN_ONCE;
  const int port = scl_scan_port_of(&code->shape, reg, &element);
  if (port < code->shape.ports[SCL_SCAN_STATE]) return SCL_SCAN_WITHIN;
  const bool fixed = port >= scl_scan_first(&code->shape, SCL_SCAN_FIXED);
  return fixed && code->shape.port[port].shared ? SCL_SCAN_ONCE : SCL_SCAN_BEFORE;
}

/* The latest phase of the operands; then, from the new states backwards, operations that the states
 * do not need are moved after the steps. */
static void find_phases(scl_scan_code *code, unsigned char *needed) {
  const int first = first_result(code),
            states = (int)scl_scan_numbers(&code->shape, SCL_SCAN_STATE);
  for (int k = 0; k < code->operations; k++) {
    scl_scan_operation *o = &code->operation[k];
    o->phase = SCL_SCAN_ONCE;
    for (int i = 0; i < scl_op_arity((scl_op)o->op); i++) {
      const scl_scan_phase phase = scl_scan_phase_of(code, o->arg[i]);
      if (phase > (scl_scan_phase)o->phase) o->phase = (uint8_t)phase;
    }
  }
  if (code->guard >= 0) needed[code->guard] = 1;
  for (int k = 0; k < code->listed; k++) {
    if (k % code->results < states) needed[code->result[k]] = 1;
  }
  for (int k = code->operations - 1; k >= 0; k--) {
    scl_scan_operation *o = &code->operation[k];
    if (o->phase == SCL_SCAN_WITHIN && !needed[first + k]) o->phase = SCL_SCAN_AFTER;
    if (!needed[first + k]) continue;
    for (int i = 0; i < scl_op_arity((scl_op)o->op); i++) needed[o->arg[i]] = 1;
  }
}

static void sort_operations(scl_scan_code *code, scl_scan_operation *sorted, int *moved) {
  const int first = first_result(code);
  int used = 0;
  for (int k = 0; k < first; k++) moved[k] = k;
  for (int part = 0; part < 2 * SCL_SCAN_PHASES; part++) {
    for (int k = 0; k < code->operations; k++) {
      if (2 * code->operation[k].phase + !code->operation[k].idle != part) continue;
      moved[first + k] = first + used;
      sorted[used++] = code->operation[k];
    }
  }
  for (int k = 0; k < code->operations; k++) {
    for (int i = 0; i < scl_op_arity((scl_op)sorted[k].op); i++) {
      sorted[k].arg[i] = moved[sorted[k].arg[i]];
    }
  }
  for (int k = 0; k < code->listed; k++) code->result[k] = moved[code->result[k]];
  if (code->guard >= 0) code->guard = moved[code->guard];
}

scl_status scl_scan_order(scl_scan_code *code) {
  const size_t registers = (size_t)(first_result(code) + code->operations);
  const size_t operations = (size_t)code->operations;
  unsigned char *needed = calloc(registers + 1, 1);
  int *moved = malloc((registers + 1) * sizeof *moved);
  scl_scan_operation *sorted = calloc(operations + 1, sizeof *sorted);
  scl_status status = SCL_OK;
  if (needed == NULL || moved == NULL || sorted == NULL) {
    free(sorted);
    status = scl_fail_memory(operations * sizeof *sorted, 0, "a recursion");
  } else {
    find_phases(code, needed);
    sort_operations(code, sorted, moved);
    free(code->operation);
    code->operation = sorted;
  }
  free(needed);
  free(moved);
  return status;
}

/* ---- facts ---------------------------------------------------------------------------------- */

bool scl_scan_calls(const scl_scan_code *code, const char *prefix) {
  for (int k = 0; k < code->operations; k++) {
    if (strstr(scl_ops[code->operation[k].op].expression, prefix) != NULL) return true;
  }
  return false;
}

void scl_scan_code_free(scl_scan_code *code) {
  if (code == NULL) return;
  free(code->constant);
  free(code->operation);
  free(code->result);
  free(code->source);
  free(code);
}
