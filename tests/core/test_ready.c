/* Plans that are run again and again (engine/host/ready.c) against expr(), bit for bit: random
 * steps over leaves of all kinds, at sizes around a block. */
#include <stdlib.h>
#include <string.h>

#include "engine/host/host.h"
#include "engine/plan/repeat.h"
#include "test.h"

enum { STEPS = 12, COLUMNS = 6, LEAVES = 4, MOST = 1100 };

typedef struct {
  scl_plan plan;
  scl_block leaf[LEAVES];                /* a column, a number, a matrix, and its vector */
  scl_block result[SCL_PLAN_OUTPUTS];    /* where outputs go */
  double before[SCL_PLAN_OUTPUTS][MOST]; /* those of expr() */
} trial;

static size_t some(size_t n) {
  return (size_t)((test_random() + 1.0) / 2.0 * (double)n) % n;
}

static void new_numbers(trial *t) {
  for (int k = 0; k < LEAVES; k++) {
    test_fill(scl_host_at(t->leaf[k]), t->leaf[k].nrow * t->leaf[k].ncol);
  }
}

static scl_status make_blocks(scl_context *ctx, trial *t, size_t m) {
  const size_t rows[] = {m, 1, m, COLUMNS}, columns[] = {1, 1, COLUMNS, 1};
  for (int k = 0; k < LEAVES; k++) {
    SCL_TRY(scl_block_create(ctx, rows[k], columns[k], &t->leaf[k]));
  }
  for (int k = 0; k < SCL_PLAN_OUTPUTS; k++) {
    SCL_TRY(scl_block_create(ctx, m, 1, &t->result[k]));
  }
  return SCL_OK;
}

static void release(trial *t) {
  for (int k = 0; k < LEAVES; k++) scl_buffer_release(t->leaf[k].buffer);
  for (int k = 0; k < SCL_PLAN_OUTPUTS; k++) scl_buffer_release(t->result[k].buffer);
}

static void add_leaves(trial *t, size_t m) {
  scl_plan *p = &t->plan;
  const scl_leaf leaf[LEAVES] = {
      {.buffer = t->leaf[0].buffer, .step_i = 1, .step_j = m},
      {.buffer = t->leaf[1].buffer},
      {.buffer = t->leaf[2].buffer, .step_i = 1, .inner = m, .length = COLUMNS},
      {.buffer = t->leaf[3].buffer, .step_j = COLUMNS, .inner = 1, .length = COLUMNS}};
  int at[LEAVES];
  for (int k = 0; k < LEAVES; k++) at[k] = scl_plan_add_leaf(p, leaf[k]);
  scl_plan_add_step(p, 0, SCL_STEP_LOAD, 0, at[0], 0, 0);
  scl_plan_add_step(p, 0, SCL_STEP_LOAD, 0, at[1], 0, 0);
  scl_plan_add_step(p, 0, SCL_STEP_NUMBER, 0, scl_plan_add_number(p, 0.7), 0, 0);
  scl_plan_add_step(p, 0, SCL_STEP_MATVEC, 0, at[2], at[3], 0);
}

static void add_steps(trial *t) {
  static const scl_op op[] = {SCL_OP_ADD,    SCL_OP_SUB, SCL_OP_MUL,   SCL_OP_DIV,   SCL_OP_NEG,
                              SCL_OP_SQUARE, SCL_OP_EXP, SCL_OP_LOG1P, SCL_OP_ABS,   SCL_OP_LT,
                              SCL_OP_PMAX,   SCL_OP_SIN, SCL_OP_LOG,   SCL_OP_IFELSE};
  scl_plan *p = &t->plan;
  for (int k = 0; k < STEPS; k++) {
    const scl_op chosen = op[some(sizeof op / sizeof *op)];
    int arg[3] = {0, 0, 0};
    for (int a = 0; a < scl_op_arity(chosen); a++) arg[a] = (int)some(p->steps);
    scl_plan_add_step(p, 0, SCL_STEP_APPLY, chosen, arg[0], arg[1], arg[2]);
  }
  p->body = p->steps;
}

