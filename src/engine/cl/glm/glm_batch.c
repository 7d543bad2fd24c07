/* Generalised linear models by group on a device: glm_batch.cl. */
#include "engine/pass/glm_batch.h"
#include "engine/cl/linalg/linalg.h"

enum {
  ITEMS_GPU = 32,      /* work-items of a group: a warp */
  MOST_GROUPS = 65536, /* of the range; the kernel walks over more with this stride */
  MOST_COLUMNS = 40    /* whose matrices fit into local memory */
};

scl_status scl_cl_glm_batch(scl_context *ctx, const scl_glm_batch_pass *pass, bool *done) {
  const glm_batch_task *task = &pass->task;
  *done = task->p <= MOST_COLUMNS;
  if (!*done) return SCL_OK;
  scl_cl_op op;
  scl_block work;
  scl_status status;
  scl_cl_op_begin(&op, ctx);
  const size_t items = op.cl->cpu ? 1 : ITEMS_GPU;
  const size_t groups = scl_min((size_t)task->groups, MOST_GROUPS);
  const size_t numbers = (size_t)GLM_BATCH_LOCAL(task->p, (int)items);
  /* an unused block still needs some buffer */
  const scl_block weights = task->weighted ? pass->weights : pass->y;
  const scl_block offset = task->shifted ? pass->offset : pass->y;
  const scl_block order = task->ordered ? pass->order : pass->y;
  const scl_block inputs[] = {pass->x, pass->y, weights, offset, order, pass->starts};
  for (int k = 0; k < 6; k++) scl_cl_op_reads(&op, inputs[k].buffer);
  scl_cl_op_writes(&op, pass->eta.buffer);
  scl_cl_op_writes(&op, pass->out.buffer);
  SCL_GO(scl_cl_op_order(&op, -1));
  op.timing = SCL_CL_TIME_EACH;
  SCL_GO(scl_cl_temporary(&op, pass->y.nrow, (size_t)GLM_BATCH_ROW(task->p), &work));
  status = scl_launch_glm_batch_groups(&op, scl_cl_range_1(groups * items, items), task,
                                       scl_in(pass->x), scl_in_at(pass->y), scl_in_at(weights),
                                       scl_in_at(offset), scl_in_at(order), scl_in_at(pass->starts),
                                       scl_inout_at(work), scl_out_at(pass->eta),
                                       scl_out_at(pass->out), scl_local(numbers * sizeof(double)));
  scl_buffer_release(work.buffer);
done:
  return scl_cl_op_end(&op, status);
}
