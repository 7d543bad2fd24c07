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

/* Reverse mode of x = op(l)^-1 b, or b op(l)^-1 (TRI_SOLVE of ops/operations.def): from x and x_adj
 * = dF/dx, both of the shape of b, l_adj = dF/dl (triangular as l) and b_adj = dF/db. Either output
 * may be NULL. */
scl_status scl_tri_solve_adjoint(scl_tri_form form, const scl_mat *l, const scl_mat *x,
                                 const scl_mat *x_adj, scl_mat **l_adj, scl_mat **b_adj);

#endif
