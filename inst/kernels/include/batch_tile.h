/* Batches of matrices of order 9 to 128: P x Q work-items a matrix, BATCH_MATRICES a group.
 *
 *   columns  0 1   2 3   4 5   6 7 ..        For P = Q = 2: each box is a pair of rows by a pair of
 *         +-----+-----+-----+-----+          columns, and says the (ti, tj) of the work-item that
 *  rows 0 | 0,0 | 0,1 | 0,0 | 0,1 |          has it in registers.
 *       1 |     |     |     |     |
 *         +-----+-----+-----+-----+
 *       2 | 1,0 | 1,1 | 1,0 | 1,1 |
 *       3 |     |     |     |     |
 *         +-----+-----+-----+-----+
 *
 * Work-item (ti, tj) holds in registers pairs of rows, 2 ti + 2 P r, and of columns, 2 tj + 2 Q c:
 * t[r][c] is element (ROW(r), COLUMN(c)). So every work-item has work until the last columns, a
 * step of elimination needs TILE_ROWS + TILE_COLUMNS numbers from local memory, two at a time, for
 * TILE_ROWS * TILE_COLUMNS multiplications, and register numbers are constants when the loop over
 * columns runs over their pairs of registers outside, unrolled (PAIR), and over tj inside (q). No
 * condition compares a register number with a variable: a compiler may then use the variable as an
 * index, and the tile leaves the registers.
 * Rows and columns beyond the order n are those of an identity matrix.
 *
 * Defined by whoever builds: BATCH_KERNEL, BATCH_N (the largest order), BATCH_P, BATCH_Q (divides
 * BATCH_P), BATCH_MATRICES; 2 BATCH_P divides BATCH_N. */
#define P BATCH_P
#define Q BATCH_Q
#define LANES (P * Q)
#define BATCH_ITEMS (LANES * BATCH_MATRICES)
#define TILE_ROWS (BATCH_N / P)
#define TILE_COLUMNS (BATCH_N / Q)

#ifdef SCL_CPU /* compilers for CPUs take minutes over it */
#define TILE_UNROLL
#else
#define TILE_UNROLL SCL_UNROLL
#endif
#define TILE_ROLLED _Pragma("unroll 1") /* one body of code: it stays near the processor */
#define EACH_ROW(r) TILE_UNROLL for (int r = 0; r < TILE_ROWS; r++)
#define EACH_COLUMN(c) TILE_UNROLL for (int c = 0; c < TILE_COLUMNS; c++)
#define EACH_ROW_PAIR(r) TILE_UNROLL for (int r = 0; r < TILE_ROWS; r += 2)
#define EACH_COLUMN_PAIR(c) TILE_UNROLL for (int c = 0; c < TILE_COLUMNS; c += 2)
#define ROW(r) ((r) / 2 * 2 * P + 2 * ti + (r) % 2)
#define COLUMN(c) ((c) / 2 * 2 * Q + 2 * tj + (c) % 2)
/* Other places of columns, of kernels that take one column a step. */
#define SINGLE(c) ((c) * Q + tj)
#define BLOCKED(c) (tj * TILE_COLUMNS + (c))
/* Register columns after which such a kernel goes on with a narrower tile. */
#define STAGE (TILE_COLUMNS % 4 == 0 ? TILE_COLUMNS / 2 : TILE_COLUMNS / 3)

/* The pairs of columns in order: registers b and b + 1 of the work-items tj == q hold the columns
 * PAIR(b, q) and the next; registers ROW_PAIR(b) and the next of ti == ROW_LANE(b, q) the rows of
 * the same numbers. */
#define PAIR(b, q) ((b) * Q + 2 * (q))
#define ROW_PAIR(b) ((b) * Q / (2 * P) * 2)
#define ROW_LANE(b, q) (((b) / 2 * Q + (q)) % P)

/* Where a work-item is: its lane, its place in the tile, its matrix in the group and in the batch.
 */
#define TILE_PLACE                                                                                 \
  const int item = (int)get_local_id(0), mine = item / LANES, lane = item - mine * LANES;          \
  const int tj = lane / P, ti = lane - tj * P;                                                     \
  const long matrix = (long)get_group_id(0) * BATCH_MATRICES + mine;                               \
  const bool live = matrix < batch;

/* Whether pairs of rows of all matrices lie on 16 bytes. */
#define TILE_PAIRS(offset, step) (n % 2 == 0 && (offset) % 2 == 0 && (step) % 2 == 0)

/* A pair to a place on 16 bytes. vstore2() would do, but knows of 8 bytes only. Elsewhere it does:
 * the simulator that looks for faults takes the first form for a store of nothing. */
#ifdef __NV_CL_C_VERSION
#define STORE_PAIR(at, space, x, y) *(space real2 *)(at) = (real2)(x, y)
#else
#define STORE_PAIR(at, space, x, y) vstore2((real2)(x, y), 0, at)
#endif

/* The elements (i, j) and (i + 1, j) from g on, those of the identity beyond the order. */
SCL_INLINE real2 tile_load(__global const real *g, int i, int j, int n, bool live, bool pairs) {
  real2 v = (real2)(i == j ? 1.0 : 0.0, i + 1 == j ? 1.0 : 0.0);
  if (live && i < n && j < n) {
    if (pairs) {
      v = *(__global const real2 *)(g + i + j * n);
    } else {
      v.x = g[i + j * n];
      if (i + 1 < n) v.y = g[i + 1 + j * n];
    }
  }
  return v;
}

