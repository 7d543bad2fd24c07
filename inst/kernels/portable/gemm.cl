/* C = alpha op(A) op(B) + beta C by tiles: kernels gemm_nn, gemm_nt, gemm_tn, gemm_tt (op of A, op
 * of B; t: transposed). Built twice, with the tiles of gemm_small.h and gemm_large.h.
 *
 *                op(B), k x n       A group owns one tile of C, TILE_M x TILE_N, and walks along k
 *               +---+-----+---+     in steps of DEPTH. A step:
 *               |   | b b |   |       1 fetch the next pieces of A and B (a, b) to registers;
 *               |   | - - |   |       2 multiply the current ones out of local memory, each
 *               +---+-----+---+         work-item ITEM_M x ITEM_N sums, which stay in registers;
 *    +-------+  +---+-----+---+       3 store what was fetched to the other half of local memory;
 *    | a |   |  |   | C   |   |       4 one barrier.
 *    | a |   |  |   | tile|   |
 *    +-------+  +---+-----+---+     In local memory a piece is DEPTH rows of TILE + PAD numbers,
 *    op(A), m x k                   whatever the transposition: the multiplication has one layout.
 *
 * Matrices are column-major. Dimension 0 of the range: tiles, GEMM_ORDER tile rows at a time, so
 * that groups that run together share pieces of A and B in the cache. Dimension 1: a batch of
 * products of one shape, of which the last one may be smaller (gemm_task in gemm.h).
 *
 * Order of summation: every element of C is one sum, along k. Edges are guarded by loading zeros
 * and not storing. The zeros that `views` promises shorten the k range of a tile. GEMM_LOWER_HALF
 * and GEMM_MIRRORED leave out the tiles above the diagonal of C and touch no element above it
 * (except for the mirror image).
 *
 * The inner multiply is one function with a fixed contract (gemm_multiply, with GEMM_ROW and
 * GEMM_COLUMN); a variant for one kind of device replaces these three. */

#ifndef GEMM_DEPTH
#define GEMM_DEPTH 8 /* of a step along k: 4, 8 or 16; local memory grows with it */
#endif
#ifndef GEMM_ORDER
#define GEMM_ORDER 8 /* tile rows that are taken together, from 1 on */
#endif
#ifndef GEMM_PAD
/* Beyond a row in local memory; even, which keeps pairs aligned. With 2, 8 x 2 work-items that
 * store an operand that is contiguous along k hit 16 different banks. */
#define GEMM_PAD 2
#endif
/* GEMM_TILE_M, GEMM_TILE_N, GEMM_ITEM_M, GEMM_ITEM_N: gemm.h, gemm_small.h, gemm_large.h. */

#define GEMM_ITEM_ROWS (GEMM_TILE_M / GEMM_ITEM_M) /* work-items along the rows of a tile */
#define GEMM_ITEM_COLUMNS (GEMM_TILE_N / GEMM_ITEM_N)
#define GEMM_ITEMS (GEMM_ITEM_ROWS * GEMM_ITEM_COLUMNS)
#define GEMM_LD_A (GEMM_TILE_M + GEMM_PAD)
#define GEMM_LD_B (GEMM_TILE_N + GEMM_PAD)
#define GEMM_FETCH_A (GEMM_TILE_M * GEMM_DEPTH / GEMM_ITEMS) /* elements fetched by a work-item */
#define GEMM_FETCH_B (GEMM_TILE_N * GEMM_DEPTH / GEMM_ITEMS)
#define GEMM_PIECES (GEMM_DEPTH * (GEMM_LD_A + GEMM_LD_B)) /* numbers of a step in local memory */

/* Position of a work-item among those of a tile: 32 neighbours are 8 x 4, so that they read as
 * little as possible from local memory together. */
#define GEMM_POSITION_M(item) ((item) % 8 + (item) / 32 % (GEMM_ITEM_ROWS / 8) * 8)
#define GEMM_POSITION_N(item) ((item) / 8 % 4 + (item) / (4 * GEMM_ITEM_ROWS) * 4)

