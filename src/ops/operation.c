#include "ops/operation.h"

#include <math.h>
#include <stdio.h>

/* Adds the argument's name to the last error. */
static scl_status name_argument(scl_status status, const char *argument) {
  scl_fault *fault = scl_fault_edit();
  snprintf(fault->argument, sizeof fault->argument, "%s", argument);
  return status;
}

static scl_status require_square(scl_shape shape, const char *argument) {
  if (shape.nrow == shape.ncol) return SCL_OK;
  return scl_fail_argument(argument, "'%s' must be square, not %zu x %zu", argument, shape.nrow,
                           shape.ncol);
}

scl_status scl_require_square(const scl_mat *a, const char *argument) {
  return require_square(scl_shape_of(a), argument);
}

scl_status scl_call_square(const scl_call *call, int k, const char *argument) {
  return require_square(call->operand[k].shape, argument);
}

/* ---- checks --------------------------------------------------------------------------------- */

/* Numbers that a device returns for each check: the host takes their minimum, which saves a launch.
 * A synchronous engine returns one. */
enum { FOUND = 256 };

static scl_status fail_nonfinite(size_t nrow, int64_t index, const char *argument) {
  size_t place = (size_t)index - 1;
  scl_fail_index(SCL_E_NONFINITE, index, "'%s' has a missing or infinite value at [%zu, %zu]",
                 argument, place % nrow + 1, place / nrow + 1);
  return name_argument(SCL_E_NONFINITE, argument);
}

/* The error that the results of a check mean, or SCL_OK. */
static scl_status report_check(const scl_checks *checks, int at, size_t rows, const double *found) {
  const scl_mat *a = checks->of[at].matrix;
  const char *argument = checks->of[at].argument;
  double first = INFINITY;
  for (size_t i = 0; i < rows; i++) first = fmin(first, found[i]);
  if (!isfinite(first) || first < 1.0) return SCL_OK; /* 0: a call that only asks for kernels */
  int64_t index = (int64_t)first;
  if (checks->of[at].what == SCL_CHECK_FINITE) return fail_nonfinite(a->nrow, index, argument);
  scl_fail_index(SCL_E_SINGULAR, index, "'%s' is singular: its diagonal element %lld is zero",
                 argument, (long long)index);
  return name_argument(SCL_E_SINGULAR, argument);
}

/* The checks from `first` on. */
static scl_status run_checks(const scl_checks *checks, int first, scl_context *ctx) {
  double value[FOUND * sizeof checks->of / sizeof *checks->of];
  size_t count = (size_t)(checks->count - first), rows = scl_traits(ctx)->synchronous ? 1 : FOUND;
  scl_block found;
  scl_status status = SCL_OK;
  SCL_TRY(scl_block_create(ctx, rows, count, &found));
  for (size_t k = 0; k < count; k++) {
    int at = first + (int)k;
    SCL_GO(ctx->engine->check(ctx, checks->of[at].what, 0.0, checks->of[at].view,
                              scl_mat_block(checks->of[at].matrix),
                              scl_block_part(found, 0, k, rows, 1)));
  }
  SCL_GO(scl_read_block(ctx, found, SCL_WAIT_WRITES, value));
  for (size_t k = 0; k < count; k++)
    SCL_GO(report_check(checks, first + (int)k, rows, value + k * rows));
done:
  scl_buffer_release(found.buffer);
  return status;
}

static scl_status add_check(scl_checks *checks, scl_check what, const scl_mat *a, scl_view view,
                            const char *argument) {
  int at = checks->count;
  if (scl_is_empty(a)) return SCL_OK;
  checks->of[at].what = what;
  checks->of[at].matrix = a;
  checks->of[at].view = view;
  checks->of[at].argument = argument;
  checks->count++;
  return scl_traits(a->ctx)->synchronous ? run_checks(checks, at, a->ctx) : SCL_OK;
}

scl_status scl_checks_finite(scl_checks *checks, const scl_mat *a, scl_view view,
                             const char *argument) {
  return add_check(checks, SCL_CHECK_FINITE, a, view, argument);
}

scl_status scl_checks_diagonal(scl_checks *checks, const scl_mat *a, const char *argument) {
  return add_check(checks, SCL_CHECK_DIAGONAL, a, SCL_GENERAL, argument);
}

scl_status scl_checks_end(const scl_checks *checks, scl_context *ctx, scl_status status) {
  if (status != SCL_OK || checks->count == 0 || scl_traits(ctx)->synchronous) return status;
  return run_checks(checks, 0, ctx);
}

scl_status scl_checks_end_unless_finite(const scl_checks *checks, scl_context *ctx,
                                        scl_block witness, scl_status status) {
  double value;
  if (status != SCL_OK || scl_traits(ctx)->synchronous) return status;
  SCL_TRY(scl_read_block(ctx, witness, SCL_WAIT_WRITES, &value));
  return isfinite(value) ? SCL_OK : scl_checks_end(checks, ctx, SCL_OK);
}

scl_status scl_require_finite(const scl_mat *a, scl_view view, const char *argument) {
  scl_checks checks = {.count = 0};
  return scl_checks_end(&checks, a->ctx, scl_checks_finite(&checks, a, view, argument));
}

scl_status scl_require_finite_data(const double *data, size_t m, size_t n, const char *argument) {
  for (size_t k = 0; k < m * n; k++) {
    if (!isfinite(data[k])) return fail_nonfinite(m, (int64_t)k + 1, argument);
  }
  return SCL_OK;
}

scl_status scl_check_now(scl_context *ctx, scl_check what, double tol, scl_view view, scl_block a,
                         int64_t *index) {
  scl_block place;
  double value = INFINITY;
  SCL_TRY(scl_block_create(ctx, 1, 1, &place));
  scl_status status = ctx->engine->check(ctx, what, tol, view, a, place);
  if (status == SCL_OK) status = scl_read_block(ctx, place, SCL_WAIT_WRITES, &value);
  scl_buffer_release(place.buffer);
  if (status == SCL_OK) *index = isfinite(value) ? (int64_t)value : 0;
  return status;
}

/* ---- views ---------------------------------------------------------------------------------- */

scl_status scl_clear_outside(scl_context *ctx, scl_block a, scl_view view) {
  if (!scl_is_triangular(view)) return SCL_OK;
  return ctx->engine->copy(ctx, view == SCL_LOWER ? SCL_COPY_LOWER : SCL_COPY_UPPER, a, a);
}
