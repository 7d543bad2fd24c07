/* Shared by vecchia.cl and vecchia_grouped.cl: covariances of the rows of a block, their factor and
 * solves, derivatives. A work-item has a row, `lane`. Sums of a group stand in local memory, one
 * for each work-item: sums[item + q * ITEMS]. */
#ifndef SCL_KERNEL_VECCHIA_BLOCK_H
#define SCL_KERNEL_VECCHIA_BLOCK_H

#ifndef VECCHIA_ITEMS
#define VECCHIA_ITEMS VECCHIA_ROWS /* of a group */
#endif
#define VECCHIA_LAST (VECCHIA_ROWS - 1)
#define VECCHIA_LD (VECCHIA_ROWS + 1) /* odd: no bank conflicts by rows or by columns */

/* The covariance function, and the coordinates of the rows, x[row + column * ROWS]. A plain one has
 * one term of squares of up to VECCHIA_FEW columns, which stand in registers; the inverse
 * lengthscales of the others are 0. */
#define VECCHIA_FEW 3
typedef struct {
  __global const real *plan;
  __local const real *x;
  int terms, entries, products;
  int plain, type;
  real variance, extra;
  real inverse[VECCHIA_FEW];
  int at[VECCHIA_FEW];
} vecchia_function;

/* A plain function without its variance; parts: of each column. */
SCL_INLINE covariance_point vecchia_plain(const vecchia_function *f, const int i, const int j,
                                          real *parts) {
  real sum = 0.0;
  SCL_UNROLL
  for (int entry = 0; entry < VECCHIA_FEW; entry++) {
    const real scaled = (f->x[f->at[entry] + i] - f->x[f->at[entry] + j]) * f->inverse[entry];
    parts[entry] = scaled * scaled;
    sum += parts[entry];
  }
  return covariance_of(f->type, sum, f->extra);
}

/* Variance times f of term `term` for rows i and j. */
SCL_INLINE covariance_point vecchia_term(const vecchia_function *f, const int term, const int i,
                                         const int j) {
  const int type = TERM_TYPE(f->plan, term), first = TERM_FIRST(f->plan, term);
  const int last = first + TERM_ENTRIES(f->plan, term), metric = covariance_metric(type);
  const real extra = TERM_EXTRA(f->plan, term), variance = TERM_VARIANCE(f->plan, term);
  real sum = type == SCL_COVARIANCE_WHITE && i != j ? 1.0 : 0.0;
  for (int entry = first; entry < last; entry++) {
    const long at = ENTRY_COLUMN(f->plan, f->terms, entry) * VECCHIA_ROWS;
    sum += covariance_part(metric, f->x[at + i], f->x[at + j],
                           ENTRY_CENTER(f->plan, f->terms, entry),
                           ENTRY_INVERSE(f->plan, f->terms, entry), extra);
  }
  const covariance_point point = covariance_of(type, sum, extra);
  return covariance_result(variance * point.value, variance * point.slope, variance * point.bend);
}

/* k of rows i and j, without noise. */
SCL_INLINE real vecchia_value(const vecchia_function *f, const int i, const int j) {
  __global const real *next = f->plan + PRODUCTS_AT(f->terms, f->entries);
  real sum = 0.0, parts[VECCHIA_FEW];
  if (f->plain) return f->variance * vecchia_plain(f, i, j, parts).value;
  for (int product = 0; product < f->products; product++) {
    const int count = covariance_has(SCL_COVARIANCE_TYPES) ? (int)*next++ : 1;
    real value = 1.0;
    if (!covariance_has(SCL_COVARIANCE_TYPES)) {
      sum += vecchia_term(f, product, i, j).value;
      continue;
    }
    for (int factor = 0; factor < count; factor++, next++) {
      value *= vecchia_term(f, (int)*next, i, j).value;
    }
    sum += value;
  }
  return sum;
}

