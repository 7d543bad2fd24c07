/* C = alpha op(A) op(B) + beta F on the double-precision matrix instructions of NVIDIA devices
 * (mma.h): the products of gemm.cl, but F (`from`) may be another matrix than C, and C may be
 * written transposed as well (GEMM_AND_TRANSPOSED).
 *
 *                   op(B), k x n         A group owns one tile of C, TILE_M x TILE_N. Each of its
 *                  +---+-----+---+       4 or 8 warps has WARP_M x WARP_N of it in registers. The
 *                  |   |  b  |   |       group walks along k in stages of 8:
 *                  +---+-----+---+
 *    +---------+   +---+-----+---+         asynchronous copies        fragments          C
 *    | a |     |   |   |w0 w2|   |         global ---> ring of ---> registers ---> accumulators
 *    |   |     |   |   |w1 w3|   |         memory      STAGES       of a warp      of a warp
 *    +---------+   +---+-----+---+         a few stages ahead       one step ahead
 *    op(A), m x k      C
 *                                        There is a barrier after every MMA_TOGETHER stages.
 *
 * Assumptions beyond those of gemm.cl: offsets, leading dimensions and batch steps are even and
 * buffers aligned to 16 bytes. Compiled once for each tile size (gemm_mma_tiny.h and others), each
 * tried on the device before it is used (engine/cl/linalg/gemm_trial.c).
 *
 * Layout. An operand is called deep when it is contiguous along k (A transposed, B not), else flat.
 * In local memory a flat operand has 8 rows, one for each k, of TILE doubles; a deep one has TILE
 * rows of 8 doubles, as it lies in global memory. Exclusive-ors in mma_offset() spread both over
 * the banks. All local loads are 16 bytes: two rows at one k of a flat operand, two k at one row of
 * a deep one.
 *
 * Relabelling. The instruction's rows quad and quad + 8 stand for the matrix rows 2 quad and 2 quad
 * + 1, and in step s of a stage (s = 0, 1) its k = member stands for k = 2 member + s. The two
 * instructions of 8 columns that cover 16 columns of a flat B take its even and its odd columns.
 * None of this changes a sum; it makes the numbers that a lane needs pairs of neighbours.
 *
 * Edges. Copies past the end of k fill in zeros, so that the number of stages suits the loop; rows
 * past the last one are read from the last one, and their results not written
 * (gemm_mma_results.h). */

/* MMA_TILE_M, MMA_TILE_N, MMA_WARP_M, MMA_WARP_N, MMA_STAGES, MMA_TOGETHER: in the header of each
 * tile size, gemm_mma_tiny.h and others. */
#ifndef MMA_ORDER
#define MMA_ORDER 8 /* tile rows taken together, for reuse in the second-level cache; from 1 on */
#endif

#define MMA_DEPTH 8 /* of a stage along k: two steps of the instruction */
#define MMA_ITEMS (MMA_TILE_M / MMA_WARP_M * (MMA_TILE_N / MMA_WARP_N) * 32)
#define MMA_STAGE (MMA_DEPTH * (MMA_TILE_M + MMA_TILE_N)) /* doubles of a stage: A, then B */

/* Stages that may still be on their way when the next ones are read: each is a group of copies. */
#define MMA_LATEST (MMA_STAGES - 2 * MMA_TOGETHER)

/* ---- a stage in local memory ----------------------------------------------------------------- */

/* Where an element of an operand lies. `is_a` distinguishes A from B among deep operands: A is read
 * by rows 2 quad and 2 quad + 1, B by rows quad and quad + 8. */
MMA_INLINE int mma_offset(const int deep, const int is_a, const int tile, const int row,
                          const int depth) {
  if (!deep) return depth * tile + (row ^ ((depth >> 1 & 3) << 2));
  return (is_a ? row ^ (row >> 1 & 1) : row) * MMA_DEPTH + depth;
}

