/* Between the files of lazy arithmetic on a device. */
#ifndef SCL_ENGINE_CL_ELEMENTWISE_PLAN_H
#define SCL_ENGINE_CL_ELEMENTWISE_PLAN_H

#include "engine/cl/runtime/cl.h"
#include "engine/plan/plan.h"

typedef struct {
  scl_cl_launchable main; /* `expr` */
  scl_cl_launchable last; /* `expr_final`, where something is reduced */
} scl_cl_expr_kernels;

/* The kernels of a plan, compiled at the first use of its structure; valid until the next call. */
scl_status scl_cl_expr_find(scl_cl_context *cl, const scl_plan *plan,
                            const scl_cl_expr_kernels **out);

/* Work-items along dimension 1 of a group with tiles. */
int scl_cl_expr_tile_rows(const scl_cl_context *cl);

#endif
