/* Launches: the functions of launch.h, which hand their arguments over by the signature of the
 * kernel, and the comparison of signatures with what the driver has built. */
#include "engine/cl/runtime/launch.h"

#include <string.h>

#include "base/threads.h"
#include "engine/cl/runtime/private.h"

/* ---- signatures ------------------------------------------------------------------------------ */
typedef enum {
  SHAPE_NUMBER,
  SHAPE_CONSTANTS, /* a struct, by value to the kernel, by pointer to the launch */
  SHAPE_LOCAL,
  SHAPE_BLOCK,  /* memory, offset, leading dimension */
  SHAPE_AT,     /* memory, offset */
  SHAPE_BUFFER, /* memory of a buffer */
  SHAPE_MEMORY  /* other memory */
} shape;

typedef enum { ACCESS_NONE, ACCESS_IN, ACCESS_OUT, ACCESS_INOUT } access;

typedef struct {
  shape shape;
  access access;
  const char
      *type;    /* of the kernel's parameter, the first if there are several; NULL: any pointer */
  size_t bytes; /* of a number or a struct */
  const char *name;
} parameter;

#define ROWS(list) SCL_CL_LIST(ROWS_A list)
#define ROWS_A(kind, name) {KIND_##kind, #name}, ROWS_B
#define ROWS_B(kind, name) {KIND_##kind, #name}, ROWS_A
#define ROWS_A_END
#define ROWS_B_END
#define KIND_int SHAPE_NUMBER, ACCESS_NONE, "int", sizeof(cl_int)
#define KIND_long SHAPE_NUMBER, ACCESS_NONE, "long", sizeof(cl_long)
#define KIND_real SHAPE_NUMBER, ACCESS_NONE, "double", sizeof(cl_double)
#define KIND_constants(type) SHAPE_CONSTANTS, ACCESS_NONE, #type, sizeof(type)
#define KIND_local SHAPE_LOCAL, ACCESS_NONE, "double*", 0
#define KIND_in SHAPE_BLOCK, ACCESS_IN, "double*", 0
#define KIND_in_at SHAPE_AT, ACCESS_IN, "double*", 0
#define KIND_in_buffer SHAPE_BUFFER, ACCESS_IN, NULL, 0
#define KIND_in_memory SHAPE_MEMORY, ACCESS_IN, NULL, 0
#define KIND_out SHAPE_BLOCK, ACCESS_OUT, "double*", 0
#define KIND_out_at SHAPE_AT, ACCESS_OUT, "double*", 0
#define KIND_out_buffer SHAPE_BUFFER, ACCESS_OUT, NULL, 0
#define KIND_out_memory SHAPE_MEMORY, ACCESS_OUT, NULL, 0
#define KIND_inout SHAPE_BLOCK, ACCESS_INOUT, "double*", 0
#define KIND_inout_at SHAPE_AT, ACCESS_INOUT, "double*", 0
#define KIND_inout_buffer SHAPE_BUFFER, ACCESS_INOUT, NULL, 0
#define KIND_inout_memory SHAPE_MEMORY, ACCESS_INOUT, NULL, 0

#define SCL_CL_SIGNATURE(signature, parameters)                                                    \
  static const parameter rows_of_##signature[] = {ROWS(parameters)};
#define SCL_CL_KERNEL(program, name, parameters) SCL_CL_SIGNATURE(name, parameters)
#include "engine/cl/runtime/kernels.def"

static const struct {
  const parameter *parameters;
  int count;
} signatures[] = {
#define SCL_CL_KERNEL_OF(program, name, signature)                                                 \
  {rows_of_##signature, sizeof rows_of_##signature / sizeof *rows_of_##signature},
#define SCL_CL_KERNEL(program, name, parameters) SCL_CL_KERNEL_OF(program, name, name)
#include "engine/cl/runtime/kernels.def"
};

/* ---- what the driver has built --------------------------------------------------------------- */
/* What one parameter of the built kernel must be. */
typedef struct {
  const parameter *row;
  cl_kernel_arg_address_qualifier address;
  const char *type; /* NULL: any */
} expected;

static scl_status fail_parameter(scl_cl_kernel which, cl_uint i, const parameter *row,
                                 const char *is, const char *wanted) {
  return scl_fail(SCL_E_BUILD, "kernel '%s': parameter %u (%s) is %s, its signature says %s",
                  scl_cl_kernel_name(which), i + 1, row->name, is, wanted);
}

static const char *address_name(cl_kernel_arg_address_qualifier address) {
  return address == CL_KERNEL_ARG_ADDRESS_GLOBAL  ? "global"
         : address == CL_KERNEL_ARG_ADDRESS_LOCAL ? "local"
                                                  : "a number";
}

/* Kernels may write a type by its name here or in port.h. */
static bool is_type(const char *type, const char *wanted) {
  static const char *const same[][2] = {
      {"real", "double"}, {"real*", "double*"}, {"scl_long", "long"}};
  if (strcmp(type, wanted) == 0) return true;
  for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
    if (strcmp(type, same[k][0]) == 0 && strcmp(wanted, same[k][1]) == 0) return true;
  }
  return false;
}

