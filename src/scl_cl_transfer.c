/* Uploads and downloads. A matrix crosses in spans (scl_packed.h): host threads copy one between
 * the matrix and a piece of pinned memory while the bus moves others. Spans of a triangle go
 * through a piece of device memory, from which a kernel spreads them over the block (or gathers
 * them into it); one in-order queue for each direction keeps these steps in order.
 *
 * Parameters and results of a few kilobytes rather go with the work that they belong to, in its
 * queue: one queue waiting for another costs more than such a transfer. */
#include "scl_cl.h"

#include <stdlib.h>

#include "../inst/kernels/port.h"
#include "../inst/kernels/packed.h"
#include "scl_cl_staging.h"
#include "scl_packed.h"
#include "scl_threads.h"

enum { TILE = 16 };                    /* TRANSFER_TILE of transfer.cl */
enum { TEAM_FROM = 4 << 20 };          /* bytes that pay for threads */
enum { FEW = 64 << 10 };               /* bytes that go with the work */
enum { SPANS = 8, SPAN_LEAST = 8192 }; /* spans of a middling transfer; elements of a small one */

typedef struct {
  scl_cl_op op;
  scl_packed shape;
  scl_block block;
  scl_cl_staging *staging;
  scl_team *team;
  size_t capacity; /* elements of a span */
  double *to;      /* host memory, one of the two */
  const double *from;
  size_t ld;
  /* The copy that the threads are at. */
  const scl_packed_span *span;
  double *piece;
  unsigned number; /* of the piece */
} transfer;

/* The queue of a small transfer: up, the one that was used last, as what comes next is likely to
 * need it; down, that of the buffer's last write if nothing else was put there since. */
static int queue_of_few(const scl_cl_context *cl, bool up, const scl_buffer *base) {
  const scl_cl_buffer *buffer = (const scl_cl_buffer *)base;
  int q = buffer->written_on;
  if (up) return cl->last_compute;
  return q <= SCL_CL_COMPUTE_1 && buffer->written == cl->enqueued[q] ? q : SCL_CL_DOWNLOAD;
}

static scl_status begin_transfer(transfer *t, scl_context *ctx, int direction, scl_view view,
                                 scl_block block) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  t->shape = scl_packed_shape(view, block.nrow, block.ncol);
  t->block = block;
  /* The padding of a whole matrix comes along: one run of memory is quicker than many columns. */
  bool whole = block.offset == 0 && block.buffer->bytes / sizeof(double) == block.ld * block.ncol;
  if (whole) t->shape.stride = block.ld;
  size_t count = scl_packed_count(&t->shape), bytes = count * sizeof(double);
  SCL_TRY(scl_cl_staging_get(cl, direction, bytes, t->shape.kind != PACKED_FULL, &t->staging));
  t->capacity = count / SPANS > SPAN_LEAST ? count / SPANS : SPAN_LEAST;
  size_t most = t->staging->piece / sizeof(double);
  if (t->capacity > most) t->capacity = most;
  scl_cl_op_begin(&t->op, ctx);
  if (direction == SCL_CL_UP) {
    scl_cl_op_writes(&t->op, block.buffer);
  } else {
    scl_cl_op_reads(&t->op, block.buffer);
  }
  int queue = direction == SCL_CL_UP ? SCL_CL_UPLOAD : SCL_CL_DOWNLOAD;
  if (t->shape.kind == PACKED_FULL && bytes <= FEW) {
    queue = queue_of_few(cl, direction == SCL_CL_UP, block.buffer);
  }
  SCL_TRY(scl_cl_op_order(&t->op, queue));
  if (bytes >= TEAM_FROM) t->team = scl_team_start(scl_copy_threads());
  return SCL_OK;
}

/* Ends what begin_transfer() began, whole or not. */
static scl_status end_transfer(transfer *t, scl_status status) {
  scl_team_stop(t->team);
  return t->op.cl != NULL ? scl_cl_op_end(&t->op, status) : status;
}

/* The last command that uses the piece is under way; `event` may be NULL. */
static void took_piece(transfer *t, cl_event event) {
  scl_cl_staging_use(t->staging, t->number, &t->op, event);
  scl_cl_op_took(&t->op, event);
}

