/* The pass of a GLM likelihood on a GPU: value and gradients of one or several parameter vectors in
 * one read of X.
 *
 * Layout: X is n x p and column-major, with an even leading dimension and offset. `work` is laid
 * out as glm_task.h says, but the parameters may come with the launch (GLM_FEW). Of the groups'
 * sums, number r of the results of group g is at partials + r * groups + g.
 *
 *            columns 0 ..     p - 1      beta
 *          +----+----+----+----+----+   A tile is GLM_ROWS rows of X and all of its columns; the
 *  tile 0  |    |    |    |    |    |   number of groups is what the device holds at once, and each
 *          +----+----+----+----+----+   walks over every groups-th tile:
 *  tile 1  | *  |    | *  |    | *  |
 *          +----+----+----+----+----+     1  X from memory to registers (one work-item's part: *)
 *  tile 2  |    |    |    |    |    |     2  eta = X beta: sums of the lanes, through local memory
 *          +----+----+----+----+----+     3  eta to residuals and terms: a work-item a predictor
 *     :    |    |    |    |    |    |     4  gradient += X' residuals, from the same registers
 *
 * Work split: a resident grid of groups walks over tiles of GLM_ROWS rows and all columns. The
 * work-item (row lane, lane) has GLM_WIDTH neighbouring rows of the columns lane,
 * lane + GLM_LANES, ..., which stay in its registers from the linear predictor to the gradient, as
 * do its sums over all tiles. Between the two the sums of the lanes make the predictors of the
 * tile, and a work-item a predictor turns them into residuals. A predictor's part of the value is
 * off the critical path: other work-items compute it while the next tile is loaded.
 *
 * Rows past the end have residual 0 and X set to 0; their loads go to the last row. All sums have a
 * fixed order. With GLM_FINISH the pass also adds the groups' sums, and can evaluate the points of
 * a walk one after another (glm_walk.h). */

/* ---- roles -------------------------------------------------------------------------------------
 */

/* A work-item's role: its lanes; the cells of the tile whose derivative, and whose value, it makes
 * (-1: none); and their predictor and row. */
typedef struct {
  int item, row_lane, lane, slope, value, cell, v, row;
} glm_role;

SCL_INLINE glm_role glm_role_of(int item) {
  glm_role at;
  at.item = item;
  at.row_lane = item % GLM_ROW_LANES;
  at.lane = item / GLM_ROW_LANES;
  at.slope = item < GLM_CELLS ? item : -1;
  at.value = at.slope;
  if (GLM_COUPLED) {
    at.value = item < GLM_ROWS ? item : -1;
  } else if (GLM_SPARE) {
    at.value = item >= GLM_CELLS && item < 2 * GLM_CELLS ? item - GLM_CELLS : -1;
  }
  at.cell = max(at.slope, at.value);
  at.v = GLM_ALONE ? 0 : at.cell / GLM_ROWS;
  at.row = item % GLM_ROWS;
  return at;
}

/* The data of the rows of this work-item, of the tile that starts at row `first`. */
SCL_INLINE void glm_read(const glm_data *t, const glm_role *at, uint first, glm_seen *seen) {
  SCL_UNROLL for (int r = 0; r < GLM_AUX_ROWS; r++) {
    seen[r] = glm_observe(t, first + (GLM_ALONE ? GLM_WIDTH * at->item + r : at->row));
  }
}

/* ---- predictors to residuals and values -------------------------------------------------------
 */

/* The part of the value of an observation of an earlier tile. */
SCL_INLINE void glm_add_value(const glm_data *t, glm_totals *total, const glm_seen *seen,
                              glm_aux given, const glm_role *at) {
  if (seen->row >= t->n) return;
  if (GLM_COUPLED) {
    glm_add_odds(total, seen->eta, seen->rest);
  } else {
    const glm_aux aux = glm_aux_here(t, given, at->v, seen->row, seen->y);
    const glm_term term = glm_family_term(GLM_ID, seen->y, seen->datum, seen->eta, aux);
    glm_add_term(t, total, term, seen->y, at->v, seen->row, at->value);
  }
}

/* A work-item with rows of its own: their predictors to residuals and totals. Rows past the end
 * take part, as the last one with X and residual 0: a condition would make the loop sequential. */