/* Adds weight times the derivatives of one term to sums[q * ITEMS]: q as in ops/covariance.h. */
SCL_INLINE void vecchia_add_term(const vecchia_function *f, const int term, const real weight,
                                 const int i, const int j, __local real *sums) {
  const int type = TERM_TYPE(f->plan, term), first = TERM_FIRST(f->plan, term);
  const int last = first + TERM_ENTRIES(f->plan, term), metric = covariance_metric(type);
  const real extra = TERM_EXTRA(f->plan, term);
  const covariance_point point = vecchia_term(f, term, i, j);
  const real slope = weight * point.slope;
  real by_extra = weight * point.bend;
  sums[term * VECCHIA_ITEMS] += 2.0 * weight * point.value;
  for (int entry = first; entry < last; entry++) {
    const long at = ENTRY_COLUMN(f->plan, f->terms, entry) * VECCHIA_ROWS;
    const real inverse = ENTRY_INVERSE(f->plan, f->terms, entry);
    const real part = covariance_part(metric, f->x[at + i], f->x[at + j],
                                      ENTRY_CENTER(f->plan, f->terms, entry), inverse, extra);
    sums[(f->terms + entry) * VECCHIA_ITEMS] += covariance_times(slope, part);
    if (metric != SCL_COVARIANCE_SINES) continue;
    by_extra -= covariance_times(
        0.5 * slope, covariance_part_extra(metric, f->x[at + i], f->x[at + j], inverse, extra));
  }
  sums[(f->terms + f->entries + term) * VECCHIA_ITEMS] += by_extra;
}

/* The same for all terms, of weight times k. */
SCL_INLINE void vecchia_add_pair(const vecchia_function *f, const real weight, const int i,
                                 const int j, __local real *sums) {
  __global const real *next = f->plan + PRODUCTS_AT(f->terms, f->entries);
  for (int product = 0; product < f->products; product++) {
    if (!covariance_has(SCL_COVARIANCE_TYPES)) {
      vecchia_add_term(f, product, weight, i, j, sums);
      continue;
    }
    const int count = (int)*next++;
    for (int factor = 0; factor < count; factor++) {
      real rest = weight;
      for (int other = 0; other < count; other++) {
        if (other != factor) rest *= vecchia_term(f, (int)next[other], i, j).value;
      }
      vecchia_add_term(f, (int)next[factor], rest, i, j, sums);
    }
    next += count;
  }
}

/* The same of a plain function: adds to sd, log lengthscales and extra in registers. */
SCL_INLINE void vecchia_add_plain(const vecchia_function *f, const real weight, const int i,
                                  const int j, real *total) {
  real parts[VECCHIA_FEW];
  const covariance_point point = vecchia_plain(f, i, j, parts);
  const real scaled = weight * f->variance, slope = scaled * point.slope;
  total[0] += 2.0 * scaled * point.value;
  SCL_UNROLL
  for (int entry = 0; entry < VECCHIA_FEW; entry++) {
    total[1 + entry] += covariance_times(slope, parts[entry]);
  }
  total[1 + VECCHIA_FEW] += scaled * point.bend;
}

/* Adds these derivatives to own. */
SCL_INLINE void vecchia_add_total(const vecchia_function *f, const real *total,
                                  __local real *own) {
  if (!f->plain) return;
  own[0] += total[0];
  SCL_UNROLL
  for (int q = 0; q < VECCHIA_FEW; q++) {
    if (q < f->entries) own[(1 + q) * VECCHIA_ITEMS] += total[1 + q];
  }
  own[(1 + f->entries) * VECCHIA_ITEMS] += total[1 + VECCHIA_FEW];
}

SCL_INLINE vecchia_function vecchia_read(__global const real *plan, __local const real *x,
                                         const vecchia_task *task) {
  vecchia_function f = {plan, x, task->terms, task->entries, task->products};
  f.type = TERM_TYPE(plan, 0);
  f.plain = task->terms == 1 && task->products == 1 && task->entries > 0 &&
            task->entries <= VECCHIA_FEW && (int)plan[PRODUCTS_AT(1, task->entries)] == 1 &&
            covariance_metric(f.type) == SCL_COVARIANCE_SQUARES;
  f.variance = TERM_VARIANCE(plan, 0);
  f.extra = TERM_EXTRA(plan, 0);
  SCL_UNROLL
  for (int entry = 0; entry < VECCHIA_FEW; entry++) {
    const int has = entry < task->entries;
    f.inverse[entry] = has ? ENTRY_INVERSE(plan, task->terms, entry) : 0.0;
    f.at[entry] = has ? (int)ENTRY_COLUMN(plan, task->terms, entry) * VECCHIA_ROWS : 0;
  }
  return f;
}

