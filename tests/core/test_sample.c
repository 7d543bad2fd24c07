/* Chains over targets in C: draws of a normal distribution, stops between any two evaluations,
 * points that the caller judges, memory that runs out. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "base/threads.h"
#include "program_check.h"
#include "sample/lowrank.h"
#include "sample/metric.h"
#include "sample_chains.h"
#include "test.h"

/* ---- random numbers ------------------------------------------------------------------------- */

static void check_numbers(void) {
  /* runif() and rnorm() of R from the same state */
  static const double first[] = {0.0010094978404174444, 0.59500378387998498, 0.35783453761357442};
  scl_random r;
  const double *u;
  double z[2];
  REQUIRE_OK(scl_random_begin(&r, seed, quantile));
  REQUIRE_OK(scl_random_uniform(&r, 3, &u));
  for (int k = 0; k < 3; k++) CHECK(u[k] == first[k]);
  REQUIRE_OK(scl_random_uniform(&r, 1021, &u)); /* the rest of a block of 128 is left out */
  CHECK(u[1000 - 128] == 0.8066918001956993);
  scl_random_end(&r);
  REQUIRE_OK(scl_random_begin(&r, seed, quantile));
  scl_random_normal(&r, 2, z);
  CHECK_NEAR(z[0], -3.0874235457626114, 1e-12);
  CHECK_NEAR(z[1], -0.36425303220972616, 1e-12);
  scl_random_end(&r);
}

/* ---- draws ---------------------------------------------------------------------------------- */

/* Mean and variance within six standard errors; `first`, `second`: the correlations of a draw with
 * the next one and of their squares. */
static void check_draws(const scl_chain_view *v, int coordinate, double sd, double first,
                        double second) {
  double mean = 0.0, square = 0.0;
  for (int i = 0; i < v->kept; i++) {
    const double x = v->draws[i * D + coordinate] / sd;
    mean += x / v->kept;
    square += x * x / v->kept;
  }
  CHECK_NEAR(mean, 0.0, 6.0 * sqrt((1.0 + first) / (1.0 - first) / v->kept));
  CHECK_NEAR(square, 1.0, 6.0 * sqrt(2.0 * (1.0 + second) / (1.0 - second) / v->kept));
}

static void check_moments(bool static_steps, bool dense, size_t rank) {
  gauss g = {.sd = {1.0, 0.01, 100.0}, .edge = INFINITY};
  const scl_target target = {.dimension = D, .run = run_gauss, .self = &g};
  scl_chain_options o = options(1000, 4000);
  scl_chain *c;
  scl_chain_stop stop;
  static const double unit_matrix[D * D] = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
  o.static_steps = static_steps;
  o.dense = dense;
  o.rank = rank;
  if (dense) o.inverse_metric = unit_matrix;
  REQUIRE_OK(make(&o, &c));
  CHECK_OK(scl_chain_run(c, &target, 5000, INFINITY, &stop));
  CHECK(stop == SCL_CHAIN_ENDED);
  const scl_chain_view v = scl_chain_view_of(c);
  CHECK(v.done == 5000 && v.kept == 4000 && v.rejections == 0);
  CHECK(v.evaluations == (double)(g.calls - 1)); /* but the first */
  double accepted = 0.0;
  for (int i = 1000; i < v.done; i++) accepted += v.figures[i * SCL_CHAIN_FIGURES] / v.kept;
  for (int k = 0; k < D; k++) {
    const double scale = dense ? v.factor[k * (D + 1)] : v.scale[k];
    /* Static steps turn position and momentum by an angle, or stay: near a multiple of pi squares
       hardly change. Draws of trees do for half as many independent ones. */
    const double turn = cos(o.leapfrogs * 2.0 * asin(0.5 * v.step_size * scale / g.sd[k]));
    if (static_steps)
      check_draws(&v, k, g.sd[k], 1.0 - accepted * (1.0 - turn),
                  1.0 - accepted * (1.0 - turn * turn));
    else
      check_draws(&v, k, g.sd[k], 0.0, 1.0 / 3.0);
    CHECK(fabs(log(scale / g.sd[k])) < log(2.0));
  }
  scl_chain_free(c);
}

