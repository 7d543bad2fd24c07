/* Batched products C = op(A) op(B), C m x n with a sum of k terms in the order of k.
 *
 *                 op(B), DEPTH rows        batch_matmul_tiled: a group has a tile of C in
 *                 +---------------+        registers and walks along k in steps of DEPTH, whose
 *                 |               |        pieces of A and B lie in local memory.
 *     op(A)       +---------------+
 *     +---+       +---------------+
 *     |   |       |               |       Work-item (x, y) has the rows x, x + 8, x + 16, x + 24 of
 *     |   |       |  tile of C    |       the columns y, y + 8, y + 16, y + 24 of the tile.
 *     +---+       +---------------+
 *
 * batch_matmul_small: a work-item for each element of C, for results of up to BATCH_TILED_FROM
 * elements; its operands come from the caches. batch_matmul_tiled: a group for a tile of 32 x 32
 * elements of one C, 8 x 8 work-items with 4 x 4 elements each, BATCH_PRODUCT_DEPTH terms at a time
 * through local memory; the groups of a column of tiles of one matrix follow each other. */

__kernel void batch_matmul_small(__global const real *a, __global const real *b, __global real *c,
                                 const batch_product_task task) {
  const int batch = task.batch, m = task.m, n = task.n, k = task.k, flags = task.flags;
  const int step_a = task.a_step, step_b = task.b_step, step_c = task.c_step;
  const long a0 = task.a_offset, b0 = task.b_offset, c0 = task.c_offset;
  long e = (long)get_global_id(0), matrix = e / (m * n);
  if (matrix >= batch) return;
  int within = (int)(e - matrix * (m * n)), j = within / m, i = within - j * m;
  a += a0 + matrix * step_a + (flags & BATCH_TRANSPOSE ? (long)i * k : i);
  b += b0 + matrix * step_b + (flags & BATCH_TRANSPOSE_B ? j : (long)j * k);
  const long next_a = flags & BATCH_TRANSPOSE ? 1 : m, next_b = flags & BATCH_TRANSPOSE_B ? n : 1;
  real sum = 0.0;
  for (int q = 0; q < k; q++) sum = fma(a[q * next_a], b[q * next_b], sum);
  c[c0 + matrix * step_c + i + (long)j * m] = sum;
}

#define TILE BATCH_PRODUCT_TILE
#define SIDE BATCH_PRODUCT_ITEMS
#define DEPTH BATCH_PRODUCT_DEPTH
#define EACH (TILE / SIDE)

__attribute__((reqd_work_group_size(SIDE, SIDE, 1))) __kernel void
batch_matmul_tiled(__global const real *a, __global const real *b, __global real *c,
                   const batch_product_task task) {
  const int m = task.m, n = task.n, k = task.k, flags = task.flags;
  const int step_a = task.a_step, step_b = task.b_step, step_c = task.c_step;
  const long a0 = task.a_offset, b0 = task.b_offset, c0 = task.c_offset;
  __local real as[DEPTH][TILE + 1], bs[DEPTH][TILE + 1];
  const int x = (int)get_local_id(0), y = (int)get_local_id(1), item = x + y * SIDE;
  const long tiles = (m + TILE - 1) / TILE, matrix = (long)get_group_id(0) / tiles;
  const int row = (int)((long)get_group_id(0) - matrix * tiles) * TILE;
  const int column = (int)get_group_id(1) * TILE;
  real sum[EACH][EACH];
  SCL_UNROLL for (int u = 0; u < EACH; u++) {
    SCL_UNROLL for (int v = 0; v < EACH; v++) sum[u][v] = 0.0;
  }
  const bool ta = (flags & BATCH_TRANSPOSE) != 0, tb = (flags & BATCH_TRANSPOSE_B) != 0;
  a += a0 + matrix * step_a;
  b += b0 + matrix * step_b;
  for (int q0 = 0; q0 < k; q0 += DEPTH) {
    for (int e = item; e < TILE * DEPTH; e += SIDE * SIDE) {
      /* Neighbours in a group read neighbours in memory. (No % next to /: see batch_small.h.) */
      const int slow_d = e / DEPTH, fast_d = e - slow_d * DEPTH;
      const int slow_t = e / TILE, fast_t = e - slow_t * TILE;
      int i = ta ? slow_d : fast_t, q = ta ? fast_d : slow_t;
      bool inside = row + i < m && q0 + q < k;
      long at = ta ? q0 + q + (long)(row + i) * k : row + i + (long)(q0 + q) * m;
      as[q][i] = inside ? a[at] : 0.0;
      i = tb ? fast_t : slow_d, q = tb ? slow_t : fast_d;
      inside = column + i < n && q0 + q < k;
      at = tb ? column + i + (long)(q0 + q) * n : q0 + q + (long)(column + i) * k;
      bs[q][i] = inside ? b[at] : 0.0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int depth = min(DEPTH, k - q0);
    for (int q = 0; q < depth; q++) {
      real u[EACH], v[EACH];
      SCL_UNROLL for (int e = 0; e < EACH; e++) u[e] = as[q][x + e * SIDE];
      SCL_UNROLL for (int e = 0; e < EACH; e++) v[e] = bs[q][y + e * SIDE];
      SCL_UNROLL for (int f = 0; f < EACH; f++) {
        SCL_UNROLL for (int e = 0; e < EACH; e++) sum[e][f] = fma(u[e], v[f], sum[e][f]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c += c0 + matrix * step_c;
  SCL_UNROLL for (int f = 0; f < EACH; f++) {
    SCL_UNROLL for (int e = 0; e < EACH; e++) {
      int i = row + x + e * SIDE, j = column + y + f * SIDE;
      if (i < m && j < n) c[i + (long)j * m] = sum[e][f];
    }
  }
}
