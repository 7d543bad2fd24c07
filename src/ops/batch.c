#include "ops/batch.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/operation.h"

/* ---- operands -------------------------------------------------------------------------------- */

/* An operand in the form that engines take. `held`: a copy without the gaps that a matrix on a
 * device may have between its columns. */
typedef struct {
  scl_batch_operand of;
  scl_buffer *held;
} operand;

static scl_status without_gaps(const scl_mat *a, operand *o) {
  scl_block from = scl_mat_block(a), to;
  if (a->ncol <= 1 || from.ld == a->nrow || scl_is_empty(a)) {
    o->of.block = from;
    return SCL_OK;
  }
  SCL_TRY(scl_block_create(a->ctx, a->nrow * a->ncol, 1, &to));
  o->held = to.buffer;
  o->of.block = to;
  to.ld = to.nrow = a->nrow;
  to.ncol = a->ncol;
  return scl_engine_of(a)->copy(a->ctx, SCL_COPY, from, to);
}

/* `a` as `batch` matrices of `each` numbers, or, if `shared`, one for all. */
static scl_status read_operand(const scl_mat *a, const char *argument, size_t each, size_t batch,
                               bool shared, operand *o) {
  size_t count = a->nrow * a->ncol;
  bool one = shared && count == each && batch != 1;
  bool fits = each == 0 || batch <= SIZE_MAX / each;
  if (!one && !(fits && count == each * batch)) {
    return scl_fail_argument(
        argument, "'%s' must have %zu matrices of %zu elements each, but it has %zu elements",
        argument, batch, each, count);
  }
  SCL_TRY(without_gaps(a, o));
  o->of.step = one ? 0 : each;
  return SCL_OK;
}

static scl_status check_order(size_t n, const char *argument) {
  if (n <= SCL_BATCH_ORDER) return SCL_OK;
  return scl_fail_argument(argument, "'%s' must contain matrices of order at most %d, not %zu",
                           argument, SCL_BATCH_ORDER, n);
}

