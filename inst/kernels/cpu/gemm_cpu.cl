/* C = alpha op(A) op(B) + beta C on a CPU: kernels gemm_cpu_nn, gemm_cpu_nt, gemm_cpu_tn,
 * gemm_cpu_tt, with the contract of gemm.cl.
 *
 * Layout. A group is one work-item and owns a tile of C of at most GEMM_CPU_TILE x GEMM_CPU_TILE
 * elements (`tile`, a multiple of GEMM_CPU_STEP). It walks along k in slices of GEMM_CPU_DEPTH. A
 * slice of op(A) goes to local memory as panels of PANEL_A rows, one of op(B) as panels of PANEL_B
 * columns; a panel is DEPTH rows of PANEL doubles, whatever the transposition, filled up with
 * zeros. Both fit the second-level cache.
 *
 * Work split. A panel of A stays in the first-level cache while the panels of B go by: for each of
 * them PANEL_A x PANEL_B sums are held in vector registers over the whole slice, and are then added
 * to C, so that no array of accumulators is needed. The first slice also applies beta. Dimension 0:
 * tiles (of a lower half those on and below the diagonal only); dimension 1: a batch, as in
 * gemm.cl.
 *
 * Vectors are written out: loops over work-items are not what a CPU's compiler vectorises best, and
 * a group of one needs no barriers. */

/* Sixteen vector registers of four doubles hold 8 x 4 sums beside their operands, thirty-two of
 * eight 16 x 8. */
#ifdef __AVX512F__
#define GEMM_CPU_VECTORS 2
#define PANEL_B 8
#else
#define GEMM_CPU_VECTORS 1
#define PANEL_B 4
#endif
#define PANEL_A (8 * GEMM_CPU_VECTORS)

/* Widths of panels must be constants where the loops over them are compiled. */
#define GEMM_CPU_INLINE static inline __attribute__((always_inline))

/* A panel of `rows` rows, the others zero: entry (r, d) is at x[r * step_r + d * step_d]. */
GEMM_CPU_INLINE void gemm_cpu_pack_part(__local real *to, __global const real *x,
                                        const long step_r, const long step_d, const int width,
                                        const int rows, const int depth) {
  for (int d = 0; d < depth; d++) {
    for (int r = 0; r < width; r++) to[d * width + r] = r < rows ? x[r * step_r + d * step_d] : 0.0;
  }
}

/* A whole panel whose rows run along what is contiguous. */
GEMM_CPU_INLINE void gemm_cpu_pack_rows(__local real *to, __global const real *x, const int ld,
                                        const int width, const int depth) {
  for (int d = 0; d < depth; d++) {
    SCL_UNROLL
    for (int r = 0; r < width; r += 4)
      vstore4(vload4(0, x + (long)d * ld + r), 0, to + d * width + r);
  }
}

/* A whole panel that is contiguous along k: by blocks of 4 x 4, transposed in registers. */
GEMM_CPU_INLINE void gemm_cpu_pack_columns(__local real *to, __global const real *x,
                                           const int ld, const int width, const int depth) {
  for (int r = 0; r < width; r += 4, x += 4 * (long)ld, to += 4) {
    int d = 0;
    for (; d + 4 <= depth; d += 4) {
      const real4 p = vload4(0, x + d), q = vload4(0, x + d + ld);
      const real4 u = vload4(0, x + d + 2 * (long)ld), v = vload4(0, x + d + 3 * (long)ld);
      vstore4((real4)(p.s0, q.s0, u.s0, v.s0), 0, to + d * width);
      vstore4((real4)(p.s1, q.s1, u.s1, v.s1), 0, to + (d + 1) * width);
      vstore4((real4)(p.s2, q.s2, u.s2, v.s2), 0, to + (d + 2) * width);
      vstore4((real4)(p.s3, q.s3, u.s3, v.s3), 0, to + (d + 3) * width);
    }
    for (; d < depth; d++) {
      SCL_UNROLL
      for (int i = 0; i < 4; i++) to[d * width + i] = x[d + i * (long)ld];
    }
  }
}

