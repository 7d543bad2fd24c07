/* Whether the user wants to stop, or a time limit is reached, and the collection of garbage: R is
 * asked between pieces of work, and must not jump out of the core. */
#include "r/entries.h"
#include "r/glue.h"

#include <R_ext/Utils.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/device.h"
#include "base/threads.h"

static char limit[256];

const char *r_time_limit(void) {
  return limit;
}

/* The work of R while its jumps are caught. */
typedef struct {
  SEXP (*run)(void *unused);
  bool stop; /* the user or a time limit wants it */
} guarded;

static SEXP check_user_interrupt(void *unused) {
  (void)unused;
  R_CheckUserInterrupt();
  return R_NilValue;
}

static SEXP collect_all(void *unused) {
  (void)unused;
  R_gc(); /* which answers a pending interrupt at its end */
  return R_NilValue;
}

/* R's own collector starts with young objects, but R_gc() collects everything. */
static SEXP collect_young(void *unused) {
  static SEXP call = NULL;
  (void)unused;
  if (call == NULL) {
    SEXP made = PROTECT(Rf_lang3(Rf_install("gc"), R_NilValue, R_NilValue));
    SETCADR(made, Rf_ScalarLogical(FALSE));
    SETCADDR(made, Rf_ScalarLogical(FALSE));
    SET_TAG(CDR(made), Rf_install("verbose"));
    SET_TAG(CDDR(made), Rf_install("full"));
    R_PreserveObject(made);
    call = made;
    UNPROTECT(1);
  }
  return Rf_eval(call, R_BaseEnv);
}

/* An interrupt, or the error of a time limit, whose message is kept. */
static SEXP keep_condition(SEXP condition, void *stop) {
  ((guarded *)stop)->stop = true;
  if (!Rf_inherits(condition, "error")) return R_NilValue;
  SEXP message = TYPEOF(condition) == VECSXP ? VECTOR_ELT(condition, 0) : R_NilValue;
  const bool text = TYPEOF(message) == STRSXP && XLENGTH(message) > 0;
  snprintf(limit, sizeof limit, "%s",
           text ? CHAR(STRING_ELT(message, 0)) : "reached elapsed time limit");
  return R_NilValue;
}

static void catch_interrupt(void *data) {
  static SEXP kinds = NULL;
  if (kinds == NULL) {
    SEXP names = PROTECT(Rf_allocVector(STRSXP, 2));
    SET_STRING_ELT(names, 0, Rf_mkChar("error"));
    SET_STRING_ELT(names, 1, Rf_mkChar("interrupt"));
    R_PreserveObject(names);
    kinds = names;
    UNPROTECT(1);
  }
  R_tryCatch(((guarded *)data)->run, NULL, kinds, keep_condition, data, NULL, NULL);
}

/* True if R was stopped. A jump before R_tryCatch() has set its handlers ends R_ToplevelExec(). */
static bool is_stopped(SEXP (*run)(void *unused)) {
  guarded g = {run, false};
  limit[0] = '\0';
  return !R_ToplevelExec(catch_interrupt, &g) || g.stop;
}

/* ---- the building of kernels ---------------------------------------------------------------- */
static double announced; /* seconds of the period of compiling that was announced last */
static bool jumped;
/* Of a jump out of the message, continued when the core has released everything. Made before the
 * core runs, as allocations answer interrupts. */
static SEXP token;

void r_interrupt_init(void) {
  token = R_MakeUnwindCont();
  R_PreserveObject(token);
}

static SEXP announce_device(void *unused) {
  (void)unused;
  SEXP package = PROTECT(Rf_mkString("statcl"));
  SEXP space = PROTECT(R_FindNamespace(package));
  SEXP device = PROTECT(Rf_mkString(scl_device_build_name()));
  SEXP call = PROTECT(Rf_lang2(Rf_install("announce_build"), device));
  Rf_eval(call, space);
  UNPROTECT(4);
  return R_NilValue;
}

static void jump_back(void *place, Rboolean jump) {
  if (jump) longjmp(*(jmp_buf *)place, 1);
}

static double now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Announces that kernels are being built when that has taken a second, once for each period in
 * which drivers compile, and at most once a minute: on a busy machine one call may have several
 * periods. True if a handler of the message jumps. */
static bool announce(void) {
  enum { PATIENCE = 1, REST = 60 };
  static double last = -REST;
  const double seconds = scl_device_build_seconds();
  if (seconds < announced) announced = 0.0; /* another period */
  if (announced > 0.0 || seconds < PATIENCE) return false;
  announced = seconds;
  if (now() - last < REST) return false;
  last = now();
  jmp_buf place;
  if (setjmp(place) != 0) {
    jumped = true;
    return true;
  }
  R_UnwindProtect(announce_device, NULL, jump_back, &place, token);
  return false;
}

SEXP r_jump(void) {
  if (!jumped) return NULL;
  jumped = false;
  return token;
}

void r_announce(void) {
  jumped = false; /* a jump that was not continued */
  if (announce()) R_ContinueUnwind(r_jump());
}

/* ---- the hooks ------------------------------------------------------------------------------ */
bool r_collect(bool all) {
  if (scl_device_beside_lacks()) return false; /* a call that only asks for kernels costs nothing */
  return is_stopped(all ? collect_all : collect_young);
}

/* The core polls between launches, far more often than needed: R is asked at most every 20 ms. */
bool r_interrupted(void) {
  static double last = 0.0;
  const double seconds = now();
  if (seconds - last < 0.02 && seconds >= last) return false;
  last = seconds;
  r_blas_adjust();
  return announce() || is_stopped(check_user_interrupt);
}

/* ---- processes ------------------------------------------------------------------------------ */

SEXP r_block_interrupts(void) {
  scl_interrupts_block();
  return R_NilValue;
}

/* ---- R code inside the core ----------------------------------------------------------------- */

scl_status r_require_outside(void) {
  if (!scl_hooks_run()) return SCL_OK;
  return scl_fail(SCL_E_ARGUMENT, "a computation is running: finalizers and event handlers may "
                                  "free matrices meanwhile, but not use them");
}
