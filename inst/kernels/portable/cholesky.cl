/* Cholesky factor of one diagonal block of order n <= CHOLESKY_BLOCK, in place, by one group.
 *
 *          j   line 0 1 2 3 0      Step j. Every work-item of a row scales the row's element of
 *      + . |                         column j; the one of line 0 writes it to global memory. Then
 *      | + |                         each subtracts the products with column j from its columns
 *    j | | p                         right of j:
 *      | | l . 0                       line 0 from columns j+1, j+5, ..
 *      | | l . 0 1                     line 1 from columns j+2, j+6, ..
 *      | | l . 0 1 2
 *      | | l . 0 1 2 3               One barrier.
 *      | | l . 0 1 2 3 0
 *
 * Layout. The lower triangle goes to local memory, column-major without padding: work-items of one
 * line run down a column, so their accesses fall into different banks.
 *
 * Work split. CHOLESKY_BLOCK rows x CHOLESKY_LINES lines of work-items. Step j reads column j as it
 * came out of the earlier steps, so that one barrier a step is enough: every work-item finds pivot,
 * scale and its multiplier by itself.
 *
 * A pivot that is not positive and finite ends the group after it has stored the order of the
 * failing leading minor, `before` + j + 1, in info[0]; later blocks see it and do nothing. The
 * first block (`before` = 0) sets info[0] to zero. n may be 0. */

/* Lines of work-items: cholesky.h, as the driver knows them too. */
#ifdef SCL_CPU
#define CHOLESKY_LINES CHOLESKY_CPU_LINES
#else
#define CHOLESKY_LINES CHOLESKY_GPU_LINES
#endif

__kernel __attribute__((reqd_work_group_size(CHOLESKY_BLOCK, CHOLESKY_LINES, 1))) void
cholesky_block(const int n, const int before, __global real *a, const long a_offset, const int a_ld,
               __global real *info, const long info_offset, const int info_ld) {
  __local real block[CHOLESKY_BLOCK * CHOLESKY_BLOCK];
  const int row = get_local_id(0), line = get_local_id(1);
  const int leader = row == 0 && line == 0;
  int order = 0; /* of the failing minor */
  if (before > 0) order = (int)info[info_offset];
  a += a_offset;
  for (int k = line; k <= row && row < n; k += CHOLESKY_LINES)
    block[k * CHOLESKY_BLOCK + row] = a[row + (long)k * a_ld];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

  const int earlier = order;
  for (int j = 0; j < n && order == 0; j++) {
    const real pivot = block[j * CHOLESKY_BLOCK + j];
    if (pivot > 0.0 && pivot < INFINITY) {
      const real root = sqrt(pivot), scale = 1.0 / root;
      if (row >= j && row < n) {
        const real l = row == j ? root : block[j * CHOLESKY_BLOCK + row] * scale;
        for (int k = j + 1 + line; k <= row; k += CHOLESKY_LINES)
          block[k * CHOLESKY_BLOCK + row] =
              fma(-l, block[j * CHOLESKY_BLOCK + k] * scale, block[k * CHOLESKY_BLOCK + row]);
        if (line == 0) a[row + (long)j * a_ld] = l;
      }
    } else {
      order = before + j + 1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (leader && (before == 0 || order != earlier)) info[info_offset] = order;
}
