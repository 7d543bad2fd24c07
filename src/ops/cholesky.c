#include "ops/cholesky.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "ops/operation.h"
#include "ops/table.h"
#include "ops/constructors.h"

/* The error for the order of the failing minor; an error about non-finite elements takes
 * precedence. */
static scl_status judge_order(const scl_mat *a, double order) {
  if (order == 0.0) return SCL_OK;
  SCL_TRY(scl_require_finite(a, SCL_LOWER, "a"));
  return scl_fail_index(SCL_E_NOT_PD, (int64_t)order,
                        "the leading minor of order %lld is not positive", (long long)order);
}

/* On engines that start work before the input is checked, a pivot that is not finite fails, and the
 * cause is determined afterwards. */
static scl_status check_input(const scl_mat *a) {
  SCL_TRY(scl_require_square(a, "a"));
  return scl_traits(a->ctx)->synchronous ? scl_require_finite(a, SCL_LOWER, "a") : SCL_OK;
}

/* r becomes the factor of a, or if that is NULL of the lower triangle that r holds. If `upper`,
 * *transposed becomes the transposed factor, which is started before the host knows whether there
 * is one; or it stays NULL and r is transposed. *order: of the failing minor, or 0. */
static scl_status factorize(const scl_mat *a, scl_mat *r, bool upper, scl_mat **transposed,
                            double *order) {
  const scl_engine *engine = scl_engine_of(r);
  scl_block info;
  SCL_TRY(scl_block_create(r->ctx, 1, 1, &info));
  scl_status status;
  if (a != NULL)
    SCL_GO(engine->potrf_copy(r->ctx, scl_mat_block(a), scl_mat_block(r), info));
  else
    SCL_GO(engine->potrf(r->ctx, scl_mat_block(r), info));
  if (upper && engine->transpose_lower != NULL) {
    SCL_GO(engine->transpose_lower(r->ctx, scl_mat_block(r)));
    r->view = SCL_UPPER;
  } else if (upper) {
    SCL_GO(scl_copy_as(SCL_COPY_TRANSPOSED, r, transposed));
  }
  SCL_GO(scl_read_block(r->ctx, info, SCL_WAIT_QUEUE, order));
done:
  scl_buffer_release(info.buffer);
  return status;
}

scl_status scl_chol_rule(const scl_call *call, scl_shape *out) {
  const size_t n = call->operand[0].shape.nrow;
  const double jitter = call->attribute[0];
  if (!isfinite(jitter) || jitter < 0.0) {
    return scl_fail_argument("jitter", "'jitter' must be a finite non-negative number");
  }
  SCL_TRY(scl_call_square(call, 0, "a"));
  *out = (scl_shape){n, n, scl_call_flag(call, 1) ? SCL_UPPER : SCL_LOWER};
  return SCL_OK;
}

scl_status scl_chol_forward(const scl_call *call, const scl_mat *const *operand, scl_mat **out) {
  const scl_mat *a = operand[0];
  const double jitter = call->attribute[0];
  const bool upper = scl_call_flag(call, 1);
  scl_mat *r = NULL, *transposed = NULL;
  double order = 0.0;
  scl_status status;
  SCL_TRY(check_input(a));
  if (jitter > 0.0 || scl_is_empty(a))
    SCL_GO(scl_copy_as(SCL_COPY_LOWER, a, &r));
  else
    SCL_GO(scl_mat_create(a->ctx, a->nrow, a->ncol, SCL_LOWER, &r));
  if (scl_is_empty(r)) {
    if (upper) SCL_GO(scl_copy_as(SCL_COPY_TRANSPOSED, r, &transposed));
    goto done;
  }
  if (jitter > 0.0) SCL_GO(scl_engine_of(r)->add_diagonal(r->ctx, jitter, scl_mat_block(r)));
  SCL_GO(factorize(jitter > 0.0 ? NULL : a, r, upper, &transposed, &order));
  SCL_GO(judge_order(a, order));
done:
  if (transposed == NULL) return scl_give(status, r, out);
  scl_mat_release(r);
  return scl_give(status, transposed, out);
}

