/* Batches of matrices of order 9 to 128: a grid of BATCH_P x BATCH_Q work-items for each matrix,
 * BATCH_MATRICES matrices for each group. Example: a 2 x 2 grid; each box is a pair of rows by a
 * pair of columns, and names the work-item (ti, tj) that has it in registers.
 *
 *   columns  0 1   2 3   4 5   6 7        Work-item (ti, tj) holds pairs of rows, 2 BATCH_P apart,
 *         +-----+-----+-----+-----+       and pairs of columns, 2 BATCH_Q apart: tile[r][c] is
 *  rows 0 | 0,0 | 0,1 | 0,0 | 0,1 |       element (TILE_ROW(ti, r), TILE_COLUMN(tj, c)). So all
 *       1 |     |     |     |     |       have work until the last columns.
 *         +-----+-----+-----+-----+
 *       2 | 1,0 | 1,1 | 1,0 | 1,1 |       A step of elimination reads TILE_ROWS + TILE_COLUMNS
 *       3 |     |     |     |     |       numbers from local memory, two at a time, for TILE_ROWS *
 *         +-----+-----+-----+-----+       TILE_COLUMNS multiplications.
 *
 * Each element is updated by one work-item, step by step: that is the order of summation. Rows and
 * columns beyond the order n are those of an identity matrix.
 *
 * Register numbers must be constants, or the tile leaves the registers. So loops over columns run
 * over their pairs of registers outside, unrolled (TILE_PAIR), and over tj inside; and no condition
 * compares a register number with a variable, which a compiler may then use as an index.
 *
 * A kernel declares the role of a work-item in single variables, from its number in the group (POCL
 * 3.1 takes members of a struct for the same in all work-items): its matrix in the group (slot) and
 * in the batch (matrix), whether there is such a matrix (live), its number among the work-items of
 * the matrix (lane), and its position in the grid (ti, tj).
 *
 * To define before: BATCH_KERNEL (the kernel's name), BATCH_N (the largest order), BATCH_P (a power
 * of 2; 2 BATCH_P divides BATCH_N), BATCH_Q (divides BATCH_P), BATCH_MATRICES (of a group). */
#define TILE_LANES (BATCH_P * BATCH_Q)
#define BATCH_ITEMS (TILE_LANES * BATCH_MATRICES)
#define TILE_ROWS (BATCH_N / BATCH_P)
#define TILE_COLUMNS (BATCH_N / BATCH_Q)

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
/* The row and the column of register (r, c). */
#define TILE_ROW(ti, r) ((r) / 2 * 2 * BATCH_P + 2 * (ti) + (r) % 2)
#define TILE_COLUMN(tj, c) ((c) / 2 * 2 * BATCH_Q + 2 * (tj) + (c) % 2)
/* Other layouts of the columns, of kernels that take one column a step: cyclic, or side by side. */
#define TILE_CYCLIC(tj, c) ((c) * BATCH_Q + (tj))
#define TILE_BLOCKED(tj, c) ((tj) * TILE_COLUMNS + (c))
/* Register columns after which a kernel with cyclic columns goes on with a narrower tile. */
#define TILE_STAGE (TILE_COLUMNS % 4 == 0 ? TILE_COLUMNS / 2 : TILE_COLUMNS / 3)

/* The pairs of columns in order: registers c and c + 1 of the work-items with tj == owner hold the
 * columns TILE_PAIR(c, owner) and the next; registers TILE_ROW_PAIR(c) and the next of those with
 * ti == TILE_ROW_LANE(c, owner) hold the rows of the same numbers. */
#define TILE_PAIR(c, owner) ((c) * BATCH_Q + 2 * (owner))
#define TILE_ROW_PAIR(c) ((c) * BATCH_Q / (2 * BATCH_P) * 2)
#define TILE_ROW_LANE(c, owner) (((c) / 2 * BATCH_Q + (owner)) % BATCH_P)

/* ---- memory ---------------------------------------------------------------------------------- */

/* Whether pairs of rows of all matrices are aligned to 16 bytes. */
#define TILE_PAIRS(n, offset, step) ((n) % 2 == 0 && (offset) % 2 == 0 && (step) % 2 == 0)

/* Writes a pair that is aligned to 16 bytes. vstore2() assumes only 8 bytes; it is used on other
 * devices, because the tests' simulator reads the first form as a store of nothing. */
#ifdef __NV_CL_C_VERSION
#define STORE_PAIR(to, space, x, y) *(space real2 *)(to) = (real2)(x, y)
#else
#define STORE_PAIR(to, space, x, y) vstore2((real2)(x, y), 0, to)
#endif

/* The elements (i, j) and (i + 1, j) of a matrix, those of the identity beyond the order. */
SCL_INLINE real2 tile_load(__global const real *matrix, int i, int j, int n, bool live,
                           bool pairs) {
  real2 pair = (real2)(i == j ? 1.0 : 0.0, i + 1 == j ? 1.0 : 0.0);
  if (live && i < n && j < n) {
    if (pairs) {
      pair = *(__global const real2 *)(matrix + i + j * n);
    } else {
      pair.x = matrix[i + j * n];
      if (i + 1 < n) pair.y = matrix[i + 1 + j * n];
    }
  }
  return pair;
}

SCL_INLINE void tile_store(__global real *matrix, int i, int j, int n, bool pairs, real x, real y) {
  if (i < n && j < n) {
    if (pairs) {
      STORE_PAIR(matrix + i + j * n, __global, x, y);
    } else {
      matrix[i + j * n] = x;
      if (i + 1 < n) matrix[i + 1 + j * n] = y;
    }
  }
}

