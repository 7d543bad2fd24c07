/* Cholesky factor of a panel of at most PANEL_ORDER columns, on the double-precision matrix
 * instructions of NVIDIA devices (mma.h): the twin of cholesky.cl, over panels_mma.h, tried on the
 * device before it is used (engine/cl/linalg/cholesky_trial.c).
 *
 *        block columns, 16 wide
 *            0      1       n / 16     A block row is 16 rows of the panel, in the registers of one
 *   block 0  [ L00 \                   warp. In a group of CHOLESKY_WARPS warps
 *   rows  1  [ L10    L11 \              warp 3 factors the blocks on the diagonal,
 *        ..  [ ...    ...    ... \       warp 7 has block row 0, warp 11 block row 1,
 *         7  [                           the others block rows 2, 3, ..., 7 of the diagonal block;
 *        ..  [ CHOLESKY_BELOW for        the last CHOLESKY_BELOW warps have block rows below it.
 *            [ each group
 *
 * Every group factors the diagonal block for itself, as groups cannot exchange it within a launch;
 * the first one writes it.
 *
 * Step p, one for each block on the diagonal:
 *
 *   warp 3           block row p + 1         block rows p + 2, ...   block rows below
 *   factor (p, p)    (update of step p - 1)  (update of step p - 1)  (update of step p - 1)
 *   ------------------------------------------------------------------------ all meet
 *                    solve, hand out         solve, hand out
 *                    update (p + 1, p + 1)
 *   waits for it, then factors it
 *                    ------------------------------------------------------- all but warp 3 meet
 *                    update the rest         update                  solve, update
 *
 * The critical path needs no other warp's rows; everything else is done while the next factor runs.
 * A processor has four schedulers; warp i belongs to scheduler i % 4. The warp that factors shares
 * its scheduler with the block rows that are done first: all others wait for it, and it waits for
 * them only to get the next block.
 *
 * At step p, `head` is block p of the block row and tail[s] block p + 1 + s; updates move each
 * block down by one, so that one body serves all steps: unrolled, it would not fit the instruction
 * cache. */

#define CHOLESKY_FACTOR_WARP 3 /* block_row_of() numbers the others around it */
/* Barriers: of all; of the warp that factors and the next block row's; of all but the former. */
#define CHOLESKY_MEET_ALL() MMA_MEET(0, CHOLESKY_WARPS)
#define CHOLESKY_WAIT_NEXT() MMA_MEET(1, 2)
#define CHOLESKY_TELL_NEXT() MMA_MEET_FIRST(1, 2)
#define CHOLESKY_MEET_BLOCK_ROWS() MMA_MEET(2, CHOLESKY_WARPS - 1)

/* Workspace of the 16 x 16 factor, in local memory, in rows CHOLESKY_ROW doubles apart, which frees
 * it of most bank conflicts: the block; after it the result of the product between the halves; rows
 * of the identity of order 8, and one of zeros; the operands of the product, 24 rows of 8. */
#define CHOLESKY_ROW 18
#define CHOLESKY_OUT (16 * CHOLESKY_ROW)
#define CHOLESKY_HALF 10
#define CHOLESKY_IDENTITY (32 * CHOLESKY_ROW)
#define CHOLESKY_IN (CHOLESKY_IDENTITY + 9 * CHOLESKY_HALF)
#define CHOLESKY_WORK (CHOLESKY_IN + 24 * CHOLESKY_HALF)

/* A panel; the pointers are to its first element. */
typedef struct {
  int rows, n, steps;
  bool first; /* group: the one that writes the diagonal block */
  __global const real *from;
  __global real *below, *diagonal, *packed;
  int ld_from, ld_below, ld_diagonal;
} cholesky_panel;

/* The block row of a warp. */
typedef struct {
  int number;    /* in the group, -1 for none */
  int index;     /* in the panel */
  int row;       /* the first of this lane's two */
  int last;      /* last block column of the diagonal block that it has */
  bool is_below; /* the diagonal block */
} cholesky_block_row;

/* ---- the 16 x 16 factor ---------------------------------------------------------------------- */

MMA_INLINE void row_get(real a[8], __local const real *row) {
  SCL_UNROLL
  for (int k = 0; k < 8; k += 2) {
    const real2 pair = *(__local const real2 *)(row + k);
    a[k] = pair.x;
    a[k + 1] = pair.y;
  }
}

