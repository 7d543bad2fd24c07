/* GLM likelihoods on a device: uploads the parameters, makes one pass over X, adds the sums of its
 * groups and downloads the results, all in one queue, with one wait at the end. */
#include <string.h>

#include "engine/cl/linalg/linalg.h"
#include "engine/cl/runtime/staging.h"
#include "engine/cl/runtime/tune.h"
#include "engine/pass/glm.h"
#include "kernels/include/glm_groups.h"

/* ---- layouts ----------------------------------------------------------------------------------
 */

typedef struct {
  const char *name;
  size_t predictors, items, rows; /* of a row; of a group; of a tile */
  size_t slots;                   /* columns */
  bool finish;                    /* the pass adds the groups' sums itself */
  size_t groups_of_unit[2];       /* of a lean family: the second */
  size_t least[2]; /* the least numbers of predictors and columns for which it is used */
  bool mma;        /* needs matrix instructions */
} layout;

static const layout layouts[] = {
#define LAYOUT(NAME, family, layout, predictors, eighths, groups, groups_lean, least, columns)     \
  {#layout,                                                                                        \
   (predictors),                                                                                   \
   32,                                                                                             \
   16,                                                                                             \
   8 * (eighths),                                                                                  \
   false,                                                                                          \
   {(groups), (groups_lean)},                                                                      \
   {(least), (columns)},                                                                           \
   true},
    SCL_GLM_MMA_LAYOUTS(LAYOUT, , )
#undef LAYOUT
#define LAYOUT(NAME, family, layout, predictors, row_lanes, lanes, columns, width, finish, groups, \
               groups_lean)                                                                        \
  {#layout,                                                                                        \
   (predictors),                                                                                   \
   (size_t)(row_lanes) * (lanes),                                                                  \
   (size_t)(width) * (row_lanes),                                                                  \
   (size_t)(lanes) * (columns),                                                                    \
   (finish) != 0,                                                                                  \
   {(groups), (groups_lean)},                                                                      \
   {0, 0},                                                                                         \
   false},
        SCL_GLM_LAYOUTS(LAYOUT, , )
#undef LAYOUT
};

enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* The kernels of the layouts: those that add the groups' sums themselves have their own table. */
#define MMA_KERNEL(NAME, family, layout, ...) &scl_k_glm_##layout##_##family,
#define KERNEL(NAME, family, layout, predictors, row_lanes, lanes, columns, width, finish, ...)    \
  KERNEL_##finish(&scl_k_glm_##layout##_##family),
#define ROW(NAME, name, support, words, aux)                                                       \
  {SCL_GLM_MMA_LAYOUTS(MMA_KERNEL, NAME, name) SCL_GLM_LAYOUTS(KERNEL, NAME, name)},
#define KERNEL_0(kernel) kernel
#define KERNEL_1(kernel) NULL
static const scl_kernel_glm_pass *const pass_kernels[SCL_GLM_FAMILY_COUNT][LAYOUTS] = {
    SCL_GLM_FAMILIES(ROW)};
#undef KERNEL_0
#undef KERNEL_1
#undef MMA_KERNEL
#define MMA_KERNEL(NAME, family, layout, ...) NULL,
#define KERNEL_0(kernel) NULL
#define KERNEL_1(kernel) kernel
static const scl_kernel_glm_pass_and_sum *const sum_kernels[SCL_GLM_FAMILY_COUNT][LAYOUTS] = {
    SCL_GLM_FAMILIES(ROW)};
#undef KERNEL_0
#undef KERNEL_1
#undef MMA_KERNEL
#undef KERNEL
#undef ROW

static scl_cl_program mma_program(scl_glm_family family, int layout) {
  return scl_cl_program_of(pass_kernels[family][layout]->id);
}

static const char *wanted_layout; /* for tests, and for trials */

void scl_cl_glm_force(const char *name) {
  wanted_layout = name;
}

