#include "sample/chain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "sample/state.h"

/* ---- memory --------------------------------------------------------------------------------- */

void scl_chain_free(scl_chain *c) {
  if (c == NULL) return;
  scl_random_end(&c->stream);
  free(c->memory);
  free(c->node);
  free(c->work);
  free(c->draws);
  free(c->figures);
  free(c);
}

static double *take(double **from, size_t n) {
  double *const part = *from;
  *from += n;
  return part;
}

static size_t rows_of(const scl_chain_options *o) {
  return o->adapts_metric && o->rank > 0 ? scl_adapt_rows(o->warmup) : 0;
}

static size_t sparse_vectors(const scl_chain_options *o) {
  return o->sparse != NULL ? 3 * o->dimension : 0;
}

void scl_chain_divide(scl_chain *c) {
  const size_t d = c->options.dimension;
  double *m = c->memory;
  double **const vectors[] = {&c->q,          &c->g,        &c->at,         &c->p,
                              &c->scale,      &c->rho,      &c->sum,        &c->room,
                              &c->end[0].q,   &c->end[0].p, &c->end[0].g,   &c->end[1].q,
                              &c->end[1].p,   &c->end[1].g, &c->proposal.q, &c->proposal.g,
                              &c->adapt.mean, &c->product,  &c->lost};
  for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++) *vectors[k] = take(&m, d);
  c->adapt.squares = take(&m, c->options.dense ? d * d : d);
  c->factor = c->options.dense ? take(&m, d * d) : NULL;
  if (c->options.rank > 0) {
    c->adapt.rows = rows_of(&c->options);
    c->adapt.positions = take(&m, d * c->adapt.rows);
    c->adapt.gradients = take(&m, d * c->adapt.rows);
    c->lowrank = scl_lowrank_at(d, c->options.rank, c->scale,
                                take(&m, scl_lowrank_room(d, c->options.rank)));
  }
  for (int k = 0; k <= c->options.max_depth; k++) {
    c->node[k] = (scl_subtree){take(&m, d), take(&m, d), take(&m, d)};
  }
  c->answer = m;
  m += 1 + d;
  c->white = take(&m, sparse_vectors(&c->options) / 3);
  c->moved = take(&m, sparse_vectors(&c->options) / 3);
  c->room_of_half = m;
}

static int kept_from(const scl_chain_options *o) {
  return o->save_warmup ? 1 : o->warmup + 1;
}

size_t scl_chain_vectors(const scl_chain_options *o) {
  const size_t d = o->dimension;
  const size_t matrix = o->dense ? 2 * d * d : 0;
  const size_t lowrank = o->rank > 0 ? 2 * d * rows_of(o) + scl_lowrank_room(d, o->rank) : 0;
  return (21 + 3 * ((size_t)o->max_depth + 1)) * d + 1 + matrix + lowrank + sparse_vectors(o);
}

enum { MOST_RESERVED = 10 }; /* doublings, of which no chain makes more by default */

static scl_status allocate(scl_chain *c) {
  const scl_chain_options *o = &c->options;
  const size_t d = o->dimension, levels = (size_t)o->max_depth + 1;
  const size_t vectors = scl_chain_vectors(o);
  const size_t total = (size_t)o->warmup + (size_t)o->iter;
  const size_t kept = total + 1 - (size_t)kept_from(o);
  c->memory = calloc(vectors, sizeof *c->memory);
  c->node = calloc(levels, sizeof *c->node);
  c->draws = malloc((kept * d + 1) * sizeof *c->draws);
  c->figures = malloc((total * SCL_CHAIN_FIGURES + 1) * sizeof *c->figures);
  const size_t work = rows_of(o) > 0 ? scl_lowrank_work(d, rows_of(o), o->rank) : 0;
  if (work > 0) c->work = malloc(work * sizeof *c->work);
  if (c->memory == NULL || c->node == NULL || c->draws == NULL || c->figures == NULL ||
      (work > 0 && c->work == NULL)) {
    return scl_fail_memory((vectors + work + kept * d + total * SCL_CHAIN_FIGURES) * sizeof(double),
                           0, "a chain");
  }
  scl_chain_divide(c);
  /* The numbers of a doubling, which is half done when it draws them. */
  const int depth = o->static_steps                ? 0
                    : o->max_depth < MOST_RESERVED ? o->max_depth
                                                   : MOST_RESERVED;
  return scl_random_grow(&c->stream, ((size_t)1 << depth) + 2);
}

