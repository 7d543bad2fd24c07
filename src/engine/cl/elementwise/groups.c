/* Sums over groups of elements, and cumulative sums, on a device: groups.cl. */
#include "engine/cl/linalg/linalg.h"

enum {
  ITEMS_GPU = 128, /* work-items of a group */
  ITEMS_CPU = 16,
  SHORT = 32,          /* elements of a group, on average, up to which one work-item adds them, */
  MOST_SHORT = 512,    /* if the largest has no more than this */
  LONG = 8192,         /* elements of a group from which several work-groups add them, */
  PART = 4096,         /* about this many each, */
  MOST_PARTS = 1024,   /* as long as they are no more than this for a group, */
  MOST_SUMS = 1048576, /* and this in all */
  MOST_GROUPS = 65536, /* of the range; kernels walk over more with this stride */
  ITEMS_SHORT = 64     /* work-items of a group then */
};

/* Sums each group in parts, and then the sums of the parts. */
static scl_status sum_parts(scl_cl_op *op, scl_block starts, scl_block order, size_t most,
                            scl_block src, scl_block dst) {
  const size_t groups = dst.nrow, items = op->cl->cpu ? ITEMS_CPU : ITEMS_GPU;
  const size_t allowed = scl_min(MOST_PARTS, scl_max(1, MOST_SUMS / groups));
  const size_t parts = scl_min(scl_ceil_div(most, PART), allowed);
  const scl_cl_range range = scl_cl_range_1(scl_min(groups * parts, MOST_GROUPS) * items, items);
  const scl_cl_range adding = scl_cl_range_1(scl_round_up(groups, ITEMS_SHORT), ITEMS_SHORT);
  scl_block sums;
  scl_cl_op_reads(op, starts.buffer);
  scl_cl_op_reads(op, order.buffer);
  scl_cl_op_reads(op, src.buffer);
  scl_cl_op_writes(op, dst.buffer);
  SCL_TRY(scl_cl_op_order(op, -1));
  SCL_TRY(scl_cl_temporary(op, groups * parts, 1, &sums));
  scl_status status = scl_launch_groups_sum_parts(
      op, range, (int)groups, (int)parts, scl_in_at(starts), scl_in_at(order), scl_in_at(src),
      scl_out_buffer(sums.buffer), scl_local(items * sizeof(double)));
  if (status == SCL_OK) {
    status = scl_launch_groups_add_parts(op, adding, (int)groups, (int)parts,
                                         scl_in_buffer(sums.buffer), scl_out_at(dst));
  }
  scl_buffer_release(sums.buffer);
  return status;
}

scl_status scl_cl_group_sums(scl_context *ctx, scl_block starts, scl_block order, size_t most,
                             scl_block src, scl_block dst) {
  if (dst.nrow == 0) return SCL_OK;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  /* An unused block needs a buffer too. */
  if (order.buffer == NULL) order = src = starts;
  if (order.nrow <= SHORT * dst.nrow && most <= MOST_SHORT) {
    const scl_cl_range range = scl_cl_range_1(scl_round_up(dst.nrow, ITEMS_SHORT), ITEMS_SHORT);
    return scl_cl_op_end(&op, scl_launch_groups_sum_short(&op, range, (int)dst.nrow,
                                                          scl_in_at(starts), scl_in_at(order),
                                                          scl_in_at(src), scl_out_at(dst)));
  }
  if (most >= LONG) return scl_cl_op_end(&op, sum_parts(&op, starts, order, most, src, dst));
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