scl_cl_glm_form scl_cl_glm_form_of(scl_cl_program which) {
  scl_cl_glm_form form = {0};
  for (int family = 0; family < SCL_GLM_FAMILY_COUNT; family++) {
    for (int l = 0; l < LAYOUTS; l++) {
      if (!layouts[l].mma || mma_program((scl_glm_family)family, l) != which) continue;
      form = (scl_cl_glm_form){(scl_glm_family)family, layouts[l].name, layouts[l].predictors,
                               layouts[l].slots};
    }
  }
  return form;
}

const char *scl_cl_glm_wanted(void) {
  return wanted_layout;
}

const char *scl_cl_glm_layout(size_t i) {
  if (i < LAYOUTS) return layouts[i].name;
  return i == LAYOUTS ? "rows" : NULL;
}

/* A pass by tiles, by rows (a work-item a core), or in three steps between two products. */
typedef enum { BY_TILES, BY_ROWS, SPLIT } route;

enum { SPLIT_ITEMS = 64, CUT_BYTES = 16 << 10 };
/* More parameter vectors than a row has predictors are cut into parts of PART of one launch. */
enum { PART = 8, MOST_PARTS = 16 };
enum { QUICK_ELEMENTS = 1 << 23 }; /* of X, times predictors */

/* The layout of the workspace, in doubles: a counter and the parameters at 0, the results, the
 * derivatives by row, the groups' sums, scratch memory. */
typedef struct {
  route route;
  int layout;
  size_t n, p, vectors, classes, predictors, aux_sums;
  size_t beta; /* its offset in the parameters */
  size_t sums; /* rows of the results without those by beta */
  size_t items, groups, cells;
  size_t parts; /* of the parameter vectors, each with groups of its own */
  size_t results, residuals, slopes, partials, scratch, total;
  bool finish, keeps_residuals;
  bool quick; /* so short that an event would cost more than waiting in the driver */
  bool few;   /* the parameters come with the launch */
} plan;

/* Bytes of local memory for the sums by cut, one for each of `cells` predictors. Groups share the
 * local memory of a unit. */
static size_t cut_bytes(const scl_glm_pass *pass, size_t cells) {
  size_t cuts = GLM_FAMILY_AUX(pass->family) == SCL_GLM_CUTS ? pass->aux_sums : 0;
  return cuts * cells > 0 ? cuts * cells * sizeof(double) : sizeof(double);
}

static size_t most_predictors(const scl_glm_pass *pass, const layout *l) {
  const bool in_parts = l->mma && l->predictors == PART && !GLM_FAMILY_COUPLED(pass->family);
  return in_parts ? PART * MOST_PARTS : l->predictors;
}

static bool layout_fits(scl_cl_context *cl, const scl_glm_pass *pass, const layout *l) {
  size_t predictors = pass->vectors * pass->classes;
  bool worth = predictors >= l->least[0] && pass->x.ncol >= l->least[1];
  if (wanted_layout != NULL ? strcmp(wanted_layout, l->name) != 0 : !worth) return false;
  /* Only on known devices does a fence order memory between groups. */
  if (l->finish && cl->info.capability < 70 && wanted_layout == NULL) return false;
  return predictors <= most_predictors(pass, l) && pass->x.ncol <= l->slots &&
         (pass->vectors == 1 || pass->classes == 1) && l->items <= cl->info.work_group &&
         cut_bytes(pass, l->predictors * l->rows) <= CUT_BYTES &&
         (!l->mma || scl_cl_may_try_large_mma(cl));
}

