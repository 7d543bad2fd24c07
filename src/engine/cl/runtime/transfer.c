/* Uploads and downloads. A matrix crosses in spans (engine/transfer/packed.h): host threads copy
 * some between the matrix and pieces of pinned memory (engine/transfer/pinned.h) while the bus
 * moves others. Spans of a triangle go through memory on the device, from which a kernel spreads
 * them over the block (or gathers them into it): in two lanes, that is queues, so that the bus
 * moves one span while the kernel is at another.
 *
 * Parameters and results of a few kilobytes are transferred in the queue of the work that they
 * belong to: one queue waiting for another costs more than such a transfer. */
#include <string.h>

#include "engine/cl/runtime/launch.h"

#include "kernels/include/port.h"
#include "kernels/include/packed.h"
#include "engine/cl/runtime/private.h"
#include "engine/cl/runtime/staging.h"

enum { FEW = 64 << 10 };               /* bytes that go with the work */
enum { SPANS = 8, SPAN_LEAST = 8192 }; /* spans of a middling transfer; elements of a small one */
enum { CLEARED_FROM = 64 << 20 };      /* bytes of a triangle that is downloaded in full */
enum { LANES = 2 };

typedef struct {
  scl_cl_context *cl;
  bool up;
  scl_wait wait; /* down */
  scl_block block;
  scl_pinned_copy copy;
  scl_cl_staging *staging;
  unsigned first; /* piece of span 0 */
  scl_cl_op op[LANES];
  size_t lanes;
  scl_packed_span span; /* the one enqueued last */
  size_t enqueued;      /* spans */
  bool brief;           /* a download that is waited for in the driver */
} transfer;

/* ---- beginning and end ----------------------------------------------------------------------- */
/* The queue of a small transfer. Upload: the one used last, because the next command is likely to
 * need the data. Download: that of the buffer's last write, if no later command in it would have to
 * be waited for in addition. */
static int queue_of_few(const scl_cl_context *cl, bool up, scl_wait wait, const scl_buffer *base) {
  const scl_cl_buffer *buffer = (const scl_cl_buffer *)base;
  int q = buffer->written_on;
  if (up) return cl->last_compute;
  bool quick = wait != SCL_WAIT_WRITES || buffer->written == cl->enqueued[q];
  return q <= SCL_CL_COMPUTE_1 && quick ? q : SCL_CL_DOWNLOAD;
}

static scl_status order_lanes(transfer *t, size_t bytes) {
  int queue[LANES] = {t->up ? SCL_CL_UPLOAD : SCL_CL_DOWNLOAD,
                      t->up ? SCL_CL_DOWNLOAD : SCL_CL_UPLOAD};
  bool few = t->copy.shape.kind == PACKED_FULL && bytes <= FEW;
  t->brief = few && !t->up && t->wait == SCL_WAIT_SHORT;
  if (few) queue[0] = queue_of_few(t->cl, t->up, t->wait, t->block.buffer);
  while (t->lanes < (t->copy.shape.kind == PACKED_FULL ? 1 : LANES)) {
    scl_cl_op *op = &t->op[t->lanes];
    scl_cl_op_begin(op, &t->cl->base);
    if (few) op->timing = SCL_CL_TIME_NONE;
    if (t->up) {
      scl_cl_op_writes(op, t->block.buffer);
    } else {
      scl_cl_op_reads(op, t->block.buffer);
    }
    t->lanes++;
    SCL_TRY(scl_cl_op_order(op, queue[t->lanes - 1]));
  }
  return few && !t->up ? scl_cl_profile_mark(t->cl, queue[0]) : SCL_OK;
}

/* Downloaded with both triangles are a symmetric matrix, because mirroring it on the host takes
 * longer, and a large triangle into fresh memory: clearing that memory takes the system as long as
 * the bus takes for the whole matrix, and writing zeros would come in addition. */
static bool is_downloaded_in_full(const transfer *t, scl_view view) {
  size_t n = t->block.nrow * t->block.ncol, bytes = n * sizeof(double);
  if (view == SCL_SYMMETRIC) return true;
  if (view == SCL_GENERAL || bytes < CLEARED_FROM || t->copy.ld != t->block.nrow) return false;
  return !scl_is_touched(t->copy.to, bytes);
}

