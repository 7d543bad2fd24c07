#define _POSIX_C_SOURCE 200809L
#define _DARWIN_C_SOURCE /* _SC_NPROCESSORS_ONLN */
#define _DEFAULT_SOURCE
#define _GNU_SOURCE /* sched_getaffinity() */

#include "base/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#ifdef _WIN32
#include <process.h>
#include <windows.h>
#else
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#endif

enum { MOST_THREADS = 64, USUAL_THREADS = 16 };
/* Waits: at first not at all, then yields the core to other threads, then sleeps. */
enum { PAUSE_SPINS = 64, PAUSE_YIELDS = 1024, PAUSE_US = 50 };

#ifdef _WIN32

long scl_process_id(void) {
  return (long)_getpid();
}

void scl_sleep_us(unsigned microseconds) {
  Sleep((microseconds + 999) / 1000);
}

uint64_t scl_clock_us(void) {
  LARGE_INTEGER now, second;
  QueryPerformanceCounter(&now);
  QueryPerformanceFrequency(&second);
  const uint64_t ticks = (uint64_t)now.QuadPart, rate = (uint64_t)second.QuadPart;
  return ticks / rate * 1000000 + ticks % rate * 1000000 / rate;
}

static void set_env(const char *name, const char *value) {
  _putenv_s(name, value);
}

static void unset_env(const char *name) {
  _putenv_s(name, ""); /* which removes it there */
}

void scl_pause(unsigned times) {
  Sleep(times > PAUSE_YIELDS ? 1 : 0);
}

long scl_count_cores(void) {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return (long)info.dwNumberOfProcessors;
}

bool scl_thread_give_way(bool idle) {
  (void)idle;
  SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_LOWEST);
  return true;
}

static bool cores_are_busy(void) {
  return true;
}

void scl_signals_hold(void) {}

void scl_signals_release(void) {}

void scl_interrupts_block(void) {}

#else

long scl_process_id(void) {
  return (long)getpid();
}

void scl_sleep_us(unsigned microseconds) {
  struct timespec span = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
  nanosleep(&span, NULL);
}

uint64_t scl_clock_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void set_env(const char *name, const char *value) {
  setenv(name, value, 1);
}

static void unset_env(const char *name) {
  unsetenv(name);
}

void scl_pause(unsigned times) {
  if (times > PAUSE_YIELDS) {
    scl_sleep_us(PAUSE_US);
  } else if (times > PAUSE_SPINS) {
    sched_yield();
  }
}

/* The cores that a container gives, rounded up; 0: no limit. */
static long core_quota(void) {
  long quota = 0, period = 0;
  FILE *in = fopen("/sys/fs/cgroup/cpu.max", "r"); /* "max 100000" without a limit */
  if (in == NULL) return 0;
  const int read = fscanf(in, "%ld %ld", &quota, &period);
  fclose(in);
  return read == 2 && quota > 0 && period > 0 ? (quota + period - 1) / period : 0;
}

/* The cores that this process may use: on Linux those it is bound to. */
static long usable_cores(void) {
#ifdef __linux__
  cpu_set_t bound;
  if (sched_getaffinity(getpid(), sizeof bound, &bound) == 0) return CPU_COUNT(&bound);
#endif
  return sysconf(_SC_NPROCESSORS_ONLN);
}

long scl_count_cores(void) {
  const long usable = usable_cores(), quota = core_quota();
  return quota > 0 && quota < usable ? quota : usable;
}

bool scl_thread_give_way(bool idle) {
#ifdef __linux__ /* where 0 is this thread, elsewhere it is the process */
  enum { LOW = 10 };
  const struct sched_param none = {0};
  if (idle && sched_setscheduler(0, SCHED_IDLE, &none) == 0) return scl_cores() >= SCL_RIVAL_CORES;
  if (getpriority(PRIO_PROCESS, 0) < LOW) setpriority(PRIO_PROCESS, 0, LOW);
#else
  (void)idle;
#endif
  return true;
}

/* The threads of this process that run or wait for a core. */
static long count_own_running(void) {
  long running = 0;
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) return 0;
  for (const struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
    char name[64], text[128];
    snprintf(name, sizeof name, "/proc/self/task/%.20s/stat", task->d_name);
    FILE *in = task->d_name[0] == '.' ? NULL : fopen(name, "r");
    if (in == NULL) continue;
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    const char *state = strrchr(text, ')'); /* after the name, which may contain one */
    running += state != NULL && strncmp(state, ") R", 3) == 0;
  }
  closedir(tasks);
  return running;
}

