/* Operations: the choice of a queue, the events to wait for, the counts on buffers. Marks, and
 * waiting. */
#include "engine/cl/runtime/cl.h"

#include <stdarg.h>
#include <string.h>

#include "engine/cl/runtime/private.h"
#include "base/threads.h"

static void release_event(cl_event *event) {
  if (*event != NULL) scl_cl.clReleaseEvent(*event);
  *event = NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */
static scl_status event_status(scl_cl_context *cl, cl_event event, cl_int *out) {
  cl_int state = CL_QUEUED;
  SCL_CL_TRY(
      cl,
      scl_cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL),
      "clGetEventInfo");
  /* A command ended with an error: its own, or that of a command before it. */
  if (state < 0) return scl_cl_fail(&cl->base, state, "a command of the device");
  *out = state;
  return SCL_OK;
}

scl_status scl_cl_happened(scl_cl_context *cl, cl_event event, bool *out) {
  cl_int state;
  SCL_TRY(event_status(cl, event, &state));
  *out = state == CL_COMPLETE;
  return SCL_OK;
}

/* Short work ends before a sleeping thread would wake up. Long work must not occupy a core that a
 * CPU device could use. */
enum { SPIN_GPU_US = 2000, SPIN_CPU_US = 20, SLEEP_SHORT_US = 50, SLEEP_LONG_US = 500 };
enum { POLL_EVERY_US = 20000, LONG_WAIT_US = 20000 };

scl_status scl_cl_wait(scl_cl_context *cl, cl_event event) {
  uint64_t start = scl_clock_us(), polled = start;
  uint64_t spin = cl->cpu ? SPIN_CPU_US : SPIN_GPU_US;
  for (;;) {
    cl_int state;
    SCL_TRY(event_status(cl, event, &state));
    if (state == CL_COMPLETE) return SCL_OK;
    if (cl->base.lost) return scl_context_check(&cl->base);
    uint64_t now = scl_clock_us();
    if (now - start < spin) continue;
    if (now - polled >= POLL_EVERY_US) {
      SCL_TRY(scl_poll());
      polled = now;
    }
    scl_sleep_us(now - start < LONG_WAIT_US ? SLEEP_SHORT_US : SLEEP_LONG_US);
  }
}

/* ---- marks ----------------------------------------------------------------------------------- */
/* First and last event of each queue, for the span of the profile. */
static void record_profile(scl_cl_context *cl, int queue, cl_event event) {
  if (!cl->profiling) return;
  if (cl->profile_first[queue] == NULL) {
    scl_cl.clRetainEvent(event);
    cl->profile_first[queue] = event;
  }
  scl_cl.clRetainEvent(event);
  release_event(&cl->profile_last[queue]);
  cl->profile_last[queue] = event;
}

/* Takes ownership of the event, which is complete when all commands so far are. */
static void set_mark(scl_cl_context *cl, int queue, cl_event event) {
  release_event(&cl->mark[queue]);
  cl->mark[queue] = event;
  cl->marked[queue] = cl->enqueued[queue];
}

/* All marked commands are complete. */
static void pass_mark(scl_cl_context *cl, int queue) {
  cl->done[queue] = cl->marked[queue];
  release_event(&cl->mark[queue]);
}

static bool has_mark(const scl_cl_context *cl, int queue, uint64_t count) {
  return count <= cl->done[queue] || (cl->mark[queue] != NULL && count <= cl->marked[queue]);
}

static scl_status enqueue_mark(scl_cl_context *cl, int queue) {
  cl_event marker = NULL;
  SCL_CL_TRY(cl, scl_cl.clEnqueueMarkerWithWaitList(cl->queue[queue], 0, NULL, &marker),
             "clEnqueueMarkerWithWaitList");
  record_profile(cl, queue, marker);
  set_mark(cl, queue, marker);
  return SCL_OK;
}

scl_status scl_cl_flush(scl_cl_context *cl, int queue) {
  if (cl->flushed[queue] == cl->enqueued[queue]) return SCL_OK;
  SCL_CL_TRY(cl, scl_cl.clFlush(cl->queue[queue]), "clFlush");
  cl->flushed[queue] = cl->enqueued[queue];
  return SCL_OK;
}

/* Makes sure that a mark covers the first `count` commands. The flush submits the commands, so that
 * the mark can be waited for. */
static scl_status mark_count(scl_cl_context *cl, int queue, uint64_t count) {
  if (has_mark(cl, queue, count)) return SCL_OK;
  SCL_TRY(enqueue_mark(cl, queue));
  SCL_CL_TRY(cl, scl_cl.clFlush(cl->queue[queue]), "clFlush");
  return SCL_OK;
}

