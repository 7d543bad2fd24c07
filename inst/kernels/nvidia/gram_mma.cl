/* The lower half of X' W X, for a tall X of at most GRAM_COLUMNS columns and a diagonal W (or
 * none), by the matrix instructions of NVIDIA devices (mma.h). X is read once.
 *
 *        X, n x p               ring in local memory           registers of the warps
 *   +--------------+              +-----------+
 *   | part 0       |  group 0     | 16 rows   |           X'  +------+
 *   |              |  ========>   +-----------+  ======>      |0     |   X' W X of the part:
 *   +--------------+              | 16 rows   |               |1  \  |   a warp has two of its
 *   | part 1       |  group 1     +-----------+               |1    \|   rows of tiles, a long
 *   +--------------+              | 16 rows   |               |0     |   one and a short one
 *   | ...          |              +-----------+               +------+
 *
 * A group adds up the products of `rows` rows of X, 16 at a time, and writes their sum to its own
 * p x p matrix; gram_sum (portable/gram.cl) adds these in order. Asynchronous copies fill a ring of
 * three stages, two of them ahead; there is a barrier after every stage.
 *
 * The result is cut into tiles of 16 x 8, and the lower half of row i of tiles has those of columns
 * 0 to 2i + 1. With an even number of rows of tiles warp w has the rows GRAM_HIGHEST - w and w,
 * which are as many tiles for every warp. With seven, warps 0 and 1 share row 0. A warp keeps its
 * GRAM_SLOTS tiles in registers: those of the long row first, then those of the short one.
 *
 * The fragments of both operands of the instruction are the same numbers: with q = quad, its rows q
 * and q + 8 stand for columns q and q + 8 of X, its columns for columns q, its k = member and
 * member + 4 for rows 2 member and 2 member + 1 of a half stage. So a lane reads pairs of rows. A
 * column is 128 bytes of a stage; in odd columns its halves are exchanged, so that no two lanes
 * meet in a bank. Weights multiply the left operand.
 *
 * Rows past the end are copied as 0, as are columns past the last; their results are not written. X
 * has an even offset and leading dimension. */

/* GRAM_NAME; GRAM_BLOCKS: eighths of the columns that a stage holds, even or 13. */
#define GRAM_COLUMNS (8 * GRAM_BLOCKS)
#define GRAM_STAGES 3
#define GRAM_STAGE (GRAM_COLUMNS * GRAM_ROWS)
#define GRAM_HIGHEST ((GRAM_BLOCKS - 1) / 2) /* the last row of tiles */
#define GRAM_SEVEN (GRAM_BLOCKS == 13)
#define GRAM_WARPS (GRAM_SEVEN ? 4 : GRAM_BLOCKS / 4)
#define GRAM_ITEMS (32 * GRAM_WARPS)
#define GRAM_SLOTS (GRAM_SEVEN ? 14 : GRAM_BLOCKS + 2)
#define GRAM_SHORTEST (GRAM_SEVEN ? 8 : GRAM_BLOCKS / 2 + 2) /* long row of any warp */
#define GRAM_BLOCK (8 * GRAM_ROWS)                           /* numbers of eight columns */

/* The tiles of a warp: tiles 0 ... split - 1 of the long row of tiles, then those of the short one
 * from tile column `first` on. */
typedef struct {
  int high, low, split, first;
} gram_share;

MMA_INLINE gram_share gram_share_of(const int warp) {
  gram_share share = {GRAM_HIGHEST - warp, warp, 2 * (GRAM_HIGHEST - warp) + 2, 0};
  if (GRAM_SEVEN) {
    share.low = max(warp - 1, 0);
    share.split = min(share.split, GRAM_BLOCKS);
    share.first = warp == 1;
  }
  return share;
}

/* Of slot t: whether it is in the short row, and its column of tiles. */
MMA_INLINE int gram_is_low(const gram_share *share, const int t) {
  return t >= GRAM_SHORTEST && t >= share->split;
}

MMA_INLINE int gram_column(const gram_share *share, const int t) {
  return gram_is_low(share, t) ? t - share->split + share->first : t;
}

/* Starts the copies of the 16 rows from `row` on: pairs of rows, `from` being the work-item's
 * column and pair of row 0. Rows from `end` on become 0. */
MMA_INLINE void gram_fetch(mma_copies *copies, __local real *stage, __global const real *from,
                           const int ld, const int row, const int end, const int p,
                           const int item) {
  const int pair = item & 7, column = item >> 3;
  const int bytes = 8 * clamp(end - row - 2 * pair, 0, 2);
  __local real *to = stage + column * GRAM_ROWS + 2 * (pair ^ (column & 1) << 2);
  from += row;
  SCL_UNROLL
  for (int j = 0; j < GRAM_COLUMNS; j += GRAM_ITEMS / 8) {
    if (j + GRAM_ITEMS / 8 <= GRAM_COLUMNS || j + column < GRAM_COLUMNS)
      mma_copy_16(copies, to + j * GRAM_ROWS, from, j + column < p ? bytes : 0);
    from += (long)(GRAM_ITEMS / 8) * ld;
  }
  mma_commit(copies);
}

