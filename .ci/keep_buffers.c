/* An OpenCL loader for the simulator: the real one, but memory is never given back. oclgrind loses
 * track of what is initialised in a buffer that takes the place of a released one, and then reports
 * reads of uninitialised memory that are none. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

cl_int clReleaseMemObject(cl_mem memory) {
  (void)memory;
  return CL_SUCCESS;
}
