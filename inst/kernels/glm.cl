/* What follows the pass of a GLM likelihood (glm_pass.cl, glm_rows.cl): the sums over its groups,
 * and the gradient by X. */
#ifndef GLM_COMBINE_ITEMS /* work-items that add one row of the results; a power of two */
#define GLM_COMBINE_ITEMS 64
#endif

/* One group adds row r = group id of the partial sums, of which group g's is at
 * partials + r * row_step + g * group_step, in a fixed order. Row 0 is the value, then come
 * `columns` derivatives by beta, then that by alpha, whose place in the results is behind all p. */
__attribute__((reqd_work_group_size(GLM_COMBINE_ITEMS, 1, 1))) __kernel void
glm_combine(__global double *work, const int groups, const long partials, const long row_step,
            const long group_step, const long results, const int columns, const int p) {
  __local double pool[GLM_COMBINE_ITEMS];
  const int item = get_local_id(0), r = get_group_id(0);
  __global const double *partial = work + partials + r * row_step;
  double sum = 0.0;
  for (int g = item; g < groups; g += GLM_COMBINE_ITEMS) sum += partial[g * group_step];
  pool[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = GLM_COMBINE_ITEMS / 2; reach > 0; reach /= 2) {
    if (item < reach) pool[item] += pool[item + reach];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) work[results + (r <= columns ? r : 1 + p)] = pool[0];
}

/* d_x = residual beta'; one work-item an element, rows along dimension 0. */
__kernel void glm_outer(__global const double *work, const long residuals, const int n,
                        __global double *d_x, const long d_x_offset, const int d_x_ld) {
  const long i = get_global_id(0), j = get_global_id(1);
  if (i < n) d_x[d_x_offset + i + j * d_x_ld] = work[residuals + i] * work[j];
}
