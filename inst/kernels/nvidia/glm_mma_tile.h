/* The tile of X in local memory, for products by matrix instructions (mma.h): shared by the pass of
 * a GLM likelihood (glm_mma.cl) and that of a compiled function (engine/plan/source_mma.c). A group
 * is one warp; a tile has GLM_ROWS = 16 rows of GLM_SLOTS = 8 GLM_STEPS columns. Of each of its
 * rows there are GLM_PREDICTORS <= 8 predictors.
 *
 * A tile is stored by columns of 128 bytes, whose eight pairs of rows are exchanged so that both
 * products read it without conflicts: pair q of column c is at q ^ glm_turn(c). With the
 * instruction's lane l, g = l / 4 and t = l % 4:
 *
 *   predictors = X beta: the instruction's rows g and g + 8 stand for the rows 2g and 2g + 1, its k
 *     for the columns, its columns for the predictors;
 *   gradient = X' residuals: its rows stand for 16 columns of X, its k = t and t + 4 in step u for
 *     the rows 2q and 2q + 1, where q = t + 4u, its columns for the predictors.
 *
 * In between the predictors of the tile are in local memory, as `cells`, 16 rows of each in the
 * same order, and then the residuals instead. */

#ifndef GLM_PARTIAL /* the memory of a group's sums */
#define GLM_PARTIAL __global
#endif
#define GLM_SLOTS (8 * GLM_STEPS)
#define GLM_STAGE (GLM_SLOTS * GLM_ROWS)
#define GLM_BLOCKS ((GLM_SLOTS + 15) / 16) /* of 16 columns */

MMA_INLINE int glm_turn(int column) {
  return (column & 1) << 2 | (column & 2);
}

/* The cell of predictor v in row r. */
MMA_INLINE int glm_cell(int v, int r) {
  return v * GLM_ROWS + ((r >> 1 ^ glm_turn(v)) << 1 | (r & 1));
}

/* ---- the two products -------------------------------------------------------------------------
 */

/* Starts to copy the tile from row `first` on; one group of copies, also past the last row. A whole
 * tile, which most are, takes fewer instructions. */
MMA_INLINE void glm_fetch(mma_copies *copies, __local real *stage, __global const real *x, uint ld,
                          uint first, uint n, int p, int lane) {
  const int pair = lane & 7, column = lane >> 3;
  const uint row = first + 2 * pair;
  __local real *to = stage + column * GLM_ROWS + ((pair ^ glm_turn(column)) << 1);
  if (first + GLM_ROWS <= n) {
    SCL_UNROLL for (int j = 0; j < GLM_SLOTS; j += 4) {
      if (j + column < p) mma_copy_16(copies, to + j * GLM_ROWS, x + (row + (j + column) * ld), 16);
    }
  } else if (first < n) {
    const int bytes = row < n ? (row + 1 < n ? 16 : 8) : 0;
    const uint known = min(row, (n - 1) & ~1u);
    SCL_UNROLL for (int j = 0; j < GLM_SLOTS; j += 4) {
      if (j + column < p)
        mma_copy_16(copies, to + j * GLM_ROWS, x + (known + (j + column) * ld), bytes);
    }
  }
  mma_commit(copies);
}

/* The predictors of the tile to the cells. */
MMA_COLLECTIVE void glm_predict(const mma_lane lane, __local const real *stage,
                                real weight[GLM_STEPS][2], __local real *cells) {
  const int g = lane.quad, t = lane.member;
  real eta[2][4] = {{0.0, 0.0, 0.0, 0.0}, {0.0, 0.0, 0.0, 0.0}};
  __local const real *from = stage + t * GLM_ROWS + ((g ^ glm_turn(t)) << 1);
  SCL_UNROLL for (int s = 0; s < GLM_STEPS; s++) {
    const real2 near = *(__local const real2 *)(from + 8 * s * GLM_ROWS);
    const real2 far = *(__local const real2 *)(from + (8 * s + 4) * GLM_ROWS);
    mma_8(lane, eta[s & 1], near.x, near.y, far.x, far.y, weight[s][0], weight[s][1]);
  }
  if (2 * t < GLM_PREDICTORS) {
    *(__local real2 *)(cells + glm_cell(2 * t, 2 * g)) =
        (real2)(eta[0][0] + eta[1][0], eta[0][2] + eta[1][2]);
    *(__local real2 *)(cells + glm_cell(2 * t + 1, 2 * g)) =
        (real2)(eta[0][1] + eta[1][1], eta[0][3] + eta[1][3]);
  }
}

