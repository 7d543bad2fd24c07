/* Reverse mode: the derivatives of one value with respect to all values on which it depends, on the
 * same tape.
 *
 * Values are visited from the output backwards. A value's derivative is a sum of shares, one
 * for each use of the value (program/reverse_shares.c).
 *
 * A derivative may have length 1, which stands for the same number at all elements. */
#include <stdlib.h>
#include <string.h>

#include "program/reverse.h"
#include "program/scan.h"

enum { NONE = -1 };

/* ---- rules ---------------------------------------------------------------------------------- */

static void reverse_apply(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const size_t length = scl_tape_length(t, value);
  for (int k = 0; k < t->value[value].operands; k++) {
    const int x = scl_tape_operand(t, value, k);
    if (!r->active[x]) continue;
    int share = scl_tape_slope(t, value, k, g);
    if (share < 0) continue;
    if (scl_tape_length(t, x) == 1 && length != 1) {
      share = scl_tape_length(t, share) == 1
                  ? scl_tape_binary(t, SCL_OP_MUL, share, scl_tape_number(t, (double)length))
                  : scl_tape_reduce(t, SCL_REDUCE_SUM, share, length, 1, SCL_TOTAL);
    }
    scl_share_whole(r, x, share);
  }
}

static void reverse_broadcast(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const scl_value v = t->value[value];
  const int x = scl_tape_operand(t, value, 0);
  const bool by_row = v.at[2] != 0;
  const size_t m = v.at[0], n = v.at[1];
  if (scl_tape_length(t, g) == 1 && v.length != 1) {
    const int count = scl_tape_number(t, (double)(by_row ? m : n));
    scl_share_whole(r, x, scl_tape_binary(t, SCL_OP_MUL, g, count));
  } else {
    scl_share_whole(
        r, x, scl_tape_reduce(t, SCL_REDUCE_SUM, g, m, n, by_row ? SCL_BY_COLUMN : SCL_BY_ROW));
  }
}

static void reverse_transpose(scl_reverse *r, int value, int g) {
  const size_t *at = r->t->value[value].at;
  scl_share_whole(r, scl_tape_operand(r->t, value, 0), scl_tape_transpose(r->t, g, at[1], at[0]));
}

/* The elements of its operand that a part has. */
static int part_indices(scl_tape *t, const scl_value *part) {
  const size_t m = part->at[3], length = part->length;
  double *index = malloc(length * sizeof *index);
  for (size_t e = 0; index != NULL && e < length; e++) {
    index[e] = (double)scl_value_view_element(part, e % m, e / m);
  }
  return scl_tape_own_data(t, index, length);
}

static void reverse_part(scl_reverse *r, int value, int g) {
  const scl_value v = r->t->value[value];
  const int x = scl_tape_operand(r->t, value, 0);
  if (!r->active[x]) return;
  if (v.at[4] == 1) {
    scl_share_some(r, x, (scl_partial){g, NONE, v.at[1] + v.at[2] * v.at[0], v.length, NONE});
  } else {
    scl_share_some(r, x, (scl_partial){g, part_indices(r->t, &v), 0, v.length, NONE});
  }
}

static void reverse_concat(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  size_t from = 0;
  const bool alike = scl_tape_length(t, g) == 1;
  for (int k = 0; k < t->value[value].operands; k++) {
    const int x = scl_tape_operand(t, value, k);
    const size_t length = scl_tape_length(t, x);
    if (r->active[x]) scl_share_whole(r, x, alike ? g : scl_tape_part(t, g, from, length));
    from += length;
  }
}

/* x, one number for each row, for each column or for all, repeated over the elements of v's
 * operand. */
static int spread_over(scl_tape *t, const scl_value *v, int x) {
  if (v->at[2] == SCL_TOTAL) return x;
  return scl_tape_broadcast(t, x, v->at[0], v->at[1], v->at[2] == SCL_BY_COLUMN);
}

/* For each element, the product of all others. If one element is 0, only its own is nonzero; if
 * several are, all are 0. */
