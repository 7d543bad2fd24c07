/* R's BLAS and LAPACK for the host engine. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#ifndef _WIN32
#include <dlfcn.h>
#endif
#define USE_FC_LEN_T
#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <Rconfig.h>
#include <R_ext/BLAS.h>
#include <R_ext/Lapack.h>
#ifndef FCONE
#define FCONE
#endif

#include "r/entries.h"
#include "r/glue.h"

#include <stdatomic.h>

#include "base/device.h"
#include "base/threads.h"
#include "engine/host/fortran.h"
#include "ops/sparse.h"

/* OpenBLAS's functions of the number of threads, NULL with another BLAS. They are looked up at
 * once: later a look-up might wait for a thread that loads a driver. */
static int (*get_threads)(void);
static void (*set_threads)(int);

static void find_openblas(void) {
#ifndef _WIN32
  *(void **)&get_threads = dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
  *(void **)&set_threads = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
#endif
}

void r_blas_set(void) {
  scl_host_set_blas(&fortran_blas);
  scl_sparse_set_blas(&(scl_sparse_blas){gemm, syrk, trsm, potrf, lauum, trtri});
  scl_context_set_complete(scl_context_host());
  find_openblas();
}

static int count_threads(void) {
  return get_threads == NULL ? 0 : get_threads();
}

static void use_threads(int threads) {
  if (set_threads != NULL) set_threads(threads);
}

/* ---- cores that OpenBLAS leaves -------------------------------------------------------------- */

static atomic_bool rival; /* a thread that opens a device takes a core from the host */
static long process;      /* that has this thread: a forked child does not */

atomic_bool *r_blas_rival(void) {
  process = scl_process_id();
  return &rival;
}

/* The cores to leave: one for a thread that opens a device, and those of threads that build. */
static int count_rivals(void) {
  const bool opens = atomic_load(&rival) && process == scl_process_id();
  return scl_device_beside_cores() + opens;
}

/* Threads of OpenBLAS while it leaves cores: of all cores (0: it does not), now, and the fewest. */
static struct { int all, now, least; } blas;

void r_blas_adjust(void) {
  if (blas.all == 0) return;
  const int others = count_rivals(), left = (int)scl_cores() - others;
  int threads = others > 0 && left < blas.all ? left : blas.all;
  if (threads < 1) threads = 1;
  if (threads != blas.now) use_threads(threads);
  blas.now = threads;
  if (threads < blas.least) blas.least = threads;
}

/* From TRUE to FALSE BLAS leaves those cores, and takes them when the threads have ended
 * (scl_thread_give_way() in src/base/threads.h says why). */
SEXP r_blas_leave(SEXP on) {
  const bool leaves = blas.all > 0;
  if (Rf_asLogical(on) && !leaves) {
    blas.all = blas.now = blas.least = count_threads();
    r_blas_adjust();
  } else if (!Rf_asLogical(on) && leaves) {
    if (blas.now != blas.all) use_threads(blas.all);
    blas.all = 0;
  }
  return R_NilValue;
}

/* Threads of BLAS now; of all cores while it leaves some, else 0; the fewest since it began; and
 * cores. */
SEXP r_blas_count(void) {
  SEXP result = Rf_allocVector(INTSXP, 4);
  INTEGER(result)[0] = count_threads();
  INTEGER(result)[1] = blas.all;
  INTEGER(result)[2] = blas.least;
  INTEGER(result)[3] = (int)scl_cores();
  return result;
}
