/* .Call entries for elementwise arithmetic and reductions. Operations go by the names that
 * elementwise.def and reduce.def give them. */
#include "r_entries.h"
#include "r_glue.h"

#include <string.h>

#include "scl_arith.h"

static const char *const op_name[SCL_OP_COUNT] = {
#define SCL_UNARY(NAME, name, expression, da) [SCL_OP_##NAME] = #name,
#define SCL_BINARY(NAME, name, expression, da, db) [SCL_OP_##NAME] = #name,
#define SCL_TERNARY(NAME, name, expression, da, db, dc)
#include "../inst/kernels/elementwise.def"
#undef SCL_TERNARY
#undef SCL_UNARY
#undef SCL_BINARY
};

static const char *const reduction_name[SCL_REDUCE_COUNT] = {
#define SCL_REDUCTION(NAME, name, arity, identity, map, combine) [SCL_REDUCE_##NAME] = #name,
#include "../inst/kernels/reduce.def"
#undef SCL_REDUCTION
};

/* Place of an R string in a table of names. */
static scl_status find_name(SEXP name, const char *const *table, int count, int *out) {
  const char *text = CHAR(STRING_ELT(name, 0));
  for (int i = 0; i < count; i++) {
    if (table[i] != NULL && strcmp(table[i], text) == 0) { /* NULL: of another kind */
      *out = i;
      return SCL_OK;
    }
  }
  return scl_fail_argument("op", "no operation '%s'", text);
}

/* A base R number: not a matrix of one element. */
static bool is_number(SEXP x) {
  return TYPEOF(x) == REALSXP && XLENGTH(x) == 1 && Rf_getAttrib(x, R_DimSymbol) == R_NilValue;
}

SEXP r_arith_unary(SEXP op, SEXP x) {
  SEXP result = PROTECT(r_result_new(true, r_nrow(x), r_ncol(x)));
  scl_status status;
  scl_mat *in, *out = NULL;
  int which;
  SCL_GO(find_name(op, op_name, SCL_OP_COUNT, &which));
  SCL_GO(r_handle_get(x, "x", &in));
  SCL_GO(scl_unary((scl_op)which, in, &out));
  SCL_GO(r_result_set(result, &out));
done:
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* At least one operand is a handle; the other one may be a number. */
SEXP r_arith_binary(SEXP op, SEXP a, SEXP b) {
  const bool number_a = is_number(a), number_b = is_number(b);
  const SEXP x[] = {number_a ? R_NilValue : a, number_b ? R_NilValue : b};
  const char *const names[] = {"e1", "e2"};
  SEXP result = PROTECT(r_result_new(true, 0, 0));
  scl_status status;
  scl_mat *in[2] = {NULL, NULL}, *out = NULL;
  int which;
  SCL_GO(find_name(op, op_name, SCL_OP_COUNT, &which));
  SCL_GO(r_operands(R_NilValue, 2, x, names, in));
  if (number_a) {
    SCL_GO(scl_binary_scalar((scl_op)which, in[1], REAL_RO(a)[0], true, &out));
  } else if (number_b) {
    SCL_GO(scl_binary_scalar((scl_op)which, in[0], REAL_RO(b)[0], false, &out));
  } else {
    SCL_GO(scl_binary((scl_op)which, in[0], in[1], &out));
  }
  SCL_GO(r_result_set(result, &out));
done:
  r_operands_release(2, in);
  scl_mat_release(out);
  UNPROTECT(1);
  return r_return(status, result);
}

/* y is NULL but for reductions of two operands. */
SEXP r_arith_reduce(SEXP op, SEXP x, SEXP y) {
  const SEXP both[] = {x, y};
  const char *const names[] = {"x", "y"};
  SEXP result = PROTECT(Rf_ScalarReal(0.0));
  scl_status status;
  scl_mat *in[2] = {NULL, NULL};
  int which;
  SCL_GO(find_name(op, reduction_name, SCL_REDUCE_COUNT, &which));
  SCL_GO(r_operands(R_NilValue, 2, both, names, in));
  SCL_GO(scl_reduce((scl_reduction)which, in[0], in[1], REAL(result)));
done:
  r_operands_release(2, in);
  UNPROTECT(1);
  return r_return(status, result);
}
