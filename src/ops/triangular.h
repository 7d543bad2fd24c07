/* Triangular solves and inverses.
 *
 * The triangle is named by `upper`; the other one is never read and may contain anything. A zero on
 * the diagonal gives SCL_E_SINGULAR with its index. Results are new matrices, released by the
 * caller. Errors name the arguments l, b, x, x_adj. */
#ifndef SCL_OPS_TRIANGULAR_H
#define SCL_OPS_TRIANGULAR_H

#include "ops/call.h"

/* Which solve: op(L)^-1 B (SCL_LEFT) or B op(L)^-1 (SCL_RIGHT); op transposes when `transpose`. */
typedef struct {
  scl_side side;
  bool upper;
  bool transpose;
} scl_tri_form;

/* l is n x n, b is n x m (left) or m x n (right); the result has the shape of b. */
scl_status scl_tri_solve(scl_tri_form form, const scl_mat *l, const scl_mat *b, scl_mat **out);

/* l^-1, triangular as l. */
scl_status scl_tri_inverse(bool upper, const scl_mat *l, scl_mat **out);

/* Reverse mode of x = scl_tri_solve(form, l, b): from x and x_adj = dF/dx, both of the shape of b,
 * l_adj = dF/dl (triangular as l) and b_adj = dF/db. Either output may be NULL. */
scl_status scl_tri_solve_adjoint(scl_tri_form form, const scl_mat *l, const scl_mat *x,
                                 const scl_mat *x_adj, scl_mat **l_adj, scl_mat **b_adj);

/* Rows of graph/ops.def. */
scl_rule scl_tri_solve_rule, scl_tri_inverse_rule;
scl_forward scl_tri_solve_forward, scl_tri_inverse_forward;

#endif
