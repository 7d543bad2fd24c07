/* Operations of elementwise.def with C's library and plain formulas, with R's meaning where it
 * differs. */
#ifndef OP_REFERENCE_H
#define OP_REFERENCE_H

#include "engine/plan/elementwise.h"

/* The table's own value for an operation that it does not know. */
double op_reference(scl_op op, double a, double b, double c);

#endif
