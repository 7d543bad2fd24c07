/* Builds in the background: programs that a call lacks are listed, and when it has ended threads
 * build them, while the host computes. All but the driver's compiler runs in the caller's thread:
 * the list does not change while threads work on it, and what they have built is taken after they
 * have ended. A request for a program is answered by the digest of what it is made from, so nobody
 * has to know where the program belongs. */
#include <stdio.h>
#include <string.h>

#include <stdatomic.h>

#include "base/threads.h"
#include "engine/cl/runtime/private.h"

enum { MOST_ASKED = 48, MOST_READY = 96, LOOK_EVERY_US = 2000, LABEL = 40, MOST_READ = 4096 };

static _Thread_local bool asks, whole, unread, lacks, asked;
static uint64_t patience_us = 1500000;
static bool always_patient;

typedef struct {
  scl_cl_context *cl;
  scl_cl_build build;
} ready_build;

static struct {
  long process;       /* that asks: a forked child has no threads */
  scl_cl_context *cl; /* of the list */
  scl_cl_build_list list;
  scl_team *team, *more; /* that work on the list, or NULL */
  uint64_t hurries;      /* when more are to begin; 0: no more */
  int share;             /* threads of each kind */
  atomic_int rivals;     /* threads to which BLAS is to leave cores */
  scl_cl_build asked[MOST_ASKED];
  char label[MOST_ASKED][LABEL];
  int count; /* asked for */
  ready_build ready[MOST_READY];
  int done; /* ready */
} beside;

bool scl_cl_asks(void) {
  return asks;
}

bool scl_cl_goes_on(void) {
  lacks = lacks || whole;
  return whole;
}

bool scl_cl_set_lacks(bool on) {
  const bool before = lacks;
  lacks = on;
  return before;
}

bool scl_cl_is_read(size_t numbers) {
  return !unread || numbers <= MOST_READ;
}

scl_status scl_cl_building(void) {
  return scl_fail(SCL_E_BUILDING, "kernels are being built");
}

/* ---- what is ready --------------------------------------------------------------------------- */
static void drop_ready(int i) {
  if (beside.ready[i].build.program != NULL) scl_cl.clReleaseProgram(beside.ready[i].build.program);
  for (beside.done--; i < beside.done; i++) beside.ready[i] = beside.ready[i + 1];
}

void scl_cl_beside_put(scl_cl_context *cl, const scl_cl_build *build) {
  if (beside.done == MOST_READY) drop_ready(0); /* nobody has asked for the oldest again */
  beside.ready[beside.done++] = (ready_build){cl, *build};
}

/* Ends the threads, once they are done, and takes what they have built. */
static void collect(void) {
  scl_team_stop(beside.team);
  scl_team_stop(beside.more);
  beside.team = beside.more = NULL;
  atomic_store(&beside.rivals, 0); /* the system may have refused some of the threads */
  for (int i = 0; i < beside.count; i++) {
    scl_cl_build *build = &beside.asked[i];
    scl_cl_build_count(beside.cl, build);
    if (build->done) {
      scl_cl_beside_put(beside.cl, build);
    } else if (build->program != NULL) {
      scl_cl.clReleaseProgram(build->program);
    }
  }
  beside.count = 0;
}

/* ---- the threads ----------------------------------------------------------------------------- */
/* Whether BLAS is expected to leave a core to such a thread: it does so as soon as that is
 * launched, as the next of its calls may be long. */
static bool is_rival(bool idle) {
  return !idle || scl_cores() >= SCL_RIVAL_CORES;
}

static void build_some(bool idle, scl_cl_build_list *list, int part, int parts) {
  const bool rival = scl_thread_give_way(idle);
  if (rival && !is_rival(idle)) atomic_fetch_add(&beside.rivals, 1);
  scl_cl_build_some(list, part, parts);
  atomic_fetch_sub(&beside.rivals, rival);
}

/* The host computes on the same cores, and few calls wait for such a build. */
static void build_patiently(void *list, int part, int parts) {
  build_some(true, list, part, parts);
}

static void build_steadily(void *list, int part, int parts) {
  build_some(false, list, part, parts);
}

/* Threads on an eighth of the cores, or one. */
static scl_team *launch_some(bool idle) {
  const int most = scl_cl_build_threads(beside.cl, beside.count), eighth = (int)(scl_cores() / 8);
  const int threads = eighth < 1 ? 1 : eighth < most ? eighth : most;
  const int rivals = is_rival(idle) ? threads : 0;
  beside.share = threads;
  atomic_fetch_add(&beside.rivals, rivals);
  scl_team *team =
      scl_team_launch(1 + threads, idle ? build_patiently : build_steadily, &beside.list);
  if (team == NULL) atomic_fetch_sub(&beside.rivals, rivals);
  return team;
}

