/* Passes on a device: the groups, the launches, and whether programs should use passes. */
#include "engine/cl/elementwise/plan.h"

#include <stdlib.h>

#include "base/threads.h"
#include "engine/plan/pass.h"

/* Work-items that add the partial sums of the groups. */
enum { FINAL_ITEMS = 64 };

/* STATCL_ROW_PASS: 0 has X read twice, for comparison; from 2 on, the number of groups of a
 * unit. */
static size_t wanted(void) {
  const char *text = scl_env("STATCL_ROW_PASS");
  return text != NULL ? (size_t)strtoul(text, NULL, 10) : 1;
}

/* Groups of a unit: one more than its registers hold would wait for a whole pass. On an NVIDIA GPU
 * a unit has 65,536, in steps of 8 for a work-item. Registers that ptxas uses for a logistic
 * likelihood, in tenths: for a column, its rows and its sums; other operands, and calls of special
 * functions, take more. */
enum {
  UNIT_REGISTERS = 65536,
  STEPS_TENTHS = 440,
  COLUMN_TENTHS = 30,
  ROW_TENTHS = 14,
  SUM_TENTHS = 37,
  LOAD_REGISTERS = 2,
  SPECIAL_REGISTERS = 32,
  FEW_LOADS = 2,
  MOST_GROUPS = 5
};

/* Groups of a unit by matrix instructions, as measured: groups share the local memory of a unit,
 * and with few vectors and steps its registers hold most groups. */
enum {
  UNIT_LOCAL = 228 << 10,
  GROUP_LOCAL = 1024, /* the driver's share */
  MMA_GROUPS = 12,
  MMA_LONG_GROUPS = 8,
  MMA_SPECIAL_GROUPS = 6,
  FEW_STEPS = 16
};

static size_t mma_groups_of_unit(const scl_plan *p, const scl_pass_layout *l) {
  const size_t columns = 8 * (size_t)l->eighths, even = l->predictors + l->predictors % 2;
  const size_t local = (2 * columns + even) * scl_pass_rows(l) * sizeof(double);
  const bool is_long = p->body > FEW_STEPS || l->predictors > SCL_PASS_PREDICTORS;
  const size_t most = scl_plan_is_special(p) ? MMA_SPECIAL_GROUPS
                      : is_long              ? MMA_LONG_GROUPS
                                             : MMA_GROUPS;
  return scl_min(UNIT_LOCAL / (scl_round_up(local, 128) + GROUP_LOCAL), most);
}

static size_t groups_of_unit(const scl_plan *p, const scl_pass_layout *l) {
  const size_t column = COLUMN_TENTHS + ROW_TENTHS * l->width + SUM_TENTHS * l->predictors;
  const size_t other = 1 + l->predictors + FEW_LOADS;
  size_t registers = (STEPS_TENTHS + l->columns * column) / 10;
  if (p->leaves > other) registers += LOAD_REGISTERS * (p->leaves - other);
  if (scl_plan_is_special(p)) registers += SPECIAL_REGISTERS;
  if (wanted() > 1) return wanted();
  if (l->eighths > 0) return mma_groups_of_unit(p, l);
  const size_t items = scl_pass_items(l);
  const size_t groups = UNIT_REGISTERS / (items * scl_round_up(registers, 8));
  return groups > MOST_GROUPS ? MOST_GROUPS : groups < 2 ? 2 : groups;
}

size_t scl_cl_pass_columns(scl_context *ctx) {
  const scl_cl_context *cl = (scl_cl_context *)ctx;
  return cl->cpu || wanted() == 0 ? 0 : SCL_PASS_COLUMNS;
}

scl_status scl_cl_pass_mma(scl_context *ctx, bool *usable) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  *usable = false;
  if (!scl_cl_may_try_large_mma(cl)) return SCL_OK;
  /* The smallest program with the same functions. */
  return scl_cl_try_program(cl, SCL_CL_PROGRAM_glm_40m4_bernoulli_logit, usable);
}

static scl_status launch_pass(scl_cl_op *op, const scl_plan *p, const scl_cl_expr_kernels *k,
                              scl_block part, size_t groups) {
  const scl_pass_layout l = scl_plan_pass_layout(p);
  const size_t items = scl_pass_items(&l);
  scl_cl_arguments a = scl_cl_arguments_of(op->cl, &k->main, k->kept_main);
  scl_cl_argument_inputs(&a, p);
  scl_cl_argument_buffer(&a, part.buffer);
  scl_cl_argument_long(&a, part.offset);
  if (a.code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, a.code, "expr");
  const scl_cl_range range = scl_cl_range_1(groups * items, items);
  return scl_cl_enqueue(op, &k->main, &range, 0);
}

static scl_status launch_final(scl_cl_op *op, const scl_plan *p, const scl_cl_expr_kernels *k,
                               scl_block part, size_t groups) {
  scl_cl_arguments a = scl_cl_arguments_of(op->cl, &k->last, k->kept_last);
  scl_cl_argument_int(&a, groups);
  scl_cl_argument_int(&a, p->n);
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
  return scl_cl_enqueue(op, &k->last, &range, a.local_bytes);
}

scl_status scl_cl_expr_pass(scl_context *ctx, const scl_plan *plan) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  const scl_pass_layout l = scl_plan_pass_layout(plan);
  const size_t tiles = scl_ceil_div(plan->m, scl_pass_rows(&l));
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
  SCL_GO(scl_cl_op_needs(&op, scl_cl_expr_find(cl, plan, &k)));
  if (op.missing) goto done;
  scl_cl_expr_declare(&op, plan);
  op.timing = SCL_CL_TIME_EACH;
  SCL_GO(scl_cl_op_order(&op, -1));
  SCL_GO(scl_cl_temporary(&op, groups, results, &part));
  SCL_GO(launch_pass(&op, plan, k, part, groups));
  SCL_GO(launch_final(&op, plan, k, part, groups));
done:
  scl_buffer_release(part.buffer);
  return scl_cl_op_end(&op, status);
}