/* Reads a matrix into the tile: registers (r, c) where wanted(r, c), a constant; column(tj, c) is
 * TILE_COLUMN, TILE_CYCLIC or TILE_BLOCKED. Without conditions the loads overlap. (A macro: as a
 * function, whose layout is an argument, compilers split pairs into two loads.) */
#define TILE_LOAD(tile, matrix, n, ti, tj, live, pairs, column, wanted)                            \
  if ((live) && (pairs) && (n) == BATCH_N) {                                                       \
    EACH_COLUMN(c) {                                                                               \
      EACH_ROW_PAIR(r) {                                                                           \
        real2 pair = (real2)(0.0, 0.0);                                                            \
        if (wanted(r, c))                                                                          \
          pair = *(__global const real2 *)((matrix) + TILE_ROW(ti, r) + column(tj, c) * BATCH_N);  \
        tile[r][c] = pair.x;                                                                       \
        tile[r + 1][c] = pair.y;                                                                   \
      }                                                                                            \
    }                                                                                              \
  } else {                                                                                         \
    EACH_COLUMN(c) {                                                                               \
      EACH_ROW_PAIR(r) {                                                                           \
        const real2 pair = tile_load(matrix, TILE_ROW(ti, r), column(tj, c), n,                    \
                                     (live) && wanted(r, c), pairs);                               \
        tile[r][c] = pair.x;                                                                       \
        tile[r + 1][c] = pair.y;                                                                   \
      }                                                                                            \
    }                                                                                              \
  }
#define TILE_ALL(r, c) true

/* A pair of numbers in local memory, of which the first is even. */
SCL_INLINE real2 pair_get(__local const real *from, int i) {
  return *(__local const real2 *)(from + i);
}

SCL_INLINE void pair_put(__local real *to, int i, real x, real y) {
  STORE_PAIR(to + i, __local, x, y);
}

/* A barrier of the group. A group of 32 is one warp of an NVIDIA device, for which a barrier of the
 * warp is faster. */
#if defined(__NV_CL_C_VERSION) && BATCH_P * BATCH_Q * BATCH_MATRICES == 32
#define TILE_BARRIER asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#else
#define TILE_BARRIER barrier(CLK_LOCAL_MEM_FENCE);
#endif

/* ---- elimination with row pivoting ----------------------------------------------------------- */

/* The numbers that the work-items of a matrix share: column and pivot row of the step, the best row
 * of each ti, and the pivot and its row of each step. */
typedef struct {
  real column[BATCH_N], row[BATCH_N], pivots[BATCH_N];
  uint keys[BATCH_P < 4 ? 4 : BATCH_P];
  int chosen[BATCH_N];
} __attribute__((aligned(16))) tile_steps;

/* Keys order numbers by size, a NaN first, then by row, the upper first. The last 7 bits of a
 * number's upper half are replaced by the row: sizes that differ by less than one part in 2^13
 * count as equal. TILE_ROW_CODE is that of ti == 0; others change bits that are set in it. */
#define TILE_ROW_CODE(r) (127 ^ ((r) / 2 * 2 * BATCH_P + (r) % 2))

SCL_INLINE uint tile_key(real x, uint code) {
  return ((uint)(as_ulong(x) >> 32) & 0x7fffff80u) | code;
}

SCL_INLINE int tile_pivot(__local const uint *keys) {
  uint best = keys[0];
  SCL_UNROLL for (int i = 1; i < BATCH_P; i++) best = max(best, keys[i]);
  return 127 - (int)(best & 127u);
}

/* By the work-items that hold the column of the step in register column 0: publishes it, each with
 * its best row that has not been a pivot (a bit of `used`). */
SCL_INLINE void tile_publish_column(real tile[TILE_ROWS][TILE_COLUMNS], const int ti,
                                    const uint used, __local tile_steps *steps) {
  uint best = 0;
  EACH_ROW_PAIR(r) {
    pair_put(steps->column, TILE_ROW(ti, r), tile[r][0], tile[r + 1][0]);
    best = max(best, used >> r & 1 ? 0u : tile_key(tile[r][0], TILE_ROW_CODE(r)));
    best = max(best, used >> (r + 1) & 1 ? 0u : tile_key(tile[r + 1][0], TILE_ROW_CODE(r + 1)));
  }
  steps->keys[ti] = best == 0 ? 0u : best ^ (uint)(2 * ti);
}

/* The elements of the published column in this work-item's rows. */
SCL_INLINE_BARRIER void tile_get_column(real rows[TILE_ROWS], __local const real *column,
                                        const int ti) {
  EACH_ROW_PAIR(r) {
    const real2 pair = pair_get(column, TILE_ROW(ti, r));
    rows[r] = pair.x;
    rows[r + 1] = pair.y;
  }
}

SCL_INLINE void tile_put_step(__local tile_steps *steps, const int k, const int chosen,
                              const real pivot) {
  steps->chosen[k] = chosen;
  steps->pivots[k] = pivot;
}

/* Status of a pivot, by its exponent: 0 means a size below BATCH_SINGULAR_BELOW. */
SCL_INLINE int tile_status(real pivot, int k) {
  const int exponent = (int)(as_ulong(pivot) >> 52 & 2047);
  return exponent == 0 ? k + 1 : exponent == 2047 ? BATCH_NONFINITE : 0;
}
