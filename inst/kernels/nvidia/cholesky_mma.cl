/* Cholesky factor of a panel of at most STRIPS_ORDER columns, on the double-precision matrix
 * instructions of NVIDIA devices (mma.h): the twin of cholesky.cl, over strips.h, used under the
 * same conditions as gemm_mma.cl (engine/cl/runtime/variant.c).
 *
 * A group of CHOLESKY_WARPS warps: one that factors 16 x 16 blocks on the diagonal, one strip of
 * the diagonal block to each of STRIPS others, one strip of the rows below to each of
 * CHOLESKY_EXTRA. Every group factors the diagonal block for itself (nothing has to be exchanged
 * between groups, and one launch does a panel), the first one writes it.
 *
 * A processor has four schedulers, each with instructions and arithmetic of its own, and warp i
 * belongs to scheduler i % 4. The warp that factors shares its own with the strips that are done
 * first: all others wait for it, and it for them only to hand over the next block.
 *
 * At step p, `head` is block p of the strip and tail[s] block p + 1 + s; updates move each block
 * down by one, so that one body serves all steps. (Unrolled over the steps, each instruction would
 * be fetched for one use, and the instruction cache would take most of the time.) */

#define CHOLESKY_WARP_SYNC() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
/* Barriers of some of the warps: all; the one that factors and that of the next strip; all but the
 * one that factors. */
#define CHOLESKY_SYNC(id, warps)                                                                   \
  asm volatile("bar.sync %0, %1;" ::"n"(id), "n"(32 * (warps)) : "memory")
#define CHOLESKY_SYNC_ALL() CHOLESKY_SYNC(0, CHOLESKY_WARPS)
#define CHOLESKY_SYNC_NEXT() CHOLESKY_SYNC(1, 2)
#define CHOLESKY_SYNC_STRIPS() CHOLESKY_SYNC(2, CHOLESKY_WARPS - 1)

/* 1 / d and 1 / sqrt(d) to about one unit in the last place: hardware seeds, which flush subnormal
 * numbers, and one third-order step. The root is NaN or infinite where d fails as a pivot. */
STRIPS_INLINE real inverse(const real d) {
  real y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  const real e = fma(-d, y, 1.0);
  return fma(y, fma(e, e, e), y);
}

STRIPS_INLINE real inverse_root(const real d) {
  real y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  const real e = fma(-d * y, y, 1.0);
  return fma(y * e, fma(0.375, e, 0.5), y);
}

/* Room of the 16 x 16 factor, in rows CHOLESKY_ROW doubles apart, which frees it of most bank
 * conflicts: the block; behind it what comes out of the product between the halves; rows of the
 * identity of order 8, and one of zeros; what goes into the product, 24 rows of 8. */
#define CHOLESKY_ROW 18
#define CHOLESKY_OUT (16 * CHOLESKY_ROW)
#define CHOLESKY_HALF 10
#define CHOLESKY_IDENTITY (32 * CHOLESKY_ROW)
#define CHOLESKY_IN (CHOLESKY_IDENTITY + 9 * CHOLESKY_HALF)
#define CHOLESKY_ROOM (CHOLESKY_IN + 24 * CHOLESKY_HALF)

STRIPS_INLINE void row_get(real a[8], __local const real *row) {
  SCL_UNROLL
  for (int k = 0; k < 8; k += 2) {
    const real2 pair = *(__local const real2 *)(row + k);
    a[k] = pair.x;
    a[k + 1] = pair.y;
  }
}

STRIPS_INLINE void row_put(__local real *row, const real a[8]) {
  SCL_UNROLL
  for (int k = 0; k < 8; k += 2) *(__local real2 *)(row + k) = (real2)(a[k], a[k + 1]);
}

/* A strip's block to the room. */
STRIPS_INLINE void room_put(__local real *room, real x[2][4], const int g, const int t) {
  SCL_UNROLL
  for (int r = 0; r < 2; r++) {
    SCL_UNROLL
    for (int h = 0; h < 2; h++)
      *(__local real2 *)(room + CHOLESKY_ROW * (2 * g + r) + 8 * h + 2 * t) =
          (real2)(x[h][2 * r], x[h][2 * r + 1]);
  }
}

/* Factors an 8 x 8 block, of which each lane has the lower triangle in d, and applies the steps to
 * each lane's own row a. All lanes do the same with d: exchanging what they need would take longer.
 * Rows of the block come out in a as they do in d, bit for bit, as their differences would be
 * divided by pivots that may be tiny. Columns of a are left to be divided by the roots of the
 * pivots d[j][j]; reciprocal[j] = 1 / d[j][j]. */
