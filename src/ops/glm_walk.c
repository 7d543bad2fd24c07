/* Leapfrog trajectories of several chains, each evaluated with one request to a device. */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "ops/glm_private.h"
#include "ops/operation.h"

/* An evaluation that takes this long is started only if it is needed for certain. */
enum { WALK_ELEMENTS = 1 << 25, WALK_MANY = 32, WALK_FEW = 2 };

static size_t elements_of(const scl_glm *glm) {
  return scl_glm_nrow(glm) * (1 + scl_glm_ncol(glm));
}

size_t scl_glm_walk_most(const scl_glm *glm) {
  const bool simple =
      GLM_FAMILY_AUX(glm->family) == SCL_GLM_NONE && !GLM_FAMILY_COUPLED(glm->family);
  if (!simple || scl_glm_nrow(glm) == 0 || scl_traits(scl_glm_context(glm))->synchronous) return 1;
  return elements_of(glm) <= WALK_ELEMENTS ? WALK_MANY : WALK_FEW;
}

/* In microseconds, on an H200: a request and its answer; the launches and steps of a point, or its
 * part of a launch for all points; and its part by the elements of X. */
double scl_glm_walk_wait(const scl_glm *glm, size_t vectors) {
  const double v = (double)vectors, launches = vectors <= 4 ? 5.0 + 1.5 * v : 15.0;
  return 28.0 / (launches + (double)elements_of(glm) * pow(v, 0.78) / 500000.0);
}

/* ---- layouts ------------------------------------------------------------------------------- */

/* Alpha and beta of each chain, to all alphas and behind them all betas; or back, each chain `row`
 * numbers apart. */
static void to_device(size_t d, size_t vectors, const double *from, double *to) {
  for (size_t v = 0; v < vectors; v++) {
    to[v] = from[v * d];
    for (size_t k = 1; k < d; k++) to[vectors + v * (d - 1) + k - 1] = from[v * d + k];
  }
}

static void from_device(size_t d, size_t vectors, const double *from, double *to, size_t row) {
  for (size_t v = 0; v < vectors; v++) {
    to[v * row] = from[v];
    for (size_t k = 1; k < d; k++) to[v * row + k] = from[vectors + v * (d - 1) + k - 1];
  }
}

/* Densities, gradients, and next points unless this is the last. */
static void read_record(size_t d, size_t vectors, const double *from, bool last, double *to) {
  const size_t row = 2 * d + 1, numbers = vectors * d;
  for (size_t v = 0; v < vectors; v++) to[v * row] = from[v];
  from_device(d, vectors, from + vectors, to + 1, row);
  if (!last) from_device(d, vectors, from + vectors + numbers, to + 1 + d, row);
}

/* ---- the request --------------------------------------------------------------------------- */

/* Columns of the largest metric, or one. A dense one has one for each parameter. */
static size_t directions_of(size_t d, const scl_glm_walk_task *w) {
  size_t most = w->metric != NULL;
  for (size_t v = 0; v < w->vectors && w->metric != NULL; v++)
    most = scl_max(most, w->metric[v].dense ? d : w->metric[v].columns);
  return most;
}

/* An alpha that the chain does not have stays where it is: its row is zero. */
static void write_metric(size_t d, size_t directions, const scl_glm_walk_metric *m,
                         scl_glm_walk_order order, double *to) {
  const size_t absent = order == SCL_GLM_ALPHA_ABSENT, rows = d - absent;
  const size_t first = m->dense ? absent : 0;
  *to++ = (double)(first + m->columns);
  *to++ = m->dense;
  *to++ = order == SCL_GLM_ALPHA_LAST ? (double)(d - 1) : 0.0;
  memset(to, 0, (d + directions * (1 + d)) * sizeof *to);
  for (size_t j = 0; j < rows; j++) to[absent + j] = m->scale != NULL ? m->scale[j] : 1.0;
  to += d;
  if (!m->dense && m->columns > 0) memcpy(to, m->weight, m->columns * sizeof *to);
  to += directions + first * d + absent;
  for (size_t k = 0; k < m->columns; k++)
    memcpy(to + k * d, m->matrix + k * rows, rows * sizeof *to);
}

