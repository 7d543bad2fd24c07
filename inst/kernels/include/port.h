/* The dialect in which a kernel source is both OpenCL C and C11.
 *
 * OpenCL: prepended to every program by the device engine. C: included by the host engine's files,
 * which then include the kernel header itself. Only plain functions of numbers are shared this way;
 * kernels with index space, barriers or local memory are OpenCL only. (glm_batch.h has barriers,
 * which are nothing on the host.)
 *
 * Kernels call get_local_id() and similar functions themselves and pass the results to the
 * functions they call: in a function that POCL 3.1 does not inline, its threads read each
 * other's. */
#ifndef SCL_PORT_H
#define SCL_PORT_H

#ifdef __OPENCL_VERSION__

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define SCL_INLINE static inline
/* For long functions of which a copy at each call costs registers, and seconds of an NVIDIA
 * driver's time; on a CPU device copies can be vectorised. */
#ifdef SCL_CPU
#define SCL_NOINLINE static inline
#else
#define SCL_NOINLINE static __attribute__((noinline))
#endif
/* For functions with barriers: POCL 3.1 executes those that it has not inlined wrongly. */
#define SCL_INLINE_BARRIER static inline __attribute__((always_inline))
#define SCL_GLOBAL __global
#define SCL_LOCAL __local
typedef long scl_long; /* 64 bits */
/* The type of matrix elements: kernels name their type only here. */
typedef double real;
typedef double2 real2;
typedef double4 real4;
typedef double8 real8;
/* Unrolls a loop whose bounds are compile-time constants. */
#define SCL_UNROLL _Pragma("unroll")
/* Keeps a loop a loop: for code that is rarely run and takes long to build. */
#define SCL_NO_UNROLL _Pragma("unroll 1")

#else

#include <math.h>
#include <stdint.h>
typedef int64_t scl_long;
typedef double real;
#define SCL_INLINE static inline
#define SCL_NOINLINE static inline
#define SCL_INLINE_BARRIER static inline
#define SCL_GLOBAL
#define SCL_LOCAL
#define SCL_UNROLL

#endif

/* Steps of Horner's rule: sum = sum * x + a, and so on. Not a loop: compilers for hosts would
 * divide in loops that they do not unroll. */
#define SCL_HORNER_1(sum, x, a) sum = sum * (x) + (a)
#define SCL_HORNER_2(sum, x, a, b) SCL_HORNER_1(sum, x, a), SCL_HORNER_1(sum, x, b)
#define SCL_HORNER_3(sum, x, a, b, c) SCL_HORNER_2(sum, x, a, b), SCL_HORNER_1(sum, x, c)
#define SCL_HORNER_4(sum, x, a, b, c, d) SCL_HORNER_3(sum, x, a, b, c), SCL_HORNER_1(sum, x, d)

/* After a struct of constants that C hands to a kernel by value: its size in bytes, which both
 * compilers compare with theirs. Its members are int, scl_long, double and arrays of these, the
 * larger ones first. */
#define SCL_SAME_LAYOUT(type, bytes) typedef char type##_layout[sizeof(type) == (bytes) ? 1 : -1];

#endif