/* L x and L' x with D = 4, 1, 9, and the direction (0.6, 0.8, 0) of eigenvalue 4. */
static void check_lowrank(void) {
  double scale[D] = {2.0, 1.0, 3.0}, room[1 + 3 * 2 + 2 * 2 * D], y[D];
  const double value[] = {4.0}, vector[D] = {0.6, 0.8, 0.0}, x[D] = {1.0, 2.0, 3.0};
  const double forward[D] = {4.64, 3.76, 9.0}, back[D] = {3.68, 4.24, 9.0};
  CHECK(scl_lowrank_room(D, 2) == LENGTH(room));
  const scl_lowrank m = scl_lowrank_at(D, 2, scale, room);
  scl_lowrank_set(&m, 1, value, vector);
  scl_lowrank_times(&m, false, x, y);
  for (int k = 0; k < D; k++) CHECK_NEAR(y[k], forward[k], 1e-14);
  scl_lowrank_times(&m, true, x, y);
  for (int k = 0; k < D; k++) CHECK_NEAR(y[k], back[k], 1e-14);
}

/* Three independent numbers with gradients that have nothing to do with them; two correlated ones
 * and a third one with gradients of their normal distribution. */
static void check_choice(void) {
  enum { N = 64 };
  double scale[D], room[1 + 3 * 2 + 2 * 2 * D], x[N * D], g[N * D];
  double *work = calloc(scl_lowrank_work(D, N, 2), sizeof *work);
  CHECK(work != NULL);
  if (work == NULL) return;
  for (int informed = 0; informed < 2; informed++) {
    const scl_lowrank m = scl_lowrank_at(D, 2, scale, room);
    for (int j = 0; j < N; j++) {
      double *q = x + j * D, *s = g + j * D;
      q[0] = sin(7.0 * j);
      q[1] = informed ? q[0] + 0.01 * cos(5.0 * j) : 2.0 * cos(5.0 * j);
      q[2] = 3.0 * sin(3.0 * j + 1.0);
      s[0] = informed ? 1e4 * (q[1] - q[0]) - q[0] : cos(11.0 * j);
      s[1] = informed ? 1e4 * (q[0] - q[1]) : sin(13.0 * j);
      s[2] = informed ? -q[2] / 9.0 : cos(17.0 * j);
    }
    CHECK(scl_lowrank_choose(&m, N, x, g, work) == (informed == 1));
    CHECK((*m.rank > 0.0) == (informed == 1));
  }
  free(work);
}

/* d normal numbers, any two of correlation 0.95, and n points and gradients of them. */
static void correlated(int d, int n, const double *sd, double *x, double *g) {
  const double rest = 0.05 * (1.0 + 0.95 * (d - 1)), other = -0.95 / rest, own = other + 1.0 / 0.05;
  for (int j = 0; j < n; j++) {
    const double common = sqrt(0.95) * sin(7.0 * j);
    double sum = 0.0;
    for (int k = 0; k < d; k++) {
      x[j * d + k] = common + sqrt(0.05) * sin(0.7 + 0.37 * k * k * j + 3.0 * (k + 1) * j);
      sum += x[j * d + k];
    }
    for (int k = 0; k < d; k++) {
      g[j * d + k] = -((own - other) * x[j * d + k] + other * sum) / sd[k];
      x[j * d + k] *= sd[k];
    }
  }
}

/* The metric is the covariance matrix, whatever the points. With D numbers all of it is compared;
 * with more, for which the points are few, only the direction in which all numbers are equal. */