static int product_of_others(scl_tape *t, const scl_value *v, int x) {
  const size_t m = v->at[0], n = v->at[1];
  const scl_margin margin = (scl_margin)v->at[2];
  const int zero = scl_tape_number(t, 0.0), one = scl_tape_number(t, 1.0);
  const int is_zero = scl_tape_binary(t, SCL_OP_EQ, x, zero);
  const int filled = scl_tape_ifelse(t, is_zero, one, x);
  const int zeros = spread_over(t, v, scl_tape_reduce(t, SCL_REDUCE_SUM, is_zero, m, n, margin));
  const int rest = spread_over(t, v, scl_tape_reduce(t, SCL_REDUCE_PROD, filled, m, n, margin));
  /* 0 if there are more zeros than the element itself. */
  const int alone = scl_tape_binary(t, SCL_OP_EQ, zeros, is_zero);
  return scl_tape_ifelse(t, alone, scl_tape_binary(t, SCL_OP_DIV, rest, filled), zero);
}

static void reverse_reduce(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const scl_value v = t->value[value];
  const int x = scl_tape_operand(t, value, 0);
  if (scl_tape_length(t, g) != 1 || v.op != SCL_REDUCE_SUM) g = spread_over(t, &v, g);
  if (v.op == SCL_REDUCE_PROD) {
    g = scl_tape_times(t, g, product_of_others(t, &v, x));
  } else if (v.op != SCL_REDUCE_SUM) { /* an extreme: shared by all elements that reach it */
    const int reached = scl_tape_binary(t, SCL_OP_EQ, x, spread_over(t, &v, value));
    const int count =
        scl_tape_reduce(t, SCL_REDUCE_SUM, reached, v.at[0], v.at[1], (scl_margin)v.at[2]);
    g = scl_tape_times(t, scl_tape_over(t, g, spread_over(t, &v, count)), reached);
  }
  scl_share_whole(r, x, g);
}

static void reverse_cumsum(scl_reverse *r, int value, int g) {
  const scl_value v = r->t->value[value];
  g = scl_tape_fill(r->t, g, v.length);
  scl_share_whole(r, scl_tape_operand(r->t, value, 0),
                  scl_tape_cumsum(r->t, g, v.at[0], v.at[1], v.at[2] == 0));
}

static void reverse_matmul(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const scl_value v = t->value[value];
  const size_t m = v.at[0], k = v.at[1], n = v.at[2];
  const bool ta = v.at[3] != 0, tb = v.at[4] != 0;
  const int a = scl_tape_operand(t, value, 0), b = scl_tape_operand(t, value, 1);
  g = scl_tape_fill(t, g, m * n);
  if (r->active[a]) {
    const int x = scl_tape_factor(t, g, b);
    scl_share_whole(r, a,
                    ta ? scl_tape_matmul(t, x, g, k, n, m, tb, true)
                       : scl_tape_matmul(t, g, x, m, n, k, false, !tb));
  }
  if (r->active[b]) {
    const int x = scl_tape_factor(t, g, a);
    scl_share_whole(r, b,
                    tb ? scl_tape_matmul(t, g, x, n, m, k, true, ta)
                       : scl_tape_matmul(t, x, g, k, m, n, !ta, false));
  }
}

static int tri_solve(scl_tape *t, int l, int b, size_t n, size_t k, bool upper, bool transpose) {
  const size_t at[] = {n, k, upper, transpose};
  return scl_tape_call(t, SCL_VALUE_TRI_SOLVE, l, b, at);
}

static int copy_as(scl_tape *t, int x, size_t n, scl_copy kind) {
  const size_t at[] = {n, kind};
  return scl_tape_call(t, SCL_VALUE_COPY_AS, x, 0, at);
}

/* An n x n matrix with `diagonal` on its diagonal and `other` elsewhere. */
static int diagonal_data(scl_tape *t, size_t n, double diagonal, double other) {
  double *d = malloc(n * n * sizeof *d);
  if (d != NULL) {
    for (size_t i = 0; i < n * n; i++) d[i] = other;
    for (size_t i = 0; i < n; i++) d[i * (n + 1)] = diagonal;
  }
  return scl_tape_data_value(t, scl_tape_own_data(t, d, n * n));
}

/* For L = chol(A): S = (M + M') / 2 with M = L'^-1 P L^-1, where P is the lower triangle of L'
 * dF/dL with its diagonal halved. Iain Murray, "Differentiation of the Cholesky decomposition",
 * 2016. */
int scl_chol_adjoint_by_solves(scl_tape *t, int l, int g, size_t n) {
  int p = copy_as(t, scl_tape_matmul(t, l, g, n, n, n, true, false), n, SCL_COPY_LOWER);
  p = scl_tape_binary(t, SCL_OP_MUL, p, diagonal_data(t, n, 0.5, 1.0));
  int m = tri_solve(t, l, p, n, n, false, true);
  m = scl_tape_transpose(t, tri_solve(t, l, scl_tape_transpose(t, m, n, n), n, n, false, true), n,
                         n);
  return scl_tape_binary(t, SCL_OP_MUL, scl_tape_number(t, 0.5),
                         scl_tape_binary(t, SCL_OP_ADD, m, scl_tape_transpose(t, m, n, n)));
}

