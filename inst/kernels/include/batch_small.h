/* Batches of matrices of order BATCH_N <= 8: one work-item for each matrix, which it holds in
 * registers.
 *
 *    global memory   | matrix 0 | matrix 1 | matrix 2 | ...    one contiguous run, read by all
 *                      \          \ work-items of the group, neighbours read neighbours
 *    local memory    | matrix 0 |.| matrix 1 |.| ...           BATCH_STRIDE apart, which is odd
 *                         |             |
 *    registers         work-item 0   work-item 1               each reads its own: no bank conflict
 *
 * A group has BATCH_ITEMS (even) work-items and as many matrices; the last group may be partly
 * filled. Results go back the same way. Every sum is made by one work-item, in the order of the
 * loops.
 *
 * Defined by whoever builds: BATCH_KERNEL (the kernel's name), BATCH_N (order, 1 to 8), BATCH_ITEMS
 * (work-items of a group; their matrices take 8 BATCH_STRIDE BATCH_ITEMS bytes of local memory). */
#define BATCH_SQUARE (BATCH_N * BATCH_N)
#define BATCH_STRIDE (BATCH_SQUARE | 1)
#define BATCH_LOCAL (BATCH_ITEMS * BATCH_STRIDE)
#define BATCH_COLUMN (BATCH_N | 1) /* stride of right-hand sides */
#define AT(a, i, j) (a)[(i) + (j)*BATCH_N]

/* The row from k on with the largest number in column k, *size. A NaN is larger than all. */
SCL_INLINE int pivot_row(const real *a, const int k, real *size) {
  int row = k;
  *size = fabs(AT(a, k, k));
  SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
    const real x = fabs(AT(a, i, k));
    const bool larger = !(x <= *size);
    *size = larger ? x : *size;
    row = larger ? i : row;
  }
  return row;
}

/* Exchanges rows k and `row` >= k by selections: registers cannot be indexed. */
SCL_INLINE void swap_rows(real *a, const int k, const int row) {
  SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
    const bool swap = row == i;
    SCL_UNROLL for (int j = 0; j < BATCH_N; j++) {
      const real x = AT(a, k, j), y = AT(a, i, j);
      AT(a, k, j) = swap ? y : x;
      AT(a, i, j) = swap ? x : y;
    }
  }
}

/* Index in local memory of number k of those that lie side by side, `length` (a constant) of each
 * matrix. By division alone: the simulator of the tests does not know what compilers make of a
 * quotient and its remainder. */
SCL_INLINE int batch_index(int k, const int length, const int stride) {
  const int matrix = k / length;
  return matrix * stride + (k - matrix * length);
}

/* `length` numbers of each of the group's `count` matrices, which lie `step` apart from `from` on,
 * to local memory, `stride` apart. Whole groups are read by pairs, which need `from` on 16 bytes
 * (`pairs`). They are read in any case, from where there are numbers, and written over where that
 * is not all: without a condition all loads are under way together. Contains a barrier. */
SCL_INLINE_BARRIER void batch_in(const int item, const int count, const int length,
                                 const int stride, const long step, const bool pairs,
                                 __global const real *from, __local real *to) {
  if (length > 1) {
    __global const real2 *from2 = (__global const real2 *)(from - (pairs ? 0 : 1));
    const int last = (step == length ? count * length : length) / 2 - 1;
    SCL_UNROLL for (int i = 0; i < (length + 1) / 2; i++) {
      const int k = 2 * (i * BATCH_ITEMS + item);
      if (2 * i + 2 > length && k >= length * BATCH_ITEMS) break;
      const real2 pair = from2[min(k / 2, last)];
      to[batch_index(k, length, stride)] = pair.x;
      to[batch_index(k + 1, length, stride)] = pair.y;
    }
  }
  if (length == 1 || !pairs || step != length || count < BATCH_ITEMS) { /* the same for all */
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = item; k < count * length; k += BATCH_ITEMS) {
      const int matrix = k / length;
      to[batch_index(k, length, stride)] = from[matrix * step + (k - matrix * length)];
    }
  }
}

/* The way back. */
SCL_INLINE void batch_out(const int item, const int count, const int length, const int stride,
                          const long step, const bool pairs, __local const real *from,
                          __global real *to) {
  if (pairs && step == length && count == BATCH_ITEMS) {
    __global real2 *to2 = (__global real2 *)to;
    SCL_UNROLL for (int i = 0; i < (length + 1) / 2; i++) {
      const int k = 2 * (i * BATCH_ITEMS + item);
      if (2 * i + 2 > length && k >= length * BATCH_ITEMS) break;
      to2[k / 2] =
          (real2)(from[batch_index(k, length, stride)], from[batch_index(k + 1, length, stride)]);
    }
    return;
  }
  for (int k = item; k < count * length; k += BATCH_ITEMS) {
    const int matrix = k / length;
    to[matrix * step + (k - matrix * length)] = from[batch_index(k, length, stride)];
  }
}
