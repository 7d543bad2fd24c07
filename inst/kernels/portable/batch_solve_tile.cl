/* Solutions and determinants, order 9 to 128: elimination with row pivoting on the matrix and Q of
 * its right-hand sides (group number 1 says which), then substitution backwards. Rows stay where
 * they are: the pivot row of step k holds unknown k.
 *
 * Columns are spread singly. The column of a step is in register 0: after Q steps all columns turn
 * by one register, and after a stage the tile is narrower by those that are done, which come to
 * lie behind it. What elimination makes zero is set to zero: later steps change nothing there. */

/* Of each step, to its own place: the pivot without its power of two, which goes to `column`, with
 * the sign of bringing row p to the front of the rows that are left. */
SCL_INLINE void split_pivots(__local tile_steps *steps, int n, int lane) {
  for (int k = lane; k < n; k += LANES) {
    const int p = steps->chosen[k];
    int power, above = p; /* rows above p that are left */
    for (int i = 0; i < k; i++) above -= steps->chosen[i] < p;
    const real part = pivot_part(steps->pivots[k], &power);
    steps->pivots[k] = above % 2 == 0 ? part : -part;
    steps->column[k] = power;
  }
}

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(b), BATCH_OUT) {
  BATCH_SIZES BATCH_OPERAND(in, a) BATCH_OPERAND(b, b) BATCH_OPERAND(out, out)
  __local tile_steps all_steps[BATCH_MATRICES];
  __local real right[2][BATCH_MATRICES][Q];
  TILE_PLACE
  __local tile_steps *steps = &all_steps[mine];
  real t[TILE_ROWS][TILE_COLUMNS], x[TILE_ROWS];
  const int own = (int)get_group_id(1) * Q + tj; /* right-hand side */
  int status = 0;
  uint used = 0; /* register rows that were pivots, or lie beyond the order */
  in += in0 + matrix * step_in;
  TILE_LOAD(in, SINGLE, TILE_PAIRS(in0, step_in), ALL)
  EACH_ROW(r) {
    bool there = live && !(flags & BATCH_DET) && own < count_b && ROW(r) < n;
    x[r] = there ? b[b0 + matrix * step_b + ROW(r) + (long)own * n] : 0.0;
    used |= ROW(r) < n ? 0u : 1u << r;
  }
  TILE_UNROLL for (int s = 0; s < TILE_COLUMNS; s += STAGE) {
    const int width = TILE_COLUMNS - s;
    TILE_ROLLED for (int e = s; e < s + STAGE; e++) {
      TILE_ROLLED for (int k = e * Q; k < min(n, (e + 1) * Q); k++) {
        if (tj == k - e * Q) {
          TILE_PUBLISH_COLUMN
          EACH_ROW(r) t[r][0] = used >> r & 1 ? t[r][0] : 0.0;
        }
        TILE_BARRIER
        real f[TILE_ROWS];
        EACH_ROW_PAIR(r) {
          const real2 v = pair_get(steps->column, ROW(r));
          f[r] = v.x;
          f[r + 1] = v.y;
        }
        const int p = tile_pivot(steps->keys);
        const real pivot = steps->column[p], d = -1.0 / pivot;
        EACH_ROW(r) {
          if (ROW(r) == p) {
            EACH_COLUMN_PAIR(c) {
              if (c < width) pair_put(steps->row, BLOCKED(c), t[r][c], t[r][c + 1]);
            }
            right[0][mine][tj] = x[r];
            used |= 1u << r;
          }
        }
        EACH_ROW(r) f[r] = used >> r & 1 ? 0.0 : f[r] * d; /* rows that were pivots stay */
        if (status == 0) status = tile_status(pivot, k);
        if (lane == 0) {
          steps->chosen[k] = p;
          steps->pivots[k] = pivot;
        }
        TILE_BARRIER
        const real y = right[0][mine][tj];
        EACH_ROW(r) x[r] = fma(f[r], y, x[r]);
        EACH_COLUMN_PAIR(c) {
          if (c >= width) continue;
          const real2 v = pair_get(steps->row, BLOCKED(c));
          EACH_ROW(r) {
            t[r][c] = fma(f[r], v.x, t[r][c]);
            t[r][c + 1] = fma(f[r], v.y, t[r][c + 1]);
          }
        }
      }
      EACH_ROW(r) {
        const real first = t[r][0];
        EACH_COLUMN(c) {
          if (c + 1 < width) t[r][c] = t[r][c + 1];
        }
        t[r][width - 1] = first;
      }
    }
  }
  TILE_BARRIER
  if (flags & BATCH_DET) {
    split_pivots(steps, n, lane);
  } else {
    for (int k = lane; k < n; k += LANES) steps->pivots[k] = 1.0 / steps->pivots[k];
  }
  TILE_BARRIER /* of both: POCL 3.1 crashes if there is one in the branch that ends early */
  if (flags & BATCH_DET) {
    if (live && lane == 0) {
      real product = 1.0, power = 0.0;
      for (int k = 0; k < n && product != 0.0; k++) {
        product *= steps->pivots[k];
        power += steps->column[k];
      }
      determinant_out(product, (int)power, batch, flags, out + out0 + matrix);
    }
    return;
  }
  TILE_UNROLL for (int e = TILE_COLUMNS - 1; e >= 0; e--) {
    const int c = TILE_COLUMNS - STAGE - e / STAGE * STAGE + e % STAGE; /* where it came to lie */
    TILE_ROLLED for (int k = min(n, (e + 1) * Q) - 1; k >= e * Q; k--) {
      const int p = steps->chosen[k];
      __local real *column = k & 1 ? steps->column : steps->row;
      if (tj == k - e * Q) {
        EACH_ROW_PAIR(r) pair_put(column, ROW(r), t[r][c], t[r + 1][c]);
      }
      EACH_ROW(r) {
        if (ROW(r) == p) right[k & 1][mine][tj] = x[r] *= steps->pivots[k];
      }
      TILE_BARRIER
      const real y = right[k & 1][mine][tj];
      EACH_ROW_PAIR(r) {
        const real2 v = pair_get(column, ROW(r));
        x[r] = fma(-v.x, y, x[r]);
        x[r + 1] = fma(-v.y, y, x[r + 1]);
      }
    }
  }
  /* Row chosen[k] holds unknown k: in order through local memory, a right-hand side at a time. */
  out += out0 + matrix * step_out;
  for (int q = 0; q < Q; q++) {
    const int side = (int)get_group_id(1) * Q + q;
    TILE_BARRIER
    if (tj == q) {
      EACH_ROW_PAIR(r) pair_put(steps->column, ROW(r), x[r], x[r + 1]);
    }
    TILE_BARRIER
    for (int k = lane; k < n && live && side < count_b; k += LANES) {
      out[k + (long)side * n] = status == 0 ? steps->column[steps->chosen[k]] : NAN;
    }
  }
  if (live && get_group_id(1) == 0) {
    TILE_STATUS(status)
  }
}