SCL_INLINE void glm_link_alone(const glm_data *t, glm_totals *total, const glm_aux *given,
                               const glm_seen *seen, int item, const glm_pair *eta,
                               glm_pair *residual) {
  SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
    real value = 0.0, odds = 0.0;
    residual[v] = (glm_pair)(0.0);
    if (GLM_COUPLED || v >= t->predictors) continue;
    SCL_UNROLL for (int r = 0; r < GLM_WIDTH; r++) {
      const int valid = seen[r].row < t->n;
      const uint row = min(seen[r].row, t->n - 1);
      const real predictor = GLM_PART(eta[v], r) + glm_intercept(t, v, row);
      const glm_aux aux = glm_aux_here(t, given[v], v, row, seen[r].y);
      const glm_term term = glm_family_term(GLM_ID, seen[r].y, seen[r].datum, predictor, aux);
      const real more = valid ? term.odds : 0.0;
      value += valid ? term.value : 0.0;
      odds += more + odds * more;
      GLM_SET_PART(residual[v], r, valid ? term.d_eta : 0.0);
      if (valid) {
        glm_add_term_aux(t, &total[v], term, seen[r].y, v, row,
                         v * GLM_ROWS + GLM_WIDTH * item + r);
        glm_add_slope(t, &total[v], term.d_eta, v, row);
      }
    }
    glm_add_term_value(&total[v], value, odds);
  }
}

/* The same of a coupled family. */
SCL_INLINE void glm_link_alone_classes(const glm_data *t, glm_totals *total, const glm_seen *seen,
                                       const glm_pair *eta, glm_pair *residual) {
  SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) residual[v] = (glm_pair)(0.0);
  SCL_UNROLL for (int r = 0; r < GLM_WIDTH; r++) {
    real predictor[GLM_PREDICTORS];
    if (seen[r].row >= t->n) continue;
    SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
      predictor[v] = GLM_PART(eta[v], r) + t->intercept[v];
    }
    const glm_shares shares = glm_share(seen[r].y, predictor, t->predictors);
    glm_add_odds(&total[0], shares.mine, shares.rest);
    SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
      if (v >= t->predictors) continue;
      const real slope = glm_share_slope(&shares, seen[r].y, v);
      GLM_SET_PART(residual[v], r, slope);
      glm_add_slope(t, &total[v], slope, v, seen[r].row);
    }
  }
}

/* The lanes' parts to the tile's residuals in local memory, a work-item a predictor. */
SCL_INLINE_BARRIER void glm_link_tile(const glm_data *t, glm_totals *total, glm_aux given,
                                      const glm_role *at, glm_seen *seen, __local real *pool,
                                      __local real *residual) {
  const int valid = at->cell >= 0 && seen->row < t->n && at->v < t->predictors;
  real intercept = 0.0, slope = 0.0;
  glm_aux aux = given;
  if (valid) intercept = glm_intercept(t, at->v, seen->row);
  if (valid && at->slope >= 0) aux = glm_aux_here(t, given, at->v, seen->row, seen->y);
  barrier(CLK_LOCAL_MEM_FENCE);
  __local const real *parts = glm_fold_lanes(pool, at->item);
  if (valid) seen->eta = glm_sum_lanes(parts, at->cell) + intercept;
  if (at->slope >= 0) {
    if (valid) {
      slope = glm_family_term(GLM_ID, seen->y, seen->datum, seen->eta, aux).d_eta;
      glm_add_slope(t, total, slope, at->v, seen->row);
    }
    residual[at->slope] = slope;
  }
  if (!valid || at->value < 0) seen->row = GLM_NO_ROW;
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* The same of a coupled family: a work-item a row, for all of its classes. */
SCL_INLINE_BARRIER void glm_link_classes(const glm_data *t, glm_totals *total, const glm_role *at,
                                         glm_seen *seen, __local real *pool,
                                         __local real *residual) {
  const int valid = seen->row < t->n;
  barrier(CLK_LOCAL_MEM_FENCE);
  __local const real *parts = glm_fold_lanes(pool, at->item);
  if (at->value >= 0) {
    real predictor[GLM_PREDICTORS];
    SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
      predictor[v] = glm_sum_lanes(parts, v * GLM_ROWS + at->row) + t->intercept[v];
    }
    const glm_shares shares = glm_share(seen->y, predictor, t->predictors);
    SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
      const real slope = glm_share_slope(&shares, seen->y, v);
      residual[v * GLM_ROWS + at->row] = valid && v < t->predictors ? slope : 0.0;
    }
    seen->eta = shares.mine;
    seen->rest = shares.rest;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (valid && at->slope >= 0 && at->v < t->predictors)
    glm_add_slope(t, total, residual[at->slope], at->v, seen->row);
  if (!valid || at->value < 0) seen->row = GLM_NO_ROW;
}

