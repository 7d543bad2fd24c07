/* Work that is done again and again (engine/host/ready.c): plans against expr(), bit for bit, with
 * random steps over leaves of all kinds, at sizes around a block; operations on single numbers
 * against the table. */
#include <math.h>
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
    const scl_op chosen = op[some(LENGTH(op))];
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
  SCL_TRY(ctx->engine->expr_ready(ctx, 1, &part, NULL, &taken, out));
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

/* Each operation of the table on single numbers: a constant, one in memory, and one in a register;
 * gathers and sums over groups behind them. */
enum { CHOSEN = 5, GROUPS = 3 };

static void check_numbers(scl_context *ctx, unsigned op, double *memory, scl_block all) {
  const scl_number_place place[] = {{all.buffer, 0}, {all.buffer, 1}};
  double constant = memory[2], found;
  const int other = SCL_REGISTER_OTHER | 2;
  const scl_number_step step[] = {
      {SCL_OP_COUNT, other, {SCL_REGISTER_CONSTANT, 0, 0}, 0},
      {op, SCL_REGISTER_PLACE | 1, {SCL_REGISTER_PLACE, other, SCL_REGISTER_CONSTANT}, 0}};
  scl_numbers numbers = {.steps = 2, .places = 2, .constants = 1, .others = 3};
  numbers.step = (scl_number_step *)step;
  numbers.place = (scl_number_place *)place;
  numbers.constant = &constant;
  const scl_repeat part[] = {{.numbers = &numbers},
                             {.call = SCL_REPEAT_GATHER,
                              .src = scl_block_part(all, 3, 0, 4, 1),
                              .index = scl_block_part(all, 10, 0, CHOSEN, 1),
                              .dst = scl_block_part(all, 20, 0, CHOSEN, 1)},
                             {.call = SCL_REPEAT_GROUP_SUMS,
                              .src = scl_block_part(all, 20, 0, CHOSEN, 1),
                              .index = scl_block_part(all, 30, 0, GROUPS + 1, 1),
                              .order = scl_block_part(all, 40, 0, CHOSEN, 1),
                              .dst = scl_block_part(all, 50, 0, GROUPS, 1)},
                             {.call = SCL_REPEAT_NOTHING}};
  struct scl_ready_plan *ready = NULL;
  int taken = 0;
  REQUIRE_OK(ctx->engine->expr_ready(ctx, 4, part, NULL, &taken, &ready));
  CHECK(taken == 3);
  ctx->engine->expr_repeat(ready);
  ctx->engine->expr_forget(ready);
  found = scl_op_value((scl_op)op, memory[0], constant, constant);
  CHECK(memcmp(&found, &memory[1], sizeof found) == 0 ||
        (found != found && memory[1] != memory[1]));
  for (int k = 0; k < CHOSEN; k++) CHECK(memory[20 + k] == memory[3 + (int)memory[10 + k]]);
  CHECK(memory[50] == memory[24] + memory[21] && memory[51] == 0.0);
  CHECK(memory[52] == memory[20] + memory[22] + memory[23]);
}

/* Two operations, of which the second alone reads the first one's result, as either operand. */
static void check_pairs(scl_context *ctx, double *memory, scl_block all) {
  const scl_number_place place[] = {
      {all.buffer, 0}, {all.buffer, 1}, {all.buffer, 2}, {all.buffer, 3}};
  const int other = SCL_REGISTER_OTHER;
  for (unsigned op = 0; op < SCL_OP_COUNT * SCL_OP_COUNT * 2; op++) {
    const unsigned first = op / 2 / SCL_OP_COUNT, second = op / 2 % SCL_OP_COUNT, at = op % 2;
    scl_number_step step[] = {{first, other, {0, 1, 1}, 0}, {second, 3, {2, 2, 2}, 1u << at}};
    if (scl_op_arity((scl_op)second) <= (int)at) continue;
    step[1].arg[at] = other;
    scl_numbers numbers = {.steps = 2, .places = 4, .others = 1, .step = step};
    numbers.place = (scl_number_place *)place;
    const scl_repeat part = {.numbers = &numbers};
    struct scl_ready_plan *ready = NULL;
    int taken = 0;
    REQUIRE_OK(ctx->engine->expr_ready(ctx, 1, &part, NULL, &taken, &ready));
    ctx->engine->expr_repeat(ready);
    ctx->engine->expr_forget(ready);
    const double t = scl_op_value((scl_op)first, memory[0], memory[1], memory[1]);
    const double c = memory[2], a = at == 0 ? t : c, b = at == 1 ? t : c;
    const double want = scl_op_value((scl_op)second, a, b, c);
    CHECK(memcmp(&want, &memory[3], sizeof want) == 0 || (want != want && memory[3] != memory[3]));
  }
}

static void check_all_numbers(scl_context *ctx) {
  static const double start[] = {0.0, 0.0, -1.5, 0.25, 3.0, 1.0, NAN};
  static const double index[CHOSEN] = {3, 0, 2, 2, 1}, begins[] = {0, 2, 2, 5};
  static const double order[CHOSEN] = {4, 1, 0, 2, 3};
  const size_t starts = LENGTH(start);
  scl_block all;
  REQUIRE_OK(scl_block_create(ctx, 60, 1, &all));
  double *memory = scl_host_at(all);
  for (unsigned op = 0; op < SCL_OP_COUNT; op++) {
    for (size_t k = 0; k < starts * starts; k++) {
      test_fill(memory, 60);
      memory[0] = k < starts ? memory[0] : start[k / starts];
      memory[2] = start[k % starts];
      memcpy(memory + 10, index, sizeof index);
      memcpy(memory + 30, begins, sizeof begins);
      memcpy(memory + 40, order, sizeof order);
      check_numbers(ctx, op, memory, all);
    }
  }
  for (int k = 0; k < 3; k++) {
    test_fill(memory, 4);
    if (k > 0) memory[k] = 0.0;
    check_pairs(ctx, memory, all);
  }
  scl_buffer_release(all.buffer);
}

void test_ready(scl_context *ctx) {
  static const size_t size[] = {1, 2, 3, 4, 5, 8, 9, 17, 511, 512, 513, 1025, MOST};
  if (ctx->engine->expr_repeat == NULL) {
    SKIP("not on this engine");
    return;
  }
  check_all_numbers(ctx);
  trial *t = test_alloc(sizeof *t);
  for (size_t s = 0; s < LENGTH(size); s++) {
    REQUIRE_OK(make_blocks(ctx, t, size[s]));
    for (int k = 0; k < 20; k++) check_plan(ctx, t, size[s]);
    check_refused(ctx, t, size[s]);
    release(t);
  }
  free(t);
}