/* 2 below the diagonal of an n x n matrix, 1 on it, 0 above it: kernels make it of two vectors. */
static int below_twice(scl_tape *t, size_t n) {
  double *numbers = malloc(n * sizeof *numbers);
  for (size_t i = 0; numbers != NULL && i < n; i++) numbers[i] = (double)i;
  const int index = scl_tape_data_value(t, scl_tape_own_data(t, numbers, n));
  const int row = scl_tape_broadcast(t, index, n, n, false);
  const int column = scl_tape_broadcast(t, index, n, n, true);
  return scl_tape_binary(t, SCL_OP_ADD, scl_tape_binary(t, SCL_OP_GT, row, column),
                         scl_tape_binary(t, SCL_OP_GE, row, column));
}

/* Of a matrix that may be unsymmetric only the lower triangle is read. */
static void reverse_chol(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const size_t n = t->value[value].at[0];
  const bool symmetric = t->value[value].at[2] != 0;
  g = scl_tape_fill(t, g, n * n);
  int share = r->again ? scl_chol_adjoint_by_solves(t, value, copy_as(t, g, n, SCL_COPY_LOWER), n)
                       : scl_tape_call(t, SCL_VALUE_CHOL_ADJOINT, value, g, &n);
  if (!symmetric) share = scl_tape_binary(t, SCL_OP_MUL, share, below_twice(t, n));
  scl_share_whole(r, scl_tape_operand(t, value, 0), share);
}

/* dB X' of the solution X, n x k, or its transpose. */
static int solution_times(scl_tape *t, int db, int x, size_t n, size_t k, bool transpose) {
  x = scl_tape_factor(t, db, x);
  return transpose ? scl_tape_matmul(t, x, db, n, k, n, false, true)
                   : scl_tape_matmul(t, db, x, n, k, n, false, true);
}

static void reverse_tri_solve(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const scl_value v = t->value[value];
  const size_t n = v.at[0], k = v.at[1];
  const bool upper = v.at[2] != 0, transpose = v.at[3] != 0;
  const int l = scl_tape_operand(t, value, 0), b = scl_tape_operand(t, value, 1);
  const int solved = tri_solve(t, l, scl_tape_fill(t, g, n * k), n, k, upper, !transpose);
  scl_share_whole(r, b, solved);
  if (!r->active[l]) return;
  const int product = solution_times(t, solved, value, n, k, transpose);
  const scl_copy kind = upper ? SCL_COPY_UPPER : SCL_COPY_LOWER;
  scl_share_whole(r, l, scl_tape_unary(t, SCL_OP_NEG, copy_as(t, product, n, kind)));
}

/* For X = L^-1: the triangle of -X' dX X'. */
static void reverse_tri_inverse(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const size_t n = t->value[value].at[0];
  const scl_copy kind = t->value[value].at[2] != 0 ? SCL_COPY_UPPER : SCL_COPY_LOWER;
  const int half = scl_tape_matmul(t, value, scl_tape_fill(t, g, n * n), n, n, n, true, false);
  const int share = scl_tape_matmul(t, half, value, n, n, n, false, true);
  scl_share_whole(r, scl_tape_operand(t, value, 0),
                  scl_tape_unary(t, SCL_OP_NEG, copy_as(t, share, n, kind)));
}

static void reverse_copy_as(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const size_t n = t->value[value].at[0];
  scl_copy kind = (scl_copy)t->value[value].at[1];
  g = scl_tape_fill(t, g, n * n);
  if (kind == SCL_COPY_MIRROR_LOWER) {
    g = scl_tape_binary(t, SCL_OP_ADD, g, scl_tape_transpose(t, g, n, n));
    g = scl_tape_binary(t, SCL_OP_MUL, g, diagonal_data(t, n, 0.5, 1.0));
    kind = SCL_COPY_LOWER;
  }
  scl_share_whole(r, scl_tape_operand(t, value, 0), copy_as(t, g, n, kind));
}

static int lu_solve(scl_tape *t, int lu, int b, size_t n, size_t k, bool transpose) {
  const size_t at[] = {n, k, transpose};
  return scl_tape_call(t, SCL_VALUE_LU_SOLVE, lu, b, at);
}

