/* The operations of ops/operations.def by plain loops. */
#ifndef OPERATION_REFERENCE_H
#define OPERATION_REFERENCE_H

#include "ops/table.h"

/* The result of a call on these operands (column-major, as their shapes in the call say) at `to`,
 * which has room for `shape`. False for a row that it does not know. */
bool operation_reference(const scl_call *call, const double *const *x, scl_shape shape, double *to);

#endif