/* Pairs of rows need columns that start at even offsets; indices have 32 bits in the pass. */
static scl_status choose_layout(scl_cl_context *cl, const scl_glm_pass *pass, int *out) {
  *out = LAYOUTS;
  if (((pass->x.offset | pass->x.ld) & 1) != 0 && pass->x.ncol > 0) return SCL_OK;
  if (pass->x.ld * (pass->x.ncol + 1) > UINT32_MAX) return SCL_OK;
  for (int l = 0; l < LAYOUTS; l++) {
    bool usable = true;
    if (!layout_fits(cl, pass, &layouts[l])) continue;
    if (layouts[l].mma) SCL_TRY(scl_cl_try_program(cl, mma_program(pass->family, l), &usable));
    if (!usable) continue;
    *out = l;
    break;
  }
  return SCL_OK;
}

/* The number of groups whose tiles, cells (inst/kernels/nvidia/glm_mma.cl), sums by cut and
 * driver's share fit into the local memory of a unit. The same with and without a gradient. */
static size_t groups_in_local_memory(const layout *l, const scl_glm_pass *pass) {
  size_t unit = 228 << 10, aux = 1024;
  size_t cuts = GLM_FAMILY_AUX(pass->family) == SCL_GLM_CUTS ? pass->aux_count : 0;
  /* with so many cuts gradients take another route, and values alone need no sums by cut */
  if (cuts * l->predictors * l->rows * sizeof(double) > CUT_BYTES) cuts = 0;
  size_t numbers = 2 * l->slots * l->rows + l->predictors * (l->rows * (1 + cuts) + 1);
  return unit / (scl_round_up((numbers + 1) * sizeof(double), 128) + aux);
}

static scl_status choose_route(plan *s, scl_cl_context *cl, const scl_glm_pass *pass) {
  const bool by_rows = cl->cpu && (wanted_layout == NULL || strcmp(wanted_layout, "rows") == 0);
  size_t most;
  /* the kernels of tiles have no weights and no phi by row */
  bool tiles = !by_rows && !pass->weighted &&
               !(pass->row_aux && GLM_FAMILY_AUX(pass->family) == SCL_GLM_PHI);
  s->layout = LAYOUTS;
  s->parts = 1;
  if (tiles) SCL_TRY(choose_layout(cl, pass, &s->layout));
  if (by_rows) {
    s->route = BY_ROWS;
    s->items = 1;
    s->cells = GLM_ROWS_BLOCK;
    most = (size_t)scl_cl_tuned(cl, SCL_CL_TUNE_glm_rows_groups);
  } else if (s->layout < LAYOUTS) {
    const layout *l = &layouts[s->layout];
    s->route = BY_TILES;
    s->items = l->items;
    s->cells = l->rows;
    s->finish = l->finish;
    s->parts = scl_ceil_div(s->predictors, l->predictors);
    int wanted = (int)l->groups_of_unit[SCL_GLM_LEAN(pass->family)] +
                 scl_cl_tuned(cl, SCL_CL_TUNE_glm_more_groups);
    most = wanted > 1 ? (size_t)wanted : 1;
    size_t room = l->mma ? groups_in_local_memory(l, pass) : most;
    if (room < most) most = room;
  } else {
    s->route = SPLIT;
    s->items = SPLIT_ITEMS;
    while (s->items > 1 && cut_bytes(pass, s->items) > CUT_BYTES) s->items /= 2;
    s->cells = s->items;
    most = (size_t)scl_cl_tuned(cl, SCL_CL_TUNE_glm_split_groups);
  }
  size_t tiles_of_rows = scl_ceil_div(s->n, s->cells);
  s->groups = scl_min(tiles_of_rows, scl_ceil_div(cl->info.units * most, s->parts));
  return SCL_OK;
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
            .sums = at.d_beta};
  SCL_TRY(choose_route(&s, cl, pass));
  size_t points = pass->points > 0 ? pass->points : 1;
  s.quick = !cl->cpu && s.n * (s.p + 1) * s.predictors * points <= QUICK_ELEMENTS;
  size_t all = at.results;
  s.keeps_residuals = pass->d_alpha_rows != NULL || pass->d_x.buffer != NULL || s.route == SPLIT;
  s.results = at.parameters + scl_glm_walk_numbers(pass);
  s.residuals = s.results + all + scl_glm_record_numbers(pass);
  s.slopes = s.residuals + (s.keeps_residuals ? s.n * s.predictors : 0);
  s.partials = s.slopes + (pass->d_aux_rows != NULL ? s.n * s.vectors : 0);
  s.scratch = s.partials + s.groups * (s.route == SPLIT ? s.sums : all);
  s.total = s.scratch;
  if (s.route == BY_ROWS) s.total += s.groups * (s.predictors * GLM_ROWS_BLOCK + s.sums);
  *out = s;
  return SCL_OK;
}

