#include "sample/target.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static scl_status run_program(void *self, const double *x, size_t vectors, double *to) {
  return vectors == 1 ? scl_program_run(self, x, true, to)
                      : scl_program_run_vectors(self, x, vectors, true, to);
}

static scl_status run_evaluator(void *self, const double *x, size_t vectors, double *to) {
  (void)vectors; /* one */
  return scl_evaluator_run(self, x, to);
}

scl_target scl_target_evaluator(scl_evaluator *e, size_t dimension) {
  return (scl_target){.dimension = dimension, .run = run_evaluator, .self = e};
}

scl_target scl_target_program(scl_program *p) {
  return (scl_target){.dimension = scl_program_about(p).parameters, .run = run_program, .self = p};
}

/* ---- a likelihood --------------------------------------------------------------------------- */

/* Numbers of one call: parameters and their derivatives, part by part, then the values. */
typedef struct {
  double *given[SCL_TARGET_PARTS], *slope[SCL_TARGET_PARTS], *value;
} room;

static size_t divide(const scl_likelihood_target *l, size_t vectors, double *memory, room *r) {
  size_t used = 0;
  for (int part = 0; part < SCL_TARGET_PARTS; part++) {
    const size_t numbers = (l->count[part] > 0 ? l->count[part] : 1) * vectors;
    if (memory != NULL) r->given[part] = memory + used;
    if (memory != NULL) r->slope[part] = memory + used + numbers;
    used += 2 * numbers;
  }
  if (memory != NULL) r->value = memory + used;
  return used + vectors;
}

static void gather(const scl_likelihood_target *l, const double *x, size_t vectors, room *r) {
  for (size_t k = 0; k < vectors; k++) {
    for (int part = 0; part < SCL_TARGET_PARTS; part++) {
      const size_t n = l->count[part];
      for (size_t i = 0; i < n; i++) {
        const double u = x[k * l->dimension + l->at[part] + i];
        r->given[part][k * n + i] = part == SCL_TARGET_AUX && l->log_aux ? exp(u) : u;
      }
    }
    if (l->count[SCL_TARGET_ALPHA] == 0) r->given[SCL_TARGET_ALPHA][k] = 0.0;
  }
}

/* An evaluation as the likelihood sees it. */
typedef struct {
  scl_glm_parameters parameters;
  scl_glm_results results;
  unsigned wanted;
} request;

static request request_of(const scl_likelihood_target *l, size_t vectors, const room *r) {
  const size_t *n = l->count, alphas = n[SCL_TARGET_ALPHA] > 0 ? n[SCL_TARGET_ALPHA] : 1;
  request a = {.parameters = {.vectors = vectors,
                              .alpha = r->given[SCL_TARGET_ALPHA],
                              .beta = r->given[SCL_TARGET_BETA],
                              .aux = r->given[SCL_TARGET_AUX],
                              .n_alpha = alphas * vectors,
                              .n_beta = n[SCL_TARGET_BETA] * vectors,
                              .n_aux = n[SCL_TARGET_AUX] * vectors},
               .results = {.value = r->value,
                           .d_alpha = r->slope[SCL_TARGET_ALPHA],
                           .d_beta = r->slope[SCL_TARGET_BETA],
                           .d_aux = r->slope[SCL_TARGET_AUX]}};
  const unsigned bit[] = {SCL_GLM_ALPHA, SCL_GLM_BETA, SCL_GLM_AUX};
  for (int part = 0; part < SCL_TARGET_PARTS; part++) a.wanted |= n[part] > 0 ? bit[part] : 0;
  return a;
}

/* Column k of the results. */
static scl_status finish(const scl_likelihood_target *l, const double *x, size_t k, const room *r,
                         double *to) {
  memset(to, 0, (l->dimension + 1) * sizeof *to);
  if (l->program != NULL) SCL_TRY(scl_program_run(l->program, x, true, to));
  to[0] += r->value[k];
  for (int part = 0; part < SCL_TARGET_PARTS; part++) {
    const size_t n = l->count[part];
    for (size_t i = 0; i < n; i++) {
      const double factor = part == SCL_TARGET_AUX && l->log_aux ? r->given[part][k * n + i] : 1.0;
      to[1 + l->at[part] + i] += factor * r->slope[part][k * n + i];
    }
  }
  return SCL_OK;
}

/* The part of an evaluation to run: all of it, or one of its two calls. */
enum { WHOLE = -1, BEGIN, END };

