#ifdef __linux__
#define _GNU_SOURCE /* SCHED_IDLE */
#endif

#include "driver.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#endif

#include "base/device.h"
#include "base/threads.h"
#include "engine/cl/runtime/cl.h"
#include "test.h"

static scl_cl_functions original;
static driver_counts count;
static atomic_long calls, fail_in, programs; /* threads build programs */
static atomic_bool has_failed;
static int fail_code, pretended;
static bool fail_on, installed;

size_t driver_index(const scl_context *ctx) {
  const scl_device_info *list = NULL;
  size_t count = 0, index = 0;
  CHECK_OK(scl_device_list(&list, &count));
  while (index + 1 < count && strcmp(list[index].id, scl_device_of(ctx)->id) != 0) index++;
  return index;
}

/* The code that this call must return, or 0. */
static cl_int fault(void) {
  atomic_fetch_add(&calls, 1);
  if (fail_in == 0) return CL_SUCCESS;
  if (fail_in > 1) {
    fail_in--;
    return CL_SUCCESS;
  }
  if (!fail_on) fail_in = 0;
  has_failed = true;
  return fail_code;
}

#define FAIL_OBJECT                                                                                \
  do {                                                                                             \
    cl_int code_ = fault();                                                                        \
    if (code_ != CL_SUCCESS) {                                                                     \
      *code = code_;                                                                               \
      return NULL;                                                                                 \
    }                                                                                              \
  } while (0)
#define FAIL_CODE                                                                                  \
  do {                                                                                             \
    cl_int code_ = fault();                                                                        \
    if (code_ != CL_SUCCESS) return code_;                                                         \
  } while (0)

/* ---- priorities ------------------------------------------------------------------------------ */
static atomic_int build_nice, context_nice;

int driver_build_nice(void) {
  return build_nice;
}

int driver_context_nice(void) {
  return context_nice;
}

int driver_own_nice(void) {
#ifdef __linux__ /* of a thread */
  return sched_getscheduler(0) == SCHED_IDLE ? 20 : getpriority(PRIO_PROCESS, 0);
#else
  return 0;
#endif
}

/* ---- objects --------------------------------------------------------------------------------- */
static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint n,
                                             const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *,
                                                                       size_t, void *),
                                             void *user, cl_int *code) {
  FAIL_OBJECT;
  context_nice = driver_own_nice();
  cl_context made = original.clCreateContext(properties, n, devices, notify, user, code);
  count.contexts += made != NULL;
  return made;
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties,
                                                 cl_int *code) {
  FAIL_OBJECT;
  cl_command_queue made = original.clCreateCommandQueue(context, device, properties, code);
  count.queues += made != NULL;
  return made;
}

static const char *replaced, *replacement;
static long places;

/* A copy of the text with each `replaced` replaced; the caller frees it. */
static char *rewrite(const char *text) {
  const size_t from = strlen(replaced), to = strlen(replacement);
  char *copy = test_alloc(strlen(text) * (1 + to) + 1), *at = copy;
  for (const char *next; (next = strstr(text, replaced)) != NULL; text = next + from) {
    memcpy(at, text, (size_t)(next - text));
    at += next - text;
    memcpy(at, replacement, to);
    at += to;
    places++;
  }
  memcpy(at, text, strlen(text) + 1);
  return copy;
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint n, const char **text,
                                             const size_t *lengths, cl_int *code) {
  enum { MOST = 32 };
  char *changed[MOST];
  const bool changes = replaced != NULL && n <= MOST;
  FAIL_OBJECT;
  for (cl_uint k = 0; k < n && changes; k++) changed[k] = rewrite(text[k]);
  if (changes) text = (const char **)changed;
  cl_program made = original.clCreateProgramWithSource(context, n, text, lengths, code);
  for (cl_uint k = 0; k < n && changes; k++) free(changed[k]);
  atomic_fetch_add(&programs, made != NULL);
  return made;
}

static cl_program CL_API_CALL create_binary(cl_context context, cl_uint n,
                                            const cl_device_id *devices, const size_t *lengths,
                                            const unsigned char **binary, cl_int *state,
                                            cl_int *code) {
  FAIL_OBJECT;
  cl_program made =
      original.clCreateProgramWithBinary(context, n, devices, lengths, binary, state, code);
  atomic_fetch_add(&programs, made != NULL);
  return made;
}

static atomic_uint build_longer;

