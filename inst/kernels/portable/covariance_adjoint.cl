/* Reverse mode of covariance matrices by the kernel's parameters. Covariances are recomputed from x
 * in registers; the weights (dF/dK) are read once in each launch.
 *
 * A group of 16 x 4 covers 32 x 32 elements; a work-item 2 x 8. */

/* The points of a work-item: rows x1[i0 + 16 q], columns x2[j0 + 4 q]; beyond the edge the last. */
typedef struct {
  __global const real *x1, *x2, *plan;
  int x1_ld, x2_ld, i0, j0, m, n, terms, same; /* same: x1 is x2, and i == j is one observation */
} adjoint_points;

/* x[] and y[]: the coordinates in the column of entry e. */
SCL_INLINE void adjoint_coordinates(const adjoint_points *p, const int e, real *x, real *y) {
  const long column = ENTRY_COLUMN(p->plan, p->terms, e);
  SCL_UNROLL
  for (int q = 0; q < ADJOINT_PART_I; q++) {
    x[q] = p->x1[min(p->i0 + q * ADJOINT_LANES_I, p->m - 1) + column * p->x1_ld];
  }
  SCL_UNROLL
  for (int q = 0; q < ADJOINT_PART_J; q++) {
    y[q] = p->x2[min(p->j0 + q * ADJOINT_LANES_J, p->n - 1) + column * p->x2_ld];
  }
}

/* parts[] = those of s (covariance_functions.h) that belong to entry e. */
SCL_INLINE void adjoint_parts(const adjoint_points *p, const int e, const int metric,
                              const real extra, real *parts) {
  const real inverse = ENTRY_INVERSE(p->plan, p->terms, e);
  const real center = ENTRY_CENTER(p->plan, p->terms, e);
  real x[ADJOINT_PART_I], y[ADJOINT_PART_J];
  adjoint_coordinates(p, e, x, y);
  SCL_UNROLL
  for (int q = 0; q < ADJOINT_PART; q++) {
    parts[q] = covariance_part(metric, x[q % ADJOINT_PART_I], y[q / ADJOINT_PART_I], center,
                               inverse, extra);
  }
}

/* s[] of term t. */
SCL_INLINE void adjoint_sums(const adjoint_points *p, const int t, real *s) {
  const int type = TERM_TYPE(p->plan, t), start = TERM_FIRST(p->plan, t);
  const int last = start + TERM_ENTRIES(p->plan, t);
  SCL_UNROLL
  for (int q = 0; q < ADJOINT_PART; q++) {
    s[q] = 0.0;
#if !COVARIANCE_BASIC
    const int i = p->i0 + q % ADJOINT_PART_I * ADJOINT_LANES_I;
    const int j = p->j0 + q / ADJOINT_PART_I * ADJOINT_LANES_J;
    if (type == SCL_COVARIANCE_WHITE) s[q] = p->same && i == j ? 0.0 : 1.0;
#endif
  }
  for (int e = start; e < last; e++) {
    real parts[ADJOINT_PART];
    adjoint_parts(p, e, TERM_METRIC(type), TERM_EXTRA(p->plan, t), parts);
    SCL_UNROLL
    for (int q = 0; q < ADJOINT_PART; q++) s[q] += parts[q];
  }
}

/* Adds the derivatives of one term to the places first .. first + count - 1 of own; weight[] is
 * dF / d(term). */