/* For log |det A| only: values that use the factor pass their shares to A itself. */
static void reverse_lu(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const size_t n = t->value[value].at[0];
  const int inverse = lu_solve(t, value, diagonal_data(t, n, 1.0, 0.0), n, n, true);
  g = scl_tape_part(t, scl_tape_fill(t, g, n * (n + 1) + 2), n * (n + 1), 1);
  scl_share_whole(r, scl_tape_operand(t, value, 0), scl_tape_times_poles(t, g, inverse));
}

/* For X = op(A)^-1 B: dB = op(A)'^-1 dX, and dA = -dB X', or its transpose. */
static void reverse_lu_solve(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const scl_value v = t->value[value];
  const size_t n = v.at[0], k = v.at[1];
  const bool transpose = v.at[2] != 0;
  const int lu = scl_tape_operand(t, value, 0), b = scl_tape_operand(t, value, 1);
  const int a = scl_tape_operand(t, lu, 0);
  const int solved = lu_solve(t, lu, scl_tape_fill(t, g, n * k), n, k, !transpose);
  scl_share_whole(r, b, solved);
  if (!r->active[a]) return;
  const int product = solution_times(t, solved, value, n, k, transpose);
  scl_share_whole(r, a, scl_tape_unary(t, SCL_OP_NEG, product));
}

/* For A = V diag(w) V': dA = V (diag(dw) + F o (V' dV - dV' V) / 2) V' with F[i, j] = 1 / (w[j] -
 * w[i]), and 0 for eigenvalues that are equal. The difference comes first, since eigenvalues that
 * are almost equal make F large. */
static void reverse_eigen(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const size_t n = t->value[value].at[0];
  const int v = scl_tape_part(t, value, 0, n * n), w = scl_tape_part(t, value, n * n, n);
  g = scl_tape_fill(t, g, n * (n + 1));
  int inner = scl_tape_matmul(t, v, scl_tape_part(t, g, 0, n * n), n, n, n, true, false);
  inner = scl_tape_binary(t, SCL_OP_SUB, inner, scl_tape_transpose(t, inner, n, n));
  inner = scl_tape_binary(t, SCL_OP_MUL, scl_tape_number(t, 0.5), inner);
  int gap = scl_tape_binary(t, SCL_OP_SUB, scl_tape_broadcast(t, w, n, n, true),
                            scl_tape_broadcast(t, w, n, n, false));
  const int zero = scl_tape_number(t, 0.0);
  const int same = scl_tape_binary(t, SCL_OP_EQ, gap, zero);
  gap = scl_tape_ifelse(t, same, scl_tape_number(t, 1.0), gap);
  int share = scl_tape_ifelse(t, same, zero, scl_tape_binary(t, SCL_OP_DIV, inner, gap));
  const int slopes = scl_tape_broadcast(t, scl_tape_part(t, g, n * n, n), n, n, false);
  share = scl_tape_ifelse(t, diagonal_data(t, n, 1.0, 0.0), slopes, share);
  share = scl_tape_matmul(t, v, share, n, n, n, false, false);
  scl_share_whole(r, scl_tape_operand(t, value, 0),
                  scl_tape_matmul(t, share, v, n, n, n, false, true));
}

/* Gathers and scatters. */
static void reverse_indexed(scl_reverse *r, int value, int g) {
  scl_tape *t = r->t;
  const scl_value v = t->value[value];
  const int x = scl_tape_operand(t, value, 0), data = (int)v.at[0];
  const scl_partial some = {g, data, 0, v.length, NONE};
  if (v.kind == SCL_VALUE_GATHER) scl_share_some(r, x, some);
  if (v.kind == SCL_VALUE_GATHER) return;
  g = scl_tape_fill(t, g, v.length);
  if (v.kind == SCL_VALUE_GATHER_COLUMNS) {
    g = scl_tape_scatter_columns(t, g, data, scl_tape_length(t, x) / v.at[1], v.at[1]);
  } else {
    g = scl_tape_gather_columns(t, g, data, v.kind == SCL_VALUE_SCATTER ? 1 : v.at[2]);
  }
  scl_share_whole(r, x, g);
}

static void reverse_scan(scl_reverse *r, int value, int g) {
  int share[SCL_SCAN_PORTS];
  bool active[SCL_SCAN_PORTS] = {false};
  const int ports = r->t->value[value].operands;
  for (int k = 0; k < ports; k++) active[k] = r->active[scl_tape_operand(r->t, value, k)];
  scl_scan_shares(r->t, value, g, active, scl_tape_gradient, share);
  for (int k = 0; k < ports && r->t->status == SCL_OK; k++) {
    scl_share_whole(r, scl_tape_operand(r->t, value, k), share[k]);
  }
}

