/* A step as operations on single numbers: a tape on which every value has one element, so that
 * equal operations are shared and numbers are folded. Operations that only move elements
 * disappear. */
#include "program/scan.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1, MOST_OPERATIONS = 20000 };

typedef struct {
  const scl_tape *from;
  scl_tape to;
  int **element; /* of each live value of `from`: its elements' values in `to` */
  bool *live;
  const scl_scan_body *idle; /* not NULL: of its idle step */
  int guard;                 /* in `to`, or negative */
  int *result;               /* in `to`; then those of idle steps */
} scalars;

/* ---- elements ------------------------------------------------------------------------------- */

static int element_of(const scalars *w, int value, size_t i) {
  return w->element[value][w->from->value[value].length == 1 ? 0 : i];
}

static int operand_of(const scalars *w, int value, int k) {
  return scl_tape_operand(w->from, value, k);
}

static int multiply(scalars *w, int a, int b) {
  /* zeros of a triangle or of a scatter, not numbers that may be NaN elsewhere */
  if (scl_tape_is_number(&w->to, a, 0.0)) return a;
  if (scl_tape_is_number(&w->to, b, 0.0)) return b;
  return scl_tape_binary(&w->to, SCL_OP_MUL, a, b);
}

/* In idle steps the guard is 0: products with it vanish, and choices by it are made. */
static int operate(scalars *w, const scl_value *v, const int *x) {
  const bool idle = w->idle != NULL, share = v->op == SCL_OP_TIMES || v->op == SCL_OP_OVER;
  if (idle && (v->op == SCL_OP_MUL || v->op == SCL_OP_TIMES)) return multiply(w, x[0], x[1]);
  if ((share || (idle && v->op == SCL_OP_DIV)) && scl_tape_is_number(&w->to, x[0], 0.0)) {
    return x[0];
  }
  if (idle && v->op == SCL_OP_IFELSE) {
    if (x[1] == x[2] || scl_tape_is_number(&w->to, x[0], 1.0)) return x[1];
    if (scl_tape_is_number(&w->to, x[0], 0.0)) return x[2];
  }
  return v->operands == 1   ? scl_tape_unary(&w->to, (scl_op)v->op, x[0])
         : v->operands == 2 ? scl_tape_binary(&w->to, (scl_op)v->op, x[0], x[1])
                            : scl_tape_apply(&w->to, (scl_op)v->op, 3, x);
}

static int add(scalars *w, int a, int b) {
  return scl_tape_binary(&w->to, SCL_OP_ADD, a, b);
}

static int subtract(scalars *w, int a, int b) {
  return scl_tape_binary(&w->to, SCL_OP_SUB, a, b);
}

static int zero(scalars *w) {
  return scl_tape_number(&w->to, 0.0);
}

/* ---- kinds ---------------------------------------------------------------------------------- */

static void put_leaf(scalars *w, int value, int *to) {
  const scl_value *v = &w->from->value[value];
  for (size_t i = 0; i < v->length; i++) {
    if (v->kind == SCL_VALUE_PARAMETER) {
      const scl_value p = {.kind = SCL_VALUE_PARAMETER, .at = {v->at[0] + i, 1}, .length = 1};
      to[i] = scl_tape_add_value(&w->to, p, NULL);
    } else {
      to[i] = scl_tape_number(&w->to, v->kind == SCL_VALUE_DATA ? w->from->data[v->at[0]].numbers[i]
                                                                : v->number);
    }
  }
}

static void put_apply(scalars *w, int value, int *to) {
  const scl_value *v = &w->from->value[value];
  for (size_t i = 0; i < v->length; i++) {
    int x[3] = {0, 0, 0};
    for (int k = 0; k < v->operands; k++) x[k] = element_of(w, operand_of(w, value, k), i);
    to[i] = operate(w, v, x);
  }
}

static void put_view(scalars *w, int value, int *to) {
  const scl_value *v = &w->from->value[value];
  const int x = operand_of(w, value, 0);
  size_t m, n;
  scl_value_view_shape(v, &m, &n);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      to[i + j * m] = element_of(w, x, scl_value_view_element(v, i, j));
    }
  }
}

