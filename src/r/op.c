/* The .Call entry of the operations of ops/table.h:
 *
 *   r_op(op, operands, attributes, where)
 *
 * op          the name of a row
 * operands    a list of handles and base R double matrices (a vector is a column); numbers (double,
 *             length 1, no dimensions) are operands of elementwise operations only. NULL at its end
 *             stands for operands that are left out.
 *             Its names, if it has any, are those of the operands in error messages.
 * attributes  the row's, as one numeric vector, or NULL
 * where       the engine for base R operands (r/glue.h); or a handle, whose context an operation
 *             without operands takes
 *
 *   r_op_shape(op, dims, attributes)   the dimensions of the result, from a list of those of
 * operands
 *
 * Operations of generated kernels are recorded: the result is the handle of a pending matrix, and
 * base R operands are copied. Everything else is computed at once: a handle if an operand is one,
 * else a base R matrix. */
#include "r/entries.h"
#include "r/glue.h"

#include "base/engine.h"
#include "graph/expr.h"
#include "ops/table.h"

/* R keeps each string once: the same name has the same address. */
static SEXP op_string[SCL_OPERATION_COUNT];

void r_op_init(void) {
  for (int k = 0; k < SCL_OPERATION_COUNT; k++) {
    op_string[k] = Rf_mkChar(scl_operations[k].name);
    R_PreserveObject(op_string[k]);
  }
}

scl_status r_op_find(SEXP string, unsigned *out) {
  static unsigned recent[64]; /* by address */
  unsigned *known = &recent[(uintptr_t)string >> 6 & 63];
  *out = *known;
  if (op_string[*known] == string) return SCL_OK;
  for (unsigned k = 0; k < SCL_OPERATION_COUNT; k++) {
    if (op_string[k] == string) {
      *out = *known = k;
      return SCL_OK;
    }
  }
  return scl_fail_argument("op", "unknown operation '%s'", CHAR(string));
}

/* ---- what is asked for ---------------------------------------------------------------------- */

typedef struct {
  unsigned operation;
  int count, attributes;
  SEXP names, operand[SCL_CALL_OPERANDS];
  double attribute[SCL_CALL_ATTRIBUTES];
} request;

static const char *operand_name(const request *r, int k) {
  if (r->names != R_NilValue) return CHAR(STRING_ELT(r->names, k));
  return scl_operations[r->operation].operand[k];
}

static bool is_number(SEXP x) {
  return TYPEOF(x) == REALSXP && XLENGTH(x) == 1 && Rf_getAttrib(x, R_DimSymbol) == R_NilValue;
}

static double number_at(SEXP x, int k) {
  if (TYPEOF(x) == REALSXP) return REAL_RO(x)[k];
  const int value = TYPEOF(x) == LGLSXP ? LOGICAL_RO(x)[k] : INTEGER_RO(x)[k];
  return value == NA_INTEGER ? NA_REAL : value;
}

static scl_status read_attributes(SEXP attributes, request *out) {
  const R_xlen_t count = Rf_xlength(attributes);
  if (count > 0 && TYPEOF(attributes) != REALSXP && TYPEOF(attributes) != INTSXP &&
      TYPEOF(attributes) != LGLSXP) {
    return scl_fail_argument("attributes", "internal: attributes must be numbers");
  }
  out->attributes = count > SCL_CALL_ATTRIBUTES ? SCL_CALL_ATTRIBUTES + 1 : (int)count;
  for (int k = 0; k < out->attributes && k < SCL_CALL_ATTRIBUTES; k++) {
    out->attribute[k] = number_at(attributes, k);
  }
  return SCL_OK;
}

/* Checks the numbers of operands and attributes, and the kinds of the attributes. */
static scl_status read_request(SEXP op, SEXP operands, SEXP attributes, request *out) {
  const bool named = TYPEOF(op) == STRSXP && XLENGTH(op) == 1;
  R_xlen_t count = TYPEOF(operands) == VECSXP ? XLENGTH(operands) : 0;
  SCL_TRY(r_op_find(named ? STRING_ELT(op, 0) : R_BlankString, &out->operation));
  while (count > 0 && VECTOR_ELT(operands, count - 1) == R_NilValue) count--;
  out->names = count > 0 ? Rf_getAttrib(operands, R_NamesSymbol) : R_NilValue;
  out->count = count > SCL_CALL_OPERANDS ? SCL_CALL_OPERANDS + 1 : (int)count;
  for (int k = 0; k < out->count && k < SCL_CALL_OPERANDS; k++) {
    out->operand[k] = VECTOR_ELT(operands, k);
  }
  SCL_TRY(read_attributes(attributes, out));
  return scl_operation_check(out->operation, out->count, out->attributes, out->attribute);
}