/* Whether the parameters can be passed with the launch, which saves a command. A new workspace
 * needs the command, since it also writes the counter. */
static bool are_few(const plan *s, const scl_glm_pass *pass) {
  return s->finish && pass->points == 0 && scl_glm_layout_of(pass).parameters <= GLM_FEW_MOST &&
         s->predictors == 1 && GLM_FAMILY_AUX(pass->family) != SCL_GLM_CUTS && !pass->row_alpha &&
         !pass->row_aux;
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

/* ---- the commands, in order -------------------------------------------------------------------
 */

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
                    .n = (int)s->n,
                    .p = (int)s->p,
                    .vectors = (int)s->vectors,
                    .classes = (int)s->classes,
                    .predictors = (int)s->predictors,
                    .aux_count = (int)pass->aux_count,
                    .aux_sums = (int)s->aux_sums,
                    .flags = flags_of(pass) | (s->few ? GLM_FEW : 0),
                    .family = (int)pass->family,
                    .has_eta = s->p > 0};
}

static scl_status launch_tiles(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  const size_t global[2] = {s->groups * s->items, s->parts}, local[2] = {s->items, 1};
  const scl_cl_range range = scl_cl_range_2(global, local);
  const scl_arg_in x = scl_in(pass->x), y = scl_in(pass->y);
  const scl_arg_inout_buffer work = scl_inout_buffer(pass->state->work.buffer);
  const scl_arg_local by_cut = scl_local(cut_bytes(pass, layouts[s->layout].predictors * s->cells));
  const glm_task task = describe_task(s, pass);
  if (!s->finish) {
    return scl_launch_glm_pass(op, pass_kernels[pass->family][s->layout], range, x, y, work, &task,
                               by_cut);
  }
  glm_few few = {{0.0}};
  if (s->few)
    memcpy(few.number, pass->parameters, scl_glm_layout_of(pass).parameters * sizeof(double));
  return scl_launch_glm_pass_and_sum(op, sum_kernels[pass->family][s->layout], range, x, y, work,
                                     &task, by_cut, &few);
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
                               scl_local(cut_bytes(pass, s->items))));
  if (!pass->gradient || s->p == 0) return SCL_OK;
  return scl_cl_gemm_in(op, 1.0, SCL_TRANS, pass->x, SCL_GENERAL, SCL_NO_TRANS, eta, SCL_GENERAL,
                        0.0, d_beta, SCL_ALL);
}

static scl_status launch_combine(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  size_t all = s->sums + (s->route == SPLIT ? 0 : s->p * s->predictors);
  size_t rows = pass->gradient ? all : s->sums;
  bool by_group = s->route == BY_ROWS;
  if (s->finish) return SCL_OK;
  return scl_launch_glm_combine(op, scl_cl_range_1(rows * GLM_COMBINE_ITEMS, GLM_COMBINE_ITEMS),
                                scl_inout_buffer(pass->state->work.buffer), (int)s->groups,
                                s->partials, by_group ? 1 : s->groups, by_group ? all : 1,
                                s->results);
}

