/* Batches of matrices of order 9 to 128: BATCH_P x BATCH_Q work-items for each matrix,
 * BATCH_MATRICES matrices for each group. Example: order 8, P = 2, Q = 2 (the numbers are the
 * work-items' ti, tj):
 *
 *        0   1   2   3   4   5   6   7      Work-item (ti, tj) holds in registers pairs of rows,
 *      +-------+-------+-------+-------+    2 ti + 2 P i, and of columns, 2 tj + 2 Q j: register
 *    0 | 0,0   | 0,1   | 0,0   | 0,1   |    (i, j) of `tile` is element (TILE_ROW, TILE_COLUMN).
 *    1 |       |       |       |       |    So all have work until the last columns.
 *      +-------+-------+-------+-------+
 *    2 | 1,0   | 1,1   | 1,0   | 1,1   |    A step of elimination takes TILE_ROWS + TILE_COLUMNS
 *    3 |       |       |       |       |    numbers from local memory, two at a time, for
 *      +-------+-------+-------+-------+    TILE_ROWS * TILE_COLUMNS multiplications. Each element
 *    4 | 0,0   | 0,1   | ...                is updated by one work-item, step by step: that is the
 *                                           order of summation.
 *
 * Register numbers must be constants: loops over columns run over their pairs of registers outside,
 * unrolled (TILE_PAIR), and over tj inside (owner). No condition compares a register number with a
 * variable: a compiler may then use the variable as an index, and the tile leaves the registers.
 * Rows and columns beyond the order n are those of an identity matrix.
 *
 * Defined by whoever builds: BATCH_KERNEL, BATCH_N (the largest order), BATCH_P (a power of 2; 2
 * BATCH_P divides BATCH_N), BATCH_Q (divides BATCH_P), BATCH_MATRICES (of a group). */
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
#define EACH_ROW(i) TILE_UNROLL for (int i = 0; i < TILE_ROWS; i++)
#define EACH_COLUMN(j) TILE_UNROLL for (int j = 0; j < TILE_COLUMNS; j++)
#define EACH_ROW_PAIR(i) TILE_UNROLL for (int i = 0; i < TILE_ROWS; i += 2)
#define EACH_COLUMN_PAIR(j) TILE_UNROLL for (int j = 0; j < TILE_COLUMNS; j += 2)

/* A work-item has a matrix in the group (slot) and in the batch, a number among the work-items of
 * the matrix (lane), and a position in the tile (ti, tj); `live`: there is such a matrix. Kernels
 * declare these one by one: POCL 3.1 takes members of a struct for the same in all work-items. */
#define TILE_SLOT(item) ((item) / TILE_LANES)
#define TILE_LANE(item) ((item) % TILE_LANES)

/* The element in register (i, j) of a work-item. */
#define TILE_ROW(ti, i) ((i) / 2 * 2 * BATCH_P + 2 * (ti) + (i) % 2)
#define TILE_COLUMN(tj, j) ((j) / 2 * 2 * BATCH_Q + 2 * (tj) + (j) % 2)
/* Other layouts of the columns, of kernels that take one column a step: spread singly, or side by
 * side. */
#define TILE_SINGLE(tj, j) ((j)*BATCH_Q + (tj))
#define TILE_BLOCKED(tj, j) ((tj)*TILE_COLUMNS + (j))
enum { IN_PAIRS, SINGLY, SIDE_BY_SIDE };

SCL_INLINE int tile_column(const int tj, const int layout, const int j) {
  return layout == IN_PAIRS ? TILE_COLUMN(tj, j)
         : layout == SINGLY ? TILE_SINGLE(tj, j)
                            : TILE_BLOCKED(tj, j);
}

/* Whether the pairs of registers (i, j) have elements on or below the diagonal, and whether all of
 * them lie below it. */
#define TILE_REACHES(i, j) ((i) / 2 * 2 * BATCH_P + 2 * BATCH_P - 1 >= (j) / 2 * 2 * BATCH_Q)
#define TILE_BELOW(i, j) ((i) / 2 * 2 * BATCH_P > (j) / 2 * 2 * BATCH_Q + 2 * BATCH_Q - 1)

/* Register columns after which a kernel with single columns goes on with a narrower tile. */
#define TILE_STAGE (TILE_COLUMNS % 4 == 0 ? TILE_COLUMNS / 2 : TILE_COLUMNS / 3)

/* The pairs of columns in order: registers j and j + 1 of the work-items with tj == owner hold the
 * columns TILE_PAIR(j, owner) and the next; registers TILE_ROW_PAIR(j) and the next of those with
 * ti == TILE_ROW_LANE(j, owner) the rows of the same numbers. */
#define TILE_PAIR(j, owner) ((j)*BATCH_Q + 2 * (owner))
#define TILE_ROW_PAIR(j) ((j)*BATCH_Q / (2 * BATCH_P) * 2)
#define TILE_ROW_LANE(j, owner) (((j) / 2 * BATCH_Q + (owner)) % BATCH_P)

/* ---- memory ---------------------------------------------------------------------------------- */

/* Whether pairs of rows of all matrices lie on 16 bytes. */
SCL_INLINE bool tile_pairs(const int n, const long offset, const int step) {
  return n % 2 == 0 && offset % 2 == 0 && step % 2 == 0;
}

