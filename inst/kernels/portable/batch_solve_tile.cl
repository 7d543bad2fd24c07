/* Solutions and determinants, order 9 to 128: elimination with row pivoting on the matrix and
 * BATCH_Q of its right-hand sides (group number 1 says which), then substitution backwards. Rows
 * stay where they are: the pivot row of step k holds unknown k. Layout and work split:
 * batch_tile.h.
 *
 *      tj: 0 1 2 3 0 1 2 3 ...   | 0 1 2 3      Columns are spread singly (TILE_SINGLE), and
 *        +-----------------------+--------+     work-item (ti, tj) has right-hand side tj. The
 *        | A, BATCH_N columns    | B      |     column of a step is in register 0: after BATCH_Q
 *        +-----------------------+--------+     steps all columns move on by one register, and
 *                                               after a stage the tile is narrower by those that
 * are done, which come to lie behind it. What elimination makes zero is set to zero: later steps
 * change nothing there. */

/* Of each step, at its own index: the pivot without its power of two, which goes to `column`,
 * with the sign of bringing its row to the front of the rows that are left. */
SCL_INLINE void split_pivots(__local tile_steps *steps, int n, int lane) {
  for (int k = lane; k < n; k += TILE_LANES) {
    const int row = steps->chosen[k];
    int power, above = row; /* rows above it that are left */
    for (int i = 0; i < k; i++) above -= steps->chosen[i] < row;
    const real part = pivot_part(steps->pivots[k], &power);
    steps->pivots[k] = above % 2 == 0 ? part : -part;
    steps->column[k] = power;
  }
}

/* The determinant of the matrix, by one work-item. */
SCL_INLINE void solve_determinant(__local const tile_steps *steps, const int n, const int batch,
                                  const int flags, __global real *out) {
  real product = 1.0, power = 0.0;
  for (int k = 0; k < n && product != 0.0; k++) {
    product *= steps->pivots[k];
    power += steps->column[k];
  }
  determinant_out(product, (int)power, batch, flags, out);
}

/* Step k of the elimination on the first `width` register columns, of which the first holds column
 * k where `owner`; x[] are the rows of the right-hand side. Returns the pivot. */
SCL_INLINE_BARRIER real solve_step(real tile[TILE_ROWS][TILE_COLUMNS], real x[TILE_ROWS],
                                   const int ti, const int tj, const int width, const bool owner,
                                   const int k, uint *used, __local tile_steps *steps,
                                   __local real *right) {
  if (owner) {
    tile_publish_column(tile, ti, tj, *used, steps);
    EACH_ROW(i) tile[i][0] = *used >> i & 1 ? tile[i][0] : 0.0;
  }
  TILE_BARRIER
  real factors[TILE_ROWS];
  tile_get_column(steps->column, ti, factors);
  const int chosen = tile_pivot(steps->keys);
  const real pivot = steps->column[chosen], inverse = -1.0 / pivot;
  EACH_ROW(i) {
    if (TILE_ROW(ti, i) == chosen) {
      EACH_COLUMN_PAIR(j) {
        if (j < width) pair_put(steps->row, TILE_BLOCKED(tj, j), tile[i][j], tile[i][j + 1]);
      }
      right[tj] = x[i];
      *used |= 1u << i;
    }
  }
  EACH_ROW(i) factors[i] = *used >> i & 1 ? 0.0 : factors[i] * inverse; /* pivot rows stay */
  if (ti == 0 && tj == 0) {
    steps->chosen[k] = chosen;
    steps->pivots[k] = pivot;
  }
  TILE_BARRIER
  const real y = right[tj];
  EACH_ROW(i) x[i] = fma(factors[i], y, x[i]);
  EACH_COLUMN_PAIR(j) {
    if (j >= width) continue;
    const real2 row = pair_get(steps->row, TILE_BLOCKED(tj, j));
    EACH_ROW(i) {
      tile[i][j] = fma(factors[i], row.x, tile[i][j]);
      tile[i][j + 1] = fma(factors[i], row.y, tile[i][j + 1]);
    }
  }
  return pivot;
}

/* Moves the first `width` register columns on by one. */
SCL_INLINE void solve_move_on(real tile[TILE_ROWS][TILE_COLUMNS], const int width) {
  EACH_ROW(i) {
    const real first = tile[i][0];
    EACH_COLUMN(j) {
      if (j + 1 < width) tile[i][j] = tile[i][j + 1];
    }
    tile[i][width - 1] = first;
  }
}

/* Step k backwards: unknown k, and its product with column k (in register column j where `owner`)
 * from the rows above. */
