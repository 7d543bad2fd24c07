/* Signatures of kernels (kernels.def) as tables, for runtime/launch.c and runtime/signature.c. */
#ifndef SCL_ENGINE_CL_RUNTIME_SIGNATURE_H
#define SCL_ENGINE_CL_RUNTIME_SIGNATURE_H

#include "engine/cl/runtime/cl.h"

typedef enum {
  SCL_CL_SHAPE_NUMBER,
  SCL_CL_SHAPE_CONSTANTS, /* a struct, by value to the kernel, by pointer to the launch */
  SCL_CL_SHAPE_LOCAL,
  SCL_CL_SHAPE_BLOCK,  /* memory, offset, leading dimension */
  SCL_CL_SHAPE_AT,     /* memory, offset */
  SCL_CL_SHAPE_BUFFER, /* memory of a buffer */
  SCL_CL_SHAPE_MEMORY  /* other memory */
} scl_cl_shape;

typedef enum {
  SCL_CL_ACCESS_NONE,
  SCL_CL_ACCESS_IN,
  SCL_CL_ACCESS_OUT,
  SCL_CL_ACCESS_INOUT
} scl_cl_access;

typedef struct {
  scl_cl_shape shape;
  scl_cl_access access;
  const char
      *type;    /* of the kernel's parameter, the first if there are several; NULL: any pointer */
  size_t bytes; /* of a number or a struct */
  const char *name;
} scl_cl_parameter;

typedef struct {
  const scl_cl_parameter *parameters;
  int count;
} scl_cl_signature;

extern const scl_cl_signature scl_cl_signatures[SCL_CL_KERNELS];

/* SCL_E_BUILD unless the built kernel has the parameters of its signature. */
scl_status scl_cl_signature_check(scl_cl_context *cl, scl_cl_kernel which, cl_kernel kernel,
                                  const char *name);

#endif
