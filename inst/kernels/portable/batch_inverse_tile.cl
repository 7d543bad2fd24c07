/* Inverses, order 9 to 128: Gauss-Jordan elimination in place with row pivoting. Rows stay where
 * they are: row p, chosen at step k, becomes row k when the result is written, and column k becomes
 * column p. A step publishes column k and then the pivot row in local memory: two barriers. Layout
 * and work split: batch_tile.h.
 *
 * The columns of a work-item lie side by side (TILE_BLOCKED). Each step moves them on by one
 * register, so that the column of the step is in register 0 and all steps are one body of code.
 * Pivot rows are divided by their pivots when they are written: until then they are subtracted like
 * other rows. */

/* Numbers of the result that go through local memory at once: BATCH_Q columns, a little apart. */
#define STAGE_ROWS (BATCH_N + 2 * BATCH_P)
#define STAGE_PAIRS (BATCH_Q * BATCH_N / 2)

/* One step; `owner`: this work-item holds its column. Returns the pivot; *used has a bit for each
 * register row that was a pivot. */
SCL_INLINE_BARRIER real inverse_step(real tile[TILE_ROWS][TILE_COLUMNS], const int ti, const int tj,
                                     const bool owner, const int k, uint *used,
                                     __local tile_steps *steps) {
  if (owner) {
    tile_publish_column(tile, ti, tj, *used, steps);
    EACH_ROW(i) tile[i][0] = 0.0; /* where column k of the result comes to be: 0 + factor */
  }
  TILE_BARRIER
  real factors[TILE_ROWS], first[TILE_ROWS];
  tile_get_column(steps->column, ti, factors);
  const int chosen = tile_pivot(steps->keys);
  const real pivot = steps->column[chosen], inverse = -1.0 / pivot;
  EACH_ROW(i) factors[i] *= inverse;
  EACH_ROW(i) {
    if (TILE_ROW(ti, i) == chosen) {
      EACH_COLUMN_PAIR(j) pair_put(steps->row, TILE_BLOCKED(tj, j), tile[i][j], tile[i][j + 1]);
      tile[i][0] = owner ? 1.0 : tile[i][0];
      factors[i] = 0.0;
      *used |= 1u << i;
    }
  }
  if (ti == 0 && tj == 0) {
    steps->chosen[k] = chosen;
    steps->pivots[k] = pivot;
  }
  TILE_BARRIER
  EACH_COLUMN_PAIR(j) {
    real2 row = pair_get(steps->row, TILE_BLOCKED(tj, j));
    if (j == 0) {
      row.x = owner ? 1.0 : row.x;
      EACH_ROW(i) first[i] = fma(factors[i], row.x, tile[i][0]);
    } else {
      EACH_ROW(i) tile[i][j - 1] = fma(factors[i], row.x, tile[i][j]);
    }
    EACH_ROW(i) tile[i][j] = fma(factors[i], row.y, tile[i][j + 1]);
  }
  EACH_ROW(i) tile[i][TILE_COLUMNS - 1] = first[i];
  return pivot;
}

/* Writes the result: register row i becomes row to[i]. BATCH_Q columns at a time go through local
 * memory, which puts their rows in order. */
SCL_INLINE_BARRIER void inverse_store(real tile[TILE_ROWS][TILE_COLUMNS], const int tj,
                                      const int lane, const bool live, const int to[TILE_ROWS],
                                      const int n, const bool whole, __local const int *chosen,
                                      __local real *stage, __global real *out) {
  EACH_COLUMN(j) {
    EACH_ROW(i) stage[tj * STAGE_ROWS + to[i]] = tile[i][j];
    TILE_BARRIER
    /* Register column j is BATCH_Q columns of the result. */
    const int moved = j + n % TILE_COLUMNS;
    const int first = moved < TILE_COLUMNS ? moved : moved - TILE_COLUMNS;
    TILE_ROLLED for (int k = lane; k < STAGE_PAIRS && live; k += TILE_LANES) {
      const int c = k / (BATCH_N / 2), row = 2 * (k - c * (BATCH_N / 2));
      const int column = first + c * TILE_COLUMNS;
      const real2 pair = pair_get(stage, c * STAGE_ROWS + row);
      if (whole) {
        STORE_PAIR(out + chosen[column] * BATCH_N + row, __global, pair.x, pair.y);
      } else if (column < n) {
        tile_store(out, row, chosen[column], n, false, pair.x, pair.y);
      }
    }
    TILE_BARRIER
  }
}

BATCH_ENTRY(BATCH_SIZES, BATCH_IN(in), BATCH_OUT) {
  __local tile_steps all_steps[BATCH_MATRICES];
  __local real stages[BATCH_MATRICES][BATCH_Q * STAGE_ROWS] __attribute__((aligned(16)));
  __local int step_of[BATCH_MATRICES][BATCH_N];
  const int item = get_local_id(0), slot = TILE_SLOT(item), lane = TILE_LANE(item);
  const int tj = lane / BATCH_P, ti = lane - tj * BATCH_P;
  const long matrix = (long)get_group_id(0) * BATCH_MATRICES + slot;
  const bool live = matrix < batch;
  __local tile_steps *steps = &all_steps[slot];
  real tile[TILE_ROWS][TILE_COLUMNS];
  int status = 0, to[TILE_ROWS];
  uint used = 0; /* register rows that were pivots, or lie beyond the order */
  tile_load_all(tile, ti, tj, live, in + in0 + matrix * step_in, n, tile_pairs(n, in0, step_in),
                SIDE_BY_SIDE, false);
  EACH_ROW(i) used |= TILE_ROW(ti, i) < n ? 0u : 1u << i;
  TILE_ROLLED for (int k = 0; k < n; k++) {
    const real pivot = inverse_step(tile, ti, tj, tj == k / TILE_COLUMNS, k, &used, steps);
    if (status == 0) status = tile_status(pivot, k);
  }
  TILE_BARRIER
  for (int k = lane; k < n; k += TILE_LANES) step_of[slot][steps->chosen[k]] = k;
  TILE_BARRIER
  EACH_ROW(i) {
    const int row = TILE_ROW(ti, i);
    to[i] = row < n ? step_of[slot][row] : row;
    const real scale = row < n ? 1.0 / steps->pivots[to[i]] : 1.0;
    EACH_COLUMN(j) tile[i][j] *= scale;
  }
  if (status != 0) tile_fill_nan(tile);
  inverse_store(tile, tj, lane, live, to, n, tile_pairs(n, out0, step_out) && n == BATCH_N,
                steps->chosen, stages[slot], out + out0 + matrix * step_out);
  if (live && lane == 0) batch_report(matrix, status, flags, statuses, any);
}
