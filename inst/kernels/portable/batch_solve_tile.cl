/* Solutions and determinants, order 9 to 128: elimination with row pivoting on the matrix and
 * BATCH_Q of its right-hand sides (group number 1 says which), then substitution backwards. Rows
 * stay where they are: the pivot row of step k holds unknown k. Ownership of rows: batch_tile.h.
 *
 *    tj 0 1 2 3 0 1 2 3 ..   0 1 2 3       Columns are cyclic (TILE_CYCLIC); work-item (ti, tj) has
 *     +---------------------+---------+    right-hand side tj. The column of a step is in register
 *     | A, BATCH_N columns  | B       |    0: after BATCH_Q steps all columns move on by one
 *     +---------------------+---------+    register, the first to the end. After a stage (half of
 *                                          the registers) the tile is narrower by the columns that
 * are done, which lie behind it then. What elimination makes zero is set to zero: later steps
 * change nothing there. */

/* Of each step: its pivot without its power of two, which goes to `column`, with the sign of
 * bringing its row to the front of the rows that are left. */
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

/* Moves the first `width` register columns on by one, the first to their end. */
SCL_INLINE_BARRIER void solve_move_on(real tile[TILE_ROWS][TILE_COLUMNS], const int width) {
  EACH_ROW(r) {
    const real first = tile[r][0];
    EACH_COLUMN(c) {
      if (c + 1 < width) tile[r][c] = tile[r][c + 1];
    }
    tile[r][width - 1] = first;
  }
}

/* Substitution backwards: unknown k times column k, from the rows above. */
SCL_INLINE_BARRIER void solve_back(real tile[TILE_ROWS][TILE_COLUMNS], real x[TILE_ROWS],
                                   const int n, const int ti, const int tj,
                                   __local tile_steps *steps,
                                   __local real (*all_right)[BATCH_MATRICES][BATCH_Q],
                                   const int slot) {
  TILE_UNROLL for (int e = TILE_COLUMNS - 1; e >= 0; e--) {
    const int c = TILE_COLUMNS - TILE_STAGE - e / TILE_STAGE * TILE_STAGE +
                  e % TILE_STAGE; /* where it lies after the stages */
    TILE_ROLLED for (int k = min(n, (e + 1) * BATCH_Q) - 1; k >= e * BATCH_Q; k--) {
      const int chosen = steps->chosen[k];
      __local real *column = k & 1 ? steps->column : steps->row;
      __local real *right = all_right[k & 1][slot];
      if (tj == k - e * BATCH_Q) {
        EACH_ROW_PAIR(r) pair_put(column, TILE_ROW(ti, r), tile[r][c], tile[r + 1][c]);
      }
      EACH_ROW(r) {
        if (TILE_ROW(ti, r) == chosen) right[tj] = x[r] *= steps->pivots[k];
      }
      TILE_BARRIER
      const real unknown = right[tj];
      EACH_ROW_PAIR(r) {
        const real2 pair = pair_get(column, TILE_ROW(ti, r));
        x[r] = fma(-pair.x, unknown, x[r]);
        x[r + 1] = fma(-pair.y, unknown, x[r + 1]);
      }
    }
  }
}

/* Writes the solutions, a right-hand side at a time. Row chosen[k] holds unknown k: local memory
 * puts them in order. */
