/* Reverse mode of covariance matrices by the points: out(i, c) = sum_j weight_ij dk_ij / dx1_ic.
 *
 *            x2: all rows                 A group of 32 x 8 work-items has 32 rows of x1 (dimension
 *          0 1 2 ... 7 8 9 ...            0) and one column c of x1 (dimension 2). Work-item
 *        +-----------------------         (lane_i, lane_j) has row lane_i, and of the rows of x2
 *  x1  0 | 0 1 2 ... 7 0 1 ...            lane_j, lane_j + 8, ... (numbers: lane_j).
 *   ..   | 0 1 2 ... 7 0 1 ...
 *     31 | 0 1 2 ... 7 0 1 ...            The eight sums of a row meet in local memory.
 *
 * Order of summation: rows of x2 of a work-item, for each of them products and factors as the plan
 * has them; then the eight sums. */

/* s of a term at the point. */
SCL_INLINE real inputs_sum(const covariance_points *p, const int term) {
  const int type = TERM_TYPE(p->plan, term), first = TERM_FIRST(p->plan, term);
  const int last = first + TERM_ENTRIES(p->plan, term);
  real sum = type == SCL_COVARIANCE_WHITE && !(p->same && p->row == p->column) ? 1.0 : 0.0;
  for (int entry = first; entry < last; entry++) {
    const long column = ENTRY_COLUMN(p->plan, p->terms, entry);
    sum += covariance_part(covariance_metric(type), p->x1[p->row + column * p->x1_ld],
                           p->x2[p->column + column * p->x2_ld],
                           ENTRY_CENTER(p->plan, p->terms, entry),
                           ENTRY_INVERSE(p->plan, p->terms, entry), TERM_EXTRA(p->plan, term));
  }
  return sum;
}

/* The derivative of s of a term by column c of x1. */
SCL_INLINE real inputs_slope(const covariance_points *p, const int term, const int c) {
  const int type = TERM_TYPE(p->plan, term), first = TERM_FIRST(p->plan, term);
  const int last = first + TERM_ENTRIES(p->plan, term);
  const real extra = TERM_EXTRA(p->plan, term);
  real slope = 0.0;
  for (int entry = first; entry < last; entry++) {
    const long column = ENTRY_COLUMN(p->plan, p->terms, entry);
    if (column != c) continue;
    slope += covariance_part_x(covariance_metric(type), p->x1[p->row + column * p->x1_ld],
                               p->x2[p->column + column * p->x2_ld],
                               ENTRY_CENTER(p->plan, p->terms, entry),
                               ENTRY_INVERSE(p->plan, p->terms, entry), extra);
  }
  return slope;
}

/* The weight of the point; of a symmetric matrix both derivatives count, and the lower triangle of
 * W is read. */
SCL_INLINE real inputs_weight(const covariance_points *p, const covariance_weights *g,
                              const int symmetric) {
  const int i = p->row, j = p->column;
  real weight = 0.0;
  if (g->inner != 0.0) {
    const int low = symmetric ? max(i, j) : i, high = symmetric ? min(i, j) : j;
    weight = g->inner * g->w[low + (long)high * g->w_ld];
  }
  for (int k = 0; k < g->rank; k++) {
    __global const real *u = g->u + (long)k * g->u_ld, *v = g->v + (long)k * g->v_ld;
    const real uv = u[i] * v[j];
    weight += g->outer * (g->two ? 0.5 * (uv + v[i] * u[j]) : uv);
  }
  return symmetric ? 2.0 * weight : weight;
}

/* Adds weight dk / dx1_ic at the point to `sum`: by the product rule, factor by factor. */
SCL_INLINE real inputs_add(const covariance_points *p, const int entries, const int products,
                           const real weight, const int c, real sum) {
  __global const real *next = p->plan + PRODUCTS_AT(p->terms, entries);
  for (int done = 0; done < products; done++) {
    const int factors = (int)*next++;
    for (int factor = 0; factor < factors; factor++) {
      const int term = (int)next[factor];
      const real slope = inputs_slope(p, term, c);
      if (slope == 0.0) continue;
      real by_s =
          -0.5 * weight * TERM_VARIANCE(p->plan, term) *
          covariance_any(TERM_TYPE(p->plan, term), inputs_sum(p, term), TERM_EXTRA(p->plan, term))
              .slope;
      for (int k = 0; k < factors; k++) {
        if (k == factor) continue;
        const int other = (int)next[k];
        by_s *= TERM_VARIANCE(p->plan, other) * covariance_any(TERM_TYPE(p->plan, other),
                                                               inputs_sum(p, other),
                                                               TERM_EXTRA(p->plan, other))
                                                    .value;
      }
      sum += covariance_times(by_s, slope);
    }
    next += factors;
  }
  return sum;
}

/* `symmetric`: x2 is x1, and moves with it; white terms then have their noise, unless `quiet`. */
__kernel __attribute__((reqd_work_group_size(INPUTS_ROWS, INPUTS_LANES, 1))) void
covariance_inputs(__global const real *x1, __global const real *x2, __global const real *plan,
                  __global const real *w, __global const real *u, __global const real *v,
                  __global real *out, const covariance_task task,
                  const covariance_weighting weighting) {
  __local real sums[INPUTS_ROWS * INPUTS_LANES];
  const int lane_i = get_local_id(0), lane_j = get_local_id(1), c = get_global_id(2);
  const int row = get_group_id(0) * INPUTS_ROWS + lane_i, m = task.m, n = task.n;
  const covariance_weights weights = {
      w + weighting.w_offset, u + weighting.u_offset, v + weighting.v_offset, weighting.w_ld,
      weighting.u_ld,         weighting.v_ld,         weighting.rank,         weighting.two,
      weighting.outer,        weighting.inner};
  covariance_points point = {x1 + task.x1_offset,
                             x2 + task.x2_offset,
                             plan + task.plan_offset,
                             task.x1_ld,
                             task.x2_ld,
                             min(row, m - 1),
                             0,
                             m,
                             n,
                             task.terms,
                             task.symmetric && !task.quiet};
  real sum = 0.0;
  for (int j = lane_j; j < n; j += INPUTS_LANES) {
    point.column = j;
    const real weight = inputs_weight(&point, &weights, task.symmetric);
    sum = inputs_add(&point, task.entries, task.products, weight, c, sum);
  }
  sums[lane_i + lane_j * INPUTS_ROWS] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane_j == 0 && row < m) {
    for (int k = 1; k < INPUTS_LANES; k++) sum += sums[lane_i + k * INPUTS_ROWS];
    out[task.out_offset + row + (long)c * task.out_ld] = sum;
  }
}
