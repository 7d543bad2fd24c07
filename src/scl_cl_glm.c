/* GLM likelihoods on a device: parameters up, one pass over X, a sum over its groups, results down;
 * all in one queue, with one wait at the end. */
#include "scl_cl.h"
#include "scl_glm.h"

typedef struct {
  scl_cl_kernel kernel;
  size_t items, rows; /* of a group; of a tile */
  size_t slots;       /* columns whose gradient the pass gives */
  size_t groups_of_unit;
  bool by_rows; /* glm_rows.cl: a work-item a group */
} layout;

static const layout on_gpu[] = {
#define GLM_LAYOUT(name, row_lanes, lanes, columns, keep, groups)                                  \
  {SCL_K_##name,    (size_t)(row_lanes) * (lanes),                                                 \
   2 * (row_lanes), (size_t)(lanes) * (columns),                                                   \
   (groups),        false},
#include "scl_cl_glm_layouts.def"
#undef GLM_LAYOUT
};
static const layout on_cpu = {SCL_K_glm_pass_rows, 1, 64, SIZE_MAX, 4, true};

enum { LAYOUTS = sizeof on_gpu / sizeof *on_gpu, COMBINE_ITEMS = 64 };

/* Of a device whose groups are small even a GPU goes by rows. */
static const layout *choose_layout(const scl_cl_context *cl, size_t p) {
  if (cl->cpu) return &on_cpu;
  for (int i = 0; i < LAYOUTS; i++) {
    bool last = i == LAYOUTS - 1;
    if (on_gpu[i].items <= cl->info.work_group && (p <= on_gpu[i].slots || last)) return &on_gpu[i];
  }
  return &on_cpu;
}

/* Where things are in the workspace, in doubles: the parameters at 0, the results, the residuals
 * (the derivative by alpha when there is one alpha a row), the groups' sums. */
typedef struct {
  const layout *layout;
  size_t n, p, alphas;    /* alphas: 1 or n */
  size_t columns, groups; /* columns: those whose gradient the pass gives */
  bool gradient, keep;    /* keep: residuals are wanted */
  size_t results, residuals, partials, total;
} plan;

static plan make_plan(const scl_cl_context *cl, const scl_glm_pass *pass) {
  plan s = {.layout = choose_layout(cl, pass->x.ncol), .n = pass->x.nrow, .p = pass->x.ncol};
  s.alphas = pass->rowwise ? s.n : 1;
  s.columns = s.p < s.layout->slots ? s.p : s.layout->slots;
  size_t tiles = (s.n + s.layout->rows - 1) / s.layout->rows;
  size_t resident = cl->info.units * s.layout->groups_of_unit;
  s.groups = tiles < resident ? tiles : resident;
  s.gradient = (pass->wanted & (SCL_GLM_ALPHA | SCL_GLM_BETA)) != 0;
  s.keep = pass->rowwise || (pass->wanted & SCL_GLM_X) || (s.gradient && s.columns < s.p);
  s.results = s.p + s.alphas;
  s.residuals = s.results + 1 + s.p + (pass->rowwise ? 0 : 1);
  s.partials = s.residuals + (s.keep ? s.n : 0);
  s.total = s.partials + s.groups * (s.columns + 2);
  return s;
}

/* A workspace that is large enough; it only grows. */
static scl_status reserve(scl_context *ctx, scl_block *work, size_t numbers) {
  if (work->buffer != NULL && work->nrow >= numbers) return SCL_OK;
  scl_buffer_release(work->buffer);
  *work = (scl_block){0};
  return scl_block_create(ctx, numbers, 1, work);
}

static cl_mem work_memory(const scl_glm_pass *pass) {
  return ((scl_cl_buffer *)pass->work->buffer)->memory;
}

/* ---- the commands, in order --------------------------------------------------------------------
 */

static scl_status send_parameters(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  cl_event event = NULL, *wanted = scl_cl_op_event(op, &event);
  SCL_CL_TRY(op->cl,
             scl_cl.clEnqueueWriteBuffer(op->cl->queue[op->queue], work_memory(pass), CL_FALSE, 0,
                                         s->results * sizeof(double), pass->parameters, op->waits,
                                         op->waits > 0 ? op->wait : NULL, wanted),
             "clEnqueueWriteBuffer");
  scl_cl_op_took(op, event);
  return SCL_OK;
}

static scl_status launch_pass(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  size_t items = s->layout->items, global = s->groups * items;
  return scl_cl_launch(op, s->layout->kernel, 1, &global, &items, "bbmiiiiill", pass->x, pass->y,
                       pass->work->buffer, (int)s->n, (int)s->p, (int)pass->family,
                       (int)pass->rowwise, (int)s->gradient,
                       s->keep ? (long long)s->residuals : -1LL, (long long)s->partials);
}

