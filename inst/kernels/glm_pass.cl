/* The pass of a GLM likelihood on a GPU: value and gradients in one read of X.
 *
 * Layout: X is n x p and column-major. `work` holds, at 0, beta (p) and alpha (1, or n if
 * rowwise); at `residuals`, unless that is negative, the residuals of all rows, which are written;
 * at `partials`, what each group has summed: row r for group g at r * groups + g, where row 0 is
 * the value, then come the derivatives by beta of the columns that this layout keeps, then the one
 * by alpha. Without `gradient` those by beta are left out.
 *
 * Work split: a resident grid of groups walks over tiles of GLM_ROWS rows and all columns. The
 * work-item (row lane, lane) has two neighbouring rows of the columns lane, lane + GLM_LANES, ...
 * The sums of the lanes make the linear predictors of the tile; GLM_ROWS work-items turn them into
 * terms and residuals; then every work-item adds residual times X to the gradient of its columns,
 * which stays in its registers over all tiles. With GLM_KEEP the tile itself stays there in
 * between; without, it is read again at once, from the cache.
 *
 * Rows past the end have residual 0 and read the last row, so a tile needs no other care. All sums
 * have a fixed order. Columns from GLM_SLOTS on take part in the predictor but have no gradient
 * here: the driver adds it from the residuals.
 *
 * GLM_PASS is the kernel's name. */
#ifndef GLM_PASS
#define GLM_PASS glm_pass
#endif
#ifndef GLM_ROW_LANES /* work-items side by side along the rows */
#define GLM_ROW_LANES 16
#endif
#ifndef GLM_LANES /* and along the columns */
#define GLM_LANES 8
#endif
#ifndef GLM_COLUMNS /* columns of a work-item */
#define GLM_COLUMNS 13
#endif
#ifndef GLM_KEEP /* 1: the tile stays in registers */
#define GLM_KEEP 1
#endif
#define GLM_ITEMS (GLM_ROW_LANES * GLM_LANES)
#define GLM_ROWS (2 * GLM_ROW_LANES)
#define GLM_SLOTS (GLM_LANES * GLM_COLUMNS)

/* Rows `row` and `row + 1` of a column; `whole`: both exist and are aligned. */
SCL_INLINE double2 glm_pair(__global const double *column, long row, long last, int whole) {
  if (whole) return *(__global const double2 *)(column + row);
  return (double2)(column[min(row, last)], column[min(row + 1, last)]);
}

