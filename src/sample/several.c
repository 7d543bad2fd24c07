/* Several chains over one target. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"
#include "sample/state.h"

static double seconds_now(void) {
  return 1e-6 * (double)scl_clock_us();
}

/* The outcome for a chain of a run with this status: the caller judges points that cannot be
 * evaluated. */
static scl_status judge(scl_status status, scl_chain_stop *stop) {
  if (status == SCL_OK || status == SCL_E_INTERRUPT) return status;
  *stop = SCL_CHAIN_ASKS;
  return SCL_OK;
}

/* ---- one after another ---------------------------------------------------------------------- */

static scl_status run_in_turn(scl_chain *const *chain, int count, const scl_target *target,
                              const int *goal, double seconds, scl_chain_stop *stop) {
  const double until = seconds_now() + seconds;
  for (int k = 0; k < count; k++) {
    const double left = until - seconds_now();
    stop[k] = SCL_CHAIN_RUNS;
    if (k > 0 && left <= 0.0) continue;
    SCL_TRY(judge(scl_chain_run(chain[k], target, goal[k], left, &stop[k]), &stop[k]));
  }
  return SCL_OK;
}

/* ---- on threads ----------------------------------------------------------------------------- */

enum { MOST_THREADS = 64 };

typedef struct {
  scl_chain *const *chain;
  int count, inner; /* threads of one evaluation */
  const int *goal;
  double until;
  scl_chain_stop *stop;
  scl_target target[MOST_THREADS];
  atomic_int next; /* chain that no thread has taken */
  atomic_int status;
} side;

/* Takes one chain after another. The first of each thread makes progress in any case. */
static void run_some(void *arg, int part, int parts) {
  side *s = arg;
  (void)parts;
  scl_thread_share(s->inner);
  for (bool first = true;; first = false) {
    const double left = s->until - seconds_now();
    if (!first && left <= 0.0) break;
    const int k = atomic_fetch_add(&s->next, 1);
    if (k >= s->count) break;
    const scl_status status = judge(
        scl_chain_run(s->chain[k], &s->target[part], s->goal[k], left, &s->stop[k]), &s->stop[k]);
    if (status != SCL_OK) atomic_store(&s->status, (int)status);
  }
  scl_thread_share(0);
}

/* The error of any thread. The message of a member's error is in its own record. */
static scl_status status_of(atomic_int *any) {
  const scl_status status = (scl_status)atomic_load(any);
  if (status == SCL_OK) return SCL_OK;
  return status == SCL_E_INTERRUPT ? scl_fail(status, "interrupted")
                                   : scl_fail_memory(0, 0, "chains");
}

static int thread_count(int count) {
  const int most = scl_usual_threads();
  return scl_thread_shares() ? 1 : count < most ? count : most;
}

/* *done: false if the program must run in one thread. */
static scl_status run_on_threads(scl_chain *const *chain, int count, scl_program *p,
                                 const int *goal, double seconds, scl_chain_stop *stop,
                                 bool *done) {
  const int threads = thread_count(count);
  scl_evaluator *own[MOST_THREADS] = {NULL};
  side s = {.chain = chain,
            .count = count,
            .inner = scl_usual_threads() / threads,
            .goal = goal,
            .until = seconds_now() + seconds,
            .stop = stop};
  scl_status status = SCL_OK;
  *done = threads > 1;
  for (int k = 0; k < threads && *done; k++) {
    SCL_GO(scl_evaluator_make(p, &own[k]));
    *done = own[k] != NULL;
    s.target[k] = scl_target_evaluator(own[k], scl_program_about(p).parameters);
  }
  if (*done) {
    for (int k = 0; k < count; k++) stop[k] = SCL_CHAIN_RUNS;
    scl_team *team = scl_team_start(threads);
    scl_team_run(team, run_some, &s);
    scl_team_stop(team);
    status = status_of(&s.status);
    if (status == SCL_OK) status = scl_poll();
  }
done:
  for (int k = 0; k < threads; k++) scl_evaluator_release(own[k]);
  return status;
}

