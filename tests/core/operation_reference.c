#include "operation_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "expr_reference.h"
#include "matrices.h"
#include "test.h"

typedef struct {
  const scl_call *call;
  const double *const *x;
  scl_shape shape;
  double *to;
} task;

static size_t rows(const task *t, int k) {
  return t->call->operand[k].shape.nrow;
}

static size_t columns(const task *t, int k) {
  return t->call->operand[k].shape.ncol;
}

/* Element (i, j) of operand k; a number is the same everywhere, a column in each column. */
static double at(const task *t, int k, size_t i, size_t j) {
  if (t->call->operand[k].kind == SCL_A_NUMBER) return t->call->operand[k].number;
  return t->x[k][i + (columns(t, k) == 1 ? 0 : j) * rows(t, k)];
}

/* ---- dense algebra -------------------------------------------------------------------------- */

/* c (m x n) = op(a) op(b) over k terms. */
static void multiply(size_t m, size_t n, size_t k, const double *a, bool ta, const double *b,
                     bool tb, double *c) {
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < m; i++) {
      double sum = 0.0;
      for (size_t l = 0; l < k; l++) {
        sum += (ta ? a[l + i * k] : a[i + l * m]) * (tb ? b[j + l * n] : b[l + j * k]);
      }
      c[i + j * m] = sum;
    }
  }
}

/* By Gauss-Jordan elimination without pivoting: for triangular and positive definite matrices. */
static double *inverse(size_t n, const double *a) {
  double *w = test_alloc((n * n + 1) * sizeof *w), *r = test_alloc((n * n + 1) * sizeof *r);
  memcpy(w, a, n * n * sizeof *w);
  for (size_t k = 0; k < n * n; k++) r[k] = k % (n + 1) == 0 ? 1.0 : 0.0;
  for (size_t p = 0; p < n; p++) {
    const double pivot = w[p + p * n];
    for (size_t j = 0; j < n; j++) w[p + j * n] /= pivot, r[p + j * n] /= pivot;
    for (size_t i = 0; i < n; i++) {
      const double factor = w[i + p * n];
      for (size_t j = 0; i != p && j < n; j++) {
        w[i + j * n] -= factor * w[p + j * n];
        r[i + j * n] -= factor * r[p + j * n];
      }
    }
  }
  free(w);
  return r;
}

/* The triangle of a square array, zeros elsewhere; transposed if asked for. */
static double *triangle(size_t n, const double *a, bool upper, bool transpose) {
  double *r = test_alloc((n * n + 1) * sizeof *r);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) {
      const double value = (upper ? i <= j : i >= j) ? a[i + j * n] : 0.0;
      r[transpose ? j + i * n : i + j * n] = value;
    }
  }
  return r;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static double element(const task *t, size_t i, size_t j) {
  const double *attribute = t->call->attribute;
  switch (t->call->operation) {
  case SCL_OPERATION_TRANSPOSE:
    return t->x[0][j + i * rows(t, 0)];
  case SCL_OPERATION_BROADCAST:
    return t->x[0][(rows(t, 0) == 1 ? 0 : i) + (columns(t, 0) == 1 ? 0 : j) * rows(t, 0)];
  case SCL_OPERATION_PART:
    return t->x[0][i + (size_t)attribute[0] + (j + (size_t)attribute[1]) * rows(t, 0)];
  case SCL_OPERATION_WITH_PART: {
    const size_t r = i - (size_t)attribute[0], c = j - (size_t)attribute[1];
    const bool inside = r < rows(t, 1) && c < columns(t, 1);
    return inside ? t->x[1][r + c * rows(t, 1)] : t->x[0][i + j * rows(t, 0)];
  }
  case SCL_OPERATION_INDEX:
    return (double)(attribute[0] == SCL_BY_ROW ? i : j) + 1.0;
  case SCL_OPERATION_DIAGONAL:
    return t->x[0][i * (rows(t, 0) + 1)];
  case SCL_OPERATION_WITH_DIAGONAL:
    return i == j ? t->x[1][i] : t->x[0][i + j * rows(t, 0)];
  case SCL_OPERATION_BIND: {
    const size_t m = rows(t, 0), n = columns(t, 0);
    if (attribute[0] != 0.0) return j < n ? t->x[0][i + j * m] : t->x[1][i + (j - n) * m];
    return i < m ? t->x[0][i + j * m] : t->x[1][i - m + j * rows(t, 1)];
  }
  default:
    return scl_op_value((scl_op)t->call->operation, at(t, 0, i, j),
                        t->call->count > 1 ? at(t, 1, i, j) : 0.0,
                        t->call->count > 2 ? at(t, 2, i, j) : 0.0);
  }
}