static void add_outputs(trial *t, size_t m) {
  static const scl_reduction op[] = {SCL_REDUCE_SUM, SCL_REDUCE_SUM_LOG, SCL_REDUCE_PROD,
                                     SCL_REDUCE_MIN, SCL_REDUCE_COUNT_TRUE};
  scl_plan *p = &t->plan;
  p->margin = SCL_TOTAL;
  for (int k = 0; k < SCL_PLAN_OUTPUTS; k++) {
    const bool reduces = some(2) == 0;
    p->output[p->outputs++] = (scl_output){
        .step = (uint16_t)some(p->steps), .reduces = reduces, .op = reduces ? op[some(5)] : 0};
  }
  scl_plan_end(p, m);
  for (int k = 0; k < SCL_PLAN_OUTPUTS; k++) {
    const size_t rows = p->output[k].reduces ? 1 : m;
    scl_plan_place(p, (size_t)k, scl_block_part(t->result[k], 0, 0, rows, 1));
  }
}

static bool same_results(const trial *t) {
  bool same = true;
  for (int k = 0; k < SCL_PLAN_OUTPUTS; k++) {
    const size_t bytes = t->plan.output[k].dst.nrow * sizeof(double);
    same = same && memcmp(scl_host_at(t->result[k]), t->before[k], bytes) == 0;
  }
  return same;
}

static scl_status run_plan(scl_context *ctx, trial *t) {
  SCL_TRY(ctx->engine->expr(ctx, &t->plan));
  for (int k = 0; k < SCL_PLAN_OUTPUTS; k++) {
    double *from = scl_host_at(t->result[k]);
    memcpy(t->before[k], from, t->plan.m * sizeof(double));
    memset(from, 0, t->plan.m * sizeof(double));
  }
  return SCL_OK;
}

static scl_status make_ready(scl_context *ctx, trial *t, struct scl_ready_plan **out) {
  const scl_repeat part = {.plan = &t->plan};
  int taken;
  SCL_TRY(ctx->engine->expr_ready(ctx, 1, &part, &taken, out));
  CHECK(taken == (*out != NULL));
  return SCL_OK;
}

static void check_plan(scl_context *ctx, trial *t, size_t m) {
  struct scl_ready_plan *ready = NULL;
  scl_plan_begin(&t->plan, m, 1);
  add_leaves(t, m);
  add_steps(t);
  add_outputs(t, m);
  REQUIRE_OK(make_ready(ctx, t, &ready));
  CHECK(ready != NULL);
  for (int run = 0; run < 2 && ready != NULL; run++) {
    new_numbers(t);
    REQUIRE_OK(run_plan(ctx, t));
    ctx->engine->expr_repeat(ready);
    CHECK(same_results(t));
  }
  if (ready != NULL) ctx->engine->expr_forget(ready);
}

/* Plans that need what only expr() has. */
static void check_refused(scl_context *ctx, trial *t, size_t m) {
  struct scl_ready_plan *ready = NULL;
  scl_plan_begin(&t->plan, m, 1);
  add_leaves(t, m);
  t->plan.body = t->plan.steps;
  t->plan.output[t->plan.outputs++] = (scl_output){.reduces = true, .op = SCL_REDUCE_WHICH_MAX};
  scl_plan_end(&t->plan, m);
  scl_plan_place(&t->plan, 0, scl_block_part(t->result[0], 0, 0, 1, 1));
  CHECK_OK(make_ready(ctx, t, &ready));
  CHECK(ready == NULL);
}

void test_ready(scl_context *ctx) {
  static const size_t size[] = {1, 2, 3, 4, 5, 8, 9, 17, 511, 512, 513, 1025, MOST};
  if (ctx->engine->expr_ready == NULL) {
    SKIP("not on this engine");
    return;
  }
  trial *t = test_alloc(sizeof *t);
  for (size_t s = 0; s < sizeof size / sizeof *size; s++) {
    REQUIRE_OK(make_blocks(ctx, t, size[s]));
    for (int k = 0; k < 20; k++) check_plan(ctx, t, size[s]);
    check_refused(ctx, t, size[s]);
    release(t);
  }
  free(t);
}