/* ---- in lockstep ---------------------------------------------------------------------------- */

typedef struct {
  scl_chain *const *chain;
  int count;
  const scl_target *target;
  size_t dimension, vectors;
  double *x, *to;    /* of one run */
  scl_team *team;    /* for the chains' own work; NULL: few chains */
  scl_ahead **ahead; /* of each `vectors` chains; NULL: of none */
  const int *goal;
  scl_chain_stop *stop;
  bool shares; /* x: of two runs */
} lockstep;

/* Points of chains from `first` on; the last chain's point fills the remaining columns. */
static void gather(const lockstep *l, int first, double *x) {
  const size_t d = l->dimension;
  for (size_t k = 0; k < l->vectors; k++) {
    const int at = first + (int)k < l->count ? first + (int)k : l->count - 1;
    memcpy(x + k * d, l->chain[at]->at, d * sizeof *x);
  }
}

static int end_of(const lockstep *l, int first) {
  return (int)scl_min((size_t)first + l->vectors, (size_t)l->count);
}

static void hand_out(const lockstep *l, int first) {
  const size_t d = l->dimension;
  for (int k = first; k < end_of(l, first); k++) {
    memcpy(l->chain[k]->answer, l->to + (size_t)(k - first) * (d + 1), (d + 1) * sizeof *l->to);
  }
}

static scl_ahead *ahead_of(const lockstep *l, int chain) {
  return l->ahead != NULL ? l->ahead[(size_t)chain / l->vectors] : NULL;
}

static size_t count_from(const lockstep *l, int first) {
  return (size_t)(end_of(l, first) - first);
}

/* The points that chains from `first` on ask for, or more of their trajectories. */
static scl_status evaluate(const lockstep *l, int first) {
  scl_ahead *a = ahead_of(l, first);
  SCL_TRY(scl_ahead_fill(a, l->chain + first, count_from(l, first)));
  if (scl_ahead_filled(a)) return SCL_OK;
  gather(l, first, l->x);
  SCL_TRY(l->target->run(l->target->self, l->x, l->vectors, l->to));
  hand_out(l, first);
  return SCL_OK;
}

enum { SHARE_MULTIPLE = 8 }; /* vectors that a device takes together */

/* A chain's own work between two evaluations takes about a microsecond, waking a thread several. */
enum { CHAINS_OF_THREAD = 12, MOST_LOCKSTEP_THREADS = 8 };

static int lockstep_threads(int count) {
  const size_t most = scl_min((size_t)scl_usual_threads(), MOST_LOCKSTEP_THREADS);
  return (int)scl_min((size_t)count / CHAINS_OF_THREAD, most);
}

typedef struct {
  const lockstep *l;
  int first, end;
  atomic_int status;
} taking;

/* The answer of a run; or all points of a walk that the chain asks for. */
static scl_status take_answers(const lockstep *l, int k) {
  const size_t lane = (size_t)k % l->vectors;
  scl_chain *c = l->chain[k];
  scl_ahead *a = ahead_of(l, k);
  if (!scl_ahead_filled(a)) return scl_chain_take(c);
  while (scl_ahead_take(a, lane, c)) {
    SCL_TRY(scl_chain_take(c));
    if (c->stop != SCL_CHAIN_RUNS || c->done >= l->goal[k]) break;
  }
  return SCL_OK;
}

static void take_some(void *arg, int part, int parts) {
  taking *t = arg;
  for (int k = t->first + part; k < t->end; k += parts) {
    const scl_status status = take_answers(t->l, k);
    t->l->stop[k] = t->l->chain[k]->stop;
    if (status != SCL_OK) atomic_store(&t->status, (int)status);
  }
}

static scl_status take_all(const lockstep *l, int first, int end) {
  taking t = {.l = l, .first = first, .end = end};
  scl_team_run(l->team, take_some, &t);
  return status_of(&t.status);
}

