/* The pass of a GLM likelihood on a GPU: value and gradients of one or several parameter vectors in
 * one read of X.
 *
 * Layout: X is n x p and column-major, with an even leading dimension and offset. Work holds, in
 * doubles: a counter that starts at 0 (as an int, at 0); the parameters of glm_numbers() at 1; the
 * results at `results`; the groups' sums at `partials`, row r of the results for group g at
 * r * groups + g; and where they are not negative, at `residuals` and `slopes`, the derivatives by
 * each row's predictors and by each row's own parameter, one column of n for each.
 *
 * Work split: a resident grid of groups walks over tiles of GLM_ROWS rows and all columns. The
 * work-item (row lane, lane) has GLM_WIDTH neighbouring rows of the columns lane,
 * lane + GLM_LANES, ..., which stay in its registers from the linear predictor to the gradient, as
 * do its sums over all tiles. Between the two the sums of the lanes make the predictors of the
 * tile, and a work-item a predictor turns them into terms and residuals. With GLM_AHEAD the next
 * tile is loaded while this one's gradient is added: for tiles so large that a unit has room for
 * one group.
 *
 * Rows past the end have residual 0 and X set to 0; their loads go to the last row. All sums have a
 * fixed order. With GLM_FINISH the group that is done last adds the groups' sums, in their order:
 * it needs writes of one group to be visible to another within a kernel, which OpenCL 1.2 does not
 * promise, so the driver uses it only where the device's own fence does (GLM_FENCE). */
/* Sums of a work-item over the terms that it makes. */
typedef struct {
  double value, d_alpha, d_own;
  glm_odds_product odds;
} glm_totals;

/* The tile that starts at `row` less the item's own place into registers; columns past the last
 * stay as they are, which is 0. */
SCL_INLINE void glm_load(glm_pair *kept, __global const double *x, uint step, int lane, int p) {
  SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
    if (k * GLM_LANES + lane < p) kept[k] = *(__global const glm_pair *)(x + k * step);
  }
}

/* Clears rows past the end. */
SCL_INLINE void glm_clear(glm_pair *kept, uint row, uint n) {
  SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
#if GLM_WIDTH == 2
    kept[k].x = row < n ? kept[k].x : 0.0;
    kept[k].y = row + 1 < n ? kept[k].y : 0.0;
#else
    kept[k] = row < n ? kept[k] : 0.0;
#endif
  }
}

/* Adds an observation's term to the totals; `cell` is its predictor's place in the tile. */
SCL_INLINE void glm_add_term(glm_totals *total, glm_term term, double y, __local double *by_cut,
                             int cell, int cuts) {
  if (GLM_PRODUCT) {
    total->value += term.value;
    total->value -= glm_multiply_odds(&total->odds, term.odds);
  } else {
    total->value += glm_term_value(GLM_ID, term);
  }
  if (GLM_OWN == SCL_GLM_CUTS) {
    const int above = (int)y - 1;
    if (above < cuts) by_cut[above * GLM_CELLS + cell] += term.d_own;
    if (above > 0 && cuts > 0) by_cut[(above - 1) * GLM_CELLS + cell] += term.d_low;
  } else if (GLM_OWN != SCL_GLM_NONE) {
    total->d_own += term.d_own;
  }
}

