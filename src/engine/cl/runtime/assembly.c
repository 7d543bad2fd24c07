/* Programs with instructions of one processor, for which NVIDIA's driver of OpenCL does not
 * compile. Its binary is assembly, as text for the family of processors ("sm_90"). In the source
 * such an instruction is a comment, behind a mark (MMA_90 of inst/kernels/nvidia/mma_ptx.h). Here
 * the marks are taken out, the text is declared to be for that processor ("sm_90a"), and the driver
 * makes a program of it. Without a trial of its results such a program is not used. */
#include <stdlib.h>
#include <string.h>

#include "engine/cl/runtime/private.h"

static const char mark[] = "//sm_90a ", family[] = ".target sm_90,", one[] = ".target sm_90a,";

/* A copy of the text for the processor; NULL: not for that family, or no memory. */
static char *unmarked(const char *text) {
  const char *target = strstr(text, family), *next;
  char *copy = target != NULL ? malloc(strlen(text) + sizeof one) : NULL;
  if (copy == NULL) return NULL;
  char *to = copy;
  memcpy(to, text, (size_t)(target - text));
  to += target - text;
  memcpy(to, one, sizeof one - 1);
  to += sizeof one - 1;
  text = target + sizeof family - 1;
  while ((next = strstr(text, mark)) != NULL) {
    memcpy(to, text, (size_t)(next - text));
    to += next - text;
    text = next + sizeof mark - 1;
  }
  memcpy(to, text, strlen(text) + 1);
  return copy;
}

/* The binary of a program for one device, with a 0 after it, or NULL. */
static char *binary_of(cl_program program) {
  size_t bytes = 0;
  if (scl_cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) !=
      CL_SUCCESS)
    return NULL;
  char *binary = calloc(1, bytes + 1);
  if (binary != NULL && scl_cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary,
                                                &binary, NULL) == CL_SUCCESS)
    return binary;
  free(binary);
  return NULL;
}

cl_int scl_cl_assemble(const scl_cl_context *cl, const char *options, cl_program *program) {
  char *binary = binary_of(*program), *text = binary != NULL ? unmarked(binary) : NULL;
  const unsigned char *const texts[] = {(const unsigned char *)text};
  const size_t bytes = text != NULL ? strlen(text) : 0;
  cl_int code = CL_INVALID_BINARY, state = CL_SUCCESS;
  cl_program made = NULL;
  if (text != NULL)
    made = scl_cl.clCreateProgramWithBinary(cl->context, 1, &cl->device, &bytes,
                                            (const unsigned char **)texts, &state, &code);
  if (made != NULL) {
    code = scl_cl.clBuildProgram(made, 1, &cl->device, options, NULL, NULL);
    scl_cl.clReleaseProgram(*program);
    *program = made;
  }
  free(binary);
  free(text);
  return code;
}
