/* A call of an operation, for the functions of its row in ops/operations.def.
 *
 * The rule finds from shapes alone whether the operands fit, and the shape and view of the result.
 * It reads no element, needs no context and is cheap, so that it can run before any matrix is made.
 * The functions that compute may rely on the rule. */
#ifndef SCL_OPS_CALL_H
#define SCL_OPS_CALL_H

#include "base/engine.h"

enum { SCL_CALL_OPERANDS = 3, SCL_CALL_ATTRIBUTES = 4 };

typedef struct {
  size_t nrow, ncol;
  scl_view view;
} scl_shape;

typedef enum { SCL_NO_OPERAND = 0, SCL_A_NUMBER, SCL_A_MATRIX } scl_operand_kind;

typedef struct {
  unsigned operation; /* a row of scl_operations */
  int count;          /* operands given; those that are left out are the last ones */
  struct {
    scl_operand_kind kind;
    scl_shape shape; /* of a matrix */
    double number;   /* fits every shape; elementwise operations only */
  } operand[SCL_CALL_OPERANDS];
  bool same; /* the first two operands are one matrix */
  /* Counts, flags (0 or 1), values of enums, numbers: by the row's attributes. */
  double attribute[SCL_CALL_ATTRIBUTES];
} scl_call;

static inline bool scl_call_flag(const scl_call *call, int k) {
  return call->attribute[k] != 0.0;
}
static inline size_t scl_call_count(const scl_call *call, int k) {
  return (size_t)call->attribute[k];
}
static inline scl_shape scl_shape_of(const scl_mat *a) {
  return (scl_shape){a->nrow, a->ncol, a->view};
}

/* Shape and view of the result; or the error if operands or attributes do not fit, with the
 * operand's name that the user knows. */
typedef scl_status scl_rule(const scl_call *call, scl_shape *out);

/* The result, a new matrix of the shape and view that the rule gives. Operands are computed, live
 * in one context and are borrowed; one that is left out is NULL. */
typedef scl_status scl_forward(const scl_call *call, const scl_mat *const *operand, scl_mat **out);

/* The same on blocks, into dst, which has elements. Operands have the shapes of the call, and may
 * be empty. Elements are not checked. */
typedef scl_status scl_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                           scl_block dst);

/* Forward functions: the rule's matrix, computed by the row's scl_run; and the same, with
 * SCL_E_SINGULAR for a zero on the diagonal of the first operand, which users know as `l`. */
scl_forward scl_call_compute, scl_call_nonsingular;

/* SCL_E_ARGUMENT naming `argument` unless operand k is square. */
scl_status scl_call_square(const scl_call *call, int k, const char *argument);

#endif
