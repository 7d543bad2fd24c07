/* Routines: their parts, and running them. */
#include "program/routine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/threads.h"
#include "ops/operation.h"

/* ---- parts ---------------------------------------------------------------------------------- */

scl_status scl_routine_add(scl_routine *r, scl_routine_step **out) {
  SCL_TRY(scl_grow(&r->step, &r->room, (size_t)r->steps + 1, sizeof *r->step, "a program"));
  *out = &r->step[r->steps++];
  memset(*out, 0, sizeof **out);
  return SCL_OK;
}

scl_status scl_routine_hold(scl_routine *r, scl_buffer *buffer) {
  const size_t needed = (size_t)r->buffers + 1;
  const scl_status status =
      scl_grow(&r->held, &r->buffers_room, needed, sizeof *r->held, "a program");
  if (status == SCL_OK) {
    r->held[r->buffers++] = buffer;
  } else {
    scl_buffer_release(buffer);
  }
  return status;
}

static void free_scan(scl_scan_pass *scan, bool borrows_code) {
  if (scan == NULL) return;
  if (!borrows_code) scl_scan_code_free(scan->code);
  free(scan->input);
  free(scan);
}

/* The copy of this step's pattern, if an earlier step with the same one was copied; or NULL. */
static scl_sparse_known *sparse_before(const scl_routine *from, const scl_routine *to, int step) {
  for (int k = 0; k < step; k++) {
    if (from->step[k].sparse == from->step[step].sparse) return to->step[k].sparse;
  }
  return NULL;
}

void scl_routine_end(scl_routine *r) {
  for (int k = r->steps - 1; k >= 0 && r->is_copy; k--) {
    scl_sparse_known *own = r->step[k].sparse;
    if (own != NULL && sparse_before(r, r, k) == NULL) scl_sparse_known_release(own);
  }
  for (int k = 0; k < r->steps; k++) {
    if (r->step[k].ready != NULL) r->ctx->engine->expr_forget(r->step[k].ready);
    free(r->step[k].plan);
    scl_numbers_free(r->step[k].numbers);
    free_scan(r->step[k].scan, r->is_copy);
  }
  for (int k = 0; k < r->buffers; k++) scl_buffer_release(r->held[k]);
  free(r->step);
  free(r->held);
  free(r->answer);
  free(r->vector);
  memset(r, 0, sizeof *r);
}

uint64_t scl_routine_bytes(const scl_routine *r) {
  uint64_t bytes = 0;
  for (int k = 0; k < r->buffers; k++) bytes += r->held[k]->bytes;
  return bytes;
}

static scl_repeat part_of(const scl_routine_step *s) {
  scl_repeat part = {.plan = s->plan, .numbers = s->numbers, .src = s->a, .dst = s->dst};
  if (s->plan != NULL || s->numbers != NULL) return part;
  if (s->kind == SCL_VALUE_GATHER || s->kind == SCL_VALUE_SCATTER) {
    part.call = s->kind == SCL_VALUE_GATHER ? SCL_REPEAT_GATHER : SCL_REPEAT_GROUP_SUMS;
    part.index = s->b;
    part.order = s->more;
  }
  return part;
}

scl_status scl_routine_ready(scl_routine *r) {
  const scl_engine *engine = r->ctx->engine;
  if (engine->expr_ready == NULL) return SCL_OK;
  scl_repeat *part = malloc(((size_t)r->steps + 1) * sizeof *part);
  scl_status status = SCL_OK;
  if (part == NULL) return scl_fail_memory((size_t)r->steps * sizeof *part, 0, "a program");
  for (int k = 0; k < r->steps; k++) part[k] = part_of(&r->step[k]);
  for (int k = 0, covers; k < r->steps && status == SCL_OK; k += covers > 0 ? covers : 1) {
    scl_routine_step *s = &r->step[k];
    status = engine->expr_ready(r->ctx, r->steps - k, part + k, r->out.buffer, &covers, &s->ready);
    s->covers = covers;
  }
  free(part);
  return status;
}

/* ---- copies --------------------------------------------------------------------------------- */

bool scl_routine_may_copy(const scl_routine *r) {
  for (int k = 0; k < r->steps; k++) {
    const scl_scan_pass *scan = r->step[k].scan;
    if (scan != NULL && scan->sequences > 1) return false;
  }
  return true;
}

typedef struct {
  const scl_routine *from, *to;
  const scl_buffer *input;
  scl_buffer *by;
} copying;

static void replace(const copying *c, scl_buffer **buffer) {
  if (*buffer == c->input) *buffer = c->by;
  for (int k = 0; k < c->from->buffers; k++) {
    if (*buffer == c->from->held[k]) *buffer = c->to->held[k];
  }
}

