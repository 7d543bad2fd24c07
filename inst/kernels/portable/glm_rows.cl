/* The pass of a GLM likelihood where a work-item is a core: value and gradients in one read of X.
 *
 *        columns of X
 *      +--+--+--+--+--+
 *      |  |  |  |  |  | block 0, group 0      GLM_ROWS_BLOCK rows stay in the cache of a core for
 *      +--+--+--+--+--+                         1  eta += x_j beta_j, column by column
 *      |  |  |  |  |  | block 1, group 1        2  eta to residuals, values, derivatives
 *      +--+--+--+--+--+                         3  d_beta_j += x_j' residuals, column by column
 *      |  |  |  |  |  | block 2, group 0 ...
 *      +--+--+--+--+--+
 *
 * The contract is that of glm_pass.cl, for any p and any number of predictors, with one work-item a
 * group and row r of group g's sums at g * rows + r. A group walks over blocks of GLM_ROWS_BLOCK
 * rows that stay in its cache between the linear predictors and the gradients; the inner loops run
 * along the rows in vectors of eight. Its predictors of a block are at `scratch`. */

SCL_INLINE void glm_add_column(__global real *eta, __global const real *column, real weight,
                               int rows) {
  int i = 0;
  for (; i + 8 <= rows; i += 8) {
    vstore8(vload8(0, eta + i) + weight * vload8(0, column + i), 0, eta + i);
  }
  for (; i < rows; i++) eta[i] += weight * column[i];
}

SCL_INLINE real glm_dot_column(__global const real *residual, __global const real *column,
                                 int rows) {
  real8 sums = (real8)(0.0);
  real sum = 0.0;
  int i = 0;
  for (; i + 8 <= rows; i += 8) sums += vload8(0, residual + i) * vload8(0, column + i);
  for (; i < rows; i++) sum += residual[i] * column[i];
  const real4 folded = sums.lo + sums.hi;
  return sum + ((folded.x + folded.z) + (folded.y + folded.w));
}

/* Adds a term to a sum, and its rounding error to the sum of these (two-sum, valid for any
 * sizes). */
SCL_INLINE void glm_add_exactly(__global real *sum, __global real *error, real term) {
  const real before = *sum, next = before + term, back = next - before;
  *error += (before - (next - back)) + (term - back);
  *sum = next;
}

/* The arrays and sizes of the kernel. */
typedef struct {
  __global const real *y, *datum, *aux, *alpha, *row_aux;
  __global const real *weight; /* or 0 */
  __global real *slopes;       /* or 0 */
  __global real *sums, *errors;
  int n, classes, aux_count, aux_sums, flags, family;
  long d_aux; /* of the sums, where those by the auxiliary parameter begin */
} glm_block;

/* Predictors of vector m, for `rows` rows from `first`, become residuals; adds to the sums. */
SCL_INLINE void glm_link_rows(const glm_block *at, int m, long first, int rows,
                              __global real *eta) {
  const int aux_kind = GLM_FAMILY_AUX(at->family), coupled = GLM_FAMILY_COUPLED(at->family);
  __global const real *mine = at->aux + m * at->aux_count;
  __global real *aux_sum = at->sums + at->d_aux + m * at->aux_sums;
  __global real *aux_error = at->errors + at->d_aux + m * at->aux_sums;
  real value = 0.0, d_aux = 0.0;
  glm_aux aux = glm_aux_none();
  if (aux_kind != SCL_GLM_NONE && aux_kind != SCL_GLM_CUTS && !(at->flags & GLM_ROW_AUX)) {
    aux = glm_aux_given(mine);
  }
  for (int i = 0; i < rows; i++) {
    const real y = at->y[first + i];
    const real times = at->weight ? at->weight[first + i] : 1.0;
    if (coupled) {
      value += times * glm_classes(y, eta + i, GLM_ROWS_BLOCK, at->classes);
      for (int c = 0; at->weight && c < at->classes; c++) eta[c * GLM_ROWS_BLOCK + i] *= times;
      continue;
    }
    if (aux_kind == SCL_GLM_CUTS) aux = glm_aux_cuts(mine, at->aux_count, y);
    if (at->flags & GLM_ROW_AUX) aux = glm_aux_number(at->row_aux[(long)m * at->n + first + i]);
    const real datum = GLM_FAMILY_DATUM(at->family) ? at->datum[first + i] : 0.0;
    glm_term term = glm_family_term(at->family, y, datum, eta[i], aux);
    value += times * glm_term_value(at->family, term);
    if (at->weight) term = glm_term_times(term, times);
    eta[i] = term.d_eta;
    if (aux_kind == SCL_GLM_CUTS) {
      const int above = (int)y - 1;
      if (above < at->aux_sums) glm_add_exactly(aux_sum + above, aux_error + above, term.d_aux);
      if (above > 0 && at->aux_sums > 0)
        glm_add_exactly(aux_sum + above - 1, aux_error + above - 1, term.d_low);
    } else {
      d_aux += term.d_aux;
      if (at->slopes) at->slopes[(long)m * at->n + first + i] = term.d_aux;
    }
  }
  glm_add_exactly(at->sums + m, at->errors + m, value);
  if (aux_kind != SCL_GLM_CUTS && at->aux_sums > 0) glm_add_exactly(aux_sum, aux_error, d_aux);
}

