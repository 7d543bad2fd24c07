/* C = alpha op(A) op(B) + beta C by tiles: kernels gemm_nn, gemm_nt, gemm_tn, gemm_tt (op of A, op
 * of B; t: transposed).
 *
 * Layout. Column-major; op(A) is m x k, op(B) k x n. A group owns one tile of C and walks along k
 * in steps of GEMM_DEPTH: it fetches the next pieces of A and B into registers, multiplies the
 * current ones out of local memory, and stores what it fetched into the other half of local memory;
 * one barrier a step. In local memory a piece is DEPTH rows of TILE (+ GEMM_PAD) doubles, whatever
 * the transposition, so the multiply knows one layout only. The padding of 2 lets 8 x 2 work-items
 * that store a k-contiguous operand hit 16 different banks, and keeps pairs aligned.
 *
 * Work split. Dimension 0: tiles, GEMM_ORDER tile rows at a time, so that groups that run together
 * share pieces of A and B in the cache. Dimension 1: a batch of products of one shape, `step_*`
 * elements apart; the last one may be smaller (m_last, n_last, k_last).
 *
 * Edges are guarded by loading zeros and not storing. The zeros that `views` promises shorten the k
 * range of a tile. GEMM_LOWER_HALF and GEMM_MIRRORED leave out the tiles above the diagonal of C
 * and touch no element above it (but for the mirror image).
 *
 * The inner multiply is one function with a fixed contract (gemm_multiply, with GEMM_ROW and
 * GEMM_COLUMN); a device-specific variant replaces these three. */

#ifndef GEMM_DEPTH
#define GEMM_DEPTH 8
#endif

#ifndef GEMM_ORDER
#define GEMM_ORDER 8
#endif

#define GEMM_PAD 2
#define GEMM_ITEM_ROWS (GEMM_TILE_M / GEMM_ITEM_M) /* work-items along the rows of a tile */
#define GEMM_ITEM_COLUMNS (GEMM_TILE_N / GEMM_ITEM_N)
#define GEMM_ITEMS (GEMM_ITEM_ROWS * GEMM_ITEM_COLUMNS)
#define GEMM_LD_A (GEMM_TILE_M + GEMM_PAD)
#define GEMM_LD_B (GEMM_TILE_N + GEMM_PAD)
#define GEMM_FETCH_A (GEMM_TILE_M * GEMM_DEPTH / GEMM_ITEMS) /* elements fetched by a work-item */
#define GEMM_FETCH_B (GEMM_TILE_N * GEMM_DEPTH / GEMM_ITEMS)

/* Place of a work-item among those of a tile: 32 neighbours are 8 x 4, so that what they read from
 * local memory together is as little as can be. */
#define GEMM_PLACE_M(item) ((item) % 8 + (item) / 32 % (GEMM_ITEM_ROWS / 8) * 8)
#define GEMM_PLACE_N(item) ((item) / 8 % 4 + (item) / (4 * GEMM_ITEM_ROWS) * 4)

/* Row (column) of the tile that accumulator row i (column j) of a work-item stands for: pairs of
 * neighbours, so that local memory is read and C is written in runs over the work-items. */
#define GEMM_ROW(item, i) (2 * GEMM_PLACE_M(item) + (i) / 2 * (2 * GEMM_ITEM_ROWS) + (i) % 2)
#define GEMM_COLUMN(item, j)                                                                       \
  (2 * GEMM_PLACE_N(item) + (j) / 2 * (2 * GEMM_ITEM_COLUMNS) + (j) % 2)

/* c[j][i] += sum over d < GEMM_DEPTH of a[d][GEMM_ROW(item, i)] * b[d][GEMM_COLUMN(item, j)], where
 * a (b) has rows of GEMM_LD_A (GEMM_LD_B) doubles and starts at a multiple of 16 bytes. Called by
 * all work-items of the group; holds no barrier. */
