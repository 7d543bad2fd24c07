/* Batched products on the double-precision matrix instructions of NVIDIA devices (mma.h): the
 * twin of batch_matmul.cl, with the same parameters, any sizes, offsets and steps. Used under the
 * same conditions as gemm_mma.cl (engine/cl/runtime/variant.c).
 *
 *               op(B), 8 rows a step         A warp has a tile of C, BATCH_TILE x BATCH_TILE, in
 *               +--------+--------+          registers, and walks along k in steps of 8. The tiles
 *      k -->    |        |        |          of a matrix, down its columns, and then the matrices
 *     +---+     +--------+--------+          are numbered over the warps, BATCH_WARPS to a group.
 *     |   |     | warp 0 | warp 2 |
 *     +---+     +--------+--------+          op(A), 8 columns a step
 *     |   |     | warp 1 | warp 3 |
 *     +---+     +--------+--------+
 *
 * Operands go from global memory straight to the registers in which the instruction needs them,
 * those of the next step while this one is multiplied: there is neither local memory nor a barrier,
 * and operands that tiles of one matrix share come from the first-level cache. The instruction
 * wants 4 neighbours along k of 8 rows, or of columns: of either storage order a load takes whole
 * sectors of memory, by single numbers, so that nothing has to lie on 16 bytes.
 *
 * Edges. Rows (of op(A); columns of op(B)) past the last are read from the last one, and their
 * results not written; elements past the end of k are read from the last one and set to zero. So no
 * load has a condition of its own, and all loads of a step overlap.
 *
 * To define before: BATCH_KERNEL (the kernel's name), BATCH_TILE (a multiple of 16). */
#define ROWS16 (BATCH_TILE / 16) /* blocks of 16 rows, and of 16 columns, of a tile */
#define DEPTH 8

/* A lane's share of a step: number h + 2 s of each block is that of row g + 8 h at t + 4 s. */
typedef struct {
  real a[ROWS16][4], b[ROWS16][4];
} batch_fragments;

/* Where a lane's rows start, of an operand with `rows` of them, `step` apart. */
MMA_INLINE void find_rows(int *from, const int first, const int rows, const int step,
                          const int g) {
  SCL_UNROLL for (int i = 0; i < 2 * ROWS16; i++) from[i] = min(first + 8 * i + g, rows - 1) * step;
}

/* Its numbers at q + t and q + t + 4, `step` apart along k; `whole`: both lie before the end. */
MMA_INLINE void load_rows(real x[ROWS16][4], __global const real *from, const int *at,
                          const int step, const int q, const int k, const bool whole, const int t) {
  const int near = q + t, far = near + 4;
  const int offsets[2] = {(whole ? near : min(near, k - 1)) * step,
                          (whole ? far : min(far, k - 1)) * step};
  SCL_UNROLL for (int i = 0; i < ROWS16; i++) {
    SCL_UNROLL for (int e = 0; e < 4; e++) x[i][e] = from[at[2 * i + e % 2] + offsets[e / 2]];
    if (whole) continue;
    SCL_UNROLL for (int e = 0; e < 4; e++) x[i][e] = near + e / 2 * 4 < k ? x[i][e] : 0.0;
  }
}

/* A lane's share of the step at q, if there is one. */
MMA_INLINE void load_step(batch_fragments *f, __global const real *a, const int *from_a,
                          const int step_a, __global const real *b, const int *from_b,
                          const int step_b, const int q, const int k, const int t) {
  if (q + DEPTH <= k) {
    load_rows(f->a, a, from_a, step_a, q, k, true, t);
    load_rows(f->b, b, from_b, step_b, q, k, true, t);
  } else if (q < k) {
    load_rows(f->a, a, from_a, step_a, q, k, false, t);
    load_rows(f->b, b, from_b, step_b, q, k, false, t);
  }
}

MMA_COLLECTIVE void multiply_step(const mma_lane lane, real sums[ROWS16][2 * ROWS16][4],
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
  const bool exists = warp / tiles < batch;
  if (!exists && !MMA_ROLES_TOGETHER) return; /* the warp as a whole */
  const mma_lane lane = mma_only(lane_of_group, exists);
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
  find_rows(from_a, row0, m, ta ? k : 1, g);
  find_rows(from_b, column0, n, tb ? 1 : k, g);
  a += a0 + (long)matrix * step_a;
  b += b0 + (long)matrix * step_b;

  batch_fragments even, odd;
  load_step(&even, a, from_a, deep_a, b, from_b, deep_b, 0, k, t);
  for (int q = 0; q < k; q += 2 * DEPTH) {
    load_step(&odd, a, from_a, deep_a, b, from_b, deep_b, q + DEPTH, k, t);
    multiply_step(lane, sums, &even);
    if (q + DEPTH >= k) break;
    load_step(&even, a, from_a, deep_a, b, from_b, deep_b, q + 2 * DEPTH, k, t);
    multiply_step(lane, sums, &odd);
  }

  if (!mma_is_active(lane)) return;
  c += c0 + (long)matrix * step_c;
  const bool is_whole = row0 + BATCH_TILE <= m && column0 + BATCH_TILE <= n;
  SCL_UNROLL for (int j = 0; j < 2 * ROWS16; j++) {
    SCL_UNROLL for (int i = 0; i < ROWS16; i++) {
      SCL_UNROLL for (int e = 0; e < 4; e++) {
        const int row = row0 + 16 * i + 8 * (e / 2) + g, column = column0 + 8 * j + 2 * t + e % 2;
        if (is_whole || (row < m && column < n)) c[row + column * m] = sums[i][j][e];
      }
    }
  }
}