/* Parameters of the pass and the numbers of the walk, in the order of leapfrog.h. */
static void write_walk(const scl_glm_pass *pass, const scl_glm_walk_task *w, double *to) {
  const size_t d = 1 + pass->x.ncol, numbers = w->vectors * d;
  for (size_t k = 0; k < 1 + GLM_COUNTERS; k++) *to++ = 0.0;
  for (size_t k = 0; k < 6; k++, to += numbers)
    to_device(d, w->vectors, w->start + k * numbers, to);
  for (size_t v = 0; v < w->vectors; v++) *to++ = (double)w->turn[v];
  for (size_t k = 0; k < 3 * d; k++)
    *to++ = w->priors != NULL ? w->priors[k] : k / d == 1 ? INFINITY : 0.0;
  for (size_t v = 0; v < w->vectors && pass->directions > 0; v++, to += scl_glm_metric_size(pass))
    write_metric(d, pass->directions, &w->metric[v], w->order, to);
}

/* -infinity is a density, with any gradient. */
static bool is_number(const double *record, size_t d) {
  const double value = record[0];
  if (isnan(value) || value == INFINITY) return false;
  return value == -INFINITY || scl_glm_count_finite(record + 1, d) == d;
}

static void read_walk(const scl_glm *glm, const scl_glm_walk_task *w, const scl_glm_pass *pass,
                      size_t *valid) {
  const size_t d = 1 + pass->x.ncol, row = 2 * d + 1, size = scl_glm_record_size(pass);
  const double *records = pass->results + w->vectors * (1 + d);
  for (size_t k = 0; k < w->points; k++) {
    const bool last = k + 1 == w->points;
    read_record(d, w->vectors, last ? pass->results : records + k * size, last,
                w->record + k * w->vectors * row);
  }
  for (size_t v = 0; v < w->vectors; v++) {
    for (valid[v] = 0; valid[v] < w->points; ++valid[v]) {
      double *record = w->record + (valid[v] * w->vectors + v) * row;
      if (!is_number(record, d)) break;
      record[0] += glm->summary.constant;
    }
  }
}

/* Without points in the slot's pass nothing runs: a start is not a number. */
scl_status scl_glm_walk_begin(scl_glm *glm, int slot, const scl_glm_walk_task *w) {
  scl_context *ctx = scl_glm_context(glm);
  const size_t d = 1 + scl_glm_ncol(glm), numbers = w->vectors * d;
  scl_glm_slot *o = &glm->slot[slot];
  scl_glm_pass *pass = &o->pass;
  pass->points = 0;
  if (scl_glm_count_finite(w->start, numbers) < numbers) return SCL_OK;
  SCL_TRY(scl_context_check(ctx));
  *pass = (scl_glm_pass){.family = glm->family,
                         .x = scl_mat_block(glm->x),
                         .y = scl_mat_block(glm->y),
                         .vectors = w->vectors,
                         .classes = 1,
                         .weighted = glm->weighted,
                         .gradient = true,
                         .points = w->points,
                         .directions = directions_of(d, w),
                         .state = &o->state};
  const size_t given = (size_t)scl_glm_layout_of(pass).parameters + scl_glm_walk_numbers(pass);
  SCL_TRY(scl_glm_reserve(o, given + w->vectors * (1 + d) + scl_glm_record_numbers(pass)));
  write_walk(pass, w, o->memory);
  pass->parameters = o->memory;
  pass->results = o->memory + given;
  const scl_status status = ctx->engine->glm_begin(ctx, pass);
  scl_glm_leave_abandoned(o);
  return status;
}

scl_status scl_glm_walk_end(scl_glm *glm, int slot, const scl_glm_walk_task *w, size_t *valid) {
  scl_context *ctx = scl_glm_context(glm);
  scl_glm_slot *o = &glm->slot[slot];
  for (size_t v = 0; v < w->vectors; v++) valid[v] = 0;
  if (o->pass.points == 0) return SCL_OK;
  const scl_status status = ctx->engine->glm_end(ctx, &o->pass);
  if (status == SCL_OK && w->record != NULL) read_walk(glm, w, &o->pass, valid);
  scl_glm_leave_abandoned(o);
  return status;
}
