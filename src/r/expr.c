/* .Call entries for pending matrices: values, facts, sources.
 *
 *   r_expr_values(handles)                 computes the handles of a list; a list of base R
 * matrices r_expr_info(x)                         list(pending, nodes, depth, text)
 *   r_expr_source(handles)                 kernel sources, one string
 *   r_expr_ops()                           the tables, as a list of two lists of columns, and a
 *                                          list of calls
 *   r_expr_numbers(op, operands)           an elementwise operation on plain numbers: double
 *                                          vectors of one length
 *   r_expr_stats()                         c(evaluated, built, cut): counts since the start  */
#include "r/entries.h"
#include "r/glue.h"

#include <R_ext/Arith.h>
#include <stdlib.h>
#include <string.h>

#include "graph/expr.h"
#include "ops/table.h"
#include "engine/plan/elementwise.h"

/* ---- values --------------------------------------------------------------------------------- */

/* The matrices of a list of handles, borrowed; free() the array. */
static scl_status get_list(SEXP handles, size_t *count, scl_mat ***out) {
  if (TYPEOF(handles) != VECSXP)
    return scl_fail_argument("x", "internal: the matrices must be a list of handles");
  const size_t n = (size_t)XLENGTH(handles);
  scl_mat **m = malloc((n > 0 ? n : 1) * sizeof *m);
  if (m == NULL) return scl_fail_memory(n * sizeof *m, 0, "a list of matrices");
  for (size_t k = 0; k < n; k++) {
    scl_status status = r_handle_peek(VECTOR_ELT(handles, (R_xlen_t)k), "x", &m[k]);
    if (status != SCL_OK) {
      free(m);
      return status;
    }
  }
  *count = n;
  *out = m;
  return SCL_OK;
}

SEXP r_expr_values(SEXP handles) {
  const R_xlen_t n = TYPEOF(handles) == VECSXP ? XLENGTH(handles) : 0;
  SEXP result = PROTECT(Rf_allocVector(VECSXP, n));
  for (R_xlen_t k = 0; k < n; k++) {
    SEXP x = VECTOR_ELT(handles, k);
    SET_VECTOR_ELT(result, k, r_result_new(false, r_nrow(x, "x"), r_ncol(x, "x")));
  }
  scl_mat **m = NULL;
  size_t count = 0;
  scl_status status;
  SCL_GO(get_list(handles, &count, &m));
  SCL_GO(scl_expr_eval(count, m));
  for (size_t k = 0; k < count; k++) SCL_GO(r_values(VECTOR_ELT(result, (R_xlen_t)k), m[k]));
done:
  free(m);
  UNPROTECT(1);
  return r_return(status, result);
}

/* ---- facts ---------------------------------------------------------------------------------- */

SEXP r_expr_info(SEXP x) {
  const char *names[] = {"pending", "nodes", "depth", "text", ""};
  char text[512] = "";
  scl_mat *m;
  scl_expr_facts facts = {false, 0, 0};
  SEXP info = PROTECT(Rf_mkNamed(VECSXP, names));
  scl_status status = r_handle_peek(x, "x", &m);
  if (status == SCL_OK) {
    facts = scl_expr_about(m);
    if (facts.pending) scl_expr_text(m, text, sizeof text);
  }
  SET_VECTOR_ELT(info, 0, Rf_ScalarLogical(facts.pending));
  SET_VECTOR_ELT(info, 1, Rf_ScalarInteger((int)facts.nodes));
  SET_VECTOR_ELT(info, 2, Rf_ScalarInteger((int)facts.depth));
  SET_VECTOR_ELT(info, 3, Rf_mkString(text));
  UNPROTECT(1);
  return r_return(status, info);
}

/* The text belongs to the core until R has a copy of it. */
SEXP r_expr_source(SEXP handles) {
  scl_mat **m = NULL;
  size_t count;
  char *text = NULL;
  SEXP raw = R_NilValue, result;
  scl_status status = get_list(handles, &count, &m);
  if (status == SCL_OK) status = scl_expr_source(count, m, &text);
  free(m);
  if (status != SCL_OK) return r_return(status, R_NilValue);
  /* An external pointer owns the text while R allocates. */
  raw = PROTECT(r_text_owner(text));
  result = PROTECT(Rf_mkString(text));
  r_text_free(raw);
  UNPROTECT(2);
  return result;
}

static SEXP strings(int n, const char *const *text) {
  SEXP out = PROTECT(Rf_allocVector(STRSXP, n));
  for (int k = 0; k < n; k++) {
    SET_STRING_ELT(out, k, text[k] != NULL ? Rf_mkChar(text[k]) : NA_STRING);
  }
  UNPROTECT(1);
  return out;
}

