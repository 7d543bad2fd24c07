/* Programs: sources as installed or from a folder, built at first use; kernels, kept with the
 * context. */
#include "engine/cl/runtime/cl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cl/runtime/private.h"
#include "engine/cl/runtime/signature.h"
#include "base/threads.h"

enum { MOST_SOURCES = 32 };

static char kernel_folder[1024];
static char *packed_sources; /* of all programs, if they do not come from a folder */

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

scl_cl_program scl_cl_program_of(scl_cl_kernel which) {
  return kernels[which].program;
}

void scl_device_set_kernels(const char *folder) {
  snprintf(kernel_folder, sizeof kernel_folder, "%s", folder);
  free(packed_sources);
  packed_sources = NULL;
}

scl_status scl_device_set_packed_kernels(const char *text) {
  const size_t size = strlen(text) + 1;
  char *copy = malloc(size);
  if (copy == NULL) return scl_fail_memory(size, 0, "the kernel sources");
  memcpy(copy, text, size);
  free(packed_sources);
  packed_sources = copy;
  return SCL_OK;
}

/* ---- sources --------------------------------------------------------------------------------- */
static char *read_stream(FILE *stream) {
  if (fseek(stream, 0, SEEK_END) != 0) return NULL;
  long size = ftell(stream);
  const long most = 64L << 20; /* a folder can be opened, and reports a larger size */
  if (size < 0 || size > most || fseek(stream, 0, SEEK_SET) != 0) return NULL;
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

/* The text of a file, or NULL. */
static char *read_file(const char *path) {
  FILE *stream = fopen(path, "rb");
  if (stream == NULL) return NULL;
  char *text = read_stream(stream);
  fclose(stream);
  return text;
}

/* A copy of the part of the packed sources (configure writes them) that follows the line "@@ name",
 * or NULL. */
static char *copy_packed(const char *name) {
  char mark[80];
  const int length = snprintf(mark, sizeof mark, "@@ %s\n", name);
  for (const char *at = strstr(packed_sources, mark); at != NULL; at = strstr(at + 1, mark)) {
    if (at != packed_sources && at[-1] != '\n') continue;
    const char *part = at + length, *end = strstr(part, "\n@@ ");
    const size_t size = end != NULL ? (size_t)(end - part) + 1 : strlen(part);
    char *text = malloc(size + 1);
    if (text == NULL) return NULL;
    memcpy(text, part, size);
    text[size] = '\0';
    return text;
  }
  return NULL;
}

scl_status scl_cl_source_read(const char *name, char **out) {
  if (strchr(name, '=') != NULL) return write_definition(name, out);
  char path[sizeof kernel_folder + 64];
  snprintf(path, sizeof path, "%s/%s", kernel_folder, name);
  char *text = packed_sources != NULL ? copy_packed(name) : read_file(path);
  if (text == NULL) {
    return scl_fail(SCL_E_BUILD, "kernel source '%s' cannot be read: reinstall statcl", name);
  }
  *out = text;
  return SCL_OK;
}

/* Words that stand for sources which many programs have: their list would be long. */
static const char *common_sources(const char *word) {
  if (strcmp(word, "@glm") == 0)
    return "include/port.h include/glm_terms.h include/glm_families.h include/glm_task.h";
  if (strcmp(word, "@glm_pass") == 0)
    return "include/glm_pass.h include/glm_tile.h include/glm_link.h";
  if (strcmp(word, "@leapfrog_near") == 0) /* in local memory */
    return "include/leapfrog_sum.h LEAPFROG_SPACE=__local LEAPFROG_FENCE=CLK_LOCAL_MEM_FENCE "
           "include/leapfrog.h";
  return NULL;
}

/* Adds the words of a program's sources in order; the caller frees text[0 .. *count - 1], also on
 * failure. */
static scl_status read_sources(const char *sources, char *text[MOST_SOURCES], cl_uint *count) {
  const char *at = sources;
  while (*at != '\0') {
    char name[64];
    size_t length = strcspn(at, " ");
    if (length >= sizeof name || *count == MOST_SOURCES) {
      return scl_fail(SCL_E_BUILD, "internal: too many or too long sources: %s", sources);
    }
    memcpy(name, at, length);
    name[length] = '\0';
    if (common_sources(name) != NULL) {
      SCL_TRY(read_sources(common_sources(name), text, count));
    } else {
      SCL_TRY(scl_cl_source_read(name, &text[*count]));
      ++*count;
    }
    at += length;
    at += strspn(at, " ");
  }
  return SCL_OK;
}

/* ---- programs and kernels -------------------------------------------------------------------- */
static scl_status create_build(scl_cl_context *cl, scl_cl_program which, scl_cl_build *out) {
  char *text[MOST_SOURCES];
  cl_uint count = 0;
  scl_status status;
  if (cl->kinds[which] != 0) {
    char kinds[40];
    snprintf(kinds, sizeof kinds, "PROGRAM_KINDS=%u", cl->kinds[which]);
    SCL_GO(read_sources(kinds, text, &count));
  }
  SCL_GO(read_sources(programs[which].sources, text, &count));
  if (scl_cl_trial_fault(which, programs[which].name) == SCL_CL_FAULT_BUILD)
    memcpy(text[0], "#error\n/*", 9);
  SCL_GO(scl_cl_build_create(cl, count, (const char **)text, programs[which].name, out));
  out->marked = which == SCL_CL_PROGRAM_integers_wgmma && !cl->emulated_mma;
done:
  while (count > 0) free(text[--count]);
  return status;
}

/* Keeps the built program, unless another call has built it in the meantime. */
static void keep_program(scl_cl_context *cl, scl_cl_program which, cl_program program) {
  if (cl->program[which] == NULL) {
    cl->program[which] = program;
  } else {
    scl_cl.clReleaseProgram(program);
  }
}

scl_status scl_cl_program_need(scl_cl_context *cl, scl_cl_program which) {
  scl_cl_build build;
  cl_program program;
  if (cl->program[which] != NULL) return SCL_OK;
  SCL_TRY(create_build(cl, which, &build));
  const scl_status stopped = scl_cl_build_all(cl, &build, 1);
  if (stopped == SCL_E_BUILDING) return stopped;
  if (stopped != SCL_OK && build.code == CL_SUCCESS && build.done) {
    keep_program(cl, which, build.program);
    return stopped;
  }
  SCL_TRY(scl_cl_build_take(cl, &build, programs[which].name, &program));
  keep_program(cl, which, program);
  return SCL_OK;
}

scl_status scl_cl_programs_prepare(scl_cl_context *cl, int count, const scl_cl_program *list) {
  enum { MOST = 16 };
  scl_cl_build build[MOST];
  scl_cl_program which[MOST];
  int builds = 0;
  for (int i = 0; i < count && builds < MOST; i++) {
    bool known = cl->program[list[i]] != NULL || scl_cl_is_refused(cl, list[i]);
    for (int k = 0; k < builds && !known; k++) known = which[k] == list[i];
    if (known) continue;
    if (create_build(cl, list[i], &build[builds]) == SCL_OK) which[builds++] = list[i];
  }
  if (builds == 0) return SCL_OK;
  const scl_status status = scl_cl_build_all(cl, build, builds);
  for (int i = 0; i < builds; i++) {
    if (build[i].done && build[i].code == CL_SUCCESS) {
      keep_program(cl, which[i], build[i].program);
    } else if (build[i].done && scl_cl_asks()) {
      scl_cl_beside_put(cl, &build[i]); /* it fails when it is used */
    } else if (build[i].program != NULL) {
      scl_cl.clReleaseProgram(build[i].program);
    }
  }
  return status == SCL_E_BUILDING ? SCL_OK : status;
}

const char *scl_cl_program_name(scl_cl_program which) {
  return programs[which].name;
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
  /* A size for which the kernel was compiled takes precedence over the general limit. */
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
    SCL_TRY(scl_cl_program_need(cl, program));
    SCL_TRY(scl_cl_kernel_make(cl, cl->program[program], kernels[which].name, &k));
    scl_status status = scl_cl_signature_check(cl, which, k.kernel, k.name);
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

/* ---- selections ------------------------------------------------------------------------------ */
/* A program may be built from a part of its sources, as the current call needs it. One build is in
 * use at a time; others are kept aside with their kernels, until there are too many. */
enum { MOST_KEPT = 16, MOST_KERNELS = 2 }; /* builds of all programs; kernels of such a program */

typedef struct {
  scl_cl_program which;
  unsigned kinds;
  cl_program program; /* NULL: not in use */
  cl_kernel kernel[MOST_KERNELS];
  size_t items[MOST_KERNELS];
  uint64_t local[MOST_KERNELS];
} kept_build;

struct scl_cl_kept {
  kept_build build[MOST_KEPT];
  int next; /* to be dropped */
};

static void drop(kept_build *b) {
  for (int k = 0; k < MOST_KERNELS; k++) {
    if (b->kernel[k] != NULL) scl_cl.clReleaseKernel(b->kernel[k]);
  }
  if (b->program != NULL) scl_cl.clReleaseProgram(b->program);
  *b = (kept_build){0};
}

static void free_kept(scl_cl_context *cl) {
  for (int i = 0; cl->kept != NULL && i < MOST_KEPT; i++) drop(&cl->kept->build[i]);
  free(cl->kept);
  cl->kept = NULL;
}

/* Exchanges the build in use and `other`. */
static void exchange(scl_cl_context *cl, scl_cl_program which, kept_build *other) {
  kept_build now = {which, cl->kinds[which], cl->program[which], {NULL}, {0}, {0}};
  for (int k = 0, i = 0; k < SCL_CL_KERNELS && i < MOST_KERNELS; k++) {
    if (kernels[k].program != which) continue;
    now.kernel[i] = cl->kernel[k];
    now.items[i] = cl->kernel_items[k];
    now.local[i] = cl->kernel_local[k];
    cl->kernel[k] = other->kernel[i];
    cl->kernel_items[k] = other->items[i];
    cl->kernel_local[k] = other->local[i++];
  }
  cl->program[which] = other->program;
  *other = now;
}

void scl_cl_program_select(scl_cl_context *cl, scl_cl_program which, unsigned kinds) {
  kept_build *to = NULL, none = {0};
  if (cl->kinds[which] == kinds) return;
  if (cl->kept == NULL) cl->kept = calloc(1, sizeof *cl->kept);
  for (int i = 0; cl->kept != NULL && i < MOST_KEPT; i++) {
    kept_build *b = &cl->kept->build[i];
    if (b->program != NULL && b->which == which && b->kinds == kinds) {
      to = b;
      break;
    }
    if (b->program == NULL && to == NULL) to = b;
  }
  if (to == NULL && cl->kept != NULL) {
    to = &cl->kept->build[cl->kept->next];
    cl->kept->next = (cl->kept->next + 1) % MOST_KEPT;
    drop(to);
  }
  exchange(cl, which, to != NULL ? to : &none);
  drop(&none); /* without memory to keep it */
  cl->kinds[which] = kinds;
}

bool scl_cl_program_has_run(const scl_cl_context *cl, scl_cl_program which) {
  for (int k = 0; k < SCL_CL_KERNELS; k++) {
    if (kernels[k].program == which && cl->kernel[k] != NULL) return true;
  }
  return false;
}

void scl_cl_programs_free(scl_cl_context *cl) {
  for (int k = 0; k < SCL_CL_KERNELS; k++) {
    if (cl->kernel[k] != NULL) scl_cl.clReleaseKernel(cl->kernel[k]);
  }
  for (int p = 0; p < SCL_CL_PROGRAMS; p++) {
    if (cl->program[p] != NULL) scl_cl.clReleaseProgram(cl->program[p]);
    free(cl->trial[p].reason);
  }
  free_kept(cl);
  scl_cl_beside_free(cl);
}