STRIPS_INLINE void factor8(real d[8][8], real a[8], real reciprocal[8]) {
  SCL_UNROLL
  for (int j = 0; j < 8; j++) {
    reciprocal[j] = inverse(d[j][j]);
    SCL_UNROLL
    for (int i = j + 1; i < 8; i++) {
      const real m = d[i][j] * reciprocal[j];
      SCL_UNROLL
      for (int k = j + 1; k <= i; k++) d[i][k] = fma(-m, d[k][j], d[i][k]);
    }
    const real m = a[j] * reciprocal[j];
    SCL_UNROLL
    for (int c = j + 1; c < 8; c++) a[c] = fma(-m, d[c][j], a[c]);
  }
}

/* Columns from, ..., from + 7 of a factored block: -L from lanes 0 to 15, W from the others. */
STRIPS_INLINE void column_put(__local real *column, const int from, const real a[8],
                              const real d[8][8], const int lane) {
  const int row = lane & 15;
  real l[8];
  SCL_UNROLL
  for (int k = 0; k < 8; k++) l[k] = a[k] * inverse_root(d[k][k]);
  if (lane < 16) {
    __local real *to = column + STRIPS_AT(row, from);
    SCL_UNROLL
    for (int k = 0; k < 8; k += 2)
      *(__local real2 *)(to + k) =
          (real2)(from + k <= row ? -l[k] : 0.0, from + k < row ? -l[k + 1] : 0.0);
  } else {
    __local real *to = column + STRIPS_INVERSE + 16 * from;
    SCL_UNROLL
    for (int k = 0; k < 8; k++) to[STRIPS_AT(k, row)] = l[k];
  }
}

/* Factors the 16 x 16 block in the room, one warp, in two halves of 8 columns, and packs it: -L and
 * W = inv(L) to `column`. Lanes 0 to 15 have its rows; lanes 16 to 31 rows of the identity, which
 * the same steps turn into rows of W'. Between the halves one product takes the first 8 columns
 * from the others, at once for rows 8 to 15 of the block and 0 to 7 of the identity. */
STRIPS_INLINE void factor16(__local real *column, __local real *room, const int lane) {
  const int g = lane >> 2, t = lane & 3;
  __local real *in = room + CHOLESKY_IN, *out = room + CHOLESKY_OUT;
  __local const real *identity = room + CHOLESKY_IDENTITY + CHOLESKY_HALF * (lane & 7);
  __local const real *zeros = room + CHOLESKY_IDENTITY + CHOLESKY_HALF * 8;
  __local const real *rows = room, *own = room + CHOLESKY_ROW * lane;
  if (lane >= 16) own = lane < 24 ? identity : zeros;
#pragma unroll 1
  for (int from = 0; from < 16; from += 8) {
    real a[8], d[8][8], reciprocal[8];
    SCL_UNROLL
    for (int i = 0; i < 8; i++) {
      SCL_UNROLL
      for (int k = 0; k <= i; k += 2) {
        const real2 pair = *(__local const real2 *)(rows + CHOLESKY_ROW * i + k);
        d[i][k] = pair.x;
        d[i][k + 1] = pair.y;
      }
    }
    row_get(a, own);
    factor8(d, a, reciprocal);
    if (from == 0) {
      /* rows 8 to 15, 0 to 7 of the identity, and the first of these times the reciprocals */
      if (lane >= 8 && lane < 24) row_put(in + CHOLESKY_HALF * (lane - 8), a);
      if (lane >= 8 && lane < 16) {
        real m[8];
        SCL_UNROLL
        for (int k = 0; k < 8; k++) m[k] = a[k] * -reciprocal[k];
        row_put(in + CHOLESKY_HALF * (lane + 8), m);
      }
      CHOLESKY_WARP_SYNC();
      const real2 corner = *(__local const real2 *)(room + CHOLESKY_ROW * (8 + g) + 8 + 2 * t);
      const real2 left = *(__local const real2 *)(in + CHOLESKY_HALF * g + 2 * t);
      const real2 above = *(__local const real2 *)(in + CHOLESKY_HALF * (8 + g) + 2 * t);
      const real2 right = *(__local const real2 *)(in + CHOLESKY_HALF * (16 + g) + 2 * t);
      real c[4] = {0.0, 0.0, corner.x, corner.y};
      MMA_8(c, above.x, left.x, above.y, left.y, right.x, right.y);
      *(__local real2 *)(out + CHOLESKY_ROW * g + 2 * t) = (real2)(c[2], c[3]);
      *(__local real2 *)(out + CHOLESKY_ROW * (8 + g) + 2 * t) = (real2)(c[0], c[1]);
      CHOLESKY_WARP_SYNC();
      rows = out;
      own = lane < 24 ? out + CHOLESKY_ROW * max(lane - 8, 0) : identity;
    }
    column_put(column, from, a, d, lane);
  }
}

/* The part of the warp that factors: hands out column blocks, and notes the first pivot that fails.
 * It has no strip. */
