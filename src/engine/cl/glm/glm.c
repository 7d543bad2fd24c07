/* GLM likelihoods on a device: uploads the parameters, makes one pass over X for each point, adds
 * the sums of its groups and downloads the results, all in one queue, with one wait at the end. */
#include <string.h>

#include "engine/cl/glm/shape.h"
#include "engine/cl/linalg/linalg.h"
#include "engine/cl/runtime/staging.h"
#include "engine/cl/runtime/tune.h"
#include "kernels/include/glm_groups.h"

/* ---- plan --------------------------------------------------------------------------------- */

/* A pass by tiles, by rows (a work-item a core), or in three steps between two products. */
typedef enum { BY_TILES, BY_ROWS, SPLIT } route;

enum { SPLIT_ITEMS = 64, LEAPFROG_ITEMS = 64 };
enum { LEAPFROG_PARAMETERS = 40 }; /* of a chain whose sums one group adds */
/* Walks with a launch for each point after one in which not all groups could run at once. */
enum { WALKS_APART = 10000 };
enum { QUICK_ELEMENTS = 1 << 23 }; /* of X, times predictors: 64 MiB, 20 us at 3 TB/s */

/* The layout of the workspace, in doubles: a counter and the parameters at 0, the results, the
 * derivatives by row, the groups' sums, scratch memory. */
typedef struct {
  route route;
  int layout;
  size_t n, p, vectors, classes, predictors, aux_sums;
  size_t beta; /* its offset in the parameters */
  size_t sums; /* rows of the results without those by beta */
  size_t items, groups, cells;
  size_t parts;    /* of the parameter vectors, each with groups of its own */
  size_t warps;    /* of a group of the kernel of all points of a walk; 0: of any other kernel */
  size_t together; /* groups whose sums are added first */
  size_t results, residuals, slopes, partials, scratch, total;
  bool finish, keeps_residuals;
  bool quick;     /* so short that an event takes longer than waiting in the driver */
  bool few;       /* the parameters come with the launch */
  size_t points;  /* of one launch */
  int keep;       /* tiles of each group that stay in the cache between the points of a walk */
  int64_t record; /* of one evaluation: where its leapfrog steps go, or -1 */
  int point;      /* to which they lead */
} plan;

static scl_status choose_route(plan *s, scl_cl_context *cl, const scl_glm_pass *pass) {
  const char *wanted = scl_cl_glm_wanted();
  const bool by_rows = cl->cpu && (wanted == NULL || strcmp(wanted, "rows") == 0);
  size_t most;
  /* the kernels of tiles have no weights and no phi by row */
  bool tiles = !by_rows && !pass->weighted &&
               !(pass->row_aux && GLM_FAMILY_AUX(pass->family) == SCL_GLM_PHI);
  s->layout = -1;
  s->parts = 1;
  if (tiles) SCL_TRY(scl_cl_glm_choose(cl, pass, &s->layout));
  if (by_rows) {
    s->route = BY_ROWS;
    s->items = 1;
    s->cells = GLM_ROWS_BLOCK;
    most = (size_t)scl_cl_tuned(cl, SCL_CL_TUNE_glm_rows_groups);
  } else if (s->layout >= 0) {
    const scl_cl_glm_shape *l = scl_cl_glm_shape_of(s->layout);
    s->route = BY_TILES;
    s->items = l->items;
    s->cells = l->rows;
    s->finish = l->finish;
    s->parts = scl_ceil_div(s->predictors, l->predictors);
    int groups = (int)l->groups_of_unit[GLM_IS(LEAN, pass->family)];
    if (!l->finish) groups += scl_cl_tuned(cl, SCL_CL_TUNE_glm_more_groups);
    most = groups > 1 ? (size_t)groups : 1;
    size_t room = l->mma ? scl_cl_glm_local_groups(l, pass) : most;
    if (room < most) most = room;
  } else {
    s->route = SPLIT;
    s->items = SPLIT_ITEMS;
    while (s->items > 1 && scl_cl_glm_cut_bytes(pass, s->items) > SCL_CL_GLM_CUT_BYTES)
      s->items /= 2;
    s->cells = s->items;
    most = (size_t)scl_cl_tuned(cl, SCL_CL_TUNE_glm_split_groups);
  }
  size_t tiles_of_rows = scl_ceil_div(s->n, s->cells);
  s->groups = scl_min(tiles_of_rows, scl_ceil_div(cl->info.units * most, s->parts));
  return SCL_OK;
}

