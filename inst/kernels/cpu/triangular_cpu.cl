/* Substitution with a small triangular block and many right-hand sides on a CPU, in place: the
 * contract of triangular.cl, where the eight forms and the indices r(p) and L(p, q) are explained.
 *
 *    L, packed by panels of WIDTH rows        right-hand sides, 8 to a vector
 *      +---+
 *      |0  |                                  |x x x x x x x x|   a group is one work-item; it
 *      +---+---+                              |x x x x x x x x|   solves 8 right-hand sides, then
 *      |1  |1  |     panel 1: first products  +---------------+   the next 8: WIDTH unknowns in
 *      +---+---+---+ with earlier unknowns,   |o o o o o o o o|   registers, while all earlier
 *      |2  |2  |2  | then its triangle        +---------------+   ones go by
 *
 * Layout. The block is packed once a group, by panels of WIDTH unknowns: for each earlier unknown
 * the WIDTH multipliers of a panel lie side by side, negated; then those of the panel's own
 * triangle, with reciprocals on the diagonal. Unknowns beyond n are those of an identity.
 *
 * Work split. A group is one work-item with TRIANGULAR_ITEMS right-hand sides, eight at a time in
 * the lanes of vectors: WIDTH unknowns stay in registers while all earlier ones go by. */

#ifndef WIDTH /* unknowns in vector registers at a time: a divisor of TRIANGULAR_LEAF */
#ifdef __AVX512F__
#define WIDTH 8
#else
#define WIDTH 4
#endif
#endif

/* Packs a panel from unknown p0 on: entry (i, q) of it goes to panel[q * WIDTH + i], q < p0 +
 * WIDTH. */
SCL_INLINE void triangular_cpu_pack(__local real *panel, __global const real *t, const int ld,
                                    const int n, const int p0, const int transposed,
                                    const int reversed) {
  for (int q = 0; q < p0 + WIDTH; q++) {
    for (int i = 0; i < WIDTH; i++) {
      const int p = p0 + i;
      real value = p == q ? 1.0 : 0.0;
      if (p < n && q <= p) {
        const int row = reversed ? n - 1 - p : p, column = reversed ? n - 1 - q : q;
        const real l = t[transposed ? column + (long)row * ld : row + (long)column * ld];
        value = p == q ? 1.0 / l : -l;
      }
      panel[q * WIDTH + i] = value;
    }
  }
}

/* Element `lane` (s0 to s3) of eight vectors of four, and of four vectors of eight. */
#define TRIANGULAR_ACROSS_8(v, lane)                                                               \
  (real8)(v[0].lane, v[1].lane, v[2].lane, v[3].lane, v[4].lane, v[5].lane, v[6].lane, v[7].lane)
#define TRIANGULAR_ACROSS_4(v, lane) (real4)(v[0].lane, v[1].lane, v[2].lane, v[3].lane)

/* x[p] = the unknowns of `lanes` right-hand sides, those from b on; zeros in the other lanes. Where
 * the unknowns are contiguous, four of each right-hand side are transposed in registers. */
