/* Groups of elementwise values, and the reductions over them, as plans (engine/plan/plan.h). */
#include <stdlib.h>

#include "base/sizes.h"
#include "engine/plan/pass.h"
#include "program/compile.h"

enum { NONE = -1 };

/* A run of a group's values, in order, that becomes one plan if it fits. */
typedef struct {
  const scl_group *group;
  const int *value;
  int count, list;
} run;

/* ---- leaves --------------------------------------------------------------------------------- */

/* The strides of a view in its operand, for the elements of p; a row, or one element, has any
 * shape.
 */
static void steps_of_view(const scl_value *v, const scl_plan *p, size_t *at, size_t *step_i,
                          size_t *step_j) {
  const bool flat = scl_rows_needed(v) == 0;
  const size_t first = scl_value_view_element(v, 0, 0);
  *at += first;
  *step_i = scl_value_view_element(v, !flat, flat) - first;
  *step_j = flat ? p->m * *step_i : scl_value_view_element(v, 0, 1) - first;
}

/* The step that reads value x at each element, or NONE if the plan is full. */
static scl_status load(scl_compiling *c, scl_plan *p, int x, int *step) {
  const scl_tape *t = &c->lowered.tape;
  const scl_value *v = &t->value[x];
  scl_location at;
  size_t step_i = 1, step_j = p->m;
  if (v->kind == SCL_VALUE_NUMBER) {
    *step = scl_plan_number(p, 0, v->number);
    return SCL_OK;
  }
  const bool view = scl_how(v) == SCL_IS_VIEW && !scl_is_alias(v);
  SCL_TRY(scl_storage_find(c, view ? scl_tape_operand(t, x, 0) : x, &at));
  if (view) {
    steps_of_view(v, p, &at.offset, &step_i, &step_j);
  } else if (v->length == 1) {
    step_i = step_j = 0;
  }
  const scl_leaf leaf = {.buffer = at.buffer, .at = at.offset, .step_i = step_i, .step_j = step_j};
  *step = scl_plan_load(p, 0, leaf);
  return SCL_OK;
}

/* ---- values --------------------------------------------------------------------------------- */

static bool in_run(const scl_compiling *c, const run *r, int x) {
  return c->list_of[x] == r->list;
}

static scl_status step_of(scl_compiling *c, const run *r, scl_plan *p, int x, int *step) {
  if (in_run(c, r, x) && scl_how(&c->lowered.tape.value[x]) == SCL_IS_STEP) {
    *step = c->step[x];
    return SCL_OK;
  }
  return load(c, p, x, step);
}

/* The matrix of a product. */
static scl_status find_matrix(scl_compiling *c, int v, int x, scl_block *out) {
  const size_t *at = c->lowered.tape.value[v].at;
  return scl_storage_block(c, x, at[0], at[1], out);
}

static scl_status add_matvec(scl_compiling *c, scl_plan *p, int v) {
  const scl_tape *t = &c->lowered.tape;
  const size_t *at = t->value[v].at;
  scl_block x, b;
  SCL_TRY(find_matrix(c, v, scl_tape_operand(t, v, 0), &x));
  SCL_TRY(scl_storage_block(c, scl_tape_operand(t, v, 1), at[1], at[2], &b));
  c->step[v] = scl_plan_product(p, 0, x, b);
  return SCL_OK;
}

/* Adds the steps of one value; *full if they do not fit. */
static scl_status add_value(scl_compiling *c, const run *r, scl_plan *p, int v, bool *full) {
  const scl_tape *t = &c->lowered.tape;
  const scl_value *value = &t->value[v];
  int arg[3] = {0, 0, 0};
  if (value->kind == SCL_VALUE_MATVEC) {
    SCL_TRY(add_matvec(c, p, v));
    *full = c->step[v] < 0;
    return SCL_OK;
  }
  const int operands = value->kind == SCL_VALUE_MATVEC_ADJOINT ? 1 : value->operands;
  for (int k = 0; k < operands; k++) {
    SCL_TRY(step_of(c, r, p, scl_tape_operand(t, v, k), &arg[k]));
    if (arg[k] == NONE) {
      *full = true;
      return SCL_OK;
    }
  }
  c->step[v] = value->kind != SCL_VALUE_APPLY
                   ? arg[0]
                   : scl_plan_add_step(p, 0, SCL_STEP_APPLY, value->op, arg[0], arg[1], arg[2]);
  *full = c->step[v] < 0;
  return SCL_OK;
}