static scl_status launch_combine(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  size_t rows = s->gradient ? 1 + s->columns + (pass->rowwise ? 0 : 1) : 1;
  size_t items = COMBINE_ITEMS, global = rows * items;
  long long row_step = (long long)s->groups, group_step = 1;
  if (s->layout->by_rows) {
    row_step = 1;
    group_step = (long long)s->columns + 2;
  }
  return scl_cl_launch(op, SCL_K_glm_combine, 1, &global, &items, "millllii", pass->work->buffer,
                       (int)s->groups, (long long)s->partials, row_step, group_step,
                       (long long)s->results, (int)s->columns, (int)s->p);
}

/* d_beta of the columns that the pass had no room for: their own product with the residuals. */
static scl_status add_columns(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  if (!s->gradient || s->columns == s->p) return SCL_OK;
  size_t more = s->p - s->columns;
  scl_block x = scl_block_part(pass->x, 0, s->columns, s->n, more);
  scl_block residuals = scl_block_part(*pass->work, s->residuals, 0, s->n, 1);
  scl_block d_beta = scl_block_part(*pass->work, s->results + 1 + s->columns, 0, more, 1);
  return scl_cl_gemm_in(op, 1.0, SCL_TRANS, x, SCL_GENERAL, SCL_NO_TRANS, residuals, SCL_GENERAL,
                        0.0, d_beta, SCL_ALL);
}

static scl_status launch_outer(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  if (!(pass->wanted & SCL_GLM_X)) return SCL_OK;
  size_t local[2] = {64, 1}, global[2] = {scl_round_up(s->n, 64), s->p};
  return scl_cl_launch(op, SCL_K_glm_outer, 2, global, local, "mlib", pass->work->buffer,
                       (long long)s->residuals, (int)s->n, pass->d_x);
}

/* Value, d_beta and d_alpha come down in one piece, no further than wanted. */
static scl_status fetch_results(scl_cl_op *op, const plan *s, const scl_glm_pass *pass,
                                cl_event *event) {
  size_t numbers = 1;
  if (s->gradient) numbers += s->p + (pass->wanted & SCL_GLM_ALPHA ? s->alphas : 0);
  SCL_CL_TRY(op->cl,
             scl_cl.clEnqueueReadBuffer(op->cl->queue[op->queue], work_memory(pass), CL_FALSE,
                                        s->results * sizeof(double), numbers * sizeof(double),
                                        pass->results, op->waits, op->waits > 0 ? op->wait : NULL,
                                        event),
             "clEnqueueReadBuffer");
  scl_cl.clRetainEvent(*event);
  scl_cl_op_took(op, *event);
  return SCL_OK;
}

static scl_status enqueue(scl_cl_op *op, const plan *s, const scl_glm_pass *pass, cl_event *event) {
  SCL_TRY(scl_cl_op_order(op, -1));
  SCL_TRY(send_parameters(op, s, pass));
  SCL_TRY(launch_pass(op, s, pass));
  SCL_TRY(launch_combine(op, s, pass));
  SCL_TRY(add_columns(op, s, pass));
  SCL_TRY(launch_outer(op, s, pass));
  return fetch_results(op, s, pass, event);
}

scl_status scl_cl_glm(scl_context *ctx, const scl_glm_pass *pass) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  plan s = make_plan(cl, pass);
  if (s.n == 0) {
    for (size_t i = 0; i < 1 + s.p + s.alphas; i++) pass->results[i] = 0.0;
    return SCL_OK;
  }
  SCL_TRY(reserve(ctx, pass->work, s.total));
  scl_cl_op op;
  cl_event event = NULL;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, pass->x.buffer);
  scl_cl_op_reads(&op, pass->y.buffer);
  scl_cl_op_writes(&op, pass->work->buffer);
  scl_cl_op_writes(&op, pass->d_x.buffer);
  scl_status status = scl_cl_op_end(&op, enqueue(&op, &s, pass, &event));
  if (status == SCL_OK) status = scl_cl_wait(cl, event);
  if (event != NULL) scl_cl.clReleaseEvent(event);
  /* After a fault or an interrupt the commands may still be under way, with the caller's memory. A
   * lost device is not waited for. */
  if (status != SCL_OK) {
    *pass->abandoned = ctx->lost || scl_cl.clFinish(cl->queue[op.queue]) != CL_SUCCESS;
  }
  return status;
}
