/* Of the pass of a GLM likelihood (glm_pass.cl): its shape, and the sums over work-items and over
 * groups, all of them in a fixed order. */
#ifndef GLM_PASS /* name of the kernel */
#define GLM_PASS glm_pass
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
/* One logarithm for many terms takes registers that other layouts do not have. */
#define GLM_GATHER (GLM_PREDICTORS > 1 || GLM_LANES > 16)
#define GLM_ALONE (GLM_LANES == 1) /* a work-item has its row to itself: nothing to exchange */
/* Whether a tile is requested before the rest of the work on the last one, or on the parameters, is
 * done. With more predictors there are not enough registers for it; then other groups fill the
 * time. */
#define GLM_EARLY (GLM_ALONE && GLM_PREDICTORS == 1)
#define GLM_AUX_ROWS (GLM_ALONE ? GLM_WIDTH : 1) /* rows whose data a work-item has */
#define GLM_LINKS (GLM_ALONE ? GLM_PREDICTORS : 1) /* predictors that a work-item turns to terms */
/* The lanes' sums are added in two steps when there are many: first GLM_STEP at a time. */
#define GLM_STEP (GLM_LANES > 16 ? 8 : 1)
#define GLM_STEPS (GLM_LANES / GLM_STEP)
/* The sums over the row lanes: this many columns at a time, in two steps. */
#define GLM_MIN(a, b) ((a) < (b) ? (a) : (b))
#define GLM_MAX(a, b) ((a) > (b) ? (a) : (b))
#define GLM_TOTALS 3 /* value, d_alpha, d_aux */
#define GLM_SUMS (GLM_COLUMNS + (GLM_ALONE ? GLM_TOTALS : 0))
#define GLM_BATCH GLM_MAX(1, GLM_MIN(GLM_SUMS, (GLM_FINISH ? 3400 : 2048) / GLM_ITEMS))
#define GLM_PARTS (GLM_ROW_LANES >= 64 ? GLM_ROW_LANES / 16 : GLM_ROW_LANES >= 16 ? 2 : 1)
#define GLM_POOL_TILE (GLM_ALONE ? 1 : (GLM_LANES + (GLM_STEP > 1 ? GLM_STEPS : 0)) * GLM_CELLS)
#define GLM_POOL_SUM (GLM_BATCH * GLM_LANES * (GLM_ROW_LANES + 1 + GLM_PARTS))
#define GLM_POOL GLM_MAX(GLM_POOL_TILE, GLM_MAX(GLM_POOL_SUM, 2 * GLM_ITEMS))

#if GLM_WIDTH == 2
typedef real2 glm_pair;
#define GLM_DOT(a, b, sum) fma((a).y, (b).y, fma((a).x, (b).x, sum))
#define GLM_PART(a, r) ((r) ? (a).y : (a).x)
#define GLM_SET_PART(a, r, value) ((r) ? ((a).y = (value)) : ((a).x = (value)))
#else
typedef real glm_pair;
#define GLM_PART(a, r) (a)
#define GLM_SET_PART(a, r, value) ((a) = (value))
#define GLM_DOT(a, b, sum) fma(a, b, sum)
#endif

/* Rows of the results of one predictor; -1: none. */
typedef struct {
  int value, aux, alpha, beta;
} glm_rows;

/* The lanes' parts of the tile's predictors, or GLM_STEPS sums of GLM_STEP of them each: part l of
 * cell c at l * GLM_CELLS + c of what is given. All work-items of the group, after a barrier. */
SCL_INLINE_BARRIER __local const real *glm_fold_lanes(__local real *pool, int item) {
#if GLM_STEP > 1
  __local real *folded = pool + GLM_LANES * GLM_CELLS;
  for (int i = item; i < GLM_STEPS * GLM_CELLS; i += GLM_ITEMS) {
    const int first = i / GLM_CELLS * GLM_STEP * GLM_CELLS + i % GLM_CELLS;
    real part = 0.0;
    SCL_UNROLL for (int l = 0; l < GLM_STEP; l++) part += pool[first + l * GLM_CELLS];
    folded[i] = part;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return folded;
#else
  return pool;
#endif
}

SCL_INLINE real glm_sum_lanes(__local const real *parts, int cell) {
  real eta = 0.0;
  SCL_UNROLL for (int l = 0; l < GLM_STEPS; l++) eta += parts[l * GLM_CELLS + cell];
  return eta;
}

/* The sums over the row lanes of a predictor's columns, and of the totals where these stand behind
 * them. */
SCL_INLINE_BARRIER void glm_sum_rows(__local real *pool, int item, const real *sum, int p,
                             glm_rows rows, __global real *partial, long groups) {
  const int row_lane = item % GLM_ROW_LANES, lane = item / GLM_ROW_LANES;
  __local real *second = pool + GLM_BATCH * GLM_LANES * (GLM_ROW_LANES + 1);
  SCL_UNROLL for (int first = 0; first < GLM_SUMS; first += GLM_BATCH) {
    SCL_UNROLL for (int k = 0; k < GLM_BATCH; k++) {
      if (first + k < GLM_SUMS)
        pool[(k * GLM_LANES + lane) * (GLM_ROW_LANES + 1) + row_lane] = sum[first + k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < GLM_BATCH * GLM_LANES * GLM_PARTS; i += GLM_ITEMS) {
      __local const real *from = pool + i / GLM_PARTS * (GLM_ROW_LANES + 1) + i % GLM_PARTS;
      real part = 0.0;
      if (first + i / (GLM_PARTS * GLM_LANES) < GLM_SUMS) {
        SCL_UNROLL for (int r = 0; r < GLM_ROW_LANES; r += GLM_PARTS) part += from[r];
      }
      second[i] = part;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < GLM_BATCH * GLM_LANES; i += GLM_ITEMS) {
      const int k = first + i / GLM_LANES, c = k * GLM_LANES + i % GLM_LANES;
      real total = 0.0;
      int row = -1;
      if (k < GLM_COLUMNS) {
        if (c < p && rows.beta >= 0) row = rows.beta + c;
      } else if (k < GLM_SUMS) {
        row = k == GLM_COLUMNS ? rows.value : k == GLM_COLUMNS + 1 ? rows.alpha : rows.aux;
      }
      SCL_UNROLL for (int j = 0; j < GLM_PARTS; j++) total += second[i * GLM_PARTS + j];
      if (row >= 0) partial[row * groups] = total;
    }
  }
}

/* The sum over each predictor's rows of a total that work-items with a cell of the tile have, to
 * row first + v. */
SCL_INLINE_BARRIER void glm_sum_cells(__local real *pool, int item, int cell, real mine,
                              int predictors, int first, __global real *partial, long groups) {
  barrier(CLK_LOCAL_MEM_FENCE);
  if (cell >= 0) pool[cell] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < GLM_PREDICTORS * 8) {
    real part = 0.0;
    SCL_UNROLL for (int r = 0; r < GLM_ROWS; r += 8) {
      part += pool[item / 8 * GLM_ROWS + r + item % 8];
    }
    pool[GLM_ITEMS + item] = part;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < predictors) {
    real total = 0.0;
    SCL_UNROLL for (int r = 0; r < 8; r++) total += pool[GLM_ITEMS + item * 8 + r];
    partial[(first + item) * groups] = total;
  }
}
