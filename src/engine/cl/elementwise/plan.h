/* Between the files of lazy arithmetic on a device. */
#ifndef SCL_ENGINE_CL_ELEMENTWISE_PLAN_H
#define SCL_ENGINE_CL_ELEMENTWISE_PLAN_H

#include "engine/cl/runtime/cl.h"
#include "engine/plan/plan.h"

/* The current arguments of a kernel: unchanged ones need not be set again. */
enum { SCL_CL_KEPT_ARGUMENTS = 48 };
typedef struct {
  uint64_t
      freed; /* the context's, when they were set: a new buffer may have an old one's address */
  uint32_t size[SCL_CL_KEPT_ARGUMENTS]; /* 0: not set */
  uint64_t value[SCL_CL_KEPT_ARGUMENTS];
} scl_cl_kept_arguments;

typedef struct {
  scl_cl_launchable main; /* `expr` */
  scl_cl_launchable last; /* `expr_final`, where something is reduced */
  scl_cl_kept_arguments *kept_main, *kept_last;
} scl_cl_expr_kernels;

/* The kernels of a plan, compiled at the first use of its structure; valid until the next call. */
scl_status scl_cl_expr_find(scl_cl_context *cl, const scl_plan *plan,
                            const scl_cl_expr_kernels **out);

/* A plan that is a pass (engine/plan/pass.h). */
scl_status scl_cl_expr_pass(scl_context *ctx, const scl_plan *plan);

/* ---- arguments of a generated kernel, in their order (engine/cl/elementwise/arguments.c) ----- */
typedef struct {
  cl_kernel kernel;
  scl_cl_kept_arguments *kept;
  cl_uint next;
  cl_int code; /* of the first that failed */
  size_t local_bytes;
} scl_cl_arguments;

scl_cl_arguments scl_cl_arguments_of(const scl_cl_context *cl, const scl_cl_launchable *k,
                                     scl_cl_kept_arguments *kept);
void scl_cl_argument_long(scl_cl_arguments *a, size_t value);
void scl_cl_argument_int(scl_cl_arguments *a, size_t value);
void scl_cl_argument_buffer(scl_cl_arguments *a, const scl_buffer *buffer);
void scl_cl_argument_local(scl_cl_arguments *a, size_t bytes);
void scl_cl_argument_numbers(scl_cl_arguments *a, const scl_plan *plan);
/* Those of scl_put_inputs() (engine/plan/source_element.c). */
void scl_cl_argument_inputs(scl_cl_arguments *a, const scl_plan *plan);
/* Declares leaves and results. */
void scl_cl_expr_declare(scl_cl_op *op, const scl_plan *plan);

/* Work-items along dimension 1 of a group with tiles. */
int scl_cl_expr_tile_rows(const scl_cl_context *cl);

#endif