/* Whether a chain has stopped or reached its goal. */
static bool pauses(const lockstep *l, int first, int end) {
  bool pause = false;
  for (int k = first; k < end; k++)
    pause = pause || l->stop[k] != SCL_CHAIN_RUNS || l->chain[k]->done >= l->goal[k];
  return pause;
}

/* One evaluation for each chain, or several points of its trajectory. */
static scl_status advance(const lockstep *l, bool *pause) {
  scl_status status = SCL_OK;
  for (int first = 0; first < l->count && status == SCL_OK; first += (int)l->vectors) {
    status = evaluate(l, first);
  }
  if (status == SCL_E_INTERRUPT) return status;
  for (int k = 0; k < l->count; k++) l->stop[k] = SCL_CHAIN_ASKS;
  if (status == SCL_OK) SCL_TRY(take_all(l, 0, l->count));
  *pause = pauses(l, 0, l->count);
  return SCL_OK;
}

/* ---- in shares ------------------------------------------------------------------------------ */

/* Shares of `vectors` chains in turn: while a device evaluates one of them, the chains of another
 * take their answers. Request i is for share i % shares, in slot i % 2. */
static int count_shares(const lockstep *l) {
  return (int)scl_ceil_div((size_t)l->count, l->vectors);
}

static int first_of(const lockstep *l, int request) {
  return request % count_shares(l) * (int)l->vectors;
}

static double *points_of(const lockstep *l, int request) {
  return l->x + (size_t)(request % 2) * l->vectors * l->dimension;
}

/* The caller judges points that cannot be evaluated. */
static scl_status judge_share(const lockstep *l, int first, scl_status status) {
  for (int k = first; k < end_of(l, first); k++) {
    if (status != SCL_OK) l->stop[k] = SCL_CHAIN_ASKS;
  }
  return status == SCL_E_INTERRUPT ? status : SCL_OK;
}

static scl_status begin_points(const lockstep *l, int request) {
  gather(l, first_of(l, request), points_of(l, request));
  return l->target->begin(l->target->self, request % 2, points_of(l, request), l->vectors);
}

static scl_status end_points(const lockstep *l, int request) {
  SCL_TRY(l->target->end(l->target->self, request % 2, points_of(l, request), l->vectors, l->to));
  hand_out(l, first_of(l, request));
  return SCL_OK;
}

static scl_status begin_share(const lockstep *l, int request, bool *flies) {
  const int first = first_of(l, request);
  scl_ahead *a = ahead_of(l, first);
  scl_status status = scl_ahead_ask(a, request % 2, l->chain + first, count_from(l, first));
  if (status == SCL_OK && !scl_ahead_asked(a)) status = begin_points(l, request);
  *flies = status == SCL_OK;
  return judge_share(l, first, status);
}

static scl_status receive(const lockstep *l, int request) {
  const int first = first_of(l, request);
  scl_ahead *a = ahead_of(l, first);
  if (!scl_ahead_asked(a)) return end_points(l, request);
  SCL_TRY(scl_ahead_receive(a, request % 2, l->chain + first, count_from(l, first)));
  if (scl_ahead_filled(a)) return SCL_OK;
  SCL_TRY(begin_points(l, request));
  return end_points(l, request);
}

static scl_status end_share(const lockstep *l, int request) {
  const int first = first_of(l, request), end = end_of(l, first);
  const scl_status status = receive(l, request);
  return status == SCL_OK ? take_all(l, first, end) : judge_share(l, first, status);
}

/* The clock does not decide how often each share is evaluated: it is looked at when the request in
 * progress is the last share's. If a chain of that one pauses, the first share still gets the
 * request that would have begun before. */
