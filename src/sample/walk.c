/* Points of trajectories evaluated in advance: a transition is queued on a device as a whole.
 *
 * A chain extends its trajectory on the right or the left end, in an order that only its random
 * numbers decide, so it is known before any density is: that of a transition of three doublings may
 * be right, left, left, right, right, right, right. The points of either side are one leapfrog
 * trajectory each, which a device walks one after the other, from two starts. The end of the
 * transition is unknown. It is expected to be as long as one of the chain's last ones; points
 * beyond its end are evaluated for nothing.
 *
 *     left     -2 <- -1 <- [start] -> 1 -> 2 -> 3 -> 4 -> 5     right
 *                          the points asked for: 1, -1, -2, 2, 3, 4, 5
 *                          as evaluated:         1, 2, 3, 4, 5, | -1, -2 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"
#include "sample/state.h"

/* Points of one chain: of each side those from `next` to before `end` are there. */
typedef struct {
  size_t begin, next, end;
} side;

typedef struct {
  side side[2];  /* of direction -1 and 1 */
  int iteration; /* when they were evaluated */
} lane;

struct scl_ahead {
  const scl_target *target;
  size_t d, vectors, most;
  lane *lane;
  double *need;           /* of how many more chains each point is needed than the one before */
  double *start, *record; /* as in scl_walk */
  size_t *turn, *valid;
  scl_glm_walk_metric *metric;
  scl_random stream; /* the future numbers of a chain's stream */
  scl_walk walk;     /* the request */
  bool asked, filled;
};

/* STATCL_AHEAD: how many points at most; 0 or 1 for comparison. */
static size_t most_points(const scl_target *target) {
  const char *text = scl_env("STATCL_AHEAD");
  const long wanted = text != NULL ? strtol(text, NULL, 10) : (long)target->most;
  return target->begin_walk != NULL && wanted > 1 ? (size_t)wanted : 1;
}

void scl_ahead_end(scl_ahead *a) {
  if (a == NULL) return;
  scl_random_end(&a->stream);
  free(a->lane);
  free(a->need);
  free(a->start);
  free(a->turn);
  free(a->metric);
  free(a);
}

void scl_ahead_begin(const scl_chain *like, size_t vectors, const scl_target *target,
                     scl_ahead **out) {
  const size_t d = like->options.dimension, most = most_points(target);
  *out = NULL;
  if (most == 1 || like->options.sparse != NULL) return;
  scl_ahead *a = calloc(1, sizeof *a);
  if (a == NULL) return;
  a->target = target;
  a->d = d;
  a->vectors = vectors;
  a->most = most;
  a->lane = calloc(vectors, sizeof *a->lane);
  a->need = calloc(most + 1, sizeof *a->need);
  a->start = calloc(vectors * (6 * d + most * (2 * d + 1)), sizeof *a->start);
  a->turn = calloc(2 * vectors, sizeof *a->turn);
  a->metric = calloc(vectors, sizeof *a->metric);
  if (a->lane == NULL || a->need == NULL || a->start == NULL || a->turn == NULL ||
      a->metric == NULL) {
    scl_ahead_end(a);
    return;
  }
  a->record = a->start + vectors * 6 * d;
  a->valid = a->turn + vectors;
  *out = a;
}

/* ---- how many points ------------------------------------------------------------------------ */

/* The points that the chain will request unless it turns or diverges, this one included. */
static size_t points_left(const scl_chain *c) {
  if (c->stage == SCL_STAGE_LEAF) return (size_t)(c->size - c->leaf);
  if (c->stage == SCL_STAGE_STATIC) return (size_t)(c->options.leapfrogs - c->leapfrog);
  return 1;
}

/* Steps of a transition that is done, counted back from the last one. */
static int steps_of(const scl_chain *c, int back) {
  enum { STEPS = 3 }; /* of the figures */
  return (int)c->figures[(size_t)(c->done - 1 - back) * SCL_CHAIN_FIGURES + STEPS];
}

static void add_need(scl_ahead *a, size_t from, size_t to, double chains) {
  a->need[scl_min(from, a->most)] += chains;
  a->need[scl_min(to, a->most)] -= chains;
}

/* A chain is sure to need the points that are left of its doubling, unless it turns. Of its last
 * transitions that came so far, each stands for one of the numbers of further points. */
