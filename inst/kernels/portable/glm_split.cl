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
 * `work` is laid out as glm_task.h says. */

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

#ifndef GLM_SPLIT_BATCH
#define GLM_SPLIT_BATCH 8 /* classes whose predictors are loaded together; from 1 on */
#endif

/* Predictors of a row and its intercepts: those of class c are c steps from the first. */
typedef struct {
  __global const real *eta, *alpha;
  long step, alpha_step;
  int has_eta, classes;
} glm_split_row;

/* The predictors of classes first, first + 1, ...; the last class is repeated. */
SCL_INLINE void glm_split_load(real batch[GLM_SPLIT_BATCH], const glm_split_row *row,
                               const int first) {
  SCL_UNROLL
  for (int k = 0; k < GLM_SPLIT_BATCH; k++) {
    const int c = min(first + k, row->classes - 1);
    batch[k] = (row->has_eta ? row->eta[c * row->step] : 0.0) + row->alpha[c * row->alpha_step];
  }
}

/* glm_classes() (glm_families.h) of a row, whose predictors become derivatives, multiplied by
 * `times`. They are far apart in global memory: loads in batches, and nothing written before the
 * end, keep more of them in flight than the general function does. */
SCL_INLINE real glm_split_classes(const glm_split_row *row, real y, real times,
                                  __global real *d_eta) {
  const int observed = (int)y - 1, classes = row->classes;
  real batch[GLM_SPLIT_BATCH], most = -INFINITY, rest = 0.0, others = 0.0, check = 0.0;
  real mine = 0.0;
  int top = 0;
  for (int first = 0; first < classes; first += GLM_SPLIT_BATCH) {
    glm_split_load(batch, row, first);
    SCL_UNROLL
    for (int k = 0; k < GLM_SPLIT_BATCH; k++) {
      if (batch[k] > most) top = first + k;
      if (first + k == observed) mine = batch[k];
      most = fmax(most, batch[k]);
      check += GLM_NAN_IF_INFINITE(batch[k]);
    }
  }
  for (int first = 0; first < classes; first += GLM_SPLIT_BATCH) {
    glm_split_load(batch, row, first);
    SCL_UNROLL
    for (int k = 0; k < GLM_SPLIT_BATCH; k++) {
      const real e = first + k < classes ? exp(batch[k] - most) : 0.0;
      if (first + k != top) rest += e;
      if (first + k != observed) others += e;
    }
  }
  const real inverse = 1.0 / (1.0 + rest);
  for (int first = 0; first < classes; first += GLM_SPLIT_BATCH) {
    glm_split_load(batch, row, first);
    SCL_UNROLL
    for (int k = 0; k < GLM_SPLIT_BATCH; k++) {
      const real d = first + k == observed ? others : -exp(batch[k] - most);
      if (first + k < classes) d_eta[(first + k) * row->step] = times * d * inverse;
    }
  }
  return times * (mine - most - log1p(rest) + check);
}

/* The step between the two products: the predictors X beta, one column of n for each at
 * `residuals` (not there without `has_eta`: zero), become the derivatives by themselves. Groups
 * walk over the rows along dimension 0, whose items are a power of two; dimension 1 is the
 * parameter vector. `pool` has a number for each work-item, `by_cut` as many for each cut. */
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
  const int row_alpha = flags & GLM_ROW_ALPHA;
  __global const real *row_aux = work + task.at.row_aux;
  __global const real *alpha_here = work + task.at.alpha + (long)m * classes * (row_alpha ? n : 1);
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
    const real times = weight ? weight[row] : 1.0;
    if (coupled) {
      const glm_split_row at = {
          eta + row, alpha_here + (row_alpha ? row : 0), n, row_alpha ? n : 1, has_eta, classes};
      value += glm_split_classes(&at, y[row], times, eta + row);
      continue;
    }
    eta[row] = (has_eta ? eta[row] : 0.0) + alpha_here[row_alpha ? row : 0];
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
