/* Triangular solves with few right-hand sides, block by block, from the inverses X of the diagonal
 * blocks of order VECTOR_BLOCK: M x = b with M = T, or T' if `transposed`, in place of b.
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
 * Layout. X lies where the blocks lie in a matrix of leading dimension VECTOR_BLOCK. Unknown i of
 * right-hand side s is B[i * step + s * next]. The workspace W holds two arrays, n x rhs each: x
 * before its correction, and r. Of T and X only the triangle is read.
 *
 * Work split. A group takes VECTOR_ROWS rows of M and the columns of one block, and deals out the
 * sums to VECTOR_PARTS work-items a row; neighbours run along what is contiguous in T. Dimension 1:
 * right-hand sides, VECTOR_COLUMNS at a time. Every sum has a fixed order.
 *
 * What counts is the time from the first load to the last sum. So a work-item's loads from M have
 * no conditions (an index beyond the end is moved to the last one) and end at a barrier before the
 * first of them is used: else a compiler saves registers and has few of them under way. The vector
 * goes through local memory meanwhile. */

#define VECTOR_PARTS (VECTOR_ITEMS / VECTOR_ROWS)
#define VECTOR_LOADS (VECTOR_BLOCK / VECTOR_PARTS)

/* Sums over the work-items of a row. Afterwards the first of them finds its row's sum for
 * right-hand side s at sums[s * VECTOR_ITEMS + item]. */
SCL_INLINE void vector_reduce(__local double *sums, const double *sum, const int count,
                              const int transposed, const int part, const uint item) {
  SCL_UNROLL
  for (int s = 0; s < count; s++) sums[s * VECTOR_ITEMS + item] = sum[s];
  for (int width = VECTOR_PARTS / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part < width) {
      const uint other = item + (transposed ? width : width * VECTOR_ROWS);
      SCL_UNROLL
      for (int s = 0; s < count; s++)
        sums[s * VECTOR_ITEMS + item] += sums[s * VECTOR_ITEMS + other];
    }
  }
}

/* The first `groups` groups do what `what` says, with a block of rows from row0 and of columns from
 * column0. The others subtract M(row, c) x(c) from b, rows [far, far_end), a block of columns from
 * far_column.
 * `triangle`: M is lower (1) or upper (-1). */
#define VECTOR_KERNEL(name, count, transposed)                                                     \
  __kernel __attribute__((reqd_work_group_size(VECTOR_ITEMS, 1, 1))) void name(                    \
      const int n, const int rhs, const int triangle, const int what, const int groups,            \
      const int row0, const int column0, const int far, const int far_end, const int far_column,   \
      __global const double *T, const long offset_t, const int ld, __global const double *X,       \
      __global double *B, const long offset_b, const long step, const long next,                   \
      __global double *W) {                                                                        \
    __local double sums[(count)*VECTOR_ITEMS], known[(count)*VECTOR_BLOCK];                        \
    const uint item = get_local_id(0);                                                             \
    const int group = get_group_id(0), is_far = group >= groups;                                   \
    const int part = transposed ? item % VECTOR_PARTS : item / VECTOR_ROWS;                        \
    const int row = (is_far ? far + (group - groups) * VECTOR_ROWS : row0 + group * VECTOR_ROWS) + \
                    (transposed ? item / VECTOR_PARTS : item % VECTOR_ROWS);                       \
    const int limit = is_far ? far_end : min(n, row0 + VECTOR_BLOCK), at = min(row, limit - 1);    \
    const int first = get_group_id(1) * (count), columns = min(count, rhs - first);                \
    B += offset_b + first * next;                                                                  \
    W += (long)first * n;                                                                          \
    __global double *R = W + (long)n * rhs;                                                        \
                                                                                                   \
    const int inverse = !is_far && (what == VECTOR_APPLY || what == VECTOR_CORRECT);               \
    const int whole = is_far || what == VECTOR_FOLLOW;                                             \
    const int from = is_far ? far_column : column0, to = min(n, from + VECTOR_BLOCK);              \
    const int begin = whole || triangle > 0 ? from : at, end = whole || triangle < 0 ? to : at + 1;\
    const int ld_a = inverse ? VECTOR_BLOCK : ld;                                                  \
    __global const double *A = inverse ? X : T + offset_t;                                         \
    A += transposed ? (long)at * ld_a : at;                                                        \
    double a[VECTOR_LOADS], sum[count];                                                            \
    SCL_UNROLL                                                                                     \
    for (int u = 0; u < VECTOR_LOADS; u++) {                                                       \
      const int c = clamp(from + part + u * VECTOR_PARTS, begin, end - 1);                         \
      a[u] = A[transposed ? c : (long)c * ld_a];                                                   \
    }                                                                                              \
    /* what the sum is added to or taken from, fetched ahead */                                    \
    const int mine = part == 0 && row < limit;                                                     \
    const int corrects = !is_far && what == VECTOR_CORRECT;                                        \
    __global const double *o = corrects ? W + at : B + at * step;                                  \
    double old[count];                                                                             \
    SCL_UNROLL                                                                                     \
    for (int s = 0; s < (count); s++)                                                              \
      old[s] = mine ? o[min(s, columns - 1) * (corrects ? n : next)] : 0.0;                        \
    const int in_b = is_far || what == VECTOR_APPLY || what == VECTOR_FOLLOW;                      \
    __global const double *v = in_b ? B : (what == VECTOR_RESIDUAL ? W : R);                       \
    for (uint i = item; i < VECTOR_BLOCK; i += VECTOR_ITEMS) {                                     \
      const int c = min(from + (int)i, to - 1);                                                    \
      SCL_UNROLL                                                                                   \
      for (int s = 0; s < (count); s++) {                                                          \
        const int side = min(s, columns - 1);                                                      \
        known[s * VECTOR_BLOCK + i] = v[in_b ? c * step + side * next : c + (long)side * n];       \
      }                                                                                            \
    }                                                                                              \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    SCL_UNROLL                                                                                     \
    for (int s = 0; s < (count); s++) sum[s] = 0.0;                                                \
    SCL_UNROLL                                                                                     \
    for (int u = 0; u < VECTOR_LOADS; u++) {                                                       \
      const int i = part + u * VECTOR_PARTS, inside = from + i >= begin && from + i < end;         \
      SCL_UNROLL                                                                                   \
      for (int s = 0; s < (count); s++)                                                            \
        sum[s] = fma(inside ? a[u] : 0.0, inside ? known[s * VECTOR_BLOCK + i] : 0.0, sum[s]);     \
    }                                                                                              \
    vector_reduce(sums, sum, count, transposed, part, item);                                       \
    if (!mine) return;                                                                             \
    SCL_UNROLL                                                                                     \
    for (int s = 0; s < (count); s++) {                                                            \
      if (s >= columns) break;                                                                     \
      const double total = sums[s * VECTOR_ITEMS + item];                                          \
      const long w = row + (long)s * n;                                                            \
      if (is_far || what == VECTOR_FOLLOW) {                                                       \
        B[row * step + s * next] = old[s] - total;                                                 \
      } else if (what == VECTOR_APPLY) {                                                           \
        W[w] = total;                                                                              \
      } else if (what == VECTOR_RESIDUAL) {                                                        \
        R[w] = old[s] - total;                                                                     \
      } else {                                                                                     \
        B[row * step + s * next] = old[s] + total;                                                 \
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
