/* Likelihoods as a sampler uses them on a device: trajectories, and two evaluations at once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/glm_private.h"
#include "base/device.h"
#include "base/threads.h"
#include "engine/cl/runtime/cl.h"
#include "sample/target.h"
#include "alloc.h"
#include "driver.h"
#include "matrices.h"

enum { N = 300, OF_GROUP = 200, MANY = 4000, MOST = 31, VECTORS = 5, POINTS = 4 };
enum { OF_WARPS = 64, WARPS_VECTORS = 33, BY_WARPS = 9 }; /* rows of a group, vectors, columns */

static scl_glm_family family = SCL_GLM_BERNOULLI_LOGIT;

/* Of a regression with p columns, whose data the caller may forget. */
static scl_glm *make_glm_of(scl_context *ctx, size_t n, size_t p) {
  static double x[MANY * MOST], y[MANY];
  scl_mat *m = NULL;
  scl_glm *glm = NULL;
  test_fill(x, n * p);
  for (size_t i = 0; i < n; i++) y[i] = test_random() > 0.2;
  scl_glm_data data = {.y = y, .n_y = n};
  if (family == SCL_GLM_BINOMIAL_LOGIT) data.datum = y, data.n_datum = n;
  CHECK_OK(scl_mat_from_host(ctx, x, n, p, SCL_GENERAL, &m));
  CHECK_OK(scl_glm_create(family, &data, m, &glm));
  scl_mat_release(m);
  return glm;
}

static scl_glm *make_glm(scl_context *ctx, size_t p) {
  return make_glm_of(ctx, N, p);
}

static scl_glm_parameters at_vectors(const double *alpha, const double *beta, size_t vectors,
                                     size_t p) {
  return (scl_glm_parameters){
      .vectors = vectors, .alpha = alpha, .beta = beta, .n_alpha = vectors, .n_beta = vectors * p};
}

/* A walk: `metric` is -1 of one whose chains have none, else the kind of the first chain's. */
typedef struct {
  size_t p, vectors;
  bool priors;
  int metric;
  scl_glm_walk_order order;
} walk;
enum { DENSE, LOW_RANK, SCALED, KINDS, RANK = 3 };

typedef struct {
  scl_glm_walk_metric as_given;
  double numbers[MOST + RANK + MOST * MOST];
} metric;

static size_t rows_of(const walk *w) {
  return 1 + w->p - (w->order == SCL_GLM_ALPHA_ABSENT);
}

/* The parameter, alpha being 0, of a row of the metric. */
static size_t parameter_of(const walk *w, size_t j) {
  if (w->order == SCL_GLM_ALPHA_LAST) return j == w->p ? 0 : j + 1;
  return j + (w->order == SCL_GLM_ALPHA_ABSENT);
}

static void make_metric(const walk *w, size_t vector, metric *m) {
  const size_t rows = rows_of(w), kind = ((size_t)w->metric + vector) % KINDS;
  double *scale = m->numbers, *weight = scale + MOST, *matrix = weight + RANK;
  test_fill(m->numbers, sizeof m->numbers / sizeof *m->numbers);
  m->as_given = (scl_glm_walk_metric){.scale = scale, .weight = weight, .matrix = matrix};
  if (kind == LOW_RANK) m->as_given.columns = 1 + vector % RANK;
  if (kind != DENSE) return;
  m->as_given = (scl_glm_walk_metric){.dense = true, .columns = rows, .matrix = matrix};
  for (size_t j = 0; j < rows; j++) { /* L' is in the upper triangle */
    for (size_t i = 0; i < j; i++) matrix[j * rows + i] = matrix[i * rows + j];
  }
}

/* to <- L' x or L x, where they are not the identity, by the sums of ops/glm.h, each operation
 * rounded by itself. */