static void check_fit(int d, int n, bool chooses, double tolerance) {
  enum { MOST = 40 };
  double sd[MOST], scale[MOST], room[1 + 3 * MOST + 2 * MOST * MOST];
  double *x = calloc((size_t)(n * d), sizeof *x), *g = calloc((size_t)(n * d), sizeof *g);
  double *work = calloc(scl_lowrank_work((size_t)d, (size_t)n, (size_t)d), sizeof *work);
  CHECK(x != NULL && g != NULL && work != NULL);
  if (x != NULL && g != NULL && work != NULL) {
    const scl_lowrank m = scl_lowrank_at((size_t)d, (size_t)d, scale, room);
    double one[MOST], back[MOST], along[MOST], ratio = 0.0;
    for (int k = 0; k < d; k++) sd[k] = pow(10.0, k % 3 - 1);
    correlated(d, n, sd, x, g);
    if (chooses)
      CHECK(scl_lowrank_choose(&m, (size_t)n, x, g, work));
    else
      scl_lowrank_fit(&m, (size_t)n, x, g, work);
    CHECK(*m.rank > 0.0);
    for (int k = 0; k < d; k++) one[k] = 1.0 / sd[k];
    scl_lowrank_times(&m, true, one, back);
    scl_lowrank_times(&m, false, back, along);
    for (int k = 0; k < d; k++) ratio += along[k] / sd[k] / d;
    CHECK_NEAR(ratio / (1.0 + 0.95 * (d - 1)), 1.0, tolerance);
    for (int k = 0; k < d && d == D; k++) {
      memset(one, 0, sizeof one);
      one[k] = 1.0;
      scl_lowrank_times(&m, true, one, back);
      scl_lowrank_times(&m, false, back, along);
      for (int i = 0; i < d; i++)
        CHECK_NEAR(along[i] / (sd[i] * sd[k]), i == k ? 1.0 : 0.95, tolerance);
    }
  }
  free(x);
  free(g);
  free(work);
}

static void check_metric(void) {
  double a[D * D] = {4.0, 2.0, -2.0, 0.0, 5.0, 3.0, 0.0, 0.0, 6.0}, y[D];
  const double x[D] = {1.0, 2.0, 3.0}, forward[D] = {2.0, 5.0, 6.0}, back[D] = {1.0, 10.0, 3.0};
  double flat[D * D] = {1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0};
  CHECK(scl_metric_factor(D, a)); /* 2, 1, -1; 2, 2; 1 */
  scl_metric_times(D, a, false, x, y);
  for (int k = 0; k < D; k++) CHECK_NEAR(y[k], forward[k], 1e-14);
  scl_metric_times(D, a, true, x, y);
  for (int k = 0; k < D; k++) CHECK_NEAR(y[k], back[k], 1e-14);
  CHECK(!scl_metric_factor(D, flat));
}

/* One iteration at a time, with interrupts: as in one go. */
static void check_stops(void) {
  gauss g = {.sd = {1.0, 2.0, 3.0}, .edge = INFINITY}, h = g;
  const scl_target all = {.dimension = D, .run = run_gauss, .self = &g},
                   some = {.dimension = D, .run = run_gauss, .self = &h};
  scl_chain_options o = options(100, 100);
  scl_chain *a, *b;
  scl_chain_stop stop = SCL_CHAIN_RUNS;
  o.save_warmup = true;
  o.max_depth = 2;
  REQUIRE_OK(make(&o, &a));
  REQUIRE_OK(make(&o, &b));
  CHECK_OK(scl_chain_run(a, &all, 200, INFINITY, &stop));
  int interrupts = 0;
  for (stop = SCL_CHAIN_RUNS; stop == SCL_CHAIN_RUNS;) {
    const int done = scl_chain_view_of(b).done;
    if (h.calls % 7 == 3) h.interrupt_at = h.calls + 2;
    const scl_status status = scl_chain_run(b, &some, done + 1, INFINITY, &stop);
    CHECK(status == SCL_OK || status == SCL_E_INTERRUPT);
    interrupts += status == SCL_E_INTERRUPT;
    if (status == SCL_OK) CHECK(scl_chain_view_of(b).done == done + 1);
  }
  CHECK(interrupts > 5);
  CHECK(equal_draws(a, b));
  for (int i = 0; i < 200; i++) {
    CHECK(scl_chain_view_of(a).figures[i * SCL_CHAIN_FIGURES + 2] <= 2.0);
  }
  scl_chain_free(a);
  scl_chain_free(b);
}

