/* Cholesky factor of a diagonal block and the rows below it, on the double-precision matrix
 * instructions of NVIDIA devices of compute capability 9.0 and later. The twin of cholesky.cl, used
 * under the same conditions as gemm_mma.cl (scl_cl_variant.c).
 *
 * A strip is 16 rows of a block of order CHOLESKY_MMA_BLOCK. One warp holds one strip in registers, as
 * blocks of 16 x 16: with g = lane / 4 and t = lane % 4, entry (2g + r, 8h + 2t + e) of a block b is b[h][2r + e]. So
 * an accumulator of the 16 x 8 x 4 instruction can serve as its A operand without any exchange, as the sum may
 * be relabelled: step (h, e) sums over k = 8h + 2t + e.
 *
 * A column block of the factor that all warps need as B operand lies in local memory, rows of 16
 * entries (CHOLESKY_AT); the exclusive-or frees fragment loads and stores of bank conflicts. Its
 * 16 x 16 diagonal part is replaced by the inverse, so that solving is a product.
 *
 * One body serves all steps: at step p, `head` is block p of the strip and tail[s] block p + 1 + s, and updates
 * move each block down by one. (Unrolled over the steps, each instruction would be fetched for one use, and
 * the instruction cache would take most of the time.) */

#define CHOLESKY_STRIPS (CHOLESKY_MMA_BLOCK / 16)
#define CHOLESKY_TAIL (CHOLESKY_STRIPS - 1)
#define CHOLESKY_COLUMN (16 * CHOLESKY_MMA_BLOCK) /* doubles of one packed column block */

#define CHOLESKY_INLINE static inline __attribute__((always_inline))
#define CHOLESKY_AT(row, k) ((row) * 16 + ((k) ^ ((((row) ^ ((row) >> 1)) & 1) << 3)))
#define CHOLESKY_WARP_SYNC() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
#define CHOLESKY_MMA(to, from, a0, a1, b0)                                                         \
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "                                 \
               "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"                              \
               : "=d"(to[0]), "=d"(to[1]), "=d"(to[2]), "=d"(to[3])                                \
               : "d"(a0), "d"(a1), "d"(b0), "d"(from[0]), "d"(from[1]), "d"(from[2]), "d"(from[3]))

CHOLESKY_INLINE double lane_value(const double value, const int lane) {
  const uint2 bits = as_uint2(value);
  uint low, high;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(low) : "r"(bits.x), "r"(lane));
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(high) : "r"(bits.y), "r"(lane));
  return as_double((uint2)(low, high));
}

/* 1 / sqrt(d) to about one unit in the last place: a hardware seed and one third-order step. The
 * seed flushes subnormal numbers, so tiny d is scaled. NaN for d < 0. */
CHOLESKY_INLINE double inverse_root(double d) {
  const bool tiny = d < 0x1p-960;
  if (tiny) d *= 0x1p600;
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  const double e = fma(-d * y, y, 1.0);
  y = fma(y * e, fma(0.375, e, 0.5), y);
  return tiny ? y * 0x1p300 : y;
}

/* to = from + x B', where B is the 16 rows of a packed column block from `row` on. Two chains. */
CHOLESKY_INLINE void times16(double to[2][4], double from[2][4], double x[2][4],
                             __local const double *packed, const int row, const int g,
                             const int t) {
  SCL_UNROLL
  for (int h = 0; h < 2; h++) {
    const double2 b0 = *(__local const double2 *)(packed + CHOLESKY_AT(row + g, 8 * h + 2 * t));
    const double2 b1 = *(__local const double2 *)(packed + CHOLESKY_AT(row + 8 + g, 8 * h + 2 * t));
    if (h == 0) {
      CHOLESKY_MMA(to[0], from[0], x[0][0], x[0][2], b0.x);
      CHOLESKY_MMA(to[1], from[1], x[0][0], x[0][2], b1.x);
    } else {
      CHOLESKY_MMA(to[0], to[0], x[1][0], x[1][2], b0.x);
      CHOLESKY_MMA(to[1], to[1], x[1][0], x[1][2], b1.x);
    }
    CHOLESKY_MMA(to[0], to[0], x[h][1], x[h][3], b0.y);
    CHOLESKY_MMA(to[1], to[1], x[h][1], x[h][3], b1.y);
  }
}

/* Entries (row, column) and (row + 1, column) of A; from row n or column n on those of the identity. */
CHOLESKY_INLINE double2 fetch_pair(__global const double *A, const int lda, const int n,
                                   const int row, const int column) {
  if (row + 1 < n && column < n) return *(__global const double2 *)(A + row + (long)column * lda);
  double2 pair = (double2)(row == column ? 1.0 : 0.0, row + 1 == column ? 1.0 : 0.0);
  if (row < n && column < n) pair.x = A[row + (long)column * lda];
  return pair;
}

CHOLESKY_INLINE void negate(double to[2][4], double x[2][4]) {
  SCL_UNROLL
  for (int h = 0; h < 2; h++) {
    SCL_UNROLL
    for (int i = 0; i < 4; i++) to[h][i] = -x[h][i];
  }
}