scl_status scl_chain_make(const scl_chain_options *options, const double *start, scl_random *stream,
                          scl_chain **out) {
  scl_chain *c = calloc(1, sizeof *c);
  if (c == NULL) {
    scl_random_end(stream);
    return scl_fail_memory(sizeof *c, 0, "a chain");
  }
  c->stream = *stream;
  *stream = (scl_random){.quantile = NULL};
  c->options = *options;
  const scl_status status = allocate(c);
  if (status != SCL_OK) {
    scl_chain_free(c);
    return status;
  }
  if (!scl_chain_set_metric(c, options->inverse_metric)) {
    scl_chain_free(c);
    return scl_fail_argument("inverse_metric", "'inverse_metric' is not positive definite");
  }
  c->options.inverse_metric = NULL;
  c->step_size = options->step_size > 0.0 ? options->step_size : 1.0;
  c->direction = 1.0;
  c->adapt.target = options->adapt_delta;
  c->adapt.dimension = options->dimension;
  c->adapt.dense = options->dense;
  scl_adapt_windows(&c->adapt, options->adapts_metric ? options->warmup : 0);
  scl_adapt_restart(&c->adapt, 1.0, INFINITY);
  c->warmup_seconds = NAN;
  scl_assign(c, c->q, start);
  scl_assign(c, c->at, start);
  *out = c;
  return SCL_OK;
}

scl_status scl_chain_place(scl_chain *c, const double *centre, double jitter) {
  const double *u;
  SCL_TRY(scl_random_uniform(&c->stream, c->options.dimension, &u));
  for (size_t k = 0; k < c->options.dimension; k++) {
    const double shift = jitter * (2.0 * u[k] - 1.0);
    c->q[k] = c->at[k] = centre[k] + shift;
  }
  return SCL_OK;
}

/* ---- the first step size: doubled or halved until a step's acceptance crosses 0.8 ----------- */

static void draw_momentum(scl_chain *c) {
  scl_random_normal(&c->stream, c->options.dimension, c->p);
  c->energy0 = scl_kinetic(c, c->p) - c->lp;
  c->direction = 1.0;
}

static void take_step(scl_chain *c, const double *q, const double *g) {
  scl_half_step(c, g, c->p, false);
  scl_full_step(c, q);
}

static void search_step(scl_chain *c) {
  draw_momentum(c);
  take_step(c, c->q, c->g);
}

static void begin_search(scl_chain *c) {
  c->doubling = -1;
  c->stage = SCL_STAGE_SEARCH;
  search_step(c);
}

static scl_status begin_transition(scl_chain *c) {
  c->iteration++;
  draw_momentum(c);
  c->energy1 = c->energy0;
  c->leapfrog = c->depth = 0;
  c->metropolis = 0.0;
  c->divergent = c->failed = false;
  if (c->options.static_steps) {
    c->stage = SCL_STAGE_STATIC;
    take_step(c, c->q, c->g);
    return SCL_OK;
  }
  c->stage = SCL_STAGE_LEAF;
  return scl_tree_begin(c);
}

