/* Batched products on the double-precision matrix instructions of NVIDIA devices (mma.h): the
 * twin of batch_matmul.cl, with the same parameters, any sizes, offsets and steps. Used under the
 * same conditions as gemm_mma.cl (engine/cl/runtime/variant.c).
 *
 * Work split. A warp has a tile of BATCH_TILE x BATCH_TILE elements of one C in registers; the
 * tiles of a matrix, and the matrices, follow each other over the warps, BATCH_WARPS a group. A
 * warp walks along k in steps of 8. Its operands go from global memory straight to the registers
 * in which the instruction wants them, those of the next step while this one is multiplied: there
 * is neither local memory nor a barrier, and what tiles of one matrix share comes from the
 * first-level cache. The instruction wants 4 neighbours along k of 8 rows, or of columns: of either
 * storage order a load takes whole sectors of memory, by single numbers, so that nothing has to lie
 * on 16 bytes.
 *
 * Edges. Rows (of op(A); columns of op(B)) past the last are read from the last one, and their
 * results not written; what lies past the end of k is read from the last place and set to zero. So
 * no load stands under a condition of its own, and all of a step are under way together.
 *
 * Defined by whoever builds: BATCH_KERNEL (the kernel's name), BATCH_TILE (a multiple of 16). */
#define ROWS16 (BATCH_TILE / 16) /* blocks of 16 rows, and of 16 columns, of a tile */
#define DEPTH 8

/* A lane's share of a step: of each block number h + 2 s is that of row g + 8 h at t + 4 s. */
typedef struct {
  real a[ROWS16][4], b[ROWS16][4];
} batch_fragments;

/* Where a lane's rows start, of an operand with `rows` of them, `step` apart. */
MMA_INLINE void mma_aim(int *from, const int first, const int rows, const int step, const int g) {
  SCL_UNROLL for (int i = 0; i < 2 * ROWS16; i++) from[i] = min(first + 8 * i + g, rows - 1) * step;
}

/* Its numbers at q + t and q + t + 4, `step` apart along k; `whole`: both lie before the end. */
MMA_INLINE void mma_fetch(real x[ROWS16][4], __global const real *from, const int *at,
                          const int step, const int q, const int k, const bool whole, const int t) {
  const int near = q + t, far = near + 4;
  const int places[2] = {(whole ? near : min(near, k - 1)) * step,
                         (whole ? far : min(far, k - 1)) * step};
  SCL_UNROLL for (int i = 0; i < ROWS16; i++) {
    SCL_UNROLL for (int e = 0; e < 4; e++) x[i][e] = from[at[2 * i + e % 2] + places[e / 2]];
    if (whole) continue;
    SCL_UNROLL for (int e = 0; e < 4; e++) x[i][e] = near + e / 2 * 4 < k ? x[i][e] : 0.0;
  }
}

MMA_COLLECTIVE void mma_multiply(const mma_lane lane, real sums[ROWS16][2 * ROWS16][4],
                                 const batch_fragments *f) {
  SCL_UNROLL for (int i = 0; i < ROWS16; i++) {
    SCL_UNROLL for (int j = 0; j < 2 * ROWS16; j++) {
      mma_8(lane, sums[i][j], f->a[i][0], f->a[i][1], f->a[i][2], f->a[i][3], f->b[j / 2][j % 2],
            f->b[j / 2][j % 2 + 2]);
    }
  }
}

__attribute__((reqd_work_group_size(32 * BATCH_WARPS, 1, 1))) __kernel void
BATCH_KERNEL(__global const real *a, __global const real *b, __global real *c,
             const batch_product_task task) {
  const int batch = task.batch, m = task.m, n = task.n, k = task.k, flags = task.flags;
  const int step_a = task.a_step, step_b = task.b_step, step_c = task.c_step;
  const long a0 = task.a_offset, b0 = task.b_offset, c0 = task.c_offset;
  MMA_LANE(lane_of_group, BATCH_WARPS);
  const int item = (int)get_local_id(0), g = lane_of_group.quad, t = lane_of_group.member;
  const int tiles_m = (m + BATCH_TILE - 1) / BATCH_TILE;
  const int tiles = (n + BATCH_TILE - 1) / BATCH_TILE * tiles_m;
  const int warp = (int)get_group_id(0) * BATCH_WARPS + item / 32;
  const bool there = warp / tiles < batch;
  if (!there && !MMA_ROLES_TOGETHER) return; /* the warp as a whole */
  const mma_lane lane = mma_only(lane_of_group, there);
  const int matrix = min(warp / tiles, batch - 1);
  const int tile = warp % tiles;
  const int row0 = tile % tiles_m * BATCH_TILE, column0 = tile / tiles_m * BATCH_TILE;
  const bool ta = (flags & BATCH_TRANSPOSE) != 0, tb = (flags & BATCH_TRANSPOSE_B) != 0;
  const int deep_a = ta ? 1 : m, deep_b = tb ? n : 1; /* steps along k */
  real sums[ROWS16][2 * ROWS16][4];
  SCL_UNROLL for (int i = 0; i < ROWS16; i++) {
    SCL_UNROLL for (int j = 0; j < 2 * ROWS16; j++) {
      SCL_UNROLL for (int e = 0; e < 4; e++) sums[i][j][e] = 0.0;
    }
  }
  int from_a[2 * ROWS16], from_b[2 * ROWS16];
  mma_aim(from_a, row0, m, ta ? k : 1, g);
  mma_aim(from_b, column0, n, tb ? 1 : k, g);
  a += a0 + (long)matrix * step_a;
  b += b0 + (long)matrix * step_b;

  batch_fragments even, odd;
#define MMA_FETCH(f, q, whole)                                                                     \
  mma_fetch((f)->a, a, from_a, deep_a, q, k, whole, t);                                            \
  mma_fetch((f)->b, b, from_b, deep_b, q, k, whole, t);
#define MMA_LOAD(f, q)                                                                             \
  if ((q) + DEPTH <= k) {                                                                          \
    MMA_FETCH(f, q, true)                                                                          \
  } else if ((q) < k) {                                                                            \
    MMA_FETCH(f, q, false)                                                                         \
  }
  MMA_LOAD(&even, 0)
  for (int q = 0; q < k; q += 2 * DEPTH) {
    MMA_LOAD(&odd, q + DEPTH)
    mma_multiply(lane, sums, &even);
    if (q + DEPTH >= k) break;
    MMA_LOAD(&even, q + 2 * DEPTH)
    mma_multiply(lane, sums, &odd);
  }

  if (!mma_is_active(lane)) return;
  c += c0 + (long)matrix * step_c;
  const bool inside = row0 + BATCH_TILE <= m && column0 + BATCH_TILE <= n;
  SCL_UNROLL for (int j = 0; j < 2 * ROWS16; j++) {
    SCL_UNROLL for (int i = 0; i < ROWS16; i++) {
      SCL_UNROLL for (int e = 0; e < 4; e++) {
        const int row = row0 + 16 * i + 8 * (e / 2) + g, column = column0 + 8 * j + 2 * t + e % 2;
        if (inside || (row < m && column < n)) c[row + column * m] = sums[i][j][e];
      }
    }
  }
}
