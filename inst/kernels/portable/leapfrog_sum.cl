/* After the pass of a GLM likelihood: the sums over its groups (like glm.cl), and then the leapfrog
 * steps of chains with few parameters, in one launch (leapfrog_chain.h). A group a chain. */
__attribute__((reqd_work_group_size(LEAPFROG_GROUP, 1, 1))) __kernel void
leapfrog_sum(__global real *work, const leapfrog_sum_task task) {
  __local real pool[LEAPFROG_GROUP], near[LEAPFROG_NEAR];
  const int item = get_local_id(0), chain = get_group_id(0);
  const leapfrog_walk w = leapfrog_near(&task, near);
  leapfrog_fetch(&task, &w, chain, item, work);
  leapfrog_add(&task, chain, item, pool, near, work);
  leapfrog(&w, 0, item, LEAPFROG_GROUP);
  barrier(CLK_LOCAL_MEM_FENCE);
  leapfrog_store(&task, &w, chain, item, work);
}
