/* .Call entries of lazy arithmetic that are called most often. They take clMatrix objects
 * themselves and give them: taking these apart and making them in R costs several times what a node
 * does.
 *
 * What they give is deferred where it can be (r/deferred.c): no node of the core is made yet.
 *
 * Operands are a clMatrix or a base R number; for what else R allows they call R/arith.R, which
 * takes the longer way over r/op.c. */
#include "r/entries.h"
#include "r/glue.h"

#include <string.h>

#include "graph/expr.h"
#include "graph/operations.h"
#include "engine/plan/elementwise.h"

/* ---- names ---------------------------------------------------------------------------------- */
static SEXP view_string[4];
static SEXP binary_symbol, handle_symbol, dim_symbol, names_symbol, view_symbol;

void r_lazy_init(void) {
  for (int i = 0; i < 4; i++) {
    view_string[i] = Rf_mkString(scl_view_name((scl_view)i));
    R_PreserveObject(view_string[i]);
    MARK_NOT_MUTABLE(view_string[i]);
  }
  binary_symbol = Rf_install("binary");
  handle_symbol = Rf_install("handle");
  dim_symbol = Rf_install("Dim");
  names_symbol = Rf_install("Dimnames");
  view_symbol = Rf_install("view");
}

static scl_status find_op(SEXP name, scl_op *out) {
  const bool named = TYPEOF(name) == STRSXP && XLENGTH(name) == 1;
  unsigned row = 0;
  SCL_TRY(r_op_find(named ? STRING_ELT(name, 0) : R_BlankString, &row));
  if (row >= SCL_OP_COUNT) {
    return scl_fail_argument("op", "'%s' is not an elementwise operation",
                             scl_operations[row].name);
  }
  *out = (scl_op)row;
  return SCL_OK;
}

static scl_status find_reduction(SEXP string, scl_reduction *out) {
  unsigned row = 0;
  SCL_TRY(r_op_find(string, &row));
  if (row < SCL_FIRST_REDUCTION || row > SCL_LAST_REDUCTION) {
    return scl_fail_argument("op", "'%s' is not a reduction", scl_operations[row].name);
  }
  *out = (scl_reduction)(row - SCL_FIRST_REDUCTION);
  return SCL_OK;
}

/* ---- operands and results ------------------------------------------------------------------- */
typedef struct {
  SEXP object; /* a clMatrix, NULL for a number */
  SEXP handle; /* or the number */
  scl_context *ctx;
  size_t m, n;
  double number;
} operand;

/* False for what is neither a clMatrix nor a plain number. */
static bool read_operand(SEXP x, operand *out) {
  *out = (operand){.handle = x};
  if (TYPEOF(x) == S4SXP) {
    out->object = x;
    out->handle = Rf_getAttrib(x, handle_symbol);
    return r_is_handle(out->handle);
  }
  if (ATTRIB(x) != R_NilValue) return false;
  if (TYPEOF(x) != REALSXP && TYPEOF(x) != INTSXP && TYPEOF(x) != LGLSXP) return false;
  if (XLENGTH(x) != 1) return false;
  out->number = Rf_asReal(x);
  return true;
}

/* Context and shape of a clMatrix, which are those of its matrix, whatever the slots say. */
static scl_status check_operand(operand *x, const char *argument) {
  if (x->object == NULL) return SCL_OK;
  SCL_TRY(r_require_outside());
  SCL_TRY(r_handle_context(x->handle, argument, &x->ctx));
  return r_shape(x->handle, argument, &x->m, &x->n);
}

/* What a record takes: a node, or the number. */
static SEXP node_of(const operand *x) {
  return x->object == NULL ? x->handle : r_handle_node(x->handle);
}

static bool is_named(SEXP object) {
  SEXP names = Rf_getAttrib(object, names_symbol);
  return TYPEOF(names) == VECSXP && XLENGTH(names) == 2 &&
         (VECTOR_ELT(names, 0) != R_NilValue || VECTOR_ELT(names, 1) != R_NilValue);
}

/* The operand whose shape and names a result has; NULL if that takes more than the core's own
 * broadcasting of columns. */
