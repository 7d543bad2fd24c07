/* Residues of a product by the 8-bit matrix instruction of NVIDIA devices (mma.h): the product of
 * integers.cl for a tile of INTEGERS_TILE_M x INTEGERS_TILE_N elements and one modulus.
 *
 *                    op(A)', k x 256            The instruction's rows are columns of C, its
 *                  +----+----+----+----+        columns are rows of C. A warp has 64 x 64 of them
 *                  |    |    |    |    |        as 4 x 8 blocks of 16 x 8. A stage of local memory
 *                  +----+----+----+----+        is DEPTH terms of each panel, as they are packed:
 *   +---------+    +----+----+----+----+        16 bytes a row, so that any 8 rows are read without
 *   | op(B)'  |    | w0 | w1 | w2 | w3 |        a conflict of banks. A ring of STAGES is filled by
 *   | 128 x k |    +----+----+----+----+        asynchronous copies; there is a barrier after each.
 *   |         |    | w4 | w5 | w6 | w7 |
 *   +---------+    +----+----+----+----+        As op(A) is packed by integers_position(), a lane's
 *                                               results in a column of C are 16 neighbours.
 *
 * Packed operands have whole tiles and stages, with zeros past the ends. */

#ifndef INTEGERS_STAGES
#define INTEGERS_STAGES 4
#endif
#ifndef INTEGERS_ORDER
#define INTEGERS_ORDER 8 /* tile rows taken together, for reuse in the second-level cache */
#endif

#define INTEGERS_WARPS_M (INTEGERS_TILE_M / 64)
#define INTEGERS_PANEL_COPIES (INTEGERS_PANEL * INTEGERS_DEPTH / 16) /* of 16 bytes, a stage */
#define INTEGERS_COPIES                                                                            \
  ((INTEGERS_TILE_M + INTEGERS_TILE_N) * INTEGERS_DEPTH / 16 / INTEGERS_ITEMS)
#define INTEGERS_STAGE ((INTEGERS_TILE_M + INTEGERS_TILE_N) * INTEGERS_DEPTH / 8) /* reals */
#define INTEGERS_STEPS (INTEGERS_DEPTH / 32) /* of the instruction, in a stage: 1 or 2 */
#define INTEGERS_CHUNK_BYTES (INTEGERS_PANEL * INTEGERS_CHUNK) /* of a panel */

/* Starts the copies of stage number `at` of `end`; after the last one of zeros. */
MMA_INLINE void integers_fill(mma_copies *copies, __local real *stage,
                              __global const real *const *source, const int at, const int end,
                              const int item) {
  SCL_UNROLL
  for (int i = 0; i < INTEGERS_COPIES; i++)
    mma_copy_16(copies, stage + 2 * (item + i * INTEGERS_ITEMS),
                source[i] + at * (long)(INTEGERS_PANEL * INTEGERS_DEPTH / 8), at < end ? 16 : 0);
  mma_commit(copies);
}

/* Where a work-item's copies start: `a` and `b` are the first panels of the tile. */
MMA_INLINE void integers_aim(__global const real **source, __global const real *a,
                             __global const real *b, const long panel, const int item) {
  SCL_UNROLL
  for (int i = 0; i < INTEGERS_COPIES; i++) {
    const int copy = item + i * INTEGERS_ITEMS;
    const int which = copy / INTEGERS_PANEL_COPIES, within = copy % INTEGERS_PANEL_COPIES;
    const int of_a = INTEGERS_TILE_M / INTEGERS_PANEL;
    source[i] = (which < of_a ? a + which * panel : b + (which - of_a) * panel) + 2 * within;
  }
}

/* What a warp needs of a stage for 32 terms. */
typedef struct {
  uint rows[8][2], columns[4][4];
} integers_fragments;

/* `rows` and `columns`: where this lane's rows of the warp's first blocks of C's rows and columns
 * lie, in bytes. */