static void replace_all(const copying *c, scl_routine_step *s) {
  replace(c, &s->a.buffer);
  replace(c, &s->b.buffer);
  replace(c, &s->dst.buffer);
  replace(c, &s->more.buffer);
  if (s->scan != NULL) {
    replace(c, &s->scan->dst.buffer);
    for (int k = 0; k < scl_scan_first(&s->scan->code->shape, SCL_SCAN_SUM); k++)
      replace(c, &s->scan->input[k].buffer);
  }
  for (int k = 0; s->numbers != NULL && k < s->numbers->places; k++)
    replace(c, &s->numbers->place[k].buffer);
  if (s->plan == NULL) return;
  for (int k = 0; k < s->plan->leaves; k++) replace(c, &s->plan->leaf[k].buffer);
  for (int k = 0; k < s->plan->outputs; k++) replace(c, &s->plan->output[k].dst.buffer);
}

/* Over the same code. */
static scl_status copy_scan(const scl_scan_pass *from, scl_scan_pass **out) {
  const size_t inputs = (size_t)scl_scan_first(&from->code->shape, SCL_SCAN_SUM);
  scl_scan_pass *to = *out = malloc(sizeof *to);
  if (to == NULL) return scl_fail_memory(sizeof *to, 0, "a program");
  *to = *from;
  to->input = malloc((inputs + 1) * sizeof *to->input);
  if (to->input == NULL) return scl_fail_memory(inputs * sizeof *to->input, 0, "a program");
  memcpy(to->input, from->input, inputs * sizeof *to->input);
  return SCL_OK;
}

static scl_status copy_steps(const copying *c, scl_routine *to) {
  for (int k = 0; k < c->from->steps; k++) {
    const scl_routine_step *from = &c->from->step[k];
    scl_routine_step *s;
    SCL_TRY(scl_routine_add(to, &s));
    *s = *from;
    s->ready = NULL;
    s->plan = NULL;
    s->numbers = NULL;
    s->scan = NULL;
    s->sparse = from->sparse != NULL ? sparse_before(c->from, to, k) : NULL;
    if (from->sparse != NULL && s->sparse == NULL) {
      SCL_TRY(scl_sparse_known_copy(from->sparse, &s->sparse));
    }
    if (from->scan != NULL) SCL_TRY(copy_scan(from->scan, &s->scan));
    if (from->numbers != NULL) {
      s->numbers = scl_numbers_copy(from->numbers);
      if (s->numbers == NULL) return scl_fail_memory(sizeof *s->numbers, 0, "a program");
    }
    if (from->plan != NULL) {
      s->plan = malloc(sizeof *s->plan);
      if (s->plan == NULL) return scl_fail_memory(sizeof *s->plan, 0, "a program");
      *s->plan = *from->plan;
    }
    replace_all(c, s);
  }
  return SCL_OK;
}

static scl_status copy_results(const copying *c, scl_routine *to) {
  const size_t factors = (size_t)to->factors, all = c->from->out.nrow;
  to->out = c->from->out;
  replace(c, &to->out.buffer);
  to->answer = malloc((all + 1) * sizeof *to->answer);
  to->vector = malloc((factors + 1) * sizeof *to->vector);
  if (to->answer == NULL || to->vector == NULL) {
    return scl_fail_memory(all * sizeof *to->answer, 0, "a program");
  }
  if (factors > 0) memcpy(to->vector, c->from->vector, factors * sizeof *to->vector);
  return SCL_OK;
}

scl_status scl_routine_copy(const scl_routine *from, const scl_buffer *input, scl_buffer *by,
                            scl_routine *out) {
  scl_routine to = {
      .ctx = from->ctx, .results = from->results, .factors = from->factors, .is_copy = true};
  const copying c = {from, &to, input, by};
  scl_status status = SCL_OK;
  for (int k = 0; k < from->buffers; k++) {
    scl_buffer *buffer = NULL;
    SCL_GO(scl_buffer_create(from->ctx, from->held[k]->bytes, (scl_storage){.type = SCL_F64},
                             &buffer));
    SCL_GO(scl_routine_hold(&to, buffer));
  }
  SCL_GO(copy_steps(&c, &to));
  SCL_GO(copy_results(&c, &to));
  SCL_GO(scl_routine_ready(&to));
  *out = to;
done:
  if (status != SCL_OK) scl_routine_end(&to);
  return status;
}

/* ---- running it ----------------------------------------------------------------------------- */

static scl_status run_scatter(scl_context *ctx, const scl_routine_step *s) {
  for (size_t j = 0; j < s->dst.ncol; j++) {
    SCL_TRY(ctx->engine->group_sums(ctx, s->b, s->more, s->most,
                                    scl_block_part(s->a, 0, j, s->a.nrow, 1),
                                    scl_block_part(s->dst, 0, j, s->dst.nrow, 1)));
  }
  return SCL_OK;
}