/* The groups of a walk by matrix instructions, in one launch if all of them can run at once: each
 * part has as many. A launch for each point has as many warps, so that both add in one order. */
static void choose_walk(plan *s, const scl_cl_context *cl, const scl_glm_pass *pass) {
  const scl_cl_glm_shape *l = s->route == BY_TILES ? scl_cl_glm_shape_of(s->layout) : NULL;
  if (l == NULL || !l->mma || pass->points < 2 || pass->directions > 1 + s->p ||
      GLM_TOGETHER * l->items > cl->info.work_group || !scl_cl_glm_may_meet(cl) ||
      scl_cl_glm_walk_kernel(pass->family, s->layout) == NULL)
    return;
  const size_t of_unit = l->groups_of_unit[GLM_IS(LEAN, pass->family)] / GLM_TOGETHER;
  const size_t most = cl->info.units * of_unit / s->parts; /* of a part */
  const size_t groups = scl_min(scl_ceil_div(scl_ceil_div(s->n, s->cells), GLM_TOGETHER), most);
  if (most == 0) return;
  if (cl->walks_apart > 0) {
    s->together = GLM_TOGETHER;
    s->groups = groups * GLM_TOGETHER;
    return;
  }
  s->warps = GLM_TOGETHER;
  s->groups = groups * s->parts;
  s->items = GLM_TOGETHER * l->items;
}

/* Whether the launch is all that a point needs. */
static bool is_alone(const plan *s) {
  return s->finish || s->warps > 0;
}

/* Partial sums for each number of the results. */
static size_t count_partials(const plan *s) {
  if (s->warps > 0) return s->groups / s->parts;
  return s->points > 1 ? 2 * s->groups : s->groups;
}

/* A matrix that fits into the cache needs no hints. */
static int tiles_to_keep(const scl_cl_context *cl, const plan *s, const scl_glm_pass *pass) {
  const size_t kept = scl_cl_kept_bytes(cl), row = s->p * sizeof(double);
  if (!s->finish || pass->points == 0 || s->n * row <= kept) return GLM_KEEP_NONE;
  return (int)(kept / (s->groups * s->cells * row));
}

static scl_status make_plan(scl_cl_context *cl, const scl_glm_pass *pass, plan *out) {
  const scl_glm_layout at = scl_glm_layout_of(pass);
  plan s = {.n = pass->x.nrow,
            .p = pass->x.ncol,
            .vectors = pass->vectors,
            .classes = pass->classes,
            .predictors = pass->vectors * pass->classes,
            .aux_sums = pass->aux_sums,
            .beta = at.beta,
            .sums = at.d_beta,
            .together = 1,
            .record = -1};
  SCL_TRY(choose_route(&s, cl, pass));
  choose_walk(&s, cl, pass);
  size_t points = pass->points > 0 ? pass->points : 1;
  /* in the driver one would wait for the walk of another share, too */
  s.quick = !cl->cpu && s.warps == 0 && s.n * (s.p + 1) * s.predictors * points <= QUICK_ELEMENTS;
  size_t all = at.results;
  s.keeps_residuals = pass->d_alpha_rows != NULL || pass->d_x.buffer != NULL || s.route == SPLIT;
  s.results = at.parameters + scl_glm_walk_numbers(pass) + scl_glm_walk_room(pass);
  s.residuals = s.results + all + scl_glm_record_numbers(pass);
  s.slopes = s.residuals + (s.keeps_residuals ? s.n * s.predictors : 0);
  s.partials = s.slopes + (pass->d_aux_rows != NULL ? s.n * s.vectors : 0);
  s.keep = tiles_to_keep(cl, &s, pass);
  s.points = is_alone(&s) && pass->points > 1 && cl->walks_apart == 0 ? pass->points : 1;
  s.scratch = s.partials + count_partials(&s) * (s.route == SPLIT ? s.sums : all);
  s.total = s.scratch;
  if (s.route == BY_ROWS) s.total += s.groups * (s.predictors * GLM_ROWS_BLOCK + s.sums);
  *out = s;
  return SCL_OK;
}