/* Row (column) of the tile of accumulator row i (column j) of a work-item: pairs of neighbours, so
 * that local memory is read and C is written in runs over the work-items. */
#define GEMM_ROW(item, i) (2 * GEMM_POSITION_M(item) + (i) / 2 * (2 * GEMM_ITEM_ROWS) + (i) % 2)
#define GEMM_COLUMN(item, j)                                                                       \
  (2 * GEMM_POSITION_N(item) + (j) / 2 * (2 * GEMM_ITEM_COLUMNS) + (j) % 2)

/* One product of the batch. */
typedef struct {
  __global const real *a, *b;
  __global real *c;
  int lda, ldb, ldc;
  int m, n, k;
  int views, region;
  real alpha, beta;
} gemm_product;

/* sums[j][i] += sum over d < GEMM_DEPTH of a[d][GEMM_ROW(item, i)] * b[d][GEMM_COLUMN(item, j)],
 * where a (b) has rows of GEMM_LD_A (GEMM_LD_B) doubles and starts at a multiple of 16 bytes.
 * Called by all work-items of the group; holds no barrier. */
SCL_INLINE void gemm_multiply(real sums[GEMM_ITEM_N][GEMM_ITEM_M], __local const real *a,
                              __local const real *b, const uint item) {
  SCL_UNROLL
  for (int k = 0; k < GEMM_DEPTH; k++) {
    real2 x[GEMM_ITEM_M / 2], y[GEMM_ITEM_N / 2];
    SCL_UNROLL
    for (int i = 0; i < GEMM_ITEM_M; i += 2)
      x[i / 2] = *(__local const real2 *)(a + k * GEMM_LD_A + GEMM_ROW(item, i));
    SCL_UNROLL
    for (int j = 0; j < GEMM_ITEM_N; j += 2)
      y[j / 2] = *(__local const real2 *)(b + k * GEMM_LD_B + GEMM_COLUMN(item, j));
    SCL_UNROLL
    for (int j = 0; j < GEMM_ITEM_N; j += 2) {
      SCL_UNROLL
      for (int i = 0; i < GEMM_ITEM_M; i += 2) {
        sums[j][i] = fma(x[i / 2].x, y[j / 2].x, sums[j][i]);
        sums[j][i + 1] = fma(x[i / 2].y, y[j / 2].x, sums[j][i + 1]);
        sums[j + 1][i] = fma(x[i / 2].x, y[j / 2].y, sums[j + 1][i]);
        sums[j + 1][i + 1] = fma(x[i / 2].y, y[j / 2].y, sums[j + 1][i + 1]);
      }
    }
  }
}

/* ---- pieces of A and B ----------------------------------------------------------------------- */

/* A work-item's share of a piece of `tile` rows (of op(A), or columns of op(B)) x GEMM_DEPTH:
 * work-items run along the contiguous direction of global memory. Element i of the share is at row
 * `row + i * row_step`, depth `depth + i * depth_step`. */
typedef struct {
  int row, depth, row_step, depth_step;
} gemm_share;

SCL_INLINE gemm_share gemm_share_of(const int k_contiguous, const int tile, const uint item) {
  gemm_share share;
  share.row = k_contiguous ? item / GEMM_DEPTH : item % tile;
  share.depth = k_contiguous ? item % GEMM_DEPTH : item / tile;
  share.row_step = k_contiguous ? GEMM_ITEMS / GEMM_DEPTH : 0;
  share.depth_step = k_contiguous ? 0 : GEMM_ITEMS / tile;
  return share;
}

/* Fetches a share of `count` elements; x points at its first one and the others follow `step`
 * apart. Rows from `rows` on and depths from `depth` on are zero. */
SCL_INLINE void gemm_fetch(real *values, const int count, __global const real *x, const long step,
                           const gemm_share *share, const int tile, const int rows,
                           const int depth) {
  if (rows >= tile && depth >= GEMM_DEPTH) {
    SCL_UNROLL
    for (int i = 0; i < count; i++) values[i] = x[i * step];
  } else {
    SCL_UNROLL
    for (int i = 0; i < count; i++) {
      values[i] = 0.0;
      if (share->row + i * share->row_step < rows && share->depth + i * share->depth_step < depth)
        values[i] = x[i * step];
    }
  }
}

