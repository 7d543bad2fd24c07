/* Batches of matrices of order BATCH_N <= 8: one work-item for each matrix, which it holds in
 * registers.
 *
 *   global   | matrix 0 | matrix 1 | matrix 2 | ...    one contiguous run for each group
 *                 ||  batch_in(): all work-items copy, neighbours read neighbours
 *   local    | matrix 0 |.| matrix 1 |.| ...           BATCH_STRIDE apart, an odd number: each
 *                 ||           ||                      work-item reads its own matrix, without
 *   registers  item 0      item 1                      bank conflicts; batch_out() is the way back
 *
 * A group has BATCH_ITEMS (even) work-items and as many matrices; the last group may be partly
 * filled. Each sum is made by one work-item, in the order of the loops.
 *
 * To define before: BATCH_KERNEL (the kernel's name), BATCH_N (the order), BATCH_ITEMS. */
#define BATCH_SQUARE (BATCH_N * BATCH_N)
#define BATCH_STRIDE (BATCH_SQUARE | 1)
#define BATCH_LOCAL (BATCH_ITEMS * BATCH_STRIDE)
#define BATCH_COLUMN (BATCH_N | 1) /* stride of right-hand sides */
#define AT(a, i, j) (a)[(i) + (j) * BATCH_N]

/* The row from k on with the largest number in column k, *size. A NaN is larger than all. */
SCL_INLINE int pivot_row(const real *a, const int k, real *size) {
  int row = k;
  *size = fabs(AT(a, k, k));
  SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
    real x = fabs(AT(a, i, k));
    bool larger = !(x <= *size);
    *size = larger ? x : *size;
    row = larger ? i : row;
  }
  return row;
}

/* Swaps rows k and `row` >= k, by selections: registers cannot be indexed. */
SCL_INLINE void swap_rows(real *a, const int k, const int row) {
  SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
    bool swap = row == i;
    SCL_UNROLL for (int j = 0; j < BATCH_N; j++) {
      real x = AT(a, k, j), y = AT(a, i, j);
      AT(a, k, j) = swap ? y : x;
      AT(a, i, j) = swap ? x : y;
    }
  }
}

/* Index in local memory of element e of a run of matrices of `length` (a constant) elements. With a
 * division only: the tests' simulator does not support what compilers make of a quotient and its
 * remainder. */
SCL_INLINE int batch_index(int e, const int length, const int stride) {
  int matrix = e / length;
  return matrix * stride + (e - matrix * length);
}

/* Copies `length` elements of each of `count` matrices, `step` apart in global memory, to local
 * memory, `stride` apart. Whole groups are read by pairs, which must be aligned to 16 bytes
 * (`pairs`). Pairs are always read, from valid addresses, and overwritten if they are not wanted:
 * without a condition all loads overlap. Contains a barrier. */
SCL_INLINE_BARRIER void batch_in(int item, int count, const int length, const int stride, long step,
                                 bool pairs, __global const real *from, __local real *to) {
  if (length > 1) {
    __global const real2 *from2 = (__global const real2 *)(from - (pairs ? 0 : 1));
    const int last = (step == length ? count * length : length) / 2 - 1;
    SCL_UNROLL for (int i = 0; i < (length + 1) / 2; i++) {
      int e = 2 * (i * BATCH_ITEMS + item);
      if (2 * i + 2 > length && e >= length * BATCH_ITEMS) break;
      real2 pair = from2[min(e / 2, last)];
      to[batch_index(e, length, stride)] = pair.x;
      to[batch_index(e + 1, length, stride)] = pair.y;
    }
  }
  if (length == 1 || !pairs || step != length || count < BATCH_ITEMS) { /* the same for all */
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item; e < count * length; e += BATCH_ITEMS) {
      int matrix = e / length;
      to[batch_index(e, length, stride)] = from[matrix * step + (e - matrix * length)];
    }
  }
}

/* The same from local to global memory, without a barrier. */
SCL_INLINE void batch_out(int item, int count, const int length, const int stride, long step,
                          bool pairs, __local const real *from, __global real *to) {
  if (pairs && step == length && count == BATCH_ITEMS) {
    __global real2 *to2 = (__global real2 *)to;
    SCL_UNROLL for (int i = 0; i < (length + 1) / 2; i++) {
      int e = 2 * (i * BATCH_ITEMS + item);
      if (2 * i + 2 > length && e >= length * BATCH_ITEMS) break;
      to2[e / 2] =
          (real2)(from[batch_index(e, length, stride)], from[batch_index(e + 1, length, stride)]);
    }
    return;
  }
  for (int e = item; e < count * length; e += BATCH_ITEMS) {
    int matrix = e / length;
    to[matrix * step + (e - matrix * length)] = from[batch_index(e, length, stride)];
  }
}
