/* The list of devices. A platform or device that fails is left out without an error. */
#include "engine/cl/runtime/cl.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cl/runtime/private.h"
#include "base/threads.h"

static struct {
  bool made;
  atomic_long made_by; /* process; set before the driver is asked */
  size_t count;
  scl_device_info *info;
  scl_cl_handle *handle;
} list;

/* A text property, truncated to fit; "" if the driver has none. */
static void device_text(cl_device_id device, cl_device_info what, char *to, size_t room) {
  size_t size = 0;
  to[0] = '\0';
  if (scl_cl.clGetDeviceInfo(device, what, 0, NULL, &size) != CL_SUCCESS || size == 0) return;
  char *text = calloc(1, size + 1);
  if (text == NULL) return;
  if (scl_cl.clGetDeviceInfo(device, what, size, text, NULL) == CL_SUCCESS) {
    const char *start = text;
    while (*start == ' ') start++;
    snprintf(to, room, "%s", start);
    for (size_t n = strlen(to); n > 0 && to[n - 1] == ' '; n--) to[n - 1] = '\0';
  }
  free(text);
}

static bool has_extension(cl_device_id device, const char *name) {
  char extensions[8192], *word = extensions;
  device_text(device, CL_DEVICE_EXTENSIONS, extensions, sizeof extensions);
  size_t length = strlen(name);
  while ((word = strstr(word, name)) != NULL) {
    bool starts = word == extensions || word[-1] == ' ';
    if (starts && (word[length] == ' ' || word[length] == '\0')) return true;
    word += length;
  }
  return false;
}

/* A number of the driver's own width; 0 if it has none. */
static uint64_t device_number(cl_device_id device, cl_device_info what, size_t size) {
  union {
    cl_uint u;
    cl_ulong ul;
    size_t s;
  } value;
  memset(&value, 0, sizeof value);
  if (scl_cl.clGetDeviceInfo(device, what, size, &value, NULL) != CL_SUCCESS) return 0;
  return size == sizeof(cl_uint) ? value.u : value.ul;
}

static scl_device_type device_type(cl_device_id device) {
  uint64_t bits = device_number(device, CL_DEVICE_TYPE, sizeof(cl_device_type));
  if (bits & CL_DEVICE_TYPE_GPU) return SCL_DEVICE_GPU;
  if (bits & CL_DEVICE_TYPE_CPU) return SCL_DEVICE_CPU;
  return bits & CL_DEVICE_TYPE_ACCELERATOR ? SCL_DEVICE_ACCELERATOR : SCL_DEVICE_OTHER;
}

static uint32_t nvidia_capability(cl_device_id device) {
  enum { MAJOR = 0x4000, MINOR = 0x4001 }; /* cl_nv_device_attribute_query */
  if (!has_extension(device, "cl_nv_device_attribute_query")) return 0;
  return (uint32_t)(10 * device_number(device, MAJOR, sizeof(cl_uint)) +
                    device_number(device, MINOR, sizeof(cl_uint)));
}

static void describe(scl_device_info *info, cl_device_id device) {
  device_text(device, CL_DEVICE_NAME, info->name, sizeof info->name);
  device_text(device, CL_DEVICE_VENDOR, info->vendor, sizeof info->vendor);
  device_text(device, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
  device_text(device, CL_DEVICE_VERSION, info->version, sizeof info->version);
  info->type = device_type(device);
  info->fp64 = has_extension(device, "cl_khr_fp64") ||
               device_number(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof(cl_ulong)) != 0;
  info->compiler = device_number(device, CL_DEVICE_COMPILER_AVAILABLE, sizeof(cl_bool)) != 0;
  info->host_memory = info->type == SCL_DEVICE_CPU ||
                      device_number(device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(cl_bool)) != 0;
  info->units = (uint32_t)device_number(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint));
  info->capability = nvidia_capability(device);
  info->integer_dot = has_extension(device, "cl_khr_integer_dot_product");
  info->memory = device_number(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong));
  info->largest = device_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong));
  info->local_memory = device_number(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong));
  info->work_group = (size_t)device_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
}

