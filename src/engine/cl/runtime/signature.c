/* Signatures of kernels as tables, and their comparison with the built kernels. */
#include "engine/cl/runtime/signature.h"

#include <string.h>

#include "engine/cl/runtime/launch.h"

#define ROWS(list) SCL_CL_LIST(ROWS_A list)
#define ROWS_A(kind, name) {KIND_##kind, #name}, ROWS_B
#define ROWS_B(kind, name) {KIND_##kind, #name}, ROWS_A
#define ROWS_A_END
#define ROWS_B_END
#define KIND_int SCL_CL_SHAPE_NUMBER, SCL_CL_ACCESS_NONE, "int", sizeof(cl_int)
#define KIND_long SCL_CL_SHAPE_NUMBER, SCL_CL_ACCESS_NONE, "long", sizeof(cl_long)
#define KIND_real SCL_CL_SHAPE_NUMBER, SCL_CL_ACCESS_NONE, "double", sizeof(cl_double)
#define KIND_constants(type) SCL_CL_SHAPE_CONSTANTS, SCL_CL_ACCESS_NONE, #type, sizeof(type)
#define KIND_local SCL_CL_SHAPE_LOCAL, SCL_CL_ACCESS_NONE, "double*", 0
#define KIND_in SCL_CL_SHAPE_BLOCK, SCL_CL_ACCESS_IN, "double*", 0
#define KIND_in_at SCL_CL_SHAPE_AT, SCL_CL_ACCESS_IN, "double*", 0
#define KIND_in_buffer SCL_CL_SHAPE_BUFFER, SCL_CL_ACCESS_IN, NULL, 0
#define KIND_in_memory SCL_CL_SHAPE_MEMORY, SCL_CL_ACCESS_IN, NULL, 0
#define KIND_out SCL_CL_SHAPE_BLOCK, SCL_CL_ACCESS_OUT, "double*", 0
#define KIND_out_at SCL_CL_SHAPE_AT, SCL_CL_ACCESS_OUT, "double*", 0
#define KIND_out_buffer SCL_CL_SHAPE_BUFFER, SCL_CL_ACCESS_OUT, NULL, 0
#define KIND_out_memory SCL_CL_SHAPE_MEMORY, SCL_CL_ACCESS_OUT, NULL, 0
#define KIND_inout SCL_CL_SHAPE_BLOCK, SCL_CL_ACCESS_INOUT, "double*", 0
#define KIND_inout_at SCL_CL_SHAPE_AT, SCL_CL_ACCESS_INOUT, "double*", 0
#define KIND_inout_buffer SCL_CL_SHAPE_BUFFER, SCL_CL_ACCESS_INOUT, NULL, 0
#define KIND_inout_memory SCL_CL_SHAPE_MEMORY, SCL_CL_ACCESS_INOUT, NULL, 0

#define SCL_CL_SIGNATURE(signature, parameters)                                                    \
  static const scl_cl_parameter rows_of_##signature[] = {ROWS(parameters)};
#define SCL_CL_KERNEL(program, name, parameters) SCL_CL_SIGNATURE(name, parameters)
#include "engine/cl/runtime/kernels.def"

const scl_cl_signature scl_cl_signatures[SCL_CL_KERNELS] = {
#define SCL_CL_KERNEL_OF(program, name, signature)                                                 \
  {rows_of_##signature, sizeof rows_of_##signature / sizeof *rows_of_##signature},
#define SCL_CL_KERNEL(program, name, parameters) SCL_CL_KERNEL_OF(program, name, name)
#include "engine/cl/runtime/kernels.def"
};

/* ---- what the driver has built --------------------------------------------------------------- */
/* The expected properties of one parameter of the built kernel. */
typedef struct {
  const scl_cl_parameter *row;
  cl_kernel_arg_address_qualifier address;
  const char *type; /* NULL: any */
} expected;

static scl_status fail_parameter(const char *name, cl_uint i, const scl_cl_parameter *row,
                                 const char *is, const char *wanted) {
  return scl_fail(SCL_E_BUILD, "kernel '%s': parameter %u (%s) is %s, its signature says %s", name,
                  i + 1, row->name, is, wanted);
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

/* Drivers may have no information about a kernel's parameters: *known is then false. */
static scl_status check_parameter(const char *name, cl_kernel kernel, cl_uint i, const expected *e,
                                  bool *known) {
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
    return fail_parameter(name, i, e->row, address_name(address), address_name(e->address));
  }
  if (e->type != NULL && type[0] != '\0' && !is_type(type, e->type)) {
    return fail_parameter(name, i, e->row, type, e->type);
  }
  bool is_const = (qualifier & CL_KERNEL_ARG_TYPE_CONST) != 0,
       in = e->row->access == SCL_CL_ACCESS_IN;
  if (address == CL_KERNEL_ARG_ADDRESS_GLOBAL && is_const != in) {
    return fail_parameter(name, i, e->row, is_const ? "const" : "not const",
                          in ? "in" : "out or inout");
  }
  return SCL_OK;
}

/* The parameters of a kernel that a row stands for; their number. */
static cl_uint expect_row(const scl_cl_parameter *row, expected e[3]) {
  const bool number = row->shape == SCL_CL_SHAPE_NUMBER || row->shape == SCL_CL_SHAPE_CONSTANTS;
  e[0] = (expected){row, CL_KERNEL_ARG_ADDRESS_GLOBAL, row->type};
  e[1] = (expected){row, CL_KERNEL_ARG_ADDRESS_PRIVATE, "long"}; /* offset */
  e[2] = (expected){row, CL_KERNEL_ARG_ADDRESS_PRIVATE, "int"};  /* leading dimension */
  if (number) e[0].address = CL_KERNEL_ARG_ADDRESS_PRIVATE;
  if (row->shape == SCL_CL_SHAPE_LOCAL) e[0].address = CL_KERNEL_ARG_ADDRESS_LOCAL;
  return row->shape == SCL_CL_SHAPE_BLOCK ? 3 : row->shape == SCL_CL_SHAPE_AT ? 2 : 1;
}

scl_status scl_cl_signature_check(scl_cl_context *cl, scl_cl_kernel which, cl_kernel kernel,
                                  const char *name) {
  cl_uint count = 0, built = 0;
  expected e[3];
  for (int r = 0; r < scl_cl_signatures[which].count; r++) {
    count += expect_row(&scl_cl_signatures[which].parameters[r], e);
  }
  SCL_CL_TRY(cl, scl_cl.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof built, &built, NULL),
             "clGetKernelInfo");
  if (built != count) {
    return scl_fail(SCL_E_BUILD, "kernel '%s' has %u parameters, its signature says %u", name,
                    built, count);
  }
  bool known = true;
  cl_uint i = 0;
  for (int r = 0; r < scl_cl_signatures[which].count; r++) {
    cl_uint parts = expect_row(&scl_cl_signatures[which].parameters[r], e);
    for (cl_uint k = 0; k < parts && known; k++, i++) {
      SCL_TRY(check_parameter(name, kernel, i, &e[k], &known));
    }
  }
  return SCL_OK;
}