STRIPS_INLINE void factor_blocks(const int steps, __local real *column, __local real *room,
                                 const int before, __local int *failed, __global real *info,
                                 const int lane) {
  /* of the panels before */
  const real earlier = lane == 0 && info && before > 0 ? *info : 0.0;
  if (lane == 0) *failed = INT_MAX;
  for (int i = lane; i < 9 * CHOLESKY_HALF; i += 32)
    room[CHOLESKY_IDENTITY + i] = i % (CHOLESKY_HALF + 1) == 0 ? 1.0 : 0.0;
  CHOLESKY_WARP_SYNC();
#pragma unroll 1
  for (int p = 0; p < steps; p++) {
    __local real *c = column + (p & 1) * STRIPS_COLUMN(0);
    CHOLESKY_SYNC_NEXT();
    factor16(c, room, lane);
    CHOLESKY_SYNC_ALL();
    if (lane < 16 && !(-c[STRIPS_AT(lane, lane)] < INFINITY))
      atomic_min(failed, before + 16 * p + lane + 1);
  }
  CHOLESKY_WARP_SYNC();
  const real found = *failed == INT_MAX ? 0.0 : (real)*failed;
  if (lane == 0 && info) *info = earlier != 0.0 ? earlier : found;
}

/* Factors the panel S of so many rows and n columns (n <= STRIPS_ORDER, and n = STRIPS_ORDER where
 * rows > n), lower triangle. The diagonal block goes to D, the rows below it, CHOLESKY_EXTRA strips
 * of them to a group, to their place in A, which may be S; D may be a part of S only where there is
 * one group. Of A, `clear` columns right of the panel become zero in the rows of the diagonal
 * block, 16 for each strip; groups without rows do nothing else. Unless it is NULL, `packed` gets
 * the packed form of the diagonal block (of n = STRIPS_ORDER), for triangular_mma_solve. info as in
 * cholesky.cl.
 *
 * Critical path of a step: factor block (p, p); solve strip p + 1; update block (p + 1, p + 1),
 * which needs nobody else's rows. All else is done while the next factor runs. */
