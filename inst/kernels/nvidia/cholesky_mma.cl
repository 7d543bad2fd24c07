/* Cholesky factor of a panel of at most STRIPS_ORDER columns, on the double-precision matrix
 * instructions of NVIDIA devices (mma.h): the twin of cholesky.cl, over panels_mma.h, used under
 * the same conditions as gemm_mma.cl (engine/cl/runtime/variant.c).
 *
 *      columns 0      16     32  ...  n        warp 3 factors the blocks on the diagonal;
 *   strip 0   [ L00 \                          warp 7 has strip 0, warp 11 strip 1,
 *   strip 1   [ L10    L11 \                   the others strips 2, 3, ... of the diagonal block,
 *   ...       [ ...    ...    ... \            one to a warp;
 *   STRIPS    [ rows below, CHOLESKY_EXTRA     the last CHOLESKY_EXTRA warps the strips below it.
 *   ...       [ strips of them to a group
 *
 * Every group factors the diagonal block for itself (nothing has to be exchanged between groups,
 * and one launch does a panel), the first one writes it.
 *
 * Step p of so many as there are blocks on the diagonal:
 *
 *   warp 3           strip p + 1             strips p + 2, ...       strips below
 *   factor (p, p)    (update of step p - 1)  (update of step p - 1)  (update of step p - 1)
 *   ------------------------------------------------------------------------ all meet
 *                    solve, hand out         solve, hand out
 *                    update (p + 1, p + 1)
 *   waits for it, then factors it
 *                    ------------------------------------------------------- all but warp 3 meet
 *                    update the rest         update                  solve, update
 *
 * The critical path needs nobody else's rows; all else is done while the next factor runs.
 *
 * A processor has four schedulers, each with instructions and arithmetic of its own, and warp i
 * belongs to scheduler i % 4. The warp that factors shares its own with the strips that are done
 * first: all others wait for it, and it for them only to hand over the next block.
 *
 * At step p, `head` is block p of the strip and tail[s] block p + 1 + s; updates move each block
 * down by one, so that one body serves all steps. (Unrolled over the steps, each instruction would
 * be fetched for one use, and the instruction cache would take most of the time.) */

#define CHOLESKY_FACTOR_WARP 3
/* Barriers: all; the warp that factors waits for that of the next strip; all but the one that
 * factors. */
#define CHOLESKY_MEET_ALL() MMA_MEET(0, CHOLESKY_WARPS)
#define CHOLESKY_WAIT_NEXT() MMA_MEET(1, 2)
#define CHOLESKY_TELL_NEXT() MMA_MEET_FIRST(1, 2)
#define CHOLESKY_MEET_STRIPS() MMA_MEET(2, CHOLESKY_WARPS - 1)

/* Room of the 16 x 16 factor, in rows CHOLESKY_ROW doubles apart, which frees it of most bank
 * conflicts: the block; behind it what comes out of the product between the halves; rows of the
 * identity of order 8, and one of zeros; what goes into the product, 24 rows of 8. */
#define CHOLESKY_ROW 18
#define CHOLESKY_OUT (16 * CHOLESKY_ROW)
#define CHOLESKY_HALF 10
#define CHOLESKY_IDENTITY (32 * CHOLESKY_ROW)
#define CHOLESKY_IN (CHOLESKY_IDENTITY + 9 * CHOLESKY_HALF)
#define CHOLESKY_ROOM (CHOLESKY_IN + 24 * CHOLESKY_HALF)

/* A panel; the pointers are to its first element. */
typedef struct {
  int rows, n, steps;
  bool first; /* group: the one that writes the diagonal block */
  __global const real *from;
  __global real *below, *diagonal, *packed;
  int ld_from, ld_below, ld_diagonal;
} cholesky_panel;

/* A warp's strip. */
typedef struct {
  int number; /* in the group, -1 for none */
  int index;  /* in the panel */
  int row;    /* the first of this lane's two */
  int last;   /* block of the diagonal block's columns that the strip meets */
  bool extra; /* below the diagonal block */
} cholesky_strip;

/* ---- the 16 x 16 factor -----------------------------------------------------------------------
 */

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

