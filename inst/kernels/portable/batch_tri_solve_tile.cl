/* Triangular solutions and normal log densities, order 9 to 128: substitution, two unknowns and one
 * barrier a step, for BATCH_Q right-hand sides (group number 1 says which). Upper triangles, and
 * transposes of lower ones, are read in reverse order: what is solved is always lower. Layout and
 * work split: batch_tile.h; work-item (ti, tj) has right-hand side tj. */

/* The matrix to the tile, with an identity beyond the order. */
SCL_INLINE void tri_load(real tile[TILE_ROWS][TILE_COLUMNS], const int ti, const int tj,
                         const bool live, __global const real *in, const int n,
                         const bool transposed, const bool reversed) {
  EACH_COLUMN(c) {
    EACH_ROW(k) {
      const int i = TILE_ROW(ti, k), j = TILE_COLUMN(tj, c);
      real x = i == j ? 1.0 : 0.0;
      if (live && i < n && i >= j) {
        const int row = reversed ? n - 1 - i : i, column = reversed ? n - 1 - j : j;
        x = in[transposed ? column + row * n : row + column * n];
      }
      tile[k][c] = x;
    }
  }
}

/* The unknowns TILE_PAIR(pair, owner) and the next, by way of `column`, `next`, `right0` and
 * `right1` in local memory, and their products with the two columns from the rows below. */
SCL_INLINE_BARRIER void tri_step(real tile[TILE_ROWS][TILE_COLUMNS], real x[TILE_ROWS],
                                 const int ti, const int tj, const int pair, const int owner,
                                 __local real *column, __local real *next, __local real *right0,
                                 __local real *right1) {
  const int k = TILE_PAIR(pair, owner), first = TILE_ROW_PAIR(pair);
  const int row_lane = TILE_ROW_LANE(pair, owner);
  if (tj == owner) {
    EACH_ROW_PAIR(i) {
      if (i < first) continue;
      pair_put(column, TILE_ROW(ti, i), tile[i][pair], tile[i + 1][pair]);
      pair_put(next, TILE_ROW(ti, i), tile[i][pair + 1], tile[i + 1][pair + 1]);
    }
  }
  if (ti == row_lane) {
    right0[tj] = x[first];
    right1[tj] = x[first + 1];
  }
  TILE_BARRIER
  const real y0 = right0[tj] / column[k];
  const real y1 = fma(-column[k + 1], y0, right1[tj]) / next[k + 1];
  EACH_ROW_PAIR(i) {
    if (i < first) continue;
    const real2 c0 = pair_get(column, TILE_ROW(ti, i)), c1 = pair_get(next, TILE_ROW(ti, i));
    if (i > first || ti > row_lane) {
      x[i] = fma(-c1.x, y1, fma(-c0.x, y0, x[i]));
      x[i + 1] = fma(-c1.y, y1, fma(-c0.y, y0, x[i + 1]));
    } else if (ti == row_lane) {
      x[i] = y0;
      x[i + 1] = y1;
    }
  }
}

/* Writes the log density of the first right-hand side, from its solution and the logarithms of the
 * diagonal. */
SCL_INLINE_BARRIER void tri_density(const real x[TILE_ROWS], const int ti, const int lane,
                                    const bool live, const int side, const int n, const real logs,
                                    const int status, __local real *sums, __global real *out) {
  real squares = 0.0;
  EACH_ROW(i) {
    squares = side == 0 && TILE_ROW(ti, i) < n ? fma(x[i], x[i], squares) : squares;
  }
  sums[lane] = -0.5 * squares - logs;
  TILE_BARRIER
  if (live && lane == 0) {
    real sum = -0.5 * n * 1.837877066409345483561; /* log(2 pi) */
    for (int i = 0; i < TILE_LANES; i++) sum += sums[i];
    out[0] = status == 0 ? sum : NAN;
  }
}

/* The first zero of the diagonal, from 1 on, of all work-items; 0: none. */
SCL_INLINE int tri_status(__local const int *zeros) {
  int status = 0;
  for (int i = 0; i < TILE_LANES; i++) {
    const int zero = zeros[i];
    if (zero != 0 && (status == 0 || zero < status)) status = zero;
  }
  return status;
}

BATCH_ENTRY(BATCH_SIZES, BATCH_IN(in), BATCH_IN(b), BATCH_IN(means), BATCH_OUT) {
  __local real columns[2][2][BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local real right[2][2][BATCH_MATRICES][BATCH_Q];
  __local int zeros[BATCH_MATRICES][TILE_LANES];
  __local real sums[BATCH_MATRICES][TILE_LANES];
  const int item = get_local_id(0), slot = TILE_SLOT(item), lane = TILE_LANE(item);
  const int tj = lane / BATCH_P, ti = lane - tj * BATCH_P;
  const long matrix = (long)get_group_id(0) * BATCH_MATRICES + slot;
  const bool live = matrix < batch;
  const bool transposed = (flags & BATCH_TRANSPOSE) != 0;
  const bool reversed = ((flags & BATCH_UPPER) != 0) != transposed;
  const int side = (int)get_group_id(1) * BATCH_Q + tj;
  real tile[TILE_ROWS][TILE_COLUMNS], x[TILE_ROWS], logs = 0.0;
  int zero = 0; /* the first zero of the diagonal, from 1 on */
  in += in0 + matrix * step_in;
  tri_load(tile, ti, tj, live, in, n, transposed, reversed);
  for (int i = n - 1 - lane; i >= 0 && live; i -= TILE_LANES) {
    const real pivot = in[i + i * n];
    if (pivot == 0.0) zero = i + 1;
    if (flags & BATCH_MVN) logs += log(fabs(pivot));
  }
  zeros[slot][lane] = zero;
  EACH_ROW(k) {
    const int i = TILE_ROW(ti, k), row = reversed ? n - 1 - i : i;
    const bool there = live && side < count_b && i < n;
    x[k] = there ? b[b0 + matrix * step_b + row + (long)side * n] : 0.0;
    if (there && flags & BATCH_MEAN) x[k] -= means[means0 + matrix * step_means + row];
  }
  EACH_COLUMN_PAIR(pair) {
    for (int owner = 0; owner < BATCH_Q && TILE_PAIR(pair, owner) < n; owner++) {
      const int turn = owner & 1;
      tri_step(tile, x, ti, tj, pair, owner, columns[turn][0][slot], columns[turn][1][slot],
               right[turn][0][slot], right[turn][1][slot]);
    }
  }
  const int status = tri_status(zeros[slot]);
  out += out0 + matrix * step_out;
  if (flags & BATCH_MVN) { /* the same for all */
    tri_density(x, ti, lane, live, side, n, logs, status, sums[slot], out);
  } else if (live) {
    EACH_ROW(k) {
      const int i = TILE_ROW(ti, k), row = reversed ? n - 1 - i : i;
      if (i < n && side < count_b) out[row + (long)side * n] = status == 0 ? x[k] : NAN;
    }
  }
  if (live && get_group_id(1) == 0 && lane == 0) {
    batch_report(matrix, status, flags, statuses, any);
  }
}
