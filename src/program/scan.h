/* Steps of SCAN values: their derivatives, and the code that engines run. Between the files of
 * src/program.
 */
#ifndef SCL_PROGRAM_SCAN_H
#define SCL_PROGRAM_SCAN_H

#include "program/tape.h"

/* scl_tape_gradient() */
typedef int scl_gradient_of(scl_tape *t, int output, size_t parameters, bool again);

/* The derivative of a SCAN is a SCAN from the other end, whose state is the derivative with respect
 * to the state. From g, the derivative of the result, the share of each operand that is `active`; a
 * negative index for the others. */
void scl_scan_shares(scl_tape *t, int value, int g, const bool *active, scl_gradient_of *gradient,
                     int *share);

/* The operations of a step on single numbers (program/scan_code.c). SCL_E_ARGUMENT naming "f" if
 * there are too many. */
scl_status scl_scan_code_make(const scl_scan_body *body, scl_scan_code **out);

/* A copy of a body on another tape; each sequence has its own numbers of the inputs that are `own`.
 * Its index there. */
int scl_scan_copy(const scl_scan_body *from, const bool *own, scl_tape *to);

/* Whether steps may have values of this kind. */
bool scl_scan_has_code(scl_value_kind kind);

/* Whether a step from outside matches its ports: SCL_E_ARGUMENT naming "f". */
scl_status scl_scan_check(const scl_scan_body *body);

#endif