/* L^-1 y of the group, one number for each work-item; `row`: its row of L. */
SCL_INLINE_BARRIER real vecchia_forward(const real *row, real y, const int lane,
                                        __local real *published) {
  barrier(CLK_LOCAL_MEM_FENCE);
  SCL_UNROLL
  for (int k = 0; k < VECCHIA_ROWS; k++) {
    if (lane == k) published[k] = y;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane > k) y -= row[k] * published[k];
  }
  return y;
}

/* L and D of the covariances in k, in place of the row; gives whether all pivots are positive. */
SCL_INLINE_BARRIER int vecchia_factor(__local const real *covariances, real *row, real *pivots,
                                      const int lane, const int m,
                                      __local real columns[2][VECCHIA_ROWS]) {
  int fine = 1;
  SCL_UNROLL
  for (int k = 0; k < VECCHIA_ROWS; k++) {
    row[k] = k <= lane ? covariances[lane + k * VECCHIA_LD] : 0.0;
  }
  SCL_UNROLL
  for (int k = 0; k < VECCHIA_ROWS; k++) {
    __local real *column = columns[k & 1];
    column[lane] = row[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    const real pivot = column[k], least = covariances[k + k * VECCHIA_LD] * (m + 1) * 0x1p-52;
    const real inverse = 1.0 / pivot, ratio = row[k] * inverse;
    fine = fine && pivot > least;
    if (lane == k) *pivots = inverse;
    SCL_UNROLL
    for (int j = k + 1; j < VECCHIA_ROWS; j++) row[j] -= ratio * column[j];
    row[k] = ratio;
  }
  return fine;
}

/* w := L^-T w, and b likewise; L goes to local memory, as its columns are needed. */
SCL_INLINE_BARRIER void vecchia_back(const real *row, real *w, real *b, const int lane,
                                     __local real *factor, __local real *all_w,
                                     __local real *all_b) {
  barrier(CLK_LOCAL_MEM_FENCE);
  SCL_UNROLL
  for (int k = 0; k < VECCHIA_ROWS; k++) factor[lane + k * VECCHIA_LD] = row[k];
  for (int k = VECCHIA_LAST; k > 0; k--) {
    if (lane == k) {
      all_w[k] = *w;
      all_b[k] = *b;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < k) {
      const real entry = factor[k + lane * VECCHIA_LD];
      *w -= entry * all_w[k];
      *b -= entry * all_b[k];
    }
  }
}

/* K of a point, in local memory. */
SCL_INLINE void vecchia_build(const vecchia_function *f, const int lane, const int here,
                              const real noise, __local const real *present,
                              __local real *covariances) {
  covariances[lane + lane * VECCHIA_LD] = here ? vecchia_value(f, lane, lane) + noise : 1.0;
  for (int step = 1; step <= VECCHIA_ROWS / 2; step++) {
    const int j = (lane + step) % VECCHIA_ROWS;
    real value = 0.0;
    if (step == VECCHIA_ROWS / 2 && lane >= step) continue;
    if (here && present[j] != 0.0) value = vecchia_value(f, lane, j);
    covariances[max(lane, j) + min(lane, j) * VECCHIA_LD] = value;
  }
}

/* Adds the derivatives b' dK w to own; w and b: of this row, and in local memory of all. */
SCL_INLINE void vecchia_differentiate(const vecchia_function *f, const int lane,
                                      __local const real *present, const real w, const real b,
                                      __local const real *all_w, __local const real *all_b,
                                      __local real *own) {
  real total[VECCHIA_FEW + 2];
  SCL_UNROLL
  for (int q = 0; q < VECCHIA_FEW + 2; q++) total[q] = 0.0;
  for (int step = 0; step <= VECCHIA_ROWS / 2; step++) {
    const int j = (lane + step) % VECCHIA_ROWS;
    const real weight = step == 0 ? w * b : w * all_b[j] + b * all_w[j];
    if ((step == VECCHIA_ROWS / 2 && lane >= step) || present[j] == 0.0) continue;
    if (f->plain) {
      vecchia_add_plain(f, weight, lane, j, total);
    } else {
      vecchia_add_pair(f, weight, lane, j, own);
    }
  }
  vecchia_add_total(f, total, own);
}

/* partial[q] of this group = the work-items' sums[q * ITEMS + item]; the first is no sum. */
SCL_INLINE_BARRIER void vecchia_finish(__local const real *sums, const int results, const int lane,
                                       __global real *partial) {
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int q = lane; q < results; q += VECCHIA_ITEMS) {
    real sum = sums[q * VECCHIA_ITEMS];
    for (int i = 1; q > 0 && i < VECCHIA_ITEMS; i++) sum += sums[q * VECCHIA_ITEMS + i];
    partial[q] = sum;
  }
}