/* Whether the parameters can be passed with the launch, which saves a command. A new workspace
 * needs the command, since it also writes the counter. */
static bool are_few(const plan *s, const scl_glm_pass *pass) {
  return s->finish && pass->points == 0 && scl_glm_layout_of(pass).parameters <= GLM_FEW_MOST &&
         GLM_FAMILY_AUX(pass->family) != SCL_GLM_CUTS && !pass->row_alpha && !pass->row_aux;
}

/* Makes sure that the workspace is large enough; it only grows. */
static scl_status reserve_workspace(scl_context *ctx, scl_block *work, size_t numbers,
                                    bool *fresh) {
  *fresh = work->buffer == NULL || work->nrow < numbers;
  if (!*fresh) return SCL_OK;
  scl_buffer_release(work->buffer);
  *work = (scl_block){0};
  return scl_block_create(ctx, numbers, 1, work);
}

static cl_mem work_memory(const scl_glm_pass *pass) {
  return ((scl_cl_buffer *)pass->state->work.buffer)->memory;
}

/* ---- the commands, in order --------------------------------------------------------------- */

static scl_status send_parameters(scl_cl_op *op, const scl_glm_pass *pass) {
  const size_t numbers = scl_glm_layout_of(pass).parameters + scl_glm_walk_numbers(pass);
  SCL_CL_TRY(op->cl,
             scl_cl.clEnqueueWriteBuffer(op->cl->queue[op->queue], work_memory(pass), CL_FALSE, 0,
                                         numbers * sizeof(double), pass->parameters, op->waits,
                                         op->waits > 0 ? op->wait : NULL, NULL),
             "clEnqueueWriteBuffer");
  scl_cl_op_took(op, NULL);
  return SCL_OK;
}

static int flags_of(const scl_glm_pass *pass) {
  return (pass->gradient ? GLM_GRADIENT : 0) | (pass->row_alpha ? GLM_ROW_ALPHA : 0) |
         (pass->row_aux ? GLM_ROW_AUX : 0) | (pass->weighted ? GLM_WEIGHTED : 0);
}

static glm_task describe_task(const plan *s, const scl_glm_pass *pass) {
  return (glm_task){.at = scl_glm_layout_of(pass),
                    .results = (int64_t)s->results,
                    .partials = (int64_t)s->partials,
                    .residuals = s->keeps_residuals ? (int64_t)s->residuals : -1,
                    .slopes = pass->d_aux_rows != NULL ? (int64_t)s->slopes : -1,
                    .scratch = (int64_t)s->scratch,
                    .record = s->record,
                    .n = (int)s->n,
                    .p = (int)s->p,
                    .vectors = (int)s->vectors,
                    .classes = (int)s->classes,
                    .predictors = (int)s->predictors,
                    .aux_count = (int)pass->aux_count,
                    .aux_sums = (int)s->aux_sums,
                    .flags = flags_of(pass) | (s->few ? GLM_FEW : 0),
                    .family = (int)pass->family,
                    .has_eta = s->p > 0,
                    .point = s->point,
                    .directions = (int)pass->directions,
                    .points = (int)s->points,
                    .keep = s->keep};
}

static scl_status launch_tiles(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  const size_t local[2] = {s->items, 1};
  const size_t global[2] = {s->groups * s->items, s->warps > 0 ? 1 : s->parts};
  const scl_cl_range range = scl_cl_range_2(global, local);
  const scl_arg_in x = scl_in(pass->x), y = scl_in(pass->y);
  const scl_arg_inout_buffer work = scl_inout_buffer(pass->state->work.buffer);
  const scl_arg_local by_cut =
      scl_local(scl_cl_glm_cut_bytes(pass, scl_cl_glm_shape_of(s->layout)->predictors * s->cells));
  const glm_task task = describe_task(s, pass);
  if (!s->finish) {
    const scl_kernel_glm_pass *kernel = s->warps > 0
                                            ? scl_cl_glm_walk_kernel(pass->family, s->layout)
                                            : scl_cl_glm_pass_kernel(pass->family, s->layout);
    return scl_launch_glm_pass(op, kernel, range, x, y, work, &task, by_cut);
  }
  glm_few few = {{0.0}};
  if (s->few)
    memcpy(few.number, pass->parameters, scl_glm_layout_of(pass).parameters * sizeof(double));
  return scl_launch_glm_pass_and_sum(op, scl_cl_glm_sum_kernel(pass->family, s->layout), range, x,
                                     y, work, &task, by_cut, &few);
}

