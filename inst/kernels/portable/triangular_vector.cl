/* Triangular solves with few right-hand sides, one launch a block of VECTOR_BLOCK unknowns.
 *
 * Forms. Unknowns are counted by position, in the order in which they are solved for: for all forms
 * the matrix is then a lower triangular L with L(p, q) = T[p * row + q * column], T being where
 * L(0, 0) lies, and unknown p of right-hand side s is B[p * step + s * next].
 *
 * Solving is a chain of launches. The launch for block k (`at`) has groups of three kinds:
 *   near  all solve block k, each for itself: x_k. It is cheaper to do it 32 times than to wait for
 *         another launch. Then each subtracts L x from its rows of block k + 1, for x_{k-1}, which
 *         the launch before has found, and x_k.
 *   pack  tiles of L for the next launch, and the inverses of those on the diagonal. The very first
 *         launch does nothing else (at = -1).
 *   far   subtract L x_{k-1} from their rows of the blocks after block k + 1.
 * So no launch has to wait inside for another group, and rows further down, nearly all of T, are
 * read beside the chain. What one launch writes no other group of the same launch reads: x_k goes
 * to X, and to its place in B with the launch after.
 *
 * A block is solved in steps of VECTOR_TILE unknowns, by the inverse of their tile and one
 * correction, x = X r, x += X (r - L x): without it the residual would grow with the condition of
 * the tile, and blocks of the covariance matrix of a smooth Gaussian process are as ill-conditioned
 * as the whole. Work-item i has row i of the block; the rows of a tile are one "warp", of which the
 * inverse, the tile, and of the tiles to the left one ahead wait in registers. If an unknown is not
 * finite, the block is solved again by plain substitution: products with tiles and inverses would
 * spread what is not finite to unknowns that do not depend on it.
 *
 * Packed tiles. Tile (i, j) of a block, j <= i, is number i (i + 3) / 2 + j, the inverse of (i, i)
 * stands after it. Element (a, c) is number c / 2 * 2 VECTOR_TILE + 2 a + c % 2 of a tile. Beyond n
 * L is continued by the identity. There are two blocks' tiles, by turns, and two blocks of X.
 *
 * Rows of near and far groups are dealt out as VECTOR_LANES rows by VECTOR_PARTS parts of a sum, of
 * which neighbours run along what is contiguous in T. Every sum has a fixed order.
 *
 * What counts is the time from the first load to the last sum. So loads have no conditions (a row
 * beyond the end is moved to the last one) and end at a barrier before the first of them is used:
 * else a compiler saves registers and has few of them under way. */

#define VECTOR_PARTS (VECTOR_BLOCK / VECTOR_LANES)
#define VECTOR_LOADS VECTOR_LANES /* columns of a part */
#define VECTOR_WARPS (VECTOR_BLOCK / VECTOR_TILE)
#define VECTOR_PAIRS (VECTOR_TILE / 2)
#define VECTOR_AREA (VECTOR_TILE * VECTOR_TILE)

/* Where the work-items of one tile meet, alone where the hardware runs them as one; elsewhere all
 * of the group come to the barrier. */
#ifdef __NV_CL_C_VERSION
#define VECTOR_ALONE(condition) if (condition)
#define VECTOR_MEET() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
#define VECTOR_ONLY(condition)
#else
#define VECTOR_ALONE(condition)
#define VECTOR_MEET() barrier(CLK_LOCAL_MEM_FENCE)
#define VECTOR_ONLY(condition) if (condition)
#endif

typedef struct {
  int n, at;
  long row, column, step;
  __global const real *T;
  __global real *B;
} vector_system;

typedef struct {
  __local real *panel; /* VECTOR_LOADS * VECTOR_NEAR * VECTOR_BLOCK */
  __local real *sums;  /* VECTOR_FAR * VECTOR_BLOCK */
  __local real *parts, *before, *now; /* VECTOR_BLOCK each */
  __local real2 *told; /* three times VECTOR_PAIRS */
  __local int *bad;
} vector_room;