/* Shape of the result for base R operands, before any matrix is made; `dims`: for operands that are
 * known by their dimensions. */
static scl_status find_shape(const request *r, bool dims, scl_shape *out) {
  const scl_operation *row = &scl_operations[r->operation];
  scl_call call = {.operation = r->operation, .count = r->count};
  for (int k = 0; k < r->count; k++) {
    scl_shape *shape = &call.operand[k].shape;
    call.operand[k].kind = SCL_A_MATRIX;
    if (dims) {
      shape->nrow = (size_t)INTEGER_RO(r->operand[k])[0];
      shape->ncol = (size_t)INTEGER_RO(r->operand[k])[1];
    } else {
      SCL_TRY(r_shape(r->operand[k], operand_name(r, k), &shape->nrow, &shape->ncol));
    }
  }
  for (int k = 0; k < r->attributes; k++) call.attribute[k] = r->attribute[k];
  return row->rule(&call, out);
}

/* ---- doing it ------------------------------------------------------------------------------- */

static scl_status find_context(const request *r, bool eager, SEXP where, scl_context **out) {
  for (int k = 0; k < r->count; k++) {
    if (r_is_handle(r->operand[k])) return r_handle_context(r->operand[k], operand_name(r, k), out);
  }
  if (r_is_handle(where)) return r_handle_context(where, "x", out);
  if (eager) return r_context(Rf_asInteger(where), out);
  return scl_fail_argument("e1", "at least one operand must be a clMatrix");
}

/* References to the operands; release them in any case. */
static scl_status take_operands(const request *r, bool eager, scl_context *ctx, scl_term *term) {
  const scl_operation *row = &scl_operations[r->operation];
  for (int k = 0; k < r->count; k++) {
    SEXP x = r->operand[k];
    if (row->kind == SCL_VALUE_APPLY && is_number(x)) {
      term[k].number = REAL_RO(x)[0];
    } else if (eager) {
      SCL_TRY(r_operand(ctx, x, operand_name(r, k), &term[k].matrix));
    } else {
      SCL_TRY(r_operand_kept(ctx, x, operand_name(r, k), &term[k].matrix));
    }
  }
  return SCL_OK;
}

/* Engines that can then compute in the memory of the result. */
static void offer_result(scl_context *ctx, SEXP result, bool begin) {
  if (ctx->engine->buffer_offer == NULL) return;
  ctx->engine->buffer_offer(ctx, begin ? REAL(result) : NULL,
                            (size_t)XLENGTH(result) * sizeof(double));
}

SEXP r_op_shape(SEXP op, SEXP dims, SEXP attributes) {
  SEXP result = PROTECT(Rf_allocVector(INTSXP, 2));
  request r;
  scl_shape shape = {0, 0, SCL_GENERAL};
  scl_status status = read_request(op, dims, attributes, &r);
  if (status == SCL_OK) status = find_shape(&r, true, &shape);
  INTEGER(result)[0] = (int)shape.nrow;
  INTEGER(result)[1] = (int)shape.ncol;
  UNPROTECT(1);
  return r_return(status, result);
}

SEXP r_op(SEXP op, SEXP operands, SEXP attributes, SEXP where) {
  request r;
  scl_shape shape = {0, 0, SCL_GENERAL};
  scl_status status = read_request(op, operands, attributes, &r);
  if (status != SCL_OK) return r_return(status, R_NilValue);
  const bool eager = scl_operations[r.operation].how == SCL_IS_CALL;
  const bool resident = !eager || r_any_handle(r.count, r.operand);
  if (!resident) status = find_shape(&r, false, &shape);
  if (status != SCL_OK) return r_return(status, R_NilValue);
  SEXP result = PROTECT(r_result_new(resident, shape.nrow, shape.ncol));
  scl_term term[SCL_CALL_OPERANDS] = {{NULL, 0.0}};
  scl_mat *out = NULL;
  scl_context *ctx = NULL;
  SCL_GO(find_context(&r, eager, where, &ctx));
  SCL_GO(take_operands(&r, eager, ctx, term));
  if (!resident) offer_result(ctx, result, true);
  SCL_GO((eager ? scl_compute : scl_record)(ctx, r.operation, r.count, term, r.attributes,
                                            r.attribute, &out));
  SCL_GO(r_result_set(result, &out));
done:
  for (int k = 0; k < SCL_CALL_OPERANDS; k++) scl_mat_release(term[k].matrix);
  scl_mat_release(out);
  if (!resident && ctx != NULL) offer_result(ctx, result, false);
  UNPROTECT(1);
  return r_return(status, result);
}
