/* Checks of all elements of a matrix. They wait for the device, and may fail as it does. */
#ifndef SCL_OPS_CHECK_H
#define SCL_OPS_CHECK_H

#include "base/engine.h"

/* *index as for the engine's check (base/engine.h), 0 when all pass. `tol` is for the symmetric
 * one, which needs a square a. */
scl_status scl_check_matrix(scl_check what, double tol, const scl_mat *a, int64_t *index);

#endif
