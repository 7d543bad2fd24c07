/* .Call entries for sparse matrices on an engine (ops/compressed.h). Products and facts are NULL
 * for a handle that has to be made again: it was read from a file or made before a fork, or its
 * device is lost.
 *
 *   r_compressed_new(dim, start, row, x, where): from compressed columns, as in a dgCMatrix
 *   r_compressed_multiply(handle, transposed, b): a matrix handle; b: a handle, or numbers
 *   r_compressed_gram(handle, transposed, w): likewise; w: weights, or NULL
 *   r_compressed_info(handle): list(device, host, bytes, blocks) */
#include "r/entries.h"
#include "r/pointer.h"

#include "ops/compressed.h"

R_POINTER_KIND(compressed, "statcl_compressed", scl_compressed)

SEXP r_compressed_new(SEXP dim, SEXP start, SEXP row, SEXP x, SEXP where) {
  SEXP handle = PROTECT(r_pointer_new(&compressed, x));
  scl_status status;
  scl_context *ctx = NULL;
  scl_compressed *a = NULL;
  SCL_GO(r_require_outside());
  if (TYPEOF(dim) != INTSXP || XLENGTH(dim) != 2 || TYPEOF(start) != INTSXP ||
      XLENGTH(start) != (R_xlen_t)INTEGER_RO(dim)[1] + 1 || TYPEOF(row) != INTSXP ||
      !r_is_double(x, (size_t)XLENGTH(row)) ||
      XLENGTH(row) != INTEGER_RO(start)[XLENGTH(start) - 1]) {
    SCL_GO(scl_fail_argument("x", "'x' is not a valid sparse matrix: its slots do not fit"));
  }
  SCL_GO(r_context(Rf_asInteger(where), &ctx));
  SCL_GO(scl_compressed_create(ctx, (size_t)INTEGER_RO(dim)[0], (size_t)INTEGER_RO(dim)[1],
                               INTEGER_RO(start), INTEGER_RO(row), REAL_RO(x), &a));
  r_pointer_set(handle, a);
done:
  UNPROTECT(1);
  return r_return(status, handle);
}

typedef scl_status (*product)(const scl_compressed *a, bool transposed, scl_mat *b, scl_mat **out);

static SEXP run(SEXP handle, SEXP transposed, SEXP b, const char *name, product multiply) {
  const scl_compressed *a = r_pointer_usable(&compressed, handle);
  if (a == NULL) return R_NilValue;
  SEXP result = PROTECT(r_handle_new());
  scl_mat *in = NULL, *out = NULL;
  scl_status status;
  SCL_GO(r_operand(scl_compressed_context(a), b, name, &in));
  SCL_GO(multiply(a, Rf_asLogical(transposed) == TRUE, in, &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(in);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_compressed_multiply(SEXP handle, SEXP transposed, SEXP b) {
  return run(handle, transposed, b, "y", scl_compressed_multiply);
}

SEXP r_compressed_gram(SEXP handle, SEXP transposed, SEXP w) {
  return run(handle, transposed, w, "weights", scl_compressed_gram);
}

SEXP r_compressed_info(SEXP handle) {
  const scl_compressed *a = r_pointer_usable(&compressed, handle);
  if (a == NULL) return R_NilValue;
  const scl_context *ctx = scl_compressed_context(a);
  return r_info_new(ctx, scl_context_label(ctx), scl_compressed_bytes(a), 0);
}