SCL_INLINE void gemm_store(const real *values, const int count, __local real *piece,
                           const gemm_share *share, const int tile) {
  SCL_UNROLL
  for (int i = 0; i < count; i++)
    piece[(share->depth + i * share->depth_step) * (tile + GEMM_PAD) + share->row +
          i * share->row_step] = values[i];
}

/* ---- one tile -------------------------------------------------------------------------------- */

/* Writes a work-item's part of the tile whose first element is (row0, column0). A column is read
 * before it is written: the compiler cannot know that the addresses differ. */
SCL_INLINE void gemm_write(real sums[GEMM_ITEM_N][GEMM_ITEM_M], const gemm_product *product,
                           const int row0, const int column0, const uint item) {
  const real alpha = product->alpha, beta = product->beta;
  const int m = product->m, ldc = product->ldc, region = product->region;
  SCL_UNROLL
  for (int j = 0; j < GEMM_ITEM_N; j++) {
    const int column = column0 + GEMM_COLUMN(item, j);
    if (column < product->n) {
      __global real *to = product->c + (long)column * ldc;
      const int first = region == GEMM_ALL ? 0 : column;
      SCL_UNROLL
      for (int i = 0; i < GEMM_ITEM_M; i++) {
        const int row = row0 + GEMM_ROW(item, i);
        sums[j][i] *= alpha;
        if (beta != 0.0 && row >= first && row < m) sums[j][i] = fma(beta, to[row], sums[j][i]);
      }
      SCL_UNROLL
      for (int i = 0; i < GEMM_ITEM_M; i++) {
        const int row = row0 + GEMM_ROW(item, i);
        if (row >= first && row < m) {
          to[row] = sums[j][i];
          if (region == GEMM_MIRRORED) product->c[column + (long)row * ldc] = sums[j][i];
        }
      }
    }
  }
}

/* The tile from (row0, column0) on. `transposed_a` and `transposed_b` are constants at every call,
 * so that each kernel holds its own case only. */