/* Drivers may know nothing of a kernel's parameters: *known is then false. */
static scl_status check_parameter(scl_cl_kernel which, cl_kernel kernel, cl_uint i,
                                  const expected *e, bool *known) {
  cl_kernel_arg_address_qualifier address = CL_KERNEL_ARG_ADDRESS_PRIVATE;
  cl_kernel_arg_type_qualifier qualifier = CL_KERNEL_ARG_TYPE_NONE;
  char type[64] = "";
  *known = scl_cl.clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof address,
                                     &address, NULL) == CL_SUCCESS &&
           scl_cl.clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof qualifier,
                                     &qualifier, NULL) == CL_SUCCESS &&
           scl_cl.clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof type - 1, type,
                                     NULL) == CL_SUCCESS;
  if (!*known) return SCL_OK;
  if (address != e->address) {
    return fail_parameter(which, i, e->row, address_name(address), address_name(e->address));
  }
  if (e->type != NULL && type[0] != '\0' && !is_type(type, e->type)) {
    return fail_parameter(which, i, e->row, type, e->type);
  }
  bool is_const = (qualifier & CL_KERNEL_ARG_TYPE_CONST) != 0, in = e->row->access == ACCESS_IN;
  if (address == CL_KERNEL_ARG_ADDRESS_GLOBAL && is_const != in) {
    return fail_parameter(which, i, e->row, is_const ? "const" : "not const",
                          in ? "in" : "out or inout");
  }
  return SCL_OK;
}

/* The parameters of a kernel that a row stands for; their number. */
static cl_uint expect_row(const parameter *row, expected e[3]) {
  const bool number = row->shape == SHAPE_NUMBER || row->shape == SHAPE_CONSTANTS;
  e[0] = (expected){row, CL_KERNEL_ARG_ADDRESS_GLOBAL, row->type};
  e[1] = (expected){row, CL_KERNEL_ARG_ADDRESS_PRIVATE, "long"}; /* offset */
  e[2] = (expected){row, CL_KERNEL_ARG_ADDRESS_PRIVATE, "int"};  /* leading dimension */
  if (number) e[0].address = CL_KERNEL_ARG_ADDRESS_PRIVATE;
  if (row->shape == SHAPE_LOCAL) e[0].address = CL_KERNEL_ARG_ADDRESS_LOCAL;
  return row->shape == SHAPE_BLOCK ? 3 : row->shape == SHAPE_AT ? 2 : 1;
}

scl_status scl_cl_signature_check(scl_cl_context *cl, scl_cl_kernel which, cl_kernel kernel) {
  cl_uint count = 0, built = 0;
  expected e[3];
  for (int r = 0; r < signatures[which].count; r++) {
    count += expect_row(&signatures[which].parameters[r], e);
  }
  SCL_CL_TRY(cl, scl_cl.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof built, &built, NULL),
             "clGetKernelInfo");
  if (built != count) {
    return scl_fail(SCL_E_BUILD, "kernel '%s' has %u parameters, its signature says %u",
                    scl_cl_kernel_name(which), built, count);
  }
  bool known = true;
  cl_uint i = 0;
  for (int r = 0; r < signatures[which].count; r++) {
    cl_uint parts = expect_row(&signatures[which].parameters[r], e);
    for (cl_uint k = 0; k < parts && known; k++, i++) {
      SCL_TRY(check_parameter(which, kernel, i, &e[k], &known));
    }
  }
  return SCL_OK;
}

/* ---- arguments ------------------------------------------------------------------------------- */
static cl_int set_memory(cl_kernel kernel, cl_uint i, const scl_buffer *buffer) {
  cl_mem memory = buffer != NULL ? ((const scl_cl_buffer *)buffer)->memory : NULL;
  return scl_cl.clSetKernelArg(kernel, i, sizeof memory, &memory);
}

