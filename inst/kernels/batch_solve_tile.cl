/* Solutions and determinants, order 9 to 128: elimination with row pivoting on the matrix and Q of
 * its right-hand sides (group number 1 says which), then substitution backwards. Rows stay where
 * they are: the pivot row of step k holds unknown k.
 *
 * Columns are spread singly. The column of a step is in register 0: after Q steps all columns turn
 * by one register, and after a stage the tile is narrower by those that are done, which come to lie
 * behind it. What elimination makes zero is set to zero, so that later steps change nothing there. */

#define STAGES (TILE_COLUMNS / STAGE)

BATCH_ENTRY(BATCH_SIZES, BATCH_IN(in), BATCH_IN(b), BATCH_OUT) {
  __local double columns[2][BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local double rows[BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local double right[2][BATCH_MATRICES][Q], scales[BATCH_MATRICES][BATCH_N];
  __local uint keys[BATCH_MATRICES][P] __attribute__((aligned(16)));
  __local int chosen[BATCH_MATRICES][BATCH_N];
  TILE_PLACE
  double t[TILE_ROWS][TILE_COLUMNS], x[TILE_ROWS], product = 1.0;
  const int own = (int)get_group_id(1) * Q + tj; /* right-hand side */
  int status = 0, power = 0;
  ulong taken[2] = {0, 0}; /* rows that were pivots */
  uint used = 0;           /* register rows that were pivots, or lie beyond the order */
  in += in0 + matrix * step_in;
  TILE_LOAD(in, SINGLE, TILE_PAIRS(in0, step_in), ALL)
  EACH_ROW(r) {
    bool there = live && !(flags & BATCH_DET) && own < count_b && ROW(r) < n;
    x[r] = there ? b[b0 + matrix * step_b + ROW(r) + (long)own * n] : 0.0;
    used |= ROW(r) < n ? 0u : 1u << r;
  }
  TILE_UNROLL for (int stage = 0; stage < STAGES; stage++) {
    const int width = TILE_COLUMNS - stage * STAGE;
    TILE_ROLLED for (int k = stage * STAGE * Q; k < (stage + 1) * STAGE * Q; k++) {
      if (k < n) { /* the same for all */
        __local double *column = columns[k & 1][mine], *row = rows[mine] + tj * TILE_COLUMNS;
        if (tj == k % Q) {
          TILE_PUBLISH_COLUMN(column, keys[mine])
          EACH_ROW(r) t[r][0] = used >> r & 1 ? t[r][0] : 0.0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int p = tile_pivot(keys[mine]);
        const double pivot = column[p], d = 1.0 / pivot;
        if (status == 0) status = tile_status(pivot, k);
        EACH_ROW(r) {
          if (ROW(r) == p) {
            EACH_COLUMN_PAIR(c) {
              if (c < width) pair_put(row, c, t[r][c], t[r][c + 1]);
            }
            right[0][mine][tj] = x[r];
            used |= 1u << r;
          }
        }
        double f[TILE_ROWS]; /* rows that were pivots stay */
        EACH_ROW_PAIR(r) {
          double2 v = pair_get(column, ROW(r));
          f[r] = used >> r & 1 ? 0.0 : v.x * -d;
          f[r + 1] = used >> (r + 1) & 1 ? 0.0 : v.y * -d;
        }
        if (lane == 0) {
          chosen[mine][k] = p;
          scales[mine][k] = d;
        }
        if (flags & BATCH_DET) {
          /* Rows above p that are left make the sign of bringing row p to the front. */
          const ulong above = p < 64 ? (1UL << p) - 1 : ~0UL, rest = (1UL << (p & 63)) - 1;
          int left = p - (int)popcount(taken[0] & above);
          if (p >= 64) left -= (int)popcount(taken[1] & rest);
          if (product != 0.0) product = determinant_times(product, pivot, &power);
          if (left & 1) product = -product;
          if (p < 64) {
            taken[0] |= 1UL << p;
          } else {
            taken[1] |= 1UL << (p - 64);
          }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const double y = right[0][mine][tj];
        EACH_ROW(r) x[r] = fma(f[r], y, x[r]);
        EACH_COLUMN_PAIR(c) {
          if (c >= width) continue;
          double2 v = pair_get(row, c);
          EACH_ROW(r) {
            t[r][c] = fma(f[r], v.x, t[r][c]);
            t[r][c + 1] = fma(f[r], v.y, t[r][c + 1]);
          }
        }
      }
      if (k % Q == Q - 1) {
        EACH_ROW(r) {
          const double first = t[r][0];
          EACH_COLUMN(c) {
            if (c + 1 < width) t[r][c] = t[r][c + 1];
          }
          t[r][width - 1] = first;
        }
      }
    }
  }
  if (flags & BATCH_DET) {
    if (live && lane == 0) determinant_out(product, power, batch, flags, out + out0 + matrix);
    return;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  TILE_UNROLL for (int e = TILE_COLUMNS - 1; e >= 0; e--) {
    const int c = TILE_COLUMNS - STAGE - e / STAGE * STAGE + e % STAGE; /* where it came to lie */
    TILE_ROLLED for (int q = min(Q, n - e * Q) - 1; q >= 0; q--) {
      const int k = e * Q + q, p = chosen[mine][k];
      __local double *column = columns[k & 1][mine];
      if (tj == q) {
        EACH_ROW_PAIR(r) pair_put(column, ROW(r), t[r][c], t[r + 1][c]);
      }
      EACH_ROW(r) {
        if (ROW(r) == p) right[k & 1][mine][tj] = x[r] *= scales[mine][k];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const double y = right[k & 1][mine][tj];
      EACH_ROW_PAIR(r) {
        double2 v = pair_get(column, ROW(r));
        x[r] = fma(-v.x, y, x[r]);
        x[r + 1] = fma(-v.y, y, x[r + 1]);
      }
    }
  }
  /* Row chosen[k] holds unknown k: in order through local memory, one right-hand side each. */
  __local double *ordered = &columns[0][mine][0];
  out += out0 + matrix * step_out;
  for (int q = 0; q < Q; q++) {
    const int side = (int)get_group_id(1) * Q + q;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (tj == q) {
      EACH_ROW_PAIR(r) pair_put(ordered, ROW(r), x[r], x[r + 1]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = lane; k < n && live && side < count_b; k += LANES) {
      out[k + (long)side * n] = status == 0 ? ordered[chosen[mine][k]] : NAN;
    }
  }
  if (live && get_group_id(1) == 0) {
    TILE_STATUS(status)
  }
}
