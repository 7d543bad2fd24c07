#include "program/program.h"

#include <stdlib.h>
#include <string.h>

#include "program/routine.h"

struct scl_program {
  scl_context *ctx;
  scl_block input; /* the parameter vector */
  scl_residents data;
  int data_count;
  scl_routine value, gradient;
  scl_program_facts facts;
};

void scl_program_release(scl_program *p) {
  if (p == NULL) return;
  scl_routine_end(&p->value);
  scl_routine_end(&p->gradient);
  scl_residents_end(&p->data);
  scl_buffer_release(p->input.buffer);
  scl_context_release(p->ctx);
  free(p);
}

static uint64_t bytes_held(const scl_program *p) {
  uint64_t bytes = p->input.buffer != NULL ? p->input.buffer->bytes : 0;
  for (int k = 0; k < p->value.buffers; k++) bytes += p->value.held[k]->bytes;
  for (int k = 0; k < p->gradient.buffers; k++) bytes += p->gradient.held[k]->bytes;
  for (int k = 0; k < p->data.room; k++) {
    const scl_resident *d = &p->data.of[k];
    if (d->numbers.buffer != NULL) bytes += d->numbers.buffer->bytes;
    if (d->starts.buffer != NULL) bytes += d->starts.buffer->bytes + d->order.buffer->bytes;
  }
  return bytes;
}

static void find_facts(scl_program *p) {
  for (int k = 0; k < p->gradient.steps; k++) {
    *(p->gradient.step[k].plan != NULL ? &p->facts.kernels : &p->facts.calls) += 1;
  }
  p->facts.bytes = bytes_held(p);
}

static scl_status make_routines(scl_program *p, scl_tape *t, int output) {
  const size_t parameters = p->facts.parameters;
  SCL_TRY(t->status);
  if (scl_tape_length(t, output) != 1) {
    return scl_fail_argument("f", "'f' must return one number, not %zu",
                             scl_tape_length(t, output));
  }
  p->facts.values = t->values;
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

scl_status scl_program_make(scl_context *ctx, scl_tape *t, int output, size_t parameters,
                            scl_program **out) {
  scl_program *p = calloc(1, sizeof *p);
  if (p == NULL) {
    scl_tape_end(t);
    return scl_fail_memory(sizeof *p, 0, "a program");
  }
  p->ctx = scl_context_retain(ctx);
  p->data = (scl_residents){.ctx = ctx, .tape = t};
  p->facts.parameters = parameters;
  const scl_status status = make_routines(p, t, output);
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

scl_context *scl_program_context(const scl_program *p) {
  return p->ctx;
}

scl_program_facts scl_program_about(const scl_program *p) {
  return p->facts;
}

scl_status scl_program_run(scl_program *p, const double *x, bool gradient, double *to) {
  SCL_TRY(scl_context_check(p->ctx));
  if (p->facts.parameters > 0) {
    SCL_TRY(p->ctx->engine->upload(p->ctx, SCL_GENERAL, x, p->facts.parameters, p->input));
  }
  return scl_routine_run(gradient ? &p->gradient : &p->value, to);
}

scl_status scl_program_set_data(scl_program *p, int index, const double *numbers, size_t length) {
  const bool known = index >= 0 && index < p->data.room;
  if (!known || (p->data.of[index].numbers.buffer == NULL && p->data.of[index].elements == 0)) {
    return index >= 0 && index < p->data_count
               ? SCL_OK /* not used */
               : scl_fail_argument("index", "the program has no data number %d", index + 1);
  }
  scl_resident *d = &p->data.of[index];
  if (d->starts.buffer != NULL || d->is_index) {
    return scl_fail_argument("index", "data number %d are indices", index + 1);
  }
  if (d->numbers.nrow != length) {
    return scl_fail_argument("values", "'values' must have length %zu, not %zu", d->numbers.nrow,
                             length);
  }
  return p->ctx->engine->upload(p->ctx, SCL_GENERAL, numbers, length, d->numbers);
}
