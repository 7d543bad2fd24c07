/* Registration of the .Call entries, and what the core needs of R: hooks, BLAS and LAPACK. */
#include "r_entries.h"
#include "r_glue.h"

#include <R_ext/Rdynload.h>
#include <R_ext/Utils.h>
#include <R_ext/Visibility.h>
#include <time.h>

static const R_CallMethodDef entries[] = {
#define R_ENTRY(name, arguments) {#name, (DL_FUNC)&name, arguments},
#include "r_entries.def"
#undef R_ENTRY
    {NULL, NULL, 0}};

static void check_interrupt(void *unused) {
  (void)unused;
  R_CheckUserInterrupt();
}

/* The core polls between launches, far more often than a person presses keys: look at most every
 * 20 ms. */
static bool interrupted(void) {
  static double last = 0.0;
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
  if (seconds - last < 0.02 && seconds >= last) return false;
  last = seconds;
  return !R_ToplevelExec(check_interrupt, NULL);
}

void attribute_visible R_init_statcl(DllInfo *dll) {
  R_registerRoutines(dll, NULL, entries, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
  R_forceSymbols(dll, TRUE);
  r_blas_set();
  r_handle_init();
  r_lazy_init();
  r_deferred_init();
  r_large_init(dll);
  r_serialize_init(dll);
  scl_hooks_set(&(scl_hooks){.collect_garbage = R_gc, .interrupted = interrupted});
}

void attribute_visible R_unload_statcl(DllInfo *dll) {
  (void)dll;
  r_contexts_release();
}
