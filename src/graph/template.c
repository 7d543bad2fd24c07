#include "graph/template.h"

#include <string.h>

#include "graph/graph.h"

/* ---- making --------------------------------------------------------------------------------- */

static int find_input(const scl_leaf *l, size_t inputs, scl_mat *const *input) {
  const bool whole = l->at == 0 && l->step_i == 1 && l->step_j == 2 && l->rectangle == 0;
  for (size_t k = 0; k < inputs && whole && l->length == 0; k++) {
    if (input[k]->buffer == l->buffer) return (int)k;
  }
  return -1;
}

/* The steps of a plan of 2 x 2 elements, with inputs in place of leaves. */
static bool copy_steps(const scl_plan *p, size_t inputs, scl_mat *const *input, scl_template *out) {
  for (int s = 0; s < p->body; s++) {
    scl_step step = p->step[s];
    if (step.kind == SCL_STEP_LOAD) {
      const int k = find_input(&p->leaf[step.arg[0]], inputs, input);
      if (k < 0) return false;
      step.arg[0] = (uint16_t)k;
    } else if (step.kind != SCL_STEP_NUMBER && step.kind != SCL_STEP_INDEX &&
               step.kind != SCL_STEP_APPLY) {
      return false;
    }
    out->step[s] = step;
  }
  out->steps = p->body;
  out->numbers = p->numbers;
  memcpy(out->number, p->number, p->numbers * sizeof *p->number);
  return true;
}

/* The nodes of the results; release them. */
static bool get_nodes(scl_context *ctx, size_t outputs, const scl_term *result, scl_node **node) {
  for (size_t k = 0; k < outputs; k++) {
    if (result[k].matrix != NULL) {
      const scl_mat *x = result[k].matrix;
      if (x->ctx != ctx || x->nrow != 2 || x->ncol != 2) return false;
      if (scl_node_of(result[k].matrix, &node[k]) != SCL_OK) return false;
      if (scl_node_domain(node[k]) != node[k]) return false;
    } else {
      if (scl_node_new(SCL_VALUE_NUMBER, (scl_shape){2, 2, SCL_GENERAL}, &node[k]) != SCL_OK) {
        return false;
      }
      node[k]->attribute[0] = result[k].number;
    }
  }
  return true;
}

bool scl_template_make(size_t inputs, scl_mat *const *input, size_t outputs, const scl_term *result,
                       scl_template *out) {
  scl_node *node[SCL_PLAN_OUTPUTS] = {NULL};
  scl_plan p;
  if (inputs == 0 || inputs > SCL_PLAN_LEAVES || outputs == 0 || outputs > SCL_PLAN_OUTPUTS) {
    return false;
  }
  memset(out, 0, sizeof *out);
  bool made = get_nodes(input[0]->ctx, outputs, result, node) &&
              scl_plan_make(input[0]->ctx, outputs, node, &p);
  /* Flattened, it has one column of four elements. */
  if (made && p.n == 1) {
    for (int k = 0; k < p.leaves; k++) p.leaf[k].step_j = 2;
  }
  made = made && copy_steps(&p, inputs, input, out);
  for (size_t k = 0; k < outputs; k++) {
    if (made) out->output[k] = p.output[k].step;
    scl_node_release(node[k]);
  }
  out->inputs = (uint16_t)inputs;
  out->outputs = (uint16_t)outputs;
  return made;
}

/* ---- running -------------------------------------------------------------------------------- */

/* Rows and columns of the plan are those of the result, or exchanged. */
static void add_steps(const scl_template *t, bool swapped, const scl_input *input,
                      scl_buffer *const *buffer, scl_plan *p) {
  for (int k = 0; k < t->inputs; k++) {
    const size_t row = input[k].nrow == 1 ? 0 : 1, column = input[k].ncol == 1 ? 0 : input[k].nrow;
    p->leaf[k] = (scl_leaf){
        .buffer = buffer[k], .step_i = swapped ? column : row, .step_j = swapped ? row : column};
    scl_plan_set_read(p, &p->leaf[k]);
  }
  memcpy(p->step, t->step, t->steps * sizeof *t->step);
  memcpy(p->number, t->number, t->numbers * sizeof *t->number);
  for (int s = 0; s < t->steps && swapped; s++) {
    if (p->step[s].kind == SCL_STEP_INDEX) p->step[s].arg[0] = !p->step[s].arg[0];
  }
  for (int k = 0; k < t->outputs; k++) p->output[k] = (scl_output){.step = t->output[k]};
  p->leaves = (uint8_t)t->inputs;
  p->numbers = (uint8_t)t->numbers;
  p->outputs = (uint8_t)t->outputs;
  p->steps = p->body = t->steps;
}

scl_status scl_template_run(scl_context *ctx, const scl_template *t, size_t m, size_t n,
                            const scl_input *input, double *const *output) {
  const bool swapped = m == 1; /* a row is computed as a column */
  scl_buffer *from[SCL_PLAN_LEAVES] = {NULL}, *to[SCL_PLAN_OUTPUTS] = {NULL};
  scl_plan p;
  scl_status status = SCL_OK;
  for (int k = 0; k < t->inputs; k++) {
    const size_t bytes = input[k].nrow * input[k].ncol * sizeof(double);
    SCL_GO(ctx->engine->buffer_wrap(ctx, (double *)input[k].data, bytes, &from[k]));
  }
  for (int k = 0; k < t->outputs; k++) {
    SCL_GO(ctx->engine->buffer_wrap(ctx, output[k], m * n * sizeof(double), &to[k]));
  }
  scl_plan_begin(&p, swapped ? n : m, swapped ? m : n);
  add_steps(t, swapped, input, from, &p);
  scl_plan_end(&p, p.m);
  for (int k = 0; k < t->outputs; k++) {
    scl_plan_place(&p, (size_t)k, (scl_block){.buffer = to[k], .ld = p.m, .nrow = m, .ncol = n});
  }
  status = ctx->engine->expr(ctx, &p);
done:
  for (int k = 0; k < t->inputs; k++) scl_buffer_release(from[k]);
  for (int k = 0; k < t->outputs; k++) scl_buffer_release(to[k]);
  return status;
}
