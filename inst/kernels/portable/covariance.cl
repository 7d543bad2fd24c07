/* Covariance matrices: K(i, j) = k(x1_i, x2_j) by tiles. Distances are recomputed from x in
 * registers; only K itself is written to memory.
 *
 *            x2, from j0 on             A group of 16 x 16 work-items computes one tile of K,
 *           0    16   32   48           64 x 64 elements. Work-item (lane_i, lane_j) has 4 x 4 of
 *         +----+----+----+----+         them, 16 apart in both directions (marked *), so that
 *       0 | *  | *  | *  | *  |         neighbouring work-items write neighbouring elements.
 *  x1  16 | *  | *  | *  | *  |
 *      32 | *  | *  | *  | *  |         For each term of the covariance function, for each column
 *  from   | *  | *  | *  | *  |         of x that it uses: 4 + 4 coordinates are loaded, and added
 *  i0  48 +----+----+----+----+         to 16 sums in registers. No local memory until the end.
 *
 * Groups are counted along dimension 0. Of a symmetric matrix only the tiles of the lower triangle
 * are computed; for the mirror image, 16 rows of a tile at a time are transposed through local
 * memory.
 *
 * Order of summation: entries of a term, factors of a product, then products, as they stand in
 * the plan. */

#define COVARIANCE_STRIP_LD (COVARIANCE_TILE + 1) /* odd: no bank conflicts */

/* Element k of a work-item: its row and column, counted from those of element 0. */
#define ELEMENT_ROW(k) ((k) % COVARIANCE_PART * COVARIANCE_LANES)
#define ELEMENT_COLUMN(k) ((k) / COVARIANCE_PART * COVARIANCE_LANES)

/* Adds the part of one entry to the sums. */
SCL_INLINE void build_entry(const covariance_points *p, const int type, const real extra,
                            const int entry, real *sums) {
  const long column = ENTRY_COLUMN(p->plan, p->terms, entry);
  const real inverse = ENTRY_INVERSE(p->plan, p->terms, entry);
  real x[COVARIANCE_PART], y[COVARIANCE_PART];
  SCL_UNROLL
  for (int k = 0; k < COVARIANCE_PART; k++) {
    x[k] = p->x1[min(p->row + k * COVARIANCE_LANES, p->m - 1) + column * p->x1_ld];
    y[k] = p->x2[min(p->column + k * COVARIANCE_LANES, p->n - 1) + column * p->x2_ld];
  }
  const int metric = covariance_metric(type);
  if (metric != SCL_COVARIANCE_SQUARES) {
    const real center = ENTRY_CENTER(p->plan, p->terms, entry);
    SCL_UNROLL
    for (int k = 0; k < COVARIANCE_ITEMS; k++) {
      sums[k] += covariance_part(metric, x[k % COVARIANCE_PART], y[k / COVARIANCE_PART], center,
                                 inverse, extra);
    }
    return;
  }
  SCL_UNROLL
  for (int j = 0; j < COVARIANCE_PART; j++) {
    SCL_UNROLL
    for (int i = 0; i < COVARIANCE_PART; i++) {
      const real scaled = (x[i] - y[j]) * inverse;
      sums[i + j * COVARIANCE_PART] += scaled * scaled;
    }
  }
}