static void put_reduce(scalars *w, int value, int *to) {
  static const scl_op ops[] = {[SCL_REDUCE_SUM] = SCL_OP_ADD,
                               [SCL_REDUCE_PROD] = SCL_OP_MUL,
                               [SCL_REDUCE_MIN] = SCL_OP_PMIN,
                               [SCL_REDUCE_MAX] = SCL_OP_PMAX};
  const scl_value *v = &w->from->value[value];
  const size_t m = v->at[0], n = v->at[1];
  const int x = operand_of(w, value, 0);
  for (size_t i = 0; i < v->length; i++) to[i] = NONE;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      int *total = &to[v->at[2] == SCL_TOTAL ? 0 : v->at[2] == SCL_BY_ROW ? i : j];
      const int next = element_of(w, x, i + j * m);
      *total = *total == NONE ? next : scl_tape_binary(&w->to, ops[v->op], *total, next);
    }
  }
}

static void put_moved(scalars *w, int value, int *to) {
  const scl_value *v = &w->from->value[value];
  if (v->kind == SCL_VALUE_CONCAT) {
    size_t at = 0;
    for (int k = 0; k < v->operands; k++) {
      const int x = operand_of(w, value, k);
      for (size_t i = 0; i < w->from->value[x].length; i++) to[at++] = element_of(w, x, i);
    }
    return;
  }
  const scl_tape_data *index = &w->from->data[v->at[0]];
  const int x = operand_of(w, value, 0);
  if (v->kind == SCL_VALUE_GATHER) {
    for (size_t i = 0; i < v->length; i++) to[i] = element_of(w, x, (size_t)index->numbers[i]);
    return;
  }
  for (size_t i = 0; i < v->length; i++) to[i] = zero(w);
  for (size_t i = 0; i < index->length; i++) {
    int *total = &to[(size_t)index->numbers[i]];
    *total = add(w, *total, element_of(w, x, i));
  }
}

static void put_cumsum(scalars *w, int value, int *to) {
  const size_t *at = w->from->value[value].at, m = at[0];
  const int x = operand_of(w, value, 0);
  for (size_t j = 0; j < at[1]; j++) {
    for (size_t k = 0; k < m; k++) {
      const size_t i = (at[2] != 0 ? m - 1 - k : k) + j * m, last = at[2] != 0 ? i + 1 : i - 1;
      to[i] = k == 0 ? element_of(w, x, i) : add(w, to[last], element_of(w, x, i));
    }
  }
}

static void put_product(scalars *w, int value, int *to) {
  const size_t *at = w->from->value[value].at, m = at[0], inner = at[1], n = at[2];
  const int a = operand_of(w, value, 0), b = operand_of(w, value, 1);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m && w->to.values < MOST_OPERATIONS; i++) {
      int sum = zero(w);
      for (size_t l = 0; l < inner; l++) {
        const int x = element_of(w, a, at[3] != 0 ? l + i * inner : i + l * m);
        const int y = element_of(w, b, at[4] != 0 ? j + l * n : l + j * inner);
        sum = add(w, sum, multiply(w, x, y));
      }
      to[i + j * m] = sum;
    }
  }
}

/* The lower factor; NaN from the first pivot on that is not positive. */
static void put_chol(scalars *w, int value, int *to) {
  const size_t n = w->from->value[value].at[0];
  const int a = operand_of(w, value, 0);
  for (size_t j = 0; j < n && w->to.values < MOST_OPERATIONS; j++) {
    for (size_t i = 0; i < j; i++) to[i + j * n] = zero(w);
    for (size_t i = j; i < n; i++) {
      int rest = element_of(w, a, i + j * n);
      for (size_t l = 0; l < j; l++) {
        rest = subtract(w, rest, multiply(w, to[i + l * n], to[j + l * n]));
      }
      to[i + j * n] = i == j ? scl_tape_unary(&w->to, SCL_OP_SQRT, rest)
                             : scl_tape_binary(&w->to, SCL_OP_DIV, rest, to[j + j * n]);
    }
  }
}

/* x becomes op(t)^-1 x, whose first `skip` numbers in the order of the elimination are 0. */
static void solve(scalars *w, int t, size_t n, bool upper, bool transposed, size_t skip, int *x) {
  const bool forward = upper == transposed;
  for (size_t k = skip; k < n; k++) {
    const size_t i = forward ? k : n - 1 - k;
    int rest = x[i];
    for (size_t q = skip; q < k; q++) {
      const size_t l = forward ? q : n - 1 - q;
      const int factor = element_of(w, t, transposed ? l + i * n : i + l * n);
      rest = subtract(w, rest, multiply(w, factor, x[l]));
    }
    x[i] = scl_tape_binary(&w->to, SCL_OP_DIV, rest, element_of(w, t, i * (n + 1)));
  }
}

