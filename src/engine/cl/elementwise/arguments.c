/* Arguments of generated kernels, and the buffers that they touch. */
#include "engine/cl/elementwise/plan.h"

#include <string.h>

scl_cl_arguments scl_cl_arguments_of(const scl_cl_context *cl, const scl_cl_launchable *k,
                                     scl_cl_kept_arguments *kept) {
  if (kept->freed != cl->freed) memset(kept, 0, sizeof *kept);
  kept->freed = cl->freed;
  return (scl_cl_arguments){.kernel = k->kernel, .kept = kept, .code = CL_SUCCESS};
}

/* Local memory has no value, but a size. */
static void pass_value(scl_cl_arguments *a, size_t size, const void *value) {
  const cl_uint i = a->next++;
  uint64_t bits = 0;
  if (a->code != CL_SUCCESS) return;
  if (value != NULL) memcpy(&bits, value, size);
  if (i < SCL_CL_KEPT_ARGUMENTS && a->kept->size[i] == size && a->kept->value[i] == bits) return;
  a->code = scl_cl.clSetKernelArg(a->kernel, i, size, value);
  if (i >= SCL_CL_KEPT_ARGUMENTS) return;
  a->kept->size[i] = a->code == CL_SUCCESS ? (uint32_t)size : 0;
  a->kept->value[i] = bits;
}

void scl_cl_argument_long(scl_cl_arguments *a, size_t value) {
  const cl_long number = (cl_long)value;
  pass_value(a, sizeof number, &number);
}

void scl_cl_argument_int(scl_cl_arguments *a, size_t value) {
  const cl_int number = (cl_int)value;
  pass_value(a, sizeof number, &number);
}

void scl_cl_argument_buffer(scl_cl_arguments *a, const scl_buffer *buffer) {
  const cl_mem memory = ((const scl_cl_buffer *)buffer)->memory;
  pass_value(a, sizeof memory, &memory);
}

void scl_cl_argument_local(scl_cl_arguments *a, size_t bytes) {
  pass_value(a, bytes, NULL);
  a->local_bytes += bytes;
}

void scl_cl_argument_numbers(scl_cl_arguments *a, const scl_plan *p) {
  for (int k = 0; k < p->numbers; k++) pass_value(a, sizeof p->number[k], &p->number[k]);
}

void scl_cl_argument_inputs(scl_cl_arguments *a, const scl_plan *p) {
  (p->wide ? scl_cl_argument_long : scl_cl_argument_int)(a, p->m);
  (p->wide ? scl_cl_argument_long : scl_cl_argument_int)(a, p->n);
  for (int k = 0; k < p->leaves; k++) {
    const scl_leaf *l = &p->leaf[k];
    scl_cl_argument_buffer(a, l->buffer);
    scl_cl_argument_long(a, l->at);
    if (scl_leaf_takes_i(l)) scl_cl_argument_long(a, l->step_i);
    if (scl_leaf_takes_j(l, p->n > 1)) scl_cl_argument_long(a, l->step_j);
    if (scl_leaf_takes_terms(l)) {
      scl_cl_argument_long(a, l->inner);
      scl_cl_argument_int(a, l->length);
    }
  }
  scl_cl_argument_numbers(a, p);
  for (int k = 0; k < p->rectangles; k++) {
    scl_cl_argument_long(a, p->rectangle[k].i0);
    scl_cl_argument_long(a, p->rectangle[k].i1);
    scl_cl_argument_long(a, p->rectangle[k].j0);
    scl_cl_argument_long(a, p->rectangle[k].j1);
  }
  for (int k = 0; k < p->outputs; k++) {
    const scl_output *o = &p->output[k];
    if (o->reduces) continue;
    scl_cl_argument_buffer(a, o->dst.buffer);
    scl_cl_argument_long(a, o->dst.offset);
    if (p->n > 1) scl_cl_argument_long(a, o->dst.ld);
  }
}

void scl_cl_expr_declare(scl_cl_op *op, const scl_plan *p) {
  for (int k = 0; k < p->leaves; k++) scl_cl_op_reads(op, p->leaf[k].buffer);
  for (int k = 0; k < p->outputs; k++) scl_cl_op_writes(op, p->output[k].dst.buffer);
}
