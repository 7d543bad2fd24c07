/* Handles: matrices of the core as R holds them.
 *
 * A handle is an external pointer, the slot of a clMatrix. Its protected field holds a keeper
 * (r/serialize.c, for saving by value) and that a node, a second external pointer, which has the
 * matrix. What is deferred (r/deferred.c) refers to nodes and not to handles: when the user frees
 * or drops a handle, its node lives as long as something stands on it, and R's collector knows
 * when that is over.
 *
 * The address of a node is its matrix, or NULL when there is none (any more), or that of
 * `deferred_mark`. R writes no address to a file, so what comes from one has neither a matrix nor a
 * record, whatever its other fields say. */
#include "r/entries.h"
#include "r/glue.h"

#include <string.h>

#include "graph/expr.h"

static char deferred_mark;

/* Symbols live as long as R. */
static SEXP handle_tag, given_up_tag, node_tag, freed_tag;

void r_handle_init(void) {
  handle_tag = Rf_install("statcl_matrix");
  given_up_tag = Rf_install("statcl_matrix_freed"); /* by R code inside the core: the node stays */
  node_tag = Rf_install("statcl_node");
  freed_tag = Rf_install("statcl_node_freed"); /* of a node whose handle the user has freed */
}

/* ---- finalisers ----------------------------------------------------------------------------- */

static size_t finalizers; /* registered, and not run yet */

void r_finalizer(SEXP pointer, void (*finalize)(SEXP)) {
  R_RegisterCFinalizerEx(pointer, finalize, FALSE);
  finalizers++;
}

void r_finalized(void) {
  finalizers--;
}

SEXP r_in_use(void) {
  return Rf_ScalarLogical(finalizers > 0);
}

/* ---- R code inside the core ----------------------------------------------------------------- */

scl_status r_require_outside(void) {
  if (!scl_hooks_run()) return SCL_OK;
  return scl_fail(SCL_E_ARGUMENT, "a computation is running: finalizers and event handlers may "
                                  "free matrices meanwhile, but not use them");
}

/* ---- nodes ---------------------------------------------------------------------------------- */

bool r_is_handle(SEXP x) {
  return TYPEOF(x) == EXTPTRSXP;
}

bool r_is_node(SEXP x) {
  return TYPEOF(x) == EXTPTRSXP &&
         (R_ExternalPtrTag(x) == node_tag || R_ExternalPtrTag(x) == freed_tag);
}

bool r_node_waits(SEXP node) {
  return R_ExternalPtrAddr(node) == &deferred_mark;
}

scl_mat *r_node_matrix(SEXP node) {
  return r_node_waits(node) ? NULL : R_ExternalPtrAddr(node);
}

void r_node_set(SEXP node, scl_mat *m) {
  R_SetExternalPtrAddr(node, m);
}

void r_node_defer(SEXP node) {
  R_SetExternalPtrAddr(node, &deferred_mark);
}

static void release(SEXP node) {
  scl_mat *m = r_node_matrix(node);
  R_ClearExternalPtr(node);
  /* A forked child must not touch the parent's device objects. */
  if (m != NULL && scl_context_check(m->ctx) != SCL_E_FORK) scl_mat_release(m);
}

static void finalize_node(SEXP node) {
  r_finalized();
  if (!r_node_waits(node)) release(node);
}

void r_node_register(SEXP node) {
  r_finalizer(node, finalize_node);
}

void r_node_unused(SEXP node) {
  if (R_ExternalPtrTag(node) != freed_tag) return;
  if (r_node_waits(node)) {
    r_deferred_drop(node);
  } else {
    release(node);
  }
}

/* ---- handles -------------------------------------------------------------------------------- */

static SEXP node_pointer(SEXP record) {
  return R_MakeExternalPtr(NULL, node_tag, record);
}

SEXP r_node_new(void) {
  SEXP node = PROTECT(node_pointer(R_NilValue));
  r_node_register(node);
  UNPROTECT(1);
  return node;
}

SEXP r_handle_with(SEXP keeper) {
  return R_MakeExternalPtr(NULL, handle_tag, keeper);
}

static SEXP handle_of(SEXP node) {
  SEXP keeper = PROTECT(r_keeper_new(node));
  SEXP handle = r_handle_with(keeper);
  UNPROTECT(1);
  return handle;
}