static void launch(void) {
  const bool patient = always_patient || !scl_cores_are_busy(); /* else it might never end */
  scl_cl_build_list_begin(&beside.list, beside.cl, beside.asked, beside.count);
  beside.hurries = patient ? scl_clock_us() + patience_us : 0;
  beside.team = launch_some(patient);
  if (beside.team != NULL) return;
  scl_cl_build_some(&beside.list, 0, 1); /* no threads here */
  collect();
}

/* A host that computes all the time leaves little. */
static void hurry(void) {
  if (beside.hurries == 0 || scl_clock_us() < beside.hurries) return;
  beside.hurries = 0;
  if (atomic_load(&beside.list.next) < beside.count) beside.more = launch_some(false);
}

static bool is_at_work(scl_team *team) {
  return team != NULL && !scl_team_is_done(team);
}

/* Whether threads build. In a forked child their team is not there. */
static bool is_building(void) {
  if (beside.count > 0 && beside.process != scl_process_id()) {
    beside.team = beside.more = NULL;
    beside.count = beside.done = 0;
  }
  if (beside.team == NULL) return false;
  hurry();
  if (is_at_work(beside.team) || is_at_work(beside.more)) return true;
  collect();
  return false;
}

/* ---- requests -------------------------------------------------------------------------------- */
static bool is_asked(const scl_digest *name) {
  for (int i = 0; i < beside.count; i++) {
    if (memcmp(&beside.asked[i].stored, name, sizeof *name) == 0) return true;
  }
  return false;
}

scl_status scl_cl_beside_take(scl_cl_context *cl, const scl_digest *name, scl_cl_build *out,
                              bool *found) {
  *found = false;
  if (scl_thread_shares()) return SCL_OK; /* the list is the main thread's */
  while (is_building() && !asks && beside.cl == cl && is_asked(name)) {
    SCL_TRY(scl_poll());
    scl_sleep_us(LOOK_EVERY_US);
  }
  for (int i = 0; i < beside.done && !*found; i++) {
    const ready_build *r = &beside.ready[i];
    if (r->cl != cl || memcmp(&r->build.stored, name, sizeof *name) != 0) continue;
    *out = r->build;
    beside.ready[i].build.program = NULL;
    drop_ready(i);
    *found = true;
  }
  return SCL_OK;
}

static bool has_room(const scl_cl_context *cl) {
  return !is_building() && beside.count < MOST_ASKED && (beside.count == 0 || beside.cl == cl);
}

scl_status scl_cl_beside_ask(scl_cl_context *cl, scl_cl_build *build, int count) {
  asked = true;
  for (int i = 0; i < count; i++) {
    if (build[i].done) continue;
    if (has_room(cl) && !is_asked(&build[i].stored)) {
      char *label = beside.label[beside.count];
      snprintf(label, LABEL, "%s", build[i].name);
      beside.cl = cl;
      beside.process = scl_process_id();
      beside.asked[beside.count] = build[i];
      beside.asked[beside.count++].name = label;
    } else {
      scl_cl.clReleaseProgram(build[i].program);
      if (build[i].kept != NULL) scl_cl.clReleaseProgram(build[i].kept);
    }
    build[i].program = build[i].kept = NULL;
  }
  return scl_cl_building();
}

/* ---- the mode -------------------------------------------------------------------------------- */
bool scl_device_beside_begin(bool on) {
  const bool before = asks;
  asks = on && !scl_thread_shares();
  if (!before) whole = unread = lacks = asked = false;
  return before;
}

void scl_device_beside_whole(bool read) {
  whole = lacks = asks;
  unread = asks && !read;
}

bool scl_device_beside_asked(void) {
  return asked;
}

bool scl_device_beside_lacks(void) {
  return lacks;
}

bool scl_device_beside_end(bool before) {
  asks = before;
  if (asks) return false;
  whole = unread = lacks = asked = false;
  const bool begins = !is_building() && beside.count > 0;
  if (begins) launch();
  return begins;
}

int scl_device_beside_count(void) {
  return is_building() ? beside.count : 0;
}

/* Threads of both kinds share cores. */
int scl_device_beside_cores(void) {
  const int rivals = beside.process == scl_process_id() ? atomic_load(&beside.rivals) : 0;
  return rivals < beside.share ? rivals : beside.share;
}

void scl_device_beside_patience(uint64_t us, bool always) {
  patience_us = us;
  always_patient = always;
}

void scl_device_beside_stop(void) {
  if (!is_building() && beside.count == 0) return;
  atomic_store(&beside.list.next, beside.count);
  collect();
}

void scl_cl_beside_free(scl_cl_context *cl) {
  if (beside.cl == cl) scl_device_beside_stop();
  for (int i = beside.done; i-- > 0;) {
    if (beside.ready[i].cl == cl) drop_ready(i);
  }
}
