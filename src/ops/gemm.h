/* Matrix products.
 *
 * Results are new matrices, released by the caller. Shapes that do not fit give SCL_E_ARGUMENT
 * naming the second operand. Zeros that a view promises are skipped, even where the other operand
 * is infinite. A product of two lower (upper) triangular matrices is lower (upper). */
#ifndef SCL_OPS_GEMM_H
#define SCL_OPS_GEMM_H

#include "ops/call.h"

/* a b: (m x k) (k x n). */
scl_status scl_matmul(const scl_mat *a, const scl_mat *b, scl_mat **out);

/* x' y: (k x m)' (k x n). y NULL (or x itself): x' x, computed in one half, exactly symmetric. */
scl_status scl_crossprod(const scl_mat *x, const scl_mat *y, scl_mat **out);

/* x y': (m x k) (n x k)'. y NULL (or x itself): x x'. */
scl_status scl_tcrossprod(const scl_mat *x, const scl_mat *y, scl_mat **out);

/* Rows of graph/ops.def. */
/* x' diag(w) x for a column w. */
scl_status scl_gram(const scl_mat *x, const scl_mat *w, scl_mat **out);

scl_rule scl_matmul_rule, scl_crossprod_rule, scl_tcrossprod_rule, scl_gram_rule;
scl_forward scl_matmul_forward, scl_crossprod_forward, scl_tcrossprod_forward, scl_gram_forward;

#endif