void driver_build_slowly(unsigned us) {
  build_longer = us;
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint n, const cl_device_id *devices,
                                        const char *options,
                                        void(CL_CALLBACK *notify)(cl_program, void *), void *user) {
  FAIL_CODE;
  build_nice = driver_own_nice();
  if (build_longer > 0) scl_sleep_us(build_longer);
  return original.clBuildProgram(program, n, devices, options, notify, user);
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *code) {
  FAIL_OBJECT;
  cl_kernel made = original.clCreateKernel(program, name, code);
  count.kernels += made != NULL;
  return made;
}

static cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint i, size_t size,
                                       const void *value) {
  FAIL_CODE;
  return original.clSetKernelArg(kernel, i, size, value);
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                        void *host, cl_int *code) {
  FAIL_OBJECT;
  cl_mem made = original.clCreateBuffer(context, flags, bytes, host, code);
  count.buffers += made != NULL;
  return made;
}

static cl_mem CL_API_CALL create_part(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                      const void *region, cl_int *code) {
  FAIL_OBJECT;
  cl_mem made = original.clCreateSubBuffer(buffer, flags, type, region, code);
  count.buffers += made != NULL;
  return made;
}

static void *CL_API_CALL map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                    cl_map_flags flags, size_t offset, size_t bytes, cl_uint waits,
                                    const cl_event *wait, cl_event *event, cl_int *code) {
  FAIL_OBJECT;
  void *made = original.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes, waits,
                                           wait, event, code);
  count.maps += made != NULL;
  return made;
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem buffer, void *host, cl_uint waits,
                                const cl_event *wait, cl_event *event) {
  count.maps--;
  return original.clEnqueueUnmapMemObject(queue, buffer, host, waits, wait, event);
}

#define RELEASES(function, type, member, call)                                                     \
  static cl_int CL_API_CALL function(type object) {                                                \
    count.member--;                                                                                \
    return original.call(object);                                                                  \
  }
RELEASES(release_context, cl_context, contexts, clReleaseContext)
RELEASES(release_kernel, cl_kernel, kernels, clReleaseKernel)
RELEASES(release_event, cl_event, events, clReleaseEvent)

static cl_int CL_API_CALL release_program(cl_program program) {
  atomic_fetch_sub(&programs, 1);
  return original.clReleaseProgram(program);
}

/* Queues with commands that nobody has waited for. */
enum { MOST_BUSY = 32 };
static cl_command_queue busy[MOST_BUSY];

static bool replace_busy(cl_command_queue queue, cl_command_queue after) {
  for (int k = 0; k < MOST_BUSY; k++) {
    if (busy[k] != queue) continue;
    busy[k] = after;
    return true;
  }
  return false;
}

static void make_busy(cl_command_queue queue) {
  if (!replace_busy(queue, queue)) CHECK(replace_busy(NULL, queue));
}

static cl_int CL_API_CALL finish(cl_command_queue queue) {
  replace_busy(queue, NULL);
  return original.clFinish(queue);
}

/* A device that only seems to be lost still writes, but is not waited for. */
static cl_int CL_API_CALL release_buffer(cl_mem buffer) {
  for (int k = 0; k < MOST_BUSY && has_failed; k++) {
    if (busy[k] != NULL) original.clFinish(busy[k]);
  }
  count.buffers--;
  return original.clReleaseMemObject(buffer);
}

static cl_int CL_API_CALL release_queue(cl_command_queue queue) {
  count.queues--;
  count.dropped += replace_busy(queue, NULL);
  return original.clReleaseCommandQueue(queue);
}

static cl_int CL_API_CALL retain_event(cl_event event) {
  count.events++;
  return original.clRetainEvent(event);
}

/* ---- commands -------------------------------------------------------------------------------- */
#define COMMAND(call)                                                                              \
  FAIL_CODE;                                                                                       \
  cl_int result = original.call;                                                                   \
  make_busy(queue);                                                                                \
  if (result == CL_SUCCESS && event != NULL) count.events++;                                       \
  return result

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                      size_t offset, size_t bytes, void *host, cl_uint waits,
                                      const cl_event *wait, cl_event *event) {
  COMMAND(clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes, host, waits, wait, event));
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                       size_t offset, size_t bytes, const void *host, cl_uint waits,
                                       const cl_event *wait, cl_event *event) {
  COMMAND(clEnqueueWriteBuffer(queue, buffer, blocking, offset, bytes, host, waits, wait, event));
}