MMA_INLINE void row_put(__local real *row, const real a[8]) {
  SCL_UNROLL
  for (int k = 0; k < 8; k += 2) *(__local real2 *)(row + k) = (real2)(a[k], a[k + 1]);
}

/* A block of a block row, to the workspace. */
MMA_INLINE void block_put(const mma_lane lane, __local real *work, real x[2][4]) {
  SCL_UNROLL
  for (int r = 0; r < 2; r++) {
    SCL_UNROLL
    for (int h = 0; h < 2; h++)
      *(__local real2 *)(work + CHOLESKY_ROW * (2 * lane.quad + r) + 8 * h + 2 * lane.member) =
          (real2)(x[h][2 * r], x[h][2 * r + 1]);
  }
}

/* Factors an 8 x 8 block, of which each lane has the lower triangle in d, and applies the steps to
 * each lane's row a. All lanes do the same work on d: exchanging its elements would take longer.
 * Rows of the block come out in a as they do in d, bit for bit, as their differences would be
 * divided by pivots that may be tiny. Columns of a are left to be divided by the roots of the
 * pivots d[j][j]; reciprocal[j] = 1 / d[j][j]. */
MMA_INLINE void factor8(real d[8][8], real a[8], real reciprocal[8]) {
  SCL_UNROLL
  for (int j = 0; j < 8; j++) {
    reciprocal[j] = mma_reciprocal(d[j][j]);
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
MMA_INLINE void column_put(__local real *column, const int from, const real a[8],
                           const real d[8][8], const int lane) {
  const int row = lane & 15;
  real l[8];
  SCL_UNROLL
  for (int k = 0; k < 8; k++) l[k] = a[k] * mma_inverse_root(d[k][k]);
  if (lane < 16) {
    __local real *to = column + PANEL_AT(row, from);
    SCL_UNROLL
    for (int k = 0; k < 8; k += 2)
      *(__local real2 *)(to + k) =
          (real2)(from + k <= row ? -l[k] : 0.0, from + k < row ? -l[k + 1] : 0.0);
  } else {
    __local real *to = column + PANEL_INVERSE + 16 * from;
    SCL_UNROLL
    for (int k = 0; k < 8; k++) to[PANEL_AT(k, row)] = l[k];
  }
}

/* Rows 0 to 7 of a half: the lower triangle, or a number more, to d. */
MMA_INLINE void triangle_get(real d[8][8], __local const real *rows) {
  SCL_UNROLL
  for (int i = 0; i < 8; i++) {
    SCL_UNROLL
    for (int k = 0; k <= i; k += 2) {
      const real2 pair = *(__local const real2 *)(rows + CHOLESKY_ROW * i + k);
      d[i][k] = pair.x;
      d[i][k + 1] = pair.y;
    }
  }
}

/* The operands of the product between the halves: rows 8 to 15, 0 to 7 of the identity, and the
 * first of these times the reciprocals. */
MMA_INLINE void product_put(__local real *in, const real a[8], const real reciprocal[8],
                            const int lane) {
  if (lane >= 8 && lane < 24) row_put(in + CHOLESKY_HALF * (lane - 8), a);
  if (lane >= 8 && lane < 16) {
    real m[8];
    SCL_UNROLL
    for (int k = 0; k < 8; k++) m[k] = a[k] * -reciprocal[k];
    row_put(in + CHOLESKY_HALF * (lane + 8), m);
  }
}

/* The product between the halves, which takes the first 8 columns from the others, at once for rows
 * 8 to 15 of the block and 0 to 7 of the identity. */
MMA_COLLECTIVE void product_of_halves(const mma_lane lane, __local real *work) {
  __local real *out = work + CHOLESKY_OUT + CHOLESKY_ROW * lane.quad + 2 * lane.member;
  __local const real *in = work + CHOLESKY_IN + CHOLESKY_HALF * lane.quad + 2 * lane.member;
  real2 corner = 0.0, left = 0.0, above = 0.0, right = 0.0;
  if (mma_is_active(lane)) {
    corner = *(__local const real2 *)(work + CHOLESKY_ROW * (8 + lane.quad) + 8 + 2 * lane.member);
    left = *(__local const real2 *)in;
    above = *(__local const real2 *)(in + CHOLESKY_HALF * 8);
    right = *(__local const real2 *)(in + CHOLESKY_HALF * 16);
  }
  real c[4] = {0.0, 0.0, corner.x, corner.y};
  mma_8(lane, c, above.x, left.x, above.y, left.y, right.x, right.y);
  if (mma_is_active(lane)) {
    *(__local real2 *)out = (real2)(c[2], c[3]);
    *(__local real2 *)(out + CHOLESKY_ROW * 8) = (real2)(c[0], c[1]);
  }
}

/* Factors the 16 x 16 block in the workspace, one warp, in two halves of 8 columns, and packs it:
 * -L and W = inv(L) to `column`. Lanes 0 to 15 have its rows; lanes 16 to 31 rows of the identity,
 * which the same steps turn into rows of W'. */
MMA_COLLECTIVE void factor16(const mma_lane lane, __local real *column, __local real *work) {
  const int i = lane.lane;
  __local const real *identity = work + CHOLESKY_IDENTITY + CHOLESKY_HALF * (i & 7);
  __local const real *zeros = work + CHOLESKY_IDENTITY + CHOLESKY_HALF * 8;
  __local const real *rows = work, *row = work + CHOLESKY_ROW * i; /* row: of this lane */
  if (i >= 16) row = i < 24 ? identity : zeros;
#pragma unroll 1
  for (int from = 0; from < 16; from += 8) {
    real a[8], d[8][8], reciprocal[8];
    if (mma_is_active(lane)) {
      triangle_get(d, rows);
      row_get(a, row);
      factor8(d, a, reciprocal);
    }
    if (from == 0) {
      __local real *out = work + CHOLESKY_OUT;
      if (mma_is_active(lane)) product_put(work + CHOLESKY_IN, a, reciprocal, i);
      mma_warp_sync(lane);
      product_of_halves(lane, work);
      mma_warp_sync(lane);
      rows = out;
      row = i < 24 ? out + CHOLESKY_ROW * max(i - 8, 0) : identity;
    }
    if (mma_is_active(lane)) column_put(column, from, a, d, i);
  }
}

MMA_COLLECTIVE void factor_begin(const mma_lane lane, __local real *work, __local int *failed) {
  if (mma_is_active(lane)) {
    if (lane.lane == 0) *failed = INT_MAX;
    for (int i = lane.lane; i < 9 * CHOLESKY_HALF; i += 32)
      work[CHOLESKY_IDENTITY + i] = i % (CHOLESKY_HALF + 1) == 0 ? 1.0 : 0.0;
  }
  mma_warp_sync(lane);
}

/* Notes the first pivot that fails, of a block whose first column is number `before`. */
MMA_INLINE void factor_check(const mma_lane lane, __local const real *column, const int before,
                             __local int *failed) {
  const int i = lane.lane;
  if (mma_is_active(lane) && i < 16 && !(-column[PANEL_AT(i, i)] < INFINITY))
    atomic_min(failed, before + i + 1);
}

/* ---- block rows ------------------------------------------------------------------------------ */

/* All loads at once, as guards would make them wait for each other: past the edges valid addresses
 * are read; these rows are not written, or are replaced by block_row_complete(). */
MMA_INLINE void block_row_read(const mma_lane lane, const cholesky_panel *panel,
                               const cholesky_block_row *block_row, real head[2][4],
                               real tail[PANEL_TAIL][2][4]) {
  const int row_read = min(block_row->row, (panel->rows - 1) & ~1);
  const int column_read = min(panel->n - 1, 16 * block_row->index + 15);
  SCL_UNROLL
  for (int q = 0; q < PANEL_BLOCKS; q++) {
    SCL_UNROLL
    for (int i = 0; i < 4; i++) {
      const int k = 16 * q + 8 * (i / 2) + 2 * lane.member + i % 2;
      const long at = row_read + (long)min(k, column_read) * panel->ld_from;
      const real2 pair = *(__global const real2 *)(panel->from + at);
      real *block = q == 0 ? head[i / 2] : tail[q == 0 ? 0 : q - 1][i / 2];
      block[i % 2] = pair.x;
      block[2 + i % 2] = pair.y;
    }
  }
}

/* A panel of fewer columns than PANEL_ORDER is continued by the identity. */
MMA_INLINE void block_row_complete(const mma_lane lane, const int n, const int row,
                                   real head[2][4], real tail[PANEL_TAIL][2][4]) {
  SCL_UNROLL
  for (int q = 0; q < PANEL_BLOCKS; q++) {
    SCL_UNROLL
    for (int i = 0; i < 4; i++) {
      const int k = 16 * q + 8 * (i / 2) + 2 * lane.member + i % 2;
      real *block = q == 0 ? head[i / 2] : tail[q == 0 ? 0 : q - 1][i / 2];
      if (row >= n || k >= n) block[i % 2] = row == k ? 1.0 : 0.0;
      if (row + 1 >= n || k >= n) block[2 + i % 2] = row + 1 == k ? 1.0 : 0.0;
    }
  }
}

/* The part of step p that others wait for: block rows of the diagonal block solve for their block
 * and publish the result; the next one continues with the next block on the diagonal. */
MMA_COLLECTIVE void block_row_solve(const mma_lane all, const cholesky_panel *panel,
                                    const cholesky_block_row *block_row, const int p,
                                    real head[2][4], real next[2][4], real solved[2][4],
                                    __local real *column, __local real *work) {
  const bool solves = block_row->number > p && !block_row->is_below;
  const bool is_next = solves && block_row->number == p + 1;
  const mma_lane lane = mma_only(all, solves), next_lane = mma_only(all, is_next);
  __local real *below = column + PANEL_INVERSE; /* W, and the rows below it */
  const int row = block_row->row - 16 * p;      /* there */
  MMA_IF(solves) {
    solve16(lane, solved, head, column);
    if (mma_is_active(lane)) {
      SCL_UNROLL
      for (int h = 0; h < 2; h++) {
        const int k = 8 * h + 2 * lane.member;
        *(__local real2 *)(below + PANEL_AT(row, k)) = (real2)(-solved[h][0], -solved[h][1]);
        *(__local real2 *)(below + PANEL_AT(row + 1, k)) = (real2)(-solved[h][2], -solved[h][3]);
      }
    }
    MMA_IF(is_next) {
      mma_warp_sync(next_lane);
      times16(next_lane, head, next, solved, below, 16);
      if (mma_is_active(next_lane) && block_row->number < panel->steps) {
        block_put(next_lane, work, head);
        CHOLESKY_TELL_NEXT();
      }
    }
  }
}

/* The rest of step p: block rows below solve; all subtract the result of step p from their later
 * blocks. */
MMA_COLLECTIVE void block_row_update(const mma_lane lane, const cholesky_block_row *block_row,
                                     const int p, real head[2][4], real tail[PANEL_TAIL][2][4],
                                     real solved[2][4], __local const real *column) {
  __local const real *below = column + PANEL_INVERSE;
  MMA_IF(block_row->is_below) solve16(mma_only(lane, block_row->is_below), solved, head, column);
  const bool later = block_row->number > p,
             moves = later && block_row->number > p + 1 && p < PANEL_TAIL;
  MMA_IF(later) {
    MMA_IF(moves) times16(mma_only(lane, moves), head, tail[0], solved, below, 16);
    SCL_UNROLL
    for (int s = 1; s < PANEL_TAIL; s++) {
      const bool meets = later && p + 1 + s <= block_row->last;
      MMA_IF(meets)
      times16(mma_only(lane, meets), tail[s - 1], tail[s], solved, below, 16 * (1 + s));
    }
  }
}

/* Writes the result of step p for this block row. */
MMA_INLINE void block_row_write(const mma_lane lane, const cholesky_panel *panel,
                                const cholesky_block_row *block_row, const int p,
                                real solved[2][4]) {
  __global real *to = block_row->is_below ? panel->below : panel->diagonal;
  const int ld = block_row->is_below ? panel->ld_below : panel->ld_diagonal, row = block_row->row;
  SCL_UNROLL
  for (int h = 0; h < 2; h++) {
    SCL_UNROLL
    for (int e = 0; e < 2; e++) {
      __global real *at = to + row + (long)(16 * p + 8 * h + 2 * lane.member + e) * ld;
      if (row + 1 < panel->rows)
        *(__global real2 *)at = (real2)(solved[h][e], solved[h][2 + e]);
      else if (row < panel->rows)
        *at = solved[h][e];
    }
  }
}

/* Writes the diagonal block of step p, and block row p + 1 of it, whose warp is busy. */
MMA_INLINE void diagonal_write(const mma_lane lane, const cholesky_panel *panel, const int p,
                               __local const real *column) {
  __local const real *below = column + PANEL_INVERSE;
  const int ld = panel->ld_diagonal;
  for (int i = lane.lane; i < 256; i += 32) {
    const int r = i % 16, k = i / 16;
    __global real *to = panel->diagonal + (long)(16 * p + k) * ld;
    if (k <= r && 16 * p + r < panel->n) to[16 * p + r] = -column[PANEL_AT(r, k)];
    if (p < PANEL_TAIL && 16 * (p + 1) + r < panel->n)
      to[16 * (p + 1) + r] = -below[PANEL_AT(16 + r, k)];
  }
}

/* Writes the packed form of block column p: each block row its rows, block row p the diagonal block
 * and the rows of block row p + 1. */
MMA_INLINE void packed_write(const mma_lane lane, const cholesky_panel *panel,
                             const cholesky_block_row *block_row, const int p,
                             __local const real *column) {
  __global real *to = panel->packed + PANEL_START(p);
  const bool diagonal = block_row->number == p;
  const int from = diagonal ? 0 : PANEL_INVERSE + 256 * (block_row->number - p);
  const int end = diagonal ? (p < PANEL_TAIL ? 768 : 512) : from + 256;
  for (int i = from + 2 * lane.lane; i < end; i += 64)
    *(__global real2 *)(to + i) = *(__local const real2 *)(column + i);
}

/* ---- the panel ------------------------------------------------------------------------------- */

/* The steps, of the warp that factors (`factors`), of one that has a block row (`solves`), or in
 * the emulation of both: constants. `head` and `tail` are the blocks of the block row. */
MMA_COLLECTIVE void panel_walk(const mma_lane factor_lane, const mma_lane solve_lane,
                               const bool factors, const bool solves, const cholesky_panel *panel,
                               const cholesky_block_row *block_row, const int before,
                               __local real *columns, __local real *work, __local int *failed,
                               real head[2][4], real tail[PANEL_TAIL][2][4]) {
#pragma unroll 1
  for (int p = 0; p < panel->steps; p++) {
    __local real *column = columns + (p & 1) * PANEL_COLUMN(0);
    if (factors) {
      CHOLESKY_WAIT_NEXT();
      factor16(factor_lane, column, work);
    }
    CHOLESKY_MEET_ALL();
    if (factors) factor_check(factor_lane, column, before + 16 * p, failed);
    if (solves) {
      const int number = block_row->number;
      real solved[2][4];
      block_row_solve(solve_lane, panel, block_row, p, head, tail[0], solved, column, work);
      CHOLESKY_MEET_BLOCK_ROWS();
      block_row_update(solve_lane, block_row, p, head, tail, solved, column);
      if (block_row->is_below || (panel->first && number > p + 1))
        block_row_write(solve_lane, panel, block_row, p, solved);
      if (panel->first && number == p) diagonal_write(solve_lane, panel, p, column);
      if (panel->first && panel->packed && !block_row->is_below && number >= p && number != p + 1)
        packed_write(solve_lane, panel, block_row, p, column);
    }
  }
}

/* The block row of a warp: warps 7 and 11 have block rows 0 and 1, the others 2, 3, ... */
MMA_INLINE cholesky_block_row block_row_of(const mma_lane lane, const int warp, const int group,
                                           const int rows) {
  cholesky_block_row block_row;
  block_row.number = warp % 4 == 3 ? warp / 4 - 1 : warp - (warp + 1) / 4 + 2;
  block_row.is_below = block_row.number >= PANEL_BLOCKS;
  block_row.index = block_row.number + (block_row.is_below ? group * CHOLESKY_BELOW : 0);
  if (warp == CHOLESKY_FACTOR_WARP) block_row.index = 0;
  block_row.row = 16 * block_row.index + 2 * lane.quad;
  /* an idle warp: only joins barriers */
  if (block_row.is_below && 16 * block_row.index >= rows) block_row.number = -1;
  block_row.is_below = block_row.number >= PANEL_BLOCKS;
  block_row.last = min(block_row.number, PANEL_TAIL);
  return block_row;
}

/* Columns right of the panel become zero in the diagonal block's rows, 16 a block row below. */
MMA_INLINE void clear_columns(const mma_lane lane, const int index, const int clear,
                              __global real *to, const int ld) {
  const int from = 16 * (index - PANEL_BLOCKS), end = min(from + 16, clear);
  for (int j = from; j < end; j++) {
    SCL_UNROLL
    for (int i = 0; i < PANEL_ORDER; i += 64)
      *(__global real2 *)(to + i + 2 * lane.lane + (long)j * ld) = 0.0;
  }
}

/* Factors the panel `from` of task.rows rows and n columns (n <= PANEL_ORDER, and n = PANEL_ORDER
 * where rows > n), lower triangle. Its diagonal block goes to `diagonal`, the rows below it,
 * CHOLESKY_BELOW block rows of them to a group, to the same rows of `below`, which may be `from`;
 * `diagonal` may be a part of `from` only where there is one group. Of `below`, task.clear columns
 * are cleared; groups without rows do nothing else. Unless it is NULL, `packed` gets the packed
 * form of the diagonal block, whose n is PANEL_ORDER then. info as in cholesky.cl. */
__kernel __attribute__((reqd_work_group_size(32 * CHOLESKY_WARPS, 1, 1))) void
cholesky_mma_panel(__global const real *from, __global real *below, __global real *diagonal,
                   __global real *info, __global real *packed, const cholesky_panel_task task) {
  __local real columns[2 * PANEL_COLUMN(0)] __attribute__((aligned(128)));
  __local real work[CHOLESKY_WORK] __attribute__((aligned(128)));
  __local int failed;
  MMA_LANE(lane, CHOLESKY_WARPS);
  const int group = get_group_id(0), warp = (int)get_local_id(0) / 32;
  const int rows = task.rows, n = task.n, before = task.before;
  const bool factors = warp == CHOLESKY_FACTOR_WARP;
  const cholesky_panel panel = {.rows = rows,
                                .n = n,
                                .steps = (n + 15) / 16,
                                .first = group == 0,
                                .from = from + task.from_offset,
                                .ld_from = task.from_ld,
                                .below = below + task.below_offset,
                                .ld_below = task.below_ld,
                                .diagonal = diagonal + task.diagonal_offset,
                                .ld_diagonal = task.diagonal_ld,
                                .packed = packed};
  const cholesky_block_row block_row = block_row_of(lane, warp, group, rows);
  const mma_lane factor_lane = mma_only(lane, factors), solve_lane = mma_only(lane, !factors);
  real head[2][4], tail[PANEL_TAIL][2][4];
  if (!factors && block_row.index >= PANEL_BLOCKS)
    clear_columns(lane, block_row.index, task.clear, panel.below + (long)n * panel.ld_below,
                  panel.ld_below);
  if (!panel.first && rows <= n) return;
  if (MMA_ROLES_TOGETHER || !factors) {
    block_row_read(solve_lane, &panel, &block_row, head, tail);
    if (n < PANEL_ORDER) block_row_complete(solve_lane, n, block_row.row, head, tail);
    if (block_row.number == 0) {
      block_put(solve_lane, work, head);
      CHOLESKY_TELL_NEXT();
    }
  }
  if (MMA_ROLES_TOGETHER || factors) {
    info = lane.lane == 0 && factors && panel.first && info ? info + task.info_offset : 0;
    const real earlier = info && before > 0 ? *info : 0.0; /* of the panels before */
    factor_begin(factor_lane, work, &failed);
    panel_walk(factor_lane, solve_lane, true, MMA_ROLES_TOGETHER, &panel, &block_row, before,
               columns, work, &failed, head, tail);
    mma_warp_sync(factor_lane);
    const real found = failed == INT_MAX ? 0.0 : (real)failed;
    if (info) *info = earlier != 0.0 ? earlier : found;
  } else {
    panel_walk(factor_lane, solve_lane, false, true, &panel, &block_row, before, columns, work,
               &failed, head, tail);
  }
}

/* Copies factors of diagonal blocks, side by side in `from`, to the diagonal of an A of n rows:
 * lower triangles, with zeros above them if `clear`. Dimension 2 counts the blocks; a work-item an
 * element. */
__kernel void cholesky_mma_copy_diagonal(const int n, const int clear, __global const real *from,
                                         const long from_offset, const int from_ld,
                                         __global real *a, const long a_offset, const int a_ld) {
  const int i = get_global_id(0), j = get_global_id(1), first = PANEL_ORDER * get_global_id(2);
  if (max(i, j) >= n - first) return;
  from += from_offset + (long)first * from_ld;
  a += a_offset + (long)first * (a_ld + 1);
  if (j <= i)
    a[i + (long)j * a_ld] = from[i + (long)j * from_ld];
  else if (clear)
    a[i + (long)j * a_ld] = 0.0;
}
