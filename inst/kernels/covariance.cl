/* Covariance matrices and their reverse mode.
 *
 * Both kernels recompute distances from x in registers; nothing n x n but the result or the weights
 * goes through memory. A symmetric matrix is covered by the tiles of its lower triangle.
 *
 * The kernel (sum of terms) comes as a plan of doubles, whole numbers among them:
 *   3 for each term: type, number of entries, variance;
 *   then 2 for each entry, term after term: column of x, 1 / lengthscale.
 * Its reads are the same for all work-items. */

#ifndef COVARIANCE_LANES
#define COVARIANCE_LANES 16 /* work-items along a side of a group (build) */
#endif
#ifndef COVARIANCE_PART
#define COVARIANCE_PART 4 /* rows and columns of a work-item (build) */
#endif
#define COVARIANCE_TILE (COVARIANCE_LANES * COVARIANCE_PART)

/* Adjoint: a group of 16 x 4 covers 32 x 32; a work-item 2 x 8. */
#define ADJOINT_LANES_I 16
#define ADJOINT_LANES_J 4
#define ADJOINT_PART_I 2
#define ADJOINT_PART_J 8
#define ADJOINT_PART (ADJOINT_PART_I * ADJOINT_PART_J)
#define ADJOINT_TILE 32
#define ADJOINT_GROUP (ADJOINT_LANES_I * ADJOINT_LANES_J)
#define ADJOINT_STRIDE (ADJOINT_GROUP + 1) /* of the sums in local memory: odd, no bank conflicts */

#define TERM_TYPE(plan, t) ((int)(plan)[3 * (t)])
#define TERM_ENTRIES(plan, t) ((int)(plan)[3 * (t) + 1])
#define TERM_VARIANCE(plan, t) ((plan)[3 * (t) + 2])
#define ENTRY_COLUMN(plan, terms, e) ((long)(plan)[3 * (terms) + 2 * (e)])
#define ENTRY_INVERSE(plan, terms, e) ((plan)[3 * (terms) + 2 * (e) + 1])

/* Tile number t of a lower triangle of tiles, row by row: t = i (i + 1) / 2 + j with j <= i. */
SCL_INLINE void lower_tile(long t, int *i, int *j) {
  int row = (int)((sqrt(8.0 * (double)t + 1.0) - 1.0) * 0.5);
  while ((long)row * (row + 1) / 2 > t) row--;
  while ((long)(row + 1) * (row + 2) / 2 <= t) row++;
  *i = row;
  *j = (int)(t - (long)row * (row + 1) / 2);
}

/* k (m x n) from x1 (m rows) and x2 (n rows). region: 0 all tiles, 1 those of the lower triangle,
 * 2 the same, each also written transposed. Groups of LANES x LANES, one tile each, in dimension 0;
 * rows of a work-item are LANES apart, so that neighbours write neighbouring elements. */
