/* Triangular solves with few right-hand sides, one launch for each block of VECTOR_BLOCK unknowns.
 *
 * Forms. Unknowns are counted by position, in the order in which they are solved for: for all forms
 * the matrix is then a lower triangular L with L(p, q) = T[p * row + q * column], T being where
 * L(0, 0) lies, and unknown p of right-hand side s is B[p * unknown_step + s * side_step].
 *
 *      block  k-1  k  k+1 k+2 ..    Solving is a chain of launches. The launch for block k (`at`)
 *           +----+                  has groups of three kinds:
 *       k-1 | x  |                  near  each of them solves block k for itself: x_k. (Solving it
 *           +----+----+                   32 times costs less than waiting for another launch.)
 *       k   |    | S  |                   Then it subtracts L x from its rows of block k + 1, for
 *           +----+----+----+              x_{k-1}, which the launch before has found, and x_k.
 *       k+1 | n  | n  | P  |        pack  tiles of the diagonal block of L for the next launch, and
 *           +----+----+----+----+         the inverses of those on the diagonal. The very first
 *       k+2 | f  |    |    |    |         launch does nothing else (at = -1).
 *        .. | f  |    |    |    |   far   subtract L x_{k-1} from their rows of the blocks after
 *           +----+----+----+----+         block k + 1.
 *
 * So no group waits for another one of its launch, and the rows further down, nearly all of T, are
 * read while the chain continues. No group reads what another group of the same launch writes: x_k
 * goes to `work`, and the launch after copies it to B.
 *
 * A block is solved in steps of VECTOR_TILE unknowns, by the inverse of their tile and one
 * correction, x = X r, x += X (r - L x): without it the residual would grow with the condition of
 * the tile, and blocks of the covariance matrix of a smooth Gaussian process are as ill-conditioned
 * as the whole. Work-item i has row i of the block; the rows of a tile are one warp, of which the
 * inverse, the tile, and of the tiles to the left one ahead wait in registers. If an unknown is not
 * finite, the block is solved again by plain substitution: products with tiles and inverses would
 * spread values that are not finite to unknowns that do not depend on them.
 *
 * Packed tiles. Tile (i, j) of a block, j <= i, is number i (i + 3) / 2 + j, the inverse of (i, i)
 * follows it. Element (a, c) is number c / 2 * 2 VECTOR_TILE + 2 a + c % 2 of a tile. Beyond n L is
 * continued by the identity. `work` has the tiles of two blocks, used in turn, then for each
 * right-hand side x of two blocks.
 *
 * Rows of near and far groups are distributed as VECTOR_LANES rows by VECTOR_PARTS parts of a sum;
 * neighbours run along the contiguous direction of T. Order of summation: columns of a part, eight
 * groups of parts, the eight.
 *
 * The critical time is that from the first load to the last sum. So loads have no conditions (a row
 * beyond the end is moved to the last one) and end at a barrier before the first of them is used:
 * otherwise a compiler saves registers, and few loads overlap. Sizes: triangular.h. */

#define VECTOR_PARTS (VECTOR_BLOCK / VECTOR_LANES)
#define VECTOR_LOADS VECTOR_LANES /* columns of a part */
#define VECTOR_WARPS (VECTOR_BLOCK / VECTOR_TILE)
#define VECTOR_PAIRS (VECTOR_TILE / 2)
#define VECTOR_AREA (VECTOR_TILE * VECTOR_TILE)
#define VECTOR_TILE_ROWS (VECTOR_TILE / VECTOR_WARPS)     /* of a work-item, in vector_invert() */
#define VECTOR_TILE_ELEMENTS (VECTOR_AREA / VECTOR_BLOCK) /* of a work-item, in vector_pack() */
#define VECTOR_TILE_LD (VECTOR_TILE + 1)                  /* of a tile in local memory */

/* A barrier of the work-items of one tile. Where the hardware runs them in step, as a warp, only
 * they meet; elsewhere the whole group does, and VECTOR_ONLY says who does the work. */
