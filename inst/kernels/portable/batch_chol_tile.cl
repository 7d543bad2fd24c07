/* Cholesky factors, order 9 to 128, from the lower triangle: right-looking, two columns and one
 * barrier a step. The columns stay as they are subtracted; they are divided by the roots of their
 * pivots when written. Register tiles above the diagonal are never touched, and what else lies
 * above it holds numbers without meaning that reach nothing below. */

/* Whether the pairs of registers (r, c) have elements on or below the diagonal, and whether all of
 * them lie below it. */
#define REACHES(r, c) ((r) / 2 * 2 * P + 2 * P - 1 >= (c) / 2 * 2 * Q)
#define BELOW(r, c) ((r) / 2 * 2 * P > (c) / 2 * 2 * Q + 2 * Q - 1)

/* The factor or its transpose, with what store(i, j, x, y) does with the elements (i, j) and
 * (i + 1, j). */
#define STORE_FACTOR(store)                                                                        \
  EACH_COLUMN_PAIR(c) {                                                                            \
    const int j = COLUMN(c);                                                                       \
    real2 scale = pair_get(scales[mine], j);                                                       \
    if (status != 0) scale = (real2)(1.0, 1.0);                                                    \
    EACH_ROW_PAIR(r) {                                                                             \
      const int i = ROW(r);                                                                        \
      const bool here = REACHES(r, c) && (BELOW(r, c) || i >= j);                                  \
      const bool last = REACHES(r, c) && (BELOW(r, c) || i > j);                                   \
      const real v00 = here ? t[r][c] * scale.x : above;                                           \
      const real v10 = here ? t[r + 1][c] * scale.x : above;                                       \
      const real v01 = last ? t[r][c + 1] * scale.y : above;                                       \
      const real v11 = here ? t[r + 1][c + 1] * scale.y : above;                                   \
      store(upper ? j : i, upper ? i : j, v00, upper ? v01 : v10);                                 \
      store(upper ? j : i, (upper ? i : j) + 1, upper ? v10 : v01, v11);                           \
    }                                                                                              \
  }

BATCH_ENTRY(BATCH_IN(in), BATCH_OUT) {
  BATCH_SIZES BATCH_OPERAND(in, a) BATCH_OPERAND(out, out)
  __local real columns[2][2][BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local real scales[BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  TILE_PLACE
  real t[TILE_ROWS][TILE_COLUMNS];
  int status = 0;
  in += in0 + matrix * step_in;
  const bool pairs_in = TILE_PAIRS(in0, step_in), pairs_out = TILE_PAIRS(out0, step_out);
  TILE_LOAD(in, COLUMN, pairs_in, REACHES)
  EACH_COLUMN_PAIR(b) {
    const int a = ROW_PAIR(b);
    for (int q = 0; q < Q && PAIR(b, q) < n; q++) {
      const int k = PAIR(b, q);
      __local real *column = columns[q & 1][0][mine], *next = columns[q & 1][1][mine];
      if (tj == q) {
        EACH_ROW_PAIR(r) {
          if (r < a) continue;
          pair_put(column, ROW(r), t[r][b], t[r + 1][b]);
          pair_put(next, ROW(r), t[r][b + 1], t[r + 1][b + 1]);
        }
      }
      TILE_BARRIER
      const real d = column[k], r0 = rsqrt(d), i0 = r0 * r0, g = column[k + 1] * i0;
      const real d1 = fma(-column[k + 1], g, next[k + 1]), r1 = rsqrt(d1), i1 = r1 * r1;
      if (status == 0) status = !(fabs(d) < INFINITY) ? BATCH_NONFINITE : d > 0.0 ? 0 : k + 1;
      if (status == 0) status = !(fabs(d1) < INFINITY) ? BATCH_NONFINITE : d1 > 0.0 ? 0 : k + 2;
      if (lane == 0) pair_put(scales[mine], k, r0, r1);
      real x[TILE_ROWS], y[TILE_ROWS]; /* the two columns, the second without the first */
      EACH_ROW_PAIR(r) {
        if (r < a) continue;
        real2 u = pair_get(column, ROW(r)), v = pair_get(next, ROW(r));
        x[r] = u.x;
        x[r + 1] = u.y;
        y[r] = fma(-u.x, g, v.x);
        y[r + 1] = fma(-u.y, g, v.y);
      }
      EACH_COLUMN_PAIR(c) {
        if (c < b || (c == b && tj <= q)) continue;
        real2 u = pair_get(column, COLUMN(c)), v = pair_get(next, COLUMN(c));
        v = fma(-u, g, v) * i1;
        u = u * i0;
        EACH_ROW(r) {
          if (r < a || !REACHES(r, c)) continue;
          t[r][c] = fma(-x[r], u.x, fma(-y[r], v.x, t[r][c]));
          t[r][c + 1] = fma(-x[r], u.y, fma(-y[r], v.y, t[r][c + 1]));
        }
      }
      if (tj == q) {
        EACH_ROW(r) {
          if (r >= a) t[r][b + 1] = y[r];
        }
      }
    }
  }
  TILE_BARRIER
  if (!live) return;
  out += out0 + matrix * step_out;
  if (status != 0) {
    EACH_ROW(r) {
      EACH_COLUMN(c) t[r][c] = NAN;
    }
  }
  const bool upper = (flags & BATCH_UPPER) != 0;
  const real above = status == 0 ? 0.0 : NAN;
#define STORE_WHOLE(i, j, x, y) STORE_PAIR(out + (i) + (j) * BATCH_N, __global, x, y)
#define STORE_PART(i, j, x, y) tile_store(out, i, j, n, pairs_out, x, y)
  if (pairs_out && n == BATCH_N) {
    STORE_FACTOR(STORE_WHOLE)
  } else {
    STORE_FACTOR(STORE_PART)
  }
  TILE_STATUS(status)
}
