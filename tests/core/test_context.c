#define _GNU_SOURCE /* sched_setaffinity() */
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "test.h"

#ifdef __linux__
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

static int collections, thorough; /* of young garbage, of all */
static bool finds_young;
static scl_buffer *dropped_by_collection;
static bool stop;

static bool collect(bool all) {
  if (all) {
    thorough++;
  } else {
    collections++;
    if (!finds_young) return stop;
  }
  scl_buffer_release(dropped_by_collection);
  dropped_by_collection = NULL;
  return stop;
}

static bool interrupted(void) {
  return stop;
}

static const scl_storage result;

static void check_hooks(void) {
  scl_hooks_set(&(scl_hooks){.collect_garbage = collect, .interrupted = interrupted});
  CHECK_OK(scl_poll());
  stop = true;
  CHECK_STATUS(SCL_E_INTERRUPT, scl_poll());
  CHECK_STATUS(SCL_E_INTERRUPT, scl_collect_garbage(false));
  stop = false;
  CHECK_OK(scl_collect_garbage(true));
  scl_hooks_set(&(scl_hooks){.collect_garbage = collect});
  CHECK_OK(scl_poll());
}

static void check_counters(scl_context *ctx) {
  scl_memory start = scl_context_memory(ctx);
  scl_buffer *a = NULL, *b = NULL, *none = NULL;
  CHECK_OK(scl_buffer_create(ctx, 0, result, &none));
  CHECK(none == NULL);
  REQUIRE_OK(scl_buffer_create(ctx, 1000, result, &a));
  REQUIRE_OK(scl_buffer_create(ctx, 24, result, &b));
  CHECK(scl_context_memory(ctx).live == start.live + 1024);
  CHECK(scl_context_memory(ctx).buffers == start.buffers + 2);
  scl_buffer_retain(a);
  scl_buffer_release(a);
  CHECK(scl_context_memory(ctx).live == start.live + 1024);
  scl_buffer_release(a);
  CHECK(scl_context_memory(ctx).live == start.live + 24);
  scl_buffer_release(b);
  CHECK(scl_context_memory(ctx).live == start.live);
  CHECK(scl_context_memory(ctx).peak >= start.live + 1024);
}

/* If memory runs short, a collection frees some; else the error has both figures. */
static void check_limit(scl_context *ctx) {
  uint64_t limit = ctx->memory.limit;
  ctx->memory.limit = ctx->memory.live + 3000;
  scl_buffer *a = NULL, *b = NULL;
  REQUIRE_OK(scl_buffer_create(ctx, 2000, result, &dropped_by_collection));
  thorough = 0;
  CHECK_OK(scl_buffer_create(ctx, 2000, result, &a));
  CHECK(thorough == 1);
  CHECK_STATUS(SCL_E_MEMORY, scl_buffer_create(ctx, 2000, result, &b));
  CHECK(b == NULL);
  CHECK(scl_fault_last()->bytes == 2000);
  CHECK(scl_fault_last()->limit == ctx->memory.limit);
  CHECK(thorough == 2);
  scl_buffer_release(a);
  CHECK_OK(scl_buffer_create(ctx, 2000, result, &b));
  scl_buffer_release(b);
  ctx->memory.limit = limit;

  uint64_t largest = ctx->memory.largest;
  ctx->memory.largest = 100;
  CHECK_STATUS(SCL_E_MEMORY, scl_buffer_create(ctx, 101, result, &a));
  CHECK(scl_fault_last()->limit == 100);
  ctx->memory.largest = largest;
}

static void check_injection(scl_context *ctx) {
  scl_buffer *kept[3] = {NULL, NULL, NULL};
  scl_buffer_fail_after(2);
  CHECK_OK(scl_buffer_create(ctx, 8, result, &kept[0]));
  CHECK_STATUS(SCL_E_MEMORY, scl_buffer_create(ctx, 8, result, &kept[1]));
  CHECK(kept[1] == NULL);
  CHECK_OK(scl_buffer_create(ctx, 8, result, &kept[1]));
  scl_buffer_fail_after(1);
  scl_buffer_fail_after(-1);
  CHECK_OK(scl_buffer_create(ctx, 8, result, &kept[2]));
  for (int i = 0; i < 3; i++) scl_buffer_release(kept[i]);
}

