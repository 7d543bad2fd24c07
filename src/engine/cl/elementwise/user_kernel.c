/* Kernels that a user writes. */
#include "engine/cl/runtime/cl.h"
#include "base/user_kernel.h"

#include <stdlib.h>
#include <string.h>

struct scl_kernel {
  scl_context *ctx;
  cl_program program;
  scl_cl_launchable launch;
  cl_uint arguments;
  char *name;
};

void scl_kernel_release(scl_kernel *kernel) {
  if (kernel == NULL) return;
  if (kernel->launch.kernel != NULL) scl_cl.clReleaseKernel(kernel->launch.kernel);
  if (kernel->program != NULL) scl_cl.clReleaseProgram(kernel->program);
  free(kernel->name);
  scl_context *ctx = kernel->ctx;
  free(kernel);
  scl_context_release(ctx);
}

scl_context *scl_kernel_context(const scl_kernel *kernel) {
  return kernel->ctx;
}

int scl_kernel_arguments(const scl_kernel *kernel) {
  return (int)kernel->arguments;
}

static scl_status build_kernel(scl_kernel *kernel, const char *source) {
  scl_cl_context *cl = (scl_cl_context *)kernel->ctx;
  SCL_TRY(scl_cl_program_build(cl, 1, &source, kernel->name, &kernel->program));
  scl_status status = scl_cl_kernel_make(cl, kernel->program, kernel->name, &kernel->launch);
  if (status != SCL_OK && scl_fault_last()->cl_code == CL_INVALID_KERNEL_NAME) {
    return scl_fail_argument("name", "'source' has no kernel '%s'", kernel->name);
  }
  SCL_TRY(status);
  SCL_CL_TRY(cl,
             scl_cl.clGetKernelInfo(kernel->launch.kernel, CL_KERNEL_NUM_ARGS,
                                    sizeof kernel->arguments, &kernel->arguments, NULL),
             "clGetKernelInfo");
  return SCL_OK;
}

scl_status scl_kernel_create(scl_context *ctx, const char *source, const char *name,
                             scl_kernel **out) {
  SCL_TRY(scl_context_check(ctx));
  if (ctx->engine != &scl_cl_engine) {
    return scl_fail_argument("device", "an OpenCL C kernel needs a device");
  }
  scl_kernel *kernel = calloc(1, sizeof *kernel);
  if (kernel == NULL) return scl_fail_memory(sizeof *kernel, 0, "a kernel");
  kernel->ctx = scl_context_retain(ctx);
  const size_t bytes = strlen(name) + 1;
  kernel->name = malloc(bytes);
  scl_status status = kernel->name == NULL ? scl_fail_memory(bytes, 0, "a kernel") : SCL_OK;
  if (status == SCL_OK) {
    memcpy(kernel->name, name, bytes);
    status = build_kernel(kernel, source);
  }
  if (status != SCL_OK) {
    scl_kernel_release(kernel);
    return status;
  }
  *out = kernel;
  return SCL_OK;
}

/* ---- running -------------------------------------------------------------------------------- */

/* The type of a parameter as the source writes it; "" where the driver does not say. */
static const char *parameter_type(const scl_kernel *kernel, cl_uint k, char *to, size_t room) {
  to[0] = '\0';
  if (scl_cl.clGetKernelArgInfo(kernel->launch.kernel, k, CL_KERNEL_ARG_TYPE_NAME, room, to,
                                NULL) != CL_SUCCESS) {
    to[0] = '\0';
  }
  to[room - 1] = '\0';
  return to;
}

static scl_status check_type(const scl_kernel *kernel, cl_uint k, const scl_kernel_argument *arg) {
  static const char *const types[] = {"double*", "double", "int"};
  static const char *const given[] = {"a clMatrix", "a double", "an integer"};
  char type[64];
  if (parameter_type(kernel, k, type, sizeof type)[0] == '\0') return SCL_OK;
  if (strcmp(type, types[arg->kind]) == 0) return SCL_OK;
  return scl_fail_argument("args", "parameter %u of '%s' has type %s, which does not accept %s",
                           k + 1, kernel->name, type, given[arg->kind]);
}

