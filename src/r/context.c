/* .Call entries for the session: devices, memory, waiting, profiling. */
#include "r/entries.h"
#include "r/glue.h"

#include <stdatomic.h>

#include "base/device.h"
#include "base/digest.h"
#include "base/engine.h"
#include "base/files.h"
#include "base/result_pool.h"
#include "base/threads.h"
#include "engine/host/memory.h"

/* ---- contexts ------------------------------------------------------------------------------- */

#define MAX_DEVICES 64

static scl_context *device_context[MAX_DEVICES];

/* A thread lists the devices, or opens one, while the host computes: drivers take some tenths of a
 * second for each. Whatever else needs the driver waits for the thread first. */
static struct {
  scl_team *team;
  long process; /* that has the thread: a forked child does not */
  int where;    /* -1: the list */
  scl_context *ctx;
  bool listed, tried[MAX_DEVICES]; /* done once, with or without success */
  atomic_bool *rival;              /* of BLAS, for a core */
} opening;

static void open_beside(void *arg, int part, int parts) {
  const scl_device_info *list;
  size_t count;
  (void)arg, (void)parts;
  scl_thread_share(1); /* R is not asked */
  if (opening.where < 0)
    scl_device_list(&list, &count);
  else if (part == 0)
    scl_device_open((size_t)opening.where, &opening.ctx);
  else
    scl_device_open_beside((size_t)opening.where, opening.rival, &opening.ctx);
  atomic_store(opening.rival, false);
  scl_thread_share(0);
}

static void take_opened(void) {
  if (opening.where < 0) {
    opening.listed = true;
    return;
  }
  opening.tried[opening.where] = true;
  if (device_context[opening.where] == NULL)
    device_context[opening.where] = opening.ctx;
  else if (opening.ctx != NULL)
    scl_context_release(opening.ctx);
  opening.ctx = NULL;
}

static void end_opening(void) {
  if (opening.team == NULL) return;
  if (opening.process == scl_process_id()) scl_team_stop(opening.team);
  opening.team = NULL;
  take_opened();
}

static void begin_opening(int where) {
  opening.where = where;
  opening.process = scl_process_id();
  opening.rival = r_blas_rival();
  atomic_store(opening.rival, true);
  opening.team = scl_team_launch(2, open_beside, NULL);
  r_blas_adjust();
  if (opening.team != NULL) return;
  open_beside(NULL, 0, 1); /* no threads here */
  take_opened();
}

bool r_is_opening(void) {
  return opening.team != NULL;
}

/* Whether the devices are listed (-1), or this one has been opened or cannot be. Does not wait: a
 * thread begins with what is missing. */
SEXP r_device_ready(SEXP where) {
  const int w = Rf_asInteger(where);
  if (w >= MAX_DEVICES || (w >= 0 && device_context[w] != NULL)) return Rf_ScalarLogical(TRUE);
  if (opening.process == scl_process_id() && !scl_team_is_done(opening.team))
    return Rf_ScalarLogical(FALSE);
  end_opening();
  if (!(w < 0 ? opening.listed : opening.tried[w])) begin_opening(w);
  return Rf_ScalarLogical(opening.team == NULL);
}

scl_status r_context(int where, scl_context **out) {
  SCL_TRY(r_require_outside());
  if (where < 0) {
    *out = scl_context_host();
    return SCL_OK;
  }
  if (where >= MAX_DEVICES)
    return scl_fail(SCL_E_NO_DEVICE, "there is no device number %d", where + 1);
  end_opening();
  scl_context *ctx = device_context[where];
  if (ctx != NULL && ctx->lost) { /* its matrices keep it; new work gets a new one */
    device_context[where] = NULL;
    scl_context_release(ctx);
    ctx = NULL;
  }
  if (ctx == NULL) {
    SCL_TRY(scl_device_open((size_t)where, &ctx));
    device_context[where] = ctx;
  }
  SCL_TRY(scl_context_check(ctx));
  *out = ctx;
  return SCL_OK;
}

/* Why this device cannot be used, or "". Opens it. */
SEXP r_device_refusal(SEXP where) {
  scl_context *ctx = NULL;
  const scl_status status = r_context(Rf_asInteger(where), &ctx);
  switch (status) {
  case SCL_E_NO_DEVICE:
  case SCL_E_NO_FP64:
  case SCL_E_REFUSED:
  case SCL_E_BUILD:
  case SCL_E_OPENCL:
  case SCL_E_LOST:
    return Rf_mkString(scl_fault_last()->message);
  default:
    return r_return(status, R_BlankScalarString);
  }
}