__attribute__((reqd_work_group_size(GLM_ITEMS, 1, 1))) __kernel void
GLM_PASS(__global const double *x, const long x_offset, const int x_ld, __global const double *y,
         const long y_offset, const int y_ld, __global double *work, const int n, const int p,
         const int predictors, const int owns, const int own_sums, const int flags,
         const long results, const long partials, const long residuals, const long slopes,
         __local double *by_cut) {
  __local double pool[GLM_POOL] __attribute__((aligned(16)));
  /* Of predictor v in row r: at v * GLM_ROWS + r. */
  __local double residual[GLM_CELLS] __attribute__((aligned(16)));
  /* Beta, the predictors of a column side by side; 0 past the last column. */
  __local double weight[GLM_SLOTS * GLM_PREDICTORS] __attribute__((aligned(32)));
#if GLM_FINISH
  __local int is_last;
#endif
  const int item = get_local_id(0), groups = get_num_groups(0), group = get_group_id(0);
  const int row_lane = item % GLM_ROW_LANES, lane = item / GLM_ROW_LANES;
  const int vectors = GLM_COUPLED ? 1 : predictors;
  /* The cells whose derivatives, and whose values, this work-item makes; -1: none. */
  const int slope_cell = item < GLM_CELLS ? item : -1;
  const int value_cell = !GLM_SPARE            ? slope_cell
                         : item < GLM_CELLS     ? -1
                         : item < 2 * GLM_CELLS ? item - GLM_CELLS
                                                : -1;
  const int cell = max(slope_cell, value_cell);
  const int link_v = GLM_ALONE ? 0 : cell / GLM_ROWS;
  const uint rows_end = n, link_row = item % GLM_ROWS, stride = groups * GLM_ROWS;
  const uint last = (rows_end - 1) / GLM_WIDTH * GLM_WIDTH, step = GLM_LANES * (uint)x_ld;
  __global const double *owns_at = work + 1, *alpha = owns_at + owns * vectors;
  __global const double *beta = alpha + (flags & GLM_ROW_ALPHA ? (long)n : 1) * predictors;
  __global const double *row_own = beta + (long)p * predictors;
  x += x_offset + (long)lane * x_ld;
  y += y_offset;

  for (int i = item; i < GLM_SLOTS * GLM_PREDICTORS; i += GLM_ITEMS) {
    const int c = i / GLM_PREDICTORS, v = i % GLM_PREDICTORS;
    weight[i] = c < p && v < predictors ? beta[(long)v * p + c] : 0.0;
  }
  if (GLM_OWN == SCL_GLM_CUTS) {
    for (int i = item; i < own_sums * GLM_CELLS; i += GLM_ITEMS) by_cut[i] = 0.0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  glm_totals total[GLM_LINKS];
  glm_own own[GLM_LINKS];
  double intercept[GLM_LINKS];
  SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
    const int v = clamp(link_v + i, 0, predictors - 1);
    total[i].value = total[i].d_alpha = total[i].d_own = 0.0;
    total[i].odds.product = 1.0;
    total[i].odds.error = 0.0;
    intercept[i] = alpha[v]; /* of a row alpha: not used */
    own[i] = glm_own_none();
    if ((GLM_OWN == SCL_GLM_SIGMA || GLM_OWN == SCL_GLM_PHI) && owns > 0)
      own[i] = glm_own_given(owns_at + 3 * v);
  }
  double sum[GLM_PREDICTORS][GLM_SUMS];
  glm_pair kept[GLM_COLUMNS];
  SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
    SCL_UNROLL for (int k = 0; k < GLM_SUMS; k++) sum[v][k] = 0.0;
  }
  SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) kept[k] = (glm_pair)(0.0);

  uint first = group * GLM_ROWS;
  double y_next = y[min(first + link_row, rows_end - 1)], datum_next = 0.0;
  if (GLM_HAS_DATUM) datum_next = y[y_ld + min(first + link_row, rows_end - 1)];
  if (GLM_AHEAD) glm_load(kept, x + min(first + GLM_WIDTH * row_lane, last), step, lane, p);
  for (; first < rows_end; first += stride) {
    const uint row = first + GLM_WIDTH * row_lane, observed = first + link_row;
    const double y_now = y_next, datum = datum_next;
    if (!GLM_AHEAD) glm_load(kept, x + min(row, last), step, lane, p);
    y_next = y[min(observed + stride, rows_end - 1)];
    if (GLM_HAS_DATUM) datum_next = y[y_ld + min(observed + stride, rows_end - 1)];
    if (first + GLM_ROWS > rows_end) glm_clear(kept, row, rows_end);

    glm_pair eta[GLM_PREDICTORS];
    SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
      eta[v] = (glm_pair)(0.0);
      SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
        const double w = weight[(k * GLM_LANES + lane) * GLM_PREDICTORS + v];
        eta[v] = fma(kept[k], (glm_pair)(w), eta[v]);
      }
    }

    /* The predictors of this work-item's links, then their residuals. */
    double predictor[GLM_LINKS], slope[GLM_LINKS];
#if GLM_ALONE
    SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) predictor[v] = eta[v];
#else
    SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
      *(__local glm_pair *)(pool + lane * GLM_CELLS + v * GLM_ROWS + GLM_WIDTH * row_lane) = eta[v];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    predictor[0] = glm_sum_lanes(pool, item, cell);
