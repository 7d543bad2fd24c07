/* Passes on a device: the groups, the launches, and whether programs should be made of passes. */
#include "engine/cl/elementwise/plan.h"

#include <stdlib.h>

#include "base/threads.h"
#include "engine/plan/pass.h"

/* Work-items that add what the groups left. */
enum { FINAL_ITEMS = 64 };

/* STATCL_ROW_PASS: 0 has X read twice, for comparison; from 2 on, so many groups of a unit. */
static size_t wanted(void) {
  const char *text = scl_env("STATCL_ROW_PASS");
  return text != NULL ? (size_t)strtoul(text, NULL, 10) : 1;
}

/* Groups of a unit. One more than its registers hold would wait for a whole pass: on an NVIDIA GPU
 * a work-item may have 128 registers with four groups, 168 with three. X and the sums stay in
 * registers, and so much is left for the steps; calls of special functions take more. */
enum { STEP_REGISTERS = 56, SPECIAL_REGISTERS = 32, LOADS = 2, OF_FOUR = 128, OF_THREE = 168 };

static size_t groups_of_unit(const scl_plan *p, const scl_pass_layout *l) {
  size_t registers = STEP_REGISTERS + 2u * l->columns * (size_t)(l->width + l->predictors);
  if (wanted() > 1) return wanted();
  if (p->leaves > LOADS + 2 * l->predictors) registers += 2u * p->leaves;
  if (scl_plan_is_special(p)) registers += SPECIAL_REGISTERS;
  return registers <= OF_FOUR ? 4 : registers <= OF_THREE ? 3 : 2;
}

size_t scl_cl_pass_columns(scl_context *ctx) {
  const scl_cl_context *cl = (scl_cl_context *)ctx;
  return cl->cpu || wanted() == 0 ? 0 : SCL_PASS_COLUMNS;
}

static scl_status launch_pass(scl_cl_op *op, const scl_plan *p, const scl_cl_launchable *k,
                              scl_block part, size_t groups) {
  const scl_pass_layout l = scl_plan_pass_layout(p);
  const size_t items = (size_t)l.row_lanes * l.lanes;
  scl_cl_arguments a = {.kernel = k->kernel, .code = CL_SUCCESS};
  scl_cl_argument_inputs(&a, p);
  scl_cl_argument_buffer(&a, part.buffer);
  scl_cl_argument_long(&a, part.offset);
  if (a.code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, a.code, "expr");
  const scl_cl_range range = scl_cl_range_1(groups * items, items);
  return scl_cl_enqueue(op, k, &range, 0);
}

static scl_status launch_final(scl_cl_op *op, const scl_plan *p, const scl_cl_launchable *k,
                               scl_block part, size_t groups) {
  scl_cl_arguments a = {.kernel = k->kernel, .code = CL_SUCCESS};
  scl_cl_argument_int(&a, groups);
  scl_cl_argument_int(&a, p->leaf[p->pass - 1].length);
  scl_cl_argument_buffer(&a, part.buffer);
  scl_cl_argument_long(&a, part.offset);
  for (int o = 0; o < p->outputs; o++) {
    if (!p->output[o].reduces) continue;
    scl_cl_argument_buffer(&a, p->output[o].dst.buffer);
    scl_cl_argument_long(&a, p->output[o].dst.offset);
  }
  scl_cl_argument_local(&a, FINAL_ITEMS * sizeof(double));
  if (a.code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, a.code, "expr_final");
  const scl_cl_range range = scl_cl_range_1(part.ncol * FINAL_ITEMS, FINAL_ITEMS);
  return scl_cl_enqueue(op, k, &range, a.local_bytes);
}

scl_status scl_cl_expr_pass(scl_context *ctx, const scl_plan *plan) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  const scl_pass_layout l = scl_plan_pass_layout(plan);
  const size_t tiles = scl_ceil_div(plan->m, (size_t)l.width * l.row_lanes);
  const size_t units = cl->info.units > 0 ? cl->info.units : 1;
  const size_t groups = scl_min(tiles, units * groups_of_unit(plan, &l));
  const scl_cl_expr_kernels *k;
  size_t results = 0;
  scl_block part = {.buffer = NULL};
  scl_cl_op op;
  scl_status status;
  for (int o = 0; o < plan->outputs; o++) results += scl_pass_results(plan, o);
  scl_cl_op_begin(&op, ctx);
  SCL_GO(scl_poll());
  SCL_GO(scl_cl_expr_find(cl, plan, &k));
  scl_cl_expr_declare(&op, plan);
  op.timing = SCL_CL_TIME_EACH;
  SCL_GO(scl_cl_op_order(&op, -1));
  SCL_GO(scl_cl_temporary(&op, groups, results, &part));
  SCL_GO(launch_pass(&op, plan, &k->main, part, groups));
  SCL_GO(launch_final(&op, plan, &k->last, part, groups));
done:
  scl_buffer_release(part.buffer);
  return scl_cl_op_end(&op, status);
}