SCL_INLINE void adjoint_term(const adjoint_points *p, const int t, const int entries,
                             const int first, const int count, const real *weight,
                             __local real *own) {
  const int type = TERM_TYPE(p->plan, t), start = TERM_FIRST(p->plan, t);
  const int many = TERM_ENTRIES(p->plan, t);
  const int at_sd = t - first, at_lengths = p->terms + start - first;
  const int at_extra = p->terms + entries + t - first;
  const int wants_sd = at_sd >= 0 && at_sd < count;
  const int wants_extra = at_extra >= 0 && at_extra < count; /* 0 for basic types */
  if (!wants_sd && !wants_extra && (at_lengths >= count || at_lengths + many <= 0)) return;
  const real variance = TERM_VARIANCE(p->plan, t), extra = TERM_EXTRA(p->plan, t);

  real s[ADJOINT_PART], sum = 0.0, bend = 0.0;
  adjoint_sums(p, t, s);
  switch (type) { /* outside of the loops, which are the same for all work-items */
#define COVARIANCE_ENTRY(ID, name, metric)                                                         \
  case SCL_COVARIANCE_##ID:                                                                        \
    SCL_UNROLL                                                                                     \
    for (int q = 0; q < ADJOINT_PART; q++) {                                                       \
      const covariance_point f = covariance_##name(s[q], extra);                                   \
      sum += weight[q] * f.value;                                                                  \
      bend += weight[q] * f.bend;                                                                  \
      s[q] = weight[q] * f.slope;                                                                  \
    }                                                                                              \
    break;
    COVARIANCE_TYPES(COVARIANCE_ENTRY)
#undef COVARIANCE_ENTRY
  default: break;
  }
  if (wants_sd) own[at_sd * ADJOINT_STRIDE] += 2.0 * variance * sum;

  for (int e = start; e < start + many; e++) {
    const int at = at_lengths + e - start;
    real parts[ADJOINT_PART];
#if !COVARIANCE_BASIC
    if (wants_extra && type == SCL_COVARIANCE_PERIODIC) {
      const real inverse = ENTRY_INVERSE(p->plan, p->terms, e);
      real x[ADJOINT_PART_I], y[ADJOINT_PART_J];
      adjoint_coordinates(p, e, x, y);
      SCL_UNROLL
      for (int q = 0; q < ADJOINT_PART; q++) {
        bend -= covariance_times(0.5 * s[q], covariance_part_extra(
                                                 SCL_COVARIANCE_SINES, x[q % ADJOINT_PART_I],
                                                 y[q / ADJOINT_PART_I], inverse, extra));
      }
    }
#endif
    if (at < 0 || at >= count) continue;
    adjoint_parts(p, e, TERM_METRIC(type), extra, parts);
    sum = 0.0;
    SCL_UNROLL
    for (int q = 0; q < ADJOINT_PART; q++) sum += covariance_times(s[q], parts[q]);
    own[at * ADJOINT_STRIDE] += variance * sum;
  }
  if (wants_extra) own[at_extra * ADJOINT_STRIDE] += variance * bend;
}

/* weight[] += outer u v' */
SCL_INLINE void adjoint_outer(__global const real *u, __global const real *v,
                              const adjoint_points *p, const real outer, real *weight) {
  real at_u[ADJOINT_PART_I], at_v[ADJOINT_PART_J];
  SCL_UNROLL
  for (int q = 0; q < ADJOINT_PART_I; q++) {
    at_u[q] = outer * u[min(p->i0 + q * ADJOINT_LANES_I, p->m - 1)];
  }
  SCL_UNROLL
  for (int q = 0; q < ADJOINT_PART_J; q++) {
    at_v[q] = v[min(p->j0 + q * ADJOINT_LANES_J, p->n - 1)];
  }
  SCL_UNROLL
  for (int q = 0; q < ADJOINT_PART; q++) {
    weight[q] += at_u[q % ADJOINT_PART_I] * at_v[q / ADJOINT_PART_I];
  }
}

/* Sums of derivatives. There are 2 terms + entries + 1 of them (ops/covariance.h); this launch does
 * `count` of them from `first` on. Weights are inner w + outer u v' (`rank` columns; of a symmetric
 * matrix outer (u v' + v u') / 2, if `two`, else u is v); rank may be 0, and for inner = 0 w is any
 * matrix of the shape or, with w_ld = 0, one column. Groups take the
 * tiles group, group + groups, ...; each work-item keeps its sums in its own places of local memory
 * (count * ADJOINT_STRIDE), and the group's go to partial (count x groups). `symmetric`: lower
 * triangle of tiles, what is off the diagonal counts twice; noise2 (times the first column of
 * spread if spread_ld > 0) is on the diagonal, and white terms are, unless `quiet`. */
