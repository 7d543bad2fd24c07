/* Interface of the device engine's runtime, for the files of engine/cl/ only.
 *
 * Order. A context has several in-order queues: two for computing, one for each direction of the
 * bus. The commands of a queue are counted. Each buffer remembers the queue and the count of its
 * last write and, for each queue, the count of the last read since. An operation (scl_cl_op) picks
 * the queue that last wrote its inputs (so a chain of operations stays in one queue), waits for
 * other queues only, and leaves its count on the buffers that it touched.
 *
 * Events cost a driver more than a launch does. Therefore the commands of a queue have none; when
 * the host or another queue has to wait for a count, the queue gets a mark, an event that is
 * complete when all commands before it are. */
#ifndef SCL_ENGINE_CL_RUNTIME_CL_H
#define SCL_ENGINE_CL_RUNTIME_CL_H

#include "engine/cl/runtime/opencl.h"

#include "engine/cl/glm/layouts.h"
#include "base/device.h"
#include "base/engine.h"
#include "base/sizes.h"

/* ---- the loader's functions (engine/cl/runtime/loader.c)
 * ------------------------------------------------- */
typedef struct {
#define SCL_CL_FN(result, name, parameters) result(CL_API_CALL *name) parameters;
#include "engine/cl/runtime/functions.def"
#undef SCL_CL_FN
} scl_cl_functions;

extern scl_cl_functions scl_cl; /* scl_cl.clFinish(queue) */

/* Opens the loader; false, with scl_device_reason() set, when there is none. */
bool scl_cl_load(void);

/* The status of a failed call: SCL_E_MEMORY for -4, -61 and -6; -5, -14, -36 and -9999 mark the
 * context lost; SCL_E_OPENCL for others. `ctx` may be NULL. */
scl_status scl_cl_fail(scl_context *ctx, cl_int code, const char *where);
const char *scl_cl_code_name(cl_int code);

#define SCL_CL_TRY(ctx, call, where)                                                               \
  do {                                                                                             \
    cl_int code_ = (call);                                                                         \
    if (code_ != CL_SUCCESS) return scl_cl_fail((scl_context *)(ctx), code_, where);               \
  } while (0)

/* ---- context, programs, kernels ------------------------------------------------------------- */
enum { SCL_CL_COMPUTE_0, SCL_CL_COMPUTE_1, SCL_CL_UPLOAD, SCL_CL_DOWNLOAD, SCL_CL_QUEUES };

/* A program is some files of inst/kernels/ in order (engine/cl/runtime/kernels.def), built at first
 * use. */
typedef enum {
#define SCL_CL_PROGRAM(name, sources) SCL_CL_PROGRAM_##name,
#include "engine/cl/runtime/kernels.def"
  SCL_CL_PROGRAMS
} scl_cl_program;

typedef enum {
#define SCL_CL_KERNEL_OF(program, name, signature) SCL_K_##name,
#define SCL_CL_KERNEL(program, name, parameters) SCL_K_##name,
#include "engine/cl/runtime/kernels.def"
  SCL_CL_KERNELS
} scl_cl_kernel;

struct scl_cl_staging; /* engine/cl/runtime/staging.c */

/* Whether this device may try programs of matrix instructions (engine/cl/runtime/variant.c). */
typedef enum {
  SCL_CL_VARIANT_UNKNOWN = 0,
  SCL_CL_VARIANT_PORTABLE,
  SCL_CL_VARIANT_MMA
} scl_cl_variant;

/* The result of the trial of one of them. */
typedef struct {
  enum { SCL_CL_UNTRIED = 0, SCL_CL_TRYING, SCL_CL_PASSED, SCL_CL_REFUSED } state;
  char *reason; /* of a refusal */
} scl_cl_trial;

typedef struct scl_cl_slab scl_cl_slab; /* engine/cl/runtime/memory.c */

typedef struct scl_cl_buffer {
  scl_buffer base;
  cl_mem memory;
  size_t capacity;   /* bytes of `memory` */
  scl_cl_slab *slab; /* the slab that it is a part of, or NULL */
  uint64_t written;  /* count of the last write; 0: none */
  int written_on;    /* its queue */
  uint64_t read[SCL_CL_QUEUES];
  int home; /* of a temporary: the one queue that uses it; else -1 */
  /* In the pool: neighbours of its class, and when it came. */
  struct scl_cl_buffer *newer, *older;
  uint64_t released;
} scl_cl_buffer;