static void put_tri_solve(scalars *w, int value, int *to) {
  const size_t *at = w->from->value[value].at, n = at[0];
  const int t = operand_of(w, value, 0), b = operand_of(w, value, 1);
  for (size_t j = 0; j < at[1] && w->to.values < MOST_OPERATIONS; j++) {
    for (size_t i = 0; i < n; i++) to[i + j * n] = element_of(w, b, i + j * n);
    solve(w, t, n, at[2] != 0, at[3] != 0, 0, to + j * n);
  }
}

static void put_tri_inverse(scalars *w, int value, int *to) {
  const size_t *at = w->from->value[value].at, n = at[0];
  for (size_t j = 0; j < n && w->to.values < MOST_OPERATIONS; j++) {
    for (size_t i = 0; i < n; i++) to[i + j * n] = scl_tape_number(&w->to, i == j ? 1.0 : 0.0);
    solve(w, operand_of(w, value, 0), n, at[2] != 0, false, at[2] != 0 ? n - 1 - j : j, to + j * n);
  }
}

static void put_copy_as(scalars *w, int value, int *to) {
  const size_t *at = w->from->value[value].at, n = at[0];
  const int x = operand_of(w, value, 0);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) {
      const bool kept = at[1] == SCL_COPY_UPPER ? i <= j : i >= j;
      to[i + j * n] = kept                             ? element_of(w, x, i + j * n)
                      : at[1] == SCL_COPY_MIRROR_LOWER ? element_of(w, x, j + i * n)
                                                       : zero(w);
    }
  }
}

static int choose(scalars *w, int test, int yes, int no) {
  return yes == no ? yes : scl_tape_ifelse(&w->to, test, yes, no);
}

/* Exchanges rows k and i of an n x 2n matrix if i has the larger pivot; the sign of the determinant
 * after that. */
static int order_rows(scalars *w, int *a, size_t n, size_t k, size_t i, int sign) {
  const int larger =
      scl_tape_binary(&w->to, SCL_OP_LT, scl_tape_unary(&w->to, SCL_OP_ABS, a[k + k * n]),
                      scl_tape_unary(&w->to, SCL_OP_ABS, a[i + k * n]));
  for (size_t j = k; j < 2 * n; j++) {
    const int x = a[k + j * n], y = a[i + j * n];
    a[k + j * n] = choose(w, larger, y, x);
    a[i + j * n] = choose(w, larger, x, y);
  }
  return choose(w, larger, scl_tape_unary(&w->to, SCL_OP_NEG, sign), sign);
}

/* The inverse, by Gauss-Jordan elimination with pivots, in place of the factor, which only LU_SOLVE
 * reads; log |det| and the sign behind it. `a` is A and, right of it, the identity. */
static void eliminate(scalars *w, int *a, size_t n, int *log_det, int *sign) {
  for (size_t k = 0; k < n && w->to.values < MOST_OPERATIONS; k++) {
    for (size_t i = k + 1; i < n; i++) *sign = order_rows(w, a, n, k, i, *sign);
    const int pivot = a[k + k * n];
    const int negative = scl_tape_binary(&w->to, SCL_OP_LT, pivot, zero(w));
    *sign = choose(w, negative, scl_tape_unary(&w->to, SCL_OP_NEG, *sign), *sign);
    const int size = scl_tape_unary(&w->to, SCL_OP_ABS, pivot);
    *log_det = add(w, *log_det, scl_tape_unary(&w->to, SCL_OP_LOG, size));
    for (size_t j = k; j < 2 * n; j++) {
      int *x = &a[k + j * n];
      if (!scl_tape_is_number(&w->to, *x, 0.0)) *x = scl_tape_binary(&w->to, SCL_OP_DIV, *x, pivot);
    }
    for (size_t i = 0; i < n; i++) {
      const int factor = a[i + k * n];
      for (size_t j = k + 1; i != k && j < 2 * n; j++) {
        a[i + j * n] = subtract(w, a[i + j * n], multiply(w, factor, a[k + j * n]));
      }
    }
  }
}

static void put_lu(scalars *w, int value, int *to) {
  const size_t n = w->from->value[value].at[0];
  const int x = operand_of(w, value, 0);
  int *a = malloc((2 * n * n + 1) * sizeof *a);
  if (a == NULL) {
    scl_tape_fail(&w->to, scl_fail_memory(2 * n * n * sizeof *a, 0, "a recursion"));
    return;
  }
  int *log_det = &to[n * (n + 1)], *sign = log_det + 1;
  for (size_t i = 0; i < n * (n + 1); i++) to[i] = zero(w);
  for (size_t i = 0; i < n * n; i++) a[i] = element_of(w, x, i);
  for (size_t i = 0; i < n * n; i++) {
    a[n * n + i] = scl_tape_number(&w->to, i % (n + 1) == 0 ? 1.0 : 0.0);
  }
  *log_det = zero(w);
  *sign = scl_tape_number(&w->to, 1.0);
  eliminate(w, a, n, log_det, sign);
  memcpy(to, a + n * n, n * n * sizeof *a);
  free(a);
}

