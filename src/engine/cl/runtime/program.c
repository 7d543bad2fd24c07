/* Programs: sources from the kernel folder, built at first use; kernels, kept with the context. */
#include "engine/cl/runtime/cl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cl/runtime/private.h"
#include "base/threads.h"

enum { MOST_SOURCES = 16 };

static char kernel_folder[1024];

static const struct {
  const char *name, *sources;
} programs[] = {
#define SCL_CL_PROGRAM(name, sources) {#name, sources},
#include "engine/cl/runtime/kernels.def"
};

static const struct {
  const char *name;
  scl_cl_program program;
} kernels[] = {
#define SCL_CL_KERNEL_OF(program, name, signature) {#name, SCL_CL_PROGRAM_##program},
#define SCL_CL_KERNEL(program, name, parameters) SCL_CL_KERNEL_OF(program, name, )
#include "engine/cl/runtime/kernels.def"
};

const char *scl_cl_kernel_name(scl_cl_kernel which) {
  return kernels[which].name;
}

void scl_device_set_kernels(const char *folder) {
  snprintf(kernel_folder, sizeof kernel_folder, "%s", folder);
}

/* ---- sources --------------------------------------------------------------------------------- */
static char *read_stream(FILE *stream) {
  if (fseek(stream, 0, SEEK_END) != 0) return NULL;
  long size = ftell(stream);
  if (size < 0 || fseek(stream, 0, SEEK_SET) != 0) return NULL;
  char *text = malloc((size_t)size + 2);
  if (text == NULL) return NULL;
  size_t got = fread(text, 1, (size_t)size, stream);
  text[got] = '\n';
  text[got + 1] = '\0';
  return text;
}

/* "NAME=VALUE" as a line that defines a macro. */
static scl_status write_definition(const char *word, char **out) {
  size_t room = strlen(word) + sizeof "#define \n", name = strcspn(word, "=");
  char *text = malloc(room);
  if (text == NULL) return scl_fail_memory(room, 0, "a kernel source");
  snprintf(text, room, "#define %.*s %s\n", (int)name, word, word + name + 1);
  *out = text;
  return SCL_OK;
}

scl_status scl_cl_source_read(const char *name, char **out) {
  if (strchr(name, '=') != NULL) return write_definition(name, out);
  char path[sizeof kernel_folder + 64];
  snprintf(path, sizeof path, "%s/%s", kernel_folder, name);
  FILE *stream = fopen(path, "rb");
  char *text = NULL;
  if (stream != NULL) {
    text = read_stream(stream);
    fclose(stream);
  }
  if (text == NULL) {
    return scl_fail(SCL_E_BUILD, "kernel source '%s' cannot be read: reinstall statcl", name);
  }
  *out = text;
  return SCL_OK;
}

/* The words of a program's sources in order; the caller frees text[0 .. *count - 1], also on
 * failure. */
static scl_status read_sources(const char *sources, char *text[MOST_SOURCES], cl_uint *count) {
  const char *at = sources;
  *count = 0;
  while (*at != '\0') {
    char name[64];
    size_t length = strcspn(at, " ");
    if (length >= sizeof name || *count == MOST_SOURCES) {
      return scl_fail(SCL_E_BUILD, "internal: too many or too long sources: %s", sources);
    }
    memcpy(name, at, length);
    name[length] = '\0';
    SCL_TRY(scl_cl_source_read(name, &text[*count]));
    ++*count;
    at += length;
    at += strspn(at, " ");
  }
  return SCL_OK;
}

/* ---- build log ------------------------------------------------------------------------------- */
static bool in_path(char c) {
  return isalnum((unsigned char)c) || (c != '\0' && strchr("_-+.~/\\:", c) != NULL);
}

/* Copies text without the folders of absolute paths: they say where a user's files are. */
static void copy_log(const char *from, char *to, size_t room) {
  char *end = to + room - 1;
  char before = ' ';
  while (*from != '\0' && to < end) {
    bool starts = *from == '/' || (isalpha((unsigned char)from[0]) && from[1] == ':' &&
                                   (from[2] == '\\' || from[2] == '/'));
    if (starts && !in_path(before)) {
      const char *last = from, *p = from;
      for (; in_path(*p); p++) {
        if (*p == '/' || *p == '\\') last = p;
      }
      if (last > from) from = last + 1;
    }
    before = *from;
    if (*from != '\0') *to++ = *from++;
  }
  *to = '\0';
}

