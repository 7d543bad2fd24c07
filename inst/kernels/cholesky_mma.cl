/* Cholesky factor of a diagonal block, on the double-precision matrix instructions of NVIDIA
 * devices of compute capability 9.0 and later: the twin of cholesky.cl, over strips.h, used under
 * the same conditions as gemm_mma.cl (scl_cl_variant.c).
 *
 * Each warp holds one strip. At step p, `head` is block p of the strip and tail[s] block p + 1 + s;
 * updates move each block down by one, so that one body serves all steps. (Unrolled over the steps,
 * each instruction would be fetched for one use, and the instruction cache would take most of the
 * time.) */

#define CHOLESKY_WARP_SYNC() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")

/* 1 / d and 1 / sqrt(d) to about one unit in the last place: hardware seeds, which flush subnormal
 * numbers, and one third-order step. NaN for 0 and where there is no root. */
STRIPS_INLINE double inverse(const double d) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  const double e = fma(-d, y, 1.0);
  return fma(y, fma(e, e, e), y);
}

STRIPS_INLINE double inverse_root(const double d) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  const double e = fma(-d * y, y, 1.0);
  return fma(y * e, fma(0.375, e, 0.5), y);
}

/* Entries (row, column) and (row + 1, column) of A; from row n or column n on those of the
 * identity. */
STRIPS_INLINE double2 fetch_pair(__global const double *A, const int lda, const int n,
                                   const int row, const int column) {
  if (row + 1 < n && column < n) return *(__global const double2 *)(A + row + (long)column * lda);
  double2 pair = (double2)(row == column ? 1.0 : 0.0, row + 1 == column ? 1.0 : 0.0);
  if (row < n && column < n) pair.x = A[row + (long)column * lda];
  return pair;
}

/* Factors a 16 x 16 block, one warp. Lanes 0 to 15 hold its rows; lanes 16 to 31 rows of the
 * identity, which the same steps turn into rows of the transposed inverse. All lanes know the
 * pivot; from one to the next leads one reciprocal and two multiplications, and the columns are
 * divided by their roots at the end. The order of the first failing pivot, counted from `before`,
 * is left in *failed. */
STRIPS_INLINE void factor16(double a[16], const int lane, const int before, __local int *failed) {
  double pivot = lane_value(a[0], 0), own = 1.0;
  SCL_UNROLL
  for (int j = 0; j < 16; j++) {
    own = lane == j ? pivot : own;
    if (j < 15) {
      const double below = lane_value(a[j], j + 1), next = lane_value(a[j + 1], j + 1);
      const double reciprocal = inverse(pivot), scaled = a[j] * reciprocal;
      pivot = fma(-below, below * reciprocal, next);
      SCL_UNROLL
      for (int c = j + 1; c < 16; c++) a[c] = fma(-scaled, lane_value(a[j], c), a[c]);
    }
  }
  if (!(own > 0.0 && own < INFINITY)) atomic_min(failed, before + lane + 1);
  own = inverse_root(own);
  SCL_UNROLL
  for (int c = 0; c < 16; c++) a[c] *= lane_value(own, c);
}

/* Factors the n x n block at A (n <= STRIPS_ORDER), lower triangle, in place, by one group, and
 * leaves its packed form for triangular_mma_solve (n = STRIPS_ORDER only).
 *
 * Critical path of a step: factor block (p, p); solve strip p + 1; update block (p + 1, p + 1),
 * which needs nobody else's rows. All else is done while the next factor runs. info as in
 * cholesky.cl. */
