/* The layouts of the GLM pass (layouts.h) as a table, and which of them a pass takes. */
#ifndef SCL_ENGINE_CL_GLM_SHAPE_H
#define SCL_ENGINE_CL_GLM_SHAPE_H

#include "engine/cl/runtime/launch.h"
#include "engine/pass/glm.h"

typedef struct {
  const char *name;
  size_t predictors, items, rows; /* of a row; of a group; of a tile */
  size_t slots;                   /* columns */
  bool finish;                    /* the pass adds the groups' sums itself */
  size_t groups_of_unit[2];       /* of a lean family: the second */
  size_t least[3];                /* of predictors, columns and rows, from which on it is used */
  bool mma;                       /* needs matrix instructions */
} scl_cl_glm_shape;

/* The first layout that suits the pass, or -1. */
scl_status scl_cl_glm_choose(scl_cl_context *cl, const scl_glm_pass *pass, int *out);
const scl_cl_glm_shape *scl_cl_glm_shape_of(int layout);
/* Its kernel: the second where the pass adds the groups' sums itself, else the first. */
const scl_kernel_glm_pass *scl_cl_glm_pass_kernel(scl_glm_family family, int layout);
const scl_kernel_glm_pass_and_sum *scl_cl_glm_sum_kernel(scl_glm_family family, int layout);
/* The kernel of all points of a walk, or NULL. */
const scl_kernel_glm_pass *scl_cl_glm_walk_kernel(scl_glm_family family, int layout);
/* Whether groups of a kernel may read what others of it have written. */
bool scl_cl_glm_may_meet(const scl_cl_context *cl);

enum { SCL_CL_GLM_CUT_BYTES = 16 << 10 };
/* Bytes of local memory for the sums by cut, one for each of `cells` predictors. Groups share the
 * local memory of a unit. */
size_t scl_cl_glm_cut_bytes(const scl_glm_pass *pass, size_t cells);
/* The number of groups whose tiles, cells (inst/kernels/nvidia/glm_mma.cl), sums by cut and
 * driver's share fit into the local memory of a unit. The same with and without a gradient. */
size_t scl_cl_glm_local_groups(const scl_cl_glm_shape *l, const scl_glm_pass *pass);

#endif
