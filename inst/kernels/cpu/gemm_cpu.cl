/* C = alpha op(A) op(B) + beta C on a CPU: kernels gemm_cpu_nn, gemm_cpu_nt, gemm_cpu_tn,
 * gemm_cpu_tt, with the contract of gemm.cl.
 *
 *                   op(B): panels of       A group is one work-item and owns a tile of C of at most
 *                   PANEL_B columns        GEMM_CPU_TILE x GEMM_CPU_TILE elements (cpu_tile, a
 *                   +--+--+--+--+          multiple of GEMM_CPU_STEP). It walks along k in slices
 *            slice  |  |  |b |  |          of GEMM_CPU_DEPTH. A slice of op(A), and one of op(B),
 *                   +--+--+--+--+          is packed in local memory by panels: DEPTH rows of PANEL
 *     +---------+   +--+--+--+--+          numbers, whatever the transposition, filled up with
 *     |    a    |   |  |  |C |  |          zeros. Both fit the second-level cache.
 *     +---------+   +--+--+--+--+
 *     |         |   |  |  |  |  |          A panel a stays in the first-level cache while the
 *     +---------+   +--+--+--+--+          panels b go by: for each of them PANEL_A x PANEL_B sums
 *     op(A): panels of PANEL_A rows        are in vector registers over the whole slice, and are
 *                                          then added to C, so that no array of sums is needed.
 *
 * The first slice also applies beta. Dimension 0: tiles (of a lower half only those on and below
 * the diagonal); dimension 1: a batch, as in gemm.cl. Order of summation: along k within a slice,
 * then the slices.
 *
 * Vectors are written out: loops over work-items are not what a CPU's compiler vectorises best, and
 * a group of one needs no barriers. Sizes: gemm.h. */

/* Vectors of eight in a panel of A, and columns of a panel of B. Sixteen registers of four doubles
 * hold 8 x 4 sums and their operands, thirty-two of eight 16 x 8. */
#ifndef GEMM_CPU_VECTORS /* both divide GEMM_CPU_STEP: 8 GEMM_CPU_VECTORS, and PANEL_B */
#ifdef __AVX512F__
#define GEMM_CPU_VECTORS 2
#define PANEL_B 8
#else
#define GEMM_CPU_VECTORS 1
#define PANEL_B 4
#endif
#endif
#define PANEL_A (8 * GEMM_CPU_VECTORS)

/* Widths of panels must be constants where the loops over them are compiled. */
#define GEMM_CPU_INLINE static inline __attribute__((always_inline))

/* A panel of `rows` rows, the others zero: entry (i, k) is at x[i * step_i + k * step_k]. */
GEMM_CPU_INLINE void gemm_cpu_pack_part(__local real *to, __global const real *x, const long step_i,
                                        const long step_k, const int width, const int rows,
                                        const int depth) {
  for (int k = 0; k < depth; k++) {
    for (int i = 0; i < width; i++) to[k * width + i] = i < rows ? x[i * step_i + k * step_k] : 0.0;
  }
}

/* A whole panel whose rows are contiguous in memory. */
GEMM_CPU_INLINE void gemm_cpu_pack_rows(__local real *to, __global const real *x, const int ld,
                                        const int width, const int depth) {
  for (int k = 0; k < depth; k++) {
    SCL_UNROLL
    for (int i = 0; i < width; i += 4)
      vstore4(vload4(0, x + (long)k * ld + i), 0, to + k * width + i);
  }
}

/* A whole panel that is contiguous along k: by blocks of 4 x 4, transposed in registers. */
GEMM_CPU_INLINE void gemm_cpu_pack_columns(__local real *to, __global const real *x, const int ld,
                                           const int width, const int depth) {
  for (int row = 0; row < width; row += 4, x += 4 * (long)ld, to += 4) {
    int k = 0;
    for (; k + 4 <= depth; k += 4) {
      const real4 row0 = vload4(0, x + k), row1 = vload4(0, x + k + ld);
      const real4 row2 = vload4(0, x + k + 2 * (long)ld);
      const real4 row3 = vload4(0, x + k + 3 * (long)ld);
      vstore4((real4)(row0.s0, row1.s0, row2.s0, row3.s0), 0, to + k * width);
      vstore4((real4)(row0.s1, row1.s1, row2.s1, row3.s1), 0, to + (k + 1) * width);
      vstore4((real4)(row0.s2, row1.s2, row2.s2, row3.s2), 0, to + (k + 2) * width);
      vstore4((real4)(row0.s3, row1.s3, row2.s3, row3.s3), 0, to + (k + 3) * width);
    }
    for (; k < depth; k++) {
      SCL_UNROLL
      for (int i = 0; i < 4; i++) to[k * width + i] = x[k + i * (long)ld];
    }
  }
}