/* Whether a value, or a view of it, is read outside of the run. */
static bool is_read_outside(const scl_compiling *c, const run *r, int v) {
  const scl_tape *t = &c->lowered.tape;
  if (c->lowered.holder[v] != NONE) return true;
  for (int k = c->first_reader[v]; k < c->first_reader[v + 1]; k++) {
    const int reader = c->reader[k];
    if (!in_run(c, r, reader)) return true;
    /* A single element among longer values is read from memory. */
    if (t->value[v].length == 1 && r->group->elements != 1) return true;
  }
  return false;
}

static bool is_output(const scl_compiling *c, const run *r, int v) {
  return scl_how(&c->lowered.tape.value[v]) == SCL_IS_TOTAL || is_read_outside(c, r, v);
}

static scl_status add_output(scl_compiling *c, scl_plan *p, int v, bool *full) {
  const scl_value *value = &c->lowered.tape.value[v];
  *full = p->outputs == SCL_PLAN_OUTPUTS;
  if (*full) return SCL_OK;
  scl_output *o = &p->output[p->outputs++];
  *o = (scl_output){.step = (uint16_t)c->step[v]};
  if (scl_how(value) == SCL_IS_TOTAL) {
    o->reduces = true;
    o->op = value->op;
    p->margin = (uint8_t)value->at[2];
  }
  if (value->kind == SCL_VALUE_MATVEC_ADJOINT) {
    scl_block x;
    SCL_TRY(find_matrix(c, v, scl_tape_operand(&c->lowered.tape, v, 1), &x));
    const int leaf = scl_plan_add_matrix(p, x);
    *full = leaf == NONE;
    o->op = SCL_REDUCE_SUM;
    o->product = true;
    o->first = (uint16_t)leaf;
  }
  return SCL_OK;
}

/* ---- plans ---------------------------------------------------------------------------------- */

static scl_status fill_plan(scl_compiling *c, const run *r, scl_plan *p, bool *full) {
  const scl_group *g = r->group;
  const size_t rows = g->rows != 0 ? g->rows : g->elements;
  scl_plan_begin(p, rows, g->elements / rows);
  *full = false;
  for (int i = 0; i < r->count && !*full; i++) SCL_TRY(add_value(c, r, p, r->value[i], full));
  p->body = p->steps;
  for (int i = 0; i < r->count && !*full; i++) {
    if (is_output(c, r, r->value[i])) SCL_TRY(add_output(c, p, r->value[i], full));
  }
  *full = *full || !scl_plan_is_callable(p);
  return SCL_OK;
}

/* Storage for the outputs of a plan that is complete. */
static scl_status allocate_outputs(scl_compiling *c, const run *r, scl_plan *p) {
  const size_t rows = p->m, columns = p->n;
  int k = 0;
  scl_plan_end(p, rows);
  for (int i = 0; i < r->count; i++) {
    const int v = r->value[i];
    if (!is_output(c, r, v)) continue;
    scl_block block;
    const bool total = scl_how(&c->lowered.tape.value[v]) == SCL_IS_TOTAL;
    SCL_TRY(scl_storage_make(c, v));
    SCL_TRY(scl_storage_block(c, v, total ? c->lowered.tape.value[v].length : rows,
                              total ? 1 : columns, &block));
    scl_plan_place(p, (size_t)k++, block);
  }
  return SCL_OK;
}

/* A plan of the run, alone. */
static scl_status begin_plan(scl_compiling *c, run *r, scl_plan **out, bool *full) {
  scl_plan *p = malloc(sizeof *p);
  if (p == NULL) return scl_fail_memory(sizeof *p, 0, "a program");
  r->list = ++c->lists;
  for (int i = 0; i < r->count; i++) c->list_of[r->value[i]] = r->list;
  *out = p;
  return fill_plan(c, r, p, full);
}

