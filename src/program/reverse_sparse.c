/* Derivatives of symmetric sparse matrices by the numbers of their lower triangle: a number below
 * the diagonal stands for two elements. */
#include <stdlib.h>

#include "program/reverse.h"

/* Up to these orders a gradient that will be differentiated takes the whole inverse or factor,
 * since SPARSE_INVERSE and SPARSE_ROOT_ADJOINT have no derivative. */
enum { MOST_WHOLE = 1000, MOST_DENSE = 8192 };

/* For each number of the triangle, its row (which = 0) or its column (1), plus the order of the
 * matrix times the column of a right-hand side. */
static int places(scl_tape *t, const scl_value *v, int which, size_t columns) {
  const size_t n = v->at[1], count = v->at[2];
  const double *start = t->data[v->at[0]].numbers, *row = start + n + 1;
  double *index = malloc((columns * count + 1) * sizeof *index);
  for (size_t c = 0; index != NULL && c < columns; c++) {
    for (size_t j = 0; j < n; j++) {
      for (size_t k = (size_t)start[j]; k < (size_t)start[j + 1]; k++) {
        index[c * count + k] = (which == 0 ? row[k] : (double)j) + (double)(c * n);
      }
    }
  }
  return scl_tape_own_data(t, index, columns * count);
}

/* `diagonal` for the diagonal, `other` below it. */
static int factors(scl_tape *t, const scl_value *v, double diagonal, double other) {
  const double *start = t->data[v->at[0]].numbers;
  double *number = malloc((v->at[2] + 1) * sizeof *number);
  for (size_t k = 0; number != NULL && k < v->at[2]; k++) number[k] = other;
  for (size_t j = 0; number != NULL && j < v->at[1]; j++) number[(size_t)start[j]] = diagonal;
  return scl_tape_data_value(t, scl_tape_own_data(t, number, v->at[2]));
}

static int solve(scl_tape *t, const scl_value *v, int a, int b, size_t k) {
  const size_t at[] = {v->at[0], v->at[1], v->at[2], k};
  return scl_tape_call(t, SCL_VALUE_SPARSE_SOLVE, a, b, at);
}

/* For each number of the triangle, where it is in the whole matrix. */
static int whole_places(scl_tape *t, const scl_value *v) {
  const size_t n = v->at[1], count = v->at[2];
  const double *start = t->data[v->at[0]].numbers, *row = start + n + 1;
  double *index = malloc((count + 1) * sizeof *index);
  for (size_t j = 0; index != NULL && j < n; j++) {
    for (size_t k = (size_t)start[j]; k < (size_t)start[j + 1]; k++) {
      index[k] = row[k] + (double)(j * n);
    }
  }
  return scl_tape_own_data(t, index, count);
}

/* The elements of the whole inverse that the triangle has. */
static int from_whole(scl_tape *t, const scl_value *v, int a) {
  const size_t n = v->at[1];
  double *identity = malloc((n * n + 1) * sizeof *identity);
  for (size_t k = 0; identity != NULL && k < n * n; k++) identity[k] = k % (n + 1) == 0;
  const int unit = scl_tape_data_value(t, scl_tape_own_data(t, identity, n * n));
  return scl_tape_gather(t, solve(t, v, a, unit, n), whole_places(t, v));
}

void scl_reverse_sparse_log_det(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const scl_value v = t->value[value];
  const int a = scl_tape_operand(t, value, 0);
  const int inverse = r->again && v.at[1] <= MOST_WHOLE
                          ? from_whole(t, &v, a)
                          : scl_tape_call(t, SCL_VALUE_SPARSE_INVERSE, a, 0, v.at);
  const int share = scl_tape_binary(t, SCL_OP_MUL, factors(t, &v, 1.0, 2.0), inverse);
  scl_share_whole(r, a, scl_tape_times_poles(t, g, share));
}

/* For A X = B with Y = A^-1 dX: dB = Y and dA = -Y X', of which the triangle takes both halves. */
void scl_reverse_sparse_solve(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const scl_value v = t->value[value];
  const size_t n = v.at[1], count = v.at[2], k = v.at[3];
  const int a = scl_tape_operand(t, value, 0), b = scl_tape_operand(t, value, 1);
  const int y = solve(t, &v, a, scl_tape_fill(t, g, n * k), k);
  scl_share_whole(r, b, y);
  if (!r->active[a]) return;
  const int row = places(t, &v, 0, k), column = places(t, &v, 1, k);
  if (t->status != SCL_OK) return;
  int share = scl_tape_binary(
      t, SCL_OP_ADD,
      scl_tape_binary(t, SCL_OP_MUL, scl_tape_gather(t, y, row), scl_tape_gather(t, value, column)),
      scl_tape_binary(t, SCL_OP_MUL, scl_tape_gather(t, y, column),
                      scl_tape_gather(t, value, row)));
  if (k > 1) share = scl_tape_reduce(t, SCL_REDUCE_SUM, share, count, k, SCL_BY_ROW);
  scl_share_whole(r, a, scl_tape_binary(t, SCL_OP_MUL, factors(t, &v, -0.5, -1.0), share));
}

void scl_reverse_sparse_root(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const scl_value v = t->value[value];
  const size_t n = v.at[1];
  const int a = scl_tape_operand(t, value, 0);
  g = scl_tape_fill(t, g, v.at[2]);
  if (!r->again || n > MOST_DENSE) {
    scl_share_whole(r, a, scl_tape_call(t, SCL_VALUE_SPARSE_ROOT_ADJOINT, value, g, v.at));
    return;
  }
  const int places = whole_places(t, &v);
  if (t->status != SCL_OK) return;
  const int whole = scl_chol_adjoint_by_solves(t, scl_tape_scatter(t, value, places, n * n),
                                               scl_tape_scatter(t, g, places, n * n), n);
  scl_share_whole(
      r, a,
      scl_tape_binary(t, SCL_OP_MUL, factors(t, &v, 1.0, 2.0), scl_tape_gather(t, whole, places)));
}

void scl_refuse_sparse(scl_reverse *r, int value, int g) {
  (void)g;
  const bool root = r->t->value[value].kind == SCL_VALUE_SPARSE_ROOT_ADJOINT;
  scl_tape_fail(r->t, scl_fail_argument("f",
                                        "second derivatives of %s of a sparse matrix of order %zu "
                                        "were asked for; they are available up to order %d",
                                        root ? "chol()" : "the determinant",
                                        r->t->value[value].at[1], root ? MOST_DENSE : MOST_WHOLE));
}
