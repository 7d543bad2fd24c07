/* The pass of a GLM likelihood where a work-item is a core: value and gradients in one read of X.
 *
 * The contract is that of glm_pass.cl, for any p, with one work-item a group and row r of group
 * g's sums at g * (p + 2) + r. A group walks over blocks of GLM_BLOCK rows that stay in its cache
 * between the linear predictor and the gradient; the inner loops run along the rows in vectors of
 * eight. */
#ifndef GLM_BLOCK /* rows of a block, a multiple of 8 */
#define GLM_BLOCK 64
#endif

SCL_INLINE void glm_add_column(double *eta, __global const double *column, double weight,
                               int rows) {
  int i = 0;
  for (; i + 8 <= rows; i += 8) {
    vstore8(vload8(0, eta + i) + weight * vload8(0, column + i), 0, eta + i);
  }
  for (; i < rows; i++) eta[i] += weight * column[i];
}

SCL_INLINE double glm_dot_column(const double *residual, __global const double *column, int rows) {
  double8 sums = (double8)(0.0);
  double sum = 0.0;
  int i = 0;
  for (; i + 8 <= rows; i += 8) sums += vload8(0, residual + i) * vload8(0, column + i);
  for (; i < rows; i++) sum += residual[i] * column[i];
  const double4 folded = sums.lo + sums.hi;
  return sum + ((folded.x + folded.z) + (folded.y + folded.w));
}

/* Adds a term to *sum and its rounding error to *error (two-sum, valid for any sizes). */
SCL_INLINE void glm_add_exactly(double *sum, double *error, double term) {
  const double next = *sum + term, back = next - *sum;
  *error += (*sum - (next - back)) + (term - back);
  *sum = next;
}

__kernel void glm_pass_rows(__global const double *x, const long x_offset, const int x_ld,
                            __global const double *y, const long y_offset, const int y_ld,
                            __global double *work, const int n, const int p, const int family,
                            const int rowwise, const int gradient, const long residuals,
                            const long partials) {
  const long group = get_group_id(0), groups = get_num_groups(0), ld = x_ld;
  __global const double *beta = work, *alpha = work + p;
  __global double *partial = work + partials + group * (p + 2);
  double eta[GLM_BLOCK], value = 0.0, value_error = 0.0, d_alpha = 0.0, d_alpha_error = 0.0;
  x += x_offset;
  y += y_offset;
  if (gradient) {
    for (int j = 0; j < p; j++) partial[1 + j] = 0.0;
  }

  for (long first = group * GLM_BLOCK; first < n; first += groups * GLM_BLOCK) {
    const int rows = (int)min((long)GLM_BLOCK, n - first);
    for (int i = 0; i < rows; i++) eta[i] = alpha[rowwise ? first + i : 0];
    for (int j = 0; j < p; j++) glm_add_column(eta, x + first + j * ld, beta[j], rows);
    for (int i = 0; i < rows; i++) {
      const glm_term term = glm_family_term(family, y[first + i], eta[i]);
      glm_add_exactly(&value, &value_error, term.value);
      glm_add_exactly(&d_alpha, &d_alpha_error, term.d_eta);
      eta[i] = term.d_eta; /* from here on the residual */
      if (residuals >= 0) work[residuals + first + i] = term.d_eta;
    }
    if (gradient) {
      for (int j = 0; j < p; j++) partial[1 + j] += glm_dot_column(eta, x + first + j * ld, rows);
    }
  }
  partial[0] = isfinite(value) ? value + value_error : value;
  partial[1 + p] = d_alpha + d_alpha_error;
}
