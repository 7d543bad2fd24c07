/* Launches on a device: what a kernel's signature says is compared with its operation's
 * declarations and with the kernel that the driver has built. */
#define _DEFAULT_SOURCE
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/threads.h"
#include "engine/cl/runtime/launch.h"
#include "engine/cl/runtime/private.h"
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
  for (size_t k = 0; k < LENGTH(wrong); k++) {
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

/* ---- programs kept in files ------------------------------------------------------------------ */

static size_t read_bytes(const char *path, char *to, size_t room) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return 0;
  const size_t bytes = fread(to, 1, room, file);
  fclose(file);
  return bytes;
}

static void write_bytes(const char *path, const char *from, size_t bytes) {
  FILE *file = fopen(path, "wb");
  CHECK(file != NULL && fwrite(from, 1, bytes, file) == bytes && fclose(file) == 0);
}

/* A flipped bit is found before the driver sees the program, and the file is deleted; a link is
 * neither read nor deleted nor replaced. */
static void check_kept(scl_cl_context *cl, const scl_digest *name, cl_program program,
                       const char *path) {
  enum { ROOM = 1 << 20, HEAD = 48 };
  char *const bytes = test_alloc(ROOM), other[80];
  scl_cl_store_write(cl, name, program);
  const size_t size = read_bytes(path, bytes, ROOM);
  cl_program again = scl_cl_store_read(cl, name);
  CHECK(again != NULL && size > HEAD && size < ROOM);
  if (again != NULL) scl_cl.clReleaseProgram(again);
  for (size_t k = 0; k < (test_quick() ? 8 * HEAD + 40 : 4000) && size > HEAD; k++) {
    const size_t at = k < 8 * HEAD ? k / 8 : HEAD + k * 7919 % (size - HEAD);
    bytes[at] ^= (char)(1 << k % 8);
    write_bytes(path, bytes, size);
    CHECK(scl_cl_store_read(cl, name) == NULL && scl_path_kind_of(path) == SCL_PATH_NONE);
    bytes[at] ^= (char)(1 << k % 8);
  }
  snprintf(other, sizeof other, "%s.other", path);
  write_bytes(other, bytes, size);
#ifndef _WIN32
  CHECK(symlink(other, path) == 0);
  CHECK(scl_cl_store_read(cl, name) == NULL);
  scl_cl_store_write(cl, name, program);
  CHECK(scl_path_kind_of(path) == SCL_PATH_OTHER);
#endif
  remove(path);
  remove(other);
  free(bytes);
}

static void check_store(scl_context *ctx) {
  const char *source = "__kernel void probe(__global int *a) { a[0] = 1; }";
  char folder[] = "statcl-store-XXXXXX", path[64], digits[SCL_DIGEST_TEXT];
  char *before = scl_env_copy("STATCL_KEEP_BINARIES"), one[] = "1";
  scl_cl_context *cl = (scl_cl_context *)ctx;
  scl_digest name;
  cl_program program;
  REQUIRE_OK(scl_cl_program_build(cl, 1, &source, "probe", &program));
  CHECK(mkdtemp(folder) != NULL);
  scl_device_set_store(folder);
  scl_env_restore("STATCL_KEEP_BINARIES", strcpy(test_alloc(sizeof one), one));
  CHECK(scl_cl_store_name(cl, 1, &source, "", &name));
  scl_digest_write(&name, digits);
  snprintf(path, sizeof path, "%s/%s.bin", folder, digits);
  check_kept(cl, &name, program, path);
  scl_env_restore("STATCL_KEEP_BINARIES", before);
  scl_device_set_store("");
  scl_cl.clReleaseProgram(program);
  CHECK(rmdir(folder) == 0);
}

static void check_device(scl_context *ctx) {
  check_store(ctx);
  check_declarations(ctx);
  check_single(ctx);
  check_signatures(ctx);
  check_selection(ctx);
}

void test_launch(scl_context *ctx) {
  if (!scl_context_is_host(ctx)) check_device(ctx);
}
