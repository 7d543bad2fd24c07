#include "program_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "expr_reference.h"
#include "op_reference.h"
#include "operation_reference.h"
#include "test.h"

/* ---- the list ------------------------------------------------------------------------------- */

void program_begin(program_nodes *l) {
  memset(l, 0, sizeof *l);
}

void program_end(program_nodes *l) {
  for (int k = 0; k < l->nodes; k++) free(l->node[k].operand), free(l->node[k].value);
  for (int k = 0; k < l->data_count; k++) free(l->data[k]);
  FREE(l->node, l->data, l->data_length, l->x);
  program_begin(l);
}

/* ---- values --------------------------------------------------------------------------------- */

static const double *operand(const program_nodes *l, const program_node *v, int k) {
  return l->node[v->operand[k]].value;
}

static size_t operand_length(const program_nodes *l, const program_node *v, int k) {
  return l->node[v->operand[k]].length;
}

static void apply_all(const program_nodes *l, const program_node *v) {
  for (size_t i = 0; i < v->length; i++) {
    double a[3] = {0.0, 0.0, 0.0};
    for (int k = 0; k < v->operands; k++) {
      a[k] = operand(l, v, k)[operand_length(l, v, k) == 1 ? 0 : i];
    }
    v->value[i] = op_reference((scl_op)v->op, a[0], a[1], a[2]);
  }
}

static void reduce(const program_node *v, const double *x) {
  size_t m, n;
  double *r =
      expr_reduced((scl_reduction)v->op, x, v->at[0], v->at[1], (scl_margin)v->at[2], &m, &n);
  memcpy(v->value, r, v->length * sizeof *r);
  free(r);
}

/* Elimination with row pivoting in place, for op(a) x = b, k columns; log |det| and the sign. */
static void eliminate(double *a, size_t n, double *b, size_t k, double *det) {
  det[0] = 0.0;
  det[1] = 1.0;
  for (size_t c = 0; c < n; c++) {
    size_t p = c;
    for (size_t i = c; i < n; i++) p = fabs(a[i + c * n]) > fabs(a[p + c * n]) ? i : p;
    for (size_t j = 0; j < n + k && p != c; j++) {
      double *x = j < n ? a + j * n : b + (j - n) * n, kept = x[c];
      x[c] = x[p];
      x[p] = kept;
    }
    det[0] += log(fabs(a[c + c * n]));
    if ((a[c + c * n] < 0.0) != (p != c)) det[1] = -det[1];
    for (size_t i = c + 1; i < n; i++) {
      const double f = a[i + c * n] / a[c + c * n];
      for (size_t j = c; j < n; j++) a[i + j * n] -= f * a[c + j * n];
      for (size_t j = 0; j < k; j++) b[i + j * n] -= f * b[c + j * n];
    }
  }
  for (size_t j = 0; j < k; j++) {
    for (size_t i = n; i-- > 0;) {
      double *x = b + j * n;
      for (size_t r = i + 1; r < n; r++) x[i] -= a[i + r * n] * x[r];
      x[i] /= a[i + i * n];
    }
  }
}

/* Here the matrix itself stands for its factor. */
static void lu(const program_node *v, const double *a) {
  const size_t n = v->at[0];
  double *copy = test_alloc((n * n + 1) * sizeof *copy);
  for (size_t i = 0; i < n * n; i++) copy[i] = v->value[i] = a[i];
  for (size_t i = 0; i < n; i++) v->value[n * n + i] = 0.0;
  eliminate(copy, n, NULL, 0, v->value + n * (n + 1));
  free(copy);
}

static void lu_solve(const program_node *v, const double *a, const double *b) {
  const size_t n = v->at[0], k = v->at[1];
  double *copy = test_alloc((n * n + 1) * sizeof *copy), det[2];
  for (size_t i = 0; i < n * n; i++) copy[i] = v->at[2] ? a[i / n + i % n * n] : a[i];
  for (size_t i = 0; i < n * k; i++) v->value[i] = b[i];
  eliminate(copy, n, v->value, k, det);
  free(copy);
}

/* The lower factor of a positive definite matrix, in its place. */
static void factorize(double *a, size_t n) {
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      for (size_t k = 0; k < j; k++) a[i + j * n] -= a[i + k * n] * a[j + k * n];
      a[i + j * n] = i == j ? sqrt(a[i + j * n]) : a[i + j * n] / a[j + j * n];
    }
  }
}