static scl_status run_shares(const lockstep *l, double until) {
  bool flies = false, late = false, pause = false;
  for (int k = 0; k < l->count; k++) l->stop[k] = SCL_CHAIN_RUNS;
  scl_status status = begin_share(l, 0, &flies);
  for (int i = 0; flies; i++) {
    const int first = first_of(l, i);
    const bool goes_on = !pause && status == SCL_OK;
    flies = false;
    if (goes_on && !late) status = begin_share(l, i + 1, &flies);
    const scl_status ended = end_share(l, i);
    if (status == SCL_OK) status = ended;
    pause = pause || pauses(l, first, end_of(l, first));
    if (goes_on && late && pause && status == SCL_OK) status = begin_share(l, i + 1, &flies);
    late = late || ((i + 2) % count_shares(l) == 0 && seconds_now() > until);
  }
  return status;
}

/* The chains of a share, or all of them. */
static size_t share_of(const scl_target *target, int count, size_t vectors) {
  const size_t all = (size_t)count, half = scl_round_up(scl_ceil_div(all, 2), SHARE_MULTIPLE);
  if (target->begin == NULL || all < target->overlaps_from) return all;
  return scl_min(vectors, half);
}

/* Without memory no points are evaluated in advance. */
static scl_ahead **begin_ahead(const lockstep *l) {
  const size_t batches = scl_ceil_div((size_t)l->count, l->vectors);
  scl_ahead **ahead = calloc(batches, sizeof *ahead);
  for (size_t k = 0; k < batches && ahead != NULL; k++) {
    scl_ahead_begin(l->chain[k * l->vectors], l->vectors, l->target, &ahead[k]);
  }
  return ahead;
}

static void end_ahead(const lockstep *l) {
  const size_t batches = scl_ceil_div((size_t)l->count, l->vectors);
  for (size_t k = 0; k < batches && l->ahead != NULL; k++) scl_ahead_end(l->ahead[k]);
  free(l->ahead);
}

static scl_status run_lockstep(const lockstep *l, double seconds) {
  const double until = seconds_now() + seconds;
  scl_status status = SCL_OK;
  bool pause = false;
  for (int k = 0; k < l->count; k++) scl_chain_clock(l->chain[k], true);
  if (l->shares) status = run_shares(l, until);
  for (int i = 1; status == SCL_OK && !pause && !l->shares; i++) {
    status = advance(l, &pause);
    if (i % SCL_LOOK_AT_CLOCK == 0 && seconds_now() > until) break;
  }
  for (int k = 0; k < l->count; k++) scl_chain_clock(l->chain[k], false);
  return status;
}

static scl_status run_together(scl_chain *const *chain, int count, const scl_target *target,
                               size_t vectors, const int *goal, double seconds,
                               scl_chain_stop *stop) {
  const size_t d = target->dimension, share = share_of(target, count, vectors);
  const bool shares = share < (size_t)count && target->begin != NULL;
  if (shares) vectors = share;
  const size_t numbers = vectors * (3 * d + 1);
  double *room = malloc(numbers * sizeof *room);
  if (room == NULL) return scl_fail_memory(numbers * sizeof *room, 0, "chains");
  lockstep l = {.chain = chain,
                .count = count,
                .target = target,
                .dimension = d,
                .vectors = vectors,
                .x = room,
                .to = room + 2 * vectors * d,
                .team = shares ? NULL : scl_team_start(lockstep_threads(count)),
                .goal = goal,
                .stop = stop,
                .shares = shares};
  l.ahead = begin_ahead(&l);
  const scl_status status = run_lockstep(&l, seconds);
  end_ahead(&l);
  scl_team_stop(l.team);
  free(room);
  return status;
}

/* ---- chains that end at different times ------------------------------------------------------ */

/* The chains that go on, and where they are in the caller's order. */
typedef struct {
  scl_chain **chain;
  int *goal, *at, count;
  scl_chain_stop *stop;
} crowd;

