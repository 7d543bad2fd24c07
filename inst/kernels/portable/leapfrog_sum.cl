/* After the pass of a GLM likelihood: the sums over its groups (like glm.cl), and then the leapfrog
 * steps (leapfrog.h) of chains with few parameters, in one launch. A group a chain:
 *
 *            groups 0  1  2 ..
 *          +--+--+--+--+--+--+
 *   value  |  |  |  |  |  |  | -->+        GLM_COMBINE_ITEMS work-items a row, LEAPFROG_SUMS
 *   alpha  |  |  |  |  |  |  | -->| steps  rows at a time; meanwhile all numbers of the chain,
 *   beta   |  |  |  |  |  |  | -->|        PARTS for each parameter, come to local memory, where
 *     :    |  |  |  |  |  |  | -->+        the steps are made */

enum { ITEMS = LEAPFROG_SUMS * GLM_COMBINE_ITEMS, PARTS = 6, MOVED = 3 };

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void
leapfrog_sum(__global real *work, const leapfrog_sum_task task) {
  __local real pool[ITEMS], near[LEAPFROG_NEAR];
  const int item = get_local_id(0), chain = get_group_id(0), vectors = task.vectors;
  const int d = 1 + task.p, n = vectors * d, metric = LEAPFROG_METRIC(d, task.directions);
  const leapfrog_walk all = {vectors, task.p};
  __global real *q = work + task.q, *behind = q + PARTS * n;
  __local real *result = near, *record = result + 1 + d, *own = record + 1 + 2 * d;
  const leapfrog_walk w = {1, task.p, task.point, task.directions, result, own, record};
  for (int i = item; i < PARTS * d; i += ITEMS)
    own[i] = q[i / d * n + leapfrog_number(&all, chain, i % d)];
  for (int i = item; i < 1 + 3 * d + metric; i += ITEMS) {
    const int skipped = i == 0 ? chain : i <= 3 * d ? vectors - 1 : vectors - 1 + chain * metric;
    own[PARTS * d + i] = behind[skipped + i];
  }
  for (int first = 0; first <= d; first += LEAPFROG_SUMS) {
    const int k = first + item / GLM_COMBINE_ITEMS, lane = item % GLM_COMBINE_ITEMS;
    const int row = k == 0 ? chain : vectors + leapfrog_number(&all, chain, min(k, d) - 1);
    __global const real *partial = work + task.partials + row * task.row_step;
    real sum = 0.0;
    const int groups = k <= d ? task.groups : 0;
    _Pragma("unroll 8") for (int g = lane; g < groups; g += GLM_COMBINE_ITEMS)
      sum += partial[g * task.group_step];
    pool[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GLM_COMBINE_ITEMS / 2; reach > 0; reach /= 2) {
      if (lane < reach) pool[item] += pool[item + reach];
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0 && k <= d) result[k] = pool[item];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  leapfrog(&w, 0, item, ITEMS);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = item; i < MOVED * d; i += ITEMS)
    q[i / d * n + leapfrog_number(&all, chain, i % d)] = own[i];
  for (int i = item; i <= 2 * d; i += ITEMS) {
    const int k = (i - 1) % d, to = vectors + (i - 1) / d * n + leapfrog_number(&all, chain, k);
    work[task.record + (i == 0 ? chain : to)] = record[i];
  }
}