/* The work-item's parts of the predictors of its rows to the residuals of these rows. */
SCL_INLINE_BARRIER void glm_link(const glm_data *t, glm_totals *total, const glm_aux *given,
                                 const glm_role *at, glm_seen *seen, const glm_pair *eta,
                                 __local real *pool, __local real *residual, glm_pair *mine) {
#if GLM_ALONE
  if (GLM_COUPLED) {
    glm_link_alone_classes(t, total, seen, eta, mine);
  } else {
    glm_link_alone(t, total, given, seen, at->item, eta, mine);
  }
#else
  const int row = GLM_WIDTH * at->row_lane;
  SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
    *(__local glm_pair *)(pool + (at->lane * GLM_PREDICTORS + v) * GLM_ROWS + row) = eta[v];
  }
  if (GLM_COUPLED) {
    glm_link_classes(t, total, at, seen, pool, residual);
  } else {
    glm_link_tile(t, total, given[0], at, seen, pool, residual);
  }
  SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
    mine[v] = *(__local const glm_pair *)(residual + v * GLM_ROWS + row);
  }
#endif
}

/* ---- before and after the tiles -------------------------------------------------------------- */

#if GLM_FINISH
/* The numbers that came with the launch to local memory, 16 by each of some warps: without indices,
 * for which the compiler would copy them. They are the counter, and for each predictor at most
 * three of the auxiliary parameter, alpha and beta. */
