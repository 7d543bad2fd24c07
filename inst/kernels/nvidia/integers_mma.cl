/* Residues of a product by the 8-bit matrix instructions of NVIDIA devices (mma.h), for a tile of
 * INTEGERS_TILE_M x INTEGERS_TILE_N elements and one modulus: by the instruction of a warp or, with
 * INTEGERS_WARPGROUPS, by that of four warps, which reads local memory itself.
 *
 *                    op(A)', k x 256            The instruction's rows are columns of C, its
 *                  +----+----+----+----+        columns are rows of C. A warp has 64 x 64 of
 *                  |    |    |    |    |        them, as blocks of 16 columns and 8 rows; of a
 *                  +----+----+----+----+        warpgroup's 64 columns and 256 rows it has 16
 *   +---------+    +----+----+----+----+        columns. A stage of local memory is DEPTH terms
 *   | op(B)'  |    | w0 | w1 | w2 | w3 |        of the rows of op(A) and the columns of op(B), by
 *   | 128 x k |    +----+----+----+----+        chunks of 16 bytes a row, so that any 8 rows are
 *   |         |    | w4 | w5 | w6 | w7 |        read without a conflict of banks. A RING of stages
 *   +---------+    +----+----+----+----+        is filled by asynchronous copies.
 *
 *                                               As op(A) is packed by integers_position(), a lane's
 *                                               results in a column of C are 16 neighbours.
 *
 * Packed operands have whole tiles of rows, panels of columns and stages, with zeros past the
 * ends. */

#define INTEGERS_ORDER 8 /* tile rows taken together, for reuse in the second-level cache */

#define INTEGERS_BLOCKS 4 /* of a warp: of 16 columns of C, of a warpgroup of 64 rows */
#define INTEGERS_SUMS (INTEGERS_BLOCKS * 8) /* by four, of a lane */
#define INTEGERS_STAGE_BYTES ((INTEGERS_TILE_M + INTEGERS_TILE_N) * INTEGERS_DEPTH)
#define INTEGERS_STAGE (INTEGERS_STAGE_BYTES / 8) /* reals */
#define INTEGERS_COPIES (INTEGERS_STAGE_BYTES / 16 / INTEGERS_ITEMS) /* of 16 bytes, of an item */

/* Where a work-item's copies start. */
typedef struct {
  __global const real *from[INTEGERS_COPIES];
} integers_source;

/* Starts the copies of stage number `at` of `end`; after the last one of zeros. No group yet. */
MMA_INLINE void integers_fill(mma_copies *copies, __local real *stage,
                              const integers_source *source, const int at, const int end,
                              const int item) {
  SCL_UNROLL
  for (int i = 0; i < INTEGERS_COPIES; i++) {
    mma_copy_16(copies, stage + 2 * (item + i * INTEGERS_ITEMS),
                source->from[i] + at * (long)(INTEGERS_PACKED / 8), at < end ? 16 : 0);
  }
}

/* `a` and `b`: the residues by one modulus. */
MMA_INLINE void integers_aim(integers_source *source, __global const real *a,
                             __global const real *b, const integers_product *product,
                             const int row0, const int column0, const int item) {
  const long panel = product->stages * (long)(INTEGERS_PACKED / 8);
  SCL_UNROLL
  for (int i = 0; i < INTEGERS_COPIES; i++) {
    const int copy = item + i * INTEGERS_ITEMS;
    const int of_b = copy - INTEGERS_TILE_M * INTEGERS_DEPTH / 16;
    const int chunk = of_b < 0 ? copy / INTEGERS_TILE_M : of_b / INTEGERS_TILE_N;
    const int row = of_b < 0 ? row0 + copy % INTEGERS_TILE_M : column0 + of_b % INTEGERS_TILE_N;
    source->from[i] = (of_b < 0 ? a : b) + row / INTEGERS_PANEL * panel +
                      (chunk * INTEGERS_PANEL + row % INTEGERS_PANEL) * (INTEGERS_CHUNK / 8);
  }
}

#ifndef INTEGERS_WARPGROUPS

/* ---- by warps -------------------------------------------------------------------------------- */

#define INTEGERS_RING 4 /* stages */
#define INTEGERS_WARPS_M (INTEGERS_TILE_M / 64)

/* The first row and column of a warp's results in the tile; what lies between its blocks. */
#define INTEGERS_WARP_ROW(warp) ((warp) % INTEGERS_WARPS_M * 64)
#define INTEGERS_WARP_COLUMN(warp) ((warp) / INTEGERS_WARPS_M * 64)
#define INTEGERS_BLOCK_STEP(rows) (16 * (rows))

/* What a warp needs of a stage for 32 terms. `rows` and `columns`: where this lane's rows of the
 * warp's first blocks of C's rows and columns lie, in bytes. */