__kernel __attribute__((reqd_work_group_size(32 * CHOLESKY_WARPS, 1, 1))) void
cholesky_mma_panel(const int rows, const int n, const int before, const int clear,
                   __global const real *S, const long offset_s, const int lds,
                   __global real *A, const long offset_a, const int lda, __global real *D,
                   const long offset_d, const int ldd, __global real *info,
                   const long offset_info, const int ld_info, __global real *packed) {
  __local real column[2 * STRIPS_COLUMN(0)] __attribute__((aligned(128)));
  __local real room[CHOLESKY_ROOM] __attribute__((aligned(128)));
  __local int failed;
  const int item = get_local_id(0), lane = item & 31, g = lane >> 2, t = lane & 3;
  const int first = get_group_id(0) == 0, steps = (n + 15) / 16;
  /* Warps 3, 7, 11: the factor, strips 0 and 1. The others: strips 2, 3, ... */
  const int warp = item >> 5, idle = !first && rows <= n;
  if (warp == 3) {
    if (idle) return;
    factor_blocks(steps, column, room, before, &failed, first ? info + offset_info : 0, lane);
    return;
  }
  int w = warp % 4 == 3 ? warp / 4 - 1 : warp - (warp + 1) / 4 + 2, strip = w;
  A += offset_a;
  D += offset_d;
  S += offset_s;
  if (w >= STRIPS) {
    strip += (int)get_group_id(0) * CHOLESKY_EXTRA;
    const int from = 16 * (strip - STRIPS), to = min(from + 16, clear);
    for (int j = from; j < to; j++) {
      SCL_UNROLL
      for (int i = 0; i < STRIPS_ORDER; i += 64)
        *(__global real2 *)(A + i + 2 * lane + (long)(n + j) * lda) = 0.0;
    }
    if (16 * strip >= rows) w = -1; /* nothing to do but keep the others' barriers company */
  }
  if (idle) return;
  const int extra = w >= STRIPS, row = 16 * strip + 2 * g; /* the first of this lane's two */
  const int last = min(w, STRIPS_TAIL); /* block of L that the strip meets */

  /* All loads at once, also of blocks above the diagonal, which nothing uses: guards would have
   * them wait for each other. Past the edges others are read instead: rows that are not written
   * then, or what the identity replaces; above the diagonal the diagonal block. */
  real head[2][4], tail[STRIPS_TAIL][2][4];
  const int row_there = min(row, (rows - 1) & ~1), column_there = min(n - 1, 16 * strip + 15);
  SCL_UNROLL
  for (int q = 0; q < STRIPS; q++) {
    SCL_UNROLL
    for (int i = 0; i < 4; i++) {
      const int k = 16 * q + 8 * (i / 2) + 2 * t + i % 2;
      real2 pair = *(__global const real2 *)(S + row_there + (long)min(k, column_there) * lds);
      if (n < STRIPS_ORDER) {
        if (row >= n || k >= n) pair.x = row == k ? 1.0 : 0.0;
        if (row + 1 >= n || k >= n) pair.y = row + 1 == k ? 1.0 : 0.0;
      }
      real *block = q == 0 ? head[i / 2] : tail[q == 0 ? 0 : q - 1][i / 2];
      block[i % 2] = pair.x;
      block[2 + i % 2] = pair.y;
    }
  }
  if (w == 0) {
    room_put(room, head, g, t);
    CHOLESKY_SYNC_NEXT();
  }

#pragma unroll 1
  for (int p = 0; p < steps; p++) {
    __local real *c = column + (p & 1) * STRIPS_COLUMN(0);
    __local real *below = c + STRIPS_INVERSE; /* W, and the rows below it */
    CHOLESKY_SYNC_ALL();

    const int own = row - 16 * p; /* this lane's first row there */
    real solved[2][4];
    if (w > p && !extra) {
      solve16(solved, head, c, g, t);
      SCL_UNROLL
      for (int h = 0; h < 2; h++) {
        *(__local real2 *)(below + STRIPS_AT(own, 8 * h + 2 * t)) =
            (real2)(-solved[h][0], -solved[h][1]);
        *(__local real2 *)(below + STRIPS_AT(own + 1, 8 * h + 2 * t)) =
            (real2)(-solved[h][2], -solved[h][3]);
      }
      if (w == p + 1) {
        CHOLESKY_WARP_SYNC();
        times16(head, tail[0], solved, below, 16, g, t);
        if (w < steps) {
          room_put(room, head, g, t);
          CHOLESKY_SYNC_NEXT();
        }
      }
    }
    CHOLESKY_SYNC_STRIPS();

    if (extra) solve16(solved, head, c, g, t);
    if (w > p) {
      if (w > p + 1 && p < STRIPS_TAIL) times16(head, tail[0], solved, below, 16, g, t);
      SCL_UNROLL
      for (int s = 1; s < STRIPS_TAIL; s++) {
        if (p + 1 + s <= last) times16(tail[s - 1], tail[s], solved, below, 16 * (1 + s), g, t);
      }
    }
    /* Results of this step. */
    if (extra || (first && w > p + 1)) {
      __global real *to = extra ? A : D;
      const int ld = extra ? lda : ldd;
      SCL_UNROLL
      for (int h = 0; h < 2; h++) {
        SCL_UNROLL
        for (int e = 0; e < 2; e++) {
          __global real *at = to + row + (long)(16 * p + 8 * h + 2 * t + e) * ld;
          if (row + 1 < rows)
            *(__global real2 *)at = (real2)(solved[h][e], solved[h][2 + e]);
          else if (row < rows)
            *at = solved[h][e];
        }
      }
    }
    if (first && w == p) { /* the diagonal block, and the strip of warp p + 1, which is busy */
      for (int i = lane; i < 256; i += 32) {
        const int r = i % 16, k = i / 16;
        if (k <= r && 16 * p + r < n)
          D[16 * p + r + (long)(16 * p + k) * ldd] = -c[STRIPS_AT(r, k)];
        if (p < STRIPS_TAIL && 16 * (p + 1) + r < n)
          D[16 * (p + 1) + r + (long)(16 * p + k) * ldd] = -below[STRIPS_AT(16 + r, k)];
      }
    }
    if (first && packed && !extra && w >= p && w != p + 1) {
      __global real *to = packed + STRIPS_START(p);
      const int from = w == p ? 0 : STRIPS_INVERSE + 256 * (w - p);
      const int end = w == p ? (p < STRIPS_TAIL ? 768 : 512) : from + 256;
      for (int i = from + 2 * lane; i < end; i += 64)
        *(__global real2 *)(to + i) = *(__local const real2 *)(c + i);
    }
  }
}

/* Puts factors of diagonal blocks, side by side in D, into their places on the diagonal of an A of
 * n rows: lower triangles, with zeros above them if `clear`. Dimension 2 counts the blocks. */
__kernel void cholesky_mma_place(const int n, const int clear, __global const real *D,
                                 const long offset_d, const int ldd, __global real *A,
                                 const long offset_a, const int lda) {
  const int i = get_global_id(0), j = get_global_id(1), first = STRIPS_ORDER * get_global_id(2);
  D += offset_d + (long)first * ldd;
  A += offset_a + (long)first * (lda + 1);
  if (max(i, j) >= n - first) return;
  if (j <= i) A[i + (long)j * lda] = D[i + (long)j * ldd];
  else if (clear) A[i + (long)j * lda] = 0.0;
}
