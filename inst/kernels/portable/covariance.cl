/* Covariance matrices. Distances are recomputed from x in registers; nothing n x n but the result
 * goes through memory. A symmetric matrix is covered by the tiles of its lower triangle. */

/* k (m x n) from x1 (m rows) and x2 (n rows). region: 0 all tiles, 1 those of the lower triangle,
 * 2 the same, each also written transposed. Groups of LANES x LANES, one tile each, in dimension 0;
 * rows of a work-item are LANES apart, so that neighbours write neighbouring elements. On the
 * diagonal of a region other than 0 stand white terms unless `quiet`, and the noise, noise2 s_i +
 * v_i with s and v in the columns of spread if spread_ld > 0. */
__kernel __attribute__((reqd_work_group_size(COVARIANCE_LANES, COVARIANCE_LANES, 1))) void
COVARIANCE_NAME(build)(__global const real *x1, const long x1_offset, const int x1_ld,
                       __global const real *x2, const long x2_offset, const int x2_ld,
                       __global const real *plan, const long plan_offset, const int plan_ld,
                       __global const real *spread, const long spread_offset,
                       const int spread_ld, __global real *k, const long k_offset,
                       const int k_ld, const int m, const int n, const int terms,
                       const int entries, const int products, const int region, const int quiet,
                       const real noise2) {
  __local real strip[COVARIANCE_LANES * (COVARIANCE_TILE + 1)];
  const int a = get_local_id(0), b = get_local_id(1);
  int ti, tj;
  if (region == 0) {
    const int across = (m + COVARIANCE_TILE - 1) / COVARIANCE_TILE;
    tj = (int)(get_group_id(0) / across);
    ti = (int)(get_group_id(0) - (size_t)tj * across);
  } else {
    lower_tile(get_group_id(0), &ti, &tj);
  }
  const int i0 = ti * COVARIANCE_TILE, j0 = tj * COVARIANCE_TILE;
  x1 += x1_offset;
  x2 += x2_offset;
  plan += plan_offset;
  k += k_offset;

  real v[COVARIANCE_ITEMS], s[COVARIANCE_ITEMS];
  SCL_UNROLL
  for (int q = 0; q < COVARIANCE_ITEMS; q++) v[q] = 0.0;
#if !COVARIANCE_BASIC
  real product[COVARIANCE_ITEMS];
  __global const real *next = plan + PRODUCTS_AT(terms, entries);
#endif
  int left = 0; /* factors of product g */
  for (int g = 0; g < products;) {
#if COVARIANCE_BASIC
    const int t = g;
    left = 1;
#else
    const int fresh = left == 0;
    if (fresh) left = (int)*next++;
    const int t = (int)*next++;
    const real extra = TERM_EXTRA(plan, t);
#endif
    const int type = TERM_TYPE(plan, t), start = TERM_FIRST(plan, t);
    const int last = start + TERM_ENTRIES(plan, t);
    const real variance = TERM_VARIANCE(plan, t);
    SCL_UNROLL
    for (int q = 0; q < COVARIANCE_ITEMS; q++) s[q] = 0.0;
#if !COVARIANCE_BASIC
    if (type == SCL_COVARIANCE_WHITE) {
      SCL_UNROLL
      for (int q = 0; q < COVARIANCE_ITEMS; q++) {
        const int i = i0 + a + q % COVARIANCE_PART * COVARIANCE_LANES;
        const int j = j0 + b + q / COVARIANCE_PART * COVARIANCE_LANES;
        s[q] = region != 0 && !quiet && i == j ? 0.0 : 1.0;
      }
    }
#endif
    for (int e = start; e < last; e++) {
      const long column = ENTRY_COLUMN(plan, terms, e);
      const real inverse = ENTRY_INVERSE(plan, terms, e);
      real u1[COVARIANCE_PART], u2[COVARIANCE_PART];
      SCL_UNROLL
      for (int q = 0; q < COVARIANCE_PART; q++) { /* beyond the edge: the last row, not stored */
        u1[q] = x1[min(i0 + a + q * COVARIANCE_LANES, m - 1) + column * x1_ld];
        u2[q] = x2[min(j0 + b + q * COVARIANCE_LANES, n - 1) + column * x2_ld];
      }
#if !COVARIANCE_BASIC
      const int metric = covariance_metric(type);
      if (metric != SCL_COVARIANCE_SQUARES) {
        const real center = ENTRY_CENTER(plan, terms, e);
        SCL_UNROLL
        for (int q = 0; q < COVARIANCE_ITEMS; q++) {
          s[q] += covariance_part(metric, u1[q % COVARIANCE_PART], u2[q / COVARIANCE_PART], center,
                                  inverse, extra);
        }
        continue;
      }
#endif
      SCL_UNROLL
      for (int qj = 0; qj < COVARIANCE_PART; qj++) {
        SCL_UNROLL
        for (int qi = 0; qi < COVARIANCE_PART; qi++) {
          const real u = (u1[qi] - u2[qj]) * inverse;
          s[qi + qj * COVARIANCE_PART] += u * u;
        }
      }
    }
    left--;
    switch (type) { /* outside of the loops, which are the same for all work-items */
#define COVARIANCE_ENTRY(ID, name, metric)                                                         \
  case SCL_COVARIANCE_##ID:                                                                        \
    SCL_UNROLL                                                                                     \
    for (int q = 0; q < COVARIANCE_ITEMS; q++) {                                                   \
      s[q] = variance * covariance_##name(s[q], TERM_EXTRA(plan, t)).value;                        \
    }                                                                                              \
    break;
      COVARIANCE_TYPES(COVARIANCE_ENTRY)
#undef COVARIANCE_ENTRY
    default: break;
    }
    SCL_UNROLL
    for (int q = 0; q < COVARIANCE_ITEMS; q++) {
#if COVARIANCE_BASIC
      v[q] += s[q];
#else
      product[q] = fresh ? s[q] : product[q] * s[q];
      if (left == 0) v[q] += product[q];
#endif
    }
    if (left == 0) g++;
  }

  SCL_UNROLL
  for (int qj = 0; qj < COVARIANCE_PART; qj++) {
    const int j = j0 + b + qj * COVARIANCE_LANES;
    SCL_UNROLL
    for (int qi = 0; qi < COVARIANCE_PART; qi++) {
      const int i = i0 + a + qi * COVARIANCE_LANES, q = qi + qj * COVARIANCE_PART;
      if (i >= m || j >= n) continue;
      if (region != 0 && i == j && !quiet) {
        v[q] += spread_ld == 0 ? noise2
                               : noise2 * spread[spread_offset + i] +
                                     spread[spread_offset + i + spread_ld];
      }
      k[i + (long)j * k_ld] = v[q];
    }
  }
  if (region != 2 || ti == tj) return; /* the same for the whole group */

  /* The mirror image, LANES rows of the tile at a time: element (i, j) goes to (j, i). */
  const int item = a + b * COVARIANCE_LANES;
  SCL_UNROLL
  for (int qi = 0; qi < COVARIANCE_PART; qi++) {
    barrier(CLK_LOCAL_MEM_FENCE);
    SCL_UNROLL
    for (int qj = 0; qj < COVARIANCE_PART; qj++) {
      strip[a * (COVARIANCE_TILE + 1) + b + qj * COVARIANCE_LANES] = v[qi + qj * COVARIANCE_PART];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int q = item; q < COVARIANCE_LANES * COVARIANCE_TILE;
         q += COVARIANCE_LANES * COVARIANCE_LANES) {
      const int row = q / COVARIANCE_TILE, column = q - row * COVARIANCE_TILE;
      const int i = i0 + qi * COVARIANCE_LANES + row, j = j0 + column;
      if (i < m && j < n) k[j + (long)i * k_ld] = strip[row * (COVARIANCE_TILE + 1) + column];
    }
  }
}
