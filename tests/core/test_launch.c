/* Launches on a device: what a kernel's signature says is compared with its operation's
 * declarations and with the kernel that the driver has built. */
#include "test.h"

#ifdef SCL_TEST_OPENCL

#include <stdio.h>
#include <string.h>

#include "engine/cl/runtime/launch.h"
#include "engine/cl/runtime/signature.h"

static const scl_cl_range three = {.dims = 1, .global = {3}};

/* Copies the diagonal of one block to another, in an operation that declares nothing or both. */
static scl_status copy_diagonal(scl_context *ctx, scl_block a, scl_block dst, bool reads,
                                bool writes) {
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  if (reads) scl_cl_op_reads(&op, a.buffer);
  if (writes) scl_cl_op_writes(&op, dst.buffer);
  if (!writes) scl_cl_op_reads(&op, dst.buffer);
  SCL_TRY(scl_cl_op_order(&op, -1));
  return scl_cl_op_end(&op,
                       scl_launch_elementwise_diagonal(&op, three, 3, scl_in(a), scl_out(dst)));
}

/* In an ordered operation a launch uses what is declared. */
static void check_declarations(scl_context *ctx) {
  scl_block a, b;
  REQUIRE_OK(scl_block_create(ctx, 3, 3, &a));
  REQUIRE_OK(scl_block_create(ctx, 3, 1, &b));
  CHECK_OK(copy_diagonal(ctx, a, b, true, true));
  CHECK_STATUS(SCL_E_OPENCL, copy_diagonal(ctx, a, b, false, true));
  CHECK(strstr(scl_fault_last()->message, "reads a buffer (a)") != NULL);
  CHECK_STATUS(SCL_E_OPENCL, copy_diagonal(ctx, a, b, true, false));
  CHECK(strstr(scl_fault_last()->message, "writes a buffer (dst)") != NULL);

  /* A temporary of the operation needs no declaration. */
  scl_cl_op op;
  scl_block work;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, a.buffer);
  REQUIRE_OK(scl_cl_op_order(&op, -1));
  REQUIRE_OK(scl_cl_temporary(&op, 3, 1, &work));
  CHECK_OK(scl_launch_elementwise_diagonal(&op, three, 3, scl_in(a), scl_out(work)));
  CHECK_OK(scl_cl_op_end(&op, SCL_OK));
  scl_buffer_release(work.buffer);
  scl_buffer_release(a.buffer);
  scl_buffer_release(b.buffer);
}

/* The only launch of an operation declares for it: its counts stay on the buffers. */
static void check_single(scl_context *ctx) {
  scl_block a, b;
  REQUIRE_OK(scl_block_create(ctx, 3, 3, &a));
  REQUIRE_OK(scl_block_create(ctx, 3, 1, &b));
  const scl_cl_context *cl = (scl_cl_context *)ctx;
  const scl_cl_buffer *from = (scl_cl_buffer *)a.buffer, *to = (scl_cl_buffer *)b.buffer;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  CHECK_OK(scl_launch_elementwise_diagonal(&op, three, 3, scl_in(a), scl_out(b)));
  CHECK(op.ordered && op.buffers == 2);
  /* The operation is ordered now: a second launch may use only what the first has declared. */
  CHECK_STATUS(SCL_E_OPENCL, scl_launch_elementwise_diagonal(&op, three, 3, scl_in(b), scl_out(a)));
  CHECK_OK(scl_cl_op_end(&op, SCL_OK));
  CHECK(from->read[op.queue] == cl->enqueued[op.queue]);
  CHECK(to->written == cl->enqueued[op.queue] && to->written_on == op.queue);
  scl_buffer_release(a.buffer);
  scl_buffer_release(b.buffer);
}