/* Chains that have ended, or wait for the others, leave. False: the caller is to look at one. */
static bool leave(crowd *c) {
  int left = 0;
  for (int k = 0; k < c->count; k++) {
    const scl_chain_stop stop = c->stop[k];
    if (stop == SCL_CHAIN_ENDED || stop == SCL_CHAIN_WAITS) continue;
    if (stop != SCL_CHAIN_RUNS || c->chain[k]->done >= c->goal[k]) return false;
    c->chain[left] = c->chain[k];
    c->goal[left] = c->goal[k];
    c->at[left++] = c->at[k];
  }
  c->count = left;
  return left > 0;
}

/* A target that takes any number of vectors goes on with the other chains when one has ended. */
static scl_status run_crowd(crowd *c, const scl_target *target, size_t vectors, double seconds,
                            scl_chain_stop *stop) {
  const double until = seconds_now() + seconds;
  do {
    if (target->any_vectors) vectors = scl_min(vectors, (size_t)c->count);
    SCL_TRY(
        run_together(c->chain, c->count, target, vectors, c->goal, until - seconds_now(), c->stop));
    for (int k = 0; k < c->count; k++) stop[c->at[k]] = c->stop[k];
  } while (target->any_vectors && leave(c) && seconds_now() < until);
  return SCL_OK;
}

scl_status scl_chains_run(scl_chain *const *chain, int count, const scl_target *target,
                          scl_program *program, size_t vectors, const int *goal, double seconds,
                          scl_chain_stop *stop) {
  if (vectors <= 1) {
    bool done = false;
    if (program != NULL) SCL_TRY(run_on_threads(chain, count, program, goal, seconds, stop, &done));
    return done ? SCL_OK : run_in_turn(chain, count, target, goal, seconds, stop);
  }
  const size_t n = (size_t)count, bytes = n * (sizeof *chain + 2 * sizeof *goal + sizeof *stop);
  crowd c = {.chain = malloc(bytes), .count = count};
  if (c.chain == NULL) return scl_fail_memory(bytes, 0, "chains");
  c.goal = (int *)(c.chain + n);
  c.at = c.goal + n;
  c.stop = (scl_chain_stop *)(c.at + n);
  memcpy(c.chain, chain, n * sizeof *chain);
  memcpy(c.goal, goal, n * sizeof *goal);
  for (int k = 0; k < count; k++) c.at[k] = k;
  const scl_status status = run_crowd(&c, target, vectors, seconds, stop);
  free(c.chain);
  return status;
}

/* ---- on several devices --------------------------------------------------------------------- */

typedef struct {
  const scl_chain_group *group;
  int groups;
  double seconds;
  atomic_int next; /* group that no thread has taken */
  atomic_int status;
} places;

static scl_status run_group(const scl_chain_group *g, double seconds) {
  return scl_chains_run(g->chain, g->count, g->target, g->program, g->vectors, g->goal, seconds,
                        g->stop);
}

/* A group's own work uses as many threads as it would alone, as the order of sums depends on it. */
static void run_groups(void *arg, int part, int parts) {
  places *p = arg;
  (void)part;
  (void)parts;
  scl_thread_share(scl_usual_threads());
  for (int k = atomic_fetch_add(&p->next, 1); k < p->groups; k = atomic_fetch_add(&p->next, 1)) {
    const scl_status status = run_group(&p->group[k], p->seconds);
    if (status != SCL_OK) atomic_store(&p->status, (int)status);
  }
  scl_thread_share(0);
}

scl_status scl_chain_groups_run(const scl_chain_group *group, int groups, double seconds) {
  if (groups == 1) return run_group(group, seconds);
  places p = {.group = group, .groups = groups, .seconds = seconds};
  for (int g = 0; g < groups; g++) {
    for (int k = 0; k < group[g].count; k++) group[g].stop[k] = SCL_CHAIN_RUNS;
  }
  scl_team *team = scl_team_start(groups);
  scl_team_run(team, run_groups, &p);
  scl_team_stop(team);
  SCL_TRY(status_of(&p.status));
  return scl_poll();
}