__kernel __attribute__((reqd_work_group_size(COVARIANCE_LANES, COVARIANCE_LANES, 1))) void
covariance_build(__global const double *x1, const long x1_offset, const int x1_ld,
                 __global const double *x2, const long x2_offset, const int x2_ld,
                 __global const double *plan, const long plan_offset, const int plan_ld,
                 __global double *k, const long k_offset, const int k_ld, const int m, const int n,
                 const int terms, const int region, const double noise2) {
  __local double strip[COVARIANCE_LANES * (COVARIANCE_TILE + 1)];
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

  double v[COVARIANCE_PART * COVARIANCE_PART], r2[COVARIANCE_PART * COVARIANCE_PART], slope;
  SCL_UNROLL
  for (int q = 0; q < COVARIANCE_PART * COVARIANCE_PART; q++) v[q] = 0.0;
  for (int t = 0, e = 0; t < terms; t++) {
    const int type = TERM_TYPE(plan, t), last = e + TERM_ENTRIES(plan, t);
    const double variance = TERM_VARIANCE(plan, t);
    SCL_UNROLL
    for (int q = 0; q < COVARIANCE_PART * COVARIANCE_PART; q++) r2[q] = 0.0;
    for (; e < last; e++) {
      const long column = ENTRY_COLUMN(plan, terms, e);
      const double inverse = ENTRY_INVERSE(plan, terms, e);
      double u1[COVARIANCE_PART], u2[COVARIANCE_PART];
      SCL_UNROLL
      for (int q = 0; q < COVARIANCE_PART; q++) { /* beyond the edge: the last row, not stored */
        u1[q] = x1[min(i0 + a + q * COVARIANCE_LANES, m - 1) + column * x1_ld];
        u2[q] = x2[min(j0 + b + q * COVARIANCE_LANES, n - 1) + column * x2_ld];
      }
      SCL_UNROLL
      for (int qj = 0; qj < COVARIANCE_PART; qj++) {
        SCL_UNROLL
        for (int qi = 0; qi < COVARIANCE_PART; qi++) {
          const double u = (u1[qi] - u2[qj]) * inverse;
          r2[qi + qj * COVARIANCE_PART] += u * u;
        }
      }
    }
    SCL_UNROLL
    for (int q = 0; q < COVARIANCE_PART * COVARIANCE_PART; q++) {
      v[q] += variance * covariance_value(type, r2[q], &slope);
    }
  }

  SCL_UNROLL
  for (int qj = 0; qj < COVARIANCE_PART; qj++) {
    const int j = j0 + b + qj * COVARIANCE_LANES;
    SCL_UNROLL
    for (int qi = 0; qi < COVARIANCE_PART; qi++) {
      const int i = i0 + a + qi * COVARIANCE_LANES;
      if (region != 0 && i == j) v[qi + qj * COVARIANCE_PART] += noise2;
      if (i < m && j < n) k[i + (long)j * k_ld] = v[qi + qj * COVARIANCE_PART];
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

/* u[] = scaled differences of a work-item's rows in the column of entry e. */
SCL_INLINE void adjoint_differences(__global const double *x1, const int x1_ld,
                                    __global const double *x2, const int x2_ld, const int i0,
                                    const int j0, const int m, const int n,
                                    __global const double *plan, const int terms, const int e,
                                    double *u) {
  const long column = ENTRY_COLUMN(plan, terms, e);
  const double inverse = ENTRY_INVERSE(plan, terms, e);
  double x[ADJOINT_PART_I];
  SCL_UNROLL
  for (int qi = 0; qi < ADJOINT_PART_I; qi++) {
    x[qi] = x1[min(i0 + qi * ADJOINT_LANES_I, m - 1) + column * x1_ld];
  }
  SCL_UNROLL
  for (int qj = 0; qj < ADJOINT_PART_J; qj++) {
    const double y = x2[min(j0 + qj * ADJOINT_LANES_J, n - 1) + column * x2_ld];
    SCL_UNROLL
    for (int qi = 0; qi < ADJOINT_PART_I; qi++) {
      u[qi + qj * ADJOINT_PART_I] = (x[qi] - y) * inverse;
    }
  }
}

/* Sums of derivatives. There are terms + entries + 1 of them (scl_covariance.h); this launch does
 * `count` of them from `first` on. Groups take the tiles group, group + groups, ...; each work-item
 * keeps its sums in its own places of local memory (count * ADJOINT_STRIDE), and the group's go to
 * partial (count x groups). `symmetric`: lower triangle of tiles, what is off the diagonal
 * counts twice. */
__kernel __attribute__((reqd_work_group_size(ADJOINT_LANES_I, ADJOINT_LANES_J, 1))) void
covariance_adjoint(__global const double *x1, const long x1_offset, const int x1_ld,
                   __global const double *x2, const long x2_offset, const int x2_ld,
                   __global const double *plan, const long plan_offset, const int plan_ld,
                   __global const double *w, const long w_offset, const int w_ld,
                   __global const double *alpha, const long alpha_offset, const int alpha_ld,
                   __global double *partial, const long partial_offset, const int partial_ld,
                   const int m, const int n, const int terms, const int entries,
                   const int symmetric, const int first, const int count, const double outer,
                   const double inner, const double noise2, const long tiles,
                   __local double *sums) {
  const int a = get_local_id(0), b = get_local_id(1), item = a + b * ADJOINT_LANES_I;
  const int across = (m + ADJOINT_TILE - 1) / ADJOINT_TILE;
  x1 += x1_offset;
  x2 += x2_offset;
  plan += plan_offset;
  __local double *own = sums + item; /* place q: own[q * ADJOINT_STRIDE] */
  for (int q = 0; q < count; q++) own[q * ADJOINT_STRIDE] = 0.0;

  for (long tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
    int ti, tj;
    if (symmetric) {
      lower_tile(tile, &ti, &tj);
    } else {
      tj = (int)(tile / across);
      ti = (int)(tile - (long)tj * across);
    }
    const int i0 = ti * ADJOINT_TILE + a, j0 = tj * ADJOINT_TILE + b;

    double weight[ADJOINT_PART], trace = 0.0;
    SCL_UNROLL
    for (int q = 0; q < ADJOINT_PART; q++) {
      const int i = i0 + q % ADJOINT_PART_I * ADJOINT_LANES_I;
      const int j = j0 + q / ADJOINT_PART_I * ADJOINT_LANES_J;
      double value = 0.0;
      if (i < m && j < n && (!symmetric || i >= j)) {
        value = inner * w[w_offset + i + (long)j * w_ld];
        if (outer != 0.0) value += outer * alpha[alpha_offset + i] * alpha[alpha_offset + j];
        if (symmetric && i == j) trace += value;
        if (symmetric && i > j) value *= 2.0;
      }
      weight[q] = value;
    }
    if (first + count == terms + entries + 1) {
      own[(count - 1) * ADJOINT_STRIDE] += 2.0 * noise2 * trace;
    }

    int next = 0;
    for (int t = 0; t < terms; t++) {
      const int start = next;
      next += TERM_ENTRIES(plan, t);
      const int place = t - first;             /* of the derivative by log sd */
      const int places = terms + start - first; /* of those by the log lengthscales */
      const int wants_sd = place >= 0 && place < count;
      if (!wants_sd && (places >= count || terms + next <= first)) continue;
      const int type = TERM_TYPE(plan, t);
      const double variance = TERM_VARIANCE(plan, t);

      double r2[ADJOINT_PART], u[ADJOINT_PART], sum = 0.0;
      SCL_UNROLL
      for (int q = 0; q < ADJOINT_PART; q++) r2[q] = 0.0;
      for (int e = start; e < next; e++) {
        adjoint_differences(x1, x1_ld, x2, x2_ld, i0, j0, m, n, plan, terms, e, u);
        SCL_UNROLL
        for (int q = 0; q < ADJOINT_PART; q++) r2[q] += u[q] * u[q];
      }
      SCL_UNROLL
      for (int q = 0; q < ADJOINT_PART; q++) {
        double slope;
        sum += weight[q] * covariance_value(type, r2[q], &slope);
        r2[q] = weight[q] * slope;
      }
      if (wants_sd) own[place * ADJOINT_STRIDE] += 2.0 * variance * sum;

      for (int e = start; e < next; e++) {
        const int at = places + e - start;
        if (at < 0 || at >= count) continue;
        adjoint_differences(x1, x1_ld, x2, x2_ld, i0, j0, m, n, plan, terms, e, u);
        sum = 0.0;
        SCL_UNROLL
        for (int q = 0; q < ADJOINT_PART; q++) sum += r2[q] * (u[q] * u[q]);
        own[at * ADJOINT_STRIDE] += variance * sum;
      }
    }
  }

  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < count) { /* count <= ADJOINT_GROUP */
    double sum = 0.0;
    for (int i = 0; i < ADJOINT_GROUP; i++) sum += sums[item * ADJOINT_STRIDE + i];
    partial[partial_offset + item + (long)get_group_id(0) * partial_ld] = sum;
  }
}

/* out[q] = sum of row q of partial (x groups), in a fixed order. One group for each row. */
__kernel __attribute__((reqd_work_group_size(ADJOINT_GROUP, 1, 1))) void
covariance_sum(__global const double *partial, const long partial_offset, const int partial_ld,
               __global double *out, const long out_offset, const int out_ld, const int groups) {
  __local double sums[ADJOINT_GROUP];
  const int item = get_local_id(0), q = get_group_id(0);
  double sum = 0.0;
  for (int g = item; g < groups; g += ADJOINT_GROUP) {
    sum += partial[partial_offset + q + (long)g * partial_ld];
  }
  sums[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    sum = 0.0;
    for (int i = 0; i < ADJOINT_GROUP; i++) sum += sums[i];
    out[out_offset + q] = sum;
  }
}