/* The status of elementwise_diagonal's signature, (int, n)(in, a)(out, dst), for another kernel. */
static scl_status compare(scl_context *ctx, const char *parameters) {
  char text[512];
  const char *source = text;
  scl_cl_context *cl = (scl_cl_context *)ctx;
  cl_program program;
  scl_cl_launchable k;
  snprintf(text, sizeof text,
           "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
           "typedef double real;\n__kernel void probe(%s) {}\n",
           parameters);
  SCL_TRY(scl_cl_program_build(cl, 1, &source, "probe", &program));
  scl_status status = scl_cl_kernel_make(cl, program, "probe", &k);
  if (status == SCL_OK) {
    status = scl_cl_signature_check(cl, SCL_K_elementwise_diagonal, k.kernel, k.name);
    scl_cl.clReleaseKernel(k.kernel);
  }
  scl_cl.clReleaseProgram(program);
  return status;
}

#define BLOCK(x) "const long " x "_offset, const int " x "_ld"
#define IN "__global const real *a, " BLOCK("a")
#define OUT "__global double *dst, " BLOCK("dst")

static void check_signatures(scl_context *ctx) {
  CHECK_OK(compare(ctx, "const int n, " IN ", " OUT));
  CHECK_STATUS(SCL_E_BUILD, compare(ctx, "const int n, " IN));
  CHECK(strstr(scl_fault_last()->message, "has 4 parameters, its signature says 7") != NULL);
  /* What follows is compared where the driver knows the parameters of kernels. */
  static const char *const wrong[][2] = {
      {"const long n, " IN ", " OUT, "parameter 1 (n) is long, its signature says int"},
      {"const double n, " IN ", " OUT, "parameter 1 (n) is double"},
      {"const int n, " OUT ", " IN, "parameter 2 (a) is not const, its signature says in"},
      {"const int n, __global const float *a, " BLOCK("a") ", " OUT, "parameter 2 (a) is float*"},
      {"const int n, __local real *a, " BLOCK("a") ", " OUT, "parameter 2 (a) is local"},
      {"const int n, " IN ", __global real *dst, const int ld, const long offset",
       "parameter 6 (dst) is int, its signature says long"},
  };
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    CHECK_STATUS(SCL_E_BUILD, compare(ctx, wrong[k][0]));
    CHECK(strstr(scl_fault_last()->message, wrong[k][1]) != NULL);
  }
}

/* The program of this selection, built if it is not kept, and its kernel. */
static cl_program build_for(scl_cl_context *cl, unsigned kinds, cl_kernel *kernel) {
  scl_cl_program_select(cl, SCL_CL_PROGRAM_triangular_copy, kinds);
  const cl_program kept = cl->program[SCL_CL_PROGRAM_triangular_copy];
  CHECK_OK(scl_cl_kernel_get(cl, SCL_K_triangular_copy, kernel));
  return kept;
}

/* Builds for other selections are kept with their kernels, 16 at most. */
static void check_selection(scl_context *ctx) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  cl_kernel first, kernel;
  build_for(cl, 1, &first);
  CHECK(build_for(cl, 2, &kernel) == NULL && kernel != first);
  CHECK(build_for(cl, 1, &kernel) != NULL && kernel == first);
  for (unsigned kinds = 3; kinds <= 20; kinds++) CHECK(build_for(cl, kinds, &kernel) == NULL);
  CHECK(build_for(cl, 19, &kernel) != NULL && build_for(cl, 20, &kernel) != NULL);
  CHECK(build_for(cl, 2, &kernel) == NULL); /* the oldest ones have gone */
  scl_cl_program_select(cl, SCL_CL_PROGRAM_triangular_copy, 0);
}

static void check_device(scl_context *ctx) {
  check_declarations(ctx);
  check_single(ctx);
  check_signatures(ctx);
  check_selection(ctx);
}

#else
static void check_device(scl_context *ctx) {
  (void)ctx;
}
#endif

void test_launch(scl_context *ctx) {
  if (!scl_context_is_host(ctx)) check_device(ctx);
}
