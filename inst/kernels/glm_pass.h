/* Of the pass of a GLM likelihood (glm_pass.cl): its shape, and the sums over work-items and over
 * groups, all of them in a fixed order. */
#ifndef GLM_PASS /* name of the kernel */
#define GLM_PASS glm_pass
#endif
#ifndef GLM_FAMILY
#define GLM_FAMILY BERNOULLI_LOGIT
#endif
#ifndef GLM_PREDICTORS /* of a row, at most: parameter vectors, or classes */
#define GLM_PREDICTORS 1
#endif
#ifndef GLM_ROW_LANES /* work-items side by side along the rows */
#define GLM_ROW_LANES 16
#endif
#ifndef GLM_LANES /* and along the columns */
#define GLM_LANES 8
#endif
#ifndef GLM_COLUMNS /* columns of a work-item */
#define GLM_COLUMNS 13
#endif
#ifndef GLM_WIDTH /* rows of a work-item, 1 or 2 */
#define GLM_WIDTH 2
#endif
#ifndef GLM_FINISH
#define GLM_FINISH 0
#endif

#define GLM_ITEMS (GLM_ROW_LANES * GLM_LANES)
#define GLM_ROWS (GLM_WIDTH * GLM_ROW_LANES)
#define GLM_CELLS (GLM_PREDICTORS * GLM_ROWS) /* predictors of a tile */
#define GLM_SLOTS (GLM_LANES * GLM_COLUMNS)
/* Work-items beyond those that make the derivatives by the predictors make the values. */
#ifndef GLM_SPARE
#define GLM_SPARE (GLM_LANES > 1 && GLM_ITEMS >= 2 * GLM_CELLS)
#endif
#define GLM_ALONE (GLM_LANES == 1) /* a work-item has its row to itself: nothing to exchange */
#if GLM_LANES == 1 && GLM_WIDTH != 1
#error "a work-item alone has one row"
#endif
#define GLM_LINKS (GLM_ALONE ? GLM_PREDICTORS : 1) /* predictors that a work-item turns to terms */
/* The lanes' sums are added in two steps when there are many: first so many at a time. */
#define GLM_STEP (GLM_LANES > 16 ? 8 : 1)
#define GLM_STEPS (GLM_LANES / GLM_STEP)
/* Where the sums over the row lanes are made: so many columns at a time, in two steps. */
#define GLM_MIN(a, b) ((a) < (b) ? (a) : (b))
#define GLM_MAX(a, b) ((a) > (b) ? (a) : (b))
#define GLM_TOTALS 3 /* value, d_alpha, d_own */
#define GLM_SUMS (GLM_COLUMNS + (GLM_ALONE ? GLM_TOTALS : 0))
#define GLM_BATCH GLM_MAX(1, GLM_MIN(GLM_SUMS, (GLM_FINISH ? 3400 : 2048) / GLM_ITEMS))
#define GLM_PARTS (GLM_ROW_LANES >= 64 ? GLM_ROW_LANES / 16 : GLM_ROW_LANES >= 16 ? 2 : 1)
#define GLM_POOL_TILE (GLM_ALONE ? 1 : (GLM_LANES + (GLM_STEP > 1 ? GLM_STEPS : 0)) * GLM_CELLS)
#define GLM_POOL_SUM (GLM_BATCH * GLM_LANES * (GLM_ROW_LANES + 1 + GLM_PARTS))
#define GLM_POOL GLM_MAX(GLM_POOL_TILE, GLM_MAX(GLM_POOL_SUM, 2 * GLM_ITEMS))

#define GLM_JOIN_(a, b) a##b
#define GLM_JOIN(a, b) GLM_JOIN_(a, b)
#define GLM_ID GLM_JOIN(SCL_GLM_, GLM_FAMILY)

#if GLM_WIDTH == 2
typedef double2 glm_pair;
#define GLM_DOT(a, b, sum) fma((a).y, (b).y, fma((a).x, (b).x, sum))
#define GLM_FIRST(a) (a).x
#else
typedef double glm_pair;
#define GLM_FIRST(a) (a)
#define GLM_DOT(a, b, sum) fma(a, b, sum)
#endif

#ifdef __NV_CL_C_VERSION
#define GLM_FENCE() asm volatile("membar.gl;" ::: "memory")
#else
#define GLM_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

enum {
  GLM_COUPLED = GLM_FAMILY_COUPLED(GLM_ID),
  GLM_HAS_DATUM = GLM_FAMILY_DATUM(GLM_ID),
  GLM_OWN = GLM_FAMILY_OWN(GLM_ID),
  /* One logarithm for many terms takes registers that other layouts do not have. */
  GLM_PRODUCT = (GLM_COUPLED || GLM_FAMILY_ODDS(GLM_ID)) && (GLM_PREDICTORS > 1 || GLM_LANES > 16)
};

