/* Compilation: options, threads, and the time that drivers take.
 *
 * The driver's call blocks, for a second or more if the kernel is large. It is therefore made by
 * threads that end with it, while the caller checks whether the user wants to stop and whether it
 * is time to show a message. A build that has begun is completed, but no further one is started.
 * Several programs are built side by side, which saves a third of the time on an NVIDIA driver. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/threads.h"
#include "engine/cl/runtime/private.h"

/* ---- options --------------------------------------------------------------------------------- */
/* Nothing here may loosen the arithmetic: no fast-math, no unsafe optimisation. Warnings are off,
   as some drivers write their number to standard error. */
#define OPTIONS "-cl-std=CL1.2 -cl-kernel-arg-info -w"

void scl_cl_build_options(const scl_cl_context *cl, char options[SCL_CL_OPTIONS]) {
  const bool pocl =
      cl->info.type == SCL_DEVICE_CPU && strstr(cl->info.platform, "Portable") != NULL;
  /* Kernels for GPUs on a CPU device (STATCL_GPU_KERNELS=1): with optimisation POCL 3.1 moves
   * stores out of their guards, which writes past the end of matrices. */
  const char *device = cl->cpu ? " -D SCL_CPU=1" : pocl ? " -cl-opt-disable" : "";
  const char *small = cl->small_mma ? " -D SCL_MMA_8=1" : "";
  const char *mma = cl->emulated_mma ? " -D SCL_MMA_EMULATED=1" : "";
  const char *hints = scl_cl_kept_bytes(cl) > 0 ? " -D SCL_CACHE_HINTS=1" : "";
  snprintf(options, SCL_CL_OPTIONS, OPTIONS "%s%s%s%s", device, small, mma, hints);
}

/* ---- time ------------------------------------------------------------------------------------ */
/* A period of compiling ends when drivers have had nothing to compile for a while. */
enum { STRETCH_ENDS_US = 2000000 };

static struct {
  uint64_t spent, ended;
  uint64_t since; /* of a build in progress; 0: none */
  char name[sizeof((scl_context *)0)->label];
} stretch;

static void begin_build(const scl_cl_context *cl, uint64_t start) {
  if (start > stretch.ended + STRETCH_ENDS_US) stretch.spent = 0;
  stretch.since = start;
  snprintf(stretch.name, sizeof stretch.name, "%s", cl->base.label);
}

/* A check for interrupts may also have built something in the meantime, and ended the period. */
static void end_build(uint64_t start) {
  stretch.ended = scl_clock_us();
  stretch.spent += stretch.ended - start;
  stretch.since = 0;
}

/* Also of what build_all() writes: the period, the list below, files. */
static scl_turn turn = ATOMIC_FLAG_INIT;

void scl_cl_count_build(const scl_cl_context *cl, uint64_t start) {
  scl_turn_take(&turn);
  begin_build(cl, start);
  end_build(start);
  scl_turn_end(&turn);
}

double scl_device_build_seconds(void) {
  uint64_t now = stretch.since > 0 ? scl_clock_us() - stretch.since : 0;
  return (double)(stretch.spent + now) * 1e-6;
}

const char *scl_device_build_name(void) {
  return stretch.name;
}

/* The first builds of this process. */
enum { LOGGED = 256 };
static scl_device_build logged[LOGGED];
static size_t builds;
static uint64_t first_started;

static void log_build(const scl_cl_build *build) {
  if (!build->done || builds == LOGGED) return;
  if (builds == 0) first_started = build->started;
  scl_device_build *to = &logged[builds++];
  snprintf(to->program, sizeof to->program, "%s", build->name);
  to->started = ((double)build->started - (double)first_started) * 1e-6;
  to->seconds = build->seconds;
}

bool scl_device_build_at(size_t k, scl_device_build *out) {
  if (k >= builds) return false;
  *out = logged[k];
  return true;
}

/* ---- room for POCL's files ------------------------------------------------------------------- */
/* POCL compiles by files, and LLVM ends the process if it cannot write one. */
enum { LEAST_ROOM = 16 << 20, ROOM_EVERY_US = 10000 };

