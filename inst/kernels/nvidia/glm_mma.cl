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

/* ---- predictors to residuals ------------------------------------------------------------------
 */

/* Adds the terms of a tile to the values: of odds as in glm_term. Off the critical path. */
typedef struct {
  real value, odds;
} glm_late;

/* Without conditions, which would make the predictors of a work-item sequential: rows past
 * the end are the last one, with residual 0. */
MMA_COLLECTIVE void glm_link(const glm_data *t, glm_totals *total, const glm_aux *given,
                             const glm_seen *seen, __local real *cells, const mma_lane self,
                             glm_late *late) {
  const int lane = self.lane;
  const uint row = min(seen->row, t->n - 1);
  glm_term term[GLM_LINKS];
  SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
    const int v = min(GLM_PREDICTOR(i, lane), t->predictors - 1);
    const real eta = cells[glm_cell(v, lane & 15)] + glm_intercept(t, v, row);
    term[i] = glm_family_term(GLM_ID, seen->y, seen->datum, eta,
                              glm_aux_here(t, given[i], v, row, seen->y));
  }
  mma_warp_sync(self);
  SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
    const int v = GLM_PREDICTOR(i, lane), valid = seen->row < t->n && v < t->predictors;
    cells[glm_cell(v, lane & 15)] = valid ? term[i].d_eta : 0.0;
    late[i].value = valid ? term[i].value : 0.0;
    late[i].odds = valid ? term[i].odds : 0.0;
    if (valid) {
      glm_add_slope(t, &total[i], term[i].d_eta, v, row);
      glm_add_term_aux(t, &total[i], term[i], seen->y, v, row, v * GLM_ROWS + (lane & 15));
    }
  }
}

/* The same of a coupled family (glm_share()): two work-items share the classes of a row. */
MMA_COLLECTIVE void glm_link_classes(const glm_data *t, glm_totals *total, const glm_seen *seen,
                                     __local real *cells, const mma_lane self, glm_late *late) {
  const int lane = self.lane;
  const int valid = seen->row < t->n, observed = (int)seen->y - 1;
  real eta[GLM_LINKS], e[GLM_LINKS], most = -INFINITY, check = 0.0, rest = 0.0, others = 0.0;
  real mine = 0.0;
  SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
    const int v = GLM_PREDICTOR(i, lane), known = v < t->predictors;
    const real here = cells[glm_cell(v, lane & 15)] + t->intercept[v];
    eta[i] = known ? here : -INFINITY;
    check += known ? GLM_NAN_IF_INFINITE(here) : 0.0;
    most = fmax(most, eta[i]);
  }
  most = fmax(most, mma_value_across(self, most));
  int top = GLM_PREDICTORS;
  SCL_UNROLL for (int i = GLM_LINKS - 1; i >= 0; i--) {
    if (eta[i] == most) top = GLM_PREDICTOR(i, lane);
  }
  top = min(top, mma_int_across(self, top));
  SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
    const int v = GLM_PREDICTOR(i, lane);
    e[i] = glm_exp_minus(most - eta[i]);
    rest += v == top ? 0.0 : e[i];
    others += v == observed ? 0.0 : e[i];
    mine = v == observed ? eta[i] - most : mine;
  }
  rest += mma_value_across(self, rest);
  others += mma_value_across(self, others);
  const real inverse = glm_inverse(1.0 + rest);
  SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
    const int v = GLM_PREDICTOR(i, lane), counts = valid && v < t->predictors;
    const real slope = counts ? (v == observed ? others : -e[i]) * inverse : 0.0;
    cells[glm_cell(v, lane & 15)] = slope;
    if (counts) glm_add_slope(t, &total[i], slope, v, seen->row);
    late[i].value = late[i].odds = 0.0;
  }
  /* The work-item that has the class; a predictor that is not finite shows in either's. */
  late[0].value = valid ? check + mine : 0.0;
  late[0].odds = valid && (observed & 1) == lane >> 4 ? rest : 0.0;
}

MMA_INLINE void glm_add_late(glm_totals *total, const glm_late *late) {
  const int count = GLM_COUPLED ? 1 : GLM_LINKS;
  int full = 0; /* of all products at once: conditions would make the predictors sequential */
  SCL_UNROLL for (int i = 0; i < count; i++) {
    total[i].value += late[i].value;
    if (GLM_PRODUCT) {
      glm_times_odds(&total[i].odds, late[i].odds);
      full |= GLM_IS_FULL(total[i].odds);
    }
  }
  SCL_UNROLL for (int i = 0; i < count && full; i++) {
    if (GLM_IS_FULL(total[i].odds)) total[i].value -= glm_shed(&total[i].odds);
  }
}

/* ---- before and after the tiles -------------------------------------------------------------- */