/* The panels of `rows` rows of op(X) whose first element is x. */
GEMM_CPU_INLINE void gemm_cpu_pack(__local real *to, __global const real *x, const int ld,
                                   const int k_contiguous, const int width, const int rows,
                                   const int depth) {
  const long step_i = k_contiguous ? ld : 1, step_k = k_contiguous ? 1 : ld;
  for (int first = 0; first < rows; first += width) {
    __global const real *from = x + first * step_i;
    if (rows - first < width) {
      gemm_cpu_pack_part(to, from, step_i, step_k, width, rows - first, depth);
    } else if (k_contiguous) {
      gemm_cpu_pack_columns(to, from, ld, width, depth);
    } else {
      gemm_cpu_pack_rows(to, from, ld, width, depth);
    }
    to += width * GEMM_CPU_DEPTH;
  }
}

/* One product of the batch; `views` and `region` as in gemm.cl. */
typedef struct {
  __global const real *a, *b;
  __global real *c;
  int lda, ldb, ldc;
  int k, views, region;
  real alpha, beta;
} gemm_cpu_product;

/* The destination of sums: rows x columns elements of C from (row0, column0) on. */
typedef struct {
  __global real *c;
  int ldc, row0, column0, rows, columns, region;
  real alpha, beta;
} gemm_cpu_target;

/* Adds the sums of a block that is not whole, or of which not all are written. */
SCL_INLINE void gemm_cpu_write_part(const real *sums, const gemm_cpu_target *to) {
  const int rows = min(to->rows, PANEL_A), columns = min(to->columns, PANEL_B);
  for (int j = 0; j < columns; j++) {
    const int column = to->column0 + j;
    __global real *c = to->c + to->row0 + (long)column * to->ldc;
    const int first = to->region == GEMM_ALL ? 0 : max(0, column - to->row0);
    for (int i = first; i < rows; i++) {
      real value = to->alpha * sums[j * PANEL_A + i];
      if (to->beta != 0.0) value = fma(to->beta, c[i], value);
      c[i] = value;
      if (to->region == GEMM_MIRRORED) to->c[column + (long)(to->row0 + i) * to->ldc] = value;
    }
  }
}

/* PANEL_A x PANEL_B elements of C from one panel each; the region is GEMM_MIRRORED in the last
 * slice only. */