SCL_INLINE int vector_tile(const int i, const int j) {
  return i * (i + 3) / 2 + j;
}

/* One row of a tile from packed tiles. */
#define VECTOR_GET(pairs, i, j)                                                                    \
  SCL_UNROLL                                                                                       \
  for (int c_ = 0; c_ < VECTOR_PAIRS; c_++)                                                        \
    pairs[c_] = tiles[(vector_tile(i, j) * VECTOR_PAIRS + c_) * VECTOR_TILE + lane];

/* The product of such a row and a vector in local memory, in four sums. */
SCL_INLINE real vector_dot(const real2 pairs[VECTOR_PAIRS], __local const real2 *v) {
  real s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  SCL_UNROLL
  for (int c = 0; c < VECTOR_PAIRS; c += 2) {
    const real2 v0 = v[c], v1 = v[c + 1];
    s0 = fma(pairs[c].x, v0.x, s0);
    s1 = fma(pairs[c].y, v0.y, s1);
    s2 = fma(pairs[c + 1].x, v1.x, s2);
    s3 = fma(pairs[c + 1].y, v1.y, s3);
  }
  return (s0 + s2) + (s1 + s3);
}

/* The first `count` unknowns of the block by plain substitution, to room.now. */
SCL_INLINE_BARRIER void vector_substitute(const real given, const int count,
                                          __global const real2 *tiles, const vector_room room,
                                          const uint item) {
  real rest = given;
  for (int j = 0; j < count; j++) {
    const int place = (vector_tile(item / VECTOR_TILE, j / VECTOR_TILE) * VECTOR_PAIRS +
                       j % VECTOR_TILE / 2) * VECTOR_TILE + item % VECTOR_TILE;
    real l = 1.0;
    if (item >= j) l = j % 2 ? tiles[place].y : tiles[place].x;
    if (item == j) room.now[j] = rest / l;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item > j) rest = fma(-l, room.now[j], rest);
  }
}

/* Sums over the parts of VECTOR_LANES * count rows; afterwards work-item i has that of row i. */
SCL_INLINE_BARRIER real vector_reduce(const real *sum, const int count, const int transposed,
                                        const vector_room room, const uint item) {
  SCL_UNROLL
  for (int q = 0; q < count; q++) room.sums[q * VECTOR_BLOCK + item] = sum[q];
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint row = item / 8, first = item % 8; /* eight work-items a row */
  real total = 0.0;
  if (row < VECTOR_LANES * count) {
    __local const real *of = room.sums + row / VECTOR_LANES * VECTOR_BLOCK;
    const uint lane = row % VECTOR_LANES;
    SCL_UNROLL
    for (int m = 0; m < VECTOR_PARTS; m += 8) {
      const uint part = first + m;
      total += of[transposed ? lane * VECTOR_PARTS + part : part * VECTOR_LANES + lane];
    }
  }
  room.parts[item] = total;
  barrier(CLK_LOCAL_MEM_FENCE);
  total = 0.0;
  if (item < VECTOR_LANES * count) {
    SCL_UNROLL
    for (int m = 0; m < 8; m++) total += room.parts[8 * item + m];
  }
  return total;
}

/* Loads of `count` rows from `first` on, one part of the columns from q0 on each. */
#define VECTOR_FETCH(values, count, first, q0)                                                     \
  SCL_UNROLL                                                                                       \
  for (int q_ = 0; q_ < (count); q_++) {                                                           \
    const int p_ = min((first) + q_ * VECTOR_LANES + line, m.n - 1);                               \
    __global const real *l_ = m.T + p_ * m.row + ((q0) + part) * m.column;                         \
    SCL_UNROLL                                                                                     \
    for (int u_ = 0; u_ < VECTOR_LOADS; u_++)                                                      \
      values[q_][u_] = l_[u_ * VECTOR_PARTS * m.column];                                           \
  }

#define VECTOR_SUM(sum, count, value, v)                                                           \
  SCL_UNROLL                                                                                       \
  for (int q = 0; q < (count); q++) {                                                              \
    SCL_UNROLL                                                                                     \
    for (int u = 0; u < VECTOR_LOADS; u++)                                                         \
      sum[q] = fma(value, (v)[u * VECTOR_PARTS + part], sum[q]);                                   \
  }

