/* Solutions and determinants by panels of 8 columns, on the double-precision matrix instructions of
 * NVIDIA devices (mma.h): the twin of batch_solve_tile.cl for larger orders, with the same
 * parameters and statuses, used under the same conditions as gemm_mma.cl
 * (engine/cl/runtime/variant.c).
 *
 *             panels of 8 columns        right-hand sides
 *              0   1   2   3 ..
 *           +---+---+---+---+---     +-------+     Step p: warp 0 factors panel p in local memory,
 *   warp 0  |   | p | n |   |        |       |     while all apply panel p - 1 to the columns from
 *           +---+---+---+---+---     +-------+     p + 1 on and to the right-hand sides. Then all
 *   warp 1  |   | p | n |   |        |       |     apply panel p to panel p + 1 (n) alone, which is
 *           +---+---+---+---+---     +-------+     factored next.
 *    ..     |   |   |   |   |        |       |
 *
 * Work split. A group has one matrix and SIDES right-hand sides (group number 1 says which). Each
 * of its BATCH_P warps holds BLOCKS times 16 rows in registers, as the instruction wants its
 * results, and of the right-hand sides as well. Rows stay where they are: the pivot row of step k
 * holds unknown k.
 *
 * A panel goes to the first warp through local memory, PANEL_ROWS rows to a lane. This warp finds
 * the pivots without barriers of the group and returns multipliers M, with which the whole panel is
 * one product: rows += M (the panel's 8 pivot rows as they were). For a row that is left M is
 * L21 inverse(L11), for a pivot row inverse(L11) - I, for the pivot rows of former panels zero.
 *
 * Substitution backwards goes by panels too. All warps solve for its 8 unknowns; their product with
 * the rows above is a matrix product again, whose left operand is already in registers.
 *
 * To define before: BATCH_KERNEL, BATCH_N (the largest order, a multiple of 32), BATCH_P (the warps
 * of a group). */
#define ROLLED _Pragma("unroll 1")
#if BATCH_N > 64 /* unrolled, the code of large orders exceeds the instruction cache */
#define EACH_STEP ROLLED
#else
#define EACH_STEP SCL_UNROLL
#endif
#define BLOCKS (BATCH_N / 16 / BATCH_P) /* of 16 rows, of a warp */
#define COLUMNS8 (BATCH_N / 8)          /* panels */
#define PANEL_ROWS (BATCH_N / 32)
#define SIDES BATCH_PANEL_SIDES
#define ROOM (BATCH_N + SIDES + 2) /* of a pivot row; free of bank conflicts */
#define STEP 10                    /* of what is kept of a step */
/* Element (i, e) of a block of 8 columns: its row, from the warp's first on, and its column. */
#define BLOCK_ROW(first, i, h) ((first) + 16 * (i) + 8 * (h))
#define BLOCK_COLUMN(j, t, e) (8 * (j) + 2 * (t) + (e) % 2)

#define EACH_BLOCK(i) SCL_UNROLL for (int i = 0; i < BLOCKS; i++)
#define EACH_ELEMENT(i, j, e)                                                                      \
  EACH_BLOCK(i) SCL_UNROLL for (int j = 0; j < COLUMNS8; j++) SCL_UNROLL for (int e = 0; e < 4; e++)
#define EACH_PANEL_ROW(i) SCL_UNROLL for (int i = 0; i < PANEL_ROWS; i++)

typedef struct {
  real panel[2][BATCH_N * 8]; /* a panel, then its multipliers; that before */
  real rows[8 * ROOM];        /* the panel's pivot rows as they were */
  real steps[BATCH_N * STEP]; /* the pivot row of a step from its pivot on, then 1 / pivot */
  real sides[2][8 * SIDES];   /* right-hand sides of a panel's pivot rows */
  real parts[BATCH_N], products[COLUMNS8];
  int chosen[BATCH_N], powers[BATCH_N]; /* of a step: its row, the power of two of its pivot */
  int step_of[BATCH_N];                 /* of a row, or -1 */
  int status;
} __attribute__((aligned(16))) shared_state;

