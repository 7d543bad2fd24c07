#include "program/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/mapped.h"
#include "program/routine.h"

struct scl_program {
  scl_context *ctx;
  scl_block input; /* the parameter vector; of second derivatives, the direction behind it */
  bool second;
  double *point; /* then: room for both */
  scl_residents data;
  int given, data_count; /* data that were recorded; and all */
  scl_routine value, gradient;
  scl_mapped *mapped[SCL_PROGRAM_MAPPED]; /* for several vectors */
  int mapped_count;
  scl_program_facts facts;
};

void scl_program_release(scl_program *p) {
  if (p == NULL) return;
  for (int k = 0; k < p->mapped_count; k++) scl_mapped_release(p->mapped[k]);
  scl_routine_end(&p->value);
  scl_routine_end(&p->gradient);
  scl_residents_end(&p->data);
  scl_buffer_release(p->input.buffer);
  scl_context_release(p->ctx);
  free(p->point);
  free(p);
}

static uint64_t bytes_held(const scl_program *p) {
  uint64_t bytes = p->input.buffer != NULL ? p->input.buffer->bytes : 0;
  bytes += scl_routine_bytes(&p->value) + scl_routine_bytes(&p->gradient);
  bytes += scl_residents_bytes(&p->data, NULL);
  for (int k = 0; k < p->mapped_count; k++) bytes += scl_mapped_bytes(p->mapped[k], &p->data);
  return bytes;
}

static void find_facts(scl_program *p) {
  for (int k = 0; k < p->gradient.steps; k++) {
    const scl_routine_step *s = &p->gradient.step[k];
    *(s->plan != NULL || s->numbers != NULL ? &p->facts.kernels : &p->facts.calls) += 1;
  }
  p->facts.bytes = bytes_held(p);
}

static scl_status require_number(const scl_tape *t, int output) {
  const size_t length = scl_tape_length(t, output);
  if (length == 1) return SCL_OK;
  return scl_fail_argument("f", "'f' must return one number, not %zu", length);
}

static scl_status require_parameters(const scl_tape *t, size_t parameters) {
  for (int v = 0; v < t->values; v++) {
    const scl_value *p = &t->value[v];
    if (p->kind == SCL_VALUE_PARAMETER && p->at[0] + p->at[1] > parameters) {
      return scl_fail_argument("f", "a recorded operation reads more than %zu parameters",
                               parameters);
    }
  }
  return SCL_OK;
}

static void count_work(scl_program *p, const scl_tape *t) {
  scl_program_facts *f = &p->facts;
  f->values = t->values;
  for (int k = 0; k < t->values; k++) {
    const scl_value *v = &t->value[k];
    f->operations += v->kind == SCL_VALUE_APPLY;
    if (v->kind != SCL_VALUE_DATA && v->kind != SCL_VALUE_NUMBER) f->elements += (double)v->length;
    if (v->kind != SCL_VALUE_SCAN) continue;
    f->rounds += (double)v->at[1] * (double)v->at[2];
    f->steps += (double)v->at[1];
  }
}

static scl_status make_routines(scl_program *p, scl_tape *t, int output) {
  const size_t parameters = p->facts.parameters;
  SCL_TRY(t->status);
  SCL_TRY(require_number(t, output));
  SCL_TRY(require_parameters(t, parameters));
  count_work(p, t);
  const int gradient = scl_tape_gradient(t, output, parameters, false);
  SCL_TRY(t->status);
  p->facts.gradient_values = t->values - p->facts.values;
  SCL_TRY(scl_block_create(p->ctx, parameters, 1, &p->input));
  const int both[] = {output, gradient};
  SCL_TRY(scl_routine_make(&p->data, t, p->input, 1, both, &p->value));
  SCL_TRY(scl_routine_make(&p->data, t, p->input, parameters > 0 ? 2 : 1, both, &p->gradient));
  find_facts(p);
  return SCL_OK;
}

/* The derivative of (gradient) (direction), which are as many parameters more; of order 3, that of
 * (direction) (Hessian) (direction). */