SCL_INLINE_BARRIER void glm_unpack(const glm_few *few, int item, __local real *pool) {
  SCL_UNROLL for (int first = 0; first < 1 + GLM_PREDICTORS * (4 + GLM_SLOTS); first += 16) {
    real number = 0.0;
    if (item / 32 != first / 16 || item % 32 >= 16) continue;
    SCL_UNROLL for (int k = 0; k < 16; k++) {
      if (item % 32 == k) number = few->number[first + k];
    }
    pool[first + item % 32] = number;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
#endif

/* The auxiliary parameter of all rows. */
SCL_INLINE void glm_begin(const glm_data *t, __local const real *few, const glm_role *at,
                          glm_aux *given) {
  SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
    const int v = clamp(at->v + i, 0, t->predictors - 1);
    given[i] = glm_aux_none();
    if ((GLM_AUX != SCL_GLM_SIGMA && GLM_AUX != SCL_GLM_PHI) || t->aux_count == 0) continue;
    if (GLM_FINISH && t->flags & GLM_FEW) {
      given[i].value = few[1 + 3 * v];
      given[i].log_value = few[2 + 3 * v];
      given[i].inverse = few[3 + 3 * v];
    } else {
      given[i] = glm_aux_given(t->aux + 3 * v);
    }
  }
}

/* Beta and alpha to local memory, from global or from local memory; clears the sums by cut. */
SCL_INLINE void glm_fill(const glm_data *t, int is_near, __local const real *near,
                         __global const real *beta, int item, __local real *weight) {
  for (int i = item; i < (GLM_SLOTS + 1) * GLM_PREDICTORS; i += GLM_ITEMS) {
    const int c = i / GLM_PREDICTORS, v = i % GLM_PREDICTORS;
    real w = 0.0;
    if (GLM_FINISH && is_near) {
      if (v < t->predictors && (c < t->p || c == GLM_SLOTS))
        w = near[c == GLM_SLOTS ? v : t->predictors + v * t->p + c];
    } else {
      if (v < t->predictors && c < t->p) w = beta[(long)v * t->p + c];
      if (v < t->predictors && c == GLM_SLOTS) w = t->alpha[v]; /* of a row alpha: not used */
    }
    weight[i] = w;
  }
  if (GLM_AUX == SCL_GLM_CUTS) {
    for (int i = item; i < t->aux_sums * GLM_CELLS; i += GLM_ITEMS) t->by_cut[i] = 0.0;
  }
}

SCL_INLINE_BARRIER void glm_write_sums(const glm_data *t, glm_totals *total,
                                       real sum[GLM_PREDICTORS][GLM_SUMS], const glm_role *at,
                                       __local real *pool, __global real *partial, int groups) {
  const int vectors = GLM_COUPLED ? 1 : t->predictors, sums = t->aux_sums;
  const int one_aux = GLM_AUX == SCL_GLM_SIGMA || GLM_AUX == SCL_GLM_PHI;
  glm_end_products(total);
  barrier(CLK_LOCAL_MEM_FENCE);
  SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
    glm_rows rows;
    rows.value = v < vectors ? v : -1;
    rows.aux = v < vectors && sums == 1 && one_aux ? t->d_aux + v : -1;
    rows.alpha = v < t->predictors ? t->d_alpha + v : -1;
    rows.beta = v < t->predictors ? t->d_beta + v * t->p : -1;
#if GLM_ALONE
    sum[v][GLM_COLUMNS] = total[v].value;
    sum[v][GLM_COLUMNS + 1] = total[v].d_alpha;
    sum[v][GLM_COLUMNS + 2] = total[v].d_aux;
#endif
    glm_sum_rows(pool, at->item, sum[v], t->p, rows, partial, groups);
  }
#if !GLM_ALONE
  glm_sum_cells(pool, at->item, at->value, total[0].value, vectors, 0, partial, groups);
  glm_sum_cells(pool, at->item, at->slope, total[0].d_alpha, t->predictors, t->d_alpha, partial,
                groups);
  if (one_aux)
    glm_sum_cells(pool, at->item, at->value, total[0].d_aux, sums * vectors, t->d_aux, partial,
                  groups);
#endif
  if (GLM_AUX == SCL_GLM_CUTS) {
    barrier(CLK_LOCAL_MEM_FENCE);
    glm_write_cuts(t, vectors, at->item, GLM_ITEMS, partial, groups);
  }
}

#if GLM_FINISH
#define GLM_LOAD glm_load_kept
#else
#define GLM_LOAD(kept, x, step, lane, p, keep, stays) glm_load(kept, x, step, lane, p)
#endif

/* ---- the pass -------------------------------------------------------------------------------- */

__attribute__((reqd_work_group_size(GLM_ITEMS, 1, 1))) __kernel void
GLM_PASS(__global const real *x, const long x_offset, const int x_ld, __global const real *y,
         const long y_offset, const int y_ld, __global real *work, const glm_task task,
         __local real *by_cut
#if GLM_FINISH
         ,
         const glm_few few
#endif
) {
  __local real pool[GLM_POOL] __attribute__((aligned(16)));
  /* Of predictor v in row r: at v * GLM_ROWS + r. */
  __local real residual[GLM_ALONE ? 1 : GLM_CELLS] __attribute__((aligned(16)));
  /* Beta, the predictors of a column side by side, 0 past the last column; then alpha. */
  __local real weight[(GLM_SLOTS + 1) * GLM_PREDICTORS] __attribute__((aligned(32)));
#if GLM_FINISH
  __local real near[GLM_NEAR];
  __local int flag;
#endif
  const int groups = get_num_groups(0), group = get_group_id(0);
  const int n = task.n, p = task.p, predictors = task.predictors;
  const int aux_count = task.aux_count, aux_sums = task.aux_sums, flags = task.flags;
  const glm_role at = glm_role_of(get_local_id(0));
  glm_data t = {.y = y + y_offset, .work = work, .by_cut = by_cut, .y_ld = y_ld, .n = n, .p = p,
                .predictors = predictors, .aux_count = aux_count, .aux_sums = aux_sums,
                .flags = flags,
                .d_aux = (int)task.at.d_aux, .d_alpha = (int)task.at.d_alpha,
                .d_beta = (int)task.at.d_beta, .residuals = task.residuals, .slopes = task.slopes,
                .aux = work + task.at.aux, .alpha = work + task.at.alpha,
                .row_aux = work + task.at.row_aux,
                .intercept = weight + GLM_SLOTS * GLM_PREDICTORS};
  __global const real *beta = work + task.at.beta;
  x += x_offset + (long)at.lane * x_ld;

  glm_totals total[GLM_LINKS];
  glm_aux given[GLM_LINKS];
  real sum[GLM_PREDICTORS][GLM_SUMS];
  glm_pair kept[GLM_COLUMNS], eta[GLM_PREDICTORS], pair[GLM_PREDICTORS];
  SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) kept[k] = (glm_pair)(0.0);

  const uint rows_end = n, stride = groups * GLM_ROWS, step = GLM_LANES * (uint)x_ld;
  const uint last = (rows_end - 1) / GLM_WIDTH * GLM_WIDTH, start = group * GLM_ROWS;
  const uint kept_end = start + max(task.keep, 0) * stride;
  glm_seen seen[GLM_AUX_ROWS], next[GLM_AUX_ROWS];
  glm_read(&t, &at, start, next);
  if (GLM_EARLY)
    GLM_LOAD(kept, x + min(start + GLM_WIDTH * at.row_lane, last), step, at.lane, p, task.keep, 1);
  __global real *partials = work + task.partials;
  __local const real *given_near = pool;
