/* The functions of the operating system that the core uses: a process id, sleep, a clock, the
 * environment, and a team of threads that lives for one piece of work only, so that no thread is
 * there when the process forks. */
#ifndef SCL_BASE_THREADS_H
#define SCL_BASE_THREADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

long scl_process_id(void);
void scl_sleep_us(unsigned microseconds);

/* Between these two calls, which do not nest, this thread takes no signals, and threads that a
 * library makes meanwhile never will: R's handlers may jump, so they must run in R's thread.
 * Threads that are there before R loads this library, as OpenBLAS's, keep their masks: POSIX lets a
 * thread change its own only. R's handler of SIGINT sets a flag, in any thread, except while R
 * itself waits (Sys.sleep(), sockets); OPENBLAS_NUM_THREADS=1 has no such threads. */
void scl_signals_hold(void);
void scl_signals_release(void);

/* From now on this thread takes no interrupt (SIGINT); for processes without other threads, which
 * would take it. */
void scl_interrupts_block(void);

uint64_t scl_clock_us(void); /* monotonic; its zero means nothing */

/* The value of an environment variable; NULL when it is unset or empty, which are equivalent. */
const char *scl_env(const char *name);
/* Sets an environment variable if it is unset or empty. */
void scl_env_default(const char *name, const char *value);
/* Removes an empty variable, for libraries that treat an empty one as set. */
void scl_env_drop_empty(const char *name);
/* A copy of the value of a variable, or NULL; restoring sets and frees the copy. */
char *scl_env_copy(const char *name);
void scl_env_restore(const char *name, char *value);

/* Advice that fresh memory is about to be written throughout, so that the system may use large
 * pages: page faults on small ones take longer than the copy. Does nothing on a system without such
 * advice. */
void scl_expect_writes(void *memory, size_t bytes);

/* Has the system map this memory now, by a write in each page: the contents are lost. */
void scl_touch_pages(double *memory, size_t n);
/* Whether the system has already mapped it, judged by one page in the middle; false if the system
 * cannot be asked. */
bool scl_is_touched(const void *memory, size_t bytes);

/* Gives this thread, for the rest of its life, a low priority: on a busy core others get most of
 * the time. On Linux and Windows; elsewhere it does nothing. `idle`, on Linux: it gets only what
 * others leave, which on busy cores may be next to nothing. Returns whether BLAS, which computes
 * meanwhile, is to leave it a core. If BLAS leaves none, its threads share their cores with this
 * one: they yield while they wait for each other, and then get the core back late, even from an
 * idle thread (bench/beside.R). With fewer cores than SCL_RIVAL_CORES giving one up costs more. */
enum { SCL_RIVAL_CORES = 4 };
bool scl_thread_give_way(bool idle);
/* Whether threads of other processes want all cores of the machine; true if that is not known. */
bool scl_cores_are_busy(void);
/* For tests: what this says from now on, 0 or 1; -1: what the system says. */
void scl_cores_pretend_busy(int busy);

/* A short wait of a thread that has found no work `times` times in a row. */
void scl_pause(unsigned times);

/* Cores, at most as many as a container gives or as the process is bound to. */
long scl_cores(void);
/* The same, asked anew. */
long scl_count_cores(void);
/* Whether R CMD check asks for at most two cores (_R_CHECK_LIMIT_CORES_). */
bool scl_cores_limited(void);

/* Threads for big copies: STATCL_COPY_THREADS (1 to 64), else two for limited cores, else up to 16.
 */
int scl_usual_threads(void);
/* The same for a piece of work of this thread: its share, if it has one. */
int scl_copy_threads(void);

/* Gives a thread that shares its context with other threads `threads` of the usual threads; 0 ends
 * this. Meanwhile it must not call the host language: scl_poll() does not ask, and nothing collects
 * garbage. */
void scl_thread_share(int threads);
bool scl_thread_shares(void);

/* Concurrent threads use the state that all contexts share in turn; a single thread needs no
 * lock. */
typedef atomic_flag scl_turn;
void scl_turn_take(scl_turn *turn);
void scl_turn_end(scl_turn *turn);

/* A part of some work; `part` runs from 0 to parts - 1. */
typedef void (*scl_team_work)(void *arg, int part, int parts);

typedef struct scl_team scl_team;

/* A team of up to `threads` threads, including the caller. NULL, which the other functions accept,
 * is a team of one: one thread was requested, threads are not supported here, or none could be
 * made. */
scl_team *scl_team_start(int threads);
/* Runs all parts, one on each thread, and returns when all are done. */
void scl_team_run(scl_team *team, scl_team_work work, void *arg);
/* Begins a round without the caller's part 0; scl_team_wait() returns when all parts are done. */
void scl_team_begin(scl_team *team, scl_team_work work, void *arg);
/* A team whose members begin to work as soon as they are created. `parts` is the requested number,
 * even if fewer threads were created. */
scl_team *scl_team_launch(int threads, scl_team_work work, void *arg);
void scl_team_wait(scl_team *team);
/* Whether all parts of the members are done, without waiting. */
bool scl_team_is_done(scl_team *team);
void scl_team_stop(scl_team *team);

#endif