/* The panels of `rows` rows of op(X) whose first element is x. */
GEMM_CPU_INLINE void gemm_cpu_pack(__local real *to, __global const real *x, const int ld,
                                   const int k_contiguous, const int width, const int rows,
                                   const int depth) {
  const long step_r = k_contiguous ? ld : 1, step_d = k_contiguous ? 1 : ld;
  for (int first = 0; first < rows; first += width) {
    __global const real *from = x + first * step_r;
    if (rows - first < width) {
      gemm_cpu_pack_part(to, from, step_r, step_d, width, rows - first, depth);
    } else if (k_contiguous) {
      gemm_cpu_pack_columns(to, from, ld, width, depth);
    } else {
      gemm_cpu_pack_rows(to, from, ld, width, depth);
    }
    to += width * GEMM_CPU_DEPTH;
  }
}

/* Adds the sums of rows [0, rows) and columns [0, columns) to C, whose first element here is
 * (row0, column0) of the whole. */
SCL_INLINE void gemm_cpu_write_part(const real *sums, const int rows, const int columns,
                                    const int row0, const int column0, const real alpha,
                                    const real beta, __global real *C, const int ldc,
                                    const int region) {
  for (int j = 0; j < columns; j++) {
    const int column = column0 + j;
    __global real *to = C + (long)column * ldc;
    const int first = region == GEMM_ALL ? 0 : max(0, column - row0);
    for (int i = first; i < rows; i++) {
      real value = alpha * sums[j * PANEL_A + i];
      if (beta != 0.0) value = fma(beta, to[row0 + i], value);
      to[row0 + i] = value;
      if (region == GEMM_MIRRORED) C[column + (long)(row0 + i) * ldc] = value;
    }
  }
}

/* PANEL_A x PANEL_B elements of C from one panel each; `region` is GEMM_MIRRORED in the last slice
 * only. */
GEMM_CPU_INLINE void gemm_cpu_block(__local const real *a, __local const real *b,
                                    const int depth, const int rows, const int columns,
                                    const int row0, const int column0, const real alpha,
                                    const real beta, __global real *C, const int ldc,
                                    const int region) {
  real8 sum[PANEL_B][GEMM_CPU_VECTORS];
  SCL_UNROLL
  for (int j = 0; j < PANEL_B; j++) {
    SCL_UNROLL
    for (int i = 0; i < GEMM_CPU_VECTORS; i++) sum[j][i] = (real8)(0.0);
  }
  for (int d = 0; d < depth; d++) {
    real8 x[GEMM_CPU_VECTORS];
    SCL_UNROLL
    for (int i = 0; i < GEMM_CPU_VECTORS; i++) x[i] = vload8(i, a + d * PANEL_A);
    SCL_UNROLL
    for (int j = 0; j < PANEL_B; j++) {
      const real8 y = (real8)(b[d * PANEL_B + j]);
      SCL_UNROLL
      for (int i = 0; i < GEMM_CPU_VECTORS; i++) sum[j][i] = fma(x[i], y, sum[j][i]);
    }
  }
  const int below = row0 >= column0 + PANEL_B - 1; /* nothing of it above the diagonal */
  if (rows >= PANEL_A && columns >= PANEL_B &&
      (region == GEMM_ALL || (below && region == GEMM_LOWER_HALF))) {
    SCL_UNROLL
    for (int j = 0; j < PANEL_B; j++) {
      __global real *to = C + row0 + (long)(column0 + j) * ldc;
      SCL_UNROLL
      for (int i = 0; i < GEMM_CPU_VECTORS; i++) {
        real8 value = sum[j][i] * alpha;
        if (beta != 0.0) value = fma((real8)(beta), vload8(i, to), value);
        vstore8(value, i, to);
      }
    }
    return;
  }
  real sums[PANEL_A * PANEL_B];
  SCL_UNROLL
  for (int j = 0; j < PANEL_B; j++) {
    SCL_UNROLL
    for (int i = 0; i < GEMM_CPU_VECTORS; i++) vstore8(sum[j][i], i, sums + j * PANEL_A);
  }
  gemm_cpu_write_part(sums, min(rows, PANEL_A), min(columns, PANEL_B), row0, column0, alpha, beta,
                      C, ldc, region);
}

