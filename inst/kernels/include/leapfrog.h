/* Leapfrog steps between two evaluations of a log density, of chains whose points stay on the
 * device. There are n numbers of all chains: number i has position q, momentum p half a step before
 * it, step e, and gradient g, and belongs to one of `vectors` chains:
 *
 *   p <- p + e g / 2, twice    q <- q + e p    record <- densities, all g, all new q
 *
 * A chain may continue from a second start, in the other direction of time, at the point whose
 * number is its turn. From `q` on there are, n numbers each: q, p, e; q, p and e of the second
 * start; then the chains' turns; then m, a and b of each parameter's prior, whose derivative
 * (m - q) / (a + b (q - m)^2) is added to the gradient: b is 0 of a normal one, a infinite of a
 * flat one. `result` has the densities, and behind them the gradients, without priors.
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

/* Alphas come first, one for each chain, then the `count` coefficients of each. Number i, on the
 * way to the point number `point`. */
SCL_INLINE void leapfrog(const int vectors, const int count, const int i, const int point,
                         volatile __global const real *result, __global real *q,
                         __global real *record) {
  const int d = 1 + count, n = vectors * d;
  const int vector = i < vectors ? i : (i - vectors) / count;
  const int parameter = i < vectors ? 0 : 1 + (i - vectors) % count;
  __global const real *prior = q + 6 * n + vectors + parameter;
  const real off = q[i] - prior[0], e = q[2 * n + i];
  const real g = leapfrog_plus(result[vectors + i], -off / (prior[d] + prior[2 * d] * off * off));
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