static void put_lu_solve(scalars *w, int value, int *to) {
  const size_t *at = w->from->value[value].at, n = at[0];
  const int inverse = operand_of(w, value, 0), b = operand_of(w, value, 1);
  for (size_t j = 0; j < at[1]; j++) {
    for (size_t i = 0; i < n; i++) {
      int sum = zero(w);
      for (size_t l = 0; l < n; l++) {
        const int x = element_of(w, inverse, at[2] != 0 ? l + i * n : i + l * n);
        sum = add(w, sum, multiply(w, x, element_of(w, b, l + j * n)));
      }
      to[i + j * n] = sum;
    }
  }
}

/* Of ops/operations.def. */
typedef void put_rule(scalars *w, int value, int *to);
static put_rule *const rules[SCL_VALUE_KINDS] = {
#define NONE NULL
#define NO_VALUE NULL
#define VALUE(reverse, vectors, scalars) scalars
#define SCL_OPERATION(NAME, name, how, operands, attributes, shapes, node, run, value) value,
#include "ops/operations.def"
#undef SCL_OPERATION
#undef VALUE
#undef NO_VALUE
#undef NONE
};

bool scl_scan_has_code(scl_value_kind kind) {
  return rules[kind] != NULL;
}

/* ---- all values ----------------------------------------------------------------------------- */

static scl_status too_many(void) {
  return scl_fail_argument("f",
                           "a step of cl_scan(), or its derivative, takes more than %d operations "
                           "on single numbers: make its state or its matrices smaller",
                           MOST_OPERATIONS);
}

static scl_status begin(scalars *w, int result) {
  const size_t values = (size_t)w->from->values;
  w->element = calloc(values + 1, sizeof *w->element);
  w->live = calloc(values + 1, sizeof *w->live);
  if (w->element == NULL || w->live == NULL) {
    return scl_fail_memory(values * sizeof *w->element, 0, "a recursion");
  }
  w->live[result] = true;
  for (int v = result; v >= 0; v--) {
    for (int k = 0; w->live[v] && k < w->from->value[v].operands; k++) {
      w->live[operand_of(w, v, k)] = true;
    }
  }
  return SCL_OK;
}

static void end_elements(scalars *w) {
  for (int v = 0; v < w->from->values && w->element != NULL; v++) free(w->element[v]);
  free(w->element);
  free(w->live);
  w->element = NULL;
  w->live = NULL;
}

static scl_status fill_elements(scalars *w, int result) {
  SCL_TRY(begin(w, result));
  for (int v = 0; v <= result; v++) {
    if (!w->live[v]) continue;
    const size_t length = w->from->value[v].length;
    w->element[v] = malloc((length + 1) * sizeof **w->element);
    if (w->element[v] == NULL) return scl_fail_memory(length * sizeof(int), 0, "a recursion");
    if (w->idle != NULL && w->idle->guard == v + 1) {
      w->element[v][0] = zero(w);
    } else {
      rules[w->from->value[v].kind](w, v, w->element[v]);
    }
    SCL_TRY(w->to.status);
    if (w->to.values >= MOST_OPERATIONS) return too_many();
  }
  return SCL_OK;
}

/* The guard that a step has in use. */
static int find_guard(scalars *w, const scl_scan_body *body) {
  const int guard = body->guard - 1;
  if (guard < 0) return NONE;
  if (guard <= body->result && w->live[guard]) return element_of(w, guard, 0);
  if (body->tape.value[guard].kind != SCL_VALUE_PARAMETER) return NONE;
  return scl_tape_add_value(&w->to, body->tape.value[guard], NULL);
}

