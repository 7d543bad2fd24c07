/* Reverse mode of Cholesky factors, order 9 to 128: backwards through the columns, as
 * engine/host/lanes.c does. The tile holds the adjoint's lower triangle and, from the last column
 * back, the symmetric result. A step brings column k of the factor to local memory, multiplies the
 * result's trailing part with it (parts of the sums by the work-items of a row), and closes column
 * and row k: three barriers. Layout and work split: batch_tile.h. */

BATCH_ENTRY(BATCH_SIZES, BATCH_IN(in), BATCH_IN(adj), BATCH_OUT) {
  __local real factor[BATCH_MATRICES][BATCH_N], column[BATCH_MATRICES][BATCH_N];
  __local real parts[BATCH_MATRICES][BATCH_Q][BATCH_N], sums[BATCH_MATRICES][BATCH_P];
  const int item = get_local_id(0), slot = TILE_SLOT(item), lane = TILE_LANE(item);
  const int tj = lane / BATCH_P, ti = lane - tj * BATCH_P;
  const long matrix = (long)get_group_id(0) * BATCH_MATRICES + slot;
  const bool live = matrix < batch;
  real tile[TILE_ROWS][TILE_COLUMNS];
  int status = 0;
  in += in0 + matrix * step_in;
  adj += adj0 + matrix * step_adj;
  EACH_COLUMN(c) {
    EACH_ROW(row) {
      int i = TILE_ROW(ti, row), j = TILE_COLUMN(tj, c);
      tile[row][c] = live && i < n && i >= j ? adj[i + j * n] : 0.0;
    }
  }
  TILE_UNROLL for (int pair = TILE_COLUMNS - 2; pair >= 0; pair -= 2) {
    const int first = TILE_ROW_PAIR(pair);
    for (int owner = BATCH_Q - 1; owner >= 0; owner--) {
      TILE_UNROLL for (int odd = 1; odd >= 0; odd--) {
        const int k = TILE_PAIR(pair, owner) + odd;
        if (k < n) { /* the same for all */
          for (int i = k + lane; i < BATCH_N; i += TILE_LANES)
            factor[slot][i] = !live ? 1.0 : i < n ? in[i + k * n] : 0.0;
          TILE_BARRIER
          const real pivot = factor[slot][k], inverse = 1.0 / pivot;
          const int now = pivot_status(fabs(pivot), k);
          status = now != 0 ? now : status;
          real part[TILE_ROWS];
          EACH_ROW(row) part[row] = 0.0;
          EACH_COLUMN(c) {
            const real x = TILE_COLUMN(tj, c) > k ? -2.0 * factor[slot][TILE_COLUMN(tj, c)] : 0.0;
            if (c < pair) continue;
            EACH_ROW(row) {
              if (row >= first) part[row] = fma(tile[row][c], x, part[row]);
            }
          }
          EACH_ROW(row) {
            if (row >= first) parts[slot][tj][TILE_ROW(ti, row)] = part[row];
          }
          TILE_BARRIER
          if (tj == owner) {
            real sum = 0.0;
            EACH_ROW(row) {
              if (row < first || TILE_ROW(ti, row) <= k) continue;
              real x = tile[row][pair + odd];
              for (int i = 0; i < BATCH_Q; i++) x += parts[slot][i][TILE_ROW(ti, row)];
              x *= inverse;
              sum = fma(x, factor[slot][TILE_ROW(ti, row)], sum);
              column[slot][TILE_ROW(ti, row)] = tile[row][pair + odd] = 0.5 * x;
            }
            sums[slot][ti] = sum;
          }
          TILE_BARRIER
          if (ti == TILE_ROW_LANE(pair, owner)) {
            EACH_COLUMN(c) {
              if (c < pair) continue;
              if (TILE_COLUMN(tj, c) > k) tile[first + odd][c] = column[slot][TILE_COLUMN(tj, c)];
            }
            if (tj == owner) {
              real x = tile[first + odd][pair + odd];
              for (int i = 0; i < BATCH_P; i++) x -= sums[slot][i];
              tile[first + odd][pair + odd] = 0.5 * x * inverse;
            }
          }
        }
      }
    }
  }
  if (!live) return;
  out += out0 + matrix * step_out;
  EACH_COLUMN(c) {
    EACH_ROW(row) {
      const int i = TILE_ROW(ti, row), j = TILE_COLUMN(tj, c);
      if (i < n && j < n) out[i + j * n] = status == 0 ? tile[row][c] : NAN;
    }
  }
  if (lane == 0) batch_report(matrix, status, flags, statuses, any);
}