/* values[] = term `term` at the elements of this work-item. */
SCL_INLINE void build_term(const covariance_points *p, const int term, real *values) {
  const int type = TERM_TYPE(p->plan, term), first = TERM_FIRST(p->plan, term);
  const int last = first + TERM_ENTRIES(p->plan, term);
  const real variance = TERM_VARIANCE(p->plan, term), extra = TERM_EXTRA(p->plan, term);
  SCL_UNROLL
  for (int k = 0; k < COVARIANCE_ITEMS; k++) values[k] = 0.0;
  if (covariance_has(SCL_COVARIANCE_WHITE) && type == SCL_COVARIANCE_WHITE) {
    SCL_UNROLL
    for (int k = 0; k < COVARIANCE_ITEMS; k++) {
      values[k] = p->same && p->row + ELEMENT_ROW(k) == p->column + ELEMENT_COLUMN(k) ? 0.0 : 1.0;
    }
  }
  for (int entry = first; entry < last; entry++) build_entry(p, type, extra, entry, values);
  switch (type) { /* outside of the loops: all work-items take the same branch */
#define COVARIANCE_ENTRY(ID, name, metric)                                                         \
  case SCL_COVARIANCE_##ID:                                                                        \
    if (!covariance_has(SCL_COVARIANCE_##ID)) break;                                               \
    SCL_UNROLL                                                                                     \
    for (int k = 0; k < COVARIANCE_ITEMS; k++) {                                                   \
      values[k] = variance * covariance_##name(values[k], extra).value;                            \
    }                                                                                              \
    break;
    SCL_COVARIANCE_TABLE(COVARIANCE_ENTRY)
#undef COVARIANCE_ENTRY
  default:
    break;
  }
}

/* values[] = the sum of the products of terms. */
SCL_INLINE void build_sum(const covariance_points *p, const int entries, const int products,
                          real *values) {
  real term[COVARIANCE_ITEMS];
  SCL_UNROLL
  for (int k = 0; k < COVARIANCE_ITEMS; k++) values[k] = 0.0;
  if (!covariance_has(SCL_COVARIANCE_TYPES)) { /* no products of several */
    for (int at = 0; at < products; at++) {
      build_term(p, at, term);
      SCL_UNROLL
      for (int k = 0; k < COVARIANCE_ITEMS; k++) values[k] += term[k];
    }
    return;
  }
  __global const real *next = p->plan + PRODUCTS_AT(p->terms, entries);
  real product[COVARIANCE_ITEMS];
  int left = 0; /* factors of this product: one loop over all of them takes fewer registers */
  for (int done = 0; done < products;) {
    const int fresh = left == 0;
    if (fresh) left = (int)*next++;
    build_term(p, (int)*next++, term);
    left--;
    SCL_UNROLL
    for (int k = 0; k < COVARIANCE_ITEMS; k++) {
      product[k] = fresh ? term[k] : product[k] * term[k];
      if (left == 0) values[k] += product[k];
    }
    if (left == 0) done++;
  }
}

/* Writes the mirror image of a tile, COVARIANCE_LANES of its rows at a time: element (i, j) goes to
 * (j, i). */
SCL_INLINE_BARRIER void build_mirror(const real *values, const int i0, const int j0, const int m,
                                     const int n, const int lane_i, const int lane_j,
                                     __local real *strip, __global real *out, const int out_ld) {
  const int item = lane_i + lane_j * COVARIANCE_LANES;
  SCL_UNROLL
  for (int part = 0; part < COVARIANCE_PART; part++) {
    barrier(CLK_LOCAL_MEM_FENCE);
    SCL_UNROLL
    for (int k = 0; k < COVARIANCE_PART; k++) {
      strip[lane_i * COVARIANCE_STRIP_LD + lane_j + k * COVARIANCE_LANES] =
          values[part + k * COVARIANCE_PART];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = item; k < COVARIANCE_LANES * COVARIANCE_TILE;
         k += COVARIANCE_LANES * COVARIANCE_LANES) {
      const int row = k / COVARIANCE_TILE, column = k - row * COVARIANCE_TILE;
      const int i = i0 + part * COVARIANCE_LANES + row, j = j0 + column;
      if (i < m && j < n) out[j + (long)i * out_ld] = strip[row * COVARIANCE_STRIP_LD + column];
    }
  }
}

/* K (m x n) from x1 (m rows) and x2 (n rows). On the diagonal of a region other than COVARIANCE_ALL
 * lie the white terms and the noise, noise2 s_i + v_i, where s and v are the columns of spread, or
 * 1 and 0 if spread_ld is 0; neither if `quiet`. */
__kernel __attribute__((reqd_work_group_size(COVARIANCE_LANES, COVARIANCE_LANES, 1))) void
covariance_build(__global const real *x1, __global const real *x2, __global const real *plan,
                 __global const real *spread, __global real *out, const covariance_task task) {
  __local real strip[COVARIANCE_LANES * COVARIANCE_STRIP_LD];
  const int lane_i = get_local_id(0), lane_j = get_local_id(1);
  const int m = task.m, n = task.n, out_ld = task.out_ld, spread_ld = task.spread_ld;
  const int region = task.region, noisy = region != COVARIANCE_ALL && !task.quiet;
  const int rows = (m + COVARIANCE_TILE - 1) / COVARIANCE_TILE;
  const int2 tile =
      region == COVARIANCE_ALL ? whole_tile(get_group_id(0), rows) : lower_tile(get_group_id(0));
  const int i0 = tile.x * COVARIANCE_TILE, j0 = tile.y * COVARIANCE_TILE;
  const covariance_points points = {x1 + task.x1_offset,
                                    x2 + task.x2_offset,
                                    plan + task.plan_offset,
                                    task.x1_ld,
                                    task.x2_ld,
                                    i0 + lane_i,
                                    j0 + lane_j,
                                    m,
                                    n,
                                    task.terms,
                                    noisy};
  out += task.out_offset;
  spread += task.spread_offset;

  real values[COVARIANCE_ITEMS];
  build_sum(&points, task.entries, task.products, values);
  SCL_UNROLL
  for (int kj = 0; kj < COVARIANCE_PART; kj++) {
    const int j = points.column + kj * COVARIANCE_LANES;
    SCL_UNROLL
    for (int ki = 0; ki < COVARIANCE_PART; ki++) {
      const int i = points.row + ki * COVARIANCE_LANES, k = ki + kj * COVARIANCE_PART;
      if (i >= m || j >= n) continue;
      if (noisy && i == j) {
        values[k] += spread_ld == 0 ? task.noise2 : task.noise2 * spread[i] + spread[i + spread_ld];
      }
      out[i + (long)j * out_ld] = values[k];
    }
  }
  if (region != COVARIANCE_MIRRORED || i0 == j0) return; /* the same for the whole group */
  build_mirror(values, i0, j0, m, n, lane_i, lane_j, strip, out, out_ld);
}