/* One command between a piece and the block: in one run, or column by column. */
static scl_status move_full(transfer *t, const scl_packed_span *span, bool up) {
  const scl_cl_op *op = &t->op;
  cl_command_queue queue = op->cl->queue[op->queue];
  cl_mem memory = ((scl_cl_buffer *)t->block.buffer)->memory;
  const cl_event *wait = op->waits > 0 ? op->wait : NULL;
  size_t rows = span->to - span->from, ld = t->block.ld;
  size_t start = t->block.offset + span->from + span->col * ld;
  cl_event event = NULL, *wanted = &event;
  if (up && op->queue <= SCL_CL_COMPUTE_1) wanted = scl_cl_op_event(op, &event);
  cl_int code;
  if (span->cols == 1 || t->shape.stride == ld) {
    size_t at = start * sizeof(double), bytes = span->count * sizeof(double);
    code = up ? scl_cl.clEnqueueWriteBuffer(queue, memory, CL_FALSE, at, bytes, t->piece, op->waits,
                                            wait, wanted)
              : scl_cl.clEnqueueReadBuffer(queue, memory, CL_FALSE, at, bytes, t->piece, op->waits,
                                           wait, wanted);
  } else {
    size_t pitch = ld * sizeof(double), host_pitch = rows * sizeof(double);
    bool fits = start % ld + rows <= ld;
    size_t origin[3] = {(fits ? start % ld : start) * sizeof(double), fits ? start / ld : 0, 0};
    size_t host_origin[3] = {0, 0, 0};
    size_t region[3] = {host_pitch, span->cols, 1};
    code = up ? scl_cl.clEnqueueWriteBufferRect(queue, memory, CL_FALSE, origin, host_origin,
                                                region, pitch, 0, host_pitch, 0, t->piece,
                                                op->waits, wait, wanted)
              : scl_cl.clEnqueueReadBufferRect(queue, memory, CL_FALSE, origin, host_origin, region,
                                               pitch, 0, host_pitch, 0, t->piece, op->waits, wait,
                                               wanted);
  }
  if (code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, code, up ? "upload" : "download");
  took_piece(t, event);
  return SCL_OK;
}

/* Between a piece on the host and the one on the device. */
static scl_status move_packed(transfer *t, const scl_packed_span *span, bool up) {
  if (span->count == 0) return SCL_OK;
  const scl_cl_op *op = &t->op;
  cl_command_queue queue = op->cl->queue[op->queue];
  const cl_event *wait = op->waits > 0 ? op->wait : NULL;
  size_t bytes = span->count * sizeof(double);
  cl_event event = NULL;
  cl_int code = up ? scl_cl.clEnqueueWriteBuffer(queue, t->staging->device, CL_FALSE, 0, bytes,
                                                 t->piece, op->waits, wait, &event)
                   : scl_cl.clEnqueueReadBuffer(queue, t->staging->device, CL_FALSE, 0, bytes,
                                                t->piece, op->waits, wait, &event);
  if (code != CL_SUCCESS) return scl_cl_fail(&op->cl->base, code, up ? "upload" : "download");
  took_piece(t, event);
  return SCL_OK;
}

static scl_status launch_packed(transfer *t, const scl_packed_span *span, bool up) {
  const scl_packed *s = &t->shape;
  size_t local[2] = {TILE, TILE};
  size_t global[2] = {scl_round_up(span->to - span->from, TILE), scl_round_up(span->cols, TILE)};
  if (up) {
    return scl_cl_launch(&t->op, SCL_K_transfer_unpack, 2, global, local, "briiiiiili", t->block,
                         t->staging->device, (int)s->nrow, s->kind, (int)span->col, (int)span->cols,
                         (int)span->from, (int)span->to, (long long)span->base, (int)s->mirrored);
  }
  if (span->count == 0) return SCL_OK;
  return scl_cl_launch(&t->op, SCL_K_transfer_pack, 2, global, local, "briiiiiil", t->block,
                       t->staging->device, (int)s->nrow, s->kind, (int)span->col, (int)span->cols,
                       (int)span->from, (int)span->to, (long long)span->base);
}

static scl_status flush(transfer *t) {
  SCL_CL_TRY(t->op.cl, scl_cl.clFlush(t->op.cl->queue[t->op.queue]), "clFlush");
  return SCL_OK;
}

/* ---- up -------------------------------------------------------------------------------------- */
static void gather(void *arg, int part, int parts) {
  const transfer *t = arg;
  scl_packed_gather(&t->shape, t->span, t->from, t->ld, t->piece, part, parts);
}