static scl_status receive_search(scl_chain *c, double value, const double *gradient) {
  c->evaluations += 1.0;
  scl_half_step(c, gradient, c->p, false);
  const double change = c->energy0 - scl_kinetic(c, c->p) + value;
  const bool good = change > log(0.8);
  if (c->doubling < 0) c->doubling = good;
  if (good != (c->doubling == 1)) {
    scl_adapt_restart(&c->adapt, c->step_size, c->options.warmup - c->iteration);
    return begin_transition(c);
  }
  c->step_size *= good ? 2.0 : 0.5;
  if (c->step_size > 1e7) c->stop = SCL_CHAIN_FLAT;
  if (c->step_size < 1e-300) c->stop = SCL_CHAIN_STEEP;
  if (c->stop == SCL_CHAIN_RUNS) search_step(c);
  return SCL_OK;
}

/* ---- HMC with a fixed number of steps ------------------------------------------------------- */

static scl_status receive_static(scl_chain *c, double value, const double *gradient, bool *more) {
  scl_half_step(c, gradient, c->p, false);
  c->leapfrog++;
  const double energy = scl_kinetic(c, c->p) - value;
  double weight = c->energy0 - energy;
  if (isnan(weight)) weight = -INFINITY;
  c->divergent = weight < -SCL_LARGEST_ERROR;
  *more = !c->divergent && c->leapfrog < c->options.leapfrogs;
  if (*more) {
    take_step(c, c->at, gradient);
    return SCL_OK;
  }
  const double accept = exp(weight);
  const double *u;
  c->metropolis = c->leapfrog * (accept < 1.0 ? accept : 1.0);
  SCL_TRY(scl_random_uniform(&c->stream, 1, &u));
  if (log(u[0]) < weight) {
    scl_assign(c, c->q, c->at);
    scl_assign(c, c->g, gradient);
    c->lp = value;
    c->energy1 = energy;
  }
  return SCL_OK;
}

/* ---- the end of a transition ---------------------------------------------------------------- */

static double seconds_now(void) {
  return 1e-6 * (double)scl_clock_us();
}

static double seconds_so_far(const scl_chain *c) {
  return c->elapsed + seconds_now() - c->run_started;
}

static void keep(scl_chain *c, double accept) {
  const int i = c->iteration, first = kept_from(&c->options);
  const double row[SCL_CHAIN_FIGURES] = {accept,       c->step_size, c->depth, c->leapfrog,
                                         c->divergent, c->energy1,   c->lp};
  memcpy(c->figures + (size_t)(i - 1) * SCL_CHAIN_FIGURES, row, sizeof row);
  if (i >= first) scl_assign(c, c->draws + (size_t)(i - first) * c->options.dimension, c->q);
  c->evaluations += c->leapfrog;
  c->done = i;
}

/* True if a window ends. */
static bool adapt(scl_chain *c, double accept) {
  const int i = c->iteration;
  if (i > c->options.warmup) return false;
  c->step_size = scl_adapt_step(&c->adapt, accept);
  const double *q = c->q;
  if (c->options.sparse != NULL) {
    scl_sparse_apply_half(c->options.sparse, SCL_SPARSE_TIMES, c->q, c->moved, NULL);
    q = c->moved;
  }
  const bool ends = scl_adapt_observe(&c->adapt, i, q, c->g);
  if (ends && !c->options.pools) scl_chain_take_metric(c);
  if (i == c->options.warmup) {
    c->step_size = scl_adapt_final(&c->adapt);
    c->warmup_seconds = seconds_so_far(c);
  }
  return ends;
}

static void end_window(scl_chain *c) {
  scl_adapt_clear(&c->adapt);
  begin_search(c);
}

enum { FEW_ITERATIONS = 20, SOME_ITERATIONS = 100 }; /* fewer say little; failing runs end early */

/* Counts the iteration; returns whether most have failed, at the iterations where that is
 * checked. */
