/* Points of trajectories evaluated in advance: chains draw as without them. */
#include "alloc.h"
#include "sample_chains.h"
#include "test.h"

enum { CHAINS = 11, ITERATIONS = 150 }; /* shares of 8 and 3 */

/* A normal density whose points a device computes, which may round otherwise, or fail at some.
 * `by_vectors`: values depend on the number of vectors, as rounding does. */
typedef struct {
  gauss g;
  long walks, points; /* points: of all chains */
  double nudge, by_vectors;
  size_t valid;
  const void *flies[2];              /* a walk or points, by slot */
  long both;                         /* requests while another one flies */
  long begun, ended;                 /* requests */
  long refused, failed, interrupted; /* the number of one, or 0 */
  long judged;                       /* points that the caller computes */
  bool starves;                      /* an allocation of each call fails */
} device;

static scl_status run_device(void *self, const double *x, size_t vectors, double *to) {
  device *d = self;
  for (size_t v = 0; v < vectors; v++) {
    SCL_TRY(run_gauss(&d->g, x + v * D, 1, to + v * (D + 1)));
    to[v * (D + 1)] += d->by_vectors * (double)vectors;
  }
  return SCL_OK;
}

/* to <- L' x or L x, as ops/glm.h says. */
static void multiply(const scl_glm_walk_metric *m, bool transposed, const double *x, double *to) {
  double given[D];
  const bool plain = m == NULL || m->scale == NULL;
  for (size_t k = 0; k < D; k++) {
    given[k] = !plain && transposed ? m->scale[k] * x[k] : x[k];
    to[k] = m != NULL && m->dense ? 0.0 : given[k];
  }
  for (size_t r = 0; m != NULL && r < m->columns; r++) {
    const double *column = m->matrix + r * D;
    double share = 0.0;
    for (size_t k = 0; k < D; k++) share += column[k] * given[k];
    share = m->dense ? x[r] : m->weight[r] * share;
    for (size_t k = 0; k < D; k++) {
      if (!m->dense || (transposed ? k <= r : k >= r)) to[k] += column[k] * share;
    }
  }
  for (size_t k = 0; k < D && !plain && !transposed; k++) to[k] *= m->scale[k];
}

static void walk_chain(device *d, const scl_walk *w, size_t v) {
  const size_t part = w->vectors * D;
  const double *from = w->start + v * D;
  const scl_glm_walk_metric *metric = w->metric != NULL ? &w->metric[v] : NULL;
  double q[D], p[D], step[D], way[D];
  for (size_t k = 0; k < w->points; k++) {
    double *row = w->record + (k * w->vectors + v) * (2 * D + 1);
    const double *start = k == 0 ? from : k == w->turn[v] ? from + 3 * part : NULL;
    if (start != NULL) {
      memcpy(q, start, sizeof q);
      memcpy(p, start + part, sizeof p);
      memcpy(step, start + 2 * part, sizeof step);
    } else {
      multiply(metric, true, row - w->vectors * (2 * D + 1) + 1, way);
      for (size_t i = 0; i < 2 * D; i++) p[i % D] += 0.5 * step[i % D] * way[i % D];
      multiply(metric, false, p, way);
      for (size_t i = 0; i < D; i++) q[i] = q[i] + step[i] * way[i];
      for (size_t i = 0; i < D && q[0] > 0.0; i++) q[i] *= 1.0 + d->nudge;
    }
    if (k > 0) memcpy(row - w->vectors * (2 * D + 1) + 1 + D, q, sizeof q);
    row[0] = density(&d->g, q, row + 1) + d->by_vectors * (double)w->vectors;
    d->points++;
  }
}

static scl_status begin(device *d, int slot, const void *request) {
  CHECK(d->flies[slot] == NULL);
  if (++d->begun == d->refused) return scl_fail_memory(1, 0, "a test");
  d->flies[slot] = request;
  d->both += d->flies[!slot] != NULL;
  return SCL_OK;
}

