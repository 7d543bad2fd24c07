/* Shapes of the GLM pass on a GPU (inst/kernels/portable/glm_pass.cl), expanded for each family
 * into programs (engine/cl/runtime/kernels.def) and into the driver's table (engine/cl/glm/glm.c).
 */
#ifndef SCL_ENGINE_CL_GLM_LAYOUTS_H
#define SCL_ENGINE_CL_GLM_LAYOUTS_H

#include "kernels/include/port.h"
#include "kernels/include/glm_families.h"

/* LAYOUT(NAME, family, layout, predictors of a row, row lanes, lanes, columns of a work-item, rows
 * of a work-item, finish, groups a unit, groups a unit of a lean family); the first two are passed
 * through. The driver uses the first that is large enough. A unit gets as many groups as its
 * registers hold at the same time: a further one would wait for a whole pass, and in a walk of one
 * launch, by a layout with `finish`, all groups must run at once. On an NVIDIA GPU a
 * quarter of a unit has 16,384 registers; a work-item may have at most 128 where the unit has 16
 * warps, 168 where it has 12, 255 where it has 8. */
#define SCL_GLM_LAYOUTS(LAYOUT, NAME, family)                                                      \
  LAYOUT(NAME, family, 10f, 1, 384, 1, 10, 2, 1, 1, 1)                                             \
  LAYOUT(NAME, family, 10, 1, 128, 1, 10, 2, 0, 3, 3)                                              \
  LAYOUT(NAME, family, 32, 1, 32, 4, 8, 2, 0, 4, 4)                                                \
  LAYOUT(NAME, family, 104, 1, 16, 8, 13, 2, 0, 3, 3)                                              \
  LAYOUT(NAME, family, 224, 1, 8, 16, 14, 2, 0, 3, 3)                                              \
  LAYOUT(NAME, family, 528, 1, 8, 24, 22, 2, 0, 2, 2)                                              \
  LAYOUT(NAME, family, 1024, 1, 8, 32, 32, 2, 0, 1, 1)                                             \
  LAYOUT(NAME, family, 10x2, 2, 128, 1, 10, 1, 0, 2, 2)                                            \
  LAYOUT(NAME, family, 104x2, 2, 8, 8, 13, 2, 0, 4, 6)                                             \
  LAYOUT(NAME, family, 224x2, 2, 8, 16, 14, 2, 0, 2, 3)                                            \
  LAYOUT(NAME, family, 10x4f, 4, 256, 1, 10, 1, 1, 1, 1)                                           \
  LAYOUT(NAME, family, 10x4, 4, 128, 1, 10, 1, 0, 2, 2)                                            \
  LAYOUT(NAME, family, 104x3, 3, 8, 8, 13, 2, 0, 4, 4)                                             \
  LAYOUT(NAME, family, 104x4, 4, 16, 8, 13, 2, 0, 2, 2)                                            \
  LAYOUT(NAME, family, 224x4, 4, 8, 16, 14, 2, 0, 2, 2)

/* The same on matrix instructions (inst/kernels/nvidia/glm_mma.cl). LAYOUT(NAME, family, layout,
 * predictors of a row, eighths of the columns, groups a unit, groups a unit of a lean family, and
 * the least numbers of predictors, columns and rows for which it is used). They come before the
 * others. A unit with 228 KB of local memory holds eight groups with 104 columns. Few rows take
 * less time in the one launch of 10x4f. */
#define SCL_GLM_MMA_LAYOUTS(LAYOUT, NAME, family)                                                  \
  LAYOUT(NAME, family, 16m4, 4, 2, 12, 16, 3, 0, 300000)                                           \
  LAYOUT(NAME, family, 40m4, 4, 5, 10, 12, 2, 11, 0)                                               \
  LAYOUT(NAME, family, 16m8, 8, 2, 10, 12, 5, 0, 0)                                                \
  LAYOUT(NAME, family, 40m8, 8, 5, 8, 8, 5, 0, 0)                                                  \
  LAYOUT(NAME, family, 104m4, 4, 13, 8, 8, 2, 11, 0)                                               \
  LAYOUT(NAME, family, 104m8, 8, 13, 8, 8, 5, 0, 0)

/* All points of a walk in one launch, by 16m8 (inst/kernels/nvidia/glm_mma_walk.cl): a group has
 * the warps of GLM_TOGETHER groups of the pass. FAMILY(NAME, family): those with walks. */
#define SCL_GLM_WALK_FAMILIES(FAMILY)                                                              \
  FAMILY(BERNOULLI_LOGIT, bernoulli_logit)                                                         \
  FAMILY(BINOMIAL_LOGIT, binomial_logit)                                                           \
  FAMILY(POISSON_LOG, poisson_log)

#endif