static bool cores_are_busy(void) {
  long running = 0; /* of all processes, on Linux */
  FILE *in = fopen("/proc/loadavg", "r");
  if (in == NULL) return true;
  const int read = fscanf(in, "%*f %*f %*f %ld/", &running);
  fclose(in);
  return read != 1 || running - count_own_running() >= sysconf(_SC_NPROCESSORS_ONLN);
}

static _Thread_local sigset_t taken; /* before scl_signals_hold() */

void scl_signals_hold(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &taken);
}

void scl_signals_release(void) {
  pthread_sigmask(SIG_SETMASK, &taken, NULL);
}

void scl_interrupts_block(void) {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, NULL);
}

#endif

static atomic_int pretended = -1;

void scl_cores_pretend_busy(int busy) {
  atomic_store(&pretended, busy);
}

bool scl_cores_are_busy(void) {
  const int said = atomic_load(&pretended);
  return said < 0 ? cores_are_busy() : said == 1;
}

long scl_cores(void) {
  static atomic_long known;
  long cores = atomic_load(&known);
  if (cores == 0) {
    cores = scl_count_cores();
    atomic_store(&known, cores);
  }
  return cores;
}

const char *scl_env(const char *name) {
  const char *value = getenv(name);
  return value != NULL && *value != '\0' ? value : NULL;
}

void scl_env_default(const char *name, const char *value) {
  if (scl_env(name) == NULL) set_env(name, value);
}

void scl_env_drop_empty(const char *name) {
  if (getenv(name) != NULL && scl_env(name) == NULL) unset_env(name);
}

char *scl_env_copy(const char *name) {
  const char *value = getenv(name);
  size_t size = value != NULL ? strlen(value) + 1 : 0;
  char *copy = size > 0 ? malloc(size) : NULL;
  if (copy != NULL) memcpy(copy, value, size);
  return copy;
}

void scl_env_restore(const char *name, char *value) {
  const char *now = getenv(name);
  if (value != NULL && (now == NULL || strcmp(now, value) != 0)) set_env(name, value);
  free(value);
}

/* ---- pages ----------------------------------------------------------------------------------- */
#ifdef _WIN32

void scl_expect_writes(void *memory, size_t bytes) {
  (void)memory;
  (void)bytes;
}

bool scl_is_touched(const void *memory, size_t bytes) {
  (void)memory;
  (void)bytes;
  return false;
}

#else

void scl_expect_writes(void *memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)memory;
  uintptr_t first = (start + page - 1) / page * page, last = (start + bytes) / page * page;
  if (first < last) madvise((void *)first, last - first, MADV_HUGEPAGE);
#else
  (void)memory;
  (void)bytes;
#endif
}

bool scl_is_touched(const void *memory, size_t bytes) {
#ifdef __linux__
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t middle = ((uintptr_t)memory + bytes / 2) / page * page;
  unsigned char present = 0;
  return mincore((void *)middle, page, &present) == 0 && (present & 1) != 0;
#else
  (void)memory;
  (void)bytes;
  return false;
#endif
}

#endif

/* Writes to each page; a request for all pages of a block at once would block all other threads. */
enum { SMALLEST_PAGE = 4096 };

void scl_touch_pages(double *memory, size_t n) {
  volatile double *at = memory;
  for (size_t i = 0; i < n; i += SMALLEST_PAGE / sizeof *at) at[i] = 0.0;
  if (n > 0) at[n - 1] = 0.0;
}

/* ---- threads --------------------------------------------------------------------------------- */
bool scl_cores_limited(void) {
  const char *limit = scl_env("_R_CHECK_LIMIT_CORES_");
  return limit != NULL && strcmp(limit, "false") != 0 && strcmp(limit, "FALSE") != 0;
}

static _Thread_local int share;

void scl_thread_share(int threads) {
  share = threads;
}

bool scl_thread_shares(void) {
  return share > 0;
}

void scl_turn_take(scl_turn *turn) {
  if (!scl_thread_shares()) return;
  for (unsigned times = 0; atomic_flag_test_and_set(turn); times++) scl_pause(times);
}

void scl_turn_end(scl_turn *turn) {
  if (scl_thread_shares()) atomic_flag_clear(turn);
}

int scl_copy_threads(void) {
  return share > 0 ? share : scl_usual_threads();
}