/* Sets one row's argument, from parameter *i on; sums up local memory. */
static cl_int set_row(cl_kernel kernel, const parameter *row, const void *value, cl_uint *i,
                      size_t *local_bytes) {
  cl_int code;
  switch (row->shape) {
  case SHAPE_BLOCK:
  case SHAPE_AT: {
    const scl_block *block = value;
    const cl_long offset = (cl_long)block->offset;
    const cl_int ld = (cl_int)block->ld;
    code = set_memory(kernel, (*i)++, block->buffer);
    if (code == CL_SUCCESS) code = scl_cl.clSetKernelArg(kernel, (*i)++, sizeof offset, &offset);
    if (code != CL_SUCCESS || row->shape == SHAPE_AT) return code;
    return scl_cl.clSetKernelArg(kernel, (*i)++, sizeof ld, &ld);
  }
  case SHAPE_BUFFER:
    return set_memory(kernel, (*i)++, *(const scl_buffer *const *)value);
  case SHAPE_MEMORY:
    return scl_cl.clSetKernelArg(kernel, (*i)++, sizeof(cl_mem), value);
  case SHAPE_LOCAL: {
    const size_t bytes = *(const size_t *)value;
    *local_bytes += bytes;
    return scl_cl.clSetKernelArg(kernel, (*i)++, bytes, NULL);
  }
  case SHAPE_CONSTANTS:
    return scl_cl.clSetKernelArg(kernel, (*i)++, row->bytes, *(const void *const *)value);
  default:
    return scl_cl.clSetKernelArg(kernel, (*i)++, row->bytes, value);
  }
}

/* The buffer of a row that has one, or NULL. */
static const scl_buffer *buffer_of(const parameter *row, const void *value) {
  if (row->shape == SHAPE_BLOCK || row->shape == SHAPE_AT) {
    return ((const scl_block *)value)->buffer;
  }
  return row->shape == SHAPE_BUFFER ? *(const scl_buffer *const *)value : NULL;
}

static scl_status fail_declaration(scl_cl_kernel which, const parameter *row) {
  return scl_fail(SCL_E_OPENCL, "%s %s a buffer (%s) that its operation does not declare",
                  scl_cl_kernel_name(which), row->access == ACCESS_IN ? "reads" : "writes",
                  row->name);
}

/* Sets all arguments of a launch. Its buffers must be declared, or temporaries of this queue: else
 * nothing would order what uses them. */
static scl_status set_arguments(const scl_cl_op *op, scl_cl_kernel which, cl_kernel kernel,
                                const void *const *value, size_t *local_bytes) {
  const parameter *row = signatures[which].parameters;
  cl_uint next = 0;
  for (int r = 0; r < signatures[which].count; r++, row++) {
    const scl_buffer *buffer = buffer_of(row, value[r]);
    if (buffer != NULL && !scl_cl_op_allows(op, buffer, row->access != ACCESS_IN)) {
      return fail_declaration(which, row);
    }
    cl_int code = set_row(kernel, row, value[r], &next, local_bytes);
    if (code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, code, scl_cl_kernel_name(which));
  }
  return SCL_OK;
}

static scl_status declare_and_order(scl_cl_op *op, scl_cl_kernel which, const void *const *value) {
  for (int r = 0; r < signatures[which].count; r++) {
    const parameter *row = &signatures[which].parameters[r];
    const scl_buffer *buffer = buffer_of(row, value[r]);
    if (row->access == ACCESS_IN) {
      scl_cl_op_reads(op, buffer);
    } else {
      scl_cl_op_writes(op, buffer);
    }
  }
  return scl_cl_op_order(op, -1);
}

/* ---- launches -------------------------------------------------------------------------------- */
/* Local memory that a driver adds for itself and counts to the kernel, beyond what it promises. */
enum { DRIVER_LOCAL_BYTES = 256 };

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
  uint64_t bytes = k->local + local_bytes;
  if (bytes > cl->info.local_memory + DRIVER_LOCAL_BYTES) {
    return scl_fail(SCL_E_OPENCL,
                    "%s: %.0f bytes of local memory are needed, but the device has %.0f", k->name,
                    (double)bytes, (double)cl->info.local_memory);
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
  SCL_TRY(scl_cl_kernel_get(op->cl, which, &kernel));
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