/* A strip's block to the room. */
MMA_INLINE void room_put(const mma_lane lane, __local real *room, real x[2][4]) {
  SCL_UNROLL
  for (int r = 0; r < 2; r++) {
    SCL_UNROLL
    for (int h = 0; h < 2; h++)
      *(__local real2 *)(room + CHOLESKY_ROW * (2 * lane.quad + r) + 8 * h + 2 * lane.member) =
          (real2)(x[h][2 * r], x[h][2 * r + 1]);
  }
}

/* Factors an 8 x 8 block, of which each lane has the lower triangle in d, and applies the steps to
 * each lane's own row a. All lanes do the same with d: exchanging what they need would take longer.
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
    __local real *to = column + STRIPS_AT(row, from);
    SCL_UNROLL
    for (int k = 0; k < 8; k += 2)
      *(__local real2 *)(to + k) =
          (real2)(from + k <= row ? -l[k] : 0.0, from + k < row ? -l[k + 1] : 0.0);
  } else {
    __local real *to = column + STRIPS_INVERSE + 16 * from;
    SCL_UNROLL
    for (int k = 0; k < 8; k++) to[STRIPS_AT(k, row)] = l[k];
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

/* What goes into the product between the halves: rows 8 to 15, 0 to 7 of the identity, and the
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
MMA_COLLECTIVE void product_of_halves(const mma_lane lane, __local real *room) {
  __local real *out = room + CHOLESKY_OUT + CHOLESKY_ROW * lane.quad + 2 * lane.member;
  __local const real *in = room + CHOLESKY_IN + CHOLESKY_HALF * lane.quad + 2 * lane.member;
  real2 corner = 0.0, left = 0.0, above = 0.0, right = 0.0;
  if (mma_is_active(lane)) {
    corner = *(__local const real2 *)(room + CHOLESKY_ROW * (8 + lane.quad) + 8 + 2 * lane.member);
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

/* Factors the 16 x 16 block in the room, one warp, in two halves of 8 columns, and packs it: -L and
 * W = inv(L) to `column`. Lanes 0 to 15 have its rows; lanes 16 to 31 rows of the identity, which
 * the same steps turn into rows of W'. */
MMA_COLLECTIVE void factor16(const mma_lane lane, __local real *column, __local real *room) {
  const int i = lane.lane;
  __local const real *identity = room + CHOLESKY_IDENTITY + CHOLESKY_HALF * (i & 7);
  __local const real *zeros = room + CHOLESKY_IDENTITY + CHOLESKY_HALF * 8;
  __local const real *rows = room, *own = room + CHOLESKY_ROW * i;
  if (i >= 16) own = i < 24 ? identity : zeros;
#pragma unroll 1
  for (int from = 0; from < 16; from += 8) {
    real a[8], d[8][8], reciprocal[8];
    if (mma_is_active(lane)) {
      triangle_get(d, rows);
      row_get(a, own);
      factor8(d, a, reciprocal);
    }
    if (from == 0) {
      __local real *out = room + CHOLESKY_OUT;
      if (mma_is_active(lane)) product_put(room + CHOLESKY_IN, a, reciprocal, i);
      mma_warp_sync(lane);
      product_of_halves(lane, room);
      mma_warp_sync(lane);
      rows = out;
      own = i < 24 ? out + CHOLESKY_ROW * max(i - 8, 0) : identity;
    }
    if (mma_is_active(lane)) column_put(column, from, a, d, i);
  }
}

MMA_COLLECTIVE void factor_begin(const mma_lane lane, __local real *room, __local int *failed) {
  if (mma_is_active(lane)) {
    if (lane.lane == 0) *failed = INT_MAX;
    for (int i = lane.lane; i < 9 * CHOLESKY_HALF; i += 32)
      room[CHOLESKY_IDENTITY + i] = i % (CHOLESKY_HALF + 1) == 0 ? 1.0 : 0.0;
  }
  mma_warp_sync(lane);
}

/* Notes the first pivot that fails, of a block whose first column is number `before`. */
MMA_INLINE void factor_check(const mma_lane lane, __local const real *column, const int before,
                             __local int *failed) {
  const int i = lane.lane;
  if (mma_is_active(lane) && i < 16 && !(-column[STRIPS_AT(i, i)] < INFINITY))
    atomic_min(failed, before + i + 1);
}