SCL_INLINE void gemm_multiply(real c[GEMM_ITEM_N][GEMM_ITEM_M], __local const real *a,
                              __local const real *b, const uint item) {
  SCL_UNROLL
  for (int d = 0; d < GEMM_DEPTH; d++) {
    real2 x[GEMM_ITEM_M / 2], y[GEMM_ITEM_N / 2];
    SCL_UNROLL
    for (int i = 0; i < GEMM_ITEM_M; i += 2)
      x[i / 2] = *(__local const real2 *)(a + d * GEMM_LD_A + GEMM_ROW(item, i));
    SCL_UNROLL
    for (int j = 0; j < GEMM_ITEM_N; j += 2)
      y[j / 2] = *(__local const real2 *)(b + d * GEMM_LD_B + GEMM_COLUMN(item, j));
    SCL_UNROLL
    for (int j = 0; j < GEMM_ITEM_N; j += 2) {
      SCL_UNROLL
      for (int i = 0; i < GEMM_ITEM_M; i += 2) {
        c[j][i] = fma(x[i / 2].x, y[j / 2].x, c[j][i]);
        c[j][i + 1] = fma(x[i / 2].y, y[j / 2].x, c[j][i + 1]);
        c[j + 1][i] = fma(x[i / 2].x, y[j / 2].y, c[j + 1][i]);
        c[j + 1][i + 1] = fma(x[i / 2].y, y[j / 2].y, c[j + 1][i + 1]);
      }
    }
  }
}

/* The share of a work-item in a piece of `tile` rows (of op(A), or columns of op(B)) x GEMM_DEPTH:
 * work-items run along what is contiguous in global memory, and element i of the share is at row
 * `first + i * GEMM_SHARE_ROWS`, depth `deep + i * GEMM_SHARE_DEPTH`. */
#define GEMM_SHARE_ROWS(k_contiguous) ((k_contiguous) ? GEMM_ITEMS / GEMM_DEPTH : 0)
#define GEMM_SHARE_DEPTH(k_contiguous, tile) ((k_contiguous) ? 0 : GEMM_ITEMS / (tile))
#define GEMM_SHARE(first, deep, k_contiguous, tile, item)                                          \
  const int first = (k_contiguous) ? (item) / GEMM_DEPTH : (item) % (tile);                        \
  const int deep = (k_contiguous) ? (item) % GEMM_DEPTH : (item) / (tile)

/* Fetches a work-item's share of `count` elements; x points at its first one and the others follow
 * `step` apart. Rows from `rows` on and depths from `depth` on are zero. */
SCL_INLINE void gemm_fetch(real *share, const int count, __global const real *x,
                           const long step, const int k_contiguous, const int tile, const int rows,
                           const int depth, const uint item) {
  GEMM_SHARE(first, deep, k_contiguous, tile, item);
  if (rows >= tile && depth >= GEMM_DEPTH) {
    SCL_UNROLL
    for (int i = 0; i < count; i++) share[i] = x[i * step];
  } else {
    SCL_UNROLL
    for (int i = 0; i < count; i++) {
      const int r = first + i * GEMM_SHARE_ROWS(k_contiguous);
      const int d = deep + i * GEMM_SHARE_DEPTH(k_contiguous, tile);
      share[i] = 0.0;
      if (r < rows && d < depth) share[i] = x[i * step];
    }
  }
}

SCL_INLINE void gemm_store(const real *share, const int count, __local real *piece,
                           const int k_contiguous, const int tile, const uint item) {
  GEMM_SHARE(first, deep, k_contiguous, tile, item);
  SCL_UNROLL
  for (int i = 0; i < count; i++)
    piece[(deep + i * GEMM_SHARE_DEPTH(k_contiguous, tile)) * (tile + GEMM_PAD) + first +
          i * GEMM_SHARE_ROWS(k_contiguous)] = share[i];
}

