/* Kernels built in the background: who asks gets a status of its own and no result, who waits gets
 * the build in progress; builds that fail, several at once, contexts and processes that end
 * meanwhile.
 */
#ifndef _WIN32
#define _POSIX_C_SOURCE 200809L
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "base/device.h"
#include "base/threads.h"
#include "base/user_kernel.h"
#include "driver.h"
#include "matrices.h"
#include "record.h"

/* A kernel of its own for each number. */
static scl_status make(scl_context *ctx, int number, scl_kernel **out) {
  char source[400];
  snprintf(source, sizeof source,
           number < 0 ? "no kernel %d("
                      : "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
                        "__kernel void beside(__global double *y) {\n"
                        "  y[get_global_id(0)] = %d;\n}\n",
           number);
  return scl_kernel_create(ctx, source, "beside", out);
}

static scl_status ask(scl_context *ctx, int number) {
  scl_kernel *kernel = NULL;
  const bool before = scl_device_beside_begin(true);
  const scl_status status = make(ctx, number, &kernel);
  scl_device_beside_end(before);
  scl_kernel_release(kernel);
  return status;
}

static void wait_for_threads(void) {
  while (scl_device_beside_count() > 0) scl_sleep_us(1000);
}

static int count_builds(void) {
  scl_device_build build;
  int count = 0;
  while (scl_device_build_at((size_t)count, &build)) count++;
  return count;
}

static void check_requests(scl_context *ctx) {
  scl_kernel *kernel = NULL;
  const int builds = count_builds();
  CHECK_STATUS(SCL_E_BUILDING, ask(ctx, 1));
  CHECK(scl_device_beside_count() <= 1);
  CHECK(scl_device_beside_cores() <= 1 || scl_device_beside_cores() <= scl_cores() / 8);
  wait_for_threads();
  CHECK(scl_device_beside_cores() == 0);
  CHECK_OK(ask(ctx, 1)); /* it is taken */
  CHECK(count_builds() == builds + 1);
  CHECK_STATUS(SCL_E_BUILDING, ask(ctx, 2));
  CHECK_OK(make(ctx, 2, &kernel)); /* waits for the build in progress */
  scl_kernel_release(kernel);
  CHECK(count_builds() == builds + 2);
  wait_for_threads();
  /* several in one call; the same once */
  const bool before = scl_device_beside_begin(true);
  for (int k = 0; k < 6; k++) CHECK_STATUS(SCL_E_BUILDING, make(ctx, 3 + k % 3, &kernel));
  CHECK(scl_device_beside_begin(true)); /* an inner one */
  scl_device_beside_end(true);
  CHECK(scl_device_beside_count() == 0); /* begins at the outermost end */
  CHECK(scl_device_beside_end(before));
  CHECK_STATUS(SCL_E_BUILDING, ask(ctx, 5));
  wait_for_threads();
  CHECK(count_builds() == builds + 5);
  for (int k = 3; k < 6; k++) CHECK_OK(ask(ctx, k));
}

static void give_way(void *nice, int part, int parts) {
  (void)parts;
  if (part == 0) return;
  const bool rival = scl_thread_give_way(part == 1), idle = part == 1 && driver_own_nice() == 20;
  const bool expected = !idle || scl_cores() >= SCL_RIVAL_CORES;
  ((int *)nice)[part] = rival == expected ? driver_own_nice() : -100;
}

/* Threads that nobody waits for give way. */
static void check_priority(scl_context *ctx) {
  const int own = driver_own_nice();
  int nice[3] = {0, 0, 0};
  scl_kernel *kernel = NULL;
  scl_team *team = scl_team_launch(3, give_way, nice);
  CHECK(team != NULL);
  while (!scl_team_is_done(team)) scl_sleep_us(1000);
  scl_team_stop(team);
  for (int busy = 0; busy < 2; busy++) {
    scl_cores_pretend_busy(busy);
    CHECK_STATUS(SCL_E_BUILDING, ask(ctx, 30 + busy));
    wait_for_threads();
    CHECK_OK(ask(ctx, 30 + busy)); /* it is taken */
#ifdef __linux__
    CHECK(nice[1] == 20 || nice[1] == nice[2]); /* not allowed here */
    CHECK(nice[2] == (own < 10 ? 10 : own));
    CHECK(driver_build_nice() == nice[1 + busy]);
#endif
  }
  scl_cores_pretend_busy(-1);
  CHECK_OK(make(ctx, 29, &kernel));
  CHECK(driver_build_nice() == own && driver_own_nice() == own);
  scl_kernel_release(kernel);
}

