#include "ops/glm_batch.h"
#include "ops/operation.h"

#include "engine/pass/glm_batch.h"

static scl_block block_of(const scl_mat *a) {
  return a != NULL ? scl_vector_block(a) : (scl_block){0};
}

static scl_status check_length(const scl_mat *a, const char *argument, size_t n) {
  if (a == NULL || a->nrow * a->ncol == n) return SCL_OK;
  return scl_fail_argument(argument, "internal: '%s' has %zu numbers, not %zu", argument,
                           a->nrow * a->ncol, n);
}

scl_status scl_glm_batch(const scl_glm_batch_data *data, bool *done, scl_mat **out, scl_mat **eta) {
  const size_t n = data->x->nrow, p = data->x->ncol;
  const size_t groups = data->starts->nrow * data->starts->ncol - 1;
  scl_context *ctx = data->x->ctx;
  scl_mat *found = NULL, *predictor = NULL;
  scl_status status;
  SCL_GO(check_length(data->y, "y", n));
  SCL_GO(check_length(data->weights, "weights", n));
  SCL_GO(check_length(data->offset, "offset", n));
  SCL_GO(check_length(data->order, "order", n));
  /* one column: those of a matrix may have gaps */
  SCL_GO(scl_mat_create(ctx, (size_t)GLM_BATCH_RESULTS(p) * groups, 1, SCL_GENERAL, &found));
  SCL_GO(scl_mat_create(ctx, n, 1, SCL_GENERAL, &predictor));
  const scl_glm_batch_pass pass = {.task = {.p = (int)p,
                                            .groups = (int)groups,
                                            .family = data->family,
                                            .most = data->most,
                                            .weighted = data->weights != NULL,
                                            .shifted = data->offset != NULL,
                                            .ordered = data->order != NULL},
                                   .most_rows = data->most_rows,
                                   .x = scl_mat_block(data->x),
                                   .y = block_of(data->y),
                                   .weights = block_of(data->weights),
                                   .offset = block_of(data->offset),
                                   .order = block_of(data->order),
                                   .starts = block_of(data->starts),
                                   .eta = scl_mat_block(predictor),
                                   .out = scl_mat_block(found)};
  SCL_GO(ctx->engine->glm_batch(ctx, &pass, done));
  if (*done) {
    *out = found;
    *eta = predictor;
    return SCL_OK;
  }
done:
  scl_mat_release(found);
  scl_mat_release(predictor);
  return status;
}
