/* Checks the operands and attributes of values that come from outside. */
#include "ops/sparse_known.h"
#include "ops/sparse_root.h"
#include "program/facts.h"

static bool index_fits(const scl_tape *t, size_t data, size_t limit) {
  if (data >= (size_t)t->data_used) return false;
  const scl_tape_data *d = &t->data[data];
  for (size_t i = 0; i < d->length; i++) {
    if (!(d->numbers[i] >= 0.0 && d->numbers[i] < (double)limit)) return false;
  }
  return true;
}

static bool apply_fits(const scl_tape *t, unsigned op, int operands, const int *operand) {
  size_t length = 1;
  if (op >= SCL_OP_COUNT || scl_op_arity((scl_op)op) != operands) return false;
  for (int k = 0; k < operands; k++) {
    const size_t l = scl_tape_length(t, operand[k]);
    if (l != 1 && length != 1 && l != length) return false;
    if (l != 1) length = l;
  }
  return true;
}

static bool pattern_fits(const scl_tape *t, const size_t *at) {
  if (at[0] >= (size_t)t->data_used) return false;
  const scl_tape_data *d = &t->data[at[0]];
  return scl_sparse_is_pattern(d->numbers, d->length, at[1], at[2]);
}

static bool is_filled(const scl_tape *t, const size_t *at) {
  const double *start = t->data[at[0]].numbers;
  return scl_sparse_is_filled((scl_sparse_columns){at[1], start, start + at[1] + 1});
}

enum { MOST_RESULTS = 2147483647 };

static bool scan_fits(const scl_tape *t, int operands, const int *operand, const size_t *at) {
  if (at[0] >= (size_t)t->bodies || at[3] > 1 || at[4] > 1) return false;
  const scl_scan_shape *s = &t->body[at[0]]->shape;
  const double rows = (double)at[1] * (double)at[2];
  if (operands != scl_scan_first(s, SCL_SCAN_SUM) || at[1] == 0 || at[2] == 0) return false;
  if (rows * (double)scl_scan_offset(s, SCL_SCAN_ROLES) > MOST_RESULTS) return false;
  const int x = s->ports[SCL_SCAN_STATE], fixed = scl_scan_first(s, SCL_SCAN_FIXED);
  for (int k = 0; k < operands; k++) {
    const size_t each = s->port[k].shared ? 1 : at[2], steps = k >= x && k < fixed ? at[1] : 1;
    if (scl_tape_length(t, operand[k]) != s->port[k].length * each * steps) return false;
  }
  return true;
}

static bool operands_fit(const scl_tape *t, scl_value_kind kind, unsigned op, int operands,
                         const int *operand, const size_t *at) {
  const scl_operation *row = scl_row_of(kind);
  const int wanted = scl_value_operands(kind);
  scl_shape shape;
  scl_call call;
  if (!row->is_value) return false;
  if (wanted != SCL_MANY_OPERANDS && wanted != operands) return false;
  for (int k = 0; k < operands; k++) {
    if (operand[k] < 0 || operand[k] >= t->values) return false;
    const scl_value_shape s = scl_value_shape_of(kind, at, k);
    if (s.rows != SIZE_MAX && s.rows * s.columns != scl_tape_length(t, operand[k])) return false;
  }
  if (row->how == SCL_IS_CALL && row->rule != NULL) {
    scl_value_call(kind, at, &call);
    if (row->rule(&call, &shape) != SCL_OK) return false;
  }
  const size_t x = operands > 0 ? scl_tape_length(t, operand[0]) : 0;
  switch (kind) {
  case SCL_VALUE_DATA:
    return at[0] < (size_t)t->data_used && t->data[at[0]].length == at[1];
  case SCL_VALUE_APPLY:
    return apply_fits(t, op, operands, operand);
  case SCL_VALUE_PART:
    return at[1] + at[3] <= at[0] && (at[2] + at[4]) * at[0] <= x;
  case SCL_VALUE_REDUCE:
    return op <= SCL_REDUCE_MAX && op != SCL_REDUCE_SUM_LOG && at[2] <= SCL_BY_COLUMN;
  case SCL_VALUE_GATHER:
    return index_fits(t, at[0], x);
  case SCL_VALUE_SCATTER:
    return index_fits(t, at[0], at[1]) && t->data[at[0]].length == x;
  case SCL_VALUE_SCAN:
    return scan_fits(t, operands, operand, at);
  case SCL_VALUE_COPY_AS:
    return at[1] >= SCL_COPY_LOWER && at[1] <= SCL_COPY_MIRROR_LOWER;
  case SCL_VALUE_LU_SOLVE:
    return t->value[operand[0]].kind == SCL_VALUE_LU;
  case SCL_VALUE_SPARSE_LOG_DET:
  case SCL_VALUE_SPARSE_INVERSE:
  case SCL_VALUE_SPARSE_SOLVE:
    return pattern_fits(t, at);
  case SCL_VALUE_SPARSE_ROOT:
  case SCL_VALUE_SPARSE_ROOT_ADJOINT:
    return pattern_fits(t, at) && is_filled(t, at);
  case SCL_VALUE_GATHER_COLUMNS: /* made by program/map.c and its derivative */
  case SCL_VALUE_SCATTER_COLUMNS:
    return false;
  default:
    return true;
  }
}

