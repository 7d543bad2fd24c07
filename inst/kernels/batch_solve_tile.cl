/* Solutions and determinants, order 9 to 128: elimination with row pivoting on the matrix and Q of
 * its right-hand sides (group number 1 says which), then substitution backwards. Rows stay where
 * they are: the pivot row of step k holds unknown k. */

/* Sign of the permutation, from the length of its cycles. */
SCL_INLINE double permutation_sign(__local const int *chosen, int n) {
  ulong seen[2] = {0, 0};
  bool odd = false;
  for (int i = 0; i < n; i++) {
    for (int j = i; !(seen[j / 64] >> (j % 64) & 1); j = chosen[j]) {
      seen[j / 64] |= 1UL << (j % 64);
      if (chosen[j] != i) odd = !odd; /* the last step of a cycle does not count */
    }
  }
  return odd ? -1.0 : 1.0;
}

/* The product of the pivots is kept as a number near 1 and a power of two, which no pivot
 * overflows. */
SCL_INLINE double determinant(__local const double *pivots, double product, int n, int flags,
                              __global double *sign) {
  int power = 0;
  for (int k = 0; k < n && product != 0.0; k++) { /* after a pivot of zero nothing is finite */
    product *= pivots[k];
    int exponent = product == 0.0 || !(fabs(product) < INFINITY) ? 0 : ilogb(product);
    product = ldexp(product, -exponent);
    power += exponent;
  }
  *sign = isnan(product) ? NAN : product > 0.0 ? 1.0 : product < 0.0 ? -1.0 : 0.0;
  return flags & BATCH_LOGARITHM ? log(fabs(product)) + power * 0.693147180559945309417
                                 : ldexp(product, clamp(power, -5000, 5000));
}

__attribute__((reqd_work_group_size(BATCH_ITEMS, 1, 1))) __kernel void
BATCH_KERNEL(const int batch, const int n, const int count_b, const int flags,
             __global const double *in, const long in0, const int step_in, __global const double *b,
             const long b0, const int step_b, __global double *out, const long out0,
             const int step_out, __global double *statuses, __global int *any) {
  __local double columns[2][BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local double rows[BATCH_MATRICES][BATCH_N] __attribute__((aligned(16)));
  __local double right[2][BATCH_MATRICES][Q], pivots[BATCH_MATRICES][BATCH_N];
  __local ulong keys[BATCH_MATRICES][P];
  __local int chosen[BATCH_MATRICES][BATCH_N], step_of[BATCH_MATRICES][BATCH_N];
  TILE_PLACE
  double t[TILE_ROWS][TILE_COLUMNS], x[TILE_ROWS];
  const int own = (int)get_group_id(1) * Q + tj; /* right-hand side */
  int status = 0;
  uint used = 0; /* register rows that were pivots, or lie beyond the order */
  in += in0 + matrix * step_in;
  TILE_LOAD(in, SINGLE, TILE_PAIRS(in0, step_in))
  EACH_ROW(r) {
    bool there = live && !(flags & BATCH_DET) && own < count_b && ROW(r) < n;
    x[r] = there ? b[b0 + matrix * step_b + ROW(r) + (long)own * n] : 0.0;
    used |= ROW(r) < n ? 0u : 1u << r;
  }
  EACH_COLUMN(e) { /* register column of column k */
    for (int q = 0; q < Q && e * Q + q < n; q++) {
      const int k = e * Q + q;
      __local double *column = columns[k & 1][mine], *row = rows[mine];
      if (tj == q) {
        ulong best = 0;
        EACH_ROW_PAIR(r) {
          pair_put(column, ROW(r), t[r][e], t[r + 1][e]);
          best = max(best, used >> r & 1 ? 0UL : tile_key(t[r][e], ROW(r)));
          best = max(best, used >> (r + 1) & 1 ? 0UL : tile_key(t[r + 1][e], ROW(r + 1)));
        }
        keys[mine][ti] = best;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const int p = tile_pivot(keys[mine]);
      const double pivot = column[p], d = 1.0 / pivot;
      if (status == 0) status = pivot_status(fabs(pivot), k);
      EACH_ROW(r) {
        if (ROW(r) == p) {
          EACH_COLUMN(c) {
            if (c >= e) row[SINGLE(c)] = t[r][c];
          }
          right[0][mine][tj] = x[r];
          used |= 1u << r;
        }
      }
      double f[TILE_ROWS]; /* rows that were pivots stay */
      EACH_ROW_PAIR(r) {
        double2 v = pair_get(column, ROW(r));
        f[r] = used >> r & 1 ? 0.0 : -v.x * d;
        f[r + 1] = used >> (r + 1) & 1 ? 0.0 : -v.y * d;
      }
      if (lane == 0) {
        chosen[mine][k] = p;
        step_of[mine][p] = k;
        pivots[mine][k] = pivot;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const double y = right[0][mine][tj];
      EACH_ROW(r) x[r] = fma(f[r], y, x[r]);
      EACH_COLUMN(c) {
        if (c < e) continue;
        const double v = row[SINGLE(c)];
        EACH_ROW(r) t[r][c] = fma(f[r], v, t[r][c]);
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (flags & BATCH_DET) {
    if (live && lane == 0) {
      out[out0 + matrix] = determinant(pivots[mine], permutation_sign(chosen[mine], n), n, flags,
                                       out + out0 + batch + matrix);
    }
    return;
  }
  int step[TILE_ROWS];
  EACH_ROW(r) step[r] = ROW(r) < n ? step_of[mine][ROW(r)] : BATCH_N;
  TILE_UNROLL for (int e = TILE_COLUMNS - 1; e >= 0; e--) {
    for (int q = min(Q, n - e * Q) - 1; q >= 0; q--) {
      const int k = e * Q + q;
      __local double *column = columns[k & 1][mine];
      const int p = chosen[mine][k];
      if (tj == q) {
        EACH_ROW_PAIR(r) pair_put(column, ROW(r), t[r][e], t[r + 1][e]);
      }
      EACH_ROW(r) {
        if (ROW(r) == p) right[k & 1][mine][tj] = x[r];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const double y = right[k & 1][mine][tj] / pivots[mine][k];
      EACH_ROW_PAIR(r) {
        double2 v = pair_get(column, ROW(r));
        x[r] = step[r] == k ? y : step[r] < k ? fma(-v.x, y, x[r]) : x[r];
        x[r + 1] = step[r + 1] == k ? y : step[r + 1] < k ? fma(-v.y, y, x[r + 1]) : x[r + 1];
      }
    }
  }
  if (!live) return;
  EACH_ROW(r) {
    if (ROW(r) < n && own < count_b) {
      out[out0 + matrix * step_out + step[r] + (long)own * n] = status == 0 ? x[r] : NAN;
    }
  }
  if (get_group_id(1) == 0) {
    TILE_STATUS(status)
  }
}
