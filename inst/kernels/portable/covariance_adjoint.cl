/* Reverse mode of covariance matrices by the parameters of the covariance function: from the
 * weights dF/dK the derivatives dF/d(log sd), dF/d(log lengthscale), ... Covariances are recomputed
 * from x in registers; the weights are read once in each launch.
 *
 *           x2, from j0 on       A group of 16 x 4 work-items covers one tile of K, 32 x 32, and
 *          0 4 8 12 .. 28 ..     then continues with tiles group + groups, ... Work-item
 *        +-----------------+     (lane_i, lane_j) has 2 x 8 elements of a tile, 16 rows and 4
 *  x1  0 | * * * *       * |     columns apart (marked *): their weights stay in registers while
 *        |                 |     term after term is derived and summed.
 *     16 | * * * *       * |
 *        +-----------------+     A work-item's sums, one for each derivative, lie in local memory,
 *                                ADJOINT_STRIDE apart. At the end work-item k adds derivative k of
 * the group's work-items, in their order, to partial[k, group]; covariance_sum adds the groups.
 *
 * Order of summation: elements of a work-item, tiles of a group, work-items, groups. */

/* Element k of a work-item: its row and column, counted from those of element 0. */
#define ADJOINT_ROW(k) ((k) % ADJOINT_PART_I * ADJOINT_LANES_I)
#define ADJOINT_COLUMN(k) ((k) / ADJOINT_PART_I * ADJOINT_LANES_J)

/* Which derivatives a launch makes: numbers first .. first + count - 1 of the 2 terms + entries + 1
 * (scl_covariance.h); `sums` are this work-item's, ADJOINT_STRIDE apart. */
typedef struct {
  int entries, first, count;
  __local real *sums;
} adjoint_range;

/* x[] and y[]: coordinates of the points in the column of x that `entry` uses. */
SCL_INLINE void adjoint_coordinates(const covariance_points *p, const int entry, real *x, real *y) {
  const long column = ENTRY_COLUMN(p->plan, p->terms, entry);
  SCL_UNROLL
  for (int k = 0; k < ADJOINT_PART_I; k++) {
    x[k] = p->x1[min(p->row + k * ADJOINT_LANES_I, p->m - 1) + column * p->x1_ld];
  }
  SCL_UNROLL
  for (int k = 0; k < ADJOINT_PART_J; k++) {
    y[k] = p->x2[min(p->column + k * ADJOINT_LANES_J, p->n - 1) + column * p->x2_ld];
  }
}

/* parts[] = what `entry` adds to s (covariance_functions.h). */
SCL_INLINE void adjoint_parts(const covariance_points *p, const int entry, const int metric,
                              const real extra, real *parts) {
  const real inverse = ENTRY_INVERSE(p->plan, p->terms, entry);
  const real center = ENTRY_CENTER(p->plan, p->terms, entry);
  real x[ADJOINT_PART_I], y[ADJOINT_PART_J];
  adjoint_coordinates(p, entry, x, y);
  SCL_UNROLL
  for (int k = 0; k < ADJOINT_PART; k++) {
    parts[k] = covariance_part(metric, x[k % ADJOINT_PART_I], y[k / ADJOINT_PART_I], center,
                               inverse, extra);
  }
}

/* sums[] = s of `term`. */
SCL_INLINE void adjoint_sums(const covariance_points *p, const int term, real *sums) {
  const int type = TERM_TYPE(p->plan, term), first = TERM_FIRST(p->plan, term);
  const int last = first + TERM_ENTRIES(p->plan, term);
  SCL_UNROLL
  for (int k = 0; k < ADJOINT_PART; k++) {
    sums[k] = 0.0;
    const int i = p->row + ADJOINT_ROW(k), j = p->column + ADJOINT_COLUMN(k);
    if (covariance_has(SCL_COVARIANCE_WHITE) && type == SCL_COVARIANCE_WHITE)
      sums[k] = p->same && i == j ? 0.0 : 1.0;
  }
  for (int entry = first; entry < last; entry++) {
    real parts[ADJOINT_PART];
    adjoint_parts(p, entry, covariance_metric(type), TERM_EXTRA(p->plan, term), parts);
    SCL_UNROLL
    for (int k = 0; k < ADJOINT_PART; k++) sums[k] += parts[k];
  }
}

