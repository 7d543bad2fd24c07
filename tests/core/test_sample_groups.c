/* Groups of chains next to each other, as on several devices. */
#define _DEFAULT_SOURCE
#include <stdatomic.h>

#include "base/threads.h"
#include "sample_chains.h"
#include "test.h"

enum { GROUPS = 2, OF_GROUP = 2 };

/* Its first evaluation waits until each group has begun one. */
typedef struct {
  gauss g;
  atomic_int *begun;
  bool began, met;
} place;

static scl_status run_place(void *self, const double *x, size_t vectors, double *to) {
  place *p = self;
  if (!p->began) {
    const uint64_t until = scl_clock_us() + 20000000;
    p->began = true;
    atomic_fetch_add(p->begun, 1);
    while (atomic_load(p->begun) < GROUPS && scl_clock_us() < until) scl_sleep_us(100);
    p->met = atomic_load(p->begun) == GROUPS;
  }
  return run_gauss(&p->g, x, vectors, to);
}

/* Side by side, with an interrupt in one of them, and a point of the other that the caller judges:
 * the draws of a chain alone. */
void test_sample_groups(scl_context *ctx) {
  (void)ctx; /* targets in C */
  gauss g = {.sd = {1.0, 2.0, 3.0}, .edge = INFINITY};
  const scl_target plain = {.dimension = D, .run = run_gauss, .self = &g};
  const scl_chain_options o = options(50, 50);
  atomic_int begun = 0;
  place p[GROUPS];
  scl_target target[GROUPS];
  scl_chain *alone, *chain[GROUPS][OF_GROUP];
  scl_chain_stop stop[GROUPS][OF_GROUP];
  scl_chain_group group[GROUPS];
  const int goal[OF_GROUP] = {100, 100};
  REQUIRE_OK(make(&o, &alone));
  CHECK_OK(scl_chain_run(alone, &plain, 100, INFINITY, &stop[0][0]));
  for (int k = 0; k < GROUPS; k++) {
    p[k] = (place){.g = {.sd = {1.0, 2.0, 3.0}, .edge = INFINITY}, .begun = &begun};
    target[k] = (scl_target){.dimension = D, .run = run_place, .self = &p[k]};
    for (int i = 0; i < OF_GROUP; i++) REQUIRE_OK(make(&o, &chain[k][i]));
    group[k] = (scl_chain_group){chain[k], OF_GROUP, &target[k], NULL, 1, goal, stop[k]};
  }
  p[1].g.interrupt_at = 7;
  CHECK(scl_chain_groups_run(group, GROUPS, INFINITY) == SCL_E_INTERRUPT);
  for (int k = 0; k < GROUPS; k++) CHECK(p[k].met);
  CHECK_OK(scl_chain_groups_run(group, GROUPS, INFINITY));
  for (int k = 0; k < GROUPS; k++) {
    for (int i = 0; i < OF_GROUP; i++) {
      CHECK(stop[k][i] == SCL_CHAIN_ENDED && equal_draws(alone, chain[k][i]));
      scl_chain_free(chain[k][i]);
      REQUIRE_OK(make(&o, &chain[k][i]));
    }
  }
  p[0].g.edge = -INFINITY;
  CHECK_OK(scl_chain_groups_run(group, GROUPS, INFINITY));
  for (int i = 0; i < OF_GROUP; i++) {
    CHECK(stop[0][i] == SCL_CHAIN_ASKS && stop[1][i] == SCL_CHAIN_ENDED);
    for (int k = 0; k < GROUPS; k++) scl_chain_free(chain[k][i]);
  }
  scl_chain_free(alone);
}