/* Room for `more` devices; false when there is no memory. */
static bool grow(size_t more) {
  size_t n = list.count + more;
  scl_device_info *info = realloc(list.info, n * sizeof *info);
  if (info != NULL) list.info = info;
  scl_cl_handle *handle = realloc(list.handle, n * sizeof *handle);
  if (handle != NULL) list.handle = handle;
  return info != NULL && handle != NULL;
}

static void add_platform(cl_platform_id platform, unsigned number) {
  cl_device_id device[64];
  cl_uint count = 0;
  cl_int code = scl_cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 64, device, &count);
  char name[128] = "";
  scl_cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
  if (code != CL_SUCCESS || count == 0) {
    scl_cl_set_reason("platform '%s' has no device (%s)", name,
                      scl_cl_code_name(code != CL_SUCCESS ? code : CL_DEVICE_NOT_FOUND));
    return;
  }
  if (count > 64) count = 64;
  if (!grow(count)) return;
  for (cl_uint d = 0; d < count; d++) {
    scl_device_info *info = &list.info[list.count];
    memset(info, 0, sizeof *info);
    snprintf(info->id, sizeof info->id, "%u:%u", number % 100000, d % 100000);
    snprintf(info->platform, sizeof info->platform, "%s", name);
    describe(info, device[d]);
    list.handle[list.count++] = (scl_cl_handle){platform, device[d]};
  }
}

/* Loaders split these lists in place, in the environment itself: child processes would miss drivers
 * that this process has found. */
static cl_int get_platforms(cl_uint most, cl_platform_id *platform, cl_uint *count) {
  static const char *const names[] = {"OCL_ICD_FILENAMES", "OPENCL_LAYERS"};
  enum { NAMES = sizeof names / sizeof *names };
  char *value[NAMES];
  for (int i = 0; i < NAMES; i++) value[i] = scl_env_copy(names[i]);
  cl_int code = scl_cl.clGetPlatformIDs(most, platform, count);
  for (int i = 0; i < NAMES; i++) scl_env_restore(names[i], value[i]);
  return code;
}

static void make_list(void) {
  enum { MOST_PLATFORMS = 32 };
  scl_cl_set_reason("%s", "");
  if (!scl_cl_load()) return;
  cl_platform_id platform[MOST_PLATFORMS];
  cl_uint count = 0;
  cl_int code = get_platforms(MOST_PLATFORMS, platform, &count);
  if (code != CL_SUCCESS || count == 0) {
    scl_cl_set_reason("the OpenCL loader %s finds no platform (%s): no driver is installed "
                      "(Debian, for the CPU: pocl-opencl-icd)",
                      scl_device_loader(), scl_cl_code_name(code != CL_SUCCESS ? code : -1001));
    return;
  }
  if (count > MOST_PLATFORMS) count = MOST_PLATFORMS;
  for (cl_uint p = 0; p < count; p++) add_platform(platform[p], p);
  if (list.count > 0) scl_cl_set_reason("%s", "");
}

scl_status scl_cl_forked(void) {
  return scl_fail(SCL_E_FORK, "this process was forked after its parent had used OpenCL: start "
                              "workers as separate processes, or use the host engine in them");
}

scl_status scl_device_list(const scl_device_info **out, size_t *count) {
  const long process = scl_process_id();
  if (!list.made) {
    if (list.made_by != 0 && list.made_by != process) /* a thread of the parent was at it */
      return scl_cl_forked();
    list.made_by = process;
    scl_signals_hold(); /* drivers make threads */
    make_list();
    scl_signals_release();
    list.made = true;
  }
  *out = list.info;
  *count = list.count;
  return SCL_OK;
}

long scl_cl_listed_by(void) {
  return list.made_by;
}

const scl_cl_handle *scl_cl_handle_of(size_t index) {
  return index < list.count ? &list.handle[index] : NULL;
}