/* ---- strips -----------------------------------------------------------------------------------
 */

/* All loads at once, also of blocks above the diagonal, which nothing uses: guards would have them
 * wait for each other. Past the edges others are read instead: rows that are not written then, or
 * what the identity replaces; above the diagonal the diagonal block. */
MMA_INLINE void strip_load(const mma_lane lane, const cholesky_panel *panel,
                           const cholesky_strip *strip, real head[2][4],
                           real tail[STRIPS_TAIL][2][4]) {
  const int n = panel->n, row = strip->row;
  const int row_there = min(row, (panel->rows - 1) & ~1);
  const int column_there = min(n - 1, 16 * strip->index + 15);
  SCL_UNROLL
  for (int q = 0; q < STRIPS; q++) {
    SCL_UNROLL
    for (int i = 0; i < 4; i++) {
      const int k = 16 * q + 8 * (i / 2) + 2 * lane.member + i % 2;
      const long at = row_there + (long)min(k, column_there) * panel->ld_from;
      real2 pair = *(__global const real2 *)(panel->from + at);
      if (n < STRIPS_ORDER) {
        if (row >= n || k >= n) pair.x = row == k ? 1.0 : 0.0;
        if (row + 1 >= n || k >= n) pair.y = row + 1 == k ? 1.0 : 0.0;
      }
      real *block = q == 0 ? head[i / 2] : tail[q == 0 ? 0 : q - 1][i / 2];
      block[i % 2] = pair.x;
      block[2 + i % 2] = pair.y;
    }
  }
}

/* The part of step p that others wait for: strips of the diagonal block solve for their block and
 * hand out what comes of it; the next one goes on to the next block on the diagonal. */
MMA_COLLECTIVE void strip_solve(const mma_lane all, const cholesky_panel *panel,
                                const cholesky_strip *strip, const int p, real head[2][4],
                                real next[2][4], real solved[2][4], __local real *column,
                                __local real *room) {
  const bool solves = strip->number > p && !strip->extra;
  const bool is_next = solves && strip->number == p + 1;
  const mma_lane lane = mma_only(all, solves), next_lane = mma_only(all, is_next);
  __local real *below = column + STRIPS_INVERSE; /* W, and the rows below it */
  const int row = strip->row - 16 * p;           /* there */
  MMA_IF(solves) {
    solve16(lane, solved, head, column);
    if (mma_is_active(lane)) {
      SCL_UNROLL
      for (int h = 0; h < 2; h++) {
        const int k = 8 * h + 2 * lane.member;
        *(__local real2 *)(below + STRIPS_AT(row, k)) = (real2)(-solved[h][0], -solved[h][1]);
        *(__local real2 *)(below + STRIPS_AT(row + 1, k)) = (real2)(-solved[h][2], -solved[h][3]);
      }
    }
    MMA_IF(is_next) {
      mma_warp_sync(next_lane);
      times16(next_lane, head, next, solved, below, 16);
      if (mma_is_active(next_lane) && strip->number < panel->steps) {
        room_put(next_lane, room, head);
        CHOLESKY_TELL_NEXT();
      }
    }
  }
}

/* The rest of step p: strips below solve; all take what step p found from their later blocks. */
MMA_COLLECTIVE void strip_update(const mma_lane lane, const cholesky_strip *strip, const int p,
                                 real head[2][4], real tail[STRIPS_TAIL][2][4], real solved[2][4],
                                 __local const real *column) {
  __local const real *below = column + STRIPS_INVERSE;
  MMA_IF(strip->extra) solve16(mma_only(lane, strip->extra), solved, head, column);
  const bool later = strip->number > p, moves = later && strip->number > p + 1 && p < STRIPS_TAIL;
  MMA_IF(later) {
    MMA_IF(moves) times16(mma_only(lane, moves), head, tail[0], solved, below, 16);
    SCL_UNROLL
    for (int s = 1; s < STRIPS_TAIL; s++) {
      const bool meets = later && p + 1 + s <= strip->last;
      MMA_IF(meets)
      times16(mma_only(lane, meets), tail[s - 1], tail[s], solved, below, 16 * (1 + s));
    }
  }
}