/* Threads that get little have others join them, to which BLAS leaves cores. */
static void check_patience(scl_context *ctx) {
  enum { KERNELS = 12 };
  scl_kernel *kernel = NULL;
  int left = 0;
  const int own = driver_own_nice(), steady = own < 10 ? 10 : own;
  bool joined = false;
  driver_build_slowly(20000);
  scl_device_beside_patience(1000, true);
  const bool before = scl_device_beside_begin(true);
  for (int k = 0; k < KERNELS; k++) CHECK_STATUS(SCL_E_BUILDING, make(ctx, 60 + k, &kernel));
  CHECK(scl_device_beside_end(before));
  for (; scl_device_beside_count() > 0; scl_sleep_us(1000)) {
    const int cores = scl_device_beside_cores();
    if (cores > left) left = cores;
    joined = joined || driver_build_nice() == steady;
  }
#ifdef __linux__
  CHECK(joined);
#else
  (void)joined;
#endif
  CHECK(left > 0 && (left == 1 || left <= scl_cores() / 8) && scl_device_beside_cores() == 0);
  driver_build_slowly(0);
  scl_device_beside_patience(1500000, false);
  for (int k = 0; k < KERNELS; k++) CHECK_OK(ask(ctx, 60 + k));
}

typedef struct {
  size_t index;
  atomic_bool rival;
  scl_status status;
  int nice;
  scl_context *ctx;
} opened;

static void open_one(void *arg, int part, int parts) {
  opened *o = arg;
  (void)part, (void)parts;
  o->status = scl_device_open_beside(o->index, &o->rival, &o->ctx);
  o->nice = driver_own_nice();
}

/* The driver's threads are not slow for good: a thread that opens a device gives way after that. */
static void check_opening(size_t index) {
  const int own = driver_own_nice();
  for (int busy = 0; busy < 2; busy++) {
    scl_cores_pretend_busy(busy);
    opened o = {.index = index, .rival = true};
    scl_team *team = scl_team_launch(2, open_one, &o);
    CHECK(team != NULL);
    if (team == NULL) break;
    while (!scl_team_is_done(team)) scl_sleep_us(1000);
    scl_team_stop(team);
    CHECK_OK(o.status);
    CHECK(o.rival == (busy == 1 || o.nice != 20 || scl_cores() >= SCL_RIVAL_CORES));
    CHECK(driver_context_nice() == own);
    scl_kernel *kernel = NULL;
    CHECK_OK(make(o.ctx, 28, &kernel));
    scl_kernel_release(kernel);
    scl_context_release(o.ctx);
#ifdef __linux__
    const int low = own < 10 ? 10 : own; /* where idle is not allowed */
    CHECK(busy == 1 ? o.nice == own : o.nice == 20 || o.nice == low);
#endif
  }
  scl_cores_pretend_busy(-1);
}

static void check_failures(scl_context *ctx) {
  scl_kernel *kernel = NULL;
  CHECK_STATUS(SCL_E_BUILDING, ask(ctx, -1));
  wait_for_threads();
  CHECK_STATUS(SCL_E_BUILD, ask(ctx, -1));
  CHECK(scl_fault_last()->log[0] != '\0');
  CHECK_STATUS(SCL_E_BUILDING, ask(ctx, -2));
  CHECK_STATUS(SCL_E_BUILD, make(ctx, -2, &kernel));
  /* the user wants to stop while the call waits */
  CHECK_STATUS(SCL_E_BUILDING, ask(ctx, 10));
  scl_poll_stop_after(0);
  const scl_status status = make(ctx, 10, &kernel);
  scl_poll_stop_after(-1);
  CHECK(status == SCL_OK || status == SCL_E_INTERRUPT); /* it may be done already */
  scl_kernel_release(kernel);
  wait_for_threads();
}

/* An operation gives no result before its kernels stand, and the right one afterwards. */
static void check_operation(scl_context *ctx) {
  enum { N = 70 };
  double *a = test_alloc(N * N * sizeof *a);
  scl_mat *x = NULL, *l = NULL;
  int tries = 0;
  scl_status status;
  mat_spd(a, N, 10, 1);
  x = mat_make(ctx, a, N, N, SCL_GENERAL);
  do {
    const bool before = scl_device_beside_begin(true);
    status = compute_chol(x, 0.0, false, &l);
    scl_device_beside_end(before);
    CHECK(status == SCL_OK || (status == SCL_E_BUILDING && l == NULL));
    wait_for_threads();
  } while (status == SCL_E_BUILDING && ++tries < 20);
  CHECK_OK(status);
  CHECK(tries > 0);
  scl_mat *again = NULL;
  CHECK_OK(compute_chol(x, 0.0, false, &again));
  double *got = mat_stored(l), *want = mat_stored(again);
  for (int k = 0; k < N * N; k++) CHECK(got[k] == want[k]);
  FREE(got, want, a);
  RELEASE(x, l, again);
}