/* Of a dense copy. */
static void sparse(const program_nodes *l, const program_node *v, const double *a,
                   const double *b) {
  const size_t n = v->at[1], k = v->kind == SCL_VALUE_SPARSE_SOLVE ? v->at[3] : 0;
  const double *start = l->data[v->at[0]], *row = start + n + 1;
  double *copy = test_alloc((n * n + 1) * sizeof *copy), det[2];
  for (size_t i = 0; i < n * n; i++) copy[i] = 0.0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = (size_t)start[j]; i < (size_t)start[j + 1]; i++) {
      copy[(size_t)row[i] + j * n] = copy[j + (size_t)row[i] * n] = a[i];
    }
  }
  if (v->kind == SCL_VALUE_SPARSE_ROOT) {
    factorize(copy, n);
    for (size_t j = 0; j < n; j++) {
      for (size_t i = (size_t)start[j]; i < (size_t)start[j + 1]; i++) {
        v->value[i] = copy[(size_t)row[i] + j * n];
      }
    }
  } else {
    for (size_t i = 0; i < n * k; i++) v->value[i] = b[i];
    eliminate(copy, n, v->value, k, det);
    if (k == 0) v->value[0] = det[0];
  }
  free(copy);
}

static void cumulate(const program_node *v, const double *x) {
  const size_t m = v->at[0];
  for (size_t j = 0; j < v->at[1]; j++) {
    double sum = 0.0;
    for (size_t s = 0; s < m; s++) {
      const size_t i = j * m + (v->at[2] ? m - 1 - s : s);
      v->value[i] = sum += x[i];
    }
  }
}

/* Values that only move elements. */
static void move(const program_nodes *l, const program_node *v, const double *x) {
  const size_t *at = v->at;
  const double *place =
      v->kind == SCL_VALUE_GATHER || v->kind == SCL_VALUE_SCATTER ? l->data[at[0]] : NULL;
  size_t to = 0;
  switch (v->kind) {
  case SCL_VALUE_BROADCAST:
    for (size_t i = 0; i < v->length; i++) v->value[i] = x[at[2] ? i / at[0] : i % at[0]];
    break;
  case SCL_VALUE_TRANSPOSE:
    for (size_t i = 0; i < v->length; i++) v->value[i] = x[i / at[1] + i % at[1] * at[0]];
    break;
  case SCL_VALUE_PART:
    for (size_t i = 0; i < v->length; i++) {
      v->value[i] = x[at[1] + i % at[3] + (at[2] + i / at[3]) * at[0]];
    }
    break;
  case SCL_VALUE_GATHER:
    for (size_t i = 0; i < v->length; i++) v->value[i] = x[(size_t)place[i]];
    break;
  case SCL_VALUE_SCATTER:
    for (size_t i = 0; i < v->length; i++) v->value[i] = 0.0;
    for (size_t k = 0; k < operand_length(l, v, 0); k++) v->value[(size_t)place[k]] += x[k];
    break;
  default: /* CONCAT */
    for (int k = 0; k < v->operands; k++) {
      for (size_t i = 0; i < operand_length(l, v, k); i++) v->value[to++] = operand(l, v, k)[i];
    }
    break;
  }
}

/* By the reference of the operation on matrices. */
static void call(const program_nodes *l, const program_node *v) {
  const double *x[SCL_CALL_OPERANDS] = {NULL};
  scl_shape shape;
  scl_call of;
  scl_value_call(v->kind, v->at, &of);
  for (int k = 0; k < v->operands; k++) x[k] = operand(l, v, k);
  CHECK_OK(scl_row_of(v->kind)->rule(&of, &shape));
  CHECK(operation_reference(&of, x, shape, v->value));
}

