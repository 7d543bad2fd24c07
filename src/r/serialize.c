/* Saving matrices by their values.
 *
 * R saves an external pointer without its address, but with its protected field. That of a handle
 * is a keeper, an ALTREP object of this file. R asks it for its state when the handle is saved: a
 * copy of the values. Reading gives a keeper with these values, and the first use of the handle
 * makes a matrix of them, on the device then in use (r_keeper_restore()).
 *
 * The first data field of a keeper is the node of its handle (r/handle.c), or NULL until the handle
 * is restored; the second contains what was read from the file: a double matrix with the attribute
 * "view", or a string with the reason why there is none. */
#include "r/glue.h"
#include "r/node.h"

#include <R_ext/Altrep.h>
#include <R_ext/Rdynload.h>
#include <stdio.h>
#include <string.h>

static R_altrep_class_t keeper_class;

static bool is_keeper(SEXP x) {
  return R_altrep_inherits(x, keeper_class);
}

SEXP r_keeper_new(SEXP node) {
  return R_new_altrep(keeper_class, node, R_NilValue);
}

SEXP r_keeper_node(SEXP keeper) {
  return is_keeper(keeper) ? R_altrep_data1(keeper) : R_NilValue;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Values and view of a matrix; NULL (of R) if it was freed. A string with the reason in a forked
 * process, which cannot read the device of its parent. Other errors are raised. */
static SEXP keeper_state(SEXP keeper) {
  SEXP node = R_altrep_data1(keeper), state = R_NilValue;
  if (node == R_NilValue) return R_altrep_data2(keeper);
  scl_mat *m = NULL;
  scl_status status = r_node_get(node, "x", &m);
  if (status == SCL_E_FORK) return Rf_mkString(scl_fault_last()->message);
  if (status == SCL_OK) {
    const scl_shape shape = r_node_shape(node);
    state = PROTECT(r_values_new(shape.nrow, shape.ncol));
    Rf_setAttrib(state, Rf_install("view"), Rf_ScalarInteger((int)shape.view));
    status = r_node_get(node, "x", &m); /* again: a finaliser of the user's may have freed it */
    if (status == SCL_OK) status = r_values(state, m);
    UNPROTECT(1);
  }
  return status == SCL_E_STALE ? R_NilValue : r_return(status, state);
}

static SEXP keeper_read(SEXP class, SEXP state) {
  (void)class;
  const bool values = TYPEOF(state) == REALSXP || TYPEOF(state) == STRSXP;
  return R_new_altrep(keeper_class, R_NilValue, values ? state : R_NilValue);
}

/* To all other code a keeper is an empty vector. */
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

/* Rows, columns and view of the object from the file, which may be anything. */
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

/* The part of restoring that runs R code, which may fail and must not jump. */
typedef struct {
  SEXP node;
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
  r->node = r_node_new();
  R_PreserveObject(r->node);
  UNPROTECT(3);
}

scl_status r_keeper_restore(SEXP keeper, const char *argument) {
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
  SCL_TRY(r_require_outside());
  PROTECT(keeper); /* R code that runs below may free the handle */
  restoring r = {R_NilValue, -1};
  if (!R_ToplevelExec(prepare, &r)) {
    UNPROTECT(1);
    return scl_fail_memory(m * n * sizeof(double), 0, "a matrix");
  }
  scl_status status = r_context(r.where, &ctx);
  if (status == SCL_OK) status = scl_mat_from_host(ctx, REAL_RO(values), m, n, view, &out);
  if (status == SCL_OK) {
    r_node_set(r.node, out);
    R_set_altrep_data1(keeper, r.node);
    R_set_altrep_data2(keeper, R_NilValue);
  }
  R_ReleaseObject(r.node);
  UNPROTECT(1);
  return status;
}
