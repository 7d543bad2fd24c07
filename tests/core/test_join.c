/* Gathers and sums of groups that a plan computes with its own elements (engine/host/join.c):
 * random lists of parts over few blocks, so that many of them meet, against the same parts run one
 * by one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/host/join.h"
#include "test.h"

enum {
  VECTORS = 4,
  SHORTS = 3, /* blocks of groups */
  BLOCKS = VECTORS + SHORTS,
  PARTS = 7,
  GROUPS = 9,
  MOST = 1100
};

typedef struct {
  size_t m;
  scl_block block[BLOCKS], total; /* of m numbers, then of GROUPS */
  scl_block index, starts, order; /* of one grouping */
  scl_plan plan[PARTS];
  scl_repeat part[PARTS];
  double start[BLOCKS][MOST], want[BLOCKS][MOST];
} trial;

static int some(int n) {
  return (int)((test_random() + 1.0) / 2.0 * n) % n;
}

/* Rows of a group next to each other, or not. */
static void make_groups(trial *t) {
  double *index = scl_host_at(t->index), *starts = scl_host_at(t->starts);
  double *order = scl_host_at(t->order);
  const bool runs = some(2) == 0;
  size_t next = 0;
  for (size_t i = 0; i < t->m; i++) {
    index[i] = i > 0 && runs && some(20) > 0 ? index[i - 1] : some(GROUPS);
  }
  for (int g = 0; g < GROUPS; g++) {
    starts[g] = (double)next;
    for (size_t i = 0; i < t->m; i++) {
      if (index[i] == g) order[next++] = (double)i;
    }
  }
  starts[GROUPS] = (double)next;
}

/* Stores one or two blocks made of one or two others, and a sum. */
static void make_plan(trial *t, scl_plan *p) {
  const int first = some(VECTORS), a = (first + 1) % VECTORS, b = (first + 2) % VECTORS;
  const bool second = some(2) == 0;
  int step[4];
  scl_plan_begin(p, t->m, 1);
  step[0] = scl_plan_load(p, 0, (scl_leaf){.buffer = t->block[a].buffer, .step_i = 1});
  step[1] = scl_plan_load(p, 0, (scl_leaf){.buffer = t->block[b].buffer, .step_i = 1});
  step[2] = scl_plan_add_step(p, 0, SCL_STEP_APPLY, SCL_OP_SUB, step[0], step[some(2)], 0);
  step[3] = scl_plan_add_step(p, 0, SCL_STEP_APPLY, SCL_OP_ADD, step[2], step[some(2)], 0);
  p->body = p->steps;
  p->margin = SCL_TOTAL;
  p->output[p->outputs++] = (scl_output){.step = (uint16_t)step[3]};
  if (second) p->output[p->outputs++] = (scl_output){.step = (uint16_t)step[2]};
  p->output[p->outputs++] =
      (scl_output){.step = (uint16_t)step[3], .reduces = true, .op = SCL_REDUCE_SUM};
  scl_plan_end(p, t->m);
  scl_plan_place(p, 0, t->block[first]);
  if (second) scl_plan_place(p, 1, t->block[(first + 3) % VECTORS]);
  scl_plan_place(p, p->outputs - 1, t->total);
}

static void make_parts(trial *t) {
  for (int k = 0; k < PARTS; k++) {
    const scl_block vector = t->block[some(VECTORS)], groups = t->block[VECTORS + some(SHORTS)];
    const int kind = some(5);
    if (kind < 2) {
      make_plan(t, &t->plan[k]);
      t->part[k] = (scl_repeat){.plan = &t->plan[k]};
    } else if (kind == 2) {
      t->part[k] =
          (scl_repeat){.call = SCL_REPEAT_GATHER, .src = groups, .index = t->index, .dst = vector};
    } else {
      t->part[k] = (scl_repeat){.call = SCL_REPEAT_GROUP_SUMS,
                                .src = vector,
                                .index = t->starts,
                                .order = t->order,
                                .dst = groups};
    }
  }
}

static scl_status run_parts(scl_context *ctx, trial *t) {
  const scl_engine *e = ctx->engine;
  for (int k = 0; k < PARTS; k++) {
    const scl_repeat *part = &t->part[k];
    if (part->plan != NULL) {
      SCL_TRY(e->expr(ctx, part->plan));
    } else if (part->call == SCL_REPEAT_GATHER) {
      SCL_TRY(e->gather(ctx, part->index, (scl_block){.buffer = NULL}, part->src, part->dst));
    } else {
      SCL_TRY(e->group_sums(ctx, part->index, part->order, t->m, part->src, part->dst));
    }
  }
  return SCL_OK;
}