static void evaluate(program_nodes *l, const program_node *v) {
  const scl_operation *row = scl_row_of(v->kind);
  const double *a = v->operands > 0 ? operand(l, v, 0) : NULL;
  switch (v->kind) {
  case SCL_VALUE_PARAMETER:
    for (size_t i = 0; i < v->length; i++) v->value[i] = l->x[v->at[0] + i];
    break;
  case SCL_VALUE_DATA:
    for (size_t i = 0; i < v->length; i++) v->value[i] = l->data[v->at[0]][i];
    break;
  case SCL_VALUE_NUMBER:
    v->value[0] = v->number;
    break;
  case SCL_VALUE_APPLY:
    apply_all(l, v);
    break;
  case SCL_VALUE_REDUCE:
    reduce(v, a);
    break;
  case SCL_VALUE_CUMSUM:
    cumulate(v, a);
    break;
  case SCL_VALUE_CHOL:
    call(l, v);
    for (size_t i = 0; i < v->at[0]; i++) l->no_factor |= !(v->value[i * (v->at[0] + 1)] > 0.0);
    break;
  case SCL_VALUE_LU:
    lu(v, a);
    break;
  case SCL_VALUE_LU_SOLVE:
    lu_solve(v, a, operand(l, v, 1));
    break;
  case SCL_VALUE_SPARSE_LOG_DET:
  case SCL_VALUE_SPARSE_ROOT:
    sparse(l, v, a, NULL);
    break;
  case SCL_VALUE_SPARSE_SOLVE:
    sparse(l, v, a, operand(l, v, 1));
    break;
  default:
    if (row->how == SCL_IS_CALL && row->rule != NULL) {
      call(l, v);
    } else {
      move(l, v, a);
    }
    break;
  }
}

void program_evaluate(program_nodes *l, const double *x) {
  if (x != l->x && l->parameters > 0) memcpy(l->x, x, l->parameters * sizeof *x);
  l->no_factor = false;
  for (int k = 0; k < l->nodes; k++) evaluate(l, &l->node[k]);
}

double program_value(program_nodes *l, int output, const double *x) {
  program_evaluate(l, x);
  return l->no_factor ? NAN : l->node[output].value[0];
}

static double difference(program_nodes *l, int output, const double *x, const double *direction,
                         double h) {
  double *y = test_alloc((l->parameters + 1) * sizeof *y), f[2];
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; i < l->parameters; i++) y[i] = x[i] + (side ? -h : h) * direction[i];
    f[side] = program_value(l, output, y);
  }
  free(y);
  return (f[0] - f[1]) / (2.0 * h);
}

double program_slope(program_nodes *l, int output, const double *x, const double *direction,
                     double h) {
  return (4.0 * difference(l, output, x, direction, h / 2.0) -
          difference(l, output, x, direction, h)) /
         3.0;
}

/* ---- adding --------------------------------------------------------------------------------- */

static size_t length_of(const program_nodes *l, const program_node *v) {
  const scl_value_shape shape = scl_value_shape_of((scl_value_kind)v->kind, v->at, SCL_OF_RESULT);
  size_t length = 1;
  if (shape.rows != SIZE_MAX) return shape.rows * shape.columns;
  switch (v->kind) {
  case SCL_VALUE_APPLY:
    for (int k = 0; k < v->operands; k++) {
      if (operand_length(l, v, k) != 1) length = operand_length(l, v, k);
    }
    return length;
  case SCL_VALUE_REDUCE:
    return v->at[2] == 0 ? 1 : v->at[v->at[2] - 1];
  case SCL_VALUE_GATHER:
    return l->data_length[v->at[0]];
  default: /* CONCAT */
    length = 0;
    for (int k = 0; k < v->operands; k++) length += operand_length(l, v, k);
    return length;
  }
}

static void *resize(void *memory, size_t bytes) {
  void *more = realloc(memory, bytes > 0 ? bytes : 1);
  if (more == NULL) abort();
  return more;
}

int program_add(program_nodes *l, scl_value_kind kind, unsigned op, int operands, const int *args,
                const size_t *at, double number) {
  program_node v = {.kind = kind, .op = op, .operands = operands, .number = number};
  if (at != NULL) memcpy(v.at, at, (size_t)scl_value_attributes(kind) * sizeof *at);
  v.operand = test_alloc((size_t)operands * sizeof *v.operand);
  for (int k = 0; k < operands; k++) v.operand[k] = args[k];
  v.length = length_of(l, &v);
  v.value = test_alloc(v.length * sizeof *v.value);
  if (l->nodes == l->room) {
    l->room = 2 * l->room + 32;
    l->node = resize(l->node, (size_t)l->room * sizeof *l->node);
  }
  l->node[l->nodes] = v;
  evaluate(l, &v);
  return l->nodes++;
}

