/* Objectives of Gaussian processes and their derivatives. */
#include "ops/gp_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The data of an evaluation. */
typedef struct {
  scl_gp *gp;
  const scl_covariance *kernel;
  scl_gp_objective objective;
  scl_gp_trend trend;
  bool gradient;
  scl_block inverse, spare; /* C^-1 (lower half), then P; the other matrix */
  scl_mat **weights;        /* without a kernel: where the derivatives with respect to C go */
} evaluation;

/* inverse = lower half of C^-1: from L^-T if there is one, else from L, in place. */
static scl_status invert(evaluation *v) {
  scl_gp *gp = v->gp;
  const scl_engine *engine = gp->ctx->engine;
  if (gp->factor_inverse.buffer == NULL) {
    v->inverse = gp->factor;
    v->spare = gp->room[1];
    gp->factor = (scl_block){0};
    return engine->potri(gp->ctx, v->inverse, v->inverse);
  }
  v->inverse = gp->factor_inverse; /* which is not needed any more */
  v->spare = gp->factor_inverse_t;
  gp->factor_inverse = gp->factor_inverse_t = (scl_block){0};
  return engine->gemm(gp->ctx, 1.0, SCL_NO_TRANS, v->spare, SCL_UPPER, SCL_TRANS, v->spare,
                      SCL_UPPER, 0.0, v->inverse, SCL_LOWER_HALF);
}

/* inner weights + outer (u v' + v u') / 2, which replaces the weights. */
static scl_status give_weights(evaluation *v, const struct scl_covariance_pass *pass) {
  scl_context *ctx = v->gp->ctx;
  const scl_engine *engine = ctx->engine;
  scl_mat *out = NULL;
  scl_status status;
  SCL_GO(engine->gemm(ctx, 0.5 * pass->outer, SCL_NO_TRANS, pass->u, SCL_GENERAL, SCL_TRANS,
                      pass->v, SCL_GENERAL, pass->inner, pass->weights, SCL_LOWER_HALF));
  SCL_GO(engine->gemm(ctx, 0.5 * pass->outer, SCL_NO_TRANS, pass->v, SCL_GENERAL, SCL_TRANS,
                      pass->u, SCL_GENERAL, 1.0, pass->weights, SCL_LOWER_HALF));
  SCL_GO(scl_mat_create(ctx, v->gp->n, v->gp->n, SCL_SYMMETRIC, &out));
  SCL_GO(engine->copy(ctx, SCL_COPY_MIRROR_LOWER, pass->weights, scl_mat_block(out)));
done:
  return scl_give(status, out, v->weights);
}

static scl_status differentiate(evaluation *v, struct scl_covariance_pass pass) {
  scl_gp *gp = v->gp;
  if (v->kernel == NULL) return give_weights(v, &pass);
  pass.out = scl_block_part(gp->results, scl_gp_gradient_at(gp), 0,
                            (size_t)scl_covariance_count(v->kernel), 1);
  return gp->ctx->engine->covariance_adjoint(gp->ctx, &pass);
}

static scl_status differentiate_marginal(evaluation *v) {
  scl_gp *gp = v->gp;
  bool integrate = gp->q > 0 && v->trend == SCL_GP_INTEGRATE;
  scl_block q = scl_gp_columns(gp->weights, gp->outputs, gp->q);
  SCL_TRY(invert(v));
  if (integrate && gp->outputs > 1) {
    SCL_TRY(scl_apply_blocks(gp->ctx, SCL_OP_MUL, (scl_operand){.block = q},
                             (scl_operand){.scalar = sqrt((double)gp->outputs)}, q));
  }
  struct scl_covariance_pass pass = scl_gp_pass(gp, v->kernel);
  pass.weights = v->inverse;
  pass.inner = -0.5 * (double)gp->outputs;
  pass.u = pass.v = scl_gp_columns(gp->weights, 0, gp->outputs + (integrate ? gp->q : 0));
  pass.outer = 0.5;
  return differentiate(v, pass);
}

/* With d_i = P_ii and ratio_i = a_i / d_i, the objective is sum (log d_i - a_i ratio_i - log(2 pi))
 * / 2. Its derivative with respect to C is the symmetric part of (P ratio) a' minus P diag(g) P,
 * where g_i is half the sum of 1 / d_i and ratio_i^2 over the outputs. */
