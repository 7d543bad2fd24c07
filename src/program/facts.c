#include "program/facts.h"

#include <math.h>

/* ---- data ----------------------------------------------------------------------------------- */

static bool are_symmetric(const double *x, size_t length) {
  const size_t n = (size_t)(sqrt((double)length) + 0.5);
  if (n * n != length) return false;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < j; i++) {
      if (x[i + j * n] != x[j + i * n]) return false;
    }
  }
  return true;
}

bool scl_numbers_have(const double *numbers, size_t length, unsigned properties) {
  const bool finite = (properties & SCL_DATA_FINITE) != 0;
  const bool nonzero = (properties & SCL_DATA_NONZERO) != 0;
  if ((properties & SCL_DATA_READ) != 0) return false;
  for (size_t i = 0; i < length && (finite || nonzero); i++) {
    if ((finite && !isfinite(numbers[i])) || (nonzero && numbers[i] == 0.0)) return false;
  }
  return (properties & SCL_DATA_SYMMETRIC) == 0 || are_symmetric(numbers, length);
}

/* Notes the property, if the data have it. */
static bool assume(scl_tape *t, int data, unsigned property) {
  scl_tape_data *d = &t->data[data];
  if ((d->tested & property) == 0) {
    d->tested |= property;
    if (scl_numbers_have(d->numbers, d->length, property)) d->assumed |= property;
  }
  return (d->assumed & property) != 0;
}

/* ---- symmetric matrices --------------------------------------------------------------------- */

/* The number of pairs that are examined; a matrix that needs more counts as unsymmetric. */
enum { MOST_PAIRS = 1000 };

typedef struct {
  scl_tape *t;
  size_t n;
  int pairs;
} comparison;

static bool is_mirror(comparison *c, int x, int y);

/* Operand k of a product: whether the product transposes it, and the matrix itself. */
static bool is_transposed(const scl_tape *t, int product, int k, int *matrix) {
  const size_t *at = t->value[product].at;
  const bool transposed = at[3 + k] != 0;
  const int x = scl_tape_operand(t, product, k);
  const scl_value *v = &t->value[x];
  const bool inner = v->kind == SCL_VALUE_TRANSPOSE && v->at[1] == at[transposed ? k + 1 : k];
  *matrix = inner ? scl_tape_operand(t, x, 0) : x;
  return transposed != inner;
}

/* (A B)' = B' A'. */
static bool is_mirror_product(const comparison *c, int x, int y) {
  const scl_tape *t = c->t;
  const size_t inner = t->value[x].at[1];
  int a, b, p, q;
  if (t->value[x].at[0] != c->n || t->value[y].at[0] != c->n || t->value[y].at[1] != inner) {
    return false;
  }
  const bool ta = is_transposed(t, x, 0, &a), tb = is_transposed(t, x, 1, &b);
  const bool tp = is_transposed(t, y, 0, &p), tq = is_transposed(t, y, 1, &q);
  return a == q && b == p && (inner == 1 || (ta != tq && tb != tp));
}

/* f(a - b), where f(-x) = f(x), and b is the mirror of a. */
static bool is_even_difference(comparison *c, int x, int y) {
  const scl_tape *t = c->t;
  const scl_op op = (scl_op)t->value[x].op;
  const int a = scl_tape_operand(t, x, 0), b = scl_tape_operand(t, y, 0);
  if (op != SCL_OP_SQUARE && op != SCL_OP_ABS && op != SCL_OP_COS) return false;
  if (t->value[a].kind != SCL_VALUE_APPLY || t->value[b].kind != SCL_VALUE_APPLY) return false;
  if (t->value[a].op != SCL_OP_SUB || t->value[b].op != SCL_OP_SUB) return false;
  return is_mirror(c, scl_tape_operand(t, a, 0), scl_tape_operand(t, b, 1)) &&
         is_mirror(c, scl_tape_operand(t, a, 1), scl_tape_operand(t, b, 0));
}