__kernel __attribute__((reqd_work_group_size(ADJOINT_LANES_I, ADJOINT_LANES_J, 1))) void
COVARIANCE_NAME(adjoint)(
    __global const real *x1, const long x1_offset, const int x1_ld, __global const real *x2,
    const long x2_offset, const int x2_ld, __global const real *plan, const long plan_offset,
    const int plan_ld, __global const real *spread, const long spread_offset,
    const int spread_ld, __global const real *w, const long w_offset, const int w_ld,
    __global const real *u, const long u_offset, const int u_ld, __global const real *v,
    const long v_offset, const int v_ld, __global real *partial, const long partial_offset,
    const int partial_ld, const int m, const int n, const int terms, const int entries,
    const int products, const int symmetric, const int quiet, const int first, const int count,
    const int rank, const int two, const real outer, const real inner, const real noise2,
    const long tiles, __local real *sums) {
  const int a = get_local_id(0), b = get_local_id(1), item = a + b * ADJOINT_LANES_I;
  const int across = (m + ADJOINT_TILE - 1) / ADJOINT_TILE;
  adjoint_points p;
  p.x1 = x1 + x1_offset;
  p.x2 = x2 + x2_offset;
  p.plan = plan + plan_offset;
  p.x1_ld = x1_ld;
  p.x2_ld = x2_ld;
  p.m = m;
  p.n = n;
  p.terms = terms;
  p.same = symmetric && !quiet;
  u += u_offset;
  v += v_offset;
  __local real *own = sums + item; /* place q: own[q * ADJOINT_STRIDE] */
  for (int q = 0; q < count; q++) own[q * ADJOINT_STRIDE] = 0.0;

  for (long tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
    int ti, tj;
    if (symmetric) {
      lower_tile(tile, &ti, &tj);
    } else {
      tj = (int)(tile / across);
      ti = (int)(tile - (long)tj * across);
    }
    p.i0 = ti * ADJOINT_TILE + a;
    p.j0 = tj * ADJOINT_TILE + b;

    /* All loads without a guard, from the last row or column beyond the edge: guarded ones would
     * wait for each other. */
    real weight[ADJOINT_PART], trace = 0.0;
    SCL_UNROLL
    for (int q = 0; q < ADJOINT_PART; q++) {
      const int i = min(p.i0 + q % ADJOINT_PART_I * ADJOINT_LANES_I, m - 1);
      const int j = min(p.j0 + q / ADJOINT_PART_I * ADJOINT_LANES_J, n - 1);
      weight[q] = w[w_offset + i + (long)j * w_ld];
    }
    SCL_UNROLL
    for (int q = 0; q < ADJOINT_PART; q++) weight[q] = inner == 0.0 ? 0.0 : inner * weight[q];
    for (int r = 0; r < rank; r++) {
      adjoint_outer(u + (long)r * u_ld, v + (long)r * v_ld, &p, two ? 0.5 * outer : outer, weight);
      if (two) adjoint_outer(v + (long)r * v_ld, u + (long)r * u_ld, &p, 0.5 * outer, weight);
    }
    SCL_UNROLL
    for (int q = 0; q < ADJOINT_PART; q++) {
      const int i = p.i0 + q % ADJOINT_PART_I * ADJOINT_LANES_I;
      const int j = p.j0 + q / ADJOINT_PART_I * ADJOINT_LANES_J;
      if (i >= m || j >= n || (symmetric && i < j)) weight[q] = 0.0;
      if (symmetric && i == j) {
        trace += spread_ld == 0 ? weight[q] : weight[q] * spread[spread_offset + min(i, m - 1)];
      }
      if (symmetric && i > j) weight[q] *= 2.0;
    }
    if (first + count == 2 * terms + entries + 1) {
      own[(count - 1) * ADJOINT_STRIDE] += 2.0 * noise2 * trace;
    }

#if COVARIANCE_BASIC
    for (int t = 0; t < terms; t++) adjoint_term(&p, t, entries, first, count, weight, own);
#else
    __global const real *next = p.plan + PRODUCTS_AT(terms, entries);
    for (int g = 0; g < products; g++) {
      const int factors = (int)*next++;
      for (int f = 0; f < factors; f++) {
        real part[ADJOINT_PART], s[ADJOINT_PART];
        SCL_UNROLL
        for (int q = 0; q < ADJOINT_PART; q++) part[q] = weight[q];
        for (int other = 0; other < factors; other++) {
          if (other == f) continue;
          const int t = (int)next[other];
          adjoint_sums(&p, t, s);
          SCL_UNROLL
          for (int q = 0; q < ADJOINT_PART; q++) {
            part[q] *= TERM_VARIANCE(p.plan, t) *
                       covariance_any(TERM_TYPE(p.plan, t), s[q], TERM_EXTRA(p.plan, t)).value;
          }
        }
        adjoint_term(&p, (int)next[f], entries, first, count, part, own);
      }
      next += factors;
    }
#endif
  }

  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) { /* count <= ADJOINT_GROUP */
    real sum = 0.0;
    for (int i = 0; i < ADJOINT_GROUP; i++) sum += sums[item * ADJOINT_STRIDE + i];
    partial[partial_offset + item + (long)get_group_id(0) * partial_ld] = sum;
  }
}

#if COVARIANCE_BASIC
/* out[q] = sum of row q of partial (x groups), in a fixed order. One group for each row. */
__kernel __attribute__((reqd_work_group_size(ADJOINT_GROUP, 1, 1))) void
covariance_sum(__global const real *partial, const long partial_offset, const int partial_ld,
               __global real *out, const long out_offset, const int out_ld, const int groups) {
  __local real sums[ADJOINT_GROUP];
  const int item = get_local_id(0), q = get_group_id(0);
  real sum = 0.0;
  for (int g = item; g < groups; g += ADJOINT_GROUP) {
    sum += partial[partial_offset + q + (long)g * partial_ld];
  }
  sums[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    sum = 0.0;
    for (int i = 0; i < ADJOINT_GROUP; i++) sum += sums[i];
    out[out_offset + q] = sum;
  }
}
#endif
