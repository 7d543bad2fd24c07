/* Kernels that a user writes in OpenCL C: for computations that expressions cannot describe.
 *
 * The user's code runs on the device unchecked. Accesses outside its arguments are not detected;
 * everything else (types and number of arguments, sizes of groups, order of commands, errors of the
 * compiler and the driver) is checked as for the kernels of the package. */
#ifndef SCL_BASE_USER_KERNEL_H
#define SCL_BASE_USER_KERNEL_H

#include "base/matrix.h"

typedef struct scl_kernel scl_kernel;

/* Compiles `source` for the device of `ctx` and creates its kernel `name`; both strings are copied.
 * SCL_E_ARGUMENT for the host context or an unknown name, SCL_E_BUILD with the log. */
scl_status scl_kernel_create(scl_context *ctx, const char *source, const char *name,
                             scl_kernel **out);
void scl_kernel_release(scl_kernel *kernel);               /* accepts NULL */
scl_context *scl_kernel_context(const scl_kernel *kernel); /* borrowed */
int scl_kernel_arguments(const scl_kernel *kernel);

typedef enum {
  SCL_ARGUMENT_MATRIX, /* __global double *: its first element */
  SCL_ARGUMENT_DOUBLE, /* double */
  SCL_ARGUMENT_INTEGER /* int */
} scl_argument_kind;

typedef struct {
  scl_argument_kind kind;
  const scl_mat *matrix; /* not pending; column-major with leading dimension scl_mat_ld() */
  bool writes;           /* the kernel writes to it */
  double number;
  int integer;
} scl_kernel_argument;

/* Enqueues the kernel over `dims` (1 to 3) dimensions; `local` may be NULL, else it divides
 * `global`. SCL_E_ARGUMENT ("args", "global", "local") for arguments that do not fit the kernel or
 * the device. */
scl_status scl_kernel_run(scl_kernel *kernel, int count, const scl_kernel_argument *args, int dims,
                          const size_t *global, const size_t *local);

#endif