__kernel void glm_rows(__global const real *x, const long x_offset, const int x_ld,
                       __global const real *y, const long y_offset, const int y_ld,
                       __global real *work, const glm_task task) {
  const int n = task.n, p = task.p, vectors = task.vectors, classes = task.classes;
  const int aux_count = task.aux_count, aux_sums = task.aux_sums;
  const int flags = task.flags, family = task.family;
  const long residuals = task.residuals, slopes = task.slopes;
  const long group = get_group_id(0), groups = get_num_groups(0), ld = x_ld;
  const int predictors = task.predictors, exact = (int)task.at.d_beta;
  const int row_alpha = (flags & GLM_ROW_ALPHA) != 0;
  __global real *partial = work + task.partials + group * task.at.results;
  __global real *eta = work + task.scratch + group * (predictors * GLM_ROWS_BLOCK + exact);
  __global real *error = eta + predictors * GLM_ROWS_BLOCK;
  __global const real *alpha = work + task.at.alpha, *beta = work + task.at.beta;
  const long d_alpha_at = task.at.d_alpha;
  const glm_block at = {.y = y + y_offset,
                        .datum = y + y_offset + y_ld,
                        .aux = work + task.at.aux,
                        .alpha = alpha,
                        .row_aux = work + task.at.row_aux,
                        .weight = flags & GLM_WEIGHTED
                                      ? y + y_offset + GLM_WEIGHT_COLUMN(family) * (long)y_ld
                                      : 0,
                        .slopes = slopes >= 0 ? work + slopes : 0,
                        .sums = partial,
                        .errors = error,
                        .n = n,
                        .classes = classes,
                        .aux_count = aux_count,
                        .d_aux = task.at.d_aux,
                        .aux_sums = aux_sums,
                        .flags = flags,
                        .family = family};
  x += x_offset;
  for (long r = 0; r < task.at.results; r++) partial[r] = 0.0;
  for (int r = 0; r < exact; r++) error[r] = 0.0;

  for (long first = group * GLM_ROWS_BLOCK; first < n; first += groups * GLM_ROWS_BLOCK) {
    const int rows = (int)min((long)GLM_ROWS_BLOCK, n - first);
    for (int v = 0; v < predictors; v++) {
      for (int i = 0; i < rows; i++) {
        eta[v * GLM_ROWS_BLOCK + i] = alpha[row_alpha ? (long)v * n + first + i : v];
      }
    }
    for (int j = 0; j < p; j++) {
      for (int v = 0; v < predictors; v++) {
        glm_add_column(eta + v * GLM_ROWS_BLOCK, x + first + j * ld, beta[(long)v * p + j], rows);
      }
    }
    for (int m = 0; m < vectors; m++) {
      glm_link_rows(&at, m, first, rows, eta + (long)m * classes * GLM_ROWS_BLOCK);
    }
    for (int v = 0; v < predictors; v++) {
      real d_alpha = 0.0;
      for (int i = 0; i < rows; i++) {
        d_alpha += eta[v * GLM_ROWS_BLOCK + i];
        if (residuals >= 0) work[residuals + (long)v * n + first + i] = eta[v * GLM_ROWS_BLOCK + i];
      }
      glm_add_exactly(partial + d_alpha_at + v, error + d_alpha_at + v, d_alpha);
    }
    if (!(flags & GLM_GRADIENT)) continue;
    for (int j = 0; j < p; j++) {
      for (int v = 0; v < predictors; v++) {
        partial[exact + (long)v * p + j] +=
            glm_dot_column(eta + v * GLM_ROWS_BLOCK, x + first + j * ld, rows);
      }
    }
  }
  for (int r = 0; r < exact; r++) {
    if (isfinite(partial[r])) partial[r] += error[r];
  }
}