scl_status scl_cl_require_room(const scl_cl_context *cl) {
  static _Thread_local uint64_t looked;
  if (strstr(cl->info.platform, "Portable") == NULL) return SCL_OK;
  const uint64_t now = scl_clock_us();
  if (looked != 0 && now - looked < ROOM_EVERY_US) return SCL_OK;
  const char *folder = scl_env("POCL_CACHE_DIR");
  const uint64_t room = folder != NULL ? scl_path_room(folder) : UINT64_MAX;
  if (room < LEAST_ROOM) {
    return scl_fail(SCL_E_BUILD,
                    "POCL needs room for %d MB in the folder of its kernels, which has %.1f MB: "
                    "make room, or set TMPDIR or POCL_CACHE_DIR before R starts (%s)",
                    LEAST_ROOM >> 20, (double)room / (1 << 20), folder);
  }
  looked = now;
  return SCL_OK;
}

/* ---- building -------------------------------------------------------------------------------- */
/* So few compilers run side by side that cores are left for the host engine, which computes
 * meanwhile. The looks cost nothing next to a build of some 100 ms. */
enum { BUILD_THREADS = 4, LOOK_EVERY_US = 20000, REST_US = 200 };

/* Whether a program from a file can be used; it then replaces the one to build. */
static bool take_kept(const scl_cl_build_list *list, scl_cl_build *build) {
  if (build->kept == NULL) return false;
  const bool right = scl_cl.clBuildProgram(build->kept, 1, &list->cl->device, list->options, NULL,
                                           NULL) == CL_SUCCESS;
  scl_cl.clReleaseProgram(right ? build->program : build->kept);
  if (right) build->program = build->kept;
  build->kept = NULL;
  if (right) build->keep = false;
  return right;
}

void scl_cl_build_list_begin(scl_cl_build_list *list, const scl_cl_context *cl, scl_cl_build *build,
                             int count) {
  *list = (scl_cl_build_list){.cl = cl, .build = build, .count = count};
  scl_cl_build_options(cl, list->options);
}

void scl_cl_build_some(void *arg, int part, int parts) {
  scl_cl_build_list *list = arg;
  (void)part;
  (void)parts;
  for (;;) {
    const int i = atomic_fetch_add(&list->next, 1);
    if (i >= list->count) return;
    scl_cl_build *build = &list->build[i];
    if (build->done) continue;
    build->started = scl_clock_us();
    if (!take_kept(list, build)) {
      build->code =
          scl_cl.clBuildProgram(build->program, 1, &list->cl->device, list->options, NULL, NULL);
      if (build->code == CL_SUCCESS && build->marked)
        build->code = scl_cl_assemble(list->cl, list->options, &build->program);
    }
    build->seconds = (double)(scl_clock_us() - build->started) * 1e-6;
    build->done = true;
  }
}

/* Half of the cores at most. Drivers of CPU devices get one thread: they compile with threads of
 * their own, later. */
int scl_cl_build_threads(const scl_cl_context *cl, int count) {
  const bool one = cl->info.type == SCL_DEVICE_CPU || scl_cores_limited();
  const long half = (scl_cores() + 1) / 2;
  const int most = one ? 1 : half < BUILD_THREADS ? (int)half : BUILD_THREADS;
  return count < most ? count : most;
}

static scl_status build_all(scl_cl_context *cl, scl_cl_build *build, int count) {
  scl_cl_build_list list;
  uint64_t start = scl_clock_us(), looked = start;
  scl_status status = SCL_OK;
  scl_cl_build_list_begin(&list, cl, build, count);
  begin_build(cl, start);
  scl_team *team = scl_team_launch(1 + scl_cl_build_threads(cl, count), scl_cl_build_some, &list);
  if (team == NULL) scl_cl_build_some(&list, 0, 1);
  while (!scl_team_is_done(team)) {
    const uint64_t now = scl_clock_us();
    if (status == SCL_OK && now - looked > LOOK_EVERY_US) {
      status = scl_poll();
      if (status != SCL_OK) atomic_store(&list.next, count);
      looked = now;
    }
    scl_sleep_us(REST_US);
  }
  scl_team_stop(team);
  end_build(start);
  for (int i = 0; i < count; i++) scl_cl_build_count(cl, &build[i]);
  return status;
}

void scl_cl_build_count(scl_cl_context *cl, scl_cl_build *build) {
  if (build->kept != NULL) scl_cl.clReleaseProgram(build->kept); /* not begun */
  build->kept = NULL;
  if (!build->done || build->counted) return;
  build->counted = true;
  log_build(build);
  if (build->code == CL_SUCCESS && build->keep)
    scl_cl_store_write(cl, &build->stored, build->program);
}

scl_status scl_cl_build_wait(scl_cl_context *cl, scl_cl_build *build, int count) {
  scl_turn_take(&turn);
  const scl_status status = build_all(cl, build, count);
  scl_turn_end(&turn);
  return status;
}
