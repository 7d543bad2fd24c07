/* The step between two products where a pass of a GLM likelihood (glm_pass.cl, glm_rows.cl) does
 * not fit: many columns, many predictors.
 *
 *      eta = X beta             glm_split                     d_beta = X' residuals
 *      a product, n x P  ==>    eta + alpha to residuals,  ==>  a product, p x P
 *                               in the same memory
 *
 *   rows 0        items     2 items                groups * items
 *      +---------+---------+---------+--    --+---------+--
 *      | group 0 | group 1 | group 2 |  ...   | group 0 |  ...    a work-item a row, and for each
 *      +---------+---------+---------+--    --+---------+--       parameter vector (dimension 1)
 *
 * `work` is laid out as glm_task.h
 * says. */

/* The sum over the work-items of a group, for the first. */
SCL_INLINE_BARRIER real glm_sum_group(__local real *pool, int item, int items, real mine) {
  pool[item] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = items / 2; reach > 0; reach /= 2) {
    if (item < reach) pool[item] += pool[item + reach];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const real sum = pool[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

/* The step between the two products: the predictors X beta, one column of n for each at
 * `residuals` (not there without `has_eta`: zero), become the derivatives by themselves. Groups
 * walk over the rows along dimension 0, whose items are a power of two; dimension 1 is the
 * parameter vector. `pool` has a number for each work-item, `by_cut` so many for each cut. */
__kernel void glm_split(__global const real *y, const long y_offset, const int y_ld,
                        __global real *work, const glm_task task, __local real *pool,
                        __local real *by_cut) {
  const int n = task.n, classes = task.classes;
  const int aux_count = task.aux_count, aux_sums = task.aux_sums;
  const int flags = task.flags, family = task.family;
  const int has_eta = task.has_eta;
  const long slopes = task.slopes;
  const int item = get_local_id(0), items = get_local_size(0), m = get_global_id(1);
  const int group = get_group_id(0), groups = get_num_groups(0);
  const int aux_kind = GLM_FAMILY_AUX(family), coupled = GLM_FAMILY_COUPLED(family);
  const long stride = (long)groups * items, first = (long)group * items + item;
  __global const real *aux_values = work + task.at.aux + m * aux_count;
  __global const real *alpha = work + task.at.alpha, *row_aux = work + task.at.row_aux;
  __global real *eta = work + task.residuals + (long)m * classes * n;
  __global real *partial = work + task.partials + group;
  real value = 0.0, d_aux = 0.0;
  glm_aux aux = glm_aux_none();
  y += y_offset;
  __global const real *weight =
      flags & GLM_WEIGHTED ? y + GLM_WEIGHT_COLUMN(family) * (long)y_ld : 0;
  if (aux_kind == SCL_GLM_CUTS) {
    for (int cut = 0; cut < aux_sums; cut++) by_cut[cut * items + item] = 0.0;
  } else if (aux_kind != SCL_GLM_NONE && !(flags & GLM_ROW_AUX)) {
    aux = glm_aux_given(aux_values);
  }

  for (long row = first; row < n; row += stride) {
    for (int c = 0; c < classes; c++) {
      const long v = (long)m * classes + c;
      eta[(long)c * n + row] = (has_eta ? eta[(long)c * n + row] : 0.0) +
                               alpha[flags & GLM_ROW_ALPHA ? v * n + row : v];
    }
    const real times = weight ? weight[row] : 1.0;
    if (coupled) {
      value += times * glm_classes(y[row], eta + row, n, classes);
      for (int c = 0; weight && c < classes; c++) eta[(long)c * n + row] *= times;
      continue;
    }
    if (aux_kind == SCL_GLM_CUTS) aux = glm_aux_cuts(aux_values, aux_count, y[row]);
    if (flags & GLM_ROW_AUX) aux = glm_aux_number(row_aux[(long)m * n + row]);
    const real datum = GLM_FAMILY_DATUM(family) ? y[y_ld + row] : 0.0;
    glm_term term = glm_family_term(family, y[row], datum, eta[row], aux);
    value += times * glm_term_value(family, term);
    if (weight) term = glm_term_times(term, times);
    eta[row] = term.d_eta;
    if (aux_kind == SCL_GLM_CUTS) {
      const int above = (int)y[row] - 1;
      if (above < aux_sums) by_cut[above * items + item] += term.d_aux;
      if (above > 0 && aux_sums > 0) by_cut[(above - 1) * items + item] += term.d_low;
    } else {
      d_aux += term.d_aux;
      if (slopes >= 0) work[slopes + (long)m * n + row] = term.d_aux;
    }
  }

  value = glm_sum_group(pool, item, items, value);
  if (item == 0) partial[(long)m * groups] = value;
  for (int i = 0; i < aux_sums; i++) {
    const real mine = aux_kind == SCL_GLM_CUTS ? by_cut[i * items + item] : d_aux;
    const real sum = glm_sum_group(pool, item, items, mine);
    if (item == 0) partial[(task.at.d_aux + (long)m * aux_sums + i) * groups] = sum;
  }
  for (int c = 0; c < classes; c++) {
    real d_alpha = 0.0;
    for (long row = first; row < n; row += stride) d_alpha += eta[(long)c * n + row];
    d_alpha = glm_sum_group(pool, item, items, d_alpha);
    if (item == 0) {
      partial[(task.at.d_alpha + (long)m * classes + c) * groups] = d_alpha;
    }
  }
}
