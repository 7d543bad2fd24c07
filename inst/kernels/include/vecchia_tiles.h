/* A block of Vecchia's approximation whose factor a group of 32 work-items keeps: of up to
 * VECCHIA_ROWS rows, 32 or 64, in one or two tiles of 32 x 32.
 *
 *          first tile   last tile     A block stands at the end: its rows are first ... ROWS - 1,
 *       0  +                          row `lane` + 32 t belongs to work-item `lane`. Rows before
 *   first  | K11                      `first` are skipped (unit rows of L).
 *      31  |      +                   K = G G', G = L D^1/2, `scale` = D^-1/2. G21 stands in
 *          | K21  | K22               `panel`, by rows; below the diagonal of `tile` first K11,
 *      63  |      |      +            then K22, then L22. L11 is above that diagonal, its rows from
 *                                     the last to the first.
 *
 * - K11 and K22 are computed by pairs: work-item `lane` has the pairs of its row with the next
 *   half of the tile's rows, in a circle; K21 by rows.
 * - A tile is factored with its row in registers: step k publishes column k (one barrier), and two
 *   columns of z are solved along with it.
 * - G21 and the solves of several columns need no barrier: each work-item has its row or its
 *   column in registers and reads L, all of them the same element at a time. */
#ifndef SCL_KERNEL_VECCHIA_TILES_H
#define SCL_KERNEL_VECCHIA_TILES_H

/* Rows in registers need it; CPU devices have none, and take minutes to build what is unrolled. */
#ifdef SCL_CPU
#define VECCHIA_UNROLL SCL_NO_UNROLL
#else
#define VECCHIA_UNROLL SCL_UNROLL
#endif

#define VECCHIA_TILES (VECCHIA_ROWS / 32)
#define VECCHIA_LAST_TILE (VECCHIA_TILES - 1)
#define VECCHIA_TILE_LD 33
#define VECCHIA_PANEL_LD 34 /* even, for pairs; a row's pairs are in other banks than the next's */
#define VECCHIA_PUBLISHED 34
#define VECCHIA_ALONG 2 /* columns that are solved while a tile is factored */

typedef struct {
  int lane, first, columns; /* columns: of `solved` */
  real limit;               /* of a pivot, as a part of the diagonal of K */
  __local real *tile, *panel, *published;
  __local real *scale;        /* of each row: known variance, diagonal of K, then D^-1/2 */
  __local real *solved;       /* z, then G^-1 z: solved[row + column * ROWS] */
  __local const real *noise;  /* of each row: the variance that has the parameter */
} vecchia_tiles;

/* The first lane with a row in tile t. */
SCL_INLINE int vecchia_base(const vecchia_tiles *s, const int t) {
  return max(s->first - 32 * t, 0);
}

/* Where row `i` of L of tile t starts. */
SCL_INLINE int vecchia_row_at(const int t, const int i) {
  return t == VECCHIA_LAST_TILE ? i * VECCHIA_TILE_LD : 1055 - (VECCHIA_TILE_LD + 1) * i;
}

/* K of tile t's rows, with noise. */
SCL_INLINE void vecchia_build_tile(const vecchia_function *f, const vecchia_tiles *s, const int t) {
  const int base = vecchia_base(s, t), rows = 32 - base, own = s->lane - base, q = s->lane + 32 * t;
  for (int step = 0; own >= 0 && 2 * step <= rows; step++) {
    const int other = own + step - (own + step >= rows ? rows : 0);
    if (step > 0 && 2 * step == rows && own >= step) continue;
    real value = vecchia_value(f, q, other + base + 32 * t);
    if (step == 0) {
      value += s->noise[q] + s->scale[q];
      s->scale[q] = value;
    }
    s->tile[(max(own, other) + base) * VECCHIA_TILE_LD + min(own, other) + base] = value;
  }
}