SCL_INLINE_BARRIER void vector_far(const vector_system m, const int group, const int transposed,
                                   __global const real *before, const vector_room room,
                                   const uint item) {
  const int part = transposed ? item % VECTOR_PARTS : item / VECTOR_LANES;
  const int line = transposed ? item / VECTOR_PARTS : item % VECTOR_LANES;
  const int rows = VECTOR_FAR * VECTOR_LANES;
  const int first = (m.at + 2) * VECTOR_BLOCK + group * rows, mine = first + item;
  const int writes = item < rows && mine < m.n;
  real a[VECTOR_FAR][VECTOR_LOADS], sum[VECTOR_FAR];
  VECTOR_FETCH(a, VECTOR_FAR, first, (m.at - 1) * VECTOR_BLOCK)
  const real old = writes ? m.B[mine * m.step] : 0.0;
  room.before[item] = before[item];
  barrier(CLK_LOCAL_MEM_FENCE);
  SCL_UNROLL
  for (int q = 0; q < VECTOR_FAR; q++) sum[q] = 0.0;
  VECTOR_SUM(sum, VECTOR_FAR, a[q][u], room.before)
  const real total = vector_reduce(sum, VECTOR_FAR, transposed, room, item);
  if (writes) m.B[mine * m.step] = old - total;
}