static scl_status launch_outer(scl_cl_op *op, const plan *s, const scl_glm_pass *pass) {
  if (pass->d_x.buffer == NULL) return SCL_OK;
  size_t local[2] = {64, 1}, global[2] = {scl_round_up(s->n, 64), s->p};
  return scl_launch_glm_outer(op, scl_cl_range_2(global, local),
                              scl_in_buffer(pass->state->work.buffer), s->beta, s->residuals,
                              (int)s->predictors, (int)s->n, (int)s->p, scl_out(pass->d_x));
}

/* From evaluation k to the next one. */
static scl_status launch_leapfrog(scl_cl_op *op, const plan *s, const scl_glm_pass *pass,
                                  size_t k) {
  const size_t d = 1 + s->p, position = (size_t)scl_glm_layout_of(pass).alpha;
  const size_t records = s->results + 1 + d;
  return scl_cl_leapfrog_in(op, work_part(pass, s->results, 1 + d, 1),
                            work_part(pass, position + 2 * d, d, 1),
                            work_part(pass, position, d, 1), work_part(pass, position + d, d, 1),
                            work_part(pass, records + k * (2 * d + 1), 2 * d + 1, 1));
}

/* ---- results ----------------------------------------------------------------------------------
 */

/* `event` may be NULL. */
static scl_status read_work(scl_cl_op *op, const scl_glm_pass *pass, size_t from, size_t numbers,
                            double *to, cl_event *event) {
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

static scl_status enqueue_pass(scl_cl_op *op, const plan *s, const scl_glm_pass *pass,
                               const destination *d) {
  cl_event event = NULL;
  SCL_TRY(scl_cl_op_order(op, -1));
  op->timing = SCL_CL_TIME_NONE;
  if (!s->few) SCL_TRY(send_parameters(op, pass));
  op->timing = SCL_CL_TIME_EACH;
  for (size_t k = 0; k == 0 || k < pass->points; k++) {
    if (k > 0) SCL_TRY(launch_leapfrog(op, s, pass, k - 1));
    SCL_TRY(launch_pass(op, s, pass));
    SCL_TRY(launch_combine(op, s, pass));
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

static scl_status run_pass(scl_context *ctx, const plan *s, const scl_glm_pass *pass,
                           const destination *d) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  scl_cl_op op;
  scl_cl_op_begin(&op, ctx);
  scl_cl_op_reads(&op, pass->x.buffer);
  scl_cl_op_reads(&op, pass->y.buffer);
  scl_cl_op_writes(&op, pass->state->work.buffer);
  scl_cl_op_writes(&op, pass->d_x.buffer);
  scl_status status = scl_cl_op_end(&op, enqueue_pass(&op, s, pass, d));
  if (status == SCL_OK) {
    status =
        s->quick ? scl_cl_drain(cl, op.queue) : scl_cl_reach(cl, op.queue, cl->enqueued[op.queue]);
  }
  /* After an error or an interrupt, pending commands may still use the caller's memory. A lost
   * device is not waited for. */
  if (status != SCL_OK) {
    pass->state->abandoned = ctx->lost || scl_cl.clFinish(cl->queue[op.queue]) != CL_SUCCESS;
  }
  return status;
}

scl_status scl_cl_glm(scl_context *ctx, const scl_glm_pass *pass) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  plan s;
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
  SCL_TRY(scl_cl_staging_get(cl, SCL_CL_DOWN, sizeof(double), false, &d.staging));
  if (numbers * sizeof(double) <= d.staging->piece) {
    SCL_TRY(scl_cl_staging_take(cl, d.staging, &d.piece));
    d.to = scl_cl_staging_at(d.staging, d.piece);
  } else {
    d.staging = NULL;
  }
  scl_status status = run_pass(ctx, &s, pass, &d);
  if (status != SCL_OK) { /* its counter may not be written yet */
    scl_buffer_release(pass->state->work.buffer);
    pass->state->work = (scl_block){0};
    return status;
  }
  if (d.staging != NULL) memcpy(pass->results, d.to, numbers * sizeof(double));
  return SCL_OK;
}