static scl_status leave_one_out(evaluation *v) {
  scl_gp *gp = v->gp;
  scl_context *ctx = gp->ctx;
  const scl_engine *engine = ctx->engine;
  scl_block work = {0}, a = scl_gp_columns(gp->weights, 0, gp->outputs);
  scl_block q = scl_gp_columns(gp->weights, gp->outputs, gp->q);
  scl_status status;
  SCL_GO(invert(v));
  if (gp->q > 0) {
    SCL_GO(engine->gemm(ctx, -1.0, SCL_NO_TRANS, q, SCL_GENERAL, SCL_TRANS, q, SCL_GENERAL, 1.0,
                        v->inverse, SCL_LOWER_HALF));
  }
  SCL_GO(scl_block_create(ctx, gp->n, 2 * gp->outputs + 2, &work));
  scl_block ratios = scl_gp_columns(work, 0, gp->outputs);
  scl_block solved = scl_gp_columns(work, gp->outputs, gp->outputs);
  scl_block d = scl_gp_columns(work, 2 * gp->outputs, 1);
  scl_block g = scl_gp_columns(work, 2 * gp->outputs + 1, 1);
  SCL_GO(engine->diagonal(ctx, v->inverse, d));
  SCL_GO(scl_reduce_block(ctx, SCL_REDUCE_SUM_LOG, d, scl_gp_scalar(gp, AT_LOO_LOG)));
  for (size_t k = 0; k < gp->outputs; k++) {
    SCL_GO(scl_apply_blocks(ctx, SCL_OP_DIV, (scl_operand){.block = scl_gp_columns(a, k, 1)},
                            (scl_operand){.block = d}, scl_gp_columns(ratios, k, 1)));
  }
  SCL_GO(scl_dot_blocks(ctx, a, ratios, scl_gp_scalar(gp, AT_LOO_SQUARE)));
  if (!v->gradient) goto done;

  SCL_GO(engine->copy(ctx, SCL_COPY_MIRROR_LOWER, v->inverse, v->inverse));
  SCL_GO(engine->gemm(ctx, 1.0, SCL_NO_TRANS, v->inverse, SCL_SYMMETRIC, SCL_NO_TRANS, ratios,
                      SCL_GENERAL, 0.0, solved, SCL_ALL));
  SCL_GO(scl_apply_blocks(ctx, SCL_OP_DIV, (scl_operand){.scalar = 0.5 * (double)gp->outputs},
                          (scl_operand){.block = d}, g));
  for (size_t k = 0; k < gp->outputs; k++) { /* g += ratio^2 / 2; d is not needed any more */
    scl_block ratio = scl_gp_columns(ratios, k, 1);
    SCL_GO(scl_apply_blocks(ctx, SCL_OP_MUL, (scl_operand){.block = ratio},
                            (scl_operand){.block = ratio}, d));
    SCL_GO(scl_apply_blocks(ctx, SCL_OP_MUL, (scl_operand){.block = d},
                            (scl_operand){.scalar = 0.5}, d));
    SCL_GO(
        scl_apply_blocks(ctx, SCL_OP_ADD, (scl_operand){.block = g}, (scl_operand){.block = d}, g));
  }
  SCL_GO(
      scl_apply_blocks(ctx, SCL_OP_SQRT, (scl_operand){.block = g}, (scl_operand){.block = g}, g));
  SCL_GO(engine->scale_diagonal(ctx, SCL_RIGHT, g, v->inverse, v->inverse));
  SCL_GO(engine->gemm(ctx, 1.0, SCL_NO_TRANS, v->inverse, SCL_GENERAL, SCL_TRANS, v->inverse,
                      SCL_GENERAL, 0.0, v->spare, SCL_LOWER_HALF));
  struct scl_covariance_pass pass = scl_gp_pass(gp, v->kernel);
  pass.weights = v->spare;
  pass.inner = -1.0;
  pass.u = solved;
  pass.v = a;
  pass.outer = 1.0;
  SCL_GO(differentiate(v, pass));
done:
  scl_buffer_release(work.buffer);
  return status;
}

static scl_status evaluate(evaluation *v) {
  scl_gp *gp = v->gp;
  bool loo = v->objective == SCL_GP_LEAVE_ONE_OUT, needs_inverse = v->gradient || loo;
  bool by_products = needs_inverse && scl_traits(gp->ctx)->prefers_inverse;
  SCL_TRY(scl_gp_factor(gp, v->kernel));
  SCL_TRY(scl_gp_solve(gp, by_products));
  if (!needs_inverse) return SCL_OK;
  SCL_TRY(scl_gp_solve_weights(gp));
  return loo ? leave_one_out(v) : differentiate_marginal(v);
}

/* The result goes to value and b, `derivatives` of it to gradient. */
static scl_status run(evaluation *v, size_t derivatives, double *value, double *b,
                      double *gradient) {
  scl_gp *gp = v->gp;
  bool loo = v->objective == SCL_GP_LEAVE_ONE_OUT;
  bool by_products = scl_traits(gp->ctx)->prefers_inverse;
  bool two = by_products ? loo || v->gradient : loo && v->gradient;
  SCL_TRY(scl_gp_prepare(gp, v->kernel, two ? 2 : 1));
  size_t at = scl_gp_gradient_at(gp), count = at + derivatives;
  double *results = malloc(count * sizeof *results);
  if (results == NULL) return scl_fail_memory(sizeof *results * count, 0, "derivatives");
  scl_status status;
  SCL_GO(evaluate(v));
  SCL_GO(scl_gp_read(gp, 0, count, results));
  if (loo) {
    *value = 0.5 * ((double)gp->outputs * (results[AT_LOO_LOG] - (double)gp->n * LOG_2_PI) -
                    results[AT_LOO_SQUARE]);
  } else {
    *value = scl_gp_marginal(gp, v->trend, results);
  }
  if (b != NULL && gp->q > 0) {
    memcpy(b, results + scl_gp_b_at(gp), gp->q * gp->outputs * sizeof *b);
  }
  if (derivatives > 0) memcpy(gradient, results + at, derivatives * sizeof *gradient);
done:
  free(results);
  return status;
}

scl_status scl_gp_evaluate(scl_gp *gp, const scl_covariance *kernel, scl_gp_objective objective,
                           scl_gp_trend trend, double *value, double *b, double *gradient) {
  evaluation v = {gp, kernel, objective, trend, gradient != NULL, {0}, {0}, NULL};
  size_t derivatives = gradient == NULL ? 0 : (size_t)scl_covariance_count(kernel);
  return run(&v, derivatives, value, b, gradient);
}

scl_status scl_gp_evaluate_given(scl_gp *gp, const scl_mat *c, scl_gp_objective objective,
                                 scl_gp_trend trend, double *value, double *b, scl_mat **weights) {
  scl_mat *found = NULL;
  evaluation v = {gp, NULL, objective, trend, weights != NULL, {0}, {0}, &found};
  SCL_TRY(scl_gp_take(gp, c));
  scl_status status = run(&v, 0, value, b, NULL);
  if (status == SCL_OK && weights != NULL) {
    *weights = found;
  } else {
    scl_mat_release(found);
  }
  return status;
}