SCL_INLINE_BARRIER void vector_near(const vector_system m, const int group, const int transposed,
                                    __global const real2 *tiles, __global const real *before,
                                    __global real *now, const vector_room room, const uint item) {
  const int warp = item / VECTOR_TILE, lane = item % VECTOR_TILE;
  const int part = transposed ? item % VECTOR_PARTS : item / VECTOR_LANES;
  const int line = transposed ? item / VECTOR_PARTS : item % VECTOR_LANES;
  const int rows = VECTOR_NEAR * VECTOR_LANES, here = m.at * VECTOR_BLOCK, place = here + item;
  const int first = here + VECTOR_BLOCK + group * rows, mine = first + item;
  const int writes = item < rows && mine < m.n;
  const int steps = min(VECTOR_WARPS, (m.n - here + VECTOR_TILE - 1) / VECTOR_TILE);
  const int goes_on = here + VECTOR_BLOCK < m.n;
  real2 inverse[VECTOR_PAIRS], own[VECTOR_PAIRS], strip[VECTOR_PAIRS];
  real a[VECTOR_NEAR][VECTOR_LOADS], b[VECTOR_NEAR][VECTOR_LOADS], sum[VECTOR_NEAR];
  real old = 0.0;
  const real given = place < m.n ? m.B[place * m.step] : 0.0;
  real known = 0.0;
  if (goes_on) {
    VECTOR_FETCH(a, VECTOR_NEAR, first, here)
    if (writes) old = m.B[mine * m.step];
  }
  if (m.at > 0) {
    known = before[item];
    if (goes_on) {
      VECTOR_FETCH(b, VECTOR_NEAR, first, here - VECTOR_BLOCK)
    }
  }
  if (warp == 0) {
    VECTOR_GET(inverse, warp, warp + 1)
    VECTOR_GET(own, warp, warp)
  } else {
    VECTOR_GET(strip, warp, 0)
  }
  SCL_UNROLL
  for (int q = 0; q < VECTOR_NEAR; q++) {
    sum[q] = 0.0;
    SCL_UNROLL
    for (int u = 0; u < VECTOR_LOADS; u++)
      room.panel[(q * VECTOR_LOADS + u) * VECTOR_BLOCK + item] = goes_on ? a[q][u] : 0.0;
  }
  room.before[item] = known;
  if (item == 0) *room.bad = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (warp > 0) {
    VECTOR_GET(inverse, warp, warp + 1)
    VECTOR_GET(own, warp, warp)
  }
  if (goes_on && m.at > 0) {
    VECTOR_SUM(sum, VECTOR_NEAR, b[q][u], room.before)
  }

  real rest = given;
  __local real *told = (__local real *)room.told;
  for (int s = 0; s < steps; s++) {
    VECTOR_ALONE(warp == s) {
      real x = 0.0;
      VECTOR_ONLY(warp == s) told[lane] = rest;
      VECTOR_MEET();
      VECTOR_ONLY(warp == s) {
        x = vector_dot(inverse, room.told);
        told[VECTOR_TILE + lane] = x;
      }
      VECTOR_MEET();
      VECTOR_ONLY(warp == s)
        told[2 * VECTOR_TILE + lane] = rest - vector_dot(own, room.told + VECTOR_PAIRS);
      VECTOR_MEET();
      VECTOR_ONLY(warp == s) {
        x += vector_dot(inverse, room.told + 2 * VECTOR_PAIRS);
        room.now[item] = x;
        if (!isfinite(x)) atomic_or(room.bad, 1);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (warp > s && warp < steps) {
      rest -= vector_dot(strip, (__local const real2 *)(room.now + s * VECTOR_TILE));
      if (warp > s + 1) {
        VECTOR_GET(strip, warp, s + 1)
      }
    }
  }
  if (*room.bad) vector_substitute(given, steps * VECTOR_TILE, tiles, room, item);

  if (goes_on) {
    VECTOR_SUM(sum, VECTOR_NEAR, room.panel[(q * VECTOR_LOADS + u) * VECTOR_BLOCK + item], room.now)
    const real total = vector_reduce(sum, VECTOR_NEAR, transposed, room, item);
    if (writes) m.B[mine * m.step] = old - total;
  }
  if (group == 0) {
    if (m.at > 0) m.B[(place - VECTOR_BLOCK) * m.step] = room.before[item];
    if (goes_on) now[item] = room.now[item];
    else if (place < m.n) m.B[place * m.step] = room.now[item];
  }
}

/* Tile number `which` of block at + 1, and its inverse if it lies on the diagonal. */
SCL_INLINE_BARRIER void vector_pack(const vector_system m, const int which, const int transposed,
                                    __global real *tiles, const vector_room room,
                                    const uint item) {
  int i = 0, j = which;
  while (j > i) j -= ++i;
  const int p0 = (m.at + 1) * VECTOR_BLOCK + i * VECTOR_TILE, q0 = p0 + (j - i) * VECTOR_TILE;
  __global real *to = tiles + vector_tile(i, j) * VECTOR_AREA;
  __local real *tile = room.panel, *found = room.sums;
  real values[VECTOR_AREA / VECTOR_BLOCK];
  SCL_UNROLL
  for (int e = 0; e < VECTOR_AREA / VECTOR_BLOCK; e++) {
    const uint k = item + e * VECTOR_BLOCK;
    const int a = transposed ? k / VECTOR_TILE : k % VECTOR_TILE;
    const int c = transposed ? k % VECTOR_TILE : k / VECTOR_TILE;
    const int p = min(p0 + a, m.n - 1), q = min(q0 + c, p);
    values[e] = m.T[p * m.row + q * m.column];
  }
  SCL_UNROLL
  for (int e = 0; e < VECTOR_AREA / VECTOR_BLOCK; e++) {
    const uint k = item + e * VECTOR_BLOCK;
    const int a = transposed ? k / VECTOR_TILE : k % VECTOR_TILE;
    const int c = transposed ? k % VECTOR_TILE : k / VECTOR_TILE;
    if (p0 + a >= m.n || q0 + c > p0 + a) values[e] = p0 + a == q0 + c ? 1.0 : 0.0;
    to[c / 2 * 2 * VECTOR_TILE + 2 * a + c % 2] = values[e];
    tile[c * (VECTOR_TILE + 1) + a] = values[e];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i == j) {
    /* column c of the inverse; this work-item's rows are w, w + VECTOR_WARPS, ... */
    const int c = item % VECTOR_TILE, w = item / VECTOR_TILE;
    real x[VECTOR_TILE / VECTOR_WARPS];
    if (item < VECTOR_TILE) room.parts[item] = 1.0 / tile[item * (VECTOR_TILE + 2)];
    SCL_UNROLL
    for (int r = 0; r < VECTOR_TILE / VECTOR_WARPS; r++) x[r] = w + r * VECTOR_WARPS == c;
    barrier(CLK_LOCAL_MEM_FENCE);
    SCL_UNROLL
    for (int r0 = 0; r0 < VECTOR_TILE / VECTOR_WARPS; r0++) {
      for (int turn = 0; turn < VECTOR_WARPS; turn++) {
        const int k = r0 * VECTOR_WARPS + turn;
        __local const real *l = tile + k * (VECTOR_TILE + 1);
        if (turn == w) found[k * VECTOR_TILE + c] = x[r0] *= room.parts[k];
        barrier(CLK_LOCAL_MEM_FENCE);
        const real known = found[k * VECTOR_TILE + c];
        SCL_UNROLL
        for (int r = r0; r < VECTOR_TILE / VECTOR_WARPS; r++) {
          const int a = w + r * VECTOR_WARPS;
          if (a > k) x[r] = fma(-l[a], known, x[r]);
        }
      }
    }
    to += VECTOR_AREA;
    SCL_UNROLL
    for (int r = 0; r < VECTOR_TILE / VECTOR_WARPS; r++)
      to[c / 2 * 2 * VECTOR_TILE + 2 * (w + r * VECTOR_WARPS) + c % 2] = x[r];
  }
}

/* Groups: `near` for each right-hand side, `tiles` of the next block, then far ones. */
#define VECTOR_KERNEL(name, transposed)                                                            \
  __kernel __attribute__((reqd_work_group_size(VECTOR_BLOCK, 1, 1))) void name(                    \
      const int n, const int rhs, const int at, const int near, const int tiles,                   \
      __global const real *T, const long offset_t, const long row, const long column,              \
      __global real *B, const long offset_b, const long step, const long next,                     \
      __global real2 *work) {                                                                      \
    __local real panel[VECTOR_NEAR * VECTOR_LOADS * VECTOR_BLOCK];                                 \
    __local real sums[VECTOR_FAR * VECTOR_BLOCK], parts[VECTOR_BLOCK], before[VECTOR_BLOCK];       \
    __local real2 now[VECTOR_BLOCK / 2], told[3 * VECTOR_PAIRS];                                   \
    __local int bad;                                                                               \
    const vector_room room = {panel, sums, parts, before, (__local real *)now, told, &bad};        \
    const uint item = get_local_id(0);                                                             \
    int group = get_group_id(0);                                                                   \
    const int is_near = group < near * rhs, is_pack = !is_near && group < near * rhs + tiles;      \
    if (!is_near) group -= near * rhs;                                                             \
    if (!is_near && !is_pack) group -= tiles;                                                      \
    const int share = group / rhs, side = group - share * rhs;                                     \
    vector_system m = {n, at, row, column, step, T + offset_t, B + offset_b + side * next};        \
    __global real *x = (__global real *)(work + VECTOR_PACKED) + 2 * side * VECTOR_BLOCK;          \
    __global real *x_now = x + (at & 1) * VECTOR_BLOCK;                                            \
    __global real *x_before = x + (~at & 1) * VECTOR_BLOCK;                                        \
    __global real2 *packed = work + (at & 1) * (VECTOR_PACKED / 2);                                \
    __global real2 *packed_next = work + (~at & 1) * (VECTOR_PACKED / 2);                          \
    if (is_near) {                                                                                 \
      vector_near(m, share, transposed, packed, x_before, x_now, room, item);                      \
    } else if (is_pack) {                                                                          \
      vector_pack(m, group, transposed, (__global real *)packed_next, room, item);                 \
    } else {                                                                                       \
      vector_far(m, share, transposed, x_before, room, item);                                      \
    }                                                                                              \
  }

VECTOR_KERNEL(triangular_vector_n, 0)
VECTOR_KERNEL(triangular_vector_t, 1)