static const operand *shape_of(const operand *a, const operand *b) {
  if (a->object == NULL) return b;
  if (b->object == NULL) return a;
  if (a->m != b->m) return NULL;
  if (a->n == b->n) return is_named(a->object) ? a : b;
  if (b->n == 1) return a;
  return a->n == 1 ? b : NULL;
}

/* Phase 1: a copy of `like` with another handle. */
static SEXP copy_with(const operand *like, SEXP handle) {
  SEXP result = PROTECT(Rf_shallow_duplicate(like->object)), dim = Rf_getAttrib(result, dim_symbol);
  Rf_setAttrib(result, handle_symbol, handle);
  if (TYPEOF(dim) != INTSXP || XLENGTH(dim) != 2 || (size_t)INTEGER_RO(dim)[0] != like->m ||
      (size_t)INTEGER_RO(dim)[1] != like->n) { /* was changed by hand */
    dim = PROTECT(Rf_allocVector(INTSXP, 2));
    INTEGER(dim)[0] = (int)like->m;
    INTEGER(dim)[1] = (int)like->n;
    Rf_setAttrib(result, dim_symbol, dim);
    UNPROTECT(1);
  }
  UNPROTECT(1);
  return result;
}

/* The same with an empty handle, which is `*handle`. */
static SEXP result_like(const operand *like, SEXP *handle) {
  *handle = PROTECT(r_handle_new());
  SEXP result = copy_with(like, *handle);
  UNPROTECT(1);
  return result;
}

/* Phase 2: allocates nothing. */
static scl_status set_result(SEXP result, SEXP handle, scl_mat **m) {
  Rf_setAttrib(result, view_symbol, view_string[scl_mat_view(*m)]);
  return r_result_set(handle, m);
}

static scl_status term_of(const operand *x, const char *argument, scl_term *out) {
  out->matrix = NULL;
  out->number = x->number;
  return x->object == NULL ? SCL_OK : r_handle_peek(x->handle, argument, &out->matrix);
}

/* binary() of R/arith.R. Operands may be anything, calls too: these are not to be evaluated. */
static SEXP binary_in_r(SEXP op, SEXP e1, SEXP e2) {
  SEXP a = PROTECT(Rf_lang2(R_QuoteSymbol, e1));
  SEXP b = PROTECT(Rf_lang2(R_QuoteSymbol, e2));
  SEXP call = PROTECT(Rf_lang4(binary_symbol, op, a, b));
  SEXP package = PROTECT(Rf_mkString("statcl"));
  SEXP space = PROTECT(R_FindNamespace(package));
  SEXP result = Rf_eval(call, space);
  UNPROTECT(5);
  return result;
}

/* ---- entries -------------------------------------------------------------------------------- */
/* Whether the result of an operation on x is known to have no view but the general one. */
static bool is_general(const operand *x) {
  if (x->object == NULL) return true;
  SEXP view = Rf_getAttrib(x->object, view_symbol);
  return TYPEOF(view) == STRSXP && XLENGTH(view) == 1 &&
         STRING_ELT(view, 0) == STRING_ELT(view_string[SCL_GENERAL], 0);
}

/* A copy of `like` with the deferred node op(a, b). */
static SEXP defer(const operand *like, scl_op op, SEXP a, SEXP b) {
  SEXP handle = PROTECT(r_deferred_new(op, a, b)), result = copy_with(like, handle);
  UNPROTECT(1);
  return result;
}