/* One class of size in the pool. */
typedef struct {
  scl_cl_buffer *newest, *oldest;
} scl_cl_shelf;

enum { SCL_CL_CLASSES = 160 };

typedef struct {
  scl_context base;
  scl_device_info info;
  size_t index; /* in the device list */
  bool cpu;     /* work-items are vector lanes of a core: other tile sizes */
  bool profiled;
  cl_context context;
  cl_device_id device;
  cl_command_queue queue[SCL_CL_QUEUES];
  uint64_t enqueued[SCL_CL_QUEUES]; /* commands given to each queue */
  uint64_t flushed[SCL_CL_QUEUES];  /* of these, flushed */
  uint64_t done[SCL_CL_QUEUES];     /* of these, known to be complete */
  cl_event mark[SCL_CL_QUEUES];     /* complete when the first `marked` commands are; may be NULL */
  uint64_t marked[SCL_CL_QUEUES];
  unsigned next_compute; /* in turn, for work that depends on no pending command */
  int last_compute;      /* the compute queue used last */
  cl_program program[SCL_CL_PROGRAMS];
  unsigned kinds[SCL_CL_PROGRAMS]; /* what each is built for (scl_cl_program_select()); 0: all */
  cl_kernel kernel[SCL_CL_KERNELS];
  size_t kernel_items[SCL_CL_KERNELS];   /* largest work-group */
  uint64_t kernel_local[SCL_CL_KERNELS]; /* bytes of local memory without its parameters */
  uint64_t launches[SCL_CL_KERNELS];     /* so far, for tests */
  struct scl_cl_kept *kept;              /* other builds (engine/cl/runtime/program.c) */
  struct scl_cl_staging *staging[2];     /* pinned memory: up, down; made at first use */
  cl_event profile_first[SCL_CL_QUEUES], profile_last[SCL_CL_QUEUES];
  bool profiling;
  /* Released buffers by home + 1 and size, and the slab that parts come from
   * (engine/cl/runtime/memory.c). */
  scl_cl_shelf shelf[SCL_CL_QUEUES + 1][SCL_CL_CLASSES];
  uint64_t releases;
  uint64_t freed; /* memory objects released by the driver */
  size_t pooled;  /* buffers */
  scl_cl_slab *slab;
  size_t slab_bytes; /* of all slabs */
  cl_mem batch_flag; /* set when a matrix of a batch has failed (engine/cl/batch/batch.c) */
  cl_int batch_seen; /* its value as last read */
  struct scl_cl_exprs
      *exprs; /* generated kernels (engine/cl/elementwise/plan_cache.c); made at first use */
  unsigned walks_apart;      /* that are to have a launch for each point (engine/cl/glm/glm.c) */
  struct scl_cl_scan *scans; /* those of recursions (engine/cl/elementwise/scan.c) */
  scl_cl_variant variant;
  bool small_mma;             /* matrix instructions of compute capability 8.0 (mma.h) */
  bool emulated_mma;          /* the same in plain OpenCL C, for tests */
  const char *variant_reason; /* why matrix instructions are not tried, or "" */
  scl_cl_trial trial[SCL_CL_PROGRAMS];
} scl_cl_context;

/* A kernel of this context; its program is built at the first use, with the same options for all
 * programs (engine/cl/runtime/build.c). SCL_E_BUILD, with the log. */
scl_status scl_cl_kernel_get(scl_cl_context *cl, scl_cl_kernel which, cl_kernel *out);
const char *scl_cl_kernel_name(scl_cl_kernel which);
const char *scl_cl_program_name(scl_cl_program which);
scl_cl_program scl_cl_program_of(scl_cl_kernel which);

/* Has launches use the build of a program for these kinds from now on: its source then starts with
 * "#define PROGRAM_KINDS kinds". Nothing is built yet. The latest builds for other kinds are kept.
 */
void scl_cl_program_select(scl_cl_context *cl, scl_cl_program which, unsigned kinds);

/* Builds those programs of a list that are not built yet, side by side, for a call that will need
 * them. It fails only if the user wants to stop; a program that does not compile fails when it is
 * used. */
scl_status scl_cl_programs_prepare(scl_cl_context *cl, int count, const scl_cl_program *list);

/* ---- programs of matrix instructions (engine/cl/runtime/variant.c) -------------------------- */
/* Whether this device may try them, decided once per context; nothing is built. */
bool scl_cl_may_try_mma(scl_cl_context *cl);
/* The larger instructions, and local memory for eight groups of a unit (glm_mma_tile.h): not from
 * compute capability 12.0 on, where double precision is slow. */
