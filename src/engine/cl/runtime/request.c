/* Requests for programs: made from a source unless one has been built in the background or is in a
 * file, built with or without waiting, and the build log of one that fails. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cl/runtime/private.h"

/* ---- build log ------------------------------------------------------------------------------- */
static bool in_path(char c) {
  return isalnum((unsigned char)c) || (c != '\0' && strchr("_-+.~/\\:", c) != NULL);
}

/* Copies text without the folders of absolute paths, which would reveal where a user's files
 * are. */
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
  scl_fail(SCL_E_BUILD, "the kernels '%s' could not be compiled for '%s' (%s)", name,
           cl->base.label, scl_cl_code_name(code));
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

/* ---- requests -------------------------------------------------------------------------------- */
scl_status scl_cl_build_all(scl_cl_context *cl, scl_cl_build *build, int count) {
  int done = 0;
  while (done < count && build[done].done) done++;
  if (done == count) return SCL_OK;
  if (scl_cl_asks()) return scl_cl_beside_ask(cl, build, count);
  return scl_cl_build_wait(cl, build, count);
}

scl_status scl_cl_build_create(scl_cl_context *cl, cl_uint count, const char **text,
                               const char *name, scl_cl_build *out) {
  cl_int code = CL_SUCCESS;
  char options[SCL_CL_OPTIONS];
  scl_digest digest;
  bool found;
  scl_cl_build_options(cl, options);
  const bool keep = scl_cl_store_name(cl, count, text, options, &digest);
  SCL_TRY(scl_cl_beside_take(cl, &digest, out, &found));
  if (found) return SCL_OK;
  SCL_TRY(scl_cl_require_room(cl));
  cl_program program = scl_cl.clCreateProgramWithSource(cl->context, count, text, NULL, &code);
  if (program == NULL) return scl_cl_fail(&cl->base, code, "clCreateProgramWithSource");
  *out = (scl_cl_build){.program = program, .name = name, .keep = keep, .stored = digest};
  if (keep) out->kept = scl_cl_store_read(cl, &out->stored);
  return SCL_OK;
}

scl_status scl_cl_build_take(scl_cl_context *cl, scl_cl_build *build, const char *name,
                             cl_program *out) {
  if (build->done && build->code == CL_SUCCESS) {
    *out = build->program;
    return SCL_OK;
  }
  scl_status status = fail_build(cl, build->program, name, build->code);
  scl_cl.clReleaseProgram(build->program);
  return status;
}

scl_status scl_cl_program_build(scl_cl_context *cl, cl_uint count, const char **text,
                                const char *name, cl_program *out) {
  scl_cl_build build;
  SCL_TRY(scl_cl_build_create(cl, count, text, name, &build));
  scl_status status = scl_cl_build_all(cl, &build, 1);
  if (status == SCL_OK) return scl_cl_build_take(cl, &build, name, out);
  if (build.program != NULL) scl_cl.clReleaseProgram(build.program);
  return status;
}