/* Factors a 16 x 16 block, one warp. Lanes 0 to 15 hold its rows; lanes 16 to 31 rows of the identity,
 * which the same steps turn into rows of the transposed inverse. The pivot is known to all lanes;
 * between pivots stand one inverse root and two multiplications. The order of the first failing
 * pivot, counted from `before`, is left in *failed. */
CHOLESKY_INLINE void factor16(double a[16], const int lane, const int before,
                              __local int *failed) {
  double pivot = lane_value(a[0], 0), own = 1.0;
  SCL_UNROLL
  for (int j = 0; j < 16; j++) {
    own = lane == j ? pivot : own;
    const double scale = inverse_root(pivot);
    if (j < 15) {
      const double below = lane_value(a[j], j + 1) * scale;
      pivot = fma(-below, below, lane_value(a[j + 1], j + 1));
    }
    a[j] *= scale;
    SCL_UNROLL
    for (int c = j + 1; c < 16; c++) a[c] = fma(-a[j], lane_value(a[j], c), a[c]);
  }
  if (!(own > 0.0 && own < INFINITY)) atomic_min(failed, before + lane + 1);
}

/* Factors the n x n block at A (n <= CHOLESKY_MMA_BLOCK), lower triangle, in place, by one group, and leaves
 * its packed column blocks for cholesky_mma_panel (n = CHOLESKY_MMA_BLOCK only).
 *
 * Critical path of a step: factor block (p, p); solve strip p + 1; update block (p + 1, p + 1), which
 * needs nobody else's rows. All else is done while the next factor runs. info as in cholesky.cl. */