static bool mostly_failed(scl_chain *c) {
  const int warmup = c->options.warmup, total = warmup + c->options.iter;
  const int since = c->done <= warmup ? c->done : c->done - warmup;
  c->failed_iterations += c->failed;
  const bool asked =
      c->done == warmup || c->done == total || (c->done > warmup && since % SOME_ITERATIONS == 0);
  if (!asked) return false;
  if (since >= FEW_ITERATIONS && 2 * c->failed_iterations > since) return true;
  if (c->done == warmup) {
    c->warmup_failures = c->failures;
    c->failed_iterations = 0;
  }
  return false;
}

static scl_status end_transition(scl_chain *c) {
  const double accept = c->metropolis / c->leapfrog;
  keep(c, accept);
  const bool ends = adapt(c, accept);
  if (mostly_failed(c)) {
    c->stop = SCL_CHAIN_FAILS;
    return SCL_OK;
  }
  if (c->done == c->options.warmup + c->options.iter) {
    c->stop = SCL_CHAIN_ENDED;
    return SCL_OK;
  }
  if (!ends) return begin_transition(c);
  if (c->options.pools) {
    c->stop = SCL_CHAIN_WAITS;
  } else {
    end_window(c);
  }
  return SCL_OK;
}

/* In the order of the chains, so that results have the same bits. */
scl_status scl_chains_pool(scl_chain *const *chain, int count) {
  for (int k = 0; k < count; k++) {
    const bool fits = chain[k]->stop == SCL_CHAIN_WAITS && chain[k]->done == chain[0]->done &&
                      chain[k]->options.dimension == chain[0]->options.dimension &&
                      chain[k]->options.dense == chain[0]->options.dense &&
                      chain[k]->options.rank == chain[0]->options.rank;
    if (!fits) return scl_fail_argument("pooled", "internal: chains do not wait for each other");
  }
  for (int k = 1; k < count; k++) {
    scl_adapt_merge(&chain[0]->adapt, &chain[k]->adapt, k, count);
  }
  scl_chain_take_metric(chain[0]);
  for (int k = 0; k < count; k++) {
    if (k > 0) scl_chain_copy_metric(chain[k], chain[0]);
    chain[k]->stop = SCL_CHAIN_RUNS;
    end_window(chain[k]);
  }
  return SCL_OK;
}

/* ---- evaluations ---------------------------------------------------------------------------- */

static scl_status receive(scl_chain *c, double value, const double *gradient) {
  const scl_chain_options *o = &c->options;
  bool more = false;
  if (o->sparse != NULL) {
    SCL_TRY(scl_sparse_apply_half(o->sparse, SCL_SPARSE_FORWARD, gradient, c->white, NULL));
    gradient = c->white;
  }
  switch (c->stage) {
  case SCL_STAGE_FIRST:
    c->lp = value;
    scl_assign(c, c->g, gradient);
    if (o->warmup == 0 && o->step_size > 0.0) return begin_transition(c);
    begin_search(c);
    return SCL_OK;
  case SCL_STAGE_SEARCH:
    return receive_search(c, value, gradient);
  case SCL_STAGE_STATIC:
    SCL_TRY(receive_static(c, value, gradient, &more));
    break;
  default:
    SCL_TRY(scl_tree_receive(c, value, gradient, &more));
  }
  return more ? SCL_OK : end_transition(c);
}

static scl_status answer(scl_chain *c, double value, const double *gradient) {
  const size_t d = c->options.dimension;
  c->stop = SCL_CHAIN_RUNS;
  if (gradient != NULL) {
    memcpy(c->answer + 1, gradient, d * sizeof *gradient);
  } else {
    c->rejections++;
    memset(c->answer + 1, 0, d * sizeof *c->answer);
    if (isnan(value)) {
      c->failures++;
      c->failed = true;
      scl_assign(c, c->lost, c->at);
    }
  }
  return receive(c, gradient != NULL ? value : -INFINITY, c->answer + 1);
}

/* A chain that waits for no evaluation takes no result. */
static bool rests(const scl_chain *c) {
  return c->stop == SCL_CHAIN_ENDED || c->stop == SCL_CHAIN_WAITS;
}

