/* Generalised linear models of groups of rows, all at once: Newton's method for each group
 * (kernels/include/glm_batch.h). */
#ifndef SCL_OPS_GLM_BATCH_H
#define SCL_OPS_GLM_BATCH_H

#include "ops/call.h"

/* x: n x p; y, and weights and offset (or NULL): n numbers; order (or NULL): a permutation of the
 * rows, 0-based; starts: the first of each group in it, and n at the end. y has the scale of the
 * mean: for GLM_BATCH_LOGIT shares of trials, which are the weights. All are finite, weights
 * positive, y in the support: the caller checks. */
typedef struct {
  int family;       /* GLM_BATCH_LOGIT, ... */
  int most;         /* steps of a search */
  size_t most_rows; /* of a group */
  const scl_mat *x, *y, *weights, *offset, *order, *starts;
} scl_glm_batch_data;

/* *out, one column, has for each group: coefficients, their covariance matrix, deviance, rank,
 * steps and status (kernels/include/glm_batch_task.h). *eta: linear predictors of the rows. *done
 * is false if the engine cannot; then there are no results. */
scl_status scl_glm_batch(const scl_glm_batch_data *data, bool *done, scl_mat **out, scl_mat **eta);

#endif
