/* Recorded loops become vector operations and scans. */
#ifndef SCL_PROGRAM_ROLL_H
#define SCL_PROGRAM_ROLL_H

#include "program/tape.h"

/* Fills the empty tape `to` with what the value `output` of a recorded tape (scl_tape::recorded)
 * needs; *result is its index there. Operations that are the same on other operands become one
 * operation on vectors; iterations that need those before them become a SCAN. The data of `from`
 * keep their numbers and are borrowed; its bodies move to `to`. Failures are kept in `to`. */
void scl_tape_roll(scl_tape *from, int output, scl_tape *to, int *result);

#endif
