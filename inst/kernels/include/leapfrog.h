/* Leapfrog steps between two evaluations of a log density, of chains whose points stay on the
 * device. There are n numbers of all chains: number i has position q, momentum p half a step before
 * it, step e, and gradient g, and belongs to one of `vectors` chains:
 *
 *   p <- p + e g / 2, twice    q <- q + e p    record <- densities, all g, all new q
 *
 * A chain may continue from a second start, in the other direction of time, at the point whose
 * number is its turn. From `q` on there are, n numbers each: q, p, e; q, p and e of the second
 * start; and the chains' turns. `result` has the densities, and behind them the gradients.
 *
 * Every operation is rounded by itself, in the order of the host (sample/state.h): both give the
 * same bits, on which only the speed of the host depends. */
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

/* Number i, of the chain `vector`, on the way to the point number `point`. */
SCL_INLINE void leapfrog(const int vectors, const int n, const int i, const int vector,
                         const int point, volatile __global const real *result, __global real *q,
                         __global real *record) {
  const real g = result[vectors + i], e = q[2 * n + i];
  const real change = leapfrog_times(leapfrog_times(0.5, e), g);
  real p = leapfrog_plus(leapfrog_plus(q[n + i], change), change);
  real next = leapfrog_plus(q[i], leapfrog_times(e, p));
  if (q[6 * n + vector] == point) {
    next = q[3 * n + i];
    p = q[4 * n + i];
    q[2 * n + i] = q[5 * n + i];
  }
  if (i < vectors) record[i] = result[i];
  record[vectors + i] = g;
  record[vectors + n + i] = next;
  q[n + i] = p;
  q[i] = next;
}

/* The chain of number i: alphas come first, one for each chain, then the p coefficients of each. */
SCL_INLINE int leapfrog_vector(const int vectors, const int p, const int i) {
  return i < vectors ? i : (i - vectors) / p;
}
