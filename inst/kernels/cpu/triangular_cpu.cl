/* Substitution with a small triangular block and many right-hand sides on a CPU, in place: the
 * contract of triangular.cl, where the eight forms and the indices r(p) and L(p, q) are explained.
 *
 * Layout. The block is packed once a group, by panels of WIDTH unknowns: for each earlier unknown
 * the WIDTH multipliers of a panel lie side by side, negated; then those of the panel's own
 * triangle, with reciprocals on the diagonal. Unknowns beyond n are those of an identity.
 *
 * Work split. A group is one work-item with TRIANGULAR_ITEMS right-hand sides, eight at a time in
 * the lanes of vectors: WIDTH unknowns stay in registers while all earlier ones go by. */

#ifdef __AVX512F__
#define WIDTH 8
#else
#define WIDTH 4
#endif

/* Packs a panel from unknown p0 on: entry (i, q) of it goes to panel[q * WIDTH + i], q < p0 +
 * WIDTH. */
SCL_INLINE void triangular_cpu_pack(__local real *panel, __global const real *T, const int ld,
                                    const int n, const int p0, const int transposed,
                                    const int reversed) {
  for (int q = 0; q < p0 + WIDTH; q++) {
    for (int i = 0; i < WIDTH; i++) {
      const int p = p0 + i;
      real value = p == q ? 1.0 : 0.0;
      if (p < n && q <= p) {
        const int r = reversed ? n - 1 - p : p, s = reversed ? n - 1 - q : q;
        const real t = T[transposed ? s + (long)r * ld : r + (long)s * ld];
        value = p == q ? 1.0 / t : -t;
      }
      panel[q * WIDTH + i] = value;
    }
  }
}

/* x[p] = the unknowns of `lanes` right-hand sides, those from B on; zeros in the other lanes. Where
 * the unknowns are contiguous, four of each right-hand side are transposed in registers. */
SCL_INLINE void triangular_cpu_load(real8 *x, const int n, __global const real *B,
                                    const long step, const long next, const int reversed,
                                    const int lanes) {
#define ROW(s) (real8)(c[0].s, c[1].s, c[2].s, c[3].s, c[4].s, c[5].s, c[6].s, c[7].s)
  int r = 0;
  for (; r + 4 <= n && lanes == 8 && step == 1; r += 4) {
    real4 c[8];
    SCL_UNROLL
    for (int i = 0; i < 8; i++) c[i] = vload4(0, B + r + i * next);
    x[reversed ? n - 1 - r : r] = ROW(s0);
    x[reversed ? n - 2 - r : r + 1] = ROW(s1);
    x[reversed ? n - 3 - r : r + 2] = ROW(s2);
    x[reversed ? n - 4 - r : r + 3] = ROW(s3);
  }
  for (; r < n; r++) {
    __global const real *from = B + r * step;
    real8 *to = x + (reversed ? n - 1 - r : r);
    if (lanes == 8 && next == 1) {
      *to = vload8(0, from);
    } else {
      real lane[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
      for (int i = 0; i < lanes; i++) lane[i] = from[i * next];
      *to = vload8(0, lane);
    }
  }
#undef ROW
}

/* The other way. */
SCL_INLINE void triangular_cpu_store(const real8 *x, const int n, __global real *B,
                                     const long step, const long next, const int reversed,
                                     const int lanes) {
  int r = 0;
  for (; r + 4 <= n && lanes == 8 && step == 1; r += 4) {
    const real8 c0 = x[reversed ? n - 1 - r : r], c1 = x[reversed ? n - 2 - r : r + 1];
    const real8 c2 = x[reversed ? n - 3 - r : r + 2], c3 = x[reversed ? n - 4 - r : r + 3];
    __global real *to = B + r;
#define COLUMN(i, s) vstore4((real4)(c0.s, c1.s, c2.s, c3.s), 0, to + i * next)
    COLUMN(0, s0);
    COLUMN(1, s1);
    COLUMN(2, s2);
    COLUMN(3, s3);
    COLUMN(4, s4);
    COLUMN(5, s5);
    COLUMN(6, s6);
    COLUMN(7, s7);
#undef COLUMN
  }
  for (; r < n; r++) {
    __global real *to = B + r * step;
    const real8 from = x[reversed ? n - 1 - r : r];
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
triangular_cpu_substitute(__global const real *T, const long t_offset, const int ldt,
                          __global real *B, const long b_offset, const triangular_task task) {
  __local real packed[TRIANGULAR_LEAF * (TRIANGULAR_LEAF + WIDTH) / 2];
  real8 x[TRIANGULAR_LEAF];
  const int which = get_group_id(1), first = get_group_id(0) * TRIANGULAR_ITEMS;
  const int last = which == (int)get_num_groups(1) - 1, order = last ? task.n_last : task.n;
  const int count = min(TRIANGULAR_ITEMS, (last ? task.rhs_last : task.rhs) - first);
  const int transposed = task.transposed, reversed = task.reversed;
  const long step = task.unknown_step, next = task.side_step;
  T += t_offset + which * task.t_step;
  B += b_offset + which * task.b_step + first * next;

  __local real *panel = packed;
  for (int p0 = 0; p0 < order && count > 0; p0 += WIDTH) {
    triangular_cpu_pack(panel, T, ldt, order, p0, transposed, reversed);
    panel += (p0 + WIDTH) * WIDTH;
  }
  for (int s = 0; s < count; s += 8) {
    const int lanes = min(8, count - s);
    triangular_cpu_load(x, order, B + s * next, step, next, reversed, lanes);
    triangular_cpu_solve(packed, order, x);
    triangular_cpu_store(x, order, B + s * next, step, next, reversed, lanes);
  }
}
