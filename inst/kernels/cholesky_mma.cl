/* Cholesky factor of a panel of at most STRIPS_ORDER columns, on the double-precision matrix
 * instructions of NVIDIA devices (mma.h): the twin of cholesky.cl, over strips.h, used under the
 * same conditions as gemm_mma.cl (scl_cl_variant.c).
 *
 * A group of STRIPS + CHOLESKY_EXTRA warps: one strip of the diagonal block to each of the first
 * STRIPS warps, one strip of the rows below to each of the others. Every group factors the diagonal
 * block for itself (nothing has to be exchanged between groups, and one launch does a panel), the
 * first one writes it.
 *
 * At step p, `head` is block p of the strip and tail[s] block p + 1 + s; updates move each block
 * down by one, so that one body serves all steps. (Unrolled over the steps, each instruction would
 * be fetched for one use, and the instruction cache would take most of the time.) */

#define CHOLESKY_WARP_SYNC() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")

/* 1 / d and 1 / sqrt(d) to about one unit in the last place: hardware seeds, which flush subnormal
 * numbers, and one third-order step. The root is NaN or infinite where d fails as a pivot. */
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

/* Scratch of the 16 x 16 factor: rows of 8, CHOLESKY_ROW doubles apart, which frees it of bank
 * conflicts. 24 rows to work with; 8 of the identity and one of zeros stay. */
#define CHOLESKY_ROW 10
#define CHOLESKY_IDENTITY 24
#define CHOLESKY_ZEROS 32
#define CHOLESKY_ROOM (33 * CHOLESKY_ROW)

STRIPS_INLINE void room_get(double a[8], __local const double *room, const int row) {
  SCL_UNROLL
  for (int k = 0; k < 8; k += 2) {
    const double2 pair = *(__local const double2 *)(room + CHOLESKY_ROW * row + k);
    a[k] = pair.x;
    a[k + 1] = pair.y;
  }
}

STRIPS_INLINE void room_put(__local double *room, const int row, const double a[8]) {
  SCL_UNROLL
  for (int k = 0; k < 8; k += 2)
    *(__local double2 *)(room + CHOLESKY_ROW * row + k) = (double2)(a[k], a[k + 1]);
}

/* Factors 8 columns, whose diagonal block is held by the lanes from `top` on, one row a lane; other
 * lanes hold rows that the same steps are applied to. All lanes know the pivots: from one to the
 * next leads one reciprocal and two multiplications. The columns are divided by the roots at the
 * end. */
STRIPS_INLINE void factor8(double a[8], const int top) {
  double pivot[8];
  pivot[0] = lane_value(a[0], top);
  SCL_UNROLL
  for (int j = 0; j < 7; j++) {
    const double below = lane_value(a[j], top + j + 1), next = lane_value(a[j + 1], top + j + 1);
    const double reciprocal = inverse(pivot[j]), scaled = a[j] * reciprocal;
    pivot[j + 1] = fma(-below, below * reciprocal, next);
    SCL_UNROLL
    for (int c = j + 1; c < 8; c++) a[c] = fma(-scaled, lane_value(a[j], top + c), a[c]);
  }
  SCL_UNROLL
  for (int j = 0; j < 8; j++) a[j] *= inverse_root(pivot[j]);
}

/* Columns from, ..., from + 7 of a factored block: -L from lanes 0 to 15, W from the others. */
STRIPS_INLINE void column_put(__local double *column, const int from, const double a[8],
                              const int lane) {
  const int row = lane & 15;
  if (lane < 16) {
    SCL_UNROLL
    for (int k = 0; k < 8; k += 2)
      *(__local double2 *)(column + STRIPS_AT(row, from + k)) =
          (double2)(from + k <= row ? -a[k] : 0.0, from + k < row ? -a[k + 1] : 0.0);
  } else {
    SCL_UNROLL
    for (int k = 0; k < 8; k++) column[STRIPS_INVERSE + STRIPS_AT(from + k, row)] = a[k];
  }
}

/* Factors the 16 x 16 block x, one warp, in two halves of 8 columns, and packs it: -L and W =
 * inv(L) to `column`. Lanes 0 to 15 hold its rows; lanes 16 to 31 rows of the identity, which the
 * same steps turn into rows of W'. Between the halves one product takes the first 8 columns from
 * the others, at once for rows 8 to 15 of the block and 0 to 7 of the identity. */
