/* Leapfrog steps after the pass of a GLM likelihood that has not made them itself (leapfrog.h), a
 * group a chain. */
__kernel void leapfrog_step(const int vectors, const int p, const int point, const int directions,
                            __global real *work, const long result, const long q,
                            const long record) {
  const leapfrog_walk w = {vectors, p, point, directions, work + result, work + q, work + record};
  leapfrog(&w, get_group_id(0), get_local_id(0), get_local_size(0));
}
