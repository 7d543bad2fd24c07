/* Inverses, order 9 to 128: Gauss-Jordan elimination in place with row pivoting. Rows stay where
 * they are: row p, chosen at step k, becomes row k when the result is written, and column k becomes
 * column p. A step publishes column k and then the pivot row in local memory: two barriers.
 * Ownership of elements: batch_tile.h.
 *
 *     tj = 0    tj = 1   ..           The columns of a work-item lie side by side (TILE_BLOCKED).
 *   +---------+---------+---          Each step moves them on by one register, the first to the
 *   | k <---- |         |             end, so that column k is in register 0 and all steps are one
 *   |         |         |             body of code. Work-items with tj == k / TILE_COLUMNS publish
 *   +---------+---------+---          it, each with its best row, and those of that row the row.
 *
 * Pivot rows are divided by their pivots when they are written: until then they are subtracted like
 * other rows. */

/* Numbers of the result that go through local memory at once: BATCH_Q columns, a little apart. */
#define STAGE_ROWS (BATCH_N + 2 * BATCH_P)
#define STAGE_PAIRS (BATCH_Q * BATCH_N / 2)

/* Writes the result, of which register row r is row to[r], BATCH_Q columns at a time, which get
 * their rows in order in local memory; `whole`: pairs lie on 16 bytes and the order is BATCH_N. */
SCL_INLINE_BARRIER void inverse_store(real tile[TILE_ROWS][TILE_COLUMNS], const int to[TILE_ROWS],
                                      const int tj, const int lane, const bool live, const int n,
                                      const bool whole, __local const int *chosen,
                                      __local real *stage, __global real *out) {
  EACH_COLUMN(c) {
    EACH_ROW(r) stage[tj * STAGE_ROWS + to[r]] = tile[r][c];
    TILE_BARRIER
    /* Register column c is BATCH_Q columns of the result. */
    const int moved = c + n % TILE_COLUMNS;
    const int first = moved < TILE_COLUMNS ? moved : moved - TILE_COLUMNS;
    TILE_ROLLED for (int e = lane; e < STAGE_PAIRS && live; e += TILE_LANES) {
      const int u = e / (BATCH_N / 2), i = 2 * (e - u * (BATCH_N / 2));
      const int k = first + u * TILE_COLUMNS;
      const real2 pair = pair_get(stage, u * STAGE_ROWS + i);
      if (whole) {
        STORE_PAIR(out + chosen[k] * BATCH_N + i, __global, pair.x, pair.y);
      } else if (k < n) {
        tile_store(out, i, chosen[k], n, false, pair.x, pair.y);
      }
    }
    TILE_BARRIER
  }
}

BATCH_ENTRY(BATCH_IN(in), BATCH_OUT) {
  const int batch = task.batch, n = task.n, flags = task.flags;
  const long in0 = task.a_offset, out0 = task.out_offset;
  const int step_in = task.a_step, step_out = task.out_step;
  __local tile_steps all_steps[BATCH_MATRICES];
  __local real stages[BATCH_MATRICES][BATCH_Q * STAGE_ROWS] __attribute__((aligned(16)));
  __local int step_of[BATCH_MATRICES][BATCH_N];
  const int item = (int)get_local_id(0), slot = item / TILE_LANES, lane = item - slot * TILE_LANES;
  const int tj = lane / BATCH_P, ti = lane - tj * BATCH_P;
  const long matrix = (long)get_group_id(0) * BATCH_MATRICES + slot;
  const bool live = matrix < batch;
  __local tile_steps *steps = &all_steps[slot];
  real tile[TILE_ROWS][TILE_COLUMNS];
  int status = 0;
  uint used = 0; /* register rows that were pivots, or lie beyond the order */
  in += in0 + matrix * step_in;
  TILE_LOAD(tile, in, n, ti, tj, live, TILE_PAIRS(n, in0, step_in), TILE_BLOCKED, TILE_ALL)
  EACH_ROW(r) used |= TILE_ROW(ti, r) < n ? 0u : 1u << r;
  TILE_ROLLED for (int k = 0; k < n; k++) {
    const bool owner = tj == k / TILE_COLUMNS;
    if (owner) {
      tile_publish_column(tile, ti, used, steps);
      EACH_ROW(r) tile[r][0] = 0.0; /* where column k of the result comes to be: 0 + factor */
    }
    TILE_BARRIER
    real factor[TILE_ROWS];
    tile_get_column(factor, steps->column, ti);
    const int chosen = tile_pivot(steps->keys);
    const real pivot = steps->column[chosen], scale = -1.0 / pivot;
    EACH_ROW(r) factor[r] *= scale;
    EACH_ROW(r) {
      if (TILE_ROW(ti, r) == chosen) {
        EACH_COLUMN_PAIR(c) pair_put(steps->row, TILE_BLOCKED(tj, c), tile[r][c], tile[r][c + 1]);
        tile[r][0] = owner ? 1.0 : tile[r][0];
        factor[r] = 0.0;
        used |= 1u << r;
      }
    }
    if (status == 0) status = tile_status(pivot, k);
    if (lane == 0) tile_put_step(steps, k, chosen, pivot);
    TILE_BARRIER
    real first[TILE_ROWS];
    EACH_COLUMN_PAIR(c) {
      real2 row = pair_get(steps->row, TILE_BLOCKED(tj, c));
      if (c == 0) {
        row.x = owner ? 1.0 : row.x;
        EACH_ROW(r) first[r] = fma(factor[r], row.x, tile[r][0]);
      } else {
        EACH_ROW(r) tile[r][c - 1] = fma(factor[r], row.x, tile[r][c]);
      }
      EACH_ROW(r) tile[r][c] = fma(factor[r], row.y, tile[r][c + 1]);
    }
    EACH_ROW(r) tile[r][TILE_COLUMNS - 1] = first[r];
  }
  TILE_BARRIER
  for (int k = lane; k < n; k += TILE_LANES) step_of[slot][steps->chosen[k]] = k;
  TILE_BARRIER
  int to[TILE_ROWS];
  EACH_ROW(r) {
    to[r] = TILE_ROW(ti, r) < n ? step_of[slot][TILE_ROW(ti, r)] : TILE_ROW(ti, r);
    const real scale = TILE_ROW(ti, r) < n ? 1.0 / steps->pivots[to[r]] : 1.0;
    EACH_COLUMN(c) tile[r][c] *= scale;
  }
  if (status != 0) {
    EACH_ROW(r) {
      EACH_COLUMN(c) tile[r][c] = NAN;
    }
  }
  inverse_store(tile, to, tj, lane, live, n, TILE_PAIRS(n, out0, step_out) && n == BATCH_N,
                steps->chosen, stages[slot], out + out0 + matrix * step_out);
  if (live && lane == 0) batch_report(matrix, status, flags, statuses, any);
}