static cl_int CL_API_CALL read_rectangle(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                         const size_t *origin, const size_t *host_origin,
                                         const size_t *region, size_t pitch, size_t slice,
                                         size_t host_pitch, size_t host_slice, void *host,
                                         cl_uint waits, const cl_event *wait, cl_event *event) {
  COMMAND(clEnqueueReadBufferRect(queue, buffer, blocking, origin, host_origin, region, pitch,
                                  slice, host_pitch, host_slice, host, waits, wait, event));
}

static cl_int CL_API_CALL write_rectangle(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                          const size_t *origin, const size_t *host_origin,
                                          const size_t *region, size_t pitch, size_t slice,
                                          size_t host_pitch, size_t host_slice, const void *host,
                                          cl_uint waits, const cl_event *wait, cl_event *event) {
  COMMAND(clEnqueueWriteBufferRect(queue, buffer, blocking, origin, host_origin, region, pitch,
                                   slice, host_pitch, host_slice, host, waits, wait, event));
}

static cl_int CL_API_CALL run_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                     const size_t *offset, const size_t *global,
                                     const size_t *local, cl_uint waits, const cl_event *wait,
                                     cl_event *event) {
  COMMAND(clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, waits, wait, event));
}

static cl_int CL_API_CALL set_marker(cl_command_queue queue, cl_uint waits, const cl_event *wait,
                                     cl_event *event) {
  COMMAND(clEnqueueMarkerWithWaitList(queue, waits, wait, event));
}

static cl_int CL_API_CALL flush(cl_command_queue queue) {
  FAIL_CODE;
  return original.clFlush(queue);
}

static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t size, void *value,
                                     size_t *needed) {
  cl_int code = original.clGetEventInfo(event, what, size, value, needed);
  if (pretended != 0 && what == CL_EVENT_COMMAND_EXECUTION_STATUS) *(cl_int *)value = pretended;
  return code;
}

/* ---- switching ------------------------------------------------------------------------------- */
void driver_install(void) {
  if (installed) return;
  installed = true;
  original = scl_cl;
  scl_cl.clCreateContext = create_context;
  scl_cl.clReleaseContext = release_context;
  scl_cl.clCreateCommandQueue = create_queue;
  scl_cl.clReleaseCommandQueue = release_queue;
  scl_cl.clCreateProgramWithSource = create_program;
  scl_cl.clCreateProgramWithBinary = create_binary;
  scl_cl.clBuildProgram = build_program;
  scl_cl.clReleaseProgram = release_program;
  scl_cl.clCreateKernel = create_kernel;
  scl_cl.clReleaseKernel = release_kernel;
  scl_cl.clSetKernelArg = set_argument;
  scl_cl.clCreateBuffer = create_buffer;
  scl_cl.clCreateSubBuffer = create_part;
  scl_cl.clReleaseMemObject = release_buffer;
  scl_cl.clEnqueueMapBuffer = map_buffer;
  scl_cl.clEnqueueUnmapMemObject = unmap;
  scl_cl.clRetainEvent = retain_event;
  scl_cl.clReleaseEvent = release_event;
  scl_cl.clEnqueueReadBuffer = read_buffer;
  scl_cl.clEnqueueWriteBuffer = write_buffer;
  scl_cl.clEnqueueReadBufferRect = read_rectangle;
  scl_cl.clEnqueueWriteBufferRect = write_rectangle;
  scl_cl.clEnqueueNDRangeKernel = run_kernel;
  scl_cl.clEnqueueMarkerWithWaitList = set_marker;
  scl_cl.clFlush = flush;
  scl_cl.clFinish = finish;
  scl_cl.clGetEventInfo = event_info;
}

void driver_remove(void) {
  if (installed) scl_cl = original;
  installed = false;
}

driver_counts driver_counted(void) {
  count.calls = calls;
  count.programs = programs;
  return count;
}

bool driver_is_clean(driver_counts before) {
  return count.contexts == before.contexts && count.queues == before.queues &&
         programs == before.programs && count.kernels == before.kernels &&
         count.buffers == before.buffers && count.maps == before.maps &&
         count.events == before.events;
}

void driver_fail(long n, int code, bool persistent) {
  fail_in = n;
  fail_code = code;
  fail_on = persistent;
  if (n > 0) has_failed = false;
}

void driver_rewrite(const char *from, const char *to) {
  replaced = from;
  replacement = to;
  places = 0;
}

long driver_rewritten(void) {
  return places;
}

void driver_pretend(int state) {
  pretended = state;
}
