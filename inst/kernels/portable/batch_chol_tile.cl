/* Cholesky factors, order 9 to 128, from the lower triangle: right-looking, two columns and one
 * barrier a step. Ownership of elements: batch_tile.h.
 *
 *     k k+1
 *   +---+---------------+     Step k: the work-items that have columns k and k + 1 publish them in
 *   | \ |               |     local memory. All then compute both pivots, and subtract the two
 *   |---+-\             |     columns from the trailing triangle that they hold.
 *   | c |   \           |
 *   | o |     \         |     The columns stay as they are subtracted; the roots of the pivots
 *   | l |       \       |     divide them when they are written. Register pairs above the diagonal
 *   | s |  trailing \   |     are never touched; other elements above it are arbitrary and unused.
 *   +---+---------------+
 */

/* Whether the pairs of registers (r, c) have elements on or below the diagonal, and whether all of
 * them lie below it. */
#define TILE_REACHES(r, c)                                                                         \
  ((r) / 2 * 2 * BATCH_P + 2 * BATCH_P - 1 >= (c) / 2 * 2 * BATCH_Q)
#define TILE_BELOW(r, c) ((r) / 2 * 2 * BATCH_P > (c) / 2 * 2 * BATCH_Q + 2 * BATCH_Q - 1)

/* Status of pivot k of a Cholesky factor. */
SCL_INLINE int chol_status(const real pivot, const int k) {
  return !(fabs(pivot) < INFINITY) ? BATCH_NONFINITE : pivot > 0.0 ? 0 : k + 1;
}

/* Writes the factor, or its transpose if `upper`; `whole`, a constant: all pairs lie on 16 bytes,
 * and the order is BATCH_N. */
SCL_INLINE_BARRIER void chol_store(real tile[TILE_ROWS][TILE_COLUMNS], __local const real *scales,
                                   __global real *out, const int n, const int ti, const int tj,
                                   const int status, const bool upper, const bool pairs,
                                   const bool whole) {
  const real above = status == 0 ? 0.0 : NAN;
  EACH_COLUMN_PAIR(c) {
    const int j = TILE_COLUMN(tj, c);
    real2 scale = pair_get(scales, j);
    if (status != 0) scale = (real2)(1.0, 1.0);
    EACH_ROW_PAIR(r) {
      const int i = TILE_ROW(ti, r), row = upper ? j : i, column = upper ? i : j;
      const bool here = TILE_REACHES(r, c) && (TILE_BELOW(r, c) || i >= j);
      const bool last = TILE_REACHES(r, c) && (TILE_BELOW(r, c) || i > j);
      const real x00 = here ? tile[r][c] * scale.x : above;
      const real x10 = here ? tile[r + 1][c] * scale.x : above;
      const real x01 = last ? tile[r][c + 1] * scale.y : above;
      const real x11 = here ? tile[r + 1][c + 1] * scale.y : above;
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

BATCH_ENTRY(BATCH_IN(in), BATCH_OUT) {
  const int batch = task.batch, n = task.n, flags = task.flags;
  const long in0 = task.a_offset, out0 = task.out_offset;
  const int step_in = task.a_step, step_out = task.out_step;
  __local real columns[2][2][BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local real scales[BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  const int item = (int)get_local_id(0), slot = item / TILE_LANES, lane = item - slot * TILE_LANES;
  const int tj = lane / BATCH_P, ti = lane - tj * BATCH_P;
  const long matrix = (long)get_group_id(0) * BATCH_MATRICES + slot;
  const bool live = matrix < batch;
  real tile[TILE_ROWS][TILE_COLUMNS];
  int status = 0;
  in += in0 + matrix * step_in;
  const bool pairs_in = TILE_PAIRS(n, in0, step_in), pairs_out = TILE_PAIRS(n, out0, step_out);
  TILE_LOAD(tile, in, n, ti, tj, live, pairs_in, TILE_COLUMN, TILE_REACHES)
  EACH_COLUMN_PAIR(pair) {
    const int top = TILE_ROW_PAIR(pair); /* register rows before it are done */
    for (int owner = 0; owner < BATCH_Q && TILE_PAIR(pair, owner) < n; owner++) {
      const int k = TILE_PAIR(pair, owner);
      __local real *column = columns[owner & 1][0][slot], *next = columns[owner & 1][1][slot];
      if (tj == owner) {
        EACH_ROW_PAIR(r) {
          if (r < top) continue;
          pair_put(column, TILE_ROW(ti, r), tile[r][pair], tile[r + 1][pair]);
          pair_put(next, TILE_ROW(ti, r), tile[r][pair + 1], tile[r + 1][pair + 1]);
        }
      }
      TILE_BARRIER
      const real pivot0 = column[k], root0 = rsqrt(pivot0), inverse0 = root0 * root0;
      const real factor = column[k + 1] * inverse0;
      const real pivot1 = fma(-column[k + 1], factor, next[k + 1]), root1 = rsqrt(pivot1);
      const real inverse1 = root1 * root1;
      if (status == 0) status = chol_status(pivot0, k);
      if (status == 0) status = chol_status(pivot1, k + 1);
      if (lane == 0) pair_put(scales[slot], k, root0, root1);
      real x[TILE_ROWS], y[TILE_ROWS]; /* the two columns, the second without the first */
      EACH_ROW_PAIR(r) {
        if (r < top) continue;
        const real2 left = pair_get(column, TILE_ROW(ti, r));
        const real2 right = pair_get(next, TILE_ROW(ti, r));
        x[r] = left.x;
        x[r + 1] = left.y;
        y[r] = fma(-left.x, factor, right.x);
        y[r + 1] = fma(-left.y, factor, right.y);
      }
      EACH_COLUMN_PAIR(c) {
        if (c < pair || (c == pair && tj <= owner)) continue;
        real2 left = pair_get(column, TILE_COLUMN(tj, c));
        real2 right = pair_get(next, TILE_COLUMN(tj, c));
        right = fma(-left, factor, right) * inverse1;
        left = left * inverse0;
        EACH_ROW(r) {
          if (r < top || !TILE_REACHES(r, c)) continue;
          tile[r][c] = fma(-x[r], left.x, fma(-y[r], right.x, tile[r][c]));
          tile[r][c + 1] = fma(-x[r], left.y, fma(-y[r], right.y, tile[r][c + 1]));
        }
      }
      if (tj == owner) {
        EACH_ROW(r) {
          if (r >= top) tile[r][pair + 1] = y[r];
        }
      }
    }
  }
  TILE_BARRIER
  if (!live) return;
  out += out0 + matrix * step_out;
  if (status != 0) {
    EACH_ROW(r) {
      EACH_COLUMN(c) tile[r][c] = NAN;
    }
  }
  const bool upper = (flags & BATCH_UPPER) != 0;
  if (pairs_out && n == BATCH_N) {
    chol_store(tile, scales[slot], out, n, ti, tj, status, upper, pairs_out, true);
  } else {
    chol_store(tile, scales[slot], out, n, ti, tj, status, upper, pairs_out, false);
  }
  if (lane == 0) batch_report(matrix, status, flags, statuses, any);
}