static int add_apply(scl_tape *t, scl_op op, const int *operand) {
  switch (scl_op_arity(op)) {
  case 1:
    return scl_tape_unary(t, op, operand[0]);
  case 2:
    return scl_tape_binary(t, op, operand[0], operand[1]);
  default:
    return scl_tape_apply(t, op, 3, operand);
  }
}

static int add_factor(scl_tape *t, int x, size_t n) {
  const scl_value v = {.kind = SCL_VALUE_CHOL,
                       .operands = 1,
                       .at = {n, 0, scl_tape_is_symmetric(t, x, n)},
                       .length = n * n};
  return scl_tape_add_value(t, v, &x);
}

static size_t reduced_length(const size_t *at) {
  return at[2] == SCL_TOTAL ? 1 : at[2] == SCL_BY_ROW ? at[0] : at[1];
}

static size_t recorded_length(const scl_tape *t, scl_value_kind kind, int operands,
                              const int *operand, const size_t *at) {
  const scl_value_shape shape = scl_value_shape_of(kind, at, SCL_OF_RESULT);
  size_t length = 0;
  switch (kind) {
  case SCL_VALUE_APPLY:
    for (int k = 0; k < operands; k++) {
      if (k == 0 || length == 1) length = scl_tape_length(t, operand[k]);
    }
    return length;
  case SCL_VALUE_CONCAT:
    for (int k = 0; k < operands; k++) length += scl_tape_length(t, operand[k]);
    return length;
  case SCL_VALUE_REDUCE:
    return reduced_length(at);
  case SCL_VALUE_GATHER:
    return t->data[at[0]].length;
  case SCL_VALUE_SCAN:
    return scl_scan_length(&t->body[at[0]]->shape, at[1], at[2], at[4] != 0);
  default:
    return shape.rows * shape.columns;
  }
}

/* The value as it was recorded. */
static int record(scl_tape *t, scl_value_kind kind, unsigned op, int operands, const int *operand,
                  const size_t *at, double number) {
  scl_value v = {.kind = (uint8_t)kind, .op = (uint8_t)op, .operands = operands, .number = number};
  v.length = recorded_length(t, kind, operands, operand, at);
  for (int k = 0; k < scl_value_attributes(kind); k++) v.at[k] = at[k];
  return scl_tape_add_value(t, v, operand);
}

int scl_tape_add(scl_tape *t, scl_value_kind kind, unsigned op, int operands, const int *operand,
                 const size_t *at, double number) {
  if (t->status != SCL_OK) return 0;
  if (!operands_fit(t, kind, op, operands, operand, at)) {
    scl_tape_fail(t,
                  scl_fail_argument("f", "a recorded operation ('%s') has operands that do not fit",
                                    scl_row_of(kind)->name));
    return 0;
  }
  if (t->recorded) return record(t, kind, op, operands, operand, at, number);
  switch (kind) {
  case SCL_VALUE_PARAMETER:
    return scl_tape_add_value(
        t, (scl_value){.kind = SCL_VALUE_PARAMETER, .at = {at[0], at[1]}, .length = at[1]}, NULL);
  case SCL_VALUE_DATA:
    return scl_tape_data_value(t, (int)at[0]);
  case SCL_VALUE_NUMBER:
    return scl_tape_number(t, number);
  case SCL_VALUE_APPLY:
    return add_apply(t, (scl_op)op, operand);
  case SCL_VALUE_BROADCAST:
    return scl_tape_broadcast(t, operand[0], at[0], at[1], at[2] != 0);
  case SCL_VALUE_TRANSPOSE:
    return scl_tape_transpose(t, operand[0], at[0], at[1]);
  case SCL_VALUE_PART:
    return scl_tape_block_part(t, operand[0], at);
  case SCL_VALUE_REDUCE:
    return scl_tape_reduce(t, (scl_reduction)op, operand[0], at[0], at[1], (scl_margin)at[2]);
  case SCL_VALUE_GATHER:
    return scl_tape_gather(t, operand[0], (int)at[0]);
  case SCL_VALUE_SCATTER:
    return scl_tape_scatter(t, operand[0], (int)at[0], at[1]);
  case SCL_VALUE_CONCAT:
    return scl_tape_concat(t, operands, operand);
  case SCL_VALUE_CUMSUM:
    return scl_tape_cumsum(t, operand[0], at[0], at[1], at[2] != 0);
  case SCL_VALUE_MATMUL:
    return scl_tape_matmul(t, operand[0], operand[1], at[0], at[1], at[2], at[3] != 0, at[4] != 0);
  case SCL_VALUE_SCAN:
    return scl_tape_scan(t, at, operand);
  case SCL_VALUE_CHOL:
    return add_factor(t, operand[0], at[0]);
  default:
    return scl_tape_call(t, kind, operand[0], operands > 1 ? operand[1] : 0, at);
  }
}
