/* Shared by the files of engine/cl/runtime/; operations only need engine/cl/runtime/cl.h. */
#ifndef SCL_ENGINE_CL_RUNTIME_PRIVATE_H
#define SCL_ENGINE_CL_RUNTIME_PRIVATE_H

#include <stdatomic.h>

#include "base/digest.h"
#include "engine/cl/runtime/cl.h"

/* Why the list of devices is empty. */
SCL_PRINTF(1, 2)
void scl_cl_set_reason(const char *format, ...);

typedef struct {
  cl_platform_id platform;
  cl_device_id device;
} scl_cl_handle;

/* The driver's handles of a device of the list; NULL when there is none. */
const scl_cl_handle *scl_cl_handle_of(size_t index);

/* The process that made the list: drivers work only in that process. */
long scl_cl_listed_by(void);
/* SCL_E_FORK: in another one. */
scl_status scl_cl_forked(void);

/* Releases the buffers of the pool. */
void scl_cl_pool_free(scl_cl_context *cl);

/* Counts the time since `start` (scl_clock_us()) as spent on compiling. */
void scl_cl_count_build(const scl_cl_context *cl, uint64_t start);

/* SCL_E_BUILD if POCL has no room left for the files by which it compiles, which would end the
 * process. */
scl_status scl_cl_require_room(const scl_cl_context *cl);

/* Programs kept in files (store.c). `name` is the file's, the digest of what the program is made
 * from; false: this context keeps none. */
bool scl_cl_store_name(const scl_cl_context *cl, cl_uint count, const char **text,
                       const char *options, scl_digest *name);
cl_program scl_cl_store_read(scl_cl_context *cl, const scl_digest *name); /* or NULL */
void scl_cl_store_write(const scl_cl_context *cl, const scl_digest *name, cl_program program);
/* Other files of the store, for all platforms: whether there is one with these contents; writes it.
 */
bool scl_cl_store_holds(const scl_digest *name, const void *contents, size_t bytes);
void scl_cl_store_put(const scl_digest *name, const void *contents, size_t bytes);

/* A program to build. Once `done`, `code` is the result of the build. */
typedef struct {
  cl_program program;
  cl_program kept;   /* from a file, tried first, or NULL */
  bool keep;         /* in a file, once built */
  bool marked;       /* instructions of one processor (assembly.c) */
  scl_digest stored; /* name of the file */
  const char *name;
  uint64_t started; /* of the clock */
  double seconds;   /* that it took */
  cl_int code;
  bool done;
  bool counted; /* among the builds of this process, and in a file */
} scl_cl_build;

enum { SCL_CL_OPTIONS = 160 };

/* Programs to build, by threads that take one after another. */
typedef struct {
  const scl_cl_context *cl;
  char options[SCL_CL_OPTIONS];
  scl_cl_build *build;
  int count;
  atomic_int next; /* the first build that no thread has taken */
} scl_cl_build_list;

void scl_cl_build_options(const scl_cl_context *cl, char options[SCL_CL_OPTIONS]);
/* Builds all, side by side, and polls meanwhile. It fails only if the user wants to stop: builds
 * that had begun are then completed, the others are not started. */
scl_status scl_cl_build_wait(scl_cl_context *cl, scl_cl_build *build, int count);
/* A list of these builds, and the work and number of its threads. */
void scl_cl_build_list_begin(scl_cl_build_list *list, const scl_cl_context *cl, scl_cl_build *build,
                             int count);
void scl_cl_build_some(void *list, int part, int parts);
int scl_cl_build_threads(const scl_cl_context *cl, int count);
/* Keeps a record of a build, and its binary. Not in a thread. */
void scl_cl_build_count(scl_cl_context *cl, scl_cl_build *build);

/* Builds in the background (beside.c). Whether this thread asks for programs instead of waiting. */
bool scl_cl_asks(void);
/* At the end of an operation that lacks kernels: whether it counts as done, and those after it lack
 * its content (scl_device_beside_whole()). */
bool scl_cl_goes_on(void);
/* Whether operations lack content, and whether they did before. */
bool scl_cl_set_lacks(bool on);
/* Whether somebody may read a result of so many numbers that is not there. */
bool scl_cl_is_read(size_t numbers);
/* Takes what is not done of some builds, to have it built when the call has ended: their programs
 * are NULL then. SCL_E_BUILDING. */
scl_status scl_cl_beside_ask(scl_cl_context *cl, scl_cl_build *build, int count);
/* A build made in the background, of a source with this digest; false: there is none. Waits for one
 * in progress if this thread waits for programs. */
scl_status scl_cl_beside_take(scl_cl_context *cl, const scl_digest *name, scl_cl_build *out,
                              bool *found);
/* Keeps a build for the next request. */
void scl_cl_beside_put(scl_cl_context *cl, const scl_cl_build *build);
/* Releases the builds of a context. */
void scl_cl_beside_free(scl_cl_context *cl);

/* Replaces a program that has been built by the one with its marked instructions. The code of what
 * failed; then it is the one to ask for the log. */
cl_int scl_cl_assemble(const scl_cl_context *cl, const char *options, cl_program *program);

scl_status scl_cl_build_create(scl_cl_context *cl, cl_uint count, const char **text,
                               const char *name, scl_cl_build *out);
/* Builds all of them, or asks for what is missing if this thread does not wait (SCL_E_BUILDING).
 * Whether a program compiled is in its `code`. */
scl_status scl_cl_build_all(scl_cl_context *cl, scl_cl_build *build, int count);
/* The program, or SCL_E_BUILD with the log; then it is released. */
scl_status scl_cl_build_take(scl_cl_context *cl, scl_cl_build *build, const char *name,
                             cl_program *out);

/* Whether a kernel of the program has been requested. */
bool scl_cl_program_has_run(const scl_cl_context *cl, scl_cl_program which);

/* Builds a program of the table if that has not been done. */
scl_status scl_cl_program_need(scl_cl_context *cl, scl_cl_program which);

/* The fault that STATCL_TRIAL_FAULT requests in tests: "build:NAME" or "result:NAME", several
 * separated by commas; NAME may end in "*". */
typedef enum { SCL_CL_FAULT_NONE = 0, SCL_CL_FAULT_BUILD, SCL_CL_FAULT_RESULT } scl_cl_fault;
scl_cl_fault scl_cl_trial_fault(scl_cl_program which, const char *name);
/* Whether it has "device:NAME": a primitive of the device's own trial counts as wrong. */
bool scl_cl_primitive_fault(const char *name);

/* Tries the device of a new context (primitives.c); SCL_E_REFUSED, with what is wrong. Once in a
 * process, and where programs are kept, once for a driver. For tests: forgets what the process
 * knows. */
scl_status scl_cl_primitives_try(scl_cl_context *cl);
void scl_cl_primitives_forget(void);

/* Releases programs and kernels. */
void scl_cl_programs_free(scl_cl_context *cl);

/* Releases the kernels of lazy arithmetic. */
void scl_cl_exprs_free(scl_cl_context *cl);
/* Releases the kernels of recursions. */
void scl_cl_scans_free(scl_cl_context *cl);

/* Updates the counts of complete commands from the marks of the queues. Never waits, makes no mark.
 */
void scl_cl_update_progress(scl_cl_context *cl);

/* Whether the first `count` commands of a queue are complete, without waiting. Makes a mark if no
 * later one exists. Returns the error of a failed command. */
scl_status scl_cl_passed(scl_cl_context *cl, int queue, uint64_t count, bool *out);

/* Whether an event's command is complete, likewise. */
scl_status scl_cl_happened(scl_cl_context *cl, cl_event event, bool *out);

#endif
