/* Packed triangles: the columns of one triangle of an m x n matrix, back to back, each from its
 * first to its last stored row. Shared by the host
 * (engine/transfer/packed.c) and the device (transfer.cl). */
#ifndef SCL_KERNEL_PACKED_H
#define SCL_KERNEL_PACKED_H

/* Side of the square tiles of transfer.cl, which are its work-groups. */
#ifndef TRANSFER_TILE
#define TRANSFER_TILE 16
#endif

#define PACKED_FULL 0 /* all rows of all columns */
#define PACKED_LOWER 1
#define PACKED_UPPER 2

/* First stored row of column j, and the one after its last. */
SCL_INLINE scl_long packed_first(scl_long m, scl_long j, int kind) {
  return kind != PACKED_LOWER ? 0 : j < m ? j : m;
}

SCL_INLINE scl_long packed_end(scl_long m, scl_long j, int kind) {
  return kind != PACKED_UPPER || j >= m ? m : j + 1;
}

/* Number of elements in the columns before column j. */
SCL_INLINE scl_long packed_before(scl_long m, scl_long j, int kind) {
  scl_long k = j < m ? j : m;
  if (kind == PACKED_LOWER) return k * m - k * (k - 1) / 2;
  if (kind == PACKED_UPPER) return k * (k + 1) / 2 + (j - k) * m;
  return j * m;
}

#endif
