/* Kernels next to the pass of a GLM likelihood (glm_pass.cl, glm_rows.cl): the sums over its
 * groups, and the gradient with respect to X. `work` is laid out as glm_task.h says.
 *
 *   glm_combine                             glm_outer
 *            groups 0  1  2 ..                       j: columns of X
 *          +--+--+--+--+--+--+                     +----+----+----+
 *   row r  |  |  |  |  |  |  | --> results r     i |    | *  |    | a work-item an element: the sum
 *          +--+--+--+--+--+--+                     +----+----+----+ over predictors of residual i
 *   one group of work-items a row                                    times beta j
 */

/* One group adds row r = group id of the groups' sums, of which group g's is at
 * partials + r * row_step + g * group_step, in a fixed order; `groups` sums of `together` of them
 * (glm_groups.h). */
__attribute__((reqd_work_group_size(GLM_COMBINE_ITEMS, 1, 1))) __kernel void
glm_combine(__global real *work, const int groups, const int together, const long partials,
            const long row_step, const long group_step, const long results) {
  __local real pool[GLM_COMBINE_ITEMS];
  const int item = get_local_id(0), r = get_group_id(0);
  __global const real *partial = work + partials + r * row_step;
  real sum = 0.0;
  if (together == 1) {
    for (int g = item; g < groups; g += GLM_COMBINE_ITEMS) sum += partial[g * group_step];
  } else {
    for (int g = item; g < groups; g += GLM_COMBINE_ITEMS)
      sum += glm_partial(partial, g, group_step, GLM_TOGETHER);
  }
  pool[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = GLM_COMBINE_ITEMS / 2; reach > 0; reach /= 2) {
    if (item < reach) pool[item] += pool[item + reach];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) work[results + r] = pool[0];
}

/* d_x = residuals beta', where both have a column for each predictor; one work-item an element,
 * rows along dimension 0. */
__kernel void glm_outer(__global const real *work, const long beta, const long residuals,
                        const int predictors, const int n, const int p, __global real *d_x,
                        const long d_x_offset, const int d_x_ld) {
  const long i = get_global_id(0), j = get_global_id(1);
  real sum = 0.0;
  if (i >= n) return;
  for (int v = 0; v < predictors; v++) {
    sum += work[residuals + (long)v * n + i] * work[beta + (long)v * p + j];
  }
  d_x[d_x_offset + i + j * d_x_ld] = sum;
}
