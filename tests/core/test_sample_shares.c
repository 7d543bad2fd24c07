/* Chains in lockstep over a target that evaluates two shares of them at once. */
#include "sample_chains.h"
#include "test.h"

enum { CHAINS = 20, ITERATIONS = 60 };

/* A normal density whose evaluations begin and end; some fail. `nudge`: values depend on the number
 * of vectors, as rounding does. */
typedef struct {
  gauss g;
  double nudge;
  bool flies[2];
  double points[2][CHAINS * D];
  long begun, ended, both, most;     /* both: while another one runs; most: vectors */
  long refused, failed, interrupted; /* the number of a call, or 0 */
} twice;

static scl_status run_twice(void *self, const double *x, size_t vectors, double *to) {
  twice *t = self;
  CHECK(!t->flies[0] && !t->flies[1]);
  for (size_t k = 0; k < vectors; k++) {
    SCL_TRY(run_gauss(&t->g, x + k * D, 1, to + k * (D + 1)));
    to[k * (D + 1)] += t->nudge * (double)vectors;
  }
  return SCL_OK;
}

static scl_status begin_twice(void *self, int slot, const double *x, size_t vectors) {
  twice *t = self;
  CHECK(!t->flies[slot] && vectors <= CHAINS);
  if (++t->begun == t->refused) return scl_fail_memory(1, 0, "a test");
  memcpy(t->points[slot], x, vectors * D * sizeof *x);
  t->flies[slot] = true;
  t->both += t->flies[!slot];
  if ((long)vectors > t->most) t->most = (long)vectors;
  return SCL_OK;
}

static scl_status end_twice(void *self, int slot, const double *x, size_t vectors, double *to) {
  twice *t = self;
  CHECK(t->flies[slot] && memcmp(t->points[slot], x, vectors * D * sizeof *x) == 0);
  t->flies[slot] = false;
  if (++t->ended == t->interrupted) return scl_fail(SCL_E_INTERRUPT, "interrupted");
  if (t->ended == t->failed) return scl_fail(SCL_E_NONFINITE, "a test");
  for (size_t k = 0; k < vectors; k++)
    to[k * (D + 1)] = density(&t->g, x + k * D, to + k * (D + 1) + 1) + t->nudge * (double)vectors;
  return SCL_OK;
}

static scl_target target_of(twice *t) {
  return (scl_target){.dimension = D,
                      .run = run_twice,
                      .self = t,
                      .any_vectors = true,
                      .begin = begin_twice,
                      .end = end_twice,
                      .overlaps_from = 12};
}

static void make_chains(scl_chain **chain) {
  const scl_chain_options o = options(ITERATIONS / 2, ITERATIONS / 2);
  for (int k = 0; k < CHAINS; k++) {
    const double centre[D] = {0.1 * k, 0.0, 0.3};
    CHECK_OK(make(&o, &chain[k]));
    CHECK_OK(scl_chain_place(chain[k], centre, 0.5));
  }
}

/* As the caller does: chains that have ended leave, and points that failed are computed here. */
static long run_all(scl_chain *const *all, const twice *t, const scl_target *target, size_t vectors,
                    double seconds) {
  scl_chain *chain[CHAINS];
  scl_chain_stop stop[CHAINS];
  int goal[CHAINS], count = CHAINS;
  long interrupts = 0, rounds = 0;
  memcpy(chain, all, sizeof chain);
  while (count > 0 && ++rounds < 10000) {
    for (int k = 0; k < count; k++) goal[k] = ITERATIONS;
    const size_t together = vectors < (size_t)count ? vectors : (size_t)count;
    const long begun = t->begun;
    const scl_status status =
        scl_chains_run(chain, count, target, NULL, together, goal, seconds, stop);
    CHECK(!t->flies[0] && !t->flies[1]);
    CHECK(seconds > 0.0 ||
          t->begun - begun <= 4); /* once each share, and perhaps the first again */
    if (status == SCL_E_INTERRUPT) {
      interrupts++;
      continue;
    }
    CHECK_OK(status);
    int left = 0;
    for (int k = 0; k < count; k++) {
      if (stop[k] == SCL_CHAIN_ASKS) {
        double slope[D], value = density(&t->g, scl_chain_view_of(chain[k]).point, slope);
        CHECK_OK(scl_chain_answer(chain[k], value, slope, &stop[k]));
      }
      CHECK(stop[k] == SCL_CHAIN_RUNS || stop[k] == SCL_CHAIN_ENDED);
      if (stop[k] != SCL_CHAIN_ENDED) chain[left++] = chain[k];
    }
    count = left;
  }
  CHECK(count == 0);
  return interrupts;
}

/* However often the time is over, the same draws, as all shares are evaluated equally often. */
static void check_clock(size_t vectors) {
  scl_chain *chain[2][CHAINS];
  for (int k = 0; k < 2; k++) {
    twice t = {.g = {.sd = {1.0, 2.0, 3.0}, .edge = INFINITY}, .nudge = 1e-3};
    const scl_target target = target_of(&t);
    make_chains(chain[k]);
    run_all(chain[k], &t, &target, vectors, k == 0 ? INFINITY : 0.0);
  }
  for (int k = 0; k < CHAINS; k++) {
    CHECK(equal_draws(chain[0][k], chain[1][k]));
    for (int i = 0; i < 2; i++) scl_chain_free(chain[i][k]);
  }
}

/* The draws of each chain alone: with two shares, with three, and with calls that fail. */
void test_sample_shares(scl_context *ctx) {
  (void)ctx; /* targets in C */
  const struct {
    size_t vectors;
    long refused, failed, interrupted, most;
  } ways[] = {{CHAINS, 0, 0, 0, 16}, {8, 0, 0, 0, 8},  {8, 7, 0, 0, 8},
              {CHAINS, 0, 8, 0, 16}, {8, 0, 0, 10, 8}, {8, 1, 1, 2, 8}};
  gauss g = {.sd = {1.0, 2.0, 3.0}, .edge = INFINITY};
  const scl_target plain = {.dimension = D, .run = run_gauss, .self = &g};
  scl_chain *alone[CHAINS], *chain[CHAINS];
  scl_chain_stop stop;
  make_chains(alone);
  for (int k = 0; k < CHAINS; k++)
    CHECK_OK(scl_chain_run(alone[k], &plain, ITERATIONS, INFINITY, &stop));
  for (size_t i = 0; i < LENGTH(ways); i++) {
    twice t = {.g = g,
               .refused = ways[i].refused,
               .failed = ways[i].failed,
               .interrupted = ways[i].interrupted};
    const scl_target target = target_of(&t);
    make_chains(chain);
    const long interrupts = run_all(chain, &t, &target, ways[i].vectors, 0.001);
    CHECK(interrupts == (ways[i].interrupted > 0));
    CHECK(t.most == ways[i].most && t.both > t.begun / 2);
    CHECK(t.begun == t.ended + (ways[i].refused > 0));
    for (int k = 0; k < CHAINS; k++) {
      CHECK(equal_draws(alone[k], chain[k]));
      scl_chain_free(chain[k]);
    }
  }
  for (int k = 0; k < CHAINS; k++) scl_chain_free(alone[k]);
  check_clock(CHAINS);
  check_clock(8);
}