/* Writes a work-item's part of the tile whose first element is (row0, column0). A column is read
 * before it is written: the compiler cannot know that the addresses differ. */
SCL_INLINE void gemm_write(real c[GEMM_ITEM_N][GEMM_ITEM_M], const int row0, const int column0,
                           const int m, const int n, const real alpha, const real beta,
                           __global real *C, const int ldc, const int region, const uint item) {
  SCL_UNROLL
  for (int j = 0; j < GEMM_ITEM_N; j++) {
    const int column = column0 + GEMM_COLUMN(item, j);
    if (column < n) {
      __global real *to = C + (long)column * ldc;
      const int first = region == GEMM_ALL ? 0 : column;
      SCL_UNROLL
      for (int i = 0; i < GEMM_ITEM_M; i++) {
        const int row = row0 + GEMM_ROW(item, i);
        c[j][i] *= alpha;
        if (beta != 0.0 && row >= first && row < m) c[j][i] = fma(beta, to[row], c[j][i]);
      }
      SCL_UNROLL
      for (int i = 0; i < GEMM_ITEM_M; i++) {
        const int row = row0 + GEMM_ROW(item, i);
        if (row >= first && row < m) {
          to[row] = c[j][i];
          if (region == GEMM_MIRRORED) C[column + (long)row * ldc] = c[j][i];
        }
      }
    }
  }
}

/* One tile. `t_a` and `t_b` are constants at every call, so that each kernel holds its own case
 * only. */
