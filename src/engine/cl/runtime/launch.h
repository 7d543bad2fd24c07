/* Typed launches: for each row of kernels.def a C function that enqueues the kernel.
 *
 *   scl_launch_NAME(op, range, arguments...)              a kernel with a signature of its own
 *   scl_launch_SIGNATURE(op, kernel, range, arguments...) one of several with the same signature
 *
 * The arguments are those of the signature, in its order, each of a type of its own, so that two
 * of different kind cannot be exchanged (.ci/launch_types.sh shows it):
 *
 *   row of the signature   C type            made by                 parameters of the kernel
 *   (int, n)               int                                       const int n
 *   (long, step)           long long                                 const long step
 *   (real, alpha)          double                                    const real alpha
 *   (constants(T), c)      const T *                                 const T c
 *   (local, sums)          scl_arg_local     scl_local(bytes)        __local real *sums
 *   (in, a)                scl_arg_in        scl_in(block)           __global const real *a,
 *                                                                    const long a_offset,
 *                                                                    const int a_ld
 *   (in_at, a)             scl_arg_in_at     scl_in_at(block)        the first two of these
 *   (in_buffer, a)         scl_arg_in_buffer scl_in_buffer(buffer)   the first of these
 *   (in_memory, a)         scl_arg_in_memory scl_in_memory(memory)   the same, of memory that is no
 *                                                                    buffer of the core
 *
 * and out, out_at, ..., inout, inout_at, ... likewise: what the kernel writes, and what it may read
 * and write. A block without a buffer gives a null pointer, which the kernel must not follow. A
 * struct of constants is defined in a header that C and OpenCL C both include, with
 * SCL_SAME_LAYOUT (kernels/include/port.h).
 *
 * A launch in an operation that is not ordered yet declares its buffers and orders it: that is all
 * that an operation of one launch needs. In an ordered one every buffer must have been declared,
 * for writing if the launch writes it (temporaries need no declaration): else it is refused.
 *
 * An empty range enqueues nothing. Launches poll for interrupts. */
#ifndef SCL_CL_LAUNCH_H
#define SCL_CL_LAUNCH_H

#include "engine/cl/runtime/cl.h"
#include "kernels/include/port.h"
#include "kernels/include/batch.h"
#include "kernels/include/checks.h"
#include "kernels/include/cholesky.h"
#include "kernels/include/compressed.h"
#include "kernels/include/copies.h"
#include "kernels/include/covariance_task.h"
#include "kernels/include/gemm.h"
#include "kernels/include/glm_batch_task.h"
#include "kernels/include/glm_families.h"
#include "kernels/include/glm_task.h"
#include "kernels/include/gram.h"
#include "kernels/include/integers.h"
#include "kernels/include/leapfrog_sum.h"
#include "kernels/include/triangular.h"
#include "kernels/include/vecchia_task.h"

/* ---- arguments ------------------------------------------------------------------------------- */
#define SCL_CL_ARGUMENT_TYPES(direction)                                                           \
  typedef struct {                                                                                 \
    scl_block block;                                                                               \
  } scl_arg_##direction;                                                                           \
  typedef struct {                                                                                 \
    scl_block block;                                                                               \
  } scl_arg_##direction##_at;                                                                      \
  typedef struct {                                                                                 \
    const scl_buffer *buffer;                                                                      \
  } scl_arg_##direction##_buffer;                                                                  \
  typedef struct {                                                                                 \
    cl_mem memory;                                                                                 \
  } scl_arg_##direction##_memory;                                                                  \
  static inline scl_arg_##direction scl_##direction(scl_block block) {                             \
    return (scl_arg_##direction){block};                                                           \
  }                                                                                                \
  static inline scl_arg_##direction##_at scl_##direction##_at(scl_block block) {                   \
    return (scl_arg_##direction##_at){block};                                                      \
  }                                                                                                \
  static inline scl_arg_##direction##_buffer scl_##direction##_buffer(const scl_buffer *buffer) {  \
    return (scl_arg_##direction##_buffer){buffer};                                                 \
  }                                                                                                \
  static inline scl_arg_##direction##_memory scl_##direction##_memory(cl_mem memory) {             \
    return (scl_arg_##direction##_memory){memory};                                                 \
  }
SCL_CL_ARGUMENT_TYPES(in)
SCL_CL_ARGUMENT_TYPES(out)
SCL_CL_ARGUMENT_TYPES(inout)
#undef SCL_CL_ARGUMENT_TYPES

typedef struct {
  size_t bytes;
} scl_arg_local;
static inline scl_arg_local scl_local(size_t bytes) {
  return (scl_arg_local){bytes};
}

typedef int scl_arg_int;
typedef long long scl_arg_long;
typedef double scl_arg_real;
#define scl_arg_constants(type) const type *

/* ---- signatures ------------------------------------------------------------------------------ */
/* The rows of a signature, (kind, name)(kind, name)..., as ", scl_arg_kind name, ...". The two
 * macros call each other along the list, and the last one named meets _END. */
#define SCL_CL_LIST(...) SCL_CL_LIST_(__VA_ARGS__)
#define SCL_CL_LIST_(...) __VA_ARGS__##_END
#define SCL_CL_PARAMETERS(list) SCL_CL_LIST(SCL_CL_PARAMETERS_A list)
#define SCL_CL_PARAMETERS_A(kind, name) , scl_arg_##kind name SCL_CL_PARAMETERS_B
#define SCL_CL_PARAMETERS_B(kind, name) , scl_arg_##kind name SCL_CL_PARAMETERS_A
#define SCL_CL_PARAMETERS_A_END
#define SCL_CL_PARAMETERS_B_END

/* ---- launches -------------------------------------------------------------------------------- */
/* Kernels that share a signature: scl_k_NAME, of the type scl_kernel_SIGNATURE. */
#define SCL_CL_SIGNATURE(signature, parameters)                                                    \
  typedef struct {                                                                                 \
    scl_cl_kernel id;                                                                              \
  } scl_kernel_##signature;                                                                        \
  scl_status scl_launch_##signature(scl_cl_op *op, const scl_kernel_##signature *kernel,           \
                                    scl_cl_range range SCL_CL_PARAMETERS(parameters));
#define SCL_CL_KERNEL_OF(program, name, signature) extern const scl_kernel_##signature scl_k_##name;
#define SCL_CL_KERNEL(program, name, parameters)                                                   \
  scl_status scl_launch_##name(scl_cl_op *op, scl_cl_range range SCL_CL_PARAMETERS(parameters));
#include "engine/cl/runtime/kernels.def"

#endif