SCL_INLINE_BARRIER void solve_back(real tile[TILE_ROWS][TILE_COLUMNS], real x[TILE_ROWS],
                                   const int ti, const int tj, const int j, const bool owner,
                                   const int k, __local tile_steps *steps, __local real *right) {
  const int chosen = steps->chosen[k];
  __local real *column = k & 1 ? steps->column : steps->row;
  if (owner) {
    EACH_ROW_PAIR(i) pair_put(column, TILE_ROW(ti, i), tile[i][j], tile[i + 1][j]);
  }
  EACH_ROW(i) {
    if (TILE_ROW(ti, i) == chosen) right[tj] = x[i] *= steps->pivots[k];
  }
  TILE_BARRIER
  const real y = right[tj];
  EACH_ROW_PAIR(i) {
    const real2 pair = pair_get(column, TILE_ROW(ti, i));
    x[i] = fma(-pair.x, y, x[i]);
    x[i + 1] = fma(-pair.y, y, x[i + 1]);
  }
}

/* Writes the solutions, a right-hand side at a time. Row chosen[k] holds unknown k: in order
 * through local memory. */
SCL_INLINE_BARRIER void solve_store(const real x[TILE_ROWS], const int ti, const int tj,
                                    const int lane, const bool live, const int first, const int n,
                                    const int count_b, const int status, __local tile_steps *steps,
                                    __global real *out) {
  for (int owner = 0; owner < BATCH_Q; owner++) {
    const int side = first + owner;
    TILE_BARRIER
    if (tj == owner) {
      EACH_ROW_PAIR(i) pair_put(steps->column, TILE_ROW(ti, i), x[i], x[i + 1]);
    }
    TILE_BARRIER
    for (int k = lane; k < n && live && side < count_b; k += TILE_LANES) {
      out[k + (long)side * n] = status == 0 ? steps->column[steps->chosen[k]] : NAN;
    }
  }
}

BATCH_ENTRY(BATCH_SIZES, BATCH_IN(in), BATCH_IN(b), BATCH_OUT) {
  __local tile_steps all_steps[BATCH_MATRICES];
  __local real right[2][BATCH_MATRICES][BATCH_Q];
  const int item = get_local_id(0), slot = TILE_SLOT(item), lane = TILE_LANE(item);
  const int tj = lane / BATCH_P, ti = lane - tj * BATCH_P;
  const long matrix = (long)get_group_id(0) * BATCH_MATRICES + slot;
  const bool live = matrix < batch;
  __local tile_steps *steps = &all_steps[slot];
  real tile[TILE_ROWS][TILE_COLUMNS], x[TILE_ROWS];
  const int first = (int)get_group_id(1) * BATCH_Q, side = first + tj;
  int status = 0;
  uint used = 0; /* register rows that were pivots, or lie beyond the order */
  tile_load_all(tile, ti, tj, live, in + in0 + matrix * step_in, n, tile_pairs(n, in0, step_in),
                SINGLY, false);
  EACH_ROW(i) {
    const int row = TILE_ROW(ti, i);
    const bool there = live && !(flags & BATCH_DET) && side < count_b && row < n;
    x[i] = there ? b[b0 + matrix * step_b + row + (long)side * n] : 0.0;
    used |= row < n ? 0u : 1u << i;
  }
  TILE_UNROLL for (int begin = 0; begin < TILE_COLUMNS; begin += TILE_STAGE) {
    const int width = TILE_COLUMNS - begin;
    TILE_ROLLED for (int now = begin; now < begin + TILE_STAGE; now++) {
      TILE_ROLLED for (int k = now * BATCH_Q; k < min(n, (now + 1) * BATCH_Q); k++) {
        const bool owner = tj == k - now * BATCH_Q;
        const real pivot =
            solve_step(tile, x, ti, tj, width, owner, k, &used, steps, right[0][slot]);
        if (status == 0) status = tile_status(pivot, k);
      }
      solve_move_on(tile, width);
    }
  }
  TILE_BARRIER
  if (flags & BATCH_DET) {
    split_pivots(steps, n, lane);
  } else {
    for (int k = lane; k < n; k += TILE_LANES) steps->pivots[k] = 1.0 / steps->pivots[k];
  }
  TILE_BARRIER /* of both: POCL 3.1 crashes if there is one in the branch that ends early */
      if (flags & BATCH_DET) {
    if (live && lane == 0) solve_determinant(steps, n, batch, flags, out + out0 + matrix);
    return;
  }
  TILE_UNROLL for (int now = TILE_COLUMNS - 1; now >= 0; now--) {
    const int done = now / TILE_STAGE * TILE_STAGE; /* where it came to lie: */
    const int j = TILE_COLUMNS - TILE_STAGE - done + (now - done);
    TILE_ROLLED for (int k = min(n, (now + 1) * BATCH_Q) - 1; k >= now * BATCH_Q; k--) {
      solve_back(tile, x, ti, tj, j, tj == k - now * BATCH_Q, k, steps, right[k & 1][slot]);
    }
  }
  solve_store(x, ti, tj, lane, live, first, n, count_b, status, steps,
              out + out0 + matrix * step_out);
  if (live && get_group_id(1) == 0 && lane == 0) {
    batch_report(matrix, status, flags, statuses, any);
  }
}