static double copied(const task *t, size_t i, size_t j) {
  return test_copied((scl_copy)t->call->attribute[0], t->x[0], rows(t, 0), i, j);
}

static void fill_elements(const task *t, double (*value)(const task *, size_t, size_t)) {
  for (size_t j = 0; j < t->shape.ncol; j++) {
    for (size_t i = 0; i < t->shape.nrow; i++) t->to[i + j * t->shape.nrow] = value(t, i, j);
  }
}

static void reduce(const task *t) {
  const scl_reduction op = (scl_reduction)(t->call->operation - SCL_FIRST_REDUCTION);
  const size_t count = rows(t, 0) * columns(t, 0);
  size_t m, n;
  double *mapped = test_alloc((count + 1) * sizeof *mapped);
  for (size_t k = 0; k < count; k++) {
    mapped[k] = op == SCL_REDUCE_SUM_LOG ? log(t->x[0][k]) : t->x[0][k];
  }
  double *r = expr_reduced(op == SCL_REDUCE_SUM_LOG ? SCL_REDUCE_SUM : op, mapped, rows(t, 0),
                           columns(t, 0), (scl_margin)t->call->attribute[0], &m, &n);
  memcpy(t->to, r, m * n * sizeof *r);
  FREE(r, mapped);
}

static void product(const task *t) {
  const bool ta = t->call->attribute[0] != 0.0, tb = t->call->attribute[1] != 0.0;
  const int second = t->call->count > 1 ? 1 : 0;
  multiply(t->shape.nrow, t->shape.ncol, ta ? rows(t, 0) : columns(t, 0), t->x[0], ta, t->x[second],
           tb, t->to);
}

static void gram(const task *t) {
  const size_t n = rows(t, 0), p = columns(t, 0);
  for (size_t e = 0; e < p * p; e++) {
    long double sum = 0;
    for (size_t r = 0; r < n; r++)
      sum += (long double)t->x[1][r] * t->x[0][r + e % p * n] * t->x[0][r + e / p * n];
    t->to[e] = (double)sum;
  }
}

static void tri_solve(const task *t) {
  const size_t n = rows(t, 0);
  double *l = triangle(n, t->x[0], t->call->attribute[0] != 0.0, t->call->attribute[1] != 0.0);
  double *r = inverse(n, l);
  if (t->call->attribute[2] != 0.0)
    multiply(t->shape.nrow, n, n, t->x[1], false, r, false, t->to);
  else
    multiply(n, t->shape.ncol, n, r, false, t->x[1], false, t->to);
  FREE(l, r);
}

static void tri_inverse(const task *t) {
  const size_t n = rows(t, 0);
  double *l = triangle(n, t->x[0], t->call->attribute[0] != 0.0, false), *r = inverse(n, l);
  memcpy(t->to, r, n * n * sizeof *r);
  FREE(l, r);
}

static void chol(const task *t) {
  const size_t n = rows(t, 0);
  const bool upper = t->call->attribute[1] != 0.0;
  for (size_t k = 0; k < n * n; k++) t->to[k] = 0.0;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      double sum = t->x[0][i + j * n] + (i == j ? t->call->attribute[0] : 0.0);
      for (size_t k = 0; k < j; k++) {
        sum -= upper ? t->to[k + i * n] * t->to[k + j * n] : t->to[i + k * n] * t->to[j + k * n];
      }
      const double pivot = t->to[j + j * n];
      t->to[upper ? j + i * n : i + j * n] = i == j ? sqrt(sum) : sum / pivot;
    }
  }
}

/* Half of P + P', P = L^-T phi(L' L_adj) L^-1; phi: the lower triangle, its diagonal halved. */
static void chol_adjoint(const task *t) {
  const size_t n = rows(t, 0);
  double *l = triangle(n, t->x[0], false, false), *r = inverse(n, l);
  double *l_adj = triangle(n, t->x[1], false, false);
  double *p = test_alloc((n * n + 1) * sizeof *p), *half = test_alloc((n * n + 1) * sizeof *half);
  multiply(n, n, n, l, true, l_adj, false, p);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) p[i + j * n] *= i > j ? 1.0 : i == j ? 0.5 : 0.0;
  }
  multiply(n, n, n, r, true, p, false, half);
  multiply(n, n, n, half, false, r, false, p);
  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < n; i++) t->to[i + j * n] = (p[i + j * n] + p[j + i * n]) / 2.0;
  }
  FREE(l, r, l_adj, p, half);
}