int node_parameter(program_nodes *l, size_t length) {
  const size_t from = l->parameters;
  l->parameters += length;
  l->x = resize(l->x, l->parameters * sizeof *l->x);
  test_fill(l->x + from, length);
  return program_add(l, SCL_VALUE_PARAMETER, 0, 0, NULL, AT(from, length), 0.0);
}

static int add_data(program_nodes *l, double *x, size_t length) {
  l->data = resize(l->data, ((size_t)l->data_count + 1) * sizeof *l->data);
  l->data_length = resize(l->data_length, ((size_t)l->data_count + 1) * sizeof *l->data_length);
  l->data[l->data_count] = x;
  l->data_length[l->data_count] = length;
  return l->data_count++;
}

int node_data(program_nodes *l, const double *x, size_t length) {
  double *copy = test_alloc(length * sizeof *copy);
  for (size_t i = 0; i < length; i++) copy[i] = x[i];
  return program_add(l, SCL_VALUE_DATA, 0, 0, NULL, AT((size_t)add_data(l, copy, length), length),
                     0.0);
}

int node_random_data(program_nodes *l, size_t length) {
  double *x = test_alloc(length * sizeof *x);
  test_fill(x, length);
  const int node = node_data(l, x, length);
  free(x);
  return node;
}

int node_indices(program_nodes *l, size_t count, size_t limit) {
  double *x = test_alloc(count * sizeof *x);
  for (size_t i = 0; i < count; i++) x[i] = floor((test_random() + 1.0) / 2.0 * (double)limit);
  for (size_t i = 0; i < count; i++) x[i] = x[i] >= (double)limit ? (double)limit - 1.0 : x[i];
  return add_data(l, x, count);
}

int node_number(program_nodes *l, double number) {
  return program_add(l, SCL_VALUE_NUMBER, 0, 0, NULL, NULL, number);
}

int node_unary(program_nodes *l, scl_op op, int a) {
  return program_add(l, SCL_VALUE_APPLY, op, 1, &a, NULL, 0.0);
}

int node_binary(program_nodes *l, scl_op op, int a, int b) {
  return program_add(l, SCL_VALUE_APPLY, op, 2, (const int[]){a, b}, NULL, 0.0);
}

int node_ifelse(program_nodes *l, int test, int yes, int no) {
  return program_add(l, SCL_VALUE_APPLY, SCL_OP_IFELSE, 3, (const int[]){test, yes, no}, NULL, 0.0);
}

int node_one(program_nodes *l, scl_value_kind kind, int x, const size_t *at) {
  return program_add(l, kind, 0, 1, &x, at, 0.0);
}

int node_calls(program_nodes *l, size_t m, size_t n, int variant) {
  int part[SCL_VALUE_KINDS], parts = 0;
  double *shift = test_alloc((m * m + 1) * sizeof *shift);
  for (size_t i = 0; i < m * m; i++) shift[i] = i % (m + 1) == 0 ? 1.5 : 0.0;
  for (int k = 0; k < SCL_VALUE_KINDS; k++) {
    const scl_value_kind kind = (scl_value_kind)k;
    int args[SCL_CALL_OPERANDS];
    if (!scl_value_has_dims(kind) || !scl_row_of(kind)->is_value) continue;
    for (int i = 0; i < scl_value_operands(kind); i++) {
      const int x =
          node_binary(l, SCL_OP_DIV, node_parameter(l, m * m), node_number(l, 1.0 + (double)m));
      args[i] = node_binary(l, SCL_OP_ADD, x, node_data(l, shift, m * m));
    }
    const bool two = scl_value_operands(kind) > 1;
    const size_t flag = (size_t)variant,
                 *at = two ? AT(m, m, m, m, flag, flag) : AT(m, m, flag, flag);
    part[parts++] = program_add(l, kind, 0, scl_value_operands(kind), args, at, 0.0);
  }
  (void)n;
  free(shift);
  return node_concat(l, parts, part);
}

