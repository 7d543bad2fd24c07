/* What the passes of a GLM likelihood by matrix instructions share (glm_mma.cl, glm_mma_walk.cl):
 * what a warp does with its tiles, and its sums. */

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
  const int by_row = GLM_AUX != SCL_GLM_NONE || t->residuals >= 0;
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
    const real slope = valid ? term[i].d_eta : 0.0;
    cells[glm_cell(v, lane & 15)] = slope;
    late[i].value = valid ? term[i].value : 0.0;
    late[i].odds = valid ? term[i].odds : 0.0;
    if (!by_row) total[i].d_alpha += slope;
    if (by_row && valid) {
      glm_add_slope(t, &total[i], slope, v, row);
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

/* ---- the tiles of a warp --------------------------------------------------------------------- */

/* X; local memory of the warp: a ring of two tiles, and cells; rows: the first tile, how far the
 * next one is, how many there are, and where the one begins that is requested with the last of
 * them; the half of the ring that the first one is in. */
typedef struct {
  __global const real *x;
  uint ld;
  __local real *ring, *cells;
  uint first, stride, after;
  int turns, half_ring;
} glm_tiles;

/* Adds the terms and gradients of all tiles to the sums. The first tile, and `next`, the data of
 * its rows, have been requested. */
MMA_COLLECTIVE void glm_add_tiles(const glm_data *data, const glm_tiles *tiles, mma_copies *copies,
                                  glm_seen *next, real weight[GLM_STEPS][2], const glm_aux *given,
                                  glm_totals *total, real sum[GLM_BLOCKS][4], const mma_lane self) {
  const int lane = self.lane;
  for (int turn = 0; turn < tiles->turns; turn++) {
    const uint row = tiles->first + turn * tiles->stride;
    const uint ahead = turn + 1 < tiles->turns ? row + tiles->stride : tiles->after;
    const int at = tiles->half_ring ^ (turn & 1);
    __local real *stage = tiles->ring + at * GLM_STAGE;
    glm_fetch(copies, tiles->ring + (at ^ 1) * GLM_STAGE, tiles->x, tiles->ld, ahead, data->n,
              data->p, lane);
    const glm_seen seen = *next;
    *next = glm_observe(data, ahead + (lane & 15));
    MMA_WAIT(copies, 1); /* all but the latest */
    mma_warp_sync(self);
    glm_predict(self, stage, weight, tiles->cells);
    mma_warp_sync(self);
    glm_late late[GLM_LINKS];
    if (GLM_COUPLED) {
      glm_link_classes(data, total, &seen, tiles->cells, self, late);
    } else {
      glm_link(data, total, given, &seen, tiles->cells, self, late);
    }
    mma_warp_sync(self);
    if (data->flags & GLM_GRADIENT) glm_add_gradient(self, stage, tiles->cells, sum);
    glm_add_late(total, late);
    mma_warp_sync(self);
  }
}

/* ---- before and after the tiles -------------------------------------------------------------- */

MMA_COLLECTIVE void glm_write_totals(const glm_data *t, glm_totals *total, __local real *pool,
                                     GLM_PARTIAL real *partial, long groups, const mma_lane self) {
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
                                   volatile __global const real *beta, const int p,
                                   const int predictors, const mma_lane self) {
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
