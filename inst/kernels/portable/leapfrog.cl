/* A leapfrog step after the pass of a GLM likelihood that has not made it itself (leapfrog.h), a
 * work-item a parameter. */
__kernel void leapfrog_step(const int d, __global real *work, const long result, const long q,
                            const long record) {
  const int k = get_global_id(0);
  if (k < d) leapfrog(d, k, work + result, work + q, work + record);
}
