/* .Call entries of lazy arithmetic that are called most often. They take clMatrix objects
 * themselves and give them: taking these apart and making them in R costs several times what a node
 * does.
 *
 * What they give is deferred where it can be (r_deferred.c): no node of the core is made yet.
 *
 * Operands are a clMatrix or a base R number; for what else R allows they call R/arith.R, which
 * takes the longer way over r_expr.c. */
#include "r_entries.h"
#include "r_glue.h"

#include <string.h>

#include "scl_expr.h"
#include "scl_expr_ops.h"

/* ---- names ---------------------------------------------------------------------------------- */
/* R keeps each string once: the same name has the same address. */
static SEXP op_string[SCL_OP_COUNT];
static SEXP view_string[4];
static SEXP binary_symbol, handle_symbol, dim_symbol, names_symbol, view_symbol;

void r_lazy_init(void) {
  for (int i = 0; i < SCL_OP_COUNT; i++) {
    op_string[i] = Rf_mkChar(scl_ops[i].name);
    R_PreserveObject(op_string[i]);
  }
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
  const SEXP string =
      TYPEOF(name) == STRSXP && XLENGTH(name) == 1 ? STRING_ELT(name, 0) : R_NaString;
  for (int i = 0; i < SCL_OP_COUNT; i++) {
    if (op_string[i] == string) {
      *out = (scl_op)i;
      return SCL_OK;
    }
  }
  return scl_fail_argument("op", "no operation '%s'", CHAR(string));
}

static scl_status find_reduction(SEXP string, scl_reduction *out) {
  for (int i = 0; i < SCL_REDUCE_COUNT; i++) {
    if (strcmp(scl_reductions[i].name, CHAR(string)) == 0) {
      *out = (scl_reduction)i;
      return SCL_OK;
    }
  }
  return scl_fail_argument("op", "no reduction '%s'", CHAR(string));
}

/* ---- operands and results ------------------------------------------------------------------- */
typedef struct {
  SEXP object; /* a clMatrix, NULL for a number */
  SEXP handle; /* or the number */
  const int *dim;
  double number;
} operand;

/* False for what is neither a clMatrix nor a plain number. */
static bool read_operand(SEXP x, operand *out) {
  if (TYPEOF(x) == S4SXP) {
    SEXP dim = Rf_getAttrib(x, dim_symbol);
    out->object = x;
    out->handle = Rf_getAttrib(x, handle_symbol);
    if (TYPEOF(dim) != INTSXP || XLENGTH(dim) != 2) return false;
    out->dim = INTEGER_RO(dim);
    return r_is_handle(out->handle);
  }
  out->object = NULL;
  if (ATTRIB(x) != R_NilValue) return false;
  if (TYPEOF(x) != REALSXP && TYPEOF(x) != INTSXP && TYPEOF(x) != LGLSXP) return false;
  if (XLENGTH(x) != 1) return false;
  out->number = Rf_asReal(x);
  return true;
}

static bool is_named(SEXP object) {
  SEXP names = Rf_getAttrib(object, names_symbol);
  return TYPEOF(names) == VECSXP && XLENGTH(names) == 2 &&
         (VECTOR_ELT(names, 0) != R_NilValue || VECTOR_ELT(names, 1) != R_NilValue);
}

/* The operand whose shape and names a result has; NULL if that takes more than the core's own
 * broadcasting of columns. */
static SEXP shape_of(const operand *a, const operand *b) {
  if (a->object == NULL) return b->object;
  if (b->object == NULL) return a->object;
  if (a->dim[0] != b->dim[0]) return NULL;
  if (a->dim[1] == b->dim[1]) return is_named(a->object) ? a->object : b->object;
  if (b->dim[1] == 1) return a->object;
  return a->dim[1] == 1 ? b->object : NULL;
}

