/* Making a routine: the steps of a schedule, in their order, over memory that they share. */
#include "program/compile.h"

#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "engine/plan/pass.h"

/* ---- the whole ------------------------------------------------------------------------------ */

static int count_factors(const scl_tape *t) {
  int count = 0;
  for (int v = 0; v < t->values; v++) count += t->value[v].kind == SCL_VALUE_CHOL;
  return count;
}

static scl_status make_results(scl_compiling *c) {
  scl_routine *r = c->routine;
  r->results = scl_tape_length(&c->lowered.tape, c->lowered.result);
  const size_t factors = (size_t)count_factors(&c->lowered.tape), all = r->results + factors;
  SCL_TRY(scl_block_create(r->ctx, all, 1, &r->out));
  SCL_TRY(scl_routine_hold(r, r->out.buffer));
  r->answer = malloc(all * sizeof *r->answer);
  r->vector = malloc((factors + 1) * sizeof *r->vector);
  if (r->answer != NULL && r->vector != NULL) return SCL_OK;
  return scl_fail_memory(all * sizeof *r->answer, 0, "a program");
}

static scl_status add_steps(scl_compiling *c) {
  SCL_TRY(scl_storage_begin(c));
  SCL_TRY(make_results(c));
  for (int g = 0; g < c->schedule.groups; g++) {
    const scl_group *group = &c->schedule.group[g];
    if (scl_is_number_group(c, group)) {
      SCL_TRY(scl_number_group(c, group));
    } else if (group->elements > 0) {
      SCL_TRY(scl_fuse_group(c, group));
    } else {
      SCL_TRY(scl_add_call(c, c->schedule.value[group->first]));
    }
    SCL_TRY(scl_storage_release(c, g));
  }
  return SCL_OK;
}

/* STATCL_ROW_PASS (engine/cl/elementwise/pass.c) set to a positive number has passes of any size,
 * for tests; 0 has none. Without kernels a pass saves a read of X at fewer rows, and several
 * vectors are left to the BLAS. */
enum { HOST_ROWS = 64 };
static scl_pass_limits pass_limits(scl_context *ctx) {
  const scl_engine *e = ctx->engine;
  const char *asked = scl_env("STATCL_ROW_PASS");
  const bool host = e->traits.synchronous, none = asked != NULL && strcmp(asked, "0") == 0;
  const size_t columns = e->pass_columns != NULL && !none ? e->pass_columns(ctx) : 0;
  const bool any = columns > 0 && asked != NULL;
  const size_t vectors = host                  ? 1
                         : e->pass_mma != NULL ? SCL_PASS_MMA_PREDICTORS
                                               : SCL_PASS_PREDICTORS;
  const size_t rows = any ? 2 : SCL_PLAN_MANY_ROWS;
  return (scl_pass_limits){host && !any ? HOST_ROWS : rows, columns, vectors, rows, host};
}

scl_status scl_routine_make(scl_residents *data, const scl_tape *t, scl_block input, int outputs,
                            const int *output, scl_routine *out) {
  scl_routine routine = {.ctx = data->ctx};
  scl_compiling c = {.data = data, .input = input, .routine = &routine};
  SCL_TRY(scl_lower(t, outputs, output, pass_limits(data->ctx), &c.lowered));
  scl_status status = scl_schedule_make(&c.lowered, &c.schedule);
  if (status == SCL_OK) status = add_steps(&c);
  if (status == SCL_OK) status = scl_routine_ready(&routine);
  scl_storage_end(&c);
  scl_schedule_end(&c.schedule);
  scl_lowered_end(&c.lowered);
  if (status != SCL_OK) {
    scl_routine_end(&routine);
    return status;
  }
  *out = routine;
  return SCL_OK;
}