static void set_numbers(trial *t) {
  for (int k = 0; k < BLOCKS; k++) {
    memcpy(scl_host_at(t->block[k]), t->start[k], t->block[k].nrow * sizeof(double));
  }
}

static double largest(size_t n, const double *x, double before) {
  for (size_t i = 0; i < n; i++) before = fmax(before, fabs(x[i]));
  return before;
}

/* Sums of large numbers may be small. */
static bool are_close(size_t n, const double *x, const double *y, double scale) {
  for (size_t i = 0; i < n; i++) {
    if (!(fabs(x[i] - y[i]) <= 1e-12 * scale)) return false;
  }
  return true;
}

/* All blocks, or the one that is said to be read. */
static void check_parts(scl_context *ctx, trial *t, int read) {
  struct scl_ready_plan *ready = NULL;
  double scale = 1.0;
  int taken = 0;
  for (int k = 0; k < BLOCKS; k++) test_fill(t->start[k], t->block[k].nrow);
  set_numbers(t);
  REQUIRE_OK(run_parts(ctx, t));
  for (int k = 0; k < BLOCKS; k++) {
    memcpy(t->want[k], scl_host_at(t->block[k]), t->block[k].nrow * sizeof(double));
    scale = largest(t->block[k].nrow, t->want[k], scale);
  }
  const double total = *scl_host_at(t->total);
  scale = largest(1, &total, scale);
  REQUIRE_OK(ctx->engine->expr_ready(ctx, PARTS, t->part, read < 0 ? NULL : t->block[read].buffer,
                                     &taken, &ready));
  CHECK(taken == PARTS);
  for (int run = 0; run < 2; run++) {
    set_numbers(t);
    ctx->engine->expr_repeat(ready);
    for (int k = 0; k < BLOCKS; k++) {
      if (read >= 0 && k != read) continue;
      CHECK(are_close(t->block[k].nrow, scl_host_at(t->block[k]), t->want[k], scale));
    }
    CHECK(are_close(1, scl_host_at(t->total), &total, scale));
  }
  ctx->engine->expr_forget(ready);
}

static scl_status make_blocks(scl_context *ctx, trial *t) {
  for (int k = 0; k < BLOCKS; k++) {
    SCL_TRY(scl_block_create(ctx, k < VECTORS ? t->m : GROUPS, 1, &t->block[k]));
  }
  SCL_TRY(scl_block_create(ctx, 1, 1, &t->total));
  SCL_TRY(scl_block_create(ctx, t->m, 1, &t->index));
  SCL_TRY(scl_block_create(ctx, t->m, 1, &t->order));
  return scl_block_create(ctx, GROUPS + 1, 1, &t->starts);
}

static void release(trial *t) {
  for (int k = 0; k < BLOCKS; k++) scl_buffer_release(t->block[k].buffer);
  scl_buffer_release(t->total.buffer);
  scl_buffer_release(t->index.buffer);
  scl_buffer_release(t->order.buffer);
  scl_buffer_release(t->starts.buffer);
}

/* How many gathers and sums plans take, and how many results they do not store. */
static void count_joined(const trial *t, const scl_buffer *results, int *homes, int *passing) {
  scl_host_joined joined[PARTS];
  scl_host_join(PARTS, t->part, results, joined);
  for (int k = 0; k < PARTS; k++) {
    *homes += joined[k].home >= 0;
    *passing += joined[k].passes + (joined[k].passing != 0);
  }
}

void test_join(scl_context *ctx) {
  static const size_t size[] = {1, 15, 16, 17, 100, 511, 512, 513, MOST};
  int homes = 0, passing = 0;
  if (ctx->engine->expr_repeat == NULL) {
    SKIP("not on this engine");
    return;
  }
  trial *t = test_alloc(sizeof *t);
  for (size_t s = 0; s < sizeof size / sizeof *size; s++) {
    t->m = size[s];
    REQUIRE_OK(make_blocks(ctx, t));
    for (int k = 0; k < 2000; k++) {
      const int read = some(BLOCKS + 1) - 1;
      memset(t->part, 0, sizeof t->part);
      memset(t->plan, 0, sizeof t->plan);
      make_groups(t);
      make_parts(t);
      count_joined(t, read < 0 ? NULL : t->block[read].buffer, &homes, &passing);
      check_parts(ctx, t, read);
    }
    release(t);
  }
  free(t);
  CHECK(homes > 1000 && passing > 100);
}
