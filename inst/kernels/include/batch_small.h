/* Batches of matrices of order BATCH_N <= 8: one work-item a matrix, which it holds in registers.
 *
 *   global   | matrix 0 | matrix 1 | matrix 2 | ...    one contiguous run a group
 *                 ||  batch_in(): all work-items copy, neighbours neighbours
 *   local    | matrix 0 |.| matrix 1 |.| ...           BATCH_STRIDE apart, an odd number
 *                 ||           ||
 *   registers  item 0      item 1                      each its own; batch_out() is the way back
 *
 * A group of BATCH_ITEMS (even) work-items moves its matrices between global memory and local
 * memory in one contiguous run; in local memory they lie at an odd distance, so that work-items
 * that each read their own matrix meet no bank conflict. The last group may be partly filled.
 *
 * Defined by whoever builds: BATCH_KERNEL (the kernel's name), BATCH_N, BATCH_ITEMS. */
#define NN (BATCH_N * BATCH_N)
#define BATCH_STRIDE (NN | 1)
#define BATCH_LOCAL (BATCH_ITEMS * BATCH_STRIDE)
#define BATCH_COLUMN (BATCH_N | 1) /* stride of right-hand sides */
#define AT(i, j) a[(i) + (j) * BATCH_N]

/* A work-item's place, the first matrix of its group and how many the group has. */
#define SMALL_PLACE                                                                                \
  const int item = (int)get_local_id(0);                                                           \
  const long first = (long)get_group_id(0) * BATCH_ITEMS;                                          \
  const int count = (int)min((long)BATCH_ITEMS, batch - first);

/* The status of this work-item's matrix. */
#define SMALL_STATUS(status)                                                                       \
  if (flags & BATCH_STATUSES) ((__global uchar *)statuses)[first + item] = (uchar)(status);        \
  if ((status) != 0) *any = 1;

/* The row from k on with the largest number in column k, *size. A NaN is larger than all. */
SCL_INLINE int pivot_row(const real *a, const int k, real *size) {
  int p = k;
  *size = fabs(AT(k, k));
  SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
    real v = fabs(AT(i, k));
    bool larger = !(v <= *size);
    *size = larger ? v : *size;
    p = larger ? i : p;
  }
  return p;
}

/* Rows k and p >= k change places, by selections: registers cannot be indexed. */
SCL_INLINE void swap_rows(real *a, const int k, const int p) {
  SCL_UNROLL for (int i = k + 1; i < BATCH_N; i++) {
    bool swap = p == i;
    SCL_UNROLL for (int j = 0; j < BATCH_N; j++) {
      real u = AT(k, j), v = AT(i, j);
      AT(k, j) = swap ? v : u;
      AT(i, j) = swap ? u : v;
    }
  }
}

/* Place in local memory of number e of those that lie side by side, `len` (a constant) of each
 * matrix. Division alone: the simulator that looks for faults does not know what compilers make of
 * a quotient and its remainder. */
SCL_INLINE int batch_place(int e, const int len, const int stride) {
  int matrix = e / len;
  return matrix * stride + (e - matrix * len);
}

/* `len` numbers of each of `count` matrices that lie `step` apart from g on, to local memory,
 * `stride` apart. Whole groups are read by pairs, which need g on 16 bytes (`pairs`). They are read
 * in any case, from where there are numbers, and written over where that is not all: without a
 * condition all loads are under way together. Contains a barrier. */
SCL_INLINE_BARRIER void batch_in(int item, int count, const int len, const int stride, long step,
                                 bool pairs, __global const real *g, __local real *s) {
  if (len > 1) {
    __global const real2 *g2 = (__global const real2 *)(g - (pairs ? 0 : 1));
    const int last = (step == len ? count * len : len) / 2 - 1;
    SCL_UNROLL for (int i = 0; i < (len + 1) / 2; i++) {
      int e = 2 * (i * BATCH_ITEMS + item);
      if (2 * i + 2 > len && e >= len * BATCH_ITEMS) break;
      real2 v = g2[min(e / 2, last)];
      s[batch_place(e, len, stride)] = v.x;
      s[batch_place(e + 1, len, stride)] = v.y;
    }
  }
  if (len == 1 || !pairs || step != len || count < BATCH_ITEMS) { /* the same for all */
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item; e < count * len; e += BATCH_ITEMS) {
      int matrix = e / len;
      s[batch_place(e, len, stride)] = g[matrix * step + (e - matrix * len)];
    }
  }
}

/* The way back. */
SCL_INLINE void batch_out(int item, int count, const int len, const int stride, long step,
                          bool pairs, __local const real *s, __global real *g) {
  if (pairs && step == len && count == BATCH_ITEMS) {
    __global real2 *g2 = (__global real2 *)g;
    SCL_UNROLL for (int i = 0; i < (len + 1) / 2; i++) {
      int e = 2 * (i * BATCH_ITEMS + item);
      if (2 * i + 2 > len && e >= len * BATCH_ITEMS) break;
      g2[e / 2] = (real2)(s[batch_place(e, len, stride)], s[batch_place(e + 1, len, stride)]);
    }
    return;
  }
  for (int e = item; e < count * len; e += BATCH_ITEMS) {
    int matrix = e / len;
    g[matrix * step + (e - matrix * len)] = s[batch_place(e, len, stride)];
  }
}
