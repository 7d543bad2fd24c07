/* Launches: the functions of launch.h, which pass their arguments by the signature of the kernel.
 */
#include "engine/cl/runtime/launch.h"

#include "base/threads.h"
#include "engine/cl/runtime/private.h"
#include "engine/cl/runtime/signature.h"

/* ---- arguments ------------------------------------------------------------------------------- */
static cl_int set_memory(cl_kernel kernel, cl_uint i, const scl_buffer *buffer) {
  cl_mem memory = buffer != NULL ? ((const scl_cl_buffer *)buffer)->memory : NULL;
  return scl_cl.clSetKernelArg(kernel, i, sizeof memory, &memory);
}

/* Sets one row's argument, from parameter *i on; sums up local memory. */
static cl_int set_row(cl_kernel kernel, const scl_cl_parameter *row, const void *value, cl_uint *i,
                      size_t *local_bytes) {
  cl_int code;
  switch (row->shape) {
  case SCL_CL_SHAPE_BLOCK:
  case SCL_CL_SHAPE_AT: {
    const scl_block *block = value;
    const cl_long offset = (cl_long)block->offset;
    const cl_int ld = (cl_int)block->ld;
    code = set_memory(kernel, (*i)++, block->buffer);
    if (code == CL_SUCCESS) code = scl_cl.clSetKernelArg(kernel, (*i)++, sizeof offset, &offset);
    if (code != CL_SUCCESS || row->shape == SCL_CL_SHAPE_AT) return code;
    return scl_cl.clSetKernelArg(kernel, (*i)++, sizeof ld, &ld);
  }
  case SCL_CL_SHAPE_BUFFER:
    return set_memory(kernel, (*i)++, *(const scl_buffer *const *)value);
  case SCL_CL_SHAPE_MEMORY:
    return scl_cl.clSetKernelArg(kernel, (*i)++, sizeof(cl_mem), value);
  case SCL_CL_SHAPE_LOCAL: {
    const size_t bytes = *(const size_t *)value;
    *local_bytes += bytes;
    return scl_cl.clSetKernelArg(kernel, (*i)++, bytes, NULL);
  }
  case SCL_CL_SHAPE_CONSTANTS:
    return scl_cl.clSetKernelArg(kernel, (*i)++, row->bytes, *(const void *const *)value);
  default:
    return scl_cl.clSetKernelArg(kernel, (*i)++, row->bytes, value);
  }
}

/* The buffer of a row that has one, or NULL. */
static const scl_buffer *buffer_of(const scl_cl_parameter *row, const void *value) {
  if (row->shape == SCL_CL_SHAPE_BLOCK || row->shape == SCL_CL_SHAPE_AT) {
    return ((const scl_block *)value)->buffer;
  }
  return row->shape == SCL_CL_SHAPE_BUFFER ? *(const scl_buffer *const *)value : NULL;
}

static scl_status fail_declaration(scl_cl_kernel which, const scl_cl_parameter *row) {
  return scl_fail(SCL_E_OPENCL, "%s %s a buffer (%s) that its operation does not declare",
                  scl_cl_kernel_name(which), row->access == SCL_CL_ACCESS_IN ? "reads" : "writes",
                  row->name);
}

/* Sets all arguments of a launch. Its buffers must be declared, or temporaries of this queue:
 * otherwise nothing would order the commands that use them. */
static scl_status set_arguments(const scl_cl_op *op, scl_cl_kernel which, cl_kernel kernel,
                                const void *const *value, size_t *local_bytes) {
  const scl_cl_parameter *row = scl_cl_signatures[which].parameters;
  cl_uint next = 0;
  for (int r = 0; r < scl_cl_signatures[which].count; r++, row++) {
    const scl_buffer *buffer = buffer_of(row, value[r]);
    if (buffer != NULL && !scl_cl_op_allows(op, buffer, row->access != SCL_CL_ACCESS_IN)) {
      return fail_declaration(which, row);
    }
    cl_int code = set_row(kernel, row, value[r], &next, local_bytes);
    if (code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, code, scl_cl_kernel_name(which));
  }
  return SCL_OK;
}

static scl_status declare_and_order(scl_cl_op *op, scl_cl_kernel which, const void *const *value) {
  for (int r = 0; r < scl_cl_signatures[which].count; r++) {
    const scl_cl_parameter *row = &scl_cl_signatures[which].parameters[r];
    const scl_buffer *buffer = buffer_of(row, value[r]);
    if (row->access == SCL_CL_ACCESS_IN) {
      scl_cl_op_reads(op, buffer);
    } else {
      scl_cl_op_writes(op, buffer);
    }
  }
  return scl_cl_op_order(op, -1);
}

/* ---- launches -------------------------------------------------------------------------------- */
/* Local memory that a driver adds for itself and counts to the kernel, beyond its documented
 * amount. */
enum { DRIVER_LOCAL_BYTES = 256 };

/* What a kernel may declare. NVIDIA's driver reports 48 KiB, and gives a kernel that declares more
 * what the processor has: of compute capability 9.0 227 KiB. */
