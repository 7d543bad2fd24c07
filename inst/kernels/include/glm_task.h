/* What the kernels of a GLM likelihood are to do, by value: filled in by their driver
 * (engine/cl/glm/glm.c). */
#ifndef SCL_KERNEL_GLM_TASK_H
#define SCL_KERNEL_GLM_TASK_H

/* Starts are those of parts of `work`, in numbers (glm_pass.cl); residuals and slopes are not
 * written where theirs is negative. */
typedef struct {
  scl_long results, partials, residuals, slopes;
  scl_long scratch;     /* of glm_rows */
  int n, p;             /* rows and columns of X */
  int vectors, classes; /* parameter vectors; classes of a coupled family, else 1 */
  int predictors;       /* of a row: vectors * classes */
  int owns, own_sums;   /* of each vector: numbers of the own parameter, sums of its derivatives */
  int flags;            /* GLM_GRADIENT ... (glm_families.h) */
  int family;           /* scl_glm_family, of glm_rows and glm_split */
  int has_eta;          /* of glm_split: the predictors start from X beta, else from 0 */
} glm_task;
SCL_SAME_LAYOUT(glm_task, 80)

#endif
