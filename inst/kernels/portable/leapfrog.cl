/* Leapfrog steps after the pass of a GLM likelihood that has not made them itself (leapfrog.h), a
 * work-item a number. */
__kernel void leapfrog_step(const int vectors, const int p, const int point, __global real *work,
                            const long result, const long q, const long record) {
  const int i = get_global_id(0);
  if (i < vectors * (1 + p))
    leapfrog(vectors, p, i, point, work + result, work + q, work + record);
}