SCL_INLINE_BARRIER void solve_store(const real x[TILE_ROWS], __global real *out, const int n,
                                    const int first, const int sides, const int ti, const int tj,
                                    const int lane, const int status, __local tile_steps *steps) {
  for (int q = 0; q < BATCH_Q; q++) {
    TILE_BARRIER
    if (tj == q) {
      EACH_ROW_PAIR(r) pair_put(steps->column, TILE_ROW(ti, r), x[r], x[r + 1]);
    }
    TILE_BARRIER
    for (int k = lane; k < n && first + q < sides; k += TILE_LANES) {
      out[k + (long)(first + q) * n] = status == 0 ? steps->column[steps->chosen[k]] : NAN;
    }
  }
}

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(b), BATCH_OUT) {
  const int batch = task.batch, n = task.n, count_b = task.count_b, flags = task.flags;
  const long in0 = task.a_offset, b0 = task.b_offset, out0 = task.out_offset;
  const int step_in = task.a_step, step_b = task.b_step, step_out = task.out_step;
  __local tile_steps all_steps[BATCH_MATRICES];
  __local real right[2][BATCH_MATRICES][BATCH_Q];
  const int item = (int)get_local_id(0), slot = item / TILE_LANES, lane = item - slot * TILE_LANES;
  const int tj = lane / BATCH_P, ti = lane - tj * BATCH_P;
  const long matrix = (long)get_group_id(0) * BATCH_MATRICES + slot;
  const bool live = matrix < batch;
  __local tile_steps *steps = &all_steps[slot];
  real tile[TILE_ROWS][TILE_COLUMNS], x[TILE_ROWS];
  const int first_side = (int)get_group_id(1) * BATCH_Q, side = first_side + tj;
  const bool exists = live && !(flags & BATCH_DET) && side < count_b; /* this right-hand side */
  int status = 0;
  uint used = 0; /* register rows that were pivots, or lie beyond the order */
  in += in0 + matrix * step_in;
  TILE_LOAD(tile, in, n, ti, tj, live, TILE_PAIRS(n, in0, step_in), TILE_CYCLIC, TILE_ALL)
  EACH_ROW(r) {
    const int row = TILE_ROW(ti, r);
    x[r] = row < n && exists ? b[b0 + matrix * step_b + row + (long)side * n] : 0.0;
    used |= row < n ? 0u : 1u << r;
  }
  TILE_UNROLL for (int done = 0; done < TILE_COLUMNS; done += TILE_STAGE) {
    const int width = TILE_COLUMNS - done;
    TILE_ROLLED for (int e = done; e < done + TILE_STAGE; e++) {
      TILE_ROLLED for (int k = e * BATCH_Q; k < min(n, (e + 1) * BATCH_Q); k++) {
        if (tj == k - e * BATCH_Q) {
          tile_publish_column(tile, ti, used, steps);
          EACH_ROW(r) tile[r][0] = used >> r & 1 ? tile[r][0] : 0.0;
        }
        TILE_BARRIER
        real factor[TILE_ROWS];
        tile_get_column(factor, steps->column, ti);
        const int chosen = tile_pivot(steps->keys);
        const real pivot = steps->column[chosen], scale = -1.0 / pivot;
        EACH_ROW(r) {
          if (TILE_ROW(ti, r) == chosen) {
            EACH_COLUMN_PAIR(c) {
              if (c < width) pair_put(steps->row, TILE_BLOCKED(tj, c), tile[r][c], tile[r][c + 1]);
            }
            right[0][slot][tj] = x[r];
            used |= 1u << r;
          }
        }
        EACH_ROW(r) factor[r] = used >> r & 1 ? 0.0 : factor[r] * scale; /* pivot rows stay */
        if (status == 0) status = tile_status(pivot, k);
        if (lane == 0) tile_put_step(steps, k, chosen, pivot);
        TILE_BARRIER
        const real unknown = right[0][slot][tj];
        EACH_ROW(r) x[r] = fma(factor[r], unknown, x[r]);
        EACH_COLUMN_PAIR(c) {
          if (c >= width) continue;
          const real2 row = pair_get(steps->row, TILE_BLOCKED(tj, c));
          EACH_ROW(r) {
            tile[r][c] = fma(factor[r], row.x, tile[r][c]);
            tile[r][c + 1] = fma(factor[r], row.y, tile[r][c + 1]);
          }
        }
      }
      solve_move_on(tile, width);
    }
  }
  TILE_BARRIER
  if (flags & BATCH_DET)
    split_pivots(steps, n, lane);
  else
    for (int k = lane; k < n; k += TILE_LANES) steps->pivots[k] = 1.0 / steps->pivots[k];
  TILE_BARRIER /* of both: POCL 3.1 crashes if there is one in the branch that ends early */
  if (flags & BATCH_DET) {
    if (live && lane == 0) solve_determinant(steps, n, batch, flags, out + out0 + matrix);
    return;
  }
  solve_back(tile, x, n, ti, tj, steps, right, slot);
  solve_store(x, out + out0 + matrix * step_out, n, first_side, live ? count_b : 0, ti, tj, lane,
              status, steps);
  if (live && lane == 0 && get_group_id(1) == 0)
    batch_report(matrix, status, flags, statuses, any);
}