#ifdef __NV_CL_C_VERSION
#define VECTOR_ALONE(condition) if (condition)
#define VECTOR_MEET() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
#define VECTOR_ONLY(condition)
#else
#define VECTOR_ALONE(condition)
#define VECTOR_MEET() barrier(CLK_LOCAL_MEM_FENCE)
#define VECTOR_ONLY(condition) if (condition)
#endif

/* The system, for one right-hand side. */
typedef struct {
  int n, at; /* at: the block of this launch */
  long row, column, step;
  __global const real *t;
  __global real *b;
} vector_system;

/* Local memory of a group. */
typedef struct {
  __local real *panel;                      /* VECTOR_LOADS * VECTOR_NEAR * VECTOR_BLOCK */
  __local real *sums;                       /* VECTOR_FAR * VECTOR_BLOCK */
  __local real *parts, *previous, *current; /* VECTOR_BLOCK each; of x: blocks k - 1 and k */
  __local real2 *shared; /* of a tile: what is solved for, solution, residual; VECTOR_PAIRS each */
  __local int *nonfinite;
} vector_scratch;

/* A work-item: its number, its line of rows, and its part of their sums. */
typedef struct {
  uint item;
  int line, part;
} vector_slot;

SCL_INLINE vector_slot vector_slot_of(const uint item, const int transposed) {
  vector_slot slot;
  slot.item = item;
  slot.part = transposed ? item % VECTOR_PARTS : item / VECTOR_LANES;
  slot.line = transposed ? item / VECTOR_PARTS : item % VECTOR_LANES;
  return slot;
}

SCL_INLINE int vector_tile(const int i, const int j) {
  return i * (i + 3) / 2 + j;
}

/* row[] = row `lane` of a packed tile. */
SCL_INLINE void vector_get(real2 row[VECTOR_PAIRS], __global const real2 *tiles, const int tile,
                           const int lane) {
  SCL_UNROLL
  for (int c = 0; c < VECTOR_PAIRS; c++) {
    row[c] = tiles[(tile * VECTOR_PAIRS + c) * VECTOR_TILE + lane];
  }
}

/* The product of such a row and a vector in local memory, in four sums. */
SCL_INLINE real vector_dot(const real2 row[VECTOR_PAIRS], __local const real2 *x) {
  real sum0 = 0.0, sum1 = 0.0, sum2 = 0.0, sum3 = 0.0;
  SCL_UNROLL
  for (int c = 0; c < VECTOR_PAIRS; c += 2) {
    const real2 x0 = x[c], x1 = x[c + 1];
    sum0 = fma(row[c].x, x0.x, sum0);
    sum1 = fma(row[c].y, x0.y, sum1);
    sum2 = fma(row[c + 1].x, x1.x, sum2);
    sum3 = fma(row[c + 1].y, x1.y, sum3);
  }
  return (sum0 + sum2) + (sum1 + sum3);
}

/* Loads `count` rows from `first` on, of each the columns of this work-item's part from `column`
 * on. */
SCL_INLINE void vector_fetch(real values[][VECTOR_LOADS], const int count,
                             const vector_system *system, const vector_slot *slot, const int first,
                             const int column) {
  SCL_UNROLL
  for (int i = 0; i < count; i++) {
    const int row = min(first + i * VECTOR_LANES + slot->line, system->n - 1);
    __global const real *from =
        system->t + row * system->row + (column + slot->part) * system->column;
    SCL_UNROLL
    for (int j = 0; j < VECTOR_LOADS; j++) values[i][j] = from[j * VECTOR_PARTS * system->column];
  }
}

/* sum[i] += the part's product of row i and x, for `count` rows. */
SCL_INLINE void vector_add(real *sum, const int count, real values[][VECTOR_LOADS],
                           __local const real *x, const int part) {
  SCL_UNROLL
  for (int i = 0; i < count; i++) {
    SCL_UNROLL
    for (int j = 0; j < VECTOR_LOADS; j++) {
      sum[i] = fma(values[i][j], x[j * VECTOR_PARTS + part], sum[i]);
    }
  }
}