static scl_status evaluate(const scl_likelihood_target *l, int what, int slot, const double *x,
                           size_t vectors, double *to) {
  const size_t numbers = divide(l, vectors, NULL, NULL);
  double *memory = malloc(numbers * sizeof *memory);
  if (memory == NULL) return scl_fail_memory(numbers * sizeof *memory, 0, "a chain");
  room r;
  divide(l, vectors, memory, &r);
  gather(l, x, vectors, &r);
  const request a = request_of(l, vectors, &r);
  scl_status status = what == BEGIN ? scl_glm_begin(l->glm, slot, &a.parameters, a.wanted)
                      : what == END ? scl_glm_end(l->glm, slot, &a.parameters, a.wanted, &a.results)
                                    : scl_glm_evaluate(l->glm, &a.parameters, a.wanted, &a.results);
  for (size_t k = 0; k < vectors && status == SCL_OK && what != BEGIN; k++) {
    status = finish(l, x + k * l->dimension, k, &r, to + k * (l->dimension + 1));
  }
  free(memory);
  return status;
}

static scl_status run_likelihood(void *self, const double *x, size_t vectors, double *to) {
  return evaluate(self, WHOLE, 0, x, vectors, to);
}

static scl_status begin_likelihood(void *self, int slot, const double *x, size_t vectors) {
  return evaluate(self, BEGIN, slot, x, vectors, NULL);
}

static scl_status end_likelihood(void *self, int slot, const double *x, size_t vectors,
                                 double *to) {
  return evaluate(self, END, slot, x, vectors, to);
}

/* Between vectors in the order of the parameters and of the likelihood, alpha before beta. An alpha
 * that is no parameter is `absent`. */
static void to_likelihood(const scl_likelihood_target *l, double absent, const double *from,
                          double *to) {
  *to = l->count[SCL_TARGET_ALPHA] > 0 ? from[l->at[SCL_TARGET_ALPHA]] : absent;
  memcpy(to + 1, from + l->at[SCL_TARGET_BETA], l->count[SCL_TARGET_BETA] * sizeof *to);
}

static void from_likelihood(const scl_likelihood_target *l, const double *from, double *to) {
  if (l->count[SCL_TARGET_ALPHA] > 0) to[l->at[SCL_TARGET_ALPHA]] = *from;
  memcpy(to + l->at[SCL_TARGET_BETA], from + 1, l->count[SCL_TARGET_BETA] * sizeof *to);
}

/* Positions of all chains, momenta, steps, and those of the second start. */
enum { START_PARTS = 6, PRIOR_PARTS = 3 };

static void start_likelihood(const scl_likelihood_target *l, const scl_walk *w, double *to) {
  const size_t columns = START_PARTS * w->vectors, d = 1 + l->count[SCL_TARGET_BETA];
  for (size_t v = 0; v < columns; v++, to += d)
    to_likelihood(l, 0.0, w->start + v * l->dimension, to);
  for (size_t k = 0; k < PRIOR_PARTS && l->priors != NULL; k++, to += d)
    to_likelihood(l, k == 1 ? INFINITY : 0.0, l->priors + k * l->dimension, to);
}

/* Adds the program's value at x, and unless the step was made with it its gradient, to those of the
 * likelihood. `fits`: it is a number, and the step had the program's gradient. */
static scl_status add_priors(const scl_likelihood_target *l, const double *x, bool stepped,
                             double *sum, double *room, bool *fits) {
  const size_t d = l->dimension;
  *fits = true;
  if (l->program == NULL) return SCL_OK;
  SCL_TRY(scl_program_run(l->program, x, true, room));
  sum[0] += room[0];
  for (size_t k = 0; k < d; k++) {
    const double off = x[k] - l->priors[k], g = room[1 + k];
    const double step = -off / (l->priors[d + k] + l->priors[2 * d + k] * off * off);
    *fits = *fits && fabs(step - g) <= 1e-9 * (1.0 + fabs(g));
    if (!stepped) sum[1 + k] += g;
  }
  *fits = *fits && sum[0] < INFINITY;
  return SCL_OK;
}