#define MMA_COPIES(tile) ((tile)*MMA_DEPTH / 2 / MMA_ITEMS) /* 16-byte copies of a work-item */

/* Row and depth, in a stage, of copy number `copy` of the group: work-items run along the
 * contiguous direction of global memory. */
MMA_INLINE int mma_copy_row(const int deep, const int tile, const int copy) {
  return deep ? copy / (MMA_DEPTH / 2) : copy % (tile / 2) * 2;
}

MMA_INLINE int mma_copy_depth(const int deep, const int tile, const int copy) {
  return deep ? copy % (MMA_DEPTH / 2) * 2 : copy / (tile / 2);
}

/* Where a work-item's copies come from, counted from the first element of a stage. Rows past the
 * last are replaced by the last ones; their results are never written. */
MMA_INLINE void mma_aim(const int deep, const int tile, int *source, const int ld, const int rows,
                        const int item) {
  SCL_UNROLL
  for (int i = 0; i < MMA_COPIES(tile); i++) {
    const int row = mma_copy_row(deep, tile, item + i * MMA_ITEMS);
    const int depth = mma_copy_depth(deep, tile, item + i * MMA_ITEMS);
    source[i] = deep ? min(row, rows - 1) * ld + depth : min(row, (rows - 1) & ~1) + depth * ld;
  }
}

/* Starts the copies of one operand's stage; x is its first element, `depths` depths exist. */
MMA_INLINE void mma_copy(mma_copies *copies, const int deep, const int is_a, const int tile,
                         __local real *stage, __global const real *x, const int *source,
                         const int depths, const int item) {
  SCL_UNROLL
  for (int i = 0; i < MMA_COPIES(tile); i++) {
    const int row = mma_copy_row(deep, tile, item + i * MMA_ITEMS);
    const int depth = mma_copy_depth(deep, tile, item + i * MMA_ITEMS);
    const int bytes = deep ? 8 * clamp(depths - depth, 0, 2) : depth < depths ? 16 : 0;
    mma_copy_16(copies, stage + mma_offset(deep, is_a, tile, row, depth), x + source[i], bytes);
  }
}

/* ---- the ring of stages ---------------------------------------------------------------------- */

/* The progress of a work-item. */
typedef struct {
  __local real *stages;
  __global const real *a, *b; /* first elements of the next stage to copy */
  long advance_a, advance_b;  /* from the first elements of a stage to those of the next */
  int left;                   /* depths whose copies have not been started */
  int to, from;               /* offsets of the stages to fill and to read */
} mma_ring;

/* Starts the copies of the next stage. */
MMA_INLINE void mma_fill(const int deep_a, const int deep_b, mma_ring *ring, mma_copies *copies,
                         const int *source_a, const int *source_b, const int item) {
  __local real *stage = ring->stages + ring->to;
  mma_copy(copies, deep_a, 1, MMA_TILE_M, stage, ring->a, source_a, ring->left, item);
  mma_copy(copies, deep_b, 0, MMA_TILE_N, stage + MMA_DEPTH * MMA_TILE_M, ring->b, source_b,
           ring->left, item);
  mma_commit(copies);
  ring->a += ring->advance_a;
  ring->b += ring->advance_b;
  ring->left -= MMA_DEPTH;
  ring->to = ring->to == (MMA_STAGES - 1) * MMA_STAGE ? 0 : ring->to + MMA_STAGE;
}

/* The next stages are there, for all: every work-item has waited for its own copies. */
MMA_COLLECTIVE void mma_arrive(mma_ring *ring, mma_copies *copies) {
  MMA_WAIT(copies, MMA_LATEST);
  barrier(CLK_LOCAL_MEM_FENCE);
  ring->from = ring->from == (MMA_STAGES - MMA_TOGETHER) * MMA_STAGE
                   ? 0
                   : ring->from + MMA_TOGETHER * MMA_STAGE;
}