SCL_INLINE_BARRIER void gemm_tile(const int transposed_a, const int transposed_b,
                                  const gemm_product *product, const int row0, const int column0,
                                  const uint item, __local real *pieces) {
  const int views = product->views, lda = product->lda, ldb = product->ldb;
  const int rows = product->m - row0, columns = product->n - column0;
  int begin = 0, end = product->k;
  if (views & GEMM_A_LOWER) end = min(end, row0 + GEMM_TILE_M);
  if (views & GEMM_A_UPPER) begin = max(begin, row0);
  if (views & GEMM_B_LOWER) begin = max(begin, column0);
  if (views & GEMM_B_UPPER) end = min(end, column0 + GEMM_TILE_N);

  real sums[GEMM_ITEM_N][GEMM_ITEM_M];
  real values_a[GEMM_FETCH_A], values_b[GEMM_FETCH_B];
  SCL_UNROLL
  for (int j = 0; j < GEMM_ITEM_N; j++) {
    SCL_UNROLL
    for (int i = 0; i < GEMM_ITEM_M; i++) sums[j][i] = 0.0;
  }

  const int k_a = transposed_a, k_b = !transposed_b; /* which operands are contiguous along k */
  const gemm_share share_a = gemm_share_of(k_a, GEMM_TILE_M, item);
  const gemm_share share_b = gemm_share_of(k_b, GEMM_TILE_N, item);
  const int row_a = row0 + share_a.row, depth_a = begin + share_a.depth;
  const int row_b = column0 + share_b.row, depth_b = begin + share_b.depth;
  __global const real *a =
      product->a + (k_a ? depth_a + (long)row_a * lda : row_a + (long)depth_a * lda);
  __global const real *b =
      product->b + (k_b ? depth_b + (long)row_b * ldb : row_b + (long)depth_b * ldb);
  const long step_a = (long)(k_a ? share_a.row_step : share_a.depth_step) * lda;
  const long step_b = (long)(k_b ? share_b.row_step : share_b.depth_step) * ldb;
  int stage = 0; /* which half of local memory */
  if (begin < end) {
    gemm_fetch(values_a, GEMM_FETCH_A, a, step_a, &share_a, GEMM_TILE_M, rows, end - begin);
    gemm_fetch(values_b, GEMM_FETCH_B, b, step_b, &share_b, GEMM_TILE_N, columns, end - begin);
    gemm_store(values_a, GEMM_FETCH_A, pieces, &share_a, GEMM_TILE_M);
    gemm_store(values_b, GEMM_FETCH_B, pieces + GEMM_DEPTH * GEMM_LD_A, &share_b, GEMM_TILE_N);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int at = begin; at < end; at += GEMM_DEPTH) {
    const int left = end - at - GEMM_DEPTH;
    __local real *current = pieces + stage * GEMM_PIECES;
    stage = 1 - stage;
    if (left > 0) {
      a += k_a ? (long)GEMM_DEPTH : (long)GEMM_DEPTH * lda;
      b += k_b ? (long)GEMM_DEPTH : (long)GEMM_DEPTH * ldb;
      gemm_fetch(values_a, GEMM_FETCH_A, a, step_a, &share_a, GEMM_TILE_M, rows, left);
      gemm_fetch(values_b, GEMM_FETCH_B, b, step_b, &share_b, GEMM_TILE_N, columns, left);
    }
    gemm_multiply(sums, current, current + GEMM_DEPTH * GEMM_LD_A, item);
    if (left > 0) {
      __local real *next = pieces + stage * GEMM_PIECES;
      gemm_store(values_a, GEMM_FETCH_A, next, &share_a, GEMM_TILE_M);
      gemm_store(values_b, GEMM_FETCH_B, next + GEMM_DEPTH * GEMM_LD_A, &share_b, GEMM_TILE_N);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  gemm_write(sums, product, row0, column0, item);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* First row and column of tile `index` of an m x n matrix, GEMM_ORDER tile rows at a time. */
SCL_INLINE int2 gemm_tile_start(const int index, const int m, const int n) {
  const int tiles_m = (m + GEMM_TILE_M - 1) / GEMM_TILE_M;
  const int tiles_n = (n + GEMM_TILE_N - 1) / GEMM_TILE_N;
  const int band = index / (GEMM_ORDER * tiles_n), within = index - band * (GEMM_ORDER * tiles_n);
  const int rows = min(GEMM_ORDER, tiles_m - band * GEMM_ORDER);
  const int column = within / rows, row = within - column * rows;
  return (int2)((band * GEMM_ORDER + row) * GEMM_TILE_M, column * GEMM_TILE_N);
}

__kernel __attribute__((reqd_work_group_size(GEMM_ITEMS, 1, 1))) void
GEMM_NAME(__global const real *a, __global const real *b, __global real *c, const gemm_task task) {
  __local real2 pieces[GEMM_PIECES]; /* two halves */
  const int which = get_group_id(1), last = which == (int)get_num_groups(1) - 1;
  const int region = task.region;
  const int2 start = gemm_tile_start(get_group_id(0), task.m, task.n);
  const gemm_product product = {.a = a + task.a_offset + which * task.a_step,
                                .b = b + task.b_offset + which * task.b_step,
                                .c = c + task.c_offset + which * task.c_step,
                                .lda = task.a_ld,
                                .ldb = task.b_ld,
                                .ldc = task.c_ld,
                                .m = last ? task.m_last : task.m,
                                .n = last ? task.n_last : task.n,
                                .k = last ? task.k_last : task.k,
                                .views = task.views,
                                .region = region,
                                .alpha = task.alpha,
                                .beta = task.beta};
  if (start.x >= product.m || start.y >= product.n) return;
  if (region != GEMM_ALL && start.x + GEMM_TILE_M <= start.y) return;
  gemm_tile(GEMM_TRANS_A, GEMM_TRANS_B, &product, start.x, start.y, get_local_id(0),
            (__local real *)pieces);
}