/* 1 / v to about one unit in the last place; by division where subnormal numbers would matter. */
MMA_INLINE real reciprocal(const real v) {
  real y = mma_reciprocal(v);
  const uint exponent = (uint)(as_ulong(v) >> 52) & 2047;
  if (exponent - 1 >= 2043 && v != 0.0) y = 1.0 / v;
  return y;
}

/* Keys order numbers by size, a NaN first, then by row, the upper first (as in batch_tile.h). */
MMA_INLINE uint pivot_key(const real v, const int row) {
  return ((uint)(as_ulong(v) >> 32) & 0x7fffff80u) | (uint)(127 - row);
}

/* Pair number `pair` of row r of a panel. */
MMA_INLINE int panel_place(const int r, const int pair) {
  return r * 8 + 2 * (pair ^ (r >> 1 & 3));
}

MMA_INLINE real2 get_pair(__local const real *s) {
  return *(__local const real2 *)s;
}

MMA_INLINE void put_pair(__local real *s, const real x, const real y) {
  *(__local real2 *)s = (real2)(x, y);
}

/* One step of a panel, of which column 0 is the step's and u is to be the pivot row. Gives each
 * row's multiplier. */
MMA_COLLECTIVE void panel_step(const mma_lane self, __local shared_state *s, const int k,
                               const int c, real v[PANEL_ROWS][8], real u[8], real f[PANEL_ROWS],
                               uint *used, int *status) {
  const int lane = self.lane;
  uint best = 0;
  real mine = 1.0;
  EACH_PANEL_ROW(i) {
    if (!mma_is_active(self)) continue;
    const uint key = *used >> i & 1 ? 0 : pivot_key(v[i][0], lane + 32 * i);
    mine = key > best ? v[i][0] : mine;
    best = max(best, key);
  }
  const real d = reciprocal(mine); /* while the warp looks for its largest */
  const int row = 127 - (int)(mma_warp_max(self, best) & 127u);
  __local real *step = s->steps + k * STEP;
  EACH_PANEL_ROW(i) {
    if (mma_is_active(self) && lane + 32 * i == row) {
      SCL_UNROLL for (int q = 0; q < 8; q += 2) put_pair(step + q, v[i][q], v[i][q + 1]);
      step[8] = d;
      s->step_of[row] = k;
      s->chosen[k] = row;
      SCL_UNROLL for (int q = 0; q < 8; q++) v[i][q] = q < 8 - c ? 0.0 : v[i][q];
      *used |= 1u << i;
    }
  }
  mma_warp_sync(self);
  if (!mma_is_active(self)) return;
  SCL_UNROLL for (int q = 0; q < 8; q += 2) {
    const real2 w = get_pair(step + q);
    u[q] = w.x;
    u[q + 1] = w.y;
  }
  const real r = step[8];
  const int exponent = (int)(as_ulong(u[0]) >> 52 & 2047);
  if (*status == 0) *status = exponent == 0 ? k + 1 : exponent == 2047 ? BATCH_NONFINITE : 0;
  EACH_PANEL_ROW(i) f[i] = *used >> i & 1 ? 0.0 : -v[i][0] * r;
}

/* Panel p to its multipliers, in place. It turns by a column a step, so that all steps can be one
 * body of code: what is read is column 0, multipliers come in from behind. */