/* Phase 1: a copy of `like` with an empty handle, which is `*handle`. */
static SEXP result_like(SEXP like, SEXP *handle) {
  *handle = PROTECT(r_result_new(true, 0, 0));
  SEXP result = PROTECT(Rf_shallow_duplicate(like));
  Rf_setAttrib(result, handle_symbol, *handle);
  UNPROTECT(2);
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

/* The matrix of a handle that is computed in this call, or not asked for again. */
static scl_status take_briefly(SEXP handle, const char *argument, scl_mat **out) {
  if (r_is_deferred(handle)) SCL_TRY(r_deferred_build(handle, argument, false));
  return r_handle_peek(handle, argument, out);
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
static SEXP defer(SEXP like, scl_op op, SEXP a, SEXP b) {
  SEXP handle = PROTECT(r_deferred_new(op, a, b));
  SEXP result = PROTECT(Rf_shallow_duplicate(like));
  Rf_setAttrib(result, handle_symbol, handle);
  UNPROTECT(2);
  return result;
}

SEXP r_lazy_unary(SEXP op, SEXP x) {
  operand in = {0};
  scl_op which;
  scl_context *ctx;
  if (!read_operand(x, &in) || in.object == NULL) return R_NilValue;
  scl_status status = find_op(op, &which);
  if (status == SCL_OK) status = r_deferred_context(in.handle, "x", &ctx);
  if (status != SCL_OK) return r_return(status, R_NilValue);
  if (is_general(&in) && r_deferred_fits(in.handle, R_NilValue)) {
    return defer(x, which, in.handle, R_NilValue);
  }
  SEXP handle, result = PROTECT(result_like(x, &handle));
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
  scl_context *ctx[2] = {NULL, NULL};
  if (!is_general(a) || !is_general(b) || !r_deferred_fits(a->handle, b->handle)) return false;
  if (a->object != NULL && r_deferred_context(a->handle, "e1", &ctx[0]) != SCL_OK) return false;
  if (b->object != NULL && r_deferred_context(b->handle, "e2", &ctx[1]) != SCL_OK) return false;
  return ctx[0] == NULL || ctx[1] == NULL || ctx[0] == ctx[1];
}

SEXP r_lazy_binary(SEXP op, SEXP e1, SEXP e2) {
  operand a = {.handle = e1}, b = {.handle = e2};
  SEXP like = read_operand(e1, &a) && read_operand(e2, &b) ? shape_of(&a, &b) : NULL;
  if (like == NULL) return binary_in_r(op, e1, e2);
  scl_op which;
  scl_status status = find_op(op, &which);
  if (status != SCL_OK) return r_return(status, R_NilValue);
  const bool square = which == SCL_OP_POW && b.object == NULL && b.number == 2.0;
  if (square) which = SCL_OP_SQUARE;
  if (may_wait(&a, &b)) return defer(like, which, a.handle, square ? R_NilValue : b.handle);
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
  operand in = {0};
  if (count > MOST || !read_operand(x, &in) || in.object == NULL) return R_NilValue;
  SEXP result = PROTECT(Rf_allocVector(VECSXP, count));
  for (int i = 0; i < count; i++) {
    SET_VECTOR_ELT(result, i, Rf_allocVector(REALSXP, over == 0 ? 1 : in.dim[over - 1]));
  }
  scl_status status;
  scl_mat *out[MOST] = {NULL}, *from;
  SCL_GO(take_briefly(in.handle, "x", &from));
  for (int i = 0; i < count; i++) {
    scl_reduction which = SCL_REDUCE_SUM;
    SCL_GO(find_reduction(STRING_ELT(ops, i), &which));
    SCL_GO(scl_expr_reduce(which, from, (scl_margin)over, &out[i]));
  }
  SCL_GO(scl_expr_eval((size_t)count, out));
  for (int i = 0; i < count; i++) {
    SCL_GO(scl_mat_to_host(out[i], REAL(VECTOR_ELT(result, i))));
  }
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
    operand in = {0};
    if (!read_operand(VECTOR_ELT(list, (R_xlen_t)k), &in) || in.object == NULL) {
      return Rf_ScalarLogical(FALSE);
    }
    if (status == SCL_OK) status = take_briefly(in.handle, "...", &x[k]);
  }
  if (status == SCL_OK) status = scl_expr_eval(count, x);
  return r_return(status, Rf_ScalarLogical(TRUE));
}