/* Subtracts G21 G21' from the last tile, and G21 times the solved part from the columns. */
SCL_INLINE void vecchia_update_tile(const vecchia_tiles *s) {
  __local const real2 *own = (__local const real2 *)(s->panel + s->lane * VECCHIA_PANEL_LD);
  real2 row[16];
  VECCHIA_UNROLL
  for (int k = 0; k < 16; k++) row[k] = own[k];
  for (int j = 0; j < 32; j++) {
    __local const real2 *other = (__local const real2 *)(s->panel + j * VECCHIA_PANEL_LD);
    real2 sum = (real2)(0.0, 0.0);
    VECCHIA_UNROLL
    for (int k = 0; k < 16; k++) sum += row[k] * other[k];
    if (j <= s->lane) s->tile[s->lane * VECCHIA_TILE_LD + j] -= sum.x + sum.y;
  }
  for (int c = 0; c < s->columns; c++) {
    __local real *z = s->solved + c * VECCHIA_ROWS;
    real sum = 0.0;
    VECCHIA_UNROLL
    for (int k = 0; k < 16; k++) sum += row[k].x * z[2 * k] + row[k].y * z[2 * k + 1];
    z[32 + s->lane] -= sum;
  }
}

/* L of tile t in `row`, the row's inverse pivot; columns y are solved along. Gives whether all
 * pivots are positive. */