static scl_status make_second(scl_program *p, scl_tape *t, int output, int order) {
  const size_t n = p->facts.parameters, at[] = {n, n};
  SCL_TRY(t->status);
  SCL_TRY(require_number(t, output));
  SCL_TRY(require_parameters(t, n));
  count_work(p, t);
  int slope = scl_tape_gradient(t, output, n, true);
  const int direction = scl_tape_add(t, SCL_VALUE_PARAMETER, 0, 0, NULL, at, 0.0);
  for (int k = 1; k < order; k++) {
    const int along = scl_tape_reduce(
        t, SCL_REDUCE_SUM, scl_tape_binary(t, SCL_OP_MUL, slope, direction), n, 1, SCL_TOTAL);
    slope = scl_tape_part(t, scl_tape_gradient(t, along, 2 * n, true), 0, n);
  }
  SCL_TRY(t->status);
  p->facts.gradient_values = t->values - p->facts.values;
  p->point = malloc((2 * n + 1) * sizeof *p->point);
  if (p->point == NULL) return scl_fail_memory(2 * n * sizeof *p->point, 0, "a program");
  SCL_TRY(scl_block_create(p->ctx, 2 * n, 1, &p->input));
  SCL_TRY(scl_routine_make(&p->data, t, p->input, 1, &slope, &p->gradient));
  find_facts(p);
  return SCL_OK;
}

static scl_status make_program(scl_context *ctx, scl_tape *t, int output, size_t parameters,
                               int order, scl_program **out) {
  scl_program *p = calloc(1, sizeof *p);
  if (p == NULL) {
    scl_tape_end(t);
    return scl_fail_memory(sizeof *p, 0, "a program");
  }
  p->ctx = scl_context_retain(ctx);
  p->data = (scl_residents){.ctx = ctx, .tape = t};
  p->facts.parameters = parameters;
  p->given = t->data_used;
  p->second = order > 1 && parameters > 0;
  scl_status status = p->second ? make_second(p, t, output, order) : make_routines(p, t, output);
  if (status == SCL_OK) status = scl_residents_assume(&p->data);
  p->data_count = t->data_used;
  p->data.tape = NULL;
  scl_tape_end(t);
  if (status != SCL_OK) {
    scl_program_release(p);
    return status;
  }
  *out = p;
  return SCL_OK;
}

scl_status scl_program_make(scl_context *ctx, scl_tape *t, int output, size_t parameters,
                            scl_program **out) {
  return make_program(ctx, t, output, parameters, 1, out);
}

scl_status scl_program_make_second(scl_context *ctx, scl_tape *t, int output, size_t parameters,
                                   int order, scl_program **out) {
  return make_program(ctx, t, output, parameters, order, out);
}

scl_context *scl_program_context(const scl_program *p) {
  return p->ctx;
}

scl_program_facts scl_program_about(const scl_program *p) {
  return p->facts;
}

static scl_status require_order(const scl_program *p, bool second) {
  SCL_TRY(scl_context_check(p->ctx));
  if (p->second == second) return SCL_OK;
  return scl_fail_argument("f", "the program was made for derivatives of another order");
}

scl_status scl_program_product(scl_program *p, const double *x, const double *direction,
                               double *to) {
  const size_t n = p->facts.parameters;
  if (n == 0) return SCL_OK;
  SCL_TRY(require_order(p, true));
  memcpy(p->point, x, n * sizeof *x);
  memcpy(p->point + n, direction, n * sizeof *direction);
  SCL_TRY(p->ctx->engine->upload(p->ctx, SCL_GENERAL, p->point, 2 * n, p->input));
  return scl_routine_run(&p->gradient, to);
}

scl_status scl_program_hessian(scl_program *p, const double *x, double *to) {
  const size_t n = p->facts.parameters;
  double *unit = calloc(n + 1, sizeof *unit);
  scl_status status = SCL_OK;
  if (unit == NULL) return scl_fail_memory(n * sizeof *unit, 0, "a Hessian");
  for (size_t j = 0; j < n && status == SCL_OK; j++) {
    unit[j] = 1.0;
    status = scl_program_product(p, x, unit, to + j * n);
    unit[j] = 0.0;
    if (status == SCL_OK) status = scl_poll();
  }
  free(unit);
  return status;
}