__kernel __attribute__((reqd_work_group_size(32 * STRIPS, 1, 1))) void
cholesky_mma_block(const int n, const int before, __global double *A, const long offset_a,
                   const int lda, __global double *info, const long offset_info, const int ld_info,
                   __global double *packed) {
  __local double column[2][STRIPS_COLUMN(0)] __attribute__((aligned(128)));
  __local double square[2][16 * 17];
  __local int failed;
  const int item = get_local_id(0), lane = item & 31, w = item >> 5, g = lane >> 2, t = lane & 3;
  const int row = 16 * w + 2 * g;
  A += offset_a;
  if (item == 0) failed = INT_MAX;

  double head[2][4], tail[STRIPS_TAIL][2][4];
  const int whole = n == STRIPS_ORDER;
#define CHOLESKY_FETCH(block, q)                                                                   \
  SCL_UNROLL                                                                                       \
  for (int h = 0; h < 2; h++) {                                                                    \
    SCL_UNROLL                                                                                     \
    for (int e = 0; e < 2; e++) {                                                                  \
      double2 pair = 0.0;                                                                          \
      const int k = 16 * (q) + 8 * h + 2 * t + e;                                                  \
      if ((q) <= w && whole) pair = *(__global const double2 *)(A + row + (long)k * lda);          \
      if ((q) <= w && !whole) pair = fetch_pair(A, lda, n, row, k);                                \
      block[h][e] = pair.x;                                                                        \
      block[h][2 + e] = pair.y;                                                                    \
    }                                                                                              \
  }
  CHOLESKY_FETCH(head, 0)
  SCL_UNROLL
  for (int s = 0; s < STRIPS_TAIL; s++) {
    CHOLESKY_FETCH(tail[s], s + 1)
  }
  barrier(CLK_LOCAL_MEM_FENCE);

#pragma unroll 1
  for (int p = 0; p < STRIPS; p++) {
    __local double *c = column[p & 1], *d = square[p & 1];
    if (w == p) {
      SCL_UNROLL
      for (int h = 0; h < 2; h++) {
        SCL_UNROLL
        for (int i = 0; i < 4; i++) d[(2 * g + i / 2) * 17 + 8 * h + 2 * t + i % 2] = head[h][i];
      }
      CHOLESKY_WARP_SYNC();
      double a[16];
      SCL_UNROLL
      for (int k = 0; k < 16; k++)
        a[k] = lane < 16 ? d[lane * 17 + k] : (k == lane - 16 ? 1.0 : 0.0);
      factor16(a, lane, before + 16 * p, &failed);
      SCL_UNROLL
      for (int k = 0; k < 16; k++) {
        if (lane >= 16)
          c[STRIPS_INVERSE + STRIPS_AT(k, lane - 16)] = a[k];
        else
          c[STRIPS_AT(lane, k)] = k <= lane ? a[k] : 0.0;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    __local double *below = c + STRIPS_INVERSE; /* W, and the rows below it */
    const int own = row - 16 * p;               /* this lane's first row there */
    double solved[2][4], minus[2][4];
    if (w > p) {
      solve16(solved, head, c, g, t);
      SCL_UNROLL
      for (int h = 0; h < 2; h++) {
        *(__local double2 *)(below + STRIPS_AT(own, 8 * h + 2 * t)) =
            (double2)(solved[h][0], solved[h][1]);
        *(__local double2 *)(below + STRIPS_AT(own + 1, 8 * h + 2 * t)) =
            (double2)(solved[h][2], solved[h][3]);
      }
      negate(minus, solved);
      if (w == p + 1) {
        CHOLESKY_WARP_SYNC();
        times16(head, tail[0], minus, below, 16, g, t);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    if (w > p) {
      if (w > p + 1) times16(head, tail[0], minus, below, 16, g, t);
      SCL_UNROLL
      for (int s = 1; s < STRIPS_TAIL; s++) {
        if (p + 1 + s <= w) times16(tail[s - 1], tail[s], minus, below, 16 * (1 + s), g, t);
      }
    }
    /* Results of this step, by the warps that do not factor next. */
    if (w != p + 1) {
      if (w > p) {
        SCL_UNROLL
        for (int h = 0; h < 2; h++) {
          SCL_UNROLL
          for (int e = 0; e < 2; e++) {
            __global double *to = A + row + (long)(16 * p + 8 * h + 2 * t + e) * lda;
            if (row + 1 < n)
              *(__global double2 *)to = (double2)(solved[h][e], solved[h][2 + e]);
            else if (row < n)
              *to = solved[h][e];
          }
        }
      }
      if (w >= p) {
        __global double *to = packed + STRIPS_START(p) + STRIPS_INVERSE + 256 * (w - p);
        for (int i = 2 * lane; i < 256; i += 64)
          *(__global double2 *)(to + i) = *(__local const double2 *)(below + 256 * (w - p) + i);
      }
    }
    if (w == p) { /* also the diagonal block, and the strip of warp p + 1, which is busy */
      for (int i = lane; i < 256; i += 32) {
        const int r = i % 16, k = i / 16;
        if (k <= r && 16 * p + r < n)
          A[16 * p + r + (long)(16 * p + k) * lda] = c[STRIPS_AT(r, k)];
        packed[STRIPS_START(p) + i] = c[i];
        if (p + 1 < STRIPS) {
          if (16 * (p + 1) + r < n)
            A[16 * (p + 1) + r + (long)(16 * p + k) * lda] = below[STRIPS_AT(16 + r, k)];
          packed[STRIPS_START(p) + STRIPS_INVERSE + 256 + i] = below[256 + i];
        }
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    const double earlier = before > 0 ? info[offset_info] : 0.0;
    info[offset_info] = earlier != 0.0 ? earlier : failed == INT_MAX ? 0.0 : (double)failed;
  }
}