static bool is_mirror_apply(comparison *c, int x, int y) {
  const scl_tape *t = c->t;
  const scl_value *v = &t->value[x], *w = &t->value[y];
  bool mirror = true, crossed;
  if (v->op != w->op) return false;
  for (int k = 0; k < v->operands && mirror; k++) {
    mirror = is_mirror(c, scl_tape_operand(t, x, k), scl_tape_operand(t, y, k));
  }
  if (mirror) return true;
  if (v->operands == 1) return is_even_difference(c, x, y);
  crossed = v->op == SCL_OP_ADD || v->op == SCL_OP_MUL;
  return crossed && is_mirror(c, scl_tape_operand(t, x, 0), scl_tape_operand(t, y, 1)) &&
         is_mirror(c, scl_tape_operand(t, x, 1), scl_tape_operand(t, y, 0));
}

static bool is_mirror_gather(const comparison *c, int x, int y) {
  const scl_tape *t = c->t;
  const size_t n = c->n;
  const double *from = t->data[t->value[x].at[0]].numbers, *to = t->data[t->value[y].at[0]].numbers;
  if (scl_tape_operand(t, x, 0) != scl_tape_operand(t, y, 0)) return false;
  for (size_t i = 0; i < n * n; i++) {
    if (from[i] != to[i / n + i % n * n]) return false;
  }
  return true;
}

static bool is_square_transpose(const comparison *c, const scl_value *v) {
  return v->kind == SCL_VALUE_TRANSPOSE && v->at[0] == c->n;
}

/* y = x', element by element. */
static bool is_mirror(comparison *c, int x, int y) {
  scl_tape *t = c->t;
  const scl_value *v = &t->value[x], *w = &t->value[y];
  if (v->length == 1 && w->length == 1) return x == y;
  if (v->length != w->length || c->pairs++ == MOST_PAIRS) return false;
  if (is_square_transpose(c, v) && scl_tape_operand(t, x, 0) == y) return true;
  if (is_square_transpose(c, w) && scl_tape_operand(t, y, 0) == x) return true;
  if (v->kind != w->kind) return false;
  switch ((scl_value_kind)v->kind) {
  case SCL_VALUE_DATA:
    return x == y && assume(t, (int)v->at[0], SCL_DATA_SYMMETRIC);
  case SCL_VALUE_APPLY:
    return is_mirror_apply(c, x, y);
  case SCL_VALUE_BROADCAST:
    if (scl_tape_operand(t, x, 0) != scl_tape_operand(t, y, 0)) return false;
    return scl_tape_length(t, scl_tape_operand(t, x, 0)) == 1 ||
           (v->at[0] == c->n && w->at[0] == c->n && v->at[2] != w->at[2]);
  case SCL_VALUE_TRANSPOSE:
    return is_square_transpose(c, v) && is_square_transpose(c, w) &&
           is_mirror(c, scl_tape_operand(t, x, 0), scl_tape_operand(t, y, 0));
  case SCL_VALUE_GATHER:
    return is_mirror_gather(c, x, y);
  case SCL_VALUE_MATMUL:
    return is_mirror_product(c, x, y);
  case SCL_VALUE_COPY_AS:
    return x == y && v->at[1] == SCL_COPY_MIRROR_LOWER;
  default:
    return false;
  }
}

bool scl_tape_is_symmetric(scl_tape *t, int value, size_t n) {
  comparison c = {.t = t, .n = n};
  return t->status == SCL_OK && is_mirror(&c, value, value);
}

/* ---- finite numbers ------------------------------------------------------------------------- */

/* A program whose matrix has no factor has no result at all. */
bool scl_tape_is_finite(scl_tape *t, int value) {
  for (;;) {
    const scl_value *v = &t->value[value];
    switch ((scl_value_kind)v->kind) {
    case SCL_VALUE_NUMBER:
      return isfinite(v->number);
    case SCL_VALUE_DATA:
      return assume(t, (int)v->at[0], SCL_DATA_FINITE);
    case SCL_VALUE_CHOL:
      return !t->of_step;
    case SCL_VALUE_BROADCAST:
    case SCL_VALUE_TRANSPOSE:
    case SCL_VALUE_PART:
    case SCL_VALUE_GATHER:
    case SCL_VALUE_COPY_AS:
    case SCL_VALUE_COPY:
      value = scl_tape_operand(t, value, 0);
      break;
    default:
      return false;
    }
  }
}