#if VECCHIA_WHAT == VECCHIA_INFORMATION
/* raw[q * ITEMS] = row `lane` of dK w by the logarithm q. */
SCL_INLINE void vecchia_move(const vecchia_function *f, const int lane, const int here,
                             const int count, __local const real *present, __local const real *w,
                             __local real *raw) {
  real total[VECCHIA_FEW + 2];
  SCL_UNROLL
  for (int q = 0; q < VECCHIA_FEW + 2; q++) total[q] = 0.0;
  for (int q = 0; q < count; q++) raw[q * VECCHIA_ITEMS] = 0.0;
  for (int step = 0; step < VECCHIA_ROWS; step++) {
    const int j = (lane + step) % VECCHIA_ROWS;
    if (!here || present[j] == 0.0) continue;
    if (f->plain) {
      vecchia_add_plain(f, w[j], lane, j, total);
    } else {
      vecchia_add_pair(f, w[j], lane, j, raw);
    }
  }
  if (!f->plain) return;
  raw[0] = total[0];
  SCL_UNROLL
  for (int q = 0; q < VECCHIA_FEW; q++) {
    if (q < f->entries) raw[(1 + q) * VECCHIA_ITEMS] = total[1 + q];
  }
  raw[(1 + f->entries) * VECCHIA_ITEMS] = total[1 + VECCHIA_FEW];
}

/* The sum of raw by those logarithms that belong to parameter r, from 1; group: see the driver. */
SCL_INLINE real vecchia_gather(__global const real *group, const int count, const real r,
                               __local const real *raw) {
  real sum = 0.0;
  for (int q = 0; q < count; q++) {
    if (group[q] == r) sum += raw[q * VECCHIA_ITEMS];
    if (group[q] == -r) sum -= raw[q * VECCHIA_ITEMS];
  }
  return sum;
}

/* Adds products of residuals and their derivatives, and the information, of the point in row `last`
 * to own; u and t: columns of this row, those of u `step` apart, and `ends` the residuals, in row
 * `last` of t. */
SCL_INLINE void vecchia_inform(const int lane, const int last, const int width,
                               const int parameters, __local const real *u, const int step,
                               __local const real *t,
                               __local const real *ends, __local real *own) {
  const real part = lane == last ? 0.5 : lane < last ? 1.0 : 0.0;
  for (int c = 0; c < width; c++) {
    for (int d = c; d < width; d++, own += VECCHIA_ITEMS) {
      if (lane == last) own[0] += t[c * VECCHIA_ROWS] * t[d * VECCHIA_ROWS];
    }
  }
  for (int r = 0; r < parameters; r++) {
    const real at = part * u[r * step];
    if (lane == last) own[0] -= at;
    own += VECCHIA_ITEMS;
    for (int c = 0; c < width; c++) {
      for (int d = c; d < width; d++, own += VECCHIA_ITEMS) {
        own[0] -= at * (t[c * VECCHIA_ROWS] * ends[d * VECCHIA_ROWS] +
                        t[d * VECCHIA_ROWS] * ends[c * VECCHIA_ROWS]);
      }
    }
  }
  for (int r = 0; r < parameters; r++) {
    const real at = part * u[r * step];
    for (int s = r; s < parameters; s++, own += VECCHIA_ITEMS) own[0] += at * u[s * step];
  }
}
#endif

#endif