MMA_COLLECTIVE void panel_factor(const mma_lane self, __local shared_state *s, const int p,
                                 const int n, uint *used, int *status) {
  __local real *panel = s->panel[p & 1];
  const int lane = self.lane;
  real v[PANEL_ROWS][8];
  EACH_PANEL_ROW(i) {
    if (!mma_is_active(self)) continue;
    SCL_UNROLL for (int q = 0; q < 4; q++) {
      const real2 w = get_pair(panel + panel_place(lane + 32 * i, q));
      v[i][2 * q] = w.x;
      v[i][2 * q + 1] = w.y;
    }
  }
  EACH_STEP for (int c = 0; c < 8; c++) {
    real u[8], f[PANEL_ROWS];
    EACH_PANEL_ROW(i) f[i] = 0.0;
    SCL_UNROLL for (int q = 0; q < 8; q++) u[q] = 0.0;
    if (8 * p + c < n) panel_step(self, s, 8 * p + c, c, v, u, f, used, status);
    EACH_PANEL_ROW(i) {
      SCL_UNROLL for (int q = 1; q < 8; q++) v[i][q - 1] = fma(f[i], u[q], v[i][q]);
      v[i][7] = f[i];
    }
  }
  EACH_PANEL_ROW(i) {
    if (!mma_is_active(self)) continue;
    SCL_UNROLL for (int q = 0; q < 4; q++) {
      put_pair(panel + panel_place(lane + 32 * i, q), v[i][2 * q], v[i][2 * q + 1]);
    }
  }
}

typedef struct {
  real2 low, high; /* of rows g and g + 8, for the pivot rows 2t and 2t + 1 */
} multipliers;

/* c += M times 8 columns of the pivot rows. */
MMA_COLLECTIVE void update(const mma_lane lane, real c[4], const multipliers m,
                           __local const real *rows, const int column) {
  const int g = lane.quad, t = lane.member;
  const real b0 = rows[2 * t * ROOM + column + g], b1 = rows[(2 * t + 1) * ROOM + column + g];
  mma_8(lane, c, m.low.x, m.high.x, m.low.y, m.high.y, b0, b1);
}

/* The determinant: parity of the permutation and parts of pivots by all, products of 8, one. */
MMA_COLLECTIVE void determinant(__local shared_state *s, const int n, const int item,
                                const int batch, const int flags, __global real *out) {
  for (int k = item; k < n; k += 32 * BATCH_P) {
    const int row = s->chosen[k];
    int power, above = row; /* rows above it that are left */
    for (int i = 0; i < k; i += 4) {
      const int4 former = *(__local const int4 *)(s->chosen + i);
      above -= (former.x < row) + (i + 1 < k && former.y < row) + (i + 2 < k && former.z < row) +
               (i + 3 < k && former.w < row);
    }
    const real part = pivot_part(s->steps[k * STEP], &power);
    s->parts[k] = above % 2 == 0 ? part : -part;
    s->powers[k] = power;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < COLUMNS8) {
    real product = 1.0;
    int power = 0;
    for (int k = 8 * item; k < min(n, 8 * item + 8) && product != 0.0; k++) {
      product *= s->parts[k];
      power += s->powers[k];
    }
    s->products[item] = product;
    s->powers[8 * item] = power;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item != 0) return;
  real product = 1.0;
  int power = 0;
  for (int q = 0; 8 * q < n && product != 0.0; q++) {
    product *= s->products[q];
    power += s->powers[8 * q];
  }
  determinant_out(product, power, batch, flags, out);
}

/* The 8 unknowns of panel p, of right-hand side g. */
MMA_INLINE void panel_solve(__local const shared_state *s, const int p, const int n, const int g,
                            real z[8]) {
  real u[8][8], r[8];
  SCL_UNROLL for (int k = 0; k < 8; k++) {
    __local const real *step = s->steps + (8 * p + k) * STEP;
    z[k] = s->sides[p & 1][k * SIDES + g];
    r[k] = step[8];
    SCL_UNROLL for (int q = k + 1; q < 8; q++) u[k][q] = step[q - k];
  }
  if (8 * p + 8 > n) {
    SCL_UNROLL for (int k = 0; k < 8; k++) {
      z[k] = 8 * p + k < n ? z[k] : 0.0;
      r[k] = 8 * p + k < n ? r[k] : 0.0;
      SCL_UNROLL for (int q = k + 1; q < 8; q++) u[k][q] = 8 * p + q < n ? u[k][q] : 0.0;
    }
  }
  SCL_UNROLL for (int k = 7; k >= 0; k--) {
    z[k] *= r[k];
    SCL_UNROLL for (int q = 0; q < k; q++) z[q] = fma(-u[q][k], z[k], z[q]);
  }
}