/* What all work-items know: arrays, sizes and where row-wise results go (glm_pass.cl). */
typedef struct {
  __global const double *y, *owns, *alpha, *row_own;
  __global double *work;
  __local const double *intercept; /* alpha, unless it is by row */
  __local double *by_cut;
  int y_ld;
  uint n;
  int p, predictors, own_count, own_sums, flags;
  long residuals, slopes;
} glm_task;

/* A work-item's place: its lanes; the cells of the tile whose derivative, and whose value, it makes
 * (-1: none); and their predictor and row. */
typedef struct {
  int item, row_lane, lane, slope, value, cell, v, row;
} glm_seat;

/* Sums of a work-item over the terms that it makes. */
typedef struct {
  double value, d_alpha, d_own;
  glm_odds_product odds;
} glm_totals;

/* An observation with its predictor; of a coupled family `eta` is that of its class, less the
 * largest, and `rest` as in glm_shares. */
#define GLM_NO_ROW 0xffffffffu
typedef struct {
  uint row;
  double y, datum, eta, rest;
} glm_seen;

SCL_INLINE glm_seat glm_take_seat(int item) {
  glm_seat at;
  at.item = item;
  at.row_lane = item % GLM_ROW_LANES;
  at.lane = item / GLM_ROW_LANES;
  at.slope = item < GLM_CELLS ? item : -1;
  at.value = at.slope;
  if (GLM_COUPLED) {
    at.value = item < GLM_ROWS ? item : -1;
  } else if (GLM_SPARE) {
    at.value = item >= GLM_CELLS && item < 2 * GLM_CELLS ? item - GLM_CELLS : -1;
  }
  at.cell = max(at.slope, at.value);
  at.v = GLM_ALONE ? 0 : at.cell / GLM_ROWS;
  at.row = item % GLM_ROWS;
  return at;
}

SCL_INLINE glm_totals glm_no_totals(void) {
  glm_totals total = {0.0, 0.0, 0.0, {1.0, 0.0}};
  return total;
}

/* The data of a row; beyond the last row that of the last. */
SCL_INLINE glm_seen glm_observe(const glm_task *t, uint row) {
  const uint there = min(row, t->n - 1);
  glm_seen seen = {row, t->y[there], 0.0, 0.0, 0.0};
  if (GLM_HAS_DATUM) seen.datum = t->y[t->y_ld + there];
  return seen;
}

SCL_INLINE double glm_intercept(const glm_task *t, int v, uint row) {
  return t->flags & GLM_ROW_ALPHA ? t->alpha[(long)v * t->n + row] : t->intercept[v];
}

/* The classes of an observation of a coupled family, in registers: exponentials of the predictors
 * less the largest; the class's own predictor less the largest; the sums of the exponentials
 * without the largest, and without the class's own; 1 / (1 + rest). */
typedef struct {
  double e[GLM_PREDICTORS];
  double mine, rest, others, inverse;
} glm_shares;

SCL_INLINE glm_shares glm_share(double y, const double *eta, int classes) {
  const int own = (int)y - 1;
  glm_shares s;
  double most = eta[0], check = 0.0;
  int top = 0;
  s.mine = eta[0];
  SCL_UNROLL for (int c = 0; c < GLM_PREDICTORS; c++) {
    if (c >= classes) continue;
    if (eta[c] > most) top = c;
    most = fmax(most, eta[c]);
    if (c == own) s.mine = eta[c];
    check += GLM_NAN_IF_INFINITE(eta[c]);
  }
  s.mine += check - most;
  s.rest = s.others = 0.0;
  SCL_UNROLL for (int c = 0; c < GLM_PREDICTORS; c++) {
    s.e[c] = c < classes ? exp(eta[c] - most) : 0.0;
    if (c != top) s.rest += s.e[c];
    if (c != own) s.others += s.e[c];
  }
  s.inverse = 1.0 / (1.0 + s.rest);
  return s;
}

/* The derivative of the log density by predictor v. */
SCL_INLINE double glm_share_slope(const glm_shares *s, double y, int v) {
  double e = 0.0;
  SCL_UNROLL for (int c = 0; c < GLM_PREDICTORS; c++) {
    if (c == v) e = s->e[c];
  }
  return ((int)y - 1 == v ? s->others : -e) * s->inverse;
}

/* Rows of the results of one predictor; -1: none. */
typedef struct {
  int value, own, alpha, beta;
} glm_rows;

/* The lanes' parts of the tile's predictors, or GLM_STEPS sums of GLM_STEP of them each: part l of
 * cell c at l * GLM_CELLS + c of what is given. All work-items of the group, after a barrier. */