/* ---- fragments ------------------------------------------------------------------------------- */

/* A lane's share of one block of 16 rows (of A) or columns (of B) in a stage: of a flat operand
 * number s holds two neighbours at step s; of a deep one number h holds both steps of neighbour
 * h. */
MMA_INLINE real2 mma_fragment(const int deep, const int is_a, const int tile,
                              __local const real *stage, const int first, const int number,
                              const mma_lane lane) {
  const int quad = lane.quad, member = lane.member;
  int offset;
  if (deep) {
    const int row = is_a ? 2 * quad + number : quad + 8 * number;
    offset = (first + (is_a ? row ^ (quad & 1) : row)) * MMA_DEPTH + 2 * member;
  } else {
    offset = (2 * member + number) * tile + first + ((2 * quad) ^ (4 * member));
  }
  return *(__local const real2 *)(stage + offset);
}

/* Those of a stage, for a warp's part of the tile. */
typedef struct {
  real2 a[MMA_ROWS16][2], b[MMA_COLUMNS16][2];
} mma_fragments;

/* Of two fragments: element of neighbour h at step s. */
#define MMA_PICK(deep, pair, h, s)                                                                 \
  ((deep) ? ((s) ? (pair)[h].y : (pair)[h].x) : ((h) ? (pair)[s].y : (pair)[s].x))

/* Half of the fragments, number 0 or 1, of the part from (warp_row, warp_column) on. */
MMA_INLINE void mma_load(const int deep_a, const int deep_b, mma_fragments *fragments,
                         const int number, __local const real *stage, const int warp_row,
                         const int warp_column, const mma_lane lane) {
  __local const real *stage_b = stage + MMA_DEPTH * MMA_TILE_M;
  SCL_UNROLL
  for (int i = 0; i < MMA_ROWS16; i++)
    fragments->a[i][number] =
        mma_fragment(deep_a, 1, MMA_TILE_M, stage, warp_row + 16 * i, number, lane);
  SCL_UNROLL
  for (int j = 0; j < MMA_COLUMNS16; j++)
    fragments->b[j][number] =
        mma_fragment(deep_b, 0, MMA_TILE_N, stage_b, warp_column + 16 * j, number, lane);
}