/* (L L')^-1, or (R' R)^-1. */
static void chol_inverse(const task *t) {
  const size_t n = rows(t, 0);
  const bool upper = t->call->attribute[0] != 0.0;
  double *l = triangle(n, t->x[0], upper, upper), *r = inverse(n, l);
  multiply(n, n, n, r, true, r, false, t->to);
  FREE(l, r);
}

static void log_det(const task *t) {
  const size_t n = rows(t, 0);
  t->to[0] = 0.0;
  for (size_t i = 0; i < n; i++) t->to[0] += 2.0 * log(fabs(t->x[0][i * (n + 1)]));
}

/* By Jacobi's rotations: pairs of rows and columns of a symmetric matrix, until all others are 0.
 */
static void rotate(size_t n, double *a, double *v, size_t p, size_t q) {
  if (a[p + q * n] == 0.0) return;
  const double angle = 0.5 * atan2(2.0 * a[p + q * n], a[q + q * n] - a[p + p * n]);
  const double c = cos(angle), s = sin(angle);
  for (int side = 0; side < 3; side++) {
    for (size_t i = 0; i < n; i++) {
      double *x = side == 0 ? &a[i + p * n] : side == 1 ? &a[p + i * n] : &v[i + p * n];
      double *y = side == 0 ? &a[i + q * n] : side == 1 ? &a[q + i * n] : &v[i + q * n];
      const double old = *x;
      *x = c * old - s * *y;
      *y = s * old + c * *y;
    }
  }
}

static void eigen(const task *t) {
  const size_t n = rows(t, 0);
  double *a = test_alloc((n * n + 1) * sizeof *a), *v = test_alloc((n * n + 1) * sizeof *v);
  for (size_t i = 0; i < n * n; i++) {
    a[i] = 0.5 * (t->x[0][i] + t->x[0][i / n + i % n * n]);
    v[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
  }
  for (int sweep = 0; sweep < 20; sweep++) {
    for (size_t q = 0; q < n; q++) {
      for (size_t p = 0; p < q; p++) rotate(n, a, v, p, q);
    }
  }
  for (size_t k = 0; k < n; k++) {
    size_t place = 0; /* how many eigenvalues are smaller */
    for (size_t i = 0; i < n; i++) {
      place += a[i * (n + 1)] < a[k * (n + 1)] || (a[i * (n + 1)] == a[k * (n + 1)] && i < k);
    }
    t->to[n * n + place] = a[k * (n + 1)];
    memcpy(t->to + place * n, v + k * n, n * sizeof *v);
  }
  FREE(a, v);
}

static void elements(const task *t) {
  fill_elements(t, element);
}

static void copies(const task *t) {
  fill_elements(t, copied);
}

static void (*const loops[SCL_OPERATION_COUNT])(const task *) = {
    [SCL_OPERATION_COPY_AS] = copies,
    [SCL_OPERATION_MATVEC] = product,
    [SCL_OPERATION_MATMUL] = product,
    [SCL_OPERATION_GRAM] = gram,
    [SCL_OPERATION_TRI_SOLVE] = tri_solve,
    [SCL_OPERATION_TRI_INVERSE] = tri_inverse,
    [SCL_OPERATION_CHOL] = chol,
    [SCL_OPERATION_CHOL_ADJOINT] = chol_adjoint,
    [SCL_OPERATION_CHOL_INVERSE] = chol_inverse,
    [SCL_OPERATION_EIGEN] = eigen,
    [SCL_OPERATION_LOG_DET] = log_det,
    [SCL_OPERATION_TRANSPOSE] = elements,
    [SCL_OPERATION_BROADCAST] = elements,
    [SCL_OPERATION_PART] = elements,
    [SCL_OPERATION_WITH_PART] = elements,
    [SCL_OPERATION_INDEX] = elements,
    [SCL_OPERATION_DIAGONAL] = elements,
    [SCL_OPERATION_WITH_DIAGONAL] = elements,
    [SCL_OPERATION_BIND] = elements};

bool operation_reference(const scl_call *call, const double *const *x, scl_shape shape,
                         double *to) {
  const task t = {call, x, shape, to};
  void (*loop)(const task *) = loops[call->operation];
  if (call->operation < SCL_OP_COUNT) loop = elements;
  if (scl_operations[call->operation].kind == SCL_VALUE_REDUCE) loop = reduce;
  if (loop != NULL) loop(&t);
  return loop != NULL;
}