bool scl_cl_may_try_large_mma(scl_cl_context *cl);
/* The instruction for 8-bit integers: of more devices. */
bool scl_cl_may_try_bytes(scl_cl_context *cl);
/* That of four warps: of compute capability 9.0 alone. */
bool scl_cl_may_try_warpgroups(scl_cl_context *cl);

/* Bytes that loads ask the second-level cache to keep, two thirds of that of compute capability
 * 9.0; 0: they ask nothing, on all other devices. */
static inline size_t scl_cl_kept_bytes(const scl_cl_context *cl) {
  return cl->info.capability == 90 ? 33 << 20 : 0;
}

/* Whether such a program can be used. At the first call it is built and its trial is run; if it
 * does not compile or computes a wrong number, it is refused for the life of the context, and
 * portable kernels are used. The status is an error only if the user wants to stop or the device is
 * lost; without memory for the trial the answer is "not this time". */
scl_status scl_cl_try_program(scl_cl_context *cl, scl_cl_program which, bool *usable);

/* Whether an earlier trial has refused it. */
static inline bool scl_cl_is_refused(const scl_cl_context *cl, scl_cl_program which) {
  return cl->trial[which].state == SCL_CL_REFUSED;
}

/* The text of a file of the kernel folder; the caller frees it. */
scl_status scl_cl_source_read(const char *name, char **out);
/* Builds a program from these texts, with the same options; SCL_E_BUILD, with its name and the log.
 */
scl_status scl_cl_program_build(scl_cl_context *cl, cl_uint count, const char **text,
                                const char *name, cl_program *out);

/* Fails with SCL_E_BUILDING: a number that the host is to have is not there. */
scl_status scl_cl_building(void);

/* ---- operations (engine/cl/runtime/queue.c)
 * ------------------------------------------------------------ */
#define SCL_CL_OP_BUFFERS 48

/* Which commands of a profiled operation count as device time: the span from the first to the last;
 * each of the following ones, by its own event; or none of the following ones, because they only
 * transfer parameters or results. */
typedef enum { SCL_CL_TIME_SPAN = 0, SCL_CL_TIME_EACH, SCL_CL_TIME_NONE } scl_cl_timing;

typedef struct {
  scl_cl_context *cl;
  int queue;
  cl_event wait[SCL_CL_QUEUES];
  cl_uint waits;  /* given to the first command, then 0; retained */
  uint64_t start; /* commands in the queue before this operation's */
  scl_cl_buffer *buffer[SCL_CL_OP_BUFFERS];
  bool writes[SCL_CL_OP_BUFFERS];
  int buffers;
  bool overflow; /* more buffers were declared than there is room for */
  bool missing;  /* a kernel is not built, or what an operation before it lacks: nothing is
                    launched, the operation ends with SCL_E_BUILDING */
  bool ordered;
  scl_cl_timing timing;
} scl_cl_op;

/* Starts an operation. An operation of a single launch (engine/cl/runtime/launch.h) then launches
 * and ends; the launch declares its buffers. Any other declares every buffer that it touches and
 * then orders itself: `queue` is one of the transfer queues, or -1 to have a compute queue chosen.
 * Buffers may be declared twice and may be NULL (empty blocks). Only temporaries need no
 * declaration. */
void scl_cl_op_begin(scl_cl_op *op, scl_context *ctx);
void scl_cl_op_reads(scl_cl_op *op, const scl_buffer *buffer);
void scl_cl_op_writes(scl_cl_op *op, const scl_buffer *buffer);
scl_status scl_cl_op_order(scl_cl_op *op, int queue);
/* Whether the buffer is declared, for writing if `writes`, or a temporary of the queue. */
bool scl_cl_op_allows(const scl_cl_op *op, const scl_buffer *buffer, bool writes);

/* A workspace of an ordered operation, m x n, that only commands of this operation touch: needs no
 * declaration. Release it when the last of them is enqueued; the memory goes to a pool. */
scl_status scl_cl_temporary(scl_cl_op *op, size_t m, size_t n, scl_block *out);

/* The range of a launch, in `dims` dimensions. Global sizes are rounded up to the group's by the
 * caller; a group of no size leaves it to the driver. */
typedef struct {
  int dims;
  size_t global[3], local[3];
} scl_cl_range;