static void add_chain(scl_ahead *a, const scl_chain *c) {
  enum { LAST = 8 };
  const size_t left = points_left(c);
  size_t more[LAST], count = 0;
  for (int back = 0; c->stage == SCL_STAGE_LEAF && back < LAST && back < c->done; back++) {
    const int after = steps_of(c, back) - c->leapfrog;
    if (after >= (int)left) more[count++] = (size_t)after;
  }
  add_need(a, 0, left, 1.0);
  for (size_t k = 0; k < count; k++) add_need(a, left, more[k], 1.0 / (double)count);
}

/* The number of points with the least expected time for each useful one. All chains are evaluated
 * equally often. */
static size_t points_together(scl_ahead *a, scl_chain *const *chain, size_t count) {
  const double wait = a->target->wait(a->target->self, a->vectors);
  size_t best = 1;
  double need = 0.0, used = 0.0, rate = 0.0;
  for (size_t k = 0; k <= a->most; k++) a->need[k] = 0.0;
  for (size_t k = 0; k < count; k++) add_chain(a, chain[k]);
  for (size_t points = 1; points <= a->most; points++) {
    need += a->need[points - 1];
    used += need;
    const double here = used / ((double)points + wait);
    if (here <= rate) continue;
    rate = here;
    best = points;
  }
  return best;
}

/* ---- which points --------------------------------------------------------------------------- */

static int side_of(const scl_chain *c) {
  return c->direction > 0.0;
}

/* Of `points` points the number of those on the chain's current side. */
static scl_status count_this_side(scl_ahead *a, const scl_chain *c, size_t points, size_t *out) {
  const double *u;
  size_t left = points_left(c);
  *out = points;
  if (c->stage != SCL_STAGE_LEAF || left >= points) return SCL_OK;
  *out = left;
  SCL_TRY(scl_random_copy(&c->stream, &a->stream));
  for (int depth = c->depth + 1; left < points && depth < c->options.max_depth; depth++) {
    const size_t size = (size_t)1 << depth, here = scl_min(size, points - left);
    SCL_TRY(scl_random_uniform(&a->stream, size + 2, &u));
    if ((u[0] > 0.5) == side_of(c)) *out += here;
    left += here;
  }
  if (left < points) *out += points - left; /* without use, as the tree ends here */
  return SCL_OK;
}

/* p <- p + half a step along g;  at <- from + step * p. The operations are those of sample/state.h,
 * for equal bits; a step is a number for each parameter. */
static void begin_step(scl_chain *c, const double *step, const scl_phase_point *from, double *p,
                       double *at) {
  const double *way = scl_multiply(c, true, from->g) ? c->product : from->g;
  for (size_t k = 0; k < c->options.dimension; k++) p[k] = from->p[k] + 0.5 * step[k] * way[k];
  way = scl_multiply(c, false, p) ? c->product : p;
  for (size_t k = 0; k < c->options.dimension; k++) at[k] = from->q[k] + step[k] * way[k];
}

/* Where the chain's trajectory begins, and where it continues on the other side. */
static void write_starts(scl_ahead *a, scl_chain *c, size_t lane) {
  const size_t part = a->vectors * a->d;
  const bool diagonal = scl_is_diagonal(c);
  double *to = a->start + lane * a->d;
  for (size_t k = 0; k < a->d; k++) {
    const double step = c->direction * (diagonal ? c->step_size * c->scale[k] : c->step_size);
    to[k] = c->at[k];
    to[part + k] = c->p[k];
    to[2 * part + k] = step;
    to[5 * part + k] = -step;
  }
  if (c->stage == SCL_STAGE_LEAF)
    begin_step(c, to + 5 * part, &c->end[!side_of(c)], to + 4 * part, to + 3 * part);
}

static scl_glm_walk_metric metric_of(const scl_chain *c) {
  const scl_lowrank *l = &c->lowrank;
  if (c->factor != NULL)
    return (scl_glm_walk_metric){
        .dense = true, .columns = c->options.dimension, .matrix = c->factor};
  if (scl_is_diagonal(c)) return (scl_glm_walk_metric){.dense = false};
  return (scl_glm_walk_metric){false, (size_t)*l->rank, l->scale, l->weight, l->vector};
}

enum { METRIC_NUMBERS = 1 << 15 }; /* 256 KiB go with each request at most */