/* The weights of the rows of a stage that a lane has: of the first half, then of the second. */
MMA_INLINE void gram_weigh(real2 weight[2], __global const real *w, const int row, const int end,
                           const int member) {
  SCL_UNROLL
  for (int s = 0; s < 2; s++) {
    const int at = row + 8 * s + 2 * member;
    weight[s] = (real2)(at < end ? w[at] : 0.0, at + 1 < end ? w[at + 1] : 0.0);
  }
}

/* sums += X' W X of half a stage; `from` is the lane's pair in column quad of it. */
MMA_COLLECTIVE void gram_add(const mma_lane lane, real sums[GRAM_SLOTS][4],
                             __local const real *from, const gram_share *share, const int weighted,
                             const real2 weight) {
  const int last = min(2 * share->high + 1, GRAM_BLOCKS - 1);
  real2 high[2], low[2];
  high[0] = *(__local const real2 *)(from + 2 * share->high * GRAM_BLOCK);
  high[1] = *(__local const real2 *)(from + last * GRAM_BLOCK);
  low[0] = *(__local const real2 *)(from + 2 * share->low * GRAM_BLOCK);
  low[1] = *(__local const real2 *)(from + (2 * share->low + 1) * GRAM_BLOCK);
  if (weighted) {
    SCL_UNROLL
    for (int h = 0; h < 2; h++) {
      high[h] *= weight;
      low[h] *= weight;
    }
  }
  SCL_UNROLL
  for (int t = 0; t < GRAM_SLOTS; t++) {
    const int is_low = gram_is_low(share, t);
    const real2 b = *(__local const real2 *)(from + gram_column(share, t) * GRAM_BLOCK);
    const real2 a0 = is_low ? low[0] : high[0], a1 = is_low ? low[1] : high[1];
    mma_8(lane, sums[t], a0.x, a1.x, a0.y, a1.y, b.x, b.y);
  }
}

/* A warp's tiles to the lower half of a p x p matrix. */
MMA_INLINE void gram_write(real sums[GRAM_SLOTS][4], __global real *c, const int p,
                           const gram_share *share, const mma_lane lane) {
  SCL_UNROLL
  for (int t = 0; t < GRAM_SLOTS; t++) {
    const int row0 = 16 * (gram_is_low(share, t) ? share->low : share->high) + lane.quad;
    const int column0 = 8 * gram_column(share, t) + 2 * lane.member;
    SCL_UNROLL
    for (int e = 0; e < 4; e++) {
      const int row = row0 + 8 * (e >> 1), column = column0 + (e & 1);
      if (row < p && column <= row) c[row + column * p] = sums[t][e];
    }
  }
}

__kernel __attribute__((reqd_work_group_size(GRAM_ITEMS, 1, 1))) void
GRAM_NAME(__global const real *x, __global const real *w, __global real *parts,
          const gram_task task) {
  __local real ring[GRAM_STAGES * GRAM_STAGE] __attribute__((aligned(128)));
  MMA_LANE(lane, GRAM_WARPS);
  const int item = get_local_id(0), group = get_group_id(0), p = task.p, ld = task.x_ld;
  const int begin = group * task.rows, end = min(begin + task.rows, task.n);
  const gram_share share = gram_share_of(item >> 5);
  __global const real *from = x + task.x_offset + (long)(item >> 3) * ld + 2 * (item & 7);
  mma_copies copies = MMA_NO_COPIES;
  real sums[GRAM_SLOTS][4];
  real2 weight[2] = {(real2)(1.0), (real2)(1.0)};
  w += task.w_offset;
  SCL_UNROLL
  for (int t = 0; t < GRAM_SLOTS; t++) {
    SCL_UNROLL
    for (int e = 0; e < 4; e++) sums[t][e] = 0.0;
  }
  int to = 0, at = 0;
  for (int s = 0; s < GRAM_STAGES - 1; s++) {
    gram_fetch(&copies, ring + to, from, ld, begin + s * GRAM_ROWS, end, p, item);
    to += GRAM_STAGE;
  }
  for (int row = begin; row < end; row += GRAM_ROWS) {
    if (task.weighted) gram_weigh(weight, w, row, end, lane.member);
    MMA_WAIT(&copies, GRAM_STAGES - 2);
    barrier(CLK_LOCAL_MEM_FENCE);
    gram_fetch(&copies, ring + to, from, ld, row + (GRAM_STAGES - 1) * GRAM_ROWS, end, p, item);
    to = to == (GRAM_STAGES - 1) * GRAM_STAGE ? 0 : to + GRAM_STAGE;
    SCL_UNROLL
    for (int s = 0; s < 2; s++) {
      const int side = (8 * s) ^ (lane.quad & 1) << 3; /* halves of odd columns are exchanged */
      gram_add(lane, sums, ring + at + lane.quad * GRAM_ROWS + 2 * lane.member + side, &share,
               task.weighted, weight[s]);
    }
    at = at == (GRAM_STAGES - 1) * GRAM_STAGE ? 0 : at + GRAM_STAGE;
  }
  gram_write(sums, parts + (long)group * p * p, p, &share, lane);
}
