/* The tile of X in the registers of a group: shared by the pass of a GLM likelihood (glm_pass.cl)
 * and that of a compiled function (engine/plan/source_pass.c). Of a tile of GLM_ROWS rows the
 * work-item (row lane, lane) has GLM_WIDTH neighbouring rows of the columns lane, lane + GLM_LANES,
 * ... */

/* The tile whose first element of this work-item is at x; columns past the last keep their value,
 * 0. */
SCL_INLINE void glm_load(glm_pair *kept, __global const real *x, uint step, int lane, int p) {
  SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
    if (k * GLM_LANES + lane < p) kept[k] = *(__global const glm_pair *)(x + k * step);
  }
}

/* Clears rows past the end. */
SCL_INLINE void glm_clear(glm_pair *kept, uint row, uint n) {
  SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
#if GLM_WIDTH == 2
    kept[k].x = row < n ? kept[k].x : 0.0;
    kept[k].y = row + 1 < n ? kept[k].y : 0.0;
#else
    kept[k] = row < n ? kept[k] : 0.0;
#endif
  }
}

/* This work-item's part of the predictors of its rows. */
SCL_INLINE void glm_predict(const glm_pair *kept, __local const real *weight, int lane,
                            glm_pair *eta) {
  SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
    eta[v] = (glm_pair)(0.0);
    SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
      const real w = weight[(k * GLM_LANES + lane) * GLM_PREDICTORS + v];
      eta[v] = fma(kept[k], (glm_pair)(w), eta[v]);
    }
  }
}

/* Adds the tile to the sums of the gradient. */
SCL_INLINE void glm_add_gradient(const glm_pair *kept, const glm_pair *residual,
                                 real sum[GLM_PREDICTORS][GLM_SUMS]) {
  SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
    SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
      sum[v][k] = GLM_DOT(kept[k], residual[v], sum[v][k]);
    }
  }
}
