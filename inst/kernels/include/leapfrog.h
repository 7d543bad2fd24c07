/* Leapfrog steps between two evaluations of a log density, of chains whose points stay on the
 * device. There are n = vectors * d numbers, d of each chain: number i has position q, momentum p
 * half a step before it, step e, and gradient g:
 *
 *   p <- p + e L' g / 2, twice    q <- q + e L p    record <- densities, all g, all new q
 *
 * A chain may continue from a second start, in the other direction of time, at the point whose
 * number is its turn. From `q` on there are, n numbers each: q, p, e; q, p and e of the second
 * start; then the chains' turns; then m, a and b of each parameter's prior, whose derivative
 * (m - q) / (a + b (q - m)^2) is added to the gradient: b is 0 of a normal one, a infinite of a
 * flat one. `result` has the densities, and behind them the gradients, without priors.
 *
 * L is the identity, or what metrics that are not diagonal leave to do (the step e of a diagonal
 * one has its scale). Then each chain has a block behind the priors, for up to `directions` columns
 * of d numbers, whose rows, as the sums over them, are in the order of the chain's parameters:
 *
 *   columns r, 1 if L is dense, place of alpha | D, d | weights w, directions | A, d x directions
 *
 *   low rank: L = D (I + A w A')       dense: L in the lower triangle of A, L' in the upper one
 *
 * Behind the blocks is room for n numbers y, d for each chain in the order of the metric's rows,
 * and t, `directions` for each:
 *
 *   y <- D g | t <- w A' y | y <- p <- p + e (y + A t) / 2, twice | t <- w A' y | q <- q + e L p
 *
 * with barriers between, and t = y where L is dense.
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

#ifndef LEAPFROG_SPACE /* where all numbers are */
#define LEAPFROG_SPACE __global
#define LEAPFROG_FENCE CLK_GLOBAL_MEM_FENCE
#endif

/* Steps to the point number `point`, after which there are `directions` columns of metrics, 0: L of
 * all chains is the identity. */
typedef struct {
  int vectors, count, point, directions;
  volatile LEAPFROG_SPACE const real *result;
  LEAPFROG_SPACE real *q, *record;
} leapfrog_walk;

/* Parameter k of a chain: alphas come first, one for each chain, then the `count` coefficients of
 * each. */
SCL_INLINE int leapfrog_number(const leapfrog_walk *w, const int vector, const int k) {
  return k == 0 ? vector : w->vectors + vector * w->count + k - 1;
}

/* The gradient with the prior's. */
SCL_INLINE real leapfrog_gradient(const leapfrog_walk *w, const int vector, const int k) {
  const int d = 1 + w->count, n = w->vectors * d, i = leapfrog_number(w, vector, k);
  LEAPFROG_SPACE const real *prior = w->q + 6 * n + w->vectors + k;
  const real off = w->q[i] - prior[0];
  const real g = leapfrog_plus(w->result[w->vectors + i],
                               -off / (prior[d] + prior[2 * d] * off * off));
  w->record[w->vectors + i] = g;
  return g;
}

/* The momentum after two half steps along g. */
SCL_INLINE real leapfrog_kick(const leapfrog_walk *w, const int i, const real g) {
  const int n = w->vectors * (1 + w->count);
  const real change = leapfrog_times(leapfrog_times(0.5, w->q[2 * n + i]), g);
  w->q[n + i] = leapfrog_plus(leapfrog_plus(w->q[n + i], change), change);
  return w->q[n + i];
}

/* The next point, along p. */
SCL_INLINE void leapfrog_move(const leapfrog_walk *w, const int vector, const int k, const real p) {
  const int n = w->vectors * (1 + w->count), i = leapfrog_number(w, vector, k);
  LEAPFROG_SPACE real *q = w->q + i;
  real next = leapfrog_plus(q[0], leapfrog_times(q[2 * n], p));
  if (w->q[6 * n + vector] == w->point) {
    next = q[3 * n];
    q[n] = q[4 * n];
    q[2 * n] = q[5 * n];
  }
  if (k == 0) w->record[vector] = w->result[vector];
  w->record[w->vectors + n + i] = next;
  q[0] = next;
}

/* ---- metrics that are not diagonal ----------------------------------------------------------- */

enum { LEAPFROG_COLUMNS, LEAPFROG_DENSE, LEAPFROG_ALPHA, LEAPFROG_HEAD };

