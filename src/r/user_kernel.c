/* .Call entries for kernels that a user writes (base/user_kernel.h).
 *
 *   r_kernel_new(source, name, where)   two strings and an index in the device list; a handle
 *   r_kernel_run(kernel, args, global, local)
 *       args: a list of doubles, integers, matrix handles (read), and two integers, rows and
 *       columns, for each matrix that is written: matrices are immutable, so it is a new one, of
 *       undefined contents before. A matrix is two arguments of the kernel, its first element and
 *       its leading dimension. local may be NULL. A list of handles, of the matrices written. */
#include "r/entries.h"
#include "r/pointer.h"

#include <stdlib.h>

#include "base/engine.h"
#include "base/user_kernel.h"

R_POINTER_KIND(user_kernel, "statcl_kernel", scl_kernel)

static scl_status get_kernel(SEXP x, scl_kernel **out) {
  SCL_TRY(r_require_outside());
  if (!r_is_pointer(&user_kernel, x)) {
    return scl_fail_argument("kernel", "'kernel' must be a compiled kernel");
  }
  scl_kernel *kernel = r_pointer_object(x);
  if (kernel == NULL) {
    return scl_fail(SCL_E_STALE, "the kernel was restored from a saved session: create it again");
  }
  SCL_TRY(scl_context_check(scl_kernel_context(kernel)));
  *out = kernel;
  return SCL_OK;
}

SEXP r_kernel_new(SEXP source, SEXP name, SEXP where) {
  SEXP handle = PROTECT(r_pointer_new(&user_kernel, R_NilValue));
  scl_kernel *kernel = NULL;
  scl_context *ctx;
  scl_status status;
  SCL_GO(r_context(Rf_asInteger(where), &ctx));
  SCL_GO(scl_kernel_create(ctx, r_string(source), r_string(name), &kernel));
  r_pointer_set(handle, kernel);
done:
  UNPROTECT(1);
  return r_return(status, handle);
}

/* Up to three sizes. */
static scl_status get_sizes(SEXP x, const char *argument, int *dims, size_t *out) {
  const R_xlen_t n = XLENGTH(x);
  if (TYPEOF(x) != REALSXP || n < 1 || n > 3) {
    return scl_fail_argument(argument, "'%s' must have 1 to 3 elements", argument);
  }
  for (R_xlen_t d = 0; d < n; d++) {
    const double value = REAL_RO(x)[d];
    if (!(value >= 1.0 && value <= 2147483647.0)) {
      return scl_fail_argument(argument, "'%s' must contain only positive integers", argument);
    }
    out[d] = (size_t)value;
  }
  *dims = (int)n;
  return SCL_OK;
}

/* Rows and columns of a matrix that is written. */
static bool is_shape(SEXP x) {
  return TYPEOF(x) == INTSXP && XLENGTH(x) == 2;
}

/* One of R's arguments as one or two of the kernel's, from arg[*count] on; a matrix that is written
 * is made, in *made. */
static scl_status get_argument(scl_context *ctx, SEXP x, scl_kernel_argument *arg, int *count,
                               scl_mat **made) {
  if (TYPEOF(x) == INTSXP && XLENGTH(x) == 1) {
    arg[(*count)++] =
        (scl_kernel_argument){.kind = SCL_ARGUMENT_INTEGER, .integer = Rf_asInteger(x)};
    return SCL_OK;
  }
  if (TYPEOF(x) == REALSXP && XLENGTH(x) == 1) {
    arg[(*count)++] = (scl_kernel_argument){.kind = SCL_ARGUMENT_DOUBLE, .number = Rf_asReal(x)};
    return SCL_OK;
  }
  scl_mat *m;
  if (is_shape(x)) {
    const int *size = INTEGER_RO(x);
    if (size[0] < 1 || size[1] < 1)
      return scl_fail_argument("args", "a matrix argument must have at least one element");
    SCL_TRY(scl_mat_create(ctx, (size_t)size[0], (size_t)size[1], SCL_GENERAL, made));
    m = *made;
  } else {
    SCL_TRY(r_handle_get(x, "args", &m));
  }
  arg[(*count)++] =
      (scl_kernel_argument){.kind = SCL_ARGUMENT_MATRIX, .matrix = m, .writes = is_shape(x)};
  const size_t ld = scl_mat_block(m).ld;
  if (ld > INT32_MAX) return scl_fail_argument("args", "a matrix argument has too many rows");
  arg[(*count)++] = (scl_kernel_argument){.kind = SCL_ARGUMENT_INTEGER, .integer = (int)ld};
  return SCL_OK;
}

SEXP r_kernel_run(SEXP kernel, SEXP args, SEXP global, SEXP local) {
  const int given = TYPEOF(args) == VECSXP ? (int)XLENGTH(args) : 0;
  int written = 0, count = 0, dims, local_dims;
  for (int k = 0; k < given; k++) written += is_shape(VECTOR_ELT(args, k));
  SEXP result = PROTECT(Rf_allocVector(VECSXP, written));
  for (int k = 0; k < written; k++) SET_VECTOR_ELT(result, k, r_result_new(true, 0, 0));
  size_t range[3], group[3];
  scl_kernel *run = NULL;
  scl_status status;
  scl_kernel_argument *arg = calloc(2 * (size_t)given + 1, sizeof *arg);
  scl_mat **made = calloc((size_t)given + 1, sizeof *made);
  if (arg == NULL || made == NULL) SCL_GO(scl_fail_memory(sizeof *arg, 0, "arguments"));
  SCL_GO(get_kernel(kernel, &run));
  SCL_GO(get_sizes(global, "global", &dims, range));
  if (local != R_NilValue) {
    SCL_GO(get_sizes(local, "local", &local_dims, group));
    if (local_dims != dims) {
      SCL_GO(scl_fail_argument("local", "'local' must have the same length as 'global'"));
    }
  }
  for (int k = 0; k < given; k++) {
    SCL_GO(get_argument(scl_kernel_context(run), VECTOR_ELT(args, k), arg, &count, &made[k]));
  }
  SCL_GO(scl_kernel_run(run, count, arg, dims, range, local != R_NilValue ? group : NULL));
  for (int k = 0, r = 0; k < given; k++) {
    if (made[k] != NULL) SCL_GO(r_result_set(VECTOR_ELT(result, r++), &made[k]));
  }
done:
  for (int k = 0; made != NULL && k < given; k++) scl_mat_release(made[k]);
  free(made);
  free(arg);
  UNPROTECT(1);
  return r_return(status, result);
}
