/* Handles: matrices of the core as R holds them.
 *
 * A handle is an external pointer, the slot of a clMatrix. Its protected field holds a keeper
 * (r/serialize.c, for saving by value), and the keeper a node (r/node.c), which has the matrix.
 * Deferred operations refer to nodes and not to handles: when the user frees or drops a handle, its
 * node lives as long as a deferred operation needs it, and R's collector knows when that is over.
 */
#include "r/glue.h"
#include "r/node.h"

#include <string.h>

/* Symbols live as long as R. */
static SEXP handle_tag, given_up_tag;

void r_handle_init(void) {
  handle_tag = Rf_install("statcl_matrix");
  given_up_tag = Rf_install("statcl_matrix_freed"); /* by R code inside the core: the node stays */
}

/* ---- handles -------------------------------------------------------------------------------- */

bool r_is_handle(SEXP x) {
  return TYPEOF(x) == EXTPTRSXP;
}

SEXP r_handle_of(SEXP node) {
  SEXP keeper = PROTECT(r_keeper_new(node));
  SEXP handle = R_MakeExternalPtr(NULL, handle_tag, keeper);
  UNPROTECT(1);
  return handle;
}

SEXP r_handle_new(void) {
  SEXP node = PROTECT(r_node_new()), handle = r_handle_of(node);
  UNPROTECT(1);
  return handle;
}

SEXP r_handle_node(SEXP handle) {
  if (!r_is_handle(handle) || R_ExternalPtrTag(handle) != handle_tag) return R_NilValue;
  SEXP node = r_keeper_node(R_ExternalPtrProtected(handle));
  return r_is_node(node) ? node : R_NilValue;
}

/* The node of a handle, which is restored first if it was saved with its values. */
static scl_status find_node(SEXP handle, const char *argument, SEXP *out) {
  if (r_is_handle(handle) && R_ExternalPtrTag(handle) == given_up_tag)
    return r_fail_stale(argument);
  if (!r_is_handle(handle) || R_ExternalPtrTag(handle) != handle_tag) {
    return scl_fail_argument(argument, "'%s' is not a clMatrix", argument);
  }
  SCL_TRY(r_keeper_restore(R_ExternalPtrProtected(handle), argument));
  *out = r_handle_node(handle);
  return *out == R_NilValue ? r_fail_stale(argument) : SCL_OK;
}

static scl_status peek(SEXP handle, const char *argument, bool keep, scl_mat **out) {
  SEXP node;
  SCL_TRY(r_require_outside());
  SCL_TRY(find_node(handle, argument, &node));
  return r_node_peek(node, argument, keep, out);
}

scl_status r_handle_peek(SEXP handle, const char *argument, scl_mat **out) {
  return peek(handle, argument, true, out);
}

scl_status r_handle_peek_briefly(SEXP handle, const char *argument, scl_mat **out) {
  return peek(handle, argument, false, out);
}

scl_status r_handle_get(SEXP handle, const char *argument, scl_mat **out) {
  SEXP node;
  SCL_TRY(r_require_outside());
  SCL_TRY(find_node(handle, argument, &node));
  return r_node_get(node, argument, out);
}

scl_status r_handle_context(SEXP handle, const char *argument, scl_context **out) {
  SEXP node;
  SCL_TRY(find_node(handle, argument, &node));
  return r_node_context(node, argument, out);
}

/* ---- shapes --------------------------------------------------------------------------------- */

/* Of base R data; a vector is a column. Objects from a file may have any attributes. */
static scl_status base_shape(SEXP x, const char *argument, size_t *m, size_t *n) {
  SEXP dim = Rf_getAttrib(x, R_DimSymbol);
  size_t rows = (size_t)Rf_xlength(x), columns = 1;
  if (TYPEOF(dim) == INTSXP && XLENGTH(dim) == 2) {
    const int *d = INTEGER_RO(dim);
    if (d[0] < 0 || d[1] < 0 || (double)d[0] * d[1] != (double)rows) {
      return scl_fail_argument(argument, "the dimensions of '%s' do not match its number of values",
                               argument);
    }
    rows = (size_t)d[0];
    columns = (size_t)d[1];
  }
  *m = rows;
  *n = columns;
  return SCL_OK;
}

scl_status r_shape(SEXP x, const char *argument, size_t *m, size_t *n) {
  if (!r_is_handle(x)) return base_shape(x, argument, m, n);
  scl_context *ctx;
  SCL_TRY(r_handle_context(x, argument, &ctx));
  const scl_shape shape = r_node_shape(r_handle_node(x));
  *m = shape.nrow;
  *n = shape.ncol;
  return SCL_OK;
}

size_t r_nrow(SEXP x, const char *argument) {
  size_t m = 0, n = 0;
  if (x != R_NilValue && r_shape(x, argument, &m, &n) != SCL_OK) r_throw();
  return m;
}

size_t r_ncol(SEXP x, const char *argument) {
  size_t m = 0, n = 0;
  if (x != R_NilValue && r_shape(x, argument, &m, &n) != SCL_OK) r_throw();
  return n;
}

/* ---- freeing -------------------------------------------------------------------------------- */

scl_status r_handle_free(SEXP handle) {
  SEXP node;
  scl_context *ctx;
  SCL_TRY(find_node(handle, "x", &node));
  SCL_TRY(r_handle_context(handle, "x", &ctx));
  if (scl_hooks_run()) { /* the computation may need this matrix: it is released with the handle */
    R_SetExternalPtrTag(handle, given_up_tag);
    return SCL_OK;
  }
  R_SetExternalPtrProtected(handle, R_NilValue);
  r_node_free(node);
  return SCL_OK;
}
