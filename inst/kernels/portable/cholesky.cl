/* Cholesky factor of one diagonal block of order n <= CHOLESKY_BLOCK, in place, by one group.
 *
 * Layout. The lower triangle goes to local memory, column-major without padding: work-items of one
 * line run down a column, so their accesses fall into different banks.
 *
 * Work split. CHOLESKY_BLOCK x LINES work-items; line q takes columns j+1+q, j+1+q+LINES, ... of
 * step j. Step j reads column j as it came out of the earlier steps, so that one barrier a step is
 * enough: every work-item finds pivot, scale and its own multiplier by itself, and line 0 writes
 * the final column to global memory.
 *
 * A pivot that is not positive and finite ends the group after it has stored the order of the
 * failing leading minor, `before` + j + 1, in info[0]; later blocks see it and do nothing. The
 * first block (`before` = 0) sets info[0] to zero. n may be 0. */

#ifdef SCL_CPU
#define CHOLESKY_LINES CHOLESKY_CPU_LINES
#else
#define CHOLESKY_LINES CHOLESKY_GPU_LINES
#endif

__kernel __attribute__((reqd_work_group_size(CHOLESKY_BLOCK, CHOLESKY_LINES, 1))) void
cholesky_block(const int n, const int before, __global real *A, const long offset_a,
               const int lda, __global real *info, const long offset_info, const int ld_info) {
  __local real a[CHOLESKY_BLOCK * CHOLESKY_BLOCK];
  const int row = get_local_id(0), line = get_local_id(1);
  const int leader = row == 0 && line == 0;
  int order = 0; /* of the failing minor */
  if (before > 0) order = (int)info[offset_info];
  A += offset_a;
  for (int k = line; k <= row && row < n; k += CHOLESKY_LINES)
    a[k * CHOLESKY_BLOCK + row] = A[row + (long)k * lda];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

  const int earlier = order;
  for (int j = 0; j < n && order == 0; j++) {
    const real pivot = a[j * CHOLESKY_BLOCK + j];
    if (pivot > 0.0 && pivot < INFINITY) {
      const real root = sqrt(pivot), scale = 1.0 / root;
      if (row >= j && row < n) {
        const real l = row == j ? root : a[j * CHOLESKY_BLOCK + row] * scale;
        for (int k = j + 1 + line; k <= row; k += CHOLESKY_LINES)
          a[k * CHOLESKY_BLOCK + row] =
              fma(-l, a[j * CHOLESKY_BLOCK + k] * scale, a[k * CHOLESKY_BLOCK + row]);
        if (line == 0) A[row + (long)j * lda] = l;
      }
    } else {
      order = before + j + 1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (leader && (before == 0 || order != earlier)) info[offset_info] = order;
}