static void refuse_again(scl_reverse *r, int value, int g) {
  (void)value, (void)g;
  scl_tape_fail(r->t, scl_fail_argument("f", "the gradient of a Cholesky factor's gradient was "
                                             "asked for, but the program was not made for it"));
}

/* Of ops/operations.def. */
typedef void reverse_rule(scl_reverse *r, int value, int g);
static reverse_rule *const rules[SCL_VALUE_KINDS] = {
#define NONE NULL
#define NO_VALUE NULL
#define VALUE(reverse, vectors, scalars) reverse
#define SCL_OPERATION(NAME, name, how, operands, attributes, shapes, node, run, value) value,
#include "ops/operations.def"
#undef SCL_OPERATION
#undef VALUE
#undef NO_VALUE
#undef NONE
};

/* ---- the whole ------------------------------------------------------------------------------ */

static bool is_active_parameter(const scl_reverse *r, const scl_value *v) {
  if (v->kind != SCL_VALUE_PARAMETER || v->at[0] >= r->parameters) return false;
  bool any = r->chosen == NULL;
  for (size_t i = 0; !any && i < v->length; i++) any = r->chosen[v->at[0] + i] != 0;
  return any;
}

static void find_active(scl_reverse *r) {
  const scl_tape *t = r->t;
  for (int v = 0; v < r->values; v++) {
    r->active[v] = is_active_parameter(r, &t->value[v]);
    const bool flat = t->value[v].kind == SCL_VALUE_APPLY && t->value[v].op == SCL_OP_ROUND_TO;
    for (int k = 0; k < t->value[v].operands && !r->active[v] && !flat; k++) {
      r->active[v] = r->active[scl_tape_operand(t, v, k)];
    }
  }
}

/* The derivative of a value whose shares are complete, or NONE. */
static int derivative(scl_reverse *r, int value) {
  if (r->last[value] != NONE) {
    const int sum = scl_share_sum(r, value);
    r->last[value] = NONE;
    scl_share_whole(r, value, sum);
  }
  return r->whole[value];
}

/* Allocates the tables with an entry for each value. */
static scl_status begin(scl_reverse *r) {
  const size_t values = (size_t)r->values;
  r->whole = malloc(values * sizeof *r->whole);
  r->last = malloc(values * sizeof *r->last);
  r->active = malloc(values * sizeof *r->active);
  if (r->whole == NULL || r->last == NULL || r->active == NULL) {
    return scl_fail_memory(values * sizeof *r->whole, 0, "a gradient");
  }
  for (int v = 0; v < r->values; v++) r->whole[v] = r->last[v] = NONE;
  find_active(r);
  return SCL_OK;
}

int scl_tape_gradient(scl_tape *t, int output, size_t parameters, bool again) {
  return scl_tape_gradient_of(t, output, parameters, NULL, again);
}

int scl_tape_gradient_of(scl_tape *t, int output, size_t parameters, const unsigned char *chosen,
                         bool again) {
  const size_t at[] = {0, parameters};
  const int all = scl_tape_add(t, SCL_VALUE_PARAMETER, 0, 0, NULL, at, 0.0);
  if (t->status != SCL_OK) return 0;
  scl_reverse r = {
      .t = t, .values = t->values, .parameters = parameters, .chosen = chosen, .again = again};
  int result = 0;
  t->status = begin(&r);
  if (t->status == SCL_OK) scl_share_whole(&r, output, scl_tape_number(t, 1.0));
  for (int v = r.values - 1; v >= 0 && t->status == SCL_OK; v--) {
    const int g = v == all ? NONE : derivative(&r, v);
    if (g == NONE) continue;
    const scl_value *p = &t->value[v];
    if (p->kind == SCL_VALUE_PARAMETER) {
      scl_share_some(&r, all, (scl_partial){g, NONE, p->at[0], p->length, NONE});
    } else {
      if (rules[p->kind] != NULL) rules[p->kind](&r, v, g);
    }
  }
  if (t->status == SCL_OK) {
    const int g = derivative(&r, all);
    result = scl_tape_fill(t, g == NONE ? scl_tape_number(t, 0.0) : g, parameters);
  }
  free(r.whole);
  free(r.last);
  free(r.active);
  free(r.partials);
  return t->status == SCL_OK ? result : 0;
}
