/* Reverse mode of covariance matrices by the points.
 *
 * A group of 32 x 8 has 32 rows of x1 and one column c of it (dimension 2); a work-item takes every
 * 8th row of x2. The eight sums of a row are added in local memory, in order. */

/* s of term t for the points i and j. */
SCL_INLINE real inputs_sum(__global const real *x1, const int x1_ld, __global const real *x2,
                             const int x2_ld, __global const real *plan, const int terms,
                             const int t, const int i, const int j, const int same) {
  const int type = TERM_TYPE(plan, t), start = TERM_FIRST(plan, t);
  const int last = start + TERM_ENTRIES(plan, t);
  real s = type == SCL_COVARIANCE_WHITE && !(same && i == j) ? 1.0 : 0.0;
  for (int e = start; e < last; e++) {
    const long column = ENTRY_COLUMN(plan, terms, e);
    s += covariance_part(covariance_metric(type), x1[i + column * x1_ld], x2[j + column * x2_ld],
                         ENTRY_CENTER(plan, terms, e), ENTRY_INVERSE(plan, terms, e),
                         TERM_EXTRA(plan, t));
  }
  return s;
}

/* out(i, c) = sum_j weight_ij dk_ij / dx1_ic, weights as for the adjoint. `symmetric`: x2 is x1 and
 * moves along, so that both derivatives count; the lower triangle of w is read. */
__kernel __attribute__((reqd_work_group_size(INPUTS_ROWS, INPUTS_LANES, 1))) void
covariance_inputs(__global const real *x1, const long x1_offset, const int x1_ld,
                  __global const real *x2, const long x2_offset, const int x2_ld,
                  __global const real *plan, const long plan_offset, const int plan_ld,
                  __global const real *w, const long w_offset, const int w_ld,
                  __global const real *u, const long u_offset, const int u_ld,
                  __global const real *v, const long v_offset, const int v_ld,
                  __global real *out, const long out_offset, const int out_ld, const int m,
                  const int n, const int terms, const int entries, const int products,
                  const int symmetric, const int quiet, const int rank, const int two,
                  const real outer, const real inner) {
  __local real sums[INPUTS_ROWS * INPUTS_LANES];
  const int a = get_local_id(0), b = get_local_id(1), c = get_global_id(2);
  const int row = get_group_id(0) * INPUTS_ROWS + a, i = min(row, m - 1);
  const int same = symmetric && !quiet;
  x1 += x1_offset;
  x2 += x2_offset;
  plan += plan_offset;
  u += u_offset;
  v += v_offset;
  real sum = 0.0;
  for (int j = b; j < n; j += INPUTS_LANES) {
    real weight = 0.0;
    if (inner != 0.0) {
      const int low = symmetric ? max(i, j) : i, high = symmetric ? min(i, j) : j;
      weight = inner * w[w_offset + low + (long)high * w_ld];
    }
    for (int r = 0; r < rank; r++) {
      const real uv = u[i + (long)r * u_ld] * v[j + (long)r * v_ld];
      weight += outer * (two ? 0.5 * (uv + v[i + (long)r * v_ld] * u[j + (long)r * u_ld]) : uv);
    }
    if (symmetric) weight *= 2.0;

    __global const real *next = plan + PRODUCTS_AT(terms, entries);
    for (int g = 0; g < products; g++) {
      const int factors = (int)*next++;
      for (int f = 0; f < factors; f++) {
        const int t = (int)next[f], type = TERM_TYPE(plan, t), start = TERM_FIRST(plan, t);
        const int last = start + TERM_ENTRIES(plan, t);
        const real extra = TERM_EXTRA(plan, t);
        real part = 0.0; /* ds / dx1_ic */
        for (int e = start; e < last; e++) {
          const long column = ENTRY_COLUMN(plan, terms, e);
          if (column != c) continue;
          part += covariance_part_x(covariance_metric(type), x1[i + column * x1_ld],
                                    x2[j + column * x2_ld], ENTRY_CENTER(plan, terms, e),
                                    ENTRY_INVERSE(plan, terms, e), extra);
        }
        if (part == 0.0) continue;
        const real s = inputs_sum(x1, x1_ld, x2, x2_ld, plan, terms, t, i, j, same);
        real by_s = -0.5 * weight * TERM_VARIANCE(plan, t) * covariance_any(type, s, extra).slope;
        for (int other = 0; other < factors; other++) {
          if (other == f) continue;
          const int o = (int)next[other];
          by_s *= TERM_VARIANCE(plan, o) *
                  covariance_any(TERM_TYPE(plan, o),
                                 inputs_sum(x1, x1_ld, x2, x2_ld, plan, terms, o, i, j, same),
                                 TERM_EXTRA(plan, o))
                      .value;
        }
        sum += covariance_times(by_s, part);
      }
      next += factors;
    }
  }
  sums[a + b * INPUTS_ROWS] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (b == 0 && row < m) {
    for (int q = 1; q < INPUTS_LANES; q++) sum += sums[a + q * INPUTS_ROWS];
    out[out_offset + row + (long)c * out_ld] = sum;
  }
}
