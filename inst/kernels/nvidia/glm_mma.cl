/* The pass of a GLM likelihood (glm_pass.cl, same parameters and layout of `work`) for several
 * predictors of a row, by the matrix instructions of NVIDIA devices (mma.h, glm_mma_tile.h): for at
 * most GLM_SLOTS columns and GLM_PREDICTORS <= 8 predictors.
 *
 * Work split: a group is one warp, which walks over tiles of GLM_ROWS = 16 rows and all columns.
 * While it works on one tile, asynchronous copies bring the next one to the other half of a ring in
 * local memory; in its registers are beta and its sums of the gradient, over all tiles. Eight or
 * more such groups share a unit and do not wait for each other: while one is at the chain from
 * predictors to residuals, the others use the unit. More parameter vectors than GLM_PREDICTORS are
 * cut into parts of as many, in dimension 1: the groups of all parts read the same tiles at about
 * the same time.
 *
 *      X, 16 rows a tile           ring in local memory          registers of the warp
 *   +-----------------------+     +------------------+
 *   | tile 0                | ==> | half 0: tile 0   | ---> predictors = X beta
 *   +-----------------------+     +------------------+            |  cells, local memory
 *   | tile `groups`         | ==> | half 1: next     |            v
 *   +-----------------------+     +------------------+      residuals, terms (glm_link.h)
 *   | tile 2 `groups` ...   |             |                       |  cells, local memory
 *   +-----------------------+             |                       v
 *                                         +----------> gradient += X' residuals
 *
 * Rows past the end are copied as 0 and have residual 0; so are columns past the last. Used only
 * where a probe has found the instructions exact (engine/cl/runtime/variant.c). */

__attribute__((reqd_work_group_size(32, 1, 1))) __kernel void
GLM_PASS(__global const real *x, const long x_offset, const int x_ld, __global const real *y,
         const long y_offset, const int y_ld, __global real *work, const glm_task task,
         __local real *by_cut) {
  __local real ring[2 * GLM_STAGE] __attribute__((aligned(128)));
  __local real cells[GLM_CELLS] __attribute__((aligned(128)));
  __local real intercept[GLM_PREDICTORS];
  const int groups = get_num_groups(0), group = get_group_id(0);
  MMA_LANE(self, 1);
  mma_copies copies = MMA_NO_COPIES;
  const int lane = self.lane;
  const int n = task.n, p = task.p;
  const int aux_count = task.aux_count, aux_sums = task.aux_sums;
  const int skip = GLM_COUPLED ? 0 : get_group_id(1) * GLM_PREDICTORS;
  glm_data data = glm_part_from(skip, &task, work);
  const int predictors = data.predictors;
  data.y = y + y_offset;
  data.y_ld = y_ld;
  data.by_cut = by_cut;
  data.intercept = intercept;
  x += x_offset;

  const uint stride = groups * GLM_ROWS, rows_end = n, first = group * GLM_ROWS;
  const int turns = first < rows_end ? (int)((rows_end - first + stride - 1) / stride) : 0;
  const glm_tiles tiles = {x, x_ld, ring, cells, first, stride, rows_end, turns, 0};
  glm_fetch(&copies, ring, x, x_ld, first, rows_end, p, lane);
  glm_seen next = glm_observe(&data, first + (lane & 15));
  for (int i = p * GLM_ROWS + lane; i < GLM_STAGE; i += 32) ring[i] = ring[GLM_STAGE + i] = 0.0;
  if (lane < GLM_PREDICTORS) intercept[lane] = lane < predictors ? data.alpha[lane] : 0.0;
  if (GLM_AUX == SCL_GLM_CUTS) {
    for (int i = lane; i < aux_sums * GLM_CELLS; i += 32) by_cut[i] = 0.0;
  }
  real weight[GLM_STEPS][2], sum[GLM_BLOCKS][4];
  glm_begin_gradient(weight, sum, work + task.at.beta + skip * p, p, predictors, self);
  glm_totals total[GLM_LINKS];
  glm_aux given[GLM_LINKS];
  SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
    total[i] = glm_no_totals();
    given[i] = glm_aux_none();
    if ((GLM_AUX == SCL_GLM_SIGMA || GLM_AUX == SCL_GLM_PHI) && aux_count > 0)
      given[i] = glm_aux_given(data.aux + 3 * min(GLM_PREDICTOR(i, lane), predictors - 1));
  }

  glm_add_tiles(&data, &tiles, &copies, &next, weight, given, total, sum, self);

  __global real *partial = work + task.partials + group;
  glm_write_totals(&data, total, ring, partial, groups, self);
  glm_write_gradient(sum, partial + (long)data.d_beta * groups, groups, p, predictors, self);
}