/* ---- zeros ---------------------------------------------------------------------------------- */

static unsigned zeros_of_apply(scl_op op, const unsigned *of) {
  switch (op) {
  case SCL_OP_EQ:
  case SCL_OP_NE:
  case SCL_OP_LT:
  case SCL_OP_GT:
  case SCL_OP_LE:
  case SCL_OP_GE:
  case SCL_OP_AND:
  case SCL_OP_OR:
  case SCL_OP_NOT:
  case SCL_OP_IS_NAN:
  case SCL_OP_IS_FINITE:
  case SCL_OP_IS_INFINITE:
    return SCL_ZERO_BY_CHOICE | SCL_ZERO_BY_VALUE;
  case SCL_OP_IFELSE:
    return (of[1] | of[2]) != 0 ? SCL_ZERO_BY_CHOICE | SCL_ZERO_BY_VALUE : 0;
  case SCL_OP_NEG:
  case SCL_OP_ABS:
  case SCL_OP_SQUARE:
  case SCL_OP_DIV:
  case SCL_OP_OVER:
    return of[0];
  case SCL_OP_MUL:
  case SCL_OP_TIMES:
  case SCL_OP_PMIN:
  case SCL_OP_PMAX:
  case SCL_OP_FILL_NAN:
    return of[0] | of[1];
  case SCL_OP_ADD:
  case SCL_OP_SUB:
    return of[0] & of[1];
  default:
    return 0;
  }
}

unsigned scl_tape_zeros(scl_tape *t, const scl_value *v, const int *operand) {
  const unsigned both = SCL_ZERO_BY_CHOICE | SCL_ZERO_BY_VALUE;
  unsigned of[3] = {0, 0, 0}, any = 0;
  for (int k = 0; k < v->operands; k++) {
    const unsigned zeros = t->value[operand[k]].zeros;
    if (k < 3) of[k] = zeros;
    any |= zeros;
  }
  switch ((scl_value_kind)v->kind) {
  case SCL_VALUE_NUMBER:
    return v->number == 0.0 ? SCL_ZERO_BY_VALUE : 0;
  case SCL_VALUE_PARAMETER:
    return SCL_ZERO_BY_VALUE;
  case SCL_VALUE_DATA:
    return assume(t, (int)v->at[0], SCL_DATA_NONZERO) ? 0 : SCL_ZERO_BY_VALUE;
  case SCL_VALUE_APPLY:
    return zeros_of_apply((scl_op)v->op, of);
  case SCL_VALUE_CHOL:
  case SCL_VALUE_LU:
  case SCL_VALUE_SPARSE_LOG_DET:
  case SCL_VALUE_SPARSE_INVERSE:
  case SCL_VALUE_SPARSE_ROOT:
    return 0;
  case SCL_VALUE_SCATTER: /* steps leave out products with these zeros */
  case SCL_VALUE_SCATTER_COLUMNS:
    return t->of_step ? any | SCL_ZERO_BY_VALUE : both;
  case SCL_VALUE_COPY_AS:
    return any | SCL_ZERO_BY_VALUE;
  case SCL_VALUE_SCAN:
    return both;
  case SCL_VALUE_MATMUL:
  case SCL_VALUE_CHOL_ADJOINT:
  case SCL_VALUE_TRI_SOLVE:
  case SCL_VALUE_LU_SOLVE:
  case SCL_VALUE_SPARSE_SOLVE:
  case SCL_VALUE_SPARSE_ROOT_ADJOINT:
    return (any & SCL_ZERO_BY_CHOICE) != 0 ? both : 0;
  default: /* operations that move elements pass them on; others are not known */
    return scl_row_of(v->kind)->how == SCL_IS_CALL && scl_row_of(v->kind)->rule != NULL ? both
                                                                                        : any;
  }
}
