/* Rules (ops/call.h) of the operations that generated kernels compute. */
#ifndef SCL_GRAPH_RULES_H
#define SCL_GRAPH_RULES_H

#include "ops/call.h"

/* Matrices have one shape, or are a column of as many rows, which is recycled over all columns. A
 * result keeps a triangular or symmetric view where that holds for all elements: lower + lower is
 * lower, lower * 2 is lower, exp(lower) is general. */
scl_rule scl_apply_rule;
scl_rule scl_reduce_rule, scl_placeholder_rule;
scl_rule scl_transpose_rule, scl_broadcast_rule, scl_part_rule, scl_with_part_rule, scl_index_rule;
scl_rule scl_matvec_rule;

#endif
