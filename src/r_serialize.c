/* Saving matrices by their values.
 *
 * R writes an external pointer without its address, but with its protected field. There each handle
 * has a keeper, an ALTREP object of this file, which R asks for its state when the handle is
 * written: a copy of the values. What is read back is a keeper with these; the first use of the
 * handle makes a matrix of them, on the device in use then (r_handle_restore()).
 *
 * The first data field of a keeper is its handle, or NULL as long as the handle is not restored;
 * the second the note of the handle (r_handle_note()), or what was read: a double matrix with the
 * attribute "view", or a string that says why there is none. */
#include "r_entries.h"
#include "r_glue.h"

#include <R_ext/Altrep.h>
#include <R_ext/Rdynload.h>
#include <stdio.h>
#include <string.h>

static R_altrep_class_t keeper_class;

static bool is_keeper(SEXP x) {
  return ALTREP(x) && R_altrep_inherits(x, keeper_class);
}

/* ---- notes ---------------------------------------------------------------------------------- */

SEXP r_handle_keeper(SEXP handle, SEXP note) {
  return R_new_altrep(keeper_class, handle, note);
}

/* The keeper of a handle in use, else NULL. */
static SEXP keeper_of(SEXP handle) {
  SEXP keeper = R_ExternalPtrProtected(handle);
  return is_keeper(keeper) && R_altrep_data1(keeper) == handle ? keeper : NULL;
}

SEXP r_handle_note(SEXP handle) {
  SEXP keeper = keeper_of(handle);
  return keeper != NULL ? R_altrep_data2(keeper) : R_NilValue;
}

void r_handle_set_note(SEXP handle, SEXP note) {
  SEXP keeper = keeper_of(handle);
  if (keeper != NULL) R_set_altrep_data2(keeper, note);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Values and view of a handle's matrix; NULL (of R) if it was freed. In a forked process, which
 * cannot read the device of its parent, that is what the string says. Other faults are raised. */
static SEXP keeper_state(SEXP keeper) {
  SEXP handle = R_altrep_data1(keeper);
  if (handle == R_NilValue) return R_altrep_data2(keeper);
  scl_mat *m = NULL;
  scl_status status = r_handle_get(handle, "x", &m);
  if (status == SCL_E_STALE) return R_NilValue;
  if (status == SCL_E_FORK) return Rf_mkString(scl_fault_last()->message);
  if (status != SCL_OK) return r_return(status, R_NilValue);
  const int view = (int)scl_mat_view(m);
  SEXP values = PROTECT(r_matrix_to_host(handle));
  SEXP code = PROTECT(Rf_ScalarInteger(view));
  Rf_setAttrib(values, Rf_install("view"), code);
  UNPROTECT(2);
  return values;
}

static SEXP keeper_read(SEXP class, SEXP state) {
  (void)class;
  const bool values = TYPEOF(state) == REALSXP || TYPEOF(state) == STRSXP;
  return R_new_altrep(keeper_class, R_NilValue, values ? state : R_NilValue);
}

/* To all else a keeper is an empty vector. */
static R_xlen_t keeper_length(SEXP keeper) {
  (void)keeper;
  return 0;
}

static void *keeper_data(SEXP keeper, Rboolean writable) {
  static double none;
  (void)keeper;
  (void)writable;
  return &none;
}

void r_serialize_init(DllInfo *dll) {
  keeper_class = R_make_altreal_class("matrix", "statcl", dll);
  R_set_altrep_Serialized_state_method(keeper_class, keeper_state);
  R_set_altrep_Unserialize_method(keeper_class, keeper_read);
  R_set_altrep_Length_method(keeper_class, keeper_length);
  R_set_altvec_Dataptr_method(keeper_class, keeper_data);
}

/* ---- restoring ------------------------------------------------------------------------------ */

/* Rows, columns and view of what was read, which may be anything. */
static bool read_shape(SEXP values, size_t *m, size_t *n, scl_view *view) {
  SEXP dim = Rf_getAttrib(values, R_DimSymbol);
  SEXP kind = Rf_getAttrib(values, Rf_install("view"));
  if (TYPEOF(values) != REALSXP || TYPEOF(dim) != INTSXP || XLENGTH(dim) != 2) return false;
  if (TYPEOF(kind) != INTSXP || XLENGTH(kind) != 1) return false;
  const int rows = INTEGER_RO(dim)[0], columns = INTEGER_RO(dim)[1], code = INTEGER_RO(kind)[0];
  if (rows < 0 || columns < 0 || XLENGTH(values) != (R_xlen_t)rows * columns) return false;
  if (code < 0 || code > (int)SCL_SYMMETRIC || (code != 0 && rows != columns)) return false;
  *m = (size_t)rows;
  *n = (size_t)columns;
  *view = (scl_view)code;
  return true;
}

/* What R has to do with a handle that is restored; it may fail, and must not jump. */
typedef struct {
  SEXP handle;
  int where;
} restoring;

static void prepare(void *data) {
  restoring *r = data;
  SEXP package = PROTECT(Rf_mkString("statcl"));
  SEXP space = PROTECT(R_FindNamespace(package));
  SEXP call = PROTECT(Rf_lang1(Rf_install("where_resident")));
  int failed = 0;
  SEXP where = R_tryEvalSilent(call, space, &failed);
  r->where = failed ? -1 : Rf_asInteger(where);
  r_handle_register(r->handle);
  UNPROTECT(3);
}

scl_status r_handle_restore(SEXP handle, const char *argument) {
  SEXP keeper = R_ExternalPtrProtected(handle);
  size_t m = 0, n = 0;
  scl_view view = SCL_GENERAL;
  scl_context *ctx = NULL;
  scl_mat *out = NULL;
  if (!is_keeper(keeper) || R_altrep_data1(keeper) != R_NilValue) return SCL_OK;
  SEXP values = R_altrep_data2(keeper);
  if (TYPEOF(values) == STRSXP && XLENGTH(values) == 1) {
    scl_fail(SCL_E_STALE, "the clMatrix was saved without its data: %s",
             CHAR(STRING_ELT(values, 0)));
    strncpy(scl_fault_edit()->argument, argument, sizeof scl_fault_edit()->argument - 1);
    return SCL_E_STALE;
  }
  if (!read_shape(values, &m, &n, &view)) return SCL_OK;
  restoring r = {handle, -1};
  if (!R_ToplevelExec(prepare, &r)) return scl_fail_memory(m * n * sizeof(double), 0, "a matrix");
  SCL_TRY(r_context(r.where, &ctx));
  SCL_TRY(scl_mat_from_host(ctx, REAL_RO(values), m, n, view, &out));
  R_SetExternalPtrAddr(handle, out);
  R_set_altrep_data1(keeper, handle);
  R_set_altrep_data2(keeper, R_NilValue);
  return SCL_OK;
}