typedef struct {
  LEAPFROG_SPACE const real *scale, *weight, *column;
  LEAPFROG_SPACE real *y, *t;
  int columns, dense, alpha;
} leapfrog_metric;

SCL_INLINE leapfrog_metric leapfrog_metric_of(const leapfrog_walk *w, const int vector) {
  const int d = 1 + w->count, n = w->vectors * d;
  const int size = LEAPFROG_HEAD + d + w->directions * (1 + d);
  LEAPFROG_SPACE real *blocks = w->q + 6 * n + w->vectors + 3 * d, *y = blocks + w->vectors * size;
  LEAPFROG_SPACE const real *block = blocks + vector * size;
  leapfrog_metric m = {.y = y + vector * d};
  m.t = y + n + vector * w->directions;
  m.columns = (int)block[LEAPFROG_COLUMNS];
  m.dense = block[LEAPFROG_DENSE] != 0.0;
  m.alpha = (int)block[LEAPFROG_ALPHA];
  m.scale = block + LEAPFROG_HEAD;
  m.weight = m.scale + d;
  m.column = m.weight + w->directions;
  return m;
}

/* Row j of the metric is for this parameter. */
SCL_INLINE int leapfrog_parameter(const leapfrog_metric *m, const int j) {
  return j == m->alpha ? 0 : j + (j < m->alpha);
}

/* t <- w A' y, of one direction; or y */
SCL_INLINE void leapfrog_share(const leapfrog_metric *m, const int d, const int r) {
  if (m->dense) {
    m->t[r] = m->y[r];
    return;
  }
  real sum = 0.0;
  _Pragma("unroll 4") for (int j = 0; j < d; j++)
    sum = leapfrog_plus(sum, leapfrog_times(m->column[r * d + j], m->y[j]));
  m->t[r] = leapfrog_times(m->weight[r], sum);
}

/* y + A t; or row j of L' t, or of L t. */
SCL_INLINE real leapfrog_product(const leapfrog_metric *m, const int d, const int j,
                                 const int transposed) {
  const int first = m->dense && transposed ? j : 0;
  const int end = m->dense && !transposed ? j + 1 : m->columns;
  real sum = m->dense ? 0.0 : m->y[j];
  _Pragma("unroll 4") for (int r = first; r < end; r++)
    sum = leapfrog_plus(sum, leapfrog_times(m->column[r * d + j], m->t[r]));
  return sum;
}

/* ---- by a group ------------------------------------------------------------------------------ */

/* The steps of chain `vector` by `items` work-items, of which this is number `item`; none if there
 * is no such chain. No barrier is within a condition, where POCL 3.1 would execute it wrongly. */
SCL_INLINE_BARRIER void leapfrog(const leapfrog_walk *w, const int vector, const int item,
                                 const int items) {
  const int d = vector < w->vectors ? 1 + w->count : 0, rows = w->directions > 0 ? d : 0;
  leapfrog_metric m = {.columns = 0};
  if (rows > 0) m = leapfrog_metric_of(w, vector);
  for (int k = rows + item; k < d; k += items) { /* a diagonal metric */
    const real g = leapfrog_gradient(w, vector, k);
    leapfrog_move(w, vector, k, leapfrog_kick(w, leapfrog_number(w, vector, k), g));
  }
  for (int j = item; j < rows; j += items) {
    const real g = leapfrog_gradient(w, vector, leapfrog_parameter(&m, j));
    m.y[j] = leapfrog_times(m.scale[j], g);
  }
  barrier(LEAPFROG_FENCE);
  for (int r = item; r < m.columns; r += items) leapfrog_share(&m, d, r);
  barrier(LEAPFROG_FENCE);
  for (int j = item; j < rows; j += items) {
    const int i = leapfrog_number(w, vector, leapfrog_parameter(&m, j));
    m.y[j] = leapfrog_kick(w, i, leapfrog_product(&m, d, j, 1));
  }
  barrier(LEAPFROG_FENCE);
  for (int r = item; r < m.columns; r += items) leapfrog_share(&m, d, r);
  barrier(LEAPFROG_FENCE);
  for (int j = item; j < rows; j += items) {
    const real p = leapfrog_times(m.scale[j], leapfrog_product(&m, d, j, 0));
    leapfrog_move(w, vector, leapfrog_parameter(&m, j), p);
  }
}