SCL_INLINE void gemm_tile(const int t_a, const int t_b, const int m, const int n, const int k,
                          const real alpha, __global const real *A, const int lda,
                          __global const real *B, const int ldb, const real beta,
                          __global real *C, const int ldc, const int views, const int region,
                          const int row0, const int column0, const uint item,
                          __local real *pieces) {
  int begin = 0, end = k;
  if (views & GEMM_A_LOWER) end = min(end, row0 + GEMM_TILE_M);
  if (views & GEMM_A_UPPER) begin = max(begin, row0);
  if (views & GEMM_B_LOWER) begin = max(begin, column0);
  if (views & GEMM_B_UPPER) end = min(end, column0 + GEMM_TILE_N);

  real c[GEMM_ITEM_N][GEMM_ITEM_M];
  real share_a[GEMM_FETCH_A], share_b[GEMM_FETCH_B];
  SCL_UNROLL
  for (int j = 0; j < GEMM_ITEM_N; j++) {
    SCL_UNROLL
    for (int i = 0; i < GEMM_ITEM_M; i++) c[j][i] = 0.0;
  }

  const int k_a = t_a, k_b = !t_b; /* which operands are contiguous along k */
  GEMM_SHARE(first_a, deep_a, k_a, GEMM_TILE_M, item);
  GEMM_SHARE(first_b, deep_b, k_b, GEMM_TILE_N, item);
  const int row_a = row0 + first_a, row_b = column0 + first_b;
  A += k_a ? begin + deep_a + (long)row_a * lda : row_a + (long)(begin + deep_a) * lda;
  B += k_b ? begin + deep_b + (long)row_b * ldb : row_b + (long)(begin + deep_b) * ldb;
  const long step_a = (long)(k_a ? GEMM_SHARE_ROWS(1) : GEMM_SHARE_DEPTH(0, GEMM_TILE_M)) * lda;
  const long step_b = (long)(k_b ? GEMM_SHARE_ROWS(1) : GEMM_SHARE_DEPTH(0, GEMM_TILE_N)) * ldb;
  const int size = GEMM_DEPTH * (GEMM_LD_A + GEMM_LD_B);
  int stage = 0;
  if (begin < end) {
    gemm_fetch(share_a, GEMM_FETCH_A, A, step_a, k_a, GEMM_TILE_M, m - row0, end - begin, item);
    gemm_fetch(share_b, GEMM_FETCH_B, B, step_b, k_b, GEMM_TILE_N, n - column0, end - begin, item);
    gemm_store(share_a, GEMM_FETCH_A, pieces, k_a, GEMM_TILE_M, item);
    gemm_store(share_b, GEMM_FETCH_B, pieces + GEMM_DEPTH * GEMM_LD_A, k_b, GEMM_TILE_N, item);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int at = begin; at < end; at += GEMM_DEPTH) {
    const int left = end - at - GEMM_DEPTH;
    __local real *current = pieces + stage * size;
    stage = 1 - stage;
    if (left > 0) {
      A += k_a ? (long)GEMM_DEPTH : (long)GEMM_DEPTH * lda;
      B += k_b ? (long)GEMM_DEPTH : (long)GEMM_DEPTH * ldb;
      gemm_fetch(share_a, GEMM_FETCH_A, A, step_a, k_a, GEMM_TILE_M, m - row0, left, item);
      gemm_fetch(share_b, GEMM_FETCH_B, B, step_b, k_b, GEMM_TILE_N, n - column0, left, item);
    }
    gemm_multiply(c, current, current + GEMM_DEPTH * GEMM_LD_A, item);
    if (left > 0) {
      __local real *next = pieces + stage * size;
      gemm_store(share_a, GEMM_FETCH_A, next, k_a, GEMM_TILE_M, item);
      gemm_store(share_b, GEMM_FETCH_B, next + GEMM_DEPTH * GEMM_LD_A, k_b, GEMM_TILE_N, item);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  gemm_write(c, row0, column0, m, n, alpha, beta, C, ldc, region, item);
}

#define GEMM_KERNEL(name, t_a, t_b)                                                                \
  __kernel __attribute__((reqd_work_group_size(GEMM_ITEMS, 1, 1))) void name(                      \
      const int m, const int n, const int k, const real alpha, __global const real *A,             \
      const long offset_a, const int lda, __global const real *B, const long offset_b,             \
      const int ldb, const real beta, __global real *C, const long offset_c, const int ldc,        \
      const int views, const int region, const long step_a, const long step_b, const long step_c,  \
      const int m_last, const int n_last, const int k_last) {                                      \
    __local real2 pieces[GEMM_DEPTH * (GEMM_LD_A + GEMM_LD_B)]; /* two halves */                   \
    const int tiles_m = (m + GEMM_TILE_M - 1) / GEMM_TILE_M;                                       \
    const int tiles_n = (n + GEMM_TILE_N - 1) / GEMM_TILE_N;                                       \
    const int tile = get_group_id(0), which = get_group_id(1);                                     \
    const int last = which == (int)get_num_groups(1) - 1;                                          \
    const int band = tile / (GEMM_ORDER * tiles_n), within = tile - band * (GEMM_ORDER * tiles_n); \
    const int rows = min(GEMM_ORDER, tiles_m - band * GEMM_ORDER);                                 \
    const int along = within / rows, across = within - along * rows;                               \
    const int row0 = (band * GEMM_ORDER + across) * GEMM_TILE_M, column0 = along * GEMM_TILE_N;    \
    const int m_here = last ? m_last : m, n_here = last ? n_last : n;                              \
    if (row0 >= m_here || column0 >= n_here) return;                                               \
    if (region != GEMM_ALL && row0 + GEMM_TILE_M <= column0) return;                               \
    gemm_tile(t_a, t_b, m_here, n_here, last ? k_last : k, alpha, A + offset_a + which * step_a,   \
              lda, B + offset_b + which * step_b, ldb, beta, C + offset_c + which * step_c, ldc,   \
              views, region, row0, column0, get_local_id(0), (__local real *)pieces);              \
  }

GEMM_KERNEL(GEMM_NAME(nn), 0, 0)
GEMM_KERNEL(GEMM_NAME(nt), 0, 1)
GEMM_KERNEL(GEMM_NAME(tn), 1, 0)
GEMM_KERNEL(GEMM_NAME(tt), 1, 1)