MMA_COLLECTIVE void integers_load(const mma_lane lane, integers_fragments *to,
                                  __local const real *stage, const int rows, const int columns) {
  SCL_UNROLL
  for (int i = 0; i < 4; i++)
    mma_load_rows(lane, to->columns[i], stage, columns + i * 16 * INTEGERS_CHUNK);
  SCL_UNROLL
  for (int j = 0; j < 4; j++) {
    uint pair[4];
    mma_load_rows(lane, pair, stage, rows + j * 16 * INTEGERS_CHUNK);
    to->rows[2 * j][0] = pair[0];
    to->rows[2 * j][1] = pair[1];
    to->rows[2 * j + 1][0] = pair[2];
    to->rows[2 * j + 1][1] = pair[3];
  }
}

MMA_COLLECTIVE void integers_multiply(const mma_lane lane, int sums[4][8][4],
                                      const integers_fragments *of) {
  SCL_UNROLL
  for (int i = 0; i < 4; i++) {
    SCL_UNROLL
    for (int j = 0; j < 8; j++) mma_bytes(lane, sums[i][j], of->columns[i], of->rows[j]);
  }
}

/* Sums over stages first to end - 1. Fragments of the next 32 terms are loaded while these are
 * multiplied; a stage is filled again once all warps have loaded its last ones. */
