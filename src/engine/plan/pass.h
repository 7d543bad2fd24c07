/* Plans of a pass: the sums of a likelihood and X' r in one read of a tall matrix X, where the
 * steps make r of X b. The kernel is that of inst/kernels/include/glm_tile.h around the steps, or,
 * with several columns of b, that of inst/kernels/nvidia/glm_mma_tile.h. */
#ifndef SCL_ENGINE_PLAN_PASS_H
#define SCL_ENGINE_PLAN_PASS_H

#include "engine/plan/plan.h"

/* The most columns of X, and predictors (products X b times vectors, the columns of the plan): more
 * would not stay in registers. With matrix instructions more do, but columns of tiles are in local
 * memory, which groups share. */
enum {
  SCL_PASS_COLUMNS = 128,
  SCL_PASS_PREDICTORS = 4,
  SCL_PASS_MMA_COLUMNS = 104,
  SCL_PASS_MMA_PREDICTORS = 8
};

/* A tile has width * row_lanes rows. Of these a work-item has `width` rows of every lanes-th
 * column, `columns` in all. With matrix instructions a warp has 16 rows of 8 * `eighths` columns;
 * `eighths` is 0 without. */
typedef struct {
  uint8_t predictors, row_lanes, lanes, columns, width, eighths;
} scl_pass_layout;

/* Whether a plan with products X' r is a pass; it becomes one. `kernel`: of a kernel, which `mma`
 * has use matrix instructions, where these are faster. Call it before scl_plan_end(). */
bool scl_plan_become_pass(scl_plan *plan, bool kernel, bool mma);
/* Whether matrix instructions, if the device has them, make the pass faster, or possible at all. */
bool scl_plan_wants_mma(const scl_plan *plan);
scl_pass_layout scl_plan_pass_layout(const scl_plan *plan);
size_t scl_pass_items(const scl_pass_layout *l); /* of a group */
size_t scl_pass_rows(const scl_pass_layout *l);  /* of a tile */
/* Definitions that stand before inst/kernels/include/glm_pass.h, or nvidia/glm_mma_tile.h. */
void scl_plan_pass_shape(const scl_plan *plan, char *to, size_t room);
/* The numbers that output k of a pass has. */
size_t scl_pass_results(const scl_plan *plan, int k);

#endif