/* A call; those that read more than their operands have no function in the table. */
static scl_status run_call(scl_context *ctx, const scl_routine_step *s) {
  const scl_block operand[] = {s->a, s->b};
  switch (s->kind) {
  case SCL_VALUE_GATHER:
  case SCL_VALUE_GATHER_COLUMNS:
    return ctx->engine->gather(ctx, s->b, (scl_block){.buffer = NULL}, s->a, s->dst);
  case SCL_VALUE_SCATTER:
  case SCL_VALUE_SCATTER_COLUMNS:
    return run_scatter(ctx, s);
  case SCL_VALUE_CHOL:
    return ctx->engine->potrf_copy(ctx, s->a, s->dst, s->more);
  case SCL_VALUE_SCAN:
    return ctx->engine->scan(ctx, s->scan);
  case SCL_VALUE_SPARSE_LOG_DET:
    return scl_sparse_known_log_det(ctx, s->sparse, s->a, s->dst);
  case SCL_VALUE_SPARSE_INVERSE:
    return scl_sparse_known_inverse(ctx, s->sparse, s->a, s->dst);
  case SCL_VALUE_SPARSE_SOLVE:
    return scl_sparse_known_solve(ctx, s->sparse, s->a, s->b, s->dst);
  case SCL_VALUE_SPARSE_ROOT:
    return scl_sparse_known_root(ctx, s->sparse, s->a, s->dst);
  case SCL_VALUE_SPARSE_ROOT_ADJOINT:
    return scl_sparse_known_root_adjoint(ctx, s->sparse, s->a, s->b, s->dst);
  default:
    return scl_row_of(s->kind)->run(ctx, &s->call, operand, s->dst);
  }
}

static scl_status run_step(scl_context *ctx, const scl_routine_step *s) {
  if (s->ready != NULL) {
    ctx->engine->expr_repeat(s->ready);
    return SCL_OK;
  }
  return s->plan != NULL ? ctx->engine->expr(ctx, s->plan) : run_call(ctx, s);
}

static int next_step(const scl_routine *r, int step) {
  return step + (r->step[step].ready != NULL ? r->step[step].covers : 1);
}

/* A synchronous engine must not compute with a factor that does not exist. */
static scl_status has_no_factor(const scl_routine *r, const scl_routine_step *s, bool *none) {
  double order = 0.0;
  if (s->plan == NULL && s->numbers == NULL && s->kind == SCL_VALUE_CHOL &&
      scl_traits(r->ctx)->synchronous) {
    SCL_TRY(scl_read_block(r->ctx, s->more, SCL_WAIT_WRITES, &order));
  }
  *none = order != 0.0;
  return SCL_OK;
}

/* Numbers `from` to `to` of all that a routine leaves. */
static scl_status read_numbers(const scl_routine *r, size_t from, size_t to, double *numbers) {
  if (from == to) return SCL_OK;
  const scl_block part = scl_block_part(r->out, from, 0, to - from, 1);
  return scl_read_block(r->ctx, part, r->brief ? SCL_WAIT_SHORT : SCL_WAIT_QUEUE, numbers);
}

/* Work of less than this is waited for in the driver. */
enum { BRIEF_US = 500 };

scl_status scl_routine_run_ranges(scl_routine *r, size_t ranges, const scl_routine_range *range,
                                  bool *failed) {
  size_t at = 0;
  const bool waits = !scl_traits(r->ctx)->synchronous;
  const uint64_t start = waits ? scl_clock_us() : 0;
  *failed = false;
  SCL_TRY(scl_context_check(r->ctx));
  SCL_TRY(scl_poll());
  for (int k = 0; k < r->steps && !*failed; k = next_step(r, k)) {
    const scl_routine_step *s = &r->step[k];
    SCL_TRY(run_step(r->ctx, s));
    SCL_TRY(has_no_factor(r, s, failed));
  }
  if (*failed) return SCL_OK;
  for (size_t k = 0; k < ranges; at = range[k].from + range[k].count, k++) {
    SCL_TRY(read_numbers(r, at, range[k].from, r->answer + at));
    SCL_TRY(read_numbers(r, range[k].from, range[k].from + range[k].count, range[k].to));
  }
  SCL_TRY(read_numbers(r, at, r->results + (size_t)r->factors, r->answer + at));
  for (int k = 0; k < r->factors; k++)
    *failed = *failed || r->answer[r->results + (size_t)k] != 0.0;
  r->brief = waits && scl_clock_us() - start < BRIEF_US;
  return SCL_OK;
}

scl_status scl_routine_run(scl_routine *r, double *to) {
  bool none;
  SCL_TRY(scl_routine_run_ranges(r, 0, NULL, &none));
  for (size_t i = 0; i < r->results; i++) to[i] = none ? NAN : r->answer[i];
  return SCL_OK;
}

scl_status scl_routine_run_vectors(scl_routine *r) {
  SCL_TRY(scl_context_check(r->ctx));
  SCL_TRY(scl_poll());
  for (int k = 0; k < r->steps; k = next_step(r, k)) SCL_TRY(run_step(r->ctx, &r->step[k]));
  return scl_read_block(r->ctx, r->out, SCL_WAIT_QUEUE, r->answer);
}

bool scl_routine_has_failed(const scl_routine *r, size_t vector) {
  for (int k = 0; k < r->factors; k++) {
    const bool reached = r->vector[k] == 0 || r->vector[k] == vector + 1;
    if (reached && r->answer[r->results + (size_t)k] != 0.0) return true;
  }
  return false;
}