#endif
    glm_own own_now[GLM_LINKS];
    SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
      const int v = link_v + i, here = GLM_ALONE ? v * GLM_ROWS + item : slope_cell;
      slope[i] = 0.0;
      own_now[i] = own[i];
      if (cell >= 0 && observed < rows_end && v < predictors) {
        predictor[i] += flags & GLM_ROW_ALPHA ? alpha[(long)v * n + observed] : intercept[i];
        if (GLM_OWN == SCL_GLM_CUTS) own_now[i] = glm_own_cuts(owns_at + v * owns, owns, y_now);
        if (GLM_OWN == SCL_GLM_SIGMA && flags & GLM_ROW_OWN)
          own_now[i] = glm_own_number(row_own[(long)v * n + observed]);
        if (GLM_COUPLED) {
          slope[i] = predictor[i];
        } else if (slope_cell >= 0) {
          slope[i] = glm_family_term(GLM_ID, y_now, datum, predictor[i], own_now[i]).d_eta;
          total[i].d_alpha += slope[i];
          if (residuals >= 0) work[residuals + (long)v * n + observed] = slope[i];
        }
      }
      if (here >= 0 && (GLM_COUPLED || !GLM_ALONE)) residual[here] = slope[i];
    }
    if (!GLM_ALONE) barrier(CLK_LOCAL_MEM_FENCE);
    if (GLM_COUPLED) {
      /* The predictors of an observation become their residuals, where they stand. */
      if (item < GLM_ROWS && observed < rows_end) {
        total[0].value += glm_classes_local(y_now, residual + item, GLM_ROWS, predictors);
      }
      if (!GLM_ALONE) barrier(CLK_LOCAL_MEM_FENCE);
      SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
        const int v = link_v + i, here = GLM_ALONE ? v * GLM_ROWS + item : slope_cell;
        if (here >= 0 && observed < rows_end && v < predictors) {
          slope[i] = residual[here];
          total[i].d_alpha += slope[i];
          if (residuals >= 0) work[residuals + (long)v * n + observed] = slope[i];
        }
      }
    } else if (value_cell >= 0 && observed < rows_end) {
      /* Beside the others' gradient: nobody waits for the values. */
      SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
        const int v = link_v + i, here = GLM_ALONE ? v * GLM_ROWS + item : value_cell;
        if (v < predictors) {
          const glm_term term =
              glm_family_term(GLM_ID, y_now, datum, predictor[i], own_now[i]);
          glm_add_term(&total[i], term, y_now, by_cut, here, own_sums);
          if (GLM_OWN == SCL_GLM_SIGMA && slopes >= 0)
            work[slopes + (long)v * n + observed] = term.d_own;
        }
      }
    }

    const int more = GLM_AHEAD && first + stride < rows_end;
    __global const double *x_next = x + min(row + stride, last);
    if (flags & GLM_GRADIENT) {
      glm_pair pair[GLM_PREDICTORS];
      SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
#if GLM_ALONE
        pair[v] = slope[v];
#else
        pair[v] = *(__local const glm_pair *)(residual + v * GLM_ROWS + GLM_WIDTH * row_lane);
#endif
      }
      SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
        SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
          sum[v][k] = GLM_DOT(kept[k], pair[v], sum[v][k]);
        }
        if (more && k * GLM_LANES + lane < p) {
          kept[k] = *(__global const glm_pair *)(x_next + k * step);
        }
      }
    } else if (more) {
      glm_load(kept, x_next, step, lane, p);
    }
  }

  if (GLM_PRODUCT) {
    SCL_UNROLL for (int i = 0; i < GLM_LINKS; i++) {
      const glm_odds_product odds = total[i].odds;
      total[i].value -= log(odds.product) + odds.error / odds.product;
    }
  }
  __global double *partial = work + partials + group;
  glm_rows rows;
  barrier(CLK_LOCAL_MEM_FENCE);
  SCL_UNROLL for (int v = 0; v < GLM_PREDICTORS; v++) {
    const int used = v < predictors, first_alpha = vectors * (1 + own_sums);
    rows.value = v < vectors ? v : -1;
    rows.own = v < vectors && own_sums == 1 && GLM_OWN != SCL_GLM_CUTS ? vectors + v : -1;
    rows.alpha = used ? first_alpha + v : -1;
    rows.beta = used ? first_alpha + predictors + v * p : -1;
#if GLM_ALONE
    sum[v][GLM_COLUMNS] = total[v].value;
    sum[v][GLM_COLUMNS + 1] = total[v].d_alpha;
    sum[v][GLM_COLUMNS + 2] = total[v].d_own;
#endif
    glm_sum_rows(pool, item, sum[v], p, rows, partial, groups);
  }
#if !GLM_ALONE
  glm_sum_cells(pool, item, GLM_COUPLED ? slope_cell : value_cell, total[0].value, vectors, 0,
                partial, groups);
  glm_sum_cells(pool, item, slope_cell, total[0].d_alpha, predictors, vectors * (1 + own_sums),
                partial, groups);
  if (GLM_OWN == SCL_GLM_SIGMA || GLM_OWN == SCL_GLM_PHI) {
    glm_sum_cells(pool, item, value_cell, total[0].d_own, own_sums * vectors, vectors, partial,
                  groups);
  }
#endif
  if (GLM_OWN == SCL_GLM_CUTS) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < vectors * own_sums; i += GLM_ITEMS) {
      const int v = i / own_sums, cut = i % own_sums;
      double cut_sum = 0.0;
      for (int r = 0; r < GLM_ROWS; r++) cut_sum += by_cut[cut * GLM_CELLS + v * GLM_ROWS + r];
      partial[(long)(vectors + i) * groups] = cut_sum;
    }
  }
#if GLM_FINISH
  GLM_FENCE();
  barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
  if (item == 0) is_last = atomic_inc((volatile __global int *)work) == groups - 1;
  barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
  if (!is_last) return;
  GLM_FENCE();
  glm_finish(pool, item, work + partials, work + results,
             vectors * (1 + own_sums) + predictors * (1 + p), groups);
#endif
}