/* The lanes' metrics. False: they are too large. */
static bool write_metrics(scl_ahead *a, scl_chain *const *chain, size_t count, bool *diagonal) {
  size_t columns = 0;
  *diagonal = true;
  for (size_t k = 0; k < a->vectors; k++) {
    const scl_chain *c = chain[scl_min(k, count - 1)];
    a->metric[k] = metric_of(c);
    columns = scl_max(columns, a->metric[k].columns);
    *diagonal = *diagonal && scl_is_diagonal(c);
  }
  return columns * a->d * a->vectors <= METRIC_NUMBERS;
}

static void keep(lane *l, const scl_chain *c, size_t points, size_t turn, size_t valid) {
  side *here = &l->side[side_of(c)], *there = &l->side[!side_of(c)];
  l->iteration = c->iteration;
  *here = (side){0, 0, scl_min(turn, valid)};
  *there = (side){turn, turn, scl_min(points, valid)};
  if (there->end < turn) there->end = turn;
}

scl_status scl_ahead_ask(scl_ahead *a, int slot, scl_chain *const *chain, size_t count) {
  bool off = false, diagonal;
  if (a == NULL) return SCL_OK;
  a->filled = false;
  for (size_t k = 0; k < count; k++) off = off || chain[k]->off;
  if (off || !write_metrics(a, chain, count, &diagonal)) return SCL_OK;
  const size_t points = points_together(a, chain, count);
  if (points < 2) return SCL_OK;
  for (size_t k = 0; k < a->vectors; k++) {
    const size_t from = scl_min(k, count - 1); /* lanes without a chain */
    SCL_TRY(count_this_side(a, chain[from], points, &a->turn[k]));
    write_starts(a, chain[from], k);
  }
  a->walk =
      (scl_walk){points, a->vectors, a->start, a->turn, diagonal ? NULL : a->metric, a->record};
  SCL_TRY(a->target->begin_walk(a->target->self, slot, &a->walk));
  a->asked = true;
  return SCL_OK;
}

scl_status scl_ahead_receive(scl_ahead *a, int slot, scl_chain *const *chain, size_t count) {
  a->asked = false;
  SCL_TRY(a->target->end_walk(a->target->self, slot, &a->walk, a->valid));
  a->filled = true;
  for (size_t k = 0; k < count; k++) {
    keep(&a->lane[k], chain[k], a->walk.points, a->turn[k], a->valid[k]);
    a->filled = a->filled && a->valid[k] > 0;
  }
  return SCL_OK;
}

scl_status scl_ahead_fill(scl_ahead *a, scl_chain *const *chain, size_t count) {
  SCL_TRY(scl_ahead_ask(a, 0, chain, count));
  return scl_ahead_asked(a) ? scl_ahead_receive(a, 0, chain, count) : SCL_OK;
}

bool scl_ahead_asked(const scl_ahead *a) {
  return a != NULL && a->asked;
}

bool scl_ahead_filled(const scl_ahead *a) {
  return a != NULL && a->filled;
}

/* ---- taking them ---------------------------------------------------------------------------- */

static const double *record_of(const scl_ahead *a, size_t lane, size_t point) {
  return a->record + (point * a->vectors + lane) * (2 * a->d + 1);
}

/* The position of the next point of this side. */
static const double *position_of(const scl_ahead *a, size_t lane, const side *s) {
  const size_t start = s->begin > 0 ? 3 * a->vectors * a->d : 0;
  if (s->next == s->begin) return a->start + start + lane * a->d;
  return record_of(a, lane, s->next - 1) + 1 + a->d;
}

bool scl_ahead_take(scl_ahead *a, size_t lane, scl_chain *c) {
  if (a == NULL) return false;
  side *s = &a->lane[lane].side[side_of(c)];
  if (s->next >= s->end) return false;
  const double *position = position_of(a, lane, s);
  if (memcmp(position, c->at, a->d * sizeof *position) != 0) {
    const bool along = c->stage == SCL_STAGE_LEAF || c->stage == SCL_STAGE_STATIC;
    if (along && s->next > s->begin && a->lane[lane].iteration == c->iteration) c->off = true;
    return false;
  }
  memcpy(c->answer, record_of(a, lane, s->next), (a->d + 1) * sizeof *c->answer);
  s->next++;
  return true;
}
