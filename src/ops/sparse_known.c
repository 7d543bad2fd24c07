#include "ops/sparse_known.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/operation.h"
#include "ops/sparse.h"
#include "ops/sparse_root.h"

struct scl_sparse_known {
  size_t n, count;
  double *pattern;
  scl_sparse_factor *factor;
  double *last, *next; /* the matrix whose factor it is, and room for another one */
  double *inverse;     /* elements of its inverse, if has_inverse */
  bool any, bad;       /* whether there is such a matrix; it has no factor */
  bool has_inverse;
};

bool scl_sparse_is_pattern(const double *pattern, size_t length, size_t n, size_t count) {
  if (n == 0 || length != n + 1 + count || count > UINT32_MAX) return false;
  const double *row = pattern + n + 1;
  if (pattern[0] != 0.0 || pattern[n] != (double)count) return false;
  for (size_t j = 0; j < n; j++) {
    const double from = pattern[j], to = pattern[j + 1];
    if (!(from < to && to <= (double)count) || to != floor(to)) return false;
    if (row[(size_t)from] != (double)j) return false;
    for (size_t k = (size_t)from + 1; k < (size_t)to; k++) {
      if (!(row[k] > row[k - 1] && row[k] < (double)n) || row[k] != floor(row[k])) return false;
    }
  }
  return true;
}

static scl_status analyse(scl_sparse_known *known) {
  size_t *start = malloc((known->n + 1) * sizeof *start);
  uint32_t *row = malloc((known->count + 1) * sizeof *row);
  scl_status status = SCL_OK;
  if (start == NULL || row == NULL) {
    status = scl_fail_memory(known->count * sizeof *row, 0, "a sparse matrix");
  } else {
    for (size_t j = 0; j <= known->n; j++) start[j] = (size_t)known->pattern[j];
    for (size_t k = 0; k < known->count; k++) row[k] = (uint32_t)known->pattern[known->n + 1 + k];
    status = scl_sparse_analyse(known->n, start, row, NULL, &known->factor);
  }
  free(start);
  free(row);
  return status;
}

scl_status scl_sparse_known_create(const double *pattern, size_t n, size_t count,
                                   scl_sparse_known **out) {
  const size_t length = n + 1 + count;
  scl_sparse_known *known = calloc(1, sizeof *known);
  scl_status status = SCL_OK;
  if (known == NULL) return scl_fail_memory(sizeof *known, 0, "a sparse matrix");
  known->n = n;
  known->count = count;
  known->pattern = malloc(length * sizeof *known->pattern);
  known->last = malloc((count + 1) * sizeof *known->last);
  known->next = malloc((count + 1) * sizeof *known->next);
  known->inverse = malloc((count + 1) * sizeof *known->inverse);
  if (known->pattern == NULL || known->last == NULL || known->next == NULL ||
      known->inverse == NULL) {
    SCL_GO(scl_fail_memory(4 * count * sizeof *known->last, 0, "a sparse matrix"));
  }
  memcpy(known->pattern, pattern, length * sizeof *pattern);
  *out = known;
done:
  if (status != SCL_OK) scl_sparse_known_release(known);
  return status;
}

scl_status scl_sparse_known_copy(const scl_sparse_known *known, scl_sparse_known **out) {
  return scl_sparse_known_create(known->pattern, known->n, known->count, out);
}

void scl_sparse_known_release(scl_sparse_known *known) {
  if (known == NULL) return;
  scl_sparse_factor_release(known->factor);
  free(known->pattern);
  free(known->last);
  free(known->next);
  free(known->inverse);
  free(known);
}

/* Makes known->factor that of a. */
static scl_status require_factor(scl_context *ctx, scl_sparse_known *known, scl_block a) {
  SCL_TRY(scl_read_block(ctx, a, SCL_WAIT_WRITES, known->next));
  if (known->any && memcmp(known->next, known->last, known->count * sizeof *known->last) == 0) {
    return SCL_OK;
  }
  if (known->factor == NULL) SCL_TRY(analyse(known));
  double *numbers = known->next;
  known->next = known->last;
  known->last = numbers;
  known->any = known->has_inverse = false;
  const scl_status status = scl_sparse_factorize(known->factor, numbers, 0.0);
  known->bad = status == SCL_E_NOT_PD;
  if (!known->bad) SCL_TRY(status);
  known->any = true;
  return SCL_OK;
}

static void fill_nan(double *to, size_t count) {
  for (size_t k = 0; k < count; k++) to[k] = NAN;
}

scl_status scl_sparse_known_log_det(scl_context *ctx, scl_sparse_known *known, scl_block a,
                                    scl_block dst) {
  double value = NAN;
  SCL_TRY(require_factor(ctx, known, a));
  if (!known->bad) SCL_TRY(scl_sparse_log_det(known->factor, &value));
  return ctx->engine->upload(ctx, SCL_GENERAL, &value, 1, dst);
}

scl_status scl_sparse_known_inverse(scl_context *ctx, scl_sparse_known *known, scl_block a,
                                    scl_block dst) {
  SCL_TRY(require_factor(ctx, known, a));
  if (known->bad) {
    fill_nan(known->inverse, known->count);
  } else if (!known->has_inverse) {
    SCL_TRY(scl_sparse_inverse(known->factor, known->inverse));
    known->has_inverse = true;
  }
  return ctx->engine->upload(ctx, SCL_GENERAL, known->inverse, known->count, dst);
}

scl_status scl_sparse_known_solve(scl_context *ctx, scl_sparse_known *known, scl_block a,
                                  scl_block b, scl_block dst) {
  const size_t count = b.nrow * b.ncol;
  scl_status status;
  SCL_TRY(require_factor(ctx, known, a));
  double *x = malloc((count + 1) * sizeof *x);
  if (x == NULL) return scl_fail_memory(count * sizeof *x, 0, "a sparse solution");
  SCL_GO(scl_read_block(ctx, b, SCL_WAIT_WRITES, x));
  if (known->bad) {
    fill_nan(x, count);
  } else {
    SCL_GO(scl_sparse_solve(known->factor, x, b.ncol));
  }
  SCL_GO(ctx->engine->upload(ctx, SCL_GENERAL, x, b.nrow, dst));
done:
  free(x);
  return status;
}

static scl_sparse_columns columns_of(const scl_sparse_known *known) {
  return (scl_sparse_columns){known->n, known->pattern, known->pattern + known->n + 1};
}

scl_status scl_sparse_known_root(scl_context *ctx, scl_sparse_known *known, scl_block a,
                                 scl_block dst) {
  SCL_TRY(scl_read_block(ctx, a, SCL_WAIT_WRITES, known->next));
  SCL_TRY(scl_sparse_root(columns_of(known), known->next));
  return ctx->engine->upload(ctx, SCL_GENERAL, known->next, known->count, dst);
}

scl_status scl_sparse_known_root_adjoint(scl_context *ctx, scl_sparse_known *known, scl_block l,
                                         scl_block slope, scl_block dst) {
  SCL_TRY(scl_read_block(ctx, l, SCL_WAIT_WRITES, known->next));
  SCL_TRY(scl_read_block(ctx, slope, SCL_WAIT_WRITES, known->inverse));
  known->has_inverse = false;
  SCL_TRY(scl_sparse_root_adjoint(columns_of(known), known->next, known->inverse));
  return ctx->engine->upload(ctx, SCL_GENERAL, known->inverse, known->count, dst);
}