static cl_int set_argument(const scl_kernel *kernel, cl_uint k, const scl_kernel_argument *arg) {
  cl_mem memory = NULL;
  const cl_int integer = arg->integer;
  switch (arg->kind) {
  case SCL_ARGUMENT_MATRIX:
    if (arg->matrix->buffer != NULL) memory = ((scl_cl_buffer *)arg->matrix->buffer)->memory;
    return scl_cl.clSetKernelArg(kernel->launch.kernel, k, sizeof memory, &memory);
  case SCL_ARGUMENT_DOUBLE:
    return scl_cl.clSetKernelArg(kernel->launch.kernel, k, sizeof arg->number, &arg->number);
  default:
    return scl_cl.clSetKernelArg(kernel->launch.kernel, k, sizeof integer, &integer);
  }
}

static scl_status set_arguments(const scl_kernel *kernel, int count,
                                const scl_kernel_argument *args, scl_cl_op *op) {
  for (int k = 0; k < count; k++) {
    SCL_TRY(check_type(kernel, (cl_uint)k, &args[k]));
    if (args[k].kind == SCL_ARGUMENT_MATRIX) {
      const scl_mat *a = args[k].matrix;
      if (a->ctx != kernel->ctx || a->offset != 0) {
        return scl_fail_argument("args", "argument %d is not on the device of the kernel", k + 1);
      }
      if (args[k].writes) {
        scl_cl_op_writes(op, a->buffer);
      } else {
        scl_cl_op_reads(op, a->buffer);
      }
    }
    cl_int code = set_argument(kernel, (cl_uint)k, &args[k]);
    if (code == CL_INVALID_ARG_SIZE || code == CL_INVALID_ARG_VALUE ||
        code == CL_INVALID_MEM_OBJECT) {
      return scl_fail_argument("args", "argument %d does not match the type of its parameter",
                               k + 1);
    }
    if (code != CL_SUCCESS) return scl_cl_fail(kernel->ctx, code, "clSetKernelArg");
  }
  return SCL_OK;
}

static scl_status check_range(const scl_kernel *kernel, int dims, const size_t *global,
                              const size_t *local) {
  size_t items = 1;
  if (dims < 1 || dims > 3)
    return scl_fail_argument("global", "'global' must have 1 to 3 dimensions");
  for (int d = 0; d < dims; d++) {
    if (global[d] == 0) return scl_fail_argument("global", "'global' must be positive");
    if (local == NULL) continue;
    if (local[d] == 0 || global[d] % local[d] != 0) {
      return scl_fail_argument("local", "'local' must divide 'global'");
    }
    items = local[d] > kernel->launch.items / items ? kernel->launch.items + 1 : items * local[d];
  }
  if (items > kernel->launch.items) {
    return scl_fail_argument("local", "a work-group of '%s' can have at most %zu work-items",
                             kernel->name, kernel->launch.items);
  }
  return SCL_OK;
}

static scl_cl_range range_of(int dims, const size_t *global, const size_t *local) {
  scl_cl_range range = {.dims = dims};
  for (int d = 0; d < dims; d++) {
    range.global[d] = global[d];
    if (local != NULL) range.local[d] = local[d];
  }
  return range;
}

scl_status scl_kernel_run(scl_kernel *kernel, int count, const scl_kernel_argument *args, int dims,
                          const size_t *global, const size_t *local) {
  scl_cl_op op;
  scl_status status;
  SCL_TRY(scl_context_check(kernel->ctx));
  if ((cl_uint)count != kernel->arguments) {
    return scl_fail_argument("args", "'%s' takes %u arguments, not %d", kernel->name,
                             kernel->arguments, count);
  }
  SCL_TRY(check_range(kernel, dims, global, local));
  SCL_TRY(scl_poll());
  scl_cl_op_begin(&op, kernel->ctx);
  op.timing = SCL_CL_TIME_EACH;
  SCL_GO(set_arguments(kernel, count, args, &op));
  SCL_GO(scl_cl_op_order(&op, -1));
  const scl_cl_range range = range_of(dims, global, local);
  SCL_GO(scl_cl_enqueue(&op, &kernel->launch, &range, 0));
done:
  return scl_cl_op_end(&op, status);
}