/* The sums over the parts, of VECTOR_LANES * count rows; afterwards work-item i has that of row
 * i. */
SCL_INLINE_BARRIER real vector_reduce(const real *sum, const int count, const int transposed,
                                      const vector_scratch *scratch, const uint item) {
  SCL_UNROLL
  for (int i = 0; i < count; i++) scratch->sums[i * VECTOR_BLOCK + item] = sum[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint row = item / 8, first = item % 8; /* eight work-items a row */
  real total = 0.0;
  if (row < VECTOR_LANES * count) {
    __local const real *parts = scratch->sums + row / VECTOR_LANES * VECTOR_BLOCK;
    const uint lane = row % VECTOR_LANES;
    SCL_UNROLL
    for (int k = 0; k < VECTOR_PARTS; k += 8) {
      const uint part = first + k;
      total += parts[transposed ? lane * VECTOR_PARTS + part : part * VECTOR_LANES + lane];
    }
  }
  scratch->parts[item] = total;
  barrier(CLK_LOCAL_MEM_FENCE);
  total = 0.0;
  if (item < VECTOR_LANES * count) {
    SCL_UNROLL
    for (int k = 0; k < 8; k++) total += scratch->parts[8 * item + k];
  }
  return total;
}

/* ---- far groups ------------------------------------------------------------------------------ */

SCL_INLINE_BARRIER void vector_far(const vector_system *system, const int group,
                                   const int transposed, __global const real *previous,
                                   const vector_scratch *scratch, const vector_slot *slot) {
  const int rows = VECTOR_FAR * VECTOR_LANES;
  const int first = (system->at + 2) * VECTOR_BLOCK + group * rows, row = first + slot->item;
  const int writes = slot->item < rows && row < system->n;
  real values[VECTOR_FAR][VECTOR_LOADS], sum[VECTOR_FAR];
  vector_fetch(values, VECTOR_FAR, system, slot, first, (system->at - 1) * VECTOR_BLOCK);
  const real old = writes ? system->b[row * system->step] : 0.0;
  scratch->previous[slot->item] = previous[slot->item];
  barrier(CLK_LOCAL_MEM_FENCE);
  SCL_UNROLL
  for (int i = 0; i < VECTOR_FAR; i++) sum[i] = 0.0;
  vector_add(sum, VECTOR_FAR, values, scratch->previous, slot->part);
  const real total = vector_reduce(sum, VECTOR_FAR, transposed, scratch, slot->item);
  if (writes) system->b[row * system->step] = old - total;
}

/* ---- near groups ----------------------------------------------------------------------------- */

/* The first `count` unknowns of the block by plain substitution, to scratch->current; `given` is
 * the right-hand side in row `item`. */
SCL_INLINE_BARRIER void vector_substitute(const real given, const int count,
                                          __global const real2 *tiles,
                                          const vector_scratch *scratch, const uint item) {
  real rest = given;
  for (int j = 0; j < count; j++) {
    const int tile = vector_tile(item / VECTOR_TILE, j / VECTOR_TILE);
    const int at = (tile * VECTOR_PAIRS + j % VECTOR_TILE / 2) * VECTOR_TILE + item % VECTOR_TILE;
    real element = 1.0;
    if (item >= j) element = j % 2 ? tiles[at].y : tiles[at].x;
    if (item == j) scratch->current[j] = rest / element;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item > j) rest = fma(-element, scratch->current[j], rest);
  }
}

/* The unknowns of the block, to scratch->current, in `steps` tiles. Warp 0 comes with its rows of
 * the first diagonal tile and of its inverse, the others with those and `left`, the row of the tile
 * in the first column. */