/* The results, and with a guard those of idle steps. */
static scl_status make_scalars(scalars *w, const scl_scan_body *body, scl_scan_code *code) {
  const int results = code->results;
  w->guard = NONE;
  w->result = malloc((2 * (size_t)results + 1) * sizeof *w->result);
  if (w->result == NULL) return scl_fail_memory(sizeof *w->result, 0, "a recursion");
  for (int pass = 0; pass < 2; pass++) {
    w->idle = pass == 0 ? NULL : body;
    scl_status status = fill_elements(w, body->result);
    for (int i = 0; i < results && status == SCL_OK; i++) {
      w->result[pass * results + i] = element_of(w, body->result, (size_t)i);
    }
    if (pass == 0 && status == SCL_OK) w->guard = find_guard(w, body);
    if (status == SCL_OK) status = w->to.status;
    end_elements(w);
    SCL_TRY(status);
    code->listed += results;
    if (w->guard < 0) return SCL_OK;
  }
  return SCL_OK;
}

/* ---- code ----------------------------------------------------------------------------------- */

enum { NEEDED = 1, IN_IDLE = 2 };

/* Marks what the results need, and counts it. */
static void count_live(const scalars *w, unsigned char *live, scl_scan_code *code) {
  const scl_tape *t = &w->to;
  for (int i = 0; i < code->listed; i++) {
    live[w->result[i]] |= NEEDED | (i >= code->results ? IN_IDLE : 0);
  }
  if (w->guard >= 0) live[w->guard] |= NEEDED | IN_IDLE;
  for (int v = t->values - 1; v >= 0; v--) {
    for (int k = 0; k < t->value[v].operands; k++) live[scl_tape_operand(t, v, k)] |= live[v];
    if (!live[v]) continue;
    code->constants += t->value[v].kind == SCL_VALUE_NUMBER;
    code->operations += t->value[v].kind == SCL_VALUE_APPLY;
  }
}

static void fill_code(const scalars *w, const unsigned char *live, int *reg, scl_scan_code *code) {
  const scl_tape *t = &w->to;
  int constants = 0, operations = 0;
  for (int v = 0; v < t->values; v++) {
    const scl_value *value = &t->value[v];
    if (value->kind == SCL_VALUE_PARAMETER) reg[v] = (int)value->at[0];
    if (value->kind == SCL_VALUE_NUMBER && live[v]) {
      reg[v] = code->inputs + constants;
      code->constant[constants++] = value->number;
    }
    if (value->kind != SCL_VALUE_APPLY || !live[v]) continue;
    scl_scan_operation *o = &code->operation[operations];
    reg[v] = code->inputs + code->constants + operations++;
    o->op = value->op;
    o->idle = (live[v] & IN_IDLE) != 0;
    for (int k = 0; k < value->operands; k++) o->arg[k] = reg[scl_tape_operand(t, v, k)];
  }
  for (int i = 0; i < code->listed; i++) code->result[i] = reg[w->result[i]];
  code->guard = w->guard >= 0 ? reg[w->guard] : NONE;
}

static scl_status make_code(const scalars *w, scl_scan_code *code) {
  static _Atomic uint64_t serial;
  const size_t values = (size_t)w->to.values;
  unsigned char *live = calloc(values + 1, 1);
  int *reg = calloc(values + 1, sizeof *reg);
  scl_status status = SCL_OK;
  if (live != NULL) count_live(w, live, code);
  code->serial = atomic_fetch_add(&serial, 1) + 1;
  code->inputs = (int)scl_scan_offset(&code->shape, SCL_SCAN_SUM);
  code->constant = calloc((size_t)code->constants + 1, sizeof *code->constant);
  code->operation = calloc((size_t)code->operations + 1, sizeof *code->operation);
  code->result = calloc((size_t)code->listed + 1, sizeof *code->result);
  if (live == NULL || reg == NULL || code->constant == NULL || code->operation == NULL ||
      code->result == NULL) {
    status = scl_fail_memory(values * sizeof *reg, 0, "a recursion");
  } else {
    fill_code(w, live, reg, code);
    status = scl_scan_order(code);
  }
  free(live);
  free(reg);
  return status;
}

scl_status scl_scan_code_make(const scl_scan_body *body, scl_scan_code **out) {
  scalars w = {.from = &body->tape};
  scl_scan_code *code = calloc(1, sizeof *code);
  if (code == NULL) return scl_fail_memory(sizeof *code, 0, "a recursion");
  code->shape = body->shape;
  const size_t results = body->tape.value[body->result].length;
  code->results = (int)results;
  code->guard = NONE;
  scl_tape_begin(&w.to);
  scl_status status = make_scalars(&w, body, code);
  if (status == SCL_OK) status = make_code(&w, code);
  scl_tape_end(&w.to);
  free(w.result);
  if (status != SCL_OK) {
    scl_scan_code_free(code);
    return status;
  }
  *out = code;
  return SCL_OK;
}
