/* .Call entries for kernels that a user writes (scl_kernel.h).
 *
 *   r_kernel_new(source, name, where)   two strings and a place in the device list; a handle
 *   r_kernel_run(kernel, args, writes, global, local)
 *       args: a list of matrix handles, doubles and integers; writes: a logical for each; local may
 *       be NULL. Matrices that are written are copied first. A list of handles, one for each of
 * them r_kernel_ld(x)                      leading dimension of a matrix */
#include "r_entries.h"
#include "r_glue.h"

#include <stdlib.h>

#include "scl_engine.h"
#include "scl_kernel.h"
#include "scl_structure.h"

static SEXP kernel_tag(void) {
  return Rf_install("statcl_kernel");
}

static void finalize_kernel(SEXP x) {
  scl_kernel *kernel = R_ExternalPtrAddr(x);
  R_ClearExternalPtr(x);
  if (kernel == NULL) return;
  /* A forked child must not touch the parent's device objects. */
  if (scl_context_check(scl_kernel_context(kernel)) != SCL_E_FORK) scl_kernel_release(kernel);
}

static scl_status get_kernel(SEXP x, scl_kernel **out) {
  if (TYPEOF(x) != EXTPTRSXP || R_ExternalPtrTag(x) != kernel_tag()) {
    return scl_fail_argument("kernel", "'kernel' is not made by cl_kernel()");
  }
  scl_kernel *kernel = R_ExternalPtrAddr(x);
  if (kernel == NULL) {
    return scl_fail(SCL_E_STALE, "the kernel was restored from a saved session: make it again");
  }
  SCL_TRY(scl_context_check(scl_kernel_context(kernel)));
  *out = kernel;
  return SCL_OK;
}

SEXP r_kernel_new(SEXP source, SEXP name, SEXP where) {
  SEXP handle = PROTECT(R_MakeExternalPtr(NULL, kernel_tag(), R_NilValue));
  R_RegisterCFinalizerEx(handle, finalize_kernel, FALSE);
  scl_kernel *kernel = NULL;
  scl_context *ctx;
  scl_status status;
  SCL_GO(r_context(Rf_asInteger(where), &ctx));
  SCL_GO(scl_kernel_create(ctx, CHAR(STRING_ELT(source, 0)), CHAR(STRING_ELT(name, 0)), &kernel));
  R_SetExternalPtrAddr(handle, kernel);
done:
  UNPROTECT(1);
  return r_return(status, handle);
}

/* Up to three sizes. */
static scl_status get_sizes(SEXP x, const char *argument, int *dims, size_t *out) {
  const R_xlen_t n = XLENGTH(x);
  if (TYPEOF(x) != REALSXP || n < 1 || n > 3) {
    return scl_fail_argument(argument, "'%s' must be 1 to 3 numbers", argument);
  }
  for (R_xlen_t d = 0; d < n; d++) {
    const double value = REAL_RO(x)[d];
    if (!(value >= 1.0 && value <= 2147483647.0)) {
      return scl_fail_argument(argument, "'%s' must be whole numbers from 1 on", argument);
    }
    out[d] = (size_t)value;
  }
  *dims = (int)n;
  return SCL_OK;
}

/* One argument; a matrix that is written becomes a copy, kept in *copy. */
static scl_status get_argument(SEXP x, bool writes, scl_kernel_argument *arg, scl_mat **copy) {
  if (r_is_handle(x)) {
    scl_mat *m;
    SCL_TRY(r_handle_get(x, "args", &m));
    if (writes) {
      SCL_TRY(scl_copy_as(SCL_COPY, m, copy));
      m = *copy;
      m->view = SCL_GENERAL; /* whatever it is afterwards */
    }
    *arg = (scl_kernel_argument){.kind = SCL_ARGUMENT_MATRIX, .matrix = m, .writes = writes};
  } else if (TYPEOF(x) == INTSXP && XLENGTH(x) == 1) {
    *arg = (scl_kernel_argument){.kind = SCL_ARGUMENT_INTEGER, .integer = INTEGER_RO(x)[0]};
  } else if (TYPEOF(x) == REALSXP && XLENGTH(x) == 1) {
    *arg = (scl_kernel_argument){.kind = SCL_ARGUMENT_DOUBLE, .number = REAL_RO(x)[0]};
  } else {
    return scl_fail_argument("args", "arguments are clMatrix objects, numbers and integers");
  }
  return SCL_OK;
}

SEXP r_kernel_run(SEXP kernel, SEXP args, SEXP writes, SEXP global, SEXP local) {
  const int count = TYPEOF(args) == VECSXP ? (int)XLENGTH(args) : 0;
  int written = 0, dims, local_dims;
  const bool marked = TYPEOF(writes) == LGLSXP && XLENGTH(writes) == count;
  for (int k = 0; marked && k < count; k++) written += LOGICAL_RO(writes)[k] == TRUE;
  SEXP result = PROTECT(Rf_allocVector(VECSXP, written));
  for (int k = 0; k < written; k++) SET_VECTOR_ELT(result, k, r_result_new(true, 0, 0));
  size_t range[3], group[3];
  scl_kernel *run;
  scl_status status;
  scl_kernel_argument *arg = calloc((size_t)count + 1, sizeof *arg);
  scl_mat **copy = calloc((size_t)count + 1, sizeof *copy);
  if (arg == NULL || copy == NULL) SCL_GO(scl_fail_memory(sizeof *arg, 0, "arguments"));
  if (!marked) SCL_GO(scl_fail_argument("writes", "'writes' must be a logical for each argument"));
  SCL_GO(get_kernel(kernel, &run));
  SCL_GO(get_sizes(global, "global", &dims, range));
  if (local != R_NilValue) {
    SCL_GO(get_sizes(local, "local", &local_dims, group));
    if (local_dims != dims) {
      SCL_GO(scl_fail_argument("local", "'local' must be as long as 'global'"));
    }
  }
  for (int k = 0; k < count; k++) {
    SCL_GO(get_argument(VECTOR_ELT(args, k), LOGICAL_RO(writes)[k] == TRUE, &arg[k], &copy[k]));
    if (LOGICAL_RO(writes)[k] == TRUE && copy[k] == NULL) {
      SCL_GO(
          scl_fail_argument("writes", "argument %d is no clMatrix: it cannot be written", k + 1));
    }
  }
  SCL_GO(scl_kernel_run(run, count, arg, dims, range, local != R_NilValue ? group : NULL));
  for (int k = 0, r = 0; k < count; k++) {
    if (copy[k] != NULL) SCL_GO(r_result_set(VECTOR_ELT(result, r++), &copy[k]));
  }
done:
  for (int k = 0; copy != NULL && k < count; k++) scl_mat_release(copy[k]);
  free(copy);
  free(arg);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_kernel_ld(SEXP x) {
  scl_mat *m = NULL;
  scl_status status = r_handle_peek(x, "x", &m);
  const double ld = status == SCL_OK
                        ? (double)scl_mat_ld(scl_mat_context(m), scl_mat_nrow(m), scl_mat_ncol(m))
                        : 0;
  if (status != SCL_OK) return r_return(status, R_NilValue);
  return Rf_ScalarReal(ld);
}
