/* .Call entries for lazy arithmetic (graph/expr.h). Results are handles of pending matrices unless
 * it says otherwise. An operand is a handle, a base R number (double, length 1, no dimensions), or
 * a base R double matrix or vector (a column), which is copied beside the handles at once.
 *
 *   r_expr_binary(op, a, b), r_expr_ternary(op, a, b, c)
 *                          op: a name of elementwise.def; one operand is a handle
 *   r_expr_transpose(x), r_expr_broadcast(x, nrow, ncol), r_expr_part(x, i, j, nrow, ncol)
 *   r_expr_with_part(x, i, j, value)       i and j are 0-based
 *   r_expr_index(like, margin)             row (1) or column (2) numbers, 1-based, in like's shape
 *   r_expr_matvec(x, b)                    x b for a column b
 *   r_expr_reduce(op, x, margin)           op: a name of reduce.def; margin 0 (all), 1 (rows), 2
 *   r_expr_placeholder(like, k), r_expr_reduce_with(x, combine, identity, margin)
 *   r_expr_eval(handles)                   computes the handles of a list; NULL
 *   r_expr_values(handles)                 likewise; a list of base R matrices
 *   r_expr_info(x)                         list(pending, nodes, depth, text)
 *   r_expr_source(handles)                 kernel sources, one string
 *   r_expr_ops()                           the tables, as a list of two lists of columns
 *   r_expr_stats()                         c(evaluated, built, cut): counts since the start */
#include "r/entries.h"
#include "r/glue.h"

#include <R_ext/Arith.h>
#include <stdlib.h>
#include <string.h>

#include "graph/expr.h"
#include "engine/plan/elementwise.h"

/* ---- names ---------------------------------------------------------------------------------- */

static scl_status find_op(SEXP name, int *out) {
  const char *text = TYPEOF(name) == STRSXP && XLENGTH(name) == 1 ? CHAR(STRING_ELT(name, 0)) : "";
  for (int i = 0; i < SCL_OP_COUNT; i++) {
    if (strcmp(scl_ops[i].name, text) == 0) {
      *out = i;
      return SCL_OK;
    }
  }
  return scl_fail_argument("op", "unknown operation '%s'", text);
}

static scl_status find_reduction(SEXP name, int *out) {
  const char *text = TYPEOF(name) == STRSXP && XLENGTH(name) == 1 ? CHAR(STRING_ELT(name, 0)) : "";
  for (int i = 0; i < SCL_REDUCE_COUNT; i++) {
    if (strcmp(scl_reductions[i].name, text) == 0) {
      *out = i;
      return SCL_OK;
    }
  }
  return scl_fail_argument("op", "unknown reduction '%s'", text);
}

/* ---- operands ------------------------------------------------------------------------------- */

static bool is_number(SEXP x) {
  return TYPEOF(x) == REALSXP && XLENGTH(x) == 1 && Rf_getAttrib(x, R_DimSymbol) == R_NilValue;
}

/* A whole number from 0 on, as R passes dimensions and places. */
static scl_status get_count(SEXP x, const char *argument, size_t *out) {
  const double value = Rf_asReal(x);
  if (!(value >= 0.0 && value <= 2147483647.0)) {
    return scl_fail_argument(argument, "'%s' must be a non-negative integer", argument);
  }
  *out = (size_t)value;
  return SCL_OK;
}

/* Terms for n operands; release with release_terms() in any case. */
static scl_status get_terms(int n, const SEXP *x, scl_term *terms) {
  static const char *const names[] = {"e1", "e2", "e3"};
  scl_context *ctx = NULL;
  for (int k = 0; k < n; k++) terms[k] = (scl_term){NULL, 0.0};
  for (int k = 0; k < n && ctx == NULL; k++) {
    if (r_is_handle(x[k])) SCL_TRY(r_handle_context(x[k], names[k], &ctx));
  }
  if (ctx == NULL) return scl_fail_argument("e1", "at least one operand must be a clMatrix");
  for (int k = 0; k < n; k++) {
    if (is_number(x[k])) {
      terms[k].number = REAL_RO(x[k])[0];
    } else {
      SCL_TRY(r_operand_kept(ctx, x[k], names[k], &terms[k].matrix));
    }
  }
  return SCL_OK;
}

static void release_terms(int n, scl_term *terms) {
  for (int k = 0; k < n; k++) scl_mat_release(terms[k].matrix);
}

/* ---- elementwise ---------------------------------------------------------------------------- */

static SEXP apply(SEXP op, int n, const SEXP *x) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_term terms[3] = {{NULL, 0.0}, {NULL, 0.0}, {NULL, 0.0}};
  scl_mat *out = NULL;
  scl_status status;
  int which = 0;
  SCL_GO(find_op(op, &which));
  SCL_GO(get_terms(n, x, terms));
  SCL_GO(scl_expr_apply((scl_op)which, n, terms, &out));
  SCL_GO(r_result_set(result, &out));
