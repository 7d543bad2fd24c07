/* Programs with instructions of one processor (engine/cl/runtime/assembly.c). */
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "driver.h"
#include "linalg.h"
#include "engine/cl/runtime/private.h"

/* A driver whose binaries are this text; what it is given for a binary; programs let go. */
static const char *assembly;
static bool sized, sizeless; /* has said how long the text is; it fails to */
static char given[200];
static int builds, releases;

static cl_int CL_API_CALL give_binary(cl_program program, cl_program_info what, size_t size,
                                      void *value, size_t *needed) {
  (void)program, (void)size, (void)needed;
  if (assembly == NULL) return CL_INVALID_PROGRAM;
  const size_t bytes = strlen(assembly) + 1; /* NVIDIA's ends with a 0 */
  if (what == CL_PROGRAM_BINARIES) {
    CHECK(sized);
    if (sized) memcpy(*(char **)value, assembly, bytes);
  } else if (sizeless) {
    return CL_OUT_OF_RESOURCES;
  } else {
    memcpy(value, &bytes, sizeof bytes);
    sized = true;
  }
  return CL_SUCCESS;
}

static cl_program CL_API_CALL take_binary(cl_context context, cl_uint n, const cl_device_id *device,
                                          const size_t *bytes, const unsigned char **binary,
                                          cl_int *state, cl_int *code) {
  (void)context, (void)n, (void)device, (void)state;
  *code = strstr((const char *)*binary, "refused") != NULL ? CL_INVALID_BINARY : CL_SUCCESS;
  snprintf(given, sizeof given, "%.*s", (int)*bytes, (const char *)*binary);
  return *code == CL_SUCCESS ? (cl_program)given : NULL;
}

static cl_int CL_API_CALL build_nothing(cl_program program, cl_uint n, const cl_device_id *device,
                                        const char *options,
                                        void(CL_CALLBACK *notify)(cl_program, void *), void *user) {
  (void)program, (void)n, (void)device, (void)options, (void)notify, (void)user;
  builds++;
  return strstr(given, "wrong") != NULL ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}

static cl_int CL_API_CALL release_nothing(cl_program program) {
  releases += program == (cl_program)&assembly;
  return CL_SUCCESS;
}

/* Marks leave the text, whose target becomes the processor; `to` NULL: the program stays. */
static void check_assembly(const scl_cl_context *cl, const char *from, const char *to,
                           cl_int expected) {
  cl_program program = (cl_program)&assembly;
  assembly = from;
  sized = false;
  given[0] = '\0';
  builds = releases = 0;
  CHECK(scl_cl_assemble(cl, "", &program) == expected);
  CHECK(strcmp(given, to != NULL ? to : "") == 0 || expected == CL_INVALID_BINARY);
  CHECK(builds == (to != NULL) && releases == (to != NULL));
  CHECK((program == (cl_program)given) == (to != NULL));
}

static void check_assemblies(const scl_cl_context *cl) {
  const scl_cl_functions own = scl_cl;
  scl_cl.clGetProgramInfo = give_binary;
  scl_cl.clCreateProgramWithBinary = take_binary;
  scl_cl.clBuildProgram = build_nothing;
  scl_cl.clReleaseProgram = release_nothing;
  check_assembly(cl, ".version 9.0\n.target sm_90, more\n\t//sm_90a one;\n//sm_90 \n//sm_90a ",
                 ".version 9.0\n.target sm_90a, more\n\tone;\n//sm_90 \n", CL_SUCCESS);
  check_assembly(cl, ".target sm_90,", ".target sm_90a,", CL_SUCCESS);
  check_assembly(cl, ".target sm_90, wrong", ".target sm_90a, wrong", CL_BUILD_PROGRAM_FAILURE);
  check_assembly(cl, ".target sm_90, refused", NULL, CL_INVALID_BINARY);
  check_assembly(cl, ".target sm_100, //sm_90a one;", NULL, CL_INVALID_BINARY);
  check_assembly(cl, "", NULL, CL_INVALID_BINARY);
  check_assembly(cl, NULL, NULL, CL_INVALID_BINARY);
  sizeless = true;
  check_assembly(cl, ".target sm_90, one", NULL, CL_INVALID_BINARY);
  sizeless = false;
  bool fails = true;
  for (long n = 1; fails; n++) {
    alloc_fail(n);
    cl_program program = (cl_program)&assembly;
    assembly = ".target sm_90, one";
    const cl_int code = scl_cl_assemble(cl, "", &program);
    fails = alloc_failed();
    alloc_fail(0);
    CHECK(fails == (program == (cl_program)&assembly) && fails == (code != CL_SUCCESS));
  }
  scl_cl = own;
}

/* A program that is built as one with marks: only NVIDIA's binaries for compute capability 9.0 are
 * the right assembly. */
static void check_marked(scl_context *ctx) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  const char *source = "__kernel void probe(__global int *a) { a[0] = 1; }";
  const bool has = cl->info.capability == 90;
  driver_install();
  const driver_counts before = driver_counted();
  for (long n = 0; n < (has ? 5 : 3); n++) { /* the driver's call that fails, or none */
    scl_cl_build build;
    cl_program program = NULL;
    driver_fail(n, CL_OUT_OF_HOST_MEMORY, false);
    scl_status status = scl_cl_build_create(cl, 1, &source, "probe", &build);
    CHECK((status == SCL_OK) == (n != 1));
    if (status == SCL_OK) {
      build.marked = true;
      CHECK_OK(scl_cl_build_wait(cl, &build, 1));
      status = scl_cl_build_take(cl, &build, "probe", &program);
      CHECK(status == (has && n == 0 ? SCL_OK : SCL_E_BUILD));
      CHECK(n > 0 || has || build.code == CL_INVALID_BINARY);
    }
    driver_fail(0, 0, false);
    if (status == SCL_OK) scl_cl.clReleaseProgram(program);
    CHECK(driver_is_clean(before));
  }
  driver_remove();
}

void test_assembly(scl_context *ctx) {
  if (scl_context_is_host(ctx)) {
    SKIP("needs a device");
    return;
  }
  check_assemblies((scl_cl_context *)ctx);
  check_marked(ctx);
}