/* A call whose matrices are its own asks for all of its kernels at once: nothing is computed, and
 * the host gets zeros or a unit matrix, or what it does not read is left as it is. */
static void check_whole(size_t index) {
  enum { N = 70 };
  double *a = test_alloc(N * N * sizeof *a), *out = test_alloc(N * N * sizeof *out);
  scl_context *ctx;
  scl_mat *x = NULL, *l = NULL;
  mat_spd(a, N, 10, 1);
  REQUIRE_OK(scl_device_open(index, &ctx));
  for (int attempt = 0; attempt < 2; attempt++) {
    const bool before = scl_device_beside_begin(true);
    scl_device_beside_whole(true);
    CHECK(scl_device_beside_lacks() && !scl_device_beside_asked());
    x = mat_make(ctx, a, N, N, SCL_GENERAL);
    CHECK_OK(compute_chol(x, 0.0, false, &l));
    CHECK(scl_device_beside_asked() == (attempt == 0));
    out[0] = out[1] = out[N * N - 1] = 7.0;
    CHECK_OK(scl_mat_to_host(l, out));
    CHECK(a[0] != 0.0 && out[0] == 1.0 && out[1] == 0.0 && out[N * N - 1] == 1.0);
    CHECK(scl_device_beside_begin(true) && scl_device_beside_lacks());
    scl_device_beside_end(true);
    scl_device_beside_end(before);
    CHECK(!scl_device_beside_lacks());
    RELEASE(x, l);
    x = l = NULL;
    wait_for_threads();
  }
  bool before = scl_device_beside_begin(true);
  scl_device_beside_whole(false);
  x = mat_make(ctx, a, N, N, SCL_GENERAL);
  out[0] = 7.0;
  CHECK_OK(scl_mat_to_host(x, out));
  CHECK(out[0] == 7.0);
  CHECK(!scl_device_beside_end(before));
  scl_mat_release(x);
  before = scl_device_beside_begin(true);
  x = mat_make(ctx, a, N, N, SCL_GENERAL);
  CHECK_OK(compute_chol(x, 0.0, false, &l));
  CHECK_OK(scl_mat_to_host(l, out));
  scl_device_beside_end(before);
  CHECK(fabs(out[0] - sqrt(a[0])) < 1e-12);
  FREE(a, out);
  RELEASE(x, l);
  scl_context_release(ctx);
}

/* A context and a process that end while threads build; a forked child, which has no threads. */
static void check_ends(size_t index) {
  scl_context *ctx;
  REQUIRE_OK(scl_device_open(index, &ctx));
  CHECK_STATUS(SCL_E_BUILDING, ask(ctx, 20));
#ifndef _WIN32
  const pid_t child = fork();
  if (child == 0) _exit(scl_device_beside_count() == 0 ? 0 : 1);
  int state = 1;
  CHECK(waitpid(child, &state, 0) == child && state == 0);
#endif
  scl_context_release(ctx);
  CHECK(scl_device_beside_count() == 0);
  REQUIRE_OK(scl_device_open(index, &ctx));
  CHECK_STATUS(SCL_E_BUILDING, ask(ctx, 21));
  scl_device_beside_stop();
  CHECK(scl_device_beside_count() == 0);
  wait_for_threads();
  CHECK_STATUS(SCL_E_BUILDING, ask(ctx, 22)); /* goes on */
  wait_for_threads();
  /* asked for, and not begun */
  const bool before = scl_device_beside_begin(true);
  scl_kernel *kernel = NULL;
  CHECK_STATUS(SCL_E_BUILDING, make(ctx, 23, &kernel));
  scl_context_release(ctx);
  scl_device_beside_end(before);
  wait_for_threads();
}

void test_beside(scl_context *host_or_device) {
  const scl_device_info *list;
  size_t count, index = 0;
  scl_context *ctx;
  if (scl_context_is_host(host_or_device)) return;
  REQUIRE_OK(scl_device_list(&list, &count));
  while (index < count && &list[index] != scl_device_of(host_or_device) &&
         strcmp(list[index].id, scl_device_of(host_or_device)->id) != 0)
    index++;
  driver_install();
  const driver_counts before = driver_counted();
  REQUIRE_OK(scl_device_open(index, &ctx));
  check_requests(ctx);
  check_priority(ctx);
  check_patience(ctx);
  check_opening(index);
  check_failures(ctx);
  check_operation(ctx);
  scl_context_release(ctx);
  check_whole(index);
  check_ends(index);
  CHECK(driver_is_clean(before));
  driver_remove();
}
