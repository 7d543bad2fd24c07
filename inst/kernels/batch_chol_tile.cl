/* Cholesky factors, order 9 to 128, from the lower triangle: right-looking, two columns and one
 * barrier a step. The columns stay as they are subtracted; they are divided by the roots of their
 * pivots when written. Register tiles above the diagonal are never touched, and what else lies
 * above it holds numbers without meaning that reach nothing below. */

/* Whether the register tile of pairs (r, c) has elements on or below the diagonal. */
#define REACHES(r, c) ((r) / 2 * 2 * P + 2 * P - 1 >= (c) / 2 * 2 * Q)

__attribute__((reqd_work_group_size(BATCH_ITEMS, 1, 1))) __kernel void
BATCH_KERNEL(const int batch, const int n, const int k_, const int flags,
             __global const double *in, const long in0, const int step_in, __global double *out,
             const long out0, const int step_out, __global double *statuses, __global int *any) {
  __local double columns[2][2][BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local double scales[BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  TILE_PLACE
  double t[TILE_ROWS][TILE_COLUMNS];
  int status = 0;
  in += in0 + matrix * step_in;
  const bool pairs_in = TILE_PAIRS(in0, step_in), pairs_out = TILE_PAIRS(out0, step_out);
  EACH_COLUMN(c) {
    EACH_ROW_PAIR(r) {
      int i = ROW(r), j = COLUMN(c);
      bool reaches = REACHES(r, c) && i + 1 >= j;
      double2 v = tile_load(in, i, j, n, live && reaches, pairs_in);
      t[r][c] = i >= j ? v.x : 0.0;
      t[r + 1][c] = i + 1 >= j ? v.y : 0.0;
    }
  }
  EACH_COLUMN_PAIR(b) {
    const int a = ROW_PAIR(b);
    for (int q = 0; q < Q && PAIR(b, q) < n; q++) {
      const int k = PAIR(b, q);
      __local double *column = columns[q & 1][0][mine], *next = columns[q & 1][1][mine];
      if (tj == q) {
        EACH_ROW_PAIR(r) {
          if (r < a) continue;
          pair_put(column, ROW(r), t[r][b], t[r + 1][b]);
          pair_put(next, ROW(r), t[r][b + 1], t[r + 1][b + 1]);
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const double d = column[k], i0 = 1.0 / d, g = column[k + 1] * i0;
      const double d1 = fma(-column[k + 1], g, next[k + 1]), i1 = 1.0 / d1;
      if (status == 0) status = !(fabs(d) < INFINITY) ? BATCH_NONFINITE : d > 0.0 ? 0 : k + 1;
      if (status == 0) status = !(fabs(d1) < INFINITY) ? BATCH_NONFINITE : d1 > 0.0 ? 0 : k + 2;
      if (lane == 0) pair_put(scales[mine], k, rsqrt(d), rsqrt(d1));
      double x[TILE_ROWS], y[TILE_ROWS]; /* the two columns, the second without the first */
      EACH_ROW_PAIR(r) {
        if (r < a) continue;
        double2 u = pair_get(column, ROW(r)), v = pair_get(next, ROW(r));
        x[r] = u.x;
        x[r + 1] = u.y;
        y[r] = fma(-u.x, g, v.x);
        y[r + 1] = fma(-u.y, g, v.y);
      }
      EACH_COLUMN_PAIR(c) {
        if (c < b || (c == b && tj <= q)) continue;
        double2 u = pair_get(column, COLUMN(c)), v = pair_get(next, COLUMN(c));
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
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!live) return;
  out += out0 + matrix * step_out;
  EACH_COLUMN_PAIR(c) {
    const int j = COLUMN(c);
    double2 scale = (double2)(j < n ? scales[mine][j] : 0.0, j + 1 < n ? scales[mine][j + 1] : 0.0);
    if (status != 0) scale = (double2)(NAN, NAN);
    EACH_ROW_PAIR(r) {
      const int i = ROW(r);
      double above = status == 0 ? 0.0 : NAN;
      double v00 = REACHES(r, c) && i >= j ? t[r][c] * scale.x : above;
      double v10 = REACHES(r, c) && i + 1 >= j ? t[r + 1][c] * scale.x : above;
      double v01 = REACHES(r, c) && i >= j + 1 ? t[r][c + 1] * scale.y : above;
      double v11 = REACHES(r, c) && i >= j ? t[r + 1][c + 1] * scale.y : above;
      if (flags & BATCH_UPPER) {
        tile_store(out, j, i, n, pairs_out, v00, v01);
        tile_store(out, j, i + 1, n, pairs_out, v10, v11);
      } else {
        tile_store(out, i, j, n, pairs_out, v00, v10);
        tile_store(out, i, j + 1, n, pairs_out, v01, v11);
      }
    }
  }
  TILE_STATUS(status)
}