scl_status scl_chain_answer(scl_chain *c, double value, const double *gradient,
                            scl_chain_stop *out) {
  if (!rests(c)) SCL_TRY(answer(c, value, gradient));
  *out = c->stop;
  return SCL_OK;
}

/* The consequence of a result that is not finite throughout. */
static scl_status take_unusual(scl_chain *c) {
  const double value = c->answer[0];
  bool nan = isnan(value);
  for (size_t k = 1; k <= c->options.dimension; k++) nan = nan || isnan(c->answer[k]);
  if (value == -INFINITY) return answer(c, value, NULL);
  if (value == INFINITY || (nan && !c->options.reject_nan)) {
    c->stop = SCL_CHAIN_ASKS;
    return SCL_OK;
  }
  return answer(c, NAN, NULL);
}

scl_status scl_chain_take(scl_chain *c) {
  if (rests(c)) return SCL_OK;
  double sum = 0.0; /* NaN unless all are finite */
  for (size_t k = 0; k <= c->options.dimension; k++) sum += 0.0 * c->answer[k];
  return sum == 0.0 ? receive(c, c->answer[0], c->answer + 1) : take_unusual(c);
}

static scl_status step(scl_chain *c, scl_ahead *a, const scl_target *target) {
  if (scl_ahead_take(a, 0, c)) return scl_chain_take(c);
  SCL_TRY(scl_ahead_fill(a, &c, 1));
  if (!scl_ahead_filled(a) || !scl_ahead_take(a, 0, c))
    SCL_TRY(target->run(target->self, c->at, 1, c->answer));
  return scl_chain_take(c);
}

void scl_chain_clock(scl_chain *c, bool runs) {
  if (runs) {
    c->run_started = seconds_now();
    if (c->stop == SCL_CHAIN_ASKS) c->stop = SCL_CHAIN_RUNS; /* ask again */
  } else {
    c->elapsed = seconds_so_far(c);
  }
}

scl_status scl_chain_run(scl_chain *c, const scl_target *target, int iterations, double seconds,
                         scl_chain_stop *out) {
  scl_status status = SCL_OK;
  scl_ahead *ahead;
  scl_ahead_begin(c, 1, target, &ahead);
  scl_chain_clock(c, true);
  const double until = c->run_started + seconds;
  for (int count = 1; c->stop == SCL_CHAIN_RUNS && c->done < iterations; count++) {
    SCL_GO(step(c, ahead, target));
    if (count % SCL_LOOK_AT_CLOCK == 0 && seconds_now() > until) break;
  }
  *out = c->stop;
done:
  scl_chain_clock(c, false);
  scl_ahead_end(ahead);
  return status;
}

scl_chain_view scl_chain_view_of(const scl_chain *c) {
  const int before = kept_from(&c->options) - 1;
  return (scl_chain_view){.dimension = c->options.dimension,
                          .iteration = c->iteration,
                          .done = c->done,
                          .waits = c->stop == SCL_CHAIN_WAITS,
                          .rejections = c->rejections,
                          .failures = c->failures,
                          .warmup_failures =
                              c->done < c->options.warmup ? c->failures : c->warmup_failures,
                          .failed_iterations = c->failed_iterations,
                          .lost = c->failures > 0 ? c->lost : NULL,
                          .evaluations = c->evaluations,
                          .step_size = c->step_size,
                          .elapsed = c->elapsed,
                          .warmup_seconds = c->warmup_seconds,
                          .point = c->at,
                          .scale = c->scale,
                          .factor = c->factor,
                          .rank = c->options.rank > 0 ? (int)*c->lowrank.rank : 0,
                          .value = c->lowrank.value,
                          .vector = c->lowrank.vector,
                          .draws = c->draws,
                          .kept = c->done > before ? c->done - before : 0,
                          .figures = c->figures};
}
