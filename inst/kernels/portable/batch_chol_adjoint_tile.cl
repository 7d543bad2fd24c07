/* Reverse mode of Cholesky factors, order 9 to 128: backwards through the columns, as
 * src/engine/host/lanes.c has it. The tile holds the adjoint's lower triangle and, from the last
 * column back, the symmetric result. A step brings column k of the factor to local memory,
 * multiplies the result's trailing part with it (parts of the sums by the work-items of a row), and
 * closes column and row k: three barriers. */

BATCH_ENTRY(BATCH_IN(in), BATCH_IN(adj), BATCH_OUT) {
  BATCH_SIZES BATCH_OPERAND(in, a) BATCH_OPERAND(adj, b) BATCH_OPERAND(out, out)
  __local real factor[BATCH_MATRICES][BATCH_N], half_of[BATCH_MATRICES][BATCH_N];
  __local real parts[BATCH_MATRICES][Q][BATCH_N], sums[BATCH_MATRICES][P];
  TILE_PLACE
  real t[TILE_ROWS][TILE_COLUMNS];
  int status = 0;
  in += in0 + matrix * step_in;
  adj += adj0 + matrix * step_adj;
  EACH_COLUMN(c) {
    EACH_ROW(r) {
      int i = ROW(r), j = COLUMN(c);
      t[r][c] = live && i < n && i >= j ? adj[i + j * n] : 0.0;
    }
  }
  TILE_UNROLL for (int b = TILE_COLUMNS - 2; b >= 0; b -= 2) {
    const int a = ROW_PAIR(b);
    for (int q = Q - 1; q >= 0; q--) {
      TILE_UNROLL for (int h = 1; h >= 0; h--) {
        const int k = PAIR(b, q) + h;
        if (k < n) { /* the same for all */
          for (int i = k + lane; i < BATCH_N; i += LANES) {
            factor[mine][i] = !live ? 1.0 : i < n ? in[i + k * n] : 0.0;
          }
          TILE_BARRIER
          const real pivot = factor[mine][k], d = 1.0 / pivot;
          const int now = pivot_status(fabs(pivot), k);
          status = now != 0 ? now : status;
          real part[TILE_ROWS];
          EACH_ROW(r) part[r] = 0.0;
          EACH_COLUMN(c) {
            const real v = COLUMN(c) > k ? -2.0 * factor[mine][COLUMN(c)] : 0.0;
            if (c < b) continue;
            EACH_ROW(r) {
              if (r >= a) part[r] = fma(t[r][c], v, part[r]);
            }
          }
          EACH_ROW(r) {
            if (r >= a) parts[mine][tj][ROW(r)] = part[r];
          }
          TILE_BARRIER
          if (tj == q) {
            real sum = 0.0;
            EACH_ROW(r) {
              if (r < a || ROW(r) <= k) continue;
              real v = t[r][b + h];
              for (int i = 0; i < Q; i++) v += parts[mine][i][ROW(r)];
              v *= d;
              sum = fma(v, factor[mine][ROW(r)], sum);
              half_of[mine][ROW(r)] = t[r][b + h] = 0.5 * v;
            }
            sums[mine][ti] = sum;
          }
          TILE_BARRIER
          if (ti == ROW_LANE(b, q)) {
            EACH_COLUMN(c) {
              if (c < b) continue;
              if (COLUMN(c) > k) t[a + h][c] = half_of[mine][COLUMN(c)];
            }
            if (tj == q) {
              real v = t[a + h][b + h];
              for (int i = 0; i < P; i++) v -= sums[mine][i];
              t[a + h][b + h] = 0.5 * v * d;
            }
          }
        }
      }
    }
  }
  if (!live) return;
  out += out0 + matrix * step_out;
  EACH_COLUMN(c) {
    EACH_ROW(r) {
      if (ROW(r) < n && COLUMN(c) < n) {
        out[ROW(r) + COLUMN(c) * n] = status == 0 ? t[r][c] : NAN;
      }
    }
  }
  TILE_STATUS(status)
}