/* The tile of rows x columns elements from (row0, column0) on. */
GEMM_CPU_INLINE void gemm_cpu_tile(const int t_a, const int t_b, const int row0, const int column0,
                                   const int rows, const int columns, const int k,
                                   const real alpha, __global const real *A, const int lda,
                                   __global const real *B, const int ldb, const real beta,
                                   __global real *C, const int ldc, const int views,
                                   const int region, __local real *a, __local real *b) {
  int begin = 0, end = k;
  if (views & GEMM_A_LOWER) end = min(end, row0 + rows);
  if (views & GEMM_A_UPPER) begin = max(begin, row0);
  if (views & GEMM_B_LOWER) begin = max(begin, column0);
  if (views & GEMM_B_UPPER) end = min(end, column0 + columns);
  if (begin > end) begin = end;

  const int k_a = t_a, k_b = !t_b; /* which operands are contiguous along k */
  A += k_a ? (long)row0 * lda : row0;
  B += k_b ? (long)column0 * ldb : column0;
  int at = begin;
  do { /* once even if there is nothing to sum over: then C is beta C */
    const int depth = min(GEMM_CPU_DEPTH, end - at), last = at + depth == end;
    gemm_cpu_pack(a, A + (k_a ? at : (long)at * lda), lda, k_a, PANEL_A, rows, depth);
    gemm_cpu_pack(b, B + (k_b ? at : (long)at * ldb), ldb, k_b, PANEL_B, columns, depth);
    for (int i = 0; i < rows; i += PANEL_A) {
      for (int j = 0; j < columns; j += PANEL_B) {
        if (region != GEMM_ALL && row0 + i + PANEL_A <= column0 + j) break;
        gemm_cpu_block(a + i * GEMM_CPU_DEPTH, b + j * GEMM_CPU_DEPTH, depth, rows - i, columns - j,
                       row0 + i, column0 + j, alpha, at == begin ? beta : 1.0, C, ldc,
                       region == GEMM_MIRRORED && !last ? GEMM_LOWER_HALF : region);
      }
    }
    at += depth;
  } while (at < end);
}

/* Tiles are counted down the columns; where they differ in work, one from the front and one from
 * the back in turn, as a driver may deal out long runs of groups. */
#define GEMM_CPU_KERNEL(name, t_a, t_b)                                                            \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void name(                               \
      const int m, const int n, const int k, const real alpha, __global const real *A,             \
      const long offset_a, const int lda, __global const real *B, const long offset_b,             \
      const int ldb, const real beta, __global real *C, const long offset_c, const int ldc,        \
      const int views, const int region, const long step_a, const long step_b, const long step_c,  \
      const int m_last, const int n_last, const int k_last, const int tile) {                      \
    __local real a[GEMM_CPU_TILE * GEMM_CPU_DEPTH] __attribute__((aligned(64)));                   \
    __local real b[GEMM_CPU_TILE * GEMM_CPU_DEPTH] __attribute__((aligned(64)));                   \
    const int tiles_m = (m + tile - 1) / tile, which = get_group_id(1);                            \
    const int last = which == (int)get_num_groups(1) - 1, count = get_num_groups(0);               \
    int index = get_group_id(0), column = 0;                                                       \
    if (region != GEMM_ALL || views) index = index % 2 ? count - 1 - index / 2 : index / 2;        \
    while (index >= tiles_m - (region == GEMM_ALL ? 0 : column)) {                                 \
      index -= tiles_m - (region == GEMM_ALL ? 0 : column);                                        \
      column++;                                                                                    \
    }                                                                                              \
    const int row0 = (index + (region == GEMM_ALL ? 0 : column)) * tile, column0 = column * tile;  \
    const int rows = min(tile, (last ? m_last : m) - row0);                                        \
    const int columns = min(tile, (last ? n_last : n) - column0);                                  \
    if (rows <= 0 || columns <= 0) return;                                                         \
    gemm_cpu_tile(t_a, t_b, row0, column0, rows, columns, last ? k_last : k, alpha,                \
                  A + offset_a + which * step_a, lda, B + offset_b + which * step_b, ldb, beta,    \
                  C + offset_c + which * step_c, ldc, views, region, a, b);                        \
  }

GEMM_CPU_KERNEL(gemm_cpu_nn, 0, 0)
GEMM_CPU_KERNEL(gemm_cpu_nt, 0, 1)
GEMM_CPU_KERNEL(gemm_cpu_tn, 1, 0)
GEMM_CPU_KERNEL(gemm_cpu_tt, 1, 1)
