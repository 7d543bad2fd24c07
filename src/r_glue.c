#include "r_glue.h"

#include <R_ext/Error.h>
#include <stdlib.h>
#include <string.h>

#include "scl_device.h"
#include "scl_engine.h"

#define MAX_DEVICES 64

static scl_context *device_context[MAX_DEVICES];

/* ---- contexts ------------------------------------------------------------------------------- */

scl_status r_context(int where, scl_context **out) {
  if (where < 0) {
    *out = scl_context_host();
    return SCL_OK;
  }
  if (where >= MAX_DEVICES) return scl_fail(SCL_E_NO_DEVICE, "no device number %d", where + 1);
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

scl_status r_context_pick(SEXP where, int n, const SEXP *operands, scl_context **out) {
  for (int i = 0; i < n; i++) {
    if (r_is_handle(operands[i])) {
      scl_mat *m;
      SCL_TRY(r_handle_peek(operands[i], "x", &m));
      *out = scl_mat_context(m);
      return SCL_OK;
    }
  }
  return r_context(Rf_asInteger(where), out);
}

void r_contexts_release(void) {
  for (int i = 0; i < MAX_DEVICES; i++) {
    scl_context_release(device_context[i]);
    device_context[i] = NULL;
  }
}

/* ---- matrix handles ------------------------------------------------------------------------- */

static SEXP handle_tag(void) {
  static SEXP tag = NULL; /* symbols live as long as R */
  if (tag == NULL) tag = Rf_install("statcl_matrix");
  return tag;
}

/* Of a handle that the user has freed while deferred nodes need its matrix. */
static SEXP freed_tag(void) {
  static SEXP tag = NULL;
  if (tag == NULL) tag = Rf_install("statcl_matrix_freed");
  return tag;
}

bool r_is_handle(SEXP x) {
  return TYPEOF(x) == EXTPTRSXP;
}

static scl_status fail_stale(const char *argument) {
  scl_fail(SCL_E_STALE,
           "the clMatrix was freed, or restored from a saved session: its data is gone");
  strncpy(scl_fault_edit()->argument, argument, sizeof scl_fault_edit()->argument - 1);
  return SCL_E_STALE;
}

scl_status r_handle_peek(SEXP x, const char *argument, scl_mat **out) {
  scl_mat *m;
  SCL_TRY(r_handle_peek_kept(x, argument, &m));
  if (R_ExternalPtrTag(x) == freed_tag()) return fail_stale(argument);
  *out = m;
  return SCL_OK;
}

scl_status r_handle_peek_kept(SEXP x, const char *argument, scl_mat **out) {
  if (TYPEOF(x) != EXTPTRSXP ||
      (R_ExternalPtrTag(x) != handle_tag() && R_ExternalPtrTag(x) != freed_tag())) {
    return scl_fail_argument(argument, "'%s' is not a clMatrix", argument);
  }
  if (r_is_deferred(x)) SCL_TRY(r_deferred_build(x, argument, true));
  scl_mat *m = R_ExternalPtrAddr(x);
  if (m == NULL) return fail_stale(argument);
  if (m->tag != SCL_MAT_TAG) return scl_fail_argument(argument, "'%s' is not a clMatrix", argument);
  if (m->ctx->lost) {
    return scl_fail(SCL_E_STALE, "the clMatrix lived on a device context that was lost");
  }
  SCL_TRY(scl_context_check(m->ctx));
  *out = m;
  return SCL_OK;
}

scl_status r_handle_get(SEXP x, const char *argument, scl_mat **out) {
  scl_mat *m;
  if (r_is_handle(x) && r_is_deferred(x)) SCL_TRY(r_deferred_build(x, argument, false));
  SCL_TRY(r_handle_peek(x, argument, &m));
  SCL_TRY(scl_mat_force(m));
  *out = m;
  return SCL_OK;
}

static void finalize_handle(SEXP x) {
  scl_mat *m = R_ExternalPtrAddr(x);
  R_ClearExternalPtr(x);
  /* A forked child must not touch the parent's device objects. */
  if (m != NULL && scl_context_check(m->ctx) != SCL_E_FORK) scl_mat_release(m);
}

void r_handle_free(SEXP x) {
  if (r_deferred_uses(x) > 0) {
    R_SetExternalPtrTag(x, freed_tag());
  } else {
    finalize_handle(x);
  }
}

void r_handle_unused(SEXP x) {
  if (R_ExternalPtrTag(x) == freed_tag()) finalize_handle(x);
}

SEXP r_handle_with(SEXP record) {
  return R_MakeExternalPtr(NULL, handle_tag(), record);
}

void r_handle_register(SEXP handle) {
  R_RegisterCFinalizerEx(handle, finalize_handle, FALSE);
}

/* ---- operands ------------------------------------------------------------------------------- */

static const scl_mat *peek(SEXP x) {
  scl_mat *m;
  return r_handle_peek(x, "x", &m) == SCL_OK ? m : NULL;
}

static size_t base_dim(SEXP x, int which) {
  SEXP dim = Rf_getAttrib(x, R_DimSymbol);
  if (TYPEOF(dim) == INTSXP && XLENGTH(dim) == 2) return (size_t)INTEGER(dim)[which];
  return which == 0 ? (size_t)XLENGTH(x) : 1;
}

size_t r_nrow(SEXP x) {
  if (r_is_handle(x)) return peek(x) ? scl_mat_nrow(peek(x)) : 0;
  return x == R_NilValue ? 0 : base_dim(x, 0);
}

size_t r_ncol(SEXP x) {
  if (r_is_handle(x)) return peek(x) ? scl_mat_ncol(peek(x)) : 0;
  return x == R_NilValue ? 0 : base_dim(x, 1);
}

/* A reference to a handle's matrix, if it lives in ctx. */
static scl_status take_handle(scl_context *ctx, SEXP x, const char *argument, scl_mat **out) {
  scl_mat *m;
  SCL_TRY(r_handle_peek(x, argument, &m));
  if (scl_mat_context(m) != ctx) {
    return scl_fail_argument(argument, "'%s' lives on %s, the other operand on %s", argument,
                             scl_context_name(scl_mat_context(m)), scl_context_name(ctx));
  }
  *out = scl_mat_retain(m);
  return SCL_OK;
}

static scl_status require_double(SEXP x, const char *argument) {
  if (TYPEOF(x) == REALSXP) return SCL_OK;
  return scl_fail_argument(argument, "'%s' must be a double matrix, not of type %s", argument,
                           Rf_type2char(TYPEOF(x)));
}

scl_status r_operand(scl_context *ctx, SEXP x, const char *argument, scl_mat **out) {
  if (x == R_NilValue) {
    *out = NULL;
    return SCL_OK;
  }
  if (r_is_handle(x)) {
    scl_mat *m;
    SCL_TRY(take_handle(ctx, x, argument, &m));
    scl_status status = scl_mat_force(m);
    if (status == SCL_OK) {
      *out = m;
    } else {
      scl_mat_release(m);
    }
    return status;
  }
  SCL_TRY(require_double(x, argument));
  size_t m = base_dim(x, 0), n = base_dim(x, 1);
  if (scl_context_is_host(ctx)) {
    /* Operations never write to their inputs, so R's memory serves as it is. */
    return scl_mat_wrap_host((double *)REAL_RO(x), m, n, SCL_GENERAL, out);
  }
  return scl_mat_from_host(ctx, REAL_RO(x), m, n, SCL_GENERAL, out);
}

scl_status r_operand_kept(scl_context *ctx, SEXP x, const char *argument, scl_mat **out) {
  if (r_is_handle(x)) return take_handle(ctx, x, argument, out);
  SCL_TRY(require_double(x, argument));
  return scl_mat_from_host(ctx, REAL_RO(x), base_dim(x, 0), base_dim(x, 1), SCL_GENERAL, out);
}

scl_status r_operands(SEXP where, int n, const SEXP *x, const char *const *names, scl_mat **m) {
  scl_context *ctx = NULL;
  for (int i = 0; i < n; i++) m[i] = NULL;
  for (int i = 0; i < n && ctx == NULL; i++) {
    scl_mat *first;
    if (!r_is_handle(x[i])) continue;
    SCL_TRY(r_handle_peek(x[i], names[i], &first));
    ctx = scl_mat_context(first);
  }
  if (ctx == NULL) SCL_TRY(r_context(Rf_asInteger(where), &ctx));
  for (int i = 0; i < n; i++) SCL_TRY(r_operand(ctx, x[i], names[i], &m[i]));
  return SCL_OK;
}

void r_operands_release(int n, scl_mat **m) {
  for (int i = 0; i < n; i++) scl_mat_release(m[i]);
}

bool r_any_handle(int n, const SEXP *x) {
  for (int i = 0; i < n; i++) {
    if (r_is_handle(x[i])) return true;
  }
  return false;
}

/* ---- results -------------------------------------------------------------------------------- */

SEXP r_result_new(bool resident, size_t m, size_t n) {
  if (!resident) {
    SEXP large = r_large_matrix(m, n);
    return large != NULL ? large : Rf_allocMatrix(REALSXP, (int)m, (int)n);
  }
  SEXP handle = PROTECT(R_MakeExternalPtr(NULL, handle_tag(), R_NilValue));
  R_RegisterCFinalizerEx(handle, finalize_handle, FALSE);
  UNPROTECT(1);
  return handle;
}

scl_status r_result_set(SEXP result, scl_mat **m) {
  if (r_is_handle(result)) {
    R_SetExternalPtrAddr(result, *m);
    *m = NULL;
    return SCL_OK;
  }
  if ((size_t)XLENGTH(result) != scl_mat_nrow(*m) * scl_mat_ncol(*m)) {
    return scl_fail_argument("x", "internal: result of %zu x %zu for a matrix of %zu elements",
                             scl_mat_nrow(*m), scl_mat_ncol(*m), (size_t)XLENGTH(result));
  }
  SCL_TRY(scl_mat_force(*m));
  return scl_mat_to_host(*m, REAL(result));
}

static void finalize_text(SEXP owner) {
  r_text_free(owner);
}

SEXP r_text_owner(char *text) {
  SEXP owner = PROTECT(R_MakeExternalPtr(text, R_NilValue, R_NilValue));
  R_RegisterCFinalizer(owner, finalize_text);
  UNPROTECT(1);
  return owner;
}

void r_text_free(SEXP owner) {
  free(R_ExternalPtrAddr(owner));
  R_ClearExternalPtr(owner);
}

SEXP r_return(scl_status status, SEXP result) {
  if (status != SCL_OK) r_throw();
  PROTECT(result);
  r_announce();
  UNPROTECT(1);
  return result;
}