/* Reads the elements of a matrix that a work-item has, with zeros beyond the order. */
MMA_INLINE void rows_load(real c[BLOCKS][COLUMNS8][4], __global const real *in, const int n,
                          const int first, const int t) {
  if (n == BATCH_N) {
    EACH_ELEMENT(i, j, e) {
      c[i][j][e] = in[BLOCK_ROW(first, i, e / 2) + BLOCK_COLUMN(j, t, e) * BATCH_N];
    }
  } else {
    EACH_ELEMENT(i, j, e) {
      const int row = BLOCK_ROW(first, i, e / 2), column = BLOCK_COLUMN(j, t, e);
      const real v = in[min(row, n - 1) + min(column, n - 1) * n];
      c[i][j][e] = row < n && column < n ? v : 0.0;
    }
  }
}

/* The same of the right-hand sides `side` to `sides` - 1. */
MMA_INLINE void sides_load(real x[BLOCKS][4], __global const real *b, const int n, const int side,
                           const int sides, const int first, const int t) {
  EACH_BLOCK(i) {
    SCL_UNROLL for (int e = 0; e < 4; e++) {
      const int row = BLOCK_ROW(first, i, e / 2), column = side + BLOCK_COLUMN(0, t, e);
      x[i][e] = row < n && column < sides ? b[row + (long)column * n] : 0.0;
    }
  }
}

/* Block i of a panel's 8 columns to local memory. */
MMA_INLINE void panel_put(__local real *panel, const real c[4], const int i, const int first,
                          const int t) {
  SCL_UNROLL for (int h = 0; h < 2; h++) {
    put_pair(panel + panel_place(BLOCK_ROW(first, i, h), t), c[2 * h], c[2 * h + 1]);
  }
}

/* The pivot rows of panel p that a work-item has, to local memory: columns of the panels of `later`
 * (a bit each), and right-hand sides. */
MMA_INLINE void pivot_rows_put(__local shared_state *s, real c[BLOCKS][COLUMNS8][4],
                               real x[BLOCKS][4], const int p, const uint later, const int first,
                               const int t) {
  EACH_BLOCK(i) {
    SCL_UNROLL for (int h = 0; h < 2; h++) {
      const int k = s->step_of[BLOCK_ROW(first, i, h)];
      if (k >> 3 != p) continue;
      __local real *row = s->rows + (k & 7) * ROOM + 2 * t;
      SCL_UNROLL for (int j = 1; j < COLUMNS8; j++) {
        if (later >> j & 1) put_pair(row + 8 * j, c[i][j][2 * h], c[i][j][2 * h + 1]);
      }
      put_pair(row + BATCH_N, x[i][2 * h], x[i][2 * h + 1]);
    }
  }
}

