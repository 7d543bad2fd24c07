/* Work-groups of the GLM kernels other than the pass (glm.cl, glm_rows.cl), known to their driver
 * (engine/cl/glm/glm.c). No code. */
#ifndef SCL_KERNEL_GLM_GROUPS_H
#define SCL_KERNEL_GLM_GROUPS_H

/* Work-items that add one row of the results; a power of two. */
#ifndef GLM_COMBINE_ITEMS
#define GLM_COMBINE_ITEMS 64
#endif

/* Rows of a block of glm_rows, a multiple of 8. */
#ifndef GLM_ROWS_BLOCK
#define GLM_ROWS_BLOCK 64
#endif

#endif
