/* Vecchia's approximation (engine/pass/vecchia.h). A group has one point at a time: its covariances
 * with its neighbours are built, factored and used without being stored.
 *
 *       0   neighbours   m ... last     Work-item `lane` has row `lane`: neighbours from 0 on, the
 *     0 +                               point itself in the last row; rows between them, and those
 *       | +  K = L D L'                 of missing neighbours, are unrelated to all others (1 on
 *       | . +                           the diagonal).
 *     m | .   1                         - Pairs (lane, lane + step), modulo ROWS, are computed by
 *       | .       1                       `lane`: ROWS / 2 + 1 for each. They go to local memory.
 *  last | * * *     +                   - Each takes its row into registers; step k publishes
 *       +-------------                    column k, and all subtract it.
 * - A column z of the records: L^-1 z by steps that publish one number each; its last number is the
 *   residual.
 * - L goes to local memory; back substitution gives w, and b = K^-1 z~ - k w.
 * - Derivatives: each computes its pairs again, with the weight b_i w_j + b_j w_i.
 * - Information: each computes all pairs of its row, with the weight w_j; the vectors dK w and
 *   columns L^-1 z stand where L did, one number for each work-item.
 *
 * Order of summation: a work-item adds up its pairs and points, in their order; at the end of a
 * group work-items in order; the driver adds the groups. */
#if VECCHIA_WHAT == VECCHIA_INFORMATION
/* All of that for a point whose factor stands in `row`, `scale` the root of the pivot's inverse;
 * `memory` gets L, then the parameters' columns, those of the data, and raw. */