/* Buffers that nobody releases before the end, as garbage that a collection does not find. */
static scl_buffer *some[64];
static int some_made;

static void make_some(scl_context *ctx, int count, size_t bytes) {
  for (int i = 0; i < count; i++) {
    REQUIRE_OK(scl_buffer_create(ctx, bytes, result, &some[some_made++]));
  }
}

static void release_some(void) {
  while (some_made > 0) scl_buffer_release(some[--some_made]);
}

/* What is released at once is no garbage, and no reason to collect. */
static void check_released(scl_context *ctx) {
  collections = 0;
  for (int i = 0; i < 40; i++) {
    make_some(ctx, 1, 10 << 20);
    release_some();
  }
  CHECK(collections == 0);
}

/* Results of a device with memory to spare are collected by the share of time, until there is too
 * much garbage. */
static void check_spare(scl_context *ctx) {
  const uint64_t was = ctx->spare;
  scl_mat *originals[6];
  ctx->spare = 200 << 20;
  collections = 0;
  ctx->results_since_collect = 0;
  for (int i = 0; i < 11; i++) {
    ctx->collected_at = 0; /* long ago, however long it took: at the pace of other matrices */
    make_some(ctx, 1, 10 << 20);
  }
  CHECK(collections == 2);
  collections = 0;
  ctx->results_since_collect = 0;
  ctx->collected = UINT64_MAX / 100; /* years */
  make_some(ctx, 20, 10 << 20);
  CHECK(collections == 0);
  make_some(ctx, 1, 10 << 20);
  CHECK(collections == 1 && ctx->collected < UINT64_MAX / 100);
  release_some();
  collections = 0;
  ctx->results_since_collect = 0;
  ctx->collected = UINT64_MAX / 100;
  for (int i = 0; i < 6; i++) { /* no results */
    scl_mat *a = NULL;
    REQUIRE_OK(scl_mat_create_original(ctx, 1 << 17, 10, SCL_GENERAL, &a));
    originals[i] = a;
  }
  CHECK(collections == 1);
  for (int i = 0; i < 6; i++) scl_mat_release(originals[i]);
  ctx->spare = was;
  ctx->collected = 0;
}

/* Young garbage first; all of it only if much is left. */
static void check_young(scl_context *ctx) {
  const uint64_t was = ctx->spare;
  ctx->spare = 0;
  for (int young = 0; young < 2; young++) {
    finds_young = young == 1;
    collections = thorough = 0;
    ctx->results_since_collect = ctx->large_since_collect = ctx->small_since_collect = 0;
    ctx->live_then = ctx->memory.live;
    REQUIRE_OK(scl_buffer_create(ctx, 40 << 20, result, &dropped_by_collection));
    ctx->large_since_collect += (uint64_t)1 << 40;
    const uint64_t before = ctx->memory.live;
    make_some(ctx, 1, 17 << 20);
    CHECK(collections == 1 && thorough == (young == 0));
    CHECK(ctx->memory.live == before - (40 << 20) + (17 << 20));
    CHECK(dropped_by_collection == NULL);
    release_some();
  }
  /* Garbage that no young collection finds stays limited. */
  finds_young = false;
  scl_buffer *none = NULL;
  const uint64_t live = ctx->memory.live;
  ctx->large_since_collect += (uint64_t)1 << 40;
  thorough = 0;
  stop = true;
  CHECK_STATUS(SCL_E_INTERRUPT, scl_buffer_create(ctx, 17 << 20, result, &none));
  stop = false;
  CHECK(none == NULL && thorough == 0 && ctx->memory.live == live);
  thorough = 0;
  make_some(ctx, 12, 10 << 20);
  CHECK(thorough >= 1);
  release_some();
  ctx->spare = was;
}

/* The host language releases its matrices only when it collects: collections must be frequent
 * enough to keep garbage small. */
