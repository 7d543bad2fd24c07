/* Triangular solves with few right-hand sides, block by block, from the inverses X of the diagonal
 * blocks of order `block`: M x = b with M = T, or T' if `transposed`, in place of b.
 *
 * Solving is a chain in which every link waits for the one before, so links are few and each is
 * spread over the device. Block j, followed by block i, takes four launches:
 *   VECTOR_APPLY     x_j = X_j b_j
 *   VECTOR_RESIDUAL  r_j = b_j - M_jj x_j
 *   VECTOR_CORRECT   x_j += X_j r_j
 *   VECTOR_FOLLOW    b_i -= M_ij x_j
 * Without the correction the residual would grow with the condition of a block, and blocks of the
 * covariance matrix of a smooth Gaussian process are as ill-conditioned as the whole. A correction
 * that comes later, once b_i is changed, is no substitute: errors then grow from block to block.
 * The unknowns that come after block i learn of x_j beside the links of block i, where most of the
 * device is idle: "far" rows and columns of T.
 *
 * Layout. X lies where the blocks lie in a matrix of leading dimension `block`. Unknown i of
 * right-hand side s is B[i * step + s * next]. The workspace W holds two arrays, n x rhs each: x
 * before its correction, and r. Of T and X only the triangle is read.
 *
 * Work split. A group takes some rows of M and deals out their sums to VECTOR_ITEMS / rows
 * work-items a row; neighbours run along what is contiguous in T. The rows are few where the next
 * launch waits for them, more where there are many. Dimension 1: right-hand sides, VECTOR_COLUMNS
 * at a time. Every sum has a fixed order. */

/* Loads of a work-item that are under way together. They have no conditions (an index beyond the
 * end is moved to the last one), as a compiler would not move one ahead of another's. */
#define VECTOR_BATCH(count) ((count) == 1 ? 16 : 8)

/* sum[s] += over c in [begin, end) of M(row, c) v(c, s), every stride-th c; M is A or A', v(c, s)
 * is v[c * step + s * next] for s < columns. */
#define VECTOR_TERMS(sum, count, columns, transposed, A, ld, row, begin, end, stride, v, step,     \
                     next)                                                                         \
  do {                                                                                             \
    __global const double *a_ = (A) + ((transposed) ? (long)(row) * (ld) : (row));                 \
    for (int c = (begin); c < (end); c += VECTOR_BATCH(count) * (stride)) {                        \
      double a[VECTOR_BATCH(count)], x[count][VECTOR_BATCH(count)];                                \
      SCL_UNROLL                                                                                   \
      for (int u = 0; u < VECTOR_BATCH(count); u++) {                                              \
        const int at = min(c + u * (stride), (end)-1);                                             \
        a[u] = a_[(transposed) ? at : (long)at * (ld)];                                            \
        SCL_UNROLL                                                                                 \
        for (int s = 0; s < (count); s++)                                                          \
          x[s][u] = (v)[at * (step) + min(s, (columns)-1) * (next)];                               \
      }                                                                                            \
      SCL_UNROLL                                                                                   \
      for (int u = 0; u < VECTOR_BATCH(count); u++) {                                              \
        const int inside = c + u * (stride) < (end);                                               \
        SCL_UNROLL                                                                                 \
        for (int s = 0; s < (count); s++)                                                          \
          sum[s] = fma(inside ? a[u] : 0.0, inside ? x[s][u] : 0.0, sum[s]);                       \
      }                                                                                            \
    }                                                                                              \
  } while (0)

/* Sums over the work-items of a row. Afterwards the first of them finds its row's sum for
 * right-hand side s at sums[s * VECTOR_ITEMS + item]. */
SCL_INLINE void vector_reduce(__local double *sums, const double *sum, const int count,
                              const int parts, const int part, const int away, const int item) {
  SCL_UNROLL
  for (int s = 0; s < count; s++) sums[s * VECTOR_ITEMS + item] = sum[s];
  for (int width = parts / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part < width) {
      SCL_UNROLL
      for (int s = 0; s < count; s++)
        sums[s * VECTOR_ITEMS + item] += sums[s * VECTOR_ITEMS + item + width * away];
    }
  }
}

/* The first `groups` groups do what `what` says: rows [row0, row0 + block), columns [column0, ..).
 * The others subtract M(row, c) x(c) from b, rows [far, far_end) and columns [far_column, ..).
 * `triangle`: M is lower (1) or upper (-1). */
