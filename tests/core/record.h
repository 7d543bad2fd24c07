/* Calls of operations by name (ops/operations.def has operands and attributes). */
#ifndef RECORD_H
#define RECORD_H

#include "graph/expr.h"
#include "ops/table.h"
#include "ops/triangular.h"

static inline scl_status record_transpose(scl_mat *x, scl_mat **out) {
  return scl_record(NULL, SCL_OPERATION_TRANSPOSE, 1, &(scl_term){x, 0}, 0, NULL, out);
}

static inline scl_status record_broadcast(scl_mat *x, size_t m, size_t n, scl_mat **out) {
  const double attribute[] = {(double)m, (double)n};
  return scl_record(NULL, SCL_OPERATION_BROADCAST, 1, &(scl_term){x, 0}, 2, attribute, out);
}

static inline scl_status record_part(scl_mat *x, size_t i, size_t j, size_t m, size_t n,
                                     scl_mat **out) {
  const double attribute[] = {(double)i, (double)j, (double)m, (double)n};
  return scl_record(NULL, SCL_OPERATION_PART, 1, &(scl_term){x, 0}, 4, attribute, out);
}

static inline scl_status record_with_part(scl_mat *x, size_t i, size_t j, scl_mat *value,
                                          scl_mat **out) {
  const scl_term operand[] = {{x, 0}, {value, 0}};
  const double attribute[] = {(double)i, (double)j};
  return scl_record(NULL, SCL_OPERATION_WITH_PART, 2, operand, 2, attribute, out);
}

static inline scl_status record_index(scl_context *ctx, scl_margin margin, size_t m, size_t n,
                                      scl_mat **out) {
  const double attribute[] = {margin, (double)m, (double)n};
  return scl_record(ctx, SCL_OPERATION_INDEX, 0, NULL, 3, attribute, out);
}

static inline scl_status record_matvec(scl_mat *x, scl_mat *b, scl_mat **out) {
  const scl_term operand[] = {{x, 0}, {b, 0}};
  return scl_record(NULL, SCL_OPERATION_MATVEC, 2, operand, 0, NULL, out);
}

static inline scl_status record_reduce_with(scl_mat *x, scl_mat *combine, double identity,
                                            scl_margin margin, scl_mat **out) {
  const scl_term operand[] = {{x, 0}, {combine, 0}};
  const double attribute[] = {margin, identity};
  return scl_record(NULL, SCL_OPERATION_REDUCE_WITH, 2, operand, 2, attribute, out);
}

static inline scl_status record_placeholder(scl_context *ctx, int which, scl_mat **out) {
  return scl_record(ctx, SCL_OPERATION_PLACEHOLDER, 0, NULL, 1, &(double){which}, out);
}

/* op(a) op(b), computed; b NULL: both operands are a. */
static inline scl_status compute_product(bool ta, bool tb, scl_mat *a, scl_mat *b, scl_mat **out) {
  const scl_term operand[] = {{a, 0}, {b, 0}};
  const double flags[] = {ta, tb};
  return scl_compute(NULL, SCL_OPERATION_MATMUL, b != NULL ? 2 : 1, operand, 2, flags, out);
}

static inline scl_status compute_tri_solve(scl_tri_form form, scl_mat *l, scl_mat *b,
                                           scl_mat **out) {
  const scl_term operand[] = {{l, 0}, {b, 0}};
  const double flags[] = {form.upper, form.transpose, form.side == SCL_RIGHT};
  return scl_compute(NULL, SCL_OPERATION_TRI_SOLVE, 2, operand, 3, flags, out);
}

static inline scl_status compute_tri_inverse(bool upper, scl_mat *l, scl_mat **out) {
  return scl_compute(NULL, SCL_OPERATION_TRI_INVERSE, 1, &(scl_term){l, 0}, 1, &(double){upper},
                     out);
}

static inline scl_status compute_chol(scl_mat *a, double jitter, bool upper, scl_mat **out) {
  const double attribute[] = {jitter, upper};
  return scl_compute(NULL, SCL_OPERATION_CHOL, 1, &(scl_term){a, 0}, 2, attribute, out);
}

static inline scl_status compute_chol_adjoint(scl_mat *l, scl_mat *l_adj, scl_mat **out) {
  const scl_term operand[] = {{l, 0}, {l_adj, 0}};
  return scl_compute(NULL, SCL_OPERATION_CHOL_ADJOINT, 2, operand, 0, NULL, out);
}

static inline scl_status compute_chol_inverse(scl_mat *l, bool upper, scl_mat **out) {
  return scl_compute(NULL, SCL_OPERATION_CHOL_INVERSE, 1, &(scl_term){l, 0}, 1, &(double){upper},
                     out);
}

#endif