/* A pair to where it lies on 16 bytes. vstore2() would do, but assumes only 8 bytes. Elsewhere it
 * is taken: the simulator of the tests reads the first form as a store of nothing. */
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

/* A matrix to the tile; `lower`: only registers with elements of the lower triangle. `layout` and
 * `lower` are constants. Loads without conditions are under way together. */
SCL_INLINE void tile_load_all(real tile[TILE_ROWS][TILE_COLUMNS], const int ti, const int tj,
                              const bool live, __global const real *matrix, const int n,
                              const bool pairs, const int layout, const bool lower) {
  if (live && pairs && n == BATCH_N) {
    EACH_COLUMN(j) {
      const int column = tile_column(tj, layout, j) * BATCH_N;
      EACH_ROW_PAIR(i) {
        real2 pair = (real2)(0.0, 0.0);
        if (!lower || TILE_REACHES(i, j)) {
          pair = *(__global const real2 *)(matrix + TILE_ROW(ti, i) + column);
        }
        tile[i][j] = pair.x;
        tile[i + 1][j] = pair.y;
      }
    }
  } else {
    EACH_COLUMN(j) {
      EACH_ROW_PAIR(i) {
        const bool wanted = live && (!lower || TILE_REACHES(i, j));
        const real2 pair =
            tile_load(matrix, TILE_ROW(ti, i), tile_column(tj, layout, j), n, wanted, pairs);
        tile[i][j] = pair.x;
        tile[i + 1][j] = pair.y;
      }
    }
  }
}

SCL_INLINE void tile_fill_nan(real tile[TILE_ROWS][TILE_COLUMNS]) {
  EACH_ROW(i) {
    EACH_COLUMN(j) tile[i][j] = NAN;
  }
}

/* A pair of numbers in local memory, of which the first is even. */
SCL_INLINE real2 pair_get(__local const real *from, int i) {
  return *(__local const real2 *)(from + i);
}

SCL_INLINE void pair_put(__local real *to, int i, real x, real y) {
  STORE_PAIR(to + i, __local, x, y);
}

/* Where all work-items of a group meet. A group of 32 is one warp of an NVIDIA device, which waits
 * for itself sooner. */
#if defined(__NV_CL_C_VERSION) && BATCH_P * BATCH_Q * BATCH_MATRICES == 32
#define TILE_BARRIER asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#else
#define TILE_BARRIER barrier(CLK_LOCAL_MEM_FENCE);
#endif

/* ---- elimination with row pivoting ----------------------------------------------------------- */

/* What the work-items of a matrix share: column and pivot row of the step, of each ti its best row,
 * and of each step its pivot and row. */
typedef struct {
  real column[BATCH_N], row[BATCH_N], pivots[BATCH_N];
  uint keys[BATCH_P < 4 ? 4 : BATCH_P];
  int chosen[BATCH_N];
} __attribute__((aligned(16))) tile_steps;

/* Keys order numbers by size, a NaN first, then by row, the upper first. The last 7 bits of a
 * number's upper half give way to the row: sizes that differ by less than one part in 2^13 count as
 * equal. TILE_ROW_CODE is that of ti == 0; others change bits that are set in it. */
#define TILE_ROW_CODE(i) (127 ^ ((i) / 2 * 2 * BATCH_P + (i) % 2))

SCL_INLINE uint tile_key(const real x, const uint code) {
  return ((uint)(as_ulong(x) >> 32) & 0x7fffff80u) | code;
}

SCL_INLINE int tile_pivot(__local const uint *keys) {
  uint best = keys[0];
  SCL_UNROLL for (int i = 1; i < BATCH_P; i++) best = max(best, keys[i]);
  return 127 - (int)(best & 127u);
}

/* By the work-items that hold the column of the step in register column 0: publishes it, each with
 * its best row that was no pivot yet (a bit of `used`). */
SCL_INLINE void tile_publish_column(real tile[TILE_ROWS][TILE_COLUMNS], const int ti, const int tj,
                                    const uint used, __local tile_steps *steps) {
  uint best = 0;
  EACH_ROW_PAIR(i) {
    pair_put(steps->column, TILE_ROW(ti, i), tile[i][0], tile[i + 1][0]);
    best = max(best, used >> i & 1 ? 0u : tile_key(tile[i][0], TILE_ROW_CODE(i)));
    best = max(best, used >> (i + 1) & 1 ? 0u : tile_key(tile[i + 1][0], TILE_ROW_CODE(i + 1)));
  }
  steps->keys[ti] = best == 0 ? 0u : best ^ (uint)(2 * ti);
}

/* Status of a pivot, by its exponent: 0 means a size below BATCH_SINGULAR_BELOW. */
SCL_INLINE int tile_status(const real pivot, const int k) {
  const int exponent = (int)(as_ulong(pivot) >> 52 & 2047);
  return exponent == 0 ? k + 1 : exponent == 2047 ? BATCH_NONFINITE : 0;
}

/* factors[] = the published column, of this work-item's rows. */
SCL_INLINE void tile_get_column(__local const real *column, const int ti, real factors[TILE_ROWS]) {
  EACH_ROW_PAIR(i) {
    const real2 pair = pair_get(column, TILE_ROW(ti, i));
    factors[i] = pair.x;
    factors[i + 1] = pair.y;
  }
}