STRIPS_INLINE void factor16(double x[2][4], __local double *column, __local double *room,
                            const int lane) {
  const int g = lane >> 2, t = lane & 3;
  double a[8];
  /* all of the left half, and the lower right quarter in rows 16 to 23 */
  SCL_UNROLL
  for (int r = 0; r < 2; r++) {
    *(__local double2 *)(room + CHOLESKY_ROW * (2 * g + r) + 2 * t) =
        (double2)(x[0][2 * r], x[0][2 * r + 1]);
    if (g >= 4)
      *(__local double2 *)(room + CHOLESKY_ROW * (8 + 2 * g + r) + 2 * t) =
          (double2)(x[1][2 * r], x[1][2 * r + 1]);
  }
  CHOLESKY_WARP_SYNC();
  const double2 corner = *(__local const double2 *)(room + CHOLESKY_ROW * (16 + g) + 2 * t);
  room_get(a, room,
           lane < 16 ? lane : lane < 24 ? CHOLESKY_IDENTITY - 16 + lane : CHOLESKY_ZEROS);
  factor8(a, 0);
  CHOLESKY_WARP_SYNC();
  if (lane < 24) room_put(room, lane, a);
  CHOLESKY_WARP_SYNC();

  /* rows g of the product are those of the identity, rows 8 + g those of the block */
  const double2 left = *(__local const double2 *)(room + CHOLESKY_ROW * (16 + g) + 2 * t);
  const double2 right = *(__local const double2 *)(room + CHOLESKY_ROW * (8 + g) + 2 * t);
  double c[4] = {0.0, 0.0, corner.x, corner.y};
  MMA_4(c, -left.x, -right.x, right.x);
  MMA_4(c, -left.y, -right.y, right.y);
  column_put(column, 0, a, lane);
  CHOLESKY_WARP_SYNC();
  *(__local double2 *)(room + CHOLESKY_ROW * (16 + g) + 2 * t) = (double2)(c[0], c[1]);
  *(__local double2 *)(room + CHOLESKY_ROW * (8 + g) + 2 * t) = (double2)(c[2], c[3]);
  CHOLESKY_WARP_SYNC();
  room_get(a, room, lane);
  factor8(a, 8);
  column_put(column, 8, a, lane);
}

/* Factors the panel A of so many rows and n columns (n <= STRIPS_ORDER, and n = STRIPS_ORDER where
 * rows > n), lower triangle. The diagonal block goes to D, which may be A itself only where there
 * is one group; the rows below it are overwritten, CHOLESKY_EXTRA strips of them to a group. Unless
 * it is NULL, `packed` gets the packed form of the diagonal block (of n = STRIPS_ORDER), for
 * triangular_mma_solve. info as in cholesky.cl.
 *
 * Critical path of a step: factor block (p, p); solve strip p + 1; update block (p + 1, p + 1),
 * which needs nobody else's rows. All else is done while the next factor runs. */
