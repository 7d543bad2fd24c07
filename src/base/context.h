/* Contexts: one for the host, one for each OpenCL device in use.
 *
 * A context owns an engine (base/engine.h), the engine's private state and the count of live bytes.
 * It lives as long as its creator or any matrix holds a reference. */
#ifndef SCL_BASE_CONTEXT_H
#define SCL_BASE_CONTEXT_H

#include <stdbool.h>

#include "base/status.h"

typedef struct scl_context scl_context;
struct scl_engine;

/* The functions of the host language that the core calls; set once at load, any member may be
 * NULL. */
typedef struct {
  /* Drops unreachable matrices; may call scl_mat_release(). `all`: old ones too, which takes long.
   */
  bool (*collect_garbage)(bool all); /* true if the user wants to stop */
  bool (*interrupted)(void);         /* true once the user asks to stop */
} scl_hooks;

void scl_hooks_set(const scl_hooks *hooks);

/* Whether a hook runs: the core is in the middle of a computation, and may only be called to
 * release objects. Other code that may run R code is enclosed by begin and end. */
bool scl_hooks_run(void);
void scl_hooks_begin(void);
void scl_hooks_end(void);

/* SCL_E_INTERRUPT if the user asked to stop, else SCL_OK. Called between launches of long work. */
scl_status scl_poll(void);

/* For tests: the n-th poll from now on returns SCL_E_INTERRUPT; -1: off. */
void scl_poll_stop_after(long n);

/* Runs the garbage collector of the host language, if there is one. SCL_E_INTERRUPT if the user
 * stopped it. */
scl_status scl_collect_garbage(bool all);

/* Bytes of a context's matrices and workspaces. */
typedef struct {
  uint64_t live;    /* now */
  uint64_t peak;    /* the highest value so far */
  uint64_t kept;    /* of released ones, kept for the next; not among the live ones */
  uint64_t buffers; /* buffers alive */
  uint64_t limit;   /* of live bytes; 0: unknown */
  uint64_t largest; /* largest single buffer; 0: unknown */
} scl_memory;

/* The host context (engine/host/engine.c). Made at the first call, never destroyed; borrowed. */
scl_context *scl_context_host(void);

/* The context whose engine has all of LAPACK: operations that an engine leaves out run there. Set
 * once at load. */
void scl_context_set_complete(scl_context *ctx);
scl_context *scl_context_complete(void);

/* Reference counting; release accepts NULL. The last release finishes pending work. */
scl_context *scl_context_retain(scl_context *ctx);
void scl_context_release(scl_context *ctx);

/* Only for results in R's memory and for what a fit prints of its engine. Everything else asks for
 * traits (base/engine.h). */
bool scl_context_is_host(const scl_context *ctx);
const char *scl_context_name(const scl_context *ctx); /* device name, or "host" */
/* For messages: "the host", or the name with the id, as names may be equal. */
const char *scl_context_label(const scl_context *ctx);
scl_memory scl_context_memory(const scl_context *ctx);

/* SCL_E_FORK in a forked child of the process that made a device context, SCL_E_LOST for a dead
 * one. The host context always passes. */
scl_status scl_context_check(const scl_context *ctx);

/* Waits for everything enqueued; reports errors of asynchronous work. */
scl_status scl_context_finish(scl_context *ctx);

#endif