void r_contexts_release(void) {
  end_opening();
  scl_device_beside_stop();
  for (int i = 0; i < MAX_DEVICES; i++) {
    scl_context_release(device_context[i]);
    device_context[i] = NULL;
  }
}

/* ---- devices -------------------------------------------------------------------------------- */

static const char *const type_name[] = {"gpu", "cpu", "accelerator", "other"};

/* Columns of cl_devices(), one element a device, as a named list. */
SEXP r_devices(void) {
  const scl_device_info *list = NULL;
  size_t count = 0;
  end_opening();
  scl_status status = scl_device_list(&list, &count);
  if (status != SCL_OK) count = 0;
  const char *names[] = {"id",         "name",    "vendor",   "platform",   "type",
                         "fp64",       "memory",  "units",    "largest",    "host_memory",
                         "driver",     "version", "compiler", "capability", "local_memory",
                         "work_group", ""};
  SEXP columns = PROTECT(Rf_mkNamed(VECSXP, names));
  R_xlen_t n = (R_xlen_t)count;
  SEXPTYPE types[] = {STRSXP,  STRSXP, STRSXP, STRSXP, STRSXP, LGLSXP, REALSXP, INTSXP,
                      REALSXP, LGLSXP, STRSXP, STRSXP, LGLSXP, INTSXP, REALSXP, REALSXP};
  for (int c = 0; c < 16; c++) SET_VECTOR_ELT(columns, c, Rf_allocVector(types[c], n));
#define TEXT(column, text) SET_STRING_ELT(VECTOR_ELT(columns, column), i, Rf_mkChar(text))
  for (R_xlen_t i = 0; i < n; i++) {
    TEXT(0, list[i].id);
    TEXT(1, list[i].name);
    TEXT(2, list[i].vendor);
    TEXT(3, list[i].platform);
    TEXT(4, type_name[list[i].type]);
    LOGICAL(VECTOR_ELT(columns, 5))[i] = list[i].fp64;
    REAL(VECTOR_ELT(columns, 6))[i] = (double)list[i].memory;
    INTEGER(VECTOR_ELT(columns, 7))[i] = (int)list[i].units;
    REAL(VECTOR_ELT(columns, 8))[i] = (double)list[i].largest;
    LOGICAL(VECTOR_ELT(columns, 9))[i] = list[i].host_memory;
    TEXT(10, list[i].driver);
    TEXT(11, list[i].version);
    LOGICAL(VECTOR_ELT(columns, 12))[i] = list[i].compiler;
    INTEGER(VECTOR_ELT(columns, 13))[i] = (int)list[i].capability;
    REAL(VECTOR_ELT(columns, 14))[i] = (double)list[i].local_memory;
    REAL(VECTOR_ELT(columns, 15))[i] = (double)list[i].work_group;
  }
#undef TEXT
  UNPROTECT(1);
  return columns;
}

/* The loader, and why there is no device; never raises. */
SEXP r_loader_info(void) {
  const char *names[] = {"loader", "reason", ""};
  SEXP info = PROTECT(Rf_mkNamed(VECSXP, names));
  end_opening();
  SET_VECTOR_ELT(info, 0, Rf_mkString(scl_device_loader()));
  SET_VECTOR_ELT(info, 1, Rf_mkString(scl_device_reason()));
  UNPROTECT(1);
  return info;
}

/* Folders for the device engine: kernel sources, and where a driver may keep its own cache. */
/* `kernels` is a folder, or the text of all sources if `packed`. */
SEXP r_set_kernels(SEXP kernels, SEXP packed, SEXP cache) {
  const char *text = CHAR(STRING_ELT(kernels, 0));
  scl_status status = SCL_OK;
  if (LOGICAL(packed)[0]) {
    status = scl_device_set_packed_kernels(text);
  } else {
    scl_device_set_kernels(text);
  }
  scl_device_set_cache(CHAR(STRING_ELT(cache, 0)));
  return r_return(status, R_NilValue);
}

/* Where built programs are kept between sessions, or "". */
SEXP r_set_store(SEXP folder) {
  scl_device_set_store(CHAR(STRING_ELT(folder, 0)));
  return R_NilValue;
}

/* The digest of a raw vector, as text. */
SEXP r_digest(SEXP bytes) {
  char text[SCL_DIGEST_TEXT];
  scl_digest digest = scl_digest_begin();
  scl_digest_add(&digest, RAW(bytes), (size_t)XLENGTH(bytes));
  scl_digest_write(&digest, text);
  return Rf_mkString(text);
}

