/* Buffers of the device engine. */
#include "scl_cl.h"

#include <stdlib.h>

scl_status scl_cl_buffer_create(scl_context *ctx, size_t bytes, scl_buffer **out) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  scl_cl_buffer *buffer = calloc(1, sizeof *buffer);
  if (buffer == NULL) return scl_fail_memory(sizeof *buffer, 0, "a buffer handle");
  cl_int code = CL_SUCCESS;
  buffer->memory = scl_cl.clCreateBuffer(cl->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
  if (buffer->memory == NULL || code != CL_SUCCESS) {
    free(buffer);
    scl_status status = scl_cl_fail(ctx, code, "clCreateBuffer");
    if (status != SCL_E_MEMORY) return status;
    return scl_fail_memory(bytes, ctx->memory.limit, "a matrix on the device");
  }
  *out = &buffer->base;
  return SCL_OK;
}

void scl_cl_buffer_destroy(scl_buffer *base) {
  scl_cl_buffer *buffer = (scl_cl_buffer *)base;
  if (buffer->written != NULL) scl_cl.clReleaseEvent(buffer->written);
  for (int q = 0; q < SCL_CL_QUEUES; q++) {
    if (buffer->read[q] != NULL) scl_cl.clReleaseEvent(buffer->read[q]);
  }
  /* The driver keeps the memory until the commands that use it are done. */
  scl_cl.clReleaseMemObject(buffer->memory);
  free(buffer);
}