static SEXP op_columns(void) {
  const char *names[] = {"name", "arity", "expression", "da", "db", "dc", ""};
  const char *column[5][SCL_OP_COUNT];
  SEXP table = PROTECT(Rf_mkNamed(VECSXP, names)), arity = Rf_allocVector(INTSXP, SCL_OP_COUNT);
  SET_VECTOR_ELT(table, 1, arity);
  for (int k = 0; k < SCL_OP_COUNT; k++) {
    INTEGER(arity)[k] = scl_ops[k].arity;
    column[0][k] = scl_ops[k].name;
    column[1][k] = scl_ops[k].expression;
    for (int d = 0; d < 3; d++) column[2 + d][k] = scl_ops[k].derivative[d];
  }
  SET_VECTOR_ELT(table, 0, strings(SCL_OP_COUNT, column[0]));
  for (int c = 1; c < 5; c++) SET_VECTOR_ELT(table, c + 1, strings(SCL_OP_COUNT, column[c]));
  UNPROTECT(1);
  return table;
}

static SEXP reduction_columns(void) {
  const char *names[] = {"name", "identity", "map", "combine", ""};
  const char *column[4][SCL_REDUCE_COUNT];
  SEXP table = PROTECT(Rf_mkNamed(VECSXP, names));
  for (int k = 0; k < SCL_REDUCE_COUNT; k++) {
    column[0][k] = scl_reductions[k].name;
    column[1][k] = scl_reductions[k].identity;
    column[2][k] = scl_reductions[k].map;
    column[3][k] = scl_reductions[k].combine;
  }
  for (int c = 0; c < 4; c++) SET_VECTOR_ELT(table, c, strings(SCL_REDUCE_COUNT, column[c]));
  UNPROTECT(1);
  return table;
}

/* The operations that compiled functions record by the dimensions of their operands and their
 * attributes: by name, the names of both. */
static SEXP call_names(void) {
  const char *name[SCL_VALUE_KINDS];
  int count = 0;
  SEXP room = PROTECT(Rf_allocVector(VECSXP, SCL_VALUE_KINDS));
  for (int k = 0; k < SCL_VALUE_KINDS; k++) {
    const scl_operation *row = scl_row_of((scl_value_kind)k);
    const char *attribute[SCL_CALL_ATTRIBUTES];
    const int attributes = scl_operation_attributes(row);
    if (!row->is_value || !scl_value_has_dims(row->kind)) continue;
    for (int i = 0; i < attributes; i++) attribute[i] = scl_operation_attribute(row, i)->name;
    name[count] = row->name;
    SEXP both = Rf_allocVector(VECSXP, 2);
    SET_VECTOR_ELT(room, count++, both);
    SET_VECTOR_ELT(both, 0, strings(scl_operation_operands(row), row->operand));
    SET_VECTOR_ELT(both, 1, strings(attributes, attribute));
  }
  SEXP calls = PROTECT(Rf_lengthgets(room, count));
  Rf_setAttrib(calls, R_NamesSymbol, strings(count, name));
  UNPROTECT(2);
  return calls;
}

SEXP r_expr_ops(void) {
  const char *names[] = {"operations", "reductions", "calls", ""};
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 0, op_columns());
  SET_VECTOR_ELT(out, 1, reduction_columns());
  SET_VECTOR_ELT(out, 2, call_names());
  UNPROTECT(1);
  return out;
}

SEXP r_expr_numbers(SEXP op, SEXP operands) {
  const R_xlen_t count = XLENGTH(operands), n = XLENGTH(VECTOR_ELT(operands, 0));
  SEXP out = PROTECT(Rf_allocVector(REALSXP, n));
  unsigned which = SCL_OP_COUNT;
  const double *x[3] = {NULL};
  scl_status status;
  SCL_GO(scl_operation_find(CHAR(STRING_ELT(op, 0)), &which));
  for (R_xlen_t k = 0; k < count; k++) x[k] = REAL_RO(VECTOR_ELT(operands, k));
  for (R_xlen_t i = 0; i < n; i++) {
    REAL(out)
    [i] =
        scl_op_value((scl_op)which, x[0][i], count > 1 ? x[1][i] : 0.0, count > 2 ? x[2][i] : 0.0);
  }
done:
  UNPROTECT(1);
  return r_return(status, out);
}

SEXP r_expr_stats(void) {
  const char *names[] = {"evaluated", "built", "cut"};
  const scl_expr_counters counts = scl_expr_counts();
  SEXP out = PROTECT(Rf_allocVector(REALSXP, 3));
  REAL(out)[0] = (double)counts.evaluated;
  REAL(out)[1] = (double)counts.built;
  REAL(out)[2] = (double)counts.cut;
  Rf_setAttrib(out, R_NamesSymbol, strings(3, names));
  UNPROTECT(1);
  return out;
}
