/* A leapfrog step between two evaluations of a log density, of a chain whose point stays on the
 * device. `result` has the density at q and its gradient g, p is the momentum half a step before,
 * e the step of each of d parameters:
 *
 *   p <- p + e g / 2, twice    q <- q + e p    record <- density, g, new q
 *
 * A work-item a parameter. Every operation is rounded by itself, in the order of the host
 * (sample/state.h): both make the same bits, which the host relies on for speed alone. */
#pragma OPENCL FP_CONTRACT OFF

__kernel void leapfrog_step(const int d, __global const real *result, const long result_offset,
                            __global const real *step, const long step_offset, __global real *q,
                            const long q_offset, __global real *p, const long p_offset,
                            __global real *record, const long record_offset) {
  const int k = get_global_id(0);
  if (k >= d) return;
  const real g = result[result_offset + 1 + k], e = step[step_offset + k];
  const real change = 0.5 * e * g;
  const real middle = p[p_offset + k] + change;
  const real after = middle + change;
  const real moved = e * after;
  const real next = q[q_offset + k] + moved;
  if (k == 0) record[record_offset] = result[result_offset];
  record[record_offset + 1 + k] = g;
  record[record_offset + 1 + d + k] = next;
  p[p_offset + k] = after;
  q[q_offset + k] = next;
}