done:
  release_terms(n, terms);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_expr_binary(SEXP op, SEXP a, SEXP b) {
  const SEXP x[] = {a, b};
  return apply(op, 2, x);
}

SEXP r_expr_ternary(SEXP op, SEXP a, SEXP b, SEXP c) {
  const SEXP x[] = {a, b, c};
  return apply(op, 3, x);
}

/* ---- index functions ------------------------------------------------------------------------ */

SEXP r_expr_transpose(SEXP x) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_mat *in, *out = NULL;
  scl_status status;
  SCL_GO(r_handle_peek(x, "x", &in));
  SCL_GO(scl_expr_transpose(in, &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_expr_broadcast(SEXP x, SEXP nrow, SEXP ncol) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_mat *in, *out = NULL;
  scl_status status;
  size_t m = 0, n = 0;
  SCL_GO(r_handle_peek(x, "x", &in));
  SCL_GO(get_count(nrow, "nrow", &m));
  SCL_GO(get_count(ncol, "ncol", &n));
  SCL_GO(scl_expr_broadcast(in, m, n, &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_expr_part(SEXP x, SEXP i, SEXP j, SEXP nrow, SEXP ncol) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_mat *in, *out = NULL;
  scl_status status;
  size_t row = 0, column = 0, m = 0, n = 0;
  SCL_GO(r_handle_peek(x, "x", &in));
  SCL_GO(get_count(i, "i", &row));
  SCL_GO(get_count(j, "j", &column));
  SCL_GO(get_count(nrow, "nrow", &m));
  SCL_GO(get_count(ncol, "ncol", &n));
  SCL_GO(scl_expr_part(in, row, column, m, n, &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_expr_with_part(SEXP x, SEXP i, SEXP j, SEXP value) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_mat *in, *part = NULL, *out = NULL;
  scl_status status;
  size_t row = 0, column = 0;
  SCL_GO(r_handle_peek(x, "x", &in));
  SCL_GO(get_count(i, "i", &row));
  SCL_GO(get_count(j, "j", &column));
  SCL_GO(r_operand_kept(scl_mat_context(in), value, "value", &part));
  SCL_GO(scl_expr_with_part(in, row, column, part, &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(part);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_expr_index(SEXP like, SEXP margin) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_mat *in, *out = NULL;
  scl_status status;
  SCL_GO(r_handle_peek(like, "like", &in));
  SCL_GO(scl_expr_index(scl_mat_context(in), (scl_margin)Rf_asInteger(margin), scl_mat_nrow(in),
                        scl_mat_ncol(in), &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_expr_matvec(SEXP x, SEXP b) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_mat *in, *column = NULL, *out = NULL;
  scl_status status;
  SCL_GO(r_handle_peek(x, "x", &in));
  SCL_GO(r_operand_kept(scl_mat_context(in), b, "y", &column));
  SCL_GO(scl_expr_matvec(in, column, &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(column);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* ---- reductions ----------------------------------------------------------------------------- */

SEXP r_expr_reduce(SEXP op, SEXP x, SEXP margin) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_mat *in, *out = NULL;
  scl_status status;
  int which = 0;
  SCL_GO(find_reduction(op, &which));
  SCL_GO(r_handle_peek(x, "x", &in));
  SCL_GO(scl_expr_reduce((scl_reduction)which, in, (scl_margin)Rf_asInteger(margin), &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_expr_placeholder(SEXP like, SEXP k) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_mat *in, *out = NULL;
  scl_status status;
  SCL_GO(r_handle_peek(like, "like", &in));
  SCL_GO(scl_expr_placeholder(scl_mat_context(in), Rf_asInteger(k), &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_expr_reduce_with(SEXP x, SEXP combine, SEXP identity, SEXP margin) {
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_mat *in, *combined, *out = NULL;
  scl_status status;
  SCL_GO(r_handle_peek(x, "x", &in));
  SCL_GO(r_handle_peek(combine, "combine", &combined));
  SCL_GO(scl_expr_reduce_with(in, combined, Rf_asReal(identity), (scl_margin)Rf_asInteger(margin),
                              &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

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

SEXP r_expr_eval(SEXP handles) {
  scl_mat **m = NULL;
  size_t count;
  scl_status status = get_list(handles, &count, &m);
  if (status == SCL_OK) status = scl_expr_eval(count, m);
  free(m);
  return r_return(status, R_NilValue);
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

/* The text is of the core, so the string is allocated in two calls: first its length is asked. */
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

SEXP r_expr_ops(void) {
  const char *names[] = {"operations", "reductions", ""};
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(out, 0, op_columns());
  SET_VECTOR_ELT(out, 1, reduction_columns());
  UNPROTECT(1);
  return out;
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
