/* Triangular solutions and normal log densities, order 9 to 128: substitution, two unknowns and one
 * barrier a step, for BATCH_Q right-hand sides (group number 1 says which). Upper triangles, and
 * transposes of lower ones, are read in reverse order, so that the system is always lower.
 *
 *     triangle             x
 *   +------------------+  +-------+     Work-item (ti, tj) has its rows (batch_tile.h) of the
 *   | k k+1            |  |       |     triangle, and of right-hand side tj. Step k: those that
 *   | | |              |  | k     |     have columns k and k + 1 publish them in local memory,
 *   | v v              |  | k + 1 |     those that have rows k and k + 1 their part of x. Then all
 *   |  local memory    |  | rows  |     compute both unknowns, and subtract the two columns times
 *   |                  |  | below |     the unknowns from their rows below.
 *   +------------------+  +-------+ */

/* The number of pivots that a work-item checks. */
#define TRI_PIVOTS ((BATCH_N + TILE_LANES - 1) / TILE_LANES)

/* Reads the matrix into the tile, with an identity beyond the order. Element (i, j) of what is
 * solved is `down` i + `right` j numbers from its first: without a choice of addresses the loads
 * need not wait for each other. */
SCL_INLINE_BARRIER void tri_load(real tile[TILE_ROWS][TILE_COLUMNS], __global const real *first,
                                 const int n, const int down, const int right, const int ti,
                                 const int tj, const bool live) {
  EACH_COLUMN(c) {
    EACH_ROW(r) {
      const int i = TILE_ROW(ti, r), j = TILE_COLUMN(tj, c);
      real x = i == j ? 1.0 : 0.0;
      if (live && i < n && i >= j) x = first[down * i + right * j];
      tile[r][c] = x;
    }
  }
}

/* The pivots of this work-item, 1 beyond the order. */
SCL_INLINE_BARRIER void tri_load_pivots(real pivots[TRI_PIVOTS], __global const real *in,
                                        const int n, const int lane, const bool live) {
  SCL_UNROLL
  for (int k = 0; k < TRI_PIVOTS; k++) {
    const int i = lane + k * TILE_LANES;
    pivots[k] = live && i < n ? in[i + i * n] : 1.0;
  }
}

/* The first zero among a work-item's pivots: its row, from 1 on; 0: none. */
SCL_INLINE_BARRIER int tri_first_zero(const real pivots[TRI_PIVOTS], const int lane) {
  int zero = 0;
  SCL_UNROLL
  for (int k = TRI_PIVOTS - 1; k >= 0; k--) {
    if (pivots[k] == 0.0) zero = lane + k * TILE_LANES + 1;
  }
  return zero;
}

/* Rows of a right-hand side, or of its mean; zero beyond the order. */
SCL_INLINE_BARRIER void tri_load_side(real x[TILE_ROWS], __global const real *from, const int n,
                                      const int ti, const bool reversed, const bool exists) {
  EACH_ROW(r) {
    const int i = TILE_ROW(ti, r), row = reversed ? n - 1 - i : i;
    x[r] = 0.0;
    if (exists && i < n) x[r] = from[row];
  }
}

/* The first zero of the diagonal, from 1 on, of those that the work-items found; 0: none. */
SCL_INLINE int tri_status(__local const int *zeros) {
  int status = 0;
  for (int i = 0; i < TILE_LANES; i++) {
    const int zero = zeros[i];
    if (zero != 0 && (status == 0 || zero < status)) status = zero;
  }
  return status;
}

/* The log density, from the work-items' terms. */
SCL_INLINE real tri_density(__local const real *terms, const int n) {
  real sum = -0.5 * n * 1.837877066409345483561; /* log(2 pi) */
  for (int i = 0; i < TILE_LANES; i++) sum += terms[i];
  return sum;
}

