/* Several parameter vectors in one run. The host's vectors are columns; the engine's lie block by
 * block (program/map.h), and so do the derivatives. */
#include "program/mapped.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/map.h"

struct scl_mapped {
  scl_context *ctx;
  size_t parameters, vectors;
  bool compiled;
  scl_parameter_blocks blocks;
  scl_residents data;
  scl_block input;
  double *room; /* for the input */
  scl_routine value, gradient;
};

void scl_mapped_release(scl_mapped *m) {
  if (m == NULL) return;
  scl_routine_end(&m->value);
  scl_routine_end(&m->gradient);
  scl_residents_end(&m->data);
  scl_buffer_release(m->input.buffer);
  scl_parameter_blocks_end(&m->blocks);
  free(m->room);
  free(m);
}

/* The sum of the values of all vectors has the derivatives of each. */
static scl_status make_routines(scl_mapped *m, scl_tape *t, int values) {
  const size_t count = m->parameters * m->vectors;
  const int sum = scl_tape_reduce(t, SCL_REDUCE_SUM, values, m->vectors, 1, SCL_TOTAL);
  const int both[] = {values, scl_tape_gradient(t, sum, count, false)};
  SCL_TRY(t->status);
  m->room = malloc(count * sizeof *m->room);
  if (m->room == NULL) return scl_fail_memory(count * sizeof *m->room, 0, "a program");
  SCL_TRY(scl_block_create(m->ctx, count, 1, &m->input));
  SCL_TRY(scl_routine_make(&m->data, t, m->input, 1, both, &m->value));
  return scl_routine_make(&m->data, t, m->input, 2, both, &m->gradient);
}

static scl_status compile(scl_mapped *m, const scl_residents *data, int given, const scl_tape *t,
                          int output) {
  scl_tape wide;
  int values = 0;
  scl_tape_begin(&wide);
  scl_status status =
      scl_tape_map(t, output, m->parameters, m->vectors, &wide, &m->blocks, &values);
  m->data = (scl_residents){.ctx = m->ctx, .tape = &wide};
  if (status == SCL_OK) status = scl_residents_share(&m->data, data, given);
  if (status == SCL_OK) status = make_routines(m, &wide, values);
  if (status == SCL_OK) status = scl_residents_assume(&m->data);
  m->data.tape = NULL;
  scl_tape_end(&wide);
  return status;
}

scl_status scl_mapped_make(const scl_residents *data, int given, const scl_tape *t, int output,
                           size_t parameters, size_t vectors, scl_mapped **out) {
  scl_mapped *m = calloc(1, sizeof *m);
  if (m == NULL) return scl_fail_memory(sizeof *m, 0, "a program");
  m->ctx = data->ctx;
  m->parameters = parameters;
  m->vectors = vectors;
  m->compiled = scl_tape_can_map(t);
  const scl_status status = m->compiled ? compile(m, data, given, t, output) : SCL_OK;
  if (status != SCL_OK) {
    scl_mapped_release(m);
    return status;
  }
  *out = m;
  return SCL_OK;
}

size_t scl_mapped_vectors(const scl_mapped *m) {
  return m->vectors;
}

bool scl_mapped_is_compiled(const scl_mapped *m) {
  return m->compiled;
}

uint64_t scl_mapped_bytes(const scl_mapped *m, const scl_residents *data) {
  return (m->input.buffer != NULL ? m->input.buffer->bytes : 0) + scl_routine_bytes(&m->value) +
         scl_routine_bytes(&m->gradient) + scl_residents_bytes(&m->data, data);
}

scl_status scl_mapped_check_data(const scl_mapped *m, int index, const double *numbers,
                                 size_t length) {
  return scl_residents_check(&m->data, index, numbers, length);
}

scl_status scl_mapped_set_data(scl_mapped *m, const scl_residents *data, int index,
                               const double *numbers, size_t length) {
  const bool shared = index < m->data.room && index < data->room &&
                      m->data.of[index].numbers.buffer == data->of[index].numbers.buffer;
  return shared ? SCL_OK : scl_residents_set(&m->data, index, numbers, length);
}

/* ---- running it ----------------------------------------------------------------------------- */

/* From columns to blocks. */
static void fill_input(scl_mapped *m, const double *x) {
  const size_t *start = m->blocks.start;
  double *to = m->room;
  for (size_t b = 0; b < m->blocks.count; b++) {
    const size_t size = start[b + 1] - start[b];
    for (size_t k = 0; k < m->vectors; k++, to += size) {
      memcpy(to, x + k * m->parameters + start[b], size * sizeof *to);
    }
  }
}

/* And back, to columns of `rows` numbers. */
static void read_gradient(const scl_mapped *m, const double *from, size_t rows, double *to) {
  const size_t *start = m->blocks.start;
  for (size_t b = 0; b < m->blocks.count; b++) {
    const size_t size = start[b + 1] - start[b];
    for (size_t k = 0; k < m->vectors; k++, from += size) {
      memcpy(to + k * rows + start[b], from, size * sizeof *from);
    }
  }
}

scl_status scl_mapped_run(scl_mapped *m, const double *x, bool gradient, double *to) {
  const size_t count = m->parameters * m->vectors, rows = gradient ? m->parameters + 1 : 1;
  scl_routine *r = gradient ? &m->gradient : &m->value;
  fill_input(m, x);
  SCL_TRY(m->ctx->engine->upload(m->ctx, SCL_GENERAL, m->room, count, m->input));
  SCL_TRY(scl_routine_run_vectors(r));
  if (gradient) read_gradient(m, r->answer + m->vectors, rows, to + 1);
  for (size_t k = 0; k < m->vectors; k++) {
    to[k * rows] = r->answer[k];
    if (!scl_routine_has_failed(r, k)) continue;
    for (size_t i = 0; i < rows; i++) to[k * rows + i] = NAN;
  }
  return SCL_OK;
}