SCL_INLINE_BARRIER void vector_solve(const real given, const int steps,
                                     const real2 inverse[VECTOR_PAIRS],
                                     const real2 diagonal[VECTOR_PAIRS], real2 left[VECTOR_PAIRS],
                                     __global const real2 *tiles, const vector_scratch *scratch,
                                     const uint item) {
  const int warp = item / VECTOR_TILE, lane = item % VECTOR_TILE;
  __local real *shared = (__local real *)scratch->shared;
  real rest = given;
  for (int now = 0; now < steps; now++) {
    VECTOR_ALONE(warp == now) {
      real x = 0.0;
      VECTOR_ONLY(warp == now) shared[lane] = rest;
      VECTOR_MEET();
      VECTOR_ONLY(warp == now) {
        x = vector_dot(inverse, scratch->shared);
        shared[VECTOR_TILE + lane] = x;
      }
      VECTOR_MEET();
      VECTOR_ONLY(warp == now)
      shared[2 * VECTOR_TILE + lane] = rest - vector_dot(diagonal, scratch->shared + VECTOR_PAIRS);
      VECTOR_MEET();
      VECTOR_ONLY(warp == now) {
        x += vector_dot(inverse, scratch->shared + 2 * VECTOR_PAIRS);
        scratch->current[item] = x;
        if (!isfinite(x)) atomic_or(scratch->nonfinite, 1);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (warp > now && warp < steps) {
      rest -= vector_dot(left, (__local const real2 *)(scratch->current + now * VECTOR_TILE));
      if (warp > now + 1) vector_get(left, tiles, vector_tile(warp, now + 1), lane);
    }
  }
  if (*scratch->nonfinite) vector_substitute(given, steps * VECTOR_TILE, tiles, scratch, item);
}

SCL_INLINE_BARRIER void vector_near(const vector_system *system, const int group,
                                    const int transposed, __global const real2 *tiles,
                                    __global const real *previous, __global real *current,
                                    const vector_scratch *scratch, const vector_slot *slot) {
  const uint item = slot->item;
  const int warp = item / VECTOR_TILE, lane = item % VECTOR_TILE, at = system->at, n = system->n;
  const int begin = at * VECTOR_BLOCK, unknown = begin + item; /* of this work-item */
  const int rows = VECTOR_NEAR * VECTOR_LANES, first = begin + VECTOR_BLOCK + group * rows;
  const int row = first + item, writes = item < rows && row < n; /* row of the next block */
  const int steps = min(VECTOR_WARPS, (n - begin + VECTOR_TILE - 1) / VECTOR_TILE);
  const int goes_on = begin + VECTOR_BLOCK < n;
  real2 inverse[VECTOR_PAIRS], diagonal[VECTOR_PAIRS], left[VECTOR_PAIRS];
  real below[VECTOR_NEAR][VECTOR_LOADS], before[VECTOR_NEAR][VECTOR_LOADS], sum[VECTOR_NEAR];
  real old = 0.0, known = 0.0;

  /* All loads: rows of the next block, in the columns of this block and of the one before it, and
   * the tiles that are needed first. */
  const real given = unknown < n ? system->b[unknown * system->step] : 0.0;
  if (goes_on) {
    vector_fetch(below, VECTOR_NEAR, system, slot, first, begin);
    if (writes) old = system->b[row * system->step];
  }
  if (at > 0) {
    known = previous[item];
    if (goes_on) vector_fetch(before, VECTOR_NEAR, system, slot, first, begin - VECTOR_BLOCK);
  }
  if (warp == 0) {
    vector_get(inverse, tiles, vector_tile(warp, warp + 1), lane);
    vector_get(diagonal, tiles, vector_tile(warp, warp), lane);
  } else {
    vector_get(left, tiles, vector_tile(warp, 0), lane);
  }
  SCL_UNROLL
  for (int i = 0; i < VECTOR_NEAR; i++) {
    sum[i] = 0.0;
    SCL_UNROLL
    for (int j = 0; j < VECTOR_LOADS; j++) {
      scratch->panel[(i * VECTOR_LOADS + j) * VECTOR_BLOCK + item] = goes_on ? below[i][j] : 0.0;
    }
  }
  scratch->previous[item] = known;
  if (item == 0) *scratch->nonfinite = 0;
  barrier(CLK_LOCAL_MEM_FENCE);

  if (warp > 0) {
    vector_get(inverse, tiles, vector_tile(warp, warp + 1), lane);
    vector_get(diagonal, tiles, vector_tile(warp, warp), lane);
  }
  if (goes_on && at > 0) vector_add(sum, VECTOR_NEAR, before, scratch->previous, slot->part);
  vector_solve(given, steps, inverse, diagonal, left, tiles, scratch, item);
  if (goes_on) {
    SCL_UNROLL
    for (int i = 0; i < VECTOR_NEAR; i++) {
      SCL_UNROLL
      for (int j = 0; j < VECTOR_LOADS; j++) {
        sum[i] = fma(scratch->panel[(i * VECTOR_LOADS + j) * VECTOR_BLOCK + item],
                     scratch->current[j * VECTOR_PARTS + slot->part], sum[i]);
      }
    }
    const real total = vector_reduce(sum, VECTOR_NEAR, transposed, scratch, item);
    if (writes) system->b[row * system->step] = old - total;
  }
  if (group == 0) {
    if (at > 0) system->b[(unknown - VECTOR_BLOCK) * system->step] = scratch->previous[item];
    if (goes_on)
      current[item] = scratch->current[item];
    else if (unknown < n)
      system->b[unknown * system->step] = scratch->current[item];
  }
}

/* ---- packing --------------------------------------------------------------------------------- */

/* The inverse of a tile in local memory, to `to`: column c by substitution with VECTOR_WARPS
 * work-items, of which number w has the rows w, w + VECTOR_WARPS, ... */
SCL_INLINE_BARRIER void vector_invert(__local const real *tile, __global real *to,
                                      const vector_scratch *scratch, const uint item) {
  const int c = item % VECTOR_TILE, warp = item / VECTOR_TILE;
  __local real *found = scratch->sums, *reciprocals = scratch->parts;
  real x[VECTOR_TILE_ROWS];
  if (item < VECTOR_TILE) reciprocals[item] = 1.0 / tile[item * (VECTOR_TILE_LD + 1)];
  SCL_UNROLL
  for (int i = 0; i < VECTOR_TILE_ROWS; i++) x[i] = warp + i * VECTOR_WARPS == c;
  barrier(CLK_LOCAL_MEM_FENCE);
  SCL_UNROLL
  for (int begin = 0; begin < VECTOR_TILE_ROWS; begin++) {
    for (int turn = 0; turn < VECTOR_WARPS; turn++) {
      const int k = begin * VECTOR_WARPS + turn;
      __local const real *column = tile + k * VECTOR_TILE_LD;
      if (turn == warp) found[k * VECTOR_TILE + c] = x[begin] *= reciprocals[k];
      barrier(CLK_LOCAL_MEM_FENCE);
      const real known = found[k * VECTOR_TILE + c];
      SCL_UNROLL
      for (int i = begin; i < VECTOR_TILE_ROWS; i++) {
        const int row = warp + i * VECTOR_WARPS;
        if (row > k) x[i] = fma(-column[row], known, x[i]);
      }
    }
  }
  SCL_UNROLL
  for (int i = 0; i < VECTOR_TILE_ROWS; i++) {
    to[c / 2 * 2 * VECTOR_TILE + 2 * (warp + i * VECTOR_WARPS) + c % 2] = x[i];
  }
}

/* Tile number `index` of block at + 1, and its inverse if it lies on the diagonal. */
SCL_INLINE_BARRIER void vector_pack(const vector_system *system, const int index,
                                    const int transposed, __global real *tiles,
                                    const vector_scratch *scratch, const uint item) {
  int i = 0, j = index;
  while (j > i) j -= ++i;
  const int n = system->n, row0 = (system->at + 1) * VECTOR_BLOCK + i * VECTOR_TILE;
  const int column0 = row0 + (j - i) * VECTOR_TILE;
  __global real *to = tiles + vector_tile(i, j) * VECTOR_AREA;
  __local real *tile = scratch->panel;
  real values[VECTOR_TILE_ELEMENTS];
  SCL_UNROLL
  for (int k = 0; k < VECTOR_TILE_ELEMENTS; k++) {
    const uint element = item + k * VECTOR_BLOCK;
    const int a = transposed ? element / VECTOR_TILE : element % VECTOR_TILE;
    const int c = transposed ? element % VECTOR_TILE : element / VECTOR_TILE;
    const int row = min(row0 + a, n - 1), column = min(column0 + c, row);
    values[k] = system->t[row * system->row + column * system->column];
  }
  SCL_UNROLL
  for (int k = 0; k < VECTOR_TILE_ELEMENTS; k++) {
    const uint element = item + k * VECTOR_BLOCK;
    const int a = transposed ? element / VECTOR_TILE : element % VECTOR_TILE;
    const int c = transposed ? element % VECTOR_TILE : element / VECTOR_TILE;
    const int row = row0 + a, column = column0 + c;
    if (row >= n || column > row) values[k] = row == column ? 1.0 : 0.0;
    to[c / 2 * 2 * VECTOR_TILE + 2 * a + c % 2] = values[k];
    tile[c * VECTOR_TILE_LD + a] = values[k];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i == j) vector_invert(tile, to + VECTOR_AREA, scratch, item);
}

/* ---- the kernels ----------------------------------------------------------------------------- */

/* The work of a group. They are counted: `near` for each right-hand side, `tiles` of the next
 * block, then far ones. */
SCL_INLINE_BARRIER void vector_group(vector_system system, const vector_scratch *scratch,
                                     __global real2 *work, const int rhs, const long next,
                                     const int near, const int tiles, const int transposed,
                                     int group, const uint item) {
  const int at = system.at;
  const int is_near = group < near * rhs, is_pack = !is_near && group < near * rhs + tiles;
  if (!is_near) group -= near * rhs;
  if (!is_near && !is_pack) group -= tiles;
  const int share = group / rhs, side = group - share * rhs;
  const vector_slot slot = vector_slot_of(item, transposed);
  __global real *x = (__global real *)(work + VECTOR_PACKED) + 2 * side * VECTOR_BLOCK;
  __global real *current = x + (at & 1) * VECTOR_BLOCK;
  __global real *previous = x + (~at & 1) * VECTOR_BLOCK;
  __global real2 *packed = work + (at & 1) * (VECTOR_PACKED / 2);
  __global real2 *packed_next = work + (~at & 1) * (VECTOR_PACKED / 2);
  system.b += side * next;
  if (is_near) {
    vector_near(&system, share, transposed, packed, previous, current, scratch, &slot);
  } else if (is_pack) {
    vector_pack(&system, group, transposed, (__global real *)packed_next, scratch, item);
  } else {
    vector_far(&system, share, transposed, previous, scratch, &slot);
  }
}

/* Whether T is transposed is a constant in each kernel. */
#define VECTOR_KERNEL(name, transposed)                                                            \
  __kernel __attribute__((reqd_work_group_size(VECTOR_BLOCK, 1, 1))) void name(                    \
      __global const real *t, const long t_offset, __global real *b, const long b_offset,          \
      __global real2 *work, const triangular_vector_task task) {                                   \
    __local real panel[VECTOR_NEAR * VECTOR_LOADS * VECTOR_BLOCK];                                 \
    __local real sums[VECTOR_FAR * VECTOR_BLOCK], parts[VECTOR_BLOCK], previous[VECTOR_BLOCK];     \
    __local real2 current[VECTOR_BLOCK / 2], shared[3 * VECTOR_PAIRS];                             \
    __local int nonfinite;                                                                         \
    const vector_scratch scratch = {panel,  sums,      parts, previous, (__local real *)current,   \
                                    shared, &nonfinite};                                           \
    const vector_system system = {task.n,            task.at,      task.row,    task.column,       \
                                  task.unknown_step, t + t_offset, b + b_offset};                  \
    vector_group(system, &scratch, work, task.rhs, task.side_step, task.near, task.tiles,          \
                 transposed, get_group_id(0), get_local_id(0));                                    \
  }

VECTOR_KERNEL(triangular_vector_n, 0)
VECTOR_KERNEL(triangular_vector_t, 1)