SCL_INLINE_BARRIER void vecchia_information(
    const vecchia_function *f, const int width, const int parameters, const int lane,
    const int here, const real *row, const real scale, const real root, const real noise,
    __global const real *data, __global const real *group, __local const real *present,
    __local real *published, __local real *by, __local real *memory, __local real *own) {
  const int count = 2 * f->terms + f->entries + 1;
  __local real *u = memory, *t = u + parameters * VECCHIA_ROWS;
  __local real *raw = t + width * VECCHIA_ROWS + lane;
  real w = lane == VECCHIA_LAST ? root : 0.0, unused = 0.0;
  vecchia_back(row, &w, &unused, lane, memory, published, by);
  barrier(CLK_LOCAL_MEM_FENCE);
  published[lane] = w;
  barrier(CLK_LOCAL_MEM_FENCE);
  vecchia_move(f, lane, here, count, present, published, raw);
  if (here) raw[(count - 1) * VECCHIA_ROWS] += 2.0 * noise * w;
  for (int r = 0; r < parameters; r++) {
    const real sum = vecchia_gather(group, count, r + 1.0, raw);
    u[r * VECCHIA_ROWS + lane] = scale * vecchia_forward(row, sum, lane, published);
  }
  for (int c = 0; c < width; c++) {
    t[c * VECCHIA_ROWS + lane] =
        scale * vecchia_forward(row, here ? data[c] : 0.0, lane, published);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  vecchia_inform(lane, VECCHIA_LAST, width, parameters, u + lane, VECCHIA_ROWS, t + lane,
                 t + VECCHIA_LAST, own);
}
#endif

/* The results named by VECCHIA_WHAT, of the points group, group + groups, ...: partial (results x
 * groups). */
__kernel __attribute__((reqd_work_group_size(VECCHIA_ROWS, 1, 1))) void
VECCHIA_NAME(__global const real *records, __global const real *neighbours,
             __global const real *plan, __global real *partial, const vecchia_task task,
             __local real *sums, __local real *x) {
  __local real covariances[VECCHIA_ROWS * VECCHIA_LD], columns[2][VECCHIA_ROWS];
  __local real published[VECCHIA_ROWS], by[VECCHIA_ROWS], present[VECCHIA_ROWS];
  const int lane = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
  const int m = task.m, width = task.columns;
  const vecchia_function f = vecchia_read(plan + task.plan_offset, x, &task);
  __global const real *combine = plan + task.combine_offset;
  __local real *own = sums + lane;
  real row[VECCHIA_ROWS];
  for (int q = 0; q < task.results; q++) own[q * VECCHIA_ROWS] = 0.0;
  for (int point = group; point < task.n; point += groups) {
    __global const int *near = (__global const int *)(neighbours + task.neighbours_offset +
                                                      (long)point * task.neighbours_ld);
    const int other = lane < m ? near[lane] : -1;
    const int here = lane == VECCHIA_LAST || other >= 0;
    __global const real *record = records + task.records_offset +
                                  (long)(other >= 0 ? other : point) * task.records_ld;
    const real noise = task.noise2 * (task.spread ? record[task.p + width] : 1.0);
    const real known = task.spread ? record[task.p + width + 1] : 0.0;
    real pivot = 1.0;
    for (int c = 0; c < task.p; c++) x[c * VECCHIA_ROWS + lane] = record[c];
    present[lane] = here ? 1.0 : 0.0;
    barrier(CLK_LOCAL_MEM_FENCE);
    vecchia_build(&f, lane, here, noise + known, present, covariances);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int fine = vecchia_factor(covariances, row, &pivot, lane, m, columns);
    if (!fine && own[0] == 0.0) own[0] = point + 1.0;
    if (lane == VECCHIA_LAST) by[0] = fine ? pivot : 1.0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const real last = by[0], root = sqrt(last);
    if (lane == 0) own[VECCHIA_ROWS] += 0.5 * log(last);
#if VECCHIA_WHAT == VECCHIA_SUMS
    for (int c = 0; c < width; c++) {
      const real residual = vecchia_forward(row, here ? record[task.p + c] : 0.0, lane, published);
      if (lane == VECCHIA_LAST) x[c] = residual * root; /* coordinates are no longer needed */
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int q = lane; q < task.results - 2; q += VECCHIA_ROWS) {
      int c = 0, left = q;
      for (; left >= width - c; c++) left -= width - c;
      sums[(q + 2) * VECCHIA_ROWS] += x[c] * x[c + left];
    }
#elif VECCHIA_WHAT == VECCHIA_INFORMATION
    vecchia_information(&f, width, task.parameters, lane, here, row, sqrt(pivot), root, noise,
                        record + task.p, combine, present, published, by, covariances,
                        own + 2 * VECCHIA_ROWS);
#else
    real y = 0.0, all = 0.0; /* y = L^-1 z~, all = the sum of squares */
    for (int q = 0; q < task.combined; q++) {
      real sum = 0.0;
      for (int c = 0; here && c < width; c++) sum += record[task.p + c] * combine[c + q * width];
      sum = vecchia_forward(row, sum, lane, published);
      const real residual = published[VECCHIA_LAST] * root;
      const real weighted = combine[width * task.combined + q] * residual;
      all += residual * weighted;
      y += weighted * sum;
    }
    if (lane == 0) own[2 * VECCHIA_ROWS] += all;
    /* b = L^-T (D^-1 y - k root e_last), w = root L^-T e_last: both from the last row up */
    real w = lane == VECCHIA_LAST ? 1.0 : 0.0, b = y * pivot;
    if (lane == VECCHIA_LAST) b -= 0.5 * (task.logs + all) * root;
    vecchia_back(row, &w, &b, lane, covariances, published, by);
    w *= root;
    barrier(CLK_LOCAL_MEM_FENCE);
    published[lane] = w;
    by[lane] = b;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (here) {
      own[(task.results - 1) * VECCHIA_ROWS] += 2.0 * noise * w * b;
      vecchia_differentiate(&f, lane, present, w, b, published, by, own + 3 * VECCHIA_ROWS);
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  vecchia_finish(sums, task.results, lane,
                 partial + task.partial_offset + (long)group * task.results);
}