scl_status scl_program_run(scl_program *p, const double *x, bool gradient, double *to) {
  SCL_TRY(require_order(p, false));
  if (p->facts.parameters > 0) {
    SCL_TRY(p->ctx->engine->upload(p->ctx, SCL_GENERAL, x, p->facts.parameters, p->input));
  }
  return scl_routine_run(gradient ? &p->gradient : &p->value, to);
}

/* The number of elements from which a separate command takes less time than a copy. */
enum { LONG_PART = 1 << 14 };

/* Puts parameters next to each other, except for long ones, and uploads them. */
static scl_status upload_parts(const scl_program *p, size_t count, const scl_program_part *part) {
  size_t from = 0, at = 0;
  for (size_t k = 0; k <= count; k++) {
    const bool is_long = k < count && part[k].length >= LONG_PART;
    if (k < count && !is_long) {
      memcpy(p->point + at, part[k].x, part[k].length * sizeof *p->point);
      at += part[k].length;
      continue;
    }
    if (at > from) {
      SCL_TRY(p->ctx->engine->upload(p->ctx, SCL_GENERAL, p->point + from, at - from,
                                     scl_block_part(p->input, from, 0, at - from, 1)));
    }
    if (k == count) break;
    SCL_TRY(p->ctx->engine->upload(p->ctx, SCL_GENERAL, part[k].x, part[k].length,
                                   scl_block_part(p->input, at, 0, part[k].length, 1)));
    from = at += part[k].length;
  }
  return SCL_OK;
}

static void take_parts(const scl_routine *r, size_t count, const scl_program_part *part,
                       bool failed) {
  for (size_t k = 0, at = 1; k < count; at += part[k].length, k++) {
    for (size_t i = 0; i < part[k].length && failed; i++) part[k].slope[i] = NAN;
    if (failed || part[k].length >= LONG_PART) continue;
    memcpy(part[k].slope, r->answer + at, part[k].length * sizeof *r->answer);
  }
}

static scl_status run_parts(scl_program *p, size_t count, const scl_program_part *part,
                            scl_routine_range *range, double *value) {
  size_t ranges = 0;
  bool failed;
  for (size_t k = 0, at = 1; k < count; at += part[k].length, k++) {
    if (part[k].length >= LONG_PART)
      range[ranges++] = (scl_routine_range){at, part[k].length, part[k].slope};
  }
  SCL_TRY(upload_parts(p, count, part));
  SCL_TRY(scl_routine_run_ranges(&p->gradient, ranges, range, &failed));
  take_parts(&p->gradient, count, part, failed);
  *value = failed ? NAN : p->gradient.answer[0];
  return SCL_OK;
}

scl_status scl_program_run_parts(scl_program *p, size_t count, const scl_program_part *part,
                                 double *value) {
  const size_t bytes = (p->facts.parameters + 1) * sizeof *p->point;
  SCL_TRY(require_order(p, false));
  if (p->point == NULL) p->point = malloc(bytes);
  scl_routine_range *range = malloc((count + 1) * sizeof *range);
  const scl_status status = p->point != NULL && range != NULL
                                ? run_parts(p, count, part, range, value)
                                : scl_fail_memory(bytes, 0, "the parameters");
  free(range);
  return status;
}

/* ---- evaluators ------------------------------------------------------------------------------ */

struct scl_evaluator {
  scl_context *ctx; /* borrowed */
  size_t parameters;
  scl_block input;
  scl_routine gradient;
};

void scl_evaluator_release(scl_evaluator *e) {
  if (e == NULL) return;
  scl_routine_end(&e->gradient);
  scl_buffer_release(e->input.buffer);
  free(e);
}