SCL_INLINE void tile_store(__global real *g, int i, int j, int n, bool pairs, real x,
                           real y) {
  if (i < n && j < n) {
    if (pairs) {
      STORE_PAIR(g + i + j * n, __global, x, y);
    } else {
      g[i + j * n] = x;
      if (i + 1 < n) g[i + 1 + j * n] = y;
    }
  }
}

/* The matrix to the tile, as far as which(r, c) says; `column` is COLUMN, SINGLE or BLOCKED. Loads
 * without conditions are under way together. */
#define TILE_LOAD(g, column, pairs, which)                                                         \
  if (live && (pairs) && n == BATCH_N) {                                                           \
    EACH_COLUMN(c) {                                                                               \
      EACH_ROW_PAIR(r) {                                                                           \
        real2 v = (real2)(0.0, 0.0);                                                               \
        if (which(r, c)) v = *(__global const real2 *)((g) + ROW(r) + column(c) * BATCH_N);        \
        t[r][c] = v.x;                                                                             \
        t[r + 1][c] = v.y;                                                                         \
      }                                                                                            \
    }                                                                                              \
  } else {                                                                                         \
    EACH_COLUMN(c) {                                                                               \
      EACH_ROW_PAIR(r) {                                                                           \
        real2 v = tile_load(g, ROW(r), column(c), n, live && which(r, c), pairs);                  \
        t[r][c] = v.x;                                                                             \
        t[r + 1][c] = v.y;                                                                         \
      }                                                                                            \
    }                                                                                              \
  }
#define ALL(r, c) true

/* The status of this matrix, told by one work-item. */
#define TILE_STATUS(status)                                                                        \
  if (lane == 0) {                                                                                 \
    if (flags & BATCH_STATUSES) ((__global uchar *)statuses)[matrix] = (uchar)(status);            \
    if ((status) != 0) *any = 1;                                                                   \
  }

/* A pair of numbers in local memory, of which the first is even. */
SCL_INLINE real2 pair_get(__local const real *s, int i) {
  return *(__local const real2 *)(s + i);
}

SCL_INLINE void pair_put(__local real *s, int i, real x, real y) {
  STORE_PAIR(s + i, __local, x, y);
}

/* Where all work-items of a group meet. A group of 32 is one warp of an NVIDIA device, which waits
 * for itself sooner. */
#if defined(__NV_CL_C_VERSION) && BATCH_P * BATCH_Q * BATCH_MATRICES == 32
#define TILE_BARRIER asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#else
#define TILE_BARRIER barrier(CLK_LOCAL_MEM_FENCE);
#endif

/* ---- elimination with row pivoting ----------------------------------------------------------- */

/* What the work-items of a matrix tell each other: column and pivot row of the step, of each ti its
 * best row, and of each step its pivot and row. */
typedef struct {
  real column[BATCH_N], row[BATCH_N], pivots[BATCH_N];
  uint keys[P < 4 ? 4 : P];
  int chosen[BATCH_N];
} __attribute__((aligned(16))) tile_steps;

/* Keys order numbers by size, a NaN first, then by row, the upper first. The last 7 bits of a
 * number's upper half give way to the row: sizes that differ by less than one part in 2^13 count as
 * equal. ROW_CODE is that of ti == 0; others change bits that are set in it. */
#define ROW_CODE(r) (127 ^ ((r) / 2 * 2 * P + (r) % 2))

SCL_INLINE uint tile_key(real v, uint code) {
  return ((uint)(as_ulong(v) >> 32) & 0x7fffff80u) | code;
}

SCL_INLINE int tile_pivot(__local const uint *keys) {
  uint best = keys[0];
  SCL_UNROLL for (int i = 1; i < P; i++) best = max(best, keys[i]);
  return 127 - (int)(best & 127u);
}

/* The work-items that hold column k in register column 0 publish it, each with its best row that
 * was no pivot yet (a bit of `used`). */
#define TILE_PUBLISH_COLUMN                                                                        \
  {                                                                                                \
    uint best = 0;                                                                                 \
    EACH_ROW_PAIR(r) {                                                                             \
      pair_put(steps->column, ROW(r), t[r][0], t[r + 1][0]);                                       \
      best = max(best, used >> r & 1 ? 0u : tile_key(t[r][0], ROW_CODE(r)));                       \
      best = max(best, used >> (r + 1) & 1 ? 0u : tile_key(t[r + 1][0], ROW_CODE(r + 1)));         \
    }                                                                                              \
    steps->keys[ti] = best == 0 ? 0u : best ^ (uint)(2 * ti);                                      \
  }

/* Status of a pivot, by its exponent: 0 means a size below BATCH_SINGULAR_BELOW. */
SCL_INLINE int tile_status(real pivot, int k) {
  const int exponent = (int)(as_ulong(pivot) >> 52 & 2047);
  return exponent == 0 ? k + 1 : exponent == 2047 ? BATCH_NONFINITE : 0;
}