static void multiply(const walk *w, const metric *m, bool transposed, const double *x, double *to) {
  const scl_glm_walk_metric *g = &m->as_given;
  const size_t rows = rows_of(w);
  for (size_t j = 0; j < rows; j++) {
    const size_t i = parameter_of(w, j);
    to[i] = g->dense ? 0.0 : transposed ? g->scale[j] * x[i] : x[i];
  }
  double given[MOST];
  memcpy(given, to, sizeof given);
  for (size_t r = 0; r < g->columns; r++) {
    volatile double share = 0.0;
    for (size_t j = 0; j < rows && !g->dense; j++) {
      const volatile double term = g->matrix[r * rows + j] * given[parameter_of(w, j)];
      share += term;
    }
    share = g->dense ? x[parameter_of(w, r)] : g->weight[r] * share;
    for (size_t j = 0; j < rows; j++) {
      if (g->dense && (transposed ? j > r : j < r)) continue;
      const volatile double term = g->matrix[r * rows + j] * share;
      to[parameter_of(w, j)] += term;
    }
  }
  for (size_t j = 0; j < rows && !g->dense && !transposed; j++)
    to[parameter_of(w, j)] *= g->scale[j];
}

/* The next position of a chain by the steps of leapfrog.h. */
static void step_on(const walk *w, const metric *m, const double *slope, const double *step,
                    double *at, double *momentum) {
  const size_t d = 1 + w->p;
  double way[MOST] = {0.0};
  memcpy(way, slope, d * sizeof *way);
  if (w->metric >= 0) multiply(w, m, true, slope, way);
  for (size_t i = 0; i < d; i++) {
    for (int half = 0; half < 2; half++) {
      const volatile double kick = 0.5 * step[i] * way[i];
      momentum[i] += kick;
    }
  }
  memcpy(way, momentum, d * sizeof *way);
  if (w->metric >= 0) multiply(w, m, false, momentum, way);
  for (size_t i = 0; i < d; i++) {
    const volatile double move = step[i] * way[i];
    at[i] += move;
  }
}

/* The derivative by each parameter of a flat, a normal, or a Cauchy prior, in turn. */
static double prior_slope(size_t k, double x) {
  const double z = (x - 0.3) / 0.5;
  return k % 3 == 0 ? 0.0 : k % 3 == 1 ? -z / 0.5 : -2.0 * z / (1.0 + z * z) / 0.5;
}

/* The same as a walk takes it. */
static void write_priors(size_t d, double *to) {
  for (size_t k = 0; k < d; k++) {
    to[k] = k % 3 == 0 ? 0.0 : 0.3;
    to[d + k] = k % 3 == 0 ? INFINITY : k % 3 == 1 ? 0.25 : 0.125;
    to[2 * d + k] = k % 3 == 2 ? 0.5 : 0.0;
  }
}

/* Value and gradient are those of one evaluation at the position, the latter with the priors'. */
static void check_point(scl_glm *glm, size_t p, const double *at, const double *got, bool priors) {
  double value, d_alpha, d_beta[MOST];
  const scl_glm_parameters parameters = at_vectors(at, at + 1, 1, p);
  const scl_glm_results results = {.value = &value, .d_alpha = &d_alpha, .d_beta = d_beta};
  CHECK_OK(scl_glm_evaluate(glm, &parameters, SCL_GLM_ALPHA | SCL_GLM_BETA, &results));
  CHECK_NEAR(got[0], value, 1e-10 * fabs(value));
  CHECK_NEAR(got[1], d_alpha + (priors ? prior_slope(0, at[0]) : 0.0), 1e-10 * N);
  for (size_t j = 1; j <= p; j++) {
    CHECK_NEAR(got[1 + j], d_beta[j - 1] + (priors ? prior_slope(j, at[j]) : 0.0), 1e-10 * N);
  }
}

/* Steps of both signs; an alpha that is no parameter has none. */
static void fill_starts(const walk *w, double *start) {
  const size_t d = 1 + w->p, part = w->vectors * d;
  test_fill(start, 6 * part);
  for (size_t k = 0; k < part; k++) {
    const bool still = w->order == SCL_GLM_ALPHA_ABSENT && k % d == 0;
    start[2 * part + k] = still ? 0.0 : k % 2 == 0 ? 0.01 : -0.02;
    start[5 * part + k] = -start[2 * part + k];
  }
}