int node_eigen(program_nodes *l, size_t m, size_t n, int variant) {
  double *apart = test_alloc((m * m + 1) * sizeof *apart);
  for (size_t i = 0; i < m * m; i++)
    apart[i] = i % (m + 1) == 0 ? 1.5 * (double)(i / (m + 1)) : 0.0;
  const int x =
      node_binary(l, SCL_OP_MUL, node_number(l, 1.0 / (double)(m + 1)), node_parameter(l, m * m));
  const int a = node_binary(l, SCL_OP_ADD, x, node_data(l, apart, m * m));
  free(apart);
  const int e = ((void)n, (void)variant, node_one(l, SCL_VALUE_EIGEN, a, AT(m)));
  const int v = node_one(l, SCL_VALUE_PART, e, AT(m, 0, 0, m, m));
  const int w = node_one(l, SCL_VALUE_PART, e, AT(m, 0, m, m, 1));
  return node_concat(l, 2, (const int[]){w, node_binary(l, SCL_OP_MUL, v, v)});
}

int node_sparse(program_nodes *l, size_t m, size_t n, int variant) {
  if (m * n == 0) return node_parameter(l, m * n); /* an empty matrix is not recorded */
  const bool filled = variant == 2;
  const size_t count = 2 * m - 1 + (m > 3 ? (filled ? m - 2 : 1) : 0);
  double *pattern = test_alloc((m + 2 + count) * sizeof *pattern);
  double *shift = test_alloc((count + 1) * sizeof *shift);
  size_t k = 0;
  for (size_t j = 0; j < m; j++) { /* a band, and the element in the corner, or the last row */
    pattern[j] = (double)k;
    const bool corner = (j == 0 || (filled && j + 2 < m)) && m > 3;
    const size_t rows[] = {j, j + 1, m - 1}, held = (j + 1 < m ? 2 : 1) + (size_t)corner;
    for (size_t i = 0; i < held; i++, k++) {
      pattern[m + 1 + k] = (double)rows[i];
      shift[k] = i == 0 ? 4.0 : 0.0;
    }
  }
  pattern[m] = (double)k;
  CHECK(k == count);
  const int data = node_data(l, pattern, m + 1 + count);
  const size_t index = l->node[data].at[0];
  const int a = node_binary(l, SCL_OP_ADD, node_parameter(l, count), node_data(l, shift, count));
  FREE(pattern, shift);
  if (variant == 0) return node_one(l, SCL_VALUE_SPARSE_LOG_DET, a, AT(index, m, count));
  if (filled) return node_one(l, SCL_VALUE_SPARSE_ROOT, a, AT(index, m, count));
  const int b = node_parameter(l, m * n);
  return node_two(l, SCL_VALUE_SPARSE_SOLVE, a, b, AT(index, m, count, n));
}

int node_reduce(program_nodes *l, scl_reduction op, int x, size_t m, size_t n, scl_margin margin) {
  return program_add(l, SCL_VALUE_REDUCE, op, 1, &x, AT(m, n, margin), 0.0);
}

int node_sum(program_nodes *l, int x) {
  return node_reduce(l, SCL_REDUCE_SUM, x, l->node[x].length, 1, SCL_TOTAL);
}

int node_concat(program_nodes *l, int count, const int *x) {
  return program_add(l, SCL_VALUE_CONCAT, 0, count, x, NULL, 0.0);
}

int node_matmul(program_nodes *l, int a, int b, size_t m, size_t k, size_t n, bool ta, bool tb) {
  return node_two(l, SCL_VALUE_MATMUL, a, b, AT(m, k, n, ta, tb));
}

int node_two(program_nodes *l, scl_value_kind kind, int a, int b, const size_t *at) {
  return program_add(l, kind, 0, 2, (const int[]){a, b}, at, 0.0);
}

/* ---- recording ------------------------------------------------------------------------------ */

int program_record(const program_nodes *l, scl_tape *t, int output) {
  int *place = test_alloc((size_t)l->nodes * sizeof *place), most = 0;
  for (int k = 0; k < l->nodes; k++) most = l->node[k].operands > most ? l->node[k].operands : most;
  int *args = test_alloc((size_t)most * sizeof *args);
  for (int k = 0; k < l->data_count; k++) scl_tape_add_data(t, l->data[k], l->data_length[k]);
  for (int k = 0; k < l->nodes; k++) {
    const program_node *v = &l->node[k];
    for (int i = 0; i < v->operands; i++) args[i] = place[v->operand[i]];
    place[k] = scl_tape_add(t, v->kind, v->op, v->operands, args, v->at, v->number);
  }
  const int result = place[output];
  FREE(place, args);
  return result;
}