static void check_pace(scl_context *ctx) {
  const uint64_t was = ctx->spare;
  uint64_t most = 0;
  ctx->spare = 0; /* with memory to spare the clock decides, too: check_spare() */
  const scl_storage original = {.purpose = SCL_ORIGINAL};
  for (int i = 0; i < 40; i++) {
    scl_buffer *a = NULL;
    REQUIRE_OK(scl_buffer_create(ctx, 10000000, original, &a));
    if (scl_context_memory(ctx).live > most) most = scl_context_memory(ctx).live;
    /* Garbage: a list of one, which releases the one before. */
    scl_buffer_release(dropped_by_collection);
    dropped_by_collection = a;
  }
  CHECK(most <= 64000000);
  collections = 0;
  ctx->small_since_collect = ctx->large_since_collect = 0;
  make_some(ctx, 11, 10 << 20);
  CHECK(collections == 2);
  release_some();
  collect(true);
  ctx->spare = was;
  check_spare(ctx);
  check_released(ctx);
}

static void check_state(scl_context *ctx) {
  CHECK_OK(scl_context_check(ctx));
  CHECK_OK(scl_context_finish(ctx));
  CHECK(strlen(scl_context_name(ctx)) > 0);
  CHECK(scl_context_retain(ctx) == ctx);
  scl_context_release(ctx);
  scl_context_release(NULL);
  if (scl_context_is_host(ctx)) {
    CHECK(ctx->owner == 0);
    return;
  }
  scl_buffer *a = NULL;
  long owner = ctx->owner;
  CHECK(owner == scl_process_id());
  ctx->owner = owner + 1;
  CHECK_STATUS(SCL_E_FORK, scl_context_check(ctx));
  CHECK_STATUS(SCL_E_FORK, scl_context_finish(ctx));
  CHECK_STATUS(SCL_E_FORK, scl_buffer_create(ctx, 8, result, &a));
  ctx->owner = owner;
  ctx->lost = true;
  CHECK_STATUS(SCL_E_LOST, scl_context_check(ctx));
  CHECK(strcmp(scl_fault_last()->device, scl_context_name(ctx)) == 0);
  CHECK_STATUS(SCL_E_LOST, scl_buffer_create(ctx, 8, result, &a));
  ctx->lost = false;
}

struct counted {
  int part[64];
  int parts;
};

static void count_part(void *arg, int part, int parts) {
  struct counted *c = arg;
  c->part[part]++;
  if (part == 0) c->parts = parts;
}

static void check_threads(void) {
  for (int threads = 1; threads <= 5; threads += 2) {
    struct counted c = {{0}, 0};
    scl_team *team = scl_team_start(threads);
    for (int round = 0; round < 50; round++) scl_team_run(team, count_part, &c);
    scl_team_begin(team, count_part, &c); /* all parts but the caller's */
    scl_team_wait(team);
    for (int i = 1; i < c.parts; i++) c.part[i]--;
    scl_team_stop(team);
    CHECK(c.parts >= 1 && c.parts <= threads);
    bool all = true;
    for (int i = 0; i < c.parts; i++) all = all && c.part[i] == 50;
    CHECK(all && c.part[c.parts] == 0);
  }
  struct counted c = {{0}, 0};
  scl_team *team = scl_team_launch(4, count_part, &c);
  scl_team_wait(team);
  CHECK(c.part[0] == 0 && (team == NULL) == (c.part[1] == 0));
  for (int i = 1; i < 4; i++) CHECK(c.part[i] <= 1);
  scl_team_stop(team);
  CHECK(scl_team_launch(1, count_part, &c) == NULL);
  CHECK(scl_copy_threads() >= 1);
  uint64_t then = scl_clock_us();
  scl_sleep_us(2000);
  CHECK(scl_clock_us() >= then + 1000);
}

/* A process that is bound to one core counts one. */
static void check_cores(void) {
  CHECK(scl_cores() >= 1 && scl_cores() == scl_count_cores());
#ifdef __linux__
  cpu_set_t all, one;
  CPU_ZERO(&one);
  CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
  for (int k = 0; k < CPU_SETSIZE && CPU_COUNT(&one) == 0; k++) {
    if (CPU_ISSET(k, &all)) CPU_SET(k, &one);
  }
  const pid_t child = fork();
  if (child == 0) _exit(sched_setaffinity(0, sizeof one, &one) == 0 ? (int)scl_count_cores() : 0);
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
#endif
}

void test_context(scl_context *ctx) {
  check_hooks();
  check_state(ctx);
  check_counters(ctx);
  check_limit(ctx);
  check_injection(ctx);
  check_pace(ctx);
  check_young(ctx);
  check_threads();
  check_cores();
  scl_hooks_set(&(scl_hooks){0});
}