/* Writes this work-item's rows of a solution. */
SCL_INLINE_BARRIER void tri_store(const real x[TILE_ROWS], __global real *out, const int n,
                                  const int ti, const bool reversed, const int status) {
  EACH_ROW(r) {
    const int i = TILE_ROW(ti, r), row = reversed ? n - 1 - i : i;
    if (i < n) out[row] = status == 0 ? x[r] : NAN;
  }
}

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(b), BATCH_IN(means), BATCH_OUT) {
  const int batch = task.batch, n = task.n, count_b = task.count_b, flags = task.flags;
  const long in0 = task.a_offset, b0 = task.b_offset, means0 = task.c_offset;
  const int step_in = task.a_step, step_b = task.b_step, step_means = task.c_step;
  __local real columns[2][2][BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local real right[2][2][BATCH_MATRICES][BATCH_Q];
  __local int zeros[BATCH_MATRICES][TILE_LANES];
  __local real terms[BATCH_MATRICES][TILE_LANES];
  const int item = (int)get_local_id(0), slot = item / TILE_LANES, lane = item - slot * TILE_LANES;
  const int tj = lane / BATCH_P, ti = lane - tj * BATCH_P;
  const long matrix = (long)get_group_id(0) * BATCH_MATRICES + slot;
  const bool live = matrix < batch;
  const bool transposed = (flags & BATCH_TRANSPOSE) != 0;
  const bool reversed = ((flags & BATCH_UPPER) != 0) != transposed;
  const int side = (int)get_group_id(1) * BATCH_Q + tj; /* right-hand side */
  real tile[TILE_ROWS][TILE_COLUMNS], x[TILE_ROWS], logs = 0.0;
  /* Everything is loaded before anything is used, so that one wait is enough. */
  in += in0 + matrix * step_in;
  const int end = reversed ? -1 : 1; /* from which the matrix is read */
  const bool has_side = live && side < count_b;
  real pivots[TRI_PIVOTS];
  tri_load_pivots(pivots, in, n, lane, live);
  tri_load_side(x, b + b0 + matrix * step_b + (long)side * n, n, ti, reversed, has_side);
  tri_load(tile, reversed ? in + (n - 1) * (n + 1) : in, n, transposed ? end * n : end,
           transposed ? end : end * n, ti, tj, live);
  if (flags & BATCH_MEAN) { /* uniform */
    real mean[TILE_ROWS];
    tri_load_side(mean, means + means0 + matrix * step_means, n, ti, reversed, has_side);
    EACH_ROW(r) x[r] -= mean[r];
  }
  zeros[slot][lane] = tri_first_zero(pivots, lane);
  if (flags & BATCH_MVN) /* uniform */
    for (int k = 0; k < TRI_PIVOTS; k++) logs += log(fabs(pivots[k]));
  EACH_COLUMN_PAIR(c) {
    const int first = TILE_ROW_PAIR(c);
    for (int owner = 0; owner < BATCH_Q && TILE_PAIR(c, owner) < n; owner++) {
      const int k = TILE_PAIR(c, owner), buffer = owner & 1;
      __local real *column = columns[buffer][0][slot], *next = columns[buffer][1][slot];
      if (tj == owner) {
        EACH_ROW_PAIR(r) {
          if (r < first) continue;
          pair_put(column, TILE_ROW(ti, r), tile[r][c], tile[r + 1][c]);
          pair_put(next, TILE_ROW(ti, r), tile[r][c + 1], tile[r + 1][c + 1]);
        }
      }
      if (ti == TILE_ROW_LANE(c, owner)) {
        right[buffer][0][slot][tj] = x[first];
        right[buffer][1][slot][tj] = x[first + 1];
      }
      TILE_BARRIER
      const real x0 = right[buffer][0][slot][tj] / column[k];
      const real x1 = fma(-column[k + 1], x0, right[buffer][1][slot][tj]) / next[k + 1];
      EACH_ROW_PAIR(r) {
        if (r < first) continue;
        const real2 pair0 = pair_get(column, TILE_ROW(ti, r));
        const real2 pair1 = pair_get(next, TILE_ROW(ti, r));
        if (r > first || ti > TILE_ROW_LANE(c, owner)) {
          x[r] = fma(-pair1.x, x1, fma(-pair0.x, x0, x[r]));
          x[r + 1] = fma(-pair1.y, x1, fma(-pair0.y, x0, x[r + 1]));
        } else if (ti == TILE_ROW_LANE(c, owner)) {
          x[r] = x0;
          x[r + 1] = x1;
        }
      }
    }
  }
  const int status = tri_status(zeros[slot]);
  out += task.out_offset + (long)task.out_step * matrix;
  if (flags & BATCH_MVN) { /* uniform */
    real squares = 0.0;
    EACH_ROW(r) squares = side == 0 && TILE_ROW(ti, r) < n ? fma(x[r], x[r], squares) : squares;
    terms[slot][lane] = -0.5 * squares - logs;
    TILE_BARRIER
    if (live && lane == 0) *out = status == 0 ? tri_density(terms[slot], n) : NAN;
  } else if (has_side) {
    tri_store(x, out + (long)side * n, n, ti, reversed, status);
  }
  if (live && lane == 0 && get_group_id(1) == 0) batch_report(matrix, status, flags, statuses, any);
}