scl_status scl_chol_pivots(const scl_mat *a, double *out) {
  SCL_TRY(check_input(a));
  scl_context *ctx = a->ctx;
  const size_t n = a->nrow;
  scl_mat *l = NULL;
  scl_block work = {.buffer = NULL}; /* the diagonal, and the order of the failing minor */
  if (n == 0) return SCL_OK;
  double *numbers = malloc((n + 1) * sizeof *numbers);
  if (numbers == NULL) return scl_fail_memory((n + 1) * sizeof *numbers, 0, "a diagonal");
  scl_status status;
  SCL_GO(scl_mat_create(ctx, n, n, SCL_LOWER, &l));
  SCL_GO(scl_block_create(ctx, n + 1, 1, &work));
  const scl_block factor = scl_mat_block(l), info = scl_block_part(work, n, 0, 1, 1);
  SCL_GO(ctx->engine->potrf_copy(ctx, scl_mat_block(a), factor, info));
  SCL_GO(ctx->engine->diagonal(ctx, factor, scl_block_part(work, 0, 0, n, 1)));
  SCL_GO(scl_read_block(ctx, work, SCL_WAIT_QUEUE, numbers));
  SCL_GO(judge_order(a, numbers[n]));
  memcpy(out, numbers, n * sizeof *out);
done:
  free(numbers);
  scl_buffer_release(work.buffer);
  scl_mat_release(l);
  return status;
}

/* ---- reverse mode --------------------------------------------------------------------------- */

/* Turns s, whose lower triangle holds dF/dL, into the symmetric S (both halves), by halving:
 *
 *   L = [L1 0; G L2], dF/dL = [L1_adj .; G_adj L2_adj]
 *   S2  = adjoint(L2, L2_adj)
 *   W   = (G_adj - 2 S2 G) L1^-1
 *   S1  = adjoint(L1, L1_adj - tril(W' G))
 *   S   = [S1 W'/2; W/2 S2]
 *
 * Murray, "Differentiation of the Cholesky decomposition", 2016, in its blocked form. */
static scl_status adjoint(scl_context *ctx, scl_block l, scl_block s) {
  const scl_engine *engine = ctx->engine;
  size_t n = s.nrow, leaf = engine->traits.adjoint_leaf;
  if (n <= leaf) return engine->potrf_adjoint_leaf(ctx, l, s);
  SCL_TRY(scl_poll());
  size_t n1 = scl_round_up(n / 2, leaf), n2 = n - n1;
  scl_block l1 = scl_block_part(l, 0, 0, n1, n1), g = scl_block_part(l, n1, 0, n2, n1);
  scl_block s1 = scl_block_part(s, 0, 0, n1, n1), w = scl_block_part(s, n1, 0, n2, n1);
  scl_block s2 = scl_block_part(s, n1, n1, n2, n2);
  SCL_TRY(adjoint(ctx, scl_block_part(l, n1, n1, n2, n2), s2));
  SCL_TRY(engine->gemm(ctx, -2.0, SCL_NO_TRANS, s2, SCL_SYMMETRIC, SCL_NO_TRANS, g, SCL_GENERAL,
                       1.0, w, SCL_ALL));
  SCL_TRY(engine->trsm(ctx, SCL_RIGHT, SCL_LOWER, SCL_NO_TRANS, l1, w));
  SCL_TRY(engine->gemm(ctx, -1.0, SCL_TRANS, w, SCL_GENERAL, SCL_NO_TRANS, g, SCL_GENERAL, 1.0, s1,
                       SCL_LOWER_HALF));
  SCL_TRY(adjoint(ctx, l1, s1));
  SCL_TRY(scl_apply_blocks(ctx, SCL_OP_MUL, (scl_operand){.block = w}, (scl_operand){.scalar = 0.5},
                           w));
  return engine->copy(ctx, SCL_COPY_TRANSPOSED, w, scl_block_part(s, 0, n1, n1, n2));
}

scl_status scl_chol_adjoint_rule(const scl_call *call, scl_shape *out) {
  const scl_shape l = call->operand[0].shape, l_adj = call->operand[1].shape;
  SCL_TRY(scl_call_square(call, 0, "l"));
  if (l_adj.nrow != l.nrow || l_adj.ncol != l.ncol) {
    return scl_fail_argument("l_adj", "'l_adj' must be %zu x %zu like 'l', not %zu x %zu", l.nrow,
                             l.ncol, l_adj.nrow, l_adj.ncol);
  }
  *out = (scl_shape){l.nrow, l.nrow, SCL_SYMMETRIC};
  return SCL_OK;
}