static inline scl_cl_range scl_cl_range_1(size_t global, size_t local) {
  return (scl_cl_range){1, {global}, {local}};
}
static inline scl_cl_range scl_cl_range_2(const size_t global[2], const size_t local[2]) {
  return (scl_cl_range){2, {global[0], global[1]}, {local[0], local[1]}};
}
static inline scl_cl_range scl_cl_range_3(const size_t global[3], const size_t local[3]) {
  return (scl_cl_range){3, {global[0], global[1], global[2]}, {local[0], local[1], local[2]}};
}

/* A kernel and its limits: the largest work-group, and bytes of local memory without parameters. */
typedef struct {
  cl_kernel kernel;
  const char *name; /* for error messages */
  size_t items;
  uint64_t local;
} scl_cl_launchable;

/* Makes a kernel of a program; release k->kernel. `name` outlives it. */
scl_status scl_cl_kernel_make(scl_cl_context *cl, cl_program program, const char *name,
                              scl_cl_launchable *k);
/* Enqueues a kernel whose arguments are set; its buffers are declared, or temporaries. The kernels
 * of kernels.def are launched by engine/cl/runtime/launch.h. */
scl_status scl_cl_enqueue(scl_cl_op *op, const scl_cl_launchable *k, const scl_cl_range *range,
                          size_t local_bytes);

/* SCL_OK and op->missing if this status of a program is SCL_E_BUILDING. */
scl_status scl_cl_op_needs(scl_cl_op *op, scl_status status);

/* Ends an operation: leaves its count on its buffers, releases what it holds, flushes the queue.
 * Returns `status`, or an error of its own. */
scl_status scl_cl_op_end(scl_cl_op *op, scl_status status);

/* For a command that the caller enqueues itself in op->queue, with op->wait and op->waits: where to
 * put its event, or NULL if none is needed; and, once it is enqueued, the function that records it.
 * The second takes ownership of the event, which may be NULL. */
cl_event *scl_cl_op_event(const scl_cl_op *op, cl_event *event);
void scl_cl_op_took(scl_cl_op *op, cl_event event);

/* If times are measured, makes an event that ends the commands of a queue so far. Call it before a
 * command that must not count, because otherwise only the first command of an operation has an
 * event. The caller flushes the queue. */
scl_status scl_cl_profile_mark(scl_cl_context *cl, int queue);

/* Waits for an event, or until the first `count` commands of a queue are complete. Polls for
 * interrupts; returns the error of a failed command. */
scl_status scl_cl_wait(scl_cl_context *cl, cl_event event);
scl_status scl_cl_reach(scl_cl_context *cl, int queue, uint64_t count);
/* Flushes the queue if it has new commands, so that the device can start. */
scl_status scl_cl_flush(scl_cl_context *cl, int queue);
/* Waits in the driver, without polling for interrupts, for all commands of a queue: cheaper than an
 * event, for work that takes less than a millisecond. */
scl_status scl_cl_drain(scl_cl_context *cl, int queue);

/* ---- the engine's functions ----------------------------------------------------------------- */
#define SCL_SLOT(result, name, parameters) result scl_cl_##name parameters;
#define SCL_SLOT_OPTIONAL SCL_SLOT
#include "base/engine.def"

void scl_cl_staging_free(scl_cl_context *cl); /* engine/cl/runtime/staging.c */
/* A product inside an operation whose buffers are declared (engine/cl/linalg/gemm.c). */
scl_status scl_cl_gemm_in(scl_cl_op *op, double alpha, scl_trans trans_a, scl_block a,
                          scl_view view_a, scl_trans trans_b, scl_block b, scl_view view_b,
                          double beta, scl_block c, scl_region region);
/* For tests: forces one layout of engine/cl/glm/layouts.h, or the route without a pass if it is too
 * small; NULL: the best one. Then the names of the layouts, "rows", and NULL after the last. */
void scl_cl_glm_force(const char *name);
const char *scl_cl_glm_wanted(void); /* that layout, or NULL */
const char *scl_cl_glm_layout(size_t i);
/* The numbers of predictors and columns that the layout of a pass's program holds. */
typedef struct {
  scl_glm_family family;
  const char *layout;
  size_t predictors, columns;
} scl_cl_glm_form;
scl_cl_glm_form scl_cl_glm_form_of(scl_cl_program which);

extern const scl_engine scl_cl_engine; /* engine/cl/runtime/context.c: the table of all of these */

#endif
