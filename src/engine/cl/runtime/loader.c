/* The loader, opened at first use, and OpenCL's error codes in words. */
#include "engine/cl/runtime/cl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#include "engine/cl/runtime/private.h"
#include "base/threads.h"

scl_cl_functions scl_cl;

static char loader_name[256];
static char cache_folder[1024];
static char reason[256];

const char *scl_device_reason(void) {
  return reason;
}

void scl_cl_set_reason(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(reason, sizeof reason, format, args);
  va_end(args);
}

#ifdef _WIN32
static const char *const names[] = {"OpenCL.dll"};
static void *open_library(const char *name) {
  return (void *)LoadLibraryA(name);
}
static void *find_symbol(void *library, const char *name) {
  FARPROC found = GetProcAddress((HMODULE)library, name);
  void *symbol;
  memcpy(&symbol, &found, sizeof symbol);
  return symbol;
}
#else
#ifdef __APPLE__
static const char *const names[] = {"/System/Library/Frameworks/OpenCL.framework/OpenCL"};
#else
static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so"};
#endif
static void *open_library(const char *name) {
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
static void *find_symbol(void *library, const char *name) {
  return dlsym(library, name);
}
#endif

const char *scl_device_loader(void) {
  return loader_name;
}

/* Drivers read these at the first request for platforms. With an empty POCL_DEVICES POCL has no
 * device. */
static void prepare_environment(void) {
  scl_env_drop_empty("POCL_DEVICES");
  if (cache_folder[0] != '\0') scl_env_default("POCL_CACHE_DIR", cache_folder);
  if (scl_cores_limited()) {
    scl_env_default("POCL_MAX_PTHREAD_COUNT", "2");
    scl_env_default("POCL_CPU_MAX_CU_COUNT", "2"); /* its name in later versions */
  }
}

void scl_device_set_cache(const char *folder) {
  snprintf(cache_folder, sizeof cache_folder, "%s", folder);
  prepare_environment();
}

static bool look_up(void *library, const char *name) {
  void *symbol;
#define SCL_CL_FN(result, function, parameters)                                                    \
  symbol = find_symbol(library, #function);                                                        \
  if (symbol == NULL) {                                                                            \
    scl_cl_set_reason("%s has no function %s (OpenCL 1.2 is needed)", name, #function);            \
    return false;                                                                                  \
  }                                                                                                \
  memcpy(&scl_cl.function, &symbol, sizeof symbol);
#include "engine/cl/runtime/functions.def"
#undef SCL_CL_FN
  return true;
}

bool scl_cl_load(void) {
  static bool loaded;
  if (loaded) return true;
  prepare_environment();
  const char *asked = scl_env("STATCL_LOADER");
  const char *name = asked;
  void *library = asked != NULL ? open_library(asked) : NULL;
  for (size_t i = 0; asked == NULL && library == NULL && i < sizeof names / sizeof *names; i++) {
    name = names[i];
    library = open_library(name);
  }
  if (library == NULL) {
    scl_cl_set_reason("no OpenCL loader: %s cannot be opened (Debian: ocl-icd-libopencl1)",
                      asked != NULL ? asked : names[0]);
    return false;
  }
  if (!look_up(library, name)) return false;
  snprintf(loader_name, sizeof loader_name, "%s", name);
  loaded = true;
  return true;
}

const char *scl_cl_code_name(cl_int code) {
  switch (code) {
#define SCL_CL_CODE(name, value)                                                                   \
  case name:                                                                                       \
    return #name;
#include "engine/cl/runtime/codes.def"
#undef SCL_CL_CODE
  case -9999:
    return "illegal access of a kernel (NVIDIA)";
  default:
    return "unknown OpenCL error";
  }
}

scl_status scl_cl_fail(scl_context *ctx, cl_int code, const char *where) {
  scl_status status = SCL_E_OPENCL;
  const char *device = ctx != NULL ? ctx->label : "", *name = ctx != NULL ? ctx->name : "";
  switch (code) {
  case CL_MEM_OBJECT_ALLOCATION_FAILURE:
  case CL_INVALID_BUFFER_SIZE:
  case CL_OUT_OF_HOST_MEMORY:
    status = SCL_E_MEMORY;
    scl_fail(status, "out of memory on '%s' (%s in %s)", device, scl_cl_code_name(code), where);
    break;
  case CL_OUT_OF_RESOURCES:
  case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
  case CL_INVALID_CONTEXT:
  case CL_INVALID_COMMAND_QUEUE:
  case -9999:
    status = SCL_E_LOST;
    if (ctx != NULL) ctx->lost = true;
    scl_fail(status, "device '%s' stopped responding (%s in %s): its matrices are no longer valid",
             device, scl_cl_code_name(code), where);
    break;
  default:
    scl_fail(status, "%s in %s", scl_cl_code_name(code), where);
  }
  scl_fault *fault = scl_fault_edit();
  fault->cl_code = code;
  snprintf(fault->where, sizeof fault->where, "%s", where);
  snprintf(fault->device, sizeof fault->device, "%s", name);
  return status;
}