/* l has zeros above its diagonal. */
scl_status scl_chol_adjoint_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                                scl_block dst) {
  const scl_engine *engine = ctx->engine;
  bool done = false;
  (void)call;
  if (engine->potrf_adjoint != NULL) {
    SCL_TRY(engine->potrf_adjoint(ctx, operand[0], operand[1], dst, &done));
    if (done) return SCL_OK;
  }
  SCL_TRY(engine->copy(ctx, SCL_COPY_LOWER, operand[1], dst));
  return adjoint(ctx, operand[0], dst);
}

scl_status scl_chol_adjoint_forward(const scl_call *call, const scl_mat *const *operand,
                                    scl_mat **out) {
  const scl_mat *l = operand[0], *l_adj = operand[1];
  scl_checks checks = {.count = 0};
  scl_mat *s = NULL, *lower = NULL;
  scl_status status;
  SCL_GO(scl_checks_finite(&checks, l, SCL_LOWER, "l"));
  SCL_GO(scl_checks_finite(&checks, l_adj, SCL_LOWER, "l_adj"));
  SCL_GO(scl_checks_diagonal(&checks, l, "l"));
  if (l->view != SCL_LOWER) SCL_GO(scl_copy_as(SCL_COPY_LOWER, l, &lower));
  const scl_mat *const factors[] = {lower != NULL ? lower : l, l_adj};
  SCL_GO(scl_call_compute(call, factors, &s));
  if (scl_is_empty(s)) goto done;
  /* S_11 is a sum over all of both triangles, and over the reciprocals of the diagonal. */
  SCL_GO(scl_checks_end_unless_finite(&checks, l->ctx, scl_block_part(scl_mat_block(s), 0, 0, 1, 1),
                                      SCL_OK));
done:
  scl_mat_release(lower);
  return scl_give(status, s, out);
}

/* ---- from the factor ------------------------------------------------------------------------ */

scl_status scl_chol_inverse_rule(const scl_call *call, scl_shape *out) {
  const size_t n = call->operand[0].shape.nrow;
  SCL_TRY(scl_call_square(call, 0, "l"));
  *out = (scl_shape){n, n, SCL_SYMMETRIC};
  return SCL_OK;
}

scl_status scl_chol_inverse_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                                scl_block dst) {
  scl_block lower = operand[0];
  const bool upper = scl_call_flag(call, 0);
  scl_status status;
  if (upper) {
    SCL_TRY(scl_block_create(ctx, dst.nrow, dst.nrow, &lower));
    SCL_GO(ctx->engine->copy(ctx, SCL_COPY_TRANSPOSED, operand[0], lower));
  }
  SCL_GO(ctx->engine->potri(ctx, lower, dst));
done:
  if (upper) scl_buffer_release(lower.buffer);
  return status;
}

scl_status scl_log_det_rule(const scl_call *call, scl_shape *out) {
  SCL_TRY(scl_call_square(call, 0, "l"));
  *out = (scl_shape){1, 1, SCL_GENERAL};
  return SCL_OK;
}

scl_status scl_log_det_run(scl_context *ctx, const scl_call *call, const scl_block *operand,
                           scl_block dst) {
  const scl_block l = operand[0];
  const scl_operand unused = {.scalar = 0.0}, twice = {.scalar = 2.0};
  scl_block diagonal;
  scl_status status;
  (void)call;
  if (l.nrow == 0) return ctx->engine->fill(ctx, 0.0, dst);
  SCL_TRY(scl_block_create(ctx, l.nrow, 1, &diagonal));
  const scl_operand of = {.block = diagonal};
  SCL_GO(ctx->engine->diagonal(ctx, l, diagonal));
  SCL_GO(scl_apply_blocks(ctx, SCL_OP_ABS, of, unused, diagonal));
  SCL_GO(scl_reduce_block(ctx, SCL_REDUCE_SUM_LOG, diagonal, dst));
  SCL_GO(scl_apply_blocks(ctx, SCL_OP_MUL, (scl_operand){.block = dst}, twice, dst));
done:
  scl_buffer_release(diagonal.buffer);
  return status;
}
