/* Inverses, order 9 to 128: Gauss-Jordan elimination in place with row pivoting. Rows stay where
 * they are: row p, chosen at step k, becomes row k when the result is written, and column k becomes
 * column p. A step publishes column k and then the pivot row in local memory: two barriers.
 *
 * The columns of a work-item lie side by side (BLOCKED). Each step turns them by one register, so
 * that the column of the step is in register 0 and all steps are one body of code. Pivot rows are
 * divided by their pivots when they are written: until then they are subtracted like other rows. */

/* Numbers of the result that go through local memory at once: Q columns, a little apart. */
#define STAGE_ROWS (BATCH_N + 2 * P)
#define STAGE_PAIRS (Q * BATCH_N / 2)

BATCH_ENTRY(BATCH_IN(in), BATCH_OUT) {
  BATCH_SIZES BATCH_OPERAND(in, a) BATCH_OPERAND(out, out)
  __local tile_steps all_steps[BATCH_MATRICES];
  __local real stages[BATCH_MATRICES][Q * STAGE_ROWS] __attribute__((aligned(16)));
  __local int step_of[BATCH_MATRICES][BATCH_N];
  TILE_PLACE
  __local tile_steps *steps = &all_steps[mine];
  real t[TILE_ROWS][TILE_COLUMNS];
  int status = 0;
  uint used = 0; /* register rows that were pivots, or lie beyond the order */
  in += in0 + matrix * step_in;
  TILE_LOAD(in, BLOCKED, TILE_PAIRS(in0, step_in), ALL)
  EACH_ROW(r) used |= ROW(r) < n ? 0u : 1u << r;
  TILE_ROLLED for (int k = 0; k < n; k++) {
    const bool owner = tj == k / TILE_COLUMNS;
    if (owner) {
      TILE_PUBLISH_COLUMN
      EACH_ROW(r) t[r][0] = 0.0; /* where column k of the result comes to be: 0 + f */
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
    EACH_ROW(r) f[r] *= d;
    EACH_ROW(r) {
      if (ROW(r) == p) {
        EACH_COLUMN_PAIR(c) pair_put(steps->row, BLOCKED(c), t[r][c], t[r][c + 1]);
        t[r][0] = owner ? 1.0 : t[r][0];
        f[r] = 0.0;
        used |= 1u << r;
      }
    }
    if (status == 0) status = tile_status(pivot, k);
    if (lane == 0) {
      steps->chosen[k] = p;
      steps->pivots[k] = pivot;
    }
    TILE_BARRIER
    real first[TILE_ROWS];
    EACH_COLUMN_PAIR(c) {
      real2 v = pair_get(steps->row, BLOCKED(c));
      if (c == 0) {
        v.x = owner ? 1.0 : v.x;
        EACH_ROW(r) first[r] = fma(f[r], v.x, t[r][0]);
      } else {
        EACH_ROW(r) t[r][c - 1] = fma(f[r], v.x, t[r][c]);
      }
      EACH_ROW(r) t[r][c] = fma(f[r], v.y, t[r][c + 1]);
    }
    EACH_ROW(r) t[r][TILE_COLUMNS - 1] = first[r];
  }
  TILE_BARRIER
  for (int k = lane; k < n; k += LANES) step_of[mine][steps->chosen[k]] = k;
  TILE_BARRIER
  int to[TILE_ROWS];
  EACH_ROW(r) {
    to[r] = ROW(r) < n ? step_of[mine][ROW(r)] : ROW(r);
    const real scale = ROW(r) < n ? 1.0 / steps->pivots[to[r]] : 1.0;
    EACH_COLUMN(c) t[r][c] *= scale;
  }
  if (status != 0) {
    EACH_ROW(r) {
      EACH_COLUMN(c) t[r][c] = NAN;
    }
  }
  __local real *stage = stages[mine];
  out += out0 + matrix * step_out;
  const bool whole = TILE_PAIRS(out0, step_out) && n == BATCH_N;
  EACH_COLUMN(c) {
    EACH_ROW(r) stage[tj * STAGE_ROWS + to[r]] = t[r][c];
    TILE_BARRIER
    /* Register column c is Q columns of the result. */
    const int turned = c + n % TILE_COLUMNS;
    const int first = turned < TILE_COLUMNS ? turned : turned - TILE_COLUMNS;
    TILE_ROLLED for (int e = lane; e < STAGE_PAIRS && live; e += LANES) {
      const int u = e / (BATCH_N / 2), i = 2 * (e - u * (BATCH_N / 2));
      const int k = first + u * TILE_COLUMNS;
      const real2 v = pair_get(stage, u * STAGE_ROWS + i);
      if (whole) {
        STORE_PAIR(out + steps->chosen[k] * BATCH_N + i, __global, v.x, v.y);
      } else if (k < n) {
        tile_store(out, i, steps->chosen[k], n, false, v.x, v.y);
      }
    }
    TILE_BARRIER
  }
  if (!live) return;
  TILE_STATUS(status)
}