/* Points that are NaN: left to the caller, who gives the true values, or rejects them as the chain
 * does by itself with `reject_nan`. */
static void check_answers(bool reject) {
  gauss g = {.sd = {1.0, 2.0, 3.0}, .edge = reject ? 1.7 : INFINITY}, h = g;
  const scl_target all = {.dimension = D, .run = run_gauss, .self = &g},
                   some = {.dimension = D, .run = run_gauss, .self = &h};
  scl_chain_options o = options(100, 200);
  scl_chain *a, *b;
  scl_chain_stop stop;
  int asked = 0;
  h.edge = 1.7;
  o.reject_nan = reject;
  REQUIRE_OK(make(&o, &a));
  CHECK_OK(scl_chain_run(a, &all, 300, INFINITY, &stop));
  CHECK(stop == SCL_CHAIN_ENDED);
  o.reject_nan = false;
  REQUIRE_OK(make(&o, &b));
  do {
    CHECK_OK(scl_chain_run(b, &some, 300, INFINITY, &stop));
    if (stop != SCL_CHAIN_ASKS) continue;
    double slope[D];
    scl_chain_stop next;
    const double value = density(&g, scl_chain_view_of(b).point, slope);
    CHECK_OK(scl_chain_answer(b, value, reject ? NULL : slope, &next));
    asked++;
  } while (stop == SCL_CHAIN_ASKS);
  CHECK(stop == SCL_CHAIN_ENDED && asked > 10);
  CHECK(equal_draws(a, b));
  const scl_chain_view v = scl_chain_view_of(a);
  CHECK(v.rejections == (reject ? asked : 0) && v.failures == v.rejections);
  CHECK(v.failures - v.warmup_failures == v.failed_iterations);
  CHECK(reject ? v.warmup_failures > 0 && v.lost[0] > 1.7 : v.lost == NULL);
  scl_chain_free(a);
  scl_chain_free(b);
}

/* Most iterations of the warm-up, or of the first hundred after it, end at NaN. */
static void check_fails(int warmup) {
  gauss g = {.sd = {1.0, 2.0, 3.0}, .edge = warmup > 0 ? 0.5 : 0.3};
  const scl_target target = {.dimension = D, .run = run_gauss, .self = &g};
  scl_chain_options o = options(warmup, 200);
  scl_chain *c;
  scl_chain_stop stop;
  o.reject_nan = true;
  REQUIRE_OK(make(&o, &c));
  for (int again = 0; again < 2; again++) {
    CHECK_OK(scl_chain_run(c, &target, 300, INFINITY, &stop));
    const scl_chain_view v = scl_chain_view_of(c);
    CHECK(stop == SCL_CHAIN_FAILS && v.done == 100 && v.failed_iterations > 50);
  }
  scl_chain_free(c);
}

/* Flat, or of density zero but at the first point. */
typedef struct {
  bool lonely;
  long calls;
} plain;

static scl_status run_plain(void *self, const double *x, size_t vectors, double *to) {
  (void)vectors;
  plain *p = self;
  (void)x;
  memset(to, 0, (D + 1) * sizeof *to);
  if (p->calls++ > 0 && p->lonely) to[0] = -INFINITY;
  return SCL_OK;
}

static void check_step_sizes(void) {
  const scl_chain_options o = options(100, 100);
  for (int lonely = 0; lonely < 2; lonely++) {
    plain p = {lonely, 0};
    const scl_target target = {.dimension = D, .run = run_plain, .self = &p};
    scl_chain *c;
    scl_chain_stop stop = SCL_CHAIN_RUNS;
    REQUIRE_OK(make(&o, &c));
    CHECK_OK(scl_chain_run(c, &target, 200, INFINITY, &stop));
    CHECK(stop == (lonely ? SCL_CHAIN_STEEP : SCL_CHAIN_FLAT));
    scl_chain_free(c);
  }
}

