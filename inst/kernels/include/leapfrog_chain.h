/* One chain of a walk by one group, for leapfrog_sum.cl and glm_mma_walk.cl: the sums over the
 * groups of the pass, and the steps to the next point (leapfrog.h), in local memory.
 *
 *            groups 0  1  2 ..
 *          +--+--+--+--+--+--+
 *   value  |  |  |  |  |  |  | -->+        GLM_COMBINE_ITEMS sums a row, by LEAPFROG_LANES
 *   alpha  |  |  |  |  |  |  | -->| steps  work-items, LEAPFROG_SUMS rows at a time; all numbers of
 *   beta   |  |  |  |  |  |  | -->|        the chain are in local memory
 *     :    |  |  |  |  |  |  | -->+
 *
 * The order of a row's sum is that of glm_combine, whatever LEAPFROG_LANES is. */
#ifndef LEAPFROG_LANES
#define LEAPFROG_LANES GLM_COMBINE_ITEMS
#endif
#define LEAPFROG_GROUP (LEAPFROG_SUMS * LEAPFROG_LANES)
#define LEAPFROG_EACH (GLM_COMBINE_ITEMS / LEAPFROG_LANES) /* sums of a work-item */
/* Loads on their way at a time: 8, or 16. More take registers that glm_mma_walk.cl does not have:
 * then fewer of its groups would run at once than have to meet. */
#if LEAPFROG_EACH == 1
#define LEAPFROG_UNROLL _Pragma("unroll 8")
#else
#define LEAPFROG_UNROLL _Pragma("unroll 2")
#endif
/* From q on there are so many numbers for each parameter; the first ones change (leapfrog.h). */
enum { LEAPFROG_PARTS = 6, LEAPFROG_MOVED = 3 };

/* The walk of a chain whose numbers are `near`: results, a record, those from q on. */
SCL_INLINE leapfrog_walk leapfrog_near(const leapfrog_sum_task *t, __local real *near) {
  const int d = 1 + t->p;
  const leapfrog_walk w = {
      1, t->p, t->point, t->directions, near, near + 1 + d + 1 + 2 * d, near + 1 + d};
  return w;
}

/* All numbers of a chain from q on, to local memory. */
SCL_INLINE void leapfrog_fetch(const leapfrog_sum_task *t, const leapfrog_walk *w, int chain,
                               int item, __global const real *work) {
  const int d = 1 + t->p, n = t->vectors * d, metric = LEAPFROG_METRIC(d, t->directions);
  const leapfrog_walk all = {t->vectors, t->p};
  __global const real *q = work + t->q, *behind = q + LEAPFROG_PARTS * n;
  for (int i = item; i < LEAPFROG_PARTS * d; i += LEAPFROG_GROUP)
    w->q[i] = q[i / d * n + leapfrog_number(&all, chain, i % d)];
  for (int i = item; i < 1 + 3 * d + metric; i += LEAPFROG_GROUP) {
    const int skipped = i == 0       ? chain
                        : i <= 3 * d ? t->vectors - 1
                                     : t->vectors - 1 + chain * metric;
    w->q[LEAPFROG_PARTS * d + i] = behind[skipped + i];
  }
}

/* A work-item's sums of a row; `together` is a constant. */
SCL_INLINE void leapfrog_add_row(volatile __global const real *row, long step, int groups, int lane,
                                 int together, real *sum) {
  LEAPFROG_UNROLL for (int g = lane; g < groups; g += GLM_COMBINE_ITEMS) {
    SCL_UNROLL for (int i = 0; i < LEAPFROG_EACH; i++) {
      const int at = g + i * LEAPFROG_LANES;
      sum[i] += at < groups ? glm_partial(row, at, step, together) : 0.0;
    }
  }
}

/* The sums of the chain's rows over the groups, to the results at `near`. */
SCL_INLINE_BARRIER void leapfrog_add(const leapfrog_sum_task *t, int chain, int item,
                                     __local real *pool, __local real *near,
                                     __global const real *work) {
  const int d = 1 + t->p, lane = item % LEAPFROG_LANES;
  const leapfrog_walk all = {t->vectors, t->p};
  for (int first = 0; first <= d; first += LEAPFROG_SUMS) {
    const int k = first + item / LEAPFROG_LANES;
    const int row = k == 0 ? chain : t->vectors + leapfrog_number(&all, chain, min(k, d) - 1);
    volatile __global const real *partial = work + t->partials + row * t->row_step;
    const int groups = k <= d ? t->groups : 0;
    real sum[LEAPFROG_EACH];
    SCL_UNROLL for (int i = 0; i < LEAPFROG_EACH; i++) sum[i] = 0.0;
    if (t->together == 1) {
      leapfrog_add_row(partial, t->group_step, groups, lane, 1, sum);
    } else {
      leapfrog_add_row(partial, t->group_step, groups, lane, GLM_TOGETHER, sum);
    }
    SCL_UNROLL for (int reach = LEAPFROG_EACH / 2; reach > 0; reach /= 2) {
      SCL_UNROLL for (int i = 0; i < reach; i++) sum[i] += sum[i + reach];
    }
    pool[item] = sum[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = LEAPFROG_LANES / 2; reach > 0; reach /= 2) {
      if (lane < reach) pool[item] += pool[item + reach];
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0 && k <= d) near[k] = pool[item];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

/* What the steps have changed, and the record. */
SCL_INLINE void leapfrog_store(const leapfrog_sum_task *t, const leapfrog_walk *w, int chain,
                               int item, __global real *work) {
  const int d = 1 + t->p, n = t->vectors * d;
  const leapfrog_walk all = {t->vectors, t->p};
  __global real *q = work + t->q;
  for (int i = item; i < LEAPFROG_MOVED * d; i += LEAPFROG_GROUP)
    q[i / d * n + leapfrog_number(&all, chain, i % d)] = w->q[i];
  for (int i = item; i <= 2 * d; i += LEAPFROG_GROUP) {
    const int k = (i - 1) % d;
    const int to = t->vectors + (i - 1) / d * n + leapfrog_number(&all, chain, k);
    work[t->record + (i == 0 ? chain : to)] = w->record[i];
  }
}
