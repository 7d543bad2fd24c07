#include "program/sparse_program.h"

#include <stdlib.h>

#include "program/routine.h"

struct scl_sparse_program {
  scl_context *ctx;
  size_t parameters;
  scl_sparse_pattern pattern;
  scl_block input; /* the parameter vector, weights behind it, and a direction */
  scl_residents data;
  scl_routine value, adjoint, along;
};

void scl_sparse_program_release(scl_sparse_program *p) {
  if (p == NULL) return;
  scl_routine_end(&p->value);
  scl_routine_end(&p->adjoint);
  scl_routine_end(&p->along);
  scl_residents_end(&p->data);
  scl_buffer_release(p->input.buffer);
  scl_sparse_pattern_end(&p->pattern);
  scl_context_release(p->ctx);
  free(p);
}

/* The gradient of the sum of x, weighted by `length` numbers of the input from `from` on. */
static int weighted_slope(const scl_sparse_program *p, scl_tape *t, int x, size_t from,
                          size_t length) {
  const size_t at[] = {from, length};
  const int weights = scl_tape_add(t, SCL_VALUE_PARAMETER, 0, 0, NULL, at, 0.0);
  const int terms = scl_tape_binary(t, SCL_OP_MUL, weights, x);
  const int sum = scl_tape_reduce(t, SCL_REDUCE_SUM, terms, length, 1, SCL_TOTAL);
  return scl_tape_gradient(t, sum, p->parameters, false);
}

static scl_status make_routines(scl_sparse_program *p, scl_tape *t, int hessian, int slope) {
  const size_t n = p->parameters, count = p->pattern.count;
  const int adjoint = weighted_slope(p, t, hessian, n, count);
  const int along = weighted_slope(p, t, slope, n + count, n);
  SCL_TRY(t->status);
  SCL_TRY(scl_block_create(p->ctx, 2 * n + count, 1, &p->input));
  SCL_TRY(scl_routine_make(&p->data, t, p->input, 1, &hessian, &p->value));
  SCL_TRY(scl_routine_make(&p->data, t, p->input, 1, &adjoint, &p->adjoint));
  SCL_TRY(scl_routine_make(&p->data, t, p->input, 1, &along, &p->along));
  return scl_residents_assume(&p->data);
}

scl_status scl_sparse_program_make(scl_context *ctx, scl_tape *t, int output, size_t parameters,
                                   const unsigned char *chosen, size_t most,
                                   scl_sparse_program **out) {
  scl_sparse_program *p = calloc(1, sizeof *p);
  scl_status status = t->status;
  int hessian = -1, slope = -1;
  if (p == NULL) status = scl_fail_memory(sizeof *p, 0, "a program");
  if (status == SCL_OK) {
    p->ctx = scl_context_retain(ctx);
    p->data = (scl_residents){.ctx = ctx, .tape = t};
    p->parameters = parameters;
    status =
        scl_tape_sparse_hessian(t, output, parameters, chosen, most, &p->pattern, &hessian, &slope);
  }
  if (status == SCL_OK && hessian >= 0) status = make_routines(p, t, hessian, slope);
  if (p != NULL) p->data.tape = NULL;
  scl_tape_end(t);
  if (status != SCL_OK || hessian < 0) {
    scl_sparse_program_release(p);
    p = NULL;
  }
  if (status == SCL_OK) *out = p;
  return status;
}

scl_context *scl_sparse_program_context(const scl_sparse_program *p) {
  return p->ctx;
}

const scl_sparse_pattern *scl_sparse_program_pattern(const scl_sparse_program *p) {
  return &p->pattern;
}

size_t scl_sparse_program_parameters(const scl_sparse_program *p) {
  return p->parameters;
}

static scl_status upload(scl_sparse_program *p, const double *x, size_t at, size_t length) {
  SCL_TRY(scl_context_check(p->ctx));
  return p->ctx->engine->upload(p->ctx, SCL_GENERAL, x, length,
                                scl_block_part(p->input, at, 0, length, 1));
}

scl_status scl_sparse_program_run(scl_sparse_program *p, const double *x, double *to) {
  SCL_TRY(upload(p, x, 0, p->parameters));
  return scl_routine_run(&p->value, to);
}

scl_status scl_sparse_program_adjoint(scl_sparse_program *p, const double *x, const double *w,
                                      double *to) {
  SCL_TRY(upload(p, x, 0, p->parameters));
  SCL_TRY(upload(p, w, p->parameters, p->pattern.count));
  return scl_routine_run(&p->adjoint, to);
}

scl_status scl_sparse_program_along(scl_sparse_program *p, const double *x, const double *direction,
                                    double *to) {
  SCL_TRY(upload(p, x, 0, p->parameters));
  SCL_TRY(upload(p, direction, p->parameters + p->pattern.count, p->parameters));
  return scl_routine_run(&p->along, to);
}