/* What step p gave this strip, to memory. */
MMA_INLINE void strip_write(const mma_lane lane, const cholesky_panel *panel,
                            const cholesky_strip *strip, const int p, real solved[2][4]) {
  __global real *to = strip->extra ? panel->below : panel->diagonal;
  const int ld = strip->extra ? panel->ld_below : panel->ld_diagonal, row = strip->row;
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

/* The diagonal block of step p, and the strip of warp p + 1, which is busy. */
MMA_INLINE void diagonal_write(const mma_lane lane, const cholesky_panel *panel, const int p,
                               __local const real *column) {
  __local const real *below = column + STRIPS_INVERSE;
  const int ld = panel->ld_diagonal;
  for (int i = lane.lane; i < 256; i += 32) {
    const int r = i % 16, k = i / 16;
    __global real *to = panel->diagonal + (long)(16 * p + k) * ld;
    if (k <= r && 16 * p + r < panel->n) to[16 * p + r] = -column[STRIPS_AT(r, k)];
    if (p < STRIPS_TAIL && 16 * (p + 1) + r < panel->n)
      to[16 * (p + 1) + r] = -below[STRIPS_AT(16 + r, k)];
  }
}

/* The packed form of column block p: each strip its rows, strip p the diagonal block and those of
 * strip p + 1. */
MMA_INLINE void packed_write(const mma_lane lane, const cholesky_panel *panel,
                             const cholesky_strip *strip, const int p, __local const real *column) {
  __global real *to = panel->packed + STRIPS_START(p);
  const bool own = strip->number == p;
  const int from = own ? 0 : STRIPS_INVERSE + 256 * (strip->number - p);
  const int end = own ? (p < STRIPS_TAIL ? 768 : 512) : from + 256;
  for (int i = from + 2 * lane.lane; i < end; i += 64)
    *(__global real2 *)(to + i) = *(__local const real2 *)(column + i);
}

/* ---- the panel --------------------------------------------------------------------------------
 */

/* The steps, of the warp that factors (`factors`), of one that has a strip (`strips`), or in the
 * emulation of both: constants. `head` and `tail` are the strip's blocks. */
MMA_COLLECTIVE void panel_walk(const mma_lane factor_lane, const mma_lane strip_lane,
                               const bool factors, const bool strips, const cholesky_panel *panel,
                               const cholesky_strip *strip, const int before, __local real *columns,
                               __local real *room, __local int *failed, real head[2][4],
                               real tail[STRIPS_TAIL][2][4]) {
#pragma unroll 1
  for (int p = 0; p < panel->steps; p++) {
    __local real *column = columns + (p & 1) * STRIPS_COLUMN(0);
    if (factors) {
      CHOLESKY_WAIT_NEXT();
      factor16(factor_lane, column, room);
    }
    CHOLESKY_MEET_ALL();
    if (factors) factor_check(factor_lane, column, before + 16 * p, failed);
    if (strips) {
      const int number = strip->number;
      real solved[2][4];
      strip_solve(strip_lane, panel, strip, p, head, tail[0], solved, column, room);
      CHOLESKY_MEET_STRIPS();
      strip_update(strip_lane, strip, p, head, tail, solved, column);
      if (strip->extra || (panel->first && number > p + 1))
        strip_write(strip_lane, panel, strip, p, solved);
      if (panel->first && number == p) diagonal_write(strip_lane, panel, p, column);
      if (panel->first && panel->packed && !strip->extra && number >= p && number != p + 1)
        packed_write(strip_lane, panel, strip, p, column);
    }
  }
}

/* The strip of a warp: warps 7 and 11 have strips 0 and 1, the others 2, 3, ... */
MMA_INLINE cholesky_strip strip_of(const mma_lane lane, const int warp, const int group,
                                   const int rows) {
  cholesky_strip strip;
  strip.number = warp % 4 == 3 ? warp / 4 - 1 : warp - (warp + 1) / 4 + 2;
  strip.index = strip.number + (strip.number >= STRIPS ? group * CHOLESKY_EXTRA : 0);
  if (warp == CHOLESKY_FACTOR_WARP) strip.index = 0;
  strip.row = 16 * strip.index + 2 * lane.quad;
  /* nothing to do but keep the others' barriers company */
  if (strip.number >= STRIPS && 16 * strip.index >= rows) strip.number = -1;
  strip.extra = strip.number >= STRIPS;
  strip.last = min(strip.number, STRIPS_TAIL);
  return strip;
}

/* Columns right of the panel become zero in the rows of the diagonal block, 16 for each strip
 * below. */
MMA_INLINE void clear_columns(const mma_lane lane, const int index, const int clear,
                              __global real *to, const int ld) {
  const int from = 16 * (index - STRIPS), end = min(from + 16, clear);
  for (int j = from; j < end; j++) {
    SCL_UNROLL
    for (int i = 0; i < STRIPS_ORDER; i += 64)
      *(__global real2 *)(to + i + 2 * lane.lane + (long)j * ld) = 0.0;
  }
}

/* Factors the panel `from` of task.rows rows and n columns (n <= STRIPS_ORDER, and n = STRIPS_ORDER
 * where rows > n), lower triangle. Its diagonal block goes to `diagonal`, the rows below it,
 * CHOLESKY_EXTRA strips of them to a group, to the same rows of `below`, which may be `from`;
 * `diagonal` may be a part of `from` only where there is one group. Of `below`, `clear` columns
 * right of the panel become zero in the rows of the diagonal block, 16 for each strip; groups
 * without rows do nothing else. Unless it is NULL, `packed` gets the packed form of the diagonal
 * block (of n = STRIPS_ORDER), for triangular_mma_solve. info as in cholesky.cl. */
__kernel __attribute__((reqd_work_group_size(32 * CHOLESKY_WARPS, 1, 1))) void
cholesky_mma_panel(__global const real *from, __global real *below, __global real *diagonal,
                   __global real *info, __global real *packed, const cholesky_panel_task task) {
  __local real columns[2 * STRIPS_COLUMN(0)] __attribute__((aligned(128)));
  __local real room[CHOLESKY_ROOM] __attribute__((aligned(128)));
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
  const cholesky_strip strip = strip_of(lane, warp, group, rows);
  const mma_lane factor_lane = mma_only(lane, factors), strip_lane = mma_only(lane, !factors);
  real head[2][4], tail[STRIPS_TAIL][2][4];
  if (!factors && strip.index >= STRIPS)
    clear_columns(lane, strip.index, task.clear, panel.below + (long)n * panel.ld_below,
                  panel.ld_below);
  if (!panel.first && rows <= n) return;
  if (MMA_ROLES_TOGETHER || !factors) {
    strip_load(strip_lane, &panel, &strip, head, tail);
    if (strip.number == 0) {
      room_put(strip_lane, room, head);
      CHOLESKY_TELL_NEXT();
    }
  }
  if (MMA_ROLES_TOGETHER || factors) {
    info = lane.lane == 0 && factors && panel.first && info ? info + task.info_offset : 0;
    const real earlier = info && before > 0 ? *info : 0.0; /* of the panels before */
    factor_begin(factor_lane, room, &failed);
    panel_walk(factor_lane, strip_lane, true, MMA_ROLES_TOGETHER, &panel, &strip, before, columns,
               room, &failed, head, tail);
    mma_warp_sync(factor_lane);
    const real found = failed == INT_MAX ? 0.0 : (real)failed;
    if (info) *info = earlier != 0.0 ? earlier : found;
  } else {
    panel_walk(factor_lane, strip_lane, false, true, &panel, &strip, before, columns, room, &failed,
               head, tail);
  }
}

/* Puts factors of diagonal blocks, side by side in D, into their places on the diagonal of an A of
 * n rows: lower triangles, with zeros above them if `clear`. Dimension 2 counts the blocks. */
__kernel void cholesky_mma_place(const int n, const int clear, __global const real *D,
                                 const long offset_d, const int ldd, __global real *A,
                                 const long offset_a, const int lda) {
  const int i = get_global_id(0), j = get_global_id(1), first = STRIPS_ORDER * get_global_id(2);
  D += offset_d + (long)first * ldd;
  A += offset_a + (long)first * (lda + 1);
  if (max(i, j) >= n - first) return;
  if (j <= i)
    A[i + (long)j * lda] = D[i + (long)j * ldd];
  else if (clear)
    A[i + (long)j * lda] = 0.0;
}