__kernel __attribute__((reqd_work_group_size(32 * CHOLESKY_STRIPS, 1, 1))) void
cholesky_mma_block(const int n, const int before, __global double *A, const long offset_a,
                   const int lda, __global double *info, const long offset_info, const int ld_info,
                   __global double *packed) {
  __local double column[2][CHOLESKY_COLUMN] __attribute__((aligned(128)));
  __local double square[2][16 * 17];
  __local int failed;
  const int item = get_local_id(0), lane = item & 31, w = item >> 5, g = lane >> 2, t = lane & 3;
  const int row = 16 * w + 2 * g;
  A += offset_a;
  if (item == 0) failed = INT_MAX;

  double head[2][4], tail[CHOLESKY_TAIL][2][4];
#define CHOLESKY_FETCH(block, q)                                                                   \
  SCL_UNROLL                                                                                       \
  for (int h = 0; h < 2; h++) {                                                                    \
    SCL_UNROLL                                                                                     \
    for (int e = 0; e < 2; e++) {                                                                  \
      double2 pair = 0.0;                                                                          \
      if ((q) <= w) pair = fetch_pair(A, lda, n, row, 16 * (q) + 8 * h + 2 * t + e);               \
      block[h][e] = pair.x;                                                                        \
      block[h][2 + e] = pair.y;                                                                    \
    }                                                                                              \
  }
  CHOLESKY_FETCH(head, 0)
  SCL_UNROLL
  for (int s = 0; s < CHOLESKY_TAIL; s++) {
    CHOLESKY_FETCH(tail[s], s + 1)
  }
  barrier(CLK_LOCAL_MEM_FENCE);

#pragma unroll 1
  for (int p = 0; p < CHOLESKY_STRIPS; p++) {
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
      for (int k = 0; k < 16; k++) a[k] = lane < 16 ? d[lane * 17 + k] : (k == lane - 16 ? 1.0 : 0.0);
      factor16(a, lane, before + 16 * p, &failed);
      SCL_UNROLL
      for (int k = 0; k < 16; k++) {
        if (lane >= 16)
          c[CHOLESKY_AT(16 * p + k, lane - 16)] = a[k];
        else
          d[lane * 17 + k] = a[k];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    double solved[2][4], minus[2][4];
    if (w > p) {
      double zero[2][4] = {{0.0, 0.0, 0.0, 0.0}, {0.0, 0.0, 0.0, 0.0}};
      times16(solved, zero, head, c, 16 * p, g, t);
      SCL_UNROLL
      for (int h = 0; h < 2; h++) {
        *(__local double2 *)(c + CHOLESKY_AT(row, 8 * h + 2 * t)) = (double2)(solved[h][0], solved[h][1]);
        *(__local double2 *)(c + CHOLESKY_AT(row + 1, 8 * h + 2 * t)) = (double2)(solved[h][2], solved[h][3]);
      }
      negate(minus, solved);
      if (w == p + 1) {
        CHOLESKY_WARP_SYNC();
        times16(head, tail[0], minus, c, 16 * (p + 1), g, t);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    if (w > p) {
      if (w > p + 1) times16(head, tail[0], minus, c, 16 * (p + 1), g, t);
      SCL_UNROLL
      for (int s = 1; s < CHOLESKY_TAIL; s++) {
        if (p + 1 + s <= w) times16(tail[s - 1], tail[s], minus, c, 16 * (p + 1 + s), g, t);
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
        for (int i = 2 * lane; i < 256; i += 64)
          *(__global double2 *)(packed + p * CHOLESKY_COLUMN + 256 * w + i) =
              *(__local const double2 *)(c + 256 * w + i);
      }
    }
    if (w == p) { /* also the diagonal block, and the strip of warp p + 1, which is busy */
      for (int i = lane; i < 256; i += 32) {
        const int r = i % 16, k = i / 16;
        if (k <= r && 16 * p + r < n) A[16 * p + r + (long)(16 * p + k) * lda] = d[r * 17 + k];
        if (p + 1 < CHOLESKY_STRIPS) {
          const int below = 16 * (p + 1) + r;
          if (below < n) A[below + (long)(16 * p + k) * lda] = c[CHOLESKY_AT(below, k)];
          packed[p * CHOLESKY_COLUMN + 256 * (p + 1) + i] = c[256 * (p + 1) + i];
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

/* The m rows below a factored block of full order: A := A inv(L)', by substitution with the 16 x 16
 * inverses that cholesky_mma_block packed. One strip a warp, CHOLESKY_PANEL_WARPS strips a group; column blocks
 * arrive by asynchronous copies, two ahead. */
__kernel __attribute__((reqd_work_group_size(32 * CHOLESKY_PANEL_WARPS, 1, 1))) void
cholesky_mma_panel(const int m, __global double *A, const long offset_a, const int lda,
                   __global const double *packed) {
  __local double ring[3 * CHOLESKY_COLUMN] __attribute__((aligned(128)));
  const int item = get_local_id(0), lane = item & 31, g = lane >> 2, t = lane & 3;
  const int row = 16 * (CHOLESKY_PANEL_WARPS * (int)get_group_id(0) + (item >> 5)) + 2 * g;
  const int rows = clamp(m - row, 0, 2); /* of this lane's pair */
  A += offset_a + row;
#define CHOLESKY_GET(p, slot)                                                                      \
  do {                                                                                             \
    for (int i = 256 * (p) + 2 * item; i < CHOLESKY_COLUMN; i += 64 * CHOLESKY_PANEL_WARPS)        \
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(                              \
                       (uint)(ulong)(ring + (slot) * CHOLESKY_COLUMN + i)),                        \
                   "l"(packed + (p) * CHOLESKY_COLUMN + i)                                         \
                   : "memory");                                                                    \
    asm volatile("cp.async.commit_group;" ::: "memory");                                           \
  } while (0)
  CHOLESKY_GET(0, 0);
  CHOLESKY_GET(1, 1);

  double head[2][4], tail[CHOLESKY_TAIL][2][4];
#define CHOLESKY_FETCH_ROWS(block, q)                                                              \
  SCL_UNROLL                                                                                       \
  for (int h = 0; h < 2; h++) {                                                                    \
    SCL_UNROLL                                                                                     \
    for (int e = 0; e < 2; e++) {                                                                  \
      __global const double *from = A + (long)(16 * (q) + 8 * h + 2 * t + e) * lda;                \
      double2 pair = 0.0;                                                                          \
      if (rows == 2) pair = *(__global const double2 *)from;                                       \
      if (rows == 1) pair.x = *from;                                                               \
      block[h][e] = pair.x;                                                                        \
      block[h][2 + e] = pair.y;                                                                    \
    }                                                                                              \
  }
  CHOLESKY_FETCH_ROWS(head, 0)
  SCL_UNROLL
  for (int s = 0; s < CHOLESKY_TAIL; s++) {
    CHOLESKY_FETCH_ROWS(tail[s], s + 1)
  }

  /* Unrolled: guards of a looped body would end the overlap of the chains. */
  SCL_UNROLL
  for (int p = 0; p < CHOLESKY_STRIPS; p++) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    barrier(CLK_LOCAL_MEM_FENCE);
    CHOLESKY_GET(p + 2, (p + 2) % 3); /* past the last column block: an empty group */
    __local const double *c = ring + p % 3 * CHOLESKY_COLUMN;
    double zero[2][4] = {{0.0, 0.0, 0.0, 0.0}, {0.0, 0.0, 0.0, 0.0}};
    double solved[2][4], minus[2][4];
    times16(solved, zero, head, c, 16 * p, g, t);
    negate(minus, solved);
    SCL_UNROLL
    for (int h = 0; h < 2; h++) {
      SCL_UNROLL
      for (int e = 0; e < 2; e++) {
        __global double *to = A + (long)(16 * p + 8 * h + 2 * t + e) * lda;
        if (rows == 2) *(__global double2 *)to = (double2)(solved[h][e], solved[h][2 + e]);
        if (rows == 1) *to = solved[h][e];
      }
    }
    if (p + 1 < CHOLESKY_STRIPS) times16(head, tail[0], minus, c, 16 * (p + 1), g, t);
    SCL_UNROLL
    for (int s = 1; s < CHOLESKY_TAIL; s++) {
      if (p + 1 + s < CHOLESKY_STRIPS)
        times16(tail[s - 1], tail[s], minus, c, 16 * (p + 1 + s), g, t);
    }
  }
}
