/* OpenCL devices as the rest of the core sees them: a list, and a context for one of them. */
#ifndef SCL_BASE_DEVICE_H
#define SCL_BASE_DEVICE_H

#include <stdatomic.h>

#include "base/context.h"

typedef enum {
  SCL_DEVICE_GPU = 0,
  SCL_DEVICE_CPU,
  SCL_DEVICE_ACCELERATOR,
  SCL_DEVICE_OTHER
} scl_device_type;

typedef struct {
  char id[16]; /* "platform:device", both counted from 0 in the loader's order */
  char name[128], vendor[128], platform[128], driver[64], version[128];
  scl_device_type type;
  bool fp64, compiler, host_memory; /* double precision; has a compiler; shares the host's memory */
  uint32_t units;                   /* compute units */
  uint32_t capability;              /* NVIDIA: 10 * major + minor, else 0 */
  bool integer_dot;                 /* cl_khr_integer_dot_product is listed */
  uint64_t memory, largest;         /* bytes in all, bytes in one buffer */
  uint64_t local_memory;            /* bytes a work-group */
  size_t work_group;                /* largest work-group */
} scl_device_info;

/* Where the kernel sources are: a folder, or the text that configure writes of all of them. The one
 * set last counts; copied. Must be set before the first context. */
void scl_device_set_kernels(const char *folder);
scl_status scl_device_set_packed_kernels(const char *text);

/* Products in double precision by 8-bit integers: 1, wherever they can be; 0, nowhere; -1, where
 * the device's tuning says so and they are expected to be faster. */
void scl_device_emulate(int mode);

/* Folder for a driver's compiled kernels (used by POCL, unless POCL_CACHE_DIR is set already);
 * copied. Must be set before the first list, by the thread that changes the environment: a thread
 * that lists the devices then changes none of it. */
void scl_device_set_cache(const char *folder);

/* Folder where built programs are kept between sessions; "" keeps none. Copied. It must be the
 * user's own, and contain nothing of others. */
void scl_device_set_store(const char *folder);

/* Opens the loader and lists all devices, once per process. A missing loader, platform or device is
 * not an error: the list is empty and scl_device_reason() says why. The list is borrowed. Drivers
 * may start threads here, which a fork does not copy: a child of the process that made the list can
 * read it, but opens nothing (SCL_E_FORK); the same status if a thread was at it when the process
 * forked. */
scl_status scl_device_list(const scl_device_info **out, size_t *count);
const char *scl_device_loader(void); /* file name of the loader in use, or "" */
const char *scl_device_reason(void); /* why the list is empty, or "" */

/* A new context on device `index` of the list, whose arithmetic is tried at the first one.
 * SCL_E_NO_FP64, SCL_E_NO_DEVICE, SCL_E_REFUSED, SCL_E_FORK, SCL_E_OPENCL. */
scl_status scl_device_open(size_t index, scl_context **out);
/* The same, in a thread that nobody waits for: once the driver has made its own threads, this one
 * gets only what others leave, as those of scl_device_beside_begin() do, unless other processes
 * want all cores. `rival`: whether BLAS is to leave it a core. */
scl_status scl_device_open_beside(size_t index, atomic_bool *rival, scl_context **out);
/* Its index in the list; info of a device context, NULL for the host. */
const scl_device_info *scl_device_of(const scl_context *ctx);

/* Why a context does not try kernels of matrix instructions, or "" if it does. */
const char *scl_device_variant(scl_context *ctx);

/* The programs with matrix instructions that have been tried: the name, and the reason for a
 * refusal, or "" if the trial succeeded. Start with *at = 0; false after the last. */
typedef struct {
  const char *program, *refusal;
} scl_device_trial;
bool scl_device_trial_next(const scl_context *ctx, int *at, scl_device_trial *out);

/* For messages: seconds that drivers have spent compiling, since they last compiled nothing for two
 * seconds, and the last device, or "". */
double scl_device_build_seconds(void);
const char *scl_device_build_name(void);

/* A program that a driver has built in this process, the seconds that it took, and its start in
 * seconds since that of the first one: the k-th of the first few hundred. False after the last. */
typedef struct {
  char program[40];
  double started, seconds;
} scl_device_build;
bool scl_device_build_at(size_t k, scl_device_build *out);

/* Kernels built in the background. Between begin and end this thread does not wait for the driver's
 * compiler: an operation whose kernels are not built launches nothing and fails with
 * SCL_E_BUILDING. Begin returns the mode before, which end takes back; the outermost end has
 * threads build what is missing, unless they still build something; it returns whether they begin.
 * They take no signals and call nothing of the host language. Builds stand ready for the next
 * request, with or without waiting. */
bool scl_device_beside_begin(bool on);
bool scl_device_beside_end(bool before);
/* For a call that has made all of its matrices itself, to the outermost end: it only asks for the
 * programs that it lacks. Operations count as done, without a content, nothing is transferred, and
 * the host gets zeros or a unit matrix, or nothing for large results that are not `read`. Lacks:
 * whether this is so. Asked: whether a program was missing since the outermost begin. */
void scl_device_beside_whole(bool read);
bool scl_device_beside_lacks(void);
bool scl_device_beside_asked(void);
/* The number of programs that threads are building, and of cores that BLAS should leave to them. */
int scl_device_beside_count(void);
int scl_device_beside_cores(void);
/* After how long others of them begin, if the first ones only get what the host leaves. `always`:
 * the first ones do, for tests, even where other processes want all cores. */
void scl_device_beside_patience(uint64_t us, bool always);
/* Begins no further build and waits for those in progress: for the end of the process, before
 * drivers release what they use. */
void scl_device_beside_stop(void);

/* A parameter of kernels that can be set for each device; no value changes a result beyond
 * rounding. `kinds`: of kernels for GPUs (1), for CPUs (2). The k-th; false after the last. */
typedef struct {
  const char *name, *meaning;
  int standard, kinds;
  size_t count;
  int permitted[8];
} scl_device_tunable;
bool scl_device_tunable_at(size_t k, scl_device_tunable *out);
/* Sets one for a device of the list, open or not. SCL_E_ARGUMENT: no such name or value. */
scl_status scl_device_tune(size_t index, const char *name, int value);

/* Returns to the driver the memory that a context keeps for its next workspaces. */
void scl_device_trim(scl_context *ctx);

/* Device time: sums the profiled spans of commands between begin and end. Events carry times only
 * in contexts opened while profiling is on. end waits; the result is in milliseconds, from the
 * first start to the last end of the work enqueued since begin. */
void scl_device_profiling(bool on);
scl_status scl_device_profile_begin(scl_context *ctx);
scl_status scl_device_profile_end(scl_context *ctx, double *milliseconds);

#endif