/* Points of several chains, a leapfrog step apart but where a chain turns, evaluated together by
 * this layout: positions are those of the same steps made here, bit for bit. */
static void check_walk(scl_context *ctx, walk w) {
  const size_t p = w.p, vectors = w.vectors, d = 1 + p, row = 2 * d + 1, part = vectors * d;
  double start[6 * VECTORS * MOST], prior[3 * MOST], record[POINTS * VECTORS * (2 * MOST + 1)];
  size_t valid[VECTORS], turn[VECTORS];
  metric m[VECTORS];
  scl_glm_walk_metric given[VECTORS];
  scl_glm *glm = make_glm(ctx, p);
  if (glm == NULL) return;
  fill_starts(&w, start);
  for (size_t v = 0; v < vectors; v++) {
    turn[v] = vectors == 1 ? POINTS : 1 + v % POINTS;
    if (w.metric >= 0) make_metric(&w, v, &m[v]);
    if (w.metric >= 0) given[v] = m[v].as_given;
  }
  write_priors(d, prior);
  const scl_glm_walk_task task = {
      POINTS, vectors, start, turn, w.priors ? prior : NULL, record, w.metric < 0 ? NULL : given,
      w.order};
  CHECK_OK(scl_glm_walk_begin(glm, 0, &task));
  CHECK_OK(scl_glm_walk_end(glm, 0, &task, valid));
  for (size_t v = 0; v < vectors; v++) {
    double at[MOST], momentum[MOST], step[MOST];
    CHECK(valid[v] == POINTS);
    for (size_t k = 0; k < valid[v]; k++) {
      const double *got = record + (k * vectors + v) * row;
      const double *from = start + (k == turn[v] ? 3 : 0) * part + v * d;
      if (k == 0 || k == turn[v]) {
        memcpy(at, from, d * sizeof *at);
        memcpy(momentum, from + part, d * sizeof *at);
        memcpy(step, from + 2 * part, d * sizeof *at);
      } else {
        step_on(&w, &m[v], got - vectors * row + 1, step, at, momentum);
      }
      if (k > 0) CHECK(memcmp(at, got - vectors * row + 1 + d, d * sizeof *at) == 0);
      check_point(glm, p, at, got, w.priors && k + 1 < POINTS);
    }
  }
  scl_glm_release(glm);
}

static uint64_t launches_of_passes(const scl_cl_context *cl, const char *layout) {
  uint64_t count = 0;
  for (int k = 0; k < SCL_CL_KERNELS; k++) {
    const char *name = scl_cl_kernel_name((scl_cl_kernel)k);
    if (strncmp(name, "glm_", 4) == 0 && strstr(name, layout) != NULL) count += cl->launches[k];
  }
  return count;
}

/* The points of a walk in one launch have the bits of those in a launch each. The same holds where
 * not all groups run at once, so that the one launch fails. Whether they do. One unit has one
 * group, of matrix instructions one for each part of the vectors, if there are few rows. */
