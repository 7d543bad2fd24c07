/* Reverse mode of Cholesky factors, order 9 to 128: backwards through the columns, as
 * src/engine/host/lanes.c has it. Ownership of elements: batch_tile.h. The tile holds the lower
 * triangle of the adjoint and, from the last column back, the symmetric result.
 *
 *            k                     Step k, from the last column back:
 *     +-----+--+---------+         1. all bring column k of the factor to local memory (factor);
 *     | not |  |         |         2. each multiplies its part of the trailing block with it; the
 *     | yet | .|. row k .| 3          work-items of a row share the sum (parts);
 *   k |     |--+---------+         3. those of column k close it (half_of), those of row k copy it:
 *     |     |. |trailing |            the result is symmetric.
 *     |     |. | block   | 2       A barrier after each.
 *     +-----+--+---------+
 */

/* Reads the lower triangle of the adjoint into the tile. */
SCL_INLINE_BARRIER void adjoint_load(real tile[TILE_ROWS][TILE_COLUMNS], __global const real *adj,
                                     const int n, const int ti, const int tj, const bool live) {
  EACH_COLUMN(c) {
    EACH_ROW(r) {
      const int i = TILE_ROW(ti, r), j = TILE_COLUMN(tj, c);
      tile[r][c] = live && i < n && i >= j ? adj[i + j * n] : 0.0;
    }
  }
}

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(adj), BATCH_OUT) {
  const int batch = task.batch, n = task.n, flags = task.flags;
  const long in0 = task.a_offset, adj0 = task.b_offset, out0 = task.out_offset;
  const int step_in = task.a_step, step_adj = task.b_step, step_out = task.out_step;
  __local real factor[BATCH_MATRICES][BATCH_N], half_of[BATCH_MATRICES][BATCH_N];
  __local real parts[BATCH_MATRICES][BATCH_Q][BATCH_N], sums[BATCH_MATRICES][BATCH_P];
  const int item = (int)get_local_id(0), slot = item / TILE_LANES, lane = item - slot * TILE_LANES;
  const int tj = lane / BATCH_P, ti = lane - tj * BATCH_P;
  const long matrix = (long)get_group_id(0) * BATCH_MATRICES + slot;
  const bool live = matrix < batch;
  real tile[TILE_ROWS][TILE_COLUMNS];
  int status = 0;
  in += in0 + matrix * step_in;
  adjoint_load(tile, adj + adj0 + matrix * step_adj, n, ti, tj, live);
  TILE_UNROLL for (int pair = TILE_COLUMNS - 2; pair >= 0; pair -= 2) {
    const int top = TILE_ROW_PAIR(pair); /* register rows before it come later */
    for (int owner = BATCH_Q - 1; owner >= 0; owner--) {
      TILE_UNROLL for (int odd = 1; odd >= 0; odd--) {
        const int k = TILE_PAIR(pair, owner) + odd;
        if (k < n) { /* the same for all */
          for (int i = k + lane; i < BATCH_N; i += TILE_LANES) {
            factor[slot][i] = !live ? 1.0 : i < n ? in[i + k * n] : 0.0;
          }
          TILE_BARRIER
          const real pivot = factor[slot][k], inverse = 1.0 / pivot;
          const int now = pivot_status(fabs(pivot), k);
          status = now != 0 ? now : status;
          real part[TILE_ROWS];
          EACH_ROW(r) part[r] = 0.0;
          EACH_COLUMN(c) {
            const real x = TILE_COLUMN(tj, c) > k ? -2.0 * factor[slot][TILE_COLUMN(tj, c)] : 0.0;
            if (c < pair) continue;
            EACH_ROW(r) {
              if (r >= top) part[r] = fma(tile[r][c], x, part[r]);
            }
          }
          EACH_ROW(r) {
            if (r >= top) parts[slot][tj][TILE_ROW(ti, r)] = part[r];
          }
          TILE_BARRIER
          if (tj == owner) {
            real sum = 0.0;
            EACH_ROW(r) {
              if (r < top || TILE_ROW(ti, r) <= k) continue;
              real x = tile[r][pair + odd];
              for (int i = 0; i < BATCH_Q; i++) x += parts[slot][i][TILE_ROW(ti, r)];
              x *= inverse;
              sum = fma(x, factor[slot][TILE_ROW(ti, r)], sum);
              half_of[slot][TILE_ROW(ti, r)] = tile[r][pair + odd] = 0.5 * x;
            }
            sums[slot][ti] = sum;
          }
          TILE_BARRIER
          if (ti == TILE_ROW_LANE(pair, owner)) {
            EACH_COLUMN(c) {
              if (c < pair) continue;
              if (TILE_COLUMN(tj, c) > k) tile[top + odd][c] = half_of[slot][TILE_COLUMN(tj, c)];
            }
            if (tj == owner) {
              real x = tile[top + odd][pair + odd];
              for (int i = 0; i < BATCH_P; i++) x -= sums[slot][i];
              tile[top + odd][pair + odd] = 0.5 * x * inverse;
            }
          }
        }
      }
    }
  }
  if (!live) return;
  out += out0 + matrix * step_out;
  EACH_COLUMN(c) {
    EACH_ROW(r) {
      if (TILE_ROW(ti, r) < n && TILE_COLUMN(tj, c) < n) {
        out[TILE_ROW(ti, r) + TILE_COLUMN(tj, c) * n] = status == 0 ? tile[r][c] : NAN;
      }
    }
  }
  if (lane == 0) batch_report(matrix, status, flags, statuses, any);
}
