/* Shared by the operations over the engine table; included by the core's .c files only. */
#ifndef SCL_OPS_OPERATION_H
#define SCL_OPS_OPERATION_H

#include "engine/plan/elementwise.h"
#include "ops/call.h"

static inline const scl_engine *scl_engine_of(const scl_mat *a) {
  return a->ctx->engine;
}

static inline bool scl_is_empty(const scl_mat *a) {
  return a->nrow == 0 || a->ncol == 0;
}

static inline bool scl_is_triangular(scl_view view) {
  return view == SCL_LOWER || view == SCL_UPPER;
}

/* A column or row matrix as one column: a one-row matrix has leading dimension 1. */
static inline scl_block scl_vector_block(const scl_mat *a) {
  scl_block b = scl_mat_block(a);
  if (b.ncol != 1) b = (scl_block){b.buffer, b.offset, b.ncol, b.ncol, 1, b.type};
  return b;
}

/* Ends an operation: moves `result` to the caller, or releases it if `status` is an error. */
static inline scl_status scl_give(scl_status status, scl_mat *result, scl_mat **out) {
  if (status != SCL_OK) {
    scl_mat_release(result);
    return status;
  }
  *out = result;
  return SCL_OK;
}

/* Downloads a block, without gaps between its columns. Waits for the commands that write it, or at
 * the end of an operation (SCL_WAIT_QUEUE) for its whole queue. */
static inline scl_status scl_read_block(scl_context *ctx, scl_block b, scl_wait wait, double *to) {
  return ctx->engine->download(ctx, SCL_GENERAL, b, wait, to, b.nrow);
}

/* ---- elementwise and reductions on blocks (ops/elementwise.c) ----------------------------------
 */
/* An elementwise operand: a block, or a scalar when `block.buffer` is NULL. */
typedef struct {
  scl_block block;
  double scalar;
} scl_operand;

/* dst = op(a) or op(a, b); in place allowed. `b` is ignored by unary operations. */
scl_status scl_apply_blocks(scl_context *ctx, scl_op op, scl_operand a, scl_operand b,
                            scl_block dst);
/* dst (1 x 1) = reduction over all elements of a. */
scl_status scl_reduce_block(scl_context *ctx, scl_reduction op, scl_block a, scl_block dst);
/* dst (1 x 1) = sum of the products of the elements of a and b, which have one shape. */
scl_status scl_dot_blocks(scl_context *ctx, scl_block a, scl_block b, scl_block dst);
/* dst[0] = sum of the logarithms of a, dst[1] = sum of the squares of b: columns of one length. */
scl_status scl_sum_log_and_squares(scl_context *ctx, scl_block a, scl_block b, scl_block dst);

/* SCL_E_ARGUMENT naming `argument` unless `a` is square. */
scl_status scl_require_square(const scl_mat *a, const char *argument);

/* Checks of operands concurrent with the work on them. On the host a failing check ends an
 * operation before its work. On a device checks are recorded, started after the work, and read
 * while the work runs: neither the device nor the work waits. The operands must outlive
 * scl_checks_end(). */
typedef struct {
  int count;
  struct {
    scl_check what;
    const scl_mat *matrix;
    scl_view view;
    const char *argument;
  } of[4];
} scl_checks;

/* SCL_E_NONFINITE naming `argument`, with the index of the first NaN or infinity in the triangle of
 * `view`. */
scl_status scl_checks_finite(scl_checks *checks, const scl_mat *a, scl_view view,
                             const char *argument);
/* SCL_E_SINGULAR naming `argument`, with the index of the first zero on the diagonal. */
scl_status scl_checks_diagonal(scl_checks *checks, const scl_mat *a, const char *argument);
/* Runs the recorded checks and waits for them, unless `status` is an error already; returns
 * `status`, or the error of the first check that fails. */
scl_status scl_checks_end(const scl_checks *checks, scl_context *ctx, scl_status status);
/* The same, but on a device the checks are only run if `witness`, an element of the result, is not
 * finite: for operations in which every input enters that element by sums and products, so that a
 * value that fails a check makes it non-finite. Waits for `witness`. */
scl_status scl_checks_end_unless_finite(const scl_checks *checks, scl_context *ctx,
                                        scl_block witness, scl_status status);

/* The same at once, for one operand. Waits. */
scl_status scl_require_finite(const scl_mat *a, scl_view view, const char *argument);
/* The same of an m x n matrix in the host's memory. */
scl_status scl_require_finite_data(const double *data, size_t m, size_t n, const char *argument);

/* A check of the engine at once: *index is 1-based, 0 when all pass. Waits. */
scl_status scl_check_now(scl_context *ctx, scl_check what, double tol, scl_view view, scl_block a,
                         int64_t *index);

/* Clears what lies outside the triangle of `view`, in place, for results whose other half is
 * undefined. Nothing for other views. */
scl_status scl_clear_outside(scl_context *ctx, scl_block a, scl_view view);

#endif
