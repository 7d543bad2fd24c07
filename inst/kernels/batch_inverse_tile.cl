/* Inverses, order 9 to 128: Gauss-Jordan elimination in place with row pivoting. Rows stay where
 * they are: row p, chosen at step k, becomes row k when the result is written, and column k becomes
 * column p. A step publishes column k and then the pivot row in local memory: two barriers. */

__attribute__((reqd_work_group_size(BATCH_ITEMS, 1, 1))) __kernel void
BATCH_KERNEL(const int batch, const int n, const int k_, const int flags, __global const double *in,
             const long in0, const int step_in, __global double *out, const long out0,
             const int step_out, __global double *statuses, __global int *any) {
  __local double columns[2][BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local double rows[BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local ulong keys[BATCH_MATRICES][P];
  __local int chosen[BATCH_MATRICES][BATCH_N], step_of[BATCH_MATRICES][BATCH_N];
  TILE_PLACE
  double t[TILE_ROWS][TILE_COLUMNS];
  int status = 0;
  uint used = 0; /* register rows that were pivots, or lie beyond the order */
  in += in0 + matrix * step_in;
  TILE_LOAD(in, SINGLE, TILE_PAIRS(in0, step_in))
  EACH_ROW(r) used |= ROW(r) < n ? 0u : 1u << r;
  EACH_COLUMN(b) { /* register column of column k */
    for (int q = 0; q < Q && b * Q + q < n; q++) {
      const int k = b * Q + q;
      __local double *column = columns[k & 1][mine], *row = rows[mine];
      if (tj == q) {
        ulong best = 0;
        EACH_ROW_PAIR(r) {
          pair_put(column, ROW(r), t[r][b], t[r + 1][b]);
          best = max(best, used >> r & 1 ? 0UL : tile_key(t[r][b], ROW(r)));
          best = max(best, used >> (r + 1) & 1 ? 0UL : tile_key(t[r + 1][b], ROW(r + 1)));
        }
        keys[mine][ti] = best;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const int p = tile_pivot(keys[mine]);
      const double pivot = column[p], d = 1.0 / pivot;
      if (status == 0) status = pivot_status(fabs(pivot), k);
      double f[TILE_ROWS];
      EACH_ROW_PAIR(r) {
        double2 v = pair_get(column, ROW(r));
        f[r] = -v.x * d;
        f[r + 1] = -v.y * d;
      }
      EACH_ROW(r) {
        if (ROW(r) == p) { /* becomes 0 + d * itself */
          EACH_COLUMN(c) {
            row[SINGLE(c)] = t[r][c];
            t[r][c] = 0.0;
          }
          f[r] = d;
          used |= 1u << r;
        }
      }
      if (lane == 0) {
        chosen[mine][k] = p;
        step_of[mine][p] = k;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      if (tj == q) { /* column k of the result: 0 + f */
        EACH_ROW(r) t[r][b] = 0.0;
      }
      EACH_COLUMN(c) {
        const double v = c == b && tj == q ? 1.0 : row[SINGLE(c)];
        EACH_ROW(r) t[r][c] = fma(f[r], v, t[r][c]);
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!live) return;
  out += out0 + matrix * step_out;
  EACH_COLUMN(c) {
    if (SINGLE(c) < n) {
      const int j = chosen[mine][SINGLE(c)];
      EACH_ROW(r) {
        if (ROW(r) < n) out[step_of[mine][ROW(r)] + j * n] = status == 0 ? t[r][c] : NAN;
      }
    }
  }
  TILE_STATUS(status)
}