int scl_usual_threads(void) {
  const char *asked = scl_env("STATCL_COPY_THREADS");
  if (asked != NULL) {
    long n = strtol(asked, NULL, 10);
    if (n >= 1) return n < MOST_THREADS ? (int)n : MOST_THREADS;
  }
  long cores = scl_cores();
  long most = scl_cores_limited() ? 2 : USUAL_THREADS;
  if (cores > most) cores = most;
  return cores < 1 ? 1 : (int)cores;
}

struct scl_team {
  pthread_mutex_t mutex;
  pthread_cond_t go, done;
  unsigned round; /* counts calls of run */
  int left;       /* members that have not finished this round */
  int parts;      /* of this round */
  bool stop;
  scl_team_work work;
  void *arg;
  int members; /* threads made; the caller is one more */
  struct member {
    struct scl_team *team;
    pthread_t thread;
    int part;
  } member[];
};

static void *serve(void *arg) {
  struct member *me = arg;
  scl_team *team = me->team;
  unsigned seen = 0;
  pthread_mutex_lock(&team->mutex);
  for (;;) {
    while (team->round == seen && !team->stop) pthread_cond_wait(&team->go, &team->mutex);
    if (team->stop) break;
    seen = team->round;
    pthread_mutex_unlock(&team->mutex);
    team->work(team->arg, me->part, team->parts);
    pthread_mutex_lock(&team->mutex);
    if (--team->left == 0) pthread_cond_signal(&team->done);
  }
  pthread_mutex_unlock(&team->mutex);
  return NULL;
}

static void make_members(scl_team *team, int count) {
  scl_signals_hold();
  for (int i = 0; i < count; i++) {
    struct member *m = &team->member[i];
    m->team = team;
    m->part = i + 1;
    if (pthread_create(&m->thread, NULL, serve, m) != 0) break;
    team->members++;
  }
  scl_signals_release();
}

/* With `work`, the members begin the first round as soon as they are created. */
static scl_team *make_team(int threads, scl_team_work work, void *arg) {
  if (threads < 2) return NULL;
  int asked = threads - 1;
  scl_team *team = calloc(1, sizeof *team + (size_t)asked * sizeof team->member[0]);
  if (team == NULL) return NULL;
  pthread_mutex_init(&team->mutex, NULL);
  pthread_cond_init(&team->go, NULL);
  pthread_cond_init(&team->done, NULL);
  team->work = work;
  team->arg = arg;
  team->parts = threads;
  team->round = work != NULL;
  team->left = work != NULL ? asked : 0;
  make_members(team, asked);
  if (team->members == 0) {
    scl_team_stop(team);
    return NULL;
  }
  pthread_mutex_lock(&team->mutex);
  if (work != NULL) team->left -= asked - team->members;
  pthread_mutex_unlock(&team->mutex);
  return team;
}

scl_team *scl_team_start(int threads) {
  return make_team(threads, NULL, NULL);
}

scl_team *scl_team_launch(int threads, scl_team_work work, void *arg) {
  return make_team(threads, work, arg);
}

void scl_team_begin(scl_team *team, scl_team_work work, void *arg) {
  if (team == NULL) return;
  pthread_mutex_lock(&team->mutex);
  team->work = work;
  team->arg = arg;
  team->left = team->members;
  team->parts = team->members + 1;
  team->round++;
  pthread_cond_broadcast(&team->go);
  pthread_mutex_unlock(&team->mutex);
}

void scl_team_wait(scl_team *team) {
  if (team == NULL) return;
  pthread_mutex_lock(&team->mutex);
  while (team->left > 0) pthread_cond_wait(&team->done, &team->mutex);
  pthread_mutex_unlock(&team->mutex);
}

bool scl_team_is_done(scl_team *team) {
  if (team == NULL) return true;
  pthread_mutex_lock(&team->mutex);
  const bool done = team->left == 0;
  pthread_mutex_unlock(&team->mutex);
  return done;
}

void scl_team_run(scl_team *team, scl_team_work work, void *arg) {
  scl_team_begin(team, work, arg);
  work(arg, 0, team != NULL ? team->members + 1 : 1);
  scl_team_wait(team);
}

void scl_team_stop(scl_team *team) {
  if (team == NULL) return;
  pthread_mutex_lock(&team->mutex);
  team->stop = true;
  pthread_cond_broadcast(&team->go);
  pthread_mutex_unlock(&team->mutex);
  for (int i = 0; i < team->members; i++) pthread_join(team->member[i].thread, NULL);
  pthread_cond_destroy(&team->done);
  pthread_cond_destroy(&team->go);
  pthread_mutex_destroy(&team->mutex);
  free(team);
}
