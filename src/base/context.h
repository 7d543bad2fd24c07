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

/* What the core needs of its surroundings; set once at load, any member may be NULL. */
typedef struct {
  void (*collect_garbage)(void); /* drop unreachable matrices; may call scl_mat_release() */
  bool (*interrupted)(void);     /* true once the user asks to stop */
} scl_hooks;

void scl_hooks_set(const scl_hooks *hooks);

/* Whether one of them runs: the core is in the middle of something and takes no other calls than
 * releases. Callers bracket what else may lead back to them. */
bool scl_hooks_run(void);
void scl_hooks_begin(void);
void scl_hooks_end(void);

/* SCL_E_INTERRUPT if the user asked to stop, else SCL_OK. Called between launches of long work. */
scl_status scl_poll(void);

/* The n-th poll from now on says so (tests); -1: off. */
void scl_poll_stop_after(long n);

/* Runs the garbage collector of the surroundings, if there is one. */
void scl_collect_garbage(void);

/* Bytes of a context's matrices and workspaces. */
typedef struct {
  uint64_t live;    /* now */
  uint64_t peak;    /* most at any time */
  uint64_t kept;    /* of released ones, kept for the next; not among the live ones */
  uint64_t buffers; /* buffers alive */
  uint64_t limit;   /* what may be live; 0: unknown */
  uint64_t largest; /* largest single buffer; 0: unknown */
} scl_memory;

/* The host context (engine/host/engine.c). Made at the first call, never destroyed; borrowed. */
scl_context *scl_context_host(void);

/* Reference counting; release accepts NULL. The last release finishes pending work. */
scl_context *scl_context_retain(scl_context *ctx);
void scl_context_release(scl_context *ctx);

/* Whether results are R's memory, and what a fit says of where it was computed: only that asks.
 * What an engine is good at, its traits tell (base/engine.h). */
bool scl_context_is_host(const scl_context *ctx);
const char *scl_context_name(const scl_context *ctx); /* device name, or "host" */
scl_memory scl_context_memory(const scl_context *ctx);

/* SCL_E_FORK in a forked child of the process that made a device context, SCL_E_LOST for a dead
 * one. The host context always passes. */
scl_status scl_context_check(const scl_context *ctx);

/* Waits for everything enqueued; reports faults of asynchronous work. */
scl_status scl_context_finish(scl_context *ctx);

#endif
