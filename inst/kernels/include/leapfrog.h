/* A leapfrog step between two evaluations of a log density, of a chain whose point stays on the
 * device. `result` has the density at q and its gradient g, p is the momentum half a step before,
 * e the step of each of d parameters:
 *
 *   p <- p + e g / 2, twice    q <- q + e p    record <- density, g, new q
 *
 * Every operation is rounded by itself, in the order of the host (sample/state.h): both make the
 * same bits, which the host relies on for speed alone. */
#ifdef __NV_CL_C_VERSION
SCL_INLINE real leapfrog_times(real a, real b) {
  real c;
  asm("mul.rn.f64 %0, %1, %2;" : "=d"(c) : "d"(a), "d"(b));
  return c;
}
SCL_INLINE real leapfrog_plus(real a, real b) {
  real c;
  asm("add.rn.f64 %0, %1, %2;" : "=d"(c) : "d"(a), "d"(b));
  return c;
}
#else
SCL_INLINE real leapfrog_times(real a, real b) {
#pragma OPENCL FP_CONTRACT OFF
  return a * b;
}
SCL_INLINE real leapfrog_plus(real a, real b) {
#pragma OPENCL FP_CONTRACT OFF
  return a + b;
}
#endif

/* Of parameter k; position, momentum and step behind each other at `q`. */
SCL_INLINE void leapfrog(const int d, const int k, volatile __global const real *result,
                         __global real *q, __global real *record) {
  const real g = result[1 + k], e = q[2 * d + k];
  const real change = leapfrog_times(leapfrog_times(0.5, e), g);
  const real p = leapfrog_plus(leapfrog_plus(q[d + k], change), change);
  const real next = leapfrog_plus(q[k], leapfrog_times(e, p));
  if (k == 0) record[0] = result[0];
  record[1 + k] = g;
  record[1 + d + k] = next;
  q[d + k] = p;
  q[k] = next;
}
