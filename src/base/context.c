#include "base/context.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/engine.h"
#include "base/threads.h"

static scl_hooks hooks;

void scl_hooks_set(const scl_hooks *set) {
  hooks = *set;
}

static int running;

bool scl_hooks_run(void) {
  return running > 0;
}

void scl_hooks_begin(void) {
  running++;
}

void scl_hooks_end(void) {
  running--;
}

static atomic_long stop_after = -1;

void scl_poll_stop_after(long n) {
  stop_after = n;
}

scl_status scl_poll(void) {
  if (atomic_load(&stop_after) > 0 && atomic_fetch_sub(&stop_after, 1) == 1) {
    return scl_fail(SCL_E_INTERRUPT, "interrupted");
  }
  if (hooks.interrupted == NULL || scl_thread_shares()) return SCL_OK;
  scl_hooks_begin();
  const bool stop = hooks.interrupted();
  scl_hooks_end();
  return stop ? scl_fail(SCL_E_INTERRUPT, "interrupted") : SCL_OK;
}

scl_status scl_collect_garbage(bool all) {
  if (hooks.collect_garbage == NULL || scl_thread_shares()) return SCL_OK;
  scl_hooks_begin();
  const bool stop = hooks.collect_garbage(all);
  scl_hooks_end();
  return stop ? scl_fail(SCL_E_INTERRUPT, "interrupted") : SCL_OK;
}

scl_context *scl_context_retain(scl_context *ctx) {
  ctx->refs++;
  return ctx;
}

static bool is_forked(const scl_context *ctx) {
  return ctx->owner != 0 && ctx->owner != scl_process_id();
}

void scl_context_release(scl_context *ctx) {
  if (ctx == NULL || --ctx->refs > 0) return;
  /* A forked child must not call the driver: its memory is freed with the process. */
  if (is_forked(ctx)) return;
  ctx->tag = 0;
  ctx->engine->context_destroy(ctx);
}

const char *scl_context_name(const scl_context *ctx) {
  return ctx->name;
}

const char *scl_context_label(const scl_context *ctx) {
  return ctx->label;
}

scl_memory scl_context_memory(const scl_context *ctx) {
  return ctx->memory;
}

scl_status scl_context_check(const scl_context *ctx) {
  if (is_forked(ctx)) {
    return scl_fail(
        SCL_E_FORK,
        "device '%s' was opened before this process was forked: open it in each worker instead",
        ctx->label);
  }
  if (ctx->lost) {
    scl_fail(SCL_E_LOST, "device '%s' stopped responding: its matrices are no longer valid",
             ctx->label);
    snprintf(scl_fault_edit()->device, sizeof scl_fault_edit()->device, "%s", ctx->name);
    return SCL_E_LOST;
  }
  return SCL_OK;
}

scl_status scl_context_finish(scl_context *ctx) {
  SCL_TRY(scl_context_check(ctx));
  return ctx->engine->finish(ctx);
}

static scl_context *complete;

void scl_context_set_complete(scl_context *ctx) {
  complete = ctx;
}

scl_context *scl_context_complete(void) {
  return complete;
}