/* Takes over a plan that is complete. */
static scl_status add_plan(scl_compiling *c, const run *r, scl_plan *p) {
  scl_routine_step *step;
  scl_status status = allocate_outputs(c, r, p);
  if (status == SCL_OK && p->outputs > 0) {
    status = scl_routine_add(c->routine, &step);
    if (status == SCL_OK) {
      step->plan = p;
      return SCL_OK;
    }
  }
  free(p);
  return status;
}

/* If the plan is full, the run is split in the middle; a single value always fits. */
static scl_status fuse(scl_compiling *c, run r) {
  scl_plan *p = NULL;
  bool full = false;
  scl_status status = begin_plan(c, &r, &p, &full);
  if (status == SCL_OK && full && r.count > 1) {
    free(p);
    const run first = {r.group, r.value, r.count / 2, 0};
    const run rest = {r.group, r.value + first.count, r.count - first.count, 0};
    SCL_TRY(fuse(c, first));
    return fuse(c, rest);
  }
  if (status == SCL_OK) return add_plan(c, &r, p);
  free(p);
  return status;
}

/* Whether the device's matrix instructions are to be used: their trial is run only for a plan that
 * would be faster. */
static scl_status may_use_mma(scl_context *ctx, const scl_plan *p, bool *mma) {
  *mma = false;
  if (ctx->engine->pass_mma == NULL || !scl_plan_wants_mma(p)) return SCL_OK;
  return ctx->engine->pass_mma(ctx, mma);
}

/* All of a group as a pass, if it is one. */
static scl_status fuse_pass(scl_compiling *c, run r, bool *done) {
  scl_plan *p = NULL;
  bool full = false, mma = false;
  scl_status status = begin_plan(c, &r, &p, &full);
  if (status == SCL_OK && !full) status = may_use_mma(c->routine->ctx, p, &mma);
  *done = status == SCL_OK && !full &&
          scl_plan_become_pass(p, !scl_traits(c->routine->ctx)->synchronous, mma);
  if (*done) return add_plan(c, &r, p);
  free(p);
  return status;
}

/* Products that only a pass computes together with other values: X' r, and X b of several
 * vectors. */
static bool needs_pass(const scl_value *v) {
  return v->kind == SCL_VALUE_MATVEC_ADJOINT || (v->kind == SCL_VALUE_MATVEC && v->at[2] > 1);
}

static scl_status add_calls(scl_compiling *c, const run *r, scl_value_kind kind) {
  for (int i = 0; i < r->count; i++) {
    const scl_value *v = &c->lowered.tape.value[r->value[i]];
    if (v->kind == kind && needs_pass(v)) SCL_TRY(scl_add_call(c, r->value[i]));
  }
  return SCL_OK;
}

/* These products as calls, X b before the rest and X' r after it. */
static scl_status fuse_apart(scl_compiling *c, const run *r) {
  const scl_tape *t = &c->lowered.tape;
  int *value = malloc((size_t)r->count * sizeof *value), count = 0;
  if (value == NULL) return scl_fail_memory((size_t)r->count * sizeof *value, 0, "a program");
  for (int i = 0; i < r->count; i++) {
    if (!needs_pass(&t->value[r->value[i]])) value[count++] = r->value[i];
  }
  scl_status status = add_calls(c, r, SCL_VALUE_MATVEC);
  if (status == SCL_OK && count > 0) status = fuse(c, (run){r->group, value, count, 0});
  if (status == SCL_OK) status = add_calls(c, r, SCL_VALUE_MATVEC_ADJOINT);
  free(value);
  return status;
}

scl_status scl_fuse_group(scl_compiling *c, const scl_group *g) {
  const run r = {g, c->schedule.value + g->first, g->count, 0};
  for (int i = 0; i < r.count; i++) {
    bool done;
    if (!needs_pass(&c->lowered.tape.value[r.value[i]])) continue;
    SCL_TRY(fuse_pass(c, r, &done));
    return done ? SCL_OK : fuse_apart(c, &r);
  }
  return fuse(c, r);
}