/* Substitution backwards: writes the solutions of the right-hand sides `side` to `sides` - 1. */
MMA_COLLECTIVE void substitute(const mma_lane self, __local shared_state *s,
                               real c[BLOCKS][COLUMNS8][4], real x[BLOCKS][4], const int n,
                               const int warp, const int first, const int side, const int sides,
                               __global real *out) {
  const int g = self.quad, t = self.member, panels = (n + 7) / 8;
  uint now = 1u << (panels - 1); /* this panel's bit */
  ROLLED for (int p = panels - 1; p >= 0; p--, now >>= 1) {
    EACH_BLOCK(i) {
      SCL_UNROLL for (int h = 0; h < 2; h++) {
        const int k = s->step_of[BLOCK_ROW(first, i, h)];
        if (k >> 3 == p)
          put_pair(s->sides[p & 1] + (k & 7) * SIDES + 2 * t, x[i][2 * h], x[i][2 * h + 1]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    real z[8];
    panel_solve(s, p, n, g, z);
    const real z0 = t == 0 ? z[0] : t == 1 ? z[2] : t == 2 ? z[4] : z[6];
    const real z1 = t == 0 ? z[1] : t == 1 ? z[3] : t == 2 ? z[5] : z[7];
    SCL_UNROLL for (int j = 1; j < COLUMNS8; j++) {
      if (now >> j & 1) {
        EACH_BLOCK(i) mma_8(self, x[i], c[i][j][0], c[i][j][2], c[i][j][1], c[i][j][3], -z0, -z1);
      }
    }
    const int status = s->status, k = 8 * p + 2 * t, column = side + g;
    if (warp == 0 && column < sides) {
      if (k < n) out[k + (long)column * n] = status == 0 ? z0 : NAN;
      if (k + 1 < n) out[k + 1 + (long)column * n] = status == 0 ? z1 : NAN;
    }
  }
}

__attribute__((reqd_work_group_size(32 * BATCH_P, 1, 1))) __kernel void
BATCH_KERNEL(BATCH_IN(in), BATCH_IN(b), BATCH_OUT) {
  const int batch = task.batch, n = task.n, count_b = task.count_b, flags = task.flags;
  const long in0 = task.a_offset, b0 = task.b_offset, out0 = task.out_offset;
  const int step_in = task.a_step, step_b = task.b_step, step_out = task.out_step;
  __local shared_state state;
  __local shared_state *s = &state;
  MMA_LANE(self, BATCH_P);
  const int item = (int)get_local_id(0), warp = item / 32, lane = self.lane;
  const int t = self.member, first = warp * BLOCKS * 16 + self.quad;
  const int side = (int)get_group_id(1) * SIDES;
  const long matrix = (long)get_group_id(0);
  real c[BLOCKS][COLUMNS8][4], x[BLOCKS][4];
  rows_load(c, in + in0 + matrix * step_in, n, first, t);
  for (int i = item; i < BATCH_N; i += 32 * BATCH_P) s->step_of[i] = -1;
  sides_load(x, b + b0 + matrix * step_b, n, side, flags & BATCH_DET ? 0 : count_b, first, t);
  EACH_BLOCK(i) panel_put(s->panel[0], c[i][0], i, first, t);

  int status = 0;
  uint used = 0, later = ~1u; /* rows that were pivots or lie beyond the order; panels to come */
  EACH_PANEL_ROW(i) used |= lane + 32 * i < n ? 0u : 1u << i;
  multipliers m[BLOCKS];
  ROLLED for (int p = 0; 8 * p < n; p++, later <<= 1) {
    barrier(CLK_LOCAL_MEM_FENCE); /* panel p is there */
    MMA_IF(warp == 0) panel_factor(mma_only(self, warp == 0), s, p, n, &used, &status);
    if (p > 0) { /* the panel before, on what comes after this one */
      SCL_UNROLL for (int j = 2; j < COLUMNS8; j++) {
        if (later >> j & 1) {
          EACH_BLOCK(i) update(self, c[i][j], m[i], s->rows, 8 * j);
        }
      }
      EACH_BLOCK(i) update(self, x[i], m[i], s->rows, BATCH_N);
    }
    barrier(CLK_LOCAL_MEM_FENCE); /* the pivot rows before are no longer read */
    pivot_rows_put(s, c, x, p, later, first, t);
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH_BLOCK(i) {
      m[i].low = get_pair(s->panel[p & 1] + panel_place(BLOCK_ROW(first, i, 0), t));
      m[i].high = get_pair(s->panel[p & 1] + panel_place(BLOCK_ROW(first, i, 1), t));
    }
    SCL_UNROLL for (int j = 1; j < COLUMNS8; j++) { /* the next panel */
      if ((later & ~(later << 1)) >> j & 1) {
        EACH_BLOCK(i) {
          update(self, c[i][j], m[i], s->rows, 8 * j);
          panel_put(s->panel[(p + 1) & 1], c[i][j], i, first, t);
        }
      }
    }
  }
  EACH_BLOCK(i) update(self, x[i], m[i], s->rows, BATCH_N);
  if (item == 0) s->status = status;
  if (flags & BATCH_DET) {
    determinant(s, n, item, batch, flags, out + out0 + matrix);
    return;
  }
  substitute(self, s, c, x, n, warp, first, side, count_b, out + out0 + matrix * step_out);
  if (item == 0 && side == 0) batch_report(matrix, s->status, flags, statuses, any);
}