static bool check_launches(scl_context *ctx, const char *layout, size_t n, walk w) {
  enum { LONG = 7, WAYS = 3 };
  const size_t d = 1 + w.p, numbers = LONG * w.vectors * (2 * d + 1);
  static double start[6 * WARPS_VECTORS * MOST], prior[3 * MOST];
  static double record[WAYS][LONG * WARPS_VECTORS * (2 * MOST + 1)];
  static metric m[WARPS_VECTORS];
  size_t valid[WARPS_VECTORS], turn[WARPS_VECTORS];
  scl_glm_walk_metric given[WARPS_VECTORS];
  scl_cl_context *cl = (scl_cl_context *)ctx;
  const uint32_t units = cl->info.units;
  const bool one_group = strcmp(layout, "16m8") != 0 || n <= OF_WARPS;
  bool at_once = false;
  scl_glm *glm = make_glm_of(ctx, n, w.p);
  if (glm == NULL) return false;
  fill_starts(&w, start);
  write_priors(d, prior);
  for (size_t v = 0; v < w.vectors; v++) {
    turn[v] = 2 + v % LONG;
    make_metric(&w, v, &m[v]);
    given[v] = m[v].as_given;
  }
  scl_cl_glm_force(layout);
  for (int way = 0; way < WAYS; way++) { /* apart; one group, which leaves its mark; all groups */
    const scl_glm_walk_task task = {LONG,  w.vectors,   start, turn,
                                    prior, record[way], given, w.order};
    const uint64_t before = launches_of_passes(cl, layout);
    if (way == 0) cl->walks_apart = 1;                                /* only this one */
    cl->info.units = way == 1 ? 1 + (uint32_t)w.vectors / 25 : units; /* a group for each part */
    CHECK_OK(scl_glm_walk_begin(glm, 0, &task));
    CHECK_OK(scl_glm_walk_end(glm, 0, &task, valid));
    for (size_t v = 0; v < w.vectors; v++) CHECK(valid[v] == LONG);
    at_once = way > 0 && cl->walks_apart == 0;
    if ((way == 1 && one_group) || cl->info.type == SCL_DEVICE_GPU) CHECK(at_once == (way > 0));
    CHECK(launches_of_passes(cl, layout) - before == (at_once ? 1 : way == 0 ? LONG : 1 + LONG));
  }
  CHECK(memcmp(record[0], record[2], numbers * sizeof **record) == 0);
  cl->walks_apart = 0;
  cl->info.units = units;
  scl_cl_glm_force(NULL);
  scl_glm_release(glm);
  return at_once;
}

/* With more directions than parameters, for which local memory has no room, another layout is used
 * than the one that is forced. */
static void check_directions(scl_context *ctx) {
  const uint64_t before = launches_of_passes((const scl_cl_context *)ctx, "10x4f");
  scl_cl_glm_force("10x4f");
  check_walk(ctx, (walk){0, 3, true, DENSE, SCL_GLM_ALPHA_FIRST});
  /* those of single points, next to which the walk is held */
  CHECK(launches_of_passes((const scl_cl_context *)ctx, "10x4f") - before == 3 * POINTS);
  scl_cl_glm_force(NULL);
}

/* By matrix instructions: vectors of one part or of several, the last not whole. */
static void check_warps(scl_context *ctx) {
  scl_cl_context *cl = (scl_cl_context *)ctx;
  const bool gpu = cl->info.type == SCL_DEVICE_GPU;
  if (!scl_cl_may_try_large_mma(cl)) return;
  check_launches(ctx, "16m8", 60, (walk){9, 8, true, LOW_RANK, SCL_GLM_ALPHA_LAST});
  check_launches(ctx, "16m8", 30, (walk){16, 13, true, DENSE, SCL_GLM_ALPHA_FIRST});
  check_launches(ctx, "16m8", 16, (walk){2, 22, true, SCALED, SCL_GLM_ALPHA_ABSENT});
  for (int other = 0; other < 2; other++) {
    family = other == 0 ? SCL_GLM_BINOMIAL_LOGIT : SCL_GLM_POISSON_LOG;
    scl_cl_glm_force("16m8"); /* its trial */
    check_walk(ctx, (walk){5, VECTORS, true, LOW_RANK, SCL_GLM_ALPHA_LAST});
    CHECK(!gpu || cl->walks_apart == 0);
    /* a GPU's compiler joins products and sums of two kernels in different ways */
    if (!gpu) check_launches(ctx, "16m8", 60, (walk){9, 11, true, LOW_RANK, SCL_GLM_ALPHA_FIRST});
  }
  family = SCL_GLM_BERNOULLI_LOGIT;
  for (size_t vectors = 1; vectors <= WARPS_VECTORS && gpu; vectors += 4)
    check_launches(ctx, "16m8", MANY, (walk){10, vectors, true, LOW_RANK, SCL_GLM_ALPHA_FIRST});
}

