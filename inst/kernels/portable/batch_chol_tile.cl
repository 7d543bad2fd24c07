/* Cholesky factors, order 9 to 128, from the lower triangle: right-looking, two columns and one
 * barrier a step. The columns stay as they are subtracted; they are divided by the roots of their
 * pivots when written. Register tiles above the diagonal are never touched, and what else lies
 * above it holds numbers without meaning that reach nothing below. Layout and work split:
 * batch_tile.h. */

/* Columns k and k + 1 in local memory: the step's pivots and what follows from them. */
typedef struct {
  real inverse0, inverse1; /* of the pivots */
  real factor;             /* of the first column, in the second */
} chol_step;

/* Subtracts the two columns from those to their right. */
SCL_INLINE void chol_update(real tile[TILE_ROWS][TILE_COLUMNS], const int ti, const int tj,
                            const int pair, const int owner, const chol_step step,
                            __local const real *column, __local const real *next) {
  const int first = TILE_ROW_PAIR(pair);
  real x[TILE_ROWS], y[TILE_ROWS]; /* the two columns, the second without the first */
  EACH_ROW_PAIR(i) {
    if (i < first) continue;
    const real2 c0 = pair_get(column, TILE_ROW(ti, i)), c1 = pair_get(next, TILE_ROW(ti, i));
    x[i] = c0.x;
    x[i + 1] = c0.y;
    y[i] = fma(-c0.x, step.factor, c1.x);
    y[i + 1] = fma(-c0.y, step.factor, c1.y);
  }
  EACH_COLUMN_PAIR(j) {
    if (j < pair || (j == pair && tj <= owner)) continue;
    real2 c0 = pair_get(column, TILE_COLUMN(tj, j)), c1 = pair_get(next, TILE_COLUMN(tj, j));
    c1 = fma(-c0, step.factor, c1) * step.inverse1;
    c0 = c0 * step.inverse0;
    EACH_ROW(i) {
      if (i < first || !TILE_REACHES(i, j)) continue;
      tile[i][j] = fma(-x[i], c0.x, fma(-y[i], c1.x, tile[i][j]));
      tile[i][j + 1] = fma(-x[i], c0.y, fma(-y[i], c1.y, tile[i][j + 1]));
    }
  }
  if (tj == owner) {
    EACH_ROW(i) {
      if (i >= first) tile[i][pair + 1] = y[i];
    }
  }
}

/* Writes the factor, or its transpose if `upper`; `whole` (a constant): all pairs lie on 16 bytes,
 * and the order is BATCH_N. */
SCL_INLINE void chol_store(real tile[TILE_ROWS][TILE_COLUMNS], const int ti, const int tj,
                           __local const real *scales, __global real *out, const int n,
                           const int status, const bool upper, const bool pairs, const bool whole) {
  const real above = status == 0 ? 0.0 : NAN;
  EACH_COLUMN_PAIR(c) {
    const int j = TILE_COLUMN(tj, c);
    real2 scale = pair_get(scales, j);
    if (status != 0) scale = (real2)(1.0, 1.0);
    EACH_ROW_PAIR(k) {
      const int i = TILE_ROW(ti, k);
      const bool here = TILE_REACHES(k, c) && (TILE_BELOW(k, c) || i >= j);
      const bool last = TILE_REACHES(k, c) && (TILE_BELOW(k, c) || i > j);
      const real x00 = here ? tile[k][c] * scale.x : above;
      const real x10 = here ? tile[k + 1][c] * scale.x : above;
      const real x01 = last ? tile[k][c + 1] * scale.y : above;
      const real x11 = here ? tile[k + 1][c + 1] * scale.y : above;
      const int row = upper ? j : i, column = upper ? i : j;
      if (whole) {
        STORE_PAIR(out + row + column * BATCH_N, __global, x00, upper ? x01 : x10);
        STORE_PAIR(out + row + (column + 1) * BATCH_N, __global, upper ? x10 : x01, x11);
      } else {
        tile_store(out, row, column, n, pairs, x00, upper ? x01 : x10);
        tile_store(out, row, column + 1, n, pairs, upper ? x10 : x01, x11);
      }
    }
  }
}

BATCH_ENTRY(BATCH_SIZES, BATCH_IN(in), BATCH_OUT) {
  __local real columns[2][2][BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local real all_scales[BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  const int item = get_local_id(0), slot = TILE_SLOT(item), lane = TILE_LANE(item);
  const int tj = lane / BATCH_P, ti = lane - tj * BATCH_P;
  const long matrix = (long)get_group_id(0) * BATCH_MATRICES + slot;
  const bool live = matrix < batch;
  __local real *scales = all_scales[slot];
  real tile[TILE_ROWS][TILE_COLUMNS];
  int status = 0;
  tile_load_all(tile, ti, tj, live, in + in0 + matrix * step_in, n, tile_pairs(n, in0, step_in),
                IN_PAIRS, true);
  EACH_COLUMN_PAIR(pair) {
    for (int owner = 0; owner < BATCH_Q && TILE_PAIR(pair, owner) < n; owner++) {
      const int k = TILE_PAIR(pair, owner);
      __local real *column = columns[owner & 1][0][slot], *next = columns[owner & 1][1][slot];
      if (tj == owner) {
        EACH_ROW_PAIR(i) {
          if (i < TILE_ROW_PAIR(pair)) continue;
          pair_put(column, TILE_ROW(ti, i), tile[i][pair], tile[i + 1][pair]);
          pair_put(next, TILE_ROW(ti, i), tile[i][pair + 1], tile[i + 1][pair + 1]);
        }
      }
      TILE_BARRIER
      chol_step step;
      const real pivot0 = column[k], scale0 = rsqrt(pivot0);
      step.inverse0 = scale0 * scale0;
      step.factor = column[k + 1] * step.inverse0;
      const real pivot1 = fma(-column[k + 1], step.factor, next[k + 1]), scale1 = rsqrt(pivot1);
      step.inverse1 = scale1 * scale1;
      if (status == 0) status = pivot_status_positive(pivot0, k);
      if (status == 0) status = pivot_status_positive(pivot1, k + 1);
      if (lane == 0) pair_put(scales, k, scale0, scale1);
      chol_update(tile, ti, tj, pair, owner, step, column, next);
    }
  }
  TILE_BARRIER
  if (!live) return;
  out += out0 + matrix * step_out;
  if (status != 0) tile_fill_nan(tile);
  const bool upper = (flags & BATCH_UPPER) != 0, pairs = tile_pairs(n, out0, step_out);
  if (pairs && n == BATCH_N) {
    chol_store(tile, ti, tj, scales, out, n, status, upper, pairs, true);
  } else {
    chol_store(tile, ti, tj, scales, out, n, status, upper, pairs, false);
  }
  if (lane == 0) batch_report(matrix, status, flags, statuses, any);
}