MMA_COLLECTIVE void integers_sum_tile(const mma_lane lane, int sums[4][8][4], __local real *stages,
                                      __global const real *const *source, const int first,
                                      const int end, const int item) {
  const int warp = item >> 5, warp_m = warp % INTEGERS_WARPS_M, warp_n = warp / INTEGERS_WARPS_M;
  const int row = lane.lane & 7, block = lane.lane >> 3;
  /* of A the second block is the next chunk of the same rows, of B the next rows */
  const int rows = (warp_m / 2 * INTEGERS_PANEL_COPIES + warp_m % 2 * 64 + row + (block >> 1) * 8 +
                    (block & 1) * INTEGERS_PANEL) * INTEGERS_CHUNK;
  const int columns = ((INTEGERS_WARPS_M / 2 + warp_n / 2) * INTEGERS_PANEL_COPIES +
                       warp_n % 2 * 64 + row + (block & 1) * 8 + (block >> 1) * INTEGERS_PANEL) *
                      INTEGERS_CHUNK;
  mma_copies copies = MMA_NO_COPIES;
  integers_fragments fragments[2];
  __local real *stage = stages;
  for (int s = 0; s < INTEGERS_STAGES; s++)
    integers_fill(&copies, stages + s * INTEGERS_STAGE, source, first + s, end, item);
  MMA_WAIT(&copies, INTEGERS_STAGES - 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  integers_load(lane, &fragments[0], stage, rows, columns);
  for (int s = first; s < end; s += 2 / INTEGERS_STEPS) {
    SCL_UNROLL
    for (int u = 0; u < 2; u++) {
      const int step = INTEGERS_STEPS == 2 ? 1 - u : 0; /* the next one, of its stage */
      if (step == 0) {
        __local real *next = stage == stages + (INTEGERS_STAGES - 1) * INTEGERS_STAGE
                                 ? stages
                                 : stage + INTEGERS_STAGE;
        MMA_WAIT(&copies, INTEGERS_STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        integers_fill(&copies, stage, source,
                      s + INTEGERS_STAGES + (INTEGERS_STEPS == 2 ? 0 : u), end, item);
        stage = next;
      }
      integers_load(lane, &fragments[1 - u], stage, rows + 2 * step * INTEGERS_CHUNK_BYTES,
                    columns + 2 * step * INTEGERS_CHUNK_BYTES);
      integers_multiply(lane, sums, &fragments[u]);
    }
  }
}

/* The residues of a lane: c is where those of its first column and row are. */
MMA_INLINE void integers_write(int sums[4][8][4], __global char *c, const long rows,
                               const int modulus) {
  const int reciprocal = integers_reciprocal(modulus);
  SCL_UNROLL
  for (int i = 0; i < 4; i++) {
    SCL_UNROLL
    for (int upper = 0; upper < 2; upper++) {
      uint words[4];
      SCL_UNROLL
      for (int word = 0; word < 4; word++) {
        words[word] = 0;
        SCL_UNROLL
        for (int at = 0; at < 4; at++) {
          const int sum = sums[i][2 * word + (at >> 1)][2 * upper + (at & 1)];
          words[word] |= ((uint)integers_residue(sum, modulus, reciprocal) & 255) << (8 * at);
        }
      }
      *(__global uint4 *)(c + (16 * i + 8 * upper) * rows) =
          (uint4)(words[0], words[1], words[2], words[3]);
    }
  }
}

__kernel __attribute__((reqd_work_group_size(INTEGERS_ITEMS, 1, 1))) void
integers_mma_multiply(__global const real *a, __global const real *b, __global real *c,
                      const integers_product product) {
  __local real stages[INTEGERS_STAGES * INTEGERS_STAGE] __attribute__((aligned(128)));
  MMA_LANE(lane, INTEGERS_ITEMS / 32);
  const int item = get_local_id(0), warp = item >> 5;
  const int tiles_m = (product.m + INTEGERS_TILE_M - 1) / INTEGERS_TILE_M;
  const int tiles_n = (product.n + INTEGERS_TILE_N - 1) / INTEGERS_TILE_N;
  const int i = get_group_id(0) / (tiles_m * tiles_n);
  const int tile = get_group_id(0) % (tiles_m * tiles_n);
  const int band = tile / (INTEGERS_ORDER * tiles_n), within = tile % (INTEGERS_ORDER * tiles_n);
  const int band_rows = min(INTEGERS_ORDER, tiles_m - band * INTEGERS_ORDER);
  const int row0 = (band * INTEGERS_ORDER + within % band_rows) * INTEGERS_TILE_M;
  const int column0 = within / band_rows * INTEGERS_TILE_N;
  if (product.region != GEMM_ALL &&
      product.first_row + row0 + INTEGERS_TILE_M <= product.first_column + column0)
    return;

  const int depth = product.chunks * INTEGERS_CHUNK;
  int begin = 0, end = depth;
  if (product.views & GEMM_A_LOWER) end = min(end, row0 + INTEGERS_TILE_M);
  if (product.views & GEMM_A_UPPER) begin = max(begin, row0);
  if (product.views & GEMM_B_LOWER) begin = max(begin, column0);
  if (product.views & GEMM_B_UPPER) end = min(end, column0 + INTEGERS_TILE_N);
  const int first = begin / INTEGERS_DEPTH;
  const int last = (end + INTEGERS_DEPTH - 1) / INTEGERS_DEPTH;

  const long panel = (long)INTEGERS_PANEL * depth / 8; /* reals */
  __global const real *source[INTEGERS_COPIES];
  integers_aim(source, a + i * (product.a_step / 8) + row0 / INTEGERS_PANEL * panel,
               b + i * (product.b_step / 8) + column0 / INTEGERS_PANEL * panel, panel, item);
  int sums[4][8][4];
  SCL_UNROLL
  for (int row = 0; row < 4; row++) {
    SCL_UNROLL
    for (int column = 0; column < 8; column++) {
      SCL_UNROLL
      for (int e = 0; e < 4; e++) sums[row][column][e] = 0;
    }
  }
  integers_sum_tile(lane, sums, stages, source, first, last, item);
  const int row = row0 + warp % INTEGERS_WARPS_M * 64 + 16 * lane.member;
  const int column = column0 + warp / INTEGERS_WARPS_M * 64 + lane.quad;
  integers_write(sums, (__global char *)c + i * product.c_step + row + column * (long)product.rows,
                 product.rows, integers_modulus[i]);
}