static scl_status begin_transfer(transfer *t, scl_view view) {
  const scl_block *block = &t->block;
  scl_pinned_copy *copy = &t->copy;
  if (!t->up && is_downloaded_in_full(t, view)) view = SCL_GENERAL;
  copy->shape = scl_packed_shape(view, block->nrow, block->ncol);
  /* The padding of a whole matrix is copied too: one run of memory is faster than many columns. */
  bool whole =
      block->offset == 0 && block->buffer->bytes / sizeof(double) == block->ld * block->ncol;
  if (whole) copy->shape.stride = block->ld;
  size_t count = scl_packed_count(&copy->shape), bytes = count * sizeof(double);
  SCL_TRY(scl_cl_staging_get(t->cl, t->up ? SCL_CL_UP : SCL_CL_DOWN, bytes,
                             copy->shape.kind != PACKED_FULL, &t->staging));
  copy->capacity = count / SPANS > SPAN_LEAST ? count / SPANS : SPAN_LEAST;
  size_t most = t->staging->piece / sizeof(double);
  if (copy->capacity > most) copy->capacity = most;
  t->first = t->staging->next;
  for (unsigned p = 0; p < SCL_PINNED_PIECES; p++) {
    copy->piece[p] = scl_cl_staging_at(t->staging, (t->first + p) % SCL_CL_PIECES);
  }
  scl_pinned_begin(copy);
  return order_lanes(t, bytes);
}

/* A buffer remembers one last write: this one comes after those of all lanes. */
static scl_status join_lanes(transfer *t) {
  scl_cl_op op;
  cl_event event = NULL;
  scl_cl_op_begin(&op, &t->cl->base);
  scl_cl_op_writes(&op, t->block.buffer);
  scl_status status = scl_cl_op_order(&op, t->op[0].queue);
  if (status == SCL_OK) {
    cl_int code = scl_cl.clEnqueueMarkerWithWaitList(t->cl->queue[op.queue], op.waits,
                                                     op.waits > 0 ? op.wait : NULL, &event);
    if (code == CL_SUCCESS) {
      scl_cl_op_took(&op, event);
    } else {
      status = scl_cl_fail(&t->cl->base, code, "clEnqueueMarkerWithWaitList");
    }
  }
  return scl_cl_op_end(&op, status);
}

/* Ends what begin_transfer() began, complete or not. */
static scl_status end_transfer(transfer *t, scl_status status) {
  scl_pinned_end(&t->copy);
  if (t->staging != NULL) {
    t->staging->next = (unsigned)((t->first + t->enqueued) % SCL_CL_PIECES);
  }
  for (size_t lane = 0; lane < t->lanes; lane++) status = scl_cl_op_end(&t->op[lane], status);
  if (t->lanes == 1 || !t->up) return status;
  scl_status joined = join_lanes(t);
  return status == SCL_OK ? joined : status;
}

/* ---- commands -------------------------------------------------------------------------------- */
static unsigned piece_of(const transfer *t, size_t number) {
  return (unsigned)((t->first + number) % SCL_CL_PIECES);
}

/* The arguments of a command of the current span. */
typedef struct {
  scl_cl_op *op;
  cl_command_queue queue;
  const cl_event *wait;
  unsigned piece;
  double *host;
} command;

static command next_command(transfer *t) {
  command c = {.op = &t->op[t->enqueued % t->lanes], .piece = piece_of(t, t->enqueued)};
  c.queue = t->cl->queue[c.op->queue];
  c.wait = c.op->waits > 0 ? c.op->wait : NULL;
  c.host = scl_cl_staging_at(t->staging, c.piece);
  return c;
}

/* The last command that uses the piece has been enqueued; `event` may be NULL. */
static scl_status took_piece(transfer *t, const command *c, cl_int code, cl_event event) {
  if (code != CL_SUCCESS) {
    return scl_cl_fail(&t->cl->base, code, t->up ? "upload" : "download");
  }
  scl_cl_staging_use(t->staging, c->piece, c->op, event);
  scl_cl_op_took(c->op, event);
  return SCL_OK;
}

/* One command between a piece and the block: in one run, or column by column. */
static scl_status move_full(transfer *t) {
  const scl_packed_span *span = &t->span;
  command c = next_command(t);
  cl_mem memory = ((scl_cl_buffer *)t->block.buffer)->memory;
  size_t rows = span->to - span->from, ld = t->block.ld;
  size_t start = t->block.offset + span->from + span->col * ld;
  cl_event event = NULL, *wanted = &event;
  cl_int code;
  if (t->brief || (t->up && c.op->queue <= SCL_CL_COMPUTE_1))
    wanted = scl_cl_op_event(c.op, &event);
  if (span->cols == 1 || t->copy.shape.stride == ld) {
    size_t at = start * sizeof(double), bytes = span->count * sizeof(double);
    code = t->up ? scl_cl.clEnqueueWriteBuffer(c.queue, memory, CL_FALSE, at, bytes, c.host,
                                               c.op->waits, c.wait, wanted)
                 : scl_cl.clEnqueueReadBuffer(c.queue, memory, CL_FALSE, at, bytes, c.host,
                                              c.op->waits, c.wait, wanted);
  } else {
    size_t pitch = ld * sizeof(double), host_pitch = rows * sizeof(double);
    bool fits = start % ld + rows <= ld;
    size_t origin[3] = {(fits ? start % ld : start) * sizeof(double), fits ? start / ld : 0, 0};
    size_t host_origin[3] = {0, 0, 0};
    size_t region[3] = {host_pitch, span->cols, 1};
    code = t->up ? scl_cl.clEnqueueWriteBufferRect(c.queue, memory, CL_FALSE, origin, host_origin,
                                                   region, pitch, 0, host_pitch, 0, c.host,
                                                   c.op->waits, c.wait, wanted)
                 : scl_cl.clEnqueueReadBufferRect(c.queue, memory, CL_FALSE, origin, host_origin,
                                                  region, pitch, 0, host_pitch, 0, c.host,
                                                  c.op->waits, c.wait, wanted);
  }
  return took_piece(t, &c, code, event);
}

