/* Sums over groups of elements, and cumulative sums, on a device: groups.cl. */
#include "engine/cl/linalg/linalg.h"

enum {
  ITEMS_GPU = 128, /* work-items of a group */
  ITEMS_CPU = 16,
  SHORT = 32,          /* elements of a group, on average, up to which one work-item adds them */
  MOST_GROUPS = 65536, /* of the range; kernels walk over more with this stride */
  ITEMS_SHORT = 64     /* work-items of a group then */
};

scl_status scl_cl_group_sums(scl_context *ctx, scl_block starts, scl_block order, scl_block src,
                             scl_block dst) {
  if (dst.nrow == 0) return SCL_OK;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  /* An unused block still needs some buffer. */
  if (order.buffer == NULL) order = src = starts;
  if (order.nrow <= SHORT * dst.nrow) {
    const scl_cl_range range = scl_cl_range_1(scl_round_up(dst.nrow, ITEMS_SHORT), ITEMS_SHORT);
    return scl_cl_op_end(&op, scl_launch_groups_sum_short(&op, range, (int)dst.nrow,
                                                          scl_in_at(starts), scl_in_at(order),
                                                          scl_in_at(src), scl_out_at(dst)));
  }
  const size_t items = op.cl->cpu ? ITEMS_CPU : ITEMS_GPU;
  const scl_cl_range range = scl_cl_range_1(scl_min(dst.nrow, MOST_GROUPS) * items, items);
  return scl_cl_op_end(&op, scl_launch_groups_sum(&op, range, (int)dst.nrow, scl_in_at(starts),
                                                  scl_in_at(order), scl_in_at(src), scl_out_at(dst),
                                                  scl_local(items * sizeof(double))));
}

scl_status scl_cl_cumulate(scl_context *ctx, bool reverse, scl_block src, scl_block dst) {
  if (dst.nrow == 0 || dst.ncol == 0) return SCL_OK;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  const size_t items = op.cl->cpu ? ITEMS_CPU : ITEMS_GPU;
  const scl_cl_range range = scl_cl_range_1(scl_min(dst.ncol, MOST_GROUPS) * items, items);
  return scl_cl_op_end(&op, scl_launch_groups_cumulate(&op, range, (int)dst.nrow, (int)dst.ncol,
                                                       reverse, scl_in(src), scl_out(dst),
                                                       scl_local(items * sizeof(double))));
}
