/* Substitution with a small triangular block and many right-hand sides, in place.
 *
 *        L, n <= TRIANGULAR_LEAF           right-hand sides, one to a work-item
 *        WIDTH
 *       +-----+                            +-+-+-+-+-+-+
 *       |\    |                            |x|x|x|x|x|x|   solved before, in B
 *       |  \  |                            |x|x|x|x|x|x|
 *       +-----+-----+                      +-+-+-+-+-+-+
 *    p0 | (1) |\(2) |                      |.|.|.|.|.|.|   WIDTH unknowns in registers: (1) the
 *       |     |  \  |                      |.|.|.|.|.|.|   products with those solved before are
 *       +-----+-----+                      +-+-+-+-+-+-+   subtracted, (2) they are solved for
 *
 *    Blocks (1) and (2) of L pass through local memory, where all work-items of the group read
 * them.
 *
 * One kernel serves all eight forms (left or right, lower or upper, transposed or not): each is
 * "L x = b" for a lower triangular L of order n once the unknowns are counted in the order in which
 * they are solved for. Unknown p has the index r(p) = p, or n-1-p if `reversed`; L(p, q) is
 * T(r(p), r(q)), or T(r(q), r(p)) if `transposed`. Unknown p of right-hand side s lies at
 * B[r(p) * unknown_step + s * side_step], so a right-hand side is a column of B or a row.
 *
 * Work split. A work-item has one right-hand side: TRIANGULAR_WIDTH unknowns at a time sit in its
 * registers, T goes through local memory in blocks of WIDTH x WIDTH that all work-items of the
 * group read at one address at a time. Dimension 0: right-hand sides; dimension 1: a batch of
 * blocks (triangular_task in triangular.h).
 *
 * Substitution rather than a product with the block's inverse: the residual then stays small row by
 * row whatever the condition of the block (a Gaussian process with a smooth kernel has blocks as
 * ill-conditioned as the whole matrix). Only the named triangle of T is read. A work-item reads
 * back unknowns that it wrote itself, so no fence between work-items is needed. */

#define TRIANGULAR_PAIRS (TRIANGULAR_WIDTH / 2)

/* L(p0 + i, q0 + j) for i, j < WIDTH, as block[j * WIDTH + i]; beyond n: the identity. On the
 * diagonal lies the reciprocal. Above the diagonal nothing is read. */
SCL_INLINE void triangular_stage(__local real *block, __global const real *t, const int ld,
                                 const int n, const int p0, const int q0, const int transposed,
                                 const int reversed, const uint item) {
  for (uint at = item; at < TRIANGULAR_WIDTH * TRIANGULAR_WIDTH; at += TRIANGULAR_ITEMS) {
    /* work-items run along the contiguous direction of T */
    const int i = transposed ? at / TRIANGULAR_WIDTH : at % TRIANGULAR_WIDTH;
    const int j = transposed ? at % TRIANGULAR_WIDTH : at / TRIANGULAR_WIDTH;
    const int p = p0 + i, q = q0 + j;
    real value = 0.0;
    if (p == q) value = 1.0;
    if (p < n && q <= p) {
      const int row = reversed ? n - 1 - p : p, column = reversed ? n - 1 - q : q;
      value = t[transposed ? column + (long)row * ld : row + (long)column * ld];
      if (p == q) value = 1.0 / value;
    }
    block[j * TRIANGULAR_WIDTH + i] = value;
  }
}

__kernel __attribute__((reqd_work_group_size(TRIANGULAR_ITEMS, 1, 1))) void
triangular_substitute(__global const real *t, const long t_offset, const int t_ld, __global real *b,
                      const long b_offset, const triangular_task task) {
  __local real2 pairs[TRIANGULAR_WIDTH * TRIANGULAR_PAIRS];
  __local real *block = (__local real *)pairs;
  const int which = get_group_id(1);
  const int last = which == (int)get_num_groups(1) - 1, order = last ? task.n_last : task.n;
  const int side = get_global_id(0), active = side < (last ? task.rhs_last : task.rhs);
  const int transposed = task.transposed, reversed = task.reversed;
  const long step = task.unknown_step;
  t += t_offset + which * task.t_step;
  b += b_offset + which * task.b_step + (active ? side * task.side_step : 0);

  for (int p0 = 0; p0 < order; p0 += TRIANGULAR_WIDTH) {
    real x[TRIANGULAR_WIDTH];
    SCL_UNROLL
    for (int i = 0; i < TRIANGULAR_WIDTH; i++) {
      const int p = p0 + i;
      x[i] = 0.0;
      if (active && p < order) x[i] = b[(reversed ? order - 1 - p : p) * step];
    }
    for (int q0 = 0; q0 < p0; q0 += TRIANGULAR_WIDTH) {
      barrier(CLK_LOCAL_MEM_FENCE);
      triangular_stage(block, t, t_ld, order, p0, q0, transposed, reversed, get_local_id(0));
      barrier(CLK_LOCAL_MEM_FENCE);
      if (active) {
        for (int j = 0; j < TRIANGULAR_WIDTH; j++) {
          const real known = b[(reversed ? order - 1 - (q0 + j) : q0 + j) * step];
          SCL_UNROLL
          for (int i = 0; i < TRIANGULAR_PAIRS; i++) {
            const real2 l = pairs[j * TRIANGULAR_PAIRS + i];
            x[2 * i] = fma(-l.x, known, x[2 * i]);
            x[2 * i + 1] = fma(-l.y, known, x[2 * i + 1]);
          }
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    triangular_stage(block, t, t_ld, order, p0, p0, transposed, reversed, get_local_id(0));
    barrier(CLK_LOCAL_MEM_FENCE);
    if (active) {
      SCL_UNROLL
      for (int j = 0; j < TRIANGULAR_WIDTH; j++) {
        x[j] *= block[j * TRIANGULAR_WIDTH + j];
        SCL_UNROLL
        for (int i = 0; i < TRIANGULAR_WIDTH; i++)
          if (i > j) x[i] = fma(-block[j * TRIANGULAR_WIDTH + i], x[j], x[i]);
      }
      SCL_UNROLL
      for (int i = 0; i < TRIANGULAR_WIDTH; i++) {
        const int p = p0 + i;
        if (p < order) b[(reversed ? order - 1 - p : p) * step] = x[i];
      }
    }
  }
}