static scl_status end(device *d, int slot, const void *request) {
  CHECK(d->flies[slot] == request);
  d->flies[slot] = NULL;
  if (++d->ended == d->interrupted) return scl_fail(SCL_E_INTERRUPT, "interrupted");
  return d->ended == d->failed ? scl_fail_memory(1, 0, "a test") : SCL_OK;
}

static scl_status begin_points(void *self, int slot, const double *x, size_t vectors) {
  (void)vectors;
  return begin(self, slot, x);
}

static scl_status end_points(void *self, int slot, const double *x, size_t vectors, double *to) {
  SCL_TRY(end(self, slot, x));
  return run_device(self, x, vectors, to);
}

static scl_status begin_walk(void *self, int slot, const scl_walk *w) {
  ((device *)self)->walks++;
  return begin(self, slot, w);
}

static scl_status end_walk(void *self, int slot, const scl_walk *w, size_t *valid) {
  device *d = self;
  SCL_TRY(end(d, slot, w));
  for (size_t v = 0; v < w->vectors; v++) {
    CHECK(w->turn[v] >= 1 && w->turn[v] <= w->points);
    walk_chain(d, w, v);
    valid[v] = d->valid < w->points ? d->valid : w->points;
  }
  return SCL_OK;
}

static device make_device(double nudge, size_t valid) {
  return (device){.g = {.sd = {1.0, 2.0, 3.0}, .edge = INFINITY}, .nudge = nudge, .valid = valid};
}

static double wait(void *self, size_t vectors) {
  (void)self, (void)vectors;
  return 2.0;
}

static scl_target target_of(device *d, bool walks) {
  scl_target t = {.dimension = D, .run = run_device, .self = d, .any_vectors = true, .wait = wait};
  if (walks) t.begin_walk = begin_walk;
  if (walks) t.end_walk = end_walk;
  if (walks) t.most = 12;
  return t;
}

static scl_target in_shares(scl_target t) {
  t.begin = begin_points;
  t.end = end_points;
  t.overlaps_from = 2;
  return t;
}

static const struct {
  double nudge;
  size_t valid;
} ways[] = {{0.0, 99}, {1e-15, 99}, {0.0, 3}, {0.0, 0}};

/* A metric of low rank that is estimated has no direction here, and is no diagonal one; the one
 * that is given keeps its direction. */
typedef enum { DIAGONAL, DENSE, SCALED, LOW_RANK, METRICS } kind;
static scl_chain_options options_of(kind metric) {
  static const double square[D * D] = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
  static const double direction[2 * D + 1] = {1.5, 3.0, 8.0, 3.0, 0.6, 0.8, 0.0};
  scl_chain_options o = options(ITERATIONS, ITERATIONS);
  o.dense = metric == DENSE;
  o.rank = metric >= SCALED ? 2 : 0;
  o.directions = metric == LOW_RANK;
  o.adapts_metric = metric != LOW_RANK;
  if (metric == DENSE) o.inverse_metric = square;
  if (metric == LOW_RANK) o.inverse_metric = direction;
  return o;
}

static void check_alone(kind metric, bool static_steps) {
  device d = make_device(0.0, 0);
  const scl_target plain = target_of(&d, false);
  scl_chain_options o = options_of(metric);
  scl_chain *a, *b;
  scl_chain_stop stop;
  o.static_steps = static_steps;
  REQUIRE_OK(make(&o, &a));
  CHECK_OK(scl_chain_run(a, &plain, 2 * ITERATIONS, INFINITY, &stop));
  const long calls = d.g.calls;
  for (size_t i = 0; i < LENGTH(ways); i++) {
    d = make_device(ways[i].nudge, ways[i].valid);
    const scl_target ahead = target_of(&d, true);
    REQUIRE_OK(make(&o, &b));
    CHECK_OK(scl_chain_run(b, &ahead, 2 * ITERATIONS, INFINITY, &stop));
    CHECK(stop == SCL_CHAIN_ENDED && equal_draws(a, b));
    if (i == 0) CHECK(d.walks + d.g.calls < calls / 3);      /* requests */
    if (i == 0) CHECK(d.points + d.g.calls < calls * 5 / 4); /* in vain */
    if (i == 1) CHECK(d.walks < 20);                         /* one difference is enough */
    if (i == 3) CHECK(d.g.calls == calls);
    scl_chain_free(b);
  }
  scl_chain_free(a);
}