#define VECTOR_KERNEL(name, count, transposed)                                                     \
  __kernel __attribute__((reqd_work_group_size(VECTOR_ITEMS, 1, 1))) void name(                    \
      const int n, const int rhs, const int block, const int triangle, const int what,             \
      const int groups, const int row0, const int column0, const int far, const int far_end,       \
      const int far_column, __global const double *T, const long offset_t, const int ld,           \
      __global const double *X, __global double *B, const long offset_b, const long step,          \
      const long next, __global double *W) {                                                       \
    __local double sums[(count)*VECTOR_ITEMS];                                                     \
    const int item = get_local_id(0), group = get_group_id(0), is_far = group >= groups;           \
    const int rows = is_far ? VECTOR_MANY(transposed) : VECTOR_FEW;                    \
    const int parts = VECTOR_ITEMS / rows;                                                         \
    const int row = (is_far ? far + (group - groups) * rows : row0 + group * rows) +               \
                    (transposed ? item / parts : item % rows);                                     \
    const int part = transposed ? item % parts : item / rows;                                      \
    const int limit = is_far ? far_end : min(n, row0 + block);                                     \
    const int first = get_group_id(1) * (count), columns = min(count, rhs - first);                \
    B += offset_b + first * next;                                                                  \
    W += (long)first * n;                                                                          \
    __global double *R = W + (long)n * rhs;                                                        \
    double sum[count] = {0.0};                                                                     \
    if (row < limit) {                                                                             \
      const int inverse = !is_far && (what == VECTOR_APPLY || what == VECTOR_CORRECT);             \
      const int b = is_far || what == VECTOR_APPLY || what == VECTOR_FOLLOW;                       \
      const int whole = is_far || what == VECTOR_FOLLOW;                                           \
      const int from = is_far ? far_column : column0, to = min(n, from + block);                   \
      __global const double *A = inverse ? X : T + offset_t;                                       \
      __global const double *v = b ? B : (what == VECTOR_RESIDUAL ? W : R);                        \
      const int ld_a = inverse ? block : ld, begin = whole || triangle > 0 ? from : row;           \
      const int end = whole || triangle < 0 ? to : row + 1;                                        \
      const long step_v = b ? step : 1, next_v = b ? next : n;                                     \
      VECTOR_TERMS(sum, count, columns, transposed, A, ld_a, row, begin + part, end, parts, v,     \
                   step_v, next_v);                                                                \
    }                                                                                              \
    vector_reduce(sums, sum, count, parts, part, transposed ? 1 : rows, item);                     \
    if (part != 0 || row >= limit) return;                                                         \
    for (int s = 0; s < columns; s++) {                                                            \
      const double total = sums[s * VECTOR_ITEMS + item];                                          \
      __global double *b = B + row * step + s * next, *x = W + row + (long)s * n;                  \
      if (is_far || what == VECTOR_FOLLOW) {                                                       \
        *b -= total;                                                                               \
      } else if (what == VECTOR_APPLY) {                                                           \
        *x = total;                                                                                \
      } else if (what == VECTOR_RESIDUAL) {                                                        \
        R[row + (long)s * n] = *b - total;                                                         \
      } else {                                                                                     \
        *b = *x + total;                                                                           \
      }                                                                                            \
    }                                                                                              \
  }

VECTOR_KERNEL(triangular_vector_n, 1, 0)
VECTOR_KERNEL(triangular_vector_t, 1, 1)
VECTOR_KERNEL(triangular_vector_few_n, VECTOR_COLUMNS, 0)
VECTOR_KERNEL(triangular_vector_few_t, VECTOR_COLUMNS, 1)

/* Identities in the places of the diagonal blocks of order STRIPS_ORDER, n rows in all, of a matrix
 * of leading dimension ld. A group fills a block, its lanes along dimension 0 a column of it. */
__kernel void triangular_vector_identities(const int n, __global double *X, const int ld) {
  const int first = get_group_id(0) * STRIPS_ORDER, row = first + get_local_id(0);
  const int end = min(n, first + STRIPS_ORDER);
  if (row >= end) return;
  for (int column = first + get_local_id(1); column < end; column += get_local_size(1))
    X[row + (long)column * ld] = row == column ? 1.0 : 0.0;
}
