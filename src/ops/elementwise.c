/* Elementwise operations and reductions on blocks, for other operations: small plans. */
#include "engine/plan/plan.h"
#include "ops/operation.h"
#include "ops/table.h"

/* An operand of a plan over blocks as a step. */
static int add_operand(scl_plan *p, scl_operand x) {
  if (x.block.buffer == NULL) return scl_plan_number(p, 0, x.scalar);
  const scl_leaf leaf = {
      .buffer = x.block.buffer, .at = x.block.offset, .step_i = 1, .step_j = x.block.ld};
  return scl_plan_load(p, 0, leaf);
}

/* Starts a plan over m x n elements whose only output is op(a, b), or a if op is SCL_OP_COUNT. */
static void plan_blocks(scl_plan *p, size_t m, size_t n, scl_op op, scl_operand a, scl_operand b) {
  scl_plan_begin(p, m, n);
  int step = add_operand(p, a);
  if (op != SCL_OP_COUNT) {
    const int other = scl_op_arity(op) > 1 ? add_operand(p, b) : 0;
    step = scl_plan_add_step(p, 0, SCL_STEP_APPLY, op, step, other, 0);
  }
  p->body = p->steps;
  p->output[p->outputs++] = (scl_output){.step = (uint16_t)step};
}

scl_status scl_apply_blocks(scl_context *ctx, scl_op op, scl_operand a, scl_operand b,
                            scl_block dst) {
  scl_plan p;
  if (dst.nrow == 0 || dst.ncol == 0) return SCL_OK;
  plan_blocks(&p, dst.nrow, dst.ncol, op, a, b);
  scl_plan_end(&p, dst.ld);
  p.in_place = a.block.buffer == dst.buffer || b.block.buffer == dst.buffer;
  scl_plan_place(&p, 0, dst);
  return ctx->engine->expr(ctx, &p);
}

static scl_status reduce_blocks(scl_context *ctx, scl_reduction reduction, scl_op op, scl_block a,
                                scl_block b, scl_block dst) {
  scl_plan p;
  if (a.nrow == 0 || a.ncol == 0) {
    return ctx->engine->fill(ctx, scl_reduction_identity(reduction), dst);
  }
  plan_blocks(&p, a.nrow, a.ncol, op, (scl_operand){.block = a}, (scl_operand){.block = b});
  p.output[0].reduces = true;
  p.output[0].op = (uint8_t)reduction;
  p.in_place = a.buffer == dst.buffer || b.buffer == dst.buffer;
  scl_plan_end(&p, 0);
  scl_plan_place(&p, 0, dst);
  return ctx->engine->expr(ctx, &p);
}

scl_status scl_reduce_block(scl_context *ctx, scl_reduction op, scl_block a, scl_block dst) {
  return reduce_blocks(ctx, op, SCL_OP_COUNT, a, (scl_block){0}, dst);
}

scl_status scl_dot_blocks(scl_context *ctx, scl_block a, scl_block b, scl_block dst) {
  return reduce_blocks(ctx, SCL_REDUCE_SUM, SCL_OP_MUL, a, b, dst);
}

scl_status scl_sum_log_and_squares(scl_context *ctx, scl_block a, scl_block b, scl_block dst) {
  scl_plan p;
  plan_blocks(&p, a.nrow, 1, SCL_OP_COUNT, (scl_operand){.block = a}, (scl_operand){0});
  const int value = add_operand(&p, (scl_operand){.block = b});
  const int square = scl_plan_add_step(&p, 0, SCL_STEP_APPLY, SCL_OP_MUL, value, value, 0);
  p.body = p.steps;
  p.output[p.outputs++] = (scl_output){.step = (uint16_t)square};
  for (int k = 0; k < 2; k++) {
    p.output[k].reduces = true;
    p.output[k].op = k == 0 ? SCL_REDUCE_SUM_LOG : SCL_REDUCE_SUM;
  }
  scl_plan_end(&p, 0);
  for (size_t k = 0; k < 2; k++) scl_plan_place(&p, k, scl_block_part(dst, k, 0, 1, 1));
  return ctx->engine->expr(ctx, &p);
}

scl_status scl_cumsum_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                          scl_block dst) {
  return ctx->engine->cumulate(ctx, scl_call_flag(call, 0), operand[0], dst);
}