static scl_status fail_build(scl_cl_context *cl, cl_program program, const char *name,
                             cl_int code) {
  scl_fail(SCL_E_BUILD, "the kernels '%s' could not be compiled for '%s' (%s)", name, cl->base.name,
           scl_cl_code_name(code));
  scl_fault *fault = scl_fault_edit();
  fault->cl_code = code;
  snprintf(fault->where, sizeof fault->where, "clBuildProgram");
  snprintf(fault->device, sizeof fault->device, "%s", cl->base.name);
  size_t size = 0;
  scl_cl.clGetProgramBuildInfo(program, cl->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
  char *log = size > 0 ? calloc(1, size + 1) : NULL;
  if (log != NULL && scl_cl.clGetProgramBuildInfo(program, cl->device, CL_PROGRAM_BUILD_LOG, size,
                                                  log, NULL) == CL_SUCCESS) {
    copy_log(log, fault->log, sizeof fault->log);
  }
  free(log);
  return SCL_E_BUILD;
}

/* ---- programs and kernels -------------------------------------------------------------------- */
/* Nothing here may loosen the arithmetic: no fast-math, no unsafe optimisation. Warnings are off,
   as some drivers write their number to the standard error of whoever compiles. */
#define OPTIONS "-cl-std=CL1.2 -cl-kernel-arg-info -w"
static void build_options(const scl_cl_context *cl, char *out, size_t room) {
  /* Kernels for GPUs on a CPU device (STATCL_GPU_KERNELS=1, STATCL_MMA_EMULATED=1): optimising,
   * POCL 3.1 moves stores out of their guards, which writes past the end of matrices. */
  bool plain =
      !cl->cpu && cl->info.type == SCL_DEVICE_CPU && strstr(cl->info.platform, "Portable") != NULL;
  snprintf(out, room, OPTIONS "%s%s%s%s", cl->cpu ? " -D SCL_CPU=1" : "",
           plain ? " -cl-opt-disable" : "", cl->small_mma ? " -D SCL_MMA_8=1" : "",
           cl->emulated_mma ? " -D SCL_MMA_EMULATED=1" : "");
}

static uint64_t build_us;
static char build_name[sizeof((scl_device_info *)0)->name];

void scl_cl_count_build(const scl_cl_context *cl, uint64_t start) {
  build_us += scl_clock_us() - start;
  snprintf(build_name, sizeof build_name, "%s", cl->info.name);
}

double scl_device_build_seconds(void) {
  return (double)build_us * 1e-6;
}

const char *scl_device_build_name(void) {
  return build_name;
}

scl_status scl_cl_program_build(scl_cl_context *cl, cl_uint count, const char **text,
                                const char *name, cl_program *out) {
  cl_int code = CL_SUCCESS;
  cl_program program = scl_cl.clCreateProgramWithSource(cl->context, count, text, NULL, &code);
  if (program == NULL) return scl_cl_fail(&cl->base, code, "clCreateProgramWithSource");
  const uint64_t start = scl_clock_us();
  char options[128];
  build_options(cl, options, sizeof options);
  code = scl_cl.clBuildProgram(program, 1, &cl->device, options, NULL, NULL);
  scl_cl_count_build(cl, start);
  if (code != CL_SUCCESS) {
    scl_status status = fail_build(cl, program, name, code);
    scl_cl.clReleaseProgram(program);
    return status;
  }
  *out = program;
  return SCL_OK;
}

static scl_status build_program(scl_cl_context *cl, scl_cl_program which) {
  char *text[MOST_SOURCES];
  cl_uint count;
  scl_status status;
  SCL_GO(read_sources(programs[which].sources, text, &count));
  SCL_GO(scl_cl_program_build(cl, count, (const char **)text, programs[which].name,
                              &cl->program[which]));
done:
  while (count > 0) free(text[--count]);
  return status;
}

scl_status scl_cl_kernel_make(scl_cl_context *cl, cl_program program, const char *name,
                              scl_cl_launchable *k) {
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = scl_cl.clCreateKernel(program, name, &code);
  if (kernel == NULL) return scl_cl_fail(&cl->base, code, name);
  size_t items = 0, required[3] = {0, 0, 0};
  cl_ulong local = 0;
  scl_cl.clGetKernelWorkGroupInfo(kernel, cl->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof items,
                                  &items, NULL);
  /* A size that the kernel was compiled for is taken, whatever the general limit. */
  scl_cl.clGetKernelWorkGroupInfo(kernel, cl->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                  sizeof required, required, NULL);
  if (required[0] > 0) items = required[0] * required[1] * required[2];
  scl_cl.clGetKernelWorkGroupInfo(kernel, cl->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local,
                                  &local, NULL);
  *k = (scl_cl_launchable){kernel, name, items > 0 ? items : cl->info.work_group, local};
  return SCL_OK;
}

scl_status scl_cl_kernel_get(scl_cl_context *cl, scl_cl_kernel which, cl_kernel *out) {
  if (cl->kernel[which] == NULL) {
    scl_cl_launchable k;
    scl_cl_program program = kernels[which].program;
    if (cl->program[program] == NULL) SCL_TRY(build_program(cl, program));
    SCL_TRY(scl_cl_kernel_make(cl, cl->program[program], kernels[which].name, &k));
    scl_status status = scl_cl_signature_check(cl, which, k.kernel);
    if (status != SCL_OK) {
      scl_cl.clReleaseKernel(k.kernel);
      return status;
    }
    cl->kernel_items[which] = k.items;
    cl->kernel_local[which] = k.local;
    cl->kernel[which] = k.kernel;
  }
  *out = cl->kernel[which];
  return SCL_OK;
}

void scl_cl_programs_free(scl_cl_context *cl) {
  scl_cl_exprs_free(cl);
  for (int k = 0; k < SCL_CL_KERNELS; k++) {
    if (cl->kernel[k] != NULL) scl_cl.clReleaseKernel(cl->kernel[k]);
  }
  for (int p = 0; p < SCL_CL_PROGRAMS; p++) {
    if (cl->program[p] != NULL) scl_cl.clReleaseProgram(cl->program[p]);
  }
}