static uint64_t most_declared(const scl_device_info *info) {
  return info->capability == 90 ? 227 << 10 : info->local_memory;
}

/* Some drivers end the process where others give an error, so the limits are checked here. */
static scl_status check_limits(const scl_cl_op *op, const scl_cl_launchable *k,
                               const scl_cl_range *range, size_t local_bytes) {
  const scl_cl_context *cl = op->cl;
  size_t items = 1;
  for (int d = 0; range->local[0] != 0 && d < range->dims; d++) items *= range->local[d];
  if (items > k->items) {
    return scl_fail(SCL_E_OPENCL,
                    "%s: a work-group of %zu work-items is larger than the device allows, %zu",
                    k->name, items, k->items);
  }
  const uint64_t bytes = k->local + local_bytes;
  const uint64_t most = local_bytes > 0 ? cl->info.local_memory : most_declared(&cl->info);
  if (bytes > most + DRIVER_LOCAL_BYTES) {
    return scl_fail(SCL_E_OPENCL,
                    "%s: %.0f bytes of local memory are needed, but the device has %.0f", k->name,
                    (double)bytes, (double)most);
  }
  return SCL_OK;
}

/* POCL compiles the larger part of a kernel when it is first enqueued. A GPU's driver may wait here
 * for other reasons. */
enum { ENQUEUE_US = 5000 };

static void count_enqueue(const scl_cl_context *cl, uint64_t start) {
  if (cl->info.type == SCL_DEVICE_CPU && scl_clock_us() - start > ENQUEUE_US) {
    scl_cl_count_build(cl, start);
  }
}

scl_status scl_cl_enqueue(scl_cl_op *op, const scl_cl_launchable *k, const scl_cl_range *range,
                          size_t local_bytes) {
  SCL_TRY(check_limits(op, k, range, local_bytes));
  SCL_TRY(scl_cl_require_room(op->cl)); /* POCL compiles here too */
  cl_event event = NULL, *wanted = scl_cl_op_event(op, &event);
  const uint64_t start = scl_clock_us();
  SCL_CL_TRY(&op->cl->base,
             scl_cl.clEnqueueNDRangeKernel(op->cl->queue[op->queue], k->kernel,
                                           (cl_uint)range->dims, NULL, range->global,
                                           range->local[0] != 0 ? range->local : NULL, op->waits,
                                           op->waits > 0 ? op->wait : NULL, wanted),
             k->name);
  count_enqueue(op->cl, start);
  scl_cl_op_took(op, event);
  return SCL_OK;
}

/* `value` points to the arguments, one for each row of the signature. */
static scl_status launch_kernel(scl_cl_op *op, scl_cl_kernel which, const scl_cl_range *range,
                                const void *const *value) {
  for (int d = 0; d < range->dims; d++) {
    if (range->global[d] == 0) return SCL_OK;
  }
  SCL_TRY(scl_poll());
  cl_kernel kernel;
  SCL_TRY(scl_cl_op_needs(op, scl_cl_kernel_get(op->cl, which, &kernel)));
  if (op->missing) return SCL_OK;
  if (!op->ordered) SCL_TRY(declare_and_order(op, which, value));
  size_t local_bytes = 0;
  SCL_TRY(set_arguments(op, which, kernel, value, &local_bytes));
  op->cl->launches[which]++;
  const scl_cl_launchable k = {kernel, scl_cl_kernel_name(which), op->cl->kernel_items[which],
                               op->cl->kernel_local[which]};
  return scl_cl_enqueue(op, &k, range, local_bytes);
}

#define VALUES(list) SCL_CL_LIST(VALUES_A list)
#define VALUES_A(kind, name) &name, VALUES_B
#define VALUES_B(kind, name) &name, VALUES_A
#define VALUES_A_END
#define VALUES_B_END

_Static_assert(sizeof(int) == sizeof(cl_int) && sizeof(long long) == sizeof(cl_long),
               "the numbers of a launch are those of its kernel");

#define SCL_CL_SIGNATURE(signature, parameters)                                                    \
  scl_status scl_launch_##signature(scl_cl_op *op, const scl_kernel_##signature *kernel,           \
                                    scl_cl_range range SCL_CL_PARAMETERS(parameters)) {            \
    const void *const arguments[] = {VALUES(parameters)};                                          \
    return launch_kernel(op, kernel->id, &range, arguments);                                       \
  }
#define SCL_CL_KERNEL_OF(program, name, signature)                                                 \
  const scl_kernel_##signature scl_k_##name = {SCL_K_##name};
#define SCL_CL_KERNEL(program, name, parameters)                                                   \
  scl_status scl_launch_##name(scl_cl_op *op, scl_cl_range range SCL_CL_PARAMETERS(parameters)) {  \
    const void *const arguments[] = {VALUES(parameters)};                                          \
    return launch_kernel(op, SCL_K_##name, &range, arguments);                                     \
  }
#include "engine/cl/runtime/kernels.def"