/* scl_path_kind of each of these paths. */
SEXP r_path_kinds(SEXP paths) {
  const R_xlen_t n = XLENGTH(paths);
  SEXP kinds = PROTECT(Rf_allocVector(INTSXP, n));
  for (R_xlen_t k = 0; k < n; k++) {
    INTEGER(kinds)[k] = (int)scl_path_kind_of(Rf_translateChar(STRING_ELT(paths, k)));
  }
  UNPROTECT(1);
  return kinds;
}

SEXP r_memory(SEXP where) {
  SEXP result = PROTECT(Rf_allocVector(REALSXP, 6));
  scl_context *ctx = NULL;
  scl_status status = r_context(Rf_asInteger(where), &ctx);
  if (status == SCL_OK) {
    scl_memory memory = scl_context_memory(ctx);
    REAL(result)[0] = (double)memory.live;
    REAL(result)[1] = (double)memory.peak;
    REAL(result)[2] = (double)memory.buffers;
    REAL(result)[3] = (double)memory.limit;
    REAL(result)[4] = (double)memory.largest;
    size_t kept = (size_t)memory.kept;
    if (scl_context_is_host(ctx)) kept += scl_result_pool_unused() + scl_host_memory_kept();
    REAL(result)[5] = (double)kept;
  }
  UNPROTECT(1);
  return r_return(status, result);
}

/* Why no kernels with matrix instructions are tried, or ""; and for each program tried: its name,
 * and why it was refused, or "". */
SEXP r_trials(SEXP where) {
  enum { MOST = 256 };
  const char *names[] = {"reason", "program", "refusal", ""};
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  scl_context *ctx = NULL;
  scl_status status = r_context(Rf_asInteger(where), &ctx);
  if (status == SCL_OK) {
    scl_device_trial trial[MOST];
    int count = 0, at = 0;
    SET_VECTOR_ELT(result, 0, Rf_mkString(scl_device_variant(ctx)));
    while (count < MOST && scl_device_trial_next(ctx, &at, &trial[count])) count++;
    SET_VECTOR_ELT(result, 1, Rf_allocVector(STRSXP, count));
    SET_VECTOR_ELT(result, 2, Rf_allocVector(STRSXP, count));
    for (int i = 0; i < count; i++) {
      SET_STRING_ELT(VECTOR_ELT(result, 1), i, Rf_mkChar(trial[i].program));
      SET_STRING_ELT(VECTOR_ELT(result, 2), i, Rf_mkChar(trial[i].refusal));
    }
  }
  UNPROTECT(1);
  return r_return(status, result);
}

/* The programs that drivers have built: names, starts and seconds. For bench/first-use.R. */
SEXP r_builds(void) {
  scl_device_build build;
  R_xlen_t count = 0;
  while (scl_device_build_at((size_t)count, &build)) count++;
  SEXP result = PROTECT(Rf_allocVector(VECSXP, 3));
  SET_VECTOR_ELT(result, 0, Rf_allocVector(STRSXP, count));
  SET_VECTOR_ELT(result, 1, Rf_allocVector(REALSXP, count));
  SET_VECTOR_ELT(result, 2, Rf_allocVector(REALSXP, count));
  for (R_xlen_t k = 0; k < count && scl_device_build_at((size_t)k, &build); k++) {
    SET_STRING_ELT(VECTOR_ELT(result, 0), k, Rf_mkChar(build.program));
    REAL(VECTOR_ELT(result, 1))[k] = build.started;
    REAL(VECTOR_ELT(result, 2))[k] = build.seconds;
  }
  UNPROTECT(1);
  return result;
}

/* Kernels built in the background (base/device.h); 2: asks only, for a call whose matrices are all
 * its own; 3: whose large results nobody reads, either. */
SEXP r_beside_begin(SEXP on) {
  const bool before = scl_device_beside_begin(Rf_asInteger(on) > 0);
  if (Rf_asInteger(on) > 1 && !before) scl_device_beside_whole(Rf_asInteger(on) == 2);
  return Rf_ScalarLogical(before);
}

SEXP r_beside_end(SEXP before) {
  const bool begins = scl_device_beside_end(Rf_asLogical(before) == TRUE);
  r_blas_adjust();
  return Rf_ScalarLogical(begins);
}

