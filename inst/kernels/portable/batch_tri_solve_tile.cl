/* Triangular solutions and normal log densities, order 9 to 128: substitution, two unknowns and one
 * barrier a step, for Q right-hand sides (group number 1 says which). Upper triangles, and
 * transposes of lower ones, are turned end for end as they are read: what is solved is always
 * lower. */

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(b), BATCH_IN(means), BATCH_OUT) {
  BATCH_SIZES
  BATCH_OPERAND(in, a) BATCH_OPERAND(b, b) BATCH_OPERAND(means, c) BATCH_OPERAND(out, out)
  __local real columns[2][2][BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local real right[2][2][BATCH_MATRICES][Q];
  __local int zeros[BATCH_MATRICES][LANES];
  __local real sums[BATCH_MATRICES][LANES];
  TILE_PLACE
  const bool turned = (flags & BATCH_TRANSPOSE) != 0;
  const bool reversed = ((flags & BATCH_UPPER) != 0) != turned;
  const int own = (int)get_group_id(1) * Q + tj; /* right-hand side */
  real t[TILE_ROWS][TILE_COLUMNS], x[TILE_ROWS], logs = 0.0;
  int zero = 0; /* the first zero of the diagonal, from 1 on */
  in += in0 + matrix * step_in;
  EACH_COLUMN(c) {
    EACH_ROW(r) {
      int i = ROW(r), j = COLUMN(c);
      real v = i == j ? 1.0 : 0.0;
      if (live && i < n && i >= j) {
        int u = reversed ? n - 1 - i : i, w = reversed ? n - 1 - j : j;
        v = in[turned ? w + u * n : u + w * n];
      }
      t[r][c] = v;
    }
  }
  for (int i = n - 1 - lane; i >= 0 && live; i -= LANES) {
    real v = in[i + i * n];
    if (v == 0.0) zero = i + 1;
    if (flags & BATCH_MVN) logs += log(fabs(v));
  }
  zeros[mine][lane] = zero;
  EACH_ROW(r) {
    int i = ROW(r), u = reversed ? n - 1 - i : i;
    bool there = live && own < count_b && i < n;
    x[r] = there ? b[b0 + matrix * step_b + u + (long)own * n] : 0.0;
    if (there && flags & BATCH_MEAN) x[r] -= means[means0 + matrix * step_means + u];
  }
  EACH_COLUMN_PAIR(e) {
    const int a = ROW_PAIR(e);
    for (int q = 0; q < Q && PAIR(e, q) < n; q++) {
      const int k = PAIR(e, q);
      __local real *column = columns[q & 1][0][mine], *next = columns[q & 1][1][mine];
      if (tj == q) {
        EACH_ROW_PAIR(r) {
          if (r < a) continue;
          pair_put(column, ROW(r), t[r][e], t[r + 1][e]);
          pair_put(next, ROW(r), t[r][e + 1], t[r + 1][e + 1]);
        }
      }
      if (ti == ROW_LANE(e, q)) {
        right[q & 1][0][mine][tj] = x[a];
        right[q & 1][1][mine][tj] = x[a + 1];
      }
      TILE_BARRIER
      const real y = right[q & 1][0][mine][tj] / column[k];
      const real z = fma(-column[k + 1], y, right[q & 1][1][mine][tj]) / next[k + 1];
      EACH_ROW_PAIR(r) {
        if (r < a) continue;
        real2 u = pair_get(column, ROW(r)), v = pair_get(next, ROW(r));
        if (r > a || ti > ROW_LANE(e, q)) {
          x[r] = fma(-v.x, z, fma(-u.x, y, x[r]));
          x[r + 1] = fma(-v.y, z, fma(-u.y, y, x[r + 1]));
        } else if (ti == ROW_LANE(e, q)) {
          x[r] = y;
          x[r + 1] = z;
        }
      }
    }
  }
  int status = 0;
  for (int i = 0; i < LANES; i++) {
    int v = zeros[mine][i];
    if (v != 0 && (status == 0 || v < status)) status = v;
  }
  if (flags & BATCH_MVN) { /* uniform */
    real squares = 0.0;
    EACH_ROW(r) squares = own == 0 && ROW(r) < n ? fma(x[r], x[r], squares) : squares;
    sums[mine][lane] = -0.5 * squares - logs;
    TILE_BARRIER
    if (live && lane == 0) {
      real sum = -0.5 * n * 1.837877066409345483561; /* log(2 pi) */
      for (int i = 0; i < LANES; i++) sum += sums[mine][i];
      out[out0 + matrix * step_out] = status == 0 ? sum : NAN;
    }
  } else if (live) {
    EACH_ROW(r) {
      int i = ROW(r), u = reversed ? n - 1 - i : i;
      if (i < n && own < count_b) {
        out[out0 + matrix * step_out + u + (long)own * n] = status == 0 ? x[r] : NAN;
      }
    }
  }
  if (live && get_group_id(1) == 0) {
    TILE_STATUS(status)
  }
}