/* The sum over the row lanes, in order, for the first row lane of each lane. */
SCL_INLINE double glm_sum_rows(__local double *pool, uint item, double mine) {
  double sum = 0.0;
  pool[item] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item % GLM_ROW_LANES == 0) {
    for (int i = 0; i < GLM_ROW_LANES; i++) sum += pool[item + i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

/* The sum over all work-items, for the first. */
SCL_INLINE double glm_sum_items(__local double *pool, uint item, double mine) {
  double sum = glm_sum_rows(pool, item, mine);
  if (item % GLM_ROW_LANES == 0) pool[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    for (int lane = 1; lane < GLM_LANES; lane++) sum += pool[lane * GLM_ROW_LANES];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

#if GLM_KEEP
/* The tile into registers; slots past the last column become 0. Two loops, so that the loads of
 * either are issued together. */
SCL_INLINE void glm_load(double2 *kept, __global const double *x, long ld, int lane, int p,
                         long row, long last, int whole) {
  if (whole) {
    SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
      const int c = k * GLM_LANES + lane;
      kept[k] = c < p ? glm_pair(x + c * ld, row, last, 1) : (double2)(0.0, 0.0);
    }
  } else {
    SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
      const int c = k * GLM_LANES + lane;
      kept[k] = c < p ? glm_pair(x + c * ld, row, last, 0) : (double2)(0.0, 0.0);
    }
  }
}
#else
/* X beta over the columns of a lane. `whole` is a constant at each call. */
SCL_INLINE double2 glm_predict(__global const double *x, long ld, __global const double *beta,
                               int lane, int p, long row, long last, int whole) {
  double2 eta = (double2)(0.0, 0.0);
  _Pragma("unroll 8") for (int c = lane; c < p; c += GLM_LANES) {
    eta += glm_pair(x + c * ld, row, last, whole) * beta[c];
  }
  return eta;
}

/* Adds residual times X to the gradient of a lane's columns. */
SCL_INLINE void glm_gather(double *sum, __global const double *x, long ld, int lane, int p,
                           long row, long last, int whole, double2 residual) {
  SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
    const int c = k * GLM_LANES + lane;
    if (c < p) {
      const double2 pair = glm_pair(x + c * ld, row, last, whole);
      sum[k] += pair.x * residual.x + pair.y * residual.y;
    }
  }
}
#endif

__attribute__((reqd_work_group_size(GLM_ITEMS, 1, 1))) __kernel void
GLM_PASS(__global const double *x, const long x_offset, const int x_ld, __global const double *y,
         const long y_offset, const int y_ld, __global double *work, const int n, const int p,
         const int family, const int rowwise, const int gradient, const long residuals,
         const long partials) {
  __local double exchange[GLM_LANES * GLM_ROWS]; /* of lane l, row r: at l * GLM_ROWS + r */
  __local double residual[GLM_ROWS];
  const uint item = get_local_id(0);
  const int groups = get_num_groups(0), group = get_group_id(0);
  const int row_lane = item % GLM_ROW_LANES, lane = item / GLM_ROW_LANES;
  const long ld = x_ld, last = (long)n - 1;
  const int aligned = ((x_offset | ld) & 1) == 0;
  __global const double *beta = work, *alpha = work + p;
  x += x_offset;
  y += y_offset;

  double sum[GLM_COLUMNS], value = 0.0, d_alpha = 0.0;
  SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) sum[k] = 0.0;
#if GLM_KEEP
  __local double weight[GLM_SLOTS]; /* beta, 0 past the last column */
  double2 kept[GLM_COLUMNS];
  for (int c = item; c < GLM_SLOTS; c += GLM_ITEMS) weight[c] = c < p ? beta[c] : 0.0;
  barrier(CLK_LOCAL_MEM_FENCE);
#endif

  for (long first = (long)group * GLM_ROWS; first <= last; first += (long)groups * GLM_ROWS) {
    const long row = first + 2 * row_lane;
    const int whole = aligned && first + GLM_ROWS <= n;
    double2 eta = (double2)(0.0, 0.0);
#if GLM_KEEP
    glm_load(kept, x, ld, lane, p, row, last, whole);
    SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) eta += kept[k] * weight[k * GLM_LANES + lane];
#else
    eta = whole ? glm_predict(x, ld, beta, lane, p, row, last, 1)
                : glm_predict(x, ld, beta, lane, p, row, last, 0);
#endif
    exchange[lane * GLM_ROWS + 2 * row_lane] = eta.x;
    exchange[lane * GLM_ROWS + 2 * row_lane + 1] = eta.y;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = item; r < GLM_ROWS; r += GLM_ITEMS) {
      glm_term term = {0.0, 0.0};
      if (first + r < n) {
        double predictor = alpha[rowwise ? first + r : 0];
        SCL_UNROLL for (int l = 0; l < GLM_LANES; l++) predictor += exchange[l * GLM_ROWS + r];
        term = glm_family_term(family, y[first + r], predictor);
        if (residuals >= 0) work[residuals + first + r] = term.d_eta;
      }
      value += term.value;
      d_alpha += term.d_eta;
      residual[r] = term.d_eta;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (gradient) {
      const double2 pair = (double2)(residual[2 * row_lane], residual[2 * row_lane + 1]);
#if GLM_KEEP
      SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
        sum[k] += kept[k].x * pair.x + kept[k].y * pair.y;
      }
#else
      if (whole) {
        glm_gather(sum, x, ld, lane, p, row, last, 1, pair);
      } else {
        glm_gather(sum, x, ld, lane, p, row, last, 0, pair);
      }
#endif
    }
  }

  __global double *partial = work + partials + group;
  if (gradient) {
    SCL_UNROLL for (int k = 0; k < GLM_COLUMNS; k++) {
      const int c = k * GLM_LANES + lane;
      const double total = glm_sum_rows(exchange, item, sum[k]);
      if (row_lane == 0 && c < p) partial[(long)(1 + c) * groups] = total;
    }
  }
  value = glm_sum_items(exchange, item, value);
  d_alpha = glm_sum_items(exchange, item, d_alpha);
  if (item == 0) {
    partial[0] = value;
    partial[(long)(1 + min(p, GLM_SLOTS)) * groups] = d_alpha;
  }
}