GEMM_CPU_INLINE void gemm_cpu_block(__local const real *a, __local const real *b, const int depth,
                                    const gemm_cpu_target *to) {
  real8 sum[PANEL_B][GEMM_CPU_VECTORS];
  SCL_UNROLL
  for (int j = 0; j < PANEL_B; j++) {
    SCL_UNROLL
    for (int i = 0; i < GEMM_CPU_VECTORS; i++) sum[j][i] = (real8)(0.0);
  }
  for (int k = 0; k < depth; k++) {
    real8 x[GEMM_CPU_VECTORS];
    SCL_UNROLL
    for (int i = 0; i < GEMM_CPU_VECTORS; i++) x[i] = vload8(i, a + k * PANEL_A);
    SCL_UNROLL
    for (int j = 0; j < PANEL_B; j++) {
      const real8 y = (real8)(b[k * PANEL_B + j]);
      SCL_UNROLL
      for (int i = 0; i < GEMM_CPU_VECTORS; i++) sum[j][i] = fma(x[i], y, sum[j][i]);
    }
  }
  const int below = to->row0 >= to->column0 + PANEL_B - 1; /* nothing of it above the diagonal */
  if (to->rows >= PANEL_A && to->columns >= PANEL_B &&
      (to->region == GEMM_ALL || (below && to->region == GEMM_LOWER_HALF))) {
    SCL_UNROLL
    for (int j = 0; j < PANEL_B; j++) {
      __global real *c = to->c + to->row0 + (long)(to->column0 + j) * to->ldc;
      SCL_UNROLL
      for (int i = 0; i < GEMM_CPU_VECTORS; i++) {
        real8 value = sum[j][i] * to->alpha;
        if (to->beta != 0.0) value = fma((real8)(to->beta), vload8(i, c), value);
        vstore8(value, i, c);
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
  gemm_cpu_write_part(sums, to);
}

/* The tile of rows x columns elements from (row0, column0) on. `packed_a` and `packed_b` are the
 * group's local memory. */
GEMM_CPU_INLINE void gemm_cpu_tile(const int transposed_a, const int transposed_b,
                                   const gemm_cpu_product *product, const int row0,
                                   const int column0, const int rows, const int columns,
                                   __local real *packed_a, __local real *packed_b) {
  const int views = product->views, region = product->region;
  const int lda = product->lda, ldb = product->ldb;
  int begin = 0, end = product->k;
  if (views & GEMM_A_LOWER) end = min(end, row0 + rows);
  if (views & GEMM_A_UPPER) begin = max(begin, row0);
  if (views & GEMM_B_LOWER) begin = max(begin, column0);
  if (views & GEMM_B_UPPER) end = min(end, column0 + columns);
  if (begin > end) begin = end;

  const int k_a = transposed_a, k_b = !transposed_b; /* which operands are contiguous along k */
  __global const real *a = product->a + (k_a ? (long)row0 * lda : row0);
  __global const real *b = product->b + (k_b ? (long)column0 * ldb : column0);
  int at = begin;
  do { /* once even if there is nothing to sum over: then C is beta C */
    const int depth = min(GEMM_CPU_DEPTH, end - at), last = at + depth == end;
    gemm_cpu_pack(packed_a, a + (k_a ? at : (long)at * lda), lda, k_a, PANEL_A, rows, depth);
    gemm_cpu_pack(packed_b, b + (k_b ? at : (long)at * ldb), ldb, k_b, PANEL_B, columns, depth);
    for (int i = 0; i < rows; i += PANEL_A) {
      for (int j = 0; j < columns; j += PANEL_B) {
        if (region != GEMM_ALL && row0 + i + PANEL_A <= column0 + j) break;
        const gemm_cpu_target to = {product->c,
                                    product->ldc,
                                    row0 + i,
                                    column0 + j,
                                    rows - i,
                                    columns - j,
                                    region == GEMM_MIRRORED && !last ? GEMM_LOWER_HALF : region,
                                    product->alpha,
                                    at == begin ? product->beta : 1.0};
        gemm_cpu_block(packed_a + i * GEMM_CPU_DEPTH, packed_b + j * GEMM_CPU_DEPTH, depth, &to);
      }
    }
    at += depth;
  } while (at < end);
}

/* Row and column of tile `index` among those of a matrix with `rows` rows of tiles, or of its lower
 * half: they are counted down the columns. */
SCL_INLINE int2 gemm_cpu_tile_at(int index, const int rows, const int lower) {
  int column = 0;
  while (index >= rows - (lower ? column : 0)) {
    index -= rows - (lower ? column : 0);
    column++;
  }
  return (int2)(index + (lower ? column : 0), column);
}

/* Which of `count` tiles group number `group` takes: where they differ in work, in turn from the
 * front and from the back, as a driver may give one thread a long run of groups. */
SCL_INLINE int gemm_cpu_index(const int group, const int count, const int uneven) {
  if (!uneven) return group;
  return group % 2 ? count - 1 - group / 2 : group / 2;
}

#define GEMM_CPU_KERNEL(name, transposed_a, transposed_b)                                          \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void name(                               \
      __global const real *a, __global const real *b, __global real *c, const gemm_task task) {    \
    __local real packed_a[GEMM_CPU_TILE * GEMM_CPU_DEPTH] __attribute__((aligned(64)));            \
    __local real packed_b[GEMM_CPU_TILE * GEMM_CPU_DEPTH] __attribute__((aligned(64)));            \
    const int which = get_group_id(1), last = which == (int)get_num_groups(1) - 1;                 \
    const int tile = task.cpu_tile, views = task.views, region = task.region;                      \
    const int index = gemm_cpu_index(get_group_id(0), get_num_groups(0),                           \
                                     region != GEMM_ALL || views);                                 \
    const int2 at = gemm_cpu_tile_at(index, (task.m + tile - 1) / tile, region != GEMM_ALL);       \
    const int row0 = at.x * tile, column0 = at.y * tile;                                           \
    const int rows = min(tile, (last ? task.m_last : task.m) - row0);                              \
    const int columns = min(tile, (last ? task.n_last : task.n) - column0);                        \
    const gemm_cpu_product product = {.a = a + task.a_offset + which * task.a_step,                \
                                      .b = b + task.b_offset + which * task.b_step,                \
                                      .c = c + task.c_offset + which * task.c_step,                \
                                      .lda = task.a_ld,                                            \
                                      .ldb = task.b_ld,                                            \
                                      .ldc = task.c_ld,                                            \
                                      .k = last ? task.k_last : task.k,                            \
                                      .views = views,                                              \
                                      .region = region,                                            \
                                      .alpha = task.alpha,                                         \
                                      .beta = task.beta};                                          \
    if (rows <= 0 || columns <= 0) return;                                                         \
    gemm_cpu_tile(transposed_a, transposed_b, &product, row0, column0, rows, columns, packed_a,    \
                  packed_b);                                                                       \
  }

GEMM_CPU_KERNEL(gemm_cpu_nn, 0, 0)
GEMM_CPU_KERNEL(gemm_cpu_nt, 0, 1)
GEMM_CPU_KERNEL(gemm_cpu_tn, 1, 0)
GEMM_CPU_KERNEL(gemm_cpu_tt, 1, 1)