/* Elements before this lane's part of the device's staging memory. */
static size_t lane_start(const transfer *t) {
  return t->enqueued % t->lanes * t->staging->piece / sizeof(double);
}

/* Between a piece on the host and the one on the device. */
static scl_status move_packed(transfer *t) {
  if (t->span.count == 0) return SCL_OK;
  command c = next_command(t);
  size_t at = lane_start(t) * sizeof(double), bytes = t->span.count * sizeof(double);
  cl_event event = NULL;
  cl_int code = t->up ? scl_cl.clEnqueueWriteBuffer(c.queue, t->staging->device, CL_FALSE, at,
                                                    bytes, c.host, c.op->waits, c.wait, &event)
                      : scl_cl.clEnqueueReadBuffer(c.queue, t->staging->device, CL_FALSE, at, bytes,
                                                   c.host, c.op->waits, c.wait, &event);
  return took_piece(t, &c, code, event);
}

static scl_status launch_packed(transfer *t) {
  const scl_packed *s = &t->copy.shape;
  const scl_packed_span *span = &t->span;
  scl_cl_op *op = &t->op[t->enqueued % t->lanes];
  long long base = (long long)span->base - (long long)lane_start(t);
  size_t local[2] = {TRANSFER_TILE, TRANSFER_TILE};
  size_t global[2] = {scl_round_up(span->to - span->from, TRANSFER_TILE),
                      scl_round_up(span->cols, TRANSFER_TILE)};
  const scl_cl_range range = scl_cl_range_2(global, local);
  const int m = (int)s->nrow, col = (int)span->col, cols = (int)span->cols;
  const int from = (int)span->from, to = (int)span->to;
  if (t->up) {
    return scl_launch_transfer_unpack(op, range, scl_out(t->block),
                                      scl_in_memory(t->staging->device), m, s->kind, col, cols,
                                      from, to, base, s->mirrored);
  }
  if (span->count == 0) return SCL_OK;
  return scl_launch_transfer_pack(op, range, scl_in(t->block), scl_out_memory(t->staging->device),
                                  m, s->kind, col, cols, from, to, base);
}

/* The commands of the span in t->span. */
static scl_status enqueue_span(transfer *t) {
  int queue = t->op[t->enqueued % t->lanes].queue;
  if (t->copy.shape.kind == PACKED_FULL) {
    SCL_TRY(move_full(t));
  } else if (t->up) {
    SCL_TRY(move_packed(t));
    SCL_TRY(launch_packed(t));
  } else {
    SCL_TRY(launch_packed(t));
    SCL_TRY(move_packed(t));
  }
  t->enqueued++;
  return t->brief ? SCL_OK : scl_cl_flush(t->cl, queue);
}

/* If there is nothing to enqueue, this thread copies; otherwise it waits for the piece of span
 * `next` if it is the only thread, or pauses. */
static scl_status help_copying(transfer *t, size_t next, unsigned *idle) {
  *idle = scl_pinned_help(&t->copy) ? 0 : *idle + 1;
  if (*idle == 0) return SCL_OK;
  if (t->copy.team == NULL) return scl_cl_staging_wait(t->cl, t->staging, piece_of(t, next));
  if (t->cl->base.lost) return scl_context_check(&t->cl->base);
  scl_pause(*idle);
  return scl_poll();
}

/* ---- up -------------------------------------------------------------------------------------- */
/* Opens the piece of the next span when it is free; *more becomes false after the last span. */
static scl_status open_piece(transfer *t, size_t *opened, bool *more) {
  bool ready;
  scl_packed_span next = t->copy.last;
  if (!*more || *opened - t->enqueued == SCL_PINNED_PIECES) return SCL_OK;
  *more = scl_packed_next(&t->copy.shape, t->copy.capacity, &next);
  if (!*more) return SCL_OK;
  SCL_TRY(scl_cl_staging_ready(t->cl, t->staging, piece_of(t, *opened), &ready));
  if (!ready) return SCL_OK;
  scl_pinned_open(&t->copy);
  ++*opened;
  return SCL_OK;
}