SEXP r_handle_deferred(SEXP record) {
  SEXP node = PROTECT(node_pointer(record));
  r_node_defer(node);
  SEXP handle = handle_of(node);
  UNPROTECT(1);
  return handle;
}

SEXP r_handle_new(void) {
  SEXP node = PROTECT(r_node_new());
  SEXP handle = handle_of(node);
  UNPROTECT(1);
  return handle;
}

SEXP r_handle_node(SEXP handle) {
  if (!r_is_handle(handle) || R_ExternalPtrTag(handle) != handle_tag) return R_NilValue;
  SEXP node = r_keeper_node(R_ExternalPtrProtected(handle));
  return r_is_node(node) ? node : R_NilValue;
}

static scl_status fail_stale(const char *argument) {
  scl_fail(SCL_E_STALE, "the clMatrix has no data: it was freed, or restored from a file that does "
                        "not contain its data");
  strncpy(scl_fault_edit()->argument, argument, sizeof scl_fault_edit()->argument - 1);
  return SCL_E_STALE;
}

scl_status r_node_peek(SEXP node, const char *argument, scl_mat **out) {
  scl_mat *m = r_node_matrix(node);
  if (m == NULL) return fail_stale(argument);
  if (m->tag != SCL_MAT_TAG) return scl_fail_argument(argument, "'%s' is not a clMatrix", argument);
  if (m->ctx->lost) {
    return scl_fail(SCL_E_STALE, "the clMatrix was on a device that was lost");
  }
  SCL_TRY(scl_context_check(m->ctx));
  *out = m;
  return SCL_OK;
}

/* The node of a handle that has one, or gets one as it was saved with its values. */
static scl_status find_node(SEXP handle, const char *argument, SEXP *out) {
  if (r_is_handle(handle) && R_ExternalPtrTag(handle) == given_up_tag) return fail_stale(argument);
  if (!r_is_handle(handle) || R_ExternalPtrTag(handle) != handle_tag) {
    return scl_fail_argument(argument, "'%s' is not a clMatrix", argument);
  }
  SCL_TRY(r_keeper_restore(R_ExternalPtrProtected(handle), argument));
  *out = r_handle_node(handle);
  return *out == R_NilValue ? fail_stale(argument) : SCL_OK;
}

static scl_status peek(SEXP handle, const char *argument, bool keep, scl_mat **out) {
  SEXP node;
  SCL_TRY(r_require_outside());
  SCL_TRY(find_node(handle, argument, &node));
  if (r_node_waits(node)) SCL_TRY(r_deferred_build(node, argument, keep));
  return r_node_peek(node, argument, out);
}

scl_status r_handle_peek(SEXP handle, const char *argument, scl_mat **out) {
  return peek(handle, argument, true, out);
}

scl_status r_handle_peek_briefly(SEXP handle, const char *argument, scl_mat **out) {
  return peek(handle, argument, false, out);
}

scl_status r_handle_get(SEXP handle, const char *argument, scl_mat **out) {
  scl_mat *m;
  SCL_TRY(peek(handle, argument, false, &m));
  SCL_TRY(scl_mat_force(m));
  *out = m;
  return SCL_OK;
}

scl_status r_handle_context(SEXP handle, const char *argument, scl_context **out) {
  SEXP node;
  scl_mat *m;
  SCL_TRY(find_node(handle, argument, &node));
  SCL_TRY(r_node_peek(r_deferred_leaf(node), argument, &m));
  *out = scl_mat_context(m);
  return SCL_OK;
}

/* ---- shapes --------------------------------------------------------------------------------- */

void r_node_shape(SEXP node, size_t *m, size_t *n) {
  if (r_node_waits(node)) {
    r_deferred_shape(node, m, n);
  } else {
    *m = scl_mat_nrow(r_node_matrix(node));
    *n = scl_mat_ncol(r_node_matrix(node));
  }
}

/* Of base R data; a vector is a column. Attributes of what comes from a file may be anything. */
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
  r_node_shape(r_handle_node(x), m, n);
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
  if (scl_hooks_run()) { /* the computation may be that of this matrix: it goes with the handle */
    R_SetExternalPtrTag(handle, given_up_tag);
    return SCL_OK;
  }
  R_SetExternalPtrProtected(handle, R_NilValue);
  R_SetExternalPtrTag(node, freed_tag);
  if (r_deferred_uses(node) == 0) r_node_unused(node);
  return SCL_OK;
}