static void make_chains(const scl_chain_options *o, scl_chain **chain) {
  for (int k = 0; k < CHAINS; k++) {
    const double centre[D] = {0.1 * k, 0.0, 0.3};
    CHECK_OK(make(o, &chain[k]));
    CHECK_OK(scl_chain_place(chain[k], centre, 0.5));
  }
}

static void free_chains(scl_chain **chain) {
  for (int k = 0; k < CHAINS; k++) scl_chain_free(chain[k]);
}

/* Whether the caller is to look at the chain before others go on. */
static bool is_due(const scl_chain *c, scl_chain_stop stop, int goal) {
  return stop == SCL_CHAIN_ASKS || (stop == SCL_CHAIN_RUNS && scl_chain_view_of(c).done >= goal);
}

/* As the caller does, with goals `step` iterations apart: chains that have ended leave, those that
 * wait do so until all wait, points that failed are computed here. Returns the interrupts. */
static long run_together(scl_chain *const *all, const scl_target *target, size_t vectors, int step,
                         double seconds) {
  device *d = target->self;
  scl_chain *chain[CHAINS];
  scl_chain_stop stop[CHAINS];
  int goal[CHAINS], count = CHAINS;
  long interrupts = 0;
  memcpy(chain, all, sizeof chain);
  for (long round = 0; count > 0 && round < 100000; round++) {
    for (int k = 0; k < count; k++) {
      goal[k] = scl_chain_view_of(chain[k]).done / step * step + step;
      if (goal[k] > 2 * ITERATIONS) goal[k] = 2 * ITERATIONS;
    }
    alloc_fail(d->starves ? 1 + round % 16 : 0);
    const scl_status status =
        scl_chains_run(chain, count, target, NULL, vectors, goal, seconds, stop);
    const bool failed = alloc_failed();
    alloc_fail(0);
    CHECK(d->flies[0] == NULL && d->flies[1] == NULL);
    interrupts += status == SCL_E_INTERRUPT;
    if (status == SCL_E_INTERRUPT || (status == SCL_E_MEMORY && failed)) continue;
    CHECK_OK(status);
    bool due = !target->any_vectors || seconds < INFINITY;
    int left = 0;
    for (int k = 0; k < count; k++) {
      due = due || is_due(chain[k], stop[k], goal[k]);
      CHECK(scl_chain_view_of(chain[k]).done <= goal[k]);
      if (stop[k] == SCL_CHAIN_ASKS) {
        double slope[D], value = density(&d->g, scl_chain_view_of(chain[k]).point, slope);
        CHECK_OK(scl_chain_answer(chain[k], value, slope, &stop[k]));
        d->judged++;
      }
      CHECK(stop[k] <= SCL_CHAIN_ENDED || stop[k] == SCL_CHAIN_WAITS);
      if (stop[k] == SCL_CHAIN_RUNS) chain[left++] = chain[k];
    }
    CHECK(due || left == 0); /* the others have gone on */
    count = left;
    for (int k = 0; k < CHAINS && left == 0; k++) {
      if (scl_chain_view_of(all[k]).waits) chain[count++] = all[k];
    }
    if (left == 0 && count > 0) CHECK_OK(scl_chains_pool(chain, count));
  }
  CHECK(count == 0);
  return interrupts;
}

/* In lockstep, all at once, in parts, or in shares while the device computes another one, each
 * chain draws as alone. */