#if GLM_FINISH
  const int points = task.points;
  leapfrog_walk walk = glm_walk_of(&task, near);
  if (flags & GLM_FEW) {
    glm_unpack(&few, at.item, pool);
    given_near = pool + 1 + predictors * aux_count;
  }
  if (points > 1) given_near = walk.q;
  if (task.record >= 0) glm_walk_read(&task, &walk, at.item, work);
  if (points > 1 && group == 0 && at.item == 0) work[glm_mark(&task)] = 0.0;
  barrier(CLK_LOCAL_MEM_FENCE);
#else
  const int points = 1;
#endif
  glm_begin(&t, pool, &at, given);
#if GLM_FINISH
  int goes_on = 1;
  for (int point = 1; goes_on; point++) {
#else
  const int point = 1;
  {
#endif
    glm_fill(&t, flags & GLM_FEW || points > 1, given_near, beta, at.item, weight);
    SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) total[i] = glm_no_totals();
    SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
      SCL_UNROLL for (int k = 0; k < GLM_SUMS; k++) sum[v][k] = 0.0;
    }
    seen[0].row = GLM_NO_ROW;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint first = start; first < rows_end; first += stride) {
      /* after the last tile comes the first one of the next point */
      const uint after = first + stride < rows_end || point == points ? first + stride : start;
      const uint row = first + GLM_WIDTH * at.row_lane;
      if (!GLM_EARLY)
        GLM_LOAD(kept, x + min(row, last), step, at.lane, p, task.keep, first < kept_end);
      if (!GLM_ALONE) glm_add_value(&t, &total[0], &seen[0], given[0], &at);
      SCL_UNROLL for (int r = 0; r < GLM_AUX_ROWS; r++) seen[r] = next[r];
      glm_read(&t, &at, after, next);
      if (first + GLM_ROWS > rows_end) glm_clear(kept, row, rows_end);
      glm_predict(kept, weight, at.lane, eta);
      glm_link(&t, total, given, &at, seen, eta, pool, residual, pair);
      if (flags & GLM_GRADIENT) glm_add_gradient(kept, pair, sum);
      if (GLM_EARLY && after < rows_end)
        GLM_LOAD(kept, x + min(after + GLM_WIDTH * at.row_lane, last), step, at.lane, p, task.keep,
                 after < kept_end);
    }
    if (!GLM_ALONE) glm_add_value(&t, &total[0], &seen[0], given[0], &at);
    glm_write_sums(&t, total, sum, &at, pool, partials + group, groups);
#if GLM_FINISH
    goes_on = glm_step(&task, &walk, point, &flag, pool, near, at.item, work, partials);
    partials += (point & 1 ? 1 : -1) * groups * task.at.results;
#endif
  }
}