scl_status scl_cl_profile_mark(scl_cl_context *cl, int queue) {
  if (!cl->profiling || cl->profile_first[queue] == NULL) return SCL_OK;
  return has_mark(cl, queue, cl->enqueued[queue]) ? SCL_OK : enqueue_mark(cl, queue);
}

/* Updates the count of complete commands if the queue's mark is complete. */
static scl_status update_progress_of(scl_cl_context *cl, int queue) {
  cl_int state;
  if (cl->mark[queue] == NULL) return SCL_OK;
  SCL_TRY(event_status(cl, cl->mark[queue], &state));
  if (state == CL_COMPLETE) pass_mark(cl, queue);
  return SCL_OK;
}

/* Errors are returned by calls that wait. */
void scl_cl_update_progress(scl_cl_context *cl) {
  for (int q = 0; q < SCL_CL_QUEUES; q++) {
    cl_int state = CL_QUEUED;
    if (cl->mark[q] == NULL) continue;
    scl_cl.clGetEventInfo(cl->mark[q], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state,
                          NULL);
    if (state == CL_COMPLETE) pass_mark(cl, q);
  }
}

scl_status scl_cl_passed(scl_cl_context *cl, int queue, uint64_t count, bool *out) {
  if (count > cl->done[queue]) {
    SCL_TRY(mark_count(cl, queue, count));
    SCL_TRY(update_progress_of(cl, queue));
  }
  *out = count <= cl->done[queue];
  return SCL_OK;
}

scl_status scl_cl_reach(scl_cl_context *cl, int queue, uint64_t count) {
  if (count <= cl->done[queue]) return SCL_OK;
  SCL_TRY(mark_count(cl, queue, count));
  /* An error may have come between an older mark and its flush. */
  SCL_CL_TRY(cl, scl_cl.clFlush(cl->queue[queue]), "clFlush");
  SCL_TRY(scl_cl_wait(cl, cl->mark[queue]));
  pass_mark(cl, queue);
  return SCL_OK;
}

scl_status scl_cl_drain(scl_cl_context *cl, int queue) {
  SCL_CL_TRY(cl, scl_cl.clFinish(cl->queue[queue]), "clFinish");
  cl->marked[queue] = cl->flushed[queue] = cl->enqueued[queue];
  pass_mark(cl, queue);
  return SCL_OK;
}

scl_status scl_cl_finish(scl_context *ctx) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  for (int q = 0; q < SCL_CL_QUEUES; q++) SCL_TRY(mark_count(cl, q, cl->enqueued[q]));
  for (int q = 0; q < SCL_CL_QUEUES; q++) SCL_TRY(scl_cl_reach(cl, q, cl->enqueued[q]));
  return SCL_OK;
}

/* ---- order ----------------------------------------------------------------------------------- */
void scl_cl_op_begin(scl_cl_op *op, scl_context *ctx) {
  memset(op, 0, sizeof *op);
  op->cl = (scl_cl_context *)ctx;
  op->missing = scl_device_beside_lacks();
  op->start = op->cl->enqueued[op->queue]; /* no commands, if the operation is never ordered */
}

static void declare_buffer(scl_cl_op *op, const scl_buffer *base, bool writes) {
  scl_cl_buffer *buffer = (scl_cl_buffer *)base;
  if (buffer == NULL) return;
  int i = 0;
  while (i < op->buffers && op->buffer[i] != buffer) i++;
  if (i == SCL_CL_OP_BUFFERS) {
    op->overflow = true;
    return;
  }
  if (i == op->buffers) {
    op->buffer[op->buffers++] = buffer;
    op->writes[i] = false;
  }
  op->writes[i] = op->writes[i] || writes;
}

void scl_cl_op_reads(scl_cl_op *op, const scl_buffer *buffer) {
  declare_buffer(op, buffer, false);
}
void scl_cl_op_writes(scl_cl_op *op, const scl_buffer *buffer) {
  declare_buffer(op, buffer, true);
}

bool scl_cl_op_allows(const scl_cl_op *op, const scl_buffer *base, bool writes) {
  const scl_cl_buffer *buffer = (const scl_cl_buffer *)base;
  if (buffer->home == op->queue) return true;
  for (int i = 0; i < op->buffers; i++) {
    if (op->buffer[i] == buffer) return op->writes[i] || !writes;
  }
  return false;
}

/* The compute queue of a pending write to an input (to an output, if `outputs`); -1 if there is
 * none.
 */