static void check_together(kind metric, size_t vectors, bool shares) {
  const scl_chain_options o = options_of(metric);
  scl_chain *alone[CHAINS], *chain[CHAINS];
  device d = make_device(0.0, 0);
  const scl_target plain = target_of(&d, false);
  make_chains(&o, alone);
  for (int k = 0; k < CHAINS; k++) {
    scl_chain_stop stop;
    CHECK_OK(scl_chain_run(alone[k], &plain, 2 * ITERATIONS, INFINITY, &stop));
  }
  const long calls = d.g.calls;
  for (size_t i = 0; i < LENGTH(ways); i++) {
    d = make_device(ways[i].nudge, ways[i].valid);
    const scl_target ahead = target_of(&d, true), target = shares ? in_shares(ahead) : ahead;
    make_chains(&o, chain);
    run_together(chain, &target, vectors, i % 2 == 0 ? 2 * ITERATIONS : 40, INFINITY);
    for (int k = 0; k < CHAINS; k++) CHECK(equal_draws(alone[k], chain[k]));
    if (i == 0) CHECK(d.walks < calls / (long)vectors);
    if (i == 0) CHECK(d.points < 2 * calls);
    CHECK(shares ? d.both > d.walks / 2 : d.both == 0);
    free_chains(chain);
  }
  free_chains(alone);
}

/* Metrics of more numbers than go with a request: each point is asked for by itself. */
static void check_large(size_t vectors, bool walks) {
  const scl_chain_options o = options_of(DENSE);
  scl_chain *alone[CHAINS], *chain[CHAINS];
  device d = make_device(0.0, 99);
  const scl_target plain = target_of(&d, false);
  scl_target ahead = target_of(&d, true);
  ahead.any_vectors = false;
  make_chains(&o, alone);
  make_chains(&o, chain);
  run_together(alone, &plain, CHAINS, 40, INFINITY);
  run_together(chain, &ahead, vectors, 40, INFINITY);
  CHECK((d.walks > 0) == walks);
  for (int k = 0; k < CHAINS; k++) CHECK(equal_draws(alone[k], chain[k]));
  free_chains(alone);
  free_chains(chain);
}

/* In two shares and in three, of chains that may wait for each other, with requests and allocations
 * that fail and with time that is always over: the same draws. */
static void check_faults(kind metric, bool pools) {
  const struct {
    size_t vectors;
    double nudge, seconds;
    long refused, failed, interrupted;
  } cases[] = {{CHAINS, 0.0, 0.0, 0, 0, 0},           {4, 0.0, 0.0, 0, 0, 0},
               {CHAINS, 1e-15, 0.0, 0, 0, 0},         {4, 0.0, INFINITY, 1, 7, 9},
               {CHAINS, 1e-15, INFINITY, 12, 13, 14}, {4, 0.0, 0.0, 6, 3, 10}};
  scl_chain *want[CHAINS], *chain[CHAINS];
  scl_chain_options o = options_of(metric);
  o.pools = pools;
  for (size_t i = 0; i < LENGTH(cases); i++) {
    const bool faults = cases[i].refused > 0;
    device d = make_device(cases[i].nudge, 99), plain = d;
    d.refused = cases[i].refused;
    d.failed = cases[i].failed;
    d.interrupted = cases[i].interrupted;
    d.starves = faults && cases[i].seconds == 0.0;
    d.by_vectors = plain.by_vectors = faults ? 0.0 : 1e-3;
    const scl_target target = in_shares(target_of(&d, true));
    const scl_target other = in_shares(target_of(&plain, !faults));
    make_chains(&o, want);
    make_chains(&o, chain);
    run_together(want, &other, cases[i].vectors, 2 * ITERATIONS, INFINITY);
    const long interrupts =
        run_together(chain, &target, cases[i].vectors, 2 * ITERATIONS, cases[i].seconds);
    CHECK(interrupts == faults && d.begun == d.ended + faults);
    CHECK(faults ? d.judged >= 3 : d.judged == 0); /* of a share */
    for (int k = 0; k < CHAINS; k++) CHECK(equal_draws(want[k], chain[k]));
    free_chains(want);
    free_chains(chain);
  }
}

void test_sample_walk(scl_context *ctx) {
  enum { MOST = (1 << 15) / (D * D) }; /* metrics of D x D numbers; METRIC_NUMBERS of walk.c */
  (void)ctx;
  check_large(MOST, true);
  check_large(MOST + 1, false);
  for (kind metric = 0; metric < METRICS; metric++) {
    check_alone(metric, false);
    check_alone(metric, true);
    check_together(metric, CHAINS, false);
    check_together(metric, 2, false);
    check_together(metric, CHAINS, true);
    check_faults(metric, metric % 2 == 0);
  }
}