SEXP r_lazy_unary(SEXP op, SEXP x) {
  operand in;
  scl_op which;
  if (!read_operand(x, &in) || in.object == NULL) return R_NilValue;
  scl_status status = find_op(op, &which);
  if (status == SCL_OK) status = check_operand(&in, "x");
  if (status != SCL_OK) return r_return(status, R_NilValue);
  if (is_general(&in) && r_deferred_fits(node_of(&in), R_NilValue)) {
    return defer(&in, which, node_of(&in), R_NilValue);
  }
  SEXP handle, result = PROTECT(result_like(&in, &handle));
  scl_mat *out = NULL;
  scl_term term;
  SCL_GO(term_of(&in, "x", &term));
  SCL_GO(scl_expr_apply(which, 1, &term, &out));
  SCL_GO(set_result(result, handle, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* Whether op(a, b) can wait: nothing is left to be checked. */
static bool may_wait(const operand *a, const operand *b) {
  return is_general(a) && is_general(b) && r_deferred_fits(node_of(a), node_of(b)) &&
         (a->ctx == NULL || b->ctx == NULL || a->ctx == b->ctx);
}

SEXP r_lazy_binary(SEXP op, SEXP e1, SEXP e2) {
  operand a, b;
  if (!read_operand(e1, &a) || !read_operand(e2, &b)) return binary_in_r(op, e1, e2);
  if (a.object == NULL && b.object == NULL) return binary_in_r(op, e1, e2);
  scl_op which;
  scl_status status = find_op(op, &which);
  if (status == SCL_OK) status = check_operand(&a, "e1");
  if (status == SCL_OK) status = check_operand(&b, "e2");
  if (status != SCL_OK) return r_return(status, R_NilValue);
  const operand *like = shape_of(&a, &b);
  if (like == NULL) return binary_in_r(op, e1, e2);
  const bool square = which == SCL_OP_POW && b.object == NULL && b.number == 2.0;
  if (square) which = SCL_OP_SQUARE;
  if (may_wait(&a, &b)) return defer(like, which, node_of(&a), square ? R_NilValue : node_of(&b));
  SEXP handle, result = PROTECT(result_like(like, &handle));
  scl_mat *out = NULL;
  scl_term term[2];
  SCL_GO(term_of(&a, "e1", &term[0]));
  SCL_GO(term_of(&b, "e2", &term[1]));
  SCL_GO(scl_expr_apply(which, square ? 1 : 2, term, &out));
  SCL_GO(set_result(result, handle, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* Several reductions of x, a clMatrix, in one kernel: a list with a vector for each name of `ops`.
 * margin: 0 for one value, 1 for one a row, 2 for one a column. */
SEXP r_lazy_reduce(SEXP ops, SEXP x, SEXP margin) {
  enum { MOST = 4 };
  const int count = (int)XLENGTH(ops), over = Rf_asInteger(margin);
  operand in;
  if (count > MOST || !read_operand(x, &in) || in.object == NULL) return R_NilValue;
  scl_status status = check_operand(&in, "x");
  if (status != SCL_OK) return r_return(status, R_NilValue);
  const size_t length = over == 1 ? in.m : over == 2 ? in.n : 1;
  SEXP result = PROTECT(Rf_allocVector(VECSXP, count));
  for (int i = 0; i < count; i++) {
    SET_VECTOR_ELT(result, i, Rf_allocVector(REALSXP, (R_xlen_t)length));
  }
  scl_mat *out[MOST] = {NULL}, *from;
  SCL_GO(r_handle_peek_briefly(in.handle, "x", &from));
  for (int i = 0; i < count; i++) {
    scl_reduction which = SCL_REDUCE_SUM;
    SCL_GO(find_reduction(STRING_ELT(ops, i), &which));
    SCL_GO(scl_expr_reduce(which, from, (scl_margin)over, &out[i]));
  }
  SCL_GO(scl_expr_eval((size_t)count, out));
  for (int i = 0; i < count; i++) SCL_GO(r_values(VECTOR_ELT(result, i), out[i]));
done:
  for (int i = 0; i < count; i++) scl_mat_release(out[i]);
  UNPROTECT(1);
  return r_return(status, result);
}

/* Computes the matrices of a list, in as few kernels as possible; FALSE, and nothing done, if one
 * of it is no clMatrix. */
SEXP r_lazy_eval(SEXP list) {
  enum { FEW = 16 };
  const size_t count = (size_t)XLENGTH(list);
  scl_mat *few[FEW], **x = count <= FEW ? few : (scl_mat **)R_alloc(count, sizeof(scl_mat *));
  scl_status status = SCL_OK;
  for (size_t k = 0; k < count; k++) {
    operand in;
    if (!read_operand(VECTOR_ELT(list, (R_xlen_t)k), &in) || in.object == NULL) {
      return Rf_ScalarLogical(FALSE);
    }
    if (status == SCL_OK) status = r_handle_peek_briefly(in.handle, "...", &x[k]);
  }
  if (status == SCL_OK) status = scl_expr_eval(count, x);
  return r_return(status, Rf_ScalarLogical(TRUE));
}