scl_status scl_evaluator_make(scl_program *p, scl_evaluator **out) {
  SCL_TRY(require_order(p, false));
  *out = NULL;
  if (!scl_traits(p->ctx)->synchronous || !scl_routine_may_copy(&p->gradient)) return SCL_OK;
  scl_evaluator *e = calloc(1, sizeof *e);
  if (e == NULL) return scl_fail_memory(sizeof *e, 0, "a program");
  e->ctx = p->ctx;
  e->parameters = p->facts.parameters;
  scl_status status = scl_block_create(p->ctx, e->parameters, 1, &e->input);
  if (status == SCL_OK) {
    status = scl_routine_copy(&p->gradient, p->input.buffer, e->input.buffer, &e->gradient);
  }
  if (status != SCL_OK) {
    scl_evaluator_release(e);
    return status;
  }
  *out = e;
  return SCL_OK;
}

scl_status scl_evaluator_run(scl_evaluator *e, const double *x, double *to) {
  if (e->parameters > 0) {
    SCL_TRY(e->ctx->engine->upload(e->ctx, SCL_GENERAL, x, e->parameters, e->input));
  }
  return scl_routine_run(&e->gradient, to);
}

scl_status scl_program_set_data(scl_program *p, int index, const double *numbers, size_t length) {
  if (index < 0 || (index >= p->data_count && index >= p->data.room)) {
    return scl_fail_argument("index", "the program has no data number %d", index + 1);
  }
  SCL_TRY(scl_residents_check(&p->data, index, numbers, length));
  for (int k = 0; k < p->mapped_count; k++) {
    SCL_TRY(scl_mapped_check_data(p->mapped[k], index, numbers, length));
  }
  SCL_TRY(scl_residents_set(&p->data, index, numbers, length));
  for (int k = 0; k < p->mapped_count; k++) {
    SCL_TRY(scl_mapped_set_data(p->mapped[k], &p->data, index, numbers, length));
  }
  return SCL_OK;
}

/* ---- several vectors ------------------------------------------------------------------------ */

static scl_mapped *mapped_of(const scl_program *p, size_t vectors) {
  for (int k = 0; k < p->mapped_count; k++) {
    if (scl_mapped_vectors(p->mapped[k]) == vectors) return p->mapped[k];
  }
  return NULL;
}

bool scl_program_is_mapped(const scl_program *p, size_t vectors) {
  return vectors <= 1 || p->facts.parameters == 0 || mapped_of(p, vectors) != NULL;
}

/* The oldest one is removed if there is no room. */
static void keep_mapped(scl_program *p, scl_mapped *m) {
  if (p->mapped_count == SCL_PROGRAM_MAPPED) {
    scl_mapped_release(p->mapped[0]);
    memmove(p->mapped, p->mapped + 1, (SCL_PROGRAM_MAPPED - 1) * sizeof *p->mapped);
    p->mapped_count--;
  }
  p->mapped[p->mapped_count++] = m;
  p->facts.bytes = bytes_held(p);
}

static scl_status map(scl_program *p, const scl_tape *t, int output, size_t vectors) {
  scl_mapped *m = NULL;
  SCL_TRY(t->status);
  SCL_TRY(require_order(p, false));
  SCL_TRY(require_number(t, output));
  SCL_TRY(require_parameters(t, p->facts.parameters));
  if (scl_program_is_mapped(p, vectors)) return SCL_OK;
  SCL_TRY(scl_mapped_make(&p->data, p->given, t, output, p->facts.parameters, vectors, &m));
  keep_mapped(p, m);
  return SCL_OK;
}

scl_status scl_program_map(scl_program *p, scl_tape *t, int output, size_t vectors) {
  const scl_status status = map(p, t, output, vectors);
  scl_tape_end(t);
  return status;
}

scl_status scl_program_run_vectors(scl_program *p, const double *x, size_t vectors, bool gradient,
                                   double *to) {
  const size_t n = p->facts.parameters, rows = gradient ? n + 1 : 1;
  scl_mapped *m = mapped_of(p, vectors);
  SCL_TRY(require_order(p, false));
  if (m != NULL && scl_mapped_is_compiled(m)) return scl_mapped_run(m, x, gradient, to);
  for (size_t k = 0; k < vectors; k++) {
    SCL_TRY(scl_program_run(p, x + k * n, gradient, to + k * rows));
  }
  return SCL_OK;
}
