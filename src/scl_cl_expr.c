/* Plans of lazy arithmetic on a device. */
#include "scl_cl.h"

#include "scl_expr_graph.h"

scl_status scl_cl_expr(scl_context *ctx, const scl_plan *plan) {
  (void)plan;
  return scl_fail(SCL_E_OPENCL, "lazy arithmetic on '%s' is not there yet", scl_context_name(ctx));
}