/* *value = sum of weight f, *bend = sum of weight df/d(log extra), sums[] = weight slope, where f
 * is the function of this type at sums[]. */
SCL_INLINE void adjoint_functions(const int type, const real extra, const real *weight, real *sums,
                                  real *value, real *bend) {
  switch (type) { /* outside of the loops: all work-items take the same branch */
#define COVARIANCE_ENTRY(ID, name, metric)                                                         \
  case SCL_COVARIANCE_##ID:                                                                        \
    if (!covariance_has(SCL_COVARIANCE_##ID)) break;                                               \
    SCL_UNROLL                                                                                     \
    for (int k = 0; k < ADJOINT_PART; k++) {                                                       \
      const covariance_point f = covariance_##name(sums[k], extra);                                \
      *value += weight[k] * f.value;                                                               \
      *bend += weight[k] * f.bend;                                                                 \
      sums[k] = weight[k] * f.slope;                                                               \
    }                                                                                              \
    break;
    SCL_COVARIANCE_TABLE(COVARIANCE_ENTRY)
#undef COVARIANCE_ENTRY
  default:
    break;
  }
}

/* The derivative by the logarithm of a period, of what `entry` adds to the sines. */
SCL_INLINE real adjoint_period(const covariance_points *p, const int entry, const real extra,
                               const real *slopes, real bend) {
  const real inverse = ENTRY_INVERSE(p->plan, p->terms, entry);
  real x[ADJOINT_PART_I], y[ADJOINT_PART_J];
  adjoint_coordinates(p, entry, x, y);
  SCL_UNROLL
  for (int k = 0; k < ADJOINT_PART; k++) {
    bend -= covariance_times(0.5 * slopes[k],
                             covariance_part_extra(SCL_COVARIANCE_SINES, x[k % ADJOINT_PART_I],
                                                   y[k / ADJOINT_PART_I], inverse, extra));
  }
  return bend;
}

/* Adds the derivatives of one term to the sums; weight[] is dF / d(term). */
SCL_INLINE void adjoint_term(const covariance_points *p, const int term, const adjoint_range *range,
                             const real *weight) {
  const int type = TERM_TYPE(p->plan, term), start = TERM_FIRST(p->plan, term);
  const int many = TERM_ENTRIES(p->plan, term), count = range->count;
  /* Where its derivatives are among those of this launch. */
  const int at_sd = term - range->first, at_lengths = p->terms + start - range->first;
  const int at_extra = p->terms + range->entries + term - range->first;
  const int wants_sd = at_sd >= 0 && at_sd < count;
  const int wants_extra = at_extra >= 0 && at_extra < count; /* adds 0 but for long types */
  if (!wants_sd && !wants_extra && (at_lengths >= count || at_lengths + many <= 0)) return;
  const real variance = TERM_VARIANCE(p->plan, term), extra = TERM_EXTRA(p->plan, term);

  real slopes[ADJOINT_PART], sum = 0.0, bend = 0.0;
  adjoint_sums(p, term, slopes);
  adjoint_functions(type, extra, weight, slopes, &sum, &bend);
  if (wants_sd) range->sums[at_sd * ADJOINT_STRIDE] += 2.0 * variance * sum;

  for (int entry = start; entry < start + many; entry++) {
    const int at = at_lengths + entry - start;
    real parts[ADJOINT_PART];
    if (covariance_has(SCL_COVARIANCE_PERIODIC) && wants_extra && type == SCL_COVARIANCE_PERIODIC) {
      bend = adjoint_period(p, entry, extra, slopes, bend);
    }
    if (at < 0 || at >= count) continue;
    adjoint_parts(p, entry, covariance_metric(type), extra, parts);
    sum = 0.0;
    SCL_UNROLL
    for (int k = 0; k < ADJOINT_PART; k++) sum += covariance_times(slopes[k], parts[k]);
    range->sums[at * ADJOINT_STRIDE] += variance * sum;
  }
  if (wants_extra) range->sums[at_extra * ADJOINT_STRIDE] += variance * bend;
}

/* Adds the derivatives of the sum of products. */
SCL_INLINE void adjoint_products(const covariance_points *p, const int products,
                                 const adjoint_range *range, const real *weight) {
  if (!covariance_has(SCL_COVARIANCE_TYPES)) { /* no products of several */
    for (int term = 0; term < products; term++) adjoint_term(p, term, range, weight);
    return;
  }
  __global const real *next = p->plan + PRODUCTS_AT(p->terms, range->entries);
  for (int done = 0; done < products; done++) {
    const int factors = (int)*next++;
    for (int factor = 0; factor < factors; factor++) {
      real part[ADJOINT_PART], sums[ADJOINT_PART]; /* dF / d(factor): times the other factors */
      SCL_UNROLL
      for (int k = 0; k < ADJOINT_PART; k++) part[k] = weight[k];
      for (int other = 0; other < factors; other++) {
        if (other == factor) continue;
        const int term = (int)next[other];
        adjoint_sums(p, term, sums);
        SCL_UNROLL
        for (int k = 0; k < ADJOINT_PART; k++) {
          part[k] *=
              TERM_VARIANCE(p->plan, term) *
              covariance_any(TERM_TYPE(p->plan, term), sums[k], TERM_EXTRA(p->plan, term)).value;
        }
      }
      adjoint_term(p, (int)next[factor], range, part);
    }
    next += factors;
  }
}

/* weight[] += outer u v' */
SCL_INLINE void adjoint_outer(__global const real *u, __global const real *v,
                              const covariance_points *p, const real outer, real *weight) {
  real at_u[ADJOINT_PART_I], at_v[ADJOINT_PART_J];
  SCL_UNROLL
  for (int k = 0; k < ADJOINT_PART_I; k++) {
    at_u[k] = outer * u[min(p->row + k * ADJOINT_LANES_I, p->m - 1)];
  }
  SCL_UNROLL
  for (int k = 0; k < ADJOINT_PART_J; k++) {
    at_v[k] = v[min(p->column + k * ADJOINT_LANES_J, p->n - 1)];
  }
  SCL_UNROLL
  for (int k = 0; k < ADJOINT_PART; k++) {
    weight[k] += at_u[k % ADJOINT_PART_I] * at_v[k / ADJOINT_PART_I];
  }
}

/* weight[] = dF/dK at the elements of this work-item. All loads are without a guard, from the last
 * row or column beyond the edge: guarded ones would wait for each other. */
SCL_INLINE void adjoint_weights(const covariance_points *p, const covariance_weights *g,
                                real *weight) {
  SCL_UNROLL
  for (int k = 0; k < ADJOINT_PART; k++) {
    const int i = min(p->row + ADJOINT_ROW(k), p->m - 1);
    const int j = min(p->column + ADJOINT_COLUMN(k), p->n - 1);
    weight[k] = g->w[i + (long)j * g->w_ld];
  }
  SCL_UNROLL
  for (int k = 0; k < ADJOINT_PART; k++) {
    weight[k] = g->inner == 0.0 ? 0.0 : g->inner * weight[k];
  }
  for (int column = 0; column < g->rank; column++) {
    __global const real *u = g->u + (long)column * g->u_ld, *v = g->v + (long)column * g->v_ld;
    adjoint_outer(u, v, p, g->two ? 0.5 * g->outer : g->outer, weight);
    if (g->two) adjoint_outer(v, u, p, 0.5 * g->outer, weight);
  }
}

/* The weights of the elements that count: none beyond the edge; of a symmetric matrix none above
 * the diagonal, twice those below it. Returns the sum of those on its diagonal, times spread if
 * there is one (spread_ld > 0). */
SCL_INLINE real adjoint_fold(const covariance_points *p, const int symmetric,
                             __global const real *spread, const int spread_ld, real *weight) {
  real trace = 0.0;
  SCL_UNROLL
  for (int k = 0; k < ADJOINT_PART; k++) {
    const int i = p->row + ADJOINT_ROW(k), j = p->column + ADJOINT_COLUMN(k);
    if (i >= p->m || j >= p->n || (symmetric && i < j)) weight[k] = 0.0;
    if (symmetric && i == j) {
      trace += spread_ld == 0 ? weight[k] : weight[k] * spread[min(i, p->m - 1)];
    }
    if (symmetric && i > j) weight[k] *= 2.0;
  }
  return trace;
}

/* Derivatives first .. first + count - 1, of each group to its column of partial (count x groups).
 * `symmetric`: x2 is x1, and the tiles are those of the lower triangle; then the noise, noise2
 * times the first column of spread (or 1 if spread_ld is 0), and the white terms are on the
 * diagonal, unless `quiet`. */
__kernel __attribute__((reqd_work_group_size(ADJOINT_LANES_I, ADJOINT_LANES_J, 1))) void
covariance_adjoint(__global const real *x1, __global const real *x2, __global const real *plan,
                   __global const real *spread, __global const real *w, __global const real *u,
                   __global const real *v, __global real *partial, const covariance_task task,
                   const covariance_weighting weighting, const covariance_range part,
                   __local real *sums) {
  const int lane_i = get_local_id(0), lane_j = get_local_id(1);
  const int item = lane_i + lane_j * ADJOINT_LANES_I, symmetric = task.symmetric;
  const int rows = (task.m + ADJOINT_TILE - 1) / ADJOINT_TILE, count = part.count;
  /* The last derivative is that by the noise. */
  const int by_noise = part.first + count == 2 * task.terms + task.entries + 1;
  const covariance_weights weights = {
      w + weighting.w_offset, u + weighting.u_offset, v + weighting.v_offset, weighting.w_ld,
      weighting.u_ld,         weighting.v_ld,         weighting.rank,         weighting.two,
      weighting.outer,        weighting.inner};
  const adjoint_range range = {task.entries, part.first, count, sums + item};
  covariance_points points = {x1 + task.x1_offset,
                              x2 + task.x2_offset,
                              plan + task.plan_offset,
                              task.x1_ld,
                              task.x2_ld,
                              0,
                              0,
                              task.m,
                              task.n,
                              task.terms,
                              symmetric && !task.quiet};
  spread += task.spread_offset;
  for (int k = 0; k < count; k++) range.sums[k * ADJOINT_STRIDE] = 0.0;

  for (long index = get_group_id(0); index < part.tiles; index += get_num_groups(0)) {
    const int2 tile = symmetric ? lower_tile(index) : whole_tile(index, rows);
    points.row = tile.x * ADJOINT_TILE + lane_i;
    points.column = tile.y * ADJOINT_TILE + lane_j;
    real weight[ADJOINT_PART];
    adjoint_weights(&points, &weights, weight);
    const real trace = adjoint_fold(&points, symmetric, spread, task.spread_ld, weight);
    if (by_noise) range.sums[(count - 1) * ADJOINT_STRIDE] += 2.0 * task.noise2 * trace;
    adjoint_products(&points, task.products, &range, weight);
  }

  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) { /* count <= ADJOINT_GROUP */
    real sum = 0.0;
    for (int k = 0; k < ADJOINT_GROUP; k++) sum += sums[item * ADJOINT_STRIDE + k];
    partial[task.out_offset + item + (long)get_group_id(0) * task.out_ld] = sum;
  }
}
