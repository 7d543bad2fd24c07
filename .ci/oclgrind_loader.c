/* A loader in front of the OpenCL loader, for runs under oclgrind 21.10, whose record of what is
 * initialised goes wrong in two cases that are no faults of a program: a buffer that takes the
 * place of a released one keeps the record, with the size, of that one; and a write from the host
 * to a part of a buffer loses the record of the rest. So buffers are not released here, and writes
 * from the host write the whole buffer. Its compiler crashes or hangs when two threads use it, so
 * programs are built one after another. Built and named in STATCL_LOADER by oclgrind.sh; all other
 * functions are those of libOpenCL, which this library is linked to. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef cl_int (*write_function)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *,
                                 cl_uint, const cl_event *, cl_event *);
typedef void (*build_callback)(cl_program, void *);
typedef cl_int (*build_function)(cl_program, cl_uint, const cl_device_id *, const char *,
                                 build_callback, void *);

/* A function of libOpenCL; `to` is where its address goes. */
static void find_real(const char *name, void *to) {
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
  void *symbol = library ? dlsym(library, name) : NULL;
  if (symbol == NULL) abort();
  memcpy(to, &symbol, sizeof symbol);
}

cl_int clBuildProgram(cl_program program, cl_uint devices, const cl_device_id *list,
                      const char *options, build_callback notify, void *data) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static build_function real;
  pthread_mutex_lock(&lock);
  if (real == NULL) find_real("clBuildProgram", &real);
  const cl_int code = real(program, devices, list, options, notify, data);
  pthread_mutex_unlock(&lock);
  return code;
}

cl_int clReleaseMemObject(cl_mem memory) {
  (void)memory;
  return CL_SUCCESS;
}

/* `rows` times `slices` pieces of `bytes` bytes. */
typedef struct {
  size_t start, row_pitch, slice_pitch;
} layout;

static cl_int write_all(cl_command_queue queue, cl_mem memory, layout to, layout from,
                        const void *data, size_t bytes, size_t rows, size_t slices, cl_uint waits,
                        const cl_event *wait, cl_event *event) {
  static write_function real;
  if (real == NULL) find_real("clEnqueueWriteBuffer", &real);
  size_t size = 0;
  cl_int code = waits > 0 ? clWaitForEvents(waits, wait) : CL_SUCCESS;
  if (code == CL_SUCCESS) {
    code = clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof size, &size, NULL);
  }
  char *all = malloc(size > 0 ? size : 1);
  if (code == CL_SUCCESS) {
    code = clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, size, all, 0, NULL, NULL);
  }
  if (code == CL_SUCCESS) {
    for (size_t s = 0; s < slices; s++) {
      for (size_t r = 0; r < rows; r++) {
        memcpy(all + to.start + r * to.row_pitch + s * to.slice_pitch,
               (const char *)data + from.start + r * from.row_pitch + s * from.slice_pitch, bytes);
      }
    }
    code = real(queue, memory, CL_TRUE, 0, size, all, 0, NULL, event);
  }
  free(all);
  return code;
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset,
                            size_t bytes, const void *data, cl_uint waits, const cl_event *wait,
                            cl_event *event) {
  (void)blocking;
  return write_all(queue, memory, (layout){.start = offset}, (layout){0}, data, bytes, 1, 1, waits,
                   wait, event);
}

cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                const size_t *origin, const size_t *host_origin,
                                const size_t *region, size_t row_pitch, size_t slice_pitch,
                                size_t host_row_pitch, size_t host_slice_pitch, const void *data,
                                cl_uint waits, const cl_event *wait, cl_event *event) {
  (void)blocking;
  layout to = {0, row_pitch, slice_pitch}, from = {0, host_row_pitch, host_slice_pitch};
  if (to.row_pitch == 0) to.row_pitch = region[0];
  if (from.row_pitch == 0) from.row_pitch = region[0];
  if (to.slice_pitch == 0) to.slice_pitch = to.row_pitch * region[1];
  if (from.slice_pitch == 0) from.slice_pitch = from.row_pitch * region[1];
  to.start = origin[0] + origin[1] * to.row_pitch + origin[2] * to.slice_pitch;
  from.start =
      host_origin[0] + host_origin[1] * from.row_pitch + host_origin[2] * from.slice_pitch;
  return write_all(queue, memory, to, from, data, region[0], region[1], region[2], waits, wait,
                   event);
}