static scl_status send_spans(transfer *t) {
  size_t opened = 0;
  unsigned idle = 0;
  for (bool more = true; more || t->enqueued < opened;) {
    SCL_TRY(open_piece(t, &opened, &more));
    if (t->enqueued < opened && scl_pinned_copied(&t->copy, t->enqueued)) {
      scl_packed_next(&t->copy.shape, t->copy.capacity, &t->span);
      SCL_TRY(enqueue_span(t));
    } else {
      SCL_TRY(help_copying(t, opened, &idle));
    }
  }
  return SCL_OK;
}

/* While operations lack content: asks for the kernels that pack triangles. */
static scl_status ask_transfer(scl_context *ctx) {
  const scl_status status = scl_cl_program_need((scl_cl_context *)ctx, SCL_CL_PROGRAM_transfer);
  return status == SCL_E_BUILDING && scl_cl_goes_on() ? SCL_OK : status;
}

scl_status scl_cl_upload(scl_context *ctx, scl_view view, const double *data, size_t ld,
                         scl_block dst) {
  if (dst.nrow == 0 || dst.ncol == 0) return SCL_OK;
  if (scl_device_beside_lacks()) return view == SCL_GENERAL ? SCL_OK : ask_transfer(ctx);
  transfer t = {.cl = (scl_cl_context *)ctx, .up = true, .block = dst};
  scl_status status;
  t.copy.from = data;
  t.copy.ld = ld;
  SCL_GO(begin_transfer(&t, view));
  scl_pinned_start_threads(&t.copy);
  SCL_GO(send_spans(&t));
done:
  return end_transfer(&t, status);
}

/* ---- down ------------------------------------------------------------------------------------ */
/* Enqueues spans as long as there are free pieces. */
static scl_status request_spans(transfer *t, size_t copied, bool *more) {
  while (*more && t->enqueued - copied < SCL_PINNED_PIECES) {
    *more = scl_packed_next(&t->copy.shape, t->copy.capacity, &t->span);
    if (!*more) return SCL_OK;
    SCL_TRY(scl_cl_staging_wait(t->cl, t->staging, piece_of(t, t->enqueued)));
    SCL_TRY(enqueue_span(t));
  }
  return SCL_OK;
}

static scl_status receive_spans(transfer *t) {
  size_t arrived = 0, copied = 0;
  bool more = true, ready;
  unsigned idle = 0;
  SCL_TRY(request_spans(t, copied, &more));
  if (t->brief) SCL_TRY(scl_cl_drain(t->cl, t->op[0].queue));
  scl_pinned_start_threads(&t->copy);
  while (copied < t->enqueued) {
    while (arrived < t->enqueued) {
      SCL_TRY(scl_cl_staging_ready(t->cl, t->staging, piece_of(t, arrived), &ready));
      if (!ready) break;
      scl_pinned_open(&t->copy);
      arrived++;
    }
    size_t before = copied;
    while (copied < arrived && scl_pinned_copied(&t->copy, copied)) copied++;
    SCL_TRY(request_spans(t, copied, &more));
    if (copied == before) SCL_TRY(help_copying(t, arrived, &idle));
  }
  return SCL_OK;
}

/* Instead of a content that is not there: zeros, or a unit matrix, with which more calls go on.
 * Results of most calls are packed. */
static scl_status lack_content(scl_context *ctx, scl_block src, double *data, size_t ld) {
  SCL_TRY(ask_transfer(ctx));
  if (!scl_cl_is_read(src.nrow * src.ncol)) return SCL_OK;
  for (size_t j = 0; j < src.ncol; j++) {
    memset(data + j * ld, 0, src.nrow * sizeof *data);
    if (src.ncol > 1 && src.ncol == src.nrow) data[j * ld + j] = 1.0;
  }
  return SCL_OK;
}

scl_status scl_cl_download(scl_context *ctx, scl_view view, scl_block src, scl_wait wait,
                           double *data, size_t ld) {
  if (src.nrow == 0 || src.ncol == 0) return SCL_OK;
  if (scl_device_beside_lacks()) return lack_content(ctx, src, data, ld);
  transfer t = {.cl = (scl_cl_context *)ctx, .wait = wait, .block = src};
  scl_status status;
  t.copy.to = data;
  t.copy.ld = ld;
  SCL_GO(begin_transfer(&t, view));
  SCL_GO(receive_spans(&t));
done:
  return end_transfer(&t, status);
}