__kernel __attribute__((reqd_work_group_size(32 * (STRIPS + CHOLESKY_EXTRA), 1, 1))) void
cholesky_mma_panel(const int rows, const int n, const int before, __global double *A,
                   const long offset_a, const int lda, __global double *D, const long offset_d,
                   const int ldd, __global double *info, const long offset_info, const int ld_info,
                   __global double *packed) {
  __local double column[2][STRIPS_COLUMN(0)] __attribute__((aligned(128)));
  __local double room[CHOLESKY_ROOM] __attribute__((aligned(128)));
  __local int failed;
  const int item = get_local_id(0), lane = item & 31, g = lane >> 2, t = lane & 3;
  const int first = get_group_id(0) == 0;
  int w = item >> 5, strip = w;
  if (w >= STRIPS) {
    strip += (int)get_group_id(0) * CHOLESKY_EXTRA;
    if (16 * strip >= rows) w = -1; /* nothing to do but keep the others' barriers company */
  }
  const int extra = w >= STRIPS, row = 16 * strip + 2 * g; /* the first of this lane's two */
  const int last = min(w, STRIPS_TAIL); /* block of L that the strip meets */
  A += offset_a;
  D += offset_d;
  /* of the panels before */
  const double earlier = item == 0 && first && before > 0 ? info[offset_info] : 0.0;
  if (item == 0) failed = INT_MAX;
  for (int i = item; i < 9 * CHOLESKY_ROW; i += 32 * STRIPS)
    room[CHOLESKY_IDENTITY * CHOLESKY_ROW + i] = i % (CHOLESKY_ROW + 1) == 0 ? 1.0 : 0.0;

  /* All loads at once, also of blocks above the diagonal, which nothing uses: guards would have
   * them wait for each other. Past the edges others are read instead: rows that are not written
   * then, or what the identity replaces. */
  double head[2][4], tail[STRIPS_TAIL][2][4];
  const int row_there = min(row, (rows - 1) & ~1);
  SCL_UNROLL
  for (int q = 0; q < STRIPS; q++) {
    SCL_UNROLL
    for (int i = 0; i < 4; i++) {
      const int k = 16 * q + 8 * (i / 2) + 2 * t + i % 2;
      double2 pair = *(__global const double2 *)(A + row_there + (long)min(k, n - 1) * lda);
      if (n < STRIPS_ORDER) {
        if (row >= n || k >= n) pair.x = row == k ? 1.0 : 0.0;
        if (row + 1 >= n || k >= n) pair.y = row + 1 == k ? 1.0 : 0.0;
      }
      double *block = q == 0 ? head[i / 2] : tail[q == 0 ? 0 : q - 1][i / 2];
      block[i % 2] = pair.x;
      block[2 + i % 2] = pair.y;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

#pragma unroll 1
  for (int p = 0; p < STRIPS; p++) {
    __local double *c = column[p & 1], *below = c + STRIPS_INVERSE; /* W, and the rows below it */
    if (w == p) factor16(head, c, room, lane);
    barrier(CLK_LOCAL_MEM_FENCE);

    const int own = row - 16 * p; /* this lane's first row there */
    double solved[2][4];
    if (w > p && !extra) {
      solve16(solved, head, c, g, t);
      SCL_UNROLL
      for (int h = 0; h < 2; h++) {
        *(__local double2 *)(below + STRIPS_AT(own, 8 * h + 2 * t)) =
            (double2)(-solved[h][0], -solved[h][1]);
        *(__local double2 *)(below + STRIPS_AT(own + 1, 8 * h + 2 * t)) =
            (double2)(-solved[h][2], -solved[h][3]);
      }
      if (w == p + 1) {
        CHOLESKY_WARP_SYNC();
        times16(head, tail[0], solved, below, 16, g, t);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    if (extra) solve16(solved, head, c, g, t);
    if (w > p) {
      if (w > p + 1 && p < STRIPS_TAIL) times16(head, tail[0], solved, below, 16, g, t);
      SCL_UNROLL
      for (int s = 1; s < STRIPS_TAIL; s++) {
        if (p + 1 + s <= last) times16(tail[s - 1], tail[s], solved, below, 16 * (1 + s), g, t);
      }
    }
    /* Results of this step, by the warps that do not factor next. */
    if (extra || (first && w > p + 1)) {
      __global double *to = extra ? A : D;
      const int ld = extra ? lda : ldd;
      SCL_UNROLL
      for (int h = 0; h < 2; h++) {
        SCL_UNROLL
        for (int e = 0; e < 2; e++) {
          __global double *at = to + row + (long)(16 * p + 8 * h + 2 * t + e) * ld;
          if (row + 1 < rows)
            *(__global double2 *)at = (double2)(solved[h][e], solved[h][2 + e]);
          else if (row < rows)
            *at = solved[h][e];
        }
      }
    }
    if (first && w == p && lane < 16 && !(-c[STRIPS_AT(lane, lane)] < INFINITY))
      atomic_min(&failed, before + 16 * p + lane + 1);
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
      __global double *to = packed + STRIPS_START(p);
      const int from = w == p ? 0 : STRIPS_INVERSE + 256 * (w - p);
      const int end = w == p ? (p < STRIPS_TAIL ? 768 : 512) : from + 256;
      for (int i = from + 2 * lane; i < end; i += 64)
        *(__global double2 *)(to + i) = *(__local const double2 *)(c + i);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0 && first) {
    info[offset_info] = earlier != 0.0 ? earlier : failed == INT_MAX ? 0.0 : (double)failed;
  }
}

/* Puts factors of diagonal blocks, side by side in D, into their places on the diagonal of A: lower
 * triangles. Dimension 2 counts the blocks, of which the last is of order n_last. */
__kernel void cholesky_mma_place(const int n_last, __global const double *D, const long offset_d,
                                 const int ldd, __global double *A, const long offset_a,
                                 const int lda) {
  const int i = get_global_id(0), j = get_global_id(1), which = get_global_id(2);
  const int n = which == (int)get_num_groups(2) - 1 ? n_last : STRIPS_ORDER;
  D += offset_d + (long)which * STRIPS_ORDER * ldd;
  A += offset_a + (long)which * STRIPS_ORDER * (lda + 1);
  if (i < n && j <= i) A[i + (long)j * lda] = D[i + (long)j * ldd];
}
