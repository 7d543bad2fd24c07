/* Built programs kept in files between sessions, if the user wants that.
 *
 * A file is named by the digest of what its program was made from: source, options, device and
 * driver. It holds a head and the driver's binary. A binary reaches a driver only if the head, the
 * length and the digest of the contents are right, as damaged ones crash drivers. Files are written
 * under a temporary name and renamed, so that other processes see complete ones only. A file that
 * cannot be read or written is no error: the program is built from its source. Anything but a plain
 * file of this user is left unchanged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/threads.h"
#include "engine/cl/runtime/private.h"

static char folder[1024];

void scl_device_set_store(const char *path) {
  snprintf(folder, sizeof folder, "%s", path);
}

typedef struct {
  char mark[8];
  uint64_t bytes;
  scl_digest name, contents;
} file_head;

static const char mark[8] = "statcl1";
enum { LARGEST = 64 << 20, PATH_ROOM = sizeof folder + 80 };

/* POCL has files of its own, which hold more than its binaries: machine code for the sizes of
 * groups in use. STATCL_KEEP_BINARIES=1 has it keep binaries too, for tests. */
static bool keeps_binaries(const scl_cl_context *cl) {
  if (folder[0] == '\0') return false;
  const char *asked = scl_env("STATCL_KEEP_BINARIES");
  if (asked != NULL && strcmp(asked, "1") == 0) return true;
  return strstr(cl->info.platform, "Portable") == NULL;
}

bool scl_cl_store_name(const scl_cl_context *cl, cl_uint count, const char **text,
                       const char *options, scl_digest *name) {
  const scl_device_info *info = &cl->info;
  const char *maker[] = {options,        info->name,   info->vendor,
                         info->platform, info->driver, info->version};
  *name = scl_digest_begin();
  for (size_t k = 0; k < sizeof maker / sizeof *maker; k++) {
    scl_digest_add(name, maker[k], strlen(maker[k]));
  }
  for (cl_uint k = 0; k < count; k++) scl_digest_add(name, text[k], strlen(text[k]));
  return keeps_binaries(cl);
}

static void write_path(const scl_digest *name, char path[PATH_ROOM]) {
  char digits[SCL_DIGEST_TEXT];
  scl_digest_write(name, digits);
  snprintf(path, PATH_ROOM, "%s/%s.bin", folder, digits);
}

static file_head head_of(const scl_digest *name, const unsigned char *binary, size_t bytes) {
  file_head head;
  memset(&head, 0, sizeof head);
  memcpy(head.mark, mark, sizeof mark);
  head.bytes = bytes;
  head.name = *name;
  head.contents = scl_digest_begin();
  scl_digest_add(&head.contents, binary, bytes);
  return head;
}

/* The contents of a file if they are whole, else NULL; the caller frees them. */
static unsigned char *read_open(FILE *file, const scl_digest *name, size_t *bytes) {
  file_head head;
  if (fread(&head, sizeof head, 1, file) != 1) return NULL;
  if (memcmp(head.mark, mark, sizeof mark) != 0 || head.bytes == 0 || head.bytes > LARGEST)
    return NULL;
  *bytes = (size_t)head.bytes;
  unsigned char *binary = malloc(*bytes + 1);
  if (binary == NULL) return NULL;
  if (fread(binary, 1, *bytes + 1, file) == *bytes) { /* and nothing follows */
    const file_head right = head_of(name, binary, *bytes);
    if (memcmp(&head, &right, sizeof head) == 0) return binary;
  }
  free(binary);
  return NULL;
}

/* The same by its name; removes what is damaged. */
static unsigned char *read_whole(const scl_digest *name, size_t *bytes) {
  char path[PATH_ROOM];
  write_path(name, path);
  FILE *file = scl_path_kind_of(path) == SCL_PATH_FILE ? fopen(path, "rb") : NULL;
  if (file == NULL) return NULL;
  unsigned char *binary = read_open(file, name, bytes);
  fclose(file);
  if (binary == NULL) remove(path);
  return binary;
}

cl_program scl_cl_store_read(scl_cl_context *cl, const scl_digest *name) {
  size_t bytes = 0;
  unsigned char *binary = read_whole(name, &bytes);
  if (binary == NULL) return NULL;
  const unsigned char *binaries[] = {binary};
  cl_int code = CL_SUCCESS, state = CL_SUCCESS;
  cl_program program = scl_cl.clCreateProgramWithBinary(cl->context, 1, &cl->device, &bytes,
                                                        binaries, &state, &code);
  free(binary);
  if (program != NULL && (code != CL_SUCCESS || state != CL_SUCCESS)) {
    scl_cl.clReleaseProgram(program);
    return NULL;
  }
  return program;
}

static bool write_file(const char *path, const file_head *head, const unsigned char *binary) {
  static unsigned written;
  char temporary[PATH_ROOM + 40];
  snprintf(temporary, sizeof temporary, "%s.%ld-%u.part", path, scl_process_id(), written++);
  FILE *file = fopen(temporary, "wbx");
  if (file == NULL) return false;
  bool right = fwrite(head, sizeof *head, 1, file) == 1 &&
               fwrite(binary, 1, (size_t)head->bytes, file) == head->bytes;
  right = fclose(file) == 0 && right;
  right = right && rename(temporary, path) == 0;
  if (!right) remove(temporary);
  return right;
}

void scl_cl_store_put(const scl_digest *name, const void *contents, size_t bytes) {
  char path[PATH_ROOM];
  if (folder[0] == '\0') return;
  const file_head head = head_of(name, contents, bytes);
  write_path(name, path);
  if (scl_path_kind_of(path) != SCL_PATH_OTHER && !write_file(path, &head, contents))
    folder[0] = '\0'; /* a full disk: no further attempts */
}

void scl_cl_store_write(const scl_cl_context *cl, const scl_digest *name, cl_program program) {
  cl_uint devices = 0;
  size_t bytes = 0;
  if (!keeps_binaries(cl)) return;
  if (scl_cl.clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof devices, &devices, NULL) !=
          CL_SUCCESS ||
      devices != 1 ||
      scl_cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) !=
          CL_SUCCESS ||
      bytes == 0 || bytes > LARGEST)
    return;
  unsigned char *binary = malloc(bytes);
  if (binary == NULL) return;
  if (scl_cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) ==
      CL_SUCCESS) {
    scl_cl_store_put(name, binary, bytes);
  }
  free(binary);
}

/* ---- other files ----------------------------------------------------------------------------- */
bool scl_cl_store_holds(const scl_digest *name, const void *contents, size_t bytes) {
  size_t found = 0;
  unsigned char *there = folder[0] != '\0' ? read_whole(name, &found) : NULL;
  const bool same = there != NULL && found == bytes && memcmp(there, contents, bytes) == 0;
  free(there);
  return same;
}
