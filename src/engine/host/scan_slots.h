/* Where a recursion's registers are: between the files of src/engine/host. */
#ifndef SCL_ENGINE_HOST_SCAN_SLOTS_H
#define SCL_ENGINE_HOST_SCAN_SLOTS_H

#include "engine/plan/scan.h"

enum { SCL_SCAN_ONE = -1 }; /* one number for all steps and sequences */

typedef struct {
  const scl_scan_code *code;
  int registers, slots;
  int *slot;   /* of each register: its slot in memory, or SCL_SCAN_ONE */
  bool *ahead; /* it is a state, in the row of the next step */
  int *uses;   /* how often it is read, or is a result */
} scl_scan_slots;

/* To be ended also on failure. */
scl_status scl_scan_slots_find(scl_scan_slots *slots, const scl_scan_code *code);
/* The place of operation `before`'s result among the operands of operation k, if only k reads it,
 * both are a pair (engine/host/code.h), and the operands of `before` have the same numbers when k
 * runs; -1 if not, or if `before` is negative. */
int scl_scan_slots_pair(const scl_scan_slots *j, int before, int k);
void scl_scan_slots_end(scl_scan_slots *slots);

#endif