/* All fragments of MMA_TOGETHER stages. */
MMA_INLINE void mma_load_stages(const int deep_a, const int deep_b, mma_fragments *fragments,
                                __local const real *stages, const int warp_row,
                                const int warp_column, const mma_lane lane) {
  SCL_UNROLL
  for (int i = 0; i < MMA_TOGETHER; i++) {
    __local const real *stage = stages + i * MMA_STAGE;
    mma_load(deep_a, deep_b, fragments + i, 0, stage, warp_row, warp_column, lane);
    mma_load(deep_a, deep_b, fragments + i, 1, stage, warp_row, warp_column, lane);
  }
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Both steps of a stage at once, by the deeper instruction. */
MMA_COLLECTIVE void mma_multiply_stage(const mma_lane lane, const int deep_a, const int deep_b,
                                       real sums[MMA_ROWS16][2 * MMA_COLUMNS16][4],
                                       const mma_fragments *fragments) {
  SCL_UNROLL
  for (int i = 0; i < MMA_ROWS16; i++) {
    const real2 *a = fragments->a[i];
    SCL_UNROLL
    for (int j = 0; j < MMA_COLUMNS16; j++) {
      const real2 *b = fragments->b[j];
      SCL_UNROLL
      for (int h = 0; h < 2; h++)
        mma_8(lane, sums[i][2 * j + h], MMA_PICK(deep_a, a, 0, 0), MMA_PICK(deep_a, a, 1, 0),
              MMA_PICK(deep_a, a, 0, 1), MMA_PICK(deep_a, a, 1, 1), MMA_PICK(deep_b, b, h, 0),
              MMA_PICK(deep_b, b, h, 1));
    }
  }
}

/* One step, for two flat operands: their fragments come step by step. */
MMA_COLLECTIVE void mma_multiply_step(const mma_lane lane,
                                      real sums[MMA_ROWS16][2 * MMA_COLUMNS16][4],
                                      const mma_fragments *fragments, const int step) {
  SCL_UNROLL
  for (int i = 0; i < MMA_ROWS16; i++) {
    const real2 a = fragments->a[i][step];
    SCL_UNROLL
    for (int j = 0; j < MMA_COLUMNS16; j++) {
      const real2 b = fragments->b[j][step];
      mma_4(lane, sums[i][2 * j], a.x, a.y, b.x);
      mma_4(lane, sums[i][2 * j + 1], a.x, a.y, b.y);
    }
  }
}

/* The sums of a deep operand, or of several stages between barriers: fragments of the next stages
 * are loaded while these are multiplied. `source_a` and `source_b` by mma_aim(). */
MMA_COLLECTIVE void mma_advance(const int deep_a, const int deep_b,
                                real sums[MMA_ROWS16][2 * MMA_COLUMNS16][4], mma_ring *ring,
                                mma_copies *copies, const int *source_a, const int *source_b,
                                const mma_fragments *current, mma_fragments *next,
                                const int warp_row, const int warp_column, const int item,
                                const mma_lane lane) {
  SCL_UNROLL
  for (int i = 0; i < MMA_TOGETHER; i++)
    mma_fill(deep_a, deep_b, ring, copies, source_a, source_b, item);
  mma_arrive(ring, copies);
  mma_load_stages(deep_a, deep_b, next, ring->stages + ring->from, warp_row, warp_column, lane);
  SCL_UNROLL
  for (int i = 0; i < MMA_TOGETHER; i++)
    mma_multiply_stage(lane, deep_a, deep_b, sums, current + i);
}

/* sums = op(A) op(B) over terms begin .. end - 1, of a warp's part of the tile. */
MMA_COLLECTIVE void mma_sum_tile(const int deep_a, const int deep_b,
                                 real sums[MMA_ROWS16][2 * MMA_COLUMNS16][4],
                                 const mma_product *product, const int row0, const int column0,
                                 const int begin, const int end, __local real *stages,
                                 const int warp_row, const int warp_column, const int item,
                                 const mma_lane lane) {
  const int a_ld = product->a_ld, b_ld = product->b_ld;
  const int pass_depth = 2 * MMA_TOGETHER * MMA_DEPTH; /* depths of a pass of the loop below */
  mma_copies copies = MMA_NO_COPIES;
  int source_a[MMA_COPIES(MMA_TILE_M)], source_b[MMA_COPIES(MMA_TILE_N)];
  mma_ring ring = {
      .stages = stages,
      .a = product->a + (deep_a ? begin + (long)row0 * a_ld : row0 + (long)begin * a_ld),
      .b = product->b + (deep_b ? begin + (long)column0 * b_ld : column0 + (long)begin * b_ld),
      .advance_a = deep_a ? (long)MMA_DEPTH : (long)MMA_DEPTH * a_ld,
      .advance_b = deep_b ? (long)MMA_DEPTH : (long)MMA_DEPTH * b_ld,
      .left = end - begin};
  const int count =
      end > begin ? (end - begin + pass_depth - 1) / pass_depth * (2 * MMA_TOGETHER) : 0;
  mma_aim(deep_a, MMA_TILE_M, source_a, a_ld, product->m - row0, item);
  mma_aim(deep_b, MMA_TILE_N, source_b, b_ld, product->n - column0, item);

  if (count > 0) { /* rather than a return, after which a compiler addresses copies worse */
    for (int s = 0; s < MMA_STAGES - MMA_TOGETHER; s++)
      mma_fill(deep_a, deep_b, &ring, &copies, source_a, source_b, item);
    MMA_WAIT(&copies, MMA_LATEST);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (deep_a | deep_b | (MMA_TOGETHER > 1)) {
      mma_fragments even[MMA_TOGETHER], odd[MMA_TOGETHER];
      mma_load_stages(deep_a, deep_b, even, stages + ring.from, warp_row, warp_column, lane);
      for (int s = 0; s < count; s += 2 * MMA_TOGETHER) {
        mma_advance(deep_a, deep_b, sums, &ring, &copies, source_a, source_b, even, odd, warp_row,
                    warp_column, item, lane);
        mma_advance(deep_a, deep_b, sums, &ring, &copies, source_a, source_b, odd, even, warp_row,
                    warp_column, item, lane);
      }
    } else {
      mma_fragments fragments;
      mma_load(0, 0, &fragments, 0, stages + ring.from, warp_row, warp_column, lane);
      for (int s = 0; s < count; s++) {
        mma_load(0, 0, &fragments, 1, stages + ring.from, warp_row, warp_column, lane);
        mma_fill(0, 0, &ring, &copies, source_a, source_b, item);
        mma_multiply_step(lane, sums, &fragments, 0);
        mma_arrive(&ring, &copies);
        mma_load(0, 0, &fragments, 0, stages + ring.from, warp_row, warp_column, lane);
        mma_multiply_step(lane, sums, &fragments, 1);
      }
    }
  }
}

/* ---- one tile -------------------------------------------------------------------------------- */

/* The tile from (row0, column0) on. `deep_a` and `deep_b` are constants at every call. */
MMA_COLLECTIVE void mma_tile(const int deep_a, const int deep_b, const mma_product *product,
                             const int row0, const int column0, __local real *stages,
                             const int item, const mma_lane lane) {
  const int warp = item >> 5, warps_m = MMA_TILE_M / MMA_WARP_M;
  const int warp_row = warp % warps_m * MMA_WARP_M, warp_column = warp / warps_m * MMA_WARP_N;
  const int views = product->views;
  int begin = 0, end = product->k;
  if (views & GEMM_A_LOWER) end = min(end, row0 + MMA_TILE_M);
  if (views & GEMM_A_UPPER) begin = max(begin, row0);
  if (views & GEMM_B_LOWER) begin = max(begin, column0);
  if (views & GEMM_B_UPPER) end = min(end, column0 + MMA_TILE_N);

  real sums[MMA_ROWS16][2 * MMA_COLUMNS16][4];
  SCL_UNROLL
  for (int i = 0; i < MMA_ROWS16; i++) {
    SCL_UNROLL
    for (int j = 0; j < 2 * MMA_COLUMNS16; j++) {
      SCL_UNROLL
      for (int e = 0; e < 4; e++) sums[i][j][e] = 0.0;
    }
  }
  mma_sum_tile(deep_a, deep_b, sums, product, row0, column0, begin, end, stages, warp_row,
               warp_column, item, lane);

  const int row = row0 + warp_row + 2 * lane.quad, column = column0 + warp_column;
  const int full = row0 + MMA_TILE_M <= product->m && column0 + MMA_TILE_N <= product->n &&
                   (product->whole || row0 >= column0 + MMA_TILE_N);
  if (full)
    mma_write_full(deep_b, sums, product, row, column, lane.member);
  else
    mma_write_guarded(deep_b, sums, product, row, column, lane.member);
}

/* Tile number `tile` of product number `which`, the last one or not, of a batch; `batch` has
 * pointers only, those of the kernel. */
MMA_COLLECTIVE void mma_product_tile(const int deep_a, const int deep_b, const int tile,
                                     const int which, const int last, __local real *stages,
                                     const int item, const mma_lane lane,
                                     const mma_product *batch, const gemm_task *task) {
  const int m = task->m, n = task->n, region = task->region;
  const int tiles_m = (m + MMA_TILE_M - 1) / MMA_TILE_M;
  const int tiles_n = (n + MMA_TILE_N - 1) / MMA_TILE_N;
  const int band = tile / (MMA_ORDER * tiles_n), within = tile % (MMA_ORDER * tiles_n);
  const int rows = min(MMA_ORDER, tiles_m - band * MMA_ORDER);
  const int row0 = (band * MMA_ORDER + within % rows) * MMA_TILE_M;
  const int column0 = within / rows * MMA_TILE_N;
  const int product_m = last ? task->m_last : m, product_n = last ? task->n_last : n;
  if (row0 >= product_m || column0 >= product_n) return;
  const int whole = region == GEMM_ALL || region == GEMM_AND_TRANSPOSED;
  if (!whole && row0 + MMA_TILE_M <= column0) return;
  __global real *c = batch->c + task->c_offset + which * task->c_step;
  __global real *transposed = region == GEMM_MIRRORED ? c : 0;
  if (region == GEMM_AND_TRANSPOSED) transposed = batch->transposed + task->transposed_offset;
  const mma_product product = {
      .a = batch->a + task->a_offset + which * task->a_step,
      .b = batch->b + task->b_offset + which * task->b_step,
      .from = batch->from + task->from_offset + which * task->c_step,
      .c = c,
      .transposed = transposed,
      .a_ld = task->a_ld, .b_ld = task->b_ld, .c_ld = task->c_ld, .from_ld = task->from_ld,
      .transposed_ld = region == GEMM_MIRRORED ? task->c_ld : task->transposed_ld,
      .m = product_m, .n = product_n, .k = last ? task->k_last : task->k,
      .views = task->views, .whole = whole, .alpha = task->alpha, .beta = task->beta};
  mma_tile(deep_a, deep_b, &product, row0, column0, stages, item, lane);
}

/* The ring of a group, in its kernel. */
#define MMA_RING(name) __local real name[MMA_STAGES * MMA_STAGE] __attribute__((aligned(128)))

#ifdef MMA_PAIR

/* Two products that do not need each other: the first groups do a batch of A' B, the others a batch
 * of A B. */
__kernel __attribute__((reqd_work_group_size(MMA_ITEMS, 1, 1))) void
MMA_PAIR(__global const real *a1, __global const real *b1, __global real *c1,
         __global const real *from1, __global real *transposed1, const gemm_task task1,
         __global const real *a2, __global const real *b2, __global real *c2,
         __global const real *from2, __global real *transposed2, const gemm_task task2) {
  MMA_RING(stages);
  MMA_LANE(lane, MMA_ITEMS / 32);
  const int item = get_local_id(0), group = get_group_id(0);
  const int other = group - task1.tiles * task1.batch;
  if (other < 0) {
    const mma_product product = {a1, b1, from1, c1, transposed1};
    const int tiles = task1.tiles, which = group / tiles;
    mma_product_tile(1, 1, group - which * tiles, which, which == task1.batch - 1, stages, item,
                     lane, &product, &task1);
  } else {
    const mma_product product = {a2, b2, from2, c2, transposed2};
    const int tiles = task2.tiles, which = other / tiles;
    mma_product_tile(0, 1, other - which * tiles, which, which == task2.batch - 1, stages, item,
                     lane, &product, &task2);
  }
}

#else

__kernel __attribute__((reqd_work_group_size(MMA_ITEMS, 1, 1))) void
MMA_NAME(__global const real *a, __global const real *b, __global real *c,
         __global const real *from, __global real *transposed, const gemm_task task) {
  MMA_RING(stages);
  MMA_LANE(lane, MMA_ITEMS / 32);
  const mma_product product = {a, b, from, c, transposed};
  const int which = get_group_id(1), last = which == (int)get_num_groups(1) - 1;
  mma_product_tile(MMA_DEEP_A, MMA_DEEP_B, get_group_id(0), which, last, stages, get_local_id(0),
                   lane, &product, &task);
}

#endif