SCL_INLINE_BARRIER __local const double *glm_fold_lanes(__local double *pool, int item) {
#if GLM_STEP > 1
  __local double *folded = pool + GLM_LANES * GLM_CELLS;
  for (int i = item; i < GLM_STEPS * GLM_CELLS; i += GLM_ITEMS) {
    const int first = i / GLM_CELLS * GLM_STEP * GLM_CELLS + i % GLM_CELLS;
    double part = 0.0;
    SCL_UNROLL for (int l = 0; l < GLM_STEP; l++) part += pool[first + l * GLM_CELLS];
    folded[i] = part;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return folded;
#else
  return pool;
#endif
}

SCL_INLINE double glm_sum_lanes(__local const double *parts, int cell) {
  double eta = 0.0;
  SCL_UNROLL for (int l = 0; l < GLM_STEPS; l++) eta += parts[l * GLM_CELLS + cell];
  return eta;
}

/* The sums over the row lanes of a predictor's columns, and of the totals where these stand behind
 * them. */
SCL_INLINE_BARRIER void glm_sum_rows(__local double *pool, int item, const double *sum, int p,
                             glm_rows rows, __global double *partial, long groups) {
  const int row_lane = item % GLM_ROW_LANES, lane = item / GLM_ROW_LANES;
  __local double *second = pool + GLM_BATCH * GLM_LANES * (GLM_ROW_LANES + 1);
  SCL_UNROLL for (int first = 0; first < GLM_SUMS; first += GLM_BATCH) {
    SCL_UNROLL for (int k = 0; k < GLM_BATCH; k++) {
      if (first + k < GLM_SUMS)
        pool[(k * GLM_LANES + lane) * (GLM_ROW_LANES + 1) + row_lane] = sum[first + k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < GLM_BATCH * GLM_LANES * GLM_PARTS; i += GLM_ITEMS) {
      __local const double *from = pool + i / GLM_PARTS * (GLM_ROW_LANES + 1) + i % GLM_PARTS;
      double part = 0.0;
      if (first + i / (GLM_PARTS * GLM_LANES) < GLM_SUMS) {
        SCL_UNROLL for (int r = 0; r < GLM_ROW_LANES; r += GLM_PARTS) part += from[r];
      }
      second[i] = part;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < GLM_BATCH * GLM_LANES; i += GLM_ITEMS) {
      const int k = first + i / GLM_LANES, c = k * GLM_LANES + i % GLM_LANES;
      double total = 0.0;
      int row = -1;
      if (k < GLM_COLUMNS) {
        if (c < p && rows.beta >= 0) row = rows.beta + c;
      } else if (k < GLM_SUMS) {
        row = k == GLM_COLUMNS ? rows.value : k == GLM_COLUMNS + 1 ? rows.alpha : rows.own;
      }
      SCL_UNROLL for (int j = 0; j < GLM_PARTS; j++) total += second[i * GLM_PARTS + j];
      if (row >= 0) partial[row * groups] = total;
    }
  }
}

/* The sum over each predictor's rows of a total that work-items with a cell of the tile have, to
 * row first + v. */
SCL_INLINE_BARRIER void glm_sum_cells(__local double *pool, int item, int cell, double mine,
                              int predictors, int first, __global double *partial, long groups) {
  barrier(CLK_LOCAL_MEM_FENCE);
  if (cell >= 0) pool[cell] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < GLM_PREDICTORS * 8) {
    double part = 0.0;
    SCL_UNROLL for (int r = 0; r < GLM_ROWS; r += 8) {
      part += pool[item / 8 * GLM_ROWS + r + item % 8];
    }
    pool[GLM_ITEMS + item] = part;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < predictors) {
    double total = 0.0;
    SCL_UNROLL for (int r = 0; r < 8; r++) total += pool[GLM_ITEMS + item * 8 + r];
    partial[(first + item) * groups] = total;
  }
}

/* The sums over the groups, by the last group: GLM_SHARE work-items a row, each of which has
 * GLM_LOADS loads under way. */
#define GLM_SHARE 16
#define GLM_LOADS 17
SCL_INLINE_BARRIER void glm_finish(__local double *pool, int item,
                                   volatile __global const double *partial,
                                   __global double *result, int rows, int groups) {
  for (int first = 0; first < rows; first += GLM_ITEMS / GLM_SHARE) {
    const int row = first + item / GLM_SHARE;
    double sum = 0.0;
    if (row < rows) {
      volatile __global const double *of_row = partial + (long)row * groups;
      for (int g = item % GLM_SHARE; g < groups; g += GLM_SHARE * GLM_LOADS) {
        double part[GLM_LOADS];
        SCL_UNROLL for (int i = 0; i < GLM_LOADS; i++) {
          part[i] = g + i * GLM_SHARE < groups ? of_row[g + i * GLM_SHARE] : 0.0;
        }
        SCL_UNROLL for (int i = 0; i < GLM_LOADS; i++) sum += part[i];
      }
    }
    pool[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < GLM_ITEMS / GLM_SHARE && first + item < rows) {
      sum = 0.0;
      SCL_UNROLL for (int i = 0; i < GLM_SHARE; i++) sum += pool[item * GLM_SHARE + i];
      result[first + item] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
