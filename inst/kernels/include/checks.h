/* What reduce.cl and its driver (engine/cl/elementwise/check.c) share. No code. */
#ifndef SCL_KERNEL_CHECKS_H
#define SCL_KERNEL_CHECKS_H

/* The values of scl_check and scl_view (base/engine.h, base/matrix.h). */
#define CHECK_FINITE 0
#define CHECK_SYMMETRIC 1
#define VIEW_LOWER 1
#define VIEW_UPPER 2
#define VIEW_SYMMETRIC 3

#endif
