/* Grouped likelihoods of Vecchia's approximation (engine/pass/vecchia.h). A group has one block at
 * a time: row `lane` of its covariances is that of its row `lane`, and rows beyond the block's size
 * are unrelated to all others. One factor K = L D L' serves all members. With G = L D^1/2:
 *
 * - z: G^-1 z, whose elements in rows of members are their residuals.
 * - Derivatives: two members i at a time, w = G^-T e_i and b = G^-T (y - k e_i), where y ends in
 *   row i. The weights b w' + w b' of all members are summed above the diagonal, where L is not:
 *
 *       0          last     Pair (lane, lane + step), modulo ROWS, belongs to `lane`, as in
 *     0 s s s s s           vecchia.cl.
 *       L s s s s
 *       L L s s s           Each pair's covariance is differentiated once, at the end.
 *       L L L s s
 *  last L L L L s
 *
 * - Information: dK w, G^-1 dK w and their products, for each member.
 *
 * Order of summation: as in vecchia.cl. */
#define VECCHIA_MEMBER 2.0 /* in `present`: 0 no row, 1 a neighbour */

/* The first member from row i on; ROWS if there is none. */
SCL_INLINE int vecchia_next_member(__local const real *present, int i) {
  while (i < VECCHIA_ROWS && present[i] != VECCHIA_MEMBER) i++;
  return i;
}

/* x := L^-T x of four columns, zero after row `last`, which are also left in local memory; L goes
 * to local memory, below the diagonal. */