static scl_status launch_rows(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  const glm_task task = describe_task(s, pass);
  return scl_launch_glm_rows(op, scl_cl_range_1(s->groups, s->items), scl_in(pass->x),
                             scl_in(pass->y), scl_inout_buffer(pass->state->work.buffer), &task);
}

static scl_block work_part(const scl_glm_pass *pass, size_t offset, size_t nrow, size_t ncol) {
  return (scl_block){pass->state->work.buffer,
                     pass->state->work.offset + offset,
                     nrow > 0 ? nrow : 1,
                     nrow,
                     ncol,
                     SCL_F64};
}

/* Two products, and between them the terms of the likelihood. */
static scl_status launch_split(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  scl_block beta = work_part(pass, s->beta, s->p, s->predictors);
  scl_block eta = work_part(pass, s->residuals, s->n, s->predictors);
  scl_block d_beta = work_part(pass, s->results + s->sums, s->p, s->predictors);
  if (s->p > 0) {
    SCL_TRY(scl_cl_gemm_in(op, 1.0, SCL_NO_TRANS, pass->x, SCL_GENERAL, SCL_NO_TRANS, beta,
                           SCL_GENERAL, 0.0, eta, SCL_ALL));
  }
  size_t global[2] = {s->groups * s->items, s->vectors}, local[2] = {s->items, 1};
  const glm_task task = describe_task(s, pass);
  SCL_TRY(scl_launch_glm_split(op, scl_cl_range_2(global, local), scl_in(pass->y),
                               scl_inout_buffer(pass->state->work.buffer), &task,
                               scl_local(s->items * sizeof(double)),
                               scl_local(scl_cl_glm_cut_bytes(pass, s->items))));
  if (!pass->gradient || s->p == 0) return SCL_OK;
  return scl_cl_gemm_in(op, 1.0, SCL_TRANS, pass->x, SCL_GENERAL, SCL_NO_TRANS, eta, SCL_GENERAL,
                        0.0, d_beta, SCL_ALL);
}

/* Whether the sums of the groups and the step to the next evaluation are one launch. */
static bool sums_and_steps(const scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  const size_t d = 1 + s->p, directions = pass->directions;
  return !is_alone(s) && s->route != SPLIT && s->record >= 0 && d <= LEAPFROG_PARAMETERS &&
         LEAPFROG_NUMBERS(d, directions) <= LEAPFROG_NEAR &&
         op->cl->info.work_group >= LEAPFROG_SUMS * GLM_COMBINE_ITEMS;
}

static scl_status launch_combine(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  size_t all = s->sums + (s->route == SPLIT ? 0 : s->p * s->predictors);
  size_t rows = pass->gradient ? all : s->sums;
  bool by_group = s->route == BY_ROWS;
  const scl_arg_inout_buffer work = scl_inout_buffer(pass->state->work.buffer);
  if (is_alone(s)) return SCL_OK;
  if (!sums_and_steps(op, s, pass)) {
    return scl_launch_glm_combine(op, scl_cl_range_1(rows * GLM_COMBINE_ITEMS, GLM_COMBINE_ITEMS),
                                  work, (int)(s->groups / s->together), (int)s->together,
                                  s->partials, by_group ? 1 : s->groups, by_group ? all : 1,
                                  s->results);
  }
  const size_t items = LEAPFROG_SUMS * GLM_COMBINE_ITEMS;
  const leapfrog_sum_task task = {.partials = (int64_t)s->partials,
                                  .row_step = by_group ? 1 : (int64_t)s->groups,
                                  .group_step = by_group ? (int64_t)all : 1,
                                  .q = scl_glm_layout_of(pass).alpha,
                                  .record = s->record,
                                  .vectors = (int)s->vectors,
                                  .p = (int)s->p,
                                  .point = s->point,
                                  .directions = (int)pass->directions,
                                  .groups = (int)(s->groups / s->together),
                                  .together = (int)s->together};
  return scl_launch_leapfrog_sum(op, scl_cl_range_1(s->vectors * items, items), work, &task);
}