/* The `valid` points of a chain in the order of the parameters, up to one that does not fit. */
static scl_status read_points(const scl_likelihood_target *l, const scl_walk *w, size_t chain,
                              const double *record, double *room, size_t *valid) {
  const size_t d = l->dimension, own = 1 + l->count[SCL_TARGET_BETA];
  const double *x = w->start + chain * d;
  for (size_t k = 0; k < *valid; k++) {
    const size_t i = k * w->vectors + chain;
    const double *from = record + i * (2 * own + 1);
    double *to = w->record + i * (2 * d + 1);
    const bool last = k + 1 == w->points;
    bool fits;
    *to = *from;
    from_likelihood(l, from + 1, to + 1);
    if (!last) from_likelihood(l, from + 1 + own, to + 1 + d);
    SCL_TRY(add_priors(l, x, !last, to, room, &fits));
    if (!fits) *valid = k;
    x = to + 1 + d;
  }
  return SCL_OK;
}

static scl_glm_walk_order order_of(const scl_likelihood_target *l) {
  if (l->count[SCL_TARGET_ALPHA] == 0) return SCL_GLM_ALPHA_ABSENT;
  return l->at[SCL_TARGET_ALPHA] == 0 ? SCL_GLM_ALPHA_FIRST : SCL_GLM_ALPHA_LAST;
}

static scl_glm_walk_task task_of(const scl_likelihood_target *l, const scl_walk *w) {
  return (scl_glm_walk_task){.points = w->points,
                             .vectors = w->vectors,
                             .turn = w->turn,
                             .metric = w->metric,
                             .order = order_of(l)};
}

static scl_status begin_walk(void *self, int slot, const scl_walk *w) {
  const scl_likelihood_target *l = self;
  const size_t d = 1 + l->count[SCL_TARGET_BETA], start = START_PARTS * d * w->vectors;
  const size_t numbers = start + PRIOR_PARTS * d;
  double *memory = malloc(numbers * sizeof *memory);
  if (memory == NULL) return scl_fail_memory(numbers * sizeof *memory, 0, "a chain");
  start_likelihood(l, w, memory);
  scl_glm_walk_task task = task_of(l, w);
  task.start = memory;
  task.priors = l->priors != NULL ? memory + start : NULL;
  const scl_status status = scl_glm_walk_begin(l->glm, slot, &task);
  free(memory);
  return status;
}

static scl_status end_walk(void *self, int slot, const scl_walk *w, size_t *valid) {
  const scl_likelihood_target *l = self;
  const size_t d = 1 + l->count[SCL_TARGET_BETA];
  const size_t records = w->points * w->vectors * (2 * d + 1);
  const size_t numbers = records + 1 + l->dimension;
  scl_glm_walk_task task = task_of(l, w);
  task.record = malloc(numbers * sizeof *task.record);
  scl_status status = scl_glm_walk_end(l->glm, slot, &task, valid);
  if (task.record == NULL) return scl_fail_memory(numbers * sizeof *task.record, 0, "a chain");
  for (size_t v = 0; status == SCL_OK && v < w->vectors; v++)
    status = read_points(l, w, v, task.record, task.record + records, &valid[v]);
  free(task.record);
  return status;
}

static double walk_wait(void *self, size_t vectors) {
  return scl_glm_walk_wait(((const scl_likelihood_target *)self)->glm, vectors);
}

/* With at least this many chains, and this many elements of X times chains, an evaluation takes
 * longer than the commands of another one; a walk does so with any X. */
enum { OVERLAP_CHAINS = 32, OVERLAP_ELEMENTS = 1 << 25 };

scl_target scl_target_likelihood(scl_likelihood_target *l) {
  scl_target target = {
      .dimension = l->dimension, .run = run_likelihood, .self = l, .any_vectors = true};
  const size_t *n = l->count;
  const bool alone = (l->program == NULL || l->priors != NULL) && n[SCL_TARGET_AUX] == 0 &&
                     n[SCL_TARGET_ALPHA] + n[SCL_TARGET_BETA] == l->dimension;
  target.most = alone ? scl_glm_walk_most(l->glm) : 1;
  if (target.most > 1) {
    target.begin_walk = begin_walk;
    target.end_walk = end_walk;
    target.wait = walk_wait;
  }
  if (scl_glm_overlaps(l->glm)) {
    const size_t elements = scl_glm_nrow(l->glm) * (1 + scl_glm_ncol(l->glm));
    target.begin = begin_likelihood;
    target.end = end_likelihood;
    target.overlaps_from = OVERLAP_CHAINS;
    if (target.most == 1 && elements < OVERLAP_ELEMENTS / OVERLAP_CHAINS)
      target.overlaps_from = 1 + OVERLAP_ELEMENTS / (1 + elements);
  }
  return target;
}