/* Adds the tile to the sums of the gradient, from the residuals in the cells. */
MMA_COLLECTIVE void glm_add_gradient(const mma_lane lane, __local const real *stage,
                                     __local const real *cells, real sum[GLM_BLOCKS][4]) {
  const int g = lane.quad, t = lane.member;
  real2 residual[2];
  __local const real *from[2];
  SCL_UNROLL for (int u = 0; u < 2; u++) {
    residual[u] = (real2)(0.0);
    if (g < GLM_PREDICTORS) {
      residual[u] = *(__local const real2 *)(cells + glm_cell(g, 2 * (t + 4 * u)));
    }
    from[u] = stage + g * GLM_ROWS + ((t + 4 * u ^ glm_turn(g)) << 1);
  }
  SCL_UNROLL for (int u = 0; u < 2; u++) {
    SCL_UNROLL for (int i = 0; i < GLM_BLOCKS; i++) {
      const real2 near = *(__local const real2 *)(from[u] + 16 * i * GLM_ROWS);
      real2 far = (real2)(0.0);
      if (16 * i + 8 < GLM_SLOTS) far = *(__local const real2 *)(from[u] + (16 * i + 8) * GLM_ROWS);
      mma_8(lane, sum[i], near.x, far.x, near.y, far.y, residual[u].x, residual[u].y);
    }
  }
}

/* ---- cells and results ---------------------------------------------------------------------- */

/* Work-item l has the row l % 16 of the predictors l / 16, l / 16 + 2, ... */
#define GLM_PREDICTOR(i, lane) (2 * (i) + ((lane) >> 4))

/* Sums over the rows of the numbers of a work-item's GLM_LINKS vectors, to row first + v of the
 * results for the first `count` vectors. */
MMA_COLLECTIVE void glm_sum_cells(__local real *pool, const real *mine, int count, int first,
                                  GLM_PARTIAL real *partial, long groups, const mma_lane self) {
  const int lane = self.lane;
  __local real *quarters = pool + GLM_CELLS;
  real sum = 0.0;
  mma_warp_sync(self);
  SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
    pool[GLM_PREDICTOR(i, lane) * GLM_ROWS + (lane & 15)] = mine[i];
  }
  mma_warp_sync(self);
  if (lane < 4 * GLM_PREDICTORS) {
    SCL_UNROLL for (int r = 0; r < 4; r++) {
      sum += pool[(lane >> 2) * GLM_ROWS + 4 * r + (lane & 3)];
    }
    quarters[lane] = sum;
  }
  mma_warp_sync(self);
  if (lane < count) {
    __local const real *of = quarters + 4 * lane;
    partial[(first + lane) * groups] = of[0] + of[1] + (of[2] + of[3]);
  }
}

/* The sums of the gradient to the results of this group. */
MMA_INLINE void glm_write_gradient(real sum[GLM_BLOCKS][4], GLM_PARTIAL real *partial,
                                   const long groups, const int p, const int predictors,
                                   const mma_lane self) {
  const int g = self.quad, t = self.member;
  SCL_UNROLL for (int i = 0; i < GLM_BLOCKS; i++) {
    SCL_UNROLL for (int k = 0; k < 4; k++) {
      const int c = 16 * i + g + (k >> 1) * 8, v = 2 * t + (k & 1);
      if (c < p && v < predictors) partial[(v * p + c) * groups] = sum[i][k];
    }
  }
}