/* Groups that meet: two of them, which on a CPU device may have to wait long for a thread. */
static void check_meetings(const scl_context *like) {
  const size_t index = driver_index(like);
  const walk four = {10, 4, true, DENSE, SCL_GLM_ALPHA_LAST}, eight = {5, 8, true, LOW_RANK, 0};
  scl_context *ctx = NULL;
  driver_install();
  driver_rewrite("GLM_PATIENCE 100000 ", "GLM_PATIENCE 100000000 ");
  REQUIRE_OK(scl_device_open(index, &ctx));
  scl_cl_context *cl = (scl_cl_context *)ctx;
  cl->info.units = 2;
  int tries = scl_cores() > 1 ? 20 : 0;
  while (tries > 0 && !check_launches(ctx, "10f", MANY, (walk){9, 1, true, LOW_RANK, 0})) tries--;
  while (tries > 0 && !check_launches(ctx, "10x4f", MANY, four)) tries--;
  scl_cl_glm_force("16m8"); /* its trial */
  check_walk(ctx, (walk){5, VECTORS, false, -1, 0});
  const bool warps = cl->emulated_mma && scl_cl_may_try_large_mma(cl);
  while (tries > 0 && warps && !check_launches(ctx, "16m8", 128, eight)) tries--;
  CHECK(tries > 0 || scl_cores() == 1);
  scl_context_release(ctx);
  driver_rewrite(NULL, NULL);
  driver_remove();
}

/* A walk whose kernel is being built is not one whose groups could not meet. */
static void check_building(const scl_context *like) {
  scl_context *ctx = NULL;
  double start[6 * MOST], record[POINTS * (2 * MOST + 1)];
  const size_t turn[] = {POINTS};
  size_t valid[1];
  const scl_glm_walk_task task = {
      .points = POINTS, .vectors = 1, .start = start, .turn = turn, .record = record};
  REQUIRE_OK(scl_device_open(driver_index(like), &ctx));
  const scl_cl_context *cl = (const scl_cl_context *)ctx;
  scl_glm *glm = make_glm(ctx, 7);
  fill_starts(&(walk){7, 1, false, -1, 0}, start);
  scl_cl_glm_force("10f");
  const bool before = scl_device_beside_begin(true);
  scl_device_beside_whole(true);
  CHECK_OK(scl_glm_walk_begin(glm, 0, &task));
  CHECK_OK(scl_glm_walk_end(glm, 0, &task, valid));
  CHECK(scl_device_beside_end(before) && cl->walks_apart == 0);
  scl_device_beside_stop();
  CHECK_OK(scl_glm_walk_begin(glm, 0, &task));
  CHECK_OK(scl_glm_walk_end(glm, 0, &task, valid));
  CHECK(valid[0] == POINTS && cl->walks_apart == 0);
  scl_cl_glm_force(NULL);
  scl_glm_release(glm);
  scl_context_release(ctx);
}

/* Two walks that have begun before the first ends: the bits of one after the other. */
static void check_walks(scl_context *ctx, size_t p) {
  const size_t d = 1 + p, numbers = POINTS * (2 * d + 1);
  double start[2][6 * VECTORS * MOST], record[4][POINTS * VECTORS * (2 * MOST + 1)];
  const size_t turn[2][VECTORS] = {{POINTS, 2}, {1, POINTS, 3, 2}};
  size_t valid[VECTORS];
  scl_glm_walk_task task[4];
  scl_glm *glm = make_glm(ctx, p);
  if (glm == NULL) return;
  for (size_t k = 0; k < 4; k++) {
    const walk w = {p, 2 + 2 * (k % 2), false, -1, 0}; /* the second has more vectors */
    if (k < 2) fill_starts(&w, start[k]);
    task[k] = (scl_glm_walk_task){.points = POINTS,
                                  .vectors = w.vectors,
                                  .start = start[k % 2],
                                  .turn = turn[k % 2],
                                  .record = record[k]};
    memset(record[k], 0, sizeof record[k]);
  }
  for (int k = 0; k < 2; k++) CHECK_OK(scl_glm_walk_begin(glm, k, &task[k]));
  /* one after the other, if each is one launch; not by matrix instructions */
  const scl_glm_slot *slot = glm->slot;
  if (slot[0].state.pending.at_once && slot[1].state.pending.at_once && p != BY_WARPS)
    CHECK(slot[0].state.pending.queue == slot[1].state.pending.queue);
  for (int k = 0; k < 2; k++) CHECK_OK(scl_glm_walk_end(glm, k, &task[k], valid));
  for (int k = 2; k < 4; k++) {
    CHECK_OK(scl_glm_walk_begin(glm, 0, &task[k]));
    CHECK_OK(scl_glm_walk_end(glm, 0, &task[k], valid));
    for (size_t v = 0; v < task[k].vectors; v++) CHECK(valid[v] == POINTS);
    CHECK(memcmp(record[k - 2], record[k], numbers * task[k].vectors * sizeof **record) == 0);
  }
  /* Nothing begins at a start that is not a number; a walk without a record is waited for. */
  start[0][0] = NAN;
  CHECK_OK(scl_glm_walk_begin(glm, 0, &task[0]));
  task[1].record = NULL;
  CHECK_OK(scl_glm_walk_begin(glm, 1, &task[1]));
  CHECK_OK(scl_glm_walk_end(glm, 1, &task[1], valid));
  CHECK_OK(scl_glm_walk_end(glm, 0, &task[0], valid));
  CHECK(valid[0] == 0 && valid[1] == 0);
  scl_glm_release(glm);
}

