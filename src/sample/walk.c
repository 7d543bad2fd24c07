/* Points of a trajectory evaluated in advance: a doubling is queued on a device as a whole. */
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"
#include "sample/state.h"

/* STATCL_AHEAD: how many points at most; 0 or 1 for comparison. */
static size_t most_points(const scl_target *target) {
  const char *text = scl_env("STATCL_AHEAD");
  const long wanted = text != NULL ? strtol(text, NULL, 10) : (long)target->most;
  return target->walk != NULL && wanted > 1 ? (size_t)wanted : 1;
}

scl_ahead scl_ahead_begin(const scl_chain *c, const scl_target *target) {
  const size_t d = c->options.dimension;
  scl_ahead a = {.most = most_points(target)};
  a.off = a.most == 1 || c->options.dense || c->options.rank > 0;
  if (a.off) return a;
  a.step = malloc((d + a.most * (2 * d + 1)) * sizeof *a.step);
  a.off = a.step == NULL;
  if (!a.off) a.record = a.step + d;
  return a;
}

void scl_ahead_end(scl_ahead *a) {
  free(a->step);
  *a = (scl_ahead){.off = true};
}

/* The points that the chain will ask for in any case but for a turn or a divergence, this one
 * included. */
static size_t points_left(const scl_chain *c) {
  if (c->stage == SCL_STAGE_LEAF) return (size_t)(c->size - c->leaf);
  if (c->stage == SCL_STAGE_STATIC) return (size_t)(c->options.leapfrogs - c->leapfrog);
  return 1;
}

/* Whether the chain is still where it was in the trajectory of these points. */
static bool is_along(const scl_ahead *a, const scl_chain *c) {
  return a->next < a->count && a->iteration == c->iteration && a->depth == c->depth &&
         a->left == points_left(c) + a->next;
}

static bool is_next(const scl_ahead *a, const scl_chain *c) {
  const size_t d = c->options.dimension;
  const double *next = a->record + (a->next - 1) * (2 * d + 1) + 1 + d;
  return memcmp(next, c->at, d * sizeof *next) == 0;
}

static void take(scl_ahead *a, scl_chain *c) {
  const size_t d = c->options.dimension;
  memcpy(c->answer, a->record + a->next * (2 * d + 1), (d + 1) * sizeof *c->answer);
  a->next++;
}

static scl_status fill(scl_ahead *a, scl_chain *c, const scl_target *target, size_t points) {
  const scl_walk w = {points, c->at, c->p, a->step, a->record};
  for (size_t k = 0; k < c->options.dimension; k++) {
    const double step = c->step_size * c->scale[k];
    a->step[k] = c->direction * step;
  }
  a->next = a->count = 0;
  a->left = points_left(c);
  a->iteration = c->iteration;
  a->depth = c->depth;
  return target->walk(target->self, &w, &a->count);
}

scl_status scl_ahead_evaluate(scl_ahead *a, scl_chain *c, const scl_target *target) {
  const bool along = is_along(a, c), found = along && is_next(a, c);
  a->off = a->off || (along && !found);
  if (!a->off && !found) {
    const size_t points = scl_min(points_left(c), a->most);
    a->next = a->count = 0;
    if (points > 1) SCL_TRY(fill(a, c, target, points));
  }
  if (a->off || a->count == 0) return target->run(target->self, c->at, 1, c->answer);
  take(a, c);
  return SCL_OK;
}