MMA_COLLECTIVE void glm_write_totals(const glm_data *t, glm_totals *total, __local real *pool,
                                     __global real *partial, long groups, const mma_lane self) {
  const int lane = self.lane;
  const int vectors = GLM_COUPLED ? 1 : t->predictors, sums = t->aux_sums;
  real value[GLM_LINKS], d_alpha[GLM_LINKS], d_aux[GLM_LINKS];
  glm_end_products(total);
  if (GLM_COUPLED) total[0].value += mma_value_across(self, total[0].value);
  SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
    value[i] = total[i].value;
    d_alpha[i] = total[i].d_alpha;
    d_aux[i] = total[i].d_aux;
  }
  glm_sum_cells(pool, value, vectors, t->value, partial, groups, self);
  glm_sum_cells(pool, d_alpha, t->predictors, t->d_alpha, partial, groups, self);
  if (GLM_AUX == SCL_GLM_SIGMA || GLM_AUX == SCL_GLM_PHI)
    glm_sum_cells(pool, d_aux, sums * vectors, t->d_aux, partial, groups, self);
  if (GLM_AUX == SCL_GLM_CUTS) glm_write_cuts(t, vectors, lane, 32, partial, groups);
}

/* The coefficients that a lane needs as the instruction's operand, and its sums, which are 0. */
MMA_INLINE void glm_begin_gradient(real weight[GLM_STEPS][2], real sum[GLM_BLOCKS][4],
                                   __global const real *beta, const int p, const int predictors,
                                   const mma_lane self) {
  const int g = self.quad, t = self.member;
  SCL_UNROLL for (int s = 0; s < GLM_STEPS; s++) {
    SCL_UNROLL for (int h = 0; h < 2; h++) {
      const int c = 8 * s + 4 * h + t;
      weight[s][h] = g < predictors && c < p ? beta[(long)g * p + c] : 0.0;
    }
  }
  SCL_UNROLL for (int i = 0; i < GLM_BLOCKS; i++) {
    SCL_UNROLL for (int k = 0; k < 4; k++) sum[i][k] = 0.0;
  }
}

/* The task of the pass for the predictors from number `skip` on; without the arrays of the
 * caller. */
MMA_INLINE glm_data glm_part_from(const int skip, const glm_task *task, __global real *work) {
  const long rows = (long)skip * task->n;
  glm_data part = {.work = work,
                   .n = task->n,
                   .p = task->p,
                   .predictors = min(task->predictors - skip, GLM_PREDICTORS),
                   .aux_count = task->aux_count,
                   .aux_sums = task->aux_sums,
                   .flags = task->flags,
                   .aux = work + task->at.aux + skip * task->aux_count,
                   .alpha = work + task->at.alpha + (task->flags & GLM_ROW_ALPHA ? rows : skip),
                   .row_aux = work + task->at.row_aux + rows,
                   .value = (int)task->at.value + skip,
                   .d_aux = (int)task->at.d_aux + skip * task->aux_sums,
                   .d_alpha = (int)task->at.d_alpha + skip,
                   .d_beta = (int)task->at.d_beta + skip * task->p,
                   .residuals = task->residuals < 0 ? -1 : task->residuals + rows,
                   .slopes = task->slopes < 0 ? -1 : task->slopes + rows};
  return part;
}

/* ---- the pass -------------------------------------------------------------------------------- */

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
  const int n = task.n, p = task.p, flags = task.flags;
  const int aux_count = task.aux_count, aux_sums = task.aux_sums;
  const int skip = GLM_COUPLED ? 0 : get_group_id(1) * GLM_PREDICTORS;
  glm_data data = glm_part_from(skip, &task, work);
  const int predictors = data.predictors;
  data.y = y + y_offset;
  data.y_ld = y_ld;
  data.by_cut = by_cut;
  data.intercept = intercept;
  x += x_offset;

  const uint stride = groups * GLM_ROWS, rows_end = n;
  uint first = group * GLM_ROWS;
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

  for (int turn = 0; first < rows_end; first += stride, turn ^= 1) {
    __local real *stage = ring + turn * GLM_STAGE;
    glm_fetch(&copies, ring + (turn ^ 1) * GLM_STAGE, x, x_ld, first + stride, rows_end, p, lane);
    const glm_seen seen = next;
    next = glm_observe(&data, seen.row + stride);
    MMA_WAIT(&copies, 1); /* all but the latest */
    mma_warp_sync(self);
    glm_predict(self, stage, weight, cells);
    mma_warp_sync(self);
    glm_late late[GLM_LINKS];
    if (GLM_COUPLED) {
      glm_link_classes(&data, total, &seen, cells, self, late);
    } else {
      glm_link(&data, total, given, &seen, cells, self, late);
    }
    mma_warp_sync(self);
    if (flags & GLM_GRADIENT) glm_add_gradient(self, stage, cells, sum);
    glm_add_late(total, late);
    mma_warp_sync(self);
  }

  __global real *partial = work + task.partials + group;
  glm_write_totals(&data, total, ring, partial, groups, self);
  glm_write_gradient(sum, partial + (long)data.d_beta * groups, groups, p, predictors, self);
}