SCL_INLINE_BARRIER void vecchia_back_four(const real *row, real *x, const int lane, const int last,
                                          __local real *factor, __local real *all[4]) {
  barrier(CLK_LOCAL_MEM_FENCE);
  SCL_UNROLL
  for (int k = 0; k < VECCHIA_ROWS; k++) {
    if (k < lane) factor[lane + k * VECCHIA_LD] = row[k];
  }
  SCL_UNROLL
  for (int c = 0; c < 4; c++) all[c][lane] = lane > last ? 0.0 : x[c];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = last; k > 0; k--) {
    if (lane < k) {
      const real entry = factor[k + lane * VECCHIA_LD];
      SCL_UNROLL
      for (int c = 0; c < 4; c++) x[c] -= entry * all[c][k];
    }
    if (lane == k - 1) {
      SCL_UNROLL
      for (int c = 0; c < 4; c++) all[c][lane] = x[c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

#if VECCHIA_WHAT == VECCHIA_DERIVATIVES
/* b and w of member i before the solve, in row `lane`; e: G^-1 of the columns; root: of 1 / D. */
SCL_INLINE void vecchia_start(const int lane, const int i, const real root, const real logs,
                              const int combined, __global const real *factors,
                              __local const real *e, real *w, real *b) {
  real y = 0.0, all = 0.0;
  *w = *b = 0.0;
  if (i == VECCHIA_ROWS) return;
  for (int q = 0; q < combined; q++) {
    const real weighted = factors[q] * e[q * VECCHIA_ROWS + i];
    all += weighted * e[q * VECCHIA_ROWS + i];
    y += weighted * e[q * VECCHIA_ROWS + lane];
  }
  if (lane == i) {
    *w = root;
    y -= 0.5 * (logs + all);
  }
  if (lane <= i) *b = root * y;
}

/* Adds to the sums of weights of the pairs of this work-item, or with `first` sets them. */
SCL_INLINE void vecchia_weigh(const int lane, const int first, __local const real *present,
                              __local real *all[4], __local real *sums) {
  const real w = all[0][lane], b = all[1][lane], v = all[2][lane], a = all[3][lane];
  for (int step = 0; step <= VECCHIA_ROWS / 2; step++) {
    const int j = (lane + step) % VECCHIA_ROWS;
    const long at = min(lane, j) + max(lane, j) * VECCHIA_LD;
    if ((step == VECCHIA_ROWS / 2 && lane >= step) || present[j] == 0.0) continue;
    real weight = first ? 0.0 : sums[at];
    weight += step == 0 ? w * b + v * a
                        : w * all[1][j] + b * all[0][j] + v * all[3][j] + a * all[2][j];
    sums[at] = weight;
  }
}

/* Adds the sums of weights by dK to own. */
SCL_INLINE void vecchia_apply(const vecchia_function *f, const int lane,
                              __local const real *present, __local const real *sums,
                              __local real *own) {
  real total[VECCHIA_FEW + 2];
  SCL_UNROLL
  for (int q = 0; q < VECCHIA_FEW + 2; q++) total[q] = 0.0;
  for (int step = 0; step <= VECCHIA_ROWS / 2; step++) {
    const int j = (lane + step) % VECCHIA_ROWS;
    if ((step == VECCHIA_ROWS / 2 && lane >= step) || present[j] == 0.0) continue;
    const real weight = sums[min(lane, j) + max(lane, j) * VECCHIA_LD];
    if (f->plain) {
      vecchia_add_plain(f, weight, lane, j, total);
    } else {
      vecchia_add_pair(f, weight, lane, j, own);
    }
  }
  vecchia_add_total(f, total, own);
}

/* Derivatives of a block to own, and the sums of weights to `weights`; e: room for G^-1 of columns.
 */
SCL_INLINE_BARRIER void vecchia_differentiate_members(
    const vecchia_function *f, const vecchia_task *task, const int lane, const real kind,
    const real *row, const real root, __global const real *data, __global const real *combine,
    __local const real *present, __local real *all[4], __local real *weights, __local real *e,
    __local real *own) {
  const int width = task->columns, combined = task->combined;
  __global const real *factors = combine + width * combined;
  for (int q = 0; q < combined; q++) {
    real sum = 0.0;
    for (int c = 0; kind != 0.0 && c < width; c++) sum += data[c] * combine[c + q * width];
    sum = root * vecchia_forward(row, sum, lane, all[2]);
    e[q * VECCHIA_ROWS + lane] = sum;
    if (kind == VECCHIA_MEMBER) own[0] += factors[q] * sum * sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int first = 1;
  for (int i = vecchia_next_member(present, 0); i < VECCHIA_ROWS;) {
    const int next = vecchia_next_member(present, i + 1);
    real x[4];
    vecchia_start(lane, i, root, task->logs, combined, factors, e, &x[0], &x[1]);
    vecchia_start(lane, next, root, task->logs, combined, factors, e, &x[2], &x[3]);
    vecchia_back_four(row, x, lane, next < VECCHIA_ROWS ? next : i, weights, all);
    if (kind != 0.0) vecchia_weigh(lane, first, present, all, weights);
    first = 0;
    i = vecchia_next_member(present, next + 1);
  }
  if (kind != 0.0) vecchia_apply(f, lane, present, weights, own + VECCHIA_ROWS);
}
#endif

#if VECCHIA_WHAT == VECCHIA_INFORMATION
/* x := L^-1 x of four columns. */
SCL_INLINE_BARRIER void vecchia_forward_four(const real *row, real *x, const int lane,
                                             __local real *all[4]) {
  barrier(CLK_LOCAL_MEM_FENCE);
  SCL_UNROLL
  for (int k = 0; k < VECCHIA_ROWS; k++) {
    if (lane == k) {
      SCL_UNROLL
      for (int c = 0; c < 4; c++) all[c][k] = x[c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane > k) {
      SCL_UNROLL
      for (int c = 0; c < 4; c++) x[c] -= row[k] * all[c][k];
    }
  }
}

/* raw[q * ROWS] = row `lane` of dK w by the logarithm q, for `used` vectors w, one or two, that are
 * zero after row `last`. */
SCL_INLINE void vecchia_move_members(const vecchia_function *f, const int lane, const int last,
                                     const int count, const int used, __local real *all[4],
                                     __local real *raw) {
  real one[VECCHIA_FEW + 2], two[VECCHIA_FEW + 2];
  SCL_UNROLL
  for (int q = 0; q < VECCHIA_FEW + 2; q++) one[q] = two[q] = 0.0;
  for (int q = 0; q < used * count; q++) raw[q * VECCHIA_ROWS] = 0.0;
  for (int step = 0; lane <= last && step < VECCHIA_ROWS; step++) {
    const int j = (lane + step) % VECCHIA_ROWS;
    if (j > last) continue;
    if (f->plain) {
      vecchia_add_plain(f, all[0][j], lane, j, one);
      vecchia_add_plain(f, all[1][j], lane, j, two);
    } else {
      vecchia_add_pair(f, all[0][j], lane, j, raw);
      if (used == 2) vecchia_add_pair(f, all[1][j], lane, j, raw + count * VECCHIA_ROWS);
    }
  }
  vecchia_add_total(f, one, raw);
  if (used == 2) vecchia_add_total(f, two, raw + count * VECCHIA_ROWS);
}

/* Products, their derivatives and the information of a block to own, two members at a time if the
 * local memory has room; t: room for G^-1 of columns, `memory` for L, then for the parameters'
 * columns and raw. */
SCL_INLINE_BARRIER void vecchia_inform_members(
    const vecchia_function *f, const vecchia_task *task, const int lane, const int here,
    const real *row, const real root, const real noise, __global const real *data,
    __global const real *group, __local const real *present, __local real *all[4],
    __local real *memory, __local real *t, __local real *own) {
  const int count = 2 * task->terms + task->entries + 1, width = task->columns;
  const int parameters = task->parameters, room = 2 * (parameters + count) <= VECCHIA_LD;
  __local real *u = memory + lane;
  for (int c = 0; c < width; c++) {
    t[c * VECCHIA_ROWS + lane] = root * vecchia_forward(row, here ? data[c] : 0.0, lane, all[2]);
  }
  for (int i = vecchia_next_member(present, 0); i < VECCHIA_ROWS;) {
    const int next = room ? vecchia_next_member(present, i + 1) : VECCHIA_ROWS;
    const int used = next < VECCHIA_ROWS ? 2 : 1, last = used == 2 ? next : i;
    const int columns = used * parameters;
    __local real *raw = u + columns * VECCHIA_ROWS;
    real x[4] = {lane == i ? root : 0.0, lane == next ? root : 0.0, 0.0, 0.0};
    vecchia_back_four(row, x, lane, last, memory, all);
    vecchia_move_members(f, lane, last, count, used, all, raw);
    if (here) raw[(count - 1) * VECCHIA_ROWS] += 2.0 * noise * x[0];
    if (here && used == 2) raw[(2 * count - 1) * VECCHIA_ROWS] += 2.0 * noise * x[1];
    for (int first = 0; first < columns; first += 4) {
      SCL_UNROLL
      for (int c = 0; c < 4; c++) {
        const int r = first + c, second = r >= parameters;
        x[c] = r >= columns ? 0.0
                            : vecchia_gather(group, count, r - second * parameters + 1.0,
                                             raw + second * count * VECCHIA_ROWS);
      }
      vecchia_forward_four(row, x, lane, all);
      SCL_UNROLL
      for (int c = 0; c < 4; c++) {
        if (first + c < columns) u[(first + c) * VECCHIA_ROWS] = root * x[c];
      }
    }
    vecchia_inform(lane, i, width, parameters, u, t + lane, t + i, own);
    if (used == 2) {
      vecchia_inform(lane, next, width, parameters, u + parameters * VECCHIA_ROWS, t + lane,
                     t + next, own);
    }
    i = vecchia_next_member(present, last + 1);
  }
}
#endif

/* What VECCHIA_WHAT says, of the blocks from task.first + group on: partial (results x groups). */
__kernel __attribute__((reqd_work_group_size(VECCHIA_ROWS, 1, 1))) void
VECCHIA_NAME(__global const real *records, __global const real *neighbours,
             __global const real *plan, __global real *partial, const vecchia_task task,
             __local real *sums, __local real *x) {
  __local real covariances[VECCHIA_ROWS * VECCHIA_LD], columns[2][VECCHIA_ROWS];
  __local real published[VECCHIA_ROWS], by[VECCHIA_ROWS], present[VECCHIA_ROWS];
  __local real *all[4] = {columns[0], columns[1], published, by};
  const int lane = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
  const int width = task.columns;
  const vecchia_function f = vecchia_read(plan + task.plan_offset, x, &task);
  __global const real *combine = plan + task.combine_offset;
  __local real *own = sums + lane;
  real row[VECCHIA_ROWS];
  for (int q = 0; q < task.results; q++) own[q * VECCHIA_ROWS] = 0.0;
  for (int block = task.first + group; block < task.n; block += groups) {
    __global const int *rows = (__global const int *)(neighbours + task.neighbours_offset +
                                                      (long)block * task.neighbours_ld);
    const int code = lane <= task.m ? rows[lane] : -1, here = code >= 0;
    const int member = here && (code & 1) != 0;
    __global const real *record = records + task.records_offset +
                                  (long)((here ? code : rows[0]) >> 1) * task.records_ld;
    const real noise = task.noise2 * (task.spread ? record[task.p + width] : 1.0);
    const real known = task.spread ? record[task.p + width + 1] : 0.0;
    real pivot = 1.0;
    for (int c = 0; c < task.p; c++) x[c * VECCHIA_ROWS + lane] = record[c];
    present[lane] = member ? VECCHIA_MEMBER : here ? 1.0 : 0.0;
    barrier(CLK_LOCAL_MEM_FENCE);
    vecchia_build(&f, lane, here, noise + known, present, covariances);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int fine = vecchia_factor(covariances, row, &pivot, lane, task.m, columns);
    if (!fine && own[0] == 0.0) own[0] = block + 1.0;
    if (!fine) pivot = 1.0;
    const real root = sqrt(pivot);
    if (member) own[VECCHIA_ROWS] += 0.5 * log(pivot);
#if VECCHIA_WHAT == VECCHIA_SUMS
    for (int c = 0; c < width; c++) { /* coordinates are no longer needed */
      x[c * VECCHIA_ROWS + lane] =
          root * vecchia_forward(row, here ? record[task.p + c] : 0.0, lane, published);
    }
    __local real *to = own + 2 * VECCHIA_ROWS;
    for (int c = 0; c < width; c++) {
      for (int d = c; d < width; d++, to += VECCHIA_ROWS) {
        if (member) to[0] += x[c * VECCHIA_ROWS + lane] * x[d * VECCHIA_ROWS + lane];
      }
    }
#elif VECCHIA_WHAT == VECCHIA_INFORMATION
    vecchia_inform_members(&f, &task, lane, here, row, root, noise, record + task.p, combine,
                           present, all, covariances, x + task.p * VECCHIA_ROWS,
                           own + 2 * VECCHIA_ROWS);
#else
    vecchia_differentiate_members(&f, &task, lane, present[lane], row, root, record + task.p,
                                  combine, present, all, covariances, x + task.p * VECCHIA_ROWS,
                                  own + 2 * VECCHIA_ROWS);
    if (here) {
      own[(task.results - 1) * VECCHIA_ROWS] += 2.0 * noise * covariances[lane + lane * VECCHIA_LD];
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  vecchia_finish(sums, task.results, lane,
                 partial + task.partial_offset + (long)group * task.results);
}
