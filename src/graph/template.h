/* Templates: elementwise expressions of inputs that are given later, for functions that are applied
 * to many operands (R/trace-map.R). A template is plain memory without pointers, and may be
 * copied. */
#ifndef SCL_GRAPH_TEMPLATE_H
#define SCL_GRAPH_TEMPLATE_H

#include "engine/plan/plan.h"
#include "graph/expr.h"

typedef struct {
  uint16_t inputs, outputs, steps, numbers;
  uint16_t output[SCL_PLAN_OUTPUTS]; /* steps */
  scl_step step[SCL_PLAN_STEPS];     /* leaf k of a plan is input k */
  double number[SCL_PLAN_NUMBERS];
} scl_template;

/* The template of expressions over these inputs, matrices of 2 x 2 with a buffer each. `result`: a
 * matrix, pending or not; or a number, when `matrix` is NULL. False if there is none: a result
 * depends on another matrix or on more than one element, or a limit is exceeded. */
bool scl_template_make(size_t inputs, scl_mat *const *input, size_t outputs, const scl_term *result,
                       scl_template *out);

/* An input of a run, in the host's memory: m x n, or with one row, one column or both, which are
 * repeated. */
typedef struct {
  const double *data;
  size_t nrow, ncol;
} scl_input;

/* Computes all outputs, m x n with m, n > 0, in one pass in `ctx`, which can wrap the host's memory
 * (buffer_wrap). Else as scl_expr_eval(). */
scl_status scl_template_run(scl_context *ctx, const scl_template *t, size_t m, size_t n,
                            const scl_input *input, double *const *output);

#endif
