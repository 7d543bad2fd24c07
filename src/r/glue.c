#include "r/node.h"

#include <R_ext/Error.h>
#include <stdlib.h>

#include "base/device.h"
#include "base/engine.h"
#include "graph/expr.h"

scl_status r_context_pick(SEXP where, int n, const SEXP *operands, scl_context **out) {
  for (int i = 0; i < n; i++) {
    if (r_is_handle(operands[i])) return r_handle_context(operands[i], "x", out);
  }
  return r_context(Rf_asInteger(where), out);
}

/* ---- operands ------------------------------------------------------------------------------- */

/* A reference to a handle's matrix, if it lives in ctx. */
static scl_status take_handle(scl_context *ctx, SEXP x, const char *argument, scl_mat **out) {
  scl_mat *m;
  SCL_TRY(r_handle_peek(x, argument, &m));
  if (scl_mat_context(m) != ctx) {
    return scl_fail_argument(argument, "'%s' is on %s, the other operand on %s", argument,
                             scl_context_label(scl_mat_context(m)), scl_context_label(ctx));
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
    /* Operations never write to their inputs, so R's memory is used directly. */
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
  return resident ? r_handle_new() : r_values_new(m, n);
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
