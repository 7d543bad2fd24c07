/* Work-groups of the GLM kernels other than the pass (glm.cl, glm_rows.cl), known to their driver
 * (engine/cl/glm/glm.c). */
#ifndef SCL_KERNEL_GLM_GROUPS_H
#define SCL_KERNEL_GLM_GROUPS_H

/* Work-items that add one row of the results; a power of two. */
#ifndef GLM_COMBINE_ITEMS
#define GLM_COMBINE_ITEMS 64
#endif

/* Groups whose sums are added first, where that is asked for. */
#define GLM_TOGETHER 4

/* Rows of a block of glm_rows, a multiple of 8. */
#ifndef GLM_ROWS_BLOCK
#define GLM_ROWS_BLOCK 64
#endif

#ifdef __OPENCL_VERSION__
/* Sum number `at` of a row over the groups: of one, or of GLM_TOGETHER of them (glm_mma_walk.cl).
 */
SCL_INLINE real glm_partial(volatile __global const real *row, int at, long step, int together) {
  if (together == 1) return row[at * step];
  volatile __global const real *four = row + GLM_TOGETHER * at * step;
  return four[0] + four[step] + (four[2 * step] + four[3 * step]);
}
#endif

#endif
