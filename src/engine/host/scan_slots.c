#include "engine/host/scan_slots.h"

#include <stdlib.h>

#include "engine/host/code.h"

enum { NONE = SCL_SCAN_ONE };

/* The last index in the order of operations at which each register is read. Registers that are read
 * step by step are kept to the end of those operations. */
static void find_last_uses(const scl_scan_code *c, int *last) {
  const int first = c->inputs + c->constants, end = first + c->operations;
  int within = first;
  for (int k = 0; k < c->operations; k++) {
    if (c->operation[k].phase <= SCL_SCAN_WITHIN) within = first + k;
  }
  for (int r = 0; r < end; r++) last[r] = r;
  for (int k = 0; k < c->operations; k++) {
    const scl_scan_operation *o = &c->operation[k];
    for (int i = 0; i < scl_op_arity((scl_op)o->op); i++) {
      const bool early =
          o->phase == SCL_SCAN_WITHIN && scl_scan_phase_of(c, o->arg[i]) != SCL_SCAN_WITHIN;
      last[o->arg[i]] = early ? within : first + k;
    }
  }
  for (int k = 0; k < c->listed; k++) last[c->result[k]] = end;
  if (c->guard >= 0) last[c->guard] = end;
}

/* Slots: inputs have their own; those of operations are used again. `ended` and `next` list the
 * registers by their last use. */
static void give_slots(scl_scan_slots *j, const int *last, int *ended, int *next, int *free_slot) {
  const scl_scan_code *c = j->code;
  const int first = c->inputs + c->constants;
  int free_count = 0;
  for (int r = 0; r < first; r++) {
    j->slot[r] = scl_scan_phase_of(c, r) == SCL_SCAN_ONCE ? NONE : j->slots++;
  }
  for (int r = 0; r <= j->registers; r++) ended[r] = NONE;
  for (int r = first; r < j->registers; r++) {
    next[r] = ended[last[r]];
    ended[last[r]] = r;
  }
  for (int r = first; r < j->registers; r++) {
    j->slot[r] = NONE;
    if (c->operation[r - first].phase == SCL_SCAN_ONCE) continue;
    j->slot[r] = free_count > 0 ? free_slot[--free_count] : j->slots++;
    for (int a = ended[r]; a != NONE; a = next[a]) {
      if (j->slot[a] != NONE) free_slot[free_count++] = j->slot[a];
    }
  }
}

static bool is_within(const scl_scan_code *c, int reg) {
  return reg >= c->inputs + c->constants && scl_scan_phase_of(c, reg) == SCL_SCAN_WITHIN;
}

/* A new state that is computed step by step is computed where the next step reads it. */
static void place_states(scl_scan_slots *j) {
  const scl_scan_code *c = j->code;
  const int states = (int)scl_scan_numbers(&c->shape, SCL_SCAN_STATE);
  for (int k = 0; k < states && c->guard < 0; k++) {
    const int reg = c->result[k];
    if (!is_within(c, reg) || j->ahead[reg]) continue;
    j->slot[reg] = j->slot[k];
    j->ahead[reg] = true;
  }
}

static void count_uses(scl_scan_slots *j) {
  const scl_scan_code *c = j->code;
  for (int k = 0; k < c->operations; k++) {
    const scl_scan_operation *o = &c->operation[k];
    for (int i = 0; i < scl_op_arity((scl_op)o->op); i++) j->uses[o->arg[i]]++;
  }
  for (int k = 0; k < c->listed; k++) j->uses[c->result[k]]++;
  if (c->guard >= 0) j->uses[c->guard]++;
}

scl_status scl_scan_slots_find(scl_scan_slots *j, const scl_scan_code *code) {
  *j = (scl_scan_slots){.code = code};
  j->registers = code->inputs + code->constants + code->operations;
  const size_t registers = (size_t)j->registers + 1;
  int *work = malloc(4 * registers * sizeof *work);
  j->ahead = calloc(registers, sizeof *j->ahead);
  j->uses = calloc(registers, sizeof *j->uses);
  j->slot = malloc(registers * sizeof *j->slot);
  if (work == NULL || j->slot == NULL || j->ahead == NULL || j->uses == NULL) {
    free(work);
    return scl_fail_memory(4 * registers * sizeof *work, 0, "a recursion");
  }
  find_last_uses(code, work);
  give_slots(j, work, work + registers, work + 2 * registers, work + 3 * registers);
  free(work);
  place_states(j);
  count_uses(j);
  return SCL_OK;
}

/* Whether an operation from `before` to k, without these, writes to a register's slot. */
static bool is_written(const scl_scan_slots *j, int reg, int before, int k) {
  const int first = j->code->inputs + j->code->constants;
  for (int r = first + before + 1; r < first + k; r++) {
    if (j->slot[r] == j->slot[reg] && !j->ahead[r]) return true;
  }
  return false;
}

int scl_scan_slots_pair(const scl_scan_slots *j, int before, int k) {
  if (before < 0) return NONE;
  const int reg = j->code->inputs + j->code->constants + before;
  const scl_scan_operation *o = &j->code->operation[k], *b = &j->code->operation[before];
  int place = NONE;
  for (int i = 0; i < scl_op_arity((scl_op)o->op) && i < 2; i++) {
    if (o->arg[i] == reg && scl_host_code_pair(b->op, o->op, i) != 0) place = i;
  }
  if (place == NONE || j->uses[reg] != 1) return NONE;
  for (int i = 0; i < scl_op_arity((scl_op)b->op); i++) {
    if (is_written(j, b->arg[i], before, k)) return NONE;
  }
  return place;
}

void scl_scan_slots_end(scl_scan_slots *j) {
  free(j->slot);
  free(j->ahead);
  free(j->uses);
}
