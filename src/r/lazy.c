/* .Call entries of lazy arithmetic that are called most often. They take and return clMatrix
 * objects, because accessing slots and creating the object in R takes several times as long as
 * recording an operation.
 *
 * Operands are clMatrix objects and base R numbers, and the operation is deferred (r/node.c). All
 * other cases go to binary() in R/matrix-arith.R, which prepares the operands for r_op(). */
#include "r/entries.h"
#include "r/node.h"

#include "graph/expr.h"

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

/* ---- operands ------------------------------------------------------------------------------- */
typedef struct {
  SEXP object; /* a clMatrix, NULL for a number */
  SEXP value;  /* its handle, and then its node; or the number */
  scl_context *ctx;
  scl_shape shape;
} operand;

/* False for values that are neither a clMatrix nor a plain number. */
static bool read_operand(SEXP x, operand *out) {
  *out = (operand){.value = x};
  if (TYPEOF(x) == S4SXP) {
    out->object = x;
    out->value = Rf_getAttrib(x, handle_symbol);
    return r_is_handle(out->value);
  }
  if (ANY_ATTRIB(x)) return false;
  if (TYPEOF(x) != REALSXP && TYPEOF(x) != INTSXP && TYPEOF(x) != LGLSXP) return false;
  return XLENGTH(x) == 1;
}

/* The node of a clMatrix, and its context and shape, which are those of its matrix, whatever the
 * slots contain. */
static scl_status find_node(operand *x, const char *argument) {
  if (x->object == NULL) return SCL_OK;
  scl_mat *m;
  SCL_TRY(r_require_outside());
  SCL_TRY(r_handle_context(x->value, argument, &x->ctx));
  x->value = r_handle_node(x->value);
  x->shape = r_node_shape(x->value);
  return r_node_is_deep(x->value) ? r_node_peek(x->value, argument, true, &m) : SCL_OK;
}

/* ---- results -------------------------------------------------------------------------------- */

static bool is_named(SEXP object) {
  SEXP names = Rf_getAttrib(object, names_symbol);
  return TYPEOF(names) == VECSXP && XLENGTH(names) == 2 &&
         (VECTOR_ELT(names, 0) != R_NilValue || VECTOR_ELT(names, 1) != R_NilValue);
}

static bool has_shape(const operand *x, scl_shape shape) {
  return x->object != NULL && x->shape.nrow == shape.nrow && x->shape.ncol == shape.ncol;
}

/* The operand from which a result of this shape takes names and class. */
static SEXP object_like(const operand *a, const operand *b, scl_shape shape) {
  if (!has_shape(b, shape)) return a->object;
  return has_shape(a, shape) && is_named(a->object) ? a->object : b->object;
}

/* Phase 1: a copy of `like` with this handle, shape and view. Its slots may have been changed by
 * hand. */
static SEXP copy_with(SEXP like, SEXP handle, scl_shape shape) {
  SEXP result = PROTECT(Rf_shallow_duplicate(like)), dim = Rf_getAttrib(result, dim_symbol);
  SEXP view = Rf_getAttrib(result, view_symbol), wanted = view_string[shape.view];
  Rf_setAttrib(result, handle_symbol, handle);
  if (TYPEOF(dim) != INTSXP || XLENGTH(dim) != 2 || (size_t)INTEGER_RO(dim)[0] != shape.nrow ||
      (size_t)INTEGER_RO(dim)[1] != shape.ncol) {
    dim = PROTECT(Rf_allocVector(INTSXP, 2));
    INTEGER(dim)[0] = (int)shape.nrow;
    INTEGER(dim)[1] = (int)shape.ncol;
    Rf_setAttrib(result, dim_symbol, dim);
    UNPROTECT(1);
  }
  if (TYPEOF(view) != STRSXP || XLENGTH(view) != 1 ||
      STRING_ELT(view, 0) != STRING_ELT(wanted, 0)) {
    Rf_setAttrib(result, view_symbol, wanted);
  }
  UNPROTECT(1);
  return result;
}

/* binary() of R/matrix-arith.R. Operands may be any object; calls must not be evaluated. */
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

/* op(e1), or op(e1, e2) if the operation has two operands. */
SEXP r_lazy_apply(SEXP op, SEXP e1, SEXP e2) {
  scl_op which = SCL_OP_ADD;
  scl_shape shape;
  operand a, b = {.value = R_NilValue};
  scl_status status = find_op(op, &which);
  if (status != SCL_OK) return r_return(status, R_NilValue);
  const bool unary = scl_ops[which].arity == 1;
  bool usual = read_operand(e1, &a) && (unary || read_operand(e2, &b));
  usual = usual && (a.object != NULL || b.object != NULL);
  if (!usual) return unary ? R_NilValue : binary_in_r(op, e1, e2);
  status = find_node(&a, unary ? "x" : "e1");
  if (status == SCL_OK) status = find_node(&b, "e2");
  if (status != SCL_OK) return r_return(status, R_NilValue);
  if (which == SCL_OP_POW && b.object == NULL && Rf_asReal(b.value) == 2.0) {
    which = SCL_OP_SQUARE;
    b.value = R_NilValue;
  }
  /* Shapes that the core does not recycle, and errors. */
  if ((a.ctx != NULL && b.ctx != NULL && a.ctx != b.ctx) ||
      r_node_rule(which, a.value, b.value, &shape) != SCL_OK) {
    return binary_in_r(op, e1, e2);
  }
  SEXP node = PROTECT(r_node_defer(which, a.value, b.value, shape));
  SEXP handle = PROTECT(r_handle_of(node));
  SEXP result = copy_with(object_like(&a, &b, shape), handle, shape);
  UNPROTECT(2);
  return result;
}

/* Several reductions of x, a clMatrix, in one kernel: a list with a vector for each name of `ops`.
 * margin: 0 for one value, 1 for one per row, 2 for one per column. */
SEXP r_lazy_reduce(SEXP ops, SEXP x, SEXP margin) {
  enum { MOST = 4 };
  const int count = (int)XLENGTH(ops), over = Rf_asInteger(margin);
  operand in;
  if (count > MOST || !read_operand(x, &in) || in.object == NULL) return R_NilValue;
  size_t m = 0, n = 0;
  scl_status status = r_require_outside();
  if (status == SCL_OK) status = r_shape(in.value, "x", &m, &n);
  if (status != SCL_OK) return r_return(status, R_NilValue);
  const size_t length = over == 1 ? m : over == 2 ? n : 1;
  SEXP result = PROTECT(Rf_allocVector(VECSXP, count));
  for (int i = 0; i < count; i++) {
    SET_VECTOR_ELT(result, i, Rf_allocVector(REALSXP, (R_xlen_t)length));
  }
  scl_mat *out[MOST] = {NULL}, *from;
  SCL_GO(r_handle_peek_briefly(in.value, "x", &from));
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

/* Computes the matrices of a list, in as few kernels as possible; returns FALSE and computes
 * nothing if one of them is not a clMatrix. */
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
    if (status == SCL_OK) status = r_handle_peek_briefly(in.value, "...", &x[k]);
  }
  if (status == SCL_OK) status = scl_expr_eval(count, x);
  return r_return(status, Rf_ScalarLogical(TRUE));
}