static scl_status launch_outer(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  if (pass->d_x.buffer == NULL) return SCL_OK;
  size_t local[2] = {64, 1}, global[2] = {scl_round_up(s->n, 64), s->p};
  return scl_launch_glm_outer(op, scl_cl_range_2(global, local),
                              scl_in_buffer(pass->state->work.buffer), s->beta, s->residuals,
                              (int)s->predictors, (int)s->n, (int)s->p, scl_out(pass->d_x));
}

/* The step from one evaluation to the next, unless it has been made. */
static scl_status launch_leapfrog(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  if (is_alone(s) || s->record < 0 || sums_and_steps(op, s, pass)) return SCL_OK;
  return scl_launch_leapfrog_step(op, scl_cl_range_1(s->vectors * LEAPFROG_ITEMS, LEAPFROG_ITEMS),
                                  (int)s->vectors, (int)s->p, s->point, (int)pass->directions,
                                  scl_inout_buffer(pass->state->work.buffer), (int64_t)s->results,
                                  scl_glm_layout_of(pass).alpha, s->record);
}

/* ---- results ------------------------------------------------------------------------------ */

/* `event` may be NULL. */
static scl_status read_work(scl_cl_op *op, const scl_glm_pass *pass, size_t from, size_t numbers,
                            double *to, cl_event *event) {
  if (op->missing) {
    memset(to, 0, numbers * sizeof *to);
    return SCL_OK;
  }
  SCL_CL_TRY(op->cl,
             scl_cl.clEnqueueReadBuffer(op->cl->queue[op->queue], work_memory(pass), CL_FALSE,
                                        from * sizeof(double), numbers * sizeof(double), to,
                                        op->waits, op->waits > 0 ? op->wait : NULL, event),
             "clEnqueueReadBuffer");
  return SCL_OK;
}

static scl_status read_rows(scl_cl_op *op, const scl_glm_pass *pass, size_t from, size_t numbers,
                            double *to) {
  if (to == NULL) return SCL_OK;
  SCL_TRY(read_work(op, pass, from, numbers, to, NULL));
  scl_cl_op_took(op, NULL);
  return SCL_OK;
}

static scl_status launch_pass(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  if (s->route == BY_TILES) return launch_tiles(op, s, pass);
  return s->route == BY_ROWS ? launch_rows(op, s, pass) : launch_split(op, s, pass);
}

/* The destination of the results: pinned memory, which a device writes directly, or the
 * caller's memory if that is too small (`staging` is NULL). */
typedef struct {
  double *to;
  size_t numbers;
  scl_cl_staging *staging;
  unsigned piece;
} destination;

static scl_status choose_destination(scl_cl_context *cl, destination *d) {
  scl_cl_staging *staging;
  SCL_TRY(scl_cl_staging_get(cl, SCL_CL_DOWN, sizeof(double), false, &staging));
  if (d->numbers * sizeof(double) > staging->piece) return SCL_OK;
  SCL_TRY(scl_cl_staging_take(cl, staging, &d->piece));
  d->staging = staging;
  d->to = scl_cl_staging_at(staging, d->piece);
  return SCL_OK;
}

static scl_status enqueue_pass(scl_cl_op *op, const plan *s, const scl_glm_pass *pass,
                               const destination *d) {
  cl_event event = NULL;
  /* Two walks at once could each wait for groups that the other keeps from running. The walks of
   * two shares of chains, which fill the device, may be in two queues all the same: NVIDIA's
   * devices start all groups of a kernel before those of a later one. Where one did not, groups
   * would give up (glm_meet.h). */
  SCL_TRY(scl_cl_op_order(op, s->points > 1 && s->warps == 0 ? SCL_CL_COMPUTE_0 : -1));
  op->timing = SCL_CL_TIME_NONE;
  if (!s->few) SCL_TRY(send_parameters(op, pass));
  op->timing = SCL_CL_TIME_EACH;
  const size_t records = s->results + s->vectors * (2 + s->p), size = scl_glm_record_size(pass);
  for (size_t k = 0; k == 0 || k < pass->points; k += s->points) {
    plan one = *s;
    one.record = k + 1 < pass->points ? (int64_t)(records + k * size) : -1;
    one.point = (int)k + 1;
    SCL_TRY(launch_pass(op, &one, pass));
    SCL_TRY(launch_combine(op, &one, pass));
    SCL_TRY(launch_leapfrog(op, &one, pass));
  }
  SCL_TRY(launch_outer(op, s, pass));
  op->timing = SCL_CL_TIME_NONE;
  SCL_TRY(read_rows(op, pass, s->residuals, s->n * s->predictors, pass->d_alpha_rows));
  SCL_TRY(read_rows(op, pass, s->slopes, s->n * s->vectors, pass->d_aux_rows));
  SCL_TRY(read_work(op, pass, s->results, d->numbers, d->to, s->quick ? NULL : &event));
  if (d->staging != NULL) scl_cl_staging_use(d->staging, d->piece, op, event);
  scl_cl_op_took(op, event);
  return SCL_OK;
}