/* ---- several chains over a program ---------------------------------------------------------- */

/* A normal density through a product, a Cholesky factor and its solve, which use memory of the
 * context during an evaluation. */
static scl_program *make_program(scl_context *ctx) {
  program_nodes l;
  program_begin(&l);
  const int x = node_parameter(&l, D);
  const double numbers[D * D] = {2.0, 0.3, 0.1, 0.3, 1.0, 0.2, 0.1, 0.2, 0.5};
  const int a = node_matmul(&l, node_data(&l, numbers, D * D), node_data(&l, numbers, D * D), D, D,
                            D, false, true);
  const int off = node_sum(&l, node_binary(&l, SCL_OP_MUL, x, x));
  const int factor = node_one(&l, SCL_VALUE_CHOL, node_binary(&l, SCL_OP_ADD, a, off), AT(D));
  const int z = node_two(&l, SCL_VALUE_TRI_SOLVE, factor, x, AT(D, 1));
  const int sum = node_sum(&l, node_binary(&l, SCL_OP_MUL, z, z));
  scl_program *p =
      program_compile(ctx, &l, node_binary(&l, SCL_OP_MUL, node_number(&l, -0.5), sum), "chains");
  program_end(&l);
  return p;
}

enum { CHAINS = 5 };

/* All iterations, `step` of each chain at a time; some calls are interrupted. */
static void run_chains(scl_chain **chain, scl_program *p, size_t vectors, int step, long stop_at) {
  const scl_target target = scl_target_program(p);
  int goal[CHAINS], done = 0, interrupts = 0;
  scl_chain_stop stop[CHAINS];
  scl_poll_stop_after(stop_at);
  while (done < CHAINS) {
    for (int k = 0; k < CHAINS; k++) goal[k] = scl_chain_view_of(chain[k]).done + step;
    const scl_status status = scl_chains_run(chain, CHAINS, &target, p, vectors, goal, 0.05, stop);
    CHECK(status == SCL_OK || (status == SCL_E_INTERRUPT && stop_at > 0));
    interrupts += status == SCL_E_INTERRUPT;
    if (status != SCL_OK) continue;
    for (int k = done = 0; k < CHAINS; k++) done += stop[k] == SCL_CHAIN_ENDED;
    if (vectors > 1 && done > 0) return;
  }
  scl_poll_stop_after(-1);
  CHECK(interrupts == (stop_at > 0));
}

static void make_chains(scl_chain **chain, int iterations) {
  const scl_chain_options o = options(iterations / 2, iterations / 2);
  for (int k = 0; k < CHAINS; k++) {
    const double centre[D] = {0.1 * k, 0.0, 0.3};
    CHECK_OK(make(&o, &chain[k]));
    CHECK_OK(scl_chain_place(chain[k], centre, 0.5));
  }
}

static void free_chains(scl_chain **chain) {
  for (int k = 0; k < CHAINS; k++) scl_chain_free(chain[k]);
}

/* In lockstep chains are evaluated equally often: up to the trajectory in progress, of at most 2^10
 * points, each has as many evaluations as the one that has ended. */
static void check_equal_shares(scl_chain **chain, int iterations) {
  double most = 0.0;
  for (int k = 0; k < CHAINS; k++) most = fmax(most, scl_chain_view_of(chain[k]).evaluations);
  for (int k = 0; k < CHAINS; k++) {
    const scl_chain_view v = scl_chain_view_of(chain[k]);
    CHECK(v.evaluations > most - 1024.0);
    CHECK(v.done < iterations || v.evaluations == most);
  }
}

/* On one thread, on several, and with interrupts: the same draws. In lockstep: to the first end.
 * Threads are for the host; a device, where an evaluation takes long, gets few iterations. */