MMA_COLLECTIVE void integers_load_rows(const mma_lane lane, uint to[8][2],
                                       __local const real *stage, const int rows) {
  SCL_UNROLL
  for (int j = 0; j < 4; j++) {
    uint pair[4];
    mma_load_rows(lane, pair, stage, rows + j * 16 * INTEGERS_CHUNK);
    to[2 * j][0] = pair[0];
    to[2 * j][1] = pair[1];
    to[2 * j + 1][0] = pair[2];
    to[2 * j + 1][1] = pair[3];
  }
}

MMA_COLLECTIVE void integers_load_columns(const mma_lane lane, uint to[4],
                                          __local const real *stage, const int columns,
                                          const int block) {
  mma_load_rows(lane, to, stage, columns + block * 16 * INTEGERS_CHUNK);
}

/* Sums over stages first to end - 1. What the next 32 terms need is loaded while these are
 * multiplied, of columns in place of what has been used; a stage is filled again once all warps
 * have loaded its last ones. */
MMA_COLLECTIVE void integers_sum_tile(const mma_lane lane, int sums[INTEGERS_SUMS][4],
                                      __local real *stages, const integers_source *source,
                                      const int first, const int end, const int item) {
  const int warp = item >> 5, row = lane.lane & 7, block = lane.lane >> 3;
  /* of rows the second block is the next chunk of the same ones, of columns the next ones */
  const int rows = ((block & 1) * INTEGERS_TILE_M + warp % INTEGERS_WARPS_M * 64 +
                    (block >> 1) * 8 + row) * INTEGERS_CHUNK;
  const int columns = INTEGERS_TILE_M * INTEGERS_DEPTH +
                      ((block >> 1) * INTEGERS_TILE_N + warp / INTEGERS_WARPS_M * 64 +
                       (block & 1) * 8 + row) * INTEGERS_CHUNK;
  mma_copies copies = MMA_NO_COPIES;
  uint of_rows[2][8][2], of_columns[INTEGERS_BLOCKS][4];
  __local real *stage = stages;
  for (int s = 0; s < INTEGERS_RING; s++) {
    integers_fill(&copies, stages + s * INTEGERS_STAGE, source, first + s, end, item);
    mma_commit(&copies);
  }
  MMA_WAIT(&copies, INTEGERS_RING - 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  integers_load_rows(lane, of_rows[0], stage, rows);
  SCL_UNROLL
  for (int i = 0; i < INTEGERS_BLOCKS; i++)
    integers_load_columns(lane, of_columns[i], stage, columns, i);
  for (int s = first; s < end; s += 2) {
    SCL_UNROLL
    for (int u = 0; u < 2; u++) {
      __local real *next = stage == stages + (INTEGERS_RING - 1) * INTEGERS_STAGE
                               ? stages
                               : stage + INTEGERS_STAGE;
      MMA_WAIT(&copies, INTEGERS_RING - 2);
      barrier(CLK_LOCAL_MEM_FENCE);
      integers_fill(&copies, stage, source, s + INTEGERS_RING + u, end, item);
      mma_commit(&copies);
      stage = next;
      integers_load_rows(lane, of_rows[1 - u], stage, rows);
      SCL_UNROLL
      for (int i = 0; i < INTEGERS_BLOCKS; i++) {
        SCL_UNROLL
        for (int j = 0; j < 8; j++) mma_bytes(lane, sums[8 * i + j], of_columns[i], of_rows[u][j]);
        integers_load_columns(lane, of_columns[i], stage, columns, i);
      }
    }
  }
}

#else

/* ---- by warpgroups --------------------------------------------------------------------------- */

/* More local memory than OpenCL reports; an emulation needs only enough to go round. */
#define INTEGERS_TOGETHER 2 /* stages between two barriers */
#ifdef SCL_MMA_EMULATED
#define INTEGERS_RING INTEGERS_RING_EMULATED
#else
#define INTEGERS_RING INTEGERS_RING_MOST
#endif
#define INTEGERS_PLACES (INTEGERS_RING / INTEGERS_TOGETHER) /* 3 or more */

#define INTEGERS_WARP_ROW(warp) 0
#define INTEGERS_WARP_COLUMN(warp) ((warp) * 16)
#define INTEGERS_BLOCK_STEP(rows) 64

MMA_INLINE void integers_fill_place(mma_copies *copies, __local real *stages, const int place,
                                    const integers_source *source, const int at, const int end,
                                    const int item) {
  SCL_UNROLL
  for (int i = 0; i < INTEGERS_TOGETHER; i++)
    integers_fill(copies, stages + (place * INTEGERS_TOGETHER + i) * INTEGERS_STAGE, source, at + i,
                  end, item);
  mma_commit(copies);
}

MMA_INLINE int integers_after(const int place) {
  return place == INTEGERS_PLACES - 1 ? 0 : place + 1;
}

/* Sums over stages first to end - 1. The products of a place go on while those of the next are
 * started, so that behind a barrier all have done with the place before the last: it is filled
 * again. */
MMA_COLLECTIVE void integers_sum_tile(const mma_lane lane, int sums[INTEGERS_SUMS][4],
                                      __local real *stages, const integers_source *source,
                                      const int first, const int end, const int item) {
  const int warp = item >> 5;
  const int columns = INTEGERS_TILE_M * INTEGERS_DEPTH + (warp >> 2) * 64 * INTEGERS_CHUNK;
  mma_copies copies = MMA_NO_COPIES;
  int place = 0, to = INTEGERS_PLACES - 2;
  for (int s = 0; s < INTEGERS_PLACES - 2; s++)
    integers_fill_place(&copies, stages, s, source, first + s * INTEGERS_TOGETHER, end, item);
  for (int s = first; s < end; s += INTEGERS_TOGETHER) {
    MMA_WAIT(&copies, INTEGERS_PLACES - 3);
    mma_group_see_copies();
    barrier(CLK_LOCAL_MEM_FENCE);
    mma_group_begin();
    SCL_UNROLL
    for (int i = 0; i < INTEGERS_TOGETHER; i++) {
      __local const real *stage = stages + (place * INTEGERS_TOGETHER + i) * INTEGERS_STAGE;
      mma_group_bytes(lane, warp, sums, stage + columns / 8, INTEGERS_TILE_N * INTEGERS_CHUNK,
                      stage, INTEGERS_TILE_M * INTEGERS_CHUNK);
    }
    mma_group_commit();
    integers_fill_place(&copies, stages, to, source,
                        s + (INTEGERS_PLACES - 2) * INTEGERS_TOGETHER, end, item);
    MMA_GROUP_WAIT(1);
    place = integers_after(place);
    to = integers_after(to);
  }
  MMA_GROUP_WAIT(0);
}

#endif

/* ---- results --------------------------------------------------------------------------------- */

/* The residues of a lane: c is where those of its first column and row are. */
MMA_INLINE void integers_write(int sums[INTEGERS_SUMS][4], __global char *c, const long rows,
                               const int modulus) {
  const int reciprocal = integers_reciprocal(modulus);
  SCL_UNROLL
  for (int i = 0; i < INTEGERS_BLOCKS; i++) {
    SCL_UNROLL
    for (int upper = 0; upper < 2; upper++) {
      uint words[4];
      SCL_UNROLL
      for (int word = 0; word < 4; word++) {
        uint residues[4];
        SCL_UNROLL
        for (int at = 0; at < 4; at++) {
          const int sum = sums[8 * i + 2 * word + (at >> 1)][2 * upper + (at & 1)];
          residues[at] = (uint)integers_residue(sum, modulus, reciprocal);
        }
        words[word] = mma_pack(residues[0], residues[1], residues[2], residues[3]);
      }
      *(__global uint4 *)(c + i * INTEGERS_BLOCK_STEP(rows) + 8 * upper * rows) =
          (uint4)(words[0], words[1], words[2], words[3]);
    }
  }
}

__kernel __attribute__((reqd_work_group_size(INTEGERS_ITEMS, 1, 1))) void
INTEGERS_MULTIPLY(__global const real *a, __global const real *b, __global real *c,
                  const integers_product product) {
  __local real stages[INTEGERS_RING * INTEGERS_STAGE] __attribute__((aligned(128)));
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

  const int depth = product.stages * INTEGERS_DEPTH;
  int begin = 0, end = depth;
  if (product.views & GEMM_A_LOWER) end = min(end, row0 + INTEGERS_TILE_M);
  if (product.views & GEMM_A_UPPER) begin = max(begin, row0);
  if (product.views & GEMM_B_LOWER) begin = max(begin, column0);
  if (product.views & GEMM_B_UPPER) end = min(end, column0 + INTEGERS_TILE_N);
  const int first = begin / INTEGERS_DEPTH;
  const int last = (end + INTEGERS_DEPTH - 1) / INTEGERS_DEPTH;

  integers_source source;
  integers_aim(&source, a + i * (product.a_step / 8), b + i * (product.b_step / 8), &product, row0,
               column0, item);
  int sums[INTEGERS_SUMS][4];
  SCL_UNROLL
  for (int four = 0; four < INTEGERS_SUMS; four++) {
    SCL_UNROLL
    for (int e = 0; e < 4; e++) sums[four][e] = 0;
  }
  integers_sum_tile(lane, sums, stages, &source, first, last, item);
  const int row = row0 + INTEGERS_WARP_ROW(warp) + 16 * lane.member;
  const int column = column0 + INTEGERS_WARP_COLUMN(warp) + lane.quad;
  integers_write(sums, (__global char *)c + i * product.c_step + row + column * (long)product.rows,
                 product.rows, integers_modulus[i]);
}