static scl_status create_result(scl_context *ctx, size_t each, size_t batch, scl_mat **out) {
  if (each != 0 && batch > (size_t)INT_MAX / each) {
    return scl_fail_argument("a", "a batch can have at most %d elements in total", INT_MAX);
  }
  return scl_mat_create(ctx, each * batch, 1, SCL_GENERAL, out);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Up to three operands and their pass; owns everything that has to be released. */
typedef struct {
  scl_context *ctx;
  scl_batch_pass pass;
  operand of[3];
  scl_mat *result;
} job;

static scl_status add_operand(job *j, int which, const scl_mat *a, const char *argument,
                              size_t each, bool shared) {
  if (a->ctx != j->ctx) {
    return scl_fail_argument(argument, "'%s' is on %s, the other operand on %s", argument,
                             scl_context_label(a->ctx), scl_context_label(j->ctx));
  }
  SCL_TRY(read_operand(a, argument, each, j->pass.batch, shared, &j->of[which]));
  *(which == 0 ? &j->pass.a : which == 1 ? &j->pass.b : &j->pass.c) = j->of[which].of;
  return SCL_OK;
}

/* Makes the result, of `each` numbers a matrix, and runs; `work`: whether there is anything to
 * compute. */
static scl_status run_job(job *j, size_t each, bool work, scl_batch_report *report) {
  SCL_TRY(create_result(j->ctx, each, j->pass.batch, &j->result));
  if (report != NULL) report->bad = 0;
  if (j->result->buffer == NULL) return SCL_OK;
  j->pass.out = (scl_batch_operand){scl_mat_block(j->result), each};
  const scl_engine *engine = j->ctx->engine;
  if (!work) return engine->fill(j->ctx, 0.0, scl_mat_block(j->result));
  bool written = false;
  j->pass.status = report != NULL ? report->status : NULL;
  SCL_TRY(engine->batch(j->ctx, &j->pass, &written));
  if (!written) return SCL_OK;
  for (size_t q = 0; q < j->pass.batch; q++) report->bad += report->status[q] != SCL_BATCH_FINE;
  return SCL_OK;
}

static scl_status finish_job(job *j, scl_status status, scl_mat **out) {
  for (int i = 0; i < 3; i++) scl_buffer_release(j->of[i].held);
  return scl_give(status, j->result, out);
}

/* ---- operations ------------------------------------------------------------------------------ */

scl_status scl_batch_inverse(const scl_mat *a, size_t n, size_t batch, bool cofactors,
                             scl_batch_report *report, scl_mat **out) {
  SCL_TRY(check_order(n, "a"));
  if (cofactors && n > 3) {
    return scl_fail_argument("a", "cofactors need matrices of order at most 3, not %zu", n);
  }
  job j = {.ctx = a->ctx,
           .pass = {.op = SCL_BATCH_INVERSE, .n = n, .batch = batch, .cofactors = cofactors}};
  scl_status status;
  SCL_GO(add_operand(&j, 0, a, "a", n * n, false));
  SCL_GO(run_job(&j, n * n, true, report));
done:
  return finish_job(&j, status, out);
}

scl_status scl_batch_chol(const scl_mat *a, size_t n, size_t batch, bool upper,
                          scl_batch_report *report, scl_mat **out) {
  SCL_TRY(check_order(n, "a"));
  job j = {.ctx = a->ctx, .pass = {.op = SCL_BATCH_CHOL, .n = n, .batch = batch, .upper = upper}};
  scl_status status;
  SCL_GO(add_operand(&j, 0, a, "a", n * n, false));
  SCL_GO(run_job(&j, n * n, true, report));
done:
  return finish_job(&j, status, out);
}

scl_status scl_batch_chol_adjoint(const scl_mat *l, const scl_mat *l_adj, size_t n, size_t batch,
                                  scl_batch_report *report, scl_mat **out) {
  SCL_TRY(check_order(n, "l"));
  job j = {.ctx = l->ctx, .pass = {.op = SCL_BATCH_CHOL_ADJOINT, .n = n, .batch = batch}};
  scl_status status;
  SCL_GO(add_operand(&j, 0, l, "l", n * n, true));
  SCL_GO(add_operand(&j, 1, l_adj, "l_adj", n * n, false));
  SCL_GO(run_job(&j, n * n, true, report));
done:
  return finish_job(&j, status, out);
}

scl_status scl_batch_solve(const scl_mat *a, const scl_mat *b, size_t n, size_t k, size_t batch,
                           scl_batch_report *report, scl_mat **out) {
  SCL_TRY(check_order(n, "a"));
  job j = {.ctx = a->ctx, .pass = {.op = SCL_BATCH_SOLVE, .n = n, .k = k, .batch = batch}};
  scl_status status;
  SCL_GO(add_operand(&j, 0, a, "a", n * n, true));
  SCL_GO(add_operand(&j, 1, b, "b", n * k, true));
  SCL_GO(run_job(&j, n * k, true, report));
done:
  return finish_job(&j, status, out);
}

scl_status scl_batch_det(const scl_mat *a, size_t n, size_t batch, bool logarithm, scl_mat **out) {
  SCL_TRY(check_order(n, "a"));
  job j = {.ctx = a->ctx,
           .pass = {.op = SCL_BATCH_DET, .n = n, .batch = batch, .logarithm = logarithm}};
  scl_status status;
  SCL_GO(add_operand(&j, 0, a, "a", n * n, false));
  size_t columns = logarithm ? 2 : 1;
  if (n > 0) {
    SCL_GO(run_job(&j, columns, true, NULL));
  } else { /* the empty product */
    SCL_GO(create_result(a->ctx, columns, batch, &j.result));
    scl_block block = scl_mat_block(j.result);
    if (block.buffer == NULL) goto done;
    SCL_GO(a->ctx->engine->fill(a->ctx, 1.0, block));
    block.nrow = batch;
    if (logarithm) SCL_GO(a->ctx->engine->fill(a->ctx, 0.0, block));
  }
  j.result->nrow = j.result->ld = batch;
  j.result->ncol = columns;
done:
  return finish_job(&j, status, out);
}

scl_status scl_batch_tri_solve(const scl_mat *l, const scl_mat *b, size_t n, size_t k, size_t batch,
                               bool upper, bool transpose, scl_batch_report *report,
                               scl_mat **out) {
  SCL_TRY(check_order(n, "l"));
  job j = {.ctx = l->ctx,
           .pass = {.op = SCL_BATCH_TRI_SOLVE,
                    .n = n,
                    .k = k,
                    .batch = batch,
                    .upper = upper,
                    .transpose = transpose}};
  scl_status status;
  SCL_GO(add_operand(&j, 0, l, "l", n * n, true));
  SCL_GO(add_operand(&j, 1, b, "b", n * k, true));
  SCL_GO(run_job(&j, n * k, true, report));
done:
  return finish_job(&j, status, out);
}

scl_status scl_batch_matmul(const scl_mat *a, scl_trans trans_a, const scl_mat *b,
                            scl_trans trans_b, size_t m, size_t n, size_t k, size_t batch,
                            scl_mat **out) {
  job j = {.ctx = a->ctx,
           .pass = {.op = SCL_BATCH_MATMUL,
                    .m = m,
                    .n = n,
                    .k = k,
                    .batch = batch,
                    .transpose = trans_a == SCL_TRANS,
                    .transpose_b = trans_b == SCL_TRANS}};
  scl_status status;
  SCL_GO(add_operand(&j, 0, a, "a", m * k, true));
  SCL_GO(add_operand(&j, 1, b, "b", k * n, true));
  SCL_GO(run_job(&j, m * n, k > 0, NULL));
done:
  return finish_job(&j, status, out);
}

scl_status scl_batch_mvn_lpdf(const scl_mat *y, const scl_mat *mean, const scl_mat *factor,
                              size_t n, size_t batch, bool upper, scl_batch_report *report,
                              scl_mat **out) {
  SCL_TRY(check_order(n, "chol"));
  /* An upper factor R of A = R' R is solved as R' z = y - mean. */
  job j = {
      .ctx = y->ctx,
      .pass = {
          .op = SCL_BATCH_MVN, .n = n, .k = 1, .batch = batch, .upper = upper, .transpose = upper}};
  scl_status status;
  SCL_GO(add_operand(&j, 0, factor, "chol", n * n, true));
  SCL_GO(add_operand(&j, 1, y, "y", n, true));
  if (mean != NULL) SCL_GO(add_operand(&j, 2, mean, "mean", n, true));
  SCL_GO(run_job(&j, 1, n > 0, report));
done:
  return finish_job(&j, status, out);
}