static int queue_of_pending(const scl_cl_op *op, bool outputs) {
  const scl_cl_context *cl = op->cl;
  for (int i = 0; i < op->buffers; i++) {
    const scl_cl_buffer *b = op->buffer[i];
    if (op->writes[i] == outputs && b->written > cl->done[b->written_on] &&
        b->written_on <= SCL_CL_COMPUTE_1) {
      return b->written_on;
    }
  }
  return -1;
}

/* The queue of an input's pending write, else of an output's (its memory may have been used
 * before), else the next one in turn. */
static int choose_queue(scl_cl_op *op) {
  int queue = queue_of_pending(op, false);
  if (queue < 0) queue = queue_of_pending(op, true);
  return queue >= 0 ? queue : (int)(op->cl->next_compute++ % 2);
}

static void raise_to(uint64_t *count, uint64_t to) {
  if (*count < to) *count = to;
}

/* Retains the mark until a command has taken it: the queue may get another mark before. */
static scl_status wait_for(scl_cl_op *op, int queue, uint64_t count) {
  scl_cl_context *cl = op->cl;
  if (count <= cl->done[queue]) return SCL_OK;
  SCL_TRY(mark_count(cl, queue, count));
  scl_cl.clRetainEvent(cl->mark[queue]);
  op->wait[op->waits++] = cl->mark[queue];
  return SCL_OK;
}

static void release_waits(scl_cl_op *op) {
  while (op->waits > 0) scl_cl.clReleaseEvent(op->wait[--op->waits]);
}

/* Waits only for other queues: a queue keeps its own order. */
static scl_status collect_waits(scl_cl_op *op) {
  uint64_t count[SCL_CL_QUEUES] = {0};
  for (int i = 0; i < op->buffers; i++) {
    const scl_cl_buffer *b = op->buffer[i];
    raise_to(&count[b->written_on], b->written);
    for (int q = 0; q < SCL_CL_QUEUES && op->writes[i]; q++) raise_to(&count[q], b->read[q]);
  }
  for (int q = 0; q < SCL_CL_QUEUES; q++) {
    if (q != op->queue) SCL_TRY(wait_for(op, q, count[q]));
  }
  return SCL_OK;
}

scl_status scl_cl_op_order(scl_cl_op *op, int queue) {
  scl_cl_context *cl = op->cl;
  if (op->overflow) {
    return scl_fail(SCL_E_OPENCL, "internal: an operation declares more than %d buffers",
                    SCL_CL_OP_BUFFERS);
  }
  SCL_TRY(scl_context_check(&cl->base));
  for (int q = 0; q < SCL_CL_QUEUES; q++) SCL_TRY(update_progress_of(cl, q));
  op->queue = queue >= 0 ? queue : choose_queue(op);
  op->start = cl->enqueued[op->queue];
  if (op->queue <= SCL_CL_COMPUTE_1) cl->last_compute = op->queue;
  op->ordered = true;
  return collect_waits(op);
}

cl_event *scl_cl_op_event(const scl_cl_op *op, cl_event *event) {
  const scl_cl_context *cl = op->cl;
  if (!cl->profiling || op->timing == SCL_CL_TIME_NONE) return NULL;
  return op->timing == SCL_CL_TIME_EACH || cl->profile_first[op->queue] == NULL ? event : NULL;
}

void scl_cl_op_took(scl_cl_op *op, cl_event event) {
  op->cl->enqueued[op->queue]++;
  if (event != NULL) {
    if (op->timing != SCL_CL_TIME_NONE) record_profile(op->cl, op->queue, event);
    set_mark(op->cl, op->queue, event);
  }
  release_waits(op);
}

static void leave_count(scl_cl_op *op, int i) {
  scl_cl_buffer *b = op->buffer[i];
  uint64_t count = op->cl->enqueued[op->queue];
  if (op->writes[i]) {
    memset(b->read, 0, sizeof b->read);
    b->written = count;
    b->written_on = op->queue;
  } else {
    b->read[op->queue] = count;
  }
}

scl_status scl_cl_op_needs(scl_cl_op *op, scl_status status) {
  op->missing = op->missing || status == SCL_E_BUILDING;
  return status == SCL_E_BUILDING ? SCL_OK : status;
}

scl_status scl_cl_op_end(scl_cl_op *op, scl_status status) {
  if (op->missing && status != SCL_E_INTERRUPT && (status != SCL_OK || !scl_cl_goes_on()))
    status = scl_cl_building();
  release_waits(op);
  if (op->cl->enqueued[op->queue] == op->start) return status;
  for (int i = 0; i < op->buffers; i++) leave_count(op, i);
  const scl_status flushed = scl_cl_flush(op->cl, op->queue);
  return status == SCL_OK ? flushed : status;
}