#ifdef SCL_TEST_ALLOC
/* Two walks of a sampler at once, each allocation of which fails in turn: none is left behind. */
static void check_memory(scl_context *ctx) {
  enum { P = 3, D = 1 + P };
  const size_t turn[] = {POINTS, 2};
  double start[6 * 2 * D], record[3][POINTS * 2 * (2 * D + 1)] = {{0.0}};
  size_t valid[2];
  long failures = 0;
  bool fails = true;
  scl_likelihood_target l = {.glm = make_glm(ctx, P), .dimension = D};
  if (l.glm == NULL) return;
  l.at[SCL_TARGET_BETA] = l.count[SCL_TARGET_ALPHA] = 1;
  l.count[SCL_TARGET_BETA] = P;
  const scl_target t = scl_target_likelihood(&l);
  fill_starts(&(walk){P, 2, false, -1, 0}, start);
  for (long n = 0; fails; n++) {
    scl_status status[2];
    scl_walk w[2];
    alloc_fail(n); /* first none */
    for (int k = 0; k < 2; k++) {
      w[k] = (scl_walk){POINTS, 2, start, turn, NULL, record[n == 0 ? 0 : 1 + k]};
      status[k] = t.begin_walk(t.self, k, &w[k]);
    }
    for (int k = 0; k < 2; k++) {
      if (status[k] == SCL_OK) status[k] = t.end_walk(t.self, k, &w[k], valid);
      CHECK(l.glm->slot[k].state.pending.count == 0);
      CHECK(status[k] == SCL_OK || (status[k] == SCL_E_MEMORY && alloc_failed()));
      if (status[k] == SCL_OK) CHECK(memcmp(w[k].record, record[0], sizeof *record) == 0);
    }
    fails = n == 0 || alloc_failed();
    failures += alloc_failed();
    alloc_fail(0);
  }
  CHECK(failures >= 4);
  scl_glm_release(l.glm);
}
#endif