static void check_several(scl_context *ctx) {
  const bool host = scl_context_is_host(ctx);
  const int iterations = host ? 40 : 8;
  scl_program *p = make_program(ctx);
  scl_chain *alone[CHAINS], *shared[CHAINS];
  if (p == NULL) return;
  char *kept = scl_env_copy("STATCL_COPY_THREADS");
  make_chains(alone, iterations);
  scl_thread_share(1); /* no other threads */
  run_chains(alone, p, 1, iterations, 0);
  scl_thread_share(0);
  for (int way = host ? 0 : 2; way < 3; way++) {
    make_chains(shared, iterations);
    setenv("STATCL_COPY_THREADS", way == 2 ? "2" : "4", 1);
    run_chains(shared, p, 1, way == 0 ? iterations : 7, way < 2 ? 0 : host ? 300 : 40);
    for (int k = 0; k < CHAINS; k++) CHECK(equal_draws(alone[k], shared[k]));
    free_chains(shared);
  }
  make_chains(shared, iterations);
  run_chains(shared, p, 3, iterations, 0);
  check_equal_shares(shared, iterations);
  free_chains(shared);
  free_chains(alone);
  scl_program_release(p);
  unsetenv("STATCL_COPY_THREADS");
  scl_env_restore("STATCL_COPY_THREADS", kept);
}

#ifdef SCL_TEST_ALLOC
static void check_memory(void) {
  gauss g = {.sd = {1.0, 2.0, 3.0}, .edge = INFINITY};
  const scl_target target = {.dimension = D, .run = run_gauss, .self = &g};
  scl_chain_options o = options(100, 100);
  int failures = 0;
  o.rank = 2;
  for (long n = 1;; n++, failures++) {
    scl_chain *c = NULL;
    scl_chain_stop stop;
    alloc_fail(n);
    scl_status status = make(&o, &c);
    if (status == SCL_OK) status = scl_chain_run(c, &target, 200, INFINITY, &stop);
    const bool failed = alloc_failed();
    alloc_fail(0);
    CHECK(status == (failed ? SCL_E_MEMORY : SCL_OK));
    scl_chain_free(c);
    if (!failed) break;
  }
  CHECK(failures >= 5);
}

static void check_memory_of_evaluators(scl_context *ctx) {
  scl_program *p = make_program(ctx);
  const double x[D] = {0.1, 0.2, 0.3};
  double to[D + 1], want[D + 1];
  int failures = 0;
  if (p == NULL) return;
  for (long n = 1;; n++) {
    scl_evaluator *e = NULL;
    alloc_fail(n);
    const scl_status status = scl_evaluator_make(p, &e);
    const bool failed = alloc_failed();
    alloc_fail(0);
    CHECK(status == SCL_OK || (failed && status == SCL_E_MEMORY)); /* buffers are tried twice */
    CHECK(e == NULL || status == SCL_OK);
    failures += status != SCL_OK;
    if (e != NULL) {
      CHECK_OK(scl_program_run(p, x, true, want));
      CHECK_OK(scl_evaluator_run(e, x, to));
      CHECK(memcmp(to, want, sizeof to) == 0);
    }
    scl_evaluator_release(e);
    if (!failed) break;
  }
  CHECK(failures >= 5 || !scl_context_is_host(ctx)); /* a device has none */
  scl_program_release(p);
}
#endif

/* Of densities that no engine evaluates. */
static void check_chains(void) {
  check_numbers();
  check_moments(false, false, 0);
  check_moments(true, false, 0);
  check_moments(false, true, 0);
  check_moments(false, false, 2);
  check_metric();
  check_lowrank();
  check_fit(D, 2000, false, 0.01);
  check_fit(40, 60, false, 0.1);
  check_fit(20, 120, true, 0.1);
  check_choice();
  check_stops();
  check_answers(false);
  check_answers(true);
  check_fails(100);
  check_fails(0);
  check_step_sizes();
#ifdef SCL_TEST_ALLOC
  check_memory();
#endif
}

void test_sample(scl_context *ctx) {
  if (scl_context_is_host(ctx)) check_chains();
  check_several(ctx);
#ifdef SCL_TEST_ALLOC
  check_memory_of_evaluators(ctx);
#endif
}
