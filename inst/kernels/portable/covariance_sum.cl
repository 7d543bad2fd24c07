/* The last step of derivatives of covariance matrices: sums over the groups.
 *
 *               groups of covariance_adjoint         A group of ADJOINT_GROUP work-items has one
 *              0 1 2 .. 63 0 1 2 ..                  row of partial (a derivative): work-item
 *   group q  | * * * .. *  * * * .. |  --> out[q]    `item` adds the columns item, item +
 *                                                    ADJOINT_GROUP, ... (numbers: the work-item);
 * the first one then adds the work-items' sums, in their order. */

/* out[q] = sum of row q of partial (x groups), in a fixed order. One group for each row. */
__kernel __attribute__((reqd_work_group_size(ADJOINT_GROUP, 1, 1))) void
covariance_sum(__global const real *partial, const long partial_offset, const int partial_ld,
               __global real *out, const long out_offset, const int out_ld, const int groups) {
  __local real sums[ADJOINT_GROUP];
  const int item = get_local_id(0), q = get_group_id(0);
  real sum = 0.0;
  for (int g = item; g < groups; g += ADJOINT_GROUP) {
    sum += partial[partial_offset + q + (long)g * partial_ld];
  }
  sums[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    sum = 0.0;
    for (int i = 0; i < ADJOINT_GROUP; i++) sum += sums[i];
    out[out_offset + q] = sum;
  }
}