/* Two evaluations that have begun before the first ends: the bits of one after the other. */
static void check_slots(scl_context *ctx, size_t p) {
  enum { NUMBERS = VECTORS * (2 + MOST) };
  const unsigned wanted = SCL_GLM_ALPHA | SCL_GLM_BETA;
  double alpha[2][VECTORS], beta[2][VECTORS * MOST], got[2][NUMBERS] = {{0}}, want[NUMBERS] = {0};
  scl_glm *glm = make_glm(ctx, p);
  if (glm == NULL) return;
  CHECK(scl_glm_overlaps(glm) == !scl_context_is_host(ctx));
  for (int round = 0; round < 3 && scl_glm_overlaps(glm); round++) {
    scl_glm_parameters at[2];
    scl_glm_results results[2];
    for (int k = 0; k < 2; k++) { /* the second has fewer vectors */
      test_fill(alpha[k], VECTORS);
      test_fill(beta[k], VECTORS * p);
      at[k] = at_vectors(alpha[k], beta[k], (size_t)(VECTORS - 2 * k), p);
      results[k] = (scl_glm_results){
          .value = got[k], .d_alpha = got[k] + VECTORS, .d_beta = got[k] + 2 * VECTORS};
      CHECK_OK(scl_glm_begin(glm, k, &at[k], wanted));
    }
    for (int k = 0; k < 2; k++) CHECK_OK(scl_glm_end(glm, k, &at[k], wanted, &results[k]));
    for (int k = 0; k < 2; k++) {
      const scl_glm_results again = {
          .value = want, .d_alpha = want + VECTORS, .d_beta = want + 2 * VECTORS};
      memset(want, 0, sizeof want);
      if (k == 1) memset(got[k] + at[k].vectors, 0, 2 * sizeof **got);
      if (k == 1) memset(got[k] + VECTORS + at[k].vectors, 0, 2 * sizeof **got);
      CHECK_OK(scl_glm_evaluate(glm, &at[k], wanted, &again));
      CHECK(memcmp(got[k], want, sizeof want) == 0);
    }
  }
  /* Wrong parameters are refused before anything begins. */
  alpha[0][0] = NAN;
  const scl_glm_parameters bad = at_vectors(alpha[0], beta[0], 1, p);
  if (scl_glm_overlaps(glm)) CHECK_STATUS(SCL_E_NONFINITE, scl_glm_begin(glm, 0, &bad, wanted));
  scl_glm_release(glm);
}

void test_glm_walk(scl_context *ctx) {
  static const size_t shapes[][2] = {{9, 1}, {0, 1}, {30, 1}, {9, 4}, {0, 2}, {9, VECTORS}};
  const char *names[] = {NULL, "10f", "10", "32", "10x4f", "10x2", "16m8", "split"};
  check_slots(ctx, 3);
  check_slots(ctx, 30);
  if (scl_context_is_host(ctx)) return;
  for (size_t i = 0; i < LENGTH(names); i++) {
    scl_cl_glm_force(names[i]);
    for (size_t k = 0; k < 2 * LENGTH(shapes); k++)
      check_walk(ctx, (walk){shapes[k / 2][0], shapes[k / 2][1], k % 2 == 1, -1, 0});
    check_walk(ctx, (walk){9, 1, true, LOW_RANK, SCL_GLM_ALPHA_FIRST});
    check_walk(ctx, (walk){9, 1, false, DENSE, SCL_GLM_ALPHA_ABSENT});
    check_walk(ctx, (walk){30, 1, false, DENSE, SCL_GLM_ALPHA_LAST});
    check_walk(ctx, (walk){0, 1, true, SCALED, SCL_GLM_ALPHA_FIRST});
    check_walk(ctx, (walk){9, 4, true, LOW_RANK, SCL_GLM_ALPHA_LAST});
    check_walk(ctx, (walk){9, VECTORS, true, DENSE, SCL_GLM_ALPHA_ABSENT});
  }
  scl_cl_glm_force(NULL);
  check_launches(ctx, "10f", MANY, (walk){9, 1, true, LOW_RANK, SCL_GLM_ALPHA_FIRST});
  check_launches(ctx, "10f", OF_GROUP, (walk){10, 1, true, DENSE, SCL_GLM_ALPHA_LAST});
  check_launches(ctx, "10x4f", MANY, (walk){10, 4, true, LOW_RANK, SCL_GLM_ALPHA_LAST});
  check_launches(ctx, "10x4f", MANY, (walk){2, 3, true, DENSE, SCL_GLM_ALPHA_FIRST});
  check_directions(ctx);
  check_warps(ctx);
  check_meetings(ctx);
  check_building(ctx);
  check_walks(ctx, 3);
  check_walks(ctx, 30);
  scl_cl_glm_force("16m8");
  check_walks(ctx, BY_WARPS);
  scl_cl_glm_force(NULL);
#ifdef SCL_TEST_ALLOC
  check_memory(ctx);
#endif
}