static scl_status begin_pass(scl_context *ctx, const plan *s, const scl_glm_pass *pass,
                             const destination *d) {
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, pass->x.buffer);
  scl_cl_op_reads(&op, pass->y.buffer);
  scl_cl_op_writes(&op, pass->state->work.buffer);
  scl_cl_op_writes(&op, pass->d_x.buffer);
  const scl_status status = scl_cl_op_end(&op, enqueue_pass(&op, s, pass, d));
  pass->state->pending.from = d->staging != NULL ? d->to : NULL;
  pass->state->pending.numbers = d->numbers;
  pass->state->pending.queue = op.queue;
  pass->state->pending.count = op.cl->enqueued[op.queue];
  pass->state->pending.quick = s->quick;
  pass->state->pending.at_once = s->points > 1 && !op.missing;
  return status;
}

/* After an error or an interrupt, pending commands may still use the caller's memory, and the
 * counter may not be written. A lost device is not waited for. */
static scl_status abandon(scl_context *ctx, const scl_glm_pass *pass, scl_status status) {
  const scl_cl_context *cl = (const scl_cl_context *)ctx;
  pass->state->abandoned =
      ctx->lost || scl_cl.clFinish(cl->queue[pass->state->pending.queue]) != CL_SUCCESS;
  scl_buffer_release(pass->state->work.buffer);
  pass->state->work = (scl_block){0};
  pass->state->pending.count = 0;
  return status;
}

scl_status scl_cl_glm_begin(scl_context *ctx, const scl_glm_pass *pass) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  plan s;
  pass->state->pending.count = 0;
  SCL_TRY(make_plan(cl, pass, &s));
  size_t numbers =
      s.sums + (pass->gradient ? s.p * s.predictors : 0) + scl_glm_record_numbers(pass);
  if (s.n == 0) {
    for (size_t i = 0; i < numbers; i++) pass->results[i] = 0.0;
    return SCL_OK;
  }
  bool fresh = false;
  SCL_TRY(reserve_workspace(ctx, &pass->state->work, s.total, &fresh));
  s.few = !fresh && are_few(&s, pass);
  destination d = {.to = pass->results, .numbers = numbers};
  scl_status status = choose_destination(cl, &d);
  if (status == SCL_OK) status = begin_pass(ctx, &s, pass, &d);
  if (cl->walks_apart > 0 && pass->points > 1) cl->walks_apart--;
  return status == SCL_OK ? status : abandon(ctx, pass, status);
}

scl_status scl_cl_glm_end(scl_context *ctx, const scl_glm_pass *pass) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  scl_glm_state *state = pass->state;
  const int queue = state->pending.queue;
  if (state->pending.count == 0) return SCL_OK;
  const scl_status status = state->pending.quick ? scl_cl_drain(cl, queue)
                                                 : scl_cl_reach(cl, queue, state->pending.count);
  if (status != SCL_OK) return abandon(ctx, pass, status);
  state->pending.count = 0;
  if (state->pending.from != NULL)
    memcpy(pass->results, state->pending.from, state->pending.numbers * sizeof(double));
  if (!state->pending.at_once || pass->results[state->pending.numbers - 1] == 1.0) return SCL_OK;
  cl->walks_apart = WALKS_APART;
  const scl_status again = scl_cl_glm(ctx, pass);
  return again == SCL_OK ? SCL_OK : abandon(ctx, pass, again);
}

scl_status scl_cl_glm(scl_context *ctx, const scl_glm_pass *pass) {
  SCL_TRY(scl_cl_glm_begin(ctx, pass));
  return scl_cl_glm_end(ctx, pass);
}