SCL_INLINE_BARRIER int vecchia_factor_tile(const vecchia_tiles *s, const int t, real *row,
                                           real *pivot, real *y) {
  const int base = vecchia_base(s, t), lane = s->lane;
  int fine = 1;
  VECCHIA_UNROLL
  for (int k = 0; k < 32; k++) {
    row[k] = k <= lane && k >= base ? s->tile[lane * VECCHIA_TILE_LD + k] : k == lane ? 1.0 : 0.0;
  }
  VECCHIA_UNROLL
  for (int k = 0; k < 32; k++) {
    __local real *column = s->published + (k & 1) * VECCHIA_PUBLISHED;
    column[lane] = row[k];
    if (lane == k) {
      VECCHIA_UNROLL
      for (int c = 0; c < VECCHIA_ALONG; c++) column[32 + c] = y[c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (k >= base) {
      const real value = column[k], inverse = 1.0 / value, ratio = row[k] * inverse;
      fine = fine && value > s->scale[32 * t + k] * s->limit;
      if (lane == k) *pivot = inverse;
      VECCHIA_UNROLL
      for (int j = k + 1; j < 32; j++) row[j] -= ratio * column[j];
      VECCHIA_UNROLL
      for (int c = 0; c < VECCHIA_ALONG; c++) y[c] -= lane > k ? ratio * column[32 + c] : 0.0;
      row[k] = ratio;
    }
  }
  return fine;
}

/* G^-1 of further columns of tile t. */
SCL_INLINE_BARRIER void vecchia_solve_rest(const vecchia_tiles *s, const int t, const real *row,
                                           const real scale) {
  for (int c = VECCHIA_ALONG; c < s->columns; c++) {
    __local real *z = s->solved + 32 * t + c * VECCHIA_ROWS;
    real y = z[s->lane];
    VECCHIA_UNROLL
    for (int k = 0; k < 32; k++) {
      __local real *published = s->published + (k & 1) * VECCHIA_PUBLISHED;
      if (s->lane == k) published[k] = y;
      barrier(CLK_LOCAL_MEM_FENCE);
      if (s->lane > k) y -= row[k] * published[k];
    }
    z[s->lane] = scale * y;
  }
}

/* K21, then G21 = K21 L11^-T D^-1/2. */
SCL_INLINE void vecchia_make_panel(const vecchia_function *f, const vecchia_tiles *s) {
  __local real *own = s->panel + s->lane * VECCHIA_PANEL_LD;
  real row[32];
  for (int j = 0; j < 32; j++) {
    own[j] = j < s->first ? 0.0 : vecchia_value(f, s->lane + 32, j);
  }
  VECCHIA_UNROLL
  for (int k = 0; k < 32; k++) row[k] = own[k];
  VECCHIA_UNROLL
  for (int k = 0; k < 32; k++) {
    if (k < s->first) continue;
    VECCHIA_UNROLL
    for (int j = k + 1; j < 32; j++) row[j] -= row[k] * s->tile[vecchia_row_at(0, j) + k];
  }
  VECCHIA_UNROLL
  for (int k = 0; k < 32; k++) own[k] = row[k] * s->scale[k];
}

/* The factor, and `solved`, of the block whose columns z stand there: in `row` of the last tile.
 * Gives whether all pivots are positive; log_scale: of the rows' D^-1/2, 0 in other lanes. */
SCL_INLINE_BARRIER int vecchia_factor_block(const vecchia_function *f, const vecchia_tiles *s,
                                            __local const int *member, real *log_scale) {
  const int lane = s->lane;
  int all_fine = 1;
  *log_scale = 0.0;
  for (int t = 0; t < VECCHIA_TILES; t++) {
    real row[32], y[VECCHIA_ALONG], pivot = 1.0;
    vecchia_build_tile(f, s, t);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t > 0) vecchia_update_tile(s);
    VECCHIA_UNROLL
    for (int c = 0; c < VECCHIA_ALONG; c++) {
      y[c] = c < s->columns ? s->solved[32 * t + lane + c * VECCHIA_ROWS] : 0.0;
    }
    const int fine = vecchia_factor_tile(s, t, row, &pivot, y);
    const real scale = fine ? sqrt(pivot) : 1.0;
    all_fine = all_fine && fine;
    if (fine && member[lane + 32 * t]) *log_scale += 0.5 * log(pivot);
    barrier(CLK_LOCAL_MEM_FENCE); /* the diagonal of K was read */
    s->scale[lane + 32 * t] = scale;
    VECCHIA_UNROLL
    for (int c = 0; c < VECCHIA_ALONG; c++) {
      if (c < s->columns) s->solved[32 * t + lane + c * VECCHIA_ROWS] = scale * y[c];
    }
    vecchia_solve_rest(s, t, row, scale);
    VECCHIA_UNROLL
    for (int k = 0; k < 31; k++) {
      if (k < lane) s->tile[vecchia_row_at(t, lane) + k] = row[k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < VECCHIA_LAST_TILE) vecchia_make_panel(f, s);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return all_fine;
}

/* x := L^-T x of tile t, a column for each work-item; L^-1 x. */
SCL_INLINE void vecchia_back_column(const vecchia_tiles *s, const int t, real *x) {
  const int base = vecchia_base(s, t);
  VECCHIA_UNROLL
  for (int k = 31; k > 0; k--) {
    if (k < base) continue;
    __local const real *l = s->tile + vecchia_row_at(t, k);
    VECCHIA_UNROLL
    for (int j = 0; j < k; j++) x[j] -= l[j] * x[k];
  }
}

SCL_INLINE void vecchia_forward_column(const vecchia_tiles *s, const int t, real *x) {
  const int base = vecchia_base(s, t);
  VECCHIA_UNROLL
  for (int k = 0; k < 31; k++) {
    if (k < base) continue;
    VECCHIA_UNROLL
    for (int j = k + 1; j < 32; j++) x[j] -= s->tile[vecchia_row_at(t, j) + k] * x[k];
  }
}

/* x := D^-1/2 x in tile t. */
SCL_INLINE void vecchia_scale_column(const vecchia_tiles *s, const int t, real *x) {
  VECCHIA_UNROLL
  for (int j = 0; j < 32; j++) x[j] *= s->scale[32 * t + j];
}

/* x -= G21' of a column of the last tile, which stands at below[ld * row]. */
SCL_INLINE void vecchia_subtract_below(const vecchia_tiles *s, __local const real *below,
                                       const int ld, real *x) {
  for (int i = 0; i < 32; i++) {
    __local const real2 *panel = (__local const real2 *)(s->panel + i * VECCHIA_PANEL_LD);
    const real by = below[i * ld];
    VECCHIA_UNROLL
    for (int j = 0; j < 16; j++) {
      const real2 pair = panel[j];
      x[2 * j] -= pair.x * by;
      x[2 * j + 1] -= pair.y * by;
    }
  }
}

#endif