SCL_INLINE void triangular_cpu_load(real8 *x, const int n, __global const real *b, const long step,
                                    const long next, const int reversed, const int lanes) {
  int row = 0;
  for (; row + 4 <= n && lanes == 8 && step == 1; row += 4) {
    real4 side[8];
    SCL_UNROLL
    for (int i = 0; i < 8; i++) side[i] = vload4(0, b + row + i * next);
    x[reversed ? n - 1 - row : row] = TRIANGULAR_ACROSS_8(side, s0);
    x[reversed ? n - 2 - row : row + 1] = TRIANGULAR_ACROSS_8(side, s1);
    x[reversed ? n - 3 - row : row + 2] = TRIANGULAR_ACROSS_8(side, s2);
    x[reversed ? n - 4 - row : row + 3] = TRIANGULAR_ACROSS_8(side, s3);
  }
  for (; row < n; row++) {
    __global const real *from = b + row * step;
    real8 *to = x + (reversed ? n - 1 - row : row);
    if (lanes == 8 && next == 1) {
      *to = vload8(0, from);
    } else {
      real lane[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
      for (int i = 0; i < lanes; i++) lane[i] = from[i * next];
      *to = vload8(0, lane);
    }
  }
}

/* The reverse: x[] to the unknowns from b on. */
SCL_INLINE void triangular_cpu_store(const real8 *x, const int n, __global real *b, const long step,
                                     const long next, const int reversed, const int lanes) {
  int row = 0;
  for (; row + 4 <= n && lanes == 8 && step == 1; row += 4) {
    const real8 rows[4] = {x[reversed ? n - 1 - row : row], x[reversed ? n - 2 - row : row + 1],
                           x[reversed ? n - 3 - row : row + 2],
                           x[reversed ? n - 4 - row : row + 3]};
    __global real *to = b + row;
    vstore4(TRIANGULAR_ACROSS_4(rows, s0), 0, to);
    vstore4(TRIANGULAR_ACROSS_4(rows, s1), 0, to + next);
    vstore4(TRIANGULAR_ACROSS_4(rows, s2), 0, to + 2 * next);
    vstore4(TRIANGULAR_ACROSS_4(rows, s3), 0, to + 3 * next);
    vstore4(TRIANGULAR_ACROSS_4(rows, s4), 0, to + 4 * next);
    vstore4(TRIANGULAR_ACROSS_4(rows, s5), 0, to + 5 * next);
    vstore4(TRIANGULAR_ACROSS_4(rows, s6), 0, to + 6 * next);
    vstore4(TRIANGULAR_ACROSS_4(rows, s7), 0, to + 7 * next);
  }
  for (; row < n; row++) {
    __global real *to = b + row * step;
    const real8 from = x[reversed ? n - 1 - row : row];
    if (lanes == 8 && next == 1) {
      vstore8(from, 0, to);
    } else {
      real lane[8];
      vstore8(from, 0, lane);
      for (int i = 0; i < lanes; i++) to[i * next] = lane[i];
    }
  }
}

/* L x = x for the unknowns of eight right-hand sides. */
SCL_INLINE void triangular_cpu_solve(__local const real *packed, const int n, real8 *x) {
  for (int p = n; p < (n + WIDTH - 1) / WIDTH * WIDTH; p++) x[p] = (real8)(0.0);
  for (int p0 = 0; p0 < n; p0 += WIDTH) {
    real8 sum[WIDTH];
    SCL_UNROLL
    for (int i = 0; i < WIDTH; i++) sum[i] = x[p0 + i];
    for (int q = 0; q < p0; q++) {
      const real8 known = x[q];
      SCL_UNROLL
      for (int i = 0; i < WIDTH; i++) sum[i] = fma((real8)(packed[q * WIDTH + i]), known, sum[i]);
    }
    packed += p0 * WIDTH;
    SCL_UNROLL
    for (int j = 0; j < WIDTH; j++) {
      sum[j] *= packed[j * WIDTH + j];
      SCL_UNROLL
      for (int i = 0; i < WIDTH; i++)
        if (i > j) sum[i] = fma((real8)(packed[j * WIDTH + i]), sum[j], sum[i]);
    }
    packed += WIDTH * WIDTH;
    SCL_UNROLL
    for (int i = 0; i < WIDTH; i++) x[p0 + i] = sum[i];
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
triangular_cpu_substitute(__global const real *t, const long t_offset, const int t_ld,
                          __global real *b, const long b_offset, const triangular_task task) {
  __local real packed[TRIANGULAR_LEAF * (TRIANGULAR_LEAF + WIDTH) / 2];
  real8 x[TRIANGULAR_LEAF];
  const int which = get_group_id(1), first = get_group_id(0) * TRIANGULAR_ITEMS;
  const int last = which == (int)get_num_groups(1) - 1, order = last ? task.n_last : task.n;
  const int count = min(TRIANGULAR_ITEMS, (last ? task.rhs_last : task.rhs) - first);
  const int transposed = task.transposed, reversed = task.reversed;
  const long step = task.unknown_step, next = task.side_step;
  t += t_offset + which * task.t_step;
  b += b_offset + which * task.b_step + first * next;

  __local real *panel = packed;
  for (int p0 = 0; p0 < order && count > 0; p0 += WIDTH) {
    triangular_cpu_pack(panel, t, t_ld, order, p0, transposed, reversed);
    panel += (p0 + WIDTH) * WIDTH;
  }
  for (int side = 0; side < count; side += 8) {
    const int lanes = min(8, count - side);
    triangular_cpu_load(x, order, b + side * next, step, next, reversed, lanes);
    triangular_cpu_solve(packed, order, x);
    triangular_cpu_store(x, order, b + side * next, step, next, reversed, lanes);
  }
}
