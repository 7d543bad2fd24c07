/* Generalised linear models of groups of rows (ops/glm_batch.h) as an engine sees them. */
#ifndef SCL_ENGINE_PASS_GLM_BATCH_H
#define SCL_ENGINE_PASS_GLM_BATCH_H

#include "base/matrix.h"
#include "kernels/include/port.h"
#include "kernels/include/glm_batch_task.h"

/* x is n x p, all others are columns. Group k has the rows order[t], starts[k] <= t < starts[k + 1]
 * (0-based whole numbers), and gets GLM_BATCH_RESULTS(p) numbers of `out`; `eta` has the linear
 * predictors of the rows. weights, offset and order may have no buffer. */
typedef struct scl_glm_batch_pass {
  glm_batch_task task;
  size_t most_rows; /* of a group */
  scl_block x, y, weights, offset, order, starts, eta, out;
} scl_glm_batch_pass;

#endif