SEXP r_beside_lacks(void) {
  return Rf_ScalarLogical(scl_device_beside_lacks());
}

SEXP r_beside_asked(void) {
  return Rf_ScalarLogical(scl_device_beside_asked());
}

SEXP r_beside_count(void) {
  return Rf_ScalarInteger(scl_device_beside_count());
}

/* Threads end before the process does. */
SEXP r_beside_stop(void) {
  end_opening();
  scl_device_beside_stop();
  return R_NilValue;
}

/* The parameters of kernels: a list of their names, meanings, defaults, kinds and permitted values.
 */
SEXP r_tunables(void) {
  const char *names[] = {"name", "meaning", "default", "kinds", "permitted", ""};
  scl_device_tunable t;
  R_xlen_t count = 0;
  while (scl_device_tunable_at((size_t)count, &t)) count++;
  SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
  const SEXPTYPE types[] = {STRSXP, STRSXP, REALSXP, REALSXP, VECSXP};
  for (int c = 0; c < 5; c++) SET_VECTOR_ELT(result, c, Rf_allocVector(types[c], count));
  for (R_xlen_t k = 0; k < count && scl_device_tunable_at((size_t)k, &t); k++) {
    SET_STRING_ELT(VECTOR_ELT(result, 0), k, Rf_mkChar(t.name));
    SET_STRING_ELT(VECTOR_ELT(result, 1), k, Rf_mkChar(t.meaning));
    REAL(VECTOR_ELT(result, 2))[k] = t.standard;
    REAL(VECTOR_ELT(result, 3))[k] = t.kinds;
    SET_VECTOR_ELT(VECTOR_ELT(result, 4), k, Rf_allocVector(REALSXP, (R_xlen_t)t.count));
    for (size_t i = 0; i < t.count; i++)
      REAL(VECTOR_ELT(VECTOR_ELT(result, 4), k))[i] = t.permitted[i];
  }
  UNPROTECT(1);
  return result;
}

/* Sets parameters of kernels of a device, by name. */
SEXP r_tune(SEXP where, SEXP name, SEXP value) {
  scl_status status = SCL_OK;
  for (R_xlen_t k = 0; k < XLENGTH(name) && status == SCL_OK; k++)
    status = scl_device_tune((size_t)Rf_asInteger(where), CHAR(STRING_ELT(name, k)),
                             (int)REAL(value)[k]);
  return r_return(status, R_NilValue);
}

SEXP r_emulate(SEXP mode) {
  scl_device_emulate(Rf_asInteger(mode));
  return R_NilValue;
}

SEXP r_sync(SEXP where) {
  scl_context *ctx = NULL;
  scl_status status = r_context(Rf_asInteger(where), &ctx);
  if (status == SCL_OK) status = scl_context_finish(ctx);
  return r_return(status, R_NilValue);
}

/* Returns the context's cached memory to the driver, which waits until it is no longer in use. */
SEXP r_trim(SEXP where) {
  scl_context *ctx = NULL;
  scl_status status = r_context(Rf_asInteger(where), &ctx);
  if (status == SCL_OK) scl_device_trim(ctx);
  return r_return(status, R_NilValue);
}

/* Contexts opened from now on carry event times. */
SEXP r_profiling(SEXP on) {
  scl_device_profiling(Rf_asLogical(on) == TRUE);
  r_contexts_release();
  return R_NilValue;
}

SEXP r_profile_begin(SEXP where) {
  scl_context *ctx = NULL;
  scl_status status = r_context(Rf_asInteger(where), &ctx);
  if (status == SCL_OK) status = scl_device_profile_begin(ctx);
  return r_return(status, R_NilValue);
}

SEXP r_profile_end(SEXP where) {
  SEXP result = PROTECT(Rf_ScalarReal(0.0));
  scl_context *ctx = NULL;
  scl_status status = r_context(Rf_asInteger(where), &ctx);
  if (status == SCL_OK) status = scl_device_profile_end(ctx, REAL(result));
  UNPROTECT(1);
  return r_return(status, result);
}

/* Makes the n-th following buffer creation fail (tests of memory faults); -1: off. */
SEXP r_fail_buffer_after(SEXP n) {
  scl_buffer_fail_after((long)Rf_asInteger(n));
  return R_NilValue;
}

/* Makes the n-th following check for interrupts report one (tests); -1: off. */
SEXP r_interrupt_after(SEXP n) {
  scl_poll_stop_after((long)Rf_asInteger(n));
  return R_NilValue;
}