static scl_status send_span(transfer *t, const scl_packed_span *span) {
  SCL_TRY(scl_cl_staging_take(t->op.cl, t->staging, &t->number));
  t->span = span;
  t->piece = scl_cl_staging_at(t->staging, t->number);
  scl_team_run(t->team, gather, t);
  bool full = t->shape.kind == PACKED_FULL;
  SCL_TRY(full ? move_full(t, span, true) : move_packed(t, span, true));
  if (!full) SCL_TRY(launch_packed(t, span, true));
  return flush(t);
}

scl_status scl_cl_upload(scl_context *ctx, scl_view view, const double *data, size_t ld,
                         scl_block dst) {
  if (dst.nrow == 0 || dst.ncol == 0) return SCL_OK;
  transfer t = {.from = data, .ld = ld};
  scl_packed_span span = {0};
  scl_status status;
  SCL_GO(begin_transfer(&t, ctx, SCL_CL_UP, view, dst));
  while (scl_packed_next(&t.shape, t.capacity, &span)) SCL_GO(send_span(&t, &span));
done:
  return end_transfer(&t, status);
}

/* ---- down ------------------------------------------------------------------------------------ */
enum { PAGE = 4096 };

typedef struct {
  char *first;
  size_t bytes;
} pages;

/* Spans on their way; the oldest is first to arrive. */
typedef struct {
  scl_packed_span span[SCL_CL_PIECES];
  unsigned piece[SCL_CL_PIECES];
  unsigned sent, arrived;
} flight;

static void scatter(void *arg, int part, int parts) {
  const transfer *t = arg;
  scl_packed_scatter(&t->shape, t->span, t->piece, t->to, t->ld, part, parts);
}

static scl_status ask_span(transfer *t, flight *f, const scl_packed_span *span) {
  unsigned slot = f->sent % SCL_CL_PIECES;
  SCL_TRY(scl_cl_staging_take(t->op.cl, t->staging, &t->number));
  f->span[slot] = *span;
  f->piece[slot] = t->number;
  t->piece = scl_cl_staging_at(t->staging, t->number);
  if (t->shape.kind == PACKED_FULL) {
    SCL_TRY(move_full(t, span, false));
  } else {
    SCL_TRY(launch_packed(t, span, false));
    SCL_TRY(move_packed(t, span, false));
  }
  f->sent++;
  return flush(t);
}

static scl_status receive_span(transfer *t, flight *f) {
  unsigned slot = f->arrived++ % SCL_CL_PIECES;
  SCL_TRY(scl_cl_staging_wait(t->op.cl, t->staging, f->piece[slot]));
  t->span = &f->span[slot];
  t->piece = scl_cl_staging_at(t->staging, f->piece[slot]);
  scl_team_run(t->team, scatter, t);
  return SCL_OK;
}

/* Touches the pages of the result, which are mostly new, by all threads at once: spans are too
 * short for that. Values stay, as there may be rows between the columns that are not ours. */
static void touch(void *arg, int part, int parts) {
  const pages *p = arg;
  size_t count = (p->bytes + PAGE - 1) / PAGE;
  for (size_t i = count * (size_t)part / (size_t)parts;
       i < count * ((size_t)part + 1) / (size_t)parts; i++) {
    volatile char *at = p->first + i * PAGE;
    *at = *at;
  }
}

scl_status scl_cl_download(scl_context *ctx, scl_view view, scl_block src, double *data,
                           size_t ld) {
  if (src.nrow == 0 || src.ncol == 0) return SCL_OK;
  transfer t = {.to = data, .ld = ld};
  flight f = {.sent = 0};
  scl_packed_span span = {0};
  scl_status status;
  SCL_GO(begin_transfer(&t, ctx, SCL_CL_DOWN, view, src));
  size_t bytes = ((src.ncol - 1) * ld + src.nrow) * sizeof *data;
  if (bytes >= TEAM_FROM) {
    pages p = {.first = (char *)data, .bytes = bytes};
    scl_expect_writes(data, bytes);
    scl_team_run(t.team, touch, &p);
  }
  while (scl_packed_next(&t.shape, t.capacity, &span)) {
    if (f.sent - f.arrived == SCL_CL_PIECES) SCL_GO(receive_span(&t, &f));
    SCL_GO(ask_span(&t, &f, &span));
  }
  while (f.arrived < f.sent) SCL_GO(receive_span(&t, &f));
done:
  return end_transfer(&t, status);
}
