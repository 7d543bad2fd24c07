#include "r/glue.h"

#include <R_ext/Error.h>
#include <stdlib.h>

#include "base/device.h"
#include "base/engine.h"
#include "graph/expr.h"

#define MAX_DEVICES 64

static scl_context *device_context[MAX_DEVICES];

/* ---- contexts ------------------------------------------------------------------------------- */

scl_status r_context(int where, scl_context **out) {
  SCL_TRY(r_require_outside());
  if (where < 0) {
    *out = scl_context_host();
    return SCL_OK;
  }
  if (where >= MAX_DEVICES)
    return scl_fail(SCL_E_NO_DEVICE, "there is no device number %d", where + 1);
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
    if (r_is_handle(operands[i])) return r_handle_context(operands[i], "x", out);
  }
  return r_context(Rf_asInteger(where), out);
}

void r_contexts_release(void) {
  for (int i = 0; i < MAX_DEVICES; i++) {
    scl_context_release(device_context[i]);
    device_context[i] = NULL;
  }
}

/* ---- operands ------------------------------------------------------------------------------- */

/* A reference to a handle's matrix, if it lives in ctx. */
static scl_status take_handle(scl_context *ctx, SEXP x, const char *argument, scl_mat **out) {
  scl_mat *m;
  SCL_TRY(r_handle_peek(x, argument, &m));
  if (scl_mat_context(m) != ctx) {
    return scl_fail_argument(argument, "'%s' is on %s, but the other operand is on %s", argument,
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
  size_t m, n;
  SCL_TRY(require_double(x, argument));
  SCL_TRY(r_shape(x, argument, &m, &n));
  if (ctx->engine->buffer_wrap != NULL) {
    /* Operations never write to their inputs, so R's memory serves as it is. */
    return scl_mat_wrap(ctx, (double *)REAL_RO(x), m, n, SCL_GENERAL, out);
  }
  return scl_mat_from_host(ctx, REAL_RO(x), m, n, SCL_GENERAL, out);
}

scl_status r_operand_kept(scl_context *ctx, SEXP x, const char *argument, scl_mat **out) {
  if (r_is_handle(x)) return take_handle(ctx, x, argument, out);
  size_t m, n;
  SCL_TRY(require_double(x, argument));
  SCL_TRY(r_shape(x, argument, &m, &n));
  return scl_mat_from_host(ctx, REAL_RO(x), m, n, SCL_GENERAL, out);
}

scl_status r_operands(SEXP where, int n, const SEXP *x, const char *const *names, scl_mat **m) {
  scl_context *ctx = NULL;
  for (int i = 0; i < n; i++) m[i] = NULL;
  for (int i = 0; i < n && ctx == NULL; i++) {
    if (r_is_handle(x[i])) SCL_TRY(r_handle_context(x[i], names[i], &ctx));
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
  if (resident) return r_handle_new();
  SEXP large = r_large_matrix(m, n);
  return large != NULL ? large : Rf_allocMatrix(REALSXP, (int)m, (int)n);
}

scl_status r_require_room(SEXP result, size_t numbers) {
  if (TYPEOF(result) == REALSXP && (size_t)XLENGTH(result) == numbers) return SCL_OK;
  return scl_fail_argument("x", "internal: the result has room for %zu numbers, not for %zu",
                           (size_t)Rf_xlength(result), numbers);
}

scl_status r_values(SEXP result, scl_mat *m) {
  SCL_TRY(r_require_room(result, scl_mat_nrow(m) * scl_mat_ncol(m)));
  SCL_TRY(scl_mat_force(m));
  return scl_mat_to_host(m, REAL(result));
}

scl_status r_result_set(SEXP result, scl_mat **m) {
  if (!r_is_handle(result)) return r_values(result, *m);
  r_node_set(r_handle_node(result), *m);
  *m = NULL;
  return SCL_OK;
}

const char *r_string(SEXP x) {
  return TYPEOF(x) == STRSXP && XLENGTH(x) > 0 ? CHAR(STRING_ELT(x, 0)) : "";
}

static void finalize_text(SEXP owner) {
  r_finalized();
  r_text_free(owner);
}

SEXP r_text_owner(char *text) {
  SEXP owner = PROTECT(R_MakeExternalPtr(text, R_NilValue, R_NilValue));
  r_finalizer(owner, finalize_text);
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
